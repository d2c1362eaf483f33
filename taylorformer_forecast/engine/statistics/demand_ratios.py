"""Intermittent demand whose mean covariates or a season multiply: distributions of each step ahead.

A promotion does not only raise the mean: how demand varies on days with one is another distribution. So each
step has that of the past values whose means were multiplied by about as much, and then the mean is set.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch.nn.utils.rnn import pad_sequence

from taylorformer_forecast.baselines.demand import fit_intermittent
from taylorformer_forecast.core.families.numeric import bisect
from taylorformer_forecast.defaults import (
    ALIKE_DEMAND,
    DEMAND_DECAYS,
    DEMAND_PRIOR_COUNT,
    DEMAND_PRIOR_MEAN,
    FARTHEST_DEMAND,
    FEWEST_ALIKE,
    LONGEST_PAST,
    STATISTICAL_LEVELS,
)
from taylorformer_forecast.engine.statistics.requests import SeriesForecast

CELLS_AT_ONCE = 500  # of distributions that are changed together, which bounds the memory


def level_of_demand(y: Float[np.ndarray, " n"], ratio: Float[np.ndarray, " n"]) -> float:
    """Mean of demand after the last value, where nothing multiplies it.

    Exponentially smoothed demand over smoothed ratios, for several decays. Each is weighted by how well it
    forecast the past, by the quasi-likelihood of demand whose variance is in proportion to its mean. A season
    or a promotion is no change of the level then.

    Parameters
    ----------
    y : ndarray of shape (n,)
        Past demand, NaN where nothing was observed; not all of it.
    ratio : ndarray of shape (n,)
        What multiplied its mean.

    Examples
    --------
    >>> import numpy as np
    >>> from taylorformer_forecast.engine.statistics.demand_ratios import level_of_demand
    >>> ratio = np.repeat([1.0, 3.0], 60)
    >>> round(level_of_demand(ratio / 2, ratio), 2)
    0.5
    """
    from scipy.signal import lfilter  # which takes time to load, and which other series do not need

    seen = ~np.isnan(y)
    y, ratio = y[seen][-LONGEST_PAST:], ratio[seen][-LONGEST_PAST:]
    unit = y[y > 0].mean() if (y > 0).any() else 1.0
    prior = DEMAND_PRIOR_COUNT * np.array([DEMAND_PRIOR_MEAN, 1.0])[:, None]
    levels, fits, excess = [], [], []
    for keep in DEMAND_DECAYS:
        sums = np.c_[prior, prior + lfilter([1.0], [1.0, -keep], [y / unit, ratio])]
        level = sums[0] / sums[1]
        mean = level[:-1] * ratio
        levels.append(level[-1])
        fits.append((y / unit * np.log(mean) - mean).sum())
        excess.append(((y / unit - mean) ** 2 / mean).mean())
    fit = np.array(fits) / max(min(excess), 1e-9)
    weights = np.exp(fit - fit.max())
    return float(unit * (weights @ levels) / weights.sum())


def alike_demand(
    values: Float[np.ndarray, " K"],
    weights: Float[np.ndarray, " K"],
    y: Float[np.ndarray, " n"],
    before: Float[np.ndarray, " n"],
    ahead: Float[np.ndarray, " r"],
) -> Float[np.ndarray, "r K"]:
    """Distributions of past demand whose mean was multiplied by about as much as at each step ahead.

    Parameters
    ----------
    values, weights : ndarray of shape (K,)
        Single values, and their probabilities in the forecast from all of the past.
    y : ndarray of shape (n,)
        Past demand, NaN where nothing was observed.
    before, ahead : ndarray of shape (n,) and (r,)
        What multiplies the mean of demand, in the past and at each step ahead.

    Returns
    -------
    ndarray of shape (r, K)
        Probabilities of the values; those of the forecast where all of the past is alike.

    Examples
    --------
    >>> import numpy as np
    >>> from taylorformer_forecast.engine.statistics.demand_ratios import alike_demand
    >>> y, ratio = np.tile([0.0, 1.0, 0.0, 6.0], 40), np.tile([1.0, 1.0, 1.0, 8.0], 40)
    >>> values, weights = np.arange(9.0), np.bincount(y.astype(int), minlength=9) / 160 + 1e-9
    >>> alike_demand(values, weights, y, ratio, np.array([1.0, 8.0])).argmax(1).tolist()
    [0, 6]
    """
    seen = np.flatnonzero(~np.isnan(y))[-LONGEST_PAST:]
    y, before = y[seen], np.log(before[seen])
    steps, which = np.unique(np.round(np.log(ahead) / np.log(ALIKE_DEMAND)), return_inverse=True)
    distance = np.abs(steps[:, None] * np.log(ALIKE_DEMAND) - before)
    later_first = np.broadcast_to(-np.arange(len(y)), distance.shape)
    rank = np.argsort(np.lexsort((later_first, distance), 1), 1)
    alike = (distance <= np.log(ALIKE_DEMAND)) | (rank < FEWEST_ALIKE)
    found = np.tile(weights, (len(steps), 1))
    own = np.flatnonzero(~alike.all(1))
    if len(own):
        past = [torch.as_tensor(y[alike[row]]) for row in own]
        demand = fit_intermittent(pad_sequence(past, batch_first=True, padding_value=torch.nan))
        mass = np.diff(demand.cdf.numpy(), prepend=0.0)
        support = np.flatnonzero(weights > 0)
        place = np.searchsorted(values[support], demand.support.numpy()).clip(max=len(support) - 1)
        found[own] = 0.0
        np.add.at(found, (own[:, None], support[place]), mass)
    return found[which]


def multiplied(
    forecast: SeriesForecast,
    future: Bool[np.ndarray, " r"],
    y: Float[np.ndarray, " n"],
    before: Float[np.ndarray, " n"],
    ahead: Float[np.ndarray, " f"],
    rng: np.random.Generator,
) -> SeriesForecast:
    """Forecast of intermittent demand, the means of whose future times are multiplied.

    Parameters
    ----------
    forecast : SeriesForecast
        Without that, the same at all future times.
    future : bool ndarray of shape (r,)
        Which of its times are.
    y, before, ahead : ndarray
        See :func:`alike_demand`.
    rng : Generator
        Which draws of equal values go on together.
    """
    paths, weights, quantiles = forecast.paths.copy(), forecast.weights.copy(), forecast.quantiles.copy()
    values, usual = forecast.loc[future], weights[future]
    base = alike_demand(values[0], usual[0], y, before, ahead)
    mean, at = ahead * level_of_demand(y, before), np.flatnonzero(future)
    for part in np.array_split(np.arange(len(at)), -(-len(at) // CELLS_AT_ONCE)):
        about = values[part], usual[part], base[part], mean[part]
        paths[:, at[part]], weights[at[part]] = tilt_demand(paths[:, at[part]], *about, rng)
    below = weights[future].cumsum(1)[:, None] < np.array(STATISTICAL_LEVELS)[:, None]
    place = np.minimum(below.sum(2), np.count_nonzero(usual, 1).max() - 1)
    quantiles[future] = np.take_along_axis(values, place, 1)
    return replace(forecast, paths=paths, weights=weights, quantiles=quantiles)


def tilt_demand(
    paths: np.ndarray,
    values: np.ndarray,
    weights: np.ndarray,
    base: np.ndarray,
    mean: np.ndarray,
    rng: np.random.Generator,
) -> tuple[np.ndarray, np.ndarray]:
    """Give distributions on single values, which are not negative, other ones with given means.

    Probabilities are multiplied by ``exp(c * value)`` with the c that gives the mean. A Poisson distribution
    stays one, and a negative binomial distribution keeps its size.

    Parameters
    ----------
    paths : ndarray of shape (S, ...)
        Draws of the distributions.
    values, weights : ndarray of shape (..., K)
        Values and their probabilities.
    base : ndarray of shape (..., K)
        Probabilities that are multiplied; ``weights`` unless the distributions have another shape too.
    mean : ndarray of shape (...)
        What is asked for.
    rng : Generator
        Which draws of equal values go on together.

    Returns
    -------
    paths, weights : ndarray
        The draws in the same order, as far as they differ, and the probabilities.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.stats import poisson
    >>> from taylorformer_forecast.engine.statistics.demand_ratios import tilt_demand
    >>> values, rng = np.arange(40.0), np.random.default_rng(0)
    >>> weights = poisson(2).pmf(values)
    >>> draws, found = tilt_demand(rng.poisson(2, 1000), values, weights, weights, np.array(6.0), rng)
    >>> bool(np.allclose(found, poisson(6).pmf(values), atol=1e-6)), float(draws.mean().round())
    (True, 6.0)
    """
    largest = np.maximum(np.where(base > 0, values, 0.0).max(-1, keepdims=True), 1e-300)
    x, goal = values / largest, mean / largest[..., 0]
    of_base = (base * x).sum(-1)
    goal = np.minimum(goal, of_base + FARTHEST_DEMAND * (1 - of_base))
    tilt = bisect(lambda c: (_tilted(x, base, c) * x).sum(-1), goal, -1e3, 1e3)
    same = (base == weights).all(-1) & np.isclose(goal, of_base, rtol=1e-12, atol=0.0)
    found = np.where(same[..., None], weights, _tilted(x, base, tilt))
    order = np.lexsort((rng.random(paths.shape), paths), 0)
    rank = np.argsort(order, 0)
    level = (rank + 0.5) / len(paths)
    by_value = np.argsort(values, -1)
    cdf = np.take_along_axis(found, by_value, -1).cumsum(-1)
    place = (cdf[None] < level[..., None] * cdf[None, ..., -1:]).sum(-1).clip(max=values.shape[-1] - 1)
    drawn = np.take_along_axis(np.take_along_axis(values, by_value, -1)[None], place[..., None], -1)[..., 0]
    return np.where(same, paths, drawn), found


def _tilted(x: np.ndarray, weights: np.ndarray, c: np.ndarray) -> np.ndarray:
    """Probabilities times ``exp(c * x)``, which add up to 1."""
    power = np.where(weights > 0, c[..., None] * x, -np.inf)
    found = weights * np.exp(power - power.max(-1, keepdims=True))
    return found / found.sum(-1, keepdims=True)
