"""What days of the month, Easter and Christmas add to daily series, before and after their forecast."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from taylorformer_forecast.baselines.calendar import calendar_effects
from taylorformer_forecast.baselines.intermittent import is_intermittent
from taylorformer_forecast.calendar.days import around_christmas, around_easter, day_of_month
from taylorformer_forecast.defaults import CHRISTMAS_REACH, EASTER_REACH


def effects_of_calendar(y: Tensor, last_days: Sequence[int | None], horizon: int) -> Tensor:
    """What the calendar adds to daily series and their futures: (B, n + horizon), zero for other series.

    Examples
    --------
    >>> import torch
    >>> from taylorformer_forecast.engine.days import effects_of_calendar
    >>> effects_of_calendar(torch.rand(2, 5), [None, 20_000], horizon=3).shape
    torch.Size([2, 8])
    """
    effects = y.new_zeros(len(y), y.shape[1] + horizon)
    daily = [row for row, day in enumerate(last_days) if day is not None]
    if daily:
        last = np.array([last_days[row] for row in daily])
        days = last[:, None] + np.arange(1 - y.shape[1], horizon + 1)
        month, easter, christmas = map(
            torch.from_numpy, (day_of_month(days), around_easter(days), around_christmas(days))
        )
        holidays = [(easter, 2 * EASTER_REACH + 1), (christmas, 2 * CHRISTMAS_REACH + 1)]
        found = calendar_effects(y[daily], month, holidays)
        effects[daily] = torch.where(is_intermittent(y[daily]).any(1, keepdim=True), 0.0, found)
    return effects


def without_effects(y: Tensor, effects: Tensor) -> Tensor:
    """Series less the effects of the calendar; what has no negative values gets none below its least."""
    least = torch.where(y.isnan(), torch.inf, y).amin(1, keepdim=True)
    return torch.maximum(y - effects[:, : y.shape[1]], torch.where(least >= 0, least, -torch.inf))
