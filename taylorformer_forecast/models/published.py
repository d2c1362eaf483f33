"""Weights of the published Taylorformer code, by the names of its checkpoints."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from taylorformer_forecast.models.blocks import Block

__all__ = ["load_published", "reference_names"]


def _linear(layer: nn.Linear, name: str) -> Iterator[tuple[Tensor, str, bool]]:
    yield layer.weight, f"{name}/kernel", True
    yield layer.bias, f"{name}/bias", False


def _norm(layer: nn.LayerNorm, name: str) -> Iterator[tuple[Tensor, str, bool]]:
    yield layer.weight, f"{name}/gamma", False
    yield layer.bias, f"{name}/beta", False


def _block(block: Block, name: str) -> Iterator[tuple[Tensor, str, bool]]:
    heads = block.attention
    for part, layer in (("W_q", heads.query), ("W_k", heads.key), ("W_v", heads.value), ("W_o", heads.out)):
        yield from _linear(layer, f"{name}/mha/{part}")
    if isinstance(block.residual, nn.Linear):
        yield from _linear(block.residual, f"{name}/ffn/dense_a")
    first, _, _, second = block.feedforward
    yield from _linear(first, f"{name}/ffn/dense_b")  # type: ignore[arg-type]
    yield from _linear(second, f"{name}/ffn/dense_c")  # type: ignore[arg-type]
    yield from _norm(block.norm_attention, f"{name}/ffn/layernorm/0")
    yield from _norm(block.norm_feedforward, f"{name}/ffn/layernorm/1")


def reference_names(net: Any) -> Iterator[tuple[Tensor, str, bool]]:
    """Pair every tensor of a ``preset="code"`` network with the name of the published array.

    Parameters
    ----------
    net : Taylorformer
        The network, with one column of y.

    Yields
    ------
    tensor, name, transposed
        A view of the network's tensor, the array's name, and whether the array is stored transposed
        (kernels are stored (in, out)).
    """
    norm = net.streams.tokens.local.norm
    for tensor, part in (
        (norm.gain, "gamma"),
        (norm.offset, "beta"),
        (norm.mean, "moving_mean"),
        (norm.variance, "moving_variance"),
    ):
        yield tensor, f"DE/batch_norm/{part}", False
    for stream, blocks in (
        ("x", [*net.streams.x_blocks, net.streams.x_last]),
        ("xy", [*net.streams.xy_blocks]),
    ):
        for i, block in enumerate(blocks):
            assert isinstance(block, Block)
            yield from _block(block, f"mha_{stream}_b/{i - 1}" if i else f"mha_{stream}_a")
    yield from _linear(net.streams.join, "linear_layer")
    weight, bias, d = net.streams.to_params.weight, net.streams.to_params.bias, net.dim_y
    for part, rows in (("dense_last", slice(0, d)), ("dense_sigma", slice(d, 2 * d))):
        yield weight[rows], f"{part}/kernel", True
        yield bias[rows], f"{part}/bias", False


def load_published(
    network: Callable[..., Any],
    arrays: Mapping[str, Any],
    num_heads: int,
    bound_std: bool = False,
    time_max: float | None = None,
    dropout: float = 0.05,
) -> Any:
    """Build a network with weights of the published code; see ``Taylorformer.from_reference``.

    Parameters
    ----------
    network : callable
        The class of the network.
    arrays, num_heads, bound_std, time_max, dropout
        See ``Taylorformer.from_reference``.

    Returns
    -------
    nn.Module
        The network, in evaluation mode.
    """

    def shape(name: str) -> tuple[int, ...]:
        return np.shape(arrays[name])

    def has(name: str) -> bool:
        return name in arrays

    dim_y = shape("dense_last/kernel")[1]
    dim_t = shape("DE/batch_norm/gamma")[0] // dim_y
    dim_x, width = shape("mha_x_a/mha/W_q/kernel")
    n_layers = 1
    while has(f"mha_xy_b/{n_layers - 1}/mha/W_q/kernel"):
        n_layers += 1
    net = network(
        dim_y=dim_y,
        dim_t=dim_t,
        d_model=shape("dense_last/kernel")[0],
        n_heads=num_heads,
        head_dim=width // num_heads,
        n_layers=n_layers,
        dim_encoding=dim_x // dim_t - 2 * dim_t,
        dropout=dropout,
        scale="bounded" if bound_std else "exp",
        preset="code",
        time_max=float(dim_t) if time_max is None else time_max,
    )
    with torch.no_grad():
        for tensor, name, transposed in reference_names(net):
            array = torch.as_tensor(np.asarray(arrays[name]), dtype=tensor.dtype)
            tensor.copy_(array.T if transposed else array)
    return net.eval()
