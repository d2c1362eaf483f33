"""Where days lie in the month, around Easter and around Christmas; working days of months."""

from __future__ import annotations

import numpy as np
from dateutil.easter import easter
from jaxtyping import Float, Int

from taylorformer_forecast.defaults import CHRISTMAS_REACH, EASTER_REACH


def day_of_month(days: Int[np.ndarray, "*n"]) -> Int[np.ndarray, "*n"]:
    """Number of each day in its month, from 0.

    Parameters
    ----------
    days : int ndarray
        Days since 1 January 1970.

    Examples
    --------
    >>> import numpy as np
    >>> from taylorformer_forecast.calendar.days import day_of_month
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
    >>> from taylorformer_forecast.calendar.days import around_easter
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
    >>> from taylorformer_forecast.calendar.days import around_christmas
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
    >>> from taylorformer_forecast.calendar.days import surplus_of_working_days
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
