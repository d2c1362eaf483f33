"""Series, the times at which their statistical forecasts are asked for, and what is answered."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from taylorformer_forecast.calendar.steps import StepDate
from taylorformer_forecast.core.families.base import POINT_MASS
from taylorformer_forecast.defaults import (
    DECILES,
    LEAST_PAST_CYCLES,
    LONGEST_PAST,
    LONGEST_TRIED_SEASON,
    MOST_TRIED_SEASONS,
    STATISTICAL_LEVELS,
    TAIL_WIDTH,
)

MOST_PAST = LEAST_PAST_CYCLES * LONGEST_TRIED_SEASON  # values that a forecast may need


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
    last : StepDate, optional
        Of daily and monthly series the day or month of the last value: effects of the calendar that the past
        shows are then a part of the forecast.
    seasons : sequence of float, default=()
        Lengths of seasons in steps, the most certain first: few are tried. Whether they are used is decided
        by the errors.
    multiplied : bool, default=False
        Whether covariates multiply the mean of intermittent demand: its season is then found beside them.
    alone : bool, default=False
        Whether statistics alone forecast it, where others have an average with a network and analogues.
    """

    y: np.ndarray
    at: np.ndarray
    last: StepDate | None = None
    seasons: Sequence[float] = ()
    multiplied: bool = False
    alone: bool = False


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


def whole_seasons(seasons: Sequence[float]) -> tuple[int, ...]:
    """Seasons that are tried, the first ones given."""
    whole = dict.fromkeys(round(s) for s in seasons if 1 < round(s) <= LONGEST_TRIED_SEASON)
    return tuple(sorted([*whole][:MOST_TRIED_SEASONS]))


def past_length(seasons: Sequence[float]) -> int:
    """How many of the latest values a forecast is made from, for seasons that are given."""
    return max(LONGEST_PAST, LEAST_PAST_CYCLES * max(whole_seasons(seasons), default=0))


def ending_together(values: Sequence[np.ndarray], most: int = LONGEST_PAST) -> Tensor:
    """Latest values of series that end together, NaN in front of shorter ones."""
    size = min(max(map(len, values)), most)
    y = np.full((len(values), size), np.nan)
    for row, own in zip(y, values, strict=True):
        row[max(size - len(own), 0) :] = own[-size:]
    return torch.as_tensor(y)


def pieces_between(edges: Tensor, low: Tensor, high: float = math.inf) -> tuple[Tensor, Tensor, Tensor]:
    """Pieces of constant density between quantiles, and tails of a millionth of the probability each.

    A tail is as wide as the piece beside it, and ten times as wide as the central 80 % at least: what nobody
    expected is no impossible event, of which the logarithm of the density would be infinite.

    Parameters
    ----------
    edges : Tensor of shape (r, L)
        Quantiles at ``STATISTICAL_LEVELS``.
    low : Tensor of shape (r,)
        Where the lower tail ends at the latest.
    high : float, optional
        Where the upper one does.

    Returns
    -------
    loc, scale, weights : Tensor of shape (r, L + 1)
        Middles, half widths and probabilities of the pieces.
    """
    first, last = edges[:, :1], edges[:, -1:]
    low_decile, high_decile = (STATISTICAL_LEVELS.index(level) for level in (DECILES[0], DECILES[-1]))
    least = TAIL_WIDTH * (edges[:, high_decile] - edges[:, low_decile])[:, None]
    below = torch.maximum(edges[:, 1:2] - first, least)
    above = torch.maximum(last - edges[:, -2:-1], least)
    first = torch.maximum(first - below, torch.minimum(low[:, None], first))
    last = torch.maximum((last + above).clamp_max(high), last)
    edges = torch.cat([first, edges, last], 1)
    tiny = POINT_MASS * edges.abs().amax(1, keepdim=True).clamp_min(1e-300)
    half = torch.maximum(edges.diff(dim=1) / 2, tiny)
    weights = torch.tensor([0.0, *STATISTICAL_LEVELS, 1.0], dtype=torch.float64).diff().repeat(len(half), 1)
    # Where quantiles coincide, as at a bound, a piece lies on both sides of them: it stands for that value.
    middle, zero = (edges[:, :-1] + edges[:, 1:]) / 2, (edges == 0).all(1)
    # Whether a scale stands for a value is told beside the largest one: one of no weight, where all are zero.
    unit = float(edges.abs().max()) or 1.0
    middle[zero, -1], half[zero] = unit, POINT_MASS * unit
    weights[zero, 0] += weights[zero, -1]
    weights[zero, -1] = 0.0
    return middle, half, weights


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
