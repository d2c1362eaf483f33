"""The average of a network's forecast and a statistical one, quantile by quantile."""

from __future__ import annotations

import numpy as np
import torch
from jaxtyping import Float

from taylorformer_forecast.baselines.intermittent import never_negative
from taylorformer_forecast.engine.series_requests import SeriesForecast, SeriesRequest
from taylorformer_forecast.engine.statistical import pieces_between


def average_quantiles(
    statistical: SeriesForecast,
    request: SeriesRequest,
    quantiles: Float[np.ndarray, "r L"],
    paths: Float[np.ndarray, "S r"],
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

    Returns
    -------
    SeriesForecast
        The average. Where values are never negative, none is.

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
    >>> average_quantiles(found, request, network, np.full((3, 2), 5.0)).quantiles[:, 12].round(1).tolist()
    [3.0, 9.0]
    """
    if statistical.intermittent:
        return statistical
    future = request.at > len(request.y) - 1
    bounded = bool(never_negative(torch.as_tensor(request.y)[None])[0, -1])
    least = np.where(future & bounded, 0.0, -np.inf)
    edges = np.where(future[:, None], (quantiles + statistical.quantiles) / 2, quantiles)
    edges = np.maximum(edges, least[:, None])
    moved = [x + np.interp(x, q, e - q) for x, q, e in zip(paths.T, quantiles, edges, strict=True)]
    loc, scale, weights = pieces_between(torch.as_tensor(edges), torch.as_tensor(least))
    drawn = np.maximum(np.stack(moved, 1), least)
    return SeriesForecast(drawn, loc.numpy(), scale.numpy(), weights.numpy(), edges)
