"""The Student-t family."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import torch
import torch.nn.functional as F
from scipy.special import gammaln, ndtr, ndtri, stdtr, stdtrit
from torch import Tensor
from torch.distributions import Chi2, Distribution, StudentT
from torch.distributions.utils import broadcast_all

from taylorformer_forecast.core.families.base import (
    Components,
    Generator,
    Location,
    Noise,
    Raw,
    ResidualScale,
)
from taylorformer_forecast.core.families.location_scale import (
    Array,
    LocationScaleFamily,
    Shape,
    positive_uniform,
)
from taylorformer_forecast.defaults import INITIAL_DF, MIN_DF, NEARLY_NORMAL_DF


class QuickStudentT(StudentT):
    """Student-t that reads no value back from its device.

    torch's own checks its parameters and writes through masks, which waits for the device.
    """

    def __init__(self, df: Tensor, loc: Tensor, scale: Tensor) -> None:
        self.df, self.loc, self.scale = broadcast_all(df, loc, scale)
        self._chi2 = Chi2(self.df, validate_args=False)
        Distribution.__init__(self, self.df.size(), validate_args=False)

    def expand(self, batch_shape: Sequence[int], _instance: Distribution | None = None) -> QuickStudentT:
        """The same for a larger batch."""
        return QuickStudentT(*(part.expand(batch_shape) for part in (self.df, self.loc, self.scale)))

    @property
    def mean(self) -> Tensor:
        """Mean, undefined up to one degree of freedom."""
        return torch.where(self.df > 1, self.loc, torch.nan)

    @property
    def variance(self) -> Tensor:
        """Variance, infinite up to two degrees of freedom and undefined up to one."""
        finite = self.scale.square() * self.df / (self.df - 2)
        return torch.where(self.df > 2, finite, torch.where(self.df > 1, torch.inf, torch.nan))


class StudentTFamily(LocationScaleFamily):
    """Student-t with free location, scale and degrees of freedom (at least 2.1, so that the variance exists).

    Parameters
    ----------
    scale : {"exp", "bounded", "softplus"}, default="exp"
        How the unconstrained scale becomes positive.

    Examples
    --------
    >>> import torch
    >>> from taylorformer_forecast.core.families import find_family
    >>> find_family("studentt")(torch.zeros(3, 1, 3), torch.ones(3, 1)).df[0].round(decimals=1)
    tensor([12.])
    """

    kind = StudentT
    n_params = 3
    shape_names = ("df",)
    positive_names = ("df",)
    symmetric = True

    def distribution(self, raw: Raw, loc: Location, scale: ResidualScale = 1.0) -> Distribution:
        """Student-t with location ``loc + scale * raw[..., 0]``."""
        df = (2.0 + F.softplus(raw[..., 2] + (INITIAL_DF - 2.0))).clamp_min(MIN_DF)
        return self.of(df=df, loc=loc + scale * raw[..., 0], scale=scale * self.positive(raw[..., 1]))

    def of(self, **parameters: Tensor) -> Distribution:
        """Student-t with these parameters, which are not checked."""
        return QuickStudentT(**parameters)

    def noise(self, like: Tensor, shape: Mapping[str, Tensor], generator: Generator, given: Noise) -> Tensor:
        """Draws by Bailey's polar method (1994), exact for any degrees of freedom."""
        df = shape["df"]
        if given is None:  # from two uniforms
            u, angle = (positive_uniform(like, generator) for _ in range(2))
            return (df * (u ** (-2.0 / df) - 1.0)).sqrt() * (2 * math.pi * angle).cos()
        # From two Gaussians, of which the given noise is one.
        other = torch.randn(like.shape, generator=generator, device=like.device, dtype=like.dtype)
        radius = (given.square() + other.square()).clamp_min(torch.finfo(like.dtype).tiny)
        return given * (df * (radius / df).expm1() / radius).sqrt()

    def standard(self, like: Components) -> Components:
        """Components with nearly a standard Gaussian distribution."""
        shape = {"df": torch.full_like(like.shape["df"], NEARLY_NORMAL_DF)}
        return replace(like, loc=torch.zeros_like(like.loc), scale=torch.ones_like(like.scale), shape=shape)

    def cdf(self, z: Array, shape: Shape) -> Array:
        """Probability of values up to z."""
        return stdtr(shape["df"], z)

    def log_pdf(self, z: Array, shape: Shape) -> Array:
        """Log-density."""
        df = shape["df"]
        norm = gammaln((df + 1) / 2) - gammaln(df / 2) - 0.5 * np.log(np.pi * df)
        return norm - (df + 1) / 2 * np.log1p(z * z / df)

    def variance(self, shape: Shape) -> Array:
        """Variance, infinite up to two degrees of freedom."""
        df = shape["df"]
        with np.errstate(divide="ignore"):
            return np.where(df > 2, df / np.maximum(df - 2, 0), np.inf)

    def distance(self, z: Array, shape: Shape) -> Array:
        """E|Z - z|."""
        df = shape["df"]
        tail = (df + z * z) / (df - 1)
        return z * (2 * stdtr(df, z) - 1) + 2 * tail * np.exp(self.log_pdf(z, shape))

    def bounds(self, p: np.ndarray, shape: Shape, sign: Array = 1.0) -> tuple[Array, Array]:
        """Quantiles of the heaviest tail among the components and of the Normal tail."""
        return stdtrit(shape["df"].min(-1), p) * (1 + 1e-6), ndtri(p)

    def rough(self, z: Array, shape: Shape) -> tuple[Array, Array]:
        """Probability and density by the normal approximation of Wallace (1959)."""
        df = shape["df"]
        factor, ratio = (8 * df + 1) / (8 * df + 3), z * z / df
        u = factor * np.sqrt(df * np.log1p(ratio))
        slope = np.where(u > 0, factor**2 * np.abs(z) / np.where(u > 0, u, 1.0), factor) / (1 + ratio)
        return ndtr(np.copysign(u, z)), slope * np.exp(-0.5 * u * u) / math.sqrt(2 * math.pi)

    def random(self, rng: np.random.Generator, size: tuple[int, ...], shape: Shape) -> np.ndarray:
        """Draws from a numpy generator."""
        return rng.standard_t(np.broadcast_to(shape["df"], size))
