"""Forecasts of series by a combination of statistical forecasts, which a pretrained network may correct."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor

from taylorformer_forecast.baselines.bounds import bounds, recurring_minimum, without_negligible
from taylorformer_forecast.baselines.forecast import Forecast, forecast_clean
from taylorformer_forecast.baselines.wrong_values import without_wrong_values
from taylorformer_forecast.baselines.zeros import is_intermittent, may_be_broken
from taylorformer_forecast.calendar.steps import StepDate
from taylorformer_forecast.core.families.base import POINT_MASS
from taylorformer_forecast.defaults import (
    LONGEST_PAST,
    MIN_SCALE_VALUES,
    STATISTICAL_LEVELS,
)
from taylorformer_forecast.engine.statistics.constant_exceptions import with_exceptions
from taylorformer_forecast.engine.statistics.days import effects_of_calendar, without_effects
from taylorformer_forecast.engine.statistics.demand_season import with_season
from taylorformer_forecast.engine.statistics.requests import (
    SeriesForecast,
    SeriesRequest,
    ending_together,
    joined,
    past_length,
    pieces_between,
    split,
    whole_seasons,
)
from taylorformer_forecast.models.correction import CorrectionNet

STEPS_AT_ONCE = 2**20  # steps of all paths, or of forecasts from all origins, in one batch


def forecast_series(
    requests: Sequence[SeriesRequest],
    n_paths: int,
    seed: int,
    correction: CorrectionNet | None = None,
    horizon: int = 1,
) -> list[SeriesForecast]:
    """Forecast one or many series by the combination of statistical forecasts.

    Series of like length are forecast in one batch, which takes a tenth of the time that they take one by
    one. Every series is forecast as it is by itself; its paths are drawn from a seed of its own, which
    follows from its number among the requests.

    Parameters
    ----------
    requests : sequence of SeriesRequest
        Series and times.
    n_paths : int
        Paths S.
    seed : int
        Seed of the paths of the first.
    correction : CorrectionNet, optional
        Corrects the combination.
    horizon : int, default=1
        Steps ahead that are forecast at least. Weights of members come from the errors of all steps: up to
        this one, a forecast does not depend on which others are asked for.

    Returns
    -------
    list of SeriesForecast
        One for each request.

    Examples
    --------
    >>> import numpy as np
    >>> from taylorformer_forecast.engine.statistics.requests import SeriesRequest
    >>> from taylorformer_forecast.engine.statistics.forecast import forecast_series
    >>> y = np.tile([2.0, 8.0], 10)
    >>> request = SeriesRequest(y, np.array([20, 21]), seasons=[2])
    >>> found = forecast_series([request], n_paths=5, seed=0)[0]
    >>> found.paths.shape, (found.weights * found.loc).sum(1).round(1).tolist()
    ((5, 2), [2.0, 8.0])
    """
    if all(len(q.y) <= LONGEST_PAST or q.at.min() > len(q.y) - 1 for q in requests):
        return _forecast(requests, n_paths, range(seed, seed + len(requests)), correction, horizon)
    whole = [split(request) for request in requests]
    parts = [part for found in whole for _, part in found]
    seeds = [seed + n + k * len(whole) for n, found in enumerate(whole) for k in range(len(found))]
    forecasts = iter(_forecast(parts, n_paths, seeds, correction, horizon))
    return [joined([(places, next(forecasts)) for places, _ in found]) for found in whole]


def are_demand(series: Sequence[np.ndarray], seasons: Callable[[], Sequence[Sequence[float]]]) -> bool:
    """Whether all series are intermittent demand, which is forecast by statistics alone.

    What may be broken for now is none: it will have values that networks forecast.

    Parameters
    ----------
    series : sequence of ndarrays of shape (n,)
        Values on regular grids, NaN where nothing was observed.
    seasons : callable
        Returns the lengths of seasons of each in steps, which take time to find: most series need none of it.

    Examples
    --------
    >>> import numpy as np
    >>> from taylorformer_forecast.engine.statistics.forecast import are_demand
    >>> demand, level = np.tile([0.0, 2.0, 0.0, 0.0, 1.0], 9), np.ones(45)
    >>> are_demand([demand], lambda: [[]]), are_demand([demand, level], lambda: [[], []])
    (True, False)
    """
    latest = (ending_together([y]) for y in series)  # most need only the first
    if not series or not all(bool((is_intermittent(y) & ~may_be_broken(y))[0, -1]) for y in latest):
        return False
    each = zip(series, seasons(), strict=True)
    requests = [SeriesRequest(y, np.array([len(y)]), seasons=own) for y, own in each]
    return all(found.intermittent for found in forecast_series(requests, 1, 0))


def _forecast(
    requests: Sequence[SeriesRequest],
    n_paths: int,
    seeds: Sequence[int],
    correction: CorrectionNet | None,
    horizon: int,
) -> list[SeriesForecast]:
    """Forecast series from their latest values; see :func:`forecast_series`."""
    correct = None if correction is None else correction.correct
    ahead = [max(horizon, math.ceil(q.at.max()) - len(q.y) + 1) for q in requests]
    keys = [
        (whole_seasons(q.seasons), steps, -min(len(q.y), past_length(q.seasons)))
        for steps, q in zip(ahead, requests, strict=True)
    ]
    order = sorted(range(len(requests)), key=keys.__getitem__)
    forecasts: dict[int, SeriesForecast] = {}
    while len(forecasts) < len(order):
        # The first of the rest, and those of at least half its length with the same seasons and horizon.
        rest = order[len(forecasts) :]
        whole, steps, size = keys[rest[0]]
        most = max(STEPS_AT_ONCE // (max(-size, n_paths) * steps), 1)
        batch = [k for k in rest[:most] if keys[k][:2] == (whole, steps) and 2 * keys[k][2] <= size]
        given = ending_together([requests[number].y for number in batch], -size)
        y, adjusted, effects = prepared(given, [requests[number].last for number in batch], steps, whole)
        left_out = y.isnan() & ~given.isnan()
        some_left_out = left_out.any(1).tolist()
        found = forecast_clean(adjusted, steps, whole, correct)
        generators = [torch.Generator().manual_seed(seeds[number]) for number in batch]
        paths, ends = found.sample(n_paths, generators), found.quantiles(STATISTICAL_LEVELS)
        limits = list(zip(*(end.tolist() for end in bounds(y)), strict=True))
        for row, number in enumerate(batch):
            own = Forecast(**{name: value[row : row + 1] for name, value in vars(found).items()})
            one = _at_times_of(
                requests[number],
                own,
                y[row],
                ends=ends[row],
                paths=paths[row],
                effects=effects[row],
                limits=limits[row],
                generator=generators[row],
            )
            if one.intermittent and not requests[number].multiplied:
                one = with_season(one, requests[number], np.random.default_rng(seeds[number]))
            if some_left_out[row]:
                one = with_exceptions(one, requests[number], y[row], given[row][left_out[row]], seeds[number])
            forecasts[number] = one
    return [forecasts[number] for number in range(len(requests))]


def prepared(
    given: Tensor, last: Sequence[StepDate | None], horizon: int, seasons: tuple[int, ...]
) -> tuple[Tensor, Tensor, Tensor]:
    """Series (B, n) without wrong values, what statistics forecast of them, and what is added to that.

    Added are the effects of the calendar and a minimum that recurs, (B, n + horizon). Series end together;
    ``last`` has the dates of their ends, see :func:`~.days.effects_of_calendar`.
    """
    y = without_negligible(without_wrong_values(given, seasons))
    least = recurring_minimum(y, seasons)
    effects = effects_of_calendar(y - least, last, horizon, seasons)
    return y, without_effects(y - least, effects), effects + least


def _at_times_of(
    q: SeriesRequest,
    found: Forecast,
    y: Tensor,
    *,
    ends: Tensor,
    paths: Tensor,
    effects: Tensor,
    limits: tuple[float, float],
    generator: torch.Generator,
) -> SeriesForecast:
    """Forecast one series: quantiles of the future, and of points in sample from the origin before each."""
    n, size = len(q.y), y.shape[0]
    at = torch.as_tensor(q.at, dtype=torch.float64)
    step = torch.where(at <= n - 1, at.round(), at) - n  # 0 is the first step ahead
    if bool(found.intermittent[0]):
        step = step.ceil()  # demand belongs to a whole step
    future, whole = step > -1, step.ceil().long()
    edges = torch.empty(len(step), len(STATISTICAL_LEVELS), dtype=torch.float64)
    drawn = torch.empty(len(paths), len(step), dtype=torch.float64)
    low = found.low[0, 0].expand(len(step)).clone()
    # Between steps, all of a forecast is on the line between those of both; the last value is known.
    levels, known = len(STATISTICAL_LEVELS), torch.cat([ends, paths.T, found.low[0, :, None]], 1)
    last = y[-1] - effects[size - 1]
    known = torch.cat([last.expand(1, known.shape[1]), known])
    before, part = step[future].floor().long(), (step[future] % 1)[:, None]
    ahead = torch.lerp(known[before + 1], known[whole[future] + 1], part)
    edges[future], drawn[:, future], low[future] = ahead[:, :levels], ahead[:, levels:-1].T, ahead[:, -1]
    if not bool(future.all()):
        loc, scale = _one_step(found, y - effects[:size], size + whole[~future] - 1)
        z = torch.special.ndtri(torch.tensor(STATISTICAL_LEVELS, dtype=torch.float64))
        noise = torch.randn(len(paths), len(loc), generator=generator, dtype=torch.float64)
        edges[~future] = loc[:, None] + scale[:, None] * _standard(found, z)
        drawn[:, ~future] = loc + scale * _standard(found, noise)
        low[~future] = torch.minimum(low[~future], edges[~future, 0])
    before = (size + step.floor().long()).clamp_min(0)
    added = torch.lerp(effects[before], effects[(size + whole).clamp_min(0)], step % 1)
    edges, drawn = (edges + added[:, None]).clamp(*limits), (drawn + added).clamp(*limits)
    low = (low + added).clamp(*limits)
    least = low.clamp_max(limits[0])  # what has no bound may be less than any forecast
    parts, intermittent = pieces_between(edges, least, limits[1]), bool(found.intermittent[0])
    if intermittent:
        parts = _with_masses(parts, found, future)
    middle, half, mass = (part.numpy() for part in parts)
    return SeriesForecast(drawn.numpy(), middle, half, mass, edges.numpy(), intermittent, limits)


def _standard(found: Forecast, z: Tensor) -> Tensor:
    """Errors in units of their scale, at standard normal scores."""
    if bool(found.intermittent[0]):
        return z  # the scale of intermittent series is a standard deviation
    return found.standard(z.reshape(1, 1, -1)).view(z.shape)


def _one_step(found: Forecast, y: Tensor, origin: Tensor) -> tuple[Tensor, Tensor]:
    """One-step forecasts from given origins; from the first ones, mean and deviation of the series."""
    known = y[~y.isnan()]
    at = origin.clamp_min(0)
    blind = (origin < 0) | ((~y.isnan()).cumsum(0)[at] < MIN_SCALE_VALUES)
    deviation = known.std(unbiased=False) if len(known) > 1 else known.abs().mean()
    loc = torch.where(blind, known.mean(), found.loc[0, at, 0])
    return loc, torch.where(blind, deviation, found.scale[0, at, 0])


def _with_masses(
    parts: tuple[Tensor, Tensor, Tensor], found: Forecast, future: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Single values in place of the pieces of the future: the support of intermittent demand."""
    mass = found.cdf[0].diff(prepend=found.cdf.new_zeros(1))
    support, mass = found.support[0, mass > 0], mass[mass > 0]
    tiny = POINT_MASS * (float(support.abs().max()) or 1.0)
    n_pieces = max(parts[0].shape[1], len(support))
    loc, scale, weights = (
        torch.nn.functional.pad(part, (0, n_pieces - part.shape[1]), value=fill)
        for part, fill in zip(parts, (0.0, tiny, 0.0), strict=True)
    )
    loc[future], scale[future], weights[future] = 0.0, tiny, 0.0
    loc[future, : len(support)] = support
    weights[future, : len(support)] = mass / mass.sum()
    return loc, scale, weights
