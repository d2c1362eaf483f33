"""Local attention: a causal sliding window, in linear time and memory.

Source: Aguilera-Martos et al., "Local Attention Mechanism: Boosting the Transformer Architecture for
Long-Sequence Time Series Forecasting", definition 1.
"""

from __future__ import annotations

import copy
import functools
import inspect
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import torch
import torch.nn.functional as F
from einops import rearrange
from jaxtyping import Bool
from torch import Tensor

from taylorformer_forecast.core.attention.cache import CachedPoints
from taylorformer_forecast.core.attention.kernels import (
    Kernel,
    Keys,
    Mask,
    PathRows,
    Queries,
    Rows,
    Scores,
    Values,
    Weights,
    softmax_attention,
    softmax_query,
    softmax_weights,
)

SHORT = 64  # points up to which one masked product costs less than several blocks


def log_window(n: int) -> int:
    """Window of local attention among ``n`` points that its authors use: ``4 * ceil(ln n)``."""
    return 4 * math.ceil(math.log(n))


@dataclass(frozen=True)
class Local(Kernel):
    """Causal sliding-window softmax attention: query i sees keys i - L + 1 to i.

    Time and memory are linear in the number of points: no object of (Q, N) numbers is made. Among the first
    L points a query sees fewer keys, and nothing stands in for those that are missing.

    Parameters
    ----------
    window : int or callable, default=log_window
        Keys L that a query sees, its own position included, or a function of the number of keys that gives
        L. More than there are keys is plain causal attention.

    Raises
    ------
    ValueError
        If ``window`` is less than 1, or neither a whole number nor callable.

    Examples
    --------
    >>> import torch
    >>> from taylorformer_forecast.core.attention.local import Local
    >>> v = torch.arange(5.0).view(1, 1, 5, 1)
    >>> Local(window=2)(0 * v, 0 * v, v).flatten().tolist()  # all scores equal: means of two
    [0.0, 0.5, 1.5, 2.5, 3.5]
    """

    window: int | Callable[[int], int] = log_window

    def __post_init__(self) -> None:
        """Refuse windows that see nothing."""
        if callable(self.window):
            return
        if not isinstance(self.window, Integral):
            raise ValueError(f"window={self.window!r} is neither a whole number nor a function of one")
        if self.window < 1:
            raise ValueError(f"window={self.window}, but a query sees at least itself: give 1 or more")

    def reach(self, n: int) -> int:
        """Window among ``n`` points, from 1 to ``n``."""
        window = self.window(n) if callable(self.window) else self.window
        return max(1, min(n, int(window)))

    def for_length(self, n: int) -> Local:
        """Return the kernel with the window that it has among ``n`` points."""
        kernel = copy.copy(self)  # a subclass may have another constructor
        object.__setattr__(kernel, "window", self.reach(n))
        return kernel

    def __call__(self, q: Queries, k: Keys, v: Values, mask: Mask = None, scale: float | None = None) -> Rows:
        """Attend from the last Q of the N positions; see :class:`Kernel`.

        Raises
        ------
        ValueError
            If there are more queries than keys.
        """
        rows, n = q.shape[2], k.shape[2]
        if rows > n:
            raise ValueError(f"{rows} queries of {n} points: they must be the last of the points")
        scale = q.shape[-1] ** -0.5 if scale is None else scale
        reach = self.reach(n)
        if n <= SHORT:
            band = _band(rows, n, n - rows, reach, q.device)[None]
            return softmax_attention(q, k, v, (band if mask is None else band & mask)[:, None], scale)
        if mask is None and _flash_window_fits(q, k, v):
            return _flash_window(q, k, v, scale, reach)
        # Blocks do not accumulate in a wider type as fused kernels do, so half precision is widened before.
        wide = (x.flatten(0, 1).to(torch.promote_types(x.dtype, torch.float32)) for x in (q, k, v))
        with torch.autocast(q.device.type, enabled=False):
            out = _Blocks.apply(*wide, mask, scale, reach)
        return out.to(v.dtype).unflatten(0, q.shape[:2])

    def one_query(self, query: PathRows, points: CachedPoints, scale: float) -> PathRows:
        """Attend from one query of every path, to points within the window; see :class:`Kernel`."""
        return softmax_query(query, points.last(self.reach(points.n_points)), scale)

    def weigh(self, scores: Scores, mask: Bool[Tensor, "#B #Q N"], n_global: int = 0) -> Weights:
        """Weights of the values, the queries at the last Q positions; see :class:`Kernel`."""
        rows, n = scores.shape[2], scores.shape[3] - n_global
        band = _band(rows, n, n - rows, self.reach(n), scores.device)
        return softmax_weights(scores, mask & F.pad(band, (n_global, 0), value=True))


def _band(rows: int, n: int, first: int, reach: int, device: torch.device) -> Tensor:
    """Which of ``n`` keys the queries at positions ``first`` and later see, (rows, n)."""
    back = torch.arange(first, first + rows, device=device)[:, None] - torch.arange(n, device=device)
    return (back >= 0) & (back < reach)


class _Blocks(torch.autograd.Function):
    """Local attention over blocks of queries, each with the keys that any of its queries sees.

    The gradient computes the weights anew, so that only inputs and output are kept, and adds up the
    gradients of overlapping blocks in place: autograd would make a full-size tensor for each of them.
    """

    @staticmethod
    def forward(
        ctx: Any, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, scale: float, reach: int
    ) -> Tensor:
        """Attend: (B*H, Q, E), (B*H, N, E), (B*H, N, V) -> (B*H, Q, V)."""
        out = v.new_empty(*q.shape[:2], v.shape[2])
        for rows, keys, weights in _weights(q, k, mask, scale, reach):
            out[:, rows] = weights @ v[:, keys]
        ctx.save_for_backward(q, k, v, mask, out)
        ctx.scale, ctx.reach = scale, reach
        return out

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        """Gradients of queries, keys and values."""
        q, k, v, mask, out = ctx.saved_tensors
        grad_q, grad_k, grad_v = torch.empty_like(q), torch.zeros_like(k), torch.zeros_like(v)
        mean = (grad * out).sum(-1, keepdim=True)  # of the weights' gradients, under the weights
        for rows, keys, weights in _weights(q, k, mask, ctx.scale, ctx.reach):
            grad_v[:, keys] += weights.mT @ grad[:, rows]
            score = (grad[:, rows] @ v[:, keys].mT).sub_(mean[:, rows]).mul_(weights).mul_(ctx.scale)
            grad_q[:, rows] = score @ k[:, keys]
            grad_k[:, keys] += score.mT @ q[:, rows]
        return grad_q, grad_k, grad_v, None, None, None


def _weights(
    q: Tensor, k: Tensor, mask: Tensor | None, scale: float, reach: int
) -> Iterator[tuple[slice, slice, Tensor]]:
    """Yield queries, the keys that they see, and the weights between these, block by block."""
    # Long blocks waste products on hidden keys, short ones time on calls, which other devices feel more.
    size, n_rows = 32 if q.device.type == "cpu" else 512, q.shape[1]
    first = k.shape[1] - n_rows  # position of the first query
    outside = ~_band(size, size + reach - 1, reach - 1, reach, q.device)
    bias = q.new_zeros(outside.shape).masked_fill_(outside, -math.inf)
    for start in range(0, n_rows, size):
        rows = slice(start, min(start + size, n_rows))
        begin = first + start - reach + 1  # before the first key, in the first blocks
        keys = slice(max(0, begin), first + rows.stop)
        here = slice(rows.stop - start), slice(keys.start - begin, keys.stop - begin)
        score = torch.baddbmm(bias[here], q[:, rows], k[:, keys].mT, alpha=scale)
        if mask is None:
            weights = score.softmax(-1)
        else:
            hidden = outside[here] | ~mask[:, rows if mask.shape[1] > 1 else slice(None), keys]
            score = score.unflatten(0, (mask.shape[0], -1)).masked_fill_(hidden[:, None], -math.inf)
            # An empty row would be a softmax over nothing.
            weights = score.softmax(-1).masked_fill_(hidden[:, None], 0.0).flatten(0, 1)
        yield rows, keys, weights


# ---- a fused kernel of GPUs -------------------------------------------------------------------------------


@functools.cache
def _varlen_attention() -> Callable[..., Any] | None:
    """PyTorch's fused attention, where it has windows. Its module takes a second to load: load it late."""
    try:
        from torch.nn.attention.varlen import varlen_attn
    except ImportError:
        return None
    return varlen_attn if "window_size" in inspect.signature(varlen_attn).parameters else None


def _flash_window_fits(q: Tensor, k: Tensor, v: Tensor) -> bool:
    """Whether PyTorch's fused window can serve: CUDA, half precision, as many queries as keys."""
    half = q.is_cuda and q.dtype in (torch.float16, torch.bfloat16) and q.dtype == k.dtype == v.dtype
    alike = q.shape == k.shape == v.shape and q.shape[3] % 8 == 0 and q.shape[3] <= 256
    if not (half and alike) or torch.cuda.get_device_capability(q.device) < (8, 0):  # older ones lack it
        return False
    return _varlen_attention() is not None


def _flash_window(q: Tensor, k: Tensor, v: Tensor, scale: float, reach: int) -> Tensor:
    """Local attention by PyTorch's fused window."""
    b, _, n, _ = q.shape
    ends = torch.arange(0, (b + 1) * n, n, dtype=torch.int32, device=q.device)
    q, k, v = (rearrange(x, "b h n e -> (b n) h e") for x in (q, k, v))
    attend = _varlen_attention()
    assert attend is not None
    out = attend(q, k, v, ends, ends, n, n, scale=scale, window_size=(reach - 1, 0))
    assert isinstance(out, Tensor)
    return rearrange(out, "(b n) h e -> b h n e", b=b)
