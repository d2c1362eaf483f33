"""A frame of one or many instances as arrays, one instance after another."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from taylorformer_forecast.calendar.axis import TimeAxis
from taylorformer_forecast.calendar.steps import on_steps
from taylorformer_forecast.defaults import LARGEST_OFFSET


def by_name(labels: Sequence) -> list[int]:
    """Numbers of labels in an order that does not depend on how the data are arranged: by name.

    Examples
    --------
    >>> from taylorformer_forecast.sktime._panel import by_name
    >>> by_name(["b", "c", "a"])
    [2, 0, 1]
    """
    names = [str(label) for label in labels]
    return sorted(range(len(names)), key=names.__getitem__)


def instances_of(index: pd.Index) -> tuple[np.ndarray, list[tuple]]:
    """Number of the instance of every row, and the keys of all; one that is empty for a single series.

    Examples
    --------
    >>> import pandas as pd
    >>> from taylorformer_forecast.sktime._panel import instances_of
    >>> which, keys = instances_of(pd.MultiIndex.from_tuples([("b", 0), ("a", 0), ("b", 1)]))
    >>> which.tolist(), keys
    ([0, 1, 0], [('b',), ('a',)])
    """
    if index.nlevels == 1:
        return np.zeros(len(index), dtype=int), [()]
    which, keys = pd.factorize(index.droplevel(-1))
    return which, [key if isinstance(key, tuple) else (key,) for key in keys]


def rows_of_instances(index: pd.Index) -> dict[tuple, np.ndarray]:
    """Numbers of the rows of every instance, by its key."""
    which, keys = instances_of(index)
    offsets = np.bincount(which, minlength=len(keys)).cumsum()[:-1]
    return dict(zip(keys, np.split(np.argsort(which, kind="stable"), offsets), strict=True))


@dataclass(frozen=True)
class Panel:
    """All instances of a frame, without a frame for each of them.

    Parameters
    ----------
    keys : list of tuple
        Keys of the I instances, in the order of the data; one that is empty for a single series.
    offsets : int ndarray of shape (I + 1,)
        Where the rows of every instance start and end.
    stamps : pd.Index
        Time stamps that occur.
    at : int ndarray of shape (N,)
        Number of the stamp of every row.
    values : float64 ndarray of shape (N, D)
        NaN where nothing was observed.
    columns : pd.Index
        Labels of the columns.

    Examples
    --------
    >>> import pandas as pd
    >>> from taylorformer_forecast.sktime._panel import Panel
    >>> index = pd.MultiIndex.from_tuples([("a", 0), ("a", 1), ("b", 1)])
    >>> panel = Panel.of(pd.DataFrame({"y": [1.0, 2.0, 3.0]}, index))
    >>> panel.keys, panel.offsets.tolist(), panel.count().ravel().tolist()
    ([('a',), ('b',)], [0, 2, 3], [2, 1])
    """

    keys: list[tuple]
    offsets: np.ndarray
    stamps: pd.Index
    at: np.ndarray
    values: np.ndarray
    columns: pd.Index

    @classmethod
    def of(cls, frame: pd.DataFrame) -> Panel:
        """Cut a frame into its instances."""
        index, values = frame.index, frame.to_numpy(dtype="float64", na_value=np.nan)
        if not isinstance(index, pd.MultiIndex):
            return cls([()], np.array([0, len(frame)]), index, np.arange(len(frame)), values, frame.columns)
        number = np.zeros(len(frame), dtype=np.int64)
        for level, code in zip(index.levels[:-1], index.codes[:-1], strict=True):
            number = number * (len(level) + 1) + code
        number, _ = pd.factorize(number)
        order, offsets = np.argsort(number, kind="stable"), np.r_[0, np.bincount(number).cumsum()]
        keys = index[order[offsets[:-1]]].droplevel(-1)
        keys = [key if isinstance(key, tuple) else (key,) for key in keys]
        return cls(keys, offsets, index.levels[-1], index.codes[-1][order], values[order], frame.columns)

    def arranged(self) -> Panel:
        """Instances and columns by name."""
        across, order = by_name(self.columns), by_name(self.keys)
        sizes = np.diff(self.offsets)[order]
        offsets = np.r_[0, sizes.cumsum()]
        rows = np.arange(len(self.at)) + np.repeat(self.offsets[:-1][order] - offsets[:-1], sizes)
        keys = [self.keys[k] for k in order]
        values, columns = self.values[rows][:, across], self.columns[across]
        return Panel(keys, offsets, self.stamps, self.at[rows], values, columns)

    def take(self, rows: np.ndarray) -> Panel:
        """Some rows of every instance, given as a mask."""
        offsets = np.r_[0, rows.cumsum()][self.offsets]
        return Panel(self.keys, offsets, self.stamps, self.at[rows], self.values[rows], self.columns)

    def count(self) -> np.ndarray:
        """Number of observed values of every instance and column, shape (I, D)."""
        total = np.pad((~np.isnan(self.values)).cumsum(0), ((1, 0), (0, 0)))
        return np.diff(total[self.offsets], axis=0)

    def indexes(self) -> list[pd.Index]:
        """Time index of every instance."""
        return [self.stamps[at] for _, at, _ in self.parts()]

    def parts(self) -> Iterator[tuple[tuple, np.ndarray, np.ndarray]]:
        """Key, numbers of stamps and values of every instance."""
        for key, first, end in zip(self.keys, self.offsets[:-1], self.offsets[1:], strict=True):
            yield key, self.at[first:end], self.values[first:end]

    def on_grids(self, axis: TimeAxis) -> Iterator[tuple[tuple, float, np.ndarray | None]]:
        """Yield key, first time and values of every column of every instance, on its own grid of steps.

        The values are None where steps are not regular. Times are counted in steps.
        """
        times = axis.numbers(self.stamps)
        for key, at, values in self.parts():
            for column in values.T:
                seen = ~np.isnan(column)
                t = times[at[seen]]
                steps = on_steps(t)
                y = None
                if steps is not None:
                    y = np.full(steps[-1] + 1, np.nan)
                    y[steps] = column[seen]
                yield key, t[0], y

    def widest_gap(self, axis: TimeAxis, instance: int, column: int) -> str | None:
        """Where a column has no value for longest, in words; None if its times are not whole steps apart."""
        rows = slice(*self.offsets[instance : instance + 2])
        stamps = self.stamps[self.at[rows][~np.isnan(self.values[rows, column])]]
        steps = np.diff(axis.numbers(stamps))
        if not len(steps) or np.abs(steps - np.round(steps)).max() > LARGEST_OFFSET or steps.min() < 0.5:
            return None
        widest = int(np.argmax(steps))
        return f"there is none between {stamps[widest]} and {stamps[widest + 1]}"

    def is_sorted(self) -> bool:
        """Whether the stamps of every instance increase, with no double."""
        rank = self.at
        if not self.stamps.is_monotonic_increasing:
            rank = np.argsort(self.stamps.argsort())[self.at]
        within = np.ones(max(len(rank) - 1, 0), dtype=bool)
        within[self.offsets[1:-1] - 1] = False
        return bool((np.diff(rank)[within] > 0).all()) and self.stamps.is_unique
