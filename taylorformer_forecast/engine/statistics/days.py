"""What the calendar adds to daily and monthly series: holidays, days of the month, working days."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from dateutil.easter import easter
from jaxtyping import Float, Int
from torch import Tensor

from taylorformer_forecast.baselines.calendar import calendar_effects, working_day_effects
from taylorformer_forecast.baselines.seasonal import season_of_zeros, zero_places
from taylorformer_forecast.baselines.zeros import is_intermittent
from taylorformer_forecast.defaults import CHRISTMAS_REACH, EASTER_REACH


def effects_of_calendar(
    y: Tensor, last: Sequence[np.datetime64 | None], horizon: int, seasons: Sequence[int] = ()
) -> Tensor:
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
    seasons : sequence of int, optional
        Steps of the seasons. Where one is always zero, as on Sundays of a shop, nothing is added. Beside one
        that is no week, days of the month have no effect if its cycles explain more.

    Examples
    --------
    >>> import numpy as np
    >>> import torch
    >>> from taylorformer_forecast.engine.statistics.days import effects_of_calendar
    >>> effects_of_calendar(torch.rand(2, 5), [None, np.datetime64("2024-10")], horizon=3).shape
    torch.Size([2, 8])
    """
    n = y.shape[1]
    effects = y.new_zeros(len(y), n + horizon)
    if all(at is None for at in last):
        return effects
    closed = season_of_zeros(y, seasons)[:, None]
    always_zero = closed & zero_places(y, torch.arange(n + horizon), seasons)
    others = torch.where(always_zero[:, :n], torch.nan, y)
    for unit in "DM":
        rows = [k for k, at in enumerate(last) if at is not None and np.datetime_data(at)[0] == unit]
        if rows:
            ends = np.array([int(last[row].astype(int)) for row in rows])  # type: ignore[union-attr]
            dates = ends[:, None] + np.arange(1 - n, horizon + 1)
            if unit == "M":
                surplus = torch.from_numpy(surplus_of_working_days(dates)).to(y)
                effects[rows] = working_day_effects(others[rows], surplus)
            else:
                effects[rows] = _of_days(others[rows], dates, seasons)
    return torch.where(always_zero | (is_intermittent(y)[:, -1:] & ~closed), 0.0, effects)


def _of_days(y: Tensor, days: np.ndarray, seasons: Sequence[int]) -> Tensor:
    """Effects of days of the month, Easter and Christmas."""
    month, spring, winter = map(
        torch.from_numpy, (day_of_month(days), around_easter(days), around_christmas(days))
    )
    holidays = [(spring, 2 * EASTER_REACH + 1), (winter, 2 * CHRISTMAS_REACH + 1)]
    return calendar_effects(y, month, holidays, seasons)


def without_effects(y: Tensor, effects: Tensor) -> Tensor:
    """Series less the effects of the calendar; what has no negative values gets none below its least."""
    least = torch.where(y.isnan(), torch.inf, y).amin(1, keepdim=True)
    return torch.maximum(y - effects[:, : y.shape[1]], torch.where(least >= 0, least, -torch.inf))


def day_of_month(days: Int[np.ndarray, "*n"]) -> Int[np.ndarray, "*n"]:
    """Number of each day in its month, from 0.

    Parameters
    ----------
    days : int ndarray
        Days since 1 January 1970.

    Examples
    --------
    >>> import numpy as np
    >>> from taylorformer_forecast.engine.statistics.days import day_of_month
    >>> day_of_month(np.array([0, 30, 31])).tolist()
    [0, 30, 0]
    """
    dates = days.astype("datetime64[D]")
    return (dates - dates.astype("datetime64[M]").astype("datetime64[D]")).astype(int)


def around_easter(days: Int[np.ndarray, "*n"]) -> Int[np.ndarray, "*n"]:
    """Number of each day among those around Easter of western churches, from 0; -1 for others.

    Examples
    --------
    >>> import numpy as np
    >>> from taylorformer_forecast.engine.statistics.days import around_easter
    >>> days = np.arange("1997-03-22", "1997-03-27", dtype="datetime64[D]").astype(int)
    >>> around_easter(days).tolist()
    [-1, -1, 0, 1, 2]
    """
    years, of = np.unique(
        days.astype("datetime64[D]").astype("datetime64[Y]").astype(int), return_inverse=True
    )
    sundays = np.array([easter(1970 + year) for year in years.tolist()], dtype="datetime64[D]").astype(int)
    return _around(days, sundays[of].reshape(days.shape), EASTER_REACH)


def around_christmas(days: Int[np.ndarray, "*n"]) -> Int[np.ndarray, "*n"]:
    """Number of each day among those around Christmas, to New Year, from 0; -1 for others.

    Examples
    --------
    >>> import numpy as np
    >>> from taylorformer_forecast.engine.statistics.days import around_christmas
    >>> days = np.arange("1997-01-01", "1997-01-05", dtype="datetime64[D]").astype(int)
    >>> around_christmas(days).tolist()
    [15, 16, -1, -1]
    """
    # In the first half of a year the nearest Christmas is that of the year before.
    nearest = (days - 177).astype("datetime64[D]").astype("datetime64[Y]").astype("datetime64[M]") + 11
    return _around(days, nearest.astype("datetime64[D]").astype(int) + 24, CHRISTMAS_REACH)


def surplus_of_working_days(months: Int[np.ndarray, "*n"]) -> Float[np.ndarray, "*n"]:
    """Days from Monday to Friday of each month, less 2.5 times its other days: 0 in every four whole weeks.

    Parameters
    ----------
    months : int ndarray
        Months since January 1970.

    Examples
    --------
    >>> import numpy as np
    >>> from taylorformer_forecast.engine.statistics.days import surplus_of_working_days
    >>> months = np.arange("2024-01", "2024-05", dtype="datetime64[M]").astype(int)
    >>> surplus_of_working_days(months).tolist()
    [3.0, 1.0, -4.0, 2.0]
    """
    first, end = (number.astype("datetime64[M]").astype("datetime64[D]") for number in (months, months + 1))
    working = np.busday_count(first, end)
    return working - 2.5 * ((end - first).astype(int) - working)


def _around(days: np.ndarray, holiday: np.ndarray, reach: int) -> np.ndarray:
    """Distance to a holiday from ``reach`` days before it."""
    return np.where(np.abs(days - holiday) <= reach, days - holiday + reach, -1)
