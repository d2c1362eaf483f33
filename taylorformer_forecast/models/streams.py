"""Both streams of the Taylorformer: from windows to the hidden states of their targets."""

from __future__ import annotations

from typing import cast

import torch
from einops import rearrange
from jaxtyping import Bool, Float
from torch import Tensor, nn

from taylorformer_forecast.core.attention.kernels import Kernel
from taylorformer_forecast.core.attention.layer import MultiHeadAttention
from taylorformer_forecast.core.attention.registry import Attention
from taylorformer_forecast.core.encoding import TimeEncoding
from taylorformer_forecast.core.taylor import LocalTaylor
from taylorformer_forecast.core.window import Window
from taylorformer_forecast.models.blocks import Block, head_width
from taylorformer_forecast.models.stepwise import place_features
from taylorformer_forecast.models.tokens import Features, Tokens


class Streams(nn.Module):
    """The stream over times (X), the stream over times and values (XY), and what joins them.

    Parameters
    ----------
    dim_y, dim_t, dim_covariates : int
        Columns of y, time coordinates (1 or 2) and covariates.
    n_params : int
        Unconstrained parameters of each column.
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
    preset, both_sides
        See :class:`~taylorformer_forecast.models.taylorformer.Taylorformer`.
    neighbour_derivative : bool, optional
        Whether a point sees the derivative at its neighbour (paper, eq. 9); on for ``"paper"``.
    n_derivative_neighbours : int, default=1
        Neighbours over which derivatives are averaged, for noisy series.
    derivative_clip : float, default=200
        Derivatives beyond this are treated as absent. It is measured in units of scaled y per scaled time.
    time_min, time_max : float
        Range of times of the positional encoding
        (:class:`~taylorformer_forecast.core.encoding.TimeEncoding`).
    kernel : Kernel
        Attention of the XY stream.
    shows_baseline : bool, default=False
        Whether location and scale of the baseline join the hidden states.

    Raises
    ------
    ValueError
        If an argument does not fit the others.
    """

    def __init__(
        self,
        dim_y: int,
        dim_t: int,
        dim_covariates: int,
        n_params: int,
        kernel: Kernel,
        d_model: int = 32,
        n_heads: int = 4,
        head_dim: int | None = None,
        n_layers: int = 3,
        dim_encoding: int = 32,
        dropout: float = 0.05,
        preset: str = "paper",
        neighbour_derivative: bool | None = None,
        n_derivative_neighbours: int = 1,
        derivative_clip: float = 200.0,
        time_min: float = 0.1,
        time_max: float = 1.0,
        both_sides: bool = False,
        shows_baseline: bool = False,
    ) -> None:
        super().__init__()
        if n_layers < 2:
            raise ValueError(f"n_layers={n_layers}, but each stream needs at least 2")
        published = preset == "code"
        head_dim = head_width(d_model, n_heads) if head_dim is None else head_dim
        self.dim_y, self.kernel, self.shows_baseline = dim_y, kernel, shows_baseline
        self.tokens = Tokens(
            LocalTaylor(dim_t, dim_y, published, n_derivative_neighbours, derivative_clip, both_sides),
            TimeEncoding(dim_encoding, time_min, time_max),
            dim_encoding,
            dim_y,
            dim_t,
            dim_covariates,
            neighbour_derivative=not published if neighbour_derivative is None else neighbour_derivative,
            mark_observed=dim_y > 1 and not published,
        )
        attention_scale = (n_heads * head_dim if published else head_dim) ** -0.5

        def block(dim_in: int, dim_value: int | None = None, attention: Attention = "full") -> Block:
            layer = MultiHeadAttention(
                dim_in, d_model, n_heads, head_dim, dim_value, attention, scale=attention_scale
            )
            return Block(layer, dim_in, d_model, dropout)

        self.x_blocks = nn.ModuleList(block(d_model if i else self.tokens.dim_x) for i in range(n_layers - 1))
        self.x_last = block(d_model, dim_value=dim_y)
        self.xy_blocks = nn.ModuleList(
            block(d_model if i else self.tokens.dim_xy, attention=kernel) for i in range(n_layers)
        )
        self.join = nn.Linear(2 * d_model + 2 * dim_y * shows_baseline, d_model)
        self.to_params = nn.Linear(d_model, dim_y * n_params)
        for module in self.modules():
            if isinstance(module, nn.Linear):
                nn.init.xavier_uniform_(module.weight)
                nn.init.zeros_(module.bias)

    @property
    def xy_layers(self) -> list[Block]:
        """Layers of the XY stream."""
        return cast("list[Block]", list(self.xy_blocks))

    def forward(
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

    def unconstrained(
        self, x: Tensor, xy: Tensor, loc: Tensor | None = None, scale: Tensor | float = 1.0
    ) -> Float[Tensor, "*b D P"]:
        """Join the hidden states and turn them into unconstrained parameters of the family.

        Parameters
        ----------
        x, xy : Tensor of shape (..., O)
            Last hidden states.
        loc, scale : Tensor
            Those of the baseline, if they are shown.
        """
        parts = [x, xy]
        if self.shows_baseline and loc is not None:
            parts.append(place_features(loc, scale))
        return rearrange(
            self.to_params(self.join(torch.cat(parts, -1))), "... (p d) -> ... d p", d=self.dim_y
        )
