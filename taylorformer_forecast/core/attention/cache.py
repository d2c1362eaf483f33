"""Preallocated cache of attended points: the context once for each window, generated points for each path."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeAlias

import torch
from jaxtyping import Bool, Float, Shaped
from torch import Tensor, nn

Totals: TypeAlias = Shaped[Tensor, " B #H #Q 1"] | None  # sums of weights; None: all are 1
StepTotals: TypeAlias = Shaped[Tensor, " B #S #H 1"] | None


@dataclass(frozen=True)
class PointCache:
    """Points that one attention layer attends while paths are generated.

    Keys and values are linear in the points, so the layer's projections can be applied to the query and to
    the averaged points instead (:class:`CachedPoints`): the cache stores the points as they are, I numbers
    where keys and values would be ``2 * H * E``, and serves all heads with them. Long horizons are bound by
    reading this memory.

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

    Examples
    --------
    >>> import torch
    >>> from taylorformer_forecast.core.attention.cache import PointCache
    >>> cache = PointCache.allocate(torch.randn(1, 5, 4), None, n_paths=3, n_targets=6)
    >>> cache.write(0, torch.zeros(1, 3, 4))
    >>> cache.n_points
    11
    """

    context: Float[Tensor, "B L I"]
    mask: Bool[Tensor, "B L"] | None
    paths: Float[Tensor, "B S T I"]

    @classmethod
    def allocate(
        cls, context: Float[Tensor, "B L I"], mask: Bool[Tensor, "B L"] | None, n_paths: int, n_targets: int
    ) -> PointCache:
        """Make a cache that holds a context and has room for ``n_targets`` points of ``n_paths`` paths."""
        n_windows, _, width = context.shape
        return cls(context, mask, context.new_empty(n_windows, n_paths, n_targets, width))

    @property
    def n_points(self) -> int:
        """Points of the context and targets together."""
        return self.context.shape[1] + self.paths.shape[2]

    def write(self, step: int, point: Float[Tensor, "B S I"]) -> None:
        """Store the generated point number ``step`` of every path."""
        self.paths[:, :, step] = point


@dataclass(frozen=True)
class CachedPoints:
    """Points that one query of every path may attend; it stands for keys, values and mask in a step.

    Keys and values are never formed. The score of a point z is ``q . (W z + b)`` with the query q and the
    key projection (W, b): ``(q W) . z`` and a constant. One query is projected instead of all points.

    Parameters
    ----------
    context : Tensor of shape (B, L, I)
        Points that all paths share.
    mask : bool Tensor of shape (B, L), optional
        Those of them that may be attended, all by default.
    own : Tensor of shape (B, S, T, I)
        Points of every path.
    key, value : nn.Linear
        Projections of the layer, from I to H * E.
    first, position : int
        Position of the first point, and of the query.
    n_points : int
        Points of the whole window, those not yet generated included.
    """

    context: Float[Tensor, "B L I"]
    mask: Bool[Tensor, "B L"] | None
    own: Float[Tensor, "B S T I"]
    key: nn.Linear
    value: nn.Linear
    first: int
    position: int
    n_points: int

    @classmethod
    def of(
        cls, cache: PointCache, key: nn.Linear, value: nn.Linear, step: int, own: bool = False
    ) -> CachedPoints:
        """Points before target number ``step``, and with ``own`` that target."""
        paths, position = cache.paths[:, :, : step + own], cache.context.shape[1] + step
        return cls(cache.context, cache.mask, paths, key, value, 0, position, cache.n_points)

    def last(self, n: int) -> CachedPoints:
        """Return the points among the last ``n`` positions, the query's own included."""
        n_context, n_hidden = self.context.shape[1], max(0, self.position + 1 - n - self.first)
        return replace(
            self,
            context=self.context[:, n_hidden:],
            mask=None if self.mask is None else self.mask[:, n_hidden:],
            own=self.own[:, :, max(0, n_hidden - n_context) :],
            first=self.first + n_hidden,
        )

    def scores(
        self, query: Float[Tensor, "B H S E"], key_bias: bool = False
    ) -> tuple[Float[Tensor, "B S H L"], Float[Tensor, "B S H T"]]:
        """Inner products of queries and keys, minus infinity for points that may not be attended.

        Parameters
        ----------
        query : Tensor of shape (B, H, S, E)
            Queries of all heads and paths, times the scale.
        key_bias : bool, default=False
            Whether to add the product with the key projection's bias. It is the same for all points, so that
            a softmax does not depend on it.

        Returns
        -------
        shared, own : Tensor
            Scores of the context, and of the path's own points. They are not joined: long paths are bound by
            reading and writing them.
        """
        (b, h, s, _), i = query.shape, self.context.shape[2]
        projected = query @ self.key.weight.unflatten(0, (h, -1))  # (B, H, S, I)
        projected = projected.transpose(1, 2).reshape(b, s * h, i)
        # The context is one matrix for all paths and heads: one product instead of S * H small ones.
        shared = (projected @ self.context.mT).view(b, s, h, -1)
        own = (projected.view(b * s, h, i) @ self.own.flatten(0, 1).mT).view(b, s, h, -1)
        if self.mask is not None:
            shared = shared.masked_fill(~self.mask[:, None, None], float("-inf"))
        if key_bias:
            same = (query @ self.key.bias.view(h, -1, 1)).transpose(1, 2)
            shared, own = shared + same, own + same
        return shared, own

    def weighted_sum(
        self, shared: Float[Tensor, "B S H L"], own: Float[Tensor, "B S H T"], total: StepTotals = None
    ) -> Float[Tensor, "B H S E"]:
        """Sum the values with weights.

        Parameters
        ----------
        shared, own : Tensor of shape (B, S, H, L) and (B, S, H, T)
            Weights of the context, and of the path's own points.
        total : Tensor of shape (B, S or 1, H or 1, 1), optional
            Sums of the weights, 1 by default.

        Returns
        -------
        Tensor
            Sums, (B, H, S, E).
        """
        (b, s, h, _), i = own.shape, self.context.shape[2]
        points = (shared.reshape(b, s * h, -1) @ self.context).view(b * s, h, i)
        points = torch.baddbmm(points, own.view(b * s, h, -1), self.own.flatten(0, 1))
        points = points.view(b, s, h, i).transpose(1, 2)
        return project_values(self.value, points, None if total is None else total.transpose(1, 2))


def project_values(
    value: nn.Linear, points: Float[Tensor, "B H Q I"], total: Totals = None
) -> Float[Tensor, "B H Q E"]:
    """Weighted sums of values from weighted sums of points and sums of the weights, 1 by default."""
    h = points.shape[1]
    bias = value.bias.view(h, 1, -1)
    return points @ value.weight.unflatten(0, (h, -1)).mT + (bias if total is None else bias * total)
