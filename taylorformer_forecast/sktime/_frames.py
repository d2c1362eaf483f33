"""From pandas to numbers and back: stamps, instances, horizons, calendars, exogenous columns."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd

__all__ = ["ExogenousScaler", "TimeAxis", "check_values", "content", "instances", "of_instance", "to_float"]

# Cycles of the calendar: name -> length in days.
CYCLES = {"day": 1.0, "week": 7.0, "month": 30.436875, "year": 365.2425}

SPARSEST = 10  # steps for each row of a series that is put on a regular grid
FARTHEST_STEP = 100_000  # of a forecast: paths pass through every step
LARGEST = 1e150  # of a value: its square is still a float64
FARTHEST_X = 1e6  # of an exogenous value, in standard deviations: farther ones would overflow in the network


def instances(frame: pd.DataFrame) -> Iterator[tuple[tuple, pd.DataFrame]]:
    """Yield (key, frame with a plain time index) for every instance, in the order of the data."""
    if not isinstance(frame.index, pd.MultiIndex):
        yield (), frame
        return
    levels = list(range(frame.index.nlevels - 1))
    for key, part in frame.groupby(level=levels if len(levels) > 1 else levels[0], sort=False):
        yield key if isinstance(key, tuple) else (key,), part.droplevel(levels)


def check_values(frame: pd.DataFrame, name: str) -> None:
    """Raise a ValueError or TypeError in the user's words if the values cannot be used."""
    if len(frame) == 0 or len(frame.columns) == 0:
        raise ValueError(f"{name} is empty" if len(frame) == 0 else f"{name} has no columns")
    for column, dtype in frame.dtypes.items():
        if not (pd.api.types.is_numeric_dtype(dtype) or pd.api.types.is_bool_dtype(dtype)):
            raise TypeError(f"{name} column {column!r} has dtype {dtype}; numbers are needed")
        if pd.api.types.is_complex_dtype(dtype):
            raise TypeError(f"{name} column {column!r} is complex; real numbers are needed")
    size = np.abs(to_float(frame))
    for wrong, what in ((np.isinf(size), "infinite values"), (size > LARGEST, f"values beyond {LARGEST}")):
        if wrong.any():
            raise ValueError(f"{name} has {what} in column {frame.columns[wrong.any(0)][0]!r}")
    for key, part in instances(frame):
        if not part.index.is_unique:
            double = part.index[part.index.duplicated()]
            raise ValueError(
                f"{name}{of_instance(key)} has duplicate time stamps: {double[0]} (first of {len(double)})"
            )
        if not part.index.is_monotonic_increasing:
            raise ValueError(f"{name} must be sorted by time")


def of_instance(key: tuple) -> str:
    """Name an instance in a message; nothing for a single series."""
    return f" of instance {key[0] if len(key) == 1 else key!r}" if key else ""


def to_float(frame: pd.DataFrame) -> np.ndarray:
    """Values as float64, NaN where missing."""
    return frame.to_numpy(dtype="float64", na_value=np.nan)


def content(index: pd.Index) -> str:
    """What an index holds, in words."""
    if isinstance(index, pd.PeriodIndex):
        return f"periods of frequency {index.freqstr}"
    if isinstance(index, pd.DatetimeIndex):
        return "dates" if index.tz is None else "dates with a time zone"
    return "integers" if pd.api.types.is_integer_dtype(index.dtype) else str(index.dtype)


@dataclass(frozen=True)
class TimeAxis:
    """How time stamps become real numbers, in units of the typical step.

    Parameters
    ----------
    kind : {"number", "period", "month", "business", "clock"}
        What is counted: integers as they are, periods, calendar months, business days, or nanoseconds.
        Monthly, quarterly and yearly stamps count months, so that February is as long as March.
    freq : pandas offset, optional
        Frequency of the stamps, where there is one.
    step : float
        Typical distance of neighbouring observations, in what is counted.
    origin : number
        What is subtracted before the division.
    span : float
        Number of steps that the data cover.
    """

    kind: str
    freq: object
    step: float
    origin: float | int
    span: float

    @classmethod
    def of(cls, frame: pd.DataFrame, freq: object = None) -> TimeAxis:
        """Look at the stamps of all instances and choose."""
        indexes = [part.index for _, part in instances(frame)]
        longest = max(indexes, key=len)
        if isinstance(longest, pd.PeriodIndex):
            kind, freq = "period", longest.freq
        elif isinstance(longest, pd.DatetimeIndex):
            freq = freq if freq is not None else _frequency(longest)
            kind = _kind(freq)
        elif pd.api.types.is_integer_dtype(longest.dtype):
            kind, freq = "number", None
        else:
            raise TypeError(
                f"the time index has dtype {longest.dtype}; dates, periods or integers are needed"
            )
        raw = cls(kind, freq, 1.0, 0.0, 0.0)
        origin = min(raw.count(index[:1])[0] for index in indexes)
        numbers = [raw.count(index) - origin for index in indexes]
        gaps = np.concatenate([np.diff(x) for x in numbers])
        step = float(np.median(gaps)) if len(gaps) else 1.0
        return cls(kind, freq, step, origin, max(x[-1] - x[0] for x in numbers) / step)

    def count(self, index: pd.Index) -> np.ndarray:
        """Stamps as numbers before scaling."""
        if self.kind == "number":
            return index.to_numpy(dtype="float64")
        if self.kind == "period":
            return index.asi8.astype("float64")
        if self.kind == "clock":  # integers, as float64 would round them to a fraction of a microsecond
            return index.as_unit("ns").asi8
        local = index.tz_localize(None) if index.tz is not None else index
        within = (local - local.normalize()) / pd.Timedelta(days=1)
        if self.kind == "business":
            return np.busday_count("1970-01-01", local.to_numpy("datetime64[D]")) + np.asarray(within)
        if _name(self.freq).split("-")[0].endswith("E"):  # month ends: count to the first of the next month
            local = local + pd.Timedelta(days=1)
        fraction = (local.day - 1 + np.asarray(within)) / local.days_in_month
        return np.asarray(local.year * 12.0 + local.month - 1 + fraction)

    def numbers(self, index: pd.Index) -> np.ndarray:
        """Stamps in steps since the first observation."""
        return (self.count(index) - self.origin) / self.step

    def on_grid(self, frame: pd.DataFrame) -> np.ndarray:
        """First column on a regular grid of steps, NaN between rows; as it is if most would be NaN."""
        values = to_float(frame)[:, 0]
        at = np.round(self.numbers(frame.index) - self.numbers(frame.index[:1])).astype(int)
        if at[-1] >= 4 * len(at):
            return values
        grid = np.full(at[-1] + 1, np.nan)
        grid[at] = values
        return grid

    def future(self, last: object, upto: object, like: pd.Index) -> pd.Index:
        """Regular stamps after ``last``, up to and including ``upto``."""
        ends = pd.Index([last, upto], tupleize_cols=False)
        n = np.diff(self.numbers(ends))[0]
        if n > FARTHEST_STEP:
            raise ValueError(
                f"fh ends at {upto}, {n:.0f} steps after the last observation at {last}; "
                f"at most {FARTHEST_STEP} can be forecast"
            )
        stamps = self.between(last, upto, like)
        return stamps[stamps > last]

    def between(self, first: object, last: object, like: pd.Index) -> pd.Index:
        """Regular stamps from ``first`` to ``last``, both included if they lie on the grid."""
        if isinstance(like, pd.PeriodIndex):
            return pd.period_range(first, last, freq=like.freq)
        if isinstance(like, pd.DatetimeIndex):
            freq = self.freq if self.freq is not None else pd.Timedelta(round(self.step), unit="ns")
            return pd.date_range(first, last, freq=freq)
        return pd.Index(np.arange(int(first), int(last) + 1, max(1, round(self.step))))

    def regular(self, frame: pd.DataFrame, key: tuple = ()) -> pd.DataFrame:
        """Frame of one instance on the grid that starts at its first row, NaN where it lacks a row.

        Raises a ValueError if rows lie beside the grid, or if most of the grid would be empty.
        """
        first, last = frame.index[0], frame.index[-1]
        steps = np.diff(self.numbers(frame.index[[0, -1]]))[0]
        crowded = steps < SPARSEST * len(frame)
        grid = self.between(first, last, frame.index) if crowded else frame.index[:1]
        if len(grid) == len(frame) and grid.equals(frame.index):
            return frame
        off = frame.index.difference(grid)
        if len(off) or not crowded:
            step = self.freq.freqstr if self.freq is not None else self._spoken_step(frame.index)
            what = (
                f"{off[0]} is not on the grid of step {step} that starts at {first}"
                if crowded
                else (f"{len(frame)} rows are spread over {steps:.0f} steps of {step}")
            )
            raise ValueError(
                f"y{of_instance(key)} is not regular: {what}. This forecaster needs equal steps (rows may be "
                f"missing): resample y, or use TaylorformerForecaster, which takes any times"
            )
        return frame.reindex(grid.rename(frame.index.name))

    def _spoken_step(self, index: pd.Index) -> str:
        """The typical step in the units of the index."""
        is_clock = isinstance(index, pd.DatetimeIndex)
        return str(pd.Timedelta(round(self.step), unit="ns") if is_clock else round(self.step))

    def horizon(self, fh: object, last: object, like: pd.Index) -> pd.Index:
        """Absolute stamps of a forecasting horizon, relative ones counted from ``last``.

        Integer steps on stamps without a frequency are typical steps after the last observation, and
        observed stamps before it.
        """
        relative_int = fh.is_relative and pd.api.types.is_integer_dtype(fh.to_pandas().dtype)
        cutoff = pd.Index([int(last) if self.kind == "number" else last])
        if isinstance(cutoff, pd.DatetimeIndex):
            if relative_int and self.freq is None:
                step = pd.Timedelta(round(self.step), unit="ns")
                past = like[like <= last]
                ahead = [k for k in fh.to_pandas() if k > 0]
                back = [k for k in fh.to_pandas() if k <= 0]
                if back and -min(back) >= len(past):
                    raise ValueError(f"fh={min(back)} goes back before the first of {len(past)} observations")
                stamps = pd.DatetimeIndex([past[k - 1] for k in back] + [last + k * step for k in ahead])
                same = stamps.as_unit(like.unit)
                return same if (same == stamps).all() else stamps
            if relative_int:
                cutoff = pd.DatetimeIndex(cutoff, freq=None)
                cutoff.freq = self.freq if _on_offset(self.freq, last) else None
                if cutoff.freq is None:
                    return pd.DatetimeIndex([last + k * self.freq for k in fh.to_pandas()])
        stamps = pd.Index(fh.to_absolute_index(cutoff))
        if content(stamps) != content(like):
            raise TypeError(f"fh holds {content(stamps)}, but the index of y holds {content(like)}")
        return stamps

    def cycles(self, index: pd.Index, names: tuple[str, ...]) -> np.ndarray:
        """Positions within calendar cycles, in revolutions, shape (n, len(names))."""
        stamps = index.to_timestamp() if isinstance(index, pd.PeriodIndex) else index.tz_localize(None)
        day = np.asarray((stamps - stamps.normalize()) / pd.Timedelta(days=1))
        in_month = (stamps.day - 1 + day) / stamps.days_in_month
        position = {
            "day": day,
            "week": (stamps.dayofweek + day) / 7,
            "month": in_month,
            # Months of equal length, so that the same month has the same phase in every year.
            "year": (stamps.month - 1 + in_month) / 12,
        }
        return np.stack([np.asarray(position[name], dtype="float64") for name in names], -1)

    def cycle_steps(self, name: str) -> float:
        """Length of a calendar cycle in steps."""
        if self.kind == "number":
            raise ValueError(
                f"time_features={name!r} needs dates or periods, but the index of y holds integers"
            )
        days = CYCLES[name]
        if self.kind == "month":
            return days / CYCLES["month"] / self.step
        if self.kind == "business":
            return days * 5 / 7 / self.step
        if self.kind == "period":
            # 240 periods, as pandas 2 knows no dates after 2262
            stamps = pd.PeriodIndex.from_ordinals([0, 240], freq=self.freq).to_timestamp()
            return days / ((stamps[1] - stamps[0]) / pd.Timedelta(days=1) / 240 * self.step)
        return days * 86400e9 / self.step

    def usual_cycles(self) -> tuple[str, ...]:
        """Cycles that have several steps and were seen at least twice."""
        if self.kind == "number":
            return ()
        names = ("day", "week", "year")
        return tuple(name for name in names if 3 <= self.cycle_steps(name) <= self.span / 1.9)


def _name(freq: object) -> str:
    return "" if freq is None else str(getattr(freq, "freqstr", freq)).lstrip("0123456789")


def _on_offset(freq: object, stamp: pd.Timestamp) -> bool:
    return bool(freq.is_on_offset(stamp))


def _frequency(index: pd.DatetimeIndex) -> object:
    """Frequency of a datetime index: its own, the inferred, or that of month starts or ends with gaps."""
    if index.freq is not None:
        return index.freq
    inferred = pd.infer_freq(index) if len(index) >= 3 else None
    if inferred is None and len(index) >= 3:
        whole = (index == index.normalize()).all()
        apart = np.median(np.diff(index.as_unit("ns").asi8)) > 20 * 86400e9
        if whole and apart and (index.day == 1).all():
            inferred = "MS"
        elif whole and apart and index.is_month_end.all():
            inferred = "ME"
    return None if inferred is None else pd.tseries.frequencies.to_offset(inferred)


def _kind(freq: object) -> str:
    """What to count for a frequency of datetimes."""
    name = _name(freq).split("-")[0]
    if name in ("MS", "ME", "QS", "QE", "YS", "YE", "BMS", "BME", "BQS", "BQE", "BYS", "BYE"):
        return "month"
    return "business" if name == "B" else "clock"


@dataclass(frozen=True)
class ExogenousScaler:
    """Standardise exogenous columns; missing values become zero with a flag.

    Parameters
    ----------
    columns : list
        Column labels seen at fit.
    center, spread : ndarray of shape (P,)
        Mean and standard deviation of each column.
    flagged : bool ndarray of shape (P,)
        Columns that had missing values at fit: those get a flag.
    """

    columns: list
    center: np.ndarray
    spread: np.ndarray
    flagged: np.ndarray

    @classmethod
    def of(cls, X: pd.DataFrame) -> ExogenousScaler:
        """Learn means and standard deviations."""
        check_values(X, "X")
        values = to_float(X)
        known = ~np.isnan(values)
        count = np.maximum(known.sum(0), 1)
        center = np.where(known, values, 0).sum(0) / count
        spread = np.sqrt((np.where(known, values - center, 0) ** 2).sum(0) / count)
        moves = spread > 1e-12 * np.abs(center)  # less is rounding
        return cls(list(X.columns), center, np.where(moves, spread, 1.0), ~known.all(0))

    @property
    def dim(self) -> int:
        """Number of features."""
        return len(self.columns) + int(self.flagged.sum())

    def check(self, X: pd.DataFrame | None, when: str) -> None:
        """Raise a ValueError if X is not what the forecaster was fitted with."""
        if X is None:
            raise ValueError(
                f"X is needed in {when}: the forecaster was fitted with X columns {self.columns}"
            )
        if list(X.columns) != self.columns:
            raise ValueError(
                f"X has columns {list(X.columns)} in {when}, "
                f"but the forecaster was fitted with {self.columns}"
            )
        check_values(X, "X")

    def features(self, X: pd.DataFrame) -> np.ndarray:
        """Scaled columns and flags, shape (n, dim)."""
        scaled = np.clip((to_float(X) - self.center) / self.spread, -FARTHEST_X, FARTHEST_X)
        missing = np.isnan(scaled)
        return np.concatenate([np.where(missing, 0.0, scaled), missing[:, self.flagged]], 1)
