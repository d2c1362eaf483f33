"""Quantile functions, and the segments of constant density that they consist of."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor
from torch.distributions import Distribution

from taylorformer_forecast.core.families.base import (
    Components,
    Family,
    Generator,
    Location,
    Noise,
    Raw,
    ResidualScale,
)
from taylorformer_forecast.core.families.uniform import UniformFamily
from taylorformer_forecast.defaults import QUANTILE_LEVELS, SCALE_FLOOR


def pinball_loss(error: Tensor, levels: Tensor) -> Tensor:
    """Twice the pinball loss of quantiles at some levels, which is the absolute error for the median.

    Parameters
    ----------
    error : Tensor of shape (...)
        Values less quantiles.
    levels : Tensor
        Probabilities of the quantiles, in a shape that broadcasts with that.

    Examples
    --------
    >>> import torch
    >>> from taylorformer_forecast.core.families.quantile import pinball_loss
    >>> pinball_loss(torch.tensor([-1.0, 1.0, 1.0]), torch.tensor([0.25, 0.25, 0.5])).tolist()
    [1.5, 0.5, 1.0]
    """
    return 2 * torch.maximum(levels * error, (levels - 1) * error)


class QuantileFunction(Distribution):
    """Continuous distribution with a piecewise linear quantile function.

    Between neighbouring levels the density is constant. Beyond the outermost ones it is constant over an
    interval as wide as the neighbouring one: for levels 0.01 and 0.05 of a Gaussian, this gives the tail
    nearly its mean (-2.67 standard deviations; here -2.67 too) and ends it at -3.0 standard deviations.

    Parameters
    ----------
    values : Tensor of shape (..., Q)
        Quantiles, strictly increasing.
    levels : Tensor of shape (Q,)
        Their probabilities, increasing, above 0 and below 1; at least two.

    Examples
    --------
    >>> import torch
    >>> from taylorformer_forecast.core.families.quantile import QuantileFunction
    >>> d = QuantileFunction(torch.tensor([-1.0, 0.0, 2.0]), torch.tensor([0.25, 0.5, 0.75]))
    >>> d.icdf(torch.tensor(0.625)).item(), d.cdf(torch.tensor(1.0)).item(), d.mean.item()
    (1.0, 0.625, 0.5)
    """

    arg_constraints = {}

    def __init__(self, values: Float[Tensor, "*b Q"], levels: Float[Tensor, " Q"]) -> None:
        self.values, self.levels = values, levels
        super().__init__(values.shape[:-1], validate_args=False)

    @property
    def edges(self) -> Float[Tensor, "*b Q2"]:
        """Ends of the segments of constant density, from the lowest to the highest possible value."""
        v = self.values
        return torch.cat([2 * v[..., :1] - v[..., 1:2], v, 2 * v[..., -1:] - v[..., -2:-1]], -1)

    @property
    def probabilities(self) -> Float[Tensor, " Q1"]:
        """Probability of each segment."""
        return self.breaks.diff()

    @property
    def breaks(self) -> Float[Tensor, " Q2"]:
        """Probability below each edge."""
        return torch.cat([self.levels.new_zeros(1), self.levels, self.levels.new_ones(1)])

    @property
    def mean(self) -> Tensor:
        """Mean."""
        edges = self.edges
        return ((edges[..., 1:] + edges[..., :-1]) / 2 * self.probabilities).sum(-1)

    @property
    def variance(self) -> Tensor:
        """Variance."""
        edges = self.edges
        middle, width = (edges[..., 1:] + edges[..., :-1]) / 2, edges.diff(dim=-1)
        square = (middle - self.mean[..., None]).square() + width.square() / 12
        return (square * self.probabilities).sum(-1)

    def expand(self, batch_shape: Any, _instance: Any = None) -> QuantileFunction:
        """Repeat the distribution over a larger batch shape, without copying."""
        shape = torch.Size(batch_shape)
        return QuantileFunction(self.values.expand(*shape, self.values.shape[-1]), self.levels)

    def icdf(self, value: Tensor) -> Tensor:
        """Quantiles at probabilities that broadcast with the batch shape."""
        value = value.expand(torch.broadcast_shapes(value.shape, self.batch_shape))
        segment = torch.searchsorted(self.levels, value.contiguous())
        edges = self.edges.expand(*value.shape, -1)
        low, high = (edges.gather(-1, (segment + k)[..., None])[..., 0] for k in (0, 1))
        return low + (high - low) * (value - self.breaks[segment]) / self.probabilities[segment]

    def _below(self, value: Tensor) -> Tensor:
        """Fraction of each segment that lies below a value, (..., Q + 1)."""
        edges = self.edges
        return ((value[..., None] - edges[..., :-1]) / edges.diff(dim=-1)).clamp(0.0, 1.0)

    def cdf(self, value: Tensor) -> Tensor:
        """Probability below a value."""
        return (self._below(value) * self.probabilities).sum(-1)

    def log_prob(self, value: Tensor) -> Tensor:
        """Log-density; minus infinity beyond the outermost edges."""
        edges = self.edges
        inside = (value[..., None] >= edges[..., :-1]) & (value[..., None] < edges[..., 1:])
        return (inside * (self.probabilities / edges.diff(dim=-1))).sum(-1).log()

    def sample(self, sample_shape: Any = torch.Size()) -> Tensor:  # noqa: B008 - torch's own signature
        """Draw from torch's global generator."""
        shape = torch.Size(sample_shape) + self.batch_shape
        with torch.no_grad():
            return self.icdf(torch.rand(shape, dtype=self.values.dtype, device=self.values.device))

    def score(self, value: Tensor) -> Tensor:
        """Twice the mean pinball loss over the levels, which tends to the CRPS as levels get dense."""
        return pinball_loss(value[..., None] - self.values, self.levels).mean(-1)


class QuantileFamily(Family):
    """Quantiles at the levels ``QUANTILE_LEVELS``, trained by their pinball loss.

    They cannot cross: from the median outwards, each adds a positive increment. With unconstrained
    parameters of zero they are those of the standard Gaussian.

    Parameters
    ----------
    scale : str, default="exp"
        Not used: there is no scale.

    Examples
    --------
    >>> import torch
    >>> from taylorformer_forecast.core.families import find_family
    >>> family = find_family("quantile")
    >>> family(torch.zeros(1, 1, 13), torch.zeros(1, 1)).icdf(torch.tensor(0.1)).round(decimals=2)
    tensor([[-1.2800]])
    """

    kind = QuantileFunction
    n_params = len(QUANTILE_LEVELS)

    def distribution(self, raw: Raw, loc: Location, scale: ResidualScale = 1.0) -> Distribution:
        """Piecewise linear quantile function with median ``loc + scale * raw[..., 0]``."""
        levels = torch.tensor(QUANTILE_LEVELS, dtype=raw.dtype, device=raw.device)
        middle = len(QUANTILE_LEVELS) // 2
        exact = levels[middle:].to(torch.promote_types(raw.dtype, torch.float32))  # not of 16 bits
        # softplus of it is the Gaussian's own step
        start = (torch.special.ndtri(exact).diff() - SCALE_FLOOR).expm1().log().to(raw)
        up = (F.softplus(raw[..., 1 : middle + 1] + start) + SCALE_FLOOR).cumsum(-1)
        down = (F.softplus(raw[..., middle + 1 :] + start) + SCALE_FLOOR).cumsum(-1)
        from_median = torch.cat([-down.flip(-1), torch.zeros_like(up[..., :1]), up], -1)
        scale = scale[..., None] if isinstance(scale, Tensor) else scale
        return QuantileFunction(loc[..., None] + scale * (raw[..., :1] + from_median), levels)

    @property
    def component(self) -> Family:
        """Uniform distributions."""
        return SegmentFamily()

    def components(self, distribution: Distribution) -> Components:
        """The segments of constant density."""
        assert isinstance(distribution, QuantileFunction)
        edges = distribution.edges
        low, high = edges[..., :-1], edges[..., 1:]
        weights = distribution.probabilities.expand_as(low)
        return Components(self.component, (low + high) / 2, (high - low) / 2, weights)

    def rebuild(self, parts: Components) -> Distribution:
        """Quantile function with these segments, side by side and equally likely everywhere."""
        assert parts.weights is not None
        levels = parts.weights.flatten(0, -2)[0].cumsum(-1)[:-1]
        return QuantileFunction((parts.loc + parts.scale)[..., :-1], levels)

    def affine(self, distribution: Distribution, loc: Tensor, factor: Tensor) -> Distribution:
        """Quantile function of ``loc + factor * y``."""
        assert isinstance(distribution, QuantileFunction)
        return QuantileFunction(loc[..., None] + factor[..., None] * distribution.values, distribution.levels)

    def loss(self, distribution: Distribution, value: Tensor) -> Tensor:
        """Pinball loss."""
        assert isinstance(distribution, QuantileFunction)
        return distribution.score(value)


class SegmentFamily(UniformFamily):
    """Uniform distributions that are the segments of quantile functions, in order.

    Examples
    --------
    >>> from taylorformer_forecast.core.families import find_component
    >>> find_component("quantile")
    SegmentFamily(scale='exp')
    """

    def draw(self, parts: Components, generator: Generator = None, noise: Noise = None) -> Tensor:
        """Draw once; given noise decides the quantile of segments in order."""
        if noise is None:
            return super().draw(parts, generator)
        loc, scale, level = parts.loc, parts.scale, torch.special.ndtr(noise)
        upper = torch.ones_like(loc) if parts.weights is None else parts.weights.cumsum(-1)
        piece = (level[..., None] > upper[..., :-1]).sum(-1, keepdim=True)
        weight = upper.diff(dim=-1, prepend=torch.zeros_like(upper[..., :1])).gather(-1, piece)[..., 0]
        above = (upper.gather(-1, piece)[..., 0] - level) / weight.clamp_min(1e-12)
        loc, scale = loc.gather(-1, piece)[..., 0], scale.gather(-1, piece)[..., 0]
        return loc + scale * (1 - 2 * above.clamp(0, 1))

    def standard(self, like: Components) -> Components:
        """Segments of the quantile function that is closest to a standard Gaussian."""
        if like.loc.shape[-1] != len(QUANTILE_LEVELS) + 1:
            return super().standard(like)
        zeros = like.loc.new_zeros(1, len(QUANTILE_LEVELS))
        family = QuantileFamily()
        parts = family.components(family(zeros, zeros[:, 0]))
        return replace(like, loc=parts.loc.expand_as(like.loc), scale=parts.scale.expand_as(like.scale))
