"""Distribution of the errors of a forecast from every origin: scale and shape."""

from __future__ import annotations

import math
from typing import TypeAlias

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor

from taylorformer_forecast.defaults import (
    CURVE_COUNT,
    ERROR_GROWTH_POWER,
    ERROR_LEVEL_EVIDENCE,
    ERROR_LEVEL_FLOOR,
    ERROR_LEVEL_POWERS,
    ERROR_RECENCY,
    LARGEST_ASYMMETRY,
    LARGEST_ERROR,
    LARGEST_SKEWED_ERROR,
    MOST_DEPENDENT_STEPS,
    NORMAL_SHAPE_COUNT,
    SHAPE_LEVELS,
    SKEWNESS_COUNT,
)

ByOrigin: TypeAlias = Float[Tensor, "B n H"]  # of every origin and step
BASE = torch.special.ndtri((1 + torch.tensor(SHAPE_LEVELS, dtype=torch.float64)) / 2).tolist()


def past_errors(y: Float[Tensor, "B n"], loc: ByOrigin) -> ByOrigin:
    """Value minus forecast of every origin and step; NaN where one is unknown.

    Origins with fewer than two observed values do not count.

    Examples
    --------
    >>> import torch
    >>> from taylorformer_forecast.baselines.errors import past_errors
    >>> y = torch.tensor([[1.0, 2.0, 4.0]])
    >>> past_errors(y, y[..., None]).tolist()
    [[[nan], [2.0], [nan]]]
    """
    horizon = loc.shape[2]
    ahead = F.pad(y[:, 1:], (0, horizon), value=torch.nan).unfold(1, horizon, 1)
    enough = (~y.isnan()).cumsum(1) >= 2
    return torch.where(enough[..., None], ahead - loc, torch.nan)


def _arrived(values: ByOrigin, share: Float[Tensor, "B n P"], own: Bool[Tensor, "B n P"]) -> ByOrigin:
    """Sums of what is known at each point, over the origins whose forecasts are those that are used there."""
    total = torch.zeros_like(values)
    for part, known in zip(share.unbind(-1), own.unbind(-1), strict=True):
        late = torch.zeros_like(values)
        for step in range(min(values.shape[2], values.shape[1] - 1)):
            n = values.shape[1] - step - 1
            late[:, step + 1 :, step] = values[:, :n, step] * known[:, :n]
        total += part[..., None] * late.cumsum(1)
    return total


def error_level(
    y: Float[Tensor, "B n"], loc: ByOrigin, error: ByOrigin, bounded: Bool[Tensor, "B n"]
) -> tuple[ByOrigin, Float[Tensor, "B n"]]:
    """Levels that errors grow with, and the power of them that they grow as.

    Errors grow with a power of the forecast where no value can be negative. It is the first of
    ``ERROR_LEVEL_POWERS``, or a larger one that the errors of one step make likely: of a series that has
    grown tenfold, errors may have grown tenfold as well.

    Parameters
    ----------
    y : Tensor of shape (B, n)
        Values.
    loc, error : Tensor of shape (B, n, H)
        Forecasts and errors of every origin, NaN where unknown.
    bounded : bool Tensor of shape (B, n)
        Origins from which no forecast is negative.

    Returns
    -------
    level : Tensor of shape (B, n, H)
        Of the forecasts of every origin; 1 where they may be negative.
    power : Tensor of shape (B, n)
        By the errors that were known at every origin.

    Examples
    --------
    >>> import torch
    >>> from taylorformer_forecast.baselines.errors import error_level
    >>> growing = torch.logspace(0, 2, 90)[None].double()
    >>> error = 0.1 * growing * (-1.0) ** torch.arange(90)
    >>> level, power = error_level(growing, growing[..., None], error[..., None], growing > 0)
    >>> level[0, -1].round().tolist(), power[0, [0, -1]].tolist()
    ([100.0], [0.5, 1.0])
    """
    seen = (~y.isnan()).cumsum(1).clamp_min(1)
    mean = torch.nan_to_num(y).abs().cumsum(1) / seen
    level = torch.maximum(loc.abs(), ERROR_LEVEL_FLOOR * mean[..., None])
    level = torch.where(bounded[..., None] & (level > 0), level, 1.0)
    # Likelihoods of Laplace errors, the recent of which count for more, as in their scale.
    one, known = level[:, :-1, 0, None].log(), ~error[:, :-1, :1].isnan()
    weight = known * known.cumsum(1).to(y) ** ERROR_RECENCY
    powers, size = y.new_tensor(ERROR_LEVEL_POWERS), torch.nan_to_num(error[:, :-1, :1]).abs()
    spread, of_level = weight * size * (-powers * one).exp(), weight * one
    total = weight.cumsum(1).clamp_min(1.0)
    evidence = spread.cumsum(1).div_(total).clamp_min(1e-300).log() + powers * of_level.cumsum(1) / total
    evidence = -known.cumsum(1) * evidence
    evidence[..., 1:] -= ERROR_LEVEL_EVIDENCE
    power = F.pad(powers[evidence.argmax(-1)], (1, 0), value=ERROR_LEVEL_POWERS[0])
    return level, power


def error_scale(
    error: ByOrigin,
    level: ByOrigin,
    power: Float[Tensor, "B n"],
    step: Float[Tensor, "B n"],
    share: Float[Tensor, "B n P"],
    own: Bool[Tensor, "B n P"],
) -> ByOrigin:
    """Mean absolute error of every step at every origin, by the errors that are known there.

    Forecasts without the season of a series may have errors many times as large as those with it. So errors
    count as far as the forecasts that are used later were known where they were made.

    Parameters
    ----------
    error : Tensor of shape (B, n, H)
        Errors of every origin, NaN where unknown.
    level, power : Tensor of shape (B, n, H), Tensor of shape (B, n)
        What errors grow with, see :func:`error_level`.
    step : Tensor of shape (B, n)
        What one error is thought to be before any is known; counts for one.
    share : Tensor of shape (B, n, P)
        Weights of P parts of the forecasts at every origin, sum 1.
    own : bool Tensor of shape (B, n, P)
        Origins from which each part has forecasts of its own.

    Returns
    -------
    Tensor of shape (B, n, H)
        Mean absolute errors, drawn towards one power of the step.

    Examples
    --------
    >>> import torch
    >>> from taylorformer_forecast.baselines.errors import error_scale
    >>> one = torch.ones(1, 50, 1)
    >>> found = error_scale(one.expand(1, 50, 3), one, one[..., 0], one[..., 0], one, one > 0)
    >>> found[0, -1].round(decimals=1).tolist()
    [1.0, 1.0, 1.0]
    """
    scale = torch.zeros_like(error)
    for each in power.unique().tolist():
        rows = (power == each).any(1)
        unit = level[rows] ** each
        found = _curve(error[rows] / unit, step[rows] / unit[..., 0], share[rows], own[rows]) * unit
        scale[rows] = torch.where((power == each)[rows, :, None], found, scale[rows])
    return scale


def _curve(
    error: ByOrigin, step: Float[Tensor, "B n"], share: Float[Tensor, "B n P"], own: Bool[Tensor, "B n P"]
) -> ByOrigin:
    """Mean absolute errors of every step, in units of which none grows with the level."""
    known = (~error.isnan()).to(error.dtype)
    count = _arrived(known, share, own)
    # Weights in proportion to a power of the number of the origin: the recent past counts for more.
    recency = (known.amax(2).cumsum(1) ** ERROR_RECENCY)[..., None]
    weight = _arrived(known * recency, share, own)
    h = torch.arange(1, error.shape[2] + 1, dtype=error.dtype, device=error.device)
    guess = step[..., None] * h**ERROR_GROWTH_POWER
    mean = _arrived(torch.nan_to_num(error).abs() * recency, share, own) / weight.clamp_min(1e-9)
    mean = (count * mean + guess) / (count + 1)
    has = mean > 0
    seen = (count > 0) | (count.amax(-1, keepdim=True) == 0)  # what is only guessed bends no curve
    sure = torch.where(has & seen, (count + 1) / h.clamp_max(MOST_DEPENDENT_STEPS).sqrt(), 0.0)
    size, x = torch.where(has, mean, 1.0).log(), h.log().expand_as(mean)
    total = sure.sum(-1, keepdim=True).clamp_min(1e-9)
    centre_x, centre = (sure * x).sum(-1, keepdim=True) / total, (sure * size).sum(-1, keepdim=True) / total
    joint = (sure * (x - centre_x) * (size - centre)).sum(-1, keepdim=True)
    power = (joint + CURVE_COUNT * ERROR_GROWTH_POWER) / (
        (sure * (x - centre_x) ** 2).sum(-1, keepdim=True) + CURVE_COUNT
    )
    curve = centre + power.clamp(0.0, 1.0) * (x - centre_x)
    scale = ((sure * size + CURVE_COUNT * curve) / (sure + CURVE_COUNT)).exp()
    return torch.where(has.any(-1, keepdim=True), scale, 0.0)


def shape(standard: ByOrigin, new: Bool[Tensor, "B 1"]) -> Float[Tensor, "B J"]:
    """Quantiles of absolute errors in mean absolute errors, drawn towards those of a normal distribution.

    Both sides are taken together; :func:`asymmetry` tells them apart.

    Parameters
    ----------
    standard : Tensor of shape (B, n, H)
        Errors over their scale, NaN where unknown.
    new : bool Tensor of shape (B, 1)
        Where the scale is that of a new level; of it past errors are small parts.

    Returns
    -------
    Tensor of shape (B, J)
        Quantiles at ``SHAPE_LEVELS``; the normal distribution has ``BASE`` times its deviation.

    Examples
    --------
    >>> import torch
    >>> from taylorformer_forecast.baselines.errors import BASE, shape
    >>> z = torch.randn(1, 5000, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    >>> bool((shape(z, torch.zeros(1, 1).bool())[0] - torch.tensor(BASE)).abs().max() < 0.1)
    True
    """
    known = standard[:, :, : standard.shape[1]]  # no origin is farther from the last value
    size = known.abs().clamp_max(LARGEST_ERROR).flatten(1)
    level = torch.tensor(SHAPE_LEVELS, dtype=size.dtype, device=size.device)
    own = torch.nan_to_num(torch.nanquantile(size, level, dim=1).mT)
    count = (~standard[:, :, 0].isnan()).sum(1, keepdim=True).to(size.dtype)
    normal = math.sqrt(math.pi / 2) * size.new_tensor(BASE)
    part = count / (count + NORMAL_SHAPE_COUNT)
    own = torch.where(new, torch.maximum(own, normal), own)
    # Errors on new points are larger than those of forecasts that were weighted by few errors.
    return (part * own + (1 - part) * normal) * (1 + 1 / count.clamp_min(1))


def asymmetry(
    error: Float[Tensor, "B n"], scale: Float[Tensor, "B H"], steady: Bool[Tensor, "B 1"]
) -> tuple[Float[Tensor, "B H"], Float[Tensor, "B H"], Float[Tensor, "B H"]]:
    """Where the median lies, and how wide both sides of it are, by the skewness of one-step errors.

    Of skewed errors that are zero in the mean the median lies on the short side. Skewness counts for less at
    steps with larger errors, where those of single steps add up.

    Parameters
    ----------
    error : Tensor of shape (B, n)
        Errors of one step over their scale, NaN where unknown.
    scale : Tensor of shape (B, H)
        Mean absolute errors of every step.
    steady : bool Tensor of shape (B, 1)
        Whether no shift of the level, whose errors tell nothing of skewness, may have begun.

    Returns
    -------
    shift : Tensor of shape (B, H)
        Median less mean, in scales.
    below, above : Tensor of shape (B, H)
        Factors of the distances of quantiles below and above the median; the short side is narrower.

    Examples
    --------
    >>> import torch
    >>> from taylorformer_forecast.baselines.errors import asymmetry
    >>> z = torch.randn(1, 500, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    >>> one = torch.ones(1, 1).double()
    >>> shift, below, above = asymmetry(z.exp() - 1.65, one, one > 0)
    >>> bool(shift < -0.3), bool(below < 0.7), bool(above == 1)
    (True, True, True)
    """
    known = ~error.isnan() & steady
    count = known.sum(1, keepdim=True).clamp_min(1).to(error.dtype)
    # In medians, since the few large errors of an old shift of the level also raise the mean.
    median = torch.nanmedian(error.abs(), 1, keepdim=True).values
    most = LARGEST_SKEWED_ERROR * torch.nan_to_num(median)
    size = torch.where(known, error, 0.0).clamp(-most, most)
    size = torch.where(known, size - size.sum(1, keepdim=True) / count, 0.0)
    square, cube = ((size**k).sum(1, keepdim=True) / count for k in (2, 3))
    skewness = cube / (square**1.5).clamp_min(1e-300)
    side = LARGEST_ASYMMETRY * torch.tanh(skewness * count / (count + SKEWNESS_COUNT))
    # The root of what it would be if errors were sums of those of single steps.
    side = side * (scale[:, :1] / scale).clamp_max(1.0).sqrt()
    return -side.sinh(), (-side).clamp_max(0.0).exp(), side.clamp_max(0.0).exp()


def at_shape(shape: Float[Tensor, "B J"], z: Float[Tensor, "B S"]) -> Float[Tensor, "B S"]:
    """Errors in units of their scale, at the quantiles of a standard normal distribution.

    Lines join the quantiles of :func:`shape`, from the origin on, and go on beyond the last.

    Examples
    --------
    >>> import torch
    >>> from taylorformer_forecast.baselines.errors import BASE, at_shape
    >>> at_shape(2 * torch.tensor([BASE]), torch.tensor([[-1.0, 0.0, 0.5]])).tolist()
    [[-2.0, 0.0, 1.0]]
    """
    base = z.new_tensor([0.0, *BASE])
    knots = torch.cat([torch.zeros_like(shape[:, :1]), shape], 1)
    right = torch.searchsorted(base, z.abs().contiguous()).clamp(1, len(base) - 1)
    left, end = knots.gather(1, right - 1), knots.gather(1, right)
    part = (z.abs() - base[right - 1]) / (base[right] - base[right - 1])
    return (left + part * (end - left)) * z.sign()
