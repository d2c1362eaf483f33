"""Base of the families of predictive distributions, and the components that they are made of."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, TypeAlias

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor
from torch.distributions import Distribution

from taylorformer_forecast.defaults import LARGEST_LOG_SCALE, SCALE_FLOOR

CERTAIN = 1e-100  # scale of components all of which stand for zero
POINT_MASS = 1e-12  # scale of a component that stands for a single value, in units of the largest value

Raw: TypeAlias = Float[Tensor, "*b D P"]  # unconstrained parameters
Location: TypeAlias = Float[Tensor, "*b D"]
ResidualScale: TypeAlias = Float[Tensor, "*b #D"] | float
Generator: TypeAlias = torch.Generator | None
Noise: TypeAlias = Tensor | None  # standard Gaussian, that a draw follows


def exp_scale(raw: Tensor) -> Tensor:
    """Positive scale, ``exp(raw)`` plus a floor."""
    return raw.clamp_max(LARGEST_LOG_SCALE).exp() + SCALE_FLOOR


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


@dataclass(frozen=True)
class Components:
    """A distribution as a mixture of K components of one location-scale family.

    Parameters
    ----------
    family : Family
        Family of the components.
    loc, scale : Tensor of shape (..., D, K)
        Locations and scales. A scale of zero is a single point.
    weights : Tensor of shape (..., D, K), optional
        Mixture weights; None where K is 1.
    shape : mapping of str to Tensor of shape (..., D, K), optional
        Further parameters of the family, by name. Only the family uses them.

    Examples
    --------
    >>> import torch
    >>> from taylorformer_forecast.core.families import Components, find_family
    >>> parts = Components(find_family("normal"), torch.zeros(4, 1, 1), torch.ones(4, 1, 1))
    >>> parts.affine(10.0, 2.0).scale[0]
    tensor([[2.]])
    """

    family: Family
    loc: Tensor
    scale: Tensor
    weights: Tensor | None = None
    shape: Mapping[str, Tensor] = field(default_factory=dict)

    def tensors(self) -> dict[str, Tensor]:
        """All tensors that are present, by name."""
        weights = {} if self.weights is None else {"weights": self.weights}
        return {"loc": self.loc, "scale": self.scale, **weights, **self.shape}

    def with_tensors(self, tensors: Mapping[str, Tensor]) -> Components:
        """Components of the same family with other tensors, named as in :meth:`tensors`."""
        shape = {name: tensors[name] for name in self.shape}
        return Components(self.family, tensors["loc"], tensors["scale"], tensors.get("weights"), shape)

    def map(self, function: Callable[[Tensor], Tensor]) -> Components:
        """Apply a function to every tensor."""
        return self.with_tensors({name: function(value) for name, value in self.tensors().items()})

    @staticmethod
    def combine(parts: Sequence[Components], function: Callable[[list[Tensor]], Tensor]) -> Components:
        """Apply a function to the lists of tensors of the same name."""
        each = [part.tensors() for part in parts]
        return parts[0].with_tensors({name: function([one[name] for one in each]) for name in each[0]})

    def where(self, condition: Tensor, other: Components) -> Components:
        """These components where a condition (..., 1) holds, and others of the same family elsewhere."""
        return self.combine([self, other], lambda pair: torch.where(condition, pair[0], pair[1]))

    def with_points(self, is_point: Tensor, value: Tensor) -> Components:
        """Components with all mass at a standardised value where there is one, (..., D)."""
        is_point, value = is_point[..., None], value[..., None]
        loc = torch.where(is_point, value, self.loc)
        return replace(self, loc=loc, scale=torch.where(is_point, POINT_MASS, self.scale))

    def affine(self, loc: Tensor | float, factor: Tensor | float) -> Components:
        """Components of ``loc + factor * y`` for a positive factor."""
        return replace(self, loc=self.loc * factor + loc, scale=self.scale * factor)

    def standard(self) -> Components:
        """Components of mean 0 and standard deviation about 1, with the same shapes and weights."""
        return self.family.standard(self)

    def sample(self, generator: Generator = None, noise: Noise = None) -> Tensor:
        """Draw once, (..., D); see :func:`~taylorformer_forecast.core.families.draw`."""
        own, dtype = self.loc.dtype, torch.promote_types(self.loc.dtype, torch.float32)
        if dtype == own:
            return self.family.draw(self, generator, noise)
        # Uniform numbers of 16 bits are multiples of 2^-11: one in two thousand would be an extreme draw.
        noise = None if noise is None else noise.to(dtype)
        return self.family.draw(self.map(lambda value: value.to(dtype)), generator, noise).to(own)


class Described(Distribution):
    """Base of distributions that carry their family, where their class does not decide it."""

    family: Family


@dataclass(frozen=True)
class Family(ABC):
    """A family of predictive distributions: from a network's outputs to distributions, and to components.

    Most new families are location-scale families: see :class:`LocationScaleFamily`.

    Parameters
    ----------
    scale : {"exp", "bounded", "softplus"}, default="exp"
        How unconstrained scales become positive. Families without a scale ignore it.

    Attributes
    ----------
    kind : type
        Class of the family's distributions.
    is_point : bool
        Whether its distributions are single values, without intervals or a density.
    has_location : bool
        Whether values may be moved and stretched, so that a baseline can predict a location.
    has_modes : bool
        Whether parameters place several modes: to halve them would move the modes, not halve what is learnt.
    """

    scale: str = "exp"

    kind: ClassVar[type[Any]]  # of distributions; their arguments differ
    is_point: ClassVar[bool] = False
    has_location: ClassVar[bool] = True
    has_modes: ClassVar[bool] = False

    @property
    @abstractmethod
    def n_params(self) -> int:
        """Unconstrained parameters for each column."""

    @abstractmethod
    def distribution(self, raw: Raw, loc: Location, scale: ResidualScale = 1.0) -> Distribution:
        """Distribution around ``loc``, in units of a residual scale.

        Parameters
        ----------
        raw : Tensor of shape (..., D, P)
            Unconstrained parameters.
        loc : Tensor of shape (..., D)
            What locations are measured from.
        scale : Tensor of shape (..., D) or float, default=1.0
            What locations and scales are multiplied by.

        Returns
        -------
        Distribution
            Batch shape (..., D).
        """

    def __call__(self, raw: Raw, loc: Location, scale: ResidualScale = 1.0) -> Distribution:
        """Distribution with these parameters; see :meth:`distribution`."""
        return self.distribution(raw, loc, scale)

    @abstractmethod
    def components(self, distribution: Distribution) -> Components:
        """Components of a distribution of this family, with an axis K added at the end."""

    @abstractmethod
    def rebuild(self, parts: Components) -> Distribution:
        """Distribution that :meth:`components` took apart."""

    @property
    def component(self) -> Family:
        """Location-scale family of the components."""
        return self

    def positive(self, raw: Tensor) -> Tensor:
        """Positive scales from unconstrained ones."""
        return SCALES[self.scale](raw)

    def affine(self, distribution: Distribution, loc: Tensor, factor: Tensor) -> Distribution:
        """Distribution of ``loc + factor * y`` for a positive factor, if y has the given one."""
        return self.rebuild(self.components(distribution).affine(loc[..., None], factor[..., None]))

    def point_forecast(self, distribution: Distribution) -> Tensor:
        """Point forecast."""
        return distribution.mean

    def loss(self, distribution: Distribution, value: Tensor) -> Tensor:
        """What training minimises, by default the negative log-density."""
        return -distribution.log_prob(value)

    def sample(self, distribution: Distribution, generator: Generator = None, noise: Noise = None) -> Tensor:
        """Draw once; see :func:`~taylorformer_forecast.core.families.draw`."""
        return self.components(distribution).sample(generator, noise)

    def sample_paths(
        self, distribution: Distribution, n_paths: int, generator: Generator = None, noise: Noise = None
    ) -> Tensor:
        """Draw S times from a distribution (B, T, D), shape (B, S, T, D)."""
        parts = self.components(distribution).map(
            lambda value: value.unsqueeze(1).expand(-1, n_paths, *value.shape[1:])
        )
        return parts.sample(generator, noise)

    def draw(self, parts: Components, generator: Generator = None, noise: Noise = None) -> Tensor:
        """Draw once from components of this family, (..., D)."""
        raise NotImplementedError(f"there are no components of {self}")

    def standard(self, like: Components) -> Components:
        """Components of this family with mean 0 and standard deviation about 1."""
        raise NotImplementedError(f"there are no components of {self}")
