"""The pretrained correction of statistical forecasts: a file that holds numbers only."""

from __future__ import annotations

from functools import lru_cache
from os import PathLike
from pathlib import Path
from typing import Any

import torch

from taylorformer_forecast.engine.weights_file import (
    PACKAGED,
    check_fraction,
    check_sizes,
    has_header,
    read_weights,
    write_weights,
)
from taylorformer_forecast.models.correction import CorrectionNet

__all__ = [
    "DEFAULT",
    "choose_correction",
    "holds_correction",
    "load_correction",
    "save_correction",
]

DEFAULT = PACKAGED / "correction.safetensors"
HEADER = "correction"  # name of the header of its files


def save_correction(net: CorrectionNet, path: str | Path, weight: float, **about: Any) -> None:
    """Write a network in half precision.

    Parameters
    ----------
    net : CorrectionNet
        The network.
    path : str or Path
        A ``.safetensors`` file.
    weight : float
        See :class:`CorrectionNet`.
    **about
        What else the file is to state: how it was made.
    """
    write_weights(path, HEADER, net.state_dict(), {"sizes": net.sizes, "weight": weight, **about})


def load_correction(source: str | Path = "default") -> CorrectionNet:
    """Read the network that the package carries, or that of a file.

    Parameters
    ----------
    source : "default", str or Path
        Which one.

    Returns
    -------
    CorrectionNet
        In single precision.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If the file holds no such network.

    Examples
    --------
    >>> from taylorformer_forecast.engine.statistics.correction import load_correction
    >>> 0 < load_correction().weight <= 1
    True
    """
    return _load_default() if source == "default" else _load(source)


def holds_correction(source: str | PathLike[str]) -> bool:
    """Whether a file is one of :func:`save_correction`, by its header alone."""
    return source != "default" and has_header(source, HEADER)


def choose_correction(strategy: str, source: str | Path) -> CorrectionNet:
    """The correction of a model: its file's if that is asked for, or if the file is one; else the usual."""
    given = strategy == "corrected" or holds_correction(source)
    return load_correction(source if given else "default")


@lru_cache(maxsize=1)
def _load_default() -> CorrectionNet:
    return _load("default")


def _load(source: str | Path) -> CorrectionNet:
    return read_weights(source, DEFAULT, HEADER, "pretrained correction", _build)


def _build(header: dict[str, Any], weights: dict[str, torch.Tensor]) -> CorrectionNet:
    sizes = {name: header["sizes"][name] for name in ("d_model", "n_heads", "n_layers")}
    check_sizes(sizes, sizes)
    if sizes["d_model"] % max(sizes["n_heads"], 1):
        raise ValueError(f"d_model={sizes['d_model']} is no multiple of n_heads={sizes['n_heads']}")
    weight = check_fraction(header["weight"])
    with torch.device("meta"):  # nothing is drawn, or allocated, before the weights are known to fit
        net = CorrectionNet(**sizes, weight=weight)
    net.load_state_dict(weights, assign=True)
    return net.eval()
