"""Pretrained networks: weights that were trained on other series, in files that hold numbers only.

The baseline that such a network corrects is fitted to every series anew, in closed form, and is not in the
file.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike, fspath
from typing import Any, Self

from torch import Tensor, nn

from taylorformer_forecast.baselines.linear import LinearBaseline
from taylorformer_forecast.core.families import find_family
from taylorformer_forecast.defaults import LARGEST_SLOPE, MAX_CYCLES, N_HARMONICS
from taylorformer_forecast.engine.statistics.correction import holds_correction
from taylorformer_forecast.engine.strategy import PRETRAINED
from taylorformer_forecast.engine.weights_file import (
    PACKAGED,
    check_fraction,
    check_sizes,
    read_weights,
    write_weights,
)
from taylorformer_forecast.models.direct import DirectTaylorformer

DEFAULT = PACKAGED / "default.safetensors"
# What a file says of its network. Attention is always full, which reaches from far targets to the context.
SETTINGS = ("d_model", "n_heads", "n_layers", "distribution", "n_derivative_neighbours")
USUAL_DISTRIBUTION = "studentt"  # of a network, where no file says another
HEADER = "pretrained"  # name of the header of its files
OWN = ("baseline.", "calibration.")  # parts of a network that are set for every series anew


@dataclass(frozen=True)
class Pretrained:
    """Weights of a network, and what they are weights of.

    Parameters
    ----------
    weights : mapping of str to Tensor
        All parameters but those of the baseline and of the calibration.
    settings : mapping
        Values of :data:`SETTINGS`.
    weight : float
        Part of what the network adds to its baseline that is taken for series too short to choose it.
    max_cycles : int, default=2
        Seasons and calendar cycles whose phases it sees, the shortest first; zeros stand for missing ones.
    """

    weights: Mapping[str, Tensor]
    settings: Mapping[str, Any]
    weight: float
    max_cycles: int = MAX_CYCLES

    @property
    def distribution(self) -> str:
        """Name of the family of its predictive distributions."""
        return str(self.settings["distribution"])

    def build(
        self, n_context: int, horizon: int, n_phases: int, shift: int = 0, **options: Any
    ) -> DirectTaylorformer:
        """Build the network with these weights around a baseline that is not fitted yet.

        Parameters
        ----------
        n_context, horizon, shift : int
            Those of the baseline.
        n_phases : int
            Phases of seasons, those of one season after another: the first covariates of windows.
        **options
            Further arguments of :class:`~taylorformer_forecast.models.direct.DirectTaylorformer`.
        """
        net = build_direct(self.settings, self.max_cycles, n_context, horizon, n_phases, shift, **options)
        self.write_into(net)
        return net

    def write_into(self, net: nn.Module) -> None:
        """Replace the weights of a network, all but what is set for every series anew.

        Raises
        ------
        ValueError
            If they are weights of another network.
        """
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
    settings: Mapping[str, Any],
    max_cycles: int,
    n_context: int,
    horizon: int,
    n_phases: int,
    shift: int = 0,
    **options: Any,
) -> DirectTaylorformer:
    """Build the network of a file, before its weights are written into it.

    Parameters
    ----------
    settings : mapping
        Values of :data:`SETTINGS`; others are ignored.
    max_cycles : int
        Seasons whose phases it sees.
    n_context, horizon, n_phases, shift, **options
        See :meth:`Pretrained.build`.

    Returns
    -------
    DirectTaylorformer
        The network.
    """
    known = {name: settings[name] for name in SETTINGS if name in settings}
    clip = LARGEST_SLOPE * n_context  # slopes are per context length
    baseline = LinearBaseline(n_context, horizon, shift)
    width = 2 * N_HARMONICS * max_cycles
    net = DirectTaylorformer(
        baseline, dim_covariates=width, n_phases=n_phases, derivative_clip=clip, **known, **options
    )
    net.shared = {"settings": known, "max_cycles": max_cycles}
    return net


def save_pretrained(
    net: nn.Module, path: str | PathLike[str], settings: Mapping[str, Any], weight: float, **about: Any
) -> None:
    """Write the weights of a network in half precision.

    Parameters
    ----------
    net : nn.Module
        The network.
    path : str or Path
        A ``.safetensors`` file.
    settings : mapping
        Values of :data:`SETTINGS`.
    weight : float
        See :class:`Pretrained`.
    **about
        What else the file is to state: how it was made.
    """
    own = {name: value for name, value in net.state_dict().items() if not name.startswith(OWN)}
    header = {"settings": dict(settings), "weight": weight, "max_cycles": MAX_CYCLES, **about}
    write_weights(path, HEADER, own, header)


def load_pretrained(source: str | PathLike[str]) -> Pretrained:
    """Read the weights that the package carries, or those of a file.

    Parameters
    ----------
    source : "default", str or Path
        Which ones.

    Returns
    -------
    Pretrained
        Weights in single precision.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If the file holds no such weights.

    Examples
    --------
    >>> from taylorformer_forecast.engine.pretrained import load_pretrained
    >>> load_pretrained("default").distribution
    'studentt'
    """
    return read_weights(source, DEFAULT, HEADER, "pretrained network", _build)


def find_own(strategy: str, source: str | PathLike[str]) -> Pretrained | None:
    """Read the network of a file; None if it holds a correction, or the strategy reads no such network.

    Raises
    ------
    FileNotFoundError, ValueError
        See :func:`load_pretrained`; also where the strategy would not use the network.

    Examples
    --------
    >>> from taylorformer_forecast.engine.pretrained import find_own
    >>> find_own("train", "nowhere") is None
    True
    """
    if strategy in ("train", "corrected") or (strategy not in PRETRAINED and holds_correction(source)):
        return None
    return load_pretrained(source)


def _build(header: dict[str, Any], weights: dict[str, Tensor]) -> Pretrained:
    settings, max_cycles = dict(header["settings"]), header["max_cycles"]
    sizes = {"d_model", "n_heads", "n_layers"} | {"n_derivative_neighbours"} & settings.keys()
    check_sizes({**settings, "max_cycles": max_cycles}, sizes | {"max_cycles"})
    if not isinstance(settings["distribution"], str):
        raise ValueError("distribution is no name")
    find_family(settings["distribution"])
    return Pretrained(weights, settings, check_fraction(header["weight"]), max_cycles)


class SharedWeights:
    """What both hosts offer to share the weights of a network: files that hold numbers only."""

    def _network_to_share(self) -> DirectTaylorformer | None:
        """The network, if it is one that was built of a file."""
        raise NotImplementedError

    def save_pretrained(self, path: str | PathLike[str]) -> None:
        """Write the weights of the network to a file that others can load without risk.

        The file holds numbers in half precision, sizes and a checksum; no code and no series. Both hosts read
        it: :meth:`from_pretrained`, or ``strategy="pretrained", pretrained=path``. The baseline and the
        calibration are not in it, as they are fitted to every series anew.

        Parameters
        ----------
        path : str or path
            The file, by custom ``.safetensors``.

        Raises
        ------
        ValueError
            If the network is not a pretrained one: ``strategy="finetune"`` trains such a network further.

        Examples
        --------
        >>> import tempfile
        >>> from sktime.datasets import load_airline
        >>> from taylorformer_forecast.sktime import TaylorformerForecaster
        >>> y, path = load_airline(), tempfile.mkdtemp() + "/network.safetensors"
        >>> tuned = TaylorformerForecaster(strategy="finetune", max_steps=2, random_state=0).fit(y)
        >>> tuned.save_pretrained(path)
        >>> TaylorformerForecaster.from_pretrained(path, random_state=0).fit(y[:60]).strategy_
        'pretrained'
        """
        net = self._network_to_share()
        if net is None or net.shared is None:
            raise ValueError(
                "there is no pretrained network that could be saved: fit, or pretrain, with "
                "strategy='finetune' (or 'pretrained') first"
            )
        about = dict(net.shared)
        save_pretrained(net, path, about.pop("settings"), float(net.calibration.weight), **about)

    @classmethod
    def from_pretrained(cls, path: str | PathLike[str], *args: Any, **params: Any) -> Self:
        """An estimator with the weights of a file of :meth:`save_pretrained`, of either host.

        Parameters
        ----------
        path : str or path
            The file. Nothing in it is executed.
        *args, **params
            Parameters of the class; ``strategy="finetune"`` trains the weights further, ``"zero_shot"``
            averages with statistics, in the place of ``"pretrained"``.

        Returns
        -------
        estimator
            Not fitted. ``fit`` fits the baseline and the calibration to its series, and reads the file.

        Raises
        ------
        FileNotFoundError
            If there is no such file.
        ValueError
            If it holds something else, or is damaged, or another strategy is asked for.
        """
        load_pretrained(path)
        strategy = params.pop("strategy", "pretrained")
        if strategy not in PRETRAINED:
            raise ValueError(
                f"strategy={strategy!r}, but the weights of a file are for {', '.join(map(repr, PRETRAINED))}"
            )
        return cls(*args, **{**params, "strategy": strategy, "pretrained": fspath(path)})
