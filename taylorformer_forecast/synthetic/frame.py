"""Frames: lengths, seasons and dates of a batch of series, and random draws that all processes use."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.random import Generator

MAX_SEASONS = 3
STEPS_PER_DAY = {"daily": 1, "hourly": 24, "half-hourly": 48, "quarter-hourly": 96}
FIRST_DAY, LAST_DAY = -3653, 25_000  # first points lie between 1960 and 2038
THURSDAY = 3  # 1970-01-01, where Monday is 0


@dataclass(frozen=True)
class Frame:
    """What a batch of series has in common with its calendar, before any value is drawn.

    Parameters
    ----------
    n : int
        Points of every series.
    frequency : str ndarray of shape (k,)
        ``"yearly"``, ``"quarterly"``, ``"monthly"``, ``"weekly"``, ``"daily"``, ``"hourly"``,
        ``"half-hourly"``, ``"quarter-hourly"`` or ``"none"``.
    periods : float64 ndarray of shape (k, 3)
        Seasonal periods in steps, the shortest first; 0 for none.
    phases : float64 ndarray of shape (k, 3)
        Positions of the first point within the periods, from 0 to below 1.
    start : float64 ndarray of shape (k,)
        Date of the first point, in days since 1970-01-01.

    Examples
    --------
    >>> import numpy as np
    >>> from taylorformer_forecast.synthetic.frame import make_frame
    >>> frame = make_frame(np.random.default_rng(0), 36, np.array(["monthly"]), np.array([[12.0, 0, 0]]))
    >>> frame.k, frame.n, frame.phase().shape
    (1, 36, (1, 36))
    """

    n: int
    frequency: np.ndarray
    periods: np.ndarray
    phases: np.ndarray
    start: np.ndarray

    @property
    def k(self) -> int:
        """Number of series."""
        return len(self.frequency)

    def rows(self, index: np.ndarray, season: int = 0) -> Frame:
        """Some of the series, where ``season`` becomes the first of their seasons."""
        order = [(season + j) % MAX_SEASONS for j in range(MAX_SEASONS)]
        return replace(
            self,
            frequency=self.frequency[index],
            periods=self.periods[index][:, order],
            phases=self.phases[index][:, order],
            start=self.start[index],
        )

    def phase(self) -> np.ndarray:
        """Positions (k, n) in the first season, in periods since some origin."""
        period = np.where(self.periods[:, :1] > 0, self.periods[:, :1], np.inf)
        return np.arange(self.n) / period + self.phases[:, :1]

    def months(self) -> np.ndarray:
        """Months (k, n) since January 1970, for monthly and quarterly series."""
        first = self.start.astype("datetime64[D]").astype("datetime64[M]").astype(int)
        step = np.where(self.frequency == "quarterly", 3, 1)
        return (first // step * step)[:, None] + step[:, None] * np.arange(self.n)

    def days(self) -> np.ndarray:
        """Days (k, n) since 1970-01-01, for weekly series (the first of the week) and shorter steps."""
        step = np.array([7.0 if f == "weekly" else 1 / STEPS_PER_DAY.get(f, 1) for f in self.frequency])
        return np.floor(self.start[:, None] + step[:, None] * np.arange(self.n) + 1e-6).astype(int)


def make_frame(rng: Generator, n: int, frequency: np.ndarray, periods: np.ndarray) -> Frame:
    """Draw dates of first points, and the phases of seasons that follow from them.

    Parameters
    ----------
    rng : Generator
        Source of randomness.
    n : int
        Points of every series.
    frequency : str ndarray of shape (k,)
        Frequencies, see :class:`Frame`.
    periods : ndarray of shape (k, 3)
        Seasonal periods in steps, 0 for none.

    Returns
    -------
    Frame

    Examples
    --------
    >>> import numpy as np
    >>> from taylorformer_forecast.synthetic.frame import make_frame
    >>> frame = make_frame(np.random.default_rng(0), 9, np.array(["daily"]), np.array([[7.0, 0, 0]]))
    >>> bool((frame.days()[0, 0] + 3) % 7 == round(7 * frame.phases[0, 0]))  # the week starts on Monday
    True
    """
    k = len(frequency)
    per_day = np.array([STEPS_PER_DAY.get(f, 1) for f in frequency])
    start = np.floor(rng.uniform(FIRST_DAY, LAST_DAY, k))
    start += np.where(per_day > 1, np.floor(rng.random(k) * per_day), 0) / per_day
    phases = rng.random((k, MAX_SEASONS))
    of_days = np.isin(frequency, list(STEPS_PER_DAY))
    in_days = periods / per_day[:, None]
    shift = np.where(np.isclose(in_days, 7), THURSDAY, 0.0)
    known = of_days[:, None] & (periods > 0)
    phases[known] = ((start[:, None] + shift)[known] / in_days[known]) % 1
    weekly = frequency == "weekly"
    phases[weekly, 0] = (start[weekly] / 365.25) % 1
    frame = Frame(n, frequency, periods, phases, start)
    rows = np.flatnonzero(np.isin(frequency, ["monthly", "quarterly"]))
    if len(rows):
        phases[rows, 0] = (frame.rows(rows).months()[:, 0] % 12) / 12
    phases[periods == 0] = 0.0
    return frame


def log_uniform(rng: Generator, low: float, high: float, size: int | tuple[int, ...]) -> np.ndarray:
    """Draws whose logarithm is uniform; all are ``low`` if ``high`` is not above it."""
    return np.exp(rng.uniform(np.log(low), np.log(max(low, high)), size))


def standardise(x: np.ndarray) -> np.ndarray:
    """Mean 0 and deviation 1 of every row; constant rows become 0."""
    x = x - x.mean(1, keepdims=True)
    deviation = x.std(1, keepdims=True)
    return x / np.where(deviation > 1e-12, deviation, np.inf)


def pick(rng: Generator, weights: Mapping[str, float], size: int) -> np.ndarray:
    """Names at random, with probabilities proportional to these weights."""
    p = np.cumsum(list(weights.values()))
    return np.array(list(weights))[np.searchsorted(p, p[-1] * rng.random(size), "right")]


def random_sign(rng: Generator, positive: float, size: int | tuple[int, ...]) -> np.ndarray:
    """1 with this probability, else -1."""
    return np.where(rng.random(size) < positive, 1.0, -1.0)
