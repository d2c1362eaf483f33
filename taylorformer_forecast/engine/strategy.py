"""Whether a series is left to the pretrained network, or a network is trained on it."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from taylorformer_forecast.defaults import MIN_HORIZONS_TO_TRAIN

__all__ = ["STRATEGIES", "Strategy", "choose_strategy", "log_decision", "obstacle_of_options"]

STRATEGIES = ("auto", "baseline", "pretrained", "train", "finetune")

logger = logging.getLogger("taylorformer_forecast")


@dataclass(frozen=True)
class Strategy:
    """How a network comes to forecast a series.

    Parameters
    ----------
    name : {"baseline", "pretrained", "train", "finetune"}
        Statistical forecasts without a network; the pretrained network as it is; a new network, trained on
        the series; the pretrained network, trained further on the series.
    reason : str
        Why.
    """

    name: str
    reason: str

    @property
    def is_pretrained(self) -> bool:
        """Whether the network starts from pretrained weights."""
        return self.name in ("pretrained", "finetune")


def choose_strategy(
    asked: str, n_values: int, horizon: int, obstacle: str | None = None, short: str = "pretrained"
) -> Strategy:
    """Choose how series are forecast: as asked, or by the data alone.

    No parameter of training or of a network counts, whatever its value: a search over learning rates compares
    one kind of model.

    Parameters
    ----------
    asked : {"auto", "baseline", "pretrained", "train", "finetune"}
        "auto" trains no network where there are fewer observed values than sixteen horizons, unless
        something stands against that.
    n_values : int
        Observed values that count: in sktime those of the longest series, in darts those of all.
    horizon : int
        Targets of a training window.
    obstacle : str, optional
        What cannot be had without training, if anything: covariates, another distribution.
    short : {"baseline", "pretrained"}, default="pretrained"
        What "auto" takes for short series.

    Returns
    -------
    Strategy
        What is done, and why.

    Raises
    ------
    ValueError
        If there is no such strategy, or one is asked for that cannot do it.

    Examples
    --------
    >>> from taylorformer_forecast.engine.strategy import choose_strategy
    >>> choose_strategy("auto", n_values=100, horizon=12).name
    'pretrained'
    >>> choose_strategy("auto", n_values=1000, horizon=12).reason
    '1000 values are at least 16 horizons of 12'
    """
    if asked not in STRATEGIES:
        raise ValueError(f"strategy={asked!r} is not one of {', '.join(STRATEGIES)}")
    if asked != "auto":
        if obstacle and asked != "train":
            raise ValueError(
                f"strategy={asked!r}: {obstacle}; take strategy='train', or 'auto', which trains then"
            )
        return Strategy(asked, f"strategy={asked!r}")
    few = n_values < MIN_HORIZONS_TO_TRAIN * horizon
    compared = "fewer than" if few else "at least"
    size = f"{n_values} values are {compared} {MIN_HORIZONS_TO_TRAIN} horizons of {horizon}"
    if few and obstacle is None:
        return Strategy(short, size)
    return Strategy("train", size if obstacle is None else obstacle)


def obstacle_of_options(options: Mapping[str, Any], distribution: str, own: str) -> str | None:
    """What the pretrained network cannot do of what the options of a model ask for.

    Parameters
    ----------
    options : mapping
        Options of the model; those that matter here are ``linear_path`` and ``order``.
    distribution, own : str
        The distribution that is asked for, and that of the pretrained network.

    Returns
    -------
    str or None
        In words; None if there is nothing.

    Examples
    --------
    >>> from taylorformer_forecast.engine.strategy import obstacle_of_options
    >>> obstacle_of_options({"order": "random"}, "studentt", "studentt")
    "order='random', while the pretrained network forecasts in order of time"
    """
    if options.get("order", "time") != "time":
        return f"order={options['order']!r}, while the pretrained network forecasts in order of time"
    if distribution != own:
        return f"distribution={distribution!r}, while the pretrained network has {own!r}"
    if not options.get("linear_path", True):
        return "linear_path=False, while the pretrained network needs it"
    return None


def log_decision(text: str) -> None:
    """Write one INFO record of what a fit decided."""
    logger.info(text)
