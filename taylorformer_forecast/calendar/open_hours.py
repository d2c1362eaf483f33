"""Open hours and days: the steps of a week that have values, where nights or some weekdays never have any."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import tzinfo
from typing import Any

import numpy as np
import pandas as pd

from taylorformer_forecast.calendar.frequency import CYCLES, in_unit_of
from taylorformer_forecast.calendar.steps import common_divisor
from taylorformer_forecast.defaults import (
    CLOSED_CHANCE,
    DAILY_WEEKDAYS,
    LEAST_CLOSED,
    LEAST_OPEN,
    LEAST_OPEN_WEEKS,
    SHOWN_OPEN_HOURS,
)

DAY, WEEK = (pd.Timedelta(days=n).as_unit("ns").value for n in (1, 7))
MONDAY = pd.Timestamp("1970-01-05").as_unit("ns").value
LATEST_CLOCK_CHANGE = pd.Timedelta(hours=4).as_unit("ns").value  # after midnight
LAST_WEEK = (pd.Timestamp("2262-01-01").as_unit("ns").value - MONDAY) // WEEK


def _since_monday(index: pd.DatetimeIndex) -> np.ndarray:
    """Local times in nanoseconds since a Monday."""
    local = index.tz_localize(None) if index.tz is not None else index
    return local.as_unit("ns").asi8 - MONDAY


def _closes_enough(places: np.ndarray, n_places: int) -> bool:
    """Whether so much of a week is closed that open hours matter."""
    return n_places - len(places) >= LEAST_CLOSED * n_places


def _may_change(zone: tzinfo, within_day: np.ndarray) -> bool:
    """Whether clocks may be changed while it is open: early in the morning, unless a zone never does."""
    return zone.utcoffset(None) is None and bool((within_day < LATEST_CLOCK_CHANGE).any())


@dataclass(frozen=True)
class OpenHours:
    """Steps of the week that have values: counted one after another, as bars of an exchange are.

    Parameters
    ----------
    step : int
        Of the grid on which all steps lie, in nanoseconds; at most a day.
    first : int
        From midnight to the first step of the grid, in nanoseconds.
    places : tuple of int
        Steps since Monday that are open, ascending.
    per_day : int
        Open steps of a day.
    """

    step: int
    first: int
    places: tuple[int, ...]
    per_day: int

    @classmethod
    def of(cls, indexes: Sequence[pd.DatetimeIndex]) -> OpenHours | None:
        """Open hours of series; None if any step of a week may have values, or if too few weeks tell.

        Days that are open have the same hours, or these go on over midnight. Single holidays and missing
        steps do not matter. Of dates with one time of day, weekdays are the steps.

        Examples
        --------
        >>> import pandas as pd
        >>> from taylorformer_forecast.calendar.open_hours import OpenHours
        >>> hours = pd.date_range("2024-01-01", periods=21 * 24, freq="h")
        >>> office = hours[(hours.hour >= 9) & (hours.hour < 17) & (hours.dayofweek < 5)]
        >>> found = OpenHours.of([office])
        >>> found.per_day, len(found.places), OpenHours.of([hours])
        (8, 40, None)
        """
        longest = _since_monday(max(indexes, key=len))
        gaps = np.diff(longest)
        if not len(gaps) or gaps.min() < 1:
            return None
        times, zone = np.unique(np.concatenate([_since_monday(index) for index in indexes])), indexes[0].tz
        step = int(np.median(gaps))
        if step < DAY and not ((times - times[0]) % step).any():
            found = cls._of_step(times, step, strict=False)
        else:  # at 8, 12 and 18 o'clock, or on Mondays, Wednesdays and Fridays
            found = cls._of_step(times, min(common_divisor(gaps), DAY), strict=True)
        if found is None or zone is None or found.step == DAY:
            return found
        return None if _may_change(zone, np.array(found.places) * found.step % DAY) else found

    @classmethod
    def _of_step(cls, times: np.ndarray, step: int, strict: bool) -> OpenHours | None:
        """Open hours by times since a Monday; if ``strict``, each open step has a value in most weeks."""
        first = int(times[0] % step)
        steps, beside = np.divmod(times - first, step)
        if DAY % step or beside.any():
            return None
        days, at = np.divmod(steps, DAY // step)
        weekdays, on_weekday = np.unique(np.unique(days) % 7, return_counts=True)
        of_day, on_time = np.unique(at, return_counts=True)
        n_days, n_weeks = int(on_weekday.sum()), int(days[-1] // 7 - days[0] // 7) + 1
        # Days and hours that have no value by chance, although they are open.
        passed = np.bincount(np.arange(days[0], days[-1] + 1) % 7, minlength=7)
        by_chance = 7 * (1 - n_days / passed[weekdays].sum()) ** n_weeks
        by_chance += len(of_day) * (1 - len(times) / (n_days * len(of_day))) ** n_days
        seldom = on_weekday.min() < LEAST_OPEN * n_weeks or on_time.min() < LEAST_OPEN * n_days
        if n_weeks < LEAST_OPEN_WEEKS or by_chance > CLOSED_CHANCE or (strict and seldom):
            return None
        if step == DAY:
            closed = np.delete(passed, weekdays)
            if len(weekdays) == 1 or not len(closed) or closed.min() < LEAST_OPEN_WEEKS:
                return None
            return cls(step, first, tuple(weekdays.tolist()), 1)
        places, per_day = (weekdays[:, None] * (DAY // step) + of_day).ravel(), len(of_day)
        if seldom or not _closes_enough(places, WEEK // step):  # currencies: Sunday night to Friday
            places = np.unique(steps % (WEEK // step))
            each = (places % (DAY // step))[: len(places) // per_day * per_day].reshape(-1, per_day)
            if len(places) % per_day or (each != each[0]).any() or not _closes_enough(places, WEEK // step):
                return None
        return cls(step, first, tuple(places.tolist()), per_day)

    def count(self, index: pd.DatetimeIndex) -> np.ndarray:
        """Times as numbers of open steps; those of closed hours lie between."""
        week, within = np.divmod(_since_monday(index) - self.first, WEEK)
        n, places = len(self.places), np.array(self.places)
        known = np.concatenate([places[-1:] - WEEK // self.step, places, places[:1] + WEEK // self.step])
        return week * n + np.interp(within / self.step, known, np.arange(-1, n + 1))

    def stamps(self, counts: np.ndarray, like: pd.DatetimeIndex) -> pd.DatetimeIndex:
        """Times of open steps, in the zone and unit of an index.

        Examples
        --------
        >>> import pandas as pd
        >>> from taylorformer_forecast.calendar.open_hours import OpenHours
        >>> office = pd.date_range("2024-01-01", periods=15 * 8, freq="bh")
        >>> found = OpenHours.of([office])
        >>> found.stamps(found.count(office[-1:]) + 1, office)[0]  # after a Friday
        Timestamp('2024-01-22 09:00:00')
        """
        week, place = np.divmod(np.asarray(counts).astype("int64"), len(self.places))
        if len(week) and week.max() > LAST_WEEK:
            raise OverflowError(f"there are no dates {week.max()} weeks after 1970")
        times = MONDAY + week * WEEK + self.first + np.array(self.places)[place] * self.step
        stamps = pd.DatetimeIndex(times.astype("datetime64[ns]"))
        if like.tz is not None:
            first = np.ones(len(stamps), bool)  # of the two hours when clocks go back
            stamps = stamps.tz_localize(like.tz, ambiguous=first, nonexistent="shift_forward")
        return in_unit_of(stamps, like)

    def may_be(self, step: float, span: float, freq: Any) -> bool:
        """Whether times that are too few to show open hours, this typical step apart, may have these.

        Parameters
        ----------
        step, span : float
            Typical distance of neighbours, and of the first and the last, in nanoseconds.
        freq : pandas offset or None
            Frequency of the times.
        """
        alike = step == self.step if self.step < DAY else freq is None and step % DAY == 0
        return alike and span < LEAST_OPEN_WEEKS * WEEK

    def cycle(self, name: str) -> float:
        """Open steps of a cycle of the calendar."""
        return self.per_day if name == "day" else len(self.places) * CYCLES[name] / CYCLES["week"]


def open_times(
    indexes: Sequence[pd.DatetimeIndex], freq: Any = None
) -> tuple[OpenHours | None, OpenHours | None]:
    """Open hours that are counted one after another; or weekdays that have rows, where days are counted.

    Parameters
    ----------
    indexes : sequence of pd.DatetimeIndex
        Times of all series.
    freq : pandas offset, optional
        Their frequency, which may say what is open.
    """
    if isinstance(freq, pd.offsets.BusinessHour | pd.offsets.CustomBusinessDay):
        first = max(indexes, key=len)[0]
        indexes = [pd.date_range(first, periods=SHOWN_OPEN_HOURS, freq=freq)]
    elif freq is not None:
        return None, None
    found = OpenHours.of(indexes)
    mostly_daily = found is not None and found.step == DAY and len(found.places) >= DAILY_WEEKDAYS
    return (None, found) if mostly_daily and freq is None else (found, None)
