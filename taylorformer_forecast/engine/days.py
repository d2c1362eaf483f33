"""What the calendar adds to daily and monthly series, before and after their forecast."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from taylorformer_forecast.baselines.calendar import calendar_effects, working_day_effects
from taylorformer_forecast.baselines.intermittent import is_intermittent
from taylorformer_forecast.calendar.days import (
    around_christmas,
    around_easter,
    day_of_month,
    surplus_of_working_days,
)
from taylorformer_forecast.defaults import CHRISTMAS_REACH, EASTER_REACH


def effects_of_calendar(y: Tensor, last: Sequence[np.datetime64 | None], horizon: int) -> Tensor:
    """What the calendar adds to series and their futures, (B, n + horizon).

    Parameters
    ----------
    y : Tensor of shape (B, n)
        Series that end together, NaN where nothing was observed.
    last : sequence of datetime64, optional
        Dates of the last values: days of daily series (unit "D") or months (unit "M"). Other series, and
        intermittent ones, have no effects.
    horizon : int
        Number of steps ahead.

    Examples
    --------
    >>> import numpy as np
    >>> import torch
    >>> from taylorformer_forecast.engine.days import effects_of_calendar
    >>> effects_of_calendar(torch.rand(2, 5), [None, np.datetime64("2024-10")], horizon=3).shape
    torch.Size([2, 8])
    """
    effects = y.new_zeros(len(y), y.shape[1] + horizon)
    for unit in "DM":
        rows = [k for k, at in enumerate(last) if at is not None and np.datetime_data(at)[0] == unit]
        if rows:
            ends = np.array([int(last[row].astype(int)) for row in rows])  # type: ignore[union-attr]
            dates = ends[:, None] + np.arange(1 - y.shape[1], horizon + 1)
            if unit == "M":
                found = working_day_effects(y[rows], torch.from_numpy(surplus_of_working_days(dates)).to(y))
            else:
                found = _of_days(y[rows], dates)
            effects[rows] = torch.where(is_intermittent(y[rows]).any(1, keepdim=True), 0.0, found)
    return effects


def _of_days(y: Tensor, days: np.ndarray) -> Tensor:
    """Effects of days of the month, Easter and Christmas."""
    month, easter, christmas = map(
        torch.from_numpy, (day_of_month(days), around_easter(days), around_christmas(days))
    )
    holidays = [(easter, 2 * EASTER_REACH + 1), (christmas, 2 * CHRISTMAS_REACH + 1)]
    return calendar_effects(y, month, holidays)


def without_effects(y: Tensor, effects: Tensor) -> Tensor:
    """Series less the effects of the calendar; what has no negative values gets none below its least."""
    least = torch.where(y.isnan(), torch.inf, y).amin(1, keepdim=True)
    return torch.maximum(y - effects[:, : y.shape[1]], torch.where(least >= 0, least, -torch.inf))
