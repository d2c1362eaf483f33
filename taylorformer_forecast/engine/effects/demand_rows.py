"""What covariates multiply the mean of intermittent demand by: a regression."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from taylorformer_forecast.defaults import DEMAND_DECAYS, LEAST_LOCAL_DEMAND

FARTHEST_LOG = 5.0  # of a ratio of means, while it is estimated


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
