"""Series of few values: widths and ends of forecasts from one value or two, and lines that hide a season."""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from taylorformer_forecast.defaults import ERROR_GROWTH_POWER, LARGEST_GROWTH, NEARLY_LINE, SINGLE_VALUE_ERROR


def widened(
    y: Float[Tensor, "B n"],
    rows: Bool[Tensor, " B"],
    scale: Float[Tensor, "B H"],
    low: Float[Tensor, "B H"],
    high: Float[Tensor, "B H"],
) -> tuple[Float[Tensor, "B H"], Float[Tensor, "B H"], Float[Tensor, "B H"]]:
    """Scales and ends of forecasts of series with one value or two.

    The errors of one value are a part of it. Those of two that are not negative lie half way (in logarithms)
    between these and what their change says, or are what it says if that is more. Two equal values are taken
    for a constant.

    Parameters
    ----------
    y : Tensor of shape (B, n)
        Series, NaN where nothing was observed.
    rows : bool Tensor of shape (B,)
        Which are forecast so: intermittent demand is not, and others stay as they are.
    scale, low, high : Tensor of shape (B, H)
        Scales and ends of the steps ahead.

    Returns
    -------
    scale, low, high : Tensor of shape (B, H)
        The same, of these rows as wide as they have to be.

    Examples
    --------
    >>> import torch
    >>> from taylorformer_forecast.baselines.few_values import widened
    >>> y, rest = torch.tensor([[50.0, torch.nan], [50.0, 50.2], [50.0, 50.2]]), torch.full((3, 1), 0.2)
    >>> widened(y, torch.tensor([True, True, False]), rest, y[:, :1], y[:, :1])[0].flatten().round(decimals=1)
    tensor([5.0000, 1.0000, 0.2000])
    """
    seen = ~y.isnan()
    count = seen.sum(1, keepdim=True)
    least, most = (
        torch.where(seen, y, torch.inf).amin(1, keepdim=True),
        torch.where(seen, y, -torch.inf).amax(1, keepdim=True),
    )
    two = (count == 2) & (most > least) & (least >= 0)
    few = rows[:, None] & ((count == 1) | two)
    size = torch.nan_to_num(y).abs().sum(1, keepdim=True) / count.clamp_min(1)
    error = SINGLE_VALUE_ERROR * size * torch.arange(1, scale.shape[1] + 1).to(y) ** ERROR_GROWTH_POWER
    own = torch.where(count == 1, error, scale)
    lowest = torch.where(least >= 0, 0.0, least - LARGEST_GROWTH * size)
    return (
        torch.where(few, torch.where(two, scale, 0.0).maximum(error.sqrt() * own.sqrt()), scale),
        torch.where(few, lowest, low),
        torch.where(few, most + LARGEST_GROWTH * size, high),
    )


def nearly_lines(y: Float[Tensor, "B n"]) -> Bool[Tensor, " B"]:
    """Series whose values, NaN where nothing was observed, hardly leave a straight line.

    Examples
    --------
    >>> import torch
    >>> from taylorformer_forecast.baselines.few_values import nearly_lines
    >>> y = torch.tensor([[1.0, 2.2, 2.9, 4.1, 5.0], [1.0, 3.0, 2.0, 5.0, 1.0]])
    >>> nearly_lines(y).tolist()
    [True, False]
    """
    known = ~y.isnan()
    count = known.sum(1, keepdim=True)
    both = (torch.where(known, x, 0.0) for x in (y, known.cumsum(1).to(y)))
    y, t = (torch.where(known, x - x.sum(1, keepdim=True) / count.clamp_min(1), 0.0) for x in both)
    correlation = (t * y).sum(1) / ((t**2).sum(1) * (y**2).sum(1)).sqrt().clamp_min(1e-300)
    return correlation.abs() > NEARLY_LINE
