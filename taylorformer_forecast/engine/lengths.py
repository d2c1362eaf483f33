"""Lengths of contexts and horizons, chosen from the series."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence

from taylorformer_forecast.baselines.linear import LinearBaseline
from taylorformer_forecast.calendar.cycles import SeasonalFeatures
from taylorformer_forecast.defaults import (
    CONTEXT_SEASONS,
    CONTEXTS_IN_SERIES,
    LONGER_CONTEXT_ERROR,
    LONGER_CONTEXT_LENGTH,
    LONGER_CONTEXTS_IN_SERIES,
    SHORTEST_CONTEXT,
    SHORTEST_TRAINING_HORIZON,
    TARGETS_IN_SERIES,
    USUAL_HORIZON,
    WIDE_COLUMNS,
)
from taylorformer_forecast.engine.windows import Batches, Series, WindowMaker
from taylorformer_forecast.models.spec import ModelSpec

PAIRS_AT_ONCE = 10_000_000  # of points in a step: more take seconds and gigabytes


def choose_lengths(
    longest: int,
    seasonal: SeasonalFeatures,
    ahead: int | None,
    n_columns: int,
    spec: ModelSpec,
    context_length: int | None,
    horizon: int | None,
) -> tuple[int, int]:
    """Points of a context and targets of a training window, where they are left open.

    Parameters
    ----------
    longest : int
        Observations of the longest series.
    seasonal : SeasonalFeatures
        Its seasons and calendar cycles.
    ahead : int, optional
        Steps to the end of the forecast, if they are known.
    n_columns : int
        Columns of the data.
    spec : ModelSpec
        Bounds of the model.
    context_length, horizon : int, optional
        What was asked for.

    Returns
    -------
    context_length, horizon : int
        As asked, or chosen.

    Examples
    --------
    >>> import pandas as pd
    >>> from taylorformer_forecast.calendar.axis import TimeAxis
    >>> from taylorformer_forecast.calendar.cycles import SeasonalFeatures
    >>> from taylorformer_forecast.engine.lengths import choose_lengths
    >>> from taylorformer_forecast.models.specs import TNP
    >>> seasons = SeasonalFeatures(TimeAxis.of([pd.RangeIndex(144)]), periods=(12.0,))
    >>> choose_lengths(144, seasons, 12, 1, TNP, None, None)
    (36, 12)
    >>> choose_lengths(144, seasons, 12, 1, TNP, None, 20)
    (40, 20)
    """
    season = seasonal.season
    if horizon is not None:
        targets = horizon
    elif ahead is None:
        targets = min(max(season, USUAL_HORIZON[0]), USUAL_HORIZON[1])
    else:
        targets = min(max(ahead, SHORTEST_TRAINING_HORIZON), spec.longest_horizon)
    targets = max(1, min(targets, longest // TARGETS_IN_SERIES))
    context = max(CONTEXT_SEASONS * season, 2 * targets, SHORTEST_CONTEXT)
    context = min(context, spec.context(n_columns))
    # Two weeks of hours: calendar cycles are certain, seasons that the autocorrelation shows are not.
    context = max(context, min(2 * seasonal.cycle, spec.longest_context))
    # A part of a short series, or one season of it: the rest are windows to learn from.
    most = max(longest // CONTEXTS_IN_SERIES, min(season, longest // 2))
    context = context_length or max(2, min(context, most))
    return context, horizon or min(targets, longest - min(context, longest // 2))


def windows_of_step(n_columns: int, usual: int) -> int:
    """Windows of a step where columns share them: fewer of wide ones, which take the square of the columns.

    Parameters
    ----------
    n_columns : int
        Columns of a window.
    usual : int
        Windows of a step otherwise.

    Returns
    -------
    int
        At least 1.

    Examples
    --------
    >>> from taylorformer_forecast.engine.lengths import windows_of_step
    >>> [windows_of_step(n_columns, usual=16) for n_columns in (2, 10, 20, 50)]
    [16, 16, 4, 1]
    """
    return max(1, min(usual, usual * WIDE_COLUMNS**2 // n_columns**2))


def warn_of_large_steps(n_columns: int, batch_size: int, lengths: dict[str, int], remedy: str) -> None:
    """Warn where a step of training joins so many points that it takes seconds and gigabytes.

    Parameters
    ----------
    n_columns : int
        Columns of a window, which share it.
    batch_size : int
        Windows of a step.
    lengths : dict
        Names and values of the parameters for the points of a context and for the targets, in this order.
    remedy : str
        What the user can do but for smaller numbers.
    """
    context, targets = lengths.values()
    if batch_size * n_columns**2 * targets * (context + targets) <= PAIRS_AT_ONCE:
        return
    sizes = ", ".join(f"{name}={value}" for name, value in {**lengths, "batch_size": batch_size}.items())
    warnings.warn(
        f"a step of training joins all points of {n_columns} columns, with {sizes}: it takes seconds and "
        f"gigabytes, which grow with the square of the columns. Choose smaller numbers, or {remedy}",
        stacklevel=2,
    )


def longer_context(
    series: Sequence[Series], context: int, horizon: int, longest: int, spec: ModelSpec
) -> int:
    """The context as it is, or the longest allowed if a linear forecast does clearly better with that.

    Parameters
    ----------
    series : sequence of Series
        The data, standardised as a whole.
    context, horizon : int
        Points of the context and targets, as chosen so far.
    longest : int
        Observations of the longest series.
    spec : ModelSpec
        Bounds of the model.

    Returns
    -------
    int
        Points of the context.
    """
    most = min(spec.longest_context, longest // LONGER_CONTEXTS_IN_SERIES)
    if most < LONGER_CONTEXT_LENGTH * context or spec.shares_windows:
        return context
    short, long = (error_of_context(series, length, horizon, most) for length in (context, most))
    return most if long < LONGER_CONTEXT_ERROR * short else context


def error_of_context(series: Sequence[Series], n_context: int, n_targets: int, least: int) -> float:
    """Root mean square error of a linear forecast in cross-validation: what a length of the context is worth.

    Parameters
    ----------
    series : sequence of Series
        The data, of one column each, standardised as a whole.
    n_context, n_targets : int
        Points of the context and of the targets.
    least : int
        Points before the first target of a window, at least: the same for all lengths that are compared.

    Returns
    -------
    float
        In the units of the series; infinite where windows are too few.

    Examples
    --------
    >>> import numpy as np
    >>> from taylorformer_forecast.engine.lengths import error_of_context
    >>> from taylorformer_forecast.engine.windows import Series
    >>> t = np.arange(200.0)
    >>> series = [Series(t, np.sin(2 * np.pi * t / 20)[:, None])]
    >>> error_of_context(series, 20, 10, 20) < 0.01 < error_of_context(series, 1, 10, 20)
    True
    """
    maker = WindowMaker(series, n_context, n_targets, float(n_context), normalise=False)
    batches = Batches(maker, maker.starts(least), 1)
    if len(batches.starts) == 0:
        return math.inf
    residuals = LinearBaseline(n_context, n_targets).fit_map(*batches.sample())
    if residuals is None:
        return math.inf
    outside = residuals[1]
    return float(outside.error[outside.observed].square().mean().sqrt())
