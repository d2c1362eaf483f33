"""What covariates that are known ahead add to values: regression with autocorrelated errors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Float, Int

from taylorformer_forecast.baselines.intermittent import is_intermittent
from taylorformer_forecast.core.window import evenly
from taylorformer_forecast.defaults import (
    EFFECT_DELAYS,
    EFFECT_KNOTS,
    EFFECT_ROWS_PER_LAG,
    EFFECT_ROWS_PER_TERM,
)
from taylorformer_forecast.engine.relevance import Regressions, relevant_slopes

N_ROUNDS = 6  # of slopes and autoregression in turn
RIDGE = 1e-3  # of the autoregression, in its variance, so that it can be solved for
VALUES_AT_ONCE = 10_000  # latest ones that are estimated from, as time grows with them
COVARIATES_AT_ONCE = 20  # of which lines bend or count later, as time grows with the cube of terms
SERIES_AT_ONCE = 256  # series that are estimated together, others given what these have in common


@dataclass(frozen=True)
class CovariateEffects:
    """What covariates add to the values of series, in standard deviations of these.

    Every covariate adds a line that may bend at some values, and lines some steps later. All additions are 0
    on average over the data of the fit: what is left has the level of the values.

    Parameters
    ----------
    columns : int ndarray of shape (P,)
        Number of the covariate of every term.
    delays : int ndarray of shape (P,)
        Steps after which it counts.
    knots : ndarray of shape (P,)
        Where a term begins to count; NaN for the line itself.
    centers, units : ndarray of shape (P,)
        Mean and standard deviation of every term.
    slopes : ndarray of shape (K + 1, P)
        Additions per unit, to each of the K series of the fit; in the last row to any other.
    """

    columns: np.ndarray
    delays: np.ndarray
    knots: np.ndarray
    centers: np.ndarray
    units: np.ndarray
    slopes: np.ndarray

    @property
    def reach(self) -> int:
        """Steps by which the latest addition comes later."""
        return int(self.delays.max(initial=0))

    def terms(self, x: Float[np.ndarray, "n R C"]) -> Float[np.ndarray, "n P"]:
        """Lines and bends in their units; 0, the mean, where a covariate is not known."""
        return np.nan_to_num((self._raw(x) - self.centers) / self.units)

    def _raw(self, x: Float[np.ndarray, "n R C"]) -> Float[np.ndarray, "n P"]:
        """Covariates, and what they have beyond the knots."""
        values = x[:, self.delays, self.columns]
        return np.where(np.isnan(self.knots), values, np.maximum(values - np.nan_to_num(self.knots), 0.0))

    def __call__(
        self, x: Float[np.ndarray, "n R C"], number: Int[np.ndarray, " n"] | int = -1
    ) -> Float[np.ndarray, " n"]:
        """What covariates add to the values of series.

        Parameters
        ----------
        x : ndarray of shape (n, reach + 1, C)
            Covariates of every value, and those one step before it and so on: see :func:`with_earlier`.
        number : int or int ndarray of shape (n,)
            Number of the series, -1 of none of the fit.
        """
        return (self.terms(x) * self.slopes[number]).sum(1)


def with_earlier(x: Float[np.ndarray, "*B n C"], reach: int) -> Float[np.ndarray, "*B n R C"]:
    """Covariates of each step of a grid, and of the steps before; NaN before the first.

    Examples
    --------
    >>> import numpy as np
    >>> from taylorformer_forecast.engine.effects import with_earlier
    >>> with_earlier(np.array([[1.0], [2.0]]), 1)[..., 0].tolist()
    [[1.0, nan], [2.0, 1.0]]
    """
    n, before = x.shape[-2], np.full((*x.shape[:-2], reach, x.shape[-1]), np.nan)
    padded = np.concatenate([before, x], -2)
    return np.stack([padded[..., reach - back : reach - back + n, :] for back in range(reach + 1)], -2)


def fit_effects(
    y: Sequence[Float[np.ndarray, " n"]],
    x: Sequence[Float[np.ndarray, "n C"]],
    seasons: Sequence[float] = (),
) -> CovariateEffects | None:
    """Estimate what covariates add to series.

    The rest of every series is an autoregression with lags of some steps and seasons. It is estimated in turn
    with the additions: trends, seasons and slow movement that a covariate shares with values count for
    little. Lines, bends and later lines of covariates have normal priors of estimated variance: one that
    explains hardly more than chance adds nothing (:mod:`~taylorformer_forecast.engine.relevance`). Series
    have additions in common, and deviations from these as far as they are unlike.

    Parameters
    ----------
    y : sequence of K ndarrays of shape (n,)
        Series on regular grids, NaN where nothing was observed.
    x : sequence of K ndarrays of shape (n, C)
        Covariates, NaN where not known.
    seasons : sequence of float
        Lengths of seasons in steps.

    Returns
    -------
    CovariateEffects or None
        None where no series has enough values, or one is intermittent: it would be so no more.

    References
    ----------
    Cochrane and Orcutt, "Application of least squares regression to relationships containing
    auto-correlated error terms", Journal of the American Statistical Association, 1949.

    Examples
    --------
    >>> import numpy as np
    >>> from taylorformer_forecast.engine.effects import fit_effects, spread_of, with_earlier
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(200, 2))  # the second has no effect
    >>> y = rng.normal(size=200).cumsum() / 10 + np.maximum(x[:, 0], 0)
    >>> effects = fit_effects([y], [x])
    >>> at = with_earlier(np.array([[-1.0, 0.0], [0.0, 0.0], [1.0, 0.0], [1.0, 1.0]]), effects.reach)
    >>> ((effects(at) - effects(at)[0]) * spread_of(y)).round().tolist()
    [0.0, 0.0, 1.0, 1.0]
    """
    if any(bool(is_intermittent(torch.as_tensor(own)[None])[0, -1]) for own in y):
        return None
    y = [(own - np.nanmean(own)) / spread_of(own) for own in y]
    y, x = ([one[-VALUES_AT_ONCE:] for one in values] for values in (y, x))
    found = _without_slopes([one[~np.isnan(own)] for own, one in zip(y, x, strict=True)], len(y))
    columns = found.columns
    kinds = np.stack([columns, found.delays, ~np.isnan(found.knots)])
    groups = np.unique(kinds, axis=1, return_inverse=True)[1].ravel()
    rows = [Rows.of(own, one, found, seasons) for own, one in zip(y, x, strict=True)]
    enough = [k for k, own in enumerate(rows) if own is not None]
    if not enough:
        return None
    some = [enough[k] for k in evenly(len(enough), SERIES_AT_ONCE).tolist()]
    chosen = [own for k in some if (own := rows[k]) is not None]
    common, own = np.zeros(len(columns)), np.zeros((len(chosen), len(columns)))
    for _ in range(N_ROUNDS):
        parts = [rest.whitened(common + part) for rest, part in zip(chosen, own, strict=True)]
        common, own, prior = relevant_slopes(Regressions.of(parts), groups)
    slopes = found.slopes + common
    slopes[some] += own
    for k in set(enough) - set(some):  # too many for all to be estimated together
        rest = rows[k]
        assert rest is not None
        for _ in range(2):
            slopes[k] = common + Regressions.of([rest.whitened(slopes[k])]).deviations(common, prior)[0]
    return replace(found, slopes=slopes)


def spread_of(y: Float[np.ndarray, " n"]) -> float:
    """Standard deviation of values, of which some may be missing; 1 of constants."""
    spread = float(np.nanstd(y))
    return spread if spread > 1e-9 * float(np.nanmax(np.abs(y))) else 1.0


def _without_slopes(x: Sequence[Float[np.ndarray, "n C"]], n_series: int) -> CovariateEffects:
    """Terms of covariates: lines, and where there are many rows bends and later lines, with slopes of 0."""
    every = np.concatenate(x)
    n_columns = every.shape[1]
    most = len(every) / (EFFECT_ROWS_PER_TERM * n_columns) if n_columns <= COVARIATES_AT_ONCE else 0.0
    levels = np.arange(1, EFFECT_KNOTS + 1) / (EFFECT_KNOTS + 1)
    places = [(number, 0, np.nan) for number in range(n_columns)]
    for number in range(n_columns):
        values = every[~np.isnan(every[:, number]), number]
        if most >= 1 + EFFECT_KNOTS and len(np.unique(values)) > 2 * (EFFECT_KNOTS + 1):
            places += [(number, 0, knot) for knot in np.unique(np.quantile(values, levels))]
        if most >= 1 + EFFECT_DELAYS:
            places += [(number, delay, np.nan) for delay in range(1, EFFECT_DELAYS + 1)]
    columns, delays, knots = (np.array(part) for part in zip(*places, strict=True))
    zero = np.zeros(len(columns))
    found = CovariateEffects(columns, delays, knots, zero, zero + 1, np.zeros((n_series + 1, len(columns))))
    terms = np.concatenate([found._raw(with_earlier(one, found.reach)) for one in x])
    known = ~np.isnan(terms)
    count = np.maximum(known.sum(0), 1)
    centers = np.where(known, terms, 0.0).sum(0) / count
    units = np.sqrt((np.where(known, terms - centers, 0.0) ** 2).sum(0) / count)
    return replace(found, centers=centers, units=np.where(units > 0, units, 1.0))


@dataclass(frozen=True)
class Rows:
    """Values and terms of one series, and rows that are known with those some lags before.

    Parameters
    ----------
    y : ndarray of shape (n,)
        Values.
    terms : ndarray of shape (n, P)
        Terms.
    at : int ndarray of shape (m,)
        Rows.
    lags : list of int
        Lags L.
    """

    y: np.ndarray
    terms: np.ndarray
    at: np.ndarray
    lags: list[int]

    @classmethod
    def of(
        cls, y: np.ndarray, x: np.ndarray, effects: CovariateEffects, seasons: Sequence[float]
    ) -> Rows | None:
        """Rows of a series; None if they are too few."""
        x, n = with_earlier(x, effects.reach), len(y)
        known = ~(np.isnan(y) | np.isnan(x).any((1, 2)))
        whole = [round(season) for season in seasons]
        sought = [1, *whole, 2, *(season + 1 for season in whole), 3, *(season - 1 for season in whole)]
        lags = [lag for lag in dict.fromkeys(sought) if 0 < lag <= n // 3]
        lags = lags[: max(3, int(known.sum()) // EFFECT_ROWS_PER_LAG)]
        at = np.arange(max(lags, default=1), n)
        at = at[known[at] & np.all([known[at - lag] for lag in lags], axis=0)]
        return cls(np.nan_to_num(y), effects.terms(x), at, lags) if len(at) >= 2 * (len(lags) + 1) else None

    def whitened(self, slopes: Float[np.ndarray, " P"]) -> tuple[np.ndarray, np.ndarray, int]:
        """Values and terms less what the autoregression of the rest predicts, and its number of lags."""
        rest, n_lags = self.y - self.terms @ slopes, len(self.lags)
        past = np.stack([rest[self.at - lag] for lag in self.lags], 1)
        past -= past.mean(0)
        gram = past.T @ past + RIDGE * len(past) * max(float(past.var()), 1e-12) * np.eye(n_lags)
        weights = np.linalg.solve(gram, past.T @ (rest[self.at] - rest[self.at].mean()))
        y, terms = self.y[self.at], self.terms[self.at]
        for weight, lag in zip(weights, self.lags, strict=True):
            y, terms = y - weight * self.y[self.at - lag], terms - weight * self.terms[self.at - lag]
        return y - y.mean(), terms - terms.mean(0), n_lags
