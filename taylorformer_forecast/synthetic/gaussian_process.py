"""Gaussian processes: kernels, their sums and products, and exact draws on a regular grid."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.random import Generator

from taylorformer_forecast.synthetic.frame import Frame, log_uniform, pick

Kernel = Callable[[np.ndarray], np.ndarray]

KERNELS: dict[str, Kernel] = {  # of the distance in length scales
    "rbf": lambda s: np.exp(-0.5 * s**2),
    "matern12": lambda s: np.exp(-s),
    "matern32": lambda s: (1 + np.sqrt(3) * s) * np.exp(-np.sqrt(3) * s),
    "matern52": lambda s: (1 + np.sqrt(5) * s + 5 / 3 * s**2) * np.exp(-np.sqrt(5) * s),
    "rational": lambda s: 1 / (1 + 0.5 * s**2),
}
WEIGHTS = {"rbf": 25, "matern12": 20, "matern32": 20, "matern52": 15, "rational": 20}


def stationary(rng: Generator, covariance: np.ndarray, n: int) -> np.ndarray:
    """Draw stationary Gaussian processes by circulant embedding [1]_.

    Parameters
    ----------
    rng : Generator
        Source of randomness.
    covariance : ndarray of shape (k, m + 1)
        Covariances at lags 0 to m >= n. The draw is exact where they are small at the last lags; elsewhere
        negative eigenvalues of the embedding are set to 0.
    n : int
        Points to keep.

    Returns
    -------
    ndarray of shape (k, n)

    References
    ----------
    .. [1] Dietrich and Newsam (1997), "Fast and exact simulation of stationary Gaussian processes through
       circulant embedding of the covariance matrix", SIAM Journal on Scientific Computing 18.

    Examples
    --------
    >>> import numpy as np
    >>> from taylorformer_forecast.synthetic.gaussian_process import stationary
    >>> covariance = np.exp(-np.arange(64.0) / 5) * np.ones((20000, 1))
    >>> x = stationary(np.random.default_rng(0), covariance, 12)
    >>> bool(abs(np.mean(x[:, 2] * x[:, 7]) - np.exp(-1)) < 0.03)
    True
    """
    size = 2 * (covariance.shape[1] - 1)
    power = np.fft.hfft(covariance, size)[:, : size // 2 + 1].clip(0.0)
    # The spectrum of white noise, drawn where it is needed: one transform less.
    half = size // 2 + 1
    white = rng.standard_normal((2, len(covariance), half))
    spectrum = (white[0] + 1j * white[1]) * np.sqrt(0.5 * size)
    spectrum[:, [0, -1]] = white[0][:, [0, -1]] * np.sqrt(size)
    return np.fft.irfft(spectrum * np.sqrt(power), size)[:, :n]


def lags(n: int) -> np.ndarray:
    """Lags of an embedding in which length scales up to n / 4 have died away."""
    return np.arange(2.0 ** (np.ceil(np.log2(1.5 * n))) + 1)


def smooth(rng: Generator, scale: np.ndarray, n: int) -> np.ndarray:
    """Smooth random functions of deviation 1 with length scales (k,), n / 4 at most.

    Examples
    --------
    >>> import numpy as np
    >>> from taylorformer_forecast.synthetic.gaussian_process import smooth
    >>> smooth(np.random.default_rng(0), np.array([5.0, 20.0]), 100).shape
    (2, 100)
    """
    return stationary(rng, KERNELS["rbf"](lags(n) / np.minimum(scale, n / 4)[:, None]), n)


def _kernel(rng: Generator, frame: Frame) -> np.ndarray:
    """Covariances of one random kernel with a random length scale for every row."""
    kinds, lag = pick(rng, WEIGHTS, frame.k), lags(frame.n)
    scale = log_uniform(rng, 2.0, frame.n / 4, (frame.k, 1))
    out = np.empty((frame.k, len(lag)))
    for kind in np.unique(kinds):
        rows = np.flatnonzero(kinds == kind)
        out[rows] = KERNELS[kind](lag / scale[rows])
    return out


def _periodic(rng: Generator, frame: Frame) -> np.ndarray:
    """Covariances of periodic kernels, with the period of the series where it has one."""
    k, n, lag = frame.k, frame.n, lags(frame.n)
    own = frame.periods[:, 0]
    period = np.where(own > 0, own, log_uniform(rng, 4.0, max(n / 3, 5.0), k))[:, None]
    width = log_uniform(rng, 0.4, 2.0, (k, 1))
    return np.exp(-2 * np.sin(np.pi * lag / period) ** 2 / width**2)


def _plain(rng: Generator, frame: Frame) -> np.ndarray:
    return stationary(rng, _kernel(rng, frame), frame.n)


def _sum(rng: Generator, frame: Frame) -> np.ndarray:
    share = rng.uniform(0.1, 0.9, (frame.k, 1))
    return stationary(rng, share * _kernel(rng, frame) + (1 - share) * _kernel(rng, frame), frame.n)


def _product(rng: Generator, frame: Frame) -> np.ndarray:
    """Products of a kernel with a periodic one, and the product with a linear kernel in some."""
    k, n = frame.k, frame.n
    # A length scale below the period would hide the period.
    memory = log_uniform(rng, n / 16, n / 4, (k, 1))
    draw = stationary(rng, _periodic(rng, frame) * KERNELS["rbf"](lags(n) / memory), n)
    line = rng.standard_normal((k, 1)) + rng.standard_normal((k, 1)) * np.linspace(-2.0, 2.0, n)
    return np.where(rng.random((k, 1)) < 0.25, draw * line, draw)


def _sum_with_periodic(rng: Generator, frame: Frame) -> np.ndarray:
    share = rng.uniform(0.2, 0.8, (frame.k, 1))
    periodic = _periodic(rng, frame) * KERNELS["rbf"](lags(frame.n) / (frame.n / 4))
    return stationary(rng, share * _kernel(rng, frame) + (1 - share) * periodic, frame.n)


GAUSSIAN_PROCESSES = {
    "gp_kernel": _plain,
    "gp_sum": _sum,
    "gp_product": _product,
    "gp_seasonal": _sum_with_periodic,
}
