"""The averages to compute: curves of queries, keys and values, and the times that they are wanted for."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from taylorformer_forecast.core.continuous.interpolation import Interpolation, take
from taylorformer_forecast.core.window import holds_everywhere

FEW_SCORES = 2**21  # of one table: larger ones leave the cache of processors, and are twice as slow


@dataclass(frozen=True)
class Problem:
    """Inputs of the averages: queries over time, keys and values of reference points, query times.

    Parameters
    ----------
    query : Interpolation
        Queries of the reference points over time.
    key, value : Tensor of shape (B, N, F)
        Keys and values of the reference points.
    at : Tensor of shape (B, M)
        Query times.
    row : Tensor of shape (B, M, F)
        Queries there.
    offset : Tensor of shape (B, M, F), optional
        What is added to the query all the way, for each query time.
    at_knots : bool
        Whether query times are those of the reference points, in their order, or of the last M of them.
    """

    query: Interpolation
    key: Tensor
    value: Tensor
    at: Tensor
    row: Tensor
    offset: Tensor | None
    at_knots: bool

    def mirrored(self, interpolation: str) -> Problem:
        """Return the same with time running backwards."""
        knots, values = -self.query.t.flip(1), self.query.coefficients[0].flip(1)
        query = Interpolation.through(knots, values, interpolation)
        at, row, offset = -self.at, self.row, self.offset
        if self.at_knots:
            at, row, offset = knots, row.flip(1), None if offset is None else offset.flip(1)
        return Problem(query, self.key.flip(1), self.value.flip(1), at, row, offset, self.at_knots)

    def at_all_times(self) -> tuple[Problem, Int[Tensor, "B M"], Int[Tensor, "B N"]]:
        """Return the same with query times as knots, and the places of query and reference times there.

        Keys and values at query times are zero: they must be masked.
        """
        n = self.key.shape[1]
        t, order = torch.sort(torch.cat([self.query.t, self.at], 1), dim=1, stable=True)
        place = order.argsort(1)

        def spread(reference: Tensor, queries: Tensor) -> Tensor:
            return take(torch.cat([reference, queries], 1), order)

        nothing, blank = torch.zeros_like(self.row), torch.zeros_like(self.key)
        offset = None if self.offset is None else spread(blank, self.offset)
        key, value, row = spread(self.key, nothing), spread(self.value, nothing), spread(blank, self.row)
        everywhere = Problem(self.query.refine(t), key, value, t, row, offset, True)
        return everywhere, place[:, n:], place[:, :n]


def differences(at: Float[Tensor, "B M"], t: Float[Tensor, "B N"]) -> Float[Tensor, "#B M N"]:
    """Times from reference points to queries; a single table where all windows have the same, on a CPU."""
    if holds_everywhere(t == t[:1]) and holds_everywhere(at == at[:1]):
        at, t = at[:1], t[:1]
    return at[:, :, None] - t[:, None]


def few_windows(parts: tuple[Tensor | None, ...], n_scores: int) -> list[tuple[Tensor | None, ...]]:
    """Split a batch, on a CPU, so that a table of scores holds at most ``FEW_SCORES``.

    Parameters
    ----------
    parts : tuple of Tensor or None
        What belongs to the windows, each of shape (B, ...), or (1, ...) for all of them; first what has B.
    n_scores : int
        Scores of a window.

    Returns
    -------
    list of tuple
        The same for some windows at a time.
    """
    first = parts[0]
    assert first is not None
    if first.device.type != "cpu" or torch.compiler.is_compiling():
        return [parts]
    n, size = len(first), max(1, FEW_SCORES // max(1, n_scores))
    return [
        tuple(part if part is None or len(part) < n else part[start : start + size] for part in parts)
        for start in range(0, n, size)
    ]
