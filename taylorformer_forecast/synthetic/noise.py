"""Noise of deviation 1: white or autocorrelated, with light or heavy tails, of equal or changing spread."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator

from taylorformer_forecast.synthetic.frame import Frame, log_uniform, standardise
from taylorformer_forecast.synthetic.gaussian_process import smooth
from taylorformer_forecast.synthetic.state_space import BURN_IN, arma


def student_t(rng: Generator, freedom: np.ndarray, n: int) -> np.ndarray:
    """White Student-t noise of deviation 1, with ``freedom`` (k,) > 2.

    Examples
    --------
    >>> import numpy as np
    >>> from taylorformer_forecast.synthetic.noise import student_t
    >>> x = student_t(np.random.default_rng(0), np.full(1000, 8.0), 100)
    >>> float(x.std().round(1))
    1.0
    """
    freedom = freedom[:, None]
    chi = rng.standard_gamma(np.broadcast_to(freedom / 2, (len(freedom), n))) * 2 / freedom
    return rng.standard_normal(chi.shape) * np.sqrt((freedom - 2) / freedom / chi.clip(1e-3))


def skewed(rng: Generator, shape: np.ndarray, n: int) -> np.ndarray:
    """White noise of centred gamma variables of ``shape`` (k,), deviation 1 and skewness 2 / sqrt(shape).

    Examples
    --------
    >>> import numpy as np
    >>> from taylorformer_forecast.synthetic.noise import skewed
    >>> x = skewed(np.random.default_rng(0), np.full(1000, 4.0), 100)
    >>> float(np.mean(x**3).round(1))
    1.0
    """
    shape = np.broadcast_to(shape[:, None], (len(shape), n))
    return (rng.standard_gamma(shape) - shape) / np.sqrt(shape)


def garch(white: np.ndarray, shock: np.ndarray, memory: np.ndarray) -> np.ndarray:
    """GARCH(1, 1) from white noise (k, n), of variance 1 [1]_.

    Parameters
    ----------
    white : ndarray of shape (k, n)
        Innovations of deviation 1.
    shock, memory : ndarray of shape (k,)
        Weights of the last square and of the last variance, less than 1 together.

    Returns
    -------
    ndarray of shape (k, n)

    References
    ----------
    .. [1] Bollerslev (1986), "Generalized autoregressive conditional heteroskedasticity", Journal of
       Econometrics 31.

    Examples
    --------
    >>> import numpy as np
    >>> from taylorformer_forecast.synthetic.noise import garch
    >>> garch(np.ones((1, 3)), np.array([0.1]), np.array([0.8])).round(6)
    array([[1., 1., 1.]])
    """
    variance, out = np.ones(len(white)), np.empty(white.T.shape)
    for i, e in enumerate(white.T):
        out[i] = np.sqrt(variance) * e
        # The bound keeps moments finite for heavy tails.
        variance = 1 - shock - memory + shock * np.minimum(out[i] ** 2, 100.0) + memory * variance
    return out.T


def _white(rng: Generator, frame: Frame) -> np.ndarray:
    return rng.standard_normal((frame.k, frame.n))


def _student_t(rng: Generator, frame: Frame) -> np.ndarray:
    return student_t(rng, log_uniform(rng, 2.5, 15.0, frame.k), frame.n)


def _skewed(rng: Generator, frame: Frame) -> np.ndarray:
    return skewed(rng, log_uniform(rng, 1.0, 20.0, frame.k), frame.n)


def _autocorrelated(rng: Generator, frame: Frame) -> np.ndarray:
    """Autoregressions of order 1."""
    r = rng.uniform(-0.5, 0.9, (frame.k, 1))
    white = rng.standard_normal((frame.k, frame.n + BURN_IN)) * np.sqrt(1 - r**2)
    return arma(white, r, np.empty((frame.k, 0)))[:, BURN_IN:]


def _garch(rng: Generator, frame: Frame) -> np.ndarray:
    k = frame.k
    persistence = 1 - log_uniform(rng, 0.005, 0.2, k)
    shock = persistence * rng.uniform(0.03, 0.25, k)
    return garch(rng.standard_normal((k, frame.n)), shock, persistence - shock)


def _seasonal_spread(rng: Generator, frame: Frame) -> np.ndarray:
    """White noise whose logarithmic spread is a harmonic of the season; plain white noise without one."""
    angle = 2 * np.pi * (frame.phase() + rng.random((frame.k, 1)))
    return _of_spread(rng, rng.uniform(0.3, 1.5, (frame.k, 1)) * np.cos(angle))


def _slow_spread(rng: Generator, frame: Frame) -> np.ndarray:
    """White noise whose logarithmic spread is smooth in time."""
    course = smooth(rng, log_uniform(rng, 10.0, max(frame.n / 2, 11.0), frame.k), frame.n)
    return _of_spread(rng, rng.uniform(0.3, 1.0, (frame.k, 1)) * standardise(course))


def _of_spread(rng: Generator, logarithm: np.ndarray) -> np.ndarray:
    """White noise of deviation 1 whose spread has this logarithm (k, n), up to a constant."""
    spread = np.exp(logarithm)
    spread /= np.sqrt((spread**2).mean(1, keepdims=True))
    return spread * rng.standard_normal(spread.shape)


NOISES = {
    "white_noise": _white,
    "student_t": _student_t,
    "skewed_noise": _skewed,
    "autocorrelated_noise": _autocorrelated,
    "garch": _garch,
    "seasonal_spread": _seasonal_spread,
    "slow_spread": _slow_spread,
}
