"""The transformer block that the models share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jaxtyping import Float
from torch import Tensor, nn


def head_width(d_model: int, n_heads: int) -> int:
    """Width of one of the heads that share ``d_model`` numbers.

    Raises
    ------
    ValueError
        If they cannot share them alike.

    Examples
    --------
    >>> from taylorformer_forecast.models.blocks import head_width
    >>> head_width(32, 4)
    8
    """
    if d_model % n_heads:
        raise ValueError(f"d_model={d_model} is not a multiple of n_heads={n_heads}")
    return d_model // n_heads


class Block(nn.Module):
    """Attention, residual, normalisation, feed-forward, residual, normalisation (post-norm).

    Parameters
    ----------
    attention : nn.Module
        The attention layer.
    dim_query, d_model : int
        Width of the queries and of the output. Where they differ, the residual goes through a linear map.
    dropout : float
        Dropout inside the feed-forward part, the only one of a block.
    dim_feedforward : int, optional
        Width between the two maps of the feed-forward part, ``d_model`` by default.
    activation : callable, default=nn.GELU
        Makes the layer between them.
    """

    def __init__(
        self,
        attention: nn.Module,
        dim_query: int,
        d_model: int,
        dropout: float,
        dim_feedforward: int | None = None,
        activation: Callable[[], nn.Module] = nn.GELU,
    ) -> None:
        super().__init__()
        width = d_model if dim_feedforward is None else dim_feedforward
        self.attention: Any = attention
        self.residual = nn.Identity() if dim_query == d_model else nn.Linear(dim_query, d_model)
        self.norm_attention = nn.LayerNorm(d_model, eps=1e-3)
        self.feedforward = nn.Sequential(
            nn.Linear(d_model, width), activation(), nn.Dropout(dropout), nn.Linear(width, d_model)
        )
        self.norm_feedforward = nn.LayerNorm(d_model, eps=1e-3)

    def finish(self, attended: Float[Tensor, "B M O"], query: Float[Tensor, "B M2 I"]) -> Tensor:
        """Everything after the attention; ``query`` may broadcast over points."""
        x = self.norm_attention(attended + self.residual(query))
        return self.norm_feedforward(x + self.feedforward(x))

    def forward(self, query: Tensor, key: Tensor, mask: Tensor, n_points: int | None = None) -> Tensor:
        """Attend from ``query`` to ``key``, then finish."""
        return self.finish(self.attention(query, key, mask, n_points), query)
