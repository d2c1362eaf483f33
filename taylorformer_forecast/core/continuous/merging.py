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
    fill = (1 << (n - 1).bit_length()) - n  # every merge joins two segments of one length

    def segments(x: Tensor, value: float = 0.0) -> Tensor:
        return F.pad(x, (0, 0, 0, fill), value=value)[:, :, :, None]  # (B, H, segments, length, C)

    # Integrals from the beginning of a segment to each of its knots, and from each to the next segment.
    stacked = pieces[None] if unit is None else torch.stack([pieces, unit])
    to_end, decay = segments(stacked.flatten(0, 1)).unflatten(0, stacked.shape[:2]), segments(decay, 1.0)
    from_begin = torch.zeros_like(to_end)
    key, offset = (None if x is None else segments(x) for x in (key, offset))
    blocks = []  # of the table: rows of a segment, columns of the one before it

    def halves(x: Tensor, dim: int) -> tuple[Tensor, Tensor]:
        return x.unflatten(dim, (-1, 2)).unbind(dim + 1)

    while decay.shape[2] > 1:
        (decay_l, decay_r), (end_l, end_r), (begin_l, begin_r) = (
            halves(decay, 2),
            halves(to_end, 3),
            halves(from_begin, 3),
        )
        if key is not None:
            key_l, key_r = halves(key, 2)
            rows, columns = begin_r[0], key_l * decay_l
            here = (key_l * end_l[0]).sum(-1)[..., None, :]
            if offset is not None:
                own = halves(offset, 2)[1]
                rows, columns = (
                    torch.cat([rows + own * begin_r[1], own], -1),
                    torch.cat([columns, key_l * end_l[1]], -1),
                )
                offset = torch.cat(halves(offset, 2), 3)
            blocks.append(rows @ columns.mT + here)
            key = torch.cat([key_l, key_r], 3)
        first_end, first_decay = end_l[..., :1, :], decay_l[..., :1, :]
        from_begin = torch.cat([begin_l, first_end + first_decay * begin_r], -2)
        to_end = torch.cat([end_l + decay_l * end_r[..., :1, :], end_r], -2)
        decay = torch.cat([decay_l * decay_r[..., :1, :], decay_r], -2)
    n_rows = 0 if key is None else n + fill
    table = pieces.new_zeros(*pieces.shape[:2], n_rows, n_rows)
    if blocks:
        table = _Lower.apply(table, *blocks)
    return table[:, :, :n, :n], to_end[0, :, :, 0, :n]


class _Lower(torch.autograd.Function):
    """A table below its diagonal, of blocks of 1, 2, 4 ... rows; pieces of its gradient are not copied."""

    @staticmethod
    def forward(ctx: Any, table: Tensor, *blocks: Tensor) -> Tensor:
        """Write the blocks, each (B, H, segments, l, l), into a table of zeros, (B, H, N, N)."""
        ctx.lengths = [block.shape[-1] for block in blocks]
        ctx.mark_dirty(table)
        for block in blocks:
            _below(table, block.shape[-1]).copy_(block)
        return table

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        """Read them again."""
        return None, *(_below(grad, length) for length in ctx.lengths)


def _below(table: Tensor, length: int) -> Tensor:
    """Blocks that join two segments of a length, (B, H, segments, length, length), as a view of a table."""
    pairs = table.unflatten(3, (-1, 2, length)).unflatten(2, (-1, 2, length))
    return pairs[:, :, :, 1, :, :, 0].diagonal(dim1=2, dim2=4).movedim(-1, 2)
