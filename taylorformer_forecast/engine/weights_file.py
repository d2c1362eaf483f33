"""Files of weights: numbers, a header in JSON and a checksum of both. Reading one runs no code."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Collection, Mapping
from os import PathLike
from pathlib import Path
from typing import Any, TypeVar

from torch import Tensor, uint8

from taylorformer_forecast.engine.state import own_state

PACKAGED = Path(__file__).parents[1] / "weights"  # files of the package
CHECKSUM = "checksum"
# The largest that a file may hold: numbers, which half precision counts up to 65,504, and sizes of networks.
FILE_LIMITS: dict[str, float] = {
    "d_model": 1024,
    "n_heads": 64,
    "n_layers": 24,
    "n_derivative_neighbours": 64,
    "max_cycles": 8,
    "weight": 1e5,
    "characters of a header": 100_000,
}
ERRORS = (AttributeError, KeyError, OSError, RecursionError, RuntimeError, TypeError, ValueError)

Built = TypeVar("Built")


def write_weights(
    path: str | PathLike[str], name: str, tensors: Mapping[str, Tensor], header: Mapping
) -> None:
    """Write tensors to a ``.safetensors`` file.

    Parameters
    ----------
    path : str or Path
        The file.
    name : str
        Name of the header: what the weights are of.
    tensors : mapping of str to Tensor
        Floating-point numbers are written in half precision.
    header : mapping
        What else the file is to state, in types of JSON.

    Raises
    ------
    FileNotFoundError
        If there is no such folder.
    ValueError
        If a number is not finite in half precision.
    """
    from safetensors.torch import save_file

    if not Path(path).parent.is_dir():
        raise FileNotFoundError(f"there is no folder {Path(path).parent}")
    halved = {
        key: (value.detach().half() if value.is_floating_point() else value.detach()).cpu().contiguous()
        for key, value in tensors.items()
    }
    for key, value in halved.items():
        if not value.isfinite().all():
            raise ValueError(f"{key} has values that are not finite in half precision")
    # In the header itself: of several headers safetensors writes now one, now another first.
    checked = {**header, CHECKSUM: checksum(header, halved)}
    save_file(halved, path, {name: json.dumps(checked, sort_keys=True)})


def read_weights(
    source: str | PathLike[str],
    default: Path,
    name: str,
    content: str,
    build: Callable[[dict[str, Any], dict[str, Tensor]], Built],
) -> Built:
    """Read what :func:`write_weights` has written, and build something of it.

    Parameters
    ----------
    source : "default", str or Path
        The file; "default" is that of the package.
    default : Path
        The file of the package.
    name : str
        Name of the header.
    content : str
        What the weights are of, in words.
    build : callable
        Takes the header and the tensors, in single precision. What it raises is raised as one line.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If it holds something else, or is damaged.
    """
    path = default if isinstance(source, str) and source == "default" else Path(source)
    shown = f"pretrained={_shortened(str(source))!r}"
    if not os.path.isfile(path):  # of Path, it raises for long names
        if path is default:
            raise FileNotFoundError(f"{shown}: the package lacks its file {path.name}; install it again")
        raise FileNotFoundError(f"{shown} is neither 'default' nor a file")
    from safetensors import SafetensorError

    try:
        with own_state():
            header, tensors = _read(path, name)
            return build(header, tensors)
    except (SafetensorError, *ERRORS) as error:
        reason = _shortened(" ".join(str(error).split()))  # torch lists names in lines
        raise ValueError(f"{shown} holds no {content}: {type(error).__name__}: {reason}") from error


def has_header(source: str | PathLike[str], name: str) -> bool:
    """Whether a file has a header of this name."""
    from safetensors import SafetensorError, safe_open

    if not os.path.isfile(source):
        return False
    try:
        with safe_open(source, "pt") as file:
            return name in (file.metadata() or {})
    except SafetensorError:
        return False


def _read(path: Path, name: str) -> tuple[dict[str, Any], dict[str, Tensor]]:
    from safetensors import safe_open

    with safe_open(path, "pt") as file:
        metadata = file.metadata() or {}
        tensors = {key: file.get_tensor(key) for key in sorted(file.keys())}
    if name not in metadata:
        raise ValueError(f"it has no header {name!r}")
    if len(metadata[name]) > FILE_LIMITS["characters of a header"]:
        raise ValueError("its header is too long")
    header: dict[str, Any] = dict(json.loads(metadata[name]))
    if header.pop(CHECKSUM, None) != checksum(header, tensors):
        raise ValueError("it is damaged: its checksum is another")
    for key, value in tensors.items():
        if value.is_floating_point() and not bool((value.abs() <= FILE_LIMITS["weight"]).all()):
            raise ValueError(f"it is damaged: a number of {key} is not finite, or too large")
    weights = {key: value.float() if value.is_floating_point() else value for key, value in tensors.items()}
    return header, weights


def checksum(header: Mapping, tensors: Mapping[str, Tensor]) -> str:
    """SHA-256 of a header and of names, types, shapes and bits of tensors."""
    found = hashlib.sha256(json.dumps(dict(header), sort_keys=True).encode())
    for key in sorted(tensors):
        value = tensors[key]
        found.update(f"{key} {value.dtype} {tuple(value.shape)}".encode())
        found.update(value.reshape(-1).view(uint8).numpy().tobytes())
    return found.hexdigest()


def check_sizes(settings: Mapping[str, Any], names: Collection[str]) -> None:
    """Raise a ValueError if a setting of a file is no whole number within its bounds."""
    for name in names:
        value = settings[name]
        if type(value) is not int or not 0 <= value <= FILE_LIMITS[name]:
            most = FILE_LIMITS[name]
            raise ValueError(f"{name}={_shortened(repr(value))}, but it must be a whole number up to {most}")


def check_fraction(value: Any) -> float:
    """The weight that a file has, if it is a number from 0 to 1; else a ValueError."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= 1:
        raise ValueError(f"weight={_shortened(repr(value))}, but it must be a number from 0 to 1")
    return float(value)


def _shortened(text: str) -> str:
    return text if len(text) <= 300 else f"{text[:100]}...{text[-100:]}"
