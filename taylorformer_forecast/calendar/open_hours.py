"""Open hours: the steps of a week that have values, where nights or weekends never have any."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from taylorformer_forecast.calendar.frequency import CYCLES
from taylorformer_forecast.defaults import CLOSED_CHANCE, LEAST_CLOSED, LEAST_OPEN_WEEKS

DAY, WEEK = (pd.Timedelta(days=n).as_unit("ns").value for n in (1, 7))
MONDAY = pd.Timestamp("1970-01-05").as_unit("ns").value


def _since_monday(index: pd.DatetimeIndex) -> np.ndarray:
    """Local times in nanoseconds since a Monday."""
    local = index.tz_localize(None) if index.tz is not None else index
    return local.as_unit("ns").asi8 - MONDAY


@dataclass(frozen=True)
class OpenHours:
    """Steps of the week that have values: counted one after another, as bars of an exchange are.

    Parameters
    ----------
    step : int
        Between neighbours of one day, in nanoseconds.
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

        Days that are open have the same hours. Hours that only some days have would shift those of others.

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
        times = np.unique(np.concatenate([_since_monday(index) for index in indexes]))
        if len(times) < 2:
            return None
        step = int(np.median(np.diff(times)))
        first = int(times[0] % step)
        weeks, n_places = int((times[-1] - times[0]) // WEEK), WEEK // step
        if step >= DAY or DAY % step or ((times - first) % step).any() or weeks < LEAST_OPEN_WEEKS:
            return None
        places = np.unique((times - first) % WEEK // step)
        found = cls(step, first, tuple(places.tolist()), int(np.bincount(places // (DAY // step)).max()))
        if n_places - len(places) < LEAST_CLOSED * n_places or len(places) % found.per_day:
            return None
        days = (places % (DAY // step)).reshape(-1, found.per_day)
        seen = len(times) / (np.ptp(found._counts(times[[0, -1]])) + 1)
        by_chance = n_places * (1 - seen) ** weeks  # places that have no value and are open
        return found if (days == days[0]).all() and by_chance < CLOSED_CHANCE else None

    def _counts(self, times: np.ndarray) -> np.ndarray:
        week, within = np.divmod(times - self.first, WEEK)
        n, places = len(self.places), np.array(self.places)
        known = np.concatenate([places[-1:] - WEEK // self.step, places, places[:1] + WEEK // self.step])
        return week * n + np.interp(within / self.step, known, np.arange(-1, n + 1))

    def count(self, index: pd.DatetimeIndex) -> np.ndarray:
        """Times as numbers of open steps; those of closed hours lie between."""
        return self._counts(_since_monday(index))

    def stamps(self, counts: np.ndarray, like: pd.DatetimeIndex) -> pd.DatetimeIndex:
        """Times of open steps, in the zone and unit of an index.

        Examples
        --------
        >>> import pandas as pd
        >>> from taylorformer_forecast.calendar.open_hours import OpenHours
        >>> hours = pd.date_range("2024-01-01", periods=21 * 24, freq="h")
        >>> office = hours[(hours.hour >= 9) & (hours.hour < 17) & (hours.dayofweek < 5)]
        >>> found = OpenHours.of([office])
        >>> found.stamps(found.count(office[-1:]) + 1, office)[0]  # after a Friday
        Timestamp('2024-01-22 09:00:00')
        """
        week, place = np.divmod(np.asarray(counts).astype("int64"), len(self.places))
        times = MONDAY + week * WEEK + self.first + np.array(self.places)[place] * self.step
        stamps = pd.DatetimeIndex(times.astype("datetime64[ns]"))
        if like.tz is not None:
            first = np.ones(len(stamps), bool)  # of the two hours when clocks go back
            stamps = stamps.tz_localize(like.tz, ambiguous=first, nonexistent="shift_forward")
        same = stamps.as_unit(like.unit)
        return same if (same == stamps).all() else stamps

    def cycle(self, name: str) -> float:
        """Open steps of a cycle of the calendar."""
        return self.per_day if name == "day" else len(self.places) * CYCLES[name] / CYCLES["week"]
