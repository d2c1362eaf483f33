"""What the calendar adds to daily and monthly series: holidays, days of the month, working days."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from taylorformer_forecast.baselines.calendar import LONGEST_MONTH, calendar_effects, working_day_effects
from taylorformer_forecast.baselines.seasonal import season_of_zeros, zero_places
from taylorformer_forecast.baselines.zeros import is_intermittent
from taylorformer_forecast.calendar.easter import easter
from taylorformer_forecast.calendar.steps import WEEKDAYS, StepDate
from taylorformer_forecast.defaults import CHRISTMAS_REACH, EASTER_REACH


def effects_of_calendar(
    y: Tensor, last: Sequence[StepDate | None], horizon: int, seasons: Sequence[int] = ()
) -> Tensor:
    """What the calendar adds to series and their futures, (B, n + horizon).

    Parameters
    ----------
    y : Tensor of shape (B, n)
        Series that end together, NaN where nothing was observed.
    last : sequence of StepDate, optional
        Dates of the last values of series of days or months. Other series, and intermittent ones, have no
        effects.
    horizon : int
        Number of steps ahead.
    seasons : sequence of int, optional
        Steps of the seasons. Where one is always zero, as on Sundays of a shop, nothing is added. Beside one
        that is no week, days of the month have no effect if its cycles explain more.

    Examples
    --------
    >>> import numpy as np
    >>> import torch
    >>> from taylorformer_forecast.calendar.steps import StepDate
    >>> from taylorformer_forecast.engine.statistics.days import effects_of_calendar
    >>> last = [None, StepDate(np.datetime64("2024-10"))]
    >>> effects_of_calendar(torch.rand(2, 5), last, horizon=3).shape
    torch.Size([2, 8])
    """
    n = y.shape[1]
    effects, steps = y.new_zeros(len(y), n + horizon), np.arange(1 - n, horizon + 1)
    if all(at is None for at in last):
        return effects
    closed = season_of_zeros(y, seasons)[:, None]
    always_zero = closed & zero_places(y, torch.arange(n + horizon), seasons)
    others = torch.where(always_zero[:, :n], torch.nan, y)
    alike: dict[tuple[np.dtype, tuple[int, ...]], list[tuple[int, StepDate]]] = defaultdict(list)
    for row, at in enumerate(last):
        if at is not None:
            alike[at.date.dtype, at.weekdays].append((row, at))
    for (unit, weekdays), dated in alike.items():
        rows, dates = [row for row, _ in dated], np.stack([at.others(steps) for _, at in dated])
        if unit == "datetime64[M]":
            surplus = torch.from_numpy(surplus_of_working_days(dates)).to(y)
            effects[rows] = working_day_effects(others[rows], surplus)
        else:
            in_days = [round(season * len(WEEKDAYS) / len(weekdays)) for season in seasons]
            effects[rows] = _of_days(others[rows], dates, in_days, weekdays)
    return torch.where(always_zero | (is_intermittent(y)[:, -1:] & ~closed), 0.0, effects)


def _of_days(y: Tensor, days: np.ndarray, seasons: Sequence[int], weekdays: Sequence[int]) -> Tensor:
    """Effects of days of the month, Easter and Christmas, sought among all days of the weeks."""
    n = y.shape[1]
    end = days[:, n - 1 : n]
    first, last = int((days - end).min()), int((days - end).max())
    every = end + np.arange(first, last + 1)
    at = torch.from_numpy(days - end - first)
    daily = y.new_full((len(y), 1 - first), torch.nan).scatter(1, at[:, :n], y)
    month = torch.from_numpy(day_of_month(every, weekdays))
    holidays = [(torch.from_numpy(around(every)), 2 * reach + 1) for around, reach in HOLIDAYS]
    return calendar_effects(daily, month, holidays, seasons).gather(1, at)


def without_effects(y: Tensor, effects: Tensor) -> Tensor:
    """Series less the effects of the calendar; what has no negative values gets none below its least."""
    least = torch.where(y.isnan(), torch.inf, y).amin(1, keepdim=True)
    return torch.maximum(y - effects[:, : y.shape[1]], torch.where(least >= 0, least, -torch.inf))


def day_of_month(days: Int[np.ndarray, "*n"], weekdays: Sequence[int] = WEEKDAYS) -> Int[np.ndarray, "*n"]:
    """Number of each day in its month, from 0.

    Parameters
    ----------
    days : int ndarray
        Days since 1 January 1970.
    weekdays : sequence of int, optional
        Days of the week that are counted, from 0 on Mondays. If not all are, the last one of a month is 30,
        and so are those before it numbered that are nearer to it than to the first: books are closed on it.

    Examples
    --------
    >>> import numpy as np
    >>> from taylorformer_forecast.engine.statistics.days import day_of_month
    >>> day_of_month(np.array([0, 30, 31])).tolist()
    [0, 30, 0]
    >>> day_of_month(np.array([0, 1, 28, 29, 32]), weekdays=range(5)).tolist()  # from a Thursday on
    [0, 1, 29, 30, 0]
    """
    dates = days.astype("datetime64[D]")
    months = dates.astype("datetime64[M]")
    first, end = (each.astype("datetime64[D]") for each in (months, months + 1))
    if tuple(weekdays) == WEEKDAYS:
        return (dates - first).astype(int)
    counted = [day in weekdays for day in WEEKDAYS]
    before, after = np.busday_count(first, dates, counted), np.busday_count(dates + 1, end, counted)
    return np.where(before <= after, before, LONGEST_MONTH - 1 - after)


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
    year = days.astype("datetime64[D]").astype("datetime64[Y]").astype(int) + 1970
    return _around(days, easter(year), EASTER_REACH)


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


HOLIDAYS = ((around_easter, EASTER_REACH), (around_christmas, CHRISTMAS_REACH))
