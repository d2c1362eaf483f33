"""Integrals between all pairs of knots, by merging neighbouring segments of time.

A pair that a boundary separates is

    integral(i, j) = integral(i, boundary) + exp(rate * (boundary - t_i)) * integral(boundary, j),

so that every merge is one matrix product, of N^2 d operations in all, and no number ever grows: exponents are
never positive, whatever the span of a window.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable

SEGMENT = 32  # knots: shorter ones are merged in pairs, longer ones one after the other


def between_all(
    pieces: Float[Tensor, "B H N C"],
    decay: Float[Tensor, "B H N C"],
    key: Float[Tensor, "B H N C"] | None = None,
    unit: Float[Tensor, "B H N C"] | None = None,
    offset: Float[Tensor, "B H N C"] | None = None,
) -> tuple[Float[Tensor, "B H R R2"], Float[Tensor, "B H N C"]]:
    """Merge intervals: integrals between all knots, and from every knot to the end.

    Parameters
    ----------
    pieces : Tensor of shape (B, H, N, C)
        Integrals over single intervals (:meth:`Relaxation.integrals`).
    decay : Tensor of shape (B, H, N, C)
        Decay over each of them.
    key : Tensor of shape (B, H, N, C), optional
        Keys; without, only the integrals to the end are computed.
    unit, offset : Tensor of shape (B, H, N, C), optional
        Where the query of a row (knot) j is that of the others plus a constant: integrals of a query that is
        1 over single intervals, and the constants.

    Returns
    -------
    Tensor of shape (B, H, N, N)
        Row j, column i: the integral from t_i to t_j of the inner product of query and key i, zero for
        columns after the row. Empty without ``key``.
    Tensor of shape (B, H, N, C)
        Integrals from every knot to the last.
    """
    n = pieces.shape[2]
    length = min(SEGMENT, 1 << (n - 1).bit_length())

    def segments(x: Tensor, value: float = 0.0) -> Tensor:
        return F.pad(x, (0, 0, 0, -n % length), value=value)[:, :, :, None]  # (B, H, segments, length, C)

    # Integrals from the beginning of a segment to each of its knots, and from each to the next segment.
    stacked = pieces[None] if unit is None else torch.stack([pieces, unit])
    to_end, decay = segments(stacked.flatten(0, 1)).unflatten(0, stacked.shape[:2]), segments(decay, 1.0)
    from_begin = torch.zeros_like(to_end)
    key, offset = (None if x is None else segments(x) for x in (key, offset))
    blocks = []  # of the table: rows of a segment, columns of those before it

    def halves(x: Tensor, dim: int) -> tuple[Tensor, Tensor]:
        return x.unflatten(dim, (-1, 2)).unbind(dim + 1)

    while decay.shape[3] < length:  # segments in pairs
        (decay_l, decay_r), (end_l, end_r) = halves(decay, 2), halves(to_end, 3)
        begin_l, begin_r = halves(from_begin, 3)
        if key is not None:
            own = None if offset is None else halves(offset, 2)[1]
            blocks.append(_across(halves(key, 2)[0], end_l, decay_l, begin_r, own))
            key = torch.cat(halves(key, 2), 3)
            offset = None if offset is None else torch.cat(halves(offset, 2), 3)
        first_end, first_decay = end_l[..., :1, :], decay_l[..., :1, :]
        from_begin = torch.cat([begin_l, first_end + first_decay * begin_r], -2)
        to_end = torch.cat([end_l + decay_l * end_r[..., :1, :], end_r], -2)
        decay = torch.cat([decay_l * decay_r[..., :1, :], decay_r], -2)

    end, far = to_end[:, :, :, 0], decay[:, :, 0]  # of all knots before a segment
    for k in range(1, decay.shape[2]):  # one segment after the other
        if key is not None:
            own = None if offset is None else offset[:, :, k]
            before = key[:, :, :k].flatten(2, 3)
            blocks.append(_across(before, end, far, from_begin[:, :, :, k], own))
        next_end, next_decay = to_end[:, :, :, k], decay[:, :, k]
        end = torch.cat([end + far * next_end[..., :1, :], next_end], -2)
        far = torch.cat([far * next_decay[..., :1, :], next_decay], -2)
    n_rows = 0 if key is None else far.shape[2]
    table = pieces.new_zeros(*pieces.shape[:2], n_rows, n_rows)
    if blocks:
        table = _Lower.apply(table, *blocks)
    return table[:, :, :n, :n], end[0, :, :, :n]


def _across(
    key: Float[Tensor, "*batch L C"],
    end: Float[Tensor, "U *batch L C"],
    decay: Float[Tensor, "*batch L C"],
    begin: Float[Tensor, "U *batch R C"],
    offset: Float[Tensor, "*batch R C"] | None,
) -> Float[Tensor, "*batch R L"]:
    """Integrals from the knots of one segment, or of several, to those of the next."""
    rows, columns = begin[0], key * decay
    if offset is not None:
        rows = torch.cat([rows + offset * begin[1], offset], -1)
        columns = torch.cat([columns, key * end[1]], -1)
    return rows @ columns.mT + (key * end[0]).sum(-1)[..., None, :]


class _Lower(torch.autograd.Function):
    """A table below its diagonal, written and read in place: pieces of its gradient are not copied."""

    @staticmethod
    def forward(ctx: Any, table: Tensor, *blocks: Tensor) -> Tensor:
        """Write the blocks of pairs, (B, H, segments, l, l), and of single segments, (B, H, l, columns)."""
        ctx.shapes = [block.shape for block in blocks]
        ctx.mark_dirty(table)
        for block in blocks:
            _place(table, block.shape).copy_(block)
        return table

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        """Read them again."""
        return None, *(_place(grad, shape) for shape in ctx.shapes)


def _place(table: Tensor, shape: torch.Size) -> Tensor:
    """Where a block stands in a table, as a view."""
    if len(shape) == 4:
        first = shape[3]  # all columns before its rows
        return table[:, :, first : first + shape[2], :first]
    pairs = table.unflatten(3, (-1, 2, shape[4])).unflatten(2, (-1, 2, shape[4]))
    return pairs[:, :, :, 1, :, :, 0].diagonal(dim1=2, dim2=4).movedim(-1, 2)
