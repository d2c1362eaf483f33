"""Forecasts of any horizon; beyond that of a network its own errors come back as inputs, and are bounded."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor

from taylorformer_forecast.core.families import Components
from taylorformer_forecast.core.protocol import ForecastNet
from taylorformer_forecast.core.sampling import PathSamples, join_samples, sample_paths
from taylorformer_forecast.core.scaling import scale_window
from taylorformer_forecast.core.window import Window
from taylorformer_forecast.defaults import LINE_REACH, ROLLED_GROWTH_POWERS, ROLLED_SLACK

ROLLED_AT_ONCE = 2**25  # numbers in the windows of all paths at once: a quarter of a gigabyte


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

    def clipped(self, paths: Float[Tensor, "B S T D"], start: int) -> Float[Tensor, "B S T D"]:
        """Paths from step ``start`` on, no farther outside the bounds of means than these are apart."""
        steps = slice(start, start + paths.shape[2])
        low, high = self.low[:, None, steps], self.high[:, None, steps]
        least, most = (2 * low - high).nan_to_num(-torch.inf), (2 * high - low).nan_to_num(torch.inf)
        return torch.minimum(torch.maximum(paths, least), most)

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


@torch.no_grad()
def forecast_paths(
    net: ForecastNet,
    window: Window,
    n_paths: int,
    time_unit: float,
    floor: float | Tensor = 0.0,
    *,
    max_targets: int | None = None,
    generator: torch.Generator | None = None,
    max_rows: int = 8192,
    past_only: int = 0,
    dtype: torch.dtype | None = None,
    normalise: bool = True,
    keep_observed: bool = False,
    limits: tuple[Tensor, Tensor] | None = None,
) -> PathSamples:
    """Scale windows, draw joint paths of the targets, and return to the units of the data.

    A network serves the horizons that it was trained on. Beyond ``max_targets`` targets every path goes on
    from a new window whose context ends with the path's own last points, so that the paths stay joint over
    all targets and every window looks like those of the training. Errors that come back as inputs may grow
    without limit: from there on forecasts keep to :class:`RollingBounds`. Many windows are rolled in groups.

    Parameters
    ----------
    net : ForecastNet
        The network, in evaluation mode.
    window : Window
        Windows in the units of the data; the values of the targets are ignored.
    n_paths : int
        Paths S of each window.
    time_unit, floor, dtype, normalise
        See :func:`~taylorformer_forecast.core.scaling.scale_window`.
    max_targets : int, optional
        Targets predicted from one context; all by default.
    generator : torch.Generator, optional
        Source of randomness, on the window's device.
    max_rows : int, default=8192
        See :func:`~taylorformer_forecast.core.sampling.sample_paths`.
    past_only : int, default=0
        How many covariates, the last ones, are known of the past only: targets do not see them.
    keep_observed : bool, default=False
        See :func:`~taylorformer_forecast.core.sampling.sample_paths`. All targets are then predicted from
        one context, whatever ``max_targets``.
    limits : (Tensor, Tensor), optional
        Lowest and highest means beyond ``max_targets``, of shape (B, T, D); by default
        :func:`mean_range` of the contexts.

    Returns
    -------
    PathSamples
        In the units of the data, float64.
    """
    n_context, n_targets, n_windows = window.n_context, window.n_targets, len(window.y)
    chunk = n_targets if max_targets is None or keep_observed else min(max_targets, n_targets)
    at_once = n_windows
    if chunk < n_targets:
        n_columns = 1 + window.y.shape[2] + (0 if window.covariates is None else window.covariates.shape[2])
        at_once = max(1, ROLLED_AT_ONCE // (n_paths * (n_context + chunk) * n_columns))

    def drawn(near: Window, paths_each: int, floor: float | Tensor) -> PathSamples:
        scaled, scale = scale_window(near.hide_covariates(past_only), time_unit, floor, dtype, normalise)
        return sample_paths(net, scaled, paths_each, generator, max_rows, keep_observed).to_data(scale)

    groups = []
    for part in (slice(start, start + at_once) for start in range(0, n_windows, at_once)):
        own = floor[part] if isinstance(floor, Tensor) else floor
        bounded = None if limits is None else (limits[0][part], limits[1][part])
        groups.append(_rolled(drawn, window.rows(part), n_paths, chunk, own, bounded))
    return groups[0] if len(groups) == 1 else join_samples(groups, 0)


def _rolled(
    drawn: Callable[[Window, int, float | Tensor], PathSamples],
    window: Window,
    n_paths: int,
    chunk: int,
    floor: float | Tensor,
    limits: tuple[Tensor, Tensor] | None,
) -> PathSamples:
    """Joint paths of all targets, ``chunk`` of them at a time; see :func:`forecast_paths`."""
    n_context, n_targets = window.n_context, window.n_targets
    n_windows, paths_each = len(window.y), n_paths
    y, observed = window.y[:, :n_context], window.observed[:, :n_context]  # of the latest context
    parts: list[PathSamples] = []
    bounds: RollingBounds | None = None
    for start in range(0, n_targets, chunk):
        near = window.points(slice(start, start + n_context + chunk))
        if start:  # one window for each path, its context the path's last points
            near = near.map(lambda value: value.repeat_interleave(n_paths, 0))
            if paths_each > 1:
                y, observed = (value.repeat_interleave(n_paths, 0) for value in (y, observed))
                floor = floor.repeat_interleave(n_paths, 0) if isinstance(floor, Tensor) else floor
                paths_each = 1
            last = parts[-1].paths
            if bounds is not None:  # draws of a family without a variance may be of any size
                last = bounds.clipped(last, start - chunk)
            last = last.flatten(0, 1).to(y.dtype)
            y = torch.cat([y, last], 1)[:, chunk:]
            observed = torch.cat([observed, torch.ones_like(last, dtype=torch.bool)], 1)[:, chunk:]
            near = replace(
                near,
                y=torch.cat([y, near.y[:, n_context:]], 1),
                observed=torch.cat([observed, near.observed[:, n_context:]], 1),
            )
        samples = drawn(near, paths_each, floor)
        if start:
            samples = samples.map(lambda value: value.reshape(n_windows, n_paths, *value.shape[2:]))
        if bounds is not None:
            samples = samples.affine(*bounds.correction(samples.conditionals, start))
        elif chunk < n_targets and samples.conditionals.family.has_location:
            bounds = RollingBounds.of(*(limits or context_limits(window)), samples.conditionals)
        parts.append(samples)
    return join_samples(parts, 2)
