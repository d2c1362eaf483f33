"""Sizes of series of which some values may be missing, and where they begin."""

from __future__ import annotations

import numpy as np
import torch
from jaxtyping import Bool, Float

from taylorformer_forecast.baselines.bounds import bounds
from taylorformer_forecast.baselines.zeros import leading_zeros
from taylorformer_forecast.defaults import EFFECT_SPREAD_POWER, LARGEST_EFFECT_SPREAD, LEAST_EFFECT_LEVEL


def since_start(y: Float[np.ndarray, "*B n"]) -> Float[np.ndarray, "*B n"]:
    """Values without zeros before the first other one, as statistical forecasts see them.

    Examples
    --------
    >>> import numpy as np
    >>> from taylorformer_forecast.engine.effects.series_scale import since_start
    >>> since_start(np.array([0.0, 0.0, 3.0, 0.0])).tolist()
    [nan, nan, 3.0, 0.0]
    """
    return np.where(leading_zeros(torch.tensor(y)).numpy(), np.nan, y)


def mean_size(y: Float[np.ndarray, "*B n"]) -> Float[np.ndarray, " *B"]:
    """Mean absolute value of series, of which some may be missing."""
    return np.abs(np.nan_to_num(y)).sum(-1) / np.maximum((~np.isnan(y)).sum(-1), 1)


def deviation(y: Float[np.ndarray, "*B n"], length: int | None = None) -> Float[np.ndarray, " *B"]:
    """Standard deviation of series within windows of some ``length``, by default within all; 0 of constants.

    Windows that begin before the first value do not count, unless all do.

    Examples
    --------
    >>> import numpy as np
    >>> from taylorformer_forecast.engine.effects.series_scale import deviation
    >>> y = np.array([1.0, 3.0, 1.0, 3.0, 101.0, 103.0, 101.0, 103.0])
    >>> deviation(y).round().item(), deviation(y[:4], 2).round().item()
    (50.0, 1.0)
    """
    seen = ~np.isnan(y)
    mean = np.where(seen, y, 0.0).sum(-1, keepdims=True) / np.maximum(seen.sum(-1, keepdims=True), 1)
    rest, n = np.where(seen, y - mean, 0.0), y.shape[-1]
    size = n if length is None else min(length, n)
    every = np.stack([seen, rest, rest**2]).cumsum(-1)
    every = np.concatenate([np.zeros_like(every[..., :1]), every], -1)
    # A longer batch has more rows in front, and forecasts of a series do not depend on those.
    before = (~np.logical_or.accumulate(seen, -1)).sum(-1, keepdims=True)
    begun = np.arange(n + 1 - size) >= np.minimum(before, n - size)
    count, first, second = (every[..., size:] - every[..., : n + 1 - size]) * begun
    square = np.maximum(second - first**2 / np.maximum(count, 1), 0.0).sum(-1) / np.maximum(count.sum(-1), 1)
    found, largest = np.sqrt(square), np.abs(np.nan_to_num(y)).max(-1, initial=0.0)
    return np.where(found > 1e-13 * largest, found, 0.0)  # less is rounding


def bounds_with_effects(
    y: Float[np.ndarray, "B n"], demand: Bool[np.ndarray, " B"] | bool
) -> tuple[Float[np.ndarray, " B"], Float[np.ndarray, " B"]]:
    """Bounds of series with what covariates add; infinite for intermittent demand, whose mean they multiply.

    Examples
    --------
    >>> import numpy as np
    >>> from taylorformer_forecast.engine.effects.series_scale import bounds_with_effects
    >>> y = np.tile([1.0, 3.0, 2.5, 0.5], (2, 5))
    >>> [ends.tolist() for ends in bounds_with_effects(y, np.array([False, True]))]
    [[0.5, -inf], [3.0, inf]]
    """
    low, high = (end.numpy() for end in bounds(torch.as_tensor(y)))
    return np.where(demand, -np.inf, low), np.where(demand, np.inf, high)


def spread_with_effects(
    level: Float[np.ndarray, "*B"],
    added: Float[np.ndarray, "*B"],
    usual: Float[np.ndarray, "*B"],
    power: float | Float[np.ndarray, "*B"] = EFFECT_SPREAD_POWER,
) -> Float[np.ndarray, "*B"]:
    """Factor of the errors of values that are never negative, where covariates add more or less than usual.

    Errors of the past are those of days with and without a promotion together. They grow with a power of the
    level, and so do those of what a promotion adds.

    Parameters
    ----------
    level : ndarray
        Forecasts of the rest, without effects.
    added, usual : ndarray
        What covariates add there, and what they added to past values in the mean.
    power : float or ndarray
        The power: see :func:`~taylorformer_forecast.engine.effects.rows.spread_power`.

    Examples
    --------
    >>> import numpy as np
    >>> from taylorformer_forecast.engine.effects.series_scale import spread_with_effects
    >>> spread_with_effects(np.array([90.0, 90.0]), np.array([60.0, 0.0]), np.array([10.0, 10.0])).round(2)
    array([1.36, 0.92])
    """
    mean = np.maximum(level + usual, LEAST_EFFECT_LEVEL * level)
    ratio = np.where(level > 0, (level + added) / np.where(level > 0, mean, 1.0), 1.0)
    factor = np.maximum(ratio, LEAST_EFFECT_LEVEL) ** power
    return factor.clip(1 / LARGEST_EFFECT_SPREAD, LARGEST_EFFECT_SPREAD)
