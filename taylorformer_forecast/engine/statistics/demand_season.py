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
    LEAST_SEEN_DEMAND,
    MIN_SEASONAL_CYCLES,
    ZEROS_CHANCE,
)
from taylorformer_forecast.engine.statistics.demand_ratios import multiplied
from taylorformer_forecast.engine.statistics.requests import (
    SeriesForecast,
    SeriesRequest,
    past_length,
    whole_seasons,
)


def season_of_demand(
    y: Float[np.ndarray, " n"],
    seasons: Sequence[int],
    steps: Int[np.ndarray, " r"],
    others: Float[np.ndarray, " n"] | None = None,
) -> Float[np.ndarray, " r"]:
    """Means of demand some steps after the last value, relative to the mean of all.

    Means of the places in a season differ by chance, too. They count where they differ more than that, each
    shrunk to the mean of all by how much chance is in it. Places with zeros alone, eight or more and too many
    for chance, have next to none. Of several seasons that which explains most counts.

    Parameters
    ----------
    y : ndarray of shape (n,)
        Past demand, NaN where nothing was observed.
    seasons : sequence of int
        Steps of the seasons that are tried; two cycles of each at least.
    steps : int ndarray of shape (r,)
        Steps ahead, 0 for the first.
    others : ndarray of shape (n,), optional
        What else multiplied the mean, as covariates do: the season is that of demand over these ratios, which
        count as much as demand that has a variance in proportion to its mean.

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
    weights = np.where(np.isnan(y), np.nan, 1.0 if others is None else others)
    weights, y = weights / np.nanmean(weights), y if others is None else y / others
    size, both = (~np.isnan(y)).sum(), torch.as_tensor(np.stack([y, weights]))
    for season in seasons:
        cycles, weight = in_cycles(both, season)[0].numpy()
        if size < FEWEST_DEMAND_CYCLES * season or np.isnan(cycles).all(0).any():
            continue
        count = np.nansum(weight, 0)
        mean, means = np.nansum(weights * y) / size, np.nansum(weight * cycles, 0) / count
        # One value counts as if there were no season: equal cycles leave it open that there is chance.
        one = np.nansum(weights * (y - mean) ** 2) / size
        by_chance = (np.nansum(weight * (cycles - means) ** 2) + one) / (size - season + 1)
        between = (count * (means - mean) ** 2).sum() / (season - 1)
        # An F statistic is 1 by chance, and has this variance around it.
        variance = 2 / (season - 1) + 2 / (size - season)
        doubt = 1 + DEMAND_SEASON_ERRORS * variance**0.5
        explained = (between - by_chance) * (season - 1)
        if between > doubt * by_chance and explained > most:
            variance = (between - by_chance) / count.mean()
            known = variance / (variance + by_chance / count)
            # Values of the places there would be by chance, in units of their variance over their mean.
            expected = count * mean**2 / by_chance
            many = (~np.isnan(cycles)).sum(0) >= 2 * MIN_SEASONAL_CYCLES
            closed = many & (means == 0) & (np.exp(-expected) < ZEROS_CHANCE)
            ratio = np.where(closed, LEAST_SEEN_DEMAND / expected, 1 + known * (means / mean - 1))
            found, most = ratio[steps % season], explained
    return found


def with_season(
    forecast: SeriesForecast,
    request: SeriesRequest,
    rng: np.random.Generator,
    before: Float[np.ndarray, " n"] | None = None,
    ahead: Float[np.ndarray, " f"] | None = None,
) -> SeriesForecast:
    """Forecast of intermittent demand, the means of whose future steps follow the season and covariates.

    Parameters
    ----------
    forecast : SeriesForecast
        Forecast of the request, the same at all future steps.
    request : SeriesRequest
        The series, its seasons, and the times.
    rng : Generator
        Which draws of equal values go on together.
    before, ahead : ndarray of shape (n,) and (f,), optional
        What covariates multiply the mean by, at past values and at the future times.

    Examples
    --------
    >>> import numpy as np
    >>> from taylorformer_forecast.engine.statistics.demand_season import with_season
    >>> from taylorformer_forecast.engine.statistics.requests import SeriesRequest
    >>> from taylorformer_forecast.engine.statistics.forecast import forecast_series
    >>> y = np.random.default_rng(0).poisson(np.tile([0.2, 0.2, 0.2, 1.4], 99)).astype(float)
    >>> request = SeriesRequest(y, np.arange(396, 400), seasons=[4], multiplied=True)
    >>> flat = forecast_series([request], 100, 0)[0]
    >>> (with_season(flat, request, np.random.default_rng(0)).weights * flat.loc).sum(1).round(1).tolist()
    [0.2, 0.2, 0.2, 1.3]
    """
    longest = past_length(request.seasons)
    y, n, future = request.y[-longest:], len(request.y), request.at > len(request.y) - 1
    steps = np.ceil(request.at[future]).astype(int) - n  # demand belongs to a whole step
    others = None if before is None else before[-longest:]
    ratios = season_of_demand(y, whole_seasons(request.seasons), np.r_[-len(y) : 0, steps], others)
    of_past, of_future = np.split(ratios, [len(y)])
    if others is not None and ahead is not None:
        of_past, of_future = of_past * others, of_future * ahead
    elif (of_future == 1).all():
        return forecast
    return multiplied(forecast, future, y, of_past, of_future, rng)
