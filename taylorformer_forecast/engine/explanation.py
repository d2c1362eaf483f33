"""What a forecast owes to its parts: differences of forecasts with the same random numbers."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any

from torch import nn

from taylorformer_forecast.core.protocol import ForecastNet
from taylorformer_forecast.engine.parameters import POSITIVE, check_rule


def split(
    forecast: Callable[[], Any], baseline: Callable[[], Any], without: Mapping[str, Callable[[], Any]]
) -> dict[str, Any]:
    """Split a forecast into baseline and network, and compare it with those without an input.

    Parameters
    ----------
    forecast, baseline : callable
        Return the forecast, and that of the baseline; of any type with a difference.
    without : mapping of str to callable
        By the name of an input, the forecast without it.

    Returns
    -------
    dict
        "forecast", "baseline", "network", then every input: how the forecast differs from that without it.

    Examples
    --------
    >>> from taylorformer_forecast.engine.explanation import split
    >>> split(lambda: 10, lambda: 7, {"price": lambda: 6})
    {'forecast': 10, 'baseline': 7, 'network': 3, 'price': 4}
    """
    whole, alone = forecast(), baseline()
    parts = {"forecast": whole, "baseline": alone, "network": whole - alone}
    return parts | {name: whole - predict() for name, predict in without.items()}


def lag_blocks(lags: int | None, length: int) -> dict[str, tuple[int, int]]:
    """Blocks of ``lags`` past values, counted backwards, by name; as half-open ranges from 0 to ``length``.

    Raises
    ------
    ValueError
        If ``lags`` is no positive whole number.

    Examples
    --------
    >>> from taylorformer_forecast.engine.explanation import lag_blocks
    >>> lag_blocks(12, 30)
    {'lags 1-12': (0, 12), 'lags 13-24': (12, 24), 'lags 25-30': (24, 30)}
    """
    check_rule("lags", lags, POSITIVE.or_none())
    if lags is None:
        return {}
    bounds = [*range(0, length, lags), length]
    return {f"lags {first + 1}-{last}": (first, last) for first, last in pairwise(bounds)}


def baseline_alone(network: ForecastNet) -> ForecastNet:
    """Return a copy of a network that adds nothing to its baseline."""
    alone = copy.deepcopy(network)
    alone.calibration.set(weight=0.0)
    return alone


def with_part(module: Any, name: str, part: nn.Module | None) -> Any:
    """Return a copy of a module with another part; all else is shared."""
    changed = copy.copy(module)
    changed._modules = {**module._modules, name: part}
    return changed
