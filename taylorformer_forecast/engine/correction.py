"""The pretrained correction of statistical forecasts: a file that holds numbers only."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from taylorformer_forecast.baselines.combination_fit import CombinationFit
from taylorformer_forecast.baselines.forecast import Correction
from taylorformer_forecast.models.correction import CorrectionNet

__all__ = [
    "DEFAULT",
    "PretrainedCorrection",
    "choose_correction",
    "holds_correction",
    "load_correction",
    "save_correction",
]

DEFAULT = Path(__file__).parent.parent / "weights" / "correction.safetensors"
LARGEST = {"d_model": 1024, "n_heads": 64, "n_layers": 24}  # the largest that a file may ask for


@dataclass(frozen=True)
class PretrainedCorrection:
    """A pretrained network, and how much of it is taken.

    Parameters
    ----------
    net : CorrectionNet
        In evaluation mode.
    weight : float
        Part of the shift of locations that is taken.
    """

    net: CorrectionNet
    weight: float

    def __call__(self, fit: CombinationFit) -> Correction:
        """Correct the combination at the end of all series."""
        return self.net.correct(fit, self.weight)


def save_correction(
    net: CorrectionNet, path: str | Path, sizes: Mapping[str, int], weight: float, **about: Any
) -> None:
    """Write a network in half precision.

    Parameters
    ----------
    net : CorrectionNet
        The network.
    path : str or Path
        A ``.safetensors`` file.
    sizes : mapping of str to int
        Arguments of the network.
    weight : float
        See :class:`PretrainedCorrection`.
    **about
        What else the file is to state: how it was made.
    """
    from safetensors.torch import save_file

    tensors = {name: value.detach().half().contiguous() for name, value in net.state_dict().items()}
    header = {"sizes": dict(sizes), "weight": weight, **about}
    save_file(tensors, path, {"correction": json.dumps(header, sort_keys=True)})


def load_correction(source: str | Path = "default") -> PretrainedCorrection:
    """Read the network that the package carries, or that of a file.

    Parameters
    ----------
    source : "default", str or Path
        Which one.

    Returns
    -------
    PretrainedCorrection
        In single precision.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If the file holds no such network.

    Examples
    --------
    >>> from taylorformer_forecast.engine.correction import load_correction
    >>> 0 < load_correction().weight <= 1
    True
    """
    return _load_default() if source == "default" else _load(Path(source))


def holds_correction(source: str | Path) -> bool:
    """Whether a file is one of :func:`save_correction`, by its header alone."""
    from safetensors import SafetensorError, safe_open

    if source == "default" or not Path(source).is_file():
        return False
    try:
        with safe_open(source, "pt") as file:
            return "correction" in (file.metadata() or {})
    except SafetensorError:
        return False


def choose_correction(strategy: str, source: str | Path) -> PretrainedCorrection:
    """The correction of a model: its file's if that is asked for, or if the file is one; else the usual."""
    given = strategy == "corrected" or holds_correction(source)
    return load_correction(source if given else "default")


@lru_cache(maxsize=1)
def _load_default() -> PretrainedCorrection:
    return _load(DEFAULT)


def _load(path: Path) -> PretrainedCorrection:
    from safetensors import SafetensorError, safe_open

    if not path.is_file():
        raise FileNotFoundError(f"pretrained={str(path)!r} is neither 'default' nor a file")
    try:
        with safe_open(path, "pt") as file:
            header = json.loads((file.metadata() or {})["correction"])
            weights = {name: file.get_tensor(name).float() for name in sorted(file.keys())}
        sizes = {name: int(header["sizes"][name]) for name in LARGEST}
        if any(not 0 < sizes[name] <= most for name, most in LARGEST.items()):
            raise ValueError(f"sizes {sizes} are out of bounds")
        if not all(bool(value.isfinite().all()) for value in weights.values()):
            raise ValueError("a weight is not finite")
        net = CorrectionNet(**sizes)
        net.load_state_dict(weights)
        return PretrainedCorrection(net.eval(), float(header["weight"]))
    except (SafetensorError, AttributeError, KeyError, TypeError, RuntimeError, ValueError) as error:
        reason = " ".join(str(error).split())  # torch lists names in lines
        raise ValueError(f"pretrained={str(path)!r} holds no pretrained correction: {reason}") from error
