"""The statistical combination at every origin of many series: locations, errors and their scales."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from taylorformer_forecast.baselines.combination import combine, weigh
from taylorformer_forecast.baselines.errors import error_scale, level_unit, past_errors, shape
from taylorformer_forecast.baselines.members import FAMILIES, Members, members
from taylorformer_forecast.baselines.robust import positive_so_far, winsorise

__all__ = ["AtOrigins", "CombinationFit", "fit_combination"]

ROUNDING = 1e-9  # smallest scale, in mean absolute values


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
    found : Members
        Forecasts of the members.
    member_weights : Tensor of shape (B, n, M)
        Their weights.
    loc, scale : Tensor of shape (B, n, H)
        Forecasts and mean absolute errors.
    error, standard : Tensor of shape (B, n, H)
        Errors; errors in units of the latest scale. NaN where unknown.
    z : Tensor of shape (B, J)
        Quantiles of absolute errors in scales, at ``baselines.errors.BASE``.
    """

    unit: Float[Tensor, "B 1"]
    clean: Float[Tensor, "B n"]
    season: int
    found: Members
    member_weights: Float[Tensor, "B n M"]
    loc: Float[Tensor, "B n H"]
    scale: Float[Tensor, "B n H"]
    error: Float[Tensor, "B n H"]
    standard: Float[Tensor, "B n H"]
    z: Float[Tensor, "B J"]

    def at(self, origins: Int[Tensor, "B K"]) -> AtOrigins:
        """The combination at some origins, with the forecasts of each family."""
        rows = torch.arange(len(origins), device=origins.device)[:, None]
        found, weights = self.found.at_origins(origins), self.member_weights[rows, origins]
        family = torch.nn.functional.one_hot(self.found.family, len(FAMILIES)).to(weights)
        of_families = weights @ family
        forecasts = [
            ((found.at(step) * weights) @ family) / of_families.clamp_min(1e-9)
            for step in range(self.loc.shape[2])
        ]
        n_plain = self.found.base.shape[3]
        seasonal = weights[..., n_plain:].sum(-1) if self.season > 1 else weights.new_zeros(origins.shape)
        return AtOrigins(
            self.loc[rows, origins],
            self.scale[rows, origins],
            found.low,
            found.high,
            torch.stack(forecasts, 2),
            of_families,
            seasonal,
        )


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
        From every origin, by the past of that origin only.

    Examples
    --------
    >>> import torch
    >>> from taylorformer_forecast.baselines.combination_fit import fit_combination
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
    clean = winsorise(_without_leading_zeros(y) / unit, seasons[0] if seasons else 1)
    found = members(clean, seasons, horizon)
    weights = weigh(found, clean)
    loc = combine(found, weights)
    size = level_unit(clean, loc, positive_so_far(clean))
    error = past_errors(clean, loc)
    scale = error_scale(error / size, _mean_step(clean) / size[..., 0])
    standard = error / size / scale[:, -1:].clamp_min(1e-300)
    # An error cannot be much larger than the range that forecasts and values share.
    scale = torch.minimum(scale * size, (found.high - found.low) / 2).clamp_min(ROUNDING)
    season = seasons[0] if seasons else 1
    return CombinationFit(unit, clean, season, found, weights, loc, scale, error, standard, shape(standard))


def _without_leading_zeros(y: Float[Tensor, "B n"]) -> Float[Tensor, "B n"]:
    """Zeros before the first other value are missing, unless a value is negative or all are zero."""
    leading = (y == 0) & ~((y != 0) & ~y.isnan()).cummax(1).values
    keep = (y < 0).any(1) | (torch.nan_to_num(y) == 0).all(1)
    return torch.where(leading & ~keep[:, None], torch.nan, y)


def _mean_step(y: Float[Tensor, "B n"]) -> Float[Tensor, "B n"]:
    """Mean absolute difference of neighbouring observed values up to each point."""
    n = y.shape[1]
    at = torch.where(~y.isnan(), torch.arange(n, device=y.device), -1).cummax(1).values
    before = torch.nn.functional.pad(at[:, :-1], (1, 0), value=-1)
    step = (y - y.gather(1, before.clamp_min(0))).abs()
    known = ~step.isnan() & (before >= 0)
    return torch.where(known, step, 0.0).cumsum(1) / known.cumsum(1).clamp_min(1)
