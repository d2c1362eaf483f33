"""The Normal family."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from scipy.special import erf, ndtr, ndtri
from torch import Tensor
from torch.distributions import Normal

from taylorformer_forecast.core.families.base import Generator, Noise
from taylorformer_forecast.core.families.location_scale import Array, LocationScaleFamily, Shape


class NormalFamily(LocationScaleFamily):
    """Gaussian with free location and scale.

    Parameters
    ----------
    scale : {"exp", "bounded", "softplus"}, default="exp"
        How the unconstrained scale becomes positive.

    Examples
    --------
    >>> import torch
    >>> from taylorformer_forecast.core.families import find_family
    >>> find_family("normal")(torch.zeros(3, 1, 2), torch.ones(3, 1)).mean[0]
    tensor([1.])
    """

    kind = Normal
    symmetric = True
    has_pair_distance = True

    def noise(self, like: Tensor, shape: Mapping[str, Tensor], generator: Generator, given: Noise) -> Tensor:
        """Gaussian noise: what is given, if it is."""
        if given is not None:
            return given
        return torch.randn(like.shape, generator=generator, device=like.device, dtype=like.dtype)

    def cdf(self, z: Array, shape: Shape) -> Array:
        """Probability of values up to z."""
        return ndtr(z)

    def log_pdf(self, z: Array, shape: Shape) -> Array:
        """Log-density."""
        return -0.5 * z * z - 0.5 * np.log(2 * np.pi)

    def variance(self, shape: Shape) -> Array:
        """One."""
        return 1.0

    def distance(self, z: Array, shape: Shape) -> Array:
        """E|Z - z|."""
        return z * (2 * ndtr(z) - 1) + 2 * np.exp(self.log_pdf(z, shape))

    def pair_distance(self, gap: Array, s: Array, t: Array) -> Array:
        """E|X - Y| of Gaussian variables."""
        var = s**2 + t**2
        return gap * erf(gap / np.sqrt(2 * var)) + np.sqrt(2 / np.pi * var) * np.exp(-0.5 * gap * gap / var)

    def bounds(self, p: np.ndarray, shape: Shape, sign: Array = 1.0) -> tuple[Array, Array]:
        """Both are the quantile itself."""
        goal = ndtri(p)
        return goal, goal

    def quantile(self, p: np.ndarray, shape: Shape) -> Array:
        """Quantiles at 0 < p < 1."""
        return ndtri(p)

    def random(self, rng: np.random.Generator, size: tuple[int, ...], shape: Shape) -> np.ndarray:
        """Draws from a numpy generator."""
        return rng.standard_normal(size)
