"""Uniform distributions: what quantile functions and forecasts by pieces consist of."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor
from torch.distributions import Distribution, Uniform

from taylorformer_forecast.core.families.base import (
    CERTAIN,
    POINT_MASS,
    Components,
    Generator,
    Noise,
)
from taylorformer_forecast.core.families.location_scale import Array, LocationScaleFamily, Shape, Weights

ROUNDING = 1e-9  # around the ends of a piece: rounding is less


class UniformFamily(LocationScaleFamily):
    """Uniform distributions between ``loc - scale`` and ``loc + scale``.

    One of scale :data:`~taylorformer_forecast.core.families.base.POINT_MASS`, in units of the largest value
    of its mixture, stands for a single value: quantiles within it are its location.

    Examples
    --------
    >>> import numpy as np
    >>> from taylorformer_forecast.core.families import find_component
    >>> find_component("uniform").cdf(np.array([-2.0, 0.0, 0.5]), {})
    array([0.  , 0.5 , 0.75])
    """

    kind = Uniform
    symmetric = True
    support = (-1.0, 1.0)
    has_pair_distance = True
    inverts_mixtures = True

    def components(self, distribution: Distribution) -> Components:
        """The distribution itself, as one component."""
        assert isinstance(distribution, Uniform)
        low, high = distribution.low[..., None], distribution.high[..., None]
        return Components(self, (low + high) / 2, (high - low) / 2)

    def of(self, **parameters: Tensor) -> Distribution:
        """Uniform distribution with this location and scale."""
        loc, scale = parameters["loc"], parameters["scale"]
        return Uniform(loc - scale, loc + scale, validate_args=False)

    def noise(self, like: Tensor, shape: Mapping[str, Tensor], generator: Generator, given: Noise) -> Tensor:
        """Uniform noise between -1 and 1."""
        if given is not None:
            return 2 * torch.special.ndtr(given) - 1
        return 2 * torch.rand(like.shape, generator=generator, device=like.device, dtype=like.dtype) - 1

    def cdf(self, z: Array, shape: Shape) -> Array:
        """Probability of values up to z."""
        return np.clip((z + 1) / 2, 0, 1)

    def log_pdf(self, z: Array, shape: Shape) -> Array:
        """Log-density; half of it at the ends, so that where pieces meet neither both count nor none."""
        inside, end = np.abs(z) < 1 - ROUNDING, np.abs(z) <= 1 + ROUNDING
        return np.where(inside, -np.log(2), np.where(end, -np.log(4), -np.inf))

    def variance(self, shape: Shape) -> Array:
        """One third."""
        return 1 / 3

    def distance(self, z: Array, shape: Shape) -> Array:
        """E|Z - z|."""
        return np.where(np.abs(z) < 1, (1 + z * z) / 2, np.abs(z))

    def pair_distance(self, gap: Array, s: Array, t: Array) -> Array:
        """E|X - Y| of uniform variables: the gap itself unless they overlap."""
        gap, wide, narrow = np.abs(gap), np.maximum(s, t), np.minimum(s, t)
        inside = (gap**2 + wide**2 + narrow**2 / 3) / (2 * wide)  # the narrow one lies within the wide one
        excess = np.maximum(gap + narrow - wide, 0) ** 3 / (12 * wide * narrow)
        return np.where(gap >= wide + narrow, gap, inside - excess)

    def bounds(self, p: np.ndarray, shape: Shape, sign: Array = 1.0) -> tuple[Array, Array]:
        """Both are the quantile itself."""
        return 2 * p - 1, 2 * p - 1

    def quantile(self, p: np.ndarray, shape: Shape) -> Array:
        """Quantiles at 0 < p < 1."""
        return 2 * p - 1

    def random(self, rng: np.random.Generator, size: tuple[int, ...], shape: Shape) -> np.ndarray:
        """Draws from a numpy generator."""
        return rng.uniform(-1, 1, size)

    def points(self, m: np.ndarray, s: np.ndarray) -> np.ndarray:
        """Which components of mixtures (..., K) stand for a single value."""
        return (s == CERTAIN) | (s <= 1.5 * POINT_MASS * (np.abs(m) + s).max(-1, keepdims=True))

    def mixture_quantile(self, p: np.ndarray, m: np.ndarray, s: np.ndarray, w: Weights) -> np.ndarray:
        """Quantiles of mixtures: between the ends of components the distribution function is straight."""
        # Above the median mixtures are mirrored: probabilities near 0 have all their digits, near 1 not.
        sign, p = np.where(p > 0.5, -1.0, 1.0), np.minimum(p, 1 - p).clip(np.finfo(float).tiny)
        m, w = m * sign[:, None], np.full_like(m, 1 / m.shape[-1]) if w is None else w
        s = np.maximum(s, np.spacing(np.abs(m)))
        low, high = m - s, m + s
        ends, cell = np.sort(np.concatenate([low, high], -1), -1), np.arange(len(m))

        def below(number: np.ndarray) -> np.ndarray:
            part = ((ends[cell, number, None] - low) / (high - low)).clip(0, 1)
            return np.einsum("nk,nk->n", part, w)

        # The first end with a probability of p below it; mirrored, of more than p: a single value is its own
        # quantile at its distribution function, but for rounding.
        first, last = np.zeros(len(m), int), np.full(len(m), ends.shape[-1] - 1)
        rounding = -1e-12 * sign
        for _ in range(ends.shape[-1].bit_length()):
            middle = (first + last) // 2
            enough = below(middle) >= p * (1 + rounding)
            first = np.where(enough, first, np.minimum(middle + 1, last))
            last = np.where(enough, middle, last)
        start, stop = ends[cell, last - 1], ends[cell, last]
        f, f_stop = below(last - 1), below(last)
        x = start + (stop - start) * ((p - f) / (f_stop - f)).clip(0, 1)
        points = self.points(m, s) & (low <= start[:, None]) & (high >= stop[:, None])
        x = np.where(points.any(-1), m[cell, points.argmax(-1)], x)
        return sign * x + 0.0  # no negative zero
