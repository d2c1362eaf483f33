"""Frequencies of dates: their names, what is counted for them, and dates that can be counted."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd

from taylorformer_forecast.calendar.steps import YEARS_OF_DATES
from taylorformer_forecast.defaults import FEW_WEEKDAYS, FEWEST_SPARSE_DATES

SHORTEST_MONTH = 28  # days
DAYS_OF_MONTH = 30.436875  # in the mean
# Cycles of the calendar: name -> length in days.
CYCLES = {"day": 1.0, "week": 7.0, "month": DAYS_OF_MONTH, "year": 365.2425}
# Frequencies that count months: WOM and LWOM are of some weekday of every month, as the second Tuesday.
MONTHLY = ("MS", "ME", "QS", "QE", "YS", "YE", "BMS", "BME", "BQS", "BQE", "BYS", "BYE", "WOM", "LWOM")


def name_of(freq: Any) -> str:
    """Name of a frequency without its multiple; empty for none."""
    return "" if freq is None else str(getattr(freq, "freqstr", freq)).lstrip("0123456789")


def is_day_of_months(freq: Any) -> bool:
    """Whether a frequency is of months that are known by the same day."""
    return isinstance(freq, pd.DateOffset) and set(getattr(freq, "kwds", ())) == {"months"}


def check_range(index: pd.DatetimeIndex, name: str = "the index") -> None:
    """Raise a ValueError if there are dates that cannot be counted in nanoseconds."""
    first, last = YEARS_OF_DATES
    for stamp in (index.min(), index.max()):
        if not first <= stamp.year <= last:
            raise ValueError(
                f"{name} has the date {stamp}, but dates must lie between {first} and {last}: "
                f"number the steps by integers, or in sktime give periods (DatetimeIndex.to_period)"
            )


def frequency(index: pd.DatetimeIndex) -> object:
    """Frequency of a datetime index: its own, the inferred, or that of months or weekdays with gaps.

    Months may be known by any day that all have, as the 15th.
    """
    if index.freq is not None:
        return index.freq
    inferred: Any = pd.infer_freq(index) if len(index) >= 3 else None
    if inferred is None and len(index) >= 3:
        local = index.tz_localize(None)  # some zones have days without a midnight
        whole = (local == local.normalize()).all()
        days = np.median(np.diff(index.as_unit("ns").asi8)) / 86400e9
        months = max(1, round(days / DAYS_OF_MONTH))  # of a step
        if whole and days > 20 and (index.day == 1).all():
            inferred = f"{months}MS"
        elif whole and days > 20 and index.is_month_end.all():
            inferred = f"{months}ME"
        elif whole and days > 20 and index.day[0] <= SHORTEST_MONTH and (index.day == index.day[0]).all():
            inferred = pd.DateOffset(months=months)
        elif whole and days == 1 and len(index) >= FEW_WEEKDAYS and set(index.dayofweek) == {*range(5)}:
            inferred = "B"  # holidays are missing
    return None if inferred is None else pd.tseries.frequencies.to_offset(inferred)


def check_alike(freq: Any, indexes: Sequence[pd.DatetimeIndex], names: Sequence[str]) -> None:
    """Raise a ValueError if dates of a series have another frequency than those of the longest.

    Gaps are no other frequency. So dates may be sparser than those of the longest series if they lie on its
    steps, and either some of them are neighbours there or they are few.

    Parameters
    ----------
    freq : pandas offset
        Frequency of the longest series.
    indexes : sequence of pd.DatetimeIndex
        Dates of every series.
    names : sequence of str
        Which series it is, as " of instance 'a'".

    Examples
    --------
    >>> import pandas as pd
    >>> from taylorformer_forecast.calendar.frequency import check_alike
    >>> days, months = pd.date_range("2024", periods=40), pd.date_range("2024", periods=30, freq="MS")
    >>> try:
    ...     check_alike(days.freq, [days, months], [" of a", " of b"])
    ... except ValueError as error:
    ...     print(str(error).split(":")[0])
    the dates of b have frequency MS, but those of the longest have D
    """
    alike = set()  # most panels have the same dates many times
    for index, name in zip(indexes, names, strict=True):
        dates = index.asi8.tobytes()
        own: Any = None if dates in alike else frequency(index)
        if own is not None and own != freq and not _has_gaps(index, freq):
            raise ValueError(
                f"the dates{name} have frequency {own.freqstr}, but those of the longest have "
                f"{freq.freqstr}: resample y to one frequency, or fit a forecaster for each"
            )
        alike.add(dates)


def _has_gaps(index: pd.DatetimeIndex, freq: Any) -> bool:
    """Whether dates are those of a frequency, some of which are missing."""
    if isinstance(freq, pd.offsets.Tick) and name_of(freq) != "D":
        counts = index.as_unit("ns").asi8
        on_grid = not ((counts - counts[0]) % pd.Timedelta(freq).value).any()
    else:  # days of a time zone are not equally long
        index = index.tz_localize(None)
        on_grid = bool(index.isin(pd.date_range(index[0], index[-1], freq=freq)).all())
    few = len(index) < FEWEST_SPARSE_DATES
    return on_grid and (few or any(one + freq == after for one, after in pairwise(index)))


def dates_after(last: pd.Timestamp, steps: pd.Index, freq: Any) -> pd.DatetimeIndex:
    """Dates some steps after the last one; they have the frequency if no step between them is left out.

    Examples
    --------
    >>> import pandas as pd
    >>> from taylorformer_forecast.calendar.frequency import dates_after
    >>> dates_after(pd.Timestamp("2024-01-31"), pd.Index([1, 2]), pd.offsets.MonthEnd()).freqstr
    'ME'
    """
    dates = pd.DatetimeIndex([last + k * freq for k in steps])
    whole = bool((np.diff(steps) == 1).all()) and freq.is_on_offset(last)
    return pd.DatetimeIndex(dates, freq=freq) if whole else dates


def in_unit_of(stamps: pd.DatetimeIndex, like: pd.DatetimeIndex) -> pd.DatetimeIndex:
    """Dates in the unit of others, unless that would round them."""
    same = stamps.as_unit(like.unit)
    return same if (same == stamps).all() else stamps


def kind_of(freq: Any) -> str:
    """What to count for a frequency of datetimes."""
    name = name_of(freq).split("-")[0]
    if name in MONTHLY or is_day_of_months(freq):
        return "month"
    # Holidays of an exchange are days without a value: other days keep their places in the week.
    weekdays = name == "B" or (name == "C" and freq.weekmask == "Mon Tue Wed Thu Fri")
    return "business" if weekdays else "clock"


@functools.lru_cache
def cycle_counts(name: str, kind: str, freq: Any) -> float:
    """Length of a calendar cycle in what is counted for a frequency."""
    days = CYCLES[name]
    if kind == "month":
        return days / CYCLES["month"]
    if kind == "business":
        return days * 5 / 7
    if kind == "period":
        if isinstance(freq, pd.offsets.Tick):  # to_timestamp rounds to microseconds
            return days * 86400e9 / freq.base.nanos
        # 240 periods, as pandas 2 knows no dates after 2262
        stamps = pd.PeriodIndex.from_ordinals([0, 240], freq=freq).to_timestamp()
        return days / ((stamps[1] - stamps[0]) / pd.Timedelta(days=1) / 240)
    return days * 86400e9
