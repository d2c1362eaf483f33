"""Effects of the calendar: lengths of months, working days, Easter, holidays and days of payment."""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.random import Generator

from taylorformer_forecast.calendar.easter import easter
from taylorformer_forecast.synthetic.frame import Frame, log_uniform

YEARS = np.arange(1955, 2355)  # after 400 years, months and weekdays are the same again
EASTER_WINDOW = 8  # days up to Easter Sunday


def year_and_day(days: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Years, days of the year (from 0) and days of the month (from 0) of days since 1970-01-01.

    Examples
    --------
    >>> import numpy as np
    >>> from taylorformer_forecast.synthetic.calendar import year_and_day
    >>> [int(x[0]) for x in year_and_day(np.array([31]))]
    [1970, 31, 0]
    """
    date = days.astype("datetime64[D]")
    year = date.astype("datetime64[Y]")
    day = (date - year.astype("datetime64[D]")).astype(int)
    return (
        year.astype(int) + 1970,
        day,
        (date - date.astype("datetime64[M]").astype("datetime64[D]")).astype(int),
    )


@cache
def months_table() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Days of every month since 1955, how many of each weekday, and the share of the days before Easter.

    Returns
    -------
    days : int ndarray of shape (m,)
        Lengths of the months.
    weekdays : int ndarray of shape (m, 7)
        How many Mondays, ..., Sundays.
    before_easter : float ndarray of shape (m,)
        Share of the eight days up to Easter Sunday.

    Examples
    --------
    >>> from taylorformer_forecast.synthetic.calendar import months_table
    >>> days, weekdays, before_easter = months_table()
    >>> days[:3].tolist(), weekdays[0].tolist()  # January 1955 began on a Saturday
    ([31, 28, 31], [5, 4, 4, 4, 4, 5, 5])
    """
    months = np.arange((YEARS[0] - 1970) * 12, (YEARS[-1] + 1 - 1970) * 12 + 1)
    first = months.astype("datetime64[M]").astype("datetime64[D]").astype(int)
    all_days = np.arange(first[0], first[-1])
    month = np.searchsorted(first, all_days, "right") - 1
    weekdays = np.zeros((len(months) - 1, 7), dtype=int)
    np.add.at(weekdays, (month, (all_days + 3) % 7), 1)
    sundays = easter(YEARS)
    window = (sundays[:, None] - np.arange(EASTER_WINDOW)).ravel()
    share = np.bincount(month[window - first[0]], minlength=len(months) - 1) / EASTER_WINDOW
    return np.diff(first), weekdays, share


def _by_month(frame: Frame, table: np.ndarray) -> np.ndarray:
    """Values of a table (m, ...) of the months since 1955, summed over the months of a step."""
    first = frame.months() - (YEARS[0] - 1970) * 12
    out = table[first % len(table)]
    for row in np.flatnonzero(frame.frequency == "quarterly"):
        out[row] = sum(table[(first[row] + j) % len(table)] for j in range(3))
    return out


def _month_length(rng: Generator, frame: Frame) -> np.ndarray:
    """Flows are proportional to a power of the number of days."""
    days = _by_month(frame, months_table()[0].astype(float))
    return log_uniform(rng, 0.3, 2.0, (frame.k, 1)) * np.log(days / days.mean(1, keepdims=True))


def _working_days(rng: Generator, frame: Frame) -> np.ndarray:
    """Effects of the number of each weekday, which sum to zero over a week."""
    effect = rng.standard_normal((frame.k, 7)) + rng.normal(0.0, 2.0, (frame.k, 1)) * (np.arange(7) < 5)
    effect -= effect.mean(1, keepdims=True)
    weekdays = _by_month(frame, months_table()[1].astype(float))
    return np.einsum("knd,kd->kn", weekdays, effect)


def _easter(rng: Generator, frame: Frame) -> np.ndarray:
    """An effect of the days before Easter, in the months or on the days where they fall."""
    sign = np.where(rng.random((frame.k, 1)) < 0.6, 1.0, -1.0)
    out = np.zeros((frame.k, frame.n))
    monthly = np.isin(frame.frequency, ["monthly", "quarterly"])
    if monthly.any():
        out[monthly] = _by_month(frame.rows(monthly), months_table()[2])
    if not monthly.all():
        weekly = frame.frequency[~monthly] == "weekly"
        days = frame.rows(~monthly).days() + np.where(weekly, 3, 0)[:, None]
        ahead = easter(year_and_day(days)[0]) - days
        last = np.where(weekly, EASTER_WINDOW + 3, EASTER_WINDOW)[:, None]
        out[~monthly] = (ahead >= -1) & (ahead < last)
    return sign * out


def _holidays(rng: Generator, frame: Frame) -> np.ndarray:
    """Effects of up to twelve days of the year and of the end of the year, with days around them."""
    k = frame.k
    of_day = np.zeros((k, 366))
    sign, row = rng.choice([-1.0, 1.0], (k, 1), p=[0.7, 0.3]), np.arange(k)
    for number in range(12):
        held = rng.random(k) < (0.9 if number < 4 else 0.4)
        day, height = rng.integers(0, 366, k), rng.uniform(0.4, 1.2, k) * held
        before = rng.uniform(-0.3, 0.5, k)
        of_day[row, day] += height
        of_day[row, day - 1] += before * height
    christmas = rng.uniform(0.0, 1.5, (k, 1)) * (rng.random((k, 1)) < 0.8)
    of_day[:, 350:359] -= 0.5 * christmas * rng.uniform(-0.5, 1.0, (k, 1))
    of_day[:, 358:] += christmas
    of_day[:, :1] += christmas
    out = np.empty((k, frame.n))
    weekly = frame.frequency == "weekly"
    for rows, span in ((np.flatnonzero(weekly), 7), (np.flatnonzero(~weekly), 1)):
        if len(rows):
            days = frame.rows(rows).days()
            effects = [np.take_along_axis(of_day[rows], year_and_day(days + j)[1], 1) for j in range(span)]
            out[rows] = np.mean(effects, axis=0)
    return sign * out


def _payment_days(rng: Generator, frame: Frame) -> np.ndarray:
    """Effects of the day of the month, which fade after a day of payment."""
    k = frame.k
    paid = rng.choice([0, 0, 9, 14, 24, 26], (k, 1))
    after = (np.arange(31) - paid) % 31
    effect = np.exp(-after / log_uniform(rng, 1.0, 8.0, (k, 1)))
    return np.take_along_axis(effect, year_and_day(frame.days())[2], 1)


CALENDAR = {
    "month_length": _month_length,
    "working_days": _working_days,
    "easter": _easter,
    "holidays": _holidays,
    "payment_days": _payment_days,
}
