"""Families of members: a function for each kind, which returns what its members forecast from every origin.

Some smooth streams, a series as it is and seasonally adjusted by differences and by factors, and forecast
along a line: three tensor operations for a step, so that all steps never have to be held at once. Forecasts
of the others are held: these are few.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor

from taylorformer_forecast.baselines.autoregression import autoregression
from taylorformer_forecast.baselines.bounds import positive_so_far
from taylorformer_forecast.baselines.seasonal import from_level, repeat_mean, repeat_season, seasonal
from taylorformer_forecast.baselines.smoothing import Grid, slope_so_far, smooth
from taylorformer_forecast.defaults import (
    ERROR_MEMORIES,
    FADING_LEVELS,
    FAMILY_PRIOR,
    GROWTH_PRIOR,
    INDEX_WIDTH,
    LONGEST_REGRESSED_SEASON,
    MEMBER_LEVEL_POWER,
    REGRESSION_CYCLES,
    REPEATED_LEVEL,
    SMOOTHING_LEVELS,
    THETA_SLOPE,
    UNDAMPED_PRIOR,
)

__all__ = ["FAMILIES", "GROUPS", "Adjusted", "Group", "Lines", "adjusted", "levels_and_trends"]

FAMILIES = tuple(FAMILY_PRIOR)


@dataclass(frozen=True)
class Adjusted:
    """A batch of series, as they are or without a season.

    Parameters
    ----------
    x : Tensor of shape (B, n)
        Values without the season.
    index : Tensor of shape (B, n, H), optional
        Seasonal indices of the steps ahead of every origin, or their logarithms; None without a season.
    known : bool Tensor of shape (B, n)
        Origins from which the season is known.
    multiplicative : bool
        Whether forecasts are multiplied by the indices.
    rank : int
        See ``Members``.
    season : int
        Steps of the season, 1 for none.
    """

    x: Float[Tensor, "B n"]
    index: Float[Tensor, "B n H"] | None
    known: Bool[Tensor, "B n"]
    multiplicative: bool
    rank: int = 0
    season: int = 1


def adjusted(y: Float[Tensor, "B n"], seasons: Sequence[int], horizon: int) -> list[Adjusted]:
    """The series as it is, then adjusted by differences and by factors for every season.

    A season of which the one before it is no part, as weeks are none of a year of days, is that of the series
    without the one before, and its indices are moving averages: single days of few years say little.

    Examples
    --------
    >>> import torch
    >>> from taylorformer_forecast.baselines.families import adjusted
    >>> y = torch.tensor([1.0, 3.0, 2.0, 4.0]).repeat(5)[None].double()
    >>> [(one.season, one.multiplicative) for one in adjusted(y, (4,), 6)]
    [(1, False), (4, False), (4, True)]
    >>> adjusted(y, (4,), 6)[1].x[0, -4:].round(decimals=6).tolist()
    [2.5, 2.5, 2.5, 2.5]
    """
    found = [Adjusted(y, None, torch.ones_like(y, dtype=torch.bool), False)]
    positive = positive_so_far(y)
    logs = torch.where(y > 0, y, torch.nan).log()
    for number, season in enumerate(seasons):
        apart = number > 0 and season % seasons[number - 1] != 0
        sums, products = found[-2:] if apart else (found[0], found[0])
        log_x = torch.where(logs.isnan(), torch.nan, products.x.log()) if apart else logs
        width = 2 * int(INDEX_WIDTH * season / 2) + 1 if apart else 1
        both = seasonal(torch.cat([sums.x, log_x]), season, horizon, width)
        (rest, log_rest), (index, log_index), (known, log_known) = (
            part.tensor_split(2) for part in (both.adjusted, both.index, both.known)
        )
        if sums.index is not None and products.index is not None:
            index, log_index = index + sums.index, log_index + products.index
        rank = 2 * number + 2
        found.append(Adjusted(rest, index, known & sums.known, False, rank, season))
        # A value that has no logarithm is smoothed as it is; origins after it have no forecast.
        x = torch.where(logs.isnan(), y, log_rest.exp())
        known = log_known & products.known & positive
        found.append(Adjusted(x, log_index, known, True, rank, season))
    return found


@dataclass(frozen=True)
class Lines:
    """Members of a family that forecast every stream by ``base + slope * growth[h]``.

    Parameters
    ----------
    family : str
        Its name, one of ``FAMILIES``.
    base, slope : Tensor of shape (B, n, K, G)
        Of K streams and G members of each.
    growth : Tensor of shape (H, G)
        What multiplies the slope.
    prior : Tensor of shape (G,)
        Logarithm of the weight in the family before errors are known.
    of_season : bool, default=False
        Whether they count with a season only.
    """

    family: str
    base: Float[Tensor, "B n K G"]
    slope: Float[Tensor, "B n K G"]
    growth: Float[Tensor, "H G"]
    prior: Float[Tensor, " G"]
    of_season: bool = False


@dataclass(frozen=True)
class Group:
    """Members of a family that know the same of a series.

    Parameters
    ----------
    family : str
        Its name, one of ``FAMILIES``.
    forecasts : Tensor of shape (B, n, P, H)
        Of P members; where they are NaN, those of the last group of a lower rank take their place.
    known : bool Tensor of shape (B, n)
        Origins that have forecasts of their own; losses at others are mostly forgiven to seasonal members.
    counts : bool Tensor of shape (B, n)
        Origins from which the members may have weight.
    season : int
        Steps of the season they count for, 1 for none.
    rank : int
        See ``Members``.
    prior : float, default=0.0
        Logarithm of the weight in the family before errors are known.
    """

    family: str
    forecasts: Float[Tensor, "B n P H"]
    known: Bool[Tensor, "B n"]
    counts: Bool[Tensor, "B n"]
    season: int = 1
    rank: int = 0
    prior: float = 0.0


def levels_and_trends(y: Float[Tensor, "B n"], streams: Sequence[Adjusted], horizon: int) -> list[Lines]:
    """Exponential smoothing, Theta and damped trends of every stream."""
    observed, grid = ~y.isnan(), Grid.default(y.device)
    time = torch.arange(y.shape[1], dtype=y.dtype, device=y.device)
    x = torch.stack([*(s.x for s in streams), time.expand_as(y)], 1)
    flat = observed[:, None].expand_as(x).flatten(0, 1)
    level, trend = (v.unflatten(0, x.shape[:2]).transpose(1, 2) for v in smooth(x.flatten(0, 1), flat, grid))
    plain = ~grid.has_trend
    age = time[:, None] - level[:, :, -1, plain]  # mean age of the values in a level
    level, trend = level[:, :, :-1], trend[:, :, :-1]
    slopes = [slope_so_far(s.x.where(observed, torch.nan))[0] for s in streams]
    line = THETA_SLOPE * torch.stack(slopes, 2)[..., None]
    smoothed = level[..., plain]
    steps = torch.arange(1, horizon + 1, dtype=y.dtype, device=y.device)[:, None]
    each = steps.expand(-1, smoothed.shape[3])
    damped = (grid.damping[~plain] ** steps).cumsum(0)
    prior = MEMBER_LEVEL_POWER * grid.level.log()
    undamped = (grid.damping[~plain] == 1).to(prior)
    of_trends = prior[~plain] + math.log(UNDAMPED_PRIOR) * undamped
    prior = prior[plain]
    return [
        Lines("smoothing", smoothed, torch.zeros_like(smoothed), each, prior),
        Lines("theta", smoothed + line * age[:, :, None], line.expand_as(smoothed), each, prior),
        Lines("damped trend", level[..., ~plain], trend[..., ~plain], damped, of_trends),
    ]


def fading_errors(smoothed: Float[Tensor, "B n K G"], horizon: int) -> Lines:
    """Slow levels, and the error that the last value was of them, which fades with the steps ahead.

    They stand for an autoregression where the only season is too long for one, and count with a season only:
    the last error of a random walk does not fade.

    Parameters
    ----------
    smoothed : Tensor of shape (B, n, K, G)
        Levels of every stream, by ``SMOOTHING_LEVELS``; the last is the latest value.
    horizon : int
        Number of steps ahead.

    Examples
    --------
    >>> import torch
    >>> from taylorformer_forecast.baselines.families import fading_errors
    >>> levels = torch.tensor([2.0, 2.0, 2.0, 2.0, 4.0, 5.0, 10.0]).double().expand(1, 1, 1, -1)
    >>> found = fading_errors(levels, 4)
    >>> (found.base + found.slope * found.growth)[0, 0, :, 0].round(decimals=1).tolist()  # 8 above the level
    [8.4, 7.1, 6.1, 5.3]
    """
    slow = smoothed[..., [SMOOTHING_LEVELS.index(level) for level in FADING_LEVELS for _ in ERROR_MEMORIES]]
    memory = smoothed.new_tensor(ERROR_MEMORIES * len(FADING_LEVELS))
    fading = memory ** torch.arange(1, horizon + 1, device=memory.device)[:, None]
    return Lines("smoothing", slow, smoothed[..., -1:] - slow, fading, torch.zeros_like(memory), True)


def repetitions(
    y: Float[Tensor, "B n"], streams: Sequence[Adjusted], seasons: Sequence[int], horizon: int
) -> list[Group]:
    """Seasonal naive forecasts, one for each season; of longer ones also decayed means of their cycles.

    To the first of these the last error is added, which fades; the second have the shorter season apart. The
    shortest season is repeated with steady growth, too, until indices have been known for a cycle.
    """
    found = []
    for number, season in enumerate(seasons or (1,)):
        repeats = [repeat_season(y, season, horizon)]
        if number:
            # A week of hours repeats from the level of today. Days of a year are other days of the week: the
            # mean of their years repeats without the week, from the level of the last ones.
            less = streams[2 * number - 1]
            assert less.index is not None
            x = torch.where(less.known & ~y.isnan(), less.x, torch.nan)
            slow = from_level(x, repeat_mean(x, season, horizon), REPEATED_LEVEL) + less.index
            repeats = [from_level(y, repeats[0], 1.0), slow]
        always, rank = torch.ones_like(y, dtype=torch.bool), 2 * number + 1 if seasons else 0
        if seasons and not number:
            # Of the highest rank, and first: for no other member it stands in.
            own, last = repeats[0] + steady_growth(y, season, horizon), 2 * len(seasons) + 1
            young, prior = streams[1].known.cumsum(1) < season, math.log(GROWTH_PRIOR)
            known = ~own[..., 0].isnan()
            found.append(Group("seasonal naive", own[:, :, None], known, young, season, last, prior))
        for own in repeats:
            found.append(Group("seasonal naive", own[:, :, None], ~own[..., 0].isnan(), always, season, rank))
    return found


def steady_growth(y: Float[Tensor, "B n"], season: int, horizon: int) -> Float[Tensor, "B n H"]:
    """Growth from the last cycle to those ahead, as far as it is much the same at all places of a season.

    It is the mean of the changes of the last cycle, from one season before, and counts as far as its square
    is beyond their variance.

    Examples
    --------
    >>> import torch
    >>> from taylorformer_forecast.baselines.families import steady_growth
    >>> y = torch.tensor([[1.0, 5.0, 3.0, 7.0, 5.0, 9.0], [1.0, 5.0, 4.0, 4.0, 2.0, 6.0]]).double()
    >>> steady_growth(y, 2, 3)[:, -1].tolist()
    [[2.0, 2.0, 4.0], [0.0, 0.0, 0.0]]
    """
    n = y.shape[1]
    change = F.pad(y[:, season:] - y[:, :-season], (season, 0), value=torch.nan)[:, :n]
    known = ~change.isnan()
    each = torch.where(known, change, 0.0)
    sums = torch.stack([known.to(y), each, each.square()]).cumsum(-1)
    count, total, squares = sums - F.pad(sums, (season, 0))[..., :n]
    mean = total / count.clamp_min(1)
    variance = (squares / count.clamp_min(1) - mean.square()).clamp_min(0)
    part = (1 - variance / mean.square().clamp_min(1e-300)).clamp_min(0)
    cycles = torch.arange(horizon, device=y.device) // season + 1
    return (mean * part)[..., None] * cycles


def autoregressions(
    y: Float[Tensor, "B n"], streams: Sequence[Adjusted], seasons: Sequence[int], horizon: int
) -> list[Group]:
    """Regress on the longest season, if it is short enough and series are long."""
    season = max(seasons, default=LONGEST_REGRESSED_SEASON + 1)
    if season > LONGEST_REGRESSED_SEASON or y.shape[1] < REGRESSION_CYCLES * season:
        return []
    forecasts, counts = autoregression(y, season, horizon)
    # Of the highest rank: for no other member it stands in, as a batch of shorter series lacks it.
    always, rank = torch.ones_like(counts), 2 * len(seasons) + 1
    return [Group("seasonal autoregression", forecasts, always, counts, season, rank)]


GROUPS = (repetitions, autoregressions)  # of all members that are no lines
