"""Values that only later ones show to be wrong: outages, first outliers, runs that a season hides."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from taylorformer_forecast.baselines.outliers import (
    are_many,
    beyond,
    cleaned,
    large_step,
    seasonal_values,
    step_sizes,
    usual_steps,
)
from taylorformer_forecast.baselines.seasonal import carry, in_cycles
from taylorformer_forecast.baselines.zeros import is_intermittent, without_outages
from taylorformer_forecast.defaults import (
    LEAST_PAST_CYCLES,
    LONGEST_RUN,
    MIN_CHECKED_VALUES,
    SEASONAL_JUMP,
    SEASONAL_RUN_SIZE,
    SEASONAL_STEP_PART,
    SPIKE_SIZES,
)


def without_wrong_values(
    y: Float[Tensor, "B n"], seasons: Sequence[float | int] = ()
) -> Float[Tensor, "B n"]:
    """Series without what only later values show to be no part of them.

    That are zeros while something was closed or broken, extreme values that last for some steps and are over,
    and outliers among the first values. Others are left to :func:`~.winsorise.winsorise`, which finds each by
    the values before it.

    Parameters
    ----------
    y : Tensor of shape (B, n)
        Series; NaN where nothing was observed.
    seasons : sequence of float or int, optional
        Lengths of seasons, in steps.

    Returns
    -------
    Tensor of shape (B, n)
        NaN in the place of such values; ``y`` itself if there are none.

    Examples
    --------
    >>> import torch
    >>> from taylorformer_forecast.baselines.wrong_values import without_wrong_values
    >>> y = torch.tensor([[1.0, 2.0, 1.5, 1.0, 2.0, 1.0, 2.0] * 6])
    >>> y[0, [1, 20, 21, 22]] = 1e6
    >>> without_wrong_values(y).isnan().nonzero()[:, 1].tolist()
    [1, 20, 21, 22]
    """
    if y.shape[1] < MIN_CHECKED_VALUES:
        return y
    y = without_outages(y, seasons)
    seen = ~y.isnan()
    at = torch.arange(y.shape[1], dtype=y.dtype, device=y.device)
    step = step_sizes(y)
    usual = SPIKE_SIZES[0] * large_step(step)
    rows = (seen.sum(1) >= MIN_CHECKED_VALUES) & (step.nan_to_num(-1.0).amax(1) > usual)
    rest = without_season(y, seasons)
    jumps = lasting_step(rest).nan_to_num().amax(1) > SEASONAL_JUMP * large_step(rest.diff(dim=1).abs())
    seasonal = jumps & ((rest != y) & seen).any(1)
    demand = is_intermittent(y)[:, -1]
    found = {}
    for row in ((rows | seasonal) & ~demand).nonzero()[:, 0].tolist():
        own = seen[row]
        wrong = torch.zeros_like(y[row, own], dtype=torch.bool)
        if bool(rows[row]):
            wrong = cleaned(at[own], y[row, own], seasons)[1]
        if bool(seasonal[row]):
            wrong |= _beside_season(at[own], rest[row, own], int(seasons[0]))
        if bool(wrong.any()):
            found[row] = own.masked_scatter(own, wrong)
    if found:
        y = y.clone()
    for row, own in found.items():
        y[row, own] = torch.nan
    return y


def _beside_season(t: Tensor, rest: Tensor, season: int) -> Bool[Tensor, " n"]:
    """Which values less their season are in runs that are over; see :func:`seasonal_runs`."""
    found, unit = torch.zeros_like(rest, dtype=torch.bool), usual_steps(rest)
    level = running_median(rest)[None]
    for first in range(1, LONGEST_RUN + 1, season):
        last = first + season - 1  # whole seasons: values that far apart are in no run of these lengths
        lengths = range(max(first, 2), min(last, LONGEST_RUN) + 1)
        away = beyond(rest, torch.cat([level, seasonal_values(t, rest, [last])]))
        runs, in_any = seasonal_runs(rest, away, unit, lengths)
        if not are_many(in_any):
            found |= runs
    return found


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
    in_any : Tensor of shape (n,)
        Which values are in any run.

    Examples
    --------
    >>> import torch
    >>> from taylorformer_forecast.baselines.wrong_values import running_median, seasonal_runs
    >>> y = torch.tensor([1.0, 2.0] * 15)
    >>> y[12:16] -= 9
    >>> away = y - running_median(y)
    >>> seasonal_runs(y, away, torch.ones(30), range(2, 13))[0].nonzero()[:, 0].tolist()
    [12, 13, 14, 15]
    """
    n = len(rest)
    least = SEASONAL_RUN_SIZE * unit
    far = (away.abs() > least) & (unit > 0)
    found, in_any = torch.zeros_like(far), torch.zeros_like(far)
    if int(far.sum()) < 2:
        return found, in_any
    side = torch.where(away.abs() > least / 2, away.sign(), 0.0)
    jump = torch.nn.functional.pad(lasting_step(rest), (2, 1))  # to each value
    which, counts = side.unique_consecutive(return_counts=True)
    starts = counts.cumsum(0) - counts
    for sign, start, count in zip(which.tolist(), starts.tolist(), counts.tolist(), strict=True):
        end = start + count
        n_far = int(far[start:end].sum())
        in_any[start:end] = sign != 0 and n_far > 0
        if sign == 0 or n_far < 2 or count not in lengths or start < 3 or end > n - 3:
            continue
        ends = torch.cat([jump[start : start + 2], jump[end - 1 : end + 1]]).max()
        least_jump = torch.maximum(away[start:end].abs().max() / 2, SEASONAL_JUMP * unit[start:end].max())
        found[start:end] = ends >= least_jump
    return found, in_any


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
    >>> from taylorformer_forecast.baselines.wrong_values import without_season
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
    rest, size = y, SEASONAL_STEP_PART * large_step(y.diff(dim=1).abs())
    for unit in (torch.ones_like(level), level):
        index = in_cycles((y - level) / unit, season)[0].nanmedian(1).values
        less = y - unit * index.repeat(1, cycles.shape[1])[:, pad:]
        step = large_step(less.diff(dim=1).abs())
        better = (step < size) & (unit > 0).all(1) & seen
        rest, size = torch.where(better[:, None], less, rest), torch.where(better, step, size)
    return rest


def lasting_step(y: Float[Tensor, "... n"]) -> Float[Tensor, "... n-3"]:
    """Size of steps, from the second on but for the last one, that neither value beside them takes back."""
    steps = [y[..., 2:-1] - y[..., 1:-2], y[..., 3:] - y[..., 1:-2], y[..., 2:-1] - y[..., :-3]]
    return torch.stack(steps).abs().amin(0)
