"""Attention in continuous time for paths that are drawn point by point: running integrals, not a table.

With the query held between points, the integral of every pair grows by one interval for each new point, and
all keys decay by the same factors: a new point costs one pass over the points before it.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from taylorformer_forecast.core.attention.kernels import softmax_weights
from taylorformer_forecast.core.continuous.attention import ContinuousAttention
from taylorformer_forecast.core.continuous.closed_form import LinearField, Relaxation, mean_decay
from taylorformer_forecast.core.continuous.interpolation import Interpolation
from taylorformer_forecast.core.continuous.merging import to_last


@dataclass
class Moving:
    """Keys and values of some points, and what time has made of them; ``*b`` is (B, H) or (B, H, S).

    Parameters
    ----------
    key, value : Tensor of shape (*b, N, E)
        Keys and values at their own times.
    decayed : Tensor of shape (*b, N, C)
        Keys now.
    summed : Tensor of shape (*b, N, C)
        Their integrals up to now.
    product : Tensor of shape (*b, N)
        Integrals of their inner products with the query up to now.
    """

    key: Float[Tensor, "*b N E"]
    value: Float[Tensor, "*b N E"]
    decayed: Float[Tensor, "*b N C"]
    summed: Float[Tensor, "*b N C"]
    product: Float[Tensor, "*b N"]

    def first(self, n: int) -> Moving:
        """The first points, as views."""
        key, value, decayed, summed = (
            x[..., :n, :] for x in (self.key, self.value, self.decayed, self.summed)
        )
        return Moving(key, value, decayed, summed, self.product[..., :n])


class IncrementalSums:
    """What one layer keeps of the context, and of the points of every path.

    The context belongs to all paths and is stored once; it is as it was at its last point, and what has
    happened since is in one vector for each path.

    Parameters
    ----------
    layer : ContinuousAttention
        A layer with ``solver="closed"`` and ``interpolation="hold"``.
    x : Tensor of shape (B, L, I)
        States of the context that the layer attends, in order of time.
    t : Tensor of shape (B, L + T)
        Times of the context and of the targets, in order.
    visible : bool Tensor of shape (B, L)
        Context points that may be attended.
    n_paths : int
        Paths S of each window.

    Examples
    --------
    >>> import torch
    >>> from taylorformer_forecast.core.continuous.attention import ContinuousAttention
    >>> from taylorformer_forecast.core.continuous.incremental import IncrementalSums
    >>> layer = ContinuousAttention(8, n_heads=2, head_dim=4, interpolation="hold")
    >>> x, t = torch.randn(1, 6, 8), torch.arange(6.0)[None]
    >>> sums = IncrementalSums(layer, x[:, :4], t, torch.ones(1, 4, dtype=torch.bool), n_paths=3)
    >>> y = x[:, 4:5].expand(-1, 3, -1)
    >>> stepwise = sums.attend(0, y, own=True)
    >>> bool(torch.allclose(stepwise[:, 0], layer(x[:, :5], t[:, :5])[:, 4], atol=1e-5))
    True
    """

    def __init__(
        self,
        layer: ContinuousAttention,
        x: Float[Tensor, "B L I"],
        t: Float[Tensor, "B N"],
        visible: Bool[Tensor, "B L"],
        n_paths: int,
    ) -> None:
        assert isinstance(layer.key_field, LinearField)
        assert isinstance(layer.value_field, LinearField)
        heads, n = layer.heads, x.shape[1]
        self.layer, self.t, self.visible, self.n = layer, t, visible, n
        self.relax = Relaxation(t[:, :n], layer.key_field.rate, layer.key_field.rest)
        k, v, q = (heads.split(part(x)) for part in (heads.key, heads.value, heads.query))
        key, left = self.relax.keys(k), t[:, n - 1 : n] - t[:, :n]
        pieces = self.relax.integrals(Interpolation(t[:, :n], (heads.query(x),)))
        product = (key * to_last(pieces, self.relax.decay)).sum(-1)
        decayed = key * self.relax.exponent(left).exp()
        self.context = Moving(k, v, decayed, key * self.relax.elapsed(left), product)
        n_targets = t.shape[1] - n

        def room(like: Tensor) -> Tensor:
            return like.new_zeros(*like.shape[:2], n_paths, n_targets, *like.shape[3:])

        self.paths = Moving(*(room(x) for x in vars(self.context).values()))
        self.query = self.relax.queries(q[:, :, -1:]).expand(-1, -1, n_paths, -1)  # held since the last point
        self.since = torch.zeros_like(self.query)  # integral from the end of the context on, as if k were 1

    def attend(
        self,
        step: int,
        x: Float[Tensor, "B S I"],
        shift: Float[Tensor, "B S I"] | None = None,
        own: bool = False,
    ) -> Float[Tensor, "B S I"]:
        """Attend from target number ``step`` of every path to the points before it.

        Parameters
        ----------
        step : int
            Number of the target; all before it were added (:meth:`add`).
        x : Tensor of shape (B, S, I)
            States that the queries come from.
        shift : Tensor of shape (B, S, I), optional
            What is added to the states of all queries on the way.
        own : bool, default=False
            Whether the point attends itself too.

        Returns
        -------
        Tensor
            Output of the layer, (B, S, I).
        """
        heads, context, paths = self.layer.heads, self.context, self.paths.first(step)
        end, now, at = (self.t[:, i : i + 1] for i in (self.n - 1, self.n + step - 1, self.n + step))
        row = heads.split(heads.query(x))
        last = self.query * self.relax.elapsed(at - now)
        whole = self.since + self.relax.exponent(now - end).exp() * last
        if shift is not None:
            offset = self.relax.queries(heads.split(shift @ heads.query.weight.mT))
            last = last + offset * self.relax.elapsed(at - now)
            whole = whole + offset * self.relax.elapsed(at - end)
        before = whole @ context.decayed.mT + context.product[:, :, None]
        on_path = (paths.decayed @ last[..., None])[..., 0] + paths.product
        if shift is not None:
            before = before + offset @ context.summed.mT
            on_path = on_path + (paths.summed @ offset[..., None])[..., 0]
        integrals = torch.cat([before, on_path], -1)

        elapsed = at - self.t[:, : self.n + step]
        moved = elapsed > 0
        limit = torch.cat([row @ context.key.mT, (paths.key @ row[..., None])[..., 0]], -1)
        share = torch.where(moved, 1 / torch.where(moved, elapsed, 1.0), 0.0)[:, None, None]
        scores = torch.addcmul(limit * ~moved[:, None, None], integrals, share)
        sees = torch.cat([self.visible, torch.ones_like(moved[:, self.n :])], 1)
        if own:
            k, v = heads.split(heads.key(x)), heads.split(heads.value(x))
            scores = torch.cat([scores, (row * k).sum(-1, keepdim=True)], -1)
            sees, elapsed = (
                torch.cat([a, b], 1) for a, b in ((sees, sees.new_ones(len(x), 1)), (elapsed, at - at))
            )
        weights = softmax_weights(scores * heads.scale, sees[:, None])

        field, elapsed = self.layer.value_field, elapsed[:, None, None]
        assert isinstance(field, LinearField)
        rate, rest = field.rate[..., None], field.rest[:, None]
        still = (elapsed * rate).exp() if self.layer.last else mean_decay(elapsed, rate)
        moved_weights = weights * still
        parts = moved_weights.split([self.n, step, int(own)], -1)
        total = parts[0] @ (context.value - rest) + weights.sum(-1, keepdim=True) * rest
        total = total + (parts[1][..., None, :] @ (paths.value - rest[:, None]))[..., 0, :]
        return heads.merge(total + parts[2] * (v - rest) if own else total)

    def add(self, step: int, x: Float[Tensor, "B S I"]) -> None:
        """Add target number ``step`` of every path, with the states that later points attend, in place."""
        heads, paths = self.layer.heads, self.paths.first(step)
        end, now, at = (self.t[:, i : i + 1] for i in (self.n - 1, self.n + step - 1, self.n + step))
        last = self.query * self.relax.elapsed(at - now)
        self.since = self.since + self.relax.exponent(now - end).exp() * last
        paths.product += (paths.decayed @ last[..., None])[..., 0]
        paths.summed += paths.decayed * self.relax.elapsed(at - now)[..., None, :]
        paths.decayed *= self.relax.exponent(at - now).exp()[..., None, :]
        k, v, q = (heads.split(part(x)) for part in (heads.key, heads.value, heads.query))
        self.paths.key[..., step, :], self.paths.value[..., step, :] = k, v
        self.paths.decayed[..., step, :] = self.relax.keys(k)
        self.query = self.relax.queries(q)
