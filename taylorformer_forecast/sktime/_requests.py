"""What is asked of a fitted forecaster, as arrays."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from taylorformer_forecast.engine.windows import Series


@dataclass(frozen=True)
class ColumnSeries:
    """Columns of one instance that share windows, standardised: one, unless the network joins columns.

    Parameters
    ----------
    series : Series
        Times in steps, values with mean 0 and standard deviation 1, covariates. Either the points at which
        any column was observed, or all points of a regular grid; NaN where nothing was observed.
    loc, scale : ndarray of shape (D,)
        ``y = loc + scale * value``.
    """

    series: Series
    loc: np.ndarray
    scale: np.ndarray

    @classmethod
    def of(
        cls,
        t: np.ndarray,
        y: np.ndarray,
        covariates: np.ndarray | None,
        keep_missing: bool = False,
        number: int = -1,
    ) -> ColumnSeries:
        """Standardise columns (n, D); drop times without any observation, or those before the first alone."""
        known = ~np.isnan(y).all(1)
        known = np.logical_or.accumulate(known) if keep_missing else known
        t, y, covariates = t[known], y[known], None if covariates is None else covariates[known]
        loc, scale = np.nanmean(y, 0), np.nanstd(y, 0)
        # A constant: any unit will do, in proportion to the level.
        still = (np.nanmin(y, 0) == np.nanmax(y, 0)) | (scale == 0)
        level = 0.01 * np.abs(loc)
        scale = np.where(still, np.where(level > 0, level, 1.0), scale)
        return cls(Series(t, (y - loc) / scale, covariates, number), loc, scale)

    @property
    def n_known(self) -> int:
        """Points up to the last that was observed."""
        return int(np.flatnonzero(~np.isnan(self.series.y).all(1))[-1]) + 1

    def before(self, stop: int, length: int) -> Series:
        """Up to ``length`` points before point number ``stop``; before the first, that one, not observed."""
        found = self.series.take(slice(max(0, stop - length), max(stop, 1)))
        return found if stop else replace(found, y=np.full_like(found.y, np.nan))


@dataclass(frozen=True)
class Request:
    """What is asked of one instance.

    Parameters
    ----------
    columns : list of ColumnSeries
        The columns of y, in order.
    t : ndarray of shape (n,)
        Times to return, in steps.
    covariates : ndarray of shape (n, C), optional
        Covariates there.
    is_past : bool ndarray of shape (n,)
        Which of them lie in sample: predicted one step ahead, from what was observed before. Only whether
        the last of that is an outlier is decided by the value itself.
    path_t, path_covariates : ndarray
        Times that paths pass through, in order, and covariates there.
    position : int ndarray
        Position of every time that is not in sample among ``path_t``.
    path_y : ndarray of shape (len(path_t), D), optional
        Values that are known there, NaN elsewhere: the paths pass through them.
    """

    columns: list[ColumnSeries]
    t: np.ndarray
    covariates: np.ndarray | None
    is_past: np.ndarray
    path_t: np.ndarray
    path_covariates: np.ndarray | None
    position: np.ndarray
    path_y: np.ndarray | None = None

    def late(self, number: int) -> Series:
        """Points of other columns after the last value of one: paths of that begin there."""
        n_known, ends = self._ends
        longest = int(np.argmax(ends))
        series, at = self.columns[longest].series, self.columns[longest].series.t[: n_known[longest]]
        found = series.take(np.flatnonzero(at > ends[number]))
        return replace(found, y=np.full((len(found.t), self.columns[number].series.y.shape[1]), np.nan))

    @cached_property
    def _ends(self) -> tuple[list[int], list[float]]:
        """Points of each column up to the last that was observed, and its time."""
        n_known = [column.n_known for column in self.columns]
        return n_known, [c.series.t[n - 1] for c, n in zip(self.columns, n_known, strict=True)]

    def covariates_at(self, row: int) -> np.ndarray | None:
        """Covariates of one time to return, shape (1, C)."""
        return None if self.covariates is None else self.covariates[row : row + 1]

    def given(self, number: int) -> np.ndarray:
        """Known values of the columns of one window on the path, standardised, shape (T, D)."""
        column = self.columns[number]
        if self.path_y is None:
            return np.full((len(self.path_t), len(column.loc)), np.nan)
        first = sum(len(before.loc) for before in self.columns[:number])
        return (self.path_y[:, first : first + len(column.loc)] - column.loc) / column.scale
