"""How processes become series: signal, noise, events, link and observation of a batch of equal lengths."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator

from taylorformer_forecast.synthetic.archetypes import ARCHETYPES
from taylorformer_forecast.synthetic.counts import COUNTS
from taylorformer_forecast.synthetic.frame import MAX_SEASONS, Frame, log_uniform, make_frame, standardise
from taylorformer_forecast.synthetic.observation import OBSERVATIONS
from taylorformer_forecast.synthetic.processes import Switch, draw_component
from taylorformer_forecast.synthetic.season import modulate
from taylorformer_forecast.synthetic.weights import (
    CALENDAR_SHARES,
    EVENT_SHARES,
    MIXED,
    MODULATED,
    OBSERVATION_SHARES,
)

FARTHEST = 5.0  # of a logarithm, from its mean


class Composition:
    """k series of n points of given archetypes.

    Parameters
    ----------
    rng : Generator
        Source of randomness.
    archetype : str ndarray of shape (k,)
        Names of archetypes.
    n : int
        Points of every series.
    switch : Switch
        Processes that are on.

    Attributes
    ----------
    frame : Frame
        Seasons and dates.
    link : str ndarray of shape (k,)
        ``"multiplicative"``, ``"additive"``, ``"signed"`` or the process of counts.
    used : list of list of str
        Processes of each series.

    Examples
    --------
    >>> import numpy as np
    >>> from taylorformer_forecast.synthetic.composition import Composition
    >>> from taylorformer_forecast.synthetic.processes import Switch
    >>> one = Composition(np.random.default_rng(0), np.array(["monthly"]), 60, Switch(["linear", "profile"]))
    >>> one.values().shape
    (1, 60)
    """

    def __init__(self, rng: Generator, archetype: np.ndarray, n: int, switch: Switch) -> None:
        self.rng, self.archetype, self.n, self.switch = rng, archetype, n, switch
        self.k = len(archetype)
        self.used: list[list[str]] = [[] for _ in range(self.k)]
        self._groups = [
            (ARCHETYPES[name], np.flatnonzero(archetype == name)) for name in np.unique(archetype)
        ]
        frequency = np.array([ARCHETYPES[name].frequency for name in archetype])
        self.frame = make_frame(rng, n, frequency, self._periods())
        self.link = self._choose("links")
        self.link[self.link == ""] = "multiplicative"
        self._note(np.where(np.isin(self.link, list(COUNTS)), self.link, ""))

    def values(self) -> np.ndarray:
        """Draw the values (k, n), NaN where missing."""
        x = self._signal(self.frame, np.arange(self.k))
        rows = self.switch.happens(self.rng, "mixture", MIXED, self.k)
        if len(rows):
            self._note("mixture", rows)
            share = self.rng.uniform(0.2, 0.8, (len(rows), 1))
            x[rows] = share * x[rows] + (1 - share) * self._signal(self.frame.rows(rows), rows)
        x += self._size("noise") * self._part("noises", self.frame, np.arange(self.k))
        self._events(x)
        return self._observe(self._apply_link(x))

    def _note(self, kinds: np.ndarray | str, rows: np.ndarray | None = None) -> None:
        """Record processes of these rows; nothing for ``""``."""
        rows = np.arange(self.k) if rows is None else rows
        for row, kind in zip(rows, np.broadcast_to(kinds, len(rows)), strict=True):
            if kind:
                self.used[row].append(str(kind))

    def _of(self, rows: np.ndarray, field: str) -> np.ndarray:
        """A number or range of the archetypes of some rows."""
        out = {name: getattr(ARCHETYPES[name], field) for name in np.unique(self.archetype)}
        return np.array([out[name] for name in self.archetype[rows]])

    def _size(self, part: str, rows: np.ndarray | None = None) -> np.ndarray:
        """Random deviations (k, 1) of a part."""
        low, high = np.log(self._of(np.arange(self.k) if rows is None else rows, part)).T
        return np.exp(self.rng.uniform(low, high))[:, None]

    def _choose(self, field: str) -> np.ndarray:
        out = np.empty(self.k, dtype="U24")
        for archetype, rows in self._groups:
            out[rows] = self.switch.choose(self.rng, getattr(archetype, field), len(rows))
        return out

    def _periods(self) -> np.ndarray:
        periods = np.zeros((self.k, MAX_SEASONS))
        for archetype, rows in self._groups:
            options, p = list(archetype.periods), np.array(list(archetype.periods.values()), dtype=float)
            padded = np.zeros((len(options), MAX_SEASONS))
            for i, option in enumerate(options):
                fitting = [period for period in option if 2 * period <= self.n]
                padded[i, : len(fitting)] = fitting
            periods[rows] = padded[self.rng.choice(len(options), len(rows), p=p / p.sum())]
        return periods

    def _part(self, field: str, frame: Frame, rows: np.ndarray, has: np.ndarray | None = None) -> np.ndarray:
        """Draw one part of these rows, where they have it."""
        kinds = self._choose(field)[rows]
        if has is not None:
            kinds[~has] = ""
        self._note(kinds, rows)
        return draw_component(self.rng, frame, kinds)

    def _signal(self, frame: Frame, rows: np.ndarray) -> np.ndarray:
        """Draw the sum of trend, level, seasons and effects of the calendar."""
        rng, k = self.rng, len(rows)
        has = rng.random(k) < self._of(rows, "trended")
        x = self._size("trend", rows) * standardise(self._part("trends", frame, rows, has))
        x += self._size("level", rows) * standardise(self._part("levels", frame, rows))
        x += self._seasons(frame, rows)
        for frequency, shares in CALENDAR_SHARES.items():
            for name, share in shares.items():
                here = self.switch.happens(rng, name, share * (frame.frequency == frequency), k)
                if len(here):
                    self._note(name, rows[here])
                    effect = draw_component(rng, frame.rows(here), np.full(len(here), name))
                    x[here] += (
                        log_uniform(rng, 0.2, 1.0, (len(here), 1))
                        * self._size("season", rows[here])
                        * standardise(effect)
                    )
        return x

    def _seasons(self, frame: Frame, rows: np.ndarray) -> np.ndarray:
        rng, k = self.rng, len(rows)
        has = rng.random(k) < self._of(rows, "seasonal")
        size = self._size("season", rows)
        out = np.zeros((k, self.n))
        both = np.zeros(k, dtype=bool)  # rows whose first season contains their second
        for season in range(MAX_SEASONS):
            here = np.flatnonzero(has & (frame.periods[:, season] > 0) & ~(both & (season == 1)))
            if len(here) == 0:
                continue
            kinds = self._choose("seasons")[rows[here]]
            part = frame.rows(here, season)
            week = np.isclose(part.periods[:, 1], 7 * part.periods[:, 0]) & (season == 0)
            kinds[(kinds == "working_week") & ~week] = next(
                iter(self.switch.weights({"harmonics": 1, "profile": 1})), ""
            )
            both[here] |= kinds == "working_week"
            self._note(kinds, rows[here])
            one = draw_component(rng, part, kinds)
            slow = self.switch.happens(rng, "seasonal_modulation", MODULATED, len(here))
            self._note("seasonal_modulation", rows[here[slow]])
            one[slow] = modulate(rng, part.rows(slow), one[slow])
            relative = log_uniform(rng, 0.4, 2.0, (len(here), 1)) if season else 1.0
            out[here] += size[here] * relative * standardise(one)
        return out

    def _events(self, x: np.ndarray) -> None:
        """Add events, in units between the deviation of the values and that of their changes."""
        unit = np.sqrt(x.std(1) * np.diff(x, axis=1).std(1) + 1e-12)[:, None]
        for name, share in EVENT_SHARES.items():
            rows = self.switch.happens(self.rng, name, share, self.k)
            self._note(name, rows)
            effect = draw_component(self.rng, self.frame.rows(rows), np.full(len(rows), name))
            x[rows] += unit[rows] * effect

    def _apply_link(self, x: np.ndarray) -> np.ndarray:
        """Values in the units of data from a sum in units of the level."""
        rng, out = self.rng, np.empty_like(x)
        x = x - x.mean(1, keepdims=True)
        for link in np.unique(self.link):
            rows = np.flatnonzero(self.link == link)
            z, k = x[rows], len(rows)
            unit = log_uniform(rng, 1e-2, 1e5, (k, 1))
            if link == "signed":
                far = np.where(rng.random((k, 1)) < 0.25, 0.0, log_uniform(rng, 0.3, 30.0, (k, 1)))
                offset = far * z.std(1, keepdims=True) * rng.choice([-1.0, 1.0], (k, 1), p=[0.25, 0.75])
                out[rows] = unit * (offset + z)
            elif link == "additive":
                # Values stay positive: a level that would not suffice is raised.
                low, high = z.min(1, keepdims=True), z.max(1, keepdims=True)
                lift = rng.exponential(0.2, (k, 1)) * (high - low)
                out[rows] = unit * (np.maximum(1.0, lift - low) + z)
            else:
                rate = np.exp(z.clip(-FARTHEST, FARTHEST))
                if link == "multiplicative":
                    out[rows] = unit * rate
                else:
                    out[rows] = COUNTS[link](rng, rate / rate.mean(1, keepdims=True))
        return out

    def _observe(self, y: np.ndarray) -> np.ndarray:
        for name, share in OBSERVATION_SHARES.items():
            rows = self.switch.happens(self.rng, name, share, self.k)
            if len(rows):
                self._note(name, rows)
                y[rows] = OBSERVATIONS[name](self.rng, y[rows])
        return y
