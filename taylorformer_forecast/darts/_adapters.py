"""Families of darts' likelihoods: what networks need of them, which predict in scaled units."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.distributions import Distribution

from taylorformer_forecast.core.families import Components, Described, Family
from taylorformer_forecast.core.families.base import Generator, Noise
from taylorformer_forecast.core.families.numeric import bisect

UNIT_SCALE = math.log(math.expm1(1.0))  # softplus of it is 1


class LikelihoodDistribution(Described):
    """Distribution of a likelihood, described by the parameters that the likelihood takes.

    Parameters
    ----------
    family : LikelihoodFamily
        The likelihood's family.
    raw : Tensor of shape (..., D, P)
        Parameters in the units of the network, around the baseline where there is a location.
    """

    def __init__(self, family: LikelihoodFamily, raw: Tensor) -> None:
        super().__init__(raw.shape[:-1], validate_args=False)
        self.family, self.raw = family, raw


def _raw(distribution: Distribution) -> Tensor:
    """Parameters of a likelihood's distribution."""
    return cast(LikelihoodDistribution, distribution).raw


@dataclass(frozen=True)
class LikelihoodFamily(Family):
    """Family of a darts likelihood: what networks need of it, which predict in scaled units.

    This base serves likelihoods with a natural unit (counts, probabilities, positive values): their windows
    are not normalised and their parameters have no baseline. Networks see those with a level in units of one
    level for all windows. Those with a location are moved and stretched
    parameter by parameter, so that normalising a window leaves the likelihood intact; where unconstrained
    parameters are zero, scales are 1 and quantiles those of a Gaussian.

    Parameters
    ----------
    likelihood : TorchLikelihood or None
        None for point forecasts.
    unit : float, default=1.0
        What is 1 in the units of the network, where the likelihood has a level.
    """

    likelihood: Any = None
    unit: float = 1.0

    kind = LikelihoodDistribution
    has_location = has_level = False

    @property
    def distribution_name(self) -> str | None:
        """Name of a registered family; None for likelihoods of darts."""
        return None

    @property
    def n_params(self) -> int:
        """Unconstrained parameters for each column."""
        return self.likelihood.num_parameters

    def parameters(self, raw: Tensor, loc: Tensor, scale: Tensor | float) -> Tensor:
        """Parameters that the likelihood takes; without a location in the units of the data."""
        return raw

    def distribution(self, raw: Tensor, loc: Tensor, scale: Tensor | float = 1.0) -> LikelihoodDistribution:
        """Distribution with batch shape (..., D)."""
        return LikelihoodDistribution(self, self.parameters(raw, loc, scale))

    def components(self, distribution: Distribution) -> Components:
        """The likelihood's parameters as locations, with scales of zero."""
        return Components(self, _raw(distribution), torch.zeros_like(_raw(distribution)))

    def rebuild(self, parts: Components) -> LikelihoodDistribution:
        """Distribution with these components."""
        return LikelihoodDistribution(self, self.to_raw(parts))

    def to_raw(self, parts: Components) -> Tensor:
        """Parameters (..., D, P) that the likelihood turns into these components."""
        return parts.loc

    def point_forecast(self, distribution: Distribution) -> Tensor:
        """Point forecast: the value that stands for a step where a single path is followed."""
        params = self.likelihood._params_from_output(_raw(distribution))
        return self.likelihood._distr_from_params(params).mean / self.unit

    def sample(self, distribution: Distribution, generator: Generator = None, noise: Noise = None) -> Tensor:
        """Draw with the likelihood's own sampler: from torch's global generator, whatever the noise."""
        return self.likelihood.sample(_raw(distribution)) / self.unit

    def sample_paths(
        self, distribution: Distribution, n_paths: int, generator: Generator = None, noise: Noise = None
    ) -> Tensor:
        """Draw path after path: samplers of likelihoods have no axis of paths."""
        follow = [None] * n_paths if noise is None else noise.unbind(1)
        return torch.stack([self.sample(distribution, generator, one) for one in follow], 1)

    def to_data(self, paths: Tensor) -> Tensor:
        """Values in the units of the data, from those of the network."""
        return paths * self.unit

    def marginal(self, parts: Components, paths: Tensor) -> Tensor:
        """Parameters of the marginal distribution of each step, from those along sample paths.

        Location and scale have the mean and variance of the mixture of all paths, or median and half the
        interquartile range of it where there is no variance. Quantiles are those of the paths, and
        other parameters are averaged.

        Parameters
        ----------
        parts : Components
            Along the paths, (B, S, T, D, K), or (B, 1, T, D, K) where all paths share them.
        paths : Tensor of shape (B, S, T, D)
            The paths.

        Returns
        -------
        Tensor
            Parameters, (B, T, D, P).
        """
        if parts.loc.shape[1] == 1:  # all paths share it
            return self.to_raw(parts)[:, 0]
        return self._marginal(parts, paths)

    def _marginal(self, parts: Components, paths: Tensor) -> Tensor:
        return self.to_raw(parts.map(lambda value: value.mean(1)))


class PointAdapter(LikelihoodFamily):
    """Point forecasts, for models with a loss function in place of a likelihood."""

    has_location = is_point = True
    n_params = 1

    def parameters(self, raw: Tensor, loc: Tensor, scale: Tensor | float) -> Tensor:
        """Location in the units of the network."""
        return loc[..., None] + torch.as_tensor(scale, device=raw.device)[..., None] * raw

    def point_forecast(self, distribution: Distribution) -> Tensor:
        """The location."""
        return _raw(distribution)[..., 0]

    def sample(self, distribution: Distribution, generator: Generator = None, noise: Noise = None) -> Tensor:
        """The location."""
        return _raw(distribution)[..., 0]


class QuantileAdapter(PointAdapter):
    """Quantile regression: every quantile is moved and stretched."""

    is_point = False
    n_params = LikelihoodFamily.n_params
    sample = LikelihoodFamily.sample

    def parameters(self, raw: Tensor, loc: Tensor, scale: Tensor | float) -> Tensor:
        """Quantiles in the units of the network."""
        levels = torch.tensor(self.likelihood.quantiles, dtype=torch.float64)
        return super().parameters(raw + torch.special.ndtri(levels).to(raw), loc, scale)

    def point_forecast(self, distribution: Distribution) -> Tensor:
        """The median."""
        return _raw(distribution)[..., self.likelihood.quantiles.index(0.5)]

    def _marginal(self, parts: Components, paths: Tensor) -> Tensor:
        levels = paths.new_tensor(self.likelihood.quantiles)
        return paths.quantile(levels, dim=1).movedim(0, -1)


@dataclass(frozen=True)
class LocationScaleAdapter(LikelihoodFamily):
    """Likelihoods of darts with a location, and a scale that is a softplus.

    Parameters
    ----------
    likelihood : TorchLikelihood
        The likelihood.
    variance : float or None
        Variance at scale 1; None where there is none.
    mean : float, default=0.0
        Mean at scale 1 and location 0, or the median where there is none.
    """

    variance: float | None = None
    mean: float = 0.0

    has_location = True

    def parameters(self, raw: Tensor, loc: Tensor, scale: Tensor | float) -> Tensor:
        """Location, and the number whose softplus is the scale: at zero, mean and deviation as given."""
        unit = torch.as_tensor(scale, device=raw.device)[..., None]
        found = unit * F.softplus(raw[..., 1:] + UNIT_SCALE) / math.sqrt(self.variance or 1.0)
        middle = loc[..., None] + unit * raw[..., :1]
        return torch.cat([middle - self.mean * found, inverse_softplus(found)], -1)

    def components(self, distribution: Distribution) -> Components:
        """Location and scale."""
        raw = _raw(distribution)
        return Components(self, raw[..., :1], F.softplus(raw[..., 1:]))

    def to_raw(self, parts: Components) -> Tensor:
        """Location, and the number whose softplus is the scale."""
        return torch.cat([parts.loc, inverse_softplus(parts.scale)], -1)

    def point_forecast(self, distribution: Distribution) -> Tensor:
        """The mean, or the median where there is none."""
        loc, scale = _raw(distribution).unbind(-1)
        return loc + self.mean * F.softplus(scale)

    def _marginal(self, parts: Components, paths: Tensor) -> Tensor:
        if self.variance is None:
            low, middle, high = _cauchy_quartiles(parts).unbind(-1)
            return self.to_raw(Components(self, middle[..., None], (high - low)[..., None] / 2))
        means = parts.loc + self.mean * parts.scale
        variance = self.variance * parts.scale.square().mean(1) + means.var(1, unbiased=False)
        scale = (variance / self.variance).sqrt()
        return self.to_raw(Components(self, means.mean(1) - self.mean * scale, scale))


class RegisteredAdapter(LikelihoodFamily):
    """A registered family: its parameters are those of its components, one after another."""

    has_location = True

    @property
    def is_point(self) -> bool:  # type: ignore[override]
        """Whether the family's distributions are single values."""
        return self.likelihood.family.is_point

    @property
    def n_params(self) -> int:
        """Unconstrained parameters for each column."""
        return self.likelihood.family.n_params

    @property
    def distribution_name(self) -> str:
        """Name of the family."""
        return self.likelihood.distribution

    def parameters(self, raw: Tensor, loc: Tensor, scale: Tensor | float) -> Tensor:
        """Parameters of the components."""
        family = self.likelihood.family
        return self.to_raw(family.components(family(raw, loc, scale)))

    def components(self, distribution: Distribution) -> Components:
        """The components."""
        return self.likelihood.components(_raw(distribution))

    def to_raw(self, parts: Components) -> Tensor:
        """Parameters of the components, one after another."""
        return torch.cat(list(parts.tensors().values()), -1)

    def point_forecast(self, distribution: Distribution) -> Tensor:
        """Point forecast of the family."""
        family = self.likelihood.family
        return family.point_forecast(family.rebuild(self.components(distribution)))

    def sample(self, distribution: Distribution, generator: Generator = None, noise: Noise = None) -> Tensor:
        """Draw with the family's own sampler."""
        return self.components(distribution).sample(generator, noise).to(_raw(distribution).dtype)

    def _marginal(self, parts: Components, paths: Tensor) -> Tensor:
        family, middle = self.likelihood.family, parts.map(lambda value: value.mean(1))
        each, one = family.rebuild(parts), family.rebuild(middle)
        variance = each.variance.mean(1) + each.mean.var(1, unbiased=False)
        factor = torch.where(one.variance > 0, variance / one.variance, 1.0).sqrt()
        shift = each.mean.mean(1) - factor * one.mean
        return self.to_raw(middle.affine(shift[..., None], factor[..., None]))


def _cauchy_quartiles(parts: Components) -> Tensor:
    """Quartiles (B, T, D, 3) of the mixture of all paths' Cauchy distributions."""
    loc, scale = (value.cpu().double().numpy() for value in (parts.loc, parts.scale))
    each = loc + scale * np.array([-1.0, 0.0, 1.0])
    p = np.broadcast_to([0.25, 0.5, 0.75], each[:, 0].shape)
    found = bisect(
        lambda z: 0.5 + np.arctan((z[:, None] - loc) / scale).mean(1) / math.pi, p, each.min(1), each.max(1)
    )
    return torch.as_tensor(found).to(parts.loc)


def inverse_softplus(scale: Tensor) -> Tensor:
    """Number whose softplus is the scale, without overflow."""
    return scale + (-torch.expm1(-scale)).log()
