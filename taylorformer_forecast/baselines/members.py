"""Members of the combined forecast: smoothing, Theta, damped trend, with and without a season, and others.

Those members forecast from every origin: ``base + slope * growth[h]``, plus or times a seasonal index. So
forecasts of one step are three tensor operations, and all steps never have to be held at once. The others,
seasonal naive forecasts and seasonal autoregressions, are few.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

from taylorformer_forecast.baselines.adjusted import Adjusted, adjusted
from taylorformer_forecast.baselines.autoregression import autoregression
from taylorformer_forecast.baselines.bounds import forecast_range
from taylorformer_forecast.baselines.seasonal import from_level, repeat_mean, repeat_season
from taylorformer_forecast.baselines.smoothing import Grid, slope_so_far, smooth
from taylorformer_forecast.defaults import (
    DOUBTED_SEASON,
    LONGEST_REGRESSED_SEASON,
    MEMBER_LEVEL_POWER,
    REGRESSION_CYCLES,
    REPEATED_LEVEL,
    SEASONAL_DOUBT,
    THETA_SLOPE,
    UNDAMPED_PRIOR,
    WAKING_CYCLES,
)

__all__ = ["FAMILIES", "NAIVE", "REGRESSION", "THETA", "TREND", "Members", "forgiven", "members"]

FAMILIES = ("smoothing", "theta", "damped trend", "seasonal naive", "seasonal autoregression")
SMOOTHING, THETA, TREND, NAIVE, REGRESSION = range(len(FAMILIES))


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
        Seasonal naive forecasts, one for each season, that of the next shorter season or the slowest level
        where nothing is known of the phase. To those of longer seasons the last error is added, which fades.
        Beside them are decayed means of their cycles, which have the shorter season apart. And seasonal
        autoregressions, of long series.
    regressed : bool Tensor of shape (B, n)
        Origins from which seasonal autoregressions count.
    low, high : Tensor of shape (B, n, H)
        Bounds.
    awake : bool Tensor of shape (B, n, K + S)
        Origins from which each stream, and each of the others, has forecasts of its own.
    season : Tensor of shape (K + S,)
        Steps of their season, 1 where there is none.
    group : int Tensor of shape (M,)
        Which of those a member belongs to.
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
    (torch.Size([1, 20, 91]), 91)
    """

    base: Float[Tensor, "B n K G"]
    slope: Float[Tensor, "B n K G"]
    growth: Float[Tensor, "H G"]
    shift: Float[Tensor, "B n K H"]
    factor: Float[Tensor, "B n K H"]
    others: Float[Tensor, "B n S H"]
    regressed: Bool[Tensor, "B n"]
    low: Float[Tensor, "B n H"]
    high: Float[Tensor, "B n H"]
    awake: Bool[Tensor, "B n F"]
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
        season = torch.where(self.family == REGRESSION, self.season.max(), self.season[self.group])
        shares = [torch.zeros_like(weights[..., 0])]
        known = [torch.ones_like(weights[..., 0], dtype=torch.bool)]
        for group in range(1, self.base.shape[2], 2):  # the streams of each season, with differences first
            known.append(self.awake[..., group])
            enough = known[-1].cumsum(1) >= WAKING_CYCLES * self.season[group]
            shares.append(weights[..., season == self.season[group]].sum(-1) * enough)
        share = torch.stack(shares, -1)
        share[..., 0] = 1 - share.sum(-1)
        return share, torch.stack(known, -1)

    def at_origins(self, origins: Int[Tensor, "B K"]) -> Members:
        """The same from K origins of every series only."""
        rows = torch.arange(len(origins), device=origins.device)[:, None]
        names = ("base", "slope", "shift", "factor", "others", "regressed", "low", "high", "awake")
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
    observed, grid = ~y.isnan(), Grid.default(y.device)
    streams = adjusted(y, seasons, horizon)
    time = torch.arange(y.shape[1], dtype=y.dtype, device=y.device)
    x = torch.stack([*(s.x for s in streams), time.expand_as(y)], 1)
    flat = observed[:, None].expand_as(x).flatten(0, 1)
    level, trend = (v.unflatten(0, x.shape[:2]).transpose(1, 2) for v in smooth(x.flatten(0, 1), flat, grid))
    plain = ~grid.has_trend
    age = time[:, None] - level[:, :, -1, plain]  # mean age of the values in a level
    level, trend = level[:, :, :-1], trend[:, :, :-1]
    slopes = [slope_so_far(s.x.where(observed, torch.nan))[0] for s in streams]
    line = THETA_SLOPE * torch.stack(slopes, 2)[..., None]
    smoothed = level[..., plain]
    theta = smoothed + line * age[:, :, None]
    base = torch.cat([smoothed, theta, level[..., ~plain]], -1)
    slope = torch.cat([torch.zeros_like(smoothed), line.expand_as(smoothed), trend[..., ~plain]], -1)
    steps = torch.arange(1, horizon + 1, dtype=y.dtype, device=y.device)[:, None]
    n_plain = int(plain.sum())
    growth = torch.cat([steps.expand(-1, 2 * n_plain), (grid.damping[~plain] ** steps).cumsum(0)], 1)
    others, regressed, repeats = _others(y, seasons, horizon, base[:, :, 0], streams)
    known = torch.stack([s.known for s in streams], 2)
    awake = torch.cat([known, repeats], 2)
    # Season, rank and families of the members of each group.
    own = [SMOOTHING] * n_plain + [THETA] * n_plain + [TREND] * (len(plain) - n_plain)
    groups = [(s.season, s.rank, own) for s in streams]
    repeated = [(m, 2 * k + 1, [NAIVE]) for k, m in enumerate(seasons) for _ in range(1 + (k > 0))]
    groups += repeated or [(1, 0, [NAIVE])]
    groups += [(1, 0, [REGRESSION])] * (others.shape[2] - max(len(repeated), 1))
    season, rank, families = zip(*groups, strict=True)
    of_member = [number for number, each in enumerate(families) for _ in each]
    group = torch.tensor(of_member, device=y.device)
    zero = torch.zeros_like(others[:, :, 0])
    index = [torch.where(s.known[..., None], zero if s.index is None else s.index, 0.0) for s in streams]
    shift = [zero if s.multiplicative else i for s, i in zip(streams, index, strict=True)]
    factor = [i.exp() if s.multiplicative else zero + 1 for s, i in zip(streams, index, strict=True)]
    low, high = forecast_range(y, horizon, bounded)
    return Members(
        base=torch.where(known[..., None], base, base[:, :, :1]),
        slope=torch.where(known[..., None], slope, slope[:, :, :1]),
        growth=growth,
        shift=torch.stack(shift, 2),
        factor=torch.stack(factor, 2),
        others=others,
        regressed=regressed,
        low=low,
        high=high,
        awake=awake,
        season=torch.tensor(season, dtype=y.dtype, device=y.device),
        group=group,
        rank=torch.tensor(rank, device=y.device)[group],
        family=torch.tensor([family for each in families for family in each], device=y.device),
        prior=F.pad(_prior(grid, [s.season for s in streams]), (0, others.shape[2])),
    )


def _prior(grid: Grid, seasons: Sequence[int]) -> Float[Tensor, " M"]:
    """Logarithms of weights before errors are known, of what smooths each stream."""
    plain = ~grid.has_trend
    undamped = (~plain & (grid.damping == 1)).to(grid.level)
    prior = MEMBER_LEVEL_POWER * grid.level.log() + math.log(UNDAMPED_PRIOR) * undamped
    prior = torch.cat([prior[plain], prior[plain], prior[~plain]])
    return (prior - SEASONAL_DOUBT * forgiven(prior.new_tensor(seasons))[:, None]).flatten()


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


def _others(
    y: Float[Tensor, "B n"], seasons: Sequence[int], horizon: int, levels: Tensor, streams: list[Adjusted]
) -> tuple[Float[Tensor, "B n S H"], Bool[Tensor, "B n"], Bool[Tensor, "B n S"]]:
    """Seasonal naive forecasts, then seasonal autoregressions; and the origins from which they count."""
    awake, found = [], [levels[:, :, :1]]
    for number, season in enumerate(seasons or (1,)):
        repeats = [repeat_season(y, season, horizon)]
        if number:
            # A week of hours repeats from the level of today. Days of a year are other days of the week: the
            # mean of their years repeats without the week, from the level of the last ones.
            less = streams[2 * number - 1]
            assert less.index is not None
            x = torch.where(less.known & ~y.isnan(), less.x, torch.nan)
            slow = from_level(x, repeat_mean(x, season, horizon), REPEATED_LEVEL) + less.index
            repeats = [from_level(y, repeats[0], 1.0), slow]
        before = found[-1]
        for own in repeats:
            awake.append(~own[..., 0].isnan())
            found.append(torch.where(own.isnan(), before, own))
    repeated, known = torch.stack(found[1:], 2), torch.stack(awake, 2)
    longest = max(seasons, default=LONGEST_REGRESSED_SEASON + 1)
    if longest > LONGEST_REGRESSED_SEASON or y.shape[1] < REGRESSION_CYCLES * longest:
        return repeated, torch.zeros_like(y, dtype=torch.bool), known
    regressed, long_enough = autoregression(y, longest, horizon)
    regressed = torch.where(regressed.isnan(), repeated[:, :, -1:], regressed)
    always = torch.ones_like(regressed[..., 0], dtype=torch.bool)
    return torch.cat([repeated, regressed], 2), long_enough, torch.cat([known, always], 2)
