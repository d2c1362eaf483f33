"""Shrinkage targets: forecasts of few parameters, as linear maps from a context.

Each takes contexts and what followed them, and returns the map of its kind with the least squared error.
"""

from __future__ import annotations

import torch

from taylorformer_forecast.baselines.ridge import Contexts, Known, Steps, StepWeights
from taylorformer_forecast.core.window import evenly
from taylorformer_forecast.defaults import (
    DEVIATION_DECAY,
    MULTIPLE_OF_SEASON,
    SEASON_NUMBERS,
    SEASONAL_GAP,
    TARGET_DAMPINGS,
    TARGET_LEVELS,
    TARGET_SLOPES,
)


def seasonal_naive(past: Contexts, y: Steps, observed: Known) -> StepWeights:
    """Map that repeats the last 1, 2, ... values, whichever number of them is best.

    Examples
    --------
    >>> import torch
    >>> from taylorformer_forecast.baselines.shrinkage import seasonal_naive
    >>> x = torch.arange(14.0).remainder(3).unfold(0, 7, 1)
    >>> seasonal_naive(x[:, :4], x[:, 4:], torch.ones(8, 3, dtype=torch.bool)).tolist()
    [[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """
    length, steps = past.shape[1], torch.arange(y.shape[1])
    seen = observed.to(y.dtype)
    # Squared errors of taking a value of the past for a value ahead, summed over windows; without the squares
    # of the values ahead, which are the same for all periods.
    gain = past.square().mT @ seen - 2 * past.mT @ (y * seen)
    errors = torch.stack([gain[length - p + steps % p, steps].sum() for p in range(1, length + 1)])
    rounding = 1e-9 * (y * seen).square().sum()
    return _repeat(int((errors <= errors.min() + rounding).nonzero()[0]) + 1, past, len(steps))


def _repeat(period: int, past: Contexts, n_steps: int) -> StepWeights:
    """Map that repeats the last values."""
    length, steps = past.shape[1], torch.arange(n_steps)
    repeat = past.new_zeros(length, n_steps)
    repeat[length - period + steps % period, steps] = 1.0
    return repeat


def seasonal_gaps(past: Contexts) -> tuple[int, int]:
    """Season of contexts, and how many steps a gap has at least that is better filled by it than by a line.

    A season is the number of steps after which values are much nearer than usual, beyond those that are near
    as the series is smooth. Without one both numbers are 1.

    Examples
    --------
    >>> import torch
    >>> from taylorformer_forecast.baselines.shrinkage import seasonal_gaps
    >>> wave = torch.sin(torch.arange(60.0) * torch.pi / 6)
    >>> seasonal_gaps(wave.unfold(0, 30, 1)), seasonal_gaps(torch.arange(60.0).unfold(0, 30, 1))
    ((12, 1), (1, 1))
    """
    few = past[evenly(len(past), max(1, SEASON_NUMBERS // past.shape[1]))]
    lags = range(1, 1 + 2 * past.shape[1] // 3)
    if len(lags) < 2:
        return 1, 1
    apart = torch.stack([(few[:, lag:] - few[:, :-lag]).square().mean() for lag in lags])
    usual = apart.median()
    first = int((apart >= usual).nonzero()[0])
    # Multiples of a season are as near, but for chance.
    season = lags[first + int((apart[first:] <= MULTIPLE_OF_SEASON * apart[first:].min()).nonzero()[0])]
    if apart[season - 1] >= SEASONAL_GAP * usual:
        return 1, 1

    def off(x: Contexts, half: int) -> float:
        """Mean square of the middle of a gap beside the line between its ends."""
        return (x[:, half:-half] - (x[:, 2 * half :] + x[:, : -2 * half]) / 2).square().mean().item()

    change = few[:, season:] - few[:, :-season]
    for half in range(1, (change.shape[1] + 1) // 2):
        if off(change, half) < off(few, half):
            return season, 2 * half - 1
    return season, season


def decaying_seasonal_naive(past: Contexts, y: Steps, observed: Known) -> StepWeights:
    """Map that repeats the last values and goes on from the last one.

    Where that differs from the value a period before, a part of the difference, by least squares, is added to
    the forecasts, less and less further ahead.

    Examples
    --------
    >>> import torch
    >>> from taylorformer_forecast.baselines.shrinkage import decaying_seasonal_naive
    >>> x = torch.randn(50, 4).double()
    >>> beyond = 0.6 * torch.tensor([0.9, 0.81]) * (x[:, 3:] - x[:, 1:2])
    >>> found = decaying_seasonal_naive(x, x[:, 2:] + beyond, torch.ones(50, 2, dtype=torch.bool))
    >>> found.abs().round(decimals=2).tolist()  # of the second value it takes that much away
    [[0.0, 0.0], [0.54, 0.49], [1.0, 0.0], [0.54, 1.49]]
    """
    length, steps = past.shape[1], torch.arange(y.shape[1])
    seen, decay = observed.to(y.dtype), DEVIATION_DECAY ** (steps + 1.0).to(y.dtype)
    best, chosen, weight = torch.inf, 0, y.new_zeros(())
    for period in range(1, length):
        error = (y - past[:, length - period + steps % period]) * seen
        beyond = (past[:, -1] - past[:, -1 - period])[:, None] * decay * seen
        part = ((error * beyond).sum() / beyond.square().sum().clamp_min(1e-9)).clamp(0.0, 1.0)
        square = (error - part * beyond).square().sum().item()
        if square < (1 - 1e-9) * best:
            best, chosen, weight = square, period, part
    if not chosen:  # a single value
        return past.new_zeros(length, len(steps))
    found = _repeat(chosen, past, len(steps))
    found[-1] += weight * decay
    found[-1 - chosen] -= weight * decay
    return found


def damped_trend(past: Contexts, y: Steps, observed: Known) -> StepWeights:
    """Map of exponential smoothing with a damped trend, by the best of 252 weights.

    Source: Gardner and McKenzie, "Forecasting trends in time series", 1985. The level starts at the first
    value, and the trend at zero.

    Examples
    --------
    >>> import torch
    >>> from taylorformer_forecast.baselines.shrinkage import damped_trend
    >>> x = torch.arange(20.0).unfold(0, 8, 1)
    >>> map = damped_trend(x[:, :5], x[:, 5:], torch.ones(13, 3, dtype=torch.bool))
    >>> (x[:1, :5] @ map).round(decimals=3).tolist()
    [[5.0, 6.0, 7.0]]
    """
    length = past.shape[1]
    weights = (torch.tensor(v, dtype=past.dtype) for v in (TARGET_LEVELS, TARGET_SLOPES, TARGET_DAMPINGS))
    new, turn, damping = torch.cartesian_prod(*weights).mT[:, :, None]
    eye = torch.eye(length, dtype=past.dtype)
    level, trend = eye[:1].expand(len(new), -1), past.new_zeros(len(new), length)  # as sums of past values
    for k in range(1, length):
        before = level
        level = new * eye[k] + (1 - new) * (level + damping * trend)
        trend = turn * (level - before) + (1 - turn) * damping * trend
    ahead = damping.pow(torch.arange(1, y.shape[1] + 1, dtype=past.dtype)).cumsum(1)
    levels, trends = past @ level.mT, past @ trend.mT
    errors = [
        ((y - levels[:, k, None] - trends[:, k, None] * ahead[k]) * observed).square().sum()
        for k in range(len(new))
    ]
    best = int(torch.stack(errors).argmin())
    return level[best][:, None] + trend[best][:, None] * ahead[best]
