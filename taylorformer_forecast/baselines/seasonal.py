"""Seasonal indices from every origin: decayed averages of the deviations from a centred moving average."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

from taylorformer_forecast.baselines.smoothing import Grid, points_since_first, smooth
from taylorformer_forecast.defaults import (
    CLOSED_SHARE,
    LEAST_PAST_CYCLES,
    LONGEST_PAST,
    MIN_SEASONAL_CYCLES,
    REPETITION_MEMORY,
    SEASON_DECAY,
)


@dataclass(frozen=True)
class Seasonal:
    """Seasonal indices of a batch of series.

    Parameters
    ----------
    index : Tensor of shape (B, n, H)
        What the season adds to the value h steps after each origin; 0 where nothing is known.
    adjusted : Tensor of shape (B, n)
        Series without their season. Each value is adjusted by what was known before it; those of the first
        two seasons, from which no origin forecasts, by what is known at their end.
    known : bool Tensor of shape (B, n)
        Origins that come after two full seasons.
    """

    index: Float[Tensor, "B n H"]
    adjusted: Float[Tensor, "B n"]
    known: Bool[Tensor, "B n"]


def in_cycles(y: Float[Tensor, "B n"], season: int) -> tuple[Float[Tensor, "B C m"], int]:
    """Series cut into seasons, and the number of points added in front to fill the first."""
    pad = -y.shape[1] % season
    return F.pad(y, (pad, 0), value=torch.nan).unflatten(1, (-1, season)), pad


def season_of_zeros(y: Float[Tensor, "B n"], seasons: Sequence[int]) -> Bool[Tensor, " B"]:
    """Whether the other cycles of a season tell which values of each are zero.

    Four cycles at least, or three of seasons so long that no more are seen.

    A shop that is closed at weekends and the sun at night are zero as often as intermittent demand is, but
    one can say when. Demand that is only seldom outside its season is intermittent.

    Parameters
    ----------
    y : Tensor of shape (B, n)
        Values; NaN where nothing was observed.
    seasons : sequence of int
        Steps of the seasons that are tried.

    Examples
    --------
    >>> import torch
    >>> from taylorformer_forecast.baselines.seasonal import season_of_zeros
    >>> y = torch.tensor([[5.0, 0.0, 4.0, 0.0, 5.0, 0.0, 4.0, 0.0], [5.0, 0.0, 0.0, 4.0, 0.0, 0.0, 5.0, 0.0]])
    >>> season_of_zeros(y, [2]).tolist()
    [True, False]
    """
    found = torch.zeros(len(y), dtype=torch.bool, device=y.device)
    if not bool((y == 0).any()):
        return found
    seen = ~y.isnan()
    zero = torch.where(seen, (y == 0).to(y), torch.nan)
    whole = zero - zero.nanmean(1, keepdim=True)
    for season in seasons:
        cut, _ = in_cycles(whole, season)
        cycles, known = cut.nan_to_num(), (~cut.isnan()).to(y)
        others = (known.sum(1, keepdim=True) - 1).clamp_min(0)
        # A value less the mean of the same step of the other cycles; of all values if there is no other.
        rest = (cycles - cycles.sum(1, keepdim=True) / (others + 1)) * known
        rest = torch.where(others > 0, rest * (others + 1) / others.clamp_min(1), cycles)
        explained = rest.square().sum((1, 2)) < (1 - CLOSED_SHARE) * whole.nan_to_num().square().sum(1)
        found |= explained & (seen.sum(1) >= _fewest_cycles(season) * season)
    return found


def _fewest_cycles(season: int) -> int:
    """Cycles that tell where a season is zero: of long seasons, forecasts see no more than three."""
    return MIN_SEASONAL_CYCLES if MIN_SEASONAL_CYCLES * season <= LONGEST_PAST else LEAST_PAST_CYCLES


def carry(y: Float[Tensor, "B n"], season: int = 1) -> Float[Tensor, "B n"]:
    """Missing values replaced by the last observed value of the same phase.

    Examples
    --------
    >>> import torch
    >>> from taylorformer_forecast.baselines.seasonal import carry
    >>> y = torch.tensor([[float("nan"), 1.0, 2.0, float("nan")]])
    >>> carry(y).tolist(), carry(y, 2).tolist()
    ([[nan, 1.0, 2.0, 2.0]], [[nan, 1.0, 2.0, 1.0]])
    """
    cycles, pad = in_cycles(y, season)
    number = torch.arange(cycles.shape[1], device=y.device)[None, :, None]
    last = torch.where(cycles.isnan(), -1, number).cummax(1).values
    return torch.where(last < 0, torch.nan, cycles.gather(1, last.clamp_min(0))).flatten(1)[:, pad:]


def _ahead(y: Float[Tensor, "B n"], shift: Tensor) -> Tensor:
    """Values at each origin plus each shift, NaN outside the series; shape (B, n, *shift.shape)."""
    n = y.shape[1]
    at = torch.arange(n, device=y.device).view(n, *[1] * shift.ndim) + shift
    values = y[:, at.clamp(0, n - 1).flatten()].unflatten(1, at.shape)
    return torch.where((at >= 0) & (at < n), values, torch.nan)


def repeat_season(y: Float[Tensor, "B n"], season: int, horizon: int) -> Float[Tensor, "B n H"]:
    """Seasonal naive forecast from every origin; NaN where nothing is known of the phase.

    Examples
    --------
    >>> import torch
    >>> from taylorformer_forecast.baselines.seasonal import repeat_season
    >>> repeat_season(torch.tensor([[1.0, 2.0, 3.0, 4.0]]), 2, 3)[0, -1].tolist()
    [3.0, 4.0, 3.0]
    """
    steps = torch.arange(1, horizon + 1, device=y.device)
    return _ahead(carry(y, season), (steps - 1) % season + 1 - season)


def repeat_mean(y: Float[Tensor, "B n"], season: int, horizon: int) -> Float[Tensor, "B n H"]:
    """Decayed mean of the values of the same phase, from every origin; NaN where nothing is known of it.

    Examples
    --------
    >>> import torch
    >>> from taylorformer_forecast.baselines.seasonal import repeat_mean
    >>> y = torch.tensor([[1.0, 2.0, 1.0, 4.0]]).double()
    >>> repeat_mean(y, 2, 3)[0, -1].round(decimals=1).tolist()
    [1.0, 3.1, 1.0]
    """
    return repeat_season(_decayed_mean(y, season), season, horizon)


def from_level(
    y: Float[Tensor, "B n"], forecast: Float[Tensor, "B n H"], weight: float
) -> Float[Tensor, "B n H"]:
    """Forecasts from the level of today: plus the smoothed last errors of one step, which fade.

    Parameters
    ----------
    y : Tensor of shape (B, n)
        Values, NaN where nothing was observed.
    forecast : Tensor of shape (B, n, H)
        Forecasts from every origin.
    weight : float
        Of a new error; 1 for the last one alone.

    Examples
    --------
    >>> import torch
    >>> from taylorformer_forecast.baselines.seasonal import from_level, repeat_season
    >>> y = torch.tensor([[1.0, 9.0, 3.0, 11.0]]).double()
    >>> from_level(y, repeat_season(y, 2, 2), 1.0)[0, -1].round(decimals=1).tolist()
    [5.0, 12.9]
    """
    error = y - F.pad(forecast[:, :-1, 0], (1, 0), value=torch.nan)
    level = smooth(error, ~error.isnan(), Grid.of_level(weight, y.device))[0]
    steps = torch.arange(1, forecast.shape[2] + 1, dtype=y.dtype, device=y.device)
    return forecast + level * REPETITION_MEMORY**steps


def _decayed_mean(y: Float[Tensor, "B n"], season: int) -> Float[Tensor, "B n"]:
    """Decayed mean of the values of the same phase up to each point."""
    cycles, pad = in_cycles(y, season)
    total = weight = torch.zeros_like(cycles[:, 0])
    means = []
    for c in range(cycles.shape[1]):
        known = ~cycles[:, c].isnan()
        total = torch.where(known, SEASON_DECAY * total + torch.nan_to_num(cycles[:, c]), total)
        weight = torch.where(known, SEASON_DECAY * weight + 1, weight)
        means.append(torch.where(weight > 0, total / weight.clamp_min(1e-9), torch.nan))
    return torch.stack(means, 1).flatten(1)[:, pad:]


def seasonal(y: Float[Tensor, "B n"], season: int, horizon: int, width: int = 1) -> Seasonal:
    """Seasonal indices of every origin, and the series without their season.

    Additive indices, by the classical decomposition with weights that decay into the past: a value minus the
    moving average over the season around it, averaged over the values of the same phase whose moving average
    is known at the origin. Give logarithms for multiplicative indices.

    Parameters
    ----------
    y : Tensor of shape (B, n)
        Series; NaN where nothing was observed.
    season : int
        Steps m of a season, at least 2.
    horizon : int
        Number of steps ahead H.
    width : int, default=1
        Odd number of neighbouring deviations of which moving averages are taken before, for long seasons.

    Returns
    -------
    Seasonal
        Indices, adjusted series, and the origins from which they are known.

    References
    ----------
    Hyndman and Athanasopoulos, "Forecasting: principles and practice", 2021, section 3.4.

    Examples
    --------
    >>> import torch
    >>> from taylorformer_forecast.baselines.seasonal import seasonal
    >>> y = torch.tensor([1.0, 3.0, 5.0, 7.0]).repeat(3)[None].double()
    >>> found = seasonal(y, 4, 4)
    >>> found.index[0, -1].round(decimals=6).tolist(), found.known[0].sum().item()
    ([-3.0, -1.0, 1.0, 3.0], 5)
    """
    n, half = y.shape[1], season // 2
    reach = half + width // 2  # of values after a deviation that it depends on
    weights = y.new_ones(season + 1 - season % 2)
    if season % 2 == 0:
        weights[0] = weights[-1] = 0.5
    deviation = torch.full_like(y, torch.nan)
    if n >= len(weights):
        # A value missing in the first season would leave no mean of any window that has it.
        centred = carry(carry(y, season)).unfold(1, len(weights), 1) @ (weights / season)
        deviation[:, half : n - half] = y[:, half : n - half] - centred
    mean = _decayed_mean(_moving_average(deviation, width), season)
    steps = torch.arange(1, max(horizon, season) + 1, device=y.device)
    back = (steps - 1) % season + 1  # steps into the season after the origin
    index = _ahead(mean, back - season * ((back + reach + season - 1) // season))
    level = torch.nan_to_num(index[..., :season]).sum(-1, keepdim=True)
    phases = (~index[..., :season].isnan()).sum(-1, keepdim=True)
    index = torch.nan_to_num(index - level / phases.clamp_min(1))
    known = (points_since_first(y) >= half + reach + season) & (phases[..., 0] > 0)
    return Seasonal(index[..., :horizon], y - _adjustment(index, known, season), known)


def _moving_average(y: Float[Tensor, "B n"], width: int) -> Float[Tensor, "B n"]:
    """Mean of the known values around each, where it is known itself."""
    if width == 1:
        return y
    known = ~y.isnan()
    both = torch.stack([torch.nan_to_num(y), known.to(y)], 1)
    total, count = F.avg_pool1d(both, width, 1, width // 2).unbind(1)
    return torch.where(known, total / count, torch.nan)


def _adjustment(
    index: Float[Tensor, "B n T"], known: Bool[Tensor, "B n"], season: int
) -> Float[Tensor, "B n"]:
    """Index of every value: from the origin before it, or from the first origin where that knows none."""
    n = index.shape[1]
    before = F.pad(index[:, :-1, 0], (1, 0))
    first = torch.where(known.any(1), known.to(torch.int8).argmax(1), n - 1)
    phase = (torch.arange(n, device=index.device) - first[:, None] - 1) % season
    start = index[torch.arange(len(index), device=index.device), first].gather(1, phase)
    return torch.where(F.pad(known[:, :-1], (1, 0)), before, start)


def zero_places(
    y: Float[Tensor, "B n"], at: Int[Tensor, " k"], seasons: Sequence[int]
) -> Bool[Tensor, "B k"]:
    """Whether all values at the place in a season of some positions were zero.

    Four zeros at least (three of long seasons), and eight with those at both neighbouring places that were
    always zero, too.
    Positions count from the first value; those from n on are steps ahead.

    Examples
    --------
    >>> import torch
    >>> from taylorformer_forecast.baselines.seasonal import zero_places
    >>> y = torch.tensor([5.0, 0.0, 4.0]).repeat(8)[None]
    >>> zero_places(y, torch.tensor([0, 1, 24, 25]), [3]).tolist()
    [[False, True, False, True]]
    """
    found = torch.zeros(len(y), len(at), dtype=torch.bool, device=y.device)
    for season in seasons:
        cycles, pad = in_cycles(y, season)
        always = ((cycles == 0) | cycles.isnan()).all(1)
        count = (cycles == 0).sum(1) * always
        beside = count.roll(1, 1) + count.roll(-1, 1) if season > 2 else 0
        zeros = (count >= _fewest_cycles(season)) & (count + beside >= 2 * MIN_SEASONAL_CYCLES)
        found |= zeros[:, (at + pad) % season]
    return found
