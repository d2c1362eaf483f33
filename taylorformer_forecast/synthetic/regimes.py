"""Levels of changing states: Markov chains, stochastic volatility and pulses."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator

from taylorformer_forecast.synthetic.frame import Frame, log_uniform
from taylorformer_forecast.synthetic.state_space import random_walk, stationary_ar1


def stochastic_volatility(
    rng: Generator, persistence: np.ndarray, volatility: np.ndarray, n: int
) -> np.ndarray:
    """Innovations whose log-variance is an autoregression of order 1; their variance is 1.

    Parameters
    ----------
    rng : Generator
        Source of randomness.
    persistence, volatility : ndarray of shape (k,)
        Coefficient and stationary deviation of the log-variance.
    n : int
        Points.

    Returns
    -------
    ndarray of shape (k, n)

    Examples
    --------
    >>> import numpy as np
    >>> from taylorformer_forecast.synthetic.regimes import stochastic_volatility
    >>> half = np.full(2000, 0.5)
    >>> e = stochastic_volatility(np.random.default_rng(0), half, half, 50)
    >>> float(e.var().round(1))
    1.0
    """
    h = volatility[:, None] * stationary_ar1(rng, persistence[:, None], n)
    # The mean of exp(h) is exp(v^2 / 2).
    return rng.standard_normal(h.shape) * np.exp(0.5 * h - 0.25 * volatility[:, None] ** 2)


def markov_states(rng: Generator, leave: np.ndarray, n_states: int, n: int) -> np.ndarray:
    """States 0, 1, ... of Markov chains that leave a state with probability ``leave`` (k,).

    Examples
    --------
    >>> import numpy as np
    >>> from taylorformer_forecast.synthetic.regimes import markov_states
    >>> states = markov_states(np.random.default_rng(0), np.full(5000, 0.2), 2, 9)
    >>> float(np.mean(states[:, 1:] != states[:, :-1]).round(1))
    0.2
    """
    k = len(leave)
    moves = (rng.random((k, n)) < leave[:, None]) * rng.integers(1, n_states, (k, n))
    moves[:, 0] = rng.integers(0, n_states, k)
    return np.cumsum(moves, 1) % n_states


def pulses(
    rng: Generator, spacing: np.ndarray, jitter: np.ndarray, width: np.ndarray, spread: np.ndarray, n: int
) -> np.ndarray:
    """Pulses of random height, steeper before their peak than after it, as of epidemics and floods.

    Parameters
    ----------
    rng : Generator
        Source of randomness.
    spacing, jitter, width, spread : ndarray of shape (k,)
        Mean distance of the peaks and its deviation, width before the peak (all in steps), and deviation of
        the logarithm of the height, whose mean is 0.
    n : int
        Points.

    Returns
    -------
    ndarray of shape (k, n)

    Examples
    --------
    >>> import numpy as np
    >>> from taylorformer_forecast.synthetic.regimes import pulses
    >>> row = np.ones(1)
    >>> x = pulses(np.random.default_rng(0), 20 * row, 0 * row, 2 * row, 0 * row, 200)
    >>> int((x > 0.9).any()), float(x.min()) >= 0
    (1, True)
    """
    k, t = len(spacing), np.arange(float(n))
    date, out, live = -spacing * rng.random(k), np.zeros((k, n)), np.arange(k)
    while len(live):
        away = t - date[live, None]
        w = width[live, None]
        height = np.exp(spread[live, None] * rng.standard_normal((len(live), 1)))
        out[live] += height * np.exp(-0.5 * (away / np.where(away < 0, w, 2 * w)) ** 2)
        step = spacing[live] + jitter[live] * rng.standard_normal(len(live))
        date[live] += np.maximum(step, 0.2 * spacing[live])
        live = live[date[live] < n + spacing[live]]
    return out


def _regimes(rng: Generator, frame: Frame) -> np.ndarray:
    """Levels and noise that depend on one of three states."""
    k, n = frame.k, frame.n
    states = markov_states(rng, 1 / log_uniform(rng, max(n / 20, 3.0), n / 2, k), 3, n)
    means = np.take_along_axis(rng.standard_normal((k, 3)), states, 1)
    spread = np.take_along_axis(log_uniform(rng, 0.03, 0.6, (k, 3)), states, 1)
    return means + spread * rng.standard_normal((k, n))


def _volatile_walk(rng: Generator, frame: Frame) -> np.ndarray:
    k = frame.k
    persistence = 1 - log_uniform(rng, 0.005, 0.2, k)
    e = stochastic_volatility(rng, persistence, rng.uniform(0.3, 1.2, k), frame.n)
    return random_walk(e, 0.03 * rng.standard_normal(k))


def _pulses(rng: Generator, frame: Frame) -> np.ndarray:
    k, n, own = frame.k, frame.n, frame.periods[:, 0]
    spacing = np.where(own >= 8, own, log_uniform(rng, min(8.0, n / 6), max(n / 3, 9.0), k))
    jitter = spacing * log_uniform(rng, 0.02, 0.5, k)
    width = spacing * log_uniform(rng, 0.03, 0.2, k)
    return pulses(rng, spacing, jitter, width, log_uniform(rng, 0.1, 1.0, k), n)


REGIMES = {
    "regime_switching": _regimes,
    "stochastic_volatility": _volatile_walk,
    "pulses": _pulses,
}
