"""Priors: networks that were trained on many series before, in files that hold numbers and nothing else.

A prior is what a network knows before it has seen a series. The linear forecast that it goes out from is
fitted to every series anew, in closed form, and belongs to no prior.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from taylorformer_forecast.core.linear import TRUST
from taylorformer_forecast.core.sampling import sample_paths
from taylorformer_forecast.core.window import Window
from taylorformer_forecast.training.windows import Batches, WindowMaker

__all__ = ["DEFAULT", "SETTINGS", "SLOTS", "Prior", "choose_trust", "load_prior", "save_prior", "set_trust"]

DEFAULT = Path(__file__).parent.parent / "priors" / "default.safetensors"
SLOTS = 2  # seasons and cycles whose phases a prior sees, the shortest first
# Parameters of the forecasters that decide what a network is; those of a prior say the same.
SETTINGS = (
    "d_model",
    "n_heads",
    "n_layers",
    "distribution",
    "linear_path",
    "n_derivative_neighbours",
    "attention",
)
EARLY = 0.75  # part of a series that the linear forecast is fitted to, to see what a prior adds on the rest
TRUSTS = (0.0, 0.25, 0.5, 0.75, 1.0)
FEWEST = 12  # windows of both parts
N_WINDOWS, N_PATHS = 32, 32
OWN = "forecast."  # parts of a network that are fitted to every series anew


@dataclass(frozen=True)
class Prior:
    """Weights of a network, and what they are weights of.

    Parameters
    ----------
    weights : mapping of str to Tensor
        All parameters but those of the linear forecast.
    settings : mapping
        Values of :data:`SETTINGS`.
    trust : float
        How much of what the network adds to the linear forecast is taken of series too short to tell.
    slots : int, default=2
        Seasons and calendar cycles whose phases it sees, the shortest first.
    """

    weights: Mapping[str, Tensor]
    settings: Mapping[str, Any]
    trust: float
    slots: int = SLOTS

    def check(self, settings: Mapping[str, Any]) -> None:
        """Raise a ValueError if a forecaster with these parameters builds another network."""
        for name, own in self.settings.items():
            if name in settings and settings[name] != own:
                raise ValueError(
                    f"{name}={settings[name]!r}, but the network of pretrained has {name}={own!r}: "
                    f"leave it at that, or train without pretrained"
                )

    def write_into(self, net: Any) -> None:
        """Replace the weights of a DirectTaylorformer, all but those of its linear forecast."""
        missing, unexpected = net.load_state_dict(self.weights, strict=False)
        missing = [name for name in missing if not name.startswith(OWN)]
        if missing or unexpected:
            raise ValueError(
                f"pretrained does not fit the network: {[*missing, *unexpected][0]} is in one only"
            )


@torch.no_grad()
def choose_trust(net: Any, maker: WindowMaker, min_context: int, usual: float) -> float:
    """Choose how much of what a prior adds to the linear forecast is taken, by the end of the series.

    The linear forecast is fitted to the first three quarters, and paths are drawn through windows of the
    rest: neither it nor the prior has seen these.

    Parameters
    ----------
    net : DirectTaylorformer
        The network with the weights of the prior. It stays as it is.
    maker : WindowMaker
        Cuts windows from the series.
    min_context : int
        Rows that precede the first target of a window, at least.
    usual : float
        The answer for series that are too short to tell.

    Returns
    -------
    float
        One of :data:`TRUSTS` or ``usual``.
    """
    early = maker.starts(min_context, keep=EARLY)
    late = maker.starts(min_context, skip=EARLY)
    if len(early) < FEWEST or len(late) < FEWEST:
        return usual
    late = late[torch.linspace(0, len(late) - 1, min(len(late), N_WINDOWS)).round().long()]
    net = copy.deepcopy(net).eval()
    net.start(*Batches(maker, early, len(early), last=EARLY).sample())
    window, _ = maker.windows(late)
    losses = []
    for trust in TRUSTS:
        net.forecast.trust.fill_(trust)
        generator = torch.Generator().manual_seed(0)  # the same draws for all
        paths = sample_paths(net, window, N_PATHS, generator).paths
        losses.append(_pinball(paths, window).item())
    return TRUSTS[losses.index(min(losses))]


def _pinball(paths: Float[Tensor, "B S T D"], window: Window) -> Float[Tensor, ""]:
    """Mean pinball loss of the deciles of paths over observed targets."""
    y, observed = window.targets
    levels = torch.arange(1, 10, dtype=y.dtype) / 10
    error = y - torch.quantile(paths, levels, dim=1)
    levels = levels[:, None, None, None]
    return (torch.maximum(levels * error, (levels - 1) * error).mean(0) * observed).sum()


def set_trust(net: Any, trust: float) -> None:
    """Make a network start from a part of what its prior adds to the linear forecast.

    A network is trained with all of what it adds, and that of which less is taken afterwards than is usual is
    reduced before; more is taken of what deserves it.
    """
    net.layers.to_params.weight.data.mul_(min(trust / TRUST, 1.0))
    net.layers.to_params.bias.data.mul_(min(trust / TRUST, 1.0))
    net.forecast.trust.fill_(max(trust, TRUST))


def save_prior(
    net: nn.Module, path: str | Path, settings: Mapping[str, Any], trust: float, **about: Any
) -> None:
    """Write a prior in half precision.

    Parameters
    ----------
    net : nn.Module
        The network.
    path : str or Path
        A ``.safetensors`` file.
    settings : mapping
        Values of :data:`SETTINGS`.
    trust : float
        See :class:`Prior`.
    **about
        What else the file is to say of itself: how it was made.
    """
    from safetensors.torch import save_file

    tensors = {
        name: value.detach().half().contiguous()
        for name, value in net.state_dict().items()
        if not name.startswith(OWN)
    }
    header = {"settings": dict(settings), "trust": trust, **about}
    save_file(tensors, path, {"prior": json.dumps(header, sort_keys=True)})


def load_prior(source: str | Path) -> Prior:
    """Read a prior: the one that the package carries, or a file.

    Parameters
    ----------
    source : "default", str or Path
        Which one.

    Returns
    -------
    Prior
        Its weights in single precision.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If the file holds no prior.

    Examples
    --------
    >>> from taylorformer_forecast.training.prior import load_prior
    >>> load_prior("default").settings["distribution"]
    'studentt'
    """
    from safetensors import SafetensorError, safe_open

    path = DEFAULT if source == "default" else Path(source)
    if not path.is_file():
        raise FileNotFoundError(f"pretrained={str(source)!r} is neither 'default' nor a file")
    try:
        with safe_open(path, "pt") as file:
            header = json.loads((file.metadata() or {})["prior"])
            weights = {name: file.get_tensor(name).to(torch.float32) for name in sorted(file.keys())}
        return Prior(weights, header["settings"], float(header["trust"]))
    except (SafetensorError, KeyError, json.JSONDecodeError) as error:
        raise ValueError(f"pretrained={str(source)!r} is not a prior: {error}") from error
