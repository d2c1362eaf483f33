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
    EFFECT_ROWS_PER_TERM,
    MIN_SERIES_POINTS,
)
from taylorformer_forecast.engine.autoregression import Rows
from taylorformer_forecast.engine.covariates import center_and_spread
from taylorformer_forecast.engine.relevance import Regressions, relevant_slopes

N_ROUNDS = 6  # of slopes and autoregression in turn
VALUES_AT_ONCE = 10_000  # latest ones that are estimated from, as time grows with them
COVARIATES_AT_ONCE = 20  # of which lines bend or count later, as time grows with the cube of terms
SERIES_AT_ONCE = 256  # series that are estimated together, others given what these have in common


@dataclass(frozen=True)
class CovariateEffects:
    """What covariates add to the values of series, in units of these: see :meth:`unit`.

    Every covariate adds a line that may bend at some values, and lines some steps later. All additions are 0
    on average over the data of all series of the fit together.

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
    relative : float
        Median over series of their units, in mean sizes of their values.
    """

    columns: np.ndarray
    delays: np.ndarray
    knots: np.ndarray
    centers: np.ndarray
    units: np.ndarray
    slopes: np.ndarray
    relative: float = 0.0

    @property
    def reach(self) -> int:
        """Steps by which the latest addition comes later."""
        return int(self.delays.max(initial=0))

    def unit(self, y: Float[np.ndarray, "*B n"], length: int | None = None) -> Float[np.ndarray, " *B"]:
        """Units of additions to series: their :func:`deviation`; of few or equal values that of others."""
        own, few = deviation(y, length), (~np.isnan(y)).sum(-1) < MIN_SERIES_POINTS
        return np.where(few | (own == 0), self.relative * mean_size(y), own)

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
    length: int | None = None,
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
    length : int, optional
        Values within which deviations are meant that are units, by default all.

    Returns
    -------
    CovariateEffects or None
        None where no series has enough values, or one is intermittent: it would be so no more.

    References
    ----------
    Cochrane and Orcutt, "Application of least squares regression to relationships containing
    auto-correlated error terms", Journal of the American Statistical Association, 1949; Huber, "Robust
    statistics", 1981, section 7.8.

    Examples
    --------
    >>> import numpy as np
    >>> from taylorformer_forecast.engine.effects import fit_effects, with_earlier
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(200, 2))  # the second has no effect
    >>> y = rng.normal(size=200).cumsum() / 10 + np.maximum(x[:, 0], 0)
    >>> effects = fit_effects([y], [x])
    >>> at = with_earlier(np.array([[-1.0, 0.0], [0.0, 0.0], [1.0, 0.0], [1.0, 1.0]]), effects.reach)
    >>> ((effects(at) - effects(at)[0]) * effects.unit(y)).round().tolist()
    [0.0, 0.0, 1.0, 1.0]
    """
    if any(bool(is_intermittent(torch.as_tensor(own)[None])[0, -1]) for own in y):
        return None
    y = [since_start(own) for own in y]
    units = np.array([float(deviation(own, length)) for own in y])
    sizes = np.array([float(mean_size(own)) for own in y])
    varied = [k for k, unit in enumerate(units) if unit > 0]
    if not varied:  # constants: nothing adds anything
        return _without_slopes(x, len(y))
    latest = {k: ((y[k] - np.nanmean(y[k])) / units[k])[-VALUES_AT_ONCE:] for k in varied}
    known = {k: x[k][-VALUES_AT_ONCE:] for k in varied}
    found = _without_slopes([known[k][~np.isnan(latest[k])] for k in varied], len(y))
    rows = {}
    for k in varied:
        terms = found.terms(with_earlier(known[k], found.reach))
        one = Rows.of(latest[k], terms, ~np.isnan(known[k]).all(1), found.reach, seasons)
        if one is not None:
            rows[k] = one
    if not rows:
        return None
    columns = found.columns
    kinds = np.stack([columns, found.delays, ~np.isnan(found.knots)])
    groups = np.unique(kinds, axis=1, return_inverse=True)[1].ravel()
    some = [list(rows)[k] for k in evenly(len(rows), SERIES_AT_ONCE).tolist()]
    common, own = np.zeros(len(columns)), np.zeros((len(some), len(columns)))
    for _ in range(N_ROUNDS):
        parts = [rows[k].whitened(common + part) for k, part in zip(some, own, strict=True)]
        common, own, prior = relevant_slopes(Regressions.of(parts), groups)
        for k, part in zip(some, own, strict=True):
            rows[k] = rows[k].without_outliers(common + part)
    slopes = found.slopes + common
    slopes[some] += own
    for k in rows.keys() - set(some):  # too many for all to be estimated together
        for _ in range(2):
            slopes[k] = common + Regressions.of([rows[k].whitened(slopes[k])]).deviations(common, prior)[0]
            rows[k] = rows[k].without_outliers(slopes[k])
    relative = float(np.median([units[k] / sizes[k] for k in rows]))
    return replace(found, slopes=slopes, relative=relative)


def since_start(y: Float[np.ndarray, "*B n"]) -> Float[np.ndarray, "*B n"]:
    """Values without zeros before the first other one, as statistical forecasts see them.

    They stay where a value is negative, or all are zero.

    Examples
    --------
    >>> import numpy as np
    >>> from taylorformer_forecast.engine.effects import since_start
    >>> since_start(np.array([0.0, 0.0, 3.0, 0.0])).tolist()
    [nan, nan, 3.0, 0.0]
    """
    moved = np.logical_or.accumulate(np.nan_to_num(y) != 0, -1)
    counts = moved[..., -1:] & ~(y < 0).any(-1, keepdims=True)
    return np.where(counts & ~moved, np.nan, y)


def mean_size(y: Float[np.ndarray, "*B n"]) -> Float[np.ndarray, " *B"]:
    """Mean absolute value of series, of which some may be missing."""
    return np.abs(np.nan_to_num(y)).sum(-1) / np.maximum((~np.isnan(y)).sum(-1), 1)


def deviation(y: Float[np.ndarray, "*B n"], length: int | None = None) -> Float[np.ndarray, " *B"]:
    """Standard deviation of series within windows of some ``length``, by default within all; 0 of constants.

    Examples
    --------
    >>> import numpy as np
    >>> from taylorformer_forecast.engine.effects import deviation
    >>> y = np.array([1.0, 3.0, 1.0, 3.0, 101.0, 103.0, 101.0, 103.0])
    >>> deviation(y).round().item(), deviation(y[:4], 2).round().item()
    (50.0, 1.0)
    """
    seen = ~np.isnan(y)
    mean = np.where(seen, y, 0.0).sum(-1, keepdims=True) / np.maximum(seen.sum(-1, keepdims=True), 1)
    rest, n = np.where(seen, y - mean, 0.0), y.shape[-1]
    size = n if length is None else min(length, n)
    every = np.stack([seen, rest, rest**2]).cumsum(-1)
    every = np.concatenate([np.zeros_like(every[..., :1]), every], -1)
    count, first, second = every[..., size:] - every[..., : n + 1 - size]
    square = np.maximum(second - first**2 / np.maximum(count, 1), 0.0).sum(-1) / np.maximum(count.sum(-1), 1)
    found, largest = np.sqrt(square), np.abs(np.nan_to_num(y)).max(-1, initial=0.0)
    return np.where(found > 1e-13 * largest, found, 0.0)  # less is rounding


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
    centers, units = center_and_spread(terms)
    return replace(found, centers=centers, units=units)
