"""Exceptions from constants: what left a value and came back to it recurs as often as it did."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float
from torch import Tensor

from taylorformer_forecast.core.families.base import POINT_MASS
from taylorformer_forecast.defaults import MOST_EXCEPTIONS, STATISTICAL_LEVELS
from taylorformer_forecast.engine.statistics.requests import SeriesForecast, SeriesRequest


def with_exceptions(
    found: SeriesForecast,
    request: SeriesRequest,
    used: Float[Tensor, " n"],
    left_out: Float[Tensor, " k"],
    seed: int,
) -> SeriesForecast:
    """Put exceptions beside the forecast of a constant, with the probability that they had.

    Parameters
    ----------
    found : SeriesForecast
        Forecast of a series.
    request : SeriesRequest
        The series, and the times.
    used : Tensor of shape (n,)
        Its latest values, NaN where there is none or it was left out.
    left_out : Tensor of shape (k,)
        Those that were.
    seed : int
        Seed of the paths.

    Returns
    -------
    SeriesForecast
        The same, unless the values that were used are all equal, and those left out are few.

    Examples
    --------
    >>> import numpy as np
    >>> from taylorformer_forecast.defaults import STATISTICAL_LEVELS
    >>> from taylorformer_forecast.engine.statistics.requests import SeriesRequest
    >>> from taylorformer_forecast.engine.statistics.forecast import forecast_series
    >>> y = np.ones(100)
    >>> y[[40, 70, 71]] = 0.0
    >>> found = forecast_series([SeriesRequest(y, np.array([100]))], n_paths=100, seed=0)[0]
    >>> levels = [STATISTICAL_LEVELS.index(p) for p in (0.01, 0.025, 0.05, 0.5)]
    >>> found.quantiles[0, levels].round(6).tolist()
    [0.0, 0.0, 1.0, 1.0]
    """
    rest, values = used[~used.isnan()], left_out.numpy()
    n = len(rest) + len(values)
    if found.intermittent or len(values) > MOST_EXCEPTIONS * n or bool(rest.max() > rest.min()):
        return found
    future, level = request.at > len(request.y) - 1, float(rest[0])
    low, high = (np.sort(values[side]) for side in (values < level, values > level))
    ranked = np.concatenate([low, np.full(n - len(values), np.nan), high])

    def quantile(p: np.ndarray, otherwise: np.ndarray) -> np.ndarray:
        """Exceptions at levels that are as far out as these are seldom."""
        at = ranked[(p * n).astype(int).clip(max=n - 1)]
        return np.where(future[:, None] & ~np.isnan(at), at, otherwise)

    edges = quantile(np.tile(STATISTICAL_LEVELS, (len(future), 1)), found.quantiles)
    draws = np.random.default_rng(seed).uniform(size=found.paths.T.shape)
    points, each = np.tile(values, (len(future), 1)), np.where(future, 1 / n, 0.0)[:, None]
    tiny = POINT_MASS * np.maximum(np.abs(values), abs(level))
    return SeriesForecast(
        quantile(draws, found.paths.T).T,
        np.c_[found.loc, points],
        np.c_[found.scale, np.broadcast_to(tiny, points.shape)],
        np.c_[found.weights * (1 - len(values) * each), np.broadcast_to(each, points.shape)],
        edges,
        bounds=found.bounds,
    )
