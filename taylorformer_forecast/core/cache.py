"""Preallocated key/value cache: the context once for each window, generated points for each path."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

__all__ = ["KVCache"]


@dataclass(frozen=True)
class KVCache:
    """Keys and values of one attention layer while paths are generated.

    The context is shared by all paths of a window and stored once. Points generated later belong to a path;
    their place is allocated at the start, and adding one is a single slice write.

    Parameters
    ----------
    context_key, context_value : Tensor of shape (B, H, L, E)
        Context, never copied for the paths.
    context_mask : bool Tensor of shape (B, L)
        Context points that were observed.
    path_key, path_value : Tensor of shape (B, H, S, T, E)
        Room for generated points.

    Examples
    --------
    >>> import torch
    >>> from taylorformer_forecast.core.cache import KVCache
    >>> k = torch.randn(1, 2, 5, 4)
    >>> cache = KVCache.allocate(k, k, torch.ones(1, 5, dtype=torch.bool), n_paths=3, n_targets=6)
    >>> cache.write(0, torch.zeros(1, 2, 3, 4), torch.zeros(1, 2, 3, 4))
    >>> cache.attend(torch.randn(1, 2, 3, 4), length=1, scale=0.5).shape
    torch.Size([1, 2, 3, 4])
    """

    context_key: Float[Tensor, "B H L E"]
    context_value: Float[Tensor, "B H L E"]
    context_mask: Bool[Tensor, "B L"]
    path_key: Float[Tensor, "B H S T E"]
    path_value: Float[Tensor, "B H S T E"]

    @classmethod
    def allocate(
        cls,
        context_key: Float[Tensor, "B H L E"],
        context_value: Float[Tensor, "B H L E"],
        context_mask: Bool[Tensor, "B L"],
        n_paths: int,
        n_targets: int,
    ) -> KVCache:
        """Make a cache that holds a context and has room for ``n_targets`` points of ``n_paths`` paths."""
        b, h, _, e = context_key.shape
        room = context_key.new_empty(2, b, h, n_paths, n_targets, e)
        return cls(context_key, context_value, context_mask, room[0], room[1])

    def write(self, step: int, key: Float[Tensor, "B H S E"], value: Float[Tensor, "B H S E"]) -> None:
        """Store the keys and values of the generated point number ``step`` of every path."""
        self.path_key[:, :, :, step] = key
        self.path_value[:, :, :, step] = value

    def attend(self, query: Float[Tensor, "B H S E"], length: int, scale: float) -> Float[Tensor, "B H S E"]:
        """Attend from one query of every path to the context and the path's first ``length`` points."""
        query = query * scale
        n_context = self.context_key.shape[2]
        scores = query @ self.context_key.transpose(-1, -2)  # (B, H, S, L): paths act as query positions
        scores = scores.masked_fill(~self.context_mask[:, None, None, :], float("-inf"))
        own = (self.path_key[..., :length, :] @ query[..., None])[..., 0]  # (B, H, S, length)
        weights = torch.cat([scores, own], -1).softmax(-1).nan_to_num(0.0)
        out = weights[..., :n_context] @ self.context_value
        own_weights = weights[..., None, n_context:]  # (B, H, S, 1, length)
        return out + (own_weights @ self.path_value[..., :length, :])[..., 0, :]
