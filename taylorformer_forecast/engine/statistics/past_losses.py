"""Losses of forecasts of the past, and the weights in an average that follow from them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Float

from taylorformer_forecast.core.families.quantile import pinball_loss
from taylorformer_forecast.defaults import (
    ANALOGUE_ODDS,
    DECILES,
    HOLDOUT_START,
    STATISTICAL_LEVELS,
    WEIGHT_EXPONENT,
)
from taylorformer_forecast.engine.statistics.average import with_analogues
from taylorformer_forecast.engine.statistics.forecast import forecast_series
from taylorformer_forecast.engine.statistics.requests import MOST_PAST, SeriesRequest
from taylorformer_forecast.models.correction import CorrectionNet

N_COMPARED_ORIGINS = 16  # of forecasts of the past, as time grows with them
MOST_COMPARED_SERIES = 16  # whose past is forecast, of many


@dataclass(frozen=True)
class PastForecast:
    """A network's forecast of one series from an origin of its past, and what is asked of statistics there.

    Parameters
    ----------
    series : hashable
        Which series this is of.
    deciles : ndarray of shape (r, 9)
        The network's, at ``DECILES``.
    truth : ndarray of shape (r,)
        Values that followed, NaN where missing.
    request : SeriesRequest
        The series up to the origin, and the times after it.
    """

    series: Hashable
    deciles: np.ndarray
    truth: np.ndarray
    request: SeriesRequest

    def shortened(self) -> PastForecast:
        """The same with no more of the past than a forecast may need, as many are held at once."""
        q, cut = self.request, len(self.request.y) - MOST_PAST
        return self if cut <= 0 else replace(self, request=replace(q, y=q.y[cut:].copy(), at=q.at - cut))


def weights_from_past(
    forecasts: Iterable[PastForecast], correction: CorrectionNet | None, horizon: int
) -> tuple[float, float]:
    """Weights of statistics and of analogues in an average with a network, from forecasts of the past.

    Parameters
    ----------
    forecasts : iterable of PastForecast
        Of several series, from several origins each.
    correction : CorrectionNet, optional
        Corrects the statistical forecasts.
    horizon : int
        Steps ahead.

    Returns
    -------
    statistics, analogues : float
        Between 0 and 1; the rest is the network's. See :func:`weights_by_losses`.

    Examples
    --------
    >>> import numpy as np
    >>> from taylorformer_forecast.engine.statistics.past_losses import PastForecast, weights_from_past
    >>> from taylorformer_forecast.engine.statistics.requests import SeriesRequest
    >>> y = np.random.default_rng(0).normal(size=40)
    >>> request = SeriesRequest(y[:37], np.array([37, 38, 39]))
    >>> near, far = (PastForecast("a", y[37:, None] + np.full(9, d), y[37:], request) for d in (0.1, 9.0))
    >>> weights_from_past([near], None, 3)[0] < 0.1, weights_from_past([far], None, 3)[0] > 0.9
    (True, True)
    """
    forecasts = [one.shortened() for one in forecasts]
    found = forecast_series([one.request for one in forecasts], 1, 0, correction, horizon)
    deciles = np.searchsorted(STATISTICAL_LEVELS, DECILES)
    losses: dict[Hashable, np.ndarray] = defaultdict(lambda: np.zeros(3))
    for one, statistical in zip(forecasts, found, strict=True):
        both = statistical, with_analogues(statistical, one.request, horizon, 1.0)
        each = np.stack([one.deciles, *(own.quantiles[:, deciles] for own in both)])
        losses[one.series] += decile_loss(each, one.truth).sum(1)
    return weights_by_losses(*np.reshape(list(losses.values()), (-1, 3)).T)


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
    error = torch.as_tensor(np.nan_to_num(y[..., None] - deciles))
    return pinball_loss(error, error.new_tensor(DECILES)).numpy().mean(-1)


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
