"""The two trunks of the LAM transformer: from a context to raw numbers for every step of the horizon.

A trunk is called with the values of the context, what was observed of it, the covariates of all points and
the number T of targets, and returns (B, T, D * P) raw numbers.
"""

from __future__ import annotations

import math

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from taylorformer_forecast.core.attention.layer import MultiHeadAttention
from taylorformer_forecast.core.attention.registry import Attention
from taylorformer_forecast.core.encoding import TimeEncoding
from taylorformer_forecast.core.temporal import TemporalMap
from taylorformer_forecast.models.stepwise import start_at_baseline


class ModernLayer(nn.Module):
    """Self-attention and feed-forward part, normalised before each (pre-norm), GELU, width 4 d inside."""

    def __init__(self, width: int, n_heads: int, dropout: float, attention: Attention) -> None:
        super().__init__()
        self.norm_attention, self.norm_feedforward = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = MultiHeadAttention(width, width, n_heads, width // n_heads, attention=attention)
        self.feedforward = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Dropout(dropout), nn.Linear(4 * width, width)
        )
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Float[Tensor, "B N F"], mask: Bool[Tensor, "B 1 N"] | None) -> Tensor:
        """Transform the points."""
        normed = self.norm_attention(x)
        x = x + self.dropout(self.attention(normed, normed, mask))
        return x + self.dropout(self.feedforward(self.norm_feedforward(x)))


class ModernTrunk(nn.Module):
    """Encoder, map over time, covariates of the targets, head."""

    def __init__(
        self,
        context_length: int,
        horizon: int,
        dim_y: int,
        dim_covariates: int,
        n_params: int,
        d_model: int,
        n_heads: int,
        n_layers: int,
        dropout: float,
        attention: Attention,
    ) -> None:
        super().__init__()
        self.embed = nn.Linear(2 * dim_y + dim_covariates, d_model)
        # Points of a regular grid: their number says when they were. From wavelengths of 2 pi points up.
        encode = TimeEncoding(d_model, time_min=1.0, time_max=max(1.0, 0.1 * context_length))
        position = torch.arange(1.0 - context_length, 1.0)[None, :, None]
        self.register_buffer("position", encode(position), persistent=False)
        self.layers = nn.ModuleList(
            ModernLayer(d_model, n_heads, dropout, attention) for _ in range(n_layers)
        )
        self.norm = nn.LayerNorm(d_model)
        self.time = TemporalMap(context_length, horizon)
        self.future = nn.Linear(dim_covariates, d_model) if dim_covariates else None
        self.mix = nn.Sequential(nn.GELU(), nn.Dropout(dropout), nn.Linear(d_model, d_model), nn.GELU())
        self.to_params = nn.Linear(d_model, dim_y * n_params)
        # Training starts near the linear path, or near the mean of the context with deviation 1.
        start_at_baseline(self.to_params)

    def forward(
        self,
        y: Float[Tensor, "B L D"],
        observed: Bool[Tensor, "B L D"],
        mask: Bool[Tensor, "B 1 L"] | None,
        covariates: Float[Tensor, "B N C"] | None,
        n_targets: int,
    ) -> Float[Tensor, "B T P"]:
        """Raw numbers of the targets."""
        length = y.shape[1]
        tokens = [y, observed.to(y.dtype)] + ([] if covariates is None else [covariates[:, :length]])
        x = self.embed(torch.cat(tokens, -1)) + self.position
        for layer in self.layers:
            x = layer(x, mask)
        h = self.time(self.norm(x), n_targets)
        if self.future is not None and covariates is not None:
            h = h + self.future(covariates[:, length:])
        return self.to_params(self.mix(h))


class FaithfulLayer(nn.Module):
    """Layer of the paper's encoder or decoder: post-norm, LeakyReLU, width 4 F inside, heads of width 1."""

    def __init__(
        self, width: int, dropout: float, attention: Attention, cross: str | None, double_residual: bool
    ) -> None:
        super().__init__()

        def attend() -> MultiHeadAttention:
            return MultiHeadAttention(width, width, n_heads=width, head_dim=1, attention=attention)

        def norm() -> nn.Module:  # a single variable minus its mean would be zero
            return nn.LayerNorm(width) if width > 1 else nn.Identity()

        self.cross_kind, self.double_residual = cross, double_residual
        self.attention, self.norm_attention, self.norm_feedforward = attend(), norm(), norm()
        self.cross = attend() if cross else None
        self.feedforward = nn.Sequential(
            nn.Linear(width, 4 * width), nn.LeakyReLU(0.01), nn.Linear(4 * width, width)
        )
        self.dropout = nn.Dropout(dropout)

    def forward(
        self,
        x: Float[Tensor, "B N F"],
        mask: Bool[Tensor, "B 1 N"] | None,
        memory: Float[Tensor, "B N F"] | None = None,
    ) -> Float[Tensor, "B N F"]:
        """Transform the points; decoder layers attend ``memory`` as well."""
        x = x + self.dropout(self.attention(x, x, mask))
        if self.cross is not None and memory is not None:
            # The paper takes queries and keys from the encoder, values from the decoder.
            query, value = (memory, x) if self.cross_kind == "paper" else (x, memory)
            layer = self.cross
            q, k, v = layer.query(query), layer.key(memory), layer.value(value)
            attended = layer.kernel(layer.split(q), layer.split(k), layer.split(v), mask, layer.scale)
            x = x + self.dropout(layer.merge(attended))
        x = self.norm_attention(x)
        f = self.dropout(self.feedforward(x))
        return self.norm_feedforward(x + f + x if self.double_residual else x + f)


class FaithfulTrunk(nn.Module):
    """The paper's encoder and decoder; every variable, covariates included, is a head of width 1."""

    position: Tensor

    def __init__(
        self,
        context_length: int,
        horizon: int,
        dim_y: int,
        dim_covariates: int,
        n_params: int,
        n_layers: int,
        dropout: float,
        attention: Attention,
        cross: str,
        double_residual: bool,
        scale_input: bool,
    ) -> None:
        super().__init__()
        if cross not in ("standard", "paper"):
            raise ValueError(f"cross={cross!r} is neither 'standard' nor 'paper'")
        width = dim_y + dim_covariates
        self.dim_y = dim_y
        self.factor = math.sqrt(width) if scale_input else 1.0
        self.register_buffer("position", summed_encoding(context_length, width), persistent=False)

        def layers(kind: str | None) -> nn.ModuleList:
            return nn.ModuleList(
                FaithfulLayer(width, dropout, attention, kind, double_residual) for _ in range(n_layers)
            )

        self.encoder, self.decoder = layers(None), layers(cross)
        self.dropout = nn.Dropout(dropout)
        self.variables = nn.Linear(width, dim_y * n_params)
        self.time = TemporalMap(context_length, horizon)
        self.future = nn.Linear(dim_covariates, dim_y * n_params, bias=False) if dim_covariates else None

    def forward(
        self,
        y: Float[Tensor, "B L D"],
        observed: Bool[Tensor, "B L D"],
        mask: Bool[Tensor, "B 1 L"] | None,
        covariates: Float[Tensor, "B N C"] | None,
        n_targets: int,
    ) -> Float[Tensor, "B T P"]:
        """Raw numbers of the targets."""
        length = y.shape[1]
        x = y if covariates is None else torch.cat([y, covariates[:, :length]], -1)
        x = decoded = self.dropout(x * self.factor + self.position)
        for layer in self.encoder:
            x = layer(x, mask)
        for layer in self.decoder:
            decoded = layer(decoded, mask, x)
        raw = self.time(self.variables(decoded), n_targets)
        if self.future is not None and covariates is not None:
            raw = raw + self.future(covariates[:, length:])
        return raw


def summed_encoding(length: int, width: int) -> Float[Tensor, "1 N F"]:
    """Positional encoding of the LAM paper: sine plus cosine of ``i / 10000 ** (j / width)``.

    Parameters
    ----------
    length, width : int
        Number of positions i and of coordinates j.

    Returns
    -------
    Tensor
        Shape (1, length, width).
    """
    i, j = torch.arange(float(length))[:, None], torch.arange(float(width))
    angle = i / 10000 ** (j / width)
    return (angle.sin() + angle.cos())[None]
