"""From pandas to numbers and back: instances, values, exogenous columns."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd

__all__ = ["ExogenousScaler", "check_values", "instances", "of_instance", "to_float"]

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
