"""Weights of the published Taylorformer code, by the names of its checkpoints."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from taylorformer_forecast.models.blocks import Block
from taylorformer_forecast.models.tensor_bundle import read_checkpoint

# Names of a checkpoint: the network under the attribute of its time, the pipeline under ``net``.
ROOT, SUFFIX, OPTIMISER_SLOT = "net/", "/.ATTRIBUTES/VARIABLE_VALUE", "/.OPTIMIZER_SLOT/"
PREFIXES = (("_atp/", ""), ("_taylorformer/", ""), ("_DE/batch_norm_layer/", "DE/batch_norm/"))
# Heads of the published configurations (ETT, exchange) by width of projections, width and layers.
PUBLISHED_HEADS = {(66, 32, 4): 6, (96, 32, 3): 8}


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


def published_arrays(weights: str | Path | Mapping[str, Any]) -> dict[str, np.ndarray]:
    """Arrays of the network in a checkpoint of the published code, by the names of :func:`reference_names`.

    Parameters
    ----------
    weights : str, Path or mapping of str to array
        A TensorFlow checkpoint, or its arrays, under the names of the checkpoint or of this package. What the
        optimiser keeps is left out.

    Examples
    --------
    >>> from taylorformer_forecast.models.published import published_arrays
    >>> name = "net/_atp/dense_last/bias/.ATTRIBUTES/VARIABLE_VALUE"
    >>> published_arrays({name: [0.5], "step/.ATTRIBUTES/VARIABLE_VALUE": 7})
    {'dense_last/bias': array([0.5])}
    """
    arrays = weights if isinstance(weights, Mapping) else read_checkpoint(weights)
    whole = any(name.startswith(ROOT) for name in arrays)  # also what is beside the network
    found = {}
    for name, array in arrays.items():
        if OPTIMISER_SLOT in name or (whole and not name.startswith(ROOT)):
            continue
        name = name.removesuffix(SUFFIX).removeprefix(ROOT)
        for prefix, new in PREFIXES:
            name = new + name.removeprefix(prefix) if name.startswith(prefix) else name
        found[name] = np.asarray(array)
    return found


def _heads(num_heads: int | None, width: int, d_model: int, n_layers: int) -> int:
    """Number of heads: as given, or that of the published configuration with these sizes."""
    published = PUBLISHED_HEADS.get((width, d_model, n_layers))
    if num_heads is None:
        if published is None:
            raise ValueError(
                "num_heads does not follow from the arrays: give the number that the network was trained with"
            )
        return published
    if num_heads < 1 or width % num_heads:
        raise ValueError(f"num_heads={num_heads} does not divide the width of the projections, {width}")
    if published not in (None, num_heads):
        raise ValueError(f"num_heads={num_heads}, but the published network of these sizes has {published}")
    return num_heads


def load_published(
    network: Callable[..., Any],
    weights: str | Path | Mapping[str, Any],
    num_heads: int | None = None,
    bound_std: bool = False,
    time_max: float | None = None,
    dropout: float = 0.05,
) -> Any:
    """Build a network with weights of the published code; see ``Taylorformer.from_reference``.

    Parameters
    ----------
    network : callable
        The class of the network.
    weights, num_heads, bound_std, time_max, dropout
        See ``Taylorformer.from_reference``.

    Returns
    -------
    nn.Module
        The network, in evaluation mode.
    """
    arrays = published_arrays(weights)

    def shape(name: str) -> tuple[int, ...]:
        if name not in arrays:
            raise KeyError(f"the weights have no array {name!r}")
        return arrays[name].shape

    d_model, dim_y = shape("dense_last/kernel")
    dim_t = shape("DE/batch_norm/gamma")[0] // dim_y
    dim_x, width = shape("mha_x_a/mha/W_q/kernel")
    n_layers = 1
    while f"mha_xy_b/{n_layers - 1}/mha/W_q/kernel" in arrays:
        n_layers += 1
    num_heads = _heads(num_heads, width, d_model, n_layers)
    net = network(
        dim_y=dim_y,
        dim_t=dim_t,
        d_model=d_model,
        n_heads=num_heads,
        head_dim=width // num_heads,
        n_layers=n_layers,
        dim_encoding=dim_x // dim_t - 2 * dim_t,
        dropout=dropout,
        scale="bounded" if bound_std else "exp",
        preset="code",
        time_max=float(dim_t) if time_max is None else time_max,
    )
    extra = arrays.keys() - {name for _, name, _ in reference_names(net)}
    if extra:
        raise ValueError(f"the weights have arrays that the network has not: {', '.join(sorted(extra))}")
    with torch.no_grad():
        for tensor, name, transposed in reference_names(net):
            expected = tuple(tensor.shape[::-1] if transposed else tensor.shape)
            if shape(name) != expected:
                raise ValueError(f"array {name!r} has shape {shape(name)}, but the network needs {expected}")
            array = torch.as_tensor(arrays[name].copy(), dtype=tensor.dtype)
            tensor.copy_(array.T if transposed else array)
    return net.eval()
