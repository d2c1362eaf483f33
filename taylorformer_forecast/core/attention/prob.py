"""ProbSparse attention, the Informer's.

Source: Zhou et al., "Informer: Beyond Efficient Transformer for Long Sequence Time-Series Forecasting".
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from taylorformer_forecast.core.attention.kernels import (
    Kernel,
    Keys,
    Mask,
    Queries,
    Rows,
    Values,
    softmax_attention,
)


@dataclass(frozen=True)
class Prob(Kernel):
    """ProbSparse attention: exact for the queries that stand out, the mean of the values for the others.

    A query stands out if the largest of its scores of some keys, drawn with replacement, exceeds by much the
    sum of these scores over the number of all keys; with a mask, of those that it sees. Of Q queries,
    ``factor * ceil(ln Q)`` attend, from as many drawn keys in terms of N. It is not causal: which queries
    attend depends on all of them.

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
    >>> from taylorformer_forecast.core.attention.prob import Prob
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

    def __call__(self, q: Queries, k: Keys, v: Values, mask: Mask = None, scale: float | None = None) -> Rows:
        """Attend from all queries; see :class:`~taylorformer_forecast.core.attention.kernels.Kernel`.

        Hidden keys count neither in the choice of queries nor in the means.
        """
        rows = q.shape[2]
        chosen = self.standing_out(q, k, mask).topk(self.count(rows), -1).indices[..., None]  # (B, H, U, 1)
        if mask is None:
            mean, visible = v.mean(2, keepdim=True), None
        else:
            weight = mask.to(v.dtype)[:, None]
            mean = weight @ v / weight.sum(-1, keepdim=True).clamp_min(1)
            every = mask[:, None].expand(q.shape[0], q.shape[1], rows, -1)
            visible = every.gather(2, chosen.expand(-1, -1, -1, k.shape[2]))
        out = softmax_attention(q.gather(2, chosen.expand(-1, -1, -1, q.shape[3])), k, v, visible, scale)
        return mean.expand(-1, -1, rows, -1).scatter(2, chosen.expand_as(out), out.to(mean.dtype))

    def count(self, n: int) -> int:
        """Queries that attend, or keys drawn, of ``n``."""
        return max(1, min(n, self.factor * math.ceil(math.log(n))))

    @torch.no_grad()
    def standing_out(self, q: Queries, k: Keys, mask: Mask = None) -> Float[Tensor, "B H Q"]:
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
