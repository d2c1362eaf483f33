"""What covariates that are known ahead add to values: regression with autocorrelated errors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from jaxtyping import Bool, Float, Int

from taylorformer_forecast.defaults import (
    EFFECT_DELAYS,
    EFFECT_KNOTS,
    EFFECT_LEAST_MOVE,
    EFFECT_ROWS_PER_TERM,
    EFFECT_SPREAD_POWER,
    MIN_SERIES_POINTS,
    MOST_CODES,
)
from taylorformer_forecast.engine.covariates import mean_and_deviation, with_earlier
from taylorformer_forecast.engine.effects.closures import beside_codes, demand_of, while_open
from taylorformer_forecast.engine.effects.covariate_gaps import filled, memory_of, unknown
from taylorformer_forecast.engine.effects.demand_rows import DemandRows
from taylorformer_forecast.engine.effects.rows import Rows, spread_power
from taylorformer_forecast.engine.effects.series_scale import deviation, mean_size, since_start
from taylorformer_forecast.engine.effects.slopes import slopes_of, slopes_of_one

VALUES_AT_ONCE = 10_000  # latest ones that are estimated from, as time grows with them
COVARIATES_AT_ONCE = 20  # of which lines bend or count later, as time grows with the cube of terms


@dataclass(frozen=True)
class CovariateEffects:
    """What covariates add to the values of series, in units of these: see :meth:`unit`.

    Every covariate adds a line that may bend at some values, and lines some steps later. All additions are 0
    on average over the data of all series of the fit together. To intermittent demand nothing is added: its
    mean is multiplied by the exponential of such a sum. At places in a season that are always zero, and
    beside codes that close, values do not count.

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
    slopes : ndarray of shape (K + 2, P)
        Additions per unit, to each of the K series of the fit; in the last row to any other, and in that
        before to any other of intermittent demand.
    of_demand : bool ndarray of shape (K,)
        Which series are intermittent demand.
    prior : ndarray of shape (P + S,)
        Variances of deviations of series from the slopes in common, and of places in the season; empty where
        none was estimated.
    means, memory : ndarray of shape (C,)
        Mean of every covariate, and correlation of its neighbouring values: see :meth:`filled`.
    relative : float
        Median over series of their units, in mean sizes of their values.
    power : float
        Power of the level with effects that errors of values that are never negative grow with.
    closing, codes : ndarray of shape (Q,)
        Number of each covariate, and its code, beside which all values are zero.
    """

    columns: np.ndarray
    delays: np.ndarray
    knots: np.ndarray
    centers: np.ndarray
    units: np.ndarray
    slopes: np.ndarray
    of_demand: np.ndarray
    means: np.ndarray
    memory: np.ndarray
    relative: float = 0.0
    closing: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=int))
    codes: np.ndarray = field(default_factory=lambda: np.zeros(0))
    prior: np.ndarray = field(default_factory=lambda: np.zeros(0))
    power: float = EFFECT_SPREAD_POWER

    @property
    def reach(self) -> int:
        """Steps by which the latest addition comes later."""
        return int(self.delays.max(initial=0))

    def slopes_of(
        self,
        y: Float[np.ndarray, " n"],
        x: Float[np.ndarray, "n C"],
        seasons: Sequence[float],
        unit: float,
    ) -> Float[np.ndarray, " P"]:
        """Slopes of one more series: those in common, and its deviations from them as far as it shows any.

        Parameters
        ----------
        y : ndarray of shape (n,)
            Its values, no intermittent demand; NaN where nothing was observed or it was closed.
        x : ndarray of shape (n, C)
            Its covariates, NaN where not known.
        seasons : sequence of float
            Lengths of seasons in steps.
        unit : float
            Unit of the additions: see :meth:`unit`. Values that are missing here may count for it.
        """
        common, seen = self.slopes[-1], ~np.isnan(y)
        if not len(self.prior) or not seen.any() or np.ptp(y[seen]) == 0 or unit == 0:
            return common
        first = max(int(seen.argmax()), len(y) - VALUES_AT_ONCE)
        y, x = y[first:], x[first:]
        terms = self.terms(with_earlier(self.filled(x), self.reach))
        known = ~np.isnan(x).all(1)
        rows = Rows.of((y - np.nanmean(y)) / unit, terms, known, self.reach, seasons)
        return common if rows is None else slopes_of_one(rows, common, self.prior)[: len(common)]

    def unit(
        self, y: Float[np.ndarray, "*B n"], x: Float[np.ndarray, "*B n C"], length: int | None = None
    ) -> Float[np.ndarray, " *B"]:
        """Units of additions to series with covariates ``x``: their deviation.

        That of others where values are few, or equal; none where covariates would have moved others clearly.
        """
        y = since_start(y)
        own, seen = deviation(y, length), ~np.isnan(y)
        others = np.array(seen.sum(-1) < MIN_SERIES_POINTS)
        for at in map(tuple, np.argwhere(~others & (own == 0))):
            added = self(with_earlier(self.filled(x[at]), self.reach))[seen[at]]
            others[at] = np.ptp(added) < EFFECT_LEAST_MOVE
        return np.where(others, self.relative * mean_size(y), own)

    def filled(self, x: Float[np.ndarray, "*B n C"]) -> Float[np.ndarray, "*B n C"]:
        """Covariates in order of time, unknown ones between their last value and their mean."""
        return filled(x, self.means, self.memory)

    def unknown(self, x: Float[np.ndarray, "*B n C"]) -> Bool[np.ndarray, "*B n"]:
        """Where a covariate with an effect on series that were not in the fit is not known.

        What it adds to values there cannot be taken off them.
        """
        moving = self.columns[(self.slopes[-2:] != 0).any(0)]
        relevant = np.union1d(moving, self.closing).astype(int)
        return np.logical_or.reduce(unknown(x, self.memory)[..., relevant], axis=-1)

    def closed(self, x: Float[np.ndarray, "*B C"]) -> Bool[np.ndarray, "*B"]:
        """Whether covariates say that all is zero."""
        return beside_codes(x, self.closing, self.codes)

    def terms(self, x: Float[np.ndarray, "n R C"]) -> Float[np.ndarray, "n P"]:
        """Lines and bends in their units; 0, the mean, where a covariate is not known or its code closes."""
        x = x.copy()
        for k, column in enumerate(self.closing):
            x[..., column][beside_codes(x, self.closing[k : k + 1], self.codes[k : k + 1])] = np.nan
        return np.nan_to_num((self._raw(x) - self.centers) / self.units)

    def _raw(self, x: Float[np.ndarray, "n R C"]) -> Float[np.ndarray, "n P"]:
        """Covariates, and what they have beyond the knots."""
        values = x[:, self.delays, self.columns]
        return np.where(np.isnan(self.knots), values, np.maximum(values - np.nan_to_num(self.knots), 0.0))

    def __call__(
        self, x: Float[np.ndarray, "n R C"], number: Int[np.ndarray, " n"] | int = -1
    ) -> Float[np.ndarray, " n"]:
        """What covariates add to the values of series, or to the logarithm of the mean of demand.

        It is 0 where they say that all is zero: see :meth:`closed`.

        Parameters
        ----------
        x : ndarray of shape (n, reach + 1, C)
            Covariates of every value, and those one step before it and so on.
        number : int or int ndarray of shape (n,)
            Number of the series, -1 of none of the fit, -2 of none with intermittent demand.
        """
        return np.where(self.closed(x[:, 0]), 0.0, (self.terms(x) * self.slopes[number]).sum(1))


def fit_effects(
    y: Sequence[Float[np.ndarray, " n"]],
    x: Sequence[Float[np.ndarray, "n C"]],
    seasons: Sequence[float] = (),
    length: int | None = None,
) -> CovariateEffects:
    """Estimate what covariates add to series.

    The rest of every series is a mean of every place in the season and an autoregression with lags of some
    steps and seasons. It is estimated in turn with the additions: trends, seasons and slow movement that a
    covariate shares with values count for little. Lines, bends and later lines of covariates have normal
    priors of estimated variance: one that explains hardly more than chance adds nothing
    (:mod:`~taylorformer_forecast.engine.effects.relevance`). Series have additions in common, and deviations
    from these as far as they are unlike.

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
    CovariateEffects
        Those that series have in common, where one has too few values for more.

    References
    ----------
    Cochrane and Orcutt, "Application of least squares regression to relationships containing
    auto-correlated error terms", Journal of the American Statistical Association, 1949; Huber, "Robust
    statistics", 1981, section 7.8.

    Examples
    --------
    >>> import numpy as np
    >>> from taylorformer_forecast.engine.covariates import with_earlier
    >>> from taylorformer_forecast.engine.effects.covariate_effects import fit_effects
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(200, 2))  # the second has no effect
    >>> y = rng.normal(size=200).cumsum() / 10 + np.maximum(x[:, 0], 0)
    >>> effects = fit_effects([y], [x])
    >>> at = with_earlier(np.array([[-1.0, 0.0], [0.0, 0.0], [1.0, 0.0], [1.0, 1.0]]), effects.reach)
    >>> ((effects(at) - effects(at)[0]) * effects.unit(y, x)).round().tolist()
    [0.0, 0.0, 1.0, 1.0]
    """
    values, places, closing, codes = while_open(y, x, seasons)
    closed = [beside_codes(known, closing, codes) for known in x]
    started = [since_start(np.where(at, np.nan, own)) for at, own in zip(closed, y, strict=True)]
    units = np.array([float(deviation(own, length)) for own in started])
    y = values
    of_demand = np.array([demand_of(own[None], [zero])[0] for own, zero in zip(y, places, strict=True)])
    y = [since_start(own) for own in y]
    varied = [k for k, own in enumerate(y) if units[k] > 0 and deviation(own) > 0]
    latest, known = ([own[-VALUES_AT_ONCE:] for own in one] for one in (y, x))
    seen = [~np.isnan(own) if k in varied else np.zeros(len(own), bool) for k, own in enumerate(latest)]
    found = replace(_without_slopes(known, seen, of_demand), closing=closing, codes=codes)
    if not varied:
        return found
    added: dict[int, Rows] = {}
    multiplied: dict[int, DemandRows] = {}
    for k in varied:
        terms = found.terms(with_earlier(found.filled(known[k]), found.reach))
        given = ~np.isnan(known[k]).all(1)
        if of_demand[k]:
            given &= seen[k]
            if latest[k][given].sum() > 0:
                multiplied[k] = DemandRows(latest[k][given], terms[given], np.flatnonzero(given), seasons)
        elif rows := Rows.of((latest[k] - np.nanmean(y[k])) / units[k], terms, given, found.reach, seasons):
            added[k] = rows
    slopes, prior, of_added = found.slopes, found.prior, {}
    kinds = np.stack([found.columns, found.delays, ~np.isnan(found.knots)])
    groups = np.unique(kinds, axis=1, return_inverse=True)[1].ravel()
    for rows_of_kind, other in ((added, -1), (multiplied, -2)):
        if rows_of_kind:
            slopes[other], each, apart = slopes_of(rows_of_kind, groups)
            if other == -1:
                of_added, prior = each, apart if len(each) > 1 else prior
            slopes[:-2][of_demand == (other == -2)] = slopes[other]
            slopes[list(each)] = [own[: len(groups)] for own in each.values()]
    power = spread_power([(added[k], own, np.nanmean(y[k]) / units[k]) for k, own in of_added.items()])
    sizes = [units[k] / float(mean_size(started[k])) for k in added]
    relative = float(np.median(sizes)) if sizes else 0.0
    return replace(found, slopes=slopes, relative=relative, prior=prior, power=power)


def _without_slopes(
    x: Sequence[Float[np.ndarray, "n C"]], seen: Sequence[Bool[np.ndarray, " n"]], of_demand: np.ndarray
) -> CovariateEffects:
    """Terms of rows with values, their slopes 0: lines and, where rows are many, bends and later lines."""
    every, means = (
        np.concatenate([one[at] for one, at in zip(x, seen, strict=True)]),
        mean_and_deviation(np.concatenate(x))[0],
    )
    n_columns = every.shape[1]
    count = np.array([len(np.unique(column[~np.isnan(column)])) for column in every.T])
    varied, many = count > 1, count > MOST_CODES
    most = len(every) / EFFECT_ROWS_PER_TERM if varied.sum() <= COVARIATES_AT_ONCE else 0.0
    bends = many & (most >= varied.sum() + EFFECT_KNOTS * many.sum())
    later = varied & (most >= (1 + EFFECT_DELAYS) * varied.sum())
    levels = np.arange(1, EFFECT_KNOTS + 1) / (EFFECT_KNOTS + 1)
    places = [(number, 0, np.nan) for number in range(n_columns)]
    for number in range(n_columns):
        if bends[number]:
            places += [(number, 0, knot) for knot in np.unique(np.nanquantile(every[:, number], levels))]
        if later[number]:
            places += [(number, delay, np.nan) for delay in range(1, EFFECT_DELAYS + 1)]
    columns, delays, knots = (np.array(part) for part in zip(*places, strict=True))
    zero = np.zeros(len(columns))
    slopes = np.zeros((len(of_demand) + 2, len(columns)))
    found = CovariateEffects(
        columns, delays, knots, zero, zero + 1, slopes, of_demand, means, memory_of(x, means)
    )
    earlier = [with_earlier(one, found.reach) for one in x]
    terms = np.concatenate([found._raw(one[at]) for one, at in zip(earlier, seen, strict=True)])
    centers, units = mean_and_deviation(terms)
    return replace(found, centers=centers, units=units)
