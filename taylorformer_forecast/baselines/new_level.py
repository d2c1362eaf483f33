"""Levels that a series may have had for a few values only."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from taylorformer_forecast.defaults import (
    FEWEST_NEW,
    MOST_NEW,
    NEW_LEVEL_HISTORY,
    NEW_LEVEL_REACH,
    NEW_LEVEL_SIZE,
)


def new_level(
    y: Float[Tensor, "B n"], loc: Float[Tensor, "B n H"], scale: Float[Tensor, "B n H"]
) -> Float[Tensor, "B 1"]:
    """Least mean absolute error of the last forecasts that reaches a level that is new.

    A level is new where each of the last two to six values lies beyond four mean absolute errors on one side
    of what was forecast before the first of them. Whether it stays is not known: forecasts stay, and errors
    reach as far as the level. What follows its values, as a random walk does, is there by itself.

    Parameters
    ----------
    y : Tensor of shape (B, n)
        Values; NaN where nothing was observed.
    loc, scale : Tensor of shape (B, n, H)
        Forecasts from every origin, and their mean absolute errors.

    Returns
    -------
    Tensor of shape (B, 1)
        The error; 0 where no level is new.

    Examples
    --------
    >>> import torch
    >>> from taylorformer_forecast.baselines.new_level import new_level
    >>> y = torch.tensor([[0.0] * 9 + [8.0] * 3]).double()
    >>> new_level(y, torch.zeros(1, 12, 4), torch.ones(1, 12, 4))
    tensor([[6.4000]], dtype=torch.float64)
    """
    n, horizon = loc.shape[1:]
    least = y.new_zeros(len(y), 1)
    # Of longer runs than the horizon less one, it is not known how far forecasts have followed.
    for run in range(FEWEST_NEW, min(MOST_NEW, horizon - 1) + 1):
        origin = n - run - 1
        if origin < NEW_LEVEL_HISTORY - 1:
            break
        before, usual = (part[:, origin, :run] for part in (loc, scale))
        error = y[:, origin + 1 :] - before
        side = error.sum(1, keepdim=True).sign()
        error = side * error
        far = (error > NEW_LEVEL_SIZE * usual).all(1, keepdim=True)
        far &= (~y[:, : origin + 1].isnan()).sum(1, keepdim=True) >= NEW_LEVEL_HISTORY
        jump = error.median(1, keepdim=True).values
        then = loc[:, origin, run : run + 1]  # of the next value, before the run
        followed = side * (loc[:, -1, :1] - then)
        rest = torch.minimum((jump - followed).clamp_min(0.0), jump)
        least = torch.where(far, NEW_LEVEL_REACH * rest, least)
    return least
