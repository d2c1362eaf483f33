"""Location and scale of each window, taken from what was observed in its context."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor

from taylorformer_forecast.core.window import Window
from taylorformer_forecast.defaults import MIN_CONTEXT_POINTS


@dataclass(frozen=True)
class Scale:
    """Affine map between scaled values and the units of the data.

    Parameters
    ----------
    loc, scale : Tensor of shape (B, 1, D)
        ``y = loc + scale * scaled``.
    """

    loc: Float[Tensor, "B 1 D"]
    scale: Float[Tensor, "B 1 D"]

    def to_data(self, scaled: Float[Tensor, "B *rest D"]) -> Float[Tensor, "B *rest D"]:
        """Return scaled values to the units of the data."""
        shape = (self.loc.shape[0], *[1] * (scaled.ndim - 2), self.loc.shape[-1])
        return scaled * self.scale.view(shape) + self.loc.view(shape)


def scale_window(
    window: Window,
    time_unit: float,
    floor: float | Tensor = 0.0,
    dtype: torch.dtype | None = None,
    normalise: bool = True,
    origin: Tensor | None = None,
) -> tuple[Window, Scale]:
    """Put times and values of a window on the scale that networks expect.

    Times are measured from the last context point in units of ``time_unit`` (the span of a full context), so
    that one network serves any horizon and gaps of equal length look equal in every window. Values are
    centred on the mean of the observed context and divided by its standard deviation.

    Parameters
    ----------
    window : Window
        Times and values in the units of the data. Give float64 where values are large.
    time_unit : float
        Length of the time that maps to 1.
    floor : float or Tensor of shape (B, 1, D), default=0.0
        Smallest standard deviation to divide by, for contexts that hardly move. Where the standard deviation
        and the floor are both zero, values are divided by 1.
    dtype : torch.dtype, optional
        Type of the scaled window, by default torch's default.
    normalise : bool, default=True
        Without, only times are scaled: for values that have a natural zero and unit, such as counts.
    origin : Tensor of shape (B, 1) or (B, 1, X), optional
        Time that maps to 0, by default that of the last context point.

    Returns
    -------
    Window, Scale
        The scaled window and the map back.

    Examples
    --------
    >>> import torch
    >>> from taylorformer_forecast.core.scaling import scale_window
    >>> from taylorformer_forecast.core.window import Window
    >>> w = Window(torch.arange(4.0)[None], torch.tensor([[[2.0], [4.0], [6.0], [9.0]]]), n_context=2)
    >>> scaled, scale = scale_window(w, time_unit=2.0)
    >>> scaled.t.tolist(), scaled.y[..., 0].tolist()
    ([[-0.5, 0.0, 0.5, 1.0]], [[-1.0, 1.0, 3.0, 6.0]])
    >>> bool(torch.allclose(scale.to_data(scaled.y), w.y))
    True
    """
    dtype, n_context = dtype or torch.get_default_dtype(), window.n_context
    y, weight = window.y[:, :n_context], window.observed[:, :n_context].to(window.y.dtype)
    count = weight.sum(1, keepdim=True).clamp_min(1.0)
    loc = (y * weight).sum(1, keepdim=True) / count
    std = (((y - loc) * weight).square().sum(1, keepdim=True) / count).sqrt()
    std = torch.where(std > 8 * torch.finfo(std.dtype).eps * loc.abs(), std, 0.0)  # rounding is not spread
    std = torch.maximum(std, torch.as_tensor(floor, dtype=std.dtype, device=std.device))
    std = torch.where(std > 0, std, torch.ones_like(std))
    if not normalise:
        loc, std = torch.zeros_like(loc), torch.ones_like(std)
    origin = window.t[:, n_context - 1 : n_context] if origin is None else origin
    t = (window.t - origin) / time_unit
    scaled = replace(window, t=t.to(dtype), y=((window.y - loc) / std).to(dtype))
    if window.covariates is not None:
        scaled = replace(scaled, covariates=window.covariates.to(dtype))
    return scaled, Scale(loc, std)


def least_scale(window: Window, floor: float | Tensor, spread: float | Tensor = 1.0) -> Tensor:
    """Smallest scale of each window and column.

    Parameters
    ----------
    window : Window
        Windows in the units of their series.
    floor : float or Tensor of shape (B, 1, D)
        Smallest standard deviation of a context.
    spread : float or Tensor of shape (B, 1, D), default=1.0
        Standard deviation of the series: 1 where these are standardised.

    Returns
    -------
    Tensor
        Shape (B, 1, D): the floor, or the deviation of the series where fewer than three points of the
        context were observed and say nothing about its spread; a part of that where those that were lie in
        less than half of it, as after an outage.

    Examples
    --------
    >>> import torch
    >>> from taylorformer_forecast.core.window import Window
    >>> from taylorformer_forecast.core.scaling import least_scale
    >>> y = torch.tensor([[[1.0], [1.0], [1.0]], [[torch.nan], [1.0], [1.0]]])
    >>> least_scale(Window(torch.zeros(2, 3), y, n_context=3), 0.25).flatten().tolist()
    [0.25, 1.0]
    """
    seen = window.observed[:, : window.n_context]
    before, after = (~known.cummax(1).values for known in (seen, seen.flip(1)))  # any that was observed
    outside = (before.sum(1, keepdim=True) + after.sum(1, keepdim=True)) / window.n_context
    part = torch.where(outside > 0.5, outside.clamp_max(1.0).sqrt(), 0.0)
    part = torch.where(seen.sum(1, keepdim=True) < MIN_CONTEXT_POINTS, 1.0, part)
    least, usual = (torch.as_tensor(value).to(window.y) for value in (floor, spread))
    return torch.maximum(part * usual, least)
