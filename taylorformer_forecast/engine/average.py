"""The average of a network's forecast and a statistical one, quantile by quantile, and its weights."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Float

from taylorformer_forecast.defaults import (
    DECILES,
    HOLDOUT_START,
    N_SHARE_ORIGINS,
    SHARE_EXPONENT,
)
from taylorformer_forecast.engine.series_requests import SeriesForecast, SeriesRequest
from taylorformer_forecast.engine.statistical import pieces_between


def average_quantiles(
    statistical: SeriesForecast,
    request: SeriesRequest,
    quantiles: Float[np.ndarray, "r L"],
    paths: Float[np.ndarray, "S r"],
    share: float,
) -> SeriesForecast:
    """Average the quantiles of two forecasts of one series at every level, and move paths with them.

    Errors of a network and of statistics differ: the average is better than both on most series. What is
    asked in sample stays the network's. Intermittent demand stays statistical: its quantiles are single
    values, whole numbers for counts, and averages would lie between them.

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
    share : float
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
    >>> from taylorformer_forecast.engine.average import average_quantiles
    >>> from taylorformer_forecast.engine.series_requests import SeriesRequest
    >>> from taylorformer_forecast.engine.statistical import forecast_series
    >>> request = SeriesRequest(np.tile([2.0, 8.0], 10), np.array([20, 21]))
    >>> found = forecast_series([request], [2], n_paths=3, seed=0)[0]
    >>> network = np.tile([[4.0], [10.0]], len(STATISTICAL_LEVELS))
    >>> both = average_quantiles(found, request, network, np.full((3, 2), 5.0), share=0.25)
    >>> both.quantiles[:, STATISTICAL_LEVELS.index(0.5)].round(1).tolist()
    [3.5, 9.5]
    """
    if statistical.intermittent:
        return statistical
    future = request.at > len(request.y) - 1
    low, high = statistical.bounds
    least, most = np.where(future, low, -np.inf), np.where(future, high, np.inf)
    between = (1 - share) * quantiles + share * statistical.quantiles
    edges = np.where(future[:, None], between, quantiles)
    edges = edges.clip(least[:, None], most[:, None])
    # As at night: nothing is sold, no sun shines.
    none = (statistical.quantiles == least[:, None]).all(1)
    edges[none] = low
    moved = [x + np.interp(x, q, e - q) for x, q, e in zip(paths.T, quantiles, edges, strict=True)]
    loc, scale, weights = pieces_between(torch.as_tensor(edges), torch.as_tensor(least), high)
    drawn = np.where(none, low, np.stack(moved, 1).clip(least, most))
    return SeriesForecast(drawn, loc.numpy(), scale.numpy(), weights.numpy(), edges)


def origins_to_compare(n: int, horizon: int) -> range:
    """Numbers of values that are known at origins in the last quarter of a series.

    Parameters
    ----------
    n : int
        Values of the series.
    horizon : int
        Steps of a forecast, all of which are inside.

    Returns
    -------
    range
        Evenly spaced; empty where the quarter is shorter than a forecast.

    Examples
    --------
    >>> from taylorformer_forecast.engine.average import origins_to_compare
    >>> list(origins_to_compare(100, 12))[:3], len(origins_to_compare(1000, 12))
    ([75, 76, 77], 16)
    """
    first, last = int(HOLDOUT_START * n), n - horizon
    return range(first, last + 1, max(1, -(-(last + 1 - first) // N_SHARE_ORIGINS)))


def decile_loss(deciles: Float[np.ndarray, "... 9"], y: np.ndarray) -> np.ndarray:
    """Mean pinball loss of deciles, zero where no value was observed.

    Parameters
    ----------
    deciles : ndarray of shape (..., 9)
        Forecasts at ``DECILES``.
    y : ndarray of shape (...)
        Values, NaN where missing.

    Returns
    -------
    ndarray of shape (...)
        Twice the pinball loss, which is the absolute error for the median.

    Examples
    --------
    >>> import numpy as np
    >>> from taylorformer_forecast.engine.average import decile_loss
    >>> decile_loss(np.zeros((2, 9)), np.array([3.0, np.nan])).round(2).tolist()
    [3.0, 0.0]
    """
    levels = np.asarray(DECILES)
    error = np.nan_to_num(y[..., None] - deciles)
    return 2 * np.maximum(levels * error, (levels - 1) * error).mean(-1)


def share_of_statistics(
    network: Sequence[float] | np.ndarray, statistics: Sequence[float] | np.ndarray
) -> float:
    """Weight of statistical forecasts in an average with a network, from losses of both on the past.

    The odds are a power of the ratio of losses.

    Parameters
    ----------
    network, statistics : sequence of float
        Losses of both on every series; those that are zero do not count.

    Returns
    -------
    float
        Between 0 and 1.

    References
    ----------
    Bates and Granger, "The combination of forecasts", Operational Research Quarterly, 1969: weights from
    errors of the past.

    Examples
    --------
    >>> from taylorformer_forecast.engine.average import share_of_statistics
    >>> [round(share_of_statistics([loss], [1.0]), 2) for loss in (0.8, 1.0, 1.2)]
    [0.29, 0.5, 0.67]
    """
    losses = np.array([network, statistics], float)
    usable = np.isfinite(losses).all(0) & (losses > 0).all(0)
    mean_log = np.log(losses[:, usable]).mean(1) if usable.any() else np.zeros(2)
    return float(1 / (1 + np.exp(SHARE_EXPONENT * (mean_log[1] - mean_log[0]))))
