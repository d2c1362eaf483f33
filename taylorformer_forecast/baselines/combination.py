"""The statistical combination at every origin of many series: weights, locations, errors and their scales."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

from taylorformer_forecast.baselines.bounds import positive_so_far
from taylorformer_forecast.baselines.dependence import least_units
from taylorformer_forecast.baselines.errors import error_level, error_scale, past_errors, shape
from taylorformer_forecast.baselines.families import FAMILIES
from taylorformer_forecast.baselines.members import Members, members
from taylorformer_forecast.baselines.new_level import new_level
from taylorformer_forecast.baselines.outliers import step_sizes
from taylorformer_forecast.baselines.seasonal import season_of_zeros, zero_places
from taylorformer_forecast.baselines.weights import combine, weigh
from taylorformer_forecast.baselines.winsorise import winsorise
from taylorformer_forecast.baselines.zeros import leading_zeros, never_negative

ROUNDING = 1e-13  # smallest scale, in mean absolute values: what double precision leaves of a difference


@dataclass(frozen=True)
class AtOrigins:
    """The combination at K origins of every series.

    Parameters
    ----------
    loc, scale, low, high : Tensor of shape (B, K, H)
        Forecasts, mean absolute errors and bounds.
    families : Tensor of shape (B, K, H, F)
        Forecasts of the families of members.
    weights : Tensor of shape (B, K, F)
        Weights of the families.
    seasonal : Tensor of shape (B, K)
        Weight of the members with a season.
    """

    loc: Float[Tensor, "B K H"]
    scale: Float[Tensor, "B K H"]
    low: Float[Tensor, "B K H"]
    high: Float[Tensor, "B K H"]
    families: Float[Tensor, "B K H F"]
    weights: Float[Tensor, "B K F"]
    seasonal: Float[Tensor, "B K"]


@dataclass(frozen=True)
class CombinationFit:
    """What was found from every origin, in units of the mean absolute value of each series.

    Parameters
    ----------
    unit : Tensor of shape (B, 1)
        Mean absolute values.
    clean : Tensor of shape (B, n)
        Values in that unit, outliers moved; NaN where nothing was observed.
    season : int
        The first season; 1 for none.
    members : Members
        Their forecasts.
    member_weights : Tensor of shape (B, n, M)
        Their weights.
    loc, scale : Tensor of shape (B, n, H)
        Forecasts and mean absolute errors.
    error, standard : Tensor of shape (B, n, H)
        Errors; errors in units of the latest scale, or of a much larger one at their origin. NaN where
        unknown; the latter also at origins from which the members that count at the end did not know their
        season.
    relative : Tensor of shape (B, n, H)
        Scales in units of what they grow with, by which errors become standard ones.
    steady : bool Tensor of shape (B, 1)
        Whether the last value is no outlier, and none of the last few shifted the level.
    positive : bool Tensor of shape (B,)
        Whether all values are positive, and forecasts are never negative.
    error_quantiles : Tensor of shape (B, J)
        Quantiles of absolute errors in scales, at ``baselines.errors.BASE``.
    closed : bool Tensor of shape (B,)
        Whether a season says which values are zero. Those that always were do not count among the errors.
    """

    unit: Float[Tensor, "B 1"]
    clean: Float[Tensor, "B n"]
    season: int
    members: Members
    member_weights: Float[Tensor, "B n M"]
    loc: Float[Tensor, "B n H"]
    scale: Float[Tensor, "B n H"]
    error: Float[Tensor, "B n H"]
    standard: Float[Tensor, "B n H"]
    relative: Float[Tensor, "B n H"]
    steady: Bool[Tensor, "B 1"]
    positive: Bool[Tensor, " B"]
    error_quantiles: Float[Tensor, "B J"]
    closed: Bool[Tensor, " B"]

    def at(self, origins: Int[Tensor, "B K"]) -> AtOrigins:
        """The combination at some origins, with the forecasts of each family."""
        rows = torch.arange(len(origins), device=origins.device)[:, None]
        found, weights = self.members.at_origins(origins), self.member_weights[rows, origins]
        family = F.one_hot(self.members.family, len(FAMILIES)).to(weights)
        of_families = weights @ family
        # Near zero for a family of hardly any weight, which the network was trained with.
        steps = range(self.loc.shape[2])
        forecasts = [((found.at(h) * weights) @ family) / of_families.clamp_min(1e-9) for h in steps]
        seasonal = weights[..., found.season[found.group] > 1].sum(-1)
        seasonal = seasonal if self.season > 1 else torch.zeros_like(seasonal)
        loc, scale = self.loc[rows, origins], self.scale[rows, origins]
        of_steps = torch.stack(forecasts, 2)
        return AtOrigins(loc, scale, found.low, found.high, of_steps, of_families, seasonal)


def fit_combination(y: Float[Tensor, "B n"], horizon: int, seasons: Sequence[int] = ()) -> CombinationFit:
    """Combine the members from every origin, for series that have the same seasons.

    Parameters
    ----------
    y : Tensor of shape (B, n)
        Series, double precision; NaN where nothing was observed.
    horizon : int
        Number of steps ahead.
    seasons : sequence of int
        Steps of the seasons, each at least 2.

    Returns
    -------
    CombinationFit
        From every origin, by its past; only whether its last value is an outlier is decided by the next.

    Examples
    --------
    >>> import torch
    >>> from taylorformer_forecast.baselines.combination import fit_combination
    >>> found = fit_combination(torch.tensor([[2.0, 8.0] * 4]).double(), 2, (2,))
    >>> (found.loc[0, -1] * found.unit[0]).round().tolist()
    [2.0, 8.0]
    """
    # Units of the mean absolute value: nothing below depends on the units, but for rounding.
    observed = ~y.isnan()
    values = torch.nan_to_num(y).abs()
    unit = values.amax(1, keepdim=True).clamp_min(1e-300)
    unit = unit * ((values / unit).sum(1, keepdim=True) / observed.sum(1, keepdim=True).clamp_min(1))
    unit = torch.where(unit > 0, unit, 1.0)
    season = seasons[0] if seasons else 1
    leading = leading_zeros(y)
    clean, doubt, shifted = winsorise(torch.where(leading, torch.nan, y) / unit, seasons)
    bounded, positive = never_negative(y), positive_so_far(clean)
    found = members(clean, seasons, horizon, bounded)
    weights = weigh(found, clean)
    loc = combine(found, weights)
    # Of the zeros before the first other value, which clean values lack, fewer than a season may be its own.
    first = leading & (leading.sum(1, keepdim=True) < min(seasons, default=1))
    closed = season_of_zeros(torch.where(first, 0.0, clean), seasons)
    error = past_errors(clean, loc)
    if bool(closed.any()):  # where all is zero, errors say nothing of those elsewhere
        zero = closed[:, None] & zero_places(clean, torch.arange(y.shape[1]), seasons)
        error = past_errors(torch.where(zero, torch.nan, clean), loc)
    share, own = found.by_season(weights)
    level, power = error_level(clean, loc, error, positive | bounded)
    scale = error_scale(error, level, power, mean_step(clean, season), share, own)
    unit_of_end = level ** power[:, -1:, None]
    relative = scale / unit_of_end
    standard = error / unit_of_end / least_units(relative, relative[:, -1:])
    other_season = (share[:, -1:] * own).sum(-1, keepdim=True) < 0.5  # than those that count at the end
    standard = torch.where(other_season, torch.nan, standard)
    # A shift of the level says more than earlier errors where forecasts have not followed it.
    steady = ((doubt == 0) & shifted.isnan())[:, None]
    doubt = doubt[:, None].fmax((shifted[:, None] - loc[:, -1]).abs())
    scale[:, -1] = torch.maximum(scale[:, -1], doubt)
    reaching = new_level(clean, loc, scale)
    new = (reaching > scale[:, -1]).any(1, keepdim=True)
    scale[:, -1] = torch.maximum(scale[:, -1], reaching)
    # An error cannot be much larger than the range that forecasts and values share.
    usual = torch.nan_to_num(clean).abs().sum(1) / observed.sum(1).clamp_min(1)
    least = ROUNDING * torch.where(usual > 0, usual, 1.0)[:, None, None]
    scale = torch.maximum(torch.minimum(scale, (found.high - found.low) / 2), least)
    return CombinationFit(
        unit=unit,
        clean=clean,
        season=season,
        members=found,
        member_weights=weights,
        loc=loc,
        scale=scale,
        error=error,
        standard=standard,
        relative=relative,
        steady=steady & ~new,
        positive=(positive & bounded)[:, -1],
        error_quantiles=shape(standard, new),
        closed=closed,
    )


def mean_step(y: Float[Tensor, "B n"], season: int) -> Float[Tensor, "B n"]:
    """Mean absolute difference of neighbouring values so far, or of those a season apart where it is less.

    Examples
    --------
    >>> import torch
    >>> from taylorformer_forecast.baselines.combination import mean_step
    >>> mean_step(torch.tensor([[1.0, 4.0, 1.0, 5.0]]), 2)[0].tolist()
    [0.0, 3.0, 0.0, 0.5]
    """
    apart = F.pad(y[:, season:] - y[:, :-season], (season, 0), value=torch.nan)
    both = torch.stack([step_sizes(y), apart[:, : y.shape[1]].abs()], -1)
    known = (~both.isnan()).cumsum(1)
    mean = torch.nan_to_num(both).cumsum(1) / known.clamp_min(1)
    return torch.where((known[..., 1] > 0) & (mean[..., 1] < mean[..., 0]), mean[..., 1], mean[..., 0])
