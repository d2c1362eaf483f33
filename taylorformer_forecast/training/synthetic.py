"""Made-up series of many kinds, for networks that are to forecast series which they have never seen."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from taylorformer_forecast.training import _components as parts
from taylorformer_forecast.training._components import log_uniform, pick, standardise

__all__ = ["SyntheticSeries", "synthetic_series"]

SHORTEST = 16
FINER = 4  # steps of the grid that irregular times are drawn from, for each of theirs
COMMON_PERIODS = (4, 7, 12, 24, 48, 52, 30, 60, 96, 144, 168, 288, 336, 365)
DAYS = (4, 6, 8, 12, 24, 24, 24, 48, 48, 96, 144)  # steps in a day, of series that also have a week
LONGEST_PERIOD = 400
FARTHEST = 8.0  # deviations of a logarithm

Range = tuple[float, float]


@dataclass(frozen=True)
class SyntheticSeries:
    """One made-up series.

    Parameters
    ----------
    t : float64 ndarray of shape (n,)
        Times in steps, strictly increasing: 0, 1, ..., n - 1 if regular.
    y : float64 ndarray of shape (n,)
        Values, NaN where missing.
    periods : tuple of int
        Its seasons in steps: none, one or two, the shortest first, at most a third of the length.
    recipe : tuple of str
        What it was made of, such as ``("style:structural", "trend:damped", "season:table", "noise:ar2",
        "link:exponential", "season:multiplicative")``.
    """

    t: np.ndarray
    y: np.ndarray
    periods: tuple[int, ...]
    recipe: tuple[str, ...]


@dataclass(frozen=True)
class _Style:
    """Which parts series of a style have, in which proportions (ranges of log-uniform deviations)."""

    share: float
    seasons: tuple[float, float, float]  # probabilities of none, one and two
    trended: float  # probability of a trend
    trend: Range
    wander: Range
    season: Range
    noise: Range  # of all the rest
    wanders: Mapping[str, float]
    links: Mapping[str, float]


WANDERS = {"gp": 35, "ar": 30, "cycle": 8, "walk": 15, "smooth-walk": 5, "steps": 4, "peaks": 3}
LINKS = {"identity": 62, "exponential": 24, "counts": 7, "floor": 4, "bounded": 3}

STYLES = {
    # Monthly passengers, sales: a trend, seasons, something unexplained.
    "structural": _Style(
        30, (0.12, 0.63, 0.25), 0.7, (0.1, 3.0), (0.1, 1.0), (0.2, 2.0), (0.02, 0.8), WANDERS, LINKS
    ),
    # Demand for electricity or taxis: nearly all of it is seasons.
    "regular": _Style(
        22, (0.0, 0.45, 0.55), 0.3, (0.02, 0.4), (0.03, 0.4), (1.0, 1.0), (0.01, 0.25), WANDERS, LINKS
    ),
    # Temperatures and loads: a level that wanders, with a season on it or without.
    "wandering": _Style(
        16, (0.4, 0.5, 0.1), 0.2, (0.1, 1.0), (1.0, 1.0), (0.1, 1.0), (0.01, 0.5), WANDERS, LINKS
    ),
    # Exchange rates and prices.
    "walk": _Style(
        9, (1.0, 0.0, 0.0), 0.15, (0.1, 0.5), (1.0, 1.0), (1.0, 1.0), (1e-4, 3e-2),
        {"walk": 85, "smooth-walk": 15}, {"identity": 60, "exponential": 40},
    ),
    # Epidemics, sunspots, floods.
    "peaks": _Style(
        7, (0.8, 0.2, 0.0), 0.2, (0.05, 0.5), (1.0, 1.0), (0.05, 0.4), (0.01, 0.3),
        {"peaks": 75, "cycle": 25}, {"floor": 45, "identity": 20, "exponential": 25, "counts": 10},
    ),
    # Draws of Gaussian processes, hardly disturbed.
    "smooth": _Style(
        6, (0.6, 0.3, 0.1), 0.2, (0.1, 1.0), (1.0, 1.0), (0.1, 1.0), (1e-4, 2e-2),
        {"gp": 80, "cycle": 20}, {"identity": 85, "exponential": 15},
    ),
    "noise": _Style(
        5, (0.6, 0.35, 0.05), 0.3, (0.3, 1.0), (0.3, 1.0), (0.3, 1.0), (2.0, 15.0), WANDERS,
        {"identity": 75, "exponential": 25},
    ),
    # Sales of a single article: zeros, and now and then a few.
    "intermittent": _Style(
        5, (0.5, 0.4, 0.1), 0.3, (0.1, 1.0), (0.1, 1.0), (0.2, 1.0), (0.05, 0.5), WANDERS,
        {"intermittent": 75, "counts": 25},
    ),
}  # fmt: skip


class _Draft:
    """k series of n grid points in the making, the steps of their seasons ``finer`` grid points long."""

    def __init__(self, rng: Generator, k: int, n: int, finer: int) -> None:
        self.rng, self.k, self.n, self.finer = rng, k, n, finer
        self.t = np.arange(n) / finer
        self.recipes: list[list[str]] = [[] for _ in range(k)]
        self.style = pick(rng, {name: style.share for name, style in STYLES.items()}, k)
        self.note("style", self.style)
        self.periods = self.draw_periods()

    def note(self, what: str, kinds: np.ndarray | str, rows: np.ndarray | None = None) -> None:
        """Write into the recipes of these rows what they are made of; nothing for "none"."""
        rows = np.arange(self.k) if rows is None else rows
        for row, kind in zip(rows, np.broadcast_to(kinds, len(rows)), strict=True):
            if kind != "none":
                self.recipes[row].append(f"{what}:{kind}" if what else str(kind))

    def happens(self, probability: float) -> np.ndarray:
        """Rows to which something happens."""
        return np.flatnonzero(self.rng.random(self.k) < probability)

    def of_style(self, draw: Callable[[_Style, int], np.ndarray]) -> np.ndarray:
        """Draws that depend on the style."""
        draws = np.stack([draw(style, self.k) for style in STYLES.values()])
        which = [list(STYLES).index(name) for name in self.style]
        return draws[which, np.arange(self.k)]

    def weight(self, part: str) -> np.ndarray:
        """Random deviations (k, 1) of a part."""
        return self.of_style(lambda style, k: log_uniform(self.rng, *getattr(style, part), k))[:, None]

    def kinds(self, part: str) -> np.ndarray:
        """Random kinds of a part."""
        return self.of_style(lambda style, k: pick(self.rng, getattr(style, part), k))

    def by_kind(self, kinds: np.ndarray, draw: Callable[[str, np.ndarray], np.ndarray]) -> np.ndarray:
        """Rows drawn kind by kind; 0 where the kind is "none"."""
        out = np.zeros((self.k, self.n))
        for kind in np.unique(kinds[kinds != "none"]):
            rows = np.flatnonzero(kinds == kind)
            out[rows] = draw(kind, rows)
        return out

    def draw_periods(self) -> np.ndarray:
        """Periods in steps (k, 2), the shorter one first, 0 where there is none."""
        rng, longest = self.rng, int((self.n // self.finer) / 3)
        longest_one = min(longest, LONGEST_PERIOD)
        common = [p for p in COMMON_PERIODS if p <= longest_one]
        days = [d for d in DAYS if 7 * d <= longest]
        number = self.of_style(lambda style, k: rng.choice(3, k, p=style.seasons))
        periods = np.zeros((self.k, 2), dtype=int)
        for row, seasons in enumerate(number):
            one = int(rng.choice(common)) if rng.random() < 0.7 else 0
            one = one or round(float(log_uniform(rng, 2, longest_one, 1)[0]))
            if seasons == 2 and days and rng.random() < 0.75:
                one = int(rng.choice(days))
                periods[row] = one, 7 * one
            elif seasons == 2 and longest >= 365 and rng.random() < 0.3:
                periods[row] = 7, 365
            elif seasons == 2 and 2 * one <= longest_one:
                periods[row] = one, int(rng.integers(2 * one, longest_one + 1))
            elif seasons:
                periods[row, 0] = one
        return periods

    def trend(self) -> np.ndarray:
        """Trends of deviation 1, or 0."""
        shares = {"linear": 35, "damped": 15, "logistic": 10, "broken": 25, "exponential": 15}
        trended = self.of_style(lambda style, k: self.rng.random(k) < style.trended)
        kinds = np.where(trended, pick(self.rng, shares, self.k), "none")
        self.note("trend", kinds)
        return standardise(
            self.by_kind(kinds, lambda kind, rows: parts.trend(self.rng, kind, len(rows), self.n))
        )

    def wander(self) -> np.ndarray:
        """Levels that wander, of deviation 1."""
        kinds = self.kinds("wanders")
        self.note("wander", kinds)
        return standardise(self.by_kind(kinds, self._wander))

    def _wander(self, kind: str, rows: np.ndarray) -> np.ndarray:
        rng, k, n = self.rng, len(rows), self.n
        if kind == "gp":
            return self._gaussian_process(rows)
        if kind in ("ar", "cycle"):
            order = np.full(k, 2) if kind == "cycle" else rng.integers(1, 5, k)
            return parts.coloured(rng, order, n, 1.0 if kind == "cycle" else 0.3)
        if kind == "steps":
            return parts.steps(rng, k, n, 10.0)
        if kind == "peaks":
            shortest = min(8.0, n / 8)
            return parts.peaks(rng, log_uniform(rng, shortest, n / 4, k), n)
        e = parts.heavy(rng, k, n)
        clustered = np.flatnonzero(rng.random(k) < 0.5)
        self.note("walk", "garch", rows[clustered])
        e[clustered] = parts.garch(rng, e[clustered])
        e += 0.05 * rng.standard_normal((k, 1))  # drift
        walk = np.cumsum(e, 1)
        if kind == "walk":
            return walk
        slope = parts.autoregression(1 - log_uniform(rng, 0.01, 0.3, (k, 1)), e)
        return np.cumsum(slope, 1)

    def _gaussian_process(self, rows: np.ndarray) -> np.ndarray:
        """Draws from one kernel or from the sum or the product of two, and of a linear one in some."""
        rng, k, n = self.rng, len(rows), self.n
        shares = {"rbf": 25, "matern12": 10, "matern32": 20, "matern52": 15, "rational": 15, "periodic": 15}
        own = self.periods[rows, 0] * self.finer
        period = np.where(own > 0, own, log_uniform(rng, 4.0, n / 4, k))
        how = pick(rng, {"none": 50, "sum": 30, "product": 20}, k)
        kinds = [pick(rng, shares, k), np.where(how == "none", "none", pick(rng, shares, k))]
        one, two = (self._covariances(names, period) for names in kinds)
        for names in (*kinds, how):
            self.note("kernel", names, rows)
        share = rng.uniform(0.2, 0.8, (k, 1))
        total = np.where((how == "product")[:, None], one * two, share * one + (1 - share) * two)
        draw = parts.stationary(rng, total, n)
        linear = pick(rng, {"none": 80, "linear": 12, "times-linear": 8}, k)
        self.note("kernel", linear, rows)
        line = rng.standard_normal((k, 1)) + rng.standard_normal((k, 1)) * np.linspace(-2, 2, n)
        draw = np.where((linear == "times-linear")[:, None], draw * line, draw)
        return np.where((linear == "linear")[:, None], draw + line, draw)

    def _covariances(self, kinds: np.ndarray, period: np.ndarray) -> np.ndarray:
        out = np.zeros((len(kinds), len(parts.lags(self.n))))
        for kind in np.unique(kinds[kinds != "none"]):
            these = np.flatnonzero(kinds == kind)
            out[these] = parts.kernel(self.rng, kind, self.n, period[these])
        return out

    def season(self) -> np.ndarray:
        """Seasons of deviation 1, or 0."""
        rng, out = self.rng, np.zeros((self.k, self.n))
        short, long = self.periods.T
        week = (long > 0) & (long == 7 * short)
        rows = np.flatnonzero(week)
        if len(rows):
            out[rows], kinds = parts.weekly(rng, short[rows], self.t)
            self.note("season", kinds, rows)
            self.note("season", "weekly", rows)
        for period, among in ((short, ~week & (short > 0)), (long, ~week & (long > 0))):
            rows = np.flatnonzero(among)
            if len(rows):
                one, kinds = parts.seasonal(rng, period[rows], self.t)
                self.note("season", kinds, rows)
                share = log_uniform(rng, 0.4, 2.0, (len(rows), 1)) if period is long else 1.0
                out[rows] += share * one
        return standardise(out)

    def noise(self, signal: np.ndarray) -> np.ndarray:
        """Noise of deviation 1: white or not, alike everywhere or not."""
        rng, k, n = self.rng, self.k, self.n
        kinds = pick(rng, {"white": 60, "ar1": 20, "ar2": 10, "ar3": 5, "ar4": 5}, k)
        self.note("noise", kinds)

        def draw(kind: str, rows: np.ndarray) -> np.ndarray:
            if kind == "white":
                return parts.heavy(rng, len(rows), n, calm=0.7)
            return parts.coloured(rng, np.full(len(rows), int(kind[2:])), n, cyclic=0.2)

        out = self.by_kind(kinds, draw)
        spread = pick(rng, {"none": 55, "seasonal": 10, "level": 17, "garch": 8, "slow": 10}, k)
        seasonal = np.flatnonzero((spread == "seasonal") & (self.periods[:, 0] > 2))
        spread[(spread == "seasonal") & (self.periods[:, 0] <= 2)] = "none"
        self.note("spread", spread)
        for rows, log_scale in (
            (seasonal, self._bumps(seasonal)),
            (np.flatnonzero(spread == "slow"), None),
        ):
            if log_scale is None:
                log_scale = parts.slow(rng, log_uniform(rng, 10.0, n / 2, len(rows)), n)
            out[rows] *= np.exp(rng.uniform(0.3, 1.0, (len(rows), 1)) * log_scale)
        rows = np.flatnonzero(spread == "level")
        low, high = (np.quantile(signal[rows], q, axis=1, keepdims=True) for q in (0.02, 0.98))
        height = ((signal[rows] - low) / np.maximum(high - low, 1e-9)).clip(0.0)
        out[rows] *= 0.05 + height ** rng.uniform(0.5, 1.5, (len(rows), 1))
        rows = np.flatnonzero(spread == "garch")
        out[rows] = parts.garch(rng, out[rows].clip(-8, 8))
        return standardise(out)

    def _bumps(self, rows: np.ndarray) -> np.ndarray:
        period = self.periods[rows, 0]
        phase = self.t / period[:, None] + self.rng.random((len(rows), 1))
        return parts.season_shape(self.rng, "bumps", period, phase) if len(rows) else phase

    def disturb(self, x: np.ndarray) -> None:
        """Put shifts of the level, passing changes and outliers into latent values."""
        rng, n = self.rng, self.n
        rows = self.happens(0.06)
        self.note("", "shift", rows)
        size = log_uniform(rng, 0.3, 2.0, (len(rows), 1))
        x[rows] += size * standardise(parts.steps(rng, len(rows), n, 3.0))
        rows = self.happens(0.04)
        self.note("", "interruption", rows)
        begin = rng.integers(0, n, (len(rows), 1))
        inside = np.arange(n) - begin
        inside = (inside >= 0) & (inside < log_uniform(rng, 3.0, n / 6, (len(rows), 1)))
        x[rows] += inside * rng.standard_normal((len(rows), 1))
        rows = self.happens(0.06)
        self.note("", "outliers", rows)
        hit = rng.random((len(rows), n)) < log_uniform(rng, 0.001, 0.02, (len(rows), 1))
        side = np.where(rng.random((len(rows), n)) < rng.random((len(rows), 1)), 1.0, -1.0)
        x[rows] += hit * side * log_uniform(rng, 1.0, 6.0, (len(rows), n))

    def link(self, x: np.ndarray) -> np.ndarray:
        """Values in the units of data from latent ones of deviation 1."""
        kinds = self.kinds("links")
        self.note("link", kinds)
        seasonal = np.flatnonzero(self.periods[:, 0] > 0)
        of_logarithm = np.isin(kinds, ("exponential", "counts", "intermittent"))
        self.note("season", np.where(of_logarithm, "multiplicative", "additive")[seasonal], seasonal)
        return self.by_kind(kinds, lambda kind, rows: self._link(kind, x[rows], rows))

    def _link(self, kind: str, x: np.ndarray, rows: np.ndarray) -> np.ndarray:
        rng, k = self.rng, len(x)
        unit = log_uniform(rng, 1e-2, 1e4, (k, 1))
        if kind == "identity":
            level = np.where(rng.random((k, 1)) < 0.25, 0.0, log_uniform(rng, 0.3, 100.0, (k, 1)))
            return unit * (x + level * np.where(rng.random((k, 1)) < 0.8, 1.0, -1.0))
        if kind == "floor":  # sunspots, rain, light
            low = np.quantile(x, rng.beta(0.6, 2.0), axis=1, keepdims=True)
            return unit * np.maximum(x - low, 0.0)
        if kind == "bounded":  # shares and percentages
            top = np.where(rng.random((k, 1)) < 0.5, 1.0, 100.0)
            steep = log_uniform(rng, 0.3, 3.0, (k, 1))
            return top / (1 + np.exp(-(steep * x + 2 * rng.standard_normal((k, 1))).clip(-30, 30)))
        size = log_uniform(rng, 0.04, 1.2, (k, 1))
        rate = np.exp(size * x.clip(-FARTHEST, FARTHEST))
        if kind == "exponential":
            return unit * rate
        if kind == "counts":
            rate = rate / rate.mean(1, keepdims=True) * log_uniform(rng, 0.5, 3000.0, (k, 1))
            shape = np.where(rng.random((k, 1)) < 0.5, 1e4, log_uniform(rng, 1.0, 100.0, (k, 1)))
            return rng.poisson(rate * rng.gamma(np.broadcast_to(shape, x.shape)) / shape).astype(float)
        assert kind == "intermittent"
        demand = rng.random(x.shape) < rng.uniform(0.05, 0.5, (k, 1)) * rate / rate.mean(1, keepdims=True)
        whole = 1.0 + rng.poisson(np.broadcast_to(log_uniform(rng, 0.2, 20.0, (k, 1)), x.shape))
        real = unit * np.exp(rng.uniform(0.1, 0.8, (k, 1)) * rng.standard_normal(x.shape))
        return demand * np.where(rng.random((k, 1)) < 0.7, whole, real)

    def finish(self) -> np.ndarray:
        """Mix the parts."""
        signal = self.weight("wander") * self.wander()
        signal = signal + self.weight("trend") * self.trend() + self.weight("season") * self.season()
        signal = standardise(signal)
        x = standardise(signal + self.weight("noise") * self.noise(signal))
        self.disturb(x)
        y = self.link(x)
        rows = self.happens(0.08)  # prices in cents, temperatures in tenths
        self.note("", "rounded", rows)
        grain = y[rows].std(1, keepdims=True) / log_uniform(self.rng, 5.0, 100.0, (len(rows), 1))
        grain = 10.0 ** np.round(np.log10(np.maximum(grain, 1e-9)))
        y[rows] = np.round(y[rows] / grain) * grain
        return y


def _times(rng: Generator, n: int) -> np.ndarray:
    """Grid points of n irregular times: jittered, at random, or in bursts."""
    grid = np.arange(n * FINER)
    kind = rng.integers(3)
    if kind == 0:
        return grid[::FINER] + rng.integers(0, FINER, n)
    busy = np.ones(n * FINER)
    if kind == 2:
        busy = np.exp(2.0 * parts.slow(rng, np.array([log_uniform(rng, 4.0, n / 2, 1)[0]]), n * FINER)[0])
    # The largest of Gumbel variables are a weighted sample without replacement.
    keys = np.log(busy) + rng.gumbel(size=len(grid))
    return np.sort(np.argsort(keys)[-n:])


def _hide(rng: Generator, y: np.ndarray) -> str:
    """Make points of one series missing, at most half of them; gives how."""
    n = len(y)
    if rng.random() < 0.5:
        share = log_uniform(rng, 1.5 / n, 0.4, 1)[0]
        y[rng.permutation(n)[: max(1, int(share * n))]] = np.nan
        return "missing:points"
    for _ in range(rng.integers(1, 5)):
        begin = rng.integers(0, n - 1)
        y[begin : begin + int(log_uniform(rng, 2.0, n / 8, 1)[0])] = np.nan
    return "missing:blocks"


def synthetic_series(
    n_series: int,
    length: int,
    seed: int | Generator,
    *,
    missing: float = 0.1,
    irregular: float = 0.04,
) -> list[SyntheticSeries]:
    """Make up series to pretrain a forecaster on.

    Every series has a style (such as ``"regular"``: nearly all of it is seasons, ``"walk"``, ``"peaks"``,
    ``"intermittent"``) that says which parts it has, and in which proportions:

    - a trend: linear, damped, logistic, broken, exponential;
    - a level that wanders: a Gaussian process with a sum or product of kernels, an autoregression of order 1
      to 4, a stochastic cycle, an integrated or twice integrated walk with heavy tails and clusters of large
      steps, jumps, peaks at irregular distances;
    - up to two seasons: of smooth and of sharp shapes, days and weeks with weekends and holidays; their
      amplitude, phase and shape may drift;
    - noise: white or autoregressive, with heavy tails, and with a spread that depends on the season, on the
      level, or on itself;
    - shifts of the level, passing interruptions, outliers.

    Their sum is the series itself, its logarithm (growth, multiplicative seasons), the rate of counts or of
    intermittent demand, or is cut off at zero or squeezed between bounds. Some are rounded.

    Parameters
    ----------
    n_series : int
        How many.
    length : int
        Points of each one, at least 16.
    seed : int or numpy Generator
        Seed of all randomness; the same one gives the same series.
    missing, irregular : float, default=0.1, 0.04
        Probabilities that a series has missing values, and that its times are irregular, with one step
        between neighbours on average.

    Returns
    -------
    list of SyntheticSeries
        None is constant, and all observed values are finite.

    Raises
    ------
    ValueError
        If the length is too short.

    Examples
    --------
    >>> from taylorformer_forecast.training.synthetic import synthetic_series
    >>> series = synthetic_series(64, 500, seed=0)
    >>> len(series), series[0].y.shape
    (64, (500,))
    >>> "style:regular" in {name for s in series for name in s.recipe}
    True
    """
    if length < SHORTEST:
        raise ValueError(f"length={length}: a made-up series needs at least {SHORTEST} points")
    rng = np.random.default_rng(seed)
    uneven = rng.random(n_series) < irregular
    gappy = rng.random(n_series) < missing
    out: list[SyntheticSeries | None] = [None] * n_series
    for finer, rows in ((1, np.flatnonzero(~uneven)), (FINER, np.flatnonzero(uneven))):
        if len(rows) == 0:
            continue
        draft = _Draft(rng, len(rows), length * finer, finer)
        values = draft.finish()
        for row, y, periods, recipe in zip(rows, values, draft.periods, draft.recipes, strict=True):
            t = np.arange(float(length))
            if finer > 1:
                at = _times(rng, length)
                t, y = at / finer, y[at]
                recipe.append("irregular")
            y = y.copy()
            if gappy[row]:
                recipe.append(_hide(rng, y))
            seen = np.flatnonzero(~np.isnan(y))
            if np.ptp(y[seen]) == 0:  # a demand that never came: once it does
                y[rng.choice(seen)] += 1.0
            out[row] = SyntheticSeries(t, y, tuple(int(p) for p in periods if p), tuple(recipe))
    return [series for series in out if series is not None]
