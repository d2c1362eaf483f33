"""What the streams of the Taylorformer keep while paths are drawn: computed once, exact for every step."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from taylorformer_forecast.baselines.base import Neighbourhood
from taylorformer_forecast.core.attention.cache import PointCache
from taylorformer_forecast.core.neighbours import Neighbours, gather_points
from taylorformer_forecast.core.window import Window, holds_everywhere
from taylorformer_forecast.models.streams import Streams


@dataclass(frozen=True)
class StreamCache:
    """All of both streams that no target's value can change, and the values drawn so far.

    Parameters
    ----------
    streams : Streams
        The streams.
    found : Neighbours
        Neighbours of the targets.
    x_features, x_hidden : Tensor of shape (B, T, .)
        X features and last X hidden state of the targets.
    x_weights : Tensor of shape (B, H, T, T)
        Weights of the last X layer between targets.
    x_context, x_norm : Tensor of shape (B, H, T, D)
        That layer's weighted sum of context values, and its sum of weights on observed values.
    caches : list of PointCache
        Points that the XY layers attend.
    points : Tensor of shape (B, S, N, (1 + 3 * X) * D)
        Value and derivatives of every point of every path; those of targets are written as they are drawn.
    """

    streams: Streams
    found: Neighbours
    x_features: Tensor
    x_hidden: Tensor
    x_weights: Tensor
    x_context: Tensor
    x_norm: Tensor
    caches: list[PointCache]
    points: Tensor

    @classmethod
    def encode(cls, streams: Streams, window: Window, n_paths: int) -> StreamCache:
        """Pass the context through both streams, and the times of the targets through the X stream.

        Parameters
        ----------
        streams : Streams
            The streams.
        window : Window
            Scaled windows, their targets to be drawn.
        n_paths : int
            Paths S to be drawn of each window.
        """
        tokens, last = streams.tokens, streams.x_last
        context, targets = slice(0, window.n_context), slice(window.n_context, None)
        mask = window.attention_mask()
        f = tokens(window, mask)

        x = streams.x_stream(f.x, mask)
        weights = last.attention.weights(x[:, targets], x, mask[:, targets])
        observed = f.observed[:, None, context].to(x.dtype)
        between = weights[..., targets]
        x_context = weights[..., context] @ (window.y[:, None, context] * observed)
        x_norm = weights[..., context] @ observed + between.sum(-1, keepdim=True)

        hidden = tokens.hidden(window.y, f.difference, f.derivatives)
        token = tokens.key_token(hidden, tokens.seen(f.near, f.slopes), f.observed, f.x)[:, context]
        visible = window.visible[:, context]
        attended = None if holds_everywhere(visible) else visible
        n_points = window.y.shape[1]
        caches: list[PointCache] = []
        for block in streams.xy_layers:
            caches.append(PointCache.allocate(token, attended, n_paths, window.n_targets))
            if len(caches) < len(streams.xy_blocks):
                token = block(token, token, mask[:, context, context], n_points)
        points = torch.cat([window.y, f.derivatives.flatten(2)], -1)
        return cls(
            streams,
            f.found.select(targets),
            f.x[:, targets],
            x[:, targets],
            between,
            x_context,
            x_norm.clamp_min(torch.finfo(x.dtype).tiny),
            caches,
            points[:, None].repeat(1, n_paths, 1, 1),
        )

    @property
    def n_context(self) -> int:
        """Points of the context."""
        return self.points.shape[2] - self.x_hidden.shape[1]

    def drawn(self, step: int) -> Float[Tensor, "B S K D"]:
        """Values of the targets before one, on every path."""
        first = self.n_context
        return self.points[:, :, first : first + step, : self.streams.dim_y]

    def neighbourhood(self, step: int) -> Neighbourhood:
        """What a target sees at its neighbours on every path."""
        found = self.found.select(slice(step, step + 1))
        index = found.index[:, None].expand(-1, self.points.shape[1], -1, -1, -1)  # (B, S, 1, K, G)
        points = gather_points(self.points, index)[:, :, 0].unflatten(-1, (-1, self.streams.dim_y))
        points = points * found.valid[:, :, :, None]  # (B, S, K, 1 + 3 * X, D)
        return Neighbourhood(found, points[:, :, :, 0], points[:, :, 0, 1:].unflatten(2, (3, -1)))

    def query(self, step: int, seen: Neighbourhood) -> tuple[Float[Tensor, "B S O"], Float[Tensor, "B S O"]]:
        """Last hidden states of both streams at one target of every path, its own value unseen."""
        tokens, last = self.streams.tokens, self.streams.x_last
        total = torch.einsum("bht,bstd->bhsd", self.x_weights[:, :, step, :step], self.drawn(step))
        average = (total + self.x_context[:, :, step, None]) / self.x_norm[:, :, step, None]
        x = last.finish(last.attention.project_average(average), self.x_hidden[:, step, None])
        h = tokens.query_token(tokens.seen(seen.near, seen.slopes), self.x_features[:, step, None])
        for i, (block, cache) in enumerate(zip(self.streams.xy_layers, self.caches, strict=True)):
            if i:  # from the second layer on, keys and values do not contain the point's own y
                cache.write(step, h)
            h = block.finish(block.attention.step(h, cache, step), h)
        return x, h

    def observe(self, step: int, y: Float[Tensor, "B S D"]) -> None:
        """Write the value of a target on every path."""
        seen, tokens = self.neighbourhood(step), self.streams.tokens
        difference = (y[:, :, None] - seen.near) * seen.found.valid
        derivatives = tokens.local.derivatives(difference, seen.found)
        self.points[:, :, self.n_context + step] = torch.cat([y, derivatives.flatten(2)], -1)
        token = tokens.key_token(
            tokens.hidden(y, difference, derivatives),
            tokens.seen(seen.near, seen.slopes),
            torch.ones_like(y),
            self.x_features[:, step, None],
        )
        self.caches[0].write(step, token)
