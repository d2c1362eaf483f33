"""Losses of forecasts of the past, and the weights in an average that follow from them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from taylorformer_forecast.defaults import (
    ANALOGUE_ODDS,
    DECILES,
    HOLDOUT_START,
    STATISTICAL_LEVELS,
    WEIGHT_EXPONENT,
)
from taylorformer_forecast.engine.statistics.average import with_analogues
from taylorformer_forecast.engine.statistics.forecast import forecast_series
from taylorformer_forecast.engine.statistics.requests import SeriesRequest
from taylorformer_forecast.models.correction import CorrectionNet

N_COMPARED_ORIGINS = 16  # of forecasts of the past, as time grows with them
MOST_COMPARED_SERIES = 16  # whose past is forecast, of many


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
    >>> from taylorformer_forecast.engine.statistics.past_losses import origins_to_compare
    >>> list(origins_to_compare(100, 12))[:3], len(origins_to_compare(1000, 12))
    ([75, 76, 77], 16)
    """
    first, last = int(HOLDOUT_START * n), n - horizon
    return range(first, last + 1, max(1, -(-(last + 1 - first) // N_COMPARED_ORIGINS)))


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
    >>> from taylorformer_forecast.engine.statistics.past_losses import decile_loss
    >>> decile_loss(np.zeros((2, 9)), np.array([3.0, np.nan])).round(2).tolist()
    [3.0, 0.0]
    """
    levels = np.asarray(DECILES)
    error = np.nan_to_num(y[..., None] - deciles)
    return 2 * np.maximum(levels * error, (levels - 1) * error).mean(-1)


def losses_of_statistics(
    requests: Sequence[SeriesRequest],
    truths: Sequence[Float[np.ndarray, " r"]],
    correction: CorrectionNet | None,
    horizon: int,
) -> tuple[Float[np.ndarray, " R"], Float[np.ndarray, " R"]]:
    """Losses of statistical forecasts and of analogues, from origins of the past.

    Parameters
    ----------
    requests : sequence of R SeriesRequest
        Series up to an origin, and the times after it.
    truths : sequence of R ndarrays
        Values there, NaN where missing.
    correction : CorrectionNet, optional
        Corrects the statistical forecasts.
    horizon : int
        Steps ahead.

    Returns
    -------
    statistics, analogues : ndarray of shape (R,)
        Sums over the times; equal where there are no analogues.

    Examples
    --------
    >>> import numpy as np
    >>> from taylorformer_forecast.engine.statistics.past_losses import losses_of_statistics
    >>> from taylorformer_forecast.engine.statistics.requests import SeriesRequest
    >>> y = np.tile([2.0, 8.0, 3.0], 5)
    >>> request = SeriesRequest(y[:12], np.array([12, 13, 14]), seasons=[3])
    >>> statistics, analogues = losses_of_statistics([request], [y[12:]], None, 3)
    >>> bool(statistics[0] == analogues[0])  # these values are too few to compare
    True
    """
    found = forecast_series(requests, 1, 0, correction, horizon)
    analogues = [with_analogues(*both, horizon, 1.0) for both in zip(found, requests, strict=True)]
    deciles = np.searchsorted(STATISTICAL_LEVELS, DECILES)
    statistical, of_analogues = (
        np.array(
            [decile_loss(own.quantiles[:, deciles], y).sum() for own, y in zip(some, truths, strict=True)]
        )
        for some in (found, analogues)
    )
    return statistical, of_analogues


def weights_by_losses(
    network: Sequence[float] | np.ndarray,
    statistics: Sequence[float] | np.ndarray,
    analogues: Sequence[float] | np.ndarray,
) -> tuple[float, float]:
    """Weights of statistics and of analogues in an average with a network, from losses of all on the past.

    Weights are in proportion to a power of losses, those of analogues to a part of it: a few of them are
    closer together than values are.

    Parameters
    ----------
    network, statistics, analogues : sequence of float
        Losses on every series; series where any is zero do not count. Where a series has no analogues, their
        loss is that of statistics.

    Returns
    -------
    statistics, analogues : float
        Between 0 and 1; the rest is the network's.

    References
    ----------
    Bates and Granger, "The combination of forecasts", Operational Research Quarterly, 1969: weights from
    errors of the past.

    Examples
    --------
    >>> from taylorformer_forecast.engine.statistics.past_losses import weights_by_losses
    >>> [round(weights_by_losses([loss], [1.0], [1.0])[0], 2) for loss in (0.8, 1.0, 1.2)]
    [0.29, 0.5, 0.67]
    >>> tuple(round(weight, 2) for weight in weights_by_losses([1.0], [1.0], [0.9]))
    (0.36, 0.28)
    """
    losses = np.array([network, statistics, analogues], float)
    logs = np.log(losses[:, np.isfinite(losses).all(0) & (losses > 0).all(0)])
    network_beside, own = logs[0] - logs[1], logs[2] - logs[1]
    own = own[own != 0]  # of series that have analogues
    beside_statistics = np.array(
        [
            network_beside.mean() if logs.size else 0.0,
            0.0,
            own.mean() if own.size else np.inf,
        ]
    )
    weights = np.exp(WEIGHT_EXPONENT * (beside_statistics.min() - beside_statistics))
    weights *= 1.0, 1.0, ANALOGUE_ODDS
    weights /= weights.sum()
    return float(weights[1]), float(weights[2])
