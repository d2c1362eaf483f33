"""The season of intermittent demand: distributions whose means follow it where the past shows one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Float, Int

from taylorformer_forecast.baselines.seasonal import in_cycles
from taylorformer_forecast.defaults import (
    DEMAND_SEASON_ERRORS,
    FEWEST_DEMAND_CYCLES,
    LEAST_PAST_CYCLES,
    LONGEST_PAST,
)
from taylorformer_forecast.engine.statistics.demand_ratios import multiplied
from taylorformer_forecast.engine.statistics.requests import SeriesForecast, SeriesRequest


def season_of_demand(
    y: Float[np.ndarray, " n"], seasons: Sequence[int], steps: Int[np.ndarray, " r"]
) -> Float[np.ndarray, " r"]:
    """Means of demand some steps after the last value, relative to the mean of all.

    Means of the places in a season differ by chance, too. They count where they differ more than that, each
    shrunk to the mean of all by how much chance is in it. Of several seasons that which explains most counts.

    Parameters
    ----------
    y : ndarray of shape (n,)
        Past demand, NaN where nothing was observed.
    seasons : sequence of int
        Steps of the seasons that are tried; two cycles of each at least.
    steps : int ndarray of shape (r,)
        Steps ahead, 0 for the first.

    Returns
    -------
    ndarray of shape (r,)
        Ratios, 1 where no season shows.

    References
    ----------
    Morris, "Parametric empirical Bayes inference: theory and applications", Journal of the American
    Statistical Association, 1983.

    Examples
    --------
    >>> import numpy as np
    >>> from taylorformer_forecast.engine.statistics.demand_season import season_of_demand
    >>> y = np.random.default_rng(0).poisson(np.tile([0.2, 0.2, 0.2, 1.4], 60))
    >>> season_of_demand(y.astype(float), [4], np.arange(5)).round(1).tolist()
    [0.5, 0.3, 0.4, 2.8, 0.5]
    """
    found, most = np.ones(len(steps)), 0.0
    for season in seasons:
        cycles = in_cycles(torch.as_tensor(y)[None], season)[0][0].numpy()
        count = (~np.isnan(cycles)).sum(0)
        if count.sum() < FEWEST_DEMAND_CYCLES * season or not count.all():
            continue
        mean, means = np.nanmean(y), np.nanmean(cycles, 0)
        # One value counts as if there were no season: equal cycles leave it open that there is chance.
        by_chance = (np.nansum((cycles - means) ** 2) + np.nanvar(y)) / (count.sum() - season + 1)
        between = (count * (means - mean) ** 2).sum() / (season - 1)
        # An F statistic is 1 by chance, and has this variance around it.
        variance = 2 / (season - 1) + 2 / (count.sum() - season)
        doubt = 1 + DEMAND_SEASON_ERRORS * variance**0.5
        explained = (between - by_chance) * (season - 1)
        if between > doubt * by_chance and explained > most:
            variance = (between - by_chance) / count.mean()
            known = variance / (variance + by_chance / count)
            found, most = (1 + known * (means / mean - 1))[steps % season], explained
    return found


def with_season(
    forecast: SeriesForecast, request: SeriesRequest, seasons: Sequence[int], seed: int
) -> SeriesForecast:
    """Forecast of intermittent demand, the means of whose future steps follow the season.

    Parameters
    ----------
    forecast : SeriesForecast
        Forecast of the request, the same at all future steps.
    request : SeriesRequest
        The series, and the times.
    seasons : sequence of int
        Steps of its seasons.
    seed : int
        Which draws of equal values go on together.

    Examples
    --------
    >>> import numpy as np
    >>> from taylorformer_forecast.engine.statistics.demand_season import with_season
    >>> from taylorformer_forecast.engine.statistics.requests import SeriesRequest
    >>> from taylorformer_forecast.engine.statistics.forecast import forecast_series
    >>> y = np.random.default_rng(0).poisson(np.tile([0.2, 0.2, 0.2, 1.4], 99)).astype(float)
    >>> request = SeriesRequest(y, np.arange(396, 400))
    >>> flat = forecast_series([request], 100, 0)[0]
    >>> (with_season(flat, request, [4], 0).weights * flat.loc).sum(1).round(1).tolist()
    [0.2, 0.2, 0.2, 1.3]
    """
    longest = max(LONGEST_PAST, LEAST_PAST_CYCLES * max(seasons, default=0))
    y, n, future = request.y[-longest:], len(request.y), request.at > len(request.y) - 1
    steps = np.ceil(request.at[future]).astype(int) - n  # demand belongs to a whole step
    before, ratio = np.split(season_of_demand(y, seasons, np.r_[-len(y) : 0, steps]), [len(y)])
    if (ratio == 1).all():
        return forecast
    return multiplied(forecast, future, y, before, ratio, np.random.default_rng(seed))
