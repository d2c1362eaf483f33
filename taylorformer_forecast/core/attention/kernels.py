"""Attention kernels: what a multi-head layer does between its projections.

A :class:`Kernel` has up to three forms.

*Whole sequence*, ``kernel(q, k, v, mask=None, scale=None)``: attends on heads that are independent of each
other, and returns one row of values for each query. Masks are True where a query may attend a key; a mask of
shape (B, 1, N) hides keys from all queries (padding), one of shape (B, Q, N) is free. Where a kernel needs
the order of points and there are fewer queries than keys, the queries are the last Q of the N positions. A
query that may attend nothing gets zeros, and no gradient passes through it.

*One query*, ``kernel.one_query(query, points, scale)``: the row of one query for each path, from cached
points. Networks that sample point by point need it.

*Table*, ``kernel.weigh(scores, mask)``: weights from a table of scores. Networks whose weights are known
before the values need it.

If what a query may see depends on the number of points, ``kernel.for_length(n)`` returns the kernel of that
number, as layers attend some of the points only.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor

from taylorformer_forecast.core.attention.cache import CachedPoints
from taylorformer_forecast.core.window import holds_everywhere

Queries: TypeAlias = Float[Tensor, "B H Q E"]
Keys: TypeAlias = Float[Tensor, "B H N E"]
Values: TypeAlias = Float[Tensor, "B H N V"]
Mask: TypeAlias = Bool[Tensor, "#B #Q N"] | None
Rows: TypeAlias = Float[Tensor, "B H Q V"]
PathRows: TypeAlias = Float[Tensor, "B H S E"]  # one for each path
Scores: TypeAlias = Float[Tensor, "#B H Q N"]
Weights: TypeAlias = Float[Tensor, "B H Q N"]

FUSED_WIDTH = 16  # width of heads at which PyTorch's fused kernel is fastest on CPUs


class Kernel:
    """Base class of kernels: the forms that a kernel may have, none of which it has.

    A kernel has a form if the class that defines the form is the one that defines the whole-sequence form.
    A subclass that changes the whole-sequence form alone has no other form, as what it inherits would
    belong to other weights.

    Examples
    --------
    >>> import torch
    >>> from taylorformer_forecast.core.attention.kernels import Full
    >>> class Sharp(Full):
    ...     def __call__(self, q, k, v, mask=None, scale=None):
    ...         scale = q.shape[-1] ** -0.5 if scale is None else scale
    ...         return super().__call__(q, k, v, mask, 2 * scale)
    ...     def one_query(self, query, points, scale):
    ...         return super().one_query(query, points, 2 * scale)
    >>> Sharp().has("one_query"), Sharp().has("weigh")
    (True, False)
    """

    def __call__(self, q: Queries, k: Keys, v: Values, mask: Mask = None, scale: float | None = None) -> Rows:
        """Attend from all queries.

        Parameters
        ----------
        q, k, v : Tensor
            Queries, keys and values; v may have another width than q and k.
        mask : bool Tensor of shape (B or 1, Q or 1, N), optional
            True where a query may attend a key.
        scale : float, optional
            Factor on the scores, ``1 / sqrt(E)`` by default.

        Returns
        -------
        Tensor
            Weighted values, (B, H, Q, V).
        """
        raise NotImplementedError

    def one_query(self, query: PathRows, points: CachedPoints, scale: float) -> PathRows:
        """Attend from one query of every path, as the whole-sequence form does from that query's row.

        Parameters
        ----------
        query : Tensor of shape (B, H, S, E)
            Queries of all heads and paths.
        points : CachedPoints
            Points that may be attended, in the place of keys, values and mask.
        scale : float
            Factor on the scores.

        Returns
        -------
        Tensor
            Weighted values, (B, H, S, E).
        """
        raise NotImplementedError

    def weigh(self, scores: Scores, mask: Bool[Tensor, "#B #Q N"], n_global: int = 0) -> Weights:
        """Weights of the values, from scores and a mask.

        Parameters
        ----------
        scores : Tensor of shape (B, H, Q, N)
            Scores, times the scale.
        mask : bool Tensor of shape (B or 1, Q or 1, N)
            True where a query may attend a key.
        n_global : int, default=0
            First keys that have no position, as all queries may attend them.

        Returns
        -------
        Tensor
            Weights; zero where a query may attend nothing.
        """
        raise NotImplementedError

    def for_length(self, n: int) -> Kernel:
        """Return the kernel that this one is among ``n`` points, for calls on some of them."""
        return self

    def has(self, form: str) -> bool:
        """Whether the kernel has the form ``"one_query"`` or ``"weigh"``."""

        def owner(name: str) -> type:
            return next(c for c in type(self).__mro__ if name in vars(c))

        return owner(form) is owner("__call__") is not Kernel


class FunctionKernel(Kernel):
    """A function with the signature of the whole-sequence form, as a kernel without another form."""

    def __init__(self, function: Callable[..., Tensor]) -> None:
        self.function = function

    def __call__(self, q: Queries, k: Keys, v: Values, mask: Mask = None, scale: float | None = None) -> Rows:
        """Call the function."""
        return self.function(q, k, v, mask, scale)


def softmax_attention(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, scale: float | None) -> Tensor:
    """Softmax attention of every query to the keys that a mask (#B, #H, Q or 1, N) allows, or to all."""
    width = v.shape[-1]
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    # The fused kernel wants one width, and is slow below 16: zeros change no inner product.
    padded = max(q.shape[-1], width, FUSED_WIDTH)
    q, k, v = (_padded(x, padded) for x in (q, k, v))
    if mask is None:
        return F.scaled_dot_product_attention(q, k, v, scale=scale)[..., :width]
    mask = mask.expand(-1, -1, q.shape[2], -1)
    sees = mask.any(-1, keepdim=True)
    if holds_everywhere(sees):
        return F.scaled_dot_product_attention(q, k, v, mask, scale=scale)[..., :width]
    # An empty row would be a softmax over nothing: let it see everything, then discard what it saw.
    return (F.scaled_dot_product_attention(q, k, v, mask | ~sees, scale=scale) * sees)[..., :width]


def _padded(x: Tensor, width: int) -> Tensor:
    """Heads (B, H, N, D) with zeros behind them, up to a width."""
    if x.shape[-1] == width:
        return x
    x = F.pad(x, (0, width - x.shape[-1]))
    # Padding may keep the strides of "channels last", with heads nearest: the kernel for GPUs refuses them.
    return x if x.stride(1) >= width else x.clone(memory_format=torch.contiguous_format)


def softmax_query(query: PathRows, points: CachedPoints, scale: float) -> PathRows:
    """Softmax attention of one query of every path to cached points."""
    shared, own = points.scores(query * scale)
    # Two parts of one softmax, in place: long paths are bound by memory. No gradient depends on the top.
    tops = [part.detach().amax(-1, keepdim=True) for part in (shared, own) if part.shape[-1] > 0]
    top = functools.reduce(torch.maximum, tops, own.new_full((), torch.finfo(own.dtype).min))
    shared, own = shared.sub_(top).exp_(), own.sub_(top).exp_()
    total = shared.sum(-1, keepdim=True) + own.sum(-1, keepdim=True)
    sums = points.weighted_sum(shared, own, total)
    return sums / total.transpose(1, 2).clamp_min(1.0)  # the top counts 1; without points all is zero


def softmax_weights(scores: Scores, mask: Mask) -> Weights:
    """Softmax of scores over the keys that a mask allows; rows without any are zero and pass no gradient."""
    if mask is None:
        return scores.softmax(-1)
    mask = mask[:, None]
    sees = mask.any(-1, keepdim=True)
    if holds_everywhere(sees):
        return scores.masked_fill(~mask, float("-inf")).softmax(-1)
    return scores.masked_fill(~mask & sees, float("-inf")).softmax(-1) * sees


@dataclass(frozen=True)
class Full(Kernel):
    """Softmax attention over all keys that the mask allows.

    Examples
    --------
    >>> import torch
    >>> from taylorformer_forecast.core.attention.kernels import Full
    >>> q = torch.randn(2, 4, 7, 8)
    >>> Full()(q, q, q).shape
    torch.Size([2, 4, 7, 8])
    """

    def __call__(self, q: Queries, k: Keys, v: Values, mask: Mask = None, scale: float | None = None) -> Rows:
        """Attend from all queries; see :class:`Kernel`."""
        return softmax_attention(q, k, v, None if mask is None else mask[:, None], scale)

    def one_query(self, query: PathRows, points: CachedPoints, scale: float) -> PathRows:
        """Attend from one query of every path; see :class:`Kernel`."""
        return softmax_query(query, points, scale)

    def weigh(self, scores: Scores, mask: Bool[Tensor, "#B #Q N"], n_global: int = 0) -> Weights:
        """Weights of the values; see :class:`Kernel`."""
        return softmax_weights(scores, mask)
