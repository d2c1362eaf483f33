"""Seasons: periodic shapes, how they change in time, and weeks of working days."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator

from taylorformer_forecast.synthetic.frame import Frame, log_uniform, standardise
from taylorformer_forecast.synthetic.gaussian_process import smooth

LONGEST_PROFILE = 62  # steps of a season whose values are drawn one by one


def harmonics(amplitudes: np.ndarray, angles: np.ndarray, phase: np.ndarray) -> np.ndarray:
    """Sums of harmonics 1, 2, ... with amplitudes and angles (k, h), at phases (k, n) in periods.

    Examples
    --------
    >>> import numpy as np
    >>> from taylorformer_forecast.synthetic.season import harmonics
    >>> harmonics(np.array([[2.0]]), np.array([[0.0]]), np.array([[0.0, 0.25, 0.5]])).round(6) + 0.0
    array([[ 2.,  0., -2.]])
    """
    out = np.zeros_like(phase)
    for h in range(1, amplitudes.shape[1] + 1):
        out += amplitudes[:, h - 1, None] * np.cos(2 * np.pi * h * phase + angles[:, h - 1, None])
    return out


def profile(table: np.ndarray, period: np.ndarray, phase: np.ndarray) -> np.ndarray:
    """One value of a table (k, m) for each step of a season of ``period`` <= m steps.

    Examples
    --------
    >>> import numpy as np
    >>> from taylorformer_forecast.synthetic.season import profile
    >>> profile(np.array([[5.0, 6.0, 7.0]]), np.array([3.0]), np.arange(4)[None] / 3)
    array([[5., 6., 7., 5.]])
    """
    step = np.floor((phase % 1.0) * period[:, None] + 1e-6).astype(int)
    return np.take_along_axis(table, step % np.maximum(np.floor(period[:, None]).astype(int), 1), 1)


def evolving(first: np.ndarray, changes: np.ndarray, period: np.ndarray, phase: np.ndarray) -> np.ndarray:
    """Seasonal random walks: every step of a season keeps its value, plus an innovation in each cycle.

    Parameters
    ----------
    first : ndarray of shape (k, m)
        Values of the first cycle.
    changes : ndarray of shape (k, c, m)
        Innovations of the cycles.
    period : ndarray of shape (k,)
        Periods, m at most.
    phase : ndarray of shape (k, n)
        Phases in periods, from 0 to below c.

    Returns
    -------
    ndarray of shape (k, n)

    Examples
    --------
    >>> import numpy as np
    >>> from taylorformer_forecast.synthetic.season import evolving
    >>> changes = np.array([[[0.0, 0.0], [1.0, 0.0]]])
    >>> evolving(np.array([[3.0, 4.0]]), changes, np.array([2.0]), np.arange(4)[None] / 2)
    array([[3., 4., 4., 4.]])
    """
    values = first[:, None] + np.cumsum(changes, 1)
    k, cycles, m = values.shape
    cycle = np.floor(phase + 1e-6).astype(int)
    step = np.floor((phase - cycle) * period[:, None] + 1e-6).astype(int).clip(0, m - 1)
    return np.take_along_axis(values.reshape(k, -1), cycle.clip(0, cycles - 1) * m + step, 1)


def modulate(rng: Generator, frame: Frame, x: np.ndarray) -> np.ndarray:
    """Change the amplitude of seasons (k, n) slowly and at random; the mean square stays about the same.

    Examples
    --------
    >>> import numpy as np
    >>> from taylorformer_forecast.synthetic.frame import make_frame
    >>> from taylorformer_forecast.synthetic.season import modulate
    >>> rng = np.random.default_rng(0)
    >>> frame = make_frame(rng, 96, np.array(["none"]), np.array([[12.0, 0, 0]]))
    >>> modulate(rng, frame, np.cos(2 * np.pi * frame.phase())).shape
    (1, 96)
    """
    size = log_uniform(rng, 0.03, 0.5, (frame.k, 1))
    scale = np.exp(rng.uniform(np.log(1.5 * np.maximum(frame.periods[:, 0], 1.0)), np.log(2.0 * frame.n)))
    return x * np.exp(size * smooth(rng, scale, frame.n) - size**2)


def _harmonics(rng: Generator, frame: Frame) -> np.ndarray:
    return _random_harmonics(rng, frame, 8, rng.uniform(0.3, 2.5, (frame.k, 1)))


def _random_harmonics(rng: Generator, frame: Frame, most: int, steepness: np.ndarray | float) -> np.ndarray:
    """At most so many harmonics, whose amplitudes fall off as a power of their number."""
    h = np.arange(1, most + 1)
    amplitudes = rng.standard_normal((frame.k, most)) * h**-steepness
    amplitudes[2 * h > frame.periods[:, :1]] = 0.0  # higher ones would be aliased
    return harmonics(amplitudes, rng.uniform(0, 2 * np.pi, (frame.k, most)), frame.phase())


def _profile(rng: Generator, frame: Frame) -> np.ndarray:
    """A value for each step; where the season has too many steps, one for each of 62 parts of it."""
    k, period = frame.k, frame.periods[:, 0]
    table = rng.standard_normal((k, LONGEST_PROFILE))
    heavy = rng.random((k, 1)) < 0.3  # one month or day stands out
    table = np.where(heavy, table * np.abs(table), table)
    days = (period == 7) & (rng.random(k) < 0.7)  # working days alike, and a weekend
    table[days, :5] = table[days, :1] + 0.25 * table[days, :5]
    return profile(table, np.minimum(period, LONGEST_PROFILE), frame.phase())


def _evolving(rng: Generator, frame: Frame) -> np.ndarray:
    """Seasonal random walks in parts of the season, 62 at most."""
    k, n = frame.k, frame.n
    parts = np.minimum(np.maximum(np.floor(frame.periods[:, 0]), 1.0), LONGEST_PROFILE)
    phase = frame.phase()
    cycles, m = int(phase.max()) + 1, int(parts.max())
    # All changes of a long series together are no larger than its first season.
    size = log_uniform(rng, 0.05, 1.0, (k, 1, 1)) / np.sqrt(np.maximum(n / parts, 1.0))[:, None, None]
    changes = size * rng.standard_normal((k, cycles, m))
    return evolving(rng.standard_normal((k, m)), changes, parts, phase)


def _bumps(rng: Generator, frame: Frame) -> np.ndarray:
    """Up to three peaks or troughs in each period."""
    k, angle = frame.k, 2 * np.pi * frame.phase()
    out = np.zeros((k, frame.n))
    for share in (1.0, 0.6, 0.3):
        height = rng.uniform(-0.3, 1.0, (k, 1)) if share < 1 else np.ones((k, 1))
        sharpness = np.minimum(log_uniform(rng, 0.7, 30.0, k), frame.periods[:, 0] ** 2 / 10)[:, None]
        bump = np.exp(sharpness * (np.cos(angle + rng.uniform(0, 2 * np.pi, (k, 1))) - 1))
        out += height * (rng.random((k, 1)) < share) * bump
    return out


def _day_and_night(rng: Generator, frame: Frame) -> np.ndarray:
    """Two levels with smooth passages between them."""
    k, angle = frame.k, 2 * np.pi * frame.phase()
    slope = log_uniform(rng, 1.0, 10.0, (k, 1))
    height = np.cos(angle + rng.uniform(0, 2 * np.pi, (k, 1))) - rng.uniform(-0.6, 0.6, (k, 1))
    second = rng.uniform(0.0, 0.4, (k, 1)) * np.cos(2 * angle + rng.uniform(0, 2 * np.pi, (k, 1)))
    return np.tanh(slope * height) + second


def _working_week(rng: Generator, frame: Frame) -> np.ndarray:
    """Days and weeks together: the shape and the level of a day depend on whether it is a working day."""
    k = frame.k
    day, week = frame.phase(), frame.rows(np.arange(k), season=1).phase()
    weekday = np.floor((week % 1.0) * 7 + 1e-6).astype(int) % 7
    off = np.broadcast_to(np.arange(7) >= 5, (k, 7)).astype(float)
    off = off * np.where(np.arange(7) == 5, rng.uniform(0.2, 1.0, (k, 1)), 1.0)
    level = off * rng.uniform(-2.0, 0.5, (k, 1)) + log_uniform(rng, 0.02, 0.3, (k, 1)) * rng.standard_normal(
        (k, 7)
    )
    shapes = [standardise(_random_harmonics(rng, frame, 6, 1.2)) for _ in range(2)]
    free = np.take_along_axis(off, weekday, 1)
    shape = shapes[0] * (1 - rng.uniform(0.2, 0.9, (k, 1)) * free)
    shape += rng.uniform(0.0, 0.6, (k, 1)) * free * shapes[1]
    levels = np.take_along_axis(level, weekday, 1)
    # Levels of neighbouring days pass into each other over a quarter of a day.
    ramp = (4 * ((day + 1e-6) % 1.0) - 3).clip(0.0)
    tomorrow = np.take_along_axis(level, (weekday + 1) % 7, 1)
    return shape + log_uniform(rng, 0.2, 1.2, (k, 1)) * (levels + ramp * (tomorrow - levels))


SEASONS = {
    "harmonics": _harmonics,
    "profile": _profile,
    "evolving_season": _evolving,
    "bumps": _bumps,
    "day_and_night": _day_and_night,
    "working_week": _working_week,
}
