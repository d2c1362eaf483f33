"""Series as they are, and seasonally adjusted by differences and by factors: what the members smooth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from taylorformer_forecast.baselines.bounds import positive_so_far
from taylorformer_forecast.baselines.seasonal import seasonal
from taylorformer_forecast.defaults import INDEX_WIDTH


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
