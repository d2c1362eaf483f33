"""Analogues: windows of the past that were most like the latest one, and what followed them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from taylorformer_forecast.defaults import (
    ANALOGUE_DECAY,
    ANALOGUE_FACTOR,
    MIN_ANALOGUE_LENGTH,
    N_ANALOGUES,
)


def analogue_paths(
    y: Float[np.ndarray, " n"], seasons: Sequence[int], horizon: int
) -> Float[np.ndarray, "k horizon"] | None:
    """Forecast a series by what followed its own windows that were most like the latest one.

    Windows are compared in units of their own deviation about their own level, and their latest values
    count most. They are as long as each season, but half a horizon at least, and twice as long. What followed
    is moved to the level and, within limits, to the deviation of the latest window. No form of dependence is
    assumed: cycles that rise faster than they fall, or epidemics, go on as they did before.

    Parameters
    ----------
    y : ndarray of shape (n,)
        Values on a regular grid, none missing.
    seasons : sequence of int
        Lengths of seasons in steps; those count of which the series is long enough.
    horizon : int
        Steps ahead.

    Returns
    -------
    ndarray of shape (k, horizon) or None
        Paths; None if the series is constant, or too short to compare with.

    References
    ----------
    Lorenz, "Atmospheric predictability as revealed by naturally occurring analogues", Journal of the
    Atmospheric Sciences, 1969; Yakowitz, "Nearest-neighbour methods for time series analysis", Journal of
    Time Series Analysis, 1987.

    Examples
    --------
    >>> import numpy as np
    >>> from taylorformer_forecast.baselines.analogues import analogue_paths
    >>> y = np.tile([0.0, 1.0, 4.0, 9.0, 4.0, 1.0], 30)
    >>> analogue_paths(y, [6], horizon=3).mean(0).round(6).tolist()
    [0.0, 1.0, 4.0]
    """
    shortest = {max(season, horizon // 2, MIN_ANALOGUE_LENGTH) for season in seasons or [1]}
    lengths = {
        length for s in shortest if len(y) - horizon - 2 * s >= N_ANALOGUES**2 for length in (s, 2 * s)
    }
    deviation = float(y.std())
    if not lengths or deviation == 0:
        return None
    least = 1e-3 * deviation
    return np.concatenate([_paths(y, length, horizon, least) for length in sorted(lengths)])


def _paths(y: Float[np.ndarray, " n"], length: int, horizon: int, least: float) -> np.ndarray:
    """What followed the windows of some length."""
    weight = np.exp(np.linspace(-ANALOGUE_DECAY, 0.0, length))
    weight /= weight.sum()
    level = float(weight @ y[-length:])
    y = y - level  # sums of squares lose digits far from zero
    latest = y[-length:]
    past = y[:-horizon]  # all of which a horizon follows
    mean, square, product = (
        np.correlate(values, by)
        for values, by in ((past, weight), (past**2, weight), (past, weight * latest))
    )
    own, each = np.sqrt(weight @ latest**2), np.sqrt(np.maximum(square - mean**2, 0.0))
    unit, units = max(own, least), np.maximum(each, least)
    distance = (each / units) ** 2 + (own / unit) ** 2 - 2 * product / (unit * units)
    # Of windows that are equally alike, but for rounding, the latest.
    nearest = np.lexsort((-np.arange(len(distance)), distance.round(9)))[:N_ANALOGUES]
    factor = (unit / units[nearest]).clip(1 / ANALOGUE_FACTOR, ANALOGUE_FACTOR)
    followed = y[nearest[:, None] + length + np.arange(horizon)]
    return level + factor[:, None] * (followed - mean[nearest, None])
