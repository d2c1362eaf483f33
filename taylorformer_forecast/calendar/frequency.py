"""Frequencies of dates: their names, what is counted for them, and dates that can be counted."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from taylorformer_forecast.defaults import FEW_WEEKDAYS, FIRST_YEAR, LAST_YEAR

# Frequencies that count months: WOM and LWOM are of some weekday of every month, as the second Tuesday.
MONTHLY = ("MS", "ME", "QS", "QE", "YS", "YE", "BMS", "BME", "BQS", "BQE", "BYS", "BYE", "WOM", "LWOM")


def name_of(freq: Any) -> str:
    """Name of a frequency without its multiple; empty for none."""
    return "" if freq is None else str(getattr(freq, "freqstr", freq)).lstrip("0123456789")


def check_range(index: pd.DatetimeIndex, name: str = "the index") -> None:
    """Raise a ValueError if there are dates that cannot be counted in nanoseconds."""
    for stamp in (index.min(), index.max()):
        if not FIRST_YEAR <= stamp.year <= LAST_YEAR:
            raise ValueError(
                f"{name} has the date {stamp}, but dates must lie between {FIRST_YEAR} and {LAST_YEAR}: "
                f"give periods (DatetimeIndex.to_period) or integers"
            )


def frequency(index: pd.DatetimeIndex) -> object:
    """Frequency of a datetime index: its own, the inferred, or that of months or weekdays with gaps."""
    if index.freq is not None:
        return index.freq
    inferred = pd.infer_freq(index) if len(index) >= 3 else None
    if inferred is None and len(index) >= 3:
        whole = (index == index.normalize()).all()
        days = np.median(np.diff(index.as_unit("ns").asi8)) / 86400e9
        if whole and days > 20 and (index.day == 1).all():
            inferred = "MS"
        elif whole and days > 20 and index.is_month_end.all():
            inferred = "ME"
        elif whole and days == 1 and len(index) >= FEW_WEEKDAYS and (index.dayofweek < 5).all():
            inferred = "B"  # holidays are missing
    return None if inferred is None else pd.tseries.frequencies.to_offset(inferred)


def kind_of(freq: Any) -> str:
    """What to count for a frequency of datetimes."""
    name = name_of(freq).split("-")[0]
    if name in MONTHLY:
        return "month"
    # Holidays of an exchange are days without a value: other days keep their places in the week.
    weekdays = name == "B" or (name == "C" and freq.weekmask == "Mon Tue Wed Thu Fri")
    return "business" if weekdays else "clock"
