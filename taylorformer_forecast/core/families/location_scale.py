"""Location-scale families, which need little more than a density and a distribution function."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar, TypeAlias

import numpy as np
import torch
from torch import Tensor
from torch.distributions import Categorical, Distribution, MixtureSameFamily

from taylorformer_forecast.core.families import numeric
from taylorformer_forecast.core.families.base import (
    CERTAIN,
    Components,
    Family,
    Generator,
    Location,
    Noise,
    Raw,
    ResidualScale,
)
from taylorformer_forecast.core.families.numeric import Array

Weights: TypeAlias = np.ndarray | None  # of components, equal if None
Shape: TypeAlias = Mapping[str, np.ndarray]  # shape parameters by name


def positive_uniform(like: Tensor, generator: Generator) -> Tensor:
    """Uniform numbers between 0 and 1 of the shape of a tensor, none of them 0.

    One in 2^24 would be, in single precision, and its quantile infinite: it is half of the next larger one.
    """
    drawn = torch.rand(like.shape, generator=generator, device=like.device, dtype=like.dtype)
    return drawn.clamp_min(torch.finfo(like.dtype).eps / 4)


class LocationScaleFamily(Family):
    """Family whose members are ``loc + scale * Z`` with Z standard, up to shape parameters.

    A new family needs ``kind``, :meth:`cdf` and :meth:`log_pdf`, and one call of
    :func:`~taylorformer_forecast.core.families.register`; with shape parameters ``n_params`` and
    :meth:`distribution`, too. All else has defaults, by numerical integration and bisection where there is no
    closed form. Override these for speed.

    ``kind`` takes ``loc``, ``scale`` and the shape parameters by name, has attributes of these names, and a
    ``mean`` and a ``variance``.

    Attributes
    ----------
    shape_names : tuple of str
        Names of the shape parameters, those that a change of units leaves alone.
    positive_names : tuple of str
        Those of them that must be positive.
    symmetric : bool
        Whether -Z has the distribution of Z.
    support : (float, float)
        Lowest and highest value of Z.
    has_pair_distance : bool
        Whether :meth:`pair_distance` is defined.
    inverts_mixtures : bool
        Whether :meth:`mixture_quantile` is defined.

    Notes
    -----
    Methods with an argument ``shape`` are mathematics of Z in numpy. They take arrays of any shape, and
    shape parameters that broadcast with them.
    """

    shape_names: ClassVar[tuple[str, ...]] = ()
    positive_names: ClassVar[tuple[str, ...]] = ()
    symmetric: ClassVar[bool] = False
    support: ClassVar[tuple[float, float]] = (-np.inf, np.inf)
    has_pair_distance: ClassVar[bool] = False
    inverts_mixtures: ClassVar[bool] = False

    n_params = 2  # location, and scale before it is made positive

    # ---- distributions in torch --------------------------------------------------------------------------

    def distribution(self, raw: Raw, loc: Location, scale: ResidualScale = 1.0) -> Distribution:
        """Distribution with location ``loc + scale * raw[..., 0]``."""
        return self.of(loc=loc + scale * raw[..., 0], scale=scale * self.positive(raw[..., 1]))

    def components(self, distribution: Distribution) -> Components:
        """The distribution itself, as one component."""
        found = [getattr(distribution, name)[..., None] for name in ("loc", "scale", *self.shape_names)]
        shape = dict(zip(self.shape_names, found[2:], strict=True))
        return Components(self, found[0], found[1], shape=shape)

    def of(self, **parameters: Tensor) -> Distribution:
        """Distribution with these parameters, by name, which are not checked."""
        return self.kind(**parameters, validate_args=False)

    def rebuild(self, parts: Components) -> Distribution:
        """Distribution of one component, or mixture of several."""
        shape = {
            name: value.to(parts.loc.dtype) for name, value in parts.shape.items()
        }  # units may be float64
        tensors = {"loc": parts.loc, "scale": parts.scale, **shape}
        if parts.weights is None:
            return self.of(**{k: v[..., 0] for k, v in tensors.items()})
        weights = Categorical(parts.weights, validate_args=False)
        return MixtureSameFamily(weights, self.of(**tensors), validate_args=False)

    def draw(self, parts: Components, generator: Generator = None, noise: Noise = None) -> Tensor:
        """Draw once from components, (..., D): choose one, and draw from it."""
        loc, scale, shape = parts.loc, parts.scale, dict(parts.shape)
        if parts.weights is not None:
            level = torch.rand(loc.shape[:-1], generator=generator, device=loc.device, dtype=loc.dtype)
            cumulative = parts.weights.cumsum(-1)
            chosen = (level[..., None] > cumulative[..., :-1]).sum(-1, keepdim=True)
            loc, scale = loc.gather(-1, chosen), scale.gather(-1, chosen)
            shape = {name: value.gather(-1, chosen) for name, value in shape.items()}
        loc, scale = loc[..., 0], scale[..., 0]
        shape = {name: value[..., 0] for name, value in shape.items()}
        return loc + scale * self.noise(loc, shape, generator, noise)

    def noise(self, like: Tensor, shape: Mapping[str, Tensor], generator: Generator, given: Noise) -> Tensor:
        """Draws of Z with the shape of a tensor; they increase with given Gaussian noise.

        By default the quantiles of uniform numbers.
        """
        level = positive_uniform(like, generator) if given is None else torch.special.ndtr(given)
        level = level.double().clamp(torch.finfo(torch.float64).tiny, 1 - torch.finfo(torch.float64).eps)
        numbers = {name: value.double().cpu().numpy() for name, value in shape.items()}
        return torch.as_tensor(self.quantile(level.cpu().numpy(), numbers)).to(like)

    def standard(self, like: Components) -> Components:
        """Components of mean 0 and standard deviation 1 (scale 1 where there is none)."""
        shape = {name: value.double().cpu().numpy() for name, value in like.shape.items()}
        deviation = np.sqrt(self.variance(shape))
        factor = np.where(np.isfinite(deviation), 1 / deviation, 1.0)
        scale = torch.as_tensor(factor).to(like.scale).expand_as(like.scale)
        loc = torch.as_tensor(-factor * self.mean(shape)).to(like.loc).expand_as(like.loc)
        return replace(like, loc=loc, scale=scale)

    # ---- mathematics of Z in numpy -----------------------------------------------------------------------

    @abstractmethod
    def cdf(self, z: Array, shape: Shape) -> Array:
        """Probability of values up to z."""

    @abstractmethod
    def log_pdf(self, z: Array, shape: Shape) -> Array:
        """Log-density."""

    def sf(self, z: Array, shape: Shape) -> Array:
        """Probability of values above z."""
        return self.cdf(-z, shape) if self.symmetric else 1 - self.cdf(z, shape)

    def mean(self, shape: Shape) -> Array:
        """Mean."""
        return 0.0 if self.symmetric else numeric.moments(self.log_pdf, shape)[0]

    def variance(self, shape: Shape) -> Array:
        """Variance."""
        return numeric.moments(self.log_pdf, shape)[1]

    def distance(self, z: Array, shape: Shape) -> Array:
        """Expected distance E|Z - z|."""
        return numeric.distance(self.cdf, self.sf, self.mean(shape), z, shape)

    def pair_distance(self, gap: Array, s: Array, t: Array) -> Array:
        """E|X - Y| of members whose locations differ by ``gap``, with scales s and t, if it is known."""
        raise NotImplementedError

    def points(self, m: np.ndarray, s: np.ndarray) -> np.ndarray:
        """Which components of mixtures with these locations and scales (..., K) stand for a single value."""
        return s == CERTAIN

    def mixture_quantile(self, p: np.ndarray, m: np.ndarray, s: np.ndarray, w: Weights) -> np.ndarray:
        """Quantiles at p (n,) of mixtures with these locations, scales, weights (n, K), if exactly known."""
        raise NotImplementedError

    def bounds(self, p: np.ndarray, shape: Shape, sign: Array = 1.0) -> tuple[Array, Array]:
        """Lower and upper bound of the quantiles of ``sign * Z`` at p, over components (the last axis)."""
        return numeric.bracket(lambda z: self.below(z, shape, np.asarray(sign)[..., None]), p)

    def below(self, z: Array, shape: Shape, sign: Array) -> Array:
        """Probability of ``sign * Z`` up to z."""
        if self.symmetric:
            return self.cdf(z, shape)
        return np.where(np.asarray(sign) > 0, self.cdf(z, shape), self.sf(-z, shape))

    def rough(self, z: Array, shape: Shape) -> tuple[Array, Array] | None:
        """Probability up to z and density, quickly and to two digits, where ``cdf`` takes long."""
        return None

    def quantile(self, p: np.ndarray, shape: Shape) -> Array:
        """Quantiles at 0 < p < 1."""
        sign, low_p = np.where(p > 0.5, -1.0, 1.0), np.minimum(p, 1 - p)
        low, high = self.bounds(low_p, {name: value[..., None] for name, value in shape.items()}, sign)
        return sign * numeric.bisect(lambda z: self.below(z, shape, sign), low_p, low, high)

    def random(self, rng: np.random.Generator, size: tuple[int, ...], shape: Shape) -> np.ndarray:
        """Draws of Z from a numpy generator."""
        return np.asarray(self.quantile(np.maximum(rng.random(size), np.finfo(float).tiny), shape))
