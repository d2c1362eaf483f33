"""How far each side of skewed errors reaches, and its tail."""

from __future__ import annotations

import math

import torch
from jaxtyping import Float
from torch import Tensor

from taylorformer_forecast.baselines.combination import CombinationFit
from taylorformer_forecast.baselines.errors import BASE, at_shape
from taylorformer_forecast.defaults import (
    LARGEST_ERROR,
    LARGEST_TAIL,
    NORMAL_SHAPE_COUNT,
    REACH_ERRORS,
    REACH_LEVEL,
    TAIL_LEVEL,
)

SMALLEST_PART = 1e-6  # of the median, of a value whose logarithm is taken


def reach_and_tails(
    fit: CombinationFit, shift: Float[Tensor, "B H"], sides: tuple[Float[Tensor, "B H"], Float[Tensor, "B H"]]
) -> tuple[Float[Tensor, "B 2"], Float[Tensor, "B 2"]]:
    """How many times as far as shape and sides say one error in ten lies, and one in a hundred.

    Shape is measured by errors of both sides together. Skewness says which side is longer. How much so is
    another matter for other distributions, and where distances below are those of logarithms. So a side
    reaches as far as its own errors of one step do, less some of their standard errors. One error in a
    hundred lies farther than that says where demand is skewed. Those factors are drawn towards 1. No factor
    is less than 1.

    Parameters
    ----------
    fit : CombinationFit
        Forecasts from all origins, and their errors.
    shift : Tensor of shape (B, H)
        Median less mean, in scales.
    sides : tuple of two Tensors of shape (B, H)
        Factors of the distances of quantiles below and above the median.

    Returns
    -------
    reach, tails : Tensor of shape (B, 2)
        Factors of distances below and above at the levels .1 and .9, and further ones at .01 and .99.

    Examples
    --------
    >>> import torch
    >>> from taylorformer_forecast.baselines.combination import fit_combination
    >>> from taylorformer_forecast.baselines.tails import reach_and_tails
    >>> z = torch.randn(1, 400, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    >>> fit, one = fit_combination(z.exp(), 1, ()), torch.ones(1, 1).double()
    >>> reach, tails = reach_and_tails(fit, 0 * one, (one, one))
    >>> [round(factor, 1) for factor in [*reach[0].tolist(), *tails[0].tolist()]]
    [1.5, 1.2, 1.0, 1.5]
    """
    loc, error, standard = (part[..., 0] for part in (fit.loc, fit.error, fit.standard))
    scale = torch.where(standard == 0, fit.scale[..., 0], error / standard)
    median = loc + scale * shift[:, :1]
    distance, logs = standard - shift[:, :1], fit.positive[:, None] & (median > 0)
    part = ((loc + error) / torch.where(logs, median, 1.0)).clamp_min(SMALLEST_PART)
    below = torch.where(logs, median * part.log() / scale.clamp_min(1e-300), distance)
    distance = torch.where(distance < 0, below / sides[0][:, :1], distance / sides[1][:, :1])
    levels = distance.new_tensor([1 - REACH_LEVEL, REACH_LEVEL, TAIL_LEVEL])
    near, end = torch.special.ndtri(levels[1:])
    found = torch.nan_to_num(torch.nanquantile(distance, levels[:2], dim=1).mT).abs()
    usual = at_shape(fit.error_quantiles, torch.stack([near, end]).expand(len(found), 2)).clamp_min(1e-300)
    count = (~standard.isnan()).sum(1, keepdim=True).to(distance)
    # The standard error of this quantile of normal errors, relative to it.
    density = torch.exp(-(near**2) / 2) / math.sqrt(2 * math.pi)
    one = ((1 - REACH_LEVEL) * REACH_LEVEL / count.clamp_min(1)).sqrt() / (density * near)
    reach = (found / usual[:, :1] - REACH_ERRORS * one).clamp(1.0, LARGEST_TAIL)

    steps = fit.standard.shape[1]  # no origin is farther from the last value
    known = fit.standard[:, :, :steps] - shift[:, None, :steps]
    both = (side[:, :steps] * reach[:, k, None] for k, side in enumerate(sides))
    below, above = (side[:, None] for side in both)
    distance = (known / torch.where(known < 0, below, above)).clamp(-LARGEST_ERROR, LARGEST_ERROR)
    far = torch.nanquantile(distance.flatten(1), torch.stack([1 - levels[2], levels[2]]), dim=1).mT
    ratio = (torch.nan_to_num(far).abs() / usual[:, 1:]).clamp(1.0, LARGEST_TAIL)
    return reach, ratio ** (count / (count + NORMAL_SHAPE_COUNT))


def with_tails(
    error: Float[Tensor, "B S H"],
    z: Float[Tensor, "B S H"],
    reach: Float[Tensor, "B 2"],
    tails: Float[Tensor, "B 2"],
) -> Float[Tensor, "B S H"]:
    """Errors at normal scores ``z``, farther out: factors are reached at .9, those of tails at .99.

    Examples
    --------
    >>> import torch
    >>> from taylorformer_forecast.baselines.tails import with_tails
    >>> z = torch.tensor([-3.0, 1.0, 2.3263]).double().view(1, 3, 1)
    >>> one = torch.ones(1, 2)
    >>> with_tails(z, z, one, torch.tensor([[1.0, 1.5]])).flatten().round(decimals=2).tolist()
    [-3.0, 1.0, 3.49]
    >>> with_tails(z, z, torch.tensor([[2.0, 1.0]]), one).flatten().round(decimals=2).tolist()
    [-6.0, 1.0, 2.33]
    """
    near, end = torch.special.ndtri(z.new_tensor([REACH_LEVEL, TAIL_LEVEL]))
    part = ((z.abs() - BASE[-1]) / (end - BASE[-1])).clamp_min(0.0)  # beyond the last quantile of the shape
    more, far = (torch.where(z < 0, one[:, None, :1], one[:, None, 1:]) - 1 for one in (reach, tails))
    return error * (1 + more * (z.abs() / near).clamp_max(1.0)) * (1 + far * part)
