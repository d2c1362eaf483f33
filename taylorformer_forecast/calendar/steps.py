"""Time stamps and their steps: what an index holds, dates of steps, whole steps."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from taylorformer_forecast.defaults import LARGEST_OFFSET, OFF_STEP_SHARE, SPARSEST_STEPS

YEARS_OF_DATES = (1678, 2261)  # first and last: nanoseconds count no others
WEEKDAYS = tuple(range(7))


def content(index: pd.Index) -> str:
    """What an index holds, in words."""
    if isinstance(index, pd.PeriodIndex):
        return f"periods of frequency {index.freqstr}"
    if isinstance(index, pd.DatetimeIndex):
        return "dates" if index.tz is None else f"dates in the time zone {index.tz}"
    return "integers" if pd.api.types.is_integer_dtype(index.dtype) else str(index.dtype)


@dataclass(frozen=True)
class StepDate:
    """The day or the month of a step, from which those of other steps are counted.

    Parameters
    ----------
    date : datetime64
        A day (unit "D") or a month (unit "M").
    weekdays : tuple of int, optional
        Days of the week that are steps, from 0 on Mondays. All by default.

    Examples
    --------
    >>> import numpy as np
    >>> from taylorformer_forecast.calendar.steps import StepDate
    >>> friday = StepDate(np.datetime64("2024-03-01"), weekdays=(0, 1, 2, 3, 4))
    >>> friday.others(np.array([-1, 0, 1])).tolist(), (friday - 5).date
    ([19782, 19783, 19786], np.datetime64('2024-02-23'))
    """

    date: np.datetime64
    weekdays: tuple[int, ...] = WEEKDAYS

    def others(self, steps: np.ndarray) -> np.ndarray:
        """Days or months since January 1970 of steps, counted from this one."""
        if self.weekdays == WEEKDAYS:
            return self.date.astype(int) + steps
        is_step = [day in self.weekdays for day in WEEKDAYS]
        return np.busday_offset(self.date, steps, roll="forward", weekmask=is_step).astype(int)

    def __sub__(self, steps: int) -> StepDate:
        return replace(self, date=self.others(np.array([-steps])).astype(self.date.dtype)[0])


def snapped(steps: np.ndarray) -> np.ndarray:
    """Numbers of steps, those that are nearly whole as whole ones.

    Examples
    --------
    >>> import numpy as np
    >>> from taylorformer_forecast.calendar.steps import snapped
    >>> snapped(np.array([1.02, 1.5])).tolist()
    [1.0, 1.5]
    """
    whole = np.round(steps)
    return np.where(np.abs(steps - whole) > LARGEST_OFFSET, steps, whole)


def at_steps(t: np.ndarray, seen: np.ndarray) -> np.ndarray:
    """Which times are whole steps from the first with a value, or have a value themselves.

    Parameters
    ----------
    t : ndarray of shape (n,)
        Times in steps.
    seen : bool ndarray of shape (n,)
        Which have a value.

    Examples
    --------
    >>> import numpy as np
    >>> from taylorformer_forecast.calendar.steps import at_steps
    >>> t = np.array([0.0, 0.5, 1.0, 1.5, 2.5])
    >>> at_steps(t, np.array([False, True, False, False, True])).tolist()
    [False, True, False, True, True]
    """
    return seen | (snapped(t - t[seen.argmax()]) % 1 == 0)


def on_steps(t: np.ndarray) -> np.ndarray | None:
    """Positions of times on the grid of whole steps; None if they are not on one, or too sparse for it.

    Parameters
    ----------
    t : ndarray of shape (n,)
        Times in steps, increasing.

    Examples
    --------
    >>> import numpy as np
    >>> from taylorformer_forecast.calendar.steps import on_steps
    >>> on_steps(np.array([0.0, 1.0, 3.0])).tolist(), on_steps(np.array([0.0, 0.4, 3.0]))
    ([0, 1, 3], None)
    """
    at = np.round(t - t[0])
    sparse = at[-1] + 1 > SPARSEST_STEPS * len(t)
    if sparse or np.abs(t - t[0] - at).max() > LARGEST_OFFSET or (np.diff(at) < 1).any():
        return None
    return at.astype(int)


def common_divisor(positions: np.ndarray) -> int:
    """Largest number of which all positions are multiples; 1 if they are no whole numbers."""
    whole = np.round(positions)
    if np.abs(positions - whole).max() > 1e-6:
        return 1
    return max(1, int(np.gcd.reduce(whole.astype(np.int64))))


def typical_step(gaps: np.ndarray, whole: bool) -> float:
    """Median distance of neighbours; 1 without any.

    Parameters
    ----------
    gaps : ndarray of shape (n,)
        Distances.
    whole : bool
        Whether to take the largest step of which all gaps are multiples, unless most steps would be empty, or
        few gaps ask for it: of days, Mondays, Wednesdays and Fridays.

    Examples
    --------
    >>> import numpy as np
    >>> from taylorformer_forecast.calendar.steps import typical_step
    >>> gaps = np.array([2, 2, 3])
    >>> typical_step(gaps, whole=False), typical_step(gaps, whole=True)
    (2.0, 1.0)
    """
    step = float(np.median(gaps)) if len(gaps) else 1.0
    if whole and len(gaps) and (gaps % step > 0).mean() > OFF_STEP_SHARE:
        divisor = float(common_divisor(gaps))
        step = divisor if step <= SPARSEST_STEPS * divisor else step
    return step
