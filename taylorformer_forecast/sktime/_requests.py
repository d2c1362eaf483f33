"""What is asked of a fitted forecaster, and its predictive distribution, as arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from torch import Tensor

from taylorformer_forecast.core.families import find_component
from taylorformer_forecast.core.families.base import CERTAIN, POINT_MASS
from taylorformer_forecast.core.sampling import PathSamples
from taylorformer_forecast.defaults import STATISTICAL_LEVELS
from taylorformer_forecast.engine.average import average_quantiles
from taylorformer_forecast.engine.mixtures import ROUGH_STEP, Mixture
from taylorformer_forecast.engine.series_requests import SeriesForecast, SeriesRequest
from taylorformer_forecast.engine.windows import Series


@dataclass(frozen=True)
class ColumnSeries:
    """Columns of one instance that share windows, standardised: one, unless the network joins columns.

    Parameters
    ----------
    series : Series
        Times in steps, values with mean 0 and standard deviation 1, covariates. Either the points at which
        any column was observed, or all points of a regular grid; NaN where nothing was observed.
    center, spread : ndarray of shape (D,)
        ``y = center + spread * value``.
    """

    series: Series
    center: np.ndarray
    spread: np.ndarray

    @classmethod
    def of(
        cls,
        t: np.ndarray,
        y: np.ndarray,
        covariates: np.ndarray | None,
        keep_missing: bool = False,
        number: int = -1,
    ) -> ColumnSeries:
        """Standardise columns (n, D); drop times without any observation unless they are to be kept."""
        known = ~np.isnan(y).all(1)
        if not keep_missing:
            t, y = t[known], y[known]
            covariates = None if covariates is None else covariates[known]
        center, spread = np.nanmean(y, 0), np.nanstd(y, 0)
        # A constant: any unit will do, in proportion to the level.
        still = (np.nanmin(y, 0) == np.nanmax(y, 0)) | (spread == 0)
        level = 0.01 * np.abs(center)
        spread = np.where(still, np.where(level > 0, level, 1.0), spread)
        return cls(Series(t, (y - center) / spread, covariates, number), center, spread)

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
        column, longest = self.columns[number], max(self.columns, key=lambda c: c.series.t[c.n_known - 1])
        seen = column.series.t[column.n_known - 1]
        at = longest.series.t[: longest.n_known]
        found = longest.series.take(np.flatnonzero(at > seen))
        return replace(found, y=np.full((len(found.t), column.series.y.shape[1]), np.nan))

    def covariates_at(self, row: int) -> np.ndarray | None:
        """Covariates of one time to return, shape (1, C)."""
        return None if self.covariates is None else self.covariates[row : row + 1]

    def given(self, number: int) -> np.ndarray:
        """Known values of the columns of one window on the path, standardised, shape (T, D)."""
        column = self.columns[number]
        if self.path_y is None:
            return np.full((len(self.path_t), len(column.center)), np.nan)
        first = sum(len(before.center) for before in self.columns[:number])
        return (self.path_y[:, first : first + len(column.center)] - column.center) / column.spread


@dataclass(frozen=True)
class Predictive:
    """Predictive distribution as arrays, rows R in the order of the requests.

    Parameters
    ----------
    paths : ndarray of shape (S, R, D)
        Joint sample paths.
    mixture : Mixture
        Marginal distributions, arrays of shape (R, D, K).
    """

    paths: np.ndarray
    mixture: Mixture

    @classmethod
    def of_columns(cls, forecasts: Sequence[SeriesForecast], n_columns: int) -> Predictive:
        """Join the forecasts for all columns of one instance after another, ``n_columns`` of each."""
        rows = np.cumsum([0, *(len(found.loc) for found in forecasts[::n_columns])])
        shape = rows[-1], n_columns, max(found.loc.shape[1] for found in forecasts)
        paths = np.empty((len(forecasts[0].paths), *shape[:2]))
        loc, scale, weights = np.empty(shape), np.empty(shape), np.zeros(shape)
        for number, found in enumerate(forecasts):
            instance, d = divmod(number, n_columns)
            at, n_pieces = slice(*rows[instance : instance + 2]), found.loc.shape[1]
            paths[:, at, d], weights[at, d, :n_pieces] = found.paths, found.weights
            for every, own in ((loc, found.loc), (scale, found.scale)):
                every[at, d, :n_pieces], every[at, d, n_pieces:] = own, own[:, -1:]
        return cls(paths, Mixture(find_component("uniform"), loc, scale, weights))

    def averaged_with(
        self, forecasts: Sequence[SeriesForecast], requests: Sequence[SeriesRequest], share: float
    ) -> list[SeriesForecast]:
        """Average with the statistical forecasts for all columns of one instance after another.

        ``share`` is the weight of those.
        """
        levels = self.mixture.at_levels(STATISTICAL_LEVELS, ROUGH_STEP)
        found, first = [], 0
        for number, (statistical, request) in enumerate(zip(forecasts, requests, strict=True)):
            d, rows = number % levels.shape[1], slice(first, first + len(request.at))
            own = levels[rows, d], self.paths[:, rows, d]
            found.append(average_quantiles(statistical, request, *own, share))
            first += len(request.at) if d == levels.shape[1] - 1 else 0
        return found

    def shifted(self, added: np.ndarray) -> Predictive:
        """The distribution of the values plus known numbers, shape (R, D)."""
        mixture = self.mixture.affine(added[..., None], np.ones(1))
        return Predictive(self.paths + added, mixture)

    def within(self, least: np.ndarray, most: np.ndarray) -> Predictive:
        """All that is outside bounds (R, D) at these, of pieces of constant density; infinite for none."""
        loc, scale = self.mixture.loc, self.mixture.scale
        reach = np.where(self.mixture.points(), 0.0, scale)  # a point has none
        low, high = ((loc + end * reach).clip(least[..., None], most[..., None]) for end in (-1, 1))
        tiny = POINT_MASS * np.maximum(np.abs(low), np.abs(high)).max(-1, keepdims=True).clip(1e-300)
        half, bounded = np.maximum((high - low) / 2, tiny), np.isfinite(least) | np.isfinite(most)
        loc, scale = (
            np.where(bounded[..., None], *both) for both in (((low + high) / 2, loc), (half, scale))
        )
        return Predictive(self.paths.clip(least, most), replace(self.mixture, loc=loc, scale=scale))

    def zero_at(self, closed: np.ndarray) -> Predictive:
        """The distribution with zero in some cells (R, D) for certain."""
        at = closed[..., None]
        loc, scale = np.where(at, 0.0, self.mixture.loc), np.where(at, CERTAIN, self.mixture.scale)
        return Predictive(np.where(closed, 0.0, self.paths), replace(self.mixture, loc=loc, scale=scale))

    def take(self, rows: np.ndarray | slice = slice(None), columns: np.ndarray | slice = slice(None)):
        """Some rows or columns, or all of them in another order."""
        mixture = self.mixture.map(lambda value: value[rows][:, columns])
        return Predictive(self.paths[:, rows][:, :, columns], mixture)


def reordered(samples: PathSamples, order: Tensor) -> PathSamples:
    """Samples with the targets of every window in another order (B, T)."""
    return samples.map(lambda v: v.take_along_dim(order.view(len(order), 1, -1, *[1] * (v.ndim - 3)), 2))
