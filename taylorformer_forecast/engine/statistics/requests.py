"""Series, the times at which their statistical forecasts are asked for, and what is answered."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from taylorformer_forecast.core.families.base import POINT_MASS
from taylorformer_forecast.defaults import LONGEST_PAST


@dataclass(frozen=True)
class SeriesRequest:
    """A series, and the times at which it is asked for.

    Parameters
    ----------
    y : ndarray of shape (n,)
        Values on a regular grid, NaN where missing; the last one is observed.
    at : ndarray of shape (r,)
        Positions on the grid: from n on in the future, before that in sample, one step ahead. Between two
        steps after the last value, a forecast lies between those of both; in sample the nearer one counts.
    last : datetime64, optional
        Of daily and monthly series the day or month of the last value: effects of the calendar that the past
        shows are then a part of the forecast.
    seasons : sequence of float, default=()
        Lengths of seasons in steps, the most certain first: few are tried. Whether they are used is decided
        by the errors.
    multiplied : bool, default=False
        Whether covariates multiply the mean of intermittent demand, which then has no season of its own.
    """

    y: np.ndarray
    at: np.ndarray
    last: np.datetime64 | None = None
    seasons: Sequence[float] = ()
    multiplied: bool = False


@dataclass(frozen=True)
class SeriesForecast:
    """Forecast of a series: joint paths and marginal distributions of its r times.

    Parameters
    ----------
    paths : ndarray of shape (S, r)
        Sample paths through the future; independent draws in sample.
    loc, scale, weights : ndarray of shape (r, K)
        Pieces of constant density, from ``loc - scale`` to ``loc + scale``.
    quantiles : ndarray of shape (r, L)
        Quantiles at ``STATISTICAL_LEVELS``.
    intermittent : bool
        Whether the pieces of the future are single values: the support of intermittent demand.
    bounds : (float, float)
        Of values, infinite where there are none.
    """

    paths: np.ndarray
    loc: np.ndarray
    scale: np.ndarray
    weights: np.ndarray
    quantiles: np.ndarray
    intermittent: bool = False
    bounds: tuple[float, float] = (-math.inf, math.inf)


def split(request: SeriesRequest) -> list[tuple[np.ndarray, SeriesRequest]]:
    """Split a request so that the latest values of each part are enough for its times.

    Times in sample of a series of more than ``LONGEST_PAST`` values are asked for half as many at a time,
    from the values up to the last of them.

    Parameters
    ----------
    request : SeriesRequest
        A series and times.

    Returns
    -------
    list of (int ndarray, SeriesRequest)
        Numbers of the times of a part among all, and the part.

    Examples
    --------
    >>> import numpy as np
    >>> from taylorformer_forecast.engine.statistics.requests import SeriesRequest, split
    >>> parts = split(SeriesRequest(np.zeros(1200), np.array([1200, 3, 1199])))
    >>> [(places.tolist(), len(part.y)) for places, part in parts]
    [([0, 2], 1200), ([1], 200)]
    """
    y, at, half = request.y, request.at, LONGEST_PAST // 2
    number = np.maximum((len(y) - 1 - at) // half, 0).astype(int) * (len(y) > LONGEST_PAST)
    found = []
    for k in np.unique(number):
        places = np.flatnonzero(number == k)
        end = len(y) - k * half
        end += int(np.argmax(~np.isnan(y[end - 1 :])))  # the next observed value
        last = None if request.last is None else request.last - (len(y) - end)
        found.append((places, replace(request, y=y[:end], at=at[places], last=last)))
    return found


def joined(parts: Sequence[tuple[np.ndarray, SeriesForecast]]) -> SeriesForecast:
    """Join the forecasts of :func:`split`.

    Parameters
    ----------
    parts : sequence of (int ndarray, SeriesForecast)
        Numbers of the times of a part among all, and its forecast; the future is in the first part.

    Returns
    -------
    SeriesForecast
        Of all times.
    """
    if len(parts) == 1:
        return parts[0][1]
    places, found = zip(*parts, strict=True)
    order = np.argsort(np.concatenate(places))
    most = max(part.loc.shape[1] for part in found)

    def every(name: str) -> list[np.ndarray]:
        return [getattr(part, name) for part in found]

    def pieces(name: str, fill: float) -> np.ndarray:
        same = [np.pad(x, ((0, 0), (0, most - x.shape[1])), constant_values=fill) for x in every(name)]
        return np.concatenate(same)[order]

    tiny = POINT_MASS * (max(float(np.abs(x).max()) for x in every("loc")) or 1.0)
    return SeriesForecast(
        np.concatenate(every("paths"), axis=1)[:, order],
        pieces("loc", 0.0),
        pieces("scale", tiny),
        pieces("weights", 0.0),
        np.concatenate(every("quantiles"))[order],
        found[0].intermittent,
        found[0].bounds,
    )
