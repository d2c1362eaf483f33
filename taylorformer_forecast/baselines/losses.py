"""What members of the combination have lost, by which they are weighted."""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor

from taylorformer_forecast.baselines.members import REGRESSION, Members, forgiven
from taylorformer_forecast.defaults import (
    LEAST_PAST_CYCLES,
    LOSS_STEP_SPACING,
    PHASE_RATIO,
    PHASE_SHARE,
    WAKING_CYCLES,
)


def lost(
    loss: Float[Tensor, "B n M"],
    foreign: Float[Tensor, "B n M"],
    asleep: Float[Tensor, "B n F"],
    found: Members,
) -> Float[Tensor, "B n M"]:
    """Losses up to each time, given those at each, those while asleep, and the part asleep."""
    total = loss.cumsum(1)
    free = found.awake.cumsum(1) / (WAKING_CYCLES * found.season)
    free = torch.minimum(free, forgiven(found.season))
    for rank in found.rank.unique().tolist()[1:]:
        less = (found.rank < rank) & (found.family != REGRESSION)  # which series of a few cycles lack
        lower, at = less.nonzero()[:, 0], (found.rank == rank).nonzero()[:, 0]
        best = lower[total[..., lower].argmin(-1, keepdim=True)]
        instead = loss.gather(-1, best) * asleep[..., found.group[at]] - foreign[..., at]
        total[..., at] += free[..., found.group[at]] * instead.cumsum(1)
    return total


def loss_steps(horizon: int) -> list[tuple[int, float]]:
    """Steps whose errors count, from 0, and the number of steps that each stands for.

    All of the first steps, then fewer and fewer: errors of long steps that are neighbours hardly differ.
    """
    ends, steps = [0], []
    while ends[-1] < horizon:
        steps.append(ends[-1])
        ends.append(min(ends[-1] + max(ends[-1] // LOSS_STEP_SPACING, 1), horizon))
    return [(step, float(end - step)) for step, end in zip(steps, ends[1:], strict=True)]


def of_phase(
    total: Float[Tensor, "B n M"], found: Members, age: Int[Tensor, "B n"]
) -> Float[Tensor, "B n M"]:
    """Losses up to each time, and once more those at its place in the week, in a part, where they tell more.

    A member that does not know the week loses where it turns, on two days of seven. On the evening of a
    Sunday all of the forecast is of a Monday. They count where the best member of all times lost three times
    as much there as the best one at this place.

    Parameters
    ----------
    total : Tensor of shape (B, n, M)
        Losses up to each time.
    found : Members
        The members.
    age : int Tensor of shape (B, n)
        Steps since the first value, and with it. In the first three cycles members know too little.
    """
    seasons, horizon, n = sorted({*found.season.int().tolist(), 1}), len(found.growth), total.shape[1]
    season = seasons[-1]
    first = LEAST_PAST_CYCLES * season
    if len(seasons) < 3 or season != 7 * seasons[-2] or horizon > season or n < first:  # 1 stands for none
        return total
    extra = torch.zeros_like(total)
    for start in range(season, n, season):
        end = min(start + season, n)
        before = slice(start - season, end - season)
        after = slice(before.start + horizon, before.stop + horizon)
        extra[:, start:end] = extra[:, before] + (total[:, after] - total[:, before]).clamp_min(0.0)
    usual = extra.gather(-1, total.argmin(-1, keepdim=True))
    differ = (age >= first)[..., None] & (usual > PHASE_RATIO * extra.amin(-1, keepdim=True))
    return total + PHASE_SHARE * season / horizon * extra * differ
