"""From pandas to numbers and back: instances, values, exogenous columns."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from taylorformer_forecast.defaults import FARTHEST_X
from taylorformer_forecast.engine.covariates import mean_and_deviation, warn_of_values
from taylorformer_forecast.engine.parameters import LARGEST
from taylorformer_forecast.sktime._panel import Panel


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
    _check_keys(frame.index, name)
    for column, dtype in frame.dtypes.items():
        if not (pd.api.types.is_numeric_dtype(dtype) or pd.api.types.is_bool_dtype(dtype)):
            raise TypeError(f"{name} column {shown(column)} has dtype {dtype}; numbers are needed")
        if pd.api.types.is_complex_dtype(dtype):
            raise TypeError(f"{name} column {shown(column)} is complex; real numbers are needed")
    size = np.abs(to_float(frame))
    for wrong, what in ((np.isinf(size), "infinite values"), (size > LARGEST, f"values beyond {LARGEST}")):
        if wrong.any():
            row, column = np.argwhere(wrong)[0]
            key = frame.index[row][:-1] if isinstance(frame.index, pd.MultiIndex) else ()
            raise ValueError(f"{name} has {what} in column {shown(frame.columns[column])}{of_instance(key)}")
    for key, part in () if Panel.of(frame).is_sorted() else instances(frame):
        if not part.index.is_unique:
            double = part.index[part.index.duplicated()]
            raise ValueError(
                f"{name}{of_instance(key)} has duplicate time stamps: {double[0]} (first of {len(double)})"
            )
        if not part.index.is_monotonic_increasing:
            raise ValueError(f"{name} must be sorted by time")


def _check_keys(index: pd.Index, name: str) -> None:
    """Raise a ValueError if an instance has no name."""
    for number in range(index.nlevels - 1):
        codes, level = index.codes[number], index.levels[number]
        if np.isin(codes, [-1, *np.flatnonzero(level.isna())]).any():
            label = number if level.name is None else shown(level.name)
            raise ValueError(f"{name} has NaN in level {label} of its index, which names the instances")


def of_instance(key: tuple) -> str:
    """Name an instance in a message; nothing for a single series."""
    if not key:
        return ""
    return f" of instance {shown(key[0]) if len(key) == 1 else '(' + ', '.join(map(shown, key)) + ')'}"


class MissingRows(ValueError):
    """X has no rows for some steps that a network passes on its way."""


def rows_are_missing(key: tuple, stamp: Any, number: int, last: Any = None) -> str:
    """Say that X of an instance lacks rows, the first of which is at ``stamp``; it may have later ones."""
    hint = ". sktime backtests cut it to the steps of fh: leave none out"
    return (
        f"X{of_instance(key)} has no row for {stamp} ({number} missing): it must cover every step up to the "
        f"last of fh" + (hint if last is not None and stamp < last else "")
    )


def labels_are_missing(missing: pd.Index, X: pd.DataFrame | None = None) -> str:
    """Say that X lacks rows of these labels, of the first instance among them."""
    *key, stamp = missing[0] if missing.nlevels > 1 else missing[:1]
    number = sum(label[:-1] == missing[0][:-1] for label in missing) if key else len(missing)
    own = [] if X is None else [label for label in X.index if not key or label[:-1] == tuple(key)]
    last = max((label[-1] if key else label for label in own), default=None)
    return rows_are_missing(tuple(key), stamp, number, last)


def shown(label: object) -> str:
    """A label as the user writes it: numbers without their numpy types."""
    return repr(label.item() if isinstance(label, np.generic) else label)


def to_float(frame: pd.DataFrame) -> np.ndarray:
    """Values as float64, NaN where missing."""
    return frame.to_numpy(dtype="float64", na_value=np.nan)


@dataclass(frozen=True)
class ExogenousScaler:
    """Standardise exogenous columns; what is not known becomes zero, and a flag says so.

    Parameters
    ----------
    columns : list
        Column labels, first those that are known ahead, then those that are known of the past only.
    n_ahead : int
        How many are known ahead.
    mean, deviation : ndarray of shape (P,)
        Mean and standard deviation of each column in training.
    flagged : bool ndarray of shape (P,)
        Columns with a flag that is 1 where they are known: those that had missing values in training, and
        all that are known of the past only.
    """

    columns: list
    n_ahead: int
    mean: np.ndarray
    deviation: np.ndarray
    flagged: np.ndarray

    @classmethod
    def of(
        cls, X: pd.DataFrame | None, y: pd.DataFrame, past_only: str | Collection | None = None
    ) -> ExogenousScaler | None:
        """Learn means and standard deviations, from the rows that y has too; nothing without X."""
        given = [] if X is None else list(X.columns)
        late = given if isinstance(past_only, str) else list(past_only or ())
        unknown = [column for column in late if column not in given]
        if unknown:
            raise ValueError(f"past_only has {shown(unknown[0])}, which is not a column of X: it has {given}")
        if X is None:
            return None
        check_values(X, "X")
        ahead = sorted((column for column in given if column not in late), key=str)
        columns = ahead + sorted((column for column in given if column in late), key=str)
        values = to_float(X.loc[X.index.isin(y.index), columns])
        warn_of_values(values, columns, "X")
        flagged = np.isnan(values).any(0) | (np.arange(len(columns)) >= len(ahead))
        return cls(columns, len(ahead), *mean_and_deviation(values), flagged)

    @property
    def past_only(self) -> int:
        """How many features, the last ones, are known of the past only: targets must not see them."""
        return 2 * (len(self.columns) - self.n_ahead)  # columns and their flags

    def check(self, X: pd.DataFrame | None, when: str) -> None:
        """Raise a ValueError if X is not what the forecaster was trained with."""
        done = f"the forecaster was {'pretrained' if when == 'fit' else 'fitted'} with"
        if X is None:
            raise ValueError(f"X is needed in {when}: {done} X columns {self.columns}")
        given, needed = list(X.columns), self.columns[: self.n_ahead if when == "predict" else None]
        if not set(needed) <= set(given) <= set(self.columns):
            hint = "; those that are not known ahead can be named in past_only" if when == "predict" else ""
            raise ValueError(f"X has columns {given} in {when}, but {done} {self.columns}{hint}")
        check_values(X, "X")

    def check_known(self, X: pd.DataFrame, when: str) -> None:
        """Raise a ValueError if a column that was complete in training has missing values.

        Without a flag they would pass for its mean.
        """
        gone = X[self.columns].isna()
        gone.loc[:, self.flagged] = False
        if gone.any(axis=None):
            column = gone.columns[gone.any()][0]
            name = shown(column)
            stamp = gone.index[gone[column]][0]
            raise ValueError(
                f"X column {name} has no value for {stamp} in {when}, but it had no missing values in "
                f"training: fill it, train with some missing, or name it in past_only"
            )

    def ahead(self, X: pd.DataFrame) -> np.ndarray:
        """Scaled columns that are known ahead, NaN where they are not."""
        return self._scaled(X)[:, : self.n_ahead]

    def _scaled(self, X: pd.DataFrame) -> np.ndarray:
        """Columns in deviations from their means."""
        columns = to_float(X.reindex(columns=self.columns))
        return np.clip((columns - self.mean) / self.deviation, -FARTHEST_X, FARTHEST_X)

    def features(self, X: pd.DataFrame, target: bool = False) -> np.ndarray:
        """Scaled columns and flags, shape (n, features), as seen at points of the past or at targets."""
        scaled = self._scaled(X)
        known = ~np.isnan(scaled)
        scaled = np.where(known, scaled, 0.0)
        parts = []
        for part in (slice(self.n_ahead), slice(self.n_ahead, None)):
            parts += [scaled[:, part], known[:, part][:, self.flagged[part]]]
        features = np.concatenate(parts, 1)
        if target:
            features[:, features.shape[1] - self.past_only :] = 0.0
        return features
