"""Pictures of forecasts: history, bands, mean, paths, for sktime, skpro and darts alike; and of their parts.

Needs the extra ``plot``. No host is imported: what is drawn is asked for what it can do.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from taylorformer_forecast.engine.parameters import NATURAL, POSITIVE, Rule, check_rule

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["plot_explanation", "plot_forecast"]

BLUE = "#3b7dd8"
SHARE = Rule("a number between 0 and 1", lambda value: isinstance(value, Real) and 0 <= float(value) <= 1)
Column = tuple[Hashable, Any, NDArray[Any]]  # name of a column, its times, its values


def plot_forecast(
    y: Any,
    forecast: Any,
    *,
    paths: int = 0,
    coverage: float | Sequence[float] = (0.5, 0.9),
    truth: Any = None,
    history: int | None = None,
    ax: Axes | None = None,
) -> Figure:
    """Draw a forecast after its history: bands, mean, and sample paths.

    Parameters
    ----------
    y : pandas.Series, pandas.DataFrame or darts.TimeSeries
        The history. Every column of every series has axes of its own.
    forecast : sktime forecaster, skpro distribution, pandas or darts forecast
        A forecaster that was fitted with ``fh``; or what ``predict_proba`` of sktime, or ``predict`` of
        either host returned. Points alone have no bands.
    paths : int, default=0
        Sample paths to draw. Those of a distribution are joint if it was made with ``marginal=False``, those
        of a forecaster and of darts always are.
    coverage : float or sequence of float, default=(0.5, 0.9)
        Coverages of the bands, between 0 and 1.
    truth : as ``y``, optional
        Values to compare with.
    history : int, optional
        Points of the history that are drawn. By default four times the steps of the forecast, at least 24.
    ax : matplotlib.axes.Axes, optional
        Where to draw a single column.

    Returns
    -------
    matplotlib.figure.Figure
        The figure; ``figure.axes`` are one for each column.

    Raises
    ------
    ValueError
        If ``ax`` is given and there are several columns, or ``paths``, ``coverage`` or ``history`` are
        no such numbers.
    TypeError
        If data are neither of pandas nor of darts.

    Examples
    --------
    >>> from sktime.datasets import load_airline
    >>> from taylorformer_forecast.plot import plot_forecast
    >>> from taylorformer_forecast.sktime import TaylorformerForecaster
    >>> y = load_airline()
    >>> forecaster = TaylorformerForecaster(random_state=0).fit(y, fh=range(1, 13))
    >>> figure = plot_forecast(y, forecaster, paths=5)
    >>> len(figure.axes)
    1
    """
    import matplotlib.pyplot as plt

    check_rule("paths", paths, NATURAL)
    check_rule("history", history, POSITIVE.or_none())
    shares = list(coverage) if isinstance(coverage, Iterable) else [coverage]
    for share in shares:
        check_rule("coverage", share, SHARE)
    mean, bands, lines = _parts(forecast, sorted(shares, reverse=True), paths)
    past = list(_columns(y, "y"))
    known = {} if truth is None else {name: (x, v) for name, x, v in _columns(truth, "truth")}
    figure: Any
    if ax is None:
        figure, grid = plt.subplots(
            len(mean), squeeze=False, figsize=(8, 2.6 * len(mean) + 0.8), layout="constrained"
        )
    elif len(mean) > 1:
        raise ValueError(f"the forecast has {len(mean)} columns, but ax is for one")
    else:
        figure, grid = ax.figure, np.array([[ax]])
    before = {name: (x, v) for name, x, v in past}
    for number, (name, x, values) in enumerate(mean):
        one = grid[number, 0]
        n = max(24, 4 * len(x)) if history is None else history
        # Where names differ, columns go by their places.
        past_x, past_y = before.get(name, past[min(number, len(past) - 1)][1:])
        one.plot(past_x[-n:], past_y[-n:], color="0.35", lw=1.3, label="history")
        darker = 0.27 / max(2, len(bands) - 1)
        for inner, (share, low, high) in enumerate(bands):
            strength = {"color": BLUE, "alpha": 0.18 + inner * darker, "lw": 0}
            one.fill_between(x, low[number][2], high[number][2], label=f"{share:.0%}", **strength)
        for i, path in enumerate(lines):
            one.plot(x, path[number][2], color=BLUE, lw=0.7, alpha=0.6, label="paths" if i == 0 else None)
        one.plot(x, values, color=BLUE, lw=2, label="mean" if bands else "forecast")
        if known:
            at = known[name] if name in known else list(known.values())[min(number, len(known) - 1)]
            one.plot(*at, color="0.35", lw=1.3, ls="--", label="truth")
        _tidy(one, x)
        if len(mean) > 1:
            one.set_title(str(name), loc="left", fontsize="medium")
    legend = grid[0, 0].legend(frameon=False, loc="upper left", ncols=3, fontsize="small")
    legend.set_in_layout(False)  # else it squeezes narrow axes to nothing
    return figure


def plot_explanation(parts: Any) -> Figure:
    """Draw the parts of a forecast: baseline and network over time, and how much every input changes.

    Parameters
    ----------
    parts : pandas.DataFrame or dict of darts.TimeSeries
        What ``explain`` returned, for one column of one series.

    Returns
    -------
    matplotlib.figure.Figure
        Forecast and baseline over time; mean absolute changes by the network, columns of X and lags.

    Raises
    ------
    ValueError
        If there are several series or columns of y.

    Examples
    --------
    >>> from sktime.datasets import load_airline
    >>> from taylorformer_forecast.plot import plot_explanation
    >>> from taylorformer_forecast.sktime import TaylorformerForecaster
    >>> forecaster = TaylorformerForecaster(random_state=0).fit(load_airline(), fh=range(1, 13))
    >>> figure = plot_explanation(forecaster.explain(lags=12))
    >>> [bar.get_text() for bar in figure.axes[1].get_yticklabels()]
    ['network', 'lags 1-12', 'lags 13-24', 'lags 25-36']
    """
    import matplotlib.pyplot as plt

    columns: dict[str, list[Column]] = {}
    for name, part in parts.items():  # (name, column) where y is a frame
        columns.setdefault(name[0] if isinstance(name, tuple) else name, []).extend(_columns(part))
    if any(len(found) > 1 for found in columns.values()):
        raise ValueError(
            "choose one series, parts.loc[key], and one column, parts.xs(name, axis=1, level=1); with darts "
            "{part: series[name] for part, series in parts.items()}"
        )
    figure, (over_time, sizes) = plt.subplots(2, 1, figsize=(8, 4.6), layout="constrained")
    drawn = {name: found[0] for name, found in columns.items()}
    (_, x, forecast), (_, _, baseline) = drawn.pop("forecast"), drawn.pop("baseline")
    over_time.plot(x, forecast, color=BLUE, lw=2, label="forecast")
    over_time.plot(x, baseline, color="0.35", lw=1.3, ls="--", label="baseline")
    over_time.legend(frameon=False, fontsize="small")
    changes = [np.nanmean(np.abs(values)) for _, _, values in drawn.values()]
    sizes.barh(list(drawn), changes, color=BLUE)
    sizes.invert_yaxis()
    sizes.set_title("mean absolute change", loc="left", fontsize="medium")
    _tidy(over_time, x)
    _tidy(sizes)
    return figure


def _tidy(ax: Axes, x: Any = ()) -> None:
    """No frame, and short dates."""
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

    ax.spines[["top", "right"]].set_visible(False)
    if np.issubdtype(np.asarray(x).dtype, np.datetime64):
        locator = AutoDateLocator(maxticks=6)  # three axes side by side have room for as many labels
        ax.xaxis.set_major_locator(locator)
        ax.xaxis.set_major_formatter(ConciseDateFormatter(locator))


def _parts(forecast: Any, coverage: Sequence[float], paths: int) -> tuple[list[Column], list[Any], list[Any]]:
    """Columns of the mean; of low and high of every band; of every path."""
    joint = forecast
    if hasattr(forecast, "predict_proba") and not forecast.get_tag("capability:pred_int"):
        forecast = forecast.predict()  # points alone
    elif hasattr(forecast, "predict_proba"):
        joint = forecast.predict_proba(marginal=False) if paths else None
        forecast = forecast.predict_proba()
    if hasattr(forecast, "ppf"):  # a distribution
        mean, lines = forecast.mean(), _sampled(joint, paths)
    elif _is_darts(forecast) and forecast.is_stochastic:
        mean, lines = forecast.mean(axis=2), _darts_paths(forecast, paths)
    else:
        return list(_columns(forecast)), [], []
    bands = []
    for share in coverage:
        low, high = (list(_columns(forecast.quantile(q))) for q in ((1 - share) / 2, (1 + share) / 2))
        bands.append((share, low, high))
    return list(_columns(mean)), bands, lines


def _is_darts(data: Any) -> bool:
    """Whether something is a series of darts."""
    return hasattr(data, "all_values")


def _darts_paths(forecast: Any, paths: int) -> list[list[Column]]:
    """The first samples of a darts series."""
    samples = forecast.all_values()[:, :, :paths]
    names, x = list(forecast.components), forecast.time_index
    return [[(name, x, samples[:, c, s]) for c, name in enumerate(names)] for s in range(samples.shape[2])]


def _sampled(distribution: Any, paths: int) -> list[list[Column]]:
    """Samples of a skpro distribution, which are the first level of its index."""
    if not paths:
        return []
    frame = distribution.sample(paths)
    numbers = frame.index.get_level_values(0)
    return [list(_columns(frame[numbers == n].droplevel(0))) for n in range(paths)]


def _columns(data: Any, name: str = "forecast") -> Iterator[Column]:
    """Columns of a series, a frame, a panel or a darts series."""
    if _is_darts(data):
        values = data.all_values()[:, :, 0]
        yield from ((label, data.time_index, values[:, c]) for c, label in enumerate(data.components))
        return
    if not (hasattr(data, "to_frame") or hasattr(data, "columns")):
        raise TypeError(
            f"{name} is a {type(data).__name__}; a Series or DataFrame of pandas or a TimeSeries of darts is "
            f"needed"
        )
    frame = data.to_frame() if data.ndim == 1 else data
    parts: Iterator[tuple[Hashable, Any]] = iter([(None, frame)])
    if frame.index.nlevels > 1:
        levels = list(range(frame.index.nlevels - 1))
        keys = levels if len(levels) > 1 else levels[0]
        parts = ((key, part.droplevel(levels)) for key, part in frame.groupby(level=keys, sort=False))
    for key, part in parts:
        x = part.index.to_timestamp() if hasattr(part.index, "to_timestamp") else part.index
        for column in part.columns:
            label = column if key is None else key if len(part.columns) == 1 else (key, column)
            yield label, x, part[column].to_numpy(dtype=float)
