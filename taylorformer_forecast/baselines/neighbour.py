"""The value at the nearest earlier neighbour: the baseline of the Taylorformer paper."""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from taylorformer_forecast.baselines.base import Baseline, Neighbourhood, Placed, given
from taylorformer_forecast.core.window import Window


class NeighbourBaseline(Baseline):
    """Taylor expansion around the nearest neighbour (paper, eq. 8), in units of 1.

    Between two neighbours, where the network looks to both sides, the location is on the line through them.

    Parameters
    ----------
    taylor_order : {0, 1}, default=0
        Terms of the expansion: the neighbour's value, or also its derivative times the offset.
    both_sides : bool, default=False
        Whether points look to both sides.

    Examples
    --------
    >>> import torch
    >>> from taylorformer_forecast.baselines.base import Neighbourhood
    >>> from taylorformer_forecast.baselines.neighbour import NeighbourBaseline
    >>> from taylorformer_forecast.core.neighbours import Neighbours
    >>> offset = torch.tensor([1.0, -3.0]).view(1, 1, 2, 1, 1)
    >>> index, valid = torch.zeros(1, 1, 2, 1, dtype=torch.long), torch.ones(1, 1, 2, 1).bool()
    >>> found = Neighbours(index, valid, offset, offset[..., 0, 0])
    >>> seen = Neighbourhood(found, torch.tensor([[[[0.0], [4.0]]]]), torch.zeros(1, 1, 3, 1, 1))
    >>> NeighbourBaseline(both_sides=True).expand(seen).item()
    1.0
    """

    def __init__(self, taylor_order: int = 0, both_sides: bool = False) -> None:
        super().__init__()
        self.taylor_order, self.both_sides = taylor_order, both_sides

    def expand(self, seen: Neighbourhood) -> Float[Tensor, "B M D"]:
        """Location from the neighbours."""
        near, found = seen.near, seen.found
        value = near[:, :, 0]
        if self.taylor_order:
            value = value + (seen.slopes[:, :, 0] * found.offset[:, :, 0].transpose(2, 3)).sum(2)
        if not self.both_sides:
            return value
        distance, between = found.offset[:, :, :2, :, 0].abs(), found.valid[:, :, :2].all(2)
        weight = distance[:, :, 0] / distance.sum(2).clamp_min(torch.finfo(near.dtype).tiny)
        return torch.where(between, torch.lerp(near[:, :, 0], near[:, :, 1], weight.expand_as(value)), value)

    def teacher_forced(
        self, window: Window, neighbourhood: Neighbourhood | None, added: Tensor | None = None
    ) -> Placed:
        """Location at all targets; see :class:`~taylorformer_forecast.baselines.base.Baseline`."""
        return self.expand(given(neighbourhood, self)), 1.0

    def encode(self, window: Window, n_paths: int) -> None:
        """Nothing: neighbours are found by the network."""

    def at(self, state: Any, step: int, drawn: Tensor, neighbourhood: Neighbourhood | None) -> Placed:
        """Location at one target."""
        return self.expand(given(neighbourhood, self)), 1.0
