"""Bounds of values and of forecasts."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from taylorformer_forecast.baselines.seasonal import season_of_zeros
from taylorformer_forecast.baselines.smoothing import slope_so_far
from taylorformer_forecast.baselines.zeros import never_negative
from taylorformer_forecast.defaults import (
    LARGEST_GROWTH,
    LARGEST_RISE,
    LONGEST_SCALE,
    LOWEST_PART,
    NEGLIGIBLE,
    RANGE_MARGIN,
    RANGE_OVERSHOOT,
    RECURRING_RUNS,
    RECURRING_SHARE,
    SCALE_SHARE,
)


def bounds(y: Float[Tensor, "B n"]) -> tuple[Float[Tensor, " B"], Float[Tensor, " B"]]:
    """Bounds of the values of series: zero where none is negative, and ends at which values stop.

    Values stop at the largest one if it comes again and again, twice as often as the next one below it: a
    processor at 100 %, a plant at its capacity. Or there are as few different values as on a scale, as of
    ratings, and a fifth of them are the largest, in every quarter of the series. The same holds of the
    smallest one.

    Parameters
    ----------
    y : Tensor of shape (B, n)
        Series; NaN where nothing was observed.

    Returns
    -------
    low, high : Tensor of shape (B,)
        Infinite where there is no bound.

    Examples
    --------
    >>> import torch
    >>> from taylorformer_forecast.baselines.bounds import bounds
    >>> load = torch.rand(2, 60, generator=torch.Generator().manual_seed(0)) * 120
    >>> load[0] = load[0].clamp_max(100.0)
    >>> [end.tolist() for end in bounds(load - 1)]
    [[-inf, -inf], [99.0, inf]]
    """
    y = without_negligible(y)
    high, low = _recurring_end(y), -_recurring_end(-y)
    return torch.where(never_negative(y)[:, -1], low.clamp_min(0.0), low), high


def without_negligible(y: Float[Tensor, "B n"]) -> Float[Tensor, "B n"]:
    """Series with zeros in the place of negative values, where all of those are next to nothing.

    A solar plant may have a value of -.01 at night.

    Examples
    --------
    >>> import torch
    >>> from taylorformer_forecast.baselines.bounds import without_negligible
    >>> without_negligible(torch.tensor([[-0.01, 20.0, 30.0], [-2.0, 20.0, 30.0]])).amin(1).tolist()
    [0.0, -2.0]
    """
    known = torch.nan_to_num(y)
    size = known.abs().sum(1) / (~y.isnan()).sum(1).clamp_min(1)
    rows = (known.amin(1) < 0) & (known.amin(1) > -NEGLIGIBLE * size)
    return torch.where(rows[:, None], y.clamp_min(0.0), y) if bool(rows.any()) else y


def recurring_minimum(y: Float[Tensor, "B n"], seasons: Sequence[int]) -> Float[Tensor, "B 1"]:
    """Smallest values of series that stop there, where a season says when; 0 for others.

    What a plant uses by itself at night is such a value: the rest of the series is what lies above it.

    Parameters
    ----------
    y : Tensor of shape (B, n)
        Series; NaN where nothing was observed.
    seasons : sequence of int
        Steps of the seasons that are tried.

    Examples
    --------
    >>> import torch
    >>> from taylorformer_forecast.baselines.bounds import recurring_minimum
    >>> y = torch.tensor([[5.0, -0.5, 4.0, -0.5, 6.5, -0.5, 7.0, -0.5, 4.4, -0.5]])
    >>> recurring_minimum(y, [2]).tolist()
    [[-0.5]]
    """
    low = -_recurring_end(-y)[:, None]
    low = torch.where(low.isfinite(), low, 0.0)
    return torch.where(season_of_zeros(y - low, seasons)[:, None], low, 0.0) if bool(low.any()) else low


def _recurring_end(y: Float[Tensor, "B n"]) -> Float[Tensor, " B"]:
    """Largest values, of those series in which they come again and again; infinity for others."""
    seen = ~y.isnan()
    values = torch.where(seen, y, -torch.inf)
    top = values.amax(1, keepdim=True)
    at = values == top
    runs = (at[:, 1:] & ~at[:, :-1]).sum(1) + at[:, 0]
    just_below = (values == torch.where(at, -torch.inf, values).amax(1, keepdim=True)).sum(1)
    often = at.sum(1) >= torch.maximum(RECURRING_SHARE * seen.sum(1), 2 * just_below)
    ordered = torch.where(seen, y, top).sort(1).values
    of_scale = (ordered.diff(dim=1) > 0).sum(1) < LONGEST_SCALE
    quarter = 4 * (seen.cumsum(1) - 1) // seen.sum(1, keepdim=True).clamp_min(1)
    always = torch.stack([(at & (quarter == k)).any(1) for k in range(4)]).all(0)  # what rises has new ends
    often |= of_scale & always & (at.sum(1) >= SCALE_SHARE * seen.sum(1))
    return torch.where(often & (runs >= RECURRING_RUNS), top[:, 0], torch.inf)


def positive_so_far(y: Float[Tensor, "B n"]) -> Tensor:
    """Whether all values up to each point are positive, shape (B, n).

    Examples
    --------
    >>> import torch
    >>> from taylorformer_forecast.baselines.bounds import positive_so_far
    >>> positive_so_far(torch.tensor([[1.0, float("nan"), 0.0, 2.0]])).tolist()
    [[True, True, False, False]]
    """
    return ~((y <= 0).cumsum(1) > 0)


def forecast_range(
    y: Float[Tensor, "B n"], horizon: int, bounded: Bool[Tensor, "B n"]
) -> tuple[Float[Tensor, "B n H"], Float[Tensor, "B n H"]]:
    """Lower and upper bound of forecasts from every origin.

    A forecast may leave the range of the values so far by the width of that range. A positive series may
    also grow as fast as the line through its logarithms, to the degree that the line fits, up to three times
    its largest value.

    Parameters
    ----------
    y : Tensor of shape (B, n)
        Series without outliers; NaN where nothing was observed.
    horizon : int
        Number of steps ahead.
    bounded : bool Tensor of shape (B, n)
        Origins from which no forecast is negative.

    Returns
    -------
    low, high : Tensor of shape (B, n, H)
        Bounds of the forecasts from each point; both are 0 before the first observed value.

    Examples
    --------
    >>> import torch
    >>> from taylorformer_forecast.baselines.bounds import forecast_range
    >>> low, high = forecast_range(torch.tensor([[4.0, 6.0, 5.0]]), 1, torch.tensor([[True] * 3]))
    >>> low[0, -1].tolist(), high[0, -1].tolist()
    ([2.0], [8.0])
    """
    observed = ~y.isnan()
    any_seen = observed.cumsum(1) > 0
    top = torch.where(observed, y, -torch.inf).cummax(1).values
    bottom = torch.where(observed, y, torch.inf).cummin(1).values
    top, bottom = torch.where(any_seen, top, 0.0), torch.where(any_seen, bottom, 0.0)
    width = (top - bottom)[..., None]
    positive = positive_so_far(y)
    slope, r2 = slope_so_far(torch.where(observed & (y > 0), y, torch.nan).log())
    steps = torch.arange(1, horizon + 1, dtype=y.dtype, device=y.device)
    growth = torch.expm1(((slope * r2).clamp_min(0.0)[..., None] * steps).clamp_max(10.0))
    growth = torch.where(positive[..., None], growth.clamp_max(LARGEST_GROWTH) * top[..., None], 0.0)
    low = bottom[..., None] - width
    low = torch.where(bounded[..., None], low.clamp_min(0.0), low).expand(-1, -1, horizon)
    return low, top[..., None] + torch.maximum(width, growth)


def range_of_quantiles(
    y: Float[Tensor, "B n"], low: Float[Tensor, "B H"], high: Float[Tensor, "B H"]
) -> tuple[Float[Tensor, "B H"], Float[Tensor, "B H"]]:
    """Bounds of quantiles, a little farther out than those of forecasts.

    Where no value is negative, zero is a bound of both. None is farther then than three times the largest
    value, unless a forecast is.

    Parameters
    ----------
    y : Tensor of shape (B, n)
        Series without wrong values; NaN where nothing was observed.
    low, high : Tensor of shape (B, H)
        Of forecasts from the end, see :func:`forecast_range`.

    Returns
    -------
    low, high : Tensor of shape (B, H)
        Of quantiles.

    Examples
    --------
    >>> import torch
    >>> from taylorformer_forecast.baselines.bounds import range_of_quantiles
    >>> low, high = torch.tensor([[-6.0], [2.0]]), torch.tensor([[12.0], [8.0]])
    >>> ends = range_of_quantiles(torch.tensor([[0.0, 6.0], [4.0, 6.0]]), low, high)
    >>> [end.flatten().tolist() for end in ends]
    [[-9.0, 1.0], [15.0, 9.0]]
    """
    more, positive = RANGE_OVERSHOOT * (high - low), low >= 0
    most = (1 + LARGEST_GROWTH) * torch.nan_to_num(y).amax(1, keepdim=True)
    higher = torch.where(positive, torch.maximum(torch.minimum(high + more, most), high), high + more)
    return torch.where(positive, (low - more).clamp_min(0.0), low - more), higher


def largest_rise(y: Float[Tensor, "B n"], loc: Float[Tensor, "B H"]) -> Float[Tensor, "B H"]:
    """How far a correction may lift forecasts: by a tenth, where a series ends lower than it ever was.

    A product at the end of its life is not to come back. Forecasts below a quarter of all values are such
    ends, if these are positive; the latest values, as many as are forecast, do not count.

    Parameters
    ----------
    y : Tensor of shape (B, n)
        Series; NaN where nothing was observed.
    loc : Tensor of shape (B, H)
        Forecasts.

    Returns
    -------
    Tensor of shape (B, H)
        Infinite for other forecasts.

    Examples
    --------
    >>> import torch
    >>> from taylorformer_forecast.baselines.bounds import largest_rise
    >>> y = torch.tensor([[50.0, 60.0, 50.0, 40.0, 20.0, 5.0], [50.0, 5.0, 60.0, 50.0, 20.0, 5.0]]).double()
    >>> largest_rise(y, torch.tensor([[4.0], [4.0]]).double()).tolist()
    [[0.4], [inf]]
    """
    known = torch.where(y.isnan(), torch.inf, y)
    latest = min(loc.shape[1], y.shape[1] // 3)
    before = known[:, : y.shape[1] - latest].amin(1, keepdim=True)
    ends = (loc < LOWEST_PART * before) & (known.amin(1, keepdim=True) >= 0) & before.isfinite()
    return torch.where(ends, LARGEST_RISE * loc.clamp_min(0.0), torch.inf)


def near_ends(
    x: Float[Tensor, "B S H"], low: Float[Tensor, "B 1 H"], high: Float[Tensor, "B 1 H"]
) -> Float[Tensor, "B S H"]:
    """Values that come ever nearer to the ends of a range, which are no values at which probability piles up.

    Only zero is one: values that are never negative are zero where they would be less.

    Parameters
    ----------
    x : Tensor of shape (B, S, H)
        Any number of values of each step.
    low, high : Tensor of shape (B, 1, H)
        The range.

    Returns
    -------
    Tensor of shape (B, S, H)
        In the same order; the same values in the middle of the range.

    Examples
    --------
    >>> import torch
    >>> from taylorformer_forecast.baselines.bounds import near_ends
    >>> x, low, high = torch.tensor([[[-7.0], [2.0], [9.0], [12.0]]]).double(), torch.zeros(1, 1, 1), 10.0
    >>> near_ends(x, low, low + high).flatten().round(decimals=2).tolist()
    [0.0, 2.0, 8.79, 9.73]
    """
    margin = (RANGE_MARGIN * (high - low)).clamp_min(1e-300)  # the range of a closed place is a point
    inside = torch.minimum(torch.maximum(x, torch.where(low == 0, low, low + margin)), high - margin)
    beyond = x - inside
    found = inside - margin * beyond.sign() * torch.expm1(-beyond.abs() / margin)
    return torch.where(low == 0, found.clamp_min(0.0), found)
