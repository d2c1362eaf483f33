"""Preallocated cache of attended points: the context once for each window, generated points for each path."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

__all__ = ["PointCache"]


@dataclass(frozen=True)
class PointCache:
    """Points that one attention layer attends while paths are generated.

    Keys and values are linear in the points, so the layer's projections can be applied to the query and to
    the averaged points instead
    (:meth:`~taylorformer_forecast.core.attention.layer.MultiHeadAttention.step`): the
    cache stores the points as they are, I numbers where keys and values would be ``2 * H * E``, and serves
    all heads with them. Long horizons are bound by reading this memory.

    The context is shared by all paths of a window and stored once. Points generated later belong to a path;
    their place is allocated at the start, and adding one is a single slice write.

    Parameters
    ----------
    context : Tensor of shape (B, L, I)
        Context, never copied for the paths.
    mask : bool Tensor of shape (B, L), optional
        Context points that may be attended, all by default.
    paths : Tensor of shape (B, S, T, I)
        Room for generated points.
    reach : int, optional
        Positions back that a query sees, its own included; all by default.

    Examples
    --------
    >>> import torch
    >>> from taylorformer_forecast.core.attention.cache import PointCache
    >>> cache = PointCache.allocate(torch.randn(1, 5, 4), None, n_paths=3, n_targets=6)
    >>> cache.write(0, torch.zeros(1, 3, 4))
    >>> cache.attend(torch.randn(1, 2, 3, 4), length=1).shape
    torch.Size([1, 2, 3, 4])
    """

    context: Float[Tensor, "B L I"]
    mask: Bool[Tensor, "B L"] | None
    paths: Float[Tensor, "B S T I"]
    reach: int | None = None

    @classmethod
    def allocate(
        cls,
        context: Float[Tensor, "B L I"],
        mask: Bool[Tensor, "B L"] | None,
        n_paths: int,
        n_targets: int,
        reach: int | None = None,
    ) -> PointCache:
        """Make a cache that holds a context and has room for ``n_targets`` points of ``n_paths`` paths."""
        n_windows, _, width = context.shape
        return cls(context, mask, context.new_empty(n_windows, n_paths, n_targets, width), reach)

    def write(self, step: int, point: Float[Tensor, "B S I"]) -> None:
        """Store the generated point number ``step`` of every path."""
        self.paths[:, :, step] = point

    def within_reach(self, length: int) -> tuple[Tensor, Tensor | None, Tensor]:
        """Context, its mask and points of paths that the query after ``length`` points sees."""
        n_context = self.context.shape[1]
        first = 0 if self.reach is None else max(0, n_context + length + 1 - self.reach)
        mask = None if self.mask is None else self.mask[:, first:]
        return self.context[:, first:], mask, self.paths[:, :, max(0, first - n_context) : length]

    def sees(self, length: int) -> Bool[Tensor, "B 1 1 1"] | None:
        """Windows whose queries see any point when paths have ``length`` points; None if all do."""
        context, mask, own = self.within_reach(length)
        if own.shape[2] > 0 or (mask is None and context.shape[1] > 0):
            return None
        n_windows = context.shape[0]
        seen = context.new_zeros(n_windows, dtype=torch.bool) if mask is None else mask.any(1)
        return seen.view(n_windows, 1, 1, 1)

    def attend(self, query: Float[Tensor, "B H S I"], length: int) -> Float[Tensor, "B H S I"]:
        """Average the context and the path's first ``length`` points, by softmax of their inner products.

        Parameters
        ----------
        query : Tensor of shape (B, H, S, I)
            One query of every head and path, scaled, in the space of the points.
        length : int
            Number of points of each path that exist. Those out of reach take no part.

        Returns
        -------
        Tensor
            Averages, (B, H, S, I); zero where a query sees nothing.
        """
        b, h, s, i = query.shape
        query = query.transpose(1, 2).reshape(b, s * h, i)
        context, mask, own = self.within_reach(length)
        own, n_context = own.flatten(0, 1), context.shape[1]
        # The context is one matrix for all paths and heads: one product instead of S * H small ones.
        scores = query @ context.mT
        if mask is not None:
            scores = scores.masked_fill(~mask[:, None], float("-inf"))
        own_scores = query.view(b * s, h, i) @ own.mT
        weights = torch.cat([scores.view(b * s, h, n_context), own_scores], -1).softmax(-1)
        if self.sees(length) is not None:
            weights = weights.nan_to_num(0.0)
        shared = weights[..., :n_context].reshape(b, s * h, n_context) @ context
        average = torch.baddbmm(shared.view(b * s, h, i), weights[..., n_context:], own)
        return average.view(b, s, h, i).transpose(1, 2)
