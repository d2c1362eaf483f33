"""Members of the combined forecast: smoothing, Theta, damped trend, with and without a season, and others.

What they forecast is made by the functions of :mod:`.families`; here all of it is put side by side.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from taylorformer_forecast.baselines import families
from taylorformer_forecast.baselines.bounds import forecast_range
from taylorformer_forecast.baselines.families import FAMILIES, Adjusted, Group, adjusted
from taylorformer_forecast.defaults import (
    DOUBTED_SEASON,
    LONGEST_REGRESSED_SEASON,
    SEASONAL_DOUBT,
    WAKING_CYCLES,
)

__all__ = ["Members", "forgiven", "members"]


@dataclass(frozen=True)
class Members:
    """Forecasts of every member from every origin.

    Parameters
    ----------
    base, slope : Tensor of shape (B, n, K, G)
        Of K streams and G members of each. Where a stream has no forecast yet, those of the first take their
        place.
    growth : Tensor of shape (H, G)
        What multiplies the slope.
    shift, factor : Tensor of shape (B, n, K, H)
        Seasonal indices: what is added, and what the sum is multiplied by; 0 and 1 where there are none.
    others : Tensor of shape (B, n, S, H)
        Forecasts of the members that are no lines, after those in the order of members.
    low, high : Tensor of shape (B, n, H)
        Bounds.
    awake : bool Tensor of shape (B, n, F)
        Origins from which each of F groups, the streams first, has forecasts of its own.
    counts : bool Tensor of shape (B, n, F)
        Origins from which its members may have weight.
    season : Tensor of shape (F,)
        Steps of its season, 1 where there is none.
    group : int Tensor of shape (M,)
        Which group a member belongs to.
    rank : int Tensor of shape (M,)
        How much a member must know of the series: 0 without a season, and more for each further season, first
        for its repetition and then for its indices.
    family : int Tensor of shape (M,)
        Number of the family of every member, see ``FAMILIES``; M = K * G + S.
    prior : Tensor of shape (M,)
        Logarithm of the weight in its family before errors are known.

    Examples
    --------
    >>> import torch
    >>> from taylorformer_forecast.baselines.members import members
    >>> y = torch.tensor([1.0, 3.0, 2.0, 4.0]).repeat(5)[None].double()
    >>> found = members(y, (4,), 6, y > 0)
    >>> found.at(0).shape, len(found.family)
    (torch.Size([1, 20, 92]), 92)
    """

    base: Float[Tensor, "B n K G"]
    slope: Float[Tensor, "B n K G"]
    growth: Float[Tensor, "H G"]
    shift: Float[Tensor, "B n K H"]
    factor: Float[Tensor, "B n K H"]
    others: Float[Tensor, "B n S H"]
    low: Float[Tensor, "B n H"]
    high: Float[Tensor, "B n H"]
    awake: Bool[Tensor, "B n F"]
    counts: Bool[Tensor, "B n F"]
    season: Float[Tensor, " F"]
    group: Int[Tensor, " M"]
    rank: Int[Tensor, " M"]
    family: Int[Tensor, " M"]
    prior: Float[Tensor, " M"]

    def at(self, step: int, n_origins: int | None = None) -> Float[Tensor, "B n M"]:
        """Forecasts of the first origins, or of all, ``step + 1`` points ahead, within the bounds."""
        base, slope = self.base[:, :n_origins], self.slope[:, :n_origins]
        f = base.new_empty(*base.shape[:2], len(self.family))
        smoothed, others = f.tensor_split([f.shape[2] - self.others.shape[2]], 2)
        smoothed = smoothed.view(base.shape)
        torch.addcmul(base, slope, self.growth[step], out=smoothed)
        smoothed.add_(self.shift[:, :n_origins, :, step, None])
        smoothed.mul_(self.factor[:, :n_origins, :, step, None])
        others.copy_(self.others[:, :n_origins, :, step])
        return f.clamp_(self.low[:, :n_origins, step, None], self.high[:, :n_origins, step, None])

    def by_season(
        self, weights: Float[Tensor, "B n M"]
    ) -> tuple[Float[Tensor, "B n P"], Bool[Tensor, "B n P"]]:
        """Weights of members without a season and with each, and the origins from which those are known.

        A season is known where two cycles were seen. Until some errors followed, its members count as those
        without a season.
        """
        shares = [torch.zeros_like(weights[..., 0])]
        known = [torch.ones_like(weights[..., 0], dtype=torch.bool)]
        each = self.season.tolist()
        for season in sorted({*each} - {1.0}):
            known.append(self.awake[..., each.index(season)])  # of differences, the first stream that has it
            enough = known[-1].cumsum(1) >= WAKING_CYCLES * season
            shares.append(weights[..., self.season[self.group] == season].sum(-1) * enough)
        share = torch.stack(shares, -1)
        share[..., 0] = 1 - share.sum(-1)
        return share, torch.stack(known, -1)

    def at_origins(self, origins: Int[Tensor, "B K"]) -> Members:
        """The same from K origins of every series only."""
        rows = torch.arange(len(origins), device=origins.device)[:, None]
        names = ("base", "slope", "shift", "factor", "others", "low", "high", "awake", "counts")
        return replace(self, **{name: getattr(self, name)[rows, origins] for name in names})


def members(
    y: Float[Tensor, "B n"],
    seasons: Sequence[int],
    horizon: int,
    bounded: Bool[Tensor, "B n"],
) -> Members:
    """Fit every member to every series, at every origin.

    Parameters
    ----------
    y : Tensor of shape (B, n)
        Series without outliers, double precision; NaN where nothing was observed.
    seasons : sequence of int
        Steps of every season, each at least 2; empty for none.
    horizon : int
        Number of steps ahead.
    bounded : bool Tensor of shape (B, n)
        Origins from which no forecast is negative.

    Returns
    -------
    Members
        Their forecasts.
    """
    streams = adjusted(y, seasons, horizon)
    lines = families.levels_and_trends(y, streams, horizon)
    if len(seasons) == 1 and seasons[0] > LONGEST_REGRESSED_SEASON:
        lines.append(families.fading_errors(lines[0].base, horizon))
    groups = [group for make in families.GROUPS for group in make(y, streams, seasons, horizon)]
    base, slope = torch.cat([of.base for of in lines], -1), torch.cat([of.slope for of in lines], -1)
    known = torch.stack([s.known for s in streams], 2)
    others = _filled(groups, base[:, :, :1, :1])
    # Families of the members of each group.
    own = [FAMILIES.index(of.family) for of in lines for _ in of.prior]
    each = [own] * len(streams) + [[FAMILIES.index(g.family)] * g.forecasts.shape[2] for g in groups]
    of_member = [number for number, numbers in enumerate(each) for _ in numbers]
    group = torch.tensor(of_member, device=y.device)
    of_groups: list[Adjusted | Group] = [*streams, *groups]
    season = y.new_tensor([one.season for one in of_groups])
    rank = torch.tensor([one.rank for one in of_groups], device=y.device)
    zero = torch.zeros_like(others[:, :, 0])
    index = [torch.where(s.known[..., None], zero if s.index is None else s.index, 0.0) for s in streams]
    shift = [zero if s.multiplicative else i for s, i in zip(streams, index, strict=True)]
    factor = [i.exp() if s.multiplicative else zero + 1 for s, i in zip(streams, index, strict=True)]
    low, high = forecast_range(y, horizon, bounded)
    prior = torch.cat([of.prior for of in lines])
    prior = prior - SEASONAL_DOUBT * forgiven(season[: len(streams)])[:, None]
    of_season = torch.tensor([of.of_season for of in lines for _ in of.prior], device=y.device)
    prior[0, of_season] = torch.finfo(prior.dtype).min
    of_others = [of.prior for of in groups for _ in range(of.forecasts.shape[2])]
    return Members(
        base=torch.where(known[..., None], base, base[:, :, :1]),
        slope=torch.where(known[..., None], slope, slope[:, :, :1]),
        growth=torch.cat([of.growth for of in lines], -1),
        shift=torch.stack(shift, 2),
        factor=torch.stack(factor, 2),
        others=others,
        low=low,
        high=high,
        awake=torch.cat([known, *(g.known[..., None] for g in groups)], 2),
        # What does not know its season smooths as the same member without one, and would count twice.
        counts=torch.cat([known, *(g.counts[..., None] for g in groups)], 2),
        season=season,
        group=group,
        rank=rank[group],
        family=torch.tensor([number for numbers in each for number in numbers], device=y.device),
        prior=torch.cat([prior.flatten(), prior.new_tensor(of_others)]),
    )


def _filled(groups: Sequence[Group], level: Float[Tensor, "B n 1 1"]) -> Float[Tensor, "B n S H"]:
    """Forecasts of groups, and where one has none those of the last of a lower rank, or the slowest level."""
    found: list[Tensor] = []
    for group in groups:
        lower = [own[:, :, -1:] for own, other in zip(found, groups, strict=False) if other.rank < group.rank]
        before = lower[-1] if lower else level
        found.append(torch.where(group.forecasts.isnan(), before, group.forecasts))
    return torch.cat(found, 2)


def forgiven(season: Tensor) -> Tensor:
    """Part of what members lost before they knew their season that does not count.

    Parameters
    ----------
    season : Tensor
        Steps of the seasons, 1 for none.

    Examples
    --------
    >>> import torch
    >>> from taylorformer_forecast.baselines.members import forgiven
    >>> forgiven(torch.tensor([1.0, 4.0, 12.0])).tolist()
    [0.0, 0.25, 0.75]
    """
    return (1 - DOUBTED_SEASON / season).clamp_min(0.0)
