"""The multi-head attention layer, with a choice of kernel and a cached single-step form."""

from __future__ import annotations

from typing import TypeAlias

import torch
from einops import rearrange
from jaxtyping import Bool, Float
from torch import Tensor, nn

from taylorformer_forecast.core.attention.cache import CachedPoints, PointCache, project_values
from taylorformer_forecast.core.attention.kernels import Mask
from taylorformer_forecast.core.attention.registry import Attention, find_kernel

QueryPoints: TypeAlias = Float[Tensor, "B Q I"]
KeyPoints: TypeAlias = Float[Tensor, "B N I"]
Bias: TypeAlias = Float[Tensor, "#B #H #Q N"] | None


class MultiHeadAttention(nn.Module):
    """Multi-head attention with a choice of kernel and a cached single-step form.

    Parameters
    ----------
    dim_query, dim_out : int
        Width of the queries (keys and values of ordinary layers) and of the output.
    n_heads, head_dim : int
        Number of heads H and width E of each.
    dim_value : int, optional
        Width of the values, ``dim_query`` by default.
    attention : str or callable, default="full"
        Name in :data:`~taylorformer_forecast.core.attention.registry.KERNELS`, or a kernel
        (:mod:`~taylorformer_forecast.core.attention.kernels`).
    scale : float, optional
        Factor on the scores, ``1 / sqrt(head_dim)`` by default.

    Raises
    ------
    ValueError
        If the kernel is unknown.

    Examples
    --------
    >>> import torch
    >>> from taylorformer_forecast.core.attention.layer import MultiHeadAttention
    >>> layer = MultiHeadAttention(16, 32, n_heads=4, head_dim=8)
    >>> x = torch.randn(2, 5, 16)
    >>> layer(x, x).shape
    torch.Size([2, 5, 32])
    """

    def __init__(
        self,
        dim_query: int,
        dim_out: int,
        n_heads: int,
        head_dim: int,
        dim_value: int | None = None,
        attention: Attention = "full",
        scale: float | None = None,
    ) -> None:
        super().__init__()
        inner = n_heads * head_dim
        self.n_heads = n_heads
        self.kernel = find_kernel(attention)
        self.scale = head_dim**-0.5 if scale is None else scale
        self.query = nn.Linear(dim_query, inner)
        self.key = nn.Linear(dim_query, inner)
        self.value = nn.Linear(dim_query if dim_value is None else dim_value, inner)
        self.out = nn.Linear(inner, dim_out)

    def split(self, x: Float[Tensor, "*batch N P"]) -> Float[Tensor, "*batch H N E"]:
        """Separate the heads."""
        return rearrange(x, "... n (h e) -> ... h n e", h=self.n_heads)

    def merge(self, x: Float[Tensor, "*batch H N E"]) -> Float[Tensor, "*batch N O"]:
        """Join the heads and apply the output projection."""
        return self.out(rearrange(x, "... h n e -> ... n (h e)"))

    def forward(
        self,
        query: QueryPoints,
        key: KeyPoints,
        mask: Mask = None,
        n_points: int | None = None,
        groups: tuple[int, ...] | None = None,
    ) -> Float[Tensor, "B Q O"]:
        """Attend from ``query`` to ``key`` (which also gives the values).

        Parameters
        ----------
        query, key : Tensor of shape (B, Q, I) and (B, N, I)
            Points. Where there are fewer queries than keys, they are the last Q of the N positions.
        mask : bool Tensor of shape (B or 1, Q or 1, N), optional
            True where a query may see a key.
        n_points : int, optional
            Number of points from which a window of the kernel follows, where it is not that of the keys.
        groups : tuple of int, optional
            Numbers of queries, where there are several groups of them one after the other: each group by
            itself stands at the last of the N positions. Needs a mask with a row for each query.

        Returns
        -------
        Tensor
            Output of the layer, (B, Q, O).
        """
        q, k, v = self.split(self.query(query)), self.split(self.key(key)), self.split(self.value(key))
        kernel = self.kernel if n_points is None else self.kernel.for_length(n_points)
        if groups is None or mask is None:
            return self.merge(kernel(q, k, v, mask, self.scale))
        parts = zip(q.split(groups, 2), mask.split(groups, 1), strict=True)
        return self.merge(torch.cat([kernel(part, k, v, rows, self.scale) for part, rows in parts], 2))

    def average(
        self,
        query: QueryPoints,
        key: KeyPoints,
        y: Float[Tensor, "B N D"],
        observed: Bool[Tensor, "B N D"],
        mask: Mask,
    ) -> Float[Tensor, "B H Q D"]:
        """Average observed values with the attention weights, column by column.

        Entries that were not observed take no part: the weights of a column are those of its own observed
        points, renormalised. :meth:`project_average` turns the averages into the layer's output; both
        together are attention with values ``y``, because the value projection is linear.
        """
        q, k = self.split(self.query(query)), self.split(self.key(key))
        weight = observed.to(y.dtype)
        v = torch.cat([y * weight, weight], -1)[:, None].expand(-1, self.n_heads, -1, -1)
        total, norm = self.kernel(q, k, v, mask, self.scale).chunk(2, -1)
        return total / norm.masked_fill(norm == 0, 1.0)  # nothing observed: the average is zero

    def weights(
        self,
        query: QueryPoints,
        key: KeyPoints,
        mask: Bool[Tensor, "#B Q N"],
        bias: Bias = None,
        n_global: int = 0,
    ) -> Float[Tensor, "B H Q N"]:
        """Weights of the values, from the table of scores with ``bias`` added.

        The first ``n_global`` keys have no position: all queries may attend them.
        """
        q, k = self.split(self.query(query)), self.split(self.key(key))
        scores = (q @ k.transpose(-1, -2)) * self.scale
        return self.kernel.weigh(scores if bias is None else scores + bias, mask, n_global)

    def project_average(self, average: Float[Tensor, "B H Q D"]) -> Float[Tensor, "B Q O"]:
        """Apply the value and output projections to averages.

        Parameters
        ----------
        average : Tensor of shape (B, H, Q, D)
            Each head's weighted average of what the value projection applies to.

        Returns
        -------
        Tensor
            Output of the layer, (B, Q, O).
        """
        return self.merge(project_values(self.value, average))

    def step(
        self, query: Float[Tensor, "B S I"], cache: PointCache, step: int, own: bool = False
    ) -> Float[Tensor, "B S O"]:
        """Attend from target number ``step`` of every path, by the one-query form of the kernel.

        Parameters
        ----------
        query : Tensor of shape (B, S, I)
            The point that the query comes from, on every path.
        cache : PointCache
            Context, and the targets that were written.
        step : int
            Number of the target.
        own : bool, default=False
            Whether the query attends the point at its own position too, which was written.

        Returns
        -------
        Tensor
            Output of the layer, (B, S, O).
        """
        points = CachedPoints.of(cache, self.key, self.value, step, own)
        return self.merge(self.kernel.one_query(self.split(self.query(query)), points, self.scale))
