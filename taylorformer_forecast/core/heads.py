"""Heads: from raw network outputs to predictive distributions, and what samplers need of those.

A head says how many raw numbers it wants for each column (``n_params``) and turns them into a
``torch.distributions`` object. :data:`HEADS` names them; to add one, write the class and add a line.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol, runtime_checkable

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor
from torch.distributions import Categorical, Distribution, MixtureSameFamily, Normal, StudentT

from taylorformer_forecast.core.distributions import Point, QuantileFunction

__all__ = [
    "HEADS",
    "POINT_HEADS",
    "Components",
    "Conditional",
    "Head",
    "affine",
    "center_of",
    "components",
    "draw",
    "find_head",
    "standard",
]

SCALE_FLOOR = 1e-3  # the published likelihood adds it to every standard deviation
LEVELS = (0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)  # odd, symmetric


def exp_scale(raw: Tensor) -> Tensor:
    """Positive scale, ``exp(raw)`` plus a floor."""
    return raw.exp() + SCALE_FLOOR


def bounded_scale(raw: Tensor) -> Tensor:
    """Positive scale of the authors' ``bound_std`` option, at least 0.01, plus the same floor."""
    return 0.01 + 0.99 * F.softplus(raw) + SCALE_FLOOR


def softplus_scale(raw: Tensor) -> Tensor:
    """Positive scale that grows linearly, ``log(1 + exp(raw))`` plus the same floor."""
    return F.softplus(raw) + SCALE_FLOOR


SCALES: dict[str, Callable[[Tensor], Tensor]] = {
    "exp": exp_scale,
    "bounded": bounded_scale,
    "softplus": softplus_scale,
}


Unit = Float[Tensor, "*b #D"] | float  # what raw numbers are measured in


@runtime_checkable
class Head(Protocol):
    """What a model needs of a head."""

    @property
    def n_params(self) -> int:
        """Raw numbers for each column."""
        ...

    def __call__(
        self, raw: Float[Tensor, "*b D P"], anchor: Float[Tensor, "*b D"], unit: Unit = 1.0
    ) -> Distribution:
        """Distribution around ``anchor``, in a unit, with batch shape (..., D)."""
        ...


@dataclass(frozen=True)
class NormalHead:
    """Gaussian with free location and scale.

    Parameters
    ----------
    scale : {"exp", "bounded", "softplus"}, default="exp"
        How the raw scale becomes positive.

    Examples
    --------
    >>> import torch
    >>> from taylorformer_forecast.core.heads import NormalHead
    >>> NormalHead()(torch.zeros(3, 1, 2), torch.ones(3, 1)).mean[0]
    tensor([1.])
    """

    scale: str = "exp"
    n_params: int = 2

    def __call__(
        self, raw: Float[Tensor, "*b D P"], anchor: Float[Tensor, "*b D"], unit: Unit = 1.0
    ) -> Distribution:
        """Gaussian with mean ``anchor + raw[..., 0]``."""
        return Normal(
            anchor + unit * raw[..., 0], unit * SCALES[self.scale](raw[..., 1]), validate_args=False
        )


@dataclass(frozen=True)
class StudentTHead:
    """Student-t with free location, scale and degrees of freedom (above 2, so that the variance exists).

    Parameters
    ----------
    scale : {"exp", "bounded", "softplus"}, default="exp"
        How the raw scale becomes positive.
    """

    scale: str = "exp"
    n_params: int = 3

    def params(
        self, raw: Float[Tensor, "*b D P"], anchor: Float[Tensor, "*b D"], unit: Unit = 1.0
    ) -> tuple[Float[Tensor, "*b D"], Float[Tensor, "*b D"], Float[Tensor, "*b D"]]:
        """Degrees of freedom, location ``anchor + raw[..., 0]`` and scale."""
        # Twelve degrees of freedom at raw = 0: nearly Gaussian at the start, so that early paths do not jump.
        df = 2.0 + F.softplus(raw[..., 2] + 10.0)
        return df, anchor + unit * raw[..., 0], unit * SCALES[self.scale](raw[..., 1])

    def __call__(
        self, raw: Float[Tensor, "*b D P"], anchor: Float[Tensor, "*b D"], unit: Unit = 1.0
    ) -> Distribution:
        """Student-t with these parameters."""
        return StudentT(*self.params(raw, anchor, unit), validate_args=False)


@dataclass(frozen=True)
class MixtureHead:
    """Mixture of Gaussians, for predictive distributions with several modes or skew.

    Parameters
    ----------
    scale : {"exp", "bounded", "softplus"}, default="exp"
        How the raw scales become positive.
    n_components : int, default=3
        Number of components K.
    """

    scale: str = "exp"
    n_components: int = 3

    @property
    def n_params(self) -> int:
        """Location, scale and logit of each component."""
        return 3 * self.n_components

    def __call__(
        self, raw: Float[Tensor, "*b D P"], anchor: Float[Tensor, "*b D"], unit: Unit = 1.0
    ) -> Distribution:
        """Mixture with component locations ``anchor + raw``."""
        loc, log_scale, logits = raw.chunk(3, -1)
        unit = unit[..., None] if isinstance(unit, Tensor) else unit
        parts = Normal(
            anchor[..., None] + unit * loc, unit * SCALES[self.scale](log_scale), validate_args=False
        )
        return MixtureSameFamily(Categorical(logits=logits, validate_args=False), parts, validate_args=False)


@dataclass(frozen=True)
class QuantileHead:
    """Quantiles at the levels ``LEVELS``, trained by their pinball loss.

    They cannot cross: from the median outwards, each adds a positive increment. With raw numbers of zero
    they are those of the standard Gaussian.

    Parameters
    ----------
    scale : str, default="exp"
        Not used: there is no scale. Accepted so that all heads are made alike.

    Examples
    --------
    >>> import torch
    >>> from taylorformer_forecast.core.heads import QuantileHead
    >>> QuantileHead()(torch.zeros(1, 1, 13), torch.zeros(1, 1)).icdf(torch.tensor(0.1)).round(decimals=2)
    tensor([[-1.2800]])
    """

    scale: str = "exp"
    n_params: int = len(LEVELS)

    def __call__(
        self, raw: Float[Tensor, "*b D P"], anchor: Float[Tensor, "*b D"], unit: Unit = 1.0
    ) -> Distribution:
        """Piecewise linear quantile function with median ``anchor + raw[..., 0]``."""
        levels = torch.tensor(LEVELS, dtype=raw.dtype, device=raw.device)
        middle = len(LEVELS) // 2
        steps = torch.special.ndtri(levels[middle:]).diff()
        start = (steps - SCALE_FLOOR).expm1().log()  # softplus of it is the Gaussian's own step
        up = (F.softplus(raw[..., 1 : middle + 1] + start) + SCALE_FLOOR).cumsum(-1)
        down = (F.softplus(raw[..., middle + 1 :] + start) + SCALE_FLOOR).cumsum(-1)
        from_median = torch.cat([-down.flip(-1), torch.zeros_like(up[..., :1]), up], -1)
        unit = unit[..., None] if isinstance(unit, Tensor) else unit
        return QuantileFunction(anchor[..., None] + unit * (raw[..., :1] + from_median), levels)


@dataclass(frozen=True)
class PointHead:
    """A single value, trained by the squared (``power=2``) or absolute (``power=1``) error.

    Parameters
    ----------
    scale : str, default="exp"
        Not used: there is no scale. Accepted so that all heads are made alike.
    power : {1, 2}, default=2
        Power of the error.

    Examples
    --------
    >>> import torch
    >>> from taylorformer_forecast.core.heads import PointHead
    >>> PointHead(power=1)(torch.ones(1, 1, 1), torch.full((1, 1), 3.0)).mean.item()
    4.0
    """

    scale: str = "exp"
    power: int = 2
    n_params: int = 1

    def __call__(
        self, raw: Float[Tensor, "*b D P"], anchor: Float[Tensor, "*b D"], unit: Unit = 1.0
    ) -> Distribution:
        """Point at ``anchor + raw[..., 0]``."""
        return Point(anchor + unit * raw[..., 0], self.power)


HEADS: dict[str, Callable[..., Head]] = {
    "normal": NormalHead,
    "studentt": StudentTHead,
    "mixture": MixtureHead,
    "quantile": QuantileHead,
    "mse": partial(PointHead, power=2),
    "mae": partial(PointHead, power=1),
}
POINT_HEADS = ("mse", "mae")  # those without a distribution: no intervals, no density


def find_head(distribution: str | Head, scale: str = "exp") -> Head:
    """Return a head by its name in :data:`HEADS`; a head itself passes.

    Parameters
    ----------
    distribution : str or Head
        Name or head.
    scale : str, default="exp"
        How raw scales of a named head become positive, a name in :data:`SCALES`.

    Returns
    -------
    Head
        The head.

    Raises
    ------
    ValueError
        If there is no head or scale of that name.

    Examples
    --------
    >>> from taylorformer_forecast.core.heads import find_head
    >>> find_head("normal", scale="bounded")
    NormalHead(scale='bounded', n_params=2)
    """
    if not isinstance(distribution, str):
        return distribution
    if distribution not in HEADS:
        raise ValueError(f"distribution={distribution!r} is not one of {sorted(HEADS)}")
    if scale not in SCALES:
        raise ValueError(f"scale={scale!r} is not one of {sorted(SCALES)}")
    return HEADS[distribution](scale=scale)


@dataclass(frozen=True)
class Components:
    """A distribution as a mixture of K location-scale components of one family.

    Parameters
    ----------
    loc, scale : Tensor of shape (..., D, K)
        Locations and scales. A scale of zero is a single point.
    weights : Tensor of shape (..., D, K), optional
        Mixture weights; None where K is 1.
    df : Tensor of shape (..., D, K), optional
        Degrees of freedom of Student-t components.
    family : {"normal", "uniform"}, default="normal"
        Family of components without ``df``. Uniform ones lie between ``loc - scale`` and ``loc + scale``.
    """

    loc: Tensor
    scale: Tensor
    weights: Tensor | None = None
    df: Tensor | None = None
    family: str = "normal"

    def map(self, function: Callable[[Tensor], Tensor]) -> Components:
        """Apply a function to every tensor."""
        weights, df = (None if p is None else function(p) for p in (self.weights, self.df))
        return Components(function(self.loc), function(self.scale), weights, df, self.family)

    def affine(self, loc: Tensor | float, factor: Tensor | float) -> Components:
        """Components of ``loc + factor * y`` for a positive factor."""
        return replace(self, loc=self.loc * factor + loc, scale=self.scale * factor)


class Conditional(Distribution):
    """Base of distributions that a host brings along: they say how they are drawn and described."""

    def draw(self, generator: torch.Generator | None = None, noise: Tensor | None = None) -> Tensor:
        """Draw once, with the batch shape; what cannot follow given noise leaves it out."""
        raise NotImplementedError

    def components(self) -> Components:
        """Locations and scales, which a change of units moves and stretches."""
        raise NotImplementedError

    def center(self) -> Tensor:
        """Value that stands for the distribution, with the batch shape."""
        raise NotImplementedError


def center_of(distribution: Distribution) -> Tensor:
    """Value that stands for a distribution: its mean, or what a host says."""
    return distribution.center() if isinstance(distribution, Conditional) else distribution.mean


def components(distribution: Distribution) -> Components:
    """Take a head's distribution apart.

    Parameters
    ----------
    distribution : Distribution
        Normal, StudentT, MixtureSameFamily of Normals, QuantileFunction, Point or a :class:`Conditional`.

    Returns
    -------
    Components
        Its components, with an axis K added at the end.

    Raises
    ------
    TypeError
        If the distribution is of another kind.
    """
    if isinstance(distribution, Conditional):
        return distribution.components()
    if isinstance(distribution, Normal):
        return Components(distribution.loc[..., None], distribution.scale[..., None])
    if isinstance(distribution, StudentT):
        return Components(
            distribution.loc[..., None], distribution.scale[..., None], df=distribution.df[..., None]
        )
    if isinstance(distribution, MixtureSameFamily):
        parts = distribution.component_distribution
        if isinstance(parts, Normal):
            return Components(parts.loc, parts.scale, weights=distribution.mixture_distribution.probs)
    if isinstance(distribution, QuantileFunction):
        edges = distribution.edges
        low, high = edges[..., :-1], edges[..., 1:]
        weights = distribution.probabilities.expand_as(low)
        return Components((low + high) / 2, (high - low) / 2, weights, family="uniform")
    if isinstance(distribution, Point):
        return Components(distribution.loc[..., None], distribution.variance[..., None])
    raise TypeError(f"no components are known for {type(distribution).__name__}")


def affine(distribution: Distribution, loc: Tensor, factor: Tensor) -> Distribution:
    """Distribution of ``loc + factor * y``, of the same kind, if y has the given one.

    Parameters
    ----------
    distribution : Distribution
        Normal, StudentT, MixtureSameFamily of Normals, QuantileFunction or Point.
    loc, factor : Tensor
        Broadcast to the batch shape; the factor is positive.

    Returns
    -------
    Distribution
        With the parameters moved and stretched.

    Raises
    ------
    TypeError
        If the distribution is of another kind.

    Examples
    --------
    >>> import torch
    >>> from torch.distributions import Normal
    >>> from taylorformer_forecast.core.heads import affine
    >>> affine(Normal(torch.tensor(1.0), 2.0), torch.tensor(10.0), torch.tensor(3.0))
    Normal(loc: 13.0, scale: 6.0)
    """
    d = distribution
    if isinstance(d, Normal):
        return Normal(loc + factor * d.loc, factor * d.scale, validate_args=False)
    if isinstance(d, StudentT):
        return StudentT(d.df, loc + factor * d.loc, factor * d.scale, validate_args=False)
    if isinstance(d, MixtureSameFamily):
        parts = affine(d.component_distribution, loc[..., None], factor[..., None])
        return MixtureSameFamily(d.mixture_distribution, parts, validate_args=False)
    if isinstance(d, QuantileFunction):
        return QuantileFunction(loc[..., None] + factor[..., None] * d.values, d.levels)
    if isinstance(d, Point):
        return Point(loc + factor * d.loc, d.power)
    raise TypeError(f"{type(d).__name__} cannot be moved and stretched")


def standard(like: Components) -> Components:
    """Components of a standard Gaussian (or what is closest to it) in the family of others.

    Parameters
    ----------
    like : Components
        Gives shapes, family and weights.

    Returns
    -------
    Components
        With mean 0 and standard deviation about 1.

    Examples
    --------
    >>> import torch
    >>> from taylorformer_forecast.core.heads import Components, standard
    >>> standard(Components(torch.tensor([5.0]), torch.tensor([0.1]))).loc
    tensor([0.])
    """
    if like.family == "uniform":
        head = QuantileHead()
        zeros = like.loc.new_zeros(1, head.n_params)
        parts = components(head(zeros, zeros[:, 0]))
        return replace(like, loc=parts.loc.expand_as(like.loc), scale=parts.scale.expand_as(like.scale))
    df = None if like.df is None else torch.full_like(like.df, 1e3)
    return replace(like, loc=torch.zeros_like(like.loc), scale=torch.ones_like(like.scale), df=df)


def draw(
    distribution: Distribution | Components,
    generator: torch.Generator | None = None,
    noise: Tensor | None = None,
) -> Tensor:
    """Draw once from a head's distribution with a private random generator.

    ``torch.distributions`` samples from the global generator only; forecasters must leave that alone.

    Parameters
    ----------
    distribution : Distribution or Components
        As for :func:`components`, or what that returned.
    generator : torch.Generator, optional
        Source of randomness; the global one by default.
    noise : Tensor, optional
        Standard Gaussian noise with the batch shape, large where the draw is to be large: for draws that
        depend on each other.

    Returns
    -------
    Tensor
        A draw with the distribution's batch shape.

    Examples
    --------
    >>> import torch
    >>> from torch.distributions import Normal
    >>> from taylorformer_forecast.core.heads import draw
    >>> g = torch.Generator().manual_seed(0)
    >>> draw(Normal(torch.zeros(2), torch.ones(2)), g).shape
    torch.Size([2])
    """
    if isinstance(distribution, Conditional):
        return distribution.draw(generator, noise)
    parts = distribution if isinstance(distribution, Components) else components(distribution)
    loc, scale, df = parts.loc, parts.scale, parts.df

    def uniform(shape: torch.Size) -> Tensor:
        return torch.rand(shape, generator=generator, device=loc.device, dtype=loc.dtype)

    if noise is not None and parts.family == "uniform":  # pieces in order: the quantile at its level
        level = torch.special.ndtr(noise)
        upper = torch.ones_like(loc) if parts.weights is None else parts.weights.cumsum(-1)
        piece = (level[..., None] > upper[..., :-1]).sum(-1, keepdim=True)
        weight = upper.diff(dim=-1, prepend=torch.zeros_like(upper[..., :1])).gather(-1, piece)[..., 0]
        above = (upper.gather(-1, piece)[..., 0] - level) / weight.clamp_min(1e-12)
        loc, scale = loc.gather(-1, piece)[..., 0], scale.gather(-1, piece)[..., 0]
        return loc + scale * (1 - 2 * above.clamp(0, 1))
    if parts.weights is not None:
        cumulative = parts.weights.cumsum(-1)
        chosen = (uniform(loc.shape[:-1])[..., None] > cumulative[..., :-1]).sum(-1, keepdim=True)
        loc, scale = loc.gather(-1, chosen), scale.gather(-1, chosen)
    loc, scale = loc[..., 0], scale[..., 0]
    if parts.family == "uniform":
        noise = 2 * uniform(loc.shape) - 1
    elif df is not None:  # Bailey's polar method (1994): exact for any degrees of freedom
        df = df[..., 0]
        if noise is None:  # from two uniforms
            u = uniform(loc.shape).clamp_min(torch.finfo(loc.dtype).tiny)
            noise = (df * (u ** (-2.0 / df) - 1.0)).sqrt() * (2 * math.pi * uniform(loc.shape)).cos()
        else:  # from two Gaussians, of which the noise is one
            other = torch.randn(loc.shape, generator=generator, device=loc.device, dtype=loc.dtype)
            radius = (noise.square() + other.square()).clamp_min(torch.finfo(loc.dtype).tiny)
            noise = noise * (df * (radius / df).expm1() / radius).sqrt()
    elif noise is None:
        noise = torch.randn(loc.shape, generator=generator, device=loc.device, dtype=loc.dtype)
    return loc + scale * noise
