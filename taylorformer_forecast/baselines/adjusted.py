"""Series as they are, and seasonally adjusted by differences and by factors: what members smooth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from taylorformer_forecast.baselines.bounds import positive_so_far
from taylorformer_forecast.baselines.seasonal import carry, in_cycles, seasonal
from taylorformer_forecast.defaults import INDEX_WIDTH, LARGE_STEP, LEAST_PAST_CYCLES, SEASONAL_STEP_PART


@dataclass(frozen=True)
class Adjusted:
    """A batch of series, as they are or without a season.

    Parameters
    ----------
    x : Tensor of shape (B, n)
        Values without the season.
    index : Tensor of shape (B, n, H), optional
        Seasonal indices of the steps ahead of every origin, or their logarithms; None without a season.
    known : bool Tensor of shape (B, n)
        Origins from which the season is known.
    multiplicative : bool
        Whether forecasts are multiplied by the indices.
    rank : int
        See ``Members``.
    season : int
        Steps of the season, 1 for none.
    """

    x: Float[Tensor, "B n"]
    index: Float[Tensor, "B n H"] | None
    known: Bool[Tensor, "B n"]
    multiplicative: bool
    rank: int = 0
    season: int = 1


def adjusted(y: Float[Tensor, "B n"], seasons: Sequence[int], horizon: int) -> list[Adjusted]:
    """The series as it is, then adjusted by differences and by factors for every season.

    A season of which the one before it is no part, as weeks are none of a year of days, is that of the series
    without the one before, and its indices are moving averages: single days of few years say little.

    Examples
    --------
    >>> import torch
    >>> from taylorformer_forecast.baselines.adjusted import adjusted
    >>> y = torch.tensor([1.0, 3.0, 2.0, 4.0]).repeat(5)[None].double()
    >>> [(one.season, one.multiplicative) for one in adjusted(y, (4,), 6)]
    [(1, False), (4, False), (4, True)]
    >>> adjusted(y, (4,), 6)[1].x[0, -4:].round(decimals=6).tolist()
    [2.5, 2.5, 2.5, 2.5]
    """
    found = [Adjusted(y, None, torch.ones_like(y, dtype=torch.bool), False)]
    positive = positive_so_far(y)
    logs = torch.where(y > 0, y, torch.nan).log()
    for number, season in enumerate(seasons):
        apart = number > 0 and season % seasons[number - 1] != 0
        sums, products = found[-2:] if apart else (found[0], found[0])
        log_x = torch.where(logs.isnan(), torch.nan, products.x.log()) if apart else logs
        width = 2 * int(INDEX_WIDTH * season / 2) + 1 if apart else 1
        both = seasonal(torch.cat([sums.x, log_x]), season, horizon, width)
        (rest, log_rest), (index, log_index), (known, log_known) = (
            part.tensor_split(2) for part in (both.adjusted, both.index, both.known)
        )
        if sums.index is not None and products.index is not None:
            index, log_index = index + sums.index, log_index + products.index
        rank = 2 * number + 2
        found.append(Adjusted(rest, index, known & sums.known, False, rank, season))
        # A value that has no logarithm is smoothed as it is; origins after it have no forecast.
        x = torch.where(logs.isnan(), y, log_rest.exp())
        known = log_known & products.known & positive
        found.append(Adjusted(x, log_index, known, True, rank, season))
    return found


def without_season(y: Float[Tensor, "B n"], seasons: Sequence[float | int]) -> Float[Tensor, "B n"]:
    """Series less each season that was seen three times and without which large steps are clearly smaller.

    An index is the median of the values at a place less the level, which leads from the median of one cycle
    to that of the next; or it is relative to the level, if steps are smaller then. So no cycle has a great
    part.

    Examples
    --------
    >>> import torch
    >>> from taylorformer_forecast.baselines.adjusted import without_season
    >>> y = torch.tensor([[1.0, 2.0, 9.0] * 4])
    >>> y[0, 8] = 5.0
    >>> without_season(y, [3]).tolist()
    [[2.0, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0, -2.0, 2.0, 2.0, 2.0]]
    """
    for season in map(int, seasons):
        if season < 2 or y.shape[1] < LEAST_PAST_CYCLES * season:
            continue
        cycles, pad = in_cycles(y, season)
        middle = carry(carry(cycles.nanmedian(2).values).flip(1)).flip(1)
        place = torch.arange(pad, pad + y.shape[1], dtype=y.dtype, device=y.device)
        cycle = ((place - (season - 1) / 2) / season).clamp(0, middle.shape[1] - 1)  # from its middle
        before = cycle.long().clamp_max(middle.shape[1] - 2)
        level = torch.lerp(middle[:, before], middle[:, before + 1], (cycle - before).expand_as(y))
        seen = (~y.isnan()).sum(1) >= LEAST_PAST_CYCLES * season
        rest, size = y, SEASONAL_STEP_PART * large_step(y)
        for unit in (torch.ones_like(level), level):
            index = in_cycles((y - level) / unit, season)[0].nanmedian(1).values
            less = y - unit * index.repeat(1, cycles.shape[1])[:, pad:]
            step = large_step(less)
            better = (step < size) & (unit > 0).all(1) & seen
            rest, size = torch.where(better[:, None], less, rest), torch.where(better, step, size)
        y = rest
    return y


def large_step(y: Float[Tensor, "B n"]) -> Float[Tensor, " B"]:
    """The step of each series that a tenth of its steps is larger than; NaN without steps."""
    ordered = y.diff(dim=1).abs().sort(dim=1).values  # NaN are the last
    count = (~ordered.isnan()).sum(1, keepdim=True)
    return ordered.gather(1, (LARGE_STEP * (count - 1)).long().clamp_min(0))[:, 0]


def lasting_step(y: Float[Tensor, "... n"]) -> Float[Tensor, "... n-3"]:
    """Size of steps, from the second on but for the last one, that neither value beside them takes back."""
    steps = [y[..., 2:-1] - y[..., 1:-2], y[..., 3:] - y[..., 1:-2], y[..., 2:-1] - y[..., :-3]]
    return torch.stack(steps).abs().amin(0)
