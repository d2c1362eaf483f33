"""Whether series are forecast by statistics, by a pretrained or trained network, or by their average."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from taylorformer_forecast.core.families import Family, find_family
from taylorformer_forecast.defaults import LEAST_WEIGHT_OF_OTHERS, MIN_HORIZONS_TO_TRAIN

__all__ = [
    "KINDS",
    "PRETRAINED",
    "REFUSABLE",
    "STATISTICAL",
    "STRATEGIES",
    "UNTRAINED",
    "WITH_STATISTICS",
    "Kind",
    "Strategy",
    "choose_strategy",
    "log_decision",
    "obstacle_of_options",
]


@dataclass(frozen=True)
class Kind:
    """What forecasts of a strategy consist of: of all true parts the average is taken.

    Parameters
    ----------
    statistics : bool
        Statistical forecasts, for which times have to be regular.
    corrects : bool
        Those are corrected by a pretrained network.
    pretrained : bool
        Forecasts of a network that starts from pretrained weights.
    trains : bool
        Forecasts of a network that is trained on the series.
    """

    statistics: bool = False
    corrects: bool = False
    pretrained: bool = False
    trains: bool = False

    @property
    def has_network(self) -> bool:
        """Whether a network forecasts, alone or in an average."""
        return self.pretrained or self.trains

    @property
    def averages(self) -> bool:
        """Whether forecasts of a network are averaged with statistical ones and analogues."""
        return self.statistics and self.has_network

    @property
    def trains_a_new_network(self) -> bool:
        """Whether training begins with nothing, so that the network may learn what covariates say."""
        return self.trains and not self.pretrained


KINDS = {
    "baseline": Kind(statistics=True),
    "corrected": Kind(statistics=True, corrects=True),
    "pretrained": Kind(pretrained=True),
    "zero_shot": Kind(statistics=True, corrects=True, pretrained=True),
    "train": Kind(trains=True),
    "averaged": Kind(statistics=True, corrects=True, trains=True),
    "finetune": Kind(pretrained=True, trains=True),
}


def _names(holds: Callable[[Kind], bool]) -> tuple[str, ...]:
    return tuple(name for name, kind in KINDS.items() if holds(kind))


STRATEGIES = ("auto", *KINDS)
REFUSABLE = tuple(name for name in KINDS if name != "train")  # what data or parameters can stand against
STATISTICAL = _names(lambda kind: not kind.has_network)
WITH_STATISTICS = _names(lambda kind: kind.statistics)
PRETRAINED = _names(lambda kind: kind.pretrained)
UNTRAINED = _names(lambda kind: not kind.trains)  # training has nothing to go on from

logger = logging.getLogger("taylorformer_forecast")


@dataclass(frozen=True)
class Strategy:
    """How a network comes to forecast a series.

    Parameters
    ----------
    name : {"baseline", "corrected", "pretrained", "zero_shot", "train", "averaged", "finetune"}
        Statistical forecasts without a network; the same, corrected by a pretrained network; the pretrained
        network around a linear forecast, as it is; the average of that, the corrected statistical forecasts
        and analogues; a new network, trained on the series; the average of that with the same; the
        pretrained network, trained further on the series.
    reason : str
        Why.
    statistics : float, default=0.5
        Weight of the statistical forecasts in an average.
    analogues : float, default=0.0
        Weight of analogues in it; the rest is the network's.
    least : int, default=0
        Observed values of a series that an average serves, where "auto" took it for some series of several:
        the others are forecast by statistics alone.
    """

    name: str
    reason: str
    statistics: float = 0.5
    analogues: float = 0.0
    least: int = 0

    @property
    def kind(self) -> Kind:
        """What its forecasts consist of."""
        return KINDS[self.name]

    def of_demand(self) -> Strategy:
        """Return the strategy for intermittent demand alone, of which an average would be statistical."""
        these = "all others" if self.least else "all"
        return Strategy("corrected", f"{self.reason}, but {these} are intermittent demand")

    @property
    def weight_of_others(self) -> float:
        """Weight in an average of all but the network."""
        return self.statistics + self.analogues

    @property
    def part_of_analogues(self) -> float:
        """Weight of analogues in the average of statistics and these."""
        return self.analogues / self.weight_of_others if self.analogues else 0.0

    def weighed(self, asked: str, statistics: float, analogues: float = 0.0) -> Strategy:
        """Return the same average with weights; "auto" leaves out what weighs next to nothing.

        Parameters
        ----------
        asked : str
            The strategy that was asked for.
        statistics, analogues : float
            The weights of statistics and of analogues, which forecasts of the past decide.

        Examples
        --------
        >>> from taylorformer_forecast.engine.strategy import Strategy
        >>> Strategy("averaged", "1000 values").weighed("auto", 0.3, 0.25).reason
        '1000 values; statistics weigh 0.30, analogues 0.25'
        >>> Strategy("averaged", "1000 values").weighed("auto", 0.02).name
        'train'
        """
        alone = asked == "auto" and not self.least and statistics + analogues < LEAST_WEIGHT_OF_OTHERS
        reason = f"{self.reason}; statistics weigh {statistics:.2f}"
        reason += f", analogues {analogues:.2f}" if analogues else ""
        name = "train" if alone else self.name
        return replace(self, name=name, reason=reason, statistics=statistics, analogues=analogues)


def choose_strategy(
    asked: str,
    n_observed: Sequence[int],
    horizon: int,
    obstacle: str | None = None,
    irregular: str | None = None,
) -> Strategy:
    """Choose how series are forecast: as asked, or by the data alone.

    No size of a network, learning rate or length of training counts, whatever its value: a search over these
    compares one kind of model. What only a new network can do counts: see ``obstacle``.

    Parameters
    ----------
    asked : {"auto", "baseline", "corrected", "pretrained", "zero_shot", "train", "averaged", "finetune"}
        "auto" decides by series. Those with fewer observed values than sixteen horizons are forecast by
        statistics, and no network is trained where there are no others. These are forecast by the average of
        a trained one with statistics, unless something stands against that. Many short series make no long
        one: a network that is trained on all of them forecasts each worse than the statistics of its own
        past.
    n_observed : sequence of int
        Observed values of each series and component.
    horizon : int
        Targets of a training window.
    obstacle : str, optional
        What cannot be had without training, if anything: covariates, another distribution.
    irregular : str, optional
        Why there can be no statistical forecasts, if anything: they need regular times. "auto" takes the
        pretrained network then, or trains one on long series.

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
    >>> choose_strategy("auto", [100, 90, 80], horizon=12).name
    'corrected'
    >>> choose_strategy("auto", [1000], horizon=12).name
    'averaged'
    >>> choose_strategy("auto", [1000, 90, 80], horizon=12).reason
    '1000 values are at least 16 horizons of 12, and statistics alone forecast 2 of 3 series, with fewer'
    >>> choose_strategy("auto", [1000], horizon=12, irregular="the times are not regular").name
    'train'
    """
    if asked not in STRATEGIES:
        raise ValueError(f"strategy={asked!r} is not one of {', '.join(STRATEGIES)}")
    if asked != "auto":
        against = obstacle or (irregular if asked in WITH_STATISTICS else None)
        if against and asked in REFUSABLE:
            remedy = "'train' or 'auto'" if obstacle else "'pretrained', 'train' or 'auto'"
            raise ValueError(f"strategy={asked!r}: {against}; take strategy={remedy}")
        return Strategy(asked, f"strategy={asked!r}")
    longest, least = max(n_observed), MIN_HORIZONS_TO_TRAIN * horizon
    few = longest < least
    compared = "fewer than" if few else "at least"
    size = f"{longest} values are {compared} {MIN_HORIZONS_TO_TRAIN} horizons of {horizon}"
    if few and obstacle is None:
        return Strategy("corrected" if irregular is None else "pretrained", size)
    if obstacle or irregular:
        return Strategy("train", obstacle or size)
    if n_short := sum(0 < n < least for n in n_observed):
        size += f", and statistics alone forecast {n_short} of {len(n_observed)} series, with fewer"
    return Strategy("averaged", size, least=least if n_short else 0)


DEMAND_OF_X = "whose effects on intermittent demand the pretrained network cannot use"


def obstacle_of_options(
    options: Mapping[str, Any], distribution: str | Family | None, own: str, given: str | None = None
) -> str | None:
    """What only a new network can do of what the options of a model ask for.

    Parameters
    ----------
    options : mapping
        Options of the model; those that matter here are ``linear_path`` and ``order``.
    distribution : str, Family or None
        The distribution that is asked for; None if it is no registered one.
    own : str
        That of the pretrained network.
    given : str, optional
        How the host is asked for the distribution, by default ``distribution='...'``.

    Returns
    -------
    str or None
        In words; None if there is nothing.

    Examples
    --------
    >>> from taylorformer_forecast.engine.strategy import obstacle_of_options
    >>> obstacle_of_options({"order": "random"}, "studentt", "studentt")
    "order='random', which only a new network can use"
    """
    if options.get("order", "time") != "time":
        return f"order={options['order']!r}, which only a new network can use"
    if distribution is None or find_family(distribution) != find_family(own):
        return f"{given or f'distribution={distribution!r}'}, which only a new network can have"
    if not options.get("linear_path", True):
        return "linear_path=False, which only a new network can use"
    return None


def log_decision(text: str) -> None:
    """Write one INFO record of what a fit decided."""
    logger.info(text)
