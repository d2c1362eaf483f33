"""Weights of the members of the combination, by what they have lost, and their weighted means."""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from taylorformer_forecast.baselines.families import FAMILIES
from taylorformer_forecast.baselines.members import Members, forgiven
from taylorformer_forecast.defaults import (
    BETWEEN_POWER,
    FAMILY_PRIOR,
    LEAST_PAST_CYCLES,
    LOSS_STEP_SPACING,
    PHASE_RATIO,
    PHASE_SHARE,
    SECOND_CYCLE_POWER,
    TREND_COUNT,
    WAKING_CYCLES,
)

EARNED = ("theta", "damped trend")  # families of trends, which few errors do not show


def weigh(found: Members, y: Float[Tensor, "B n"]) -> Float[Tensor, "B n M"]:
    """Weights of members at every origin, by what was known there.

    The loss of a member is its mean absolute error over all origins so far and all steps ahead that have been
    observed since, those of step h divided by h, as errors of a random walk summed over the horizon would be.
    Where a season was not known yet, a member with it has lost what the best had of those that need to know
    less, in the part that ``members.forgiven`` says (a sleeping expert). Losses at the same place in a
    week count once more, where they differ much.
    Weights are products of the weight of a member in its family and of the family; trends have to be earned.
    In the second cycle of the shortest season one family alone knows it, and losses count for more there.

    Parameters
    ----------
    found : Members
        Forecasts.
    y : Tensor of shape (B, n)
        Values, NaN where nothing was observed.

    Returns
    -------
    Tensor of shape (B, n, M)
        Weights, sum 1.

    References
    ----------
    Cesa-Bianchi and Lugosi, "Prediction, learning, and games", 2006, chapter 2. Freund, Schapire, Singer and
    Warmuth, "Using and combining predictors that specialize", 1997.

    Examples
    --------
    >>> import torch
    >>> from taylorformer_forecast.baselines.weights import weigh
    >>> from taylorformer_forecast.baselines.members import members
    >>> y = torch.tensor([1.0, 3.0, 2.0, 4.0]).repeat(9)[None].double()
    >>> seasonal = weigh(members(y, (4,), 4, y > 0), y)[0, -1, 30:]  # the first 30 have no season
    >>> bool(seasonal.sum() > 0.99)
    True
    """
    n, horizon = y.shape[1], len(found.growth)
    started = (~y.isnan()).cumsum(1) > 0
    loss = y.new_zeros(*y.shape, len(found.family))
    hit = torch.zeros_like(started)
    asleep = ~found.awake
    asleep = asleep[:, : int(asleep.any(-1).any(0).cumsum(0).argmax()) + 1]  # origins until all are awake
    stand_in, part, whole = torch.zeros_like(loss), y.new_zeros(found.awake.shape), y.new_zeros(*y.shape, 1)
    for step, share in loss_steps(horizon):
        if step >= n - 1:
            break
        ahead = y[:, step + 1 :, None]
        known = ~ahead.isnan() & started[:, : n - step - 1, None]
        hit[:, step + 1 :] |= known[..., 0]
        error = found.at(step, n - step - 1).sub_(torch.where(known, ahead, 0.0)).abs_()
        known = known.to(loss)
        loss[:, step + 1 :].addcmul_(error, known, value=share)
        idle = known[:, : asleep.shape[1]] * asleep[:, : n - step - 1]
        late = slice(step + 1, step + 1 + idle.shape[1])
        stand_in[:, late].addcmul_(error[:, : idle.shape[1]], idle[..., found.group], value=share)
        part[:, late] += idle * share
        whole[:, step + 1 :] += known * share
    count = hit.cumsum(1)[..., None]
    loss = lost(loss, stand_in, part / whole.clamp_min(1e-300), found)
    loss = of_phase(loss, found, started.cumsum(1))
    # Relative to the best; errors that are rounding only are equal.
    loss += 1e-12 * torch.nan_to_num(y).abs().cummax(1).values[..., None] + 1e-300
    excess = loss.div_(loss.amin(-1, keepdim=True)).log_().mul_(count)
    of_family = [(found.family == number).nonzero()[:, 0] for number in range(len(FAMILIES))]
    # A finite number, as of a family none may count.
    never = torch.finfo(loss.dtype).min
    prior = torch.where(found.counts[..., found.group], found.prior, never)
    inside = [torch.softmax(prior[..., at] - excess[..., at], -1) for at in of_family]
    mean = [(part * excess[..., at]).sum(-1) for part, at in zip(inside, of_family, strict=True)]
    counts = torch.stack([found.counts[..., found.group[at].unique()].any(-1) for at in of_family], -1)
    before = torch.where(counts, y.new_tensor([FAMILY_PRIOR[name] for name in FAMILIES]).log(), -torch.inf)
    few = count.clamp_min(1).to(y)  # errors: trends have to be earned
    before[..., [FAMILIES.index(name) for name in EARNED]] += (few / (few + TREND_COUNT)).log()
    second, other = y.new_tensor([SECOND_CYCLE_POWER, BETWEEN_POWER])
    power = torch.where(_in_second_cycle(found), second, other)
    families = torch.softmax(before - power[..., None] * torch.stack(mean, -1), -1)
    weights = [part.mul_(families[..., k, None]) for k, part in enumerate(inside)]
    return torch.cat(weights, -1)[..., torch.cat(of_family).argsort()]


def _in_second_cycle(found: Members) -> Bool[Tensor, "B n"]:
    """Origins from which the shortest season can be repeated, and has no indices with some errors yet."""
    repeated, averaged = (found.group[found.rank == rank] for rank in (1, 2))
    if not len(averaged):
        return torch.zeros_like(found.awake[..., 0])
    known = found.awake[..., averaged[0]]
    few = known.cumsum(1) < WAKING_CYCLES * found.season[averaged[0]]
    return found.awake[..., repeated].any(-1) & few


def combine(found: Members, weights: Float[Tensor, "B n M"]) -> Float[Tensor, "B n H"]:
    """Weighted means of the members, from every origin.

    Examples
    --------
    >>> import torch
    >>> from taylorformer_forecast.baselines.weights import combine, weigh
    >>> from taylorformer_forecast.baselines.members import members
    >>> y = torch.tensor([1.0, 3.0, 2.0, 4.0]).repeat(9)[None].double()
    >>> found = members(y, (4,), 4, y > 0)
    >>> combine(found, weigh(found, y))[0, -1].round(decimals=1).tolist()
    [1.0, 3.0, 2.0, 4.0]
    """
    return torch.stack([found.at(h).mul_(weights).sum(-1) for h in range(len(found.growth))], -1)


def lost(
    loss: Float[Tensor, "B n M"],
    stand_in: Float[Tensor, "B n M"],
    asleep: Float[Tensor, "B n F"],
    found: Members,
) -> Float[Tensor, "B n M"]:
    """Losses up to each time, given those at each, those while asleep, and the part asleep."""
    total = loss.cumsum(1)
    free = found.awake.cumsum(1) / (WAKING_CYCLES * found.season)
    free = torch.minimum(free, forgiven(found.season))
    slept = (asleep > 0).flatten(0, 1).any(0)[found.group] & (found.rank > 0)
    for rank in found.rank[slept].unique().tolist():
        lower, at = (found.rank < rank).nonzero()[:, 0], (found.rank == rank).nonzero()[:, 0]
        best = lower[total[..., lower].argmin(-1, keepdim=True)]
        instead = loss.gather(-1, best) * asleep[..., found.group[at]] - stand_in[..., at]
        total[..., at] += free[..., found.group[at]] * instead.cumsum(1)
    return total


def loss_steps(horizon: int) -> list[tuple[int, float]]:
    """Steps whose errors count, from 0, and the weight of each.

    All of the first steps, then fewer and fewer: errors of long steps that are neighbours hardly differ.
    Each stands for those up to the next, divided by the steps ahead.
    """
    ends, found = [0], []
    while ends[-1] < horizon:
        step = ends[-1]
        ends.append(min(step + max(step // LOSS_STEP_SPACING, 1), horizon))
        found.append((step, (ends[-1] - step) / (step + 1)))
    return found


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
