"""Runs of values that a season does not explain, as of months in which a shop was closed."""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from taylorformer_forecast.baselines.adjusted import lasting_step
from taylorformer_forecast.defaults import LONGEST_RUN, SEASONAL_JUMP, SEASONAL_RUN_SIZE


def seasonal_runs(
    rest: Float[Tensor, " n"], around: Float[Tensor, "K n"], unit: Float[Tensor, " n"], lengths: range
) -> tuple[Bool[Tensor, " n"], Bool[Tensor, " n"]]:
    """Which values of a series without its season are in runs that begin or end with a jump and are over.

    Values of a run lie outside the range of the level, a running median over the longest run on both sides,
    and of the values around: one at least by three large steps, and all by half of that. Of a run that is
    over, two are so far; its jump is half of that distance and two large steps at least, and lasts.

    Parameters
    ----------
    rest : Tensor of shape (n,)
        Observed values less the season.
    around : Tensor of shape (K, n)
        Values to compare each with; NaN where there is none.
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
    >>> from taylorformer_forecast.baselines.seasonal_runs import seasonal_runs
    >>> y = torch.tensor([1.0, 2.0] * 15)
    >>> y[12:16] -= 9
    >>> seasonal_runs(y, y.new_empty(0, 30), torch.ones(30), range(2, 13))[0].nonzero()[:, 0].tolist()
    [12, 13, 14, 15]
    """
    n, at = len(rest), torch.arange(len(rest), device=rest.device)
    apart = torch.arange(-LONGEST_RUN, LONGEST_RUN + 1, device=rest.device)
    near = rest[(at[:, None] + apart).clamp(0, n - 1)]
    both = torch.minimum(at, n - 1 - at)[:, None]  # as many on each side: a trend has no part
    level = torch.where(apart.abs() <= both, near, torch.nan).nanmedian(1).values
    others = torch.cat([level[None], around])
    high = torch.where(others.isnan(), -torch.inf, others).amax(0)
    low = torch.where(others.isnan(), torch.inf, others).amin(0)
    away = (rest - high).clamp_min(0.0) + (rest - low).clamp_max(0.0)
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
