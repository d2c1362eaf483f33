"""Families of darts' likelihoods of counts and positive values, whose means follow a level."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from taylorformer_forecast.darts._adapters import UNIT_SCALE, LikelihoodFamily, inverse_softplus


@dataclass(frozen=True)
class LevelAdapter(LikelihoodFamily):
    """Likelihoods of counts and positive values, with a mean that follows the level of the series.

    Parameters
    ----------
    likelihood, unit
        The likelihood, whose parameters are softplus functions, and the level of the training series.
    powers : tuple of int, default=(1,)
        Power of the unit in each parameter: 1 in a mean, -1 in a rate of decay, 0 in a shape.
    """

    powers: tuple[int, ...] = (1,)

    has_level = True

    def parameters(self, raw: Tensor, loc: Tensor, scale: Tensor | float) -> Tensor:
        """Parameters in the units of the data: those with a unit have it where unconstrained ones are 0."""
        powers = raw.new_tensor(self.powers)
        found = F.softplus(raw + UNIT_SCALE) * self.unit**powers
        found = inverse_softplus(found.clamp_min(torch.finfo(raw.dtype).tiny))
        return torch.where(powers == 0, raw, found)


class CountAdapter(LevelAdapter):
    """Likelihoods of counts: values are whole numbers, whatever the unit of the network."""

    def to_data(self, paths: Tensor) -> Tensor:
        """Whole numbers, from those in units of the level."""
        return super().to_data(paths).round()


class GeometricAdapter(CountAdapter):
    """The geometric likelihood: its parameter is the logit of a probability, which is 1 / (1 + mean)."""

    def parameters(self, raw: Tensor, loc: Tensor, scale: Tensor | float) -> Tensor:
        """Logits of the probability whose mean is the level where unconstrained parameters are 0."""
        mean = F.softplus(raw + UNIT_SCALE) * self.unit
        return -mean.clamp_min(torch.finfo(raw.dtype).tiny).log()


class LogLevelAdapter(LevelAdapter):
    """The log-normal likelihood: its first parameter is the logarithm of a level."""

    def parameters(self, raw: Tensor, loc: Tensor, scale: Tensor | float) -> Tensor:
        """Location of the logarithm in the units of the data, and its scale."""
        return torch.cat([raw[..., :1] + math.log(self.unit), raw[..., 1:]], -1)
