"""Averages of forecasts of a network, statistics and analogues, quantile by quantile."""

from __future__ import annotations

import math

import numpy as np
import torch
from jaxtyping import Bool, Float

from taylorformer_forecast.baselines.analogues import analogue_paths
from taylorformer_forecast.defaults import DECILES, SPARSEST_STEPS, STATISTICAL_LEVELS
from taylorformer_forecast.engine.contexts import robust_columns
from taylorformer_forecast.engine.statistics.requests import (
    MOST_PAST,
    SeriesForecast,
    SeriesRequest,
    pieces_between,
    whole_seasons,
)


def average_quantiles(
    statistical: SeriesForecast,
    request: SeriesRequest,
    quantiles: Float[np.ndarray, "r L"],
    paths: Float[np.ndarray, "S r"],
    weight: float,
) -> SeriesForecast:
    """Average the quantiles of two forecasts of one series at every level, and move paths with them.

    Errors of a network and of statistics differ: the average is better than both on most series. What is
    asked in sample stays the network's. Intermittent demand stays statistical: its quantiles are single
    values, whole numbers for counts, and averages would lie between them. So do series that statistics alone
    forecast, as a whole.

    Parameters
    ----------
    statistical : SeriesForecast
        Statistical forecasts of r times.
    request : SeriesRequest
        The series, and the times.
    quantiles : ndarray of shape (r, L)
        Quantiles of the network at ``defaults.STATISTICAL_LEVELS``, in the units of the data.
    paths : ndarray of shape (S, r)
        Paths of the network, whose dependence between times is kept.
    weight : float
        Weight of the statistical forecast, between 0 and 1.

    Returns
    -------
    SeriesForecast
        The average, within the bounds of the values; where statistics are sure of zero, it is zero.

    References
    ----------
    Lichtendahl, Grushka-Cockayne and Winkler, "Is it better to average probabilities or quantiles?",
    Management Science, 2013.

    Examples
    --------
    >>> import numpy as np
    >>> from taylorformer_forecast.defaults import STATISTICAL_LEVELS
    >>> from taylorformer_forecast.engine.statistics.average import average_quantiles
    >>> from taylorformer_forecast.engine.statistics.requests import SeriesRequest
    >>> from taylorformer_forecast.engine.statistics.forecast import forecast_series
    >>> y = np.tile([2.0, 8.0], 10) + np.linspace(0, 0.001, 20)
    >>> request = SeriesRequest(y, np.array([20, 21]), seasons=[2])
    >>> found = forecast_series([request], n_paths=3, seed=0)[0]
    >>> network = np.tile([[4.0], [10.0]], len(STATISTICAL_LEVELS))
    >>> both = average_quantiles(found, request, network, np.full((3, 2), 5.0), weight=0.25)
    >>> both.quantiles[:, STATISTICAL_LEVELS.index(0.5)].round(1).tolist()
    [3.5, 9.5]
    """
    if statistical.intermittent or request.alone:
        return statistical
    future = request.at > len(request.y) - 1
    between = (1 - weight) * quantiles + weight * statistical.quantiles
    return _moved(statistical, future, np.where(future[:, None], between, quantiles), quantiles, paths)


def with_analogues(
    statistical: SeriesForecast,
    request: SeriesRequest,
    horizon: int,
    weight: float,
) -> SeriesForecast:
    """Average the quantiles of a statistical forecast with those of what followed similar windows.

    A few analogues show the middle of a distribution. Its tails are as long as those of the statistical
    forecast. Intermittent demand, series that statistics alone forecast, and those that are too short or have
    too many gaps to compare, stay as they are. Analogues of a time with more gaps than usual weigh less.

    Parameters
    ----------
    statistical : SeriesForecast
        Statistical forecasts of r times.
    request : SeriesRequest
        The series, and the times.
    horizon : int
        Steps ahead that are forecast at least: analogues are sought among windows that as many follow.
    weight : float
        Weight of the analogues, between 0 and 1.

    Returns
    -------
    SeriesForecast
        The average, within the same bounds.

    Examples
    --------
    >>> import numpy as np
    >>> from taylorformer_forecast.engine.statistics.average import with_analogues
    >>> from taylorformer_forecast.engine.statistics.requests import SeriesRequest
    >>> from taylorformer_forecast.engine.statistics.forecast import forecast_series
    >>> y, ahead = np.tile([0.0, 1.0, 4.0, 9.0, 4.0, 1.0], 30), np.array([180, 181, 182])
    >>> request = SeriesRequest(y, ahead, seasons=[6])
    >>> found = forecast_series([request], n_paths=3, seed=0)[0]
    >>> with_analogues(found, request, horizon=3, weight=1.0).quantiles[:, 15].round(1).tolist()
    [0.0, 1.0, 4.0]
    """
    n, future = len(request.y), request.at > len(request.y) - 1
    if statistical.intermittent or request.alone or not future.any():
        return statistical
    y = robust_columns(np.arange(n)[-MOST_PAST:], request.y[-MOST_PAST:, None], request.seasons)[:, 0]
    seen = np.flatnonzero(~np.isnan(y))
    if SPARSEST_STEPS * (len(y) - len(seen)) > len(y):  # lines between values are like each other
        return statistical
    y = np.interp(np.arange(len(y)), seen, y[seen])
    ahead = max(horizon, math.ceil(request.at.max()) - n + 1)
    seasons = whole_seasons(request.seasons)
    paths = analogue_paths(y, seasons, ahead)
    if paths is None:
        return statistical
    weight *= _part_seen(request.y, max(ahead, *seasons, 1))
    level = np.array(STATISTICAL_LEVELS).clip(DECILES[0], DECILES[-1])
    known = np.concatenate([np.full((1, len(level)), y[-1]), np.quantile(paths, level, axis=0).T])
    step = request.at[future] - (n - 1)
    before, part = np.floor(step).astype(int), (step % 1)[:, None]
    after = np.minimum(before + 1, len(known) - 1)
    quantiles = statistical.quantiles.copy()
    own = quantiles[future]
    tails = own - own[:, np.searchsorted(STATISTICAL_LEVELS, level)]
    between = (1 - part) * known[before] + part * known[after] + tails
    quantiles[future] = (1 - weight) * own + weight * between
    return _moved(statistical, future, quantiles, statistical.quantiles, statistical.paths)


def weight_of_statistics(weight: float, y: Float[np.ndarray, " n"], n_context: int) -> float:
    """Weight of statistics beside a network, where the context has gaps or the series is young.

    The weight of the network falls with the square of the part that it sees: what is forecast from a third
    of a context says little, not a third, and statistics see what was before. Of a series that is shorter
    than the context statistics see no more than the network, which has learnt from others: their weight falls
    with the square of that part.

    Parameters
    ----------
    weight : float
        Where there is no gap, in a series that is longer.
    y : ndarray of shape (n,)
        Series from its first value to the end of the context, NaN where nothing was observed.
    n_context : int
        Steps of the context.

    Examples
    --------
    >>> import numpy as np
    >>> from taylorformer_forecast.engine.statistics.average import weight_of_statistics
    >>> y = np.ones(100)
    >>> y[-40:-10] = np.nan
    >>> round(weight_of_statistics(0.5, y, 20), 2), weight_of_statistics(0.5, np.ones(100), 20)
    (0.74, 0.5)
    >>> weight_of_statistics(0.5, np.ones(10), 20)
    0.125
    """
    if len(y) < n_context:
        return weight * (len(y) / n_context) ** 2
    return 1 - (1 - weight) * _part_seen(y, n_context)


def _part_seen(y: Float[np.ndarray, " n"], length: int) -> float:
    """How many of the latest values are known, as a part of what is usual, 1 at most; and squared."""
    known = ~np.isnan(y)
    return float(min(known[-length:].sum() / max(length * known.mean(), 1e-9), 1.0)) ** 2


def _moved(
    statistical: SeriesForecast,
    future: Bool[np.ndarray, " r"],
    edges: Float[np.ndarray, "r L"],
    quantiles: Float[np.ndarray, "r L"],
    paths: Float[np.ndarray, "S r"],
) -> SeriesForecast:
    """A forecast of other quantiles, within the bounds of a statistical one; paths move with them."""
    low, high = statistical.bounds
    least, most = np.where(future, low, -np.inf), np.where(future, high, np.inf)
    edges = edges.clip(least[:, None], most[:, None])
    # As at night: nothing is sold, no sun shines.
    none = (statistical.quantiles == least[:, None]).all(1)
    edges[none] = low
    moved = [x + np.interp(x, q, e - q) for x, q, e in zip(paths.T, quantiles, edges, strict=True)]
    loc, scale, weights = pieces_between(torch.as_tensor(edges), torch.as_tensor(least), high)
    drawn = np.where(none, low, np.stack(moved, 1).clip(least, most))
    pieces = loc.numpy(), scale.numpy(), weights.numpy()
    return SeriesForecast(drawn, *pieces, edges, bounds=statistical.bounds)
