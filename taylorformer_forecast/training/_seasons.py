"""Seasons of made-up series, for many series at once: arrays of shape (k, n)."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator

from taylorformer_forecast.training._time_courses import log_uniform, pick, slow, standardise

MOST_HARMONICS = 12
LONGEST_TABLE = 62  # steps of a season whose values are drawn one by one


def season_shape(rng: Generator, kind: str, period: np.ndarray, phase: np.ndarray) -> np.ndarray:
    """Periodic functions of a random shape, mean about 0 and deviation 1, at phases (k, n) in revolutions."""
    k = len(phase)
    angle = 2 * np.pi * phase
    if kind in ("smooth", "sharp"):
        flat, steep = (1.0, 3.0) if kind == "smooth" else (0.3, 1.2)
        decay = rng.uniform(flat, steep, k)
        out = np.zeros_like(phase)
        for h in range(1, MOST_HARMONICS + 1 if kind == "sharp" else 5):
            known = 2 * h <= period  # faster ones would fold back
            size = known * h**-decay * rng.standard_normal(k)
            out += size[:, None] * np.cos(h * angle + rng.uniform(0, 2 * np.pi, (k, 1)))
        return standardise(out)
    if kind == "bumps":
        out = np.zeros_like(phase)
        for b in range(3):
            size = rng.uniform(-0.3, 1.0, (k, 1)) if b else 1.0
            size = size * (rng.random((k, 1)) < (1.0, 0.6, 0.3)[b])
            sharpness = np.minimum(log_uniform(rng, 0.7, 30.0, k), period**2 / 10)[:, None]
            out += size * np.exp(sharpness * (np.cos(angle + rng.uniform(0, 2 * np.pi, (k, 1))) - 1))
        return standardise(out)
    if kind == "switch":  # day and night
        start = rng.uniform(0, 2 * np.pi, (k, 1))
        slope = log_uniform(rng, 1.0, 10.0, (k, 1))
        day = np.tanh(slope * (np.cos(angle + start) - rng.uniform(-0.6, 0.6, (k, 1))))
        inside = rng.uniform(0.0, 0.4, (k, 1)) * np.cos(2 * angle + rng.uniform(0, 2 * np.pi, (k, 1)))
        return standardise(day + inside)
    assert kind == "table"  # of one value for each step, as of weekdays or months
    table = rng.standard_normal((k, LONGEST_TABLE))
    working = (period == 7) & (rng.random(k) < 0.7)  # days alike, and a weekend
    table[working, :5] = table[working, :1] + 0.25 * table[working, :5]
    step = np.floor((phase % 1.0) * period[:, None] + 1e-6).astype(int) % period[:, None]
    return standardise(np.take_along_axis(table, step, 1))


def seasonal(rng: Generator, period: np.ndarray, t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Seasons of periods (k,) at times (n,), and the kinds of their shapes.

    Their amplitude drifts in about half of them, their shape and phase in some.
    """
    k, n, step = len(period), len(t), t[1] - t[0]
    kinds = pick(rng, {"smooth": 35, "bumps": 20, "sharp": 12, "switch": 13, "table": 20}, k)
    kinds = np.where(period < 4, "table", kinds)
    kinds = np.where((kinds == "table") & (period > LONGEST_TABLE), "sharp", kinds)
    start = np.where(kinds == "table", np.floor(rng.random(k) * period), rng.random(k) * period)
    phase = (t + start[:, None]) / period[:, None]

    def drift(rows: np.ndarray) -> np.ndarray:
        scale = np.exp(rng.uniform(np.log(1.5 * period[rows] / step), np.log(2.0 * n)))
        return slow(rng, scale, n)

    rows = np.flatnonzero((rng.random(k) < 0.12) & (kinds != "table"))
    phase[rows] += log_uniform(rng, 0.005, 0.06, (len(rows), 1)) * drift(rows)
    out = np.empty((k, n))
    for kind in np.unique(kinds):
        these = np.flatnonzero(kinds == kind)
        out[these] = season_shape(rng, kind, period[these], phase[these])
    rows = np.flatnonzero(rng.random(k) < 0.2)
    other = season_shape(rng, "smooth", period[rows], phase[rows])
    out[rows] += rng.uniform(0.1, 0.6, (len(rows), 1)) * drift(rows) * other
    rows = np.flatnonzero(rng.random(k) < 0.5)
    out[rows] *= np.exp(log_uniform(rng, 0.03, 0.5, (len(rows), 1)) * drift(rows))
    return standardise(out), kinds


def weekly(rng: Generator, day: np.ndarray, t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Days of length (k,) whose level, amplitude and shape depend on the weekday, and kinds of their shapes.

    The period is seven days. A few days are holidays in some series: working days like the last of a weekend.
    """
    k = len(day)
    ordinary, kinds = seasonal(rng, day, t)
    other = season_shape(rng, "smooth", day, t / day[:, None] + rng.random((k, 1)))
    position = t / day[:, None] + rng.integers(0, 7, (k, 1))
    n_days = int(position.max()) + 2
    weekday = np.arange(n_days) % 7
    off = np.broadcast_to((weekday >= 5).astype(float), (k, n_days)).copy()
    off[:, weekday == 5] *= rng.uniform(0.2, 1.0, (k, 1))
    off[rng.random((k, n_days)) < np.where(rng.random((k, 1)) < 0.4, 0.02, 0.0)] = 1.0
    low, alike = rng.uniform(-2.0, 0.7, (k, 1)), log_uniform(rng, 0.02, 0.4, (k, 1))
    level = off * low + (alike * rng.standard_normal((k, 7)))[:, weekday]
    whole = position.astype(int)
    ramp = ((position - whole - 0.75) * 4).clip(0.0)  # from one day to the next over a quarter
    ramp = ramp**2 * (3 - 2 * ramp)

    def over_time(of_day: np.ndarray) -> np.ndarray:
        today, tomorrow = (np.take_along_axis(of_day, whole + j, 1) for j in (0, 1))
        return today + ramp * (tomorrow - today)

    free = over_time(off)
    shape = ordinary * (1 - rng.uniform(0.0, 0.8, (k, 1)) * free)
    shape += rng.uniform(0.0, 0.7, (k, 1)) * free * other
    return standardise(shape + log_uniform(rng, 0.15, 1.2, (k, 1)) * over_time(level)), kinds
