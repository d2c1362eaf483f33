"""What a fit decided, in words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from taylorformer_forecast.calendar.cycles import SeasonalFeatures
from taylorformer_forecast.core.protocol import ForecastNet
from taylorformer_forecast.engine.strategy import KINDS, Strategy
from taylorformer_forecast.models.correction import CorrectionNet


@dataclass(frozen=True)
class Summary:
    """Decisions of a fit.

    Parameters
    ----------
    strategy : str
        "baseline", "corrected", "pretrained", "zero_shot", "train", "averaged" or "finetune". With "averaged"
        and "zero_shot", what follows is of the network alone; with "corrected", of the network that corrects.
    reason : str
        Why.
    network : str
        Class of the network; "CorrectionNet" corrects statistical forecasts.
    n_parameters : int
        Parameters of the network that gradients trained: in ``fit``, or before it came into the package.
    baseline : str
        What the network adds to: the class of a linear forecast, or "statistical forecasts"; empty without.
    context_length, horizon : int
        Points of a context, and targets of a training window. Statistics have no context: where these are
        all, the table has no row of it.
    seasons : tuple of str
        Calendar cycles, and seasons in steps.
    weight, inflation : float
        How much is taken of what the network adds (0: nothing, 1: all); the factor of widths that is set
        after training (1: as they are, 1.2: 20 % wider, 0.85: 15 % narrower).
    steps : int
        Optimiser steps of the fit.
    seconds : float
        Time of the fit.

    Examples
    --------
    >>> from taylorformer_forecast.engine.summary import Summary
    >>> print(Summary("train", "1000 values", "Taylorformer", 9, "", 24, 12, ("year",), 0.75, 1.0, 150, 2.0))
    strategy        train (1000 values)
    network         Taylorformer, 9 parameters
    context length  24
    horizon         12
    seasons         year
    calibration     weight 0.75, inflation 1.00
    training        150 steps, 2.0 s
    """

    strategy: str
    reason: str
    network: str
    n_parameters: int
    baseline: str
    context_length: int
    horizon: int
    seasons: tuple[str, ...]
    weight: float
    inflation: float
    steps: int
    seconds: float

    def __str__(self) -> str:
        around = f" around {self.baseline}" if self.baseline else ""
        rows = {
            "strategy": f"{self.strategy} ({self.reason})",
            "network": f"{self.network}{around}, {self.n_parameters:,} parameters",
            "context length": f"{self.context_length}" if self._has_context else "",
            "horizon": f"{self.horizon}",
            "seasons": ", ".join(self.seasons) or "none",
            "calibration": f"weight {self.weight:.2f}, inflation {self.inflation:.2f}",
            "training": f"{self.steps} steps, {self.seconds:.1f} s",
        }
        return "\n".join(f"{name:<16}{text}" for name, text in rows.items() if text)

    @property
    def _has_context(self) -> bool:
        """Whether a network forecasts from a context: statistics take what they need."""
        return KINDS[self.strategy].has_network


def summarise(
    net: ForecastNet | CorrectionNet | None,
    strategy: Strategy,
    *,
    context_length: int,
    horizon: int,
    seasonal: SeasonalFeatures | None,
    steps: int,
    seconds: float,
) -> Summary:
    """Collect what a fit decided.

    Parameters
    ----------
    net : ForecastNet or CorrectionNet, optional
        The fitted network, or that which corrects statistical forecasts; none where these are all.
    strategy : Strategy
        How it came to be.
    context_length, horizon : int
        Its sizes.
    seasonal : SeasonalFeatures, optional
        Calendar cycles and further seasons, if there are any.
    steps : int
        Optimiser steps.
    seconds : float
        Time of the fit.

    Returns
    -------
    Summary
        For ``summary()`` of both hosts and for the log.
    """
    if not strategy.kind.has_network:
        weight = 0.0 if net is None else cast("CorrectionNet", net).weight
        baseline, inflation = "statistical forecasts", 1.0
    else:
        trained = cast("ForecastNet", net)
        calibration = trained.calibration  # of mixtures the weight is that of the mean
        weight = float(calibration.weight * calibration.mean_weight)
        inflation = float(calibration.inflation)
        baseline = "" if trained.baseline is None else type(trained.baseline).__name__
    parameters = [] if net is None else [p for p in net.parameters() if p.requires_grad]
    name = "none" if net is None else type(net).__name__
    return Summary(
        strategy.name,
        strategy.reason,
        name,
        sum(p.numel() for p in parameters),
        baseline,
        context_length,
        horizon,
        () if seasonal is None else seasonal.names,
        weight,
        inflation,
        steps,
        seconds,
    )
