"""Bounds of forecasts beyond the horizon of a network, where its own errors come back as inputs."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from taylorformer_forecast.core.families import Components
from taylorformer_forecast.core.window import Window
from taylorformer_forecast.defaults import LINE_REACH, ROLLED_GROWTH_POWERS, ROLLED_SLACK


def _positive(x: Tensor) -> Tensor:
    """Numbers to divide by: at least the smallest normal one of their type."""
    return x.clamp_min(torch.finfo(x.dtype).tiny)


def moments(parts: Components) -> tuple[Float[Tensor, "B T D"], Float[Tensor, "B T D"]]:
    """Mean of the locations of all components and paths, and root mean square distance of components from it.

    Parameters
    ----------
    parts : Components
        Arrays of shape (B, S, T, D, K).

    Returns
    -------
    mean, spread : Tensor of shape (B, T, D)
        Where there is one component they are those of a location and a scale.

    Examples
    --------
    >>> import torch
    >>> from taylorformer_forecast.core.families import Components, find_family
    >>> from taylorformer_forecast.core.rolling import moments
    >>> loc = torch.tensor([-3.0, 3.0]).view(1, 2, 1, 1, 1)
    >>> [v.item() for v in moments(Components(find_family("normal"), loc, 4 * torch.ones_like(loc)))]
    [0.0, 5.0]
    """
    weights = torch.ones_like(parts.loc) if parts.weights is None else parts.weights.expand_as(parts.loc)
    weights = weights / weights.sum((1, 4), keepdim=True)
    mean = (weights * parts.loc).sum((1, 4), keepdim=True)
    square = (weights * ((parts.loc - mean) ** 2 + parts.scale**2)).sum((1, 4))
    return mean[:, 0, ..., 0], square.sqrt()


def mean_range(
    t: Float[Tensor, "B n"], y: Float[Tensor, "B n D"], ahead: Float[Tensor, "B T"]
) -> tuple[Float[Tensor, "B T D"], Float[Tensor, "B T D"]]:
    """Bounds of means, from what was observed before.

    A mean may leave the range of the values by its width, or as far as the line through them leads, to the
    degree that the line fits. The line ends three times as far ahead as it reaches back.

    Parameters
    ----------
    t, y : Tensor
        Times and values; NaN where nothing was observed. Where nothing was at all the bounds are NaN.
    ahead : Tensor of shape (B, T)
        Times of the forecasts.

    Returns
    -------
    low, high : Tensor of shape (B, T, D)
        Bounds.

    Examples
    --------
    >>> import torch
    >>> from taylorformer_forecast.core.rolling import mean_range
    >>> t, y = torch.arange(3.0)[None], torch.tensor([[[0.0], [2.0], [0.0]]])
    >>> [v.flatten().tolist() for v in mean_range(t, y, torch.tensor([[3.0, 50.0]]))]
    [[-2.0, -2.0], [4.0, 4.0]]
    """
    seen = ~y.isnan()
    top = torch.where(seen, y, -torch.inf).amax(1, keepdim=True)
    bottom = torch.where(seen, y, torch.inf).amin(1, keepdim=True)
    count = seen.sum(1, keepdim=True).clamp_min(1)

    def mean(values: Tensor) -> Tensor:
        return torch.where(seen, values, 0.0).sum(1, keepdim=True) / count

    every = t[..., None].expand_as(y)
    at, of = every - mean(every), y - mean(y)
    joint, wide = mean(at * of), mean(at * at)
    slope = joint / _positive(wide)
    fits = slope * joint / _positive(mean(of * of))  # squared correlation
    reach = torch.minimum(ahead - t[:, -1:], LINE_REACH * (t[:, -1:] - t[:, :1]))[..., None]
    width, lead = torch.where(seen.any(1, keepdim=True), top - bottom, torch.nan), slope * fits * reach
    return bottom - torch.maximum(width, -lead), top + torch.maximum(width, lead)


def context_limits(window: Window) -> tuple[Float[Tensor, "B T D"], Float[Tensor, "B T D"]]:
    """Bounds of the means of all targets, from the contexts alone: see :func:`mean_range`."""
    n, t = window.n_context, window.times[..., 0]
    y = torch.where(window.observed, window.y, torch.nan)[:, :n]
    return mean_range(t[:, :n], y, t[:, n:])


@dataclass(frozen=True)
class RollingBounds:
    """How far, and how wide, forecasts of each window may be beyond the horizon of the network.

    Widths may grow as the errors within the horizon do, between the square root of the step and the step, to
    twice of that, and up to half of the range that means share.

    Parameters
    ----------
    low, high : Tensor of shape (B, T, D)
        Bounds of the means.
    spread : Tensor of shape (B, T, D)
        Bounds of the spread.
    """

    low: Tensor
    high: Tensor
    spread: Tensor

    @classmethod
    def of(cls, low: Tensor, high: Tensor, first: Components) -> RollingBounds:
        """From bounds of the means, and the distributions of the targets within the horizon."""
        _, spread = moments(first)
        horizon = spread.shape[1]
        power = ROLLED_GROWTH_POWERS[0] * torch.ones_like(spread[:, :1])
        if horizon > 1:
            ends = _positive(spread[:, -1:]) / _positive(spread[:, :1])
            power = (ends.log() / math.log(horizon)).clamp(*ROLLED_GROWTH_POWERS)
        step = torch.arange(1, low.shape[1] + 1, device=low.device, dtype=low.dtype)[:, None]
        most = ROLLED_SLACK * spread.amax(1, keepdim=True) * (step / horizon) ** power
        # A constant has no range; its forecasts have the width that they have within the horizon.
        widest = torch.maximum((high - low) / 2, spread.amin(1, keepdim=True))
        return cls(low, high, torch.minimum(most, widest))

    def correction(self, parts: Components, start: int) -> tuple[Tensor, Tensor]:
        """Shift and factor, (B, 1, T, D), that bring distributions from step ``start`` on within the bounds.

        One map serves all paths of a step: they stay joint, quantiles ordered, and means within their bands.
        """
        mean, spread = moments(parts)
        steps = slice(start, start + mean.shape[1])
        factor = (self.spread[:, steps] / _positive(spread)).clamp_max(1.0)
        new = torch.minimum(torch.maximum(mean, self.low[:, steps]), self.high[:, steps])
        unbounded = new.isnan() | factor.isnan()  # nothing was observed
        factor, new = torch.where(unbounded, 1.0, factor), torch.where(unbounded, mean, new)
        shift = torch.where((factor == 1) & (new == mean), 0.0, new - factor * mean)  # no bit changes within
        return shift[:, None], factor[:, None]
