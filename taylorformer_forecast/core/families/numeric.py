"""Moments, distances and quantiles of standard distributions that have no closed form."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

import numpy as np

Array: TypeAlias = np.ndarray | float
Function: TypeAlias = Callable[[Array, Mapping[str, np.ndarray]], Array]  # of z and the shape

REACH, PANELS, NODES = 12.0, 48, 8  # of moments: z = sinh(u) for |u| up to REACH, an edge at 0
TAIL = np.linspace(-4.2, 14.0, 365)  # of the grid of tails: exp(u - exp(-u)), exact for exponential tails
STEPS = 200  # of a bisection at most


def moments(log_pdf: Function, shape: Mapping[str, np.ndarray]) -> tuple[Array, Array]:
    """Mean and variance by Gaussian quadrature on panels that reach far.

    Parameters
    ----------
    log_pdf : callable
        Log-density of values, given shape parameters.
    shape : mapping of str to ndarray
        Shape parameters.

    Returns
    -------
    mean, variance : ndarray or float
        With the shape of the shape parameters.

    Examples
    --------
    >>> import numpy as np
    >>> from taylorformer_forecast.core.families.numeric import moments
    >>> mean, variance = moments(lambda z, _: -abs(z) - np.log(2), {})
    >>> abs(float(mean)) < 1e-9, round(float(variance), 4)
    (True, 2.0)
    """
    node, gauss = np.polynomial.legendre.leggauss(NODES)
    half = REACH / PANELS
    middle = np.linspace(-REACH, REACH, 2 * PANELS + 1)[1::2]
    u = (middle[:, None] + half * node).ravel()
    sums: list[Array] = [0.0, 0.0, 0.0]
    for z, weight in zip(np.sinh(u), half * np.tile(gauss, PANELS) * np.cosh(u), strict=True):
        mass = weight * np.exp(log_pdf(z, shape))
        sums = [total + mass * z**power for power, total in enumerate(sums)]
    mean = sums[1] / sums[0]
    return mean, sums[2] / sums[0] - mean**2


def distance(cdf: Function, sf: Function, mean: Array, z: Array, shape: Mapping[str, np.ndarray]) -> Array:
    """E|Z - z|: the distance to the mean plus twice the integral of the nearer tail.

    Parameters
    ----------
    cdf, sf : callable
        Probabilities below and above values, given shape parameters.
    mean : ndarray or float
        Mean of Z.
    z : ndarray or float
        Values.
    shape : mapping of str to ndarray
        Shape parameters.

    Returns
    -------
    ndarray or float
        Distances.

    Examples
    --------
    >>> import numpy as np
    >>> from taylorformer_forecast.core.families.numeric import distance
    >>> def cdf(z, _):
    ...     return np.where(z < 0, np.exp(-np.abs(z)) / 2, 1 - np.exp(-np.abs(z)) / 2)
    >>> round(float(distance(cdf, lambda z, _: cdf(-z, _), 0.0, np.array(1.0), {})), 6)  # 1 + exp(-1)
    1.367879
    """
    is_upper = np.asarray(z) > mean
    total: Array = 0.0
    reach = np.exp(TAIL - np.exp(-TAIL))
    weight = reach * (1 + np.exp(-TAIL)) * (TAIL[1] - TAIL[0])
    for step, w in zip(reach, weight, strict=True):
        total = total + w * np.where(is_upper, sf(z + step, shape), cdf(z - step, shape))
    return np.abs(z - mean) + 2 * total


def bracket(below: Callable[[np.ndarray], Array], p: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Values between which all components (the last axis) have their quantiles at p.

    Parameters
    ----------
    below : callable
        Probabilities up to values (..., 1), for all components (..., K).
    p : ndarray
        Probabilities between 0 and 1.

    Returns
    -------
    low, high : ndarray
        With the shape of p.
    """
    low, high = -np.ones_like(p), np.ones_like(p)
    for _ in range(STEPS):
        beyond = np.asarray(below(low[..., None])).max(-1) > p
        low = np.where(beyond, 2 * low, low)
        short = np.asarray(below(high[..., None])).min(-1) < p
        high = np.where(short, 2 * high, high)
        if not (beyond.any() or short.any()):
            break
    return low, high


def bisect(below: Callable[[np.ndarray], Array], p: np.ndarray, low: Array, high: Array) -> np.ndarray:
    """Where rising functions are p, between bounds, to rounding: quantiles of distributions.

    Parameters
    ----------
    below : callable
        The functions, such as probabilities up to values.
    p : ndarray
        What they are to be.
    low, high : ndarray or float
        Bounds.

    Returns
    -------
    ndarray
        With the shape of p.

    Examples
    --------
    >>> import numpy as np
    >>> from taylorformer_forecast.core.families.numeric import bisect
    >>> bisect(lambda z: z**3, np.array([0.125]), 0.0, 1.0)
    array([0.5])
    """
    low, high = np.broadcast_to(low, p.shape), np.broadcast_to(high, p.shape)
    for _ in range(STEPS):
        middle = low + (high - low) / 2
        is_below = np.asarray(below(middle)) < p
        low, high = np.where(is_below, middle, low), np.where(is_below, high, middle)
        if (high - low <= 1e-15 * np.maximum(np.abs(low), np.abs(high))).all():
            break
    return low + (high - low) / 2
