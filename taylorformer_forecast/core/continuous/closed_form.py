r"""Averages over time of inner products with exponentially relaxing keys, in closed form.

With the field ``dk/dt = rate * (k - rest)`` the key of point i is ``rest + exp(rate * (t - t_i)) (k_i -
rest)``, and its inner product with a piecewise polynomial query has an exact integral from t_i to any t_j.
The integrals of all pairs follow from those over single intervals
(:mod:`~taylorformer_forecast.core.continuous.merging`).
"""

from __future__ import annotations

import math
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from taylorformer_forecast.core.continuous.interpolation import Interpolation

TINY = 1e-30  # stands in for zero where a limit is a quotient of equals


class _Moment(torch.autograd.Function):
    """``int_0^1 x^k exp(z x) dx`` with its derivative, the next moment."""

    @staticmethod
    def forward(ctx: Any, z: Tensor, k: int) -> Tensor:
        """Compute the moment."""
        ctx.save_for_backward(z)
        ctx.k = k
        z = z.clamp_max(-TINY)
        ratio = z.expm1() / z
        if k == 0:
            return ratio
        # The recurrence loses digits near zero, where the series needs few terms.
        near, far, top, recurred = z.clamp_min(-0.5), z.clamp_max(-0.5), z.exp(), ratio
        for order in range(1, k + 1):
            recurred = (top - order * recurred) / far
        n_terms = 7 if z.dtype == torch.float32 else 14
        series = torch.zeros_like(z)
        for n in reversed(range(n_terms)):
            series = series.mul_(near).add_(1.0 / (math.factorial(n) * (n + k + 1)))
        return torch.where(z > -0.5, series, recurred)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        """Multiply by the next moment."""
        (z,) = ctx.saved_tensors
        return grad * moment(z, ctx.k + 1), None


class _MeanDecay(torch.autograd.Function):
    """``moment(elapsed * rate)`` for many times and few rates; times get no gradient."""

    @staticmethod
    def forward(ctx: Any, elapsed: Tensor, rate: Tensor) -> Tensor:
        """Compute the averages."""
        z = (elapsed * rate).clamp_max_(-TINY)
        mean = z.expm1().div_(z)
        ctx.save_for_backward(z, mean, rate)
        return mean

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[None, Tensor]:
        """Divide by the rate once, after the sum: digits that are lost at short times do not count there."""
        z, mean, rate = ctx.saved_tensors
        total = torch.addcmul(1 - mean, z, mean).mul_(grad).sum_to_size(rate.shape)
        return None, torch.where(rate < 0, total / rate.clamp_max(-TINY), 0.0)


def mean_decay(elapsed: Float[Tensor, "B 1 M N"], rate: Float[Tensor, "H 1 1"]) -> Float[Tensor, "B H M N"]:
    """Average of ``exp(rate * t)`` for t from 0 to the time elapsed, for one rate of each head.

    Parameters
    ----------
    elapsed : Tensor of shape (B, 1, M, N)
        Times; no gradient passes to them.
    rate : Tensor of shape (H, 1, 1)
        Rates of decay, negative or zero.

    Returns
    -------
    Tensor
        Between 0 and 1, (B, H, M, N).

    Examples
    --------
    >>> import torch
    >>> from taylorformer_forecast.core.continuous.closed_form import mean_decay
    >>> mean_decay(torch.tensor([[[[0.0, 1.0]]]]), torch.tensor([[[-1.0]]])).flatten()
    tensor([1.0000, 0.6321])
    """
    return _MeanDecay.apply(elapsed, rate)


def moment(z: Float[Tensor, "*shape"], k: int = 0) -> Float[Tensor, "*shape"]:
    """``int_0^1 x^k exp(z x) dx`` for ``z <= 0``, accurate also near zero.

    Parameters
    ----------
    z : Tensor
        Exponents, none positive.
    k : int, default=0
        Power; with 0 this is ``(exp(z) - 1) / z``.

    Returns
    -------
    Tensor
        Values between 0 and ``1 / (k + 1)``, which they reach at zero.

    Examples
    --------
    >>> import torch
    >>> from taylorformer_forecast.core.continuous.closed_form import moment
    >>> moment(torch.tensor([0.0, -1.0]))
    tensor([1.0000, 0.6321])
    """
    return _Moment.apply(z, k)


class LinearField(nn.Module):
    """The field ``dx/dt = rate * (x - rest)`` with rates between 0 and ``-fastest``.

    Parameters
    ----------
    n_heads, head_dim : int
        Heads H and their width E.
    fastest : float
        Largest rate of decay, per unit of time.
    shared_rate : bool, default=False
        Whether all coordinates of a head have one rate.
    """

    def __init__(self, n_heads: int, head_dim: int, fastest: float, shared_rate: bool = False) -> None:
        super().__init__()
        self.fastest = fastest
        n_rates = 1 if shared_rate else head_dim
        # From slow to fast, each head with a spread of its own.
        share = torch.linspace(0.02, 0.8, n_heads * n_rates).view(n_rates, n_heads).T
        self.raw_rate = nn.Parameter(share.logit())
        self.rest = nn.Parameter(torch.zeros(n_heads, head_dim))

    @property
    def rate(self) -> Float[Tensor, "H R"]:
        """Rates, negative; R is 1 where a head shares its rate."""
        return -self.fastest * self.raw_rate.sigmoid()

    def forward(self, t: Tensor, x: Tensor) -> Tensor:
        """Derivative of states (..., H * E) at times that do not matter."""
        heads = x.unflatten(-1, self.rest.shape)
        return (self.rate * (heads - self.rest)).flatten(-2)


class Relaxation:
    """What the intervals between knots do to keys that relax, and to their integrals.

    Parameters
    ----------
    t : Tensor of shape (B, N)
        Knots, in order.
    rate : Tensor of shape (H, E)
        Rates of decay, negative or zero.
    rest : Tensor of shape (H, E)
        What keys relax to.
    """

    def __init__(
        self, t: Float[Tensor, "B N"], rate: Float[Tensor, "H E"], rest: Float[Tensor, "H E"]
    ) -> None:
        # The resting part of a key is a coordinate of its own: it never decays, and the query's part along it
        # is its inner product with the resting point.
        self.t, self.rest = t, rest
        self.rate = torch.cat([rate, torch.zeros_like(rate[:, :1])], -1)  # (H, C) with C = E + 1
        self.gap = torch.cat([t.diff(dim=1), torch.zeros_like(t[:, :1])], 1)
        self.z = self.exponent(self.gap)
        self.decay = self.z.exp()

    def exponent(self, elapsed: Float[Tensor, "B N"]) -> Float[Tensor, "B H N C"]:
        """Exponents of the decay over times."""
        return elapsed[:, None, :, None] * self.rate[:, None, :]

    def keys(self, k: Float[Tensor, "B H N E"]) -> Float[Tensor, "B H N C"]:
        """Keys as deviations from rest, and 1 for the resting part."""
        deviation = k - self.rest[:, None]
        return torch.cat([deviation, torch.ones_like(deviation[..., :1])], -1)

    def queries(self, q: Float[Tensor, "B H M E"]) -> Float[Tensor, "B H M C"]:
        """Queries, and their inner products with the resting point."""
        return torch.cat([q, q @ self.rest[..., None]], -1)

    def integrals(self, query: Interpolation) -> Float[Tensor, "B H N C"]:
        """``int exp(rate * (t - t_j)) q(t) dt`` over every interval that begins at a knot t_j."""
        heads = self.rest.shape
        pieces = [c.unflatten(-1, heads).transpose(1, 2) for c in query.coefficients]
        total = sum(self.queries(piece) * moment(self.z, k) for k, piece in enumerate(pieces))
        return total * self.gap[:, None, :, None]

    def elapsed(self, elapsed: Float[Tensor, "B N"]) -> Float[Tensor, "B H N C"]:
        """``int_0^elapsed exp(rate * t) dt``: the integral of a query that is 1."""
        return elapsed[:, None, :, None] * moment(self.exponent(elapsed))
