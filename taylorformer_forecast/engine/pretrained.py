"""Priors: networks that were trained on many series before, in files that hold numbers and nothing else.

A prior is what a network knows before it has seen a series. The linear forecast that it goes out from is
fitted to every series anew, in closed form, and belongs to no prior.
"""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.distributions import Distribution

from taylorformer_forecast.baselines.linear import LinearForecast
from taylorformer_forecast.calendar.cycles import N_HARMONICS
from taylorformer_forecast.core.sampling import draw_paths
from taylorformer_forecast.core.window import Window
from taylorformer_forecast.engine.calibration import fitting_stretch
from taylorformer_forecast.engine.windows import Batches, WindowMaker
from taylorformer_forecast.models.direct import DirectTaylorformer

__all__ = [
    "DEFAULT",
    "GENTLE",
    "SETTINGS",
    "SLOTS",
    "Prior",
    "adapt",
    "adapt_beside",
    "asks_for_training",
    "build_direct",
    "deciles",
    "load_prior",
    "pinball",
    "save_prior",
    "too_few",
]

DEFAULT = Path(__file__).parent.parent / "weights" / "default.safetensors"
SLOTS = 2  # seasons and cycles whose phases a prior sees, the shortest first
GENTLE = 0.02  # of the learning rate, for a prior itself: what one series teaches is little
NETWORK = ("d_model", "n_heads", "n_layers", "distribution", "n_derivative_neighbours", "attention")
# Parameters of a forecaster that a prior which forecasts alone has to agree with.
SETTINGS = (*NETWORK, "linear_path", "taylor_order", "order")
EARLY = 0.75  # part of a series that the linear forecast is fitted to, to see what a prior adds on the rest
TRUSTS = (0.0, 0.25, 0.5, 0.75, 1.0)
BESIDE = 0.5  # of the part that a prior deserves alone, beside a network that was trained on the series
STRETCHES = (0.8, 1.5)
FEWEST = 12  # windows of both parts
SHORT = 16  # horizons of values, of which a network learns no more than the prior of the package knows
N_WINDOWS, N_PATHS = 64, 100
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
        Seasons and calendar cycles whose phases it sees, the shortest first; zeros stand for missing ones.
    """

    weights: Mapping[str, Tensor]
    settings: Mapping[str, Any]
    trust: float
    slots: int = SLOTS

    def check(self, settings: Mapping[str, Any], defaults: Mapping[str, Any]) -> None:
        """Raise a ValueError if parameters ask for another network; those at their defaults ask for none."""
        for name, own in self.settings.items():
            if name in settings and settings[name] not in (own, defaults[name]):
                raise ValueError(
                    f"{name}={settings[name]!r}, but the network of pretrained has {name}={own!r}: "
                    f"leave it at that, or take pretrained=None"
                )

    @property
    def full_settings(self) -> dict[str, Any]:
        """Settings and slots: what its network is built from."""
        return {**self.settings, "slots": self.slots}

    def write_into(self, net: DirectTaylorformer) -> None:
        """Replace the weights of a network, all but those of its linear forecast."""
        own = {name: value for name, value in net.state_dict().items() if not name.startswith(OWN)}
        if only := sorted(own.keys() ^ self.weights.keys()):
            raise ValueError(f"pretrained does not fit the network: only one of them has {only[0]}")
        for name, weight in self.weights.items():
            if own[name].shape != weight.shape:
                raise ValueError(
                    f"pretrained does not fit the network: {name} has shape {tuple(weight.shape)} in the "
                    f"file, and {tuple(own[name].shape)} here"
                )
        net.load_state_dict(self.weights, strict=False)


def build_direct(
    settings: Mapping[str, Any], forecast: LinearForecast, slots: int, n_phases: int, **options: Any
) -> DirectTaylorformer:
    """Build the network of a prior, before its weights are written into it.

    Parameters
    ----------
    settings, slots
        Those of the prior.
    forecast : LinearForecast
        What it is built around.
    n_phases : int
        Phases of seasons, those of one season after another: the first covariates of windows.
    **options
        Further arguments of :class:`~taylorformer_forecast.models.direct.DirectTaylorformer`.

    Returns
    -------
    DirectTaylorformer
        The network.
    """
    known = {name: settings[name] for name in NETWORK if name in settings}
    # Slopes are per context length: absent only if y jumps by 20 deviations in one step.
    known["derivative_clip"] = 20.0 * forecast.n_context
    return DirectTaylorformer(forecast, n_phases, **known, dim_covariates=2 * N_HARMONICS * slots, **options)


def too_few(n_values: int, horizon: int) -> bool:
    """Whether so many observed values teach a network no more than the prior of the package knows.

    Parameters
    ----------
    n_values : int
        Observed values of all series.
    horizon : int
        Targets of a training window.
    """
    return n_values < SHORT * horizon


def asks_for_training(trainer: Mapping[str, Any]) -> bool:
    """Whether arguments of a Lightning trainer ask for what only training gives; a limit of time does not.

    Parameters
    ----------
    trainer : mapping
        Arguments of ``pytorch_lightning.Trainer``.
    """
    if trainer.get("logger"):
        return True
    callbacks = trainer.get("callbacks") or []
    if not callbacks:
        return False
    from pytorch_lightning.callbacks import Callback, Timer  # loaded by whoever made a callback

    callbacks = [callbacks] if isinstance(callbacks, Callback) else callbacks
    return not all(isinstance(callback, Timer) for callback in callbacks)


@torch.no_grad()
def adapt(
    net: DirectTaylorformer, maker: WindowMaker, min_context: int, usual: float, keep: float = 1.0
) -> None:
    """Choose how much of what a prior adds to the linear forecast is taken, and how wide forecasts are.

    The linear forecast is fitted to the first three quarters of every series. On windows of the rest, which
    neither it nor the prior has seen, one number minimises the pinball loss. The other brings the coverage of
    the central 80 % half-way to what it should be.

    Parameters
    ----------
    net : DirectTaylorformer
        The network with the weights of the prior, not fitted yet. The numbers are put into it.
    maker : WindowMaker
        Cuts windows from the series.
    min_context : int
        Rows that precede the first target of a window, at least.
    usual : float
        How much of it is taken for series that are too short to tell.
    keep : float, default=1.0
        Fraction of every series to use.
    """
    if (trial := _Trial.of(net, maker, min_context, keep)) is None:
        _settle(net, usual, 1.0)
        return
    trust = TRUSTS[int(trial.losses().sum(1).argmin())]
    # One path less: two of 99 hold the central 80 % between them.
    paths = draw_paths(trial.taking(trust), N_PATHS - 1, torch.Generator().manual_seed(0)).paths
    fitting = fitting_stretch(paths, trial.window)
    # Half-way: windows overlap, and what lies ahead may differ from what was.
    _settle(net, trust, float(np.clip(np.sqrt(fitting), *STRETCHES)))


@torch.no_grad()
def adapt_beside(net: DirectTaylorformer, maker: WindowMaker, min_context: int, keep: float = 1.0) -> None:
    """Choose how much of what a prior adds is taken beside a network that is trained on the series.

    That learns some of the same: half of what :func:`adapt` would take is taken, and nothing if the loss is
    not lower by a standard error than without the prior, or the series are too short to tell. How wide
    forecasts are, the other network knows.

    Parameters
    ----------
    net, maker, min_context, keep
        See :func:`adapt`.
    """
    net.forecast.trust.fill_(0.0)
    if (trial := _Trial.of(net, maker, min_context, keep)) is None:
        return
    losses = trial.losses()
    best = int(losses.sum(1).argmin())
    gain = losses[0] - losses[best]
    # Windows that share targets tell the same.
    apart = min(len(gain), trial.n_starts / trial.window.n_targets)
    if gain.mean() > gain.std() / math.sqrt(apart):
        net.forecast.trust.fill_(BESIDE * TRUSTS[best])


@dataclass(frozen=True)
class _Trial:
    """A prior around a linear forecast that was fitted to early parts of series, and windows of the rest."""

    fitted: DirectTaylorformer
    window: Window
    n_starts: int  # windows that the rest has; ``window`` holds some of them

    @classmethod
    def of(cls, net: DirectTaylorformer, maker: WindowMaker, min_context: int, keep: float) -> _Trial | None:
        """Make a trial; None if series are too short for one."""
        split = EARLY * keep
        early, late = maker.starts(min_context, keep=split), maker.starts(min_context, skip=split, keep=keep)
        if min(len(early), len(late)) < FEWEST:
            return None
        some = late[torch.linspace(0, len(late) - 1, min(len(late), N_WINDOWS)).round().long()]
        window = maker.windows(some, keep)[0]
        if not window.targets[1].any():
            return None
        fitted = copy.deepcopy(net).eval()
        fitted.forecast.trust.fill_(1.0)
        fitted.start(*Batches(maker, early, len(early), last=split).sample())
        return cls(fitted, window, len(late))

    @cached_property
    def _parts(self) -> tuple[Tensor, Tensor, Tensor]:
        raw, center, unit = self.fitted.parts(self.window)
        return raw, center, unit.expand_as(center)

    def taking(self, trust: float) -> Distribution:
        """Forecasts with a part of what the prior adds."""
        raw, center, unit = self._parts
        return self.fitted.head(trust * raw, center, unit)

    def losses(self) -> Float[Tensor, "P B"]:
        """Pinball losses of all :data:`TRUSTS` on every window."""
        window = self.window
        found = (deciles(self.taking(choice), N_PATHS) for choice in TRUSTS)
        return torch.stack([pinball(levels, window).sum((1, 2)) for levels in found])


def _settle(net: DirectTaylorformer, trust: float, stretch: float) -> None:
    """Make a network start from a part of what its prior adds to the linear forecast.

    It is trained with all of what it adds, of which afterwards its own ``trust`` is taken. A prior that
    deserves less is reduced before; of one that deserves more, more is taken.
    """
    own = max(net.forecast.trust.item(), 1e-3)
    for parameter in net.layers.to_params.parameters():
        parameter.data.mul_(min(trust / own, 1.0))
    net.forecast.trust.fill_(max(trust, own))
    net.forecast.stretch.fill_(stretch)


def _levels(like: Tensor) -> Float[Tensor, " 9"]:
    """Levels of the deciles, in the type and on the device of values."""
    return torch.arange(1, 10, dtype=like.dtype, device=like.device) / 10


def deciles(marginals: Distribution, n_paths: int) -> Float[Tensor, "9 B T D"]:
    """Deciles of a batch of distributions, from draws that are the same in every call."""
    paths = draw_paths(marginals, n_paths, torch.Generator().manual_seed(0)).paths
    return torch.quantile(paths, _levels(paths), dim=1)


def pinball(found: Float[Tensor, "9 B T D"], window: Window) -> Float[Tensor, "B T D"]:
    """Mean pinball loss of deciles at every target, zero where it was not observed."""
    y, observed = window.targets
    levels = _levels(y)[:, None, None, None]
    error = y - found
    return torch.maximum(levels * error, (levels - 1) * error).mean(0) * observed


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
        name: (value.detach().half() if value.is_floating_point() else value).contiguous()
        for name, value in net.state_dict().items()
        if not name.startswith(OWN)
    }
    header = {"settings": dict(settings), "trust": trust, "slots": SLOTS, **about}
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
    >>> from taylorformer_forecast.engine.pretrained import load_prior
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
            tensors = {name: file.get_tensor(name) for name in sorted(file.keys())}
        weights = {n: v.float() if v.is_floating_point() else v for n, v in tensors.items()}
        return Prior(weights, dict(header["settings"]), float(header["trust"]), header.get("slots", SLOTS))
    except (SafetensorError, KeyError, TypeError, ValueError) as error:
        raise ValueError(f"pretrained={str(source)!r} is not a prior: {error}") from error
