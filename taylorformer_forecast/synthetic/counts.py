"""Counts and demand: integers (k, n) from positive rates (k, n)."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator

from taylorformer_forecast.synthetic.frame import log_uniform
from taylorformer_forecast.synthetic.regimes import markov_states
from taylorformer_forecast.synthetic.state_space import stationary_ar1

LARGEST_RATE = 1e6


def poisson(rng: Generator, rate: np.ndarray) -> np.ndarray:
    """Poisson counts.

    Examples
    --------
    >>> import numpy as np
    >>> from taylorformer_forecast.synthetic.counts import poisson
    >>> x = poisson(np.random.default_rng(0), np.full((100, 100), 3.0))
    >>> float(x.var().round(0))
    3.0
    """
    return rng.poisson(rate.clip(0.0, LARGEST_RATE)).astype(float)


def negative_binomial(rng: Generator, rate: np.ndarray, dispersion: np.ndarray) -> np.ndarray:
    """Negative binomial counts of variance rate + rate^2 / dispersion, dispersion (k,).

    Examples
    --------
    >>> import numpy as np
    >>> from taylorformer_forecast.synthetic.counts import negative_binomial
    >>> x = negative_binomial(np.random.default_rng(0), np.full((200, 200), 4.0), np.full(200, 2.0))
    >>> float(x.var().round(0))
    12.0
    """
    shape = np.broadcast_to(dispersion[:, None], rate.shape)
    return poisson(rng, rate * rng.standard_gamma(shape) / shape)


def croston(rng: Generator, probability: np.ndarray, extra: np.ndarray, dispersion: np.ndarray) -> np.ndarray:
    """Intermittent demand: independent occurrences, of size 1 plus a negative binomial count [1]_.

    Parameters
    ----------
    rng : Generator
        Source of randomness.
    probability : ndarray of shape (k, n)
        Probabilities that there is demand.
    extra : ndarray of shape (k, n)
        Mean of the size above 1.
    dispersion : ndarray of shape (k,)
        Dispersion of the size.

    Returns
    -------
    ndarray of shape (k, n)

    References
    ----------
    .. [1] Croston (1972), "Forecasting and stock control for intermittent demands", Operational Research
       Quarterly 23.

    Examples
    --------
    >>> import numpy as np
    >>> from taylorformer_forecast.synthetic.counts import croston
    >>> p, extra = np.full((500, 100), 0.2), np.full((500, 100), 2.0)
    >>> x = croston(np.random.default_rng(0), p, extra, np.full(500, 5.0))
    >>> float(x.mean().round(1)), float(np.mean(x == 0).round(1))
    (0.6, 0.8)
    """
    happens = rng.random(probability.shape) < probability
    return happens * (1.0 + negative_binomial(rng, extra, dispersion))


def bursts(rng: Generator, on: np.ndarray, leave: np.ndarray, n: int) -> np.ndarray:
    """Two-state chains that are 1 for a share ``on`` (k,) of the time; mean spells of 1 last 1 / leave (k,).

    Examples
    --------
    >>> import numpy as np
    >>> from taylorformer_forecast.synthetic.counts import bursts
    >>> x = bursts(np.random.default_rng(0), np.full(5000, 0.3), np.full(5000, 0.2), 50)
    >>> float(x.mean().round(1))
    0.3
    """
    k = len(on)
    enter = (leave * on / (1 - on)).clip(0.0, 1.0)
    u, state, out = rng.random((n, k)), rng.random(k) < on, np.empty((n, k))
    for i in range(n):
        out[i] = state
        state = np.where(state, u[i] >= leave, u[i] < enter)
    return out.T


def _sizes(rng: Generator, shape: tuple[int, int], largest: float) -> tuple[np.ndarray, np.ndarray]:
    """Mean sizes above 1 (k, n), the same at all times, and their dispersions (k,)."""
    extra = log_uniform(rng, 0.1, largest, (shape[0], 1)) * (rng.random((shape[0], 1)) < 0.85)
    return np.broadcast_to(extra, shape), log_uniform(rng, 0.5, 10.0, shape[0])


def _poisson(rng: Generator, rate: np.ndarray) -> np.ndarray:
    return poisson(rng, rate * log_uniform(rng, 0.5, 300.0, (len(rate), 1)))


def _negative_binomial(rng: Generator, rate: np.ndarray) -> np.ndarray:
    rate = rate * log_uniform(rng, 0.5, 3000.0, (len(rate), 1))
    return negative_binomial(rng, rate, log_uniform(rng, 0.5, 60.0, len(rate)))


def _zero_inflated(rng: Generator, rate: np.ndarray) -> np.ndarray:
    """Poisson counts, and zeros on some days, such as those of a closed shop."""
    open_ = rng.random(rate.shape) < rng.uniform(0.3, 0.95, (len(rate), 1))
    return open_ * poisson(rng, rate * log_uniform(rng, 1.0, 100.0, (len(rate), 1)))


def _croston(rng: Generator, rate: np.ndarray) -> np.ndarray:
    """The rate moves the probability of demand."""
    chance = log_uniform(rng, 0.04, 0.6, (len(rate), 1))
    return croston(rng, (chance * rate).clip(0.0, 0.95), *_sizes(rng, rate.shape, 10.0))


def _changing_demand(rng: Generator, rate: np.ndarray) -> np.ndarray:
    """The logit of the probability of demand is an autoregression of order 1."""
    k, n = rate.shape
    r = 1 - log_uniform(rng, 0.01, 0.3, (k, 1))
    course = stationary_ar1(rng, r, n)
    logit = rng.normal(-1.5, 1.0, (k, 1)) + rng.uniform(0.5, 2.0, (k, 1)) * course
    return croston(rng, 1 / (1 + np.exp(-logit)), *_sizes(rng, rate.shape, 10.0))


def _lumpy(rng: Generator, rate: np.ndarray) -> np.ndarray:
    """Demand in bursts, of very different sizes."""
    k, n = rate.shape
    on = bursts(rng, log_uniform(rng, 0.05, 0.5, k), log_uniform(rng, 0.1, 0.9, k), n)
    extra, _ = _sizes(rng, rate.shape, 40.0)
    return on * (1 + negative_binomial(rng, extra * rate, log_uniform(rng, 0.2, 1.5, k)))


def _life_cycle(rng: Generator, rate: np.ndarray) -> np.ndarray:
    """Demand that begins after the first point, or ends before the last."""
    k, n = rate.shape
    u = np.linspace(0.0, 1.0, n)
    steep = log_uniform(rng, 4.0, 40.0, (k, 1))
    course = 1 / (1 + np.exp(-(steep * (u - rng.uniform(0.05, 0.9, (k, 1)))).clip(-50, 50)))
    course = np.where(rng.random((k, 1)) < 0.5, course, course[:, ::-1])
    chance = (log_uniform(rng, 0.1, 0.9, (k, 1)) * course * rate).clip(0.0, 0.95)
    return croston(rng, chance, *_sizes(rng, rate.shape, 10.0))


def _regime_demand(rng: Generator, rate: np.ndarray) -> np.ndarray:
    """Poisson demand whose mean depends on one of three states."""
    k, n = rate.shape
    states = markov_states(rng, 1 / log_uniform(rng, max(n / 12, 3.0), n / 1.5, k), 3, n)
    means = np.take_along_axis(log_uniform(rng, 0.05, 8.0, (k, 3)), states, 1)
    return poisson(rng, means * rate)


COUNTS = {
    "poisson": _poisson,
    "negative_binomial": _negative_binomial,
    "zero_inflated": _zero_inflated,
    "croston": _croston,
    "changing_demand": _changing_demand,
    "lumpy_demand": _lumpy,
    "demand_life_cycle": _life_cycle,
    "regime_demand": _regime_demand,
}
