"""What covariates multiply intermittent demand by: a regression, and distributions with another mean."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from taylorformer_forecast.defaults import DEMAND_DECAYS, FARTHEST_DEMAND, LEAST_LOCAL_DEMAND

FARTHEST_LOG = 5.0  # of a ratio of means, while it is estimated
N_STEPS = 60  # of bisection


@dataclass(frozen=True)
class DemandRows:
    """Demand and terms of one series, whose means are a local level times ``exp(terms @ slopes)``.

    Iteratively reweighted least squares of a quasi-Poisson regression: variances are in proportion to means
    (McCullagh and Nelder, "Generalized linear models", 1989, chapter 9).

    Parameters
    ----------
    y : ndarray of shape (m,)
        Demand.
    terms : ndarray of shape (m, P)
        Terms.
    """

    y: np.ndarray
    terms: np.ndarray

    def whitened(self, slopes: Float[np.ndarray, " P"]) -> tuple[np.ndarray, np.ndarray, int]:
        """Working values and terms of unit weight, and how many degrees of freedom the level takes."""
        log_ratio = np.clip(self.terms @ slopes, -FARTHEST_LOG, FARTHEST_LOG)
        mean = self._level(np.exp(log_ratio)) * np.exp(log_ratio)
        working, weight = log_ratio + (self.y - mean) / mean, mean / mean.sum()
        y, terms = working - weight @ working, self.terms - weight @ self.terms
        root = np.sqrt(mean)
        return root * y, root[:, None] * terms, 1

    def without_outliers(self, slopes: Float[np.ndarray, " P"]) -> DemandRows:
        """Return these rows: large demand is seldom, but no error."""
        return self

    def _level(self, ratio: Float[np.ndarray, " m"]) -> Float[np.ndarray, " m"]:
        """Level of demand at each row, of all other values: nearer ones count more."""
        from scipy.signal import lfilter  # which takes time to load, and which other series do not need

        keep, mean = DEMAND_DECAYS[1], self.y.sum() / ratio.sum()
        sides = []
        for way in (slice(None), slice(None, None, -1)):
            after, _ = lfilter([1 - keep], [1, -keep], (self.y / ratio)[way], zi=[keep * mean])
            sides.append(np.r_[mean, after[:-1]][way])
        return np.maximum((sides[0] + sides[1]) / 2, LEAST_LOCAL_DEMAND * mean)


def usual_ratio(y: Float[np.ndarray, " n"], ratio: Float[np.ndarray, " n"], mean: float) -> float:
    """What covariates multiply demand by in the values that a forecast of some ``mean`` rests on.

    Observed values are weighted by how many of them came later, as forecasts weigh them, with that decay of
    the forecasts whose level is nearest to the mean.

    Parameters
    ----------
    y : ndarray of shape (n,)
        Past demand, NaN where nothing was observed.
    ratio : ndarray of shape (n,)
        What covariates multiplied it by.
    mean : float
        Of the forecast.

    Examples
    --------
    >>> import numpy as np
    >>> from taylorformer_forecast.engine.demand_effects import usual_ratio
    >>> ratio = np.repeat([1.0, 3.0], 60)
    >>> [round(usual_ratio(ratio / 2, ratio, mean), 1) for mean in (1.0, 1.5)]
    [2.0, 3.0]
    """
    seen = ~np.isnan(y)
    y, base = y[seen], y[seen] / ratio[seen]
    weights = np.power(np.array(DEMAND_DECAYS)[:, None], np.arange(len(y))[::-1])
    level, below = weights @ y / weights.sum(1), weights @ base / weights.sum(1)
    known = (level > 0) & (below > 0)
    if not known.any() or mean <= 0:
        return 1.0
    nearest = np.abs(np.log(level[known] / mean)).argmin()
    return float(level[known][nearest] / below[known][nearest])


def tilt_demand(
    paths: np.ndarray, values: np.ndarray, weights: np.ndarray, ratio: np.ndarray, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Multiply the means of distributions on single values, which are not negative.

    Probabilities are multiplied by ``exp(c * value)`` with the c that gives the mean. A Poisson distribution
    stays one, and a negative binomial distribution keeps its size.

    Parameters
    ----------
    paths : ndarray of shape (S, ...)
        Draws of the distributions.
    values, weights : ndarray of shape (..., K)
        Values and their probabilities.
    ratio : ndarray of shape (...)
        Of the means that are asked for to those that are given.
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
    >>> from taylorformer_forecast.engine.demand_effects import tilt_demand
    >>> values, rng = np.arange(40.0), np.random.default_rng(0)
    >>> weights = poisson(2).pmf(values)
    >>> draws, found = tilt_demand(rng.poisson(2, 1000), values, weights, np.array(3.0), rng)
    >>> bool(np.allclose(found, poisson(6).pmf(values), atol=1e-6)), float(draws.mean().round())
    (True, 6.0)
    """
    largest = np.maximum(np.where(weights > 0, values, 0.0).max(-1, keepdims=True), 1e-300)
    x, mean = values / largest, (weights * values / largest).sum(-1)
    goal = np.minimum(ratio * mean, mean + FARTHEST_DEMAND * (1 - mean))
    low, high = np.full(mean.shape, -1e3), np.full(mean.shape, 1e3)
    for _ in range(N_STEPS):
        middle = (low + high) / 2
        tilted = _tilted(x, weights, middle)
        above = (tilted * x).sum(-1) > goal
        low, high = np.where(above, low, middle), np.where(above, middle, high)
    found = np.where((ratio == 1.0)[..., None], weights, _tilted(x, weights, (low + high) / 2))
    order = np.lexsort((rng.random(paths.shape), paths), 0)
    rank = np.argsort(order, 0)
    level = (rank + 0.5) / len(paths)
    by_value = np.argsort(values, -1)
    cdf = np.take_along_axis(found, by_value, -1).cumsum(-1)
    place = (cdf[None] < level[..., None] * cdf[None, ..., -1:]).sum(-1).clip(max=values.shape[-1] - 1)
    drawn = np.take_along_axis(np.take_along_axis(values, by_value, -1)[None], place[..., None], -1)[..., 0]
    return np.where(ratio == 1.0, paths, drawn), found


def _tilted(x: np.ndarray, weights: np.ndarray, c: np.ndarray) -> np.ndarray:
    """Probabilities times ``exp(c * x)``, which add up to 1."""
    power = np.where(weights > 0, c[..., None] * x, -np.inf)
    found = weights * np.exp(power - power.max(-1, keepdims=True))
    return found / found.sum(-1, keepdims=True)
