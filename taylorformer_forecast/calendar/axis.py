"""Time stamps as numbers: steps, horizons, cycles of the calendar."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from taylorformer_forecast.calendar.frequency import (
    check_range,
    cycle_counts,
    dates_after,
    frequency,
    in_unit_of,
    is_day_of_months,
    kind_of,
    name_of,
)
from taylorformer_forecast.calendar.open_hours import OpenHours, open_times
from taylorformer_forecast.calendar.steps import (
    WEEKDAYS,
    YEARS_OF_DATES,
    common_divisor,
    content,
    typical_step,
)
from taylorformer_forecast.defaults import SPARSEST_GRID, SPARSEST_STEPS

STEPS_AT_ONCE = 100_000  # of a forecast: paths pass through every one


@dataclass(frozen=True)
class TimeAxis:
    """How time stamps become real numbers, in units of the typical step.

    Parameters
    ----------
    kind : {"number", "period", "month", "business", "open", "clock"}
        What is counted: integers as they are, periods, calendar months, business days, steps of open hours,
        or nanoseconds. Monthly, quarterly and yearly stamps count months: February is as long as March.
    freq : pandas offset, optional
        Frequency of the stamps, where there is one.
    step : float
        Typical distance of neighbouring observations, in what is counted.
    origin : number
        What is subtracted before the division.
    span : float
        Number of steps that the data cover.
    every : int, default=1
        How many typical steps of the rows make one step here: more than one if the index is finer than the
        observations are.
    stride : int, default=1
        Steps of a relative horizon in one step here: periods and integers are counted by their unit.
    hours : OpenHours, optional
        Open hours, where nights or most weekdays have no rows.
    open_days : OpenHours, optional
        Weekdays that a relative horizon counts, where days are counted and some weekdays have no rows.
    """

    kind: str
    freq: Any
    step: float
    origin: float | int
    span: float
    every: int = 1
    stride: int = 1
    hours: OpenHours | None = None
    open_days: OpenHours | None = None

    @classmethod
    def of(
        cls, indexes: Sequence[pd.Index], freq: Any = None, observed: Sequence[pd.Index] | None = None
    ) -> TimeAxis:
        """Look at the stamps of all series, and at those with an observation if they may be sparser."""
        longest, hours, open_days = max(indexes, key=len), None, None
        if isinstance(longest, pd.PeriodIndex):
            kind, freq = "period", longest.freq
        elif isinstance(longest, pd.DatetimeIndex):
            for index in indexes:
                check_range(index)
            freq = freq if freq is not None else frequency(longest)
            kind = kind_of(freq)
            hours, open_days = open_times(indexes, freq) if kind == "clock" else (None, None)
            kind = kind if hours is None else "open"
        elif pd.api.types.is_integer_dtype(longest.dtype):
            kind, freq = "number", None
        else:
            raise TypeError(
                f"dates, periods or integers are needed, but the time index has dtype {longest.dtype}"
            )
        raw = cls(kind, freq, 1.0, 0.0, 0.0, hours=hours)
        gaps = np.concatenate([np.diff(x) for x in raw._counts(indexes)])
        step = float(open_days.step) if open_days else typical_step(gaps, kind in ("number", "period"))
        counts = raw._counts(indexes if observed is None else observed)
        origin = min(x[0] for x in counts).item()
        every, apart = 1, np.concatenate([x - origin for x in counts])
        if observed is not None and hours is None and (kind != "clock" or freq is not None):
            every = common_divisor(apart / step)
        step *= every
        of_periods = int(np.gcd.reduce(apart.astype("int64"))) // getattr(freq, "n", 1)
        stride = max(1, {"number": round(step), "period": of_periods}.get(kind, every))
        span = float(max(x[-1] - x[0] for x in counts) / step)
        return cls(kind, freq, step, origin, span, every, stride, hours, open_days)

    def continued(self, own: TimeAxis, few: bool) -> TimeAxis:
        """The axis of further series, given their own: this one if they are counted alike.

        The phases of seasons then go on, and the typical step is the one that a network knows. So they do if
        there are too ``few`` dates to tell their frequency.
        """
        unclear = few and own.freq is None and "period" not in (self.kind, own.kind)
        if unclear and (own.kind == "number") == (self.kind == "number"):
            return self
        if self.hours is not None and own.hours is None and own.kind == "clock":
            return self if self.hours.may_be(own.step, own.span * own.step, own.freq) else own
        names = ("kind", "freq", "every", "stride", "hours", "open_days")
        alike = all(getattr(own, name) == getattr(self, name) for name in names)
        return self if alike and 0.5 < own.step / self.step < 2 else own

    def count(self, index: pd.Index) -> np.ndarray:
        """Stamps as numbers before scaling: integers where float64 would round them."""
        if self.kind == "number":
            return index.to_numpy(dtype="int64")
        if self.kind == "period":
            return index.asi8
        if self.kind == "clock":
            return index.as_unit("ns").asi8
        if self.hours is not None:
            return self.hours.count(index)
        local = index.tz_localize(None) if index.tz is not None else index
        within = (local - local.normalize()) / pd.Timedelta(days=1)
        if self.kind == "business":
            return np.busday_count("1970-01-01", local.to_numpy("datetime64[D]")) + np.asarray(within)
        name = name_of(self.freq).split("-")[0]
        if name.endswith("E") and name[0] != "B":  # month ends: count to the first of the next month
            local = local + pd.Timedelta(days=1)
        fixed = name[0] in "BLW" or is_day_of_months(self.freq)
        fraction = 0.0 if fixed else (local.day - 1 + np.asarray(within)) / local.days_in_month
        return np.asarray(local.year * 12.0 + local.month - 1 + fraction)

    def _counts(self, indexes: Sequence[pd.Index]) -> list[np.ndarray]:
        """Stamps of several series as numbers before scaling."""
        every = self.count(indexes[0].append(list(indexes[1:])))
        return np.split(every, np.cumsum([len(index) for index in indexes[:-1]]))

    def numbers(self, index: pd.Index) -> np.ndarray:
        """Stamps in steps since the first observation."""
        return (self.count(index) - self.origin) / self.step

    def on_grid(self, index: pd.Index, values: np.ndarray) -> np.ndarray:
        """Values (n,) on a regular grid of steps, NaN between rows; as they are if most would be NaN."""
        numbers = self.numbers(index)
        if self.every > 1:  # rows between the steps are missing
            on = np.abs(numbers - np.round(numbers)) < 1e-6
            numbers, values = numbers[on], values[on]
        at = np.round(numbers - numbers[0]).astype(int)
        if at[-1] >= SPARSEST_STEPS * len(at):
            return values
        grid = np.full(at[-1] + 1, np.nan)
        grid[at] = values
        return grid

    def ahead(self, n: int) -> range:
        """The next ``n`` steps as a relative horizon counts them."""
        return range(self.stride, n * self.stride + 1, self.stride)

    def between(self, first: Any, last: Any, like: pd.Index, opened: bool = False) -> pd.Index:
        """Regular stamps from ``first`` to ``last``, those on the grid, or only days that may have rows."""
        if opened and self.open_days is not None:
            return (days := self.between(first, last, like))[self.open_days.count(days) % 1 == 0]
        if isinstance(like, pd.PeriodIndex):
            return pd.period_range(first, last, freq=like.freq)[:: self.stride]
        if self.hours is not None:
            ends = self.hours.count(pd.DatetimeIndex([first, last]))
            return self.hours.stamps(np.arange(ends[0], ends[1] + 1), like)
        if isinstance(like, pd.DatetimeIndex):
            step = pd.Timedelta(round(self.step), unit="ns") if self.freq is None else self.stride * self.freq
            return pd.date_range(first, last, freq=step)
        return pd.Index(np.arange(int(first), int(last) + 1, self.stride))

    def grid(self, index: pd.Index, name: str = "y") -> pd.Index:
        """The regular stamps among which those of a series lie, from its first to its last.

        Raises a ValueError about the series of this name if stamps lie beside the grid, or if there are ten
        times as many steps as stamps.
        """
        step = str(pd.Timedelta(round(self.step), unit="ns")) if self.kind == "clock" else f"{self.step:g}"
        step = step if self.freq is None else (self.stride * self.freq).freqstr
        n = np.diff(self.numbers(index[[0, -1]]))[0]
        wrong = f"{len(index)} rows are spread over {n:.0f} steps of {step}"
        if n < SPARSEST_GRID * len(index):
            stamps = self.between(index[0], index[-1], index)
            if not len(beside := index.difference(stamps)):
                return index if len(stamps) == len(index) else stamps.rename(index.name)
            wrong = f"{beside[0]} is not on the grid of step {step} that starts at {index[0]}"
        raise ValueError(
            f"{name} is not regular: {wrong}. This forecaster needs equal steps (rows may be missing): "
            f"resample y, or use TaylorformerForecaster, which takes any times"
        )

    def horizon(self, fh: Any, last: Any, like: pd.Index) -> pd.Index:
        """Absolute stamps of a forecasting horizon, relative ones counted from ``last``.

        Integer steps on stamps without a frequency are typical steps after the last observation, and
        observed stamps before it.
        """
        try:
            stamps = self._absolute(fh, last, like)
        except (OverflowError, pd.errors.OutOfBoundsDatetime, pd.errors.OutOfBoundsTimedelta) as error:
            raise ValueError(f"fh goes beyond the dates that can be counted: {error}") from error
        if self.kind == "clock":
            check_range(stamps, "fh")
        n = np.diff(self.numbers(pd.Index([last, stamps[-1]], tupleize_cols=False)))[0]
        if n > STEPS_AT_ONCE:
            raise ValueError(
                f"fh ends at {stamps[-1]}, {n:.0f} steps after the last observation at {last}; "
                f"at most {STEPS_AT_ONCE} can be forecast"
            )
        return stamps

    def _absolute(self, fh: Any, last: Any, like: pd.Index) -> pd.Index:
        relative_int = fh.is_relative and pd.api.types.is_integer_dtype(fh.to_pandas().dtype)
        cutoff = pd.Index([int(last) if self.kind == "number" else last])
        if isinstance(cutoff, pd.DatetimeIndex):
            if relative_int and self.freq is None:
                past = like[like <= last]
                ahead = [k for k in fh.to_pandas() if k > 0]
                back = [k for k in fh.to_pandas() if k <= 0]
                if back and -min(back) >= len(past):
                    raise ValueError(f"fh={min(back)} goes back before the first of {len(past)} observations")
                stamps = pd.DatetimeIndex([past[k - 1] for k in back]).append(self._after(cutoff, ahead))
                return in_unit_of(stamps, like)
            if relative_int:
                custom = isinstance(self.freq, pd.offsets.CustomBusinessDay)  # sktime has no holidays
                if custom or self.kind != "clock" or not self.freq.is_on_offset(last):
                    return dates_after(last, fh.to_pandas(), self.freq)
                cutoff.freq = self.freq
                fh = type(fh)(fh.to_pandas(), is_relative=True)  # without the frequency of the latest update
        known = f"but the index of y holds {content(like)}"
        if isinstance(cutoff, pd.PeriodIndex) and isinstance(fh.to_pandas(), pd.TimedeltaIndex):
            raise TypeError(f"fh holds differences of time, {known}: give whole steps")
        stamps = pd.Index(fh.to_absolute_index(cutoff))
        if content(stamps) != content(like):
            raise TypeError(f"fh holds {content(stamps)}, {known}")
        return stamps

    def _after(self, last: pd.DatetimeIndex, steps: list[int]) -> pd.DatetimeIndex:
        """Times some steps after the last one, of dates without a frequency."""
        if (hours := self.hours or self.open_days) is not None:
            return hours.stamps(hours.count(last) + steps, last)
        return pd.DatetimeIndex([last[0] + k * pd.Timedelta(round(self.step), unit="ns") for k in steps])

    def cycles(self, index: pd.Index, names: tuple[str, ...]) -> np.ndarray:
        """Positions within calendar cycles, in revolutions, shape (n, len(names))."""
        stamps = index.to_timestamp() if isinstance(index, pd.PeriodIndex) else index.tz_localize(None)
        day = np.asarray((stamps - stamps.normalize()) / pd.Timedelta(days=1))
        in_month = (stamps.day - 1 + day) / stamps.days_in_month
        position = {
            "day": day,
            "week": (stamps.dayofweek + day) / 7,
            "month": in_month,
            "year": (stamps.month - 1 + in_month) / 12,  # of equal months: each has one phase in all years
        }
        return np.stack([np.asarray(position[name], dtype="float64") for name in names], -1)

    def cycle_steps(self, name: str) -> float:
        """Length of a calendar cycle in steps."""
        if self.kind == "number":
            raise ValueError(f"time_features={name!r} needs dates or periods, but y has an index of integers")
        counts = cycle_counts(name, self.kind, self.freq) if self.hours is None else self.hours.cycle(name)
        return counts / self.step

    def dates(self, index: pd.Index) -> tuple[np.ndarray | None, tuple[int, ...]]:
        """Days or months of stamps if steps are days or months, else None; and weekdays that are steps."""
        if self.kind == "number":
            return None, WEEKDAYS
        is_day = (self.step if self.kind == "business" else self.cycle_steps("day")) == 1
        is_month = self.kind in ("month", "period") and round(self.cycle_steps("month"), 2) == 1
        numbers = index.asi8 if self.kind == "period" else index.tz_localize(None).to_numpy()
        dates = numbers.astype("datetime64[D]" if is_day else "datetime64[M]")
        years = dates[[0, -1]].astype("datetime64[Y]").astype(int) + 1970
        usual = WEEKDAYS[: 5 if self.kind == "business" else 7]
        dated = (is_day or is_month) and YEARS_OF_DATES[0] <= years.min() and years.max() <= YEARS_OF_DATES[1]
        return dates if dated else None, usual if self.hours is None else self.hours.places

    def usual_cycles(self, span: float | None = None, least: float = 2) -> tuple[str, ...]:
        """Cycles of several steps that are seen some times at least in a span; by default, in the data."""
        if self.kind == "number":
            return ()
        if self.kind == "period":
            ends = [self.origin, self.origin + round(self.span * self.step)]
            years = pd.PeriodIndex.from_ordinals(ends, freq=self.freq).year
            if years[0] < YEARS_OF_DATES[0] or years[1] > YEARS_OF_DATES[1]:
                return ()  # cycles need dates
        span = self.span if span is None else span
        most = max(span / 1.9, (span + 1.5) / least)  # 8 quarters are two years
        return tuple(name for name in ("day", "week", "year") if 3 <= self.cycle_steps(name) <= most)
