"""Attention in continuous time with an equation of its own for every pair of points, as published.

It is the reference that the package's solvers are compared with, in tests and in
``examples/benchmark/contiformer_speed.py``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from taylorformer_forecast.core.continuous.attention import ContinuousAttention
from taylorformer_forecast.core.continuous.interpolation import Interpolation
from taylorformer_forecast.core.continuous.problem import Problem
from taylorformer_forecast.core.continuous.solvers import STEPS

Field = Callable[[Tensor, Tensor], Tensor]


class PairwiseAttention(ContinuousAttention):
    """The layer with a Runge-Kutta step of order 4 between ``n_nodes`` Gauss-Legendre nodes for each pair.

    With ``adaptive`` the adaptive solver of the package torchdiffeq takes these steps.
    """

    def __init__(self, *args: Any, n_nodes: int = 3, adaptive: bool = False, **options: Any) -> None:
        super().__init__(*args, **options)
        self.n_nodes, self.adaptive = n_nodes, adaptive

    def averages(self, p: Problem) -> tuple[Tensor, Tensor]:
        """Scores and values of all pairs."""
        elapsed = p.at[:, :, None] - p.query.t[:, None]
        moved = elapsed > 0
        length = elapsed.clamp_min(0.0)[..., None]  # (B, M, N, 1)
        roots, weights = np.polynomial.legendre.leggauss(self.n_nodes)
        nodes = [(1 + float(x)) / 2 for x in roots] + [1.0]
        keys, values = (
            solve(field, x, p.query.t, length, nodes, self.adaptive)
            for field, x in ((self.key_field, p.key), (self.value_field, p.value))
        )
        scores: Any = 0.0
        mean: Any = 0.0
        for node, weight, k, v in zip(nodes, weights, keys, values, strict=False):
            q = queries(p.query, p.query.t[:, None, :, None] + node * length)
            q = q if p.offset is None else q + p.offset[:, :, None]
            # The weights of an interval of length 2 sum to 2, once for query and key together.
            scores = scores + float(weight) / 2 * (q * k).unflatten(-1, (self.heads.n_heads, -1)).sum(-1)
            mean = mean + float(weight) / 2 * v
        limit = self.heads.split(p.row) @ self.heads.split(p.key).mT
        scores = torch.where(moved[:, None], scores.permute(0, 3, 1, 2), limit)
        end = values[-1] if self.last else mean
        return scores, torch.where(moved[..., None], end, p.value[:, None])


def queries(query: Interpolation, at: Tensor) -> Tensor:
    """Queries at a time for every pair, (B, M, N, F)."""
    m, n = at.shape[1:3]
    return query(at.flatten(1)).unflatten(1, (m, n))


def solve(
    field: Field, x: Tensor, t: Tensor, length: Tensor, nodes: list[float], adaptive: bool
) -> list[Tensor]:
    """States of every pair at the nodes, which are fractions of the time between its points."""
    start = t[:, None].expand(-1, length.shape[1], -1)[..., None]
    x = x[:, None].expand(-1, length.shape[1], -1, -1)

    def moving(fraction: float | Tensor, state: Tensor) -> Tensor:
        return length * field(start + fraction * length, state)

    if adaptive:
        from torchdiffeq import odeint

        return list(odeint(moving, x, torch.tensor([0.0, *nodes], dtype=x.dtype))[1:])
    states, now = [], 0.0
    for node in nodes:
        h, begin = node - now, partial(torch.full_like, length[..., :1, :1, :1])
        x = STEPS["rk4"](moving, begin(now), begin(h), x, moving(now, x))
        now = node
        states.append(x)
    return states
