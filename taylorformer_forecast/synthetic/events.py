"""Events: what is added to a series at a few times, in units of its deviation."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator

from taylorformer_forecast.synthetic.frame import Frame, log_uniform, random_sign


def level_shift(hits: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Steps of these sizes (k, n) at the hits (k, n), which stay.

    Examples
    --------
    >>> import numpy as np
    >>> from taylorformer_forecast.synthetic.events import level_shift
    >>> level_shift(np.array([[0, 1, 0, 1]]), np.array([[9.0, 2.0, 9.0, -1.0]]))
    array([[0., 2., 2., 1.]])
    """
    return np.cumsum(hits * sizes, 1)


def outliers(rng: Generator, share: np.ndarray, low: float, high: float, n: int) -> np.ndarray:
    """Single points away by ``low`` to ``high``, a share (k,) of all points; each series has its own signs.

    Examples
    --------
    >>> import numpy as np
    >>> from taylorformer_forecast.synthetic.events import outliers
    >>> x = outliers(np.random.default_rng(0), np.full(1000, 0.1), 1.0, 4.0, 100)
    >>> float(np.mean(x != 0).round(2))
    0.1
    """
    k = len(share)
    hit = rng.random((k, n)) < share[:, None]
    sign = np.where(rng.random((k, n)) < rng.beta(0.5, 0.5, (k, 1)), 1.0, -1.0)
    return hit * sign * log_uniform(rng, low, high, (k, n))


def decaying(start: np.ndarray, decay: np.ndarray, n: int) -> np.ndarray:
    """Effects of size 1 at ``start`` (k,) that are multiplied by ``decay`` (k,) in every step.

    Examples
    --------
    >>> import numpy as np
    >>> from taylorformer_forecast.synthetic.events import decaying
    >>> decaying(np.array([1]), np.array([0.5]), 4)
    array([[0.  , 1.  , 0.5 , 0.25]])
    """
    since = np.arange(n) - start[:, None]
    return np.where(since >= 0, decay[:, None] ** np.maximum(since, 0), 0.0)


def _level_shift(rng: Generator, frame: Frame) -> np.ndarray:
    """From one to about three shifts."""
    k, n = frame.k, frame.n
    hits = rng.random((k, n)) < log_uniform(rng, 0.3, 2.0, (k, 1)) / n
    hits[np.arange(k), rng.integers(1, n, k)] = True
    return log_uniform(rng, 0.3, 2.0, (k, 1)) * level_shift(hits, rng.standard_normal((k, n)))


def _ramp(rng: Generator, frame: Frame) -> np.ndarray:
    """A change of level that takes up to a fifth of the series."""
    k, n = frame.k, frame.n
    length = log_uniform(rng, 2.0, max(n / 5, 3.0), (k, 1))
    share = ((np.arange(n) - rng.integers(0, n - 1, (k, 1))) / length).clip(0.0, 1.0)
    return share * random_sign(rng, 0.5, (k, 1)) * log_uniform(rng, 0.3, 2.0, (k, 1))


def _temporary_change(rng: Generator, frame: Frame) -> np.ndarray:
    k, n = frame.k, frame.n
    decay = 0.5 ** (1 / log_uniform(rng, 1.0, max(n / 10, 2.0), k))
    size = random_sign(rng, 0.4, (k, 1)) * log_uniform(rng, 0.5, 4.0, (k, 1))
    return size * decaying(rng.integers(0, n, k), decay, n)


def _outliers(rng: Generator, frame: Frame) -> np.ndarray:
    share = log_uniform(rng, min(0.5 / frame.n, 0.02), 0.03, frame.k)
    return outliers(rng, share, 1.0, 8.0, frame.n)


def _interruption(rng: Generator, frame: Frame) -> np.ndarray:
    """A span with another level, as of a strike or of a closure."""
    k, n = frame.k, frame.n
    since = np.arange(n) - rng.integers(0, n, (k, 1))
    inside = (since >= 0) & (since < log_uniform(rng, 2.0, max(n / 6, 3.0), (k, 1)))
    return inside * random_sign(rng, 0.2, (k, 1)) * log_uniform(rng, 0.5, 3.0, (k, 1))


def _promotions(rng: Generator, frame: Frame) -> np.ndarray:
    """Rises for a few steps, at random or at regular distances, each with a dip after it."""
    k, n = frame.k, frame.n
    spacing = log_uniform(rng, 8.0, max(n / 3, 9.0), k)
    regular = rng.random((k, 1)) < 0.4
    position = (np.arange(n) + (spacing * rng.random(k))[:, None]) / spacing[:, None]
    starts = np.floor(position) != np.floor(position - 1 / spacing[:, None])
    starts = np.where(regular, starts, rng.random((k, n)) < 1 / spacing[:, None])
    height = starts * log_uniform(rng, 0.7, 1.4, (k, n))
    length, dip = rng.integers(1, 6, k), rng.uniform(0.0, 0.5, k)
    out = height.copy()
    for j in range(1, 9):
        effect = np.where(j < length, 1.0, np.where(j < length + 3, -dip, 0.0))[:, None]
        if j < n:
            out[:, j:] += effect * height[:, :-j]
    return out * log_uniform(rng, 0.7, 4.0, (k, 1))


EVENTS = {
    "level_shift": _level_shift,
    "ramp": _ramp,
    "temporary_change": _temporary_change,
    "outliers": _outliers,
    "interruption": _interruption,
    "promotions": _promotions,
}
