"""Weights of members at every origin, by their errors at all earlier origins and steps."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from taylorformer_forecast.baselines.members import FAMILIES, Members
from taylorformer_forecast.defaults import (
    BETWEEN_POWER,
    FAMILY_PRIOR,
    LOSS_STEP_SPACING,
    MEMBER_LEVEL_POWER,
    WITHIN_POWER,
)

__all__ = ["combine", "targets", "weigh"]


def targets(y: Float[Tensor, "B n"], step: int) -> Float[Tensor, "B n"]:
    """Value that lies ``step + 1`` points after each origin; NaN beyond the end.

    Examples
    --------
    >>> import torch
    >>> from taylorformer_forecast.baselines.combination import targets
    >>> targets(torch.tensor([[1.0, 2.0, 3.0]]), 1).tolist()
    [[3.0, nan, nan]]
    """
    ahead = torch.full_like(y, torch.nan)
    ahead[:, : max(y.shape[1] - step - 1, 0)] = y[:, step + 1 :]
    return ahead


def weigh(found: Members, y: Float[Tensor, "B n"]) -> Float[Tensor, "B n M"]:
    """Weights of members at every origin, by what was known there.

    The loss of a member is its mean absolute error over all origins so far and all steps ahead that have been
    observed since, those of step h divided by h, as errors of a random walk summed over the horizon would be.
    Weights are products of the weight of a member in its family and of the family.

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
    Cesa-Bianchi and Lugosi, "Prediction, learning, and games", 2006, chapter 2.

    Examples
    --------
    >>> import torch
    >>> from taylorformer_forecast.baselines.combination import weigh
    >>> from taylorformer_forecast.baselines.members import members
    >>> y = torch.tensor([1.0, 3.0, 2.0, 4.0]).repeat(9)[None].double()
    >>> seasonal = weigh(members(y, (4,), 4), y)[0, -1, 26:]  # the first 26 have no season
    >>> bool(seasonal.sum() > 0.99)
    True
    """
    n, horizon = y.shape[1], len(found.growth)
    started = (~y.isnan()).cumsum(1) > 0
    loss = y.new_zeros(*y.shape, len(found.family))
    hit = torch.zeros_like(started)
    for step, share in _steps(horizon):
        if step >= n - 1:
            break
        ahead = targets(y, step)[:, : n - step - 1, None]
        known = ~ahead.isnan() & started[:, : n - step - 1, None]
        error = found.at(step, n - step - 1).sub_(torch.where(known, ahead, 0.0)).abs_()
        loss[:, step + 1 :].addcmul_(error, known.to(loss), value=share / (step + 1))
        hit[:, step + 1 :] |= known[..., 0]
    loss, count = loss.cumsum(1), hit.cumsum(1)[..., None]
    # Relative to the best; errors that are rounding only are equal.
    loss += 1e-12 * torch.nan_to_num(y).abs().cummax(1).values[..., None] + 1e-300
    excess = loss.div_(loss.amin(-1, keepdim=True)).log_().mul_(count)
    prior = MEMBER_LEVEL_POWER * found.weight.log()
    members = [(found.family == number).nonzero()[:, 0] for number in range(len(FAMILIES))]
    inside = [torch.softmax(prior[at] - WITHIN_POWER * excess[..., at], -1) for at in members]
    mean = [(part * excess[..., at]).sum(-1) for part, at in zip(inside, members, strict=True)]
    families = torch.softmax(y.new_tensor(FAMILY_PRIOR).log() - BETWEEN_POWER * torch.stack(mean, -1), -1)
    weights = [part.mul_(families[..., k, None]) for k, part in enumerate(inside)]
    return torch.cat(weights, -1)[..., torch.cat(members).argsort()]


def _steps(horizon: int) -> list[tuple[int, float]]:
    """Steps whose errors count, from 0, and the number of steps that each stands for.

    All of the first steps, then fewer and fewer: errors of long steps that are neighbours hardly differ.
    """
    ends, steps = [0], []
    while ends[-1] < horizon:
        steps.append(ends[-1])
        ends.append(min(ends[-1] + max(ends[-1] // LOSS_STEP_SPACING, 1), horizon))
    return [(step, float(end - step)) for step, end in zip(steps, ends[1:], strict=True)]


def combine(found: Members, weights: Float[Tensor, "B n M"]) -> Float[Tensor, "B n H"]:
    """Weighted means of the members, from every origin.

    Examples
    --------
    >>> import torch
    >>> from taylorformer_forecast.baselines.combination import combine, weigh
    >>> from taylorformer_forecast.baselines.members import members
    >>> y = torch.tensor([1.0, 3.0, 2.0, 4.0]).repeat(9)[None].double()
    >>> found = members(y, (4,), 4)
    >>> combine(found, weigh(found, y))[0, -1].round(decimals=1).tolist()
    [1.0, 3.0, 2.0, 4.0]
    """
    return torch.stack([found.at(h).mul_(weights).sum(-1) for h in range(len(found.growth))], -1)
