"""Time courses that made-up series are mixed from, for many series at once: arrays of shape (k, n)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.random import Generator

BURN_IN = 200  # steps before the first one that is kept


def log_uniform(rng: Generator, low: float, high: float, size: int | tuple[int, ...]) -> np.ndarray:
    """Draws whose logarithm is uniform; all are ``low`` if ``high`` is not above it."""
    return np.exp(rng.uniform(np.log(low), np.log(max(low, high)), size))


def standardise(x: np.ndarray) -> np.ndarray:
    """Mean 0 and deviation 1 of every row; constant rows become 0."""
    x = x - x.mean(1, keepdims=True)
    deviation = x.std(1, keepdims=True)
    return x / np.where(deviation > 1e-12, deviation, np.inf)


def pick(rng: Generator, shares: Mapping[str, float], size: int) -> np.ndarray:
    """Names at random, with these (unnormalised) probabilities."""
    p = np.array(list(shares.values()))
    return rng.choice(list(shares), size, p=p / p.sum())


def stationary(rng: Generator, covariance: np.ndarray, n: int) -> np.ndarray:
    """Draw stationary Gaussian processes, exactly, by circulant embedding [1]_.

    Parameters
    ----------
    rng : Generator
        Source of randomness.
    covariance : ndarray of shape (k, m + 1)
        Covariances at lags 0 to m >= n, small at the last ones: where they are not, the embedding is not
        quite positive, and what is negative is left out.
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
    >>> from taylorformer_forecast.training._time_courses import stationary
    >>> lags = np.arange(64.0)
    >>> x = stationary(np.random.default_rng(0), np.exp(-lags / 5) * np.ones((20000, 1)), 12)
    >>> abs(np.mean(x[:, 2] * x[:, 7]) - np.exp(-1)).round(1)
    np.float64(0.0)
    """
    size = 2 * (covariance.shape[1] - 1)
    power = np.fft.hfft(covariance, size)[:, : size // 2 + 1].clip(0.0)
    white = np.fft.rfft(rng.standard_normal((len(covariance), size)))
    return np.fft.irfft(white * np.sqrt(power), size)[:, :n]


def lags(n: int) -> np.ndarray:
    """Lags of an embedding in which time scales up to n / 4 have died away."""
    return np.arange(2.0 ** (np.ceil(np.log2(1.5 * n))) + 1)


def slow(rng: Generator, scale: np.ndarray, n: int) -> np.ndarray:
    """Smooth random functions of deviation 1 with these time scales (k,), or n / 4 where that is less."""
    scaled = lags(n) / np.minimum(scale, n / 4)[:, None]
    return stationary(rng, np.exp(-0.5 * scaled**2), n)


def kernel(rng: Generator, kind: str, n: int, period: np.ndarray) -> np.ndarray:
    """Covariances of one kind of kernel at :func:`lags`, with random time scales; periods (k,)."""
    k, lag = len(period), lags(n)
    scale = np.minimum(log_uniform(rng, 3.0, n / 4, k), n / 4)[:, None]
    s = lag / scale
    if kind == "rbf":
        return np.exp(-0.5 * s**2)
    if kind == "matern12":
        return np.exp(-s)
    if kind == "matern32":
        return (1 + np.sqrt(3) * s) * np.exp(-np.sqrt(3) * s)
    if kind == "matern52":
        return (1 + np.sqrt(5) * s + 5 / 3 * s**2) * np.exp(-np.sqrt(5) * s)
    if kind == "rational":
        alpha = log_uniform(rng, 0.3, 3.0, (k, 1))
        return (1 + s**2 / (2 * alpha)) ** -alpha
    assert kind == "periodic"  # and slowly forgotten
    width = log_uniform(rng, 0.4, 2.0, (k, 1))
    memory = np.minimum(period * log_uniform(rng, 2.0, 20.0, k), n / 4)[:, None]
    wave = np.sin(np.pi * lag / period[:, None]) ** 2
    return np.exp(-2 * wave / width**2 - 0.5 * (lag / memory) ** 2)


def autoregression(coefficients: np.ndarray, innovations: np.ndarray) -> np.ndarray:
    """Values of autoregressions with coefficients (k, q) of the last q values, nearest first."""
    backwards = coefficients.T[::-1].copy()
    order, e = len(backwards), innovations.T
    y = np.zeros((len(e) + order, e.shape[1]))
    for i, now in enumerate(e):
        y[i + order] = now + (backwards * y[i : i + order]).sum(0)
    return y[order:].T


def _quadratic(rng: Generator, cyclic: np.ndarray, n: int, forget: float) -> tuple[np.ndarray, np.ndarray]:
    """Two coefficients of a stationary autoregression: of a stochastic cycle, or with two real roots."""
    k = len(cyclic)
    period = log_uniform(rng, 3.0, n / 5, k)
    memory = log_uniform(rng, 0.5, 15.0, k)  # in periods
    radius, angle = np.exp(-1 / (period * memory)).clip(0.0, 1 - forget), 2 * np.pi / period
    slow_root, quick_root = 1 - log_uniform(rng, forget, 1.0, k), rng.uniform(-0.7, 0.0, k)
    one, two = np.where(rng.random(k) < 0.75, slow_root, quick_root), rng.uniform(-0.6, 0.8, k)
    return (
        np.where(cyclic, 2 * radius * np.cos(angle), one + two),
        np.where(cyclic, -(radius**2), -one * two),
    )


def coloured(rng: Generator, order: np.ndarray, n: int, cyclic: float, forget: float) -> np.ndarray:
    """Draw stationary autoregressions of deviation 1, with random coefficients.

    Parameters
    ----------
    rng : Generator
        Source of randomness.
    order : int ndarray of shape (k,)
        Orders, from 1 to 4.
    n : int
        Points.
    cyclic : float
        Share of stochastic cycles among those of order 2 or more.
    forget : float
        Least share of its value that a process forgets in a step.

    Returns
    -------
    ndarray of shape (k, n)
    """
    k = len(order)
    a1, a2 = _quadratic(rng, (rng.random(k) < cyclic) & (order > 1), n, forget)
    first = 1 - log_uniform(rng, forget, 1.0, k)
    a1, a2 = np.where(order == 1, first, a1), np.where(order == 1, 0.0, a2)
    b1, b2 = _quadratic(rng, (rng.random(k) < cyclic) & (order > 3), n, forget)
    b1 = np.where(order > 2, np.where(order > 3, b1, rng.uniform(-0.7, 0.7, k)), 0.0)
    b2 = np.where(order > 3, b2, 0.0)
    # (1 - a1 L - a2 L^2) (1 - b1 L - b2 L^2), with the lag operator L
    coefficients = np.stack([a1 + b1, a2 + b2 - a1 * b1, -a1 * b2 - a2 * b1, -a2 * b2], -1)
    return standardise(autoregression(coefficients, rng.standard_normal((k, n + BURN_IN)))[:, BURN_IN:])


def heavy(rng: Generator, k: int, n: int, calm: float = 0.5) -> np.ndarray:
    """White noise of deviation 1: normal for a share ``calm`` of the rows, else Student-t."""
    freedom = np.where(rng.random(k) < calm, 200.0, log_uniform(rng, 2.5, 15.0, k))[:, None]
    chi = rng.standard_gamma(np.broadcast_to(freedom / 2, (k, n))) * 2 / freedom
    return rng.standard_normal((k, n)) / np.sqrt(chi.clip(1e-3)) * np.sqrt((freedom - 2) / freedom)


def garch(rng: Generator, e: np.ndarray) -> np.ndarray:
    """Deviations that make white noise (k, n) of deviation 1 a GARCH(1, 1) process [1]_.

    References
    ----------
    .. [1] Bollerslev (1986), "Generalized autoregressive conditional heteroskedasticity", Journal of
       Econometrics 31.
    """
    k = len(e)
    persistence = 1 - log_uniform(rng, 0.005, 0.2, k)
    shock = persistence * rng.uniform(0.03, 0.25, k)
    variance, out = np.ones(k), np.empty((e.shape[1], k))
    for i, now in enumerate(e.T):
        out[i] = np.sqrt(variance)
        last = np.minimum(variance * now**2, 25.0)  # a bound that keeps all moments finite
        variance = 1 - persistence + shock * last + (persistence - shock) * variance
    return out.T


def trend(rng: Generator, kind: str, k: int, n: int) -> np.ndarray:
    """Deterministic trends of random direction."""
    u = np.linspace(0.0, 1.0, n)
    sign = np.where(rng.random((k, 1)) < 0.65, 1.0, -1.0)  # growth is more common than decline
    if kind == "none":
        return np.zeros((k, n))
    if kind == "linear":
        return sign * u
    if kind == "damped":
        return sign * (1 - np.exp(-u * log_uniform(rng, 1.5, 12.0, (k, 1))))
    if kind == "logistic":
        return sign / (1 + np.exp(-log_uniform(rng, 4.0, 40.0, (k, 1)) * (u - rng.uniform(0.1, 0.9, (k, 1)))))
    if kind == "exponential":
        return sign * np.exp(log_uniform(rng, 0.7, 4.0, (k, 1)) * u)
    assert kind == "broken"
    out = rng.standard_normal((k, 1)) * u
    for _ in range(4):
        bend = rng.standard_normal((k, 1)) * (rng.random((k, 1)) < 0.5)
        out += bend * np.maximum(u - rng.random((k, 1)), 0.0)
    return out


def steps(rng: Generator, k: int, n: int, most: float) -> np.ndarray:
    """Sums of jumps at random times, from one to about ``most`` of them."""
    jumps = rng.random((k, n)) < log_uniform(rng, 1.0, most, (k, 1)) / n
    jumps[np.arange(k), rng.integers(n // 10, n - n // 10, k)] = True
    return np.cumsum(jumps * heavy(rng, k, n), 1)


def peaks(rng: Generator, spacing: np.ndarray, anchored: np.ndarray, n: int) -> np.ndarray:
    """Peaks of random heights and widths, faster up than down, as of epidemics and sunspots.

    Distances vary about ``spacing`` (k,); where ``anchored`` (k,), dates vary about multiples of it instead.
    """
    k, t = len(spacing), np.arange(float(n))
    rise = spacing * log_uniform(rng, 0.03, 0.2, k)
    fall = rise * log_uniform(rng, 0.8, 3.0, k)
    spread = log_uniform(rng, 0.1, 1.0, k)
    jitter = np.where(anchored, log_uniform(rng, 0.01, 0.1, k), log_uniform(rng, 0.02, 0.5, k))
    date = -spacing * rng.random(k)
    out = np.zeros((k, n))
    live = np.arange(k)
    while len(live):
        late = jitter[live] * spacing[live] * rng.standard_normal(len(live))
        away = t - (date[live] + late)[:, None]
        width = np.where(away < 0, rise[live, None], fall[live, None])
        width *= np.exp(0.15 * rng.standard_normal((len(live), 1)))
        height = np.exp(spread[live] * rng.standard_normal(len(live)))[:, None]
        out[live] += height * np.exp(-0.5 * (away / width) ** 2)
        date[live] += spacing[live] + np.where(anchored[live], 0.0, late).clip(-0.7 * spacing[live])
        live = live[date[live] < n + spacing[live]]
    return out
