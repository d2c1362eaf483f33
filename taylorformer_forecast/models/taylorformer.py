"""Taylorformer: LocalTaylor features, an attention stream over times, one over times and values.

Source: "Taylorformer: Probabilistic Modelling for Random Processes including Time Series", Nivron,
Parthipan and Wischik. The stream over times (X) ends in a layer whose values are y, so that its weights
depend on times alone, as the weights of a Gaussian process do; the stream over both (XY) sees values, with
those of the targets hidden from their own queries.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import cast

import torch
from einops import rearrange
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.distributions import Distribution

from taylorformer_forecast.baselines.gaussian_process import GaussianAnchor, GaussianState
from taylorformer_forecast.baselines.linear import LinearForecast
from taylorformer_forecast.baselines.linear_anchor import LinearAnchor, LinearState
from taylorformer_forecast.core.attention.cache import PointCache
from taylorformer_forecast.core.attention.kernels import Kernel
from taylorformer_forecast.core.attention.layer import MultiHeadAttention, find_kernel
from taylorformer_forecast.core.encoding import TimeEncoding
from taylorformer_forecast.core.heads import Head, center_of, find_head
from taylorformer_forecast.core.taylor import LocalTaylor, Neighbours, gather_points
from taylorformer_forecast.core.window import Window, holds_everywhere
from taylorformer_forecast.models.blocks import Block
from taylorformer_forecast.models.tokens import Features, Tokens

__all__ = ["Taylorformer", "TaylorformerState"]


@dataclass(frozen=True)
class TaylorformerState:
    """What sampling keeps between steps.

    Parameters
    ----------
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
    linear : LinearState, optional
        Linear forecasts of the targets, if there are any.
    added : Tensor of shape (B, S, T, D), optional
        What the network has added to them on every path, so far, where errors are counted from both.
    gaussian : GaussianState, optional
        Of the Gaussian anchor, if there is one.
    """

    found: Neighbours
    x_features: Tensor
    x_hidden: Tensor
    x_weights: Tensor
    x_context: Tensor
    x_norm: Tensor
    caches: list[PointCache]
    points: Tensor
    linear: LinearState | None
    added: Tensor | None
    gaussian: GaussianState | None


class Taylorformer(nn.Module):
    """The Taylorformer network.

    An autoregressive likelihood over any set of times: every target is predicted from the context and the
    targets before it, around the value at its nearest earlier neighbour.

    Parameters
    ----------
    dim_y, dim_t, dim_covariates : int
        Columns of y, time coordinates (1 or 2) and covariates.
    d_model : int, default=32
        Width O of both streams.
    n_heads : int, default=4
        Attention heads.
    head_dim : int, optional
        Width of one head, ``d_model // n_heads`` by default.
    n_layers : int, default=3
        Layers of each stream, at least 2.
    dim_encoding : int, default=32
        Width of the positional encoding of each time coordinate.
    dropout : float, default=0.05
        Dropout in the feed-forward parts.
    distribution : {"normal", "studentt", "mixture"} or Head, default="normal"
        Predictive distribution of a point given all earlier ones.
    scale : {"exp", "bounded", "softplus"}, default="exp"
        How raw scales become positive.
    preset : {"paper", "code"}, default="paper"
        ``"code"`` follows the published code to the bit: slopes divided by the absolute offset, no neighbour
        derivative, scores divided by the square root of the total width, batch statistics of derivatives in
        training. ``"paper"`` follows the text, with its gaps filled.
    taylor_order : {0, 1}, default=0
        Terms of the Taylor expansion in the mean: the neighbour's value, or also its derivative times the
        offset (paper, eq. 8). Order 1 needs the signed derivatives of ``preset="paper"``.
    neighbour_derivative : bool, optional
        Whether a point sees the derivative at its neighbour (paper, eq. 9); on for ``"paper"``.
    n_derivative_neighbours : int, default=1
        Neighbours over which derivatives are averaged, for noisy series.
    derivative_clip : float, default=200
        Derivatives beyond this are treated as absent. It is measured in units of scaled y per scaled time.
    time_min, time_max : float
        Range of times of the positional encoding
        (:class:`~taylorformer_forecast.core.encoding.TimeEncoding`).
    linear : LinearForecast, optional
        Targets are predicted around its forecast and its earlier errors instead of around the neighbour's
        value (:class:`~taylorformer_forecast.baselines.linear_anchor.LinearAnchor`). :meth:`start` fits it.
    both_sides : bool, default=False
        Whether a point looks to both sides: it sees the nearest earlier neighbour on each side in time and is
        predicted around the line between them. For gaps and for targets in random order.
    gaussian_anchor : bool, default=False
        Whether points are predicted around the conditional means of a Gaussian process, in units of its
        conditional deviations (:class:`~taylorformer_forecast.baselines.gaussian_process.GaussianAnchor`),
        in place of a
        value at a neighbour or a line. The network starts as that process, and learns what it leaves. For one
        time coordinate.
    attention : str or Kernel, default="full"
        Attention of the stream over values: ``"full"``, ``"local"`` or a kernel that answers one query at a
        time (:class:`~taylorformer_forecast.core.attention.kernels.Kernel`). Local attention restricts every
        point to
        those before it, by position, within a window that follows from the number of points, context and
        targets together. The stream over times always sees all that its mask allows.
    sees_anchor : bool, default=False
        Whether the network sees the anchor and its unit, as it always does with ``gaussian_anchor``.

    Raises
    ------
    ValueError
        If an argument is unknown or does not fit the others.

    Examples
    --------
    >>> import torch
    >>> from taylorformer_forecast.core.window import Window
    >>> from taylorformer_forecast.core.protocol import negative_log_likelihood
    >>> from taylorformer_forecast.models.taylorformer import Taylorformer
    >>> net = Taylorformer(d_model=16, n_heads=2, n_layers=2)
    >>> w = Window(torch.linspace(-1, 1, 12).repeat(3, 1), torch.randn(3, 12, 1), n_context=8)
    >>> net(w).mean.shape
    torch.Size([3, 4, 1])
    >>> negative_log_likelihood(net(w), w).backward()
    """

    def __init__(
        self,
        dim_y: int = 1,
        dim_t: int = 1,
        dim_covariates: int = 0,
        d_model: int = 32,
        n_heads: int = 4,
        head_dim: int | None = None,
        n_layers: int = 3,
        dim_encoding: int = 32,
        dropout: float = 0.05,
        distribution: str | Head = "normal",
        scale: str = "exp",
        preset: str = "paper",
        taylor_order: int = 0,
        neighbour_derivative: bool | None = None,
        n_derivative_neighbours: int = 1,
        derivative_clip: float = 200.0,
        time_min: float = 0.1,
        time_max: float = 1.0,
        linear: LinearForecast | None = None,
        attention: str | Callable[..., Tensor] = "full",
        both_sides: bool = False,
        gaussian_anchor: bool = False,
        sees_anchor: bool = False,
    ) -> None:
        super().__init__()
        if preset not in ("paper", "code"):
            raise ValueError(f"preset={preset!r} is neither 'paper' nor 'code'")
        published = preset == "code"
        if linear is not None and (published or gaussian_anchor):
            raise ValueError("linear needs preset='paper', and stands in the place of gaussian_anchor")
        if gaussian_anchor and (published or dim_t != 1):
            raise ValueError("gaussian_anchor needs one time coordinate and preset='paper'")
        if n_layers < 2:
            raise ValueError(f"n_layers={n_layers}, but each stream needs at least 2")
        if head_dim is None and d_model % n_heads:
            raise ValueError(f"d_model={d_model} is not a multiple of n_heads={n_heads}; give head_dim")
        if taylor_order not in (0, 1) or (taylor_order == 1 and published):
            raise ValueError(f"taylor_order={taylor_order} with preset={preset!r}: 0, or 1 with 'paper'")
        kernel = find_kernel(attention)
        if not (isinstance(kernel, Kernel) and kernel.stepwise):
            raise ValueError(
                f"attention={attention!r} does not answer one query at a time, so that the likelihood of a "
                "point given earlier ones would not be exact: take 'full' or 'local'"
            )
        self.kernel = kernel
        head_dim = d_model // n_heads if head_dim is None else head_dim
        self.dim_y = dim_y
        self.head = find_head(distribution, scale)
        self.tokens = Tokens(
            LocalTaylor(dim_t, dim_y, published, n_derivative_neighbours, derivative_clip, both_sides),
            TimeEncoding(dim_encoding, time_min, time_max),
            dim_encoding,
            dim_y,
            dim_t,
            dim_covariates,
            neighbour_derivative=not published if neighbour_derivative is None else neighbour_derivative,
            taylor_order=taylor_order,
            mark_observed=dim_y > 1 and not published,
        )
        attention_scale = (n_heads * head_dim if published else head_dim) ** -0.5

        def block(dim_in: int, dim_value: int | None = None, attention: str | Kernel = "full") -> Block:
            layer = MultiHeadAttention(
                dim_in, d_model, n_heads, head_dim, dim_value, attention, scale=attention_scale
            )
            return Block(layer, dim_in, d_model, dropout)

        self.x_blocks = nn.ModuleList(block(d_model if i else self.tokens.dim_x) for i in range(n_layers - 1))
        self.x_last = block(d_model, dim_value=dim_y)
        self.xy_blocks = nn.ModuleList(
            block(d_model if i else self.tokens.dim_xy, attention=kernel) for i in range(n_layers)
        )
        self.sees_anchor = gaussian_anchor or sees_anchor
        self.join = nn.Linear(2 * d_model + 2 * dim_y * self.sees_anchor, d_model)
        self.to_params = nn.Linear(d_model, dim_y * self.head.n_params)
        for module in self.modules():
            if isinstance(module, nn.Linear):
                nn.init.xavier_uniform_(module.weight)
                nn.init.zeros_(module.bias)
        self.linear = LinearAnchor(linear, both_sides) if linear is not None else None
        self.gaussian = GaussianAnchor(dim_covariates) if gaussian_anchor else None
        if linear is not None or gaussian_anchor:  # training starts from the anchor's own forecast
            nn.init.zeros_(self.to_params.weight)

    @classmethod
    def from_reference(
        cls,
        arrays: Mapping[str, object],
        num_heads: int,
        bound_std: bool = False,
        time_max: float | None = None,
        dropout: float = 0.05,
    ) -> Taylorformer:
        """Build the ``preset="code"`` network from weights of the published code.

        Parameters
        ----------
        arrays : mapping of str to array
            Weights under the names of the published checkpoints, kernels stored (in, out); see
            :mod:`taylorformer_forecast.models.published`. Sizes are read from the arrays.
        num_heads : int
            Attention heads, the one size that arrays do not tell.
        bound_std : bool, default=False
            Whether the network was trained with bounded standard deviations.
        time_max : float, optional
            Largest time of the positional encoding; by default 1, or 2 with two time coordinates.
        dropout : float, default=0.05
            Dropout for further training.

        Returns
        -------
        Taylorformer
            The network with these weights, in evaluation mode.

        Raises
        ------
        KeyError
            If an array is missing.
        """
        from taylorformer_forecast.models.published import build

        return build(arrays, num_heads, bound_std, time_max, dropout)

    @property
    def xy_layers(self) -> list[Block]:
        """Layers of the XY stream."""
        return cast("list[Block]", list(self.xy_blocks))

    # ---- teacher-forced ------------------------------------------------------------------------------

    def forward(self, window: Window) -> Distribution:
        """Distribution of every target given the context and the true earlier targets.

        Parameters
        ----------
        window : Window
            Scaled windows with at least one context point.

        Returns
        -------
        Distribution
            Batch shape (B, T, D).
        """
        targets = slice(window.n_context, None)
        f, x_out, xy_out = self.streams(window, window.attention_mask())
        if self.linear is not None:
            state = self.linear.look(window)
            raw, shift = self.beyond(x_out, xy_out, state.center, state.unit)
            if self.linear.both_sides:
                center = torch.cat([window.y[:, : window.n_context], state.center], 1)
                there = gather_points(center, f.found.index)
                anchor = state.center + self.error_between(f.near, there, f.slopes, f.found)[:, targets]
            else:
                anchor = self.linear.in_order(window, state, shift)
            return self.head(raw, anchor, state.unit.expand(*anchor.shape[:-1], -1))
        if self.gaussian is not None:
            anchor, unit = self.gaussian(window)
            return self.predictive(x_out, xy_out, anchor[:, targets], unit[:, targets])
        anchor = self.tokens.anchor(f.near, f.slopes, f.found)[:, targets]
        return self.predictive(x_out, xy_out, anchor, None)

    def streams(
        self, window: Window, mask: Bool[Tensor, "#B N N"]
    ) -> tuple[Features, Float[Tensor, "B T O"], Float[Tensor, "B T O"]]:
        """Features of all points, and the last hidden states of both streams at the targets."""
        targets = slice(window.n_context, None)
        f = self.tokens(window, mask)
        x = self.x_stream(f.x, mask)
        layer = self.x_last.attention
        average = layer.average(x[:, targets], x, window.y, f.observed, mask[:, targets])
        x_out = self.x_last.finish(layer.project_average(average), x[:, targets])

        seen = self.tokens.seen(f.near, f.slopes)
        key = self.tokens.key_token(
            self.tokens.hidden(window.y, f.difference, f.derivatives), seen, f.observed, f.x
        )
        hiding = self.tokens.query_token(seen[:, targets], f.x[:, targets])
        query = torch.cat([key[:, : window.n_context], hiding], 1)
        for block in self.xy_blocks[:-1]:
            query = key = block(query, key, mask)
        return f, x_out, self.xy_blocks[-1](query[:, targets], key, mask[:, targets])

    def x_stream(self, xf: Float[Tensor, "B N F"], mask: Bool[Tensor, "#B N N"]) -> Float[Tensor, "B N O"]:
        """All X layers but the last: a function of times alone."""
        for block in self.x_blocks:
            xf = block(xf, xf, mask)
        return xf

    def error_between(self, near: Tensor, there: Tensor, slopes: Tensor, found: Neighbours) -> Tensor:
        """Error of a linear forecast on the line between neighbours, from values and forecasts there."""
        return self.tokens.anchor((near - there) * found.valid, torch.zeros_like(slopes), found)

    def raw(self, x: Tensor, xy: Tensor, anchor: Tensor, unit: Tensor | None) -> Float[Tensor, "*b D P"]:
        """Join the streams and turn them into raw numbers of the head."""
        parts = [x, xy]
        if self.sees_anchor and unit is not None:
            # Bounded, so that a path that has gone far does not widen what follows without end.
            parts += [3 * torch.tanh(anchor / 3), unit.log().expand_as(anchor)]
        return rearrange(
            self.to_params(self.join(torch.cat(parts, -1))), "... (p d) -> ... d p", d=self.dim_y
        )

    def predictive(self, x: Tensor, xy: Tensor, anchor: Tensor, unit: Tensor | None) -> Distribution:
        """Distribution around the anchor, in units of 1 or as given."""
        raw = self.raw(x, xy, anchor, unit)
        if unit is None:
            return self.head(raw, anchor)
        unit = unit.expand(*anchor.shape[:-1], -1)
        if self.gaussian is not None:
            raw, stretch = self.gaussian.trust * raw, self.gaussian.stretch
            # The stretch is one around the mean.
            shift = (self.gaussian.mean_trust - stretch) * self.head(raw, torch.zeros_like(anchor)).mean
            anchor, unit = anchor + unit * shift, stretch * unit
        return self.head(raw, anchor, unit)

    def beyond(
        self, x: Tensor, xy: Tensor, center: Tensor, unit: Tensor
    ) -> tuple[Float[Tensor, "*b D P"], Float[Tensor, "*b D"]]:
        """Raw numbers beyond a linear forecast, and what they add to it.

        In order of time, what is added is a part of the forecast: errors of earlier targets, which the anchor
        carries on, are counted from both. Counted from the linear forecast alone, what is added at one step
        would come again at the next, and pile up along a path, which true earlier values hide in training.
        Between neighbours on both sides nothing piles up, and what is added belongs to their errors. So it
        does where all that the network adds is trusted, as it alone sees covariates: steps from one true
        value to the next are learnt from these where levels are not.
        """
        assert self.linear is not None
        raw = self.linear.forecast.beyond(self.raw(x, xy, center, unit))
        nothing = raw.new_zeros(raw.shape[:-1])
        if not self.linear.counts_added:
            return raw, nothing
        return raw, center_of(self.head(raw, nothing, unit.expand(*nothing.shape[:-1], -1)))

    def start(self, window: Window, overlap: int = 0, age: Float[Tensor, " B"] | None = None) -> None:
        """Fit the linear part in closed form; training starts from its forecasts and their errors.

        Parameters
        ----------
        window, overlap, age
            See :meth:`~taylorformer_forecast.baselines.linear.LinearForecast.start`.
        """
        if self.linear is not None:
            self.linear.start(window, overlap, age)

    # ---- sampling ------------------------------------------------------------------------------------

    def encode(self, window: Window, n_paths: int) -> TaylorformerState:
        """Compute all that no target's value can change: the X stream, the context, the neighbours.

        Parameters
        ----------
        window : Window
            Scaled windows; values of the targets are ignored.
        n_paths : int
            Paths S to be drawn of each window.

        Returns
        -------
        TaylorformerState
            For :meth:`query` and :meth:`observe`.
        """
        assert window.observed is not None
        context, targets = slice(0, window.n_context), slice(window.n_context, None)
        # When a target is looked at, it will have been drawn.
        is_target = torch.arange(window.y.shape[1], device=window.y.device)[:, None] >= window.n_context
        known = window.observed | is_target
        window = replace(window, y=window.y.masked_fill(is_target, 0.0), observed=known)
        mask = window.attention_mask()
        f = self.tokens(window, mask)

        x = self.x_stream(f.x, mask)
        weights = self.x_last.attention.weights(x[:, targets], x, mask[:, targets])
        observed = f.observed[:, None, context].to(x.dtype)
        between = weights[..., targets]
        x_context = weights[..., context] @ (window.y[:, None, context] * observed)
        x_norm = weights[..., context] @ observed + between.sum(-1, keepdim=True)

        hidden = self.tokens.hidden(window.y, f.difference, f.derivatives)
        token = self.tokens.key_token(hidden, self.tokens.seen(f.near, f.slopes), f.observed, f.x)[:, context]
        visible = window.visible[:, context]
        attended = None if holds_everywhere(visible) else visible
        n_points = window.y.shape[1]
        reach = self.kernel.reach(n_points)
        caches: list[PointCache] = []
        for block in self.xy_blocks:
            caches.append(PointCache.allocate(token, attended, n_paths, window.n_targets, reach))
            if len(caches) < len(self.xy_blocks):
                token = block(token, token, mask[:, context, context], n_points)
        points = torch.cat([window.y, f.derivatives.flatten(2)], -1)
        return TaylorformerState(
            f.found.select(targets),
            f.x[:, targets],
            x[:, targets],
            between,
            x_context,
            x_norm.clamp_min(torch.finfo(x.dtype).tiny),
            caches,
            points[:, None].repeat(1, n_paths, 1, 1),
            None if self.linear is None else self.linear.look(window),
            torch.zeros_like(window.targets[0])[:, None].repeat(1, n_paths, 1, 1)
            if self.linear is not None and self.linear.counts_added
            else None,
            None if self.gaussian is None else self.gaussian.encode(window, n_paths),
        )

    def look(self, state: TaylorformerState, step: int) -> tuple[Neighbours, Tensor, Tensor]:
        """Neighbours of a target, values there (B, S, K, D), derivatives there (B, S, 3, X, D)."""
        found = state.found.select(slice(step, step + 1))
        index = found.index[:, None].expand(-1, state.points.shape[1], -1, -1, -1)  # (B, S, 1, K, G)
        points = gather_points(state.points, index)[:, :, 0].unflatten(-1, (-1, self.dim_y))
        points = points * found.valid[:, :, :, None]  # (B, S, K, 1 + 3 * X, D)
        return found, points[:, :, :, 0], points[:, :, 0, 1:].unflatten(2, (3, -1))

    def query(self, state: TaylorformerState, step: int) -> Distribution:
        """Distribution of target number ``step`` on every path, its own value unseen.

        Parameters
        ----------
        state : TaylorformerState
            From :meth:`encode`, with all earlier targets observed.
        step : int
            Number of the target.

        Returns
        -------
        Distribution
            Batch shape (B, S, D).
        """
        found, near, slopes = self.look(state, step)
        first = state.points.shape[2] - state.x_hidden.shape[1]
        drawn = state.points[:, :, first : first + step, : self.dim_y]
        total = torch.einsum("bht,bstd->bhsd", state.x_weights[:, :, step, :step], drawn)
        average = (total + state.x_context[:, :, step, None]) / state.x_norm[:, :, step, None]
        x = self.x_last.finish(self.x_last.attention.project_average(average), state.x_hidden[:, step, None])
        h = self.tokens.query_token(self.tokens.seen(near, slopes), state.x_features[:, step, None])
        for i, (block, cache) in enumerate(zip(self.xy_layers, state.caches, strict=True)):
            if i:  # from the second layer on, keys and values do not contain the point's own y
                cache.write(step, h)
            h = block.finish(block.attention.step(h, cache, step), h)
        if self.linear is not None and state.linear is not None:
            center, unit = state.linear.center[:, None, step], state.linear.unit[:, step, None]
            raw, added = self.beyond(x, h, center.expand(-1, h.shape[1], -1), unit)
            if self.linear.both_sides:
                # At points of the context the forecast is the value, on every path.
                context = state.points[:, :1, :first, : self.dim_y]
                forecast = torch.cat([context, state.linear.center[:, None]], 2)
                there = gather_points(forecast, found.index[:, None])[:, :, 0]
                anchor = center + self.error_between(near, there, slopes, found)
            elif state.added is None:
                anchor = self.linear.step(state.linear, drawn, step)
            else:
                anchor = self.linear.step(state.linear, drawn - state.added[:, :, :step], step)
                state.added[:, :, step] = added
            return self.head(raw, anchor, unit.expand(*anchor.shape[:-1], -1))
        if state.gaussian is not None and self.gaussian is not None:
            return self.predictive(x, h, *self.gaussian.query(state.gaussian, step))
        return self.predictive(x, h, self.tokens.anchor(near, slopes, found), None)

    def observe(self, state: TaylorformerState, step: int, y: Float[Tensor, "B S D"]) -> TaylorformerState:
        """Take note of the value of target number ``step`` on every path.

        Parameters
        ----------
        state : TaylorformerState
            The state that :meth:`query` saw.
        step : int
            Number of the target.
        y : Tensor of shape (B, S, D)
            Its value on each path, drawn or known.

        Returns
        -------
        TaylorformerState
            The same state, updated in place.
        """
        found, near, slopes = self.look(state, step)
        difference = (y[:, :, None] - near) * found.valid
        derivatives = self.tokens.local.derivatives(difference, found)
        position = state.points.shape[2] - state.x_hidden.shape[1] + step
        state.points[:, :, position] = torch.cat([y, derivatives.flatten(2)], -1)
        token = self.tokens.key_token(
            self.tokens.hidden(y, difference, derivatives),
            self.tokens.seen(near, slopes),
            torch.ones_like(y),
            state.x_features[:, step, None],
        )
        state.caches[0].write(step, token)
        if state.gaussian is not None and self.gaussian is not None:
            self.gaussian.observe(state.gaussian, step, y)
        return state
