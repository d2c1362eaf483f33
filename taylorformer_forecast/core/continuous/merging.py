"""Integrals between all pairs of knots, by merging neighbouring segments of time.

A pair that a boundary separates is

    integral(i, j) = integral(i, boundary) + exp(rate * (boundary - t_i)) * integral(boundary, j),

so that every merge is one matrix product, of N^2 d operations in all, and no number ever grows: exponents are
never positive, whatever the span of a window.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable

SEGMENT = 32  # knots: shorter ones are merged in pairs, longer ones one after the other


def between_all(
    pieces: Float[Tensor, "B H N C"],
    decay: Float[Tensor, "B H N C"],
    key: Float[Tensor, "B H N C"],
    unit: Float[Tensor, "B H N C"] | None = None,
    offset: Float[Tensor, "B H M C"] | None = None,
    first: int = 0,
) -> Float[Tensor, "B H M N"]:
    """Merge intervals: integrals between all knots.

    Parameters
    ----------
    pieces : Tensor of shape (B, H, N, C)
        Integrals over single intervals (:meth:`Relaxation.integrals`).
    decay : Tensor of shape (B, H, N, C)
        Decay over each of them.
    key : Tensor of shape (B, H, N, C)
        Keys.
    unit, offset : Tensor of shape (B, H, N, C) and (B, H, M, C), optional
        Where the query of a row j is that of the others plus a constant: integrals of a query that is 1 over
        single intervals, and the constants.
    first : int, default=0
        Knot of the first row: the M = N - first last ones are computed, in as many operations.

    Returns
    -------
    Tensor of shape (B, H, M, N)
        Row j, column i: the integral from t_i to t_j of the inner product of query and key i, zero for
        columns after the row.
    """
    stacked = pieces[None] if unit is None else torch.stack([pieces, unit])
    last = _merge(stacked[:, :, :, first:], decay[:, :, first:], key[:, :, first:], offset)
    if not first:
        return last.table
    before = _merge(stacked[:, :, :, :first], decay[:, :, :first])
    columns = _across(key[:, :, :first], before.to_end, before.decay, last.from_begin, offset)
    return torch.cat([columns, last.table], -1)


def to_last(pieces: Float[Tensor, "B H N C"], decay: Float[Tensor, "B H N C"]) -> Float[Tensor, "B H N C"]:
    """Merge intervals: integrals from every knot to the last, of what :func:`between_all` takes."""
    return _merge(pieces[None], decay).to_end[0]


class _Merged(NamedTuple):
    """Integrals between the knots of a stretch of time, from each to its end and from its begin to each."""

    table: Float[Tensor, "B H R N"]
    to_end: Float[Tensor, "U B H N C"]
    from_begin: Float[Tensor, "U B H N C"]
    decay: Float[Tensor, "B H N C"]  # from every knot to the end


def _merge(
    pieces: Float[Tensor, "U B H N C"],
    decay: Float[Tensor, "B H N C"],
    key: Float[Tensor, "B H N C"] | None = None,
    offset: Float[Tensor, "B H N C"] | None = None,
) -> _Merged:
    """Merge the intervals of a stretch; its table is empty without keys."""
    n = pieces.shape[3]
    length = min(SEGMENT, 1 << (n - 1).bit_length())
    missing = max(length - n, -n % length)  # at least one segment, even of no knots

    def segments(x: Tensor, value: float = 0.0) -> Tensor:
        return F.pad(x, (0, 0, 0, missing), value=value)[:, :, :, None]  # (B, H, segments, length, C)

    # Integrals from the beginning of a segment to each of its knots, and from each to the next segment.
    to_end, decay = segments(pieces.flatten(0, 1)).unflatten(0, pieces.shape[:2]), segments(decay, 1.0)
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

    # Of all knots before a segment.
    end, far, begin = to_end[:, :, :, 0], decay[:, :, 0], from_begin[:, :, :, 0]
    for k in range(1, decay.shape[2]):  # one segment after the other
        next_begin = from_begin[:, :, :, k]
        if key is not None:
            own = None if offset is None else offset[:, :, k]
            blocks.append(_across(key[:, :, :k].flatten(2, 3), end, far, next_begin, own))
        begin = torch.cat([begin, end[..., :1, :] + far[..., :1, :] * next_begin], -2)
        next_end, next_decay = to_end[:, :, :, k], decay[:, :, k]
        end = torch.cat([end + far * next_end[..., :1, :], next_end], -2)
        far = torch.cat([far * next_decay[..., :1, :], next_decay], -2)
    n_rows = 0 if key is None else far.shape[2]
    table = pieces.new_zeros(*decay.shape[:2], n_rows, n_rows)
    if blocks:
        table = _Lower.apply(table, *blocks)
    return _Merged(table[:, :, :n, :n], end[:, :, :, :n], begin[:, :, :, :n], far[:, :, :n])


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
