"""The networks that are compared, of about the same number of parameters, and the Taylorformer in parts."""

from __future__ import annotations

from dataclasses import replace

import torch
from latent import AttentiveNeuralProcess, NeuralProcess
from torch import Tensor, nn

from taylorformer_forecast.core.neighbours import Neighbours
from taylorformer_forecast.core.taylor import LocalTaylor
from taylorformer_forecast.models.streams import Streams
from taylorformer_forecast.models.taylorformer import Taylorformer
from taylorformer_forecast.models.tnp import TNPA

__all__ = ["LABELS", "NETWORKS", "PARTS", "build"]

# What the paper has; slopes beyond the clip are noise, as no kernel here is steeper often.
PUBLISHED = {
    "preset": "paper",
    "taylor_order": 1,
    "derivative_clip": 20.0,
    "n_derivative_neighbours": 2,
    "time_min": 0.03,
    "time_max": 2.0,
    "dropout": 0.0,
}


class NoNeighbours(LocalTaylor):
    """LocalTaylor that finds nobody: no differences, no derivatives, and means are around zero."""

    def neighbours(self, x: Tensor, mask: Tensor, observed: Tensor) -> Neighbours:
        """Neighbours of which none is valid."""
        found = super().neighbours(x, mask, observed)
        return replace(
            found,
            valid=torch.zeros_like(found.valid),
            offset=torch.zeros_like(found.offset),
            features=torch.zeros_like(found.features),
        )


class ValuesOnly(Streams):
    """The streams without that over times (MHA-X), whose place in the last map is empty."""

    def x_stream(self, xf: Tensor, mask: Tensor) -> Tensor:
        """Nothing to compute."""
        return xf.new_zeros(*xf.shape[:2], self.join.out_features)

    def unconstrained(
        self, x: Tensor, xy: Tensor, loc: Tensor | None = None, scale: Tensor | float = 1.0
    ) -> Tensor:
        """As of the stream over values alone."""
        return super().unconstrained(torch.zeros_like(x), xy, loc, scale)


def values_only(net: Taylorformer) -> Taylorformer:
    """Take the stream over times from a network."""
    net.streams.__class__ = ValuesOnly
    net.streams.x_blocks.requires_grad_(False)
    net.streams.x_last.requires_grad_(False)
    return net


def without_neighbours(net: Taylorformer) -> Taylorformer:
    """Take LocalTaylor from a network."""
    local = net.streams.tokens.local
    net.streams.tokens.local = NoNeighbours(local.dim_t, clip=local.clip)
    return net


# Widths make up for what is missing, so that all have about the same number of parameters.
NETWORKS = {
    "taylorformer": lambda: Taylorformer(**PUBLISHED, head_dim=10),
    "both_sides": lambda: Taylorformer(**PUBLISHED, both_sides=True, head_dim=9),
    "tnpa": lambda: TNPA(d_model=40, n_layers=3),
    "anp": lambda: AttentiveNeuralProcess(width=56, n_heads=8),
    "np": lambda: NeuralProcess(width=82),
    "base": lambda: without_neighbours(values_only(Taylorformer(**PUBLISHED, d_model=48))),
    "times": lambda: without_neighbours(Taylorformer(**PUBLISHED, head_dim=10)),
    "local": lambda: values_only(Taylorformer(**PUBLISHED, d_model=48)),
}
PARTS = ("base", "times", "local", "taylorformer")
LABELS = {
    "taylorformer": "Taylorformer",
    "both_sides": "Taylorformer, both sides",
    "tnpa": "TNP-A",
    "anp": "ANP",
    "np": "NP",
    "base": "neither",
    "times": "MHA-X only",
    "local": "LocalTaylor only",
    "ceiling": "ceiling",
    "floor": "floor",
}


def build(name: str, seed: int) -> nn.Module:
    """A network with random weights.

    Parameters
    ----------
    name : str
        A key of :data:`NETWORKS`.
    seed : int
        Of the weights.

    Returns
    -------
    nn.Module
        The network.
    """
    torch.manual_seed(seed)
    return NETWORKS[name]()
