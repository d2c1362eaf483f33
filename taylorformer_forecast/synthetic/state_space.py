"""Linear state-space levels: random walks, local trends, ARIMA, cycles and exponential smoothing."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator

from taylorformer_forecast.synthetic.frame import Frame, log_uniform, random_sign

BURN_IN = 100  # steps before the first that is kept
LONGEST_SEASON = 60  # steps of a season in the state of exponential smoothing


def random_walk(steps: np.ndarray, drift: np.ndarray) -> np.ndarray:
    """Random walks with drift (k,) from their innovations (k, n), from 0 at the first point.

    Examples
    --------
    >>> import numpy as np
    >>> from taylorformer_forecast.synthetic.state_space import random_walk
    >>> random_walk(np.array([[9.0, 1.0, -1.0, 2.0]]), np.array([0.5]))
    array([[0. , 1.5, 1. , 3.5]])
    """
    moves = steps + drift[:, None]
    moves[:, 0] = 0.0
    return np.cumsum(moves, 1)


def arma(innovations: np.ndarray, ar: np.ndarray, ma: np.ndarray) -> np.ndarray:
    """Autoregressive moving averages with coefficients ``ar`` (k, p) and ``ma`` (k, q).

    Examples
    --------
    >>> import numpy as np
    >>> from taylorformer_forecast.synthetic.state_space import arma
    >>> arma(np.array([[1.0, 0.0, 0.0, 0.0]]), np.array([[0.5]]), np.array([[1.0]]))
    array([[1.   , 1.5  , 0.75 , 0.375]])
    """
    e = innovations.T
    shocks = e.copy()
    for lag in range(1, ma.shape[1] + 1):
        shocks[lag:] += ma[:, lag - 1] * e[:-lag]
    p = ar.shape[1]
    if p == 0:
        return shocks.T
    if p == 1:
        return _first_order(shocks.T.copy(), ar)
    y = np.zeros((len(e) + p, e.shape[1]))
    y[p:] = shocks
    backwards = ar.T[::-1].copy()
    for i in range(len(e)):
        y[i + p] += (backwards * y[i : i + p]).sum(0)
    return y[p:].T


def stationary_ar1(rng: Generator, r: np.ndarray, n: int) -> np.ndarray:
    """Autoregressions of order 1 with coefficients r (k, 1) and deviation 1, from the first point on."""
    shocks = rng.standard_normal((len(r), n)) * np.sqrt(1 - r**2)
    shocks[:, 0] = rng.standard_normal(len(r))
    return _first_order(shocks, r)


def _first_order(y: np.ndarray, r: np.ndarray) -> np.ndarray:
    """Autoregressions of order 1 in log2(n) passes: 1 / (1 - r B) is the product of 1 + (r B)^(2^j)."""
    lag, power = 1, r
    while lag < y.shape[1]:
        y[:, lag:] = y[:, lag:] + power * y[:, :-lag]
        lag, power = 2 * lag, power**2
    return y


def seasonal_arima(innovations: np.ndarray, ma: np.ndarray, seasonal_ma: np.ndarray, m: int) -> np.ndarray:
    """Airline models: ARIMA (0, 1, 1)(0, 1, 1) with period m, from 0 [1]_.

    References
    ----------
    .. [1] Box and Jenkins (1970), "Time Series Analysis: Forecasting and Control".

    Examples
    --------
    >>> import numpy as np
    >>> from taylorformer_forecast.synthetic.state_space import seasonal_arima
    >>> e = np.array([[1.0, 0, 0, 0, 0, 0]])
    >>> seasonal_arima(e, np.array([0.0]), np.array([0.0]), 2)  # (1 - B)(1 - B^2) y = e
    array([[1., 1., 2., 2., 3., 3.]])
    """
    k, n = innovations.shape
    w = innovations.copy()
    w[:, 1:] += ma[:, None] * innovations[:, :-1]
    shocks = w.copy()
    shocks[:, m:] += seasonal_ma[:, None] * w[:, :-m]
    cycles = -(-n // m)
    padded = np.zeros((k, cycles * m))
    padded[:, :n] = np.cumsum(shocks, 1)
    return np.cumsum(padded.reshape(k, cycles, m), 1).reshape(k, -1)[:, :n]


def smoothing(
    errors: np.ndarray,
    alpha: np.ndarray,
    beta: np.ndarray,
    phi: np.ndarray,
    gamma: np.ndarray,
    slope: np.ndarray,
    season: np.ndarray,
    period: np.ndarray,
) -> np.ndarray:
    """Exponential smoothing in innovations form: ETS(A, Ad, A) with additive errors [1]_.

    Parameters
    ----------
    errors : ndarray of shape (k, n)
        Innovations.
    alpha, beta, phi, gamma : ndarray of shape (k,)
        Smoothing of level, slope and season, and damping of the slope.
    slope : ndarray of shape (k,)
        Slope before the first point; the level is 0.
    season : ndarray of shape (k, m)
        Season before the first point.
    period : int ndarray of shape (k,)
        Periods, m at most.

    Returns
    -------
    ndarray of shape (k, n)

    References
    ----------
    .. [1] Hyndman, Koehler, Ord and Snyder (2008), "Forecasting with Exponential Smoothing".

    Examples
    --------
    >>> import numpy as np
    >>> from taylorformer_forecast.synthetic.state_space import smoothing
    >>> one = np.ones(1)
    >>> smoothing(np.zeros((1, 4)), one, one, one, one, 2 * one, np.array([[0.0, 1.0]]), np.array([2]))
    array([[2., 5., 6., 9.]])
    """
    k, n = errors.shape
    out, level, b, s = np.empty((n, k)), np.zeros(k), slope.copy(), season.copy()
    row = np.arange(k)
    for i, e in enumerate(errors.T):
        at = i % period
        b *= phi
        level += b
        out[i] = level + s[row, at] + e
        level += alpha * e
        b += beta * e
        s[row, at] += gamma * e
    return out.T


def _random_walk(rng: Generator, frame: Frame) -> np.ndarray:
    k = frame.k
    drift = random_sign(rng, 0.7, k) * log_uniform(rng, 0.01, 0.5, k)
    return random_walk(rng.standard_normal((k, frame.n)), drift)


def _local_trend(rng: Generator, frame: Frame) -> np.ndarray:
    """Local linear trends with a damped slope: an ARIMA with two integrations where it is not damped."""
    k, n = frame.k, frame.n
    phi = 1 - log_uniform(rng, 0.005, 0.3, (k, 1))
    slope = arma(rng.standard_normal((k, n + BURN_IN)), phi, np.empty((k, 0)))[:, BURN_IN:]
    own = log_uniform(rng, 0.05, 2.0, (k, 1)) * rng.standard_normal((k, n))
    return np.cumsum(slope + own, 1)


def _arima(rng: Generator, frame: Frame) -> np.ndarray:
    """ARIMA (p, d, q) with p and q up to 2 and d up to 1; partial autocorrelations are uniform."""
    k, n = frame.k, frame.n
    r1, r2 = rng.uniform(-0.5, 0.95, k), rng.uniform(-0.6, 0.6, k) * (rng.random(k) < 0.5)
    ar = np.stack([r1 * (1 - r2), r2], -1)
    ma = rng.uniform(-0.8, 0.8, (k, 2)) * (rng.random((k, 2)) < 0.4) * [1.0, 0.5]
    y = arma(rng.standard_normal((k, n + BURN_IN)), ar, ma)[:, BURN_IN:]
    return np.where(rng.random((k, 1)) < 0.5, np.cumsum(y, 1), y)


def _autoregression(rng: Generator, frame: Frame) -> np.ndarray:
    k = frame.k
    memory = log_uniform(rng, 0.5, max(frame.n / 4, 1.0), (k, 1))
    y = arma(rng.standard_normal((k, frame.n + BURN_IN)), np.exp(-1 / memory), np.empty((k, 0)))
    return y[:, BURN_IN:]


def _cycle(rng: Generator, frame: Frame) -> np.ndarray:
    """Stochastic cycles: autoregressions of order 2 with complex roots."""
    k = frame.k
    period = log_uniform(rng, 4.0, max(frame.n / 3, 5.0), k)
    radius = np.exp(-1 / (period * log_uniform(rng, 0.5, 10.0, k)))
    ar = np.stack([2 * radius * np.cos(2 * np.pi / period), -(radius**2)], -1)
    return arma(rng.standard_normal((k, frame.n + BURN_IN)), ar, np.empty((k, 0)))[:, BURN_IN:]


def _smoothing(rng: Generator, frame: Frame) -> np.ndarray:
    k, own = frame.k, np.round(frame.periods[:, 0]).astype(int)
    seasonal = (own > 1) & (own <= LONGEST_SEASON)
    period = np.where(seasonal, own, 1)
    alpha = rng.beta(1.0, 1.5, k)
    beta = alpha * rng.beta(1.0, 6.0, k) * (rng.random(k) < 0.7)
    phi = np.where(rng.random(k) < 0.5, 1.0, rng.uniform(0.8, 0.98, k))
    season = np.where(seasonal, log_uniform(rng, 0.1, 4.0, k), 0.0)[:, None]
    season = season * rng.standard_normal((k, LONGEST_SEASON))
    gamma = (1 - alpha) * rng.beta(1.0, 8.0, k) * seasonal
    slope = rng.normal(0.0, 0.5, k)
    return smoothing(rng.standard_normal((k, frame.n)), alpha, beta, phi, gamma, slope, season, period)


def _seasonal_arima(rng: Generator, frame: Frame) -> np.ndarray:
    k, n, period = frame.k, frame.n, np.round(frame.periods[:, 0]).astype(int)
    ma, seasonal_ma = rng.uniform(-0.9, 0.2, k), rng.uniform(-0.95, -0.1, k)
    e, out = rng.standard_normal((k, n)), np.empty((k, n))
    for m in np.unique(period):
        rows = np.flatnonzero(period == m)
        if m > 1:
            out[rows] = seasonal_arima(e[rows], ma[rows], seasonal_ma[rows], m)
        else:  # without a season: ARIMA (0, 1, 1)
            out[rows] = np.cumsum(arma(e[rows], np.empty((len(rows), 0)), ma[rows, None]), 1)
    return out


STATE_SPACE = {
    "random_walk": _random_walk,
    "local_trend": _local_trend,
    "arima": _arima,
    "autoregression": _autoregression,
    "cycle": _cycle,
    "exponential_smoothing": _smoothing,
    "seasonal_arima": _seasonal_arima,
}
