"""Deterministic trends: arrays (k, n) from parameters (k,), in units of the whole span."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator

from taylorformer_forecast.synthetic.frame import Frame, log_uniform, random_sign

GROWING = 0.75  # growth is more common than decline


def _span(n: int) -> np.ndarray:
    return np.linspace(0.0, 1.0, n)


def linear(slope: np.ndarray, n: int) -> np.ndarray:
    """Straight lines that change by ``slope`` from the first point to the last.

    Examples
    --------
    >>> import numpy as np
    >>> from taylorformer_forecast.synthetic.trend import linear
    >>> linear(np.array([2.0]), 5)
    array([[0. , 0.5, 1. , 1.5, 2. ]])
    """
    return slope[:, None] * _span(n)


def damped(slope: np.ndarray, phi: np.ndarray, n: int) -> np.ndarray:
    """Damped trends: every step is ``phi`` times the one before, the first is ``slope``.

    Examples
    --------
    >>> import numpy as np
    >>> from taylorformer_forecast.synthetic.trend import damped
    >>> damped(np.array([1.0]), np.array([0.5]), 4)
    array([[0.  , 1.  , 1.5 , 1.75]])
    """
    phi = phi[:, None]
    return slope[:, None] * (1 - phi ** np.arange(n)) / (1 - phi)


def logistic(height: np.ndarray, steepness: np.ndarray, midpoint: np.ndarray, n: int) -> np.ndarray:
    """Logistic growth from 0 to ``height``, half of it at ``midpoint`` (a share of the span).

    Examples
    --------
    >>> import numpy as np
    >>> from taylorformer_forecast.synthetic.trend import logistic
    >>> logistic(np.array([4.0]), np.array([20.0]), np.array([0.5]), 3).round(2)
    array([[0., 2., 4.]])
    """
    z = steepness[:, None] * (_span(n) - midpoint[:, None])
    return height[:, None] / (1 + np.exp(-z.clip(-50, 50)))


def exponential(height: np.ndarray, rate: np.ndarray, n: int) -> np.ndarray:
    """Exponential growth from 0 to ``height``, with a constant rate over the whole span.

    Examples
    --------
    >>> import numpy as np
    >>> from taylorformer_forecast.synthetic.trend import exponential
    >>> exponential(np.array([3.0]), np.log([4.0]), 3).round(2)  # 1, 2, 4 less 1
    array([[0., 1., 3.]])
    """
    rate = rate[:, None]
    return height[:, None] * np.expm1(rate * _span(n)) / np.expm1(rate)


def broken(slope: np.ndarray, breaks: np.ndarray, changes: np.ndarray, n: int) -> np.ndarray:
    """Lines whose slope changes by ``changes`` (k, m) at ``breaks`` (k, m), shares of the span.

    Examples
    --------
    >>> import numpy as np
    >>> from taylorformer_forecast.synthetic.trend import broken
    >>> broken(np.array([4.0]), np.array([[0.5]]), np.array([[-4.0]]), 5)
    array([[0., 1., 2., 2., 2.]])
    """
    u = _span(n)
    bends = np.maximum(u - breaks[:, :, None], 0.0) * changes[:, :, None]
    return slope[:, None] * u + bends.sum(1)


def _linear(rng: Generator, frame: Frame) -> np.ndarray:
    return linear(random_sign(rng, GROWING, frame.k), frame.n)


def _damped(rng: Generator, frame: Frame) -> np.ndarray:
    # Half of the remaining growth takes between a twentieth and two thirds of the span.
    half_life = log_uniform(rng, 0.05, 0.7, frame.k) * frame.n
    return damped(random_sign(rng, GROWING, frame.k), 0.5 ** (1 / half_life), frame.n)


def _logistic(rng: Generator, frame: Frame) -> np.ndarray:
    k = frame.k
    steepness = log_uniform(rng, 4.0, 40.0, k)
    return logistic(random_sign(rng, GROWING, k), steepness, rng.uniform(0.1, 0.9, k), frame.n)


def _exponential(rng: Generator, frame: Frame) -> np.ndarray:
    k = frame.k
    rate = log_uniform(rng, 0.5, 4.0, k) * random_sign(rng, 0.7, k)
    return exponential(random_sign(rng, GROWING, k), rate, frame.n)


def _broken(rng: Generator, frame: Frame) -> np.ndarray:
    k, most = frame.k, 4
    changes = 1.5 * rng.standard_normal((k, most)) * (rng.random((k, most)) < 0.5)
    return broken(rng.normal(0.3, 1.0, k), rng.random((k, most)), changes, frame.n)


TRENDS = {
    "linear": _linear,
    "damped": _damped,
    "logistic": _logistic,
    "exponential": _exponential,
    "broken": _broken,
}
