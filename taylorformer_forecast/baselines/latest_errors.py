"""What the latest errors say of the next ones: large ones come together, or the level is new."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor

from taylorformer_forecast.defaults import (
    FEWEST_NEW,
    LARGEST_ERROR,
    LATEST_ERRORS_COUNT,
    LATEST_ERRORS_POWER,
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
    >>> from taylorformer_forecast.baselines.latest_errors import new_level
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


def after_latest(
    error: Float[Tensor, "B n H"], scale: Float[Tensor, "B n H"], steady: Bool[Tensor, "B 1"]
) -> Float[Tensor, "B n H"]:
    """Factor of the scale from every origin, by the latest two errors of one step: large ones come together.

    It fades with the root of the step, and counts for less where few errors say what is usual.

    Parameters
    ----------
    error : Tensor of shape (B, n, H)
        Errors from every origin, NaN where unknown.
    scale : Tensor of shape (B, n, H)
        Their scale.
    steady : bool Tensor of shape (B, 1)
        Whether no shift of the level, which has widths of its own, may have begun at the end.

    References
    ----------
    Engle, "Autoregressive conditional heteroscedasticity with estimates of the variance of United Kingdom
    inflation", Econometrica, 1982.

    Examples
    --------
    >>> import torch
    >>> from taylorformer_forecast.baselines.latest_errors import after_latest
    >>> error = torch.ones(1, 200, 4).double()
    >>> error[0, -2, 0] = 3.0
    >>> after_latest(error, torch.ones(1, 200, 4), torch.ones(1, 1).bool())[0, -1].round(decimals=2).tolist()
    [1.13, 1.09, 1.07, 1.06]
    """
    size = (error[..., 0].abs() / scale[..., 0]).clamp_max(LARGEST_ERROR)
    last, before = (F.pad(size, (back, 0), value=torch.nan)[:, : size.shape[1]] for back in (1, 2))
    latest = torch.where(before.isnan(), last, (2 * last + before) / 3)
    count = (~last.isnan()).cumsum(1)
    power = LATEST_ERRORS_POWER * count / (count + LATEST_ERRORS_COUNT)
    factor = torch.where(latest.isnan(), 1.0, ((1 + latest) / 2) ** power)
    factor[:, -1:] = torch.where(steady, factor[:, -1:], 1.0)
    h = torch.arange(1, scale.shape[2] + 1, dtype=size.dtype, device=size.device)
    return 1 + (factor[..., None] - 1) / h.sqrt()
