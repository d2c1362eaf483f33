"""When Easter is."""

from __future__ import annotations

import numpy as np
from jaxtyping import Int


def easter(year: Int[np.ndarray, "*n"]) -> Int[np.ndarray, "*n"]:
    """Easter Sundays of the Gregorian calendar in days since 1970-01-01 [1]_.

    References
    ----------
    .. [1] Meeus (1991), "Astronomical Algorithms", the anonymous algorithm of 1876.

    Examples
    --------
    >>> import numpy as np
    >>> from taylorformer_forecast.calendar.easter import easter
    >>> easter(np.array([2000, 2024])).astype("datetime64[D]").astype(str).tolist()
    ['2000-04-23', '2024-03-31']
    """
    a, b, c = year % 19, year // 100, year % 100
    h = (19 * a + b - b // 4 - (b - (b + 8) // 25 + 1) // 3 + 15) % 30
    day = (32 + 2 * (b % 4) + 2 * (c // 4) - h - c % 4) % 7
    m = (a + 11 * h + 22 * day) // 451
    march = (year - 1970).astype("datetime64[Y]").astype("datetime64[M]") + 2
    return march.astype("datetime64[D]").astype(int) + h + day - 7 * m + 21
