"""Attention kernels: what a multi-head layer does between its projections.

A kernel is called as ``kernel(q, k, v, mask=None, scale=None)`` on heads that attend independently, and
returns one row of values for each query. Masks are True where a query may see a key; a mask of shape
(B, 1, N) hides keys from all queries (padding), one of shape (B, Q, N) is free. Where a kernel asks for the
order of points and there are fewer queries than keys, the queries are the last Q of the N positions. A query
that may see nothing gets zeros, and no gradient passes through it.

Any function with this signature will do for
:class:`~taylorformer_forecast.core.attention.layer.MultiHeadAttention`. A subclass of :class:`Kernel` can
say more
about itself, which models that sample step by step ask for.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor

from taylorformer_forecast.core.window import holds_everywhere

__all__ = ["Full", "Kernel", "Prob"]

FUSED_WIDTH = 16  # width of heads at which PyTorch's fused kernel is fastest on CPUs


class Kernel:
    """A kernel that says what a query's output depends on.

    Attributes
    ----------
    stepwise : bool
        Whether the output of a query is the softmax average of the keys that it may see, within
        :meth:`reach`, whatever the other queries are. Then one query at a time can be answered from a cache
        of points. False unless a subclass says so.

    Examples
    --------
    >>> import torch
    >>> from taylorformer_forecast.core.attention.layer import MultiHeadAttention
    >>> from taylorformer_forecast.core.attention.kernels import Kernel
    >>> class Uniform(Kernel):
    ...     def __call__(self, q, k, v, mask=None, scale=None):
    ...         weight = q.new_ones(1, 1, k.shape[2]) if mask is None else mask.to(q.dtype)
    ...         total = weight.sum(-1, keepdim=True).clamp_min(1)
    ...         return ((weight / total)[:, None] @ v).expand(-1, -1, q.shape[2], -1)
    >>> x = torch.randn(2, 5, 16)
    >>> MultiHeadAttention(16, 32, n_heads=4, head_dim=8, attention=Uniform())(x, x).shape
    torch.Size([2, 5, 32])
    """

    stepwise: ClassVar[bool] = False

    def __call__(
        self,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        mask: Tensor | None = None,
        scale: float | None = None,
    ) -> Tensor:
        """Attend; see the module's description."""
        raise NotImplementedError

    def reach(self, n: int) -> int | None:
        """Positions back, its own included, that a query among ``n`` points may see; None for all."""
        return None

    def settled(self, n: int) -> Kernel:
        """Return this kernel with the reach that it has among ``n`` points, for calls on some of them."""
        return self


def softmax_attention(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, scale: float | None) -> Tensor:
    """Softmax attention of every query to the keys that a mask (#B, #H, Q or 1, N) allows, or to all."""
    width = v.shape[-1]
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    # The fused kernel wants one width, and is slow below 16: zeros change no inner product.
    padded = max(q.shape[-1], width, FUSED_WIDTH)
    q, k, v = (F.pad(x, (0, padded - x.shape[-1])) if x.shape[-1] < padded else x for x in (q, k, v))
    if mask is None:
        return F.scaled_dot_product_attention(q, k, v, scale=scale)[..., :width]
    mask = mask.expand(-1, -1, q.shape[2], -1)
    sees = mask.any(-1, keepdim=True)
    if holds_everywhere(sees):
        return F.scaled_dot_product_attention(q, k, v, mask, scale=scale)[..., :width]
    # An empty row would be a softmax over nothing: let it see everything, then discard what it saw.
    return (F.scaled_dot_product_attention(q, k, v, mask | ~sees, scale=scale) * sees)[..., :width]


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

    stepwise: ClassVar[bool] = True

    def __call__(
        self,
        q: Float[Tensor, "B H Q E"],
        k: Float[Tensor, "B H N E"],
        v: Float[Tensor, "B H N V"],
        mask: Bool[Tensor, "#B #Q N"] | None = None,
        scale: float | None = None,
    ) -> Float[Tensor, "B H Q V"]:
        """Attend.

        Parameters
        ----------
        q, k, v : Tensor
            Queries, keys and values; v may have another width than q and k.
        mask : bool Tensor of shape (B or 1, Q or 1, N), optional
            True where a query may see a key.
        scale : float, optional
            Factor on the scores, ``1 / sqrt(E)`` by default.

        Returns
        -------
        Tensor
            Weighted values, (B, H, Q, V).
        """
        return softmax_attention(q, k, v, None if mask is None else mask[:, None], scale)


# ---- ProbSparse -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Prob(Kernel):
    """ProbSparse attention: exact for the queries that stand out, the mean of the values for the others.

    A query stands out if its largest score exceeds its mean score by much; both are estimated from some keys,
    drawn with replacement. Of Q queries, ``factor * ceil(ln Q)`` attend, from as many drawn keys in terms
    of N. It is not causal: which queries attend depends on all of them.

    Parameters
    ----------
    factor : int, default=5
        Factor on the number of queries that attend and of keys drawn.
    generator : torch.Generator, optional
        Source of the drawn keys. By default every call draws as if it were the first one, so that results
        can be repeated; the global generator is never used.

    Raises
    ------
    ValueError
        If ``factor`` is less than 1.

    References
    ----------
    Zhou et al., "Informer: Beyond Efficient Transformer for Long Sequence Time-Series Forecasting".

    Examples
    --------
    >>> import torch
    >>> from taylorformer_forecast.core.attention.kernels import Prob
    >>> q, v = torch.randn(1, 2, 96, 8), torch.randn(1, 2, 96, 8)
    >>> out = Prob()(q, q, v)
    >>> means = torch.isclose(out, v.mean(2, keepdim=True), atol=1e-6).all(-1)
    >>> means.sum(-1).tolist()  # all but 5 * ceil(ln 96) queries of each head
    [[71, 71]]
    """

    factor: int = 5
    generator: torch.Generator | None = None

    def __post_init__(self) -> None:
        """Refuse factors at which no query attends."""
        if self.factor < 1:
            raise ValueError(f"factor={self.factor} must be at least 1")

    def __call__(
        self,
        q: Float[Tensor, "B H Q E"],
        k: Float[Tensor, "B H N E"],
        v: Float[Tensor, "B H N V"],
        mask: Bool[Tensor, "#B #Q N"] | None = None,
        scale: float | None = None,
    ) -> Float[Tensor, "B H Q V"]:
        """Attend.

        Parameters
        ----------
        q, k, v : Tensor
            Queries, keys and values; v may have another width than q and k.
        mask : bool Tensor of shape (B or 1, Q or 1, N), optional
            True where a query may see a key. Hidden keys count neither in the choice of queries nor in the
            means.
        scale : float, optional
            Factor on the scores, ``1 / sqrt(E)`` by default.

        Returns
        -------
        Tensor
            Weighted values, (B, H, Q, V).
        """
        rows = q.shape[2]
        chosen = self.standing_out(q, k, mask).topk(self.count(rows), -1).indices[..., None]  # (B, H, U, 1)
        if mask is None:
            lazy, visible = v.mean(2, keepdim=True), None
        else:
            weight = mask.to(v.dtype)[:, None]
            lazy = weight @ v / weight.sum(-1, keepdim=True).clamp_min(1)
            every = mask[:, None].expand(q.shape[0], q.shape[1], rows, -1)
            visible = every.gather(2, chosen.expand(-1, -1, -1, k.shape[2]))
        out = softmax_attention(q.gather(2, chosen.expand(-1, -1, -1, q.shape[3])), k, v, visible, scale)
        return lazy.expand(-1, -1, rows, -1).scatter(2, chosen.expand_as(out), out.to(lazy.dtype))

    def count(self, n: int) -> int:
        """Queries that attend, or keys drawn, of ``n``."""
        return max(1, min(n, self.factor * math.ceil(math.log(n))))

    @torch.no_grad()
    def standing_out(
        self,
        q: Float[Tensor, "B H Q E"],
        k: Float[Tensor, "B H N E"],
        mask: Bool[Tensor, "#B #Q N"] | None = None,
    ) -> Float[Tensor, "B H Q"]:
        """How much each query's largest drawn score exceeds the sum of the drawn scores over N."""
        generator = torch.Generator().manual_seed(0) if self.generator is None else self.generator
        rows, n = q.shape[2], k.shape[2]
        drawn = torch.randint(n, (rows, self.count(n)), generator=generator, device=generator.device)
        parts, size = list[Tensor](), 32  # the keys drawn for all queries at once would fill no cache
        counts = None if mask is None else mask.sum(-1).clamp_min(1)  # (B, Q or 1)
        for start in range(0, rows, size):
            index = drawn[start : start + size].to(q.device)
            keys = k.index_select(2, index.flatten()).unflatten(2, index.shape)
            score = torch.einsum("bhqe,bhque->bhqu", q[:, :, start : start + size], keys)
            if mask is None or counts is None:
                parts.append(score.amax(-1) - score.sum(-1) / n)
                continue
            row = torch.arange(start, start + len(index), device=q.device) % mask.shape[1]  # of padding, 0
            hidden, count = ~mask[:, row[:, None], index][:, None], counts[:, None, row]
            largest = score.masked_fill(hidden, -math.inf).amax(-1)
            parts.append(largest - score.masked_fill(hidden, 0.0).sum(-1) / count)
        return torch.cat(parts, -1)
