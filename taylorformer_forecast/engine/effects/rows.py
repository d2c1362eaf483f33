"""Values and terms of a regression less what an autoregression of the rest predicts of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float, Int

from taylorformer_forecast.defaults import (
    EFFECT_LONGEST_SEASON,
    EFFECT_OUTLIER,
    EFFECT_ROWS_PER_LAG,
    EFFECT_SEASON_CYCLES,
    EFFECT_SPREAD_DOUBT,
    EFFECT_SPREAD_POWER,
    EFFECT_SPREAD_POWERS,
    LEAST_EFFECT_LEVEL,
)

RIDGE = 1e-3  # of the autoregression, in its variance, so that it can be solved for


@dataclass(frozen=True)
class Rows:
    """Values and terms of one series, and rows that are known with the values some lags before.

    Parameters
    ----------
    y : ndarray of shape (n,)
        Values, 0 where nothing was observed.
    terms : ndarray of shape (n, P + S)
        Terms, and one for every place in the season: see :func:`season_terms`.
    at : int ndarray of shape (m,)
        Rows.
    lags : list of int
        Lags L.
    missing : bool ndarray of shape (n,)
        Where nothing was observed.
    clean : ndarray of shape (n,)
        Values without outliers and gaps, which lags see.
    """

    y: np.ndarray
    terms: np.ndarray
    at: np.ndarray
    lags: list[int]
    missing: np.ndarray
    clean: np.ndarray

    @classmethod
    def of(
        cls,
        y: Float[np.ndarray, " n"],
        terms: Float[np.ndarray, "n P"],
        known: np.ndarray,
        reach: int,
        seasons: Sequence[float],
    ) -> Rows | None:
        """Rows of a series; None if they are too few.

        Parameters
        ----------
        y : ndarray of shape (n,)
            Values, NaN where nothing was observed.
        terms : ndarray of shape (n, P)
            Terms.
        known : bool ndarray of shape (n,)
            Where any covariate is known.
        reach : int
            Steps before terms are whole.
        seasons : sequence of float
            Lengths of seasons in steps.
        """
        seen, n = ~np.isnan(y), len(y)
        known = known & seen
        whole = [round(season) for season in seasons]
        sought = [1, *whole, 2, *(season + 1 for season in whole), 3, *(season - 1 for season in whole)]
        lags = [lag for lag in dict.fromkeys(sought) if 0 < lag <= n // 3]
        lags = lags[: max(3, int(known.sum()) // EFFECT_ROWS_PER_LAG)]
        at = np.arange(max([*lags, reach]), n)
        at = at[known[at]]
        if len(at) < 2 * (len(lags) + 1):
            return None
        terms = np.concatenate([terms, season_terms(at, n, whole)], 1)
        return cls(np.nan_to_num(y), terms, at, lags, ~seen, _filled(y, ~seen))

    def whitened(self, slopes: Float[np.ndarray, " P"]) -> tuple[np.ndarray, np.ndarray, int]:
        """Values and terms less what the autoregression of the rest predicts, and its number of lags."""
        y, terms = self._less_past(self.clean, self._weights(slopes))
        return y - y.mean(), terms - terms.mean(0), len(self.lags)

    def as_they_are(self) -> tuple[np.ndarray, np.ndarray, int]:
        """Values and terms whose past is left in them, and the number of lags."""
        y, terms = self.clean[self.at], self.terms[self.at]
        return y - y.mean(), terms - terms.mean(0), 0

    def loss(self, slopes: Float[np.ndarray, " P"]) -> float:
        """Negative log-likelihood of slopes and lags, for errors of Laplace's distribution."""
        y, terms = self._less_past(self.clean, self._weights(slopes))
        error = y - terms @ slopes
        return len(error) * float(np.log(max(np.abs(error - np.median(error)).mean(), 1e-12)))

    def without_outliers(self, slopes: Float[np.ndarray, " P"]) -> Rows:
        """Return rows whose values are no farther than some deviations from what slopes and past predict.

        Repeated with slopes in turn, this is regression by Huber's loss (Huber, 1981, section 7.8): an effect
        that is seldom, and far larger than the noise, is found all the same.
        """
        error = self.errors(slopes)
        usual = 1.4826 * float(np.median(np.abs(error)))  # the standard deviation of normal errors
        most, clean = EFFECT_OUTLIER * usual if usual > 0 else np.inf, self.y.copy()
        clean[self.at] -= error - np.clip(error, -most, most)
        fit = self.terms @ slopes
        return replace(self, clean=fit + _filled(clean - fit, self.missing))

    def errors(self, slopes: Float[np.ndarray, " P"]) -> Float[np.ndarray, " m"]:
        """Values less what slopes and past predict, outliers too, around their median."""
        y, terms = self._less_past(self.clean, self._weights(slopes))
        error = self.y[self.at] - self.clean[self.at] + y - terms @ slopes
        return error - np.median(error)

    def _weights(self, slopes: Float[np.ndarray, " P"]) -> Float[np.ndarray, " L"]:
        """Weights of the lags of the rest."""
        rest, n_lags = self.clean - self.terms @ slopes, len(self.lags)
        past = np.stack([rest[self.at - lag] for lag in self.lags], 1)
        past -= past.mean(0)
        gram = past.T @ past + RIDGE * len(past) * max(float(past.var()), 1e-12) * np.eye(n_lags)
        return np.linalg.solve(gram, past.T @ (rest[self.at] - rest[self.at].mean()))

    def _less_past(self, values: Float[np.ndarray, " n"], weights: Float[np.ndarray, " L"]) -> tuple:
        """Values and terms of the rows, less those some lags before times weights."""
        y, terms = values[self.at], self.terms[self.at]
        for weight, lag in zip(weights, self.lags, strict=True):
            y, terms = y - weight * values[self.at - lag], terms - weight * self.terms[self.at - lag]
        return y, terms


def spread_power(series: Sequence[tuple[Rows, Float[np.ndarray, " P"], float]]) -> float:
    """Power of the level with effects that errors grow with, by their likelihood in all series together.

    Errors have Laplace's distribution, and the power has a normal prior about its usual value: few errors say
    little.

    Parameters
    ----------
    series : sequence of (Rows, ndarray of shape (P,), float)
        Rows of every series, its slopes, and its mean in its unit.
    """
    each = []
    for rows, slopes, level in series:
        if level > 0:
            ratio = np.maximum(1 + (rows.terms @ slopes)[rows.at] / level, LEAST_EFFECT_LEVEL)
            each.append((np.abs(rows.errors(slopes)), np.log(ratio)))

    def loss(power: float) -> float:
        found = (power - EFFECT_SPREAD_POWER) ** 2 / (2 * EFFECT_SPREAD_DOUBT**2)
        for size, ratio in each:
            usual = max(float((size * np.exp(-power * ratio)).mean()), 1e-300)
            found += power * ratio.sum() + len(size) * np.log(usual)
        return float(found)

    return min(EFFECT_SPREAD_POWERS, key=loss)


def season_terms(at: Int[np.ndarray, " m"], n: int, seasons: Sequence[int]) -> Float[np.ndarray, "n S"]:
    """One term for every place in the shortest season, of n values of which m count; zeros if these are few.

    Without them a covariate that is always at one place, since some day, would take what the season adds
    there: an autoregression that takes a season off has twice the noise.

    Examples
    --------
    >>> import numpy as np
    >>> from taylorformer_forecast.engine.effects.rows import season_terms
    >>> season_terms(np.arange(6), 6, [2])[:3].tolist()
    [[1.0, -1.0], [-1.0, 1.0], [1.0, -1.0]]
    """
    season = min((s for s in seasons if s > 1), default=0)
    if season > EFFECT_LONGEST_SEASON:
        season = 0
    place = (np.arange(n)[:, None] % max(season, 1)) == np.arange(season)
    if len(at) < EFFECT_SEASON_CYCLES * season:
        return np.zeros(place.shape)
    return (place - 1 / max(season, 1)) * season / max(season - 1, 1) ** 0.5


def _filled(values: Float[np.ndarray, " n"], missing: np.ndarray) -> Float[np.ndarray, " n"]:
    """Values with those that are missing on the line between their neighbours."""
    if not missing.any():
        return values
    at = np.arange(len(values))
    return np.where(missing, np.interp(at, at[~missing], values[~missing]), values)
