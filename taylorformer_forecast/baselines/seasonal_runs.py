"""Runs of values that a season does not explain, as of months in which a shop was closed."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from taylorformer_forecast.baselines.seasonal import carry, in_cycles
from taylorformer_forecast.defaults import (
    LARGE_STEP,
    LEAST_PAST_CYCLES,
    LONGEST_RUN,
    SEASONAL_JUMP,
    SEASONAL_RUN_SIZE,
    SEASONAL_STEP_PART,
)


def seasonal_runs(
    rest: Float[Tensor, " n"], away: Float[Tensor, " n"], unit: Float[Tensor, " n"], lengths: range
) -> tuple[Bool[Tensor, " n"], Bool[Tensor, " n"]]:
    """Which values of a series without its season are in runs that begin or end with a jump and are over.

    Values of a run lie away from the level and the values around: one at least by three large steps, and all
    by half of that. Of a run that is over, two are so far; its jump is half of that distance and two large
    steps at least, and lasts.

    Parameters
    ----------
    rest : Tensor of shape (n,)
        Observed values less the season.
    away : Tensor of shape (n,)
        How far they lie above or, negative, below the range of the level and of values whole seasons apart.
    unit : Tensor of shape (n,)
        Large steps.
    lengths : range
        Of the runs that are sought.

    Returns
    -------
    found : Tensor of shape (n,)
        Which values are in runs of these lengths that are over.
    beyond : Tensor of shape (n,)
        Which values are in any run.

    Examples
    --------
    >>> import torch
    >>> from taylorformer_forecast.baselines.seasonal_runs import running_median, seasonal_runs
    >>> y = torch.tensor([1.0, 2.0] * 15)
    >>> y[12:16] -= 9
    >>> away = y - running_median(y)
    >>> seasonal_runs(y, away, torch.ones(30), range(2, 13))[0].nonzero()[:, 0].tolist()
    [12, 13, 14, 15]
    """
    n = len(rest)
    least = SEASONAL_RUN_SIZE * unit
    far = (away.abs() > least) & (unit > 0)
    found, beyond = torch.zeros_like(far), torch.zeros_like(far)
    if int(far.sum()) < 2:
        return found, beyond
    side = torch.where(away.abs() > least / 2, away.sign(), 0.0)
    jump = torch.nn.functional.pad(lasting_step(rest), (2, 1))  # to each value
    which, counts = side.unique_consecutive(return_counts=True)
    starts = counts.cumsum(0) - counts
    for sign, start, count in zip(which.tolist(), starts.tolist(), counts.tolist(), strict=True):
        end = start + count
        n_far = int(far[start:end].sum())
        beyond[start:end] = sign != 0 and n_far > 0
        if sign == 0 or n_far < 2 or count not in lengths or start < 3 or end > n - 3:
            continue
        ends = torch.cat([jump[start : start + 2], jump[end - 1 : end + 1]]).max()
        least_jump = torch.maximum(away[start:end].abs().max() / 2, SEASONAL_JUMP * unit[start:end].max())
        found[start:end] = ends >= least_jump
    return found, beyond


def running_median(y: Float[Tensor, " n"]) -> Float[Tensor, " n"]:
    """Medians of the values around each, up to the longest run on both sides."""
    n, at = len(y), torch.arange(len(y), device=y.device)
    apart = torch.arange(-LONGEST_RUN, LONGEST_RUN + 1, device=y.device)
    near = y[(at[:, None] + apart).clamp(0, n - 1)]
    both = torch.minimum(at, n - 1 - at)[:, None]  # as many on each side: a trend has no part
    return torch.where(apart.abs() <= both, near, torch.nan).nanmedian(1).values


def without_season(y: Float[Tensor, "B n"], seasons: Sequence[float | int]) -> Float[Tensor, "B n"]:
    """Series less its only season, if that was seen three times and large steps are clearly smaller without.

    An index is the median of the values at a place less the level, which leads from the median of one cycle
    to that of the next; or it is relative to the level, if steps are smaller then. So no cycle has a great
    part. Half-hours of some days differ from those of others, as their second season shows: these are no
    exceptions.

    Examples
    --------
    >>> import torch
    >>> from taylorformer_forecast.baselines.seasonal_runs import without_season
    >>> y = torch.tensor([[1.0, 2.0, 9.0] * 4])
    >>> y[0, 8] = 5.0
    >>> without_season(y, [3]).tolist()
    [[2.0, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0, -2.0, 2.0, 2.0, 2.0]]
    """
    (season,) = (int(one) for one in seasons) if len(seasons) == 1 else (1,)
    if season < 2 or y.shape[1] < LEAST_PAST_CYCLES * season:
        return y
    cycles, pad = in_cycles(y, season)
    middle = carry(carry(cycles.nanmedian(2).values).flip(1)).flip(1)
    place = torch.arange(pad, pad + y.shape[1], dtype=y.dtype, device=y.device)
    cycle = ((place - (season - 1) / 2) / season).clamp(0, middle.shape[1] - 1)  # from its middle
    before = cycle.long().clamp_max(middle.shape[1] - 2)
    level = torch.lerp(middle[:, before], middle[:, before + 1], (cycle - before).expand_as(y))
    seen = (~y.isnan()).sum(1) >= LEAST_PAST_CYCLES * season
    rest, size = y, SEASONAL_STEP_PART * large_step(y)
    for unit in (torch.ones_like(level), level):
        index = in_cycles((y - level) / unit, season)[0].nanmedian(1).values
        less = y - unit * index.repeat(1, cycles.shape[1])[:, pad:]
        step = large_step(less)
        better = (step < size) & (unit > 0).all(1) & seen
        rest, size = torch.where(better[:, None], less, rest), torch.where(better, step, size)
    return rest


def large_step(y: Float[Tensor, "B n"]) -> Float[Tensor, " B"]:
    """The step of each series that a tenth of its steps is larger than; NaN without steps."""
    ordered = y.diff(dim=1).abs().sort(dim=1).values  # NaN are the last
    count = (~ordered.isnan()).sum(1, keepdim=True)
    return ordered.gather(1, (LARGE_STEP * (count - 1)).long().clamp_min(0))[:, 0]


def lasting_step(y: Float[Tensor, "... n"]) -> Float[Tensor, "... n-3"]:
    """Size of steps, from the second on but for the last one, that neither value beside them takes back."""
    steps = [y[..., 2:-1] - y[..., 1:-2], y[..., 3:] - y[..., 1:-2], y[..., 2:-1] - y[..., :-3]]
    return torch.stack(steps).abs().amin(0)
