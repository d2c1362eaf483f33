"""Single values: what a network predicts that is trained on squared or absolute errors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.distributions import Distribution

from taylorformer_forecast.core.families.base import Components, Family, Location, Raw, ResidualScale
from taylorformer_forecast.core.families.normal import NormalFamily


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
    >>> from taylorformer_forecast.core.families.point import Point
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


@dataclass(frozen=True)
class PointFamily(Family):
    """A single value, trained by the squared (``power=2``) or absolute (``power=1``) error.

    Its component is a Gaussian of scale zero.

    Parameters
    ----------
    scale : str, default="exp"
        Not used: there is no scale.
    power : {1, 2}, default=2
        Power of the error.

    Examples
    --------
    >>> import torch
    >>> from taylorformer_forecast.core.families import find_family
    >>> find_family("mae")(torch.ones(1, 1, 1), torch.full((1, 1), 3.0)).mean.item()
    4.0
    """

    power: int = 2

    kind = Point
    is_point = True
    n_params = 1

    def distribution(self, raw: Raw, loc: Location, scale: ResidualScale = 1.0) -> Distribution:
        """Point at ``loc + scale * raw[..., 0]``."""
        return Point(loc + scale * raw[..., 0], self.power)

    @property
    def component(self) -> Family:
        """Gaussians."""
        return NormalFamily()

    def components(self, distribution: Distribution) -> Components:
        """A Gaussian of scale zero."""
        return Components(self.component, distribution.mean[..., None], distribution.variance[..., None])

    def rebuild(self, parts: Components) -> Distribution:
        """Point at the location."""
        return Point(parts.loc[..., 0], self.power)

    def affine(self, distribution: Distribution, loc: Tensor, factor: Tensor) -> Distribution:
        """Point at ``loc + factor * y``, scored as the given one."""
        assert isinstance(distribution, Point)
        return Point(loc + factor * distribution.loc, distribution.power)

    def loss(self, distribution: Distribution, value: Tensor) -> Tensor:
        """Absolute or squared error."""
        assert isinstance(distribution, Point)
        return distribution.score(value)
