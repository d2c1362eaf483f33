"""Mixtures of Gaussians."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch.distributions import Categorical, Distribution, MixtureSameFamily, Normal

from taylorformer_forecast.core.families.base import Components, Family, Location, Raw, ResidualScale
from taylorformer_forecast.core.families.normal import NormalFamily
from taylorformer_forecast.core.families.registry import family_of


@dataclass(frozen=True)
class MixtureFamily(Family):
    """Mixture of Gaussians, for predictive distributions with several modes or skew.

    Networks that start at zeros start from components side by side, of mean ``loc`` and deviation ``scale``
    together: components that begin alike would learn alike, and stay a single Gaussian.

    Mixtures of other registered location-scale families can be taken apart and drawn from, too.

    Parameters
    ----------
    scale : {"exp", "bounded", "softplus"}, default="exp"
        How the unconstrained scales become positive.
    n_components : int, default=3
        Number of components K.

    Examples
    --------
    >>> import torch
    >>> from taylorformer_forecast.core.families import find_family
    >>> find_family("mixture")(torch.zeros(2, 1, 9), torch.ones(2, 1)).mean[0]
    tensor([1.])
    """

    n_components: int = 3

    kind = MixtureSameFamily
    has_modes = True

    @property
    def n_params(self) -> int:
        """Location, scale and logit of each component."""
        return 3 * self.n_components

    def distribution(self, raw: Raw, loc: Location, scale: ResidualScale = 1.0) -> Distribution:
        """Mixture with component locations ``loc + scale * raw``, but for where each starts."""
        shift, log_scale, logits = raw.chunk(3, -1)
        scale = scale[..., None] if isinstance(scale, Tensor) else scale
        n = self.n_components
        start = torch.linspace(1 / n - 1, 1 - 1 / n, n, dtype=raw.dtype, device=raw.device)
        width = math.sqrt((2 + 1 / n**2) / 3) * self.positive(
            log_scale
        )  # together of deviation 1 at the start
        parts = Normal(loc[..., None] + scale * (start + shift), scale * width, validate_args=False)
        return MixtureSameFamily(Categorical(logits=logits, validate_args=False), parts, validate_args=False)

    @property
    def component(self) -> Family:
        """Gaussians."""
        return NormalFamily()

    def components(self, distribution: Distribution) -> Components:
        """Components of the mixture, of whatever family they are."""
        assert isinstance(distribution, MixtureSameFamily)
        inner = distribution.component_distribution
        try:
            parts = family_of(inner).components(inner)
        except TypeError as error:
            raise TypeError(f"MixtureSameFamily cannot be taken apart: {error}") from None
        return replace(
            parts.map(lambda value: value[..., 0]), weights=distribution.mixture_distribution.probs
        )

    def rebuild(self, parts: Components) -> Distribution:
        """Mixture of these components."""
        return parts.family.rebuild(parts)
