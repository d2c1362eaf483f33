"""What covariates multiply the mean of intermittent demand by: a regression."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float, Int

from taylorformer_forecast.defaults import DEMAND_DECAYS, LEAST_LOCAL_DEMAND
from taylorformer_forecast.engine.statistics.demand_season import season_of_demand
from taylorformer_forecast.engine.statistics.requests import whole_seasons

FARTHEST_LOG = 5.0  # of a ratio of means, while it is estimated


@dataclass(frozen=True)
class DemandRows:
    """Demand and terms of one series, with means of a local level times a season and ``exp(terms @ slopes)``.

    Iteratively reweighted least squares of a quasi-Poisson regression: variances are in proportion to means
    (McCullagh and Nelder, "Generalized linear models", 1989, chapter 9).

    Parameters
    ----------
    y : ndarray of shape (m,)
        Demand.
    terms : ndarray of shape (m, P)
        Terms.
    at : int ndarray of shape (m,)
        Steps of the rows.
    seasons : sequence of float
        Lengths of seasons in steps.
    season : ndarray of shape (m,), optional
        Logarithms of what the season multiplies the mean by: see :meth:`in_season`.
    """

    y: np.ndarray
    terms: np.ndarray
    at: Int[np.ndarray, " m"]
    seasons: Sequence[float] = ()
    season: np.ndarray | None = None

    def whitened(self, slopes: Float[np.ndarray, " P"]) -> tuple[np.ndarray, np.ndarray, int]:
        """Working values and terms of unit weight, and how many degrees of freedom the level takes."""
        season = 0.0 if self.season is None else self.season
        log_ratio = np.clip(self.terms @ slopes + season, -FARTHEST_LOG, FARTHEST_LOG)
        mean = self._level(np.exp(log_ratio)) * np.exp(log_ratio)
        working, weight = log_ratio - season + (self.y - mean) / mean, mean / mean.sum()
        y, terms = working - weight @ working, self.terms - weight @ self.terms
        root = np.sqrt(mean)
        return root * y, root[:, None] * terms, 1

    def without_outliers(self, slopes: Float[np.ndarray, " P"]) -> DemandRows:
        """Return these rows, with the season as it shows now: large demand is seldom, but no error."""
        return self if self.season is None else self.in_season(slopes)

    def in_season(self, slopes: Float[np.ndarray, " P"]) -> DemandRows:
        """Return these rows, with the season of demand over what slopes multiply it by.

        What slopes explain as well is no season: they have to be estimated without one before.
        """
        y, others = np.full((2, self.at[-1] + 1), np.nan)
        log_ratio = np.clip(self.terms @ slopes, -FARTHEST_LOG, FARTHEST_LOG)
        y[self.at], others[self.at] = self.y, np.exp(log_ratio)
        found = season_of_demand(y, whole_seasons(self.seasons), self.at - len(y), others)
        return replace(self, season=np.log(np.maximum(found, np.exp(-FARTHEST_LOG))))

    def _level(self, ratio: Float[np.ndarray, " m"]) -> Float[np.ndarray, " m"]:
        """Level of demand at each row, of all other values: nearer ones count more."""
        from scipy.signal import lfilter  # which takes time to load, and which other series do not need

        keep, mean = DEMAND_DECAYS[1], self.y.sum() / ratio.sum()
        sides = []
        for way in (slice(None), slice(None, None, -1)):
            after, _ = lfilter([1 - keep], [1, -keep], (self.y / ratio)[way], zi=[keep * mean])
            sides.append(np.r_[mean, after[:-1]][way])
        return np.maximum((sides[0] + sides[1]) / 2, LEAST_LOCAL_DEMAND * mean)
