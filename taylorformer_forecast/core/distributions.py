"""Distributions that ``torch.distributions`` lacks: a quantile function, and a single point.

Both have a ``score`` of their own, which training uses in place of the negative log-density.
"""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.distributions import Distribution

__all__ = ["Point", "QuantileFunction"]


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
    >>> from taylorformer_forecast.core.distributions import QuantileFunction
    >>> d = QuantileFunction(torch.tensor([-1.0, 0.0, 2.0]), torch.tensor([0.25, 0.5, 0.75]))
    >>> d.icdf(torch.tensor(0.625)).item(), d.cdf(torch.tensor(1.0)).item(), d.mean.item()
    (1.0, 0.625, 0.5)
    """

    arg_constraints = {}
    has_rsample = False

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
        miss = value[..., None] - self.values
        return 2 * torch.maximum(self.levels * miss, (self.levels - 1) * miss).mean(-1)


class Point(Distribution):
    """A single value: what a network trained on squared or absolute errors predicts.

    It has no density, and all draws are equal to it.

    Parameters
    ----------
    loc : Tensor
        The value.
    power : {1, 2}
        Power of the error that is its score.

    Examples
    --------
    >>> import torch
    >>> from taylorformer_forecast.core.distributions import Point
    >>> Point(torch.tensor([1.0, 2.0]), power=2).score(torch.tensor([4.0, 2.0]))
    tensor([9., 0.])
    """

    arg_constraints = {}

    def __init__(self, loc: Tensor, power: int) -> None:
        self.loc, self.power = loc, power
        super().__init__(loc.shape, validate_args=False)

    @property
    def mean(self) -> Tensor:
        """The value."""
        return self.loc

    @property
    def variance(self) -> Tensor:
        """Zero."""
        return torch.zeros_like(self.loc)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Point:
        """Repeat the value over a larger batch shape, without copying."""
        return Point(self.loc.expand(torch.Size(batch_shape)), self.power)

    def sample(self, sample_shape: Any = torch.Size()) -> Tensor:  # noqa: B008 - torch's own signature
        """Repeat the value."""
        return self.loc.detach().expand(torch.Size(sample_shape) + self.batch_shape)

    def score(self, value: Tensor) -> Tensor:
        """Absolute error or squared error."""
        return (value - self.loc).abs() ** self.power
