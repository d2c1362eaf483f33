"""Drafts of made-up series: how time courses are mixed, style by style."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.random import Generator

from taylorformer_forecast.training import _seasons as seasons
from taylorformer_forecast.training import _time_courses as courses
from taylorformer_forecast.training._styles import DAYS, PERIODS, STYLES, Style
from taylorformer_forecast.training._time_courses import log_uniform, pick, standardise

LONGEST_PERIOD = 400
SHORTEST_OF_PEAKS = 8  # steps of a season that has one peak
FARTHEST = 5.0  # deviations of a logarithm


class Draft:
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

    def of_style(self, draw: Callable[[Style, int], np.ndarray]) -> np.ndarray:
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
        """Rows drawn kind by kind."""
        out = np.empty((self.k, self.n))
        for kind in np.unique(kinds):
            rows = np.flatnonzero(kinds == kind)
            out[rows] = draw(kind, rows)
        return out

    def draw_periods(self) -> np.ndarray:
        """Periods in steps (k, 2), the shorter one first, 0 where there is none."""
        rng, longest = self.rng, int((self.n // self.finer) / 3)
        longest_one = min(longest, LONGEST_PERIOD)
        common = [p for p in PERIODS if p <= longest_one]
        days = [d for d in DAYS if 7 * d <= longest]
        number = self.of_style(lambda style, k: rng.choice(3, k, p=style.seasons))
        periods = np.zeros((self.k, 2), dtype=int)
        for row, n_seasons in enumerate(number):
            one = int(rng.choice(common)) if rng.random() < 0.7 else 0
            one = one or round(float(log_uniform(rng, 2, longest_one, 1)[0]))
            if n_seasons == 2 and days and rng.random() < 0.75:
                one = int(rng.choice(days))
                periods[row] = one, 7 * one
            elif n_seasons == 2 and longest >= 365 and rng.random() < 0.3:
                periods[row] = 7, 365
            elif n_seasons == 2 and 2 * one <= longest_one:
                periods[row] = one, int(rng.integers(2 * one, longest_one + 1))
            elif n_seasons:
                periods[row, 0] = one
        return periods

    def trend(self) -> np.ndarray:
        """Trends of deviation 1, or 0."""
        shares = {"linear": 35, "damped": 15, "logistic": 10, "broken": 25, "exponential": 15}
        trended = self.of_style(lambda style, k: self.rng.random(k) < style.trended)
        kinds = np.where(trended, pick(self.rng, shares, self.k), "none")
        self.note("trend", kinds)
        return standardise(
            self.by_kind(kinds, lambda kind, rows: courses.trend(self.rng, kind, len(rows), self.n))
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
            return courses.coloured(rng, order, n, cyclic=1.0 if kind == "cycle" else 0.3, forget=0.005)
        if kind == "steps":
            return courses.steps(rng, k, n, 10.0)
        if kind == "peaks":
            own = self.periods[rows, 0]
            anchored = own >= SHORTEST_OF_PEAKS
            spacing = np.where(anchored, own * self.finer, log_uniform(rng, min(8.0, n / 8), n / 4, k))
            return courses.peaks(rng, spacing, anchored, n)
        e = courses.heavy(rng, k, n)
        clustered = np.flatnonzero(rng.random(k) < 0.5)
        self.note("walk", "garch", rows[clustered])
        e[clustered] *= courses.garch(rng, e[clustered])
        e += 0.05 * rng.standard_normal((k, 1))  # drift
        walk = np.cumsum(e, 1)
        if kind == "walk":
            return walk
        slope = courses.autoregression(1 - log_uniform(rng, 0.01, 0.3, (k, 1)), e)
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
        share = np.where(how == "none", 1.0, rng.uniform(0.2, 0.8, k))[:, None]
        total = np.where((how == "product")[:, None], one * two, share * one + (1 - share) * two)
        draw = courses.stationary(rng, total, n)
        linear = pick(rng, {"none": 80, "linear": 12, "times-linear": 8}, k)
        self.note("kernel", linear, rows)
        line = rng.standard_normal((k, 1)) + rng.standard_normal((k, 1)) * np.linspace(-2, 2, n)
        draw = np.where((linear == "times-linear")[:, None], draw * line, draw)
        return np.where((linear == "linear")[:, None], draw + line, draw)

    def _covariances(self, kinds: np.ndarray, period: np.ndarray) -> np.ndarray:
        out = np.zeros((len(kinds), len(courses.lags(self.n))))
        for kind in np.unique(kinds[kinds != "none"]):
            these = np.flatnonzero(kinds == kind)
            out[these] = courses.kernel(self.rng, kind, self.n, period[these])
        return out

    def season(self) -> np.ndarray:
        """Seasons of deviation 1, or 0."""
        rng, out = self.rng, np.zeros((self.k, self.n))
        short, long = self.periods.T
        week = (long > 0) & (long == 7 * short)
        rows = np.flatnonzero(week)
        if len(rows):
            out[rows], kinds = seasons.weekly(rng, short[rows], self.t)
            self.note("season", kinds, rows)
            self.note("season", "weekly", rows)
        for period, least, most in ((short, 1.0, 1.0), (long, 0.4, 2.0)):
            rows = np.flatnonzero(~week & (period > 0))
            if len(rows):
                one, kinds = seasons.seasonal(rng, period[rows], self.t)
                self.note("season", kinds, rows)
                out[rows] += log_uniform(rng, least, most, (len(rows), 1)) * one
        return standardise(out)

    def noise(self, signal: np.ndarray) -> np.ndarray:
        """Noise of deviation 1: white or not, alike everywhere or not."""
        rng, k, n = self.rng, self.k, self.n
        kinds = pick(rng, {"white": 60, "ar1": 20, "ar2": 10, "ar3": 5, "ar4": 5}, k)
        self.note("noise", kinds)

        def draw(kind: str, rows: np.ndarray) -> np.ndarray:
            if kind == "white":
                return courses.heavy(rng, len(rows), n, calm=0.7)
            return courses.coloured(rng, np.full(len(rows), int(kind[2:])), n, cyclic=0.2, forget=0.08)

        out = self.by_kind(kinds, draw)
        spread = self.of_style(lambda style, k: pick(rng, style.spreads, k))
        spread[(spread == "seasonal") & (self.periods[:, 0] <= 2)] = "even"
        self.note("spread", spread)
        return standardise(out * self._spread(spread, out, signal))

    def _spread(self, kinds: np.ndarray, noise: np.ndarray, signal: np.ndarray) -> np.ndarray:
        """Factors of the noise that make it larger at some times than at others."""
        rng, n = self.rng, self.n

        def draw(kind: str, rows: np.ndarray) -> np.ndarray:
            k = len(rows)
            if kind == "even":
                return np.ones((k, n))
            if kind == "garch":
                return courses.garch(rng, noise[rows])
            if kind == "level":
                low, high = (np.quantile(signal[rows], q, axis=1, keepdims=True) for q in (0.02, 0.98))
                height = ((signal[rows] - low) / np.maximum(high - low, 1e-9)).clip(0.0)
                return 0.05 + height ** rng.uniform(0.5, 1.5, (k, 1))
            if kind == "slow":
                course = courses.slow(rng, log_uniform(rng, 10.0, n / 2, k), n)
            else:
                assert kind == "seasonal"
                period = self.periods[rows, 0]
                phase = self.t / period[:, None] + rng.random((k, 1))
                course = seasons.season_shape(rng, "bumps", period, phase)
            return np.exp(rng.uniform(0.3, 1.0, (k, 1)) * course.clip(-2.0, 2.0))

        return self.by_kind(kinds, draw)

    def disturb(self, x: np.ndarray) -> None:
        """Put shifts of the level, passing changes and outliers into latent values."""
        rng, n = self.rng, self.n
        rows = self.happens(0.06)
        self.note("", "shift", rows)
        size = log_uniform(rng, 0.3, 2.0, (len(rows), 1))
        x[rows] += size * standardise(courses.steps(rng, len(rows), n, 3.0))
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
            rank = (rng.beta(0.6, 2.0, (k, 1)) * (self.n - 2)).astype(int)
            return unit * np.maximum(x - np.take_along_axis(np.sort(x, 1), rank, 1), 0.0)
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

    def mix(self) -> np.ndarray:
        """Values (k, n) from all parts."""
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
