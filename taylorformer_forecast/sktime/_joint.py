"""Sample paths of all columns and instances drawn together, for ``joint=True``."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
from sktime.forecasting.base import ForecastingHorizon

from taylorformer_forecast.defaults import MIN_SCALE_VALUES, N_COPULA_PATHS
from taylorformer_forecast.engine.predictive import Predictive
from taylorformer_forecast.engine.statistics.copula import (
    GaussianCopula,
    past_origins,
    scores_among,
    standardised_errors,
)
from taylorformer_forecast.sktime._host import Host


def side_by_side(values: np.ndarray, index: pd.Index, columns: pd.Index) -> pd.DataFrame:
    """All columns of all instances at the times of any, NaN where one has no row.

    Examples
    --------
    >>> import pandas as pd
    >>> from taylorformer_forecast.sktime._joint import side_by_side
    >>> index = pd.MultiIndex.from_tuples([("a", 0), ("a", 1), ("b", 1)])
    >>> side_by_side([[1.0], [2.0], [3.0]], index, ["y"]).to_numpy().tolist()
    [[1.0, nan], [2.0, 3.0]]
    """
    frame = pd.DataFrame(values, index, columns)
    return frame.unstack(list(range(index.nlevels - 1))) if index.nlevels > 1 else frame


class JointPaths(Host):
    """What ``joint=True`` changes of a :class:`BaseTorchForecaster`: which values make one path.

    Parameters
    ----------
    joint : bool
        Whether sample paths of all series, the columns of y and the instances of a panel, are joint: totals
        then have the right intervals. How series go together is estimated by ``fit`` from errors of forecasts
        of the past, as a Gaussian copula. It changes which of the ``num_samples`` values of a step belong to
        which path (``predict_proba(marginal=False)``), and no marginal distribution. By default series are
        independent of each other.
    """

    joint = False  # of forecasters whose network joins columns
    _copula = None  # and the columns of all instances, side by side, that it is of

    def _fitted_copula(self):
        """How series go together, from the errors of forecasts of the past; None where nothing shows it."""
        y = self._cur_y
        n_instances = len(y.index.droplevel(-1).unique()) if y.index.nlevels > 1 else 1
        if self._is_point or n_instances * y.shape[1] == 1:
            return None
        regular = self._irregular() is None
        if regular and self._strategy.kind.statistics:
            scores = self._statistical_scores()
        elif regular and self._scaler is None:
            scores = self._network_scores()
        else:  # one step ahead: between the stamps that are known there is no X, nor are there values
            scores = self._scored(self, None)
        if scores.empty:
            return None
        return scores.columns, GaussianCopula.of(scores.to_numpy(), scores.index.nunique())

    def _statistical_scores(self):
        """Scores of statistical forecasts: rows of the same number are of the same time."""
        panel = self._known_panel()
        found = list(panel.on_grids(self._axis))
        seasons = [self._own_seasons(y) for _, _, y in found]
        last = self._last_dates(panel)
        first = np.array([round(start) for _, start, _ in found])
        first, series = first - first.min(), [y for _, _, y in found]
        size = max(k + len(y) for k, y in zip(first, series, strict=True))
        every = np.full((size, self.horizon_, len(series)), np.nan)
        for d, (k, own) in enumerate(
            zip(first, standardised_errors(series, last, seasons, self.horizon_), strict=True)
        ):
            every[k : k + len(own), :, d] = own
        seen = ~np.isnan(every).all((1, 2))
        labels = [(column, *key) for key in panel.keys for column in panel.columns]
        columns = pd.MultiIndex.from_tuples(labels) if panel.keys[0] else panel.columns
        rows = np.repeat(np.arange(size)[seen], self.horizon_)
        return pd.DataFrame(every[seen].reshape(-1, len(series)), rows, columns)

    def _network_scores(self):
        """Scores of forecasts of a network, from some origins."""
        y, errors = self._cur_y.dropna(how="all"), []  # an index may be finer than the observations
        times = y.index.get_level_values(-1)
        stamps = times.unique().sort_values()
        ahead = np.round(self._axis.numbers(stamps[-1:]) - self._axis.numbers(stamps)).astype(int)
        instance = pd.factorize(y.index.droplevel(-1))[0] if y.index.nlevels > 1 else np.zeros(len(y))
        for origin in past_origins(len(stamps) - 1, self.horizon_):
            past = times <= stamps[origin]
            count = y[past].groupby(instance[past]).transform("count")
            early = y[past][(count >= MIN_SCALE_VALUES).all(axis=1)]
            if not early.empty:
                steps = self._axis.ahead(min(self.horizon_, max(1, ahead[origin])))
                errors.append(self._scored(self._with(_cur_y=early), steps))
        return pd.concat(errors) if errors else side_by_side(y, y.index, y.columns)[:0]

    def _scored(self, forecaster, steps):
        """Scores of observed values among paths of a forecaster, all series side by side."""
        y, fh = self._cur_y, None if steps is None else ForecastingHorizon(steps)
        index, p = forecaster._with(num_samples=N_COPULA_PATHS, _effects=None)._predictive(
            fh, None, joint=True
        )
        truth = y.reindex(index).to_numpy(dtype="float64", na_value=np.nan)
        return side_by_side(scores_among(p.paths, truth), index, y.columns)

    def _joint_predictive(self, fh, X) -> tuple[pd.Index, Predictive]:
        """Rows of the forecast and their predictive distribution, with joint paths of all series."""
        index, p = self._predictive(fh, X, joint=True)
        if self._copula is None:
            return index, p
        columns, copula = self._copula
        place = side_by_side(np.arange(p.paths[0].size).reshape(p.paths[0].shape), index, self._cur_y.columns)
        known = place.notna().to_numpy()
        at = place.to_numpy()[known].astype(int)
        paths, flat = np.full((len(p.paths), *known.shape), np.nan), p.paths.reshape(len(p.paths), -1)
        paths[:, known] = flat[:, at]
        together = np.empty_like(flat)
        together[:, at] = copula.take(columns.get_indexer(place.columns)).reorder(paths)[:, known]
        return index, replace(p, paths=together.reshape(p.paths.shape))


def covariances(index: pd.Index, paths: np.ndarray, variance: pd.DataFrame) -> pd.DataFrame:
    """Covariances of the steps of every column.

    They are correlations of paths (S, r, D) with variances of marginal distributions.
    """
    blocks = []
    for d in range(paths.shape[2]):
        sigma = np.sqrt(variance.to_numpy()[:, d])
        with np.errstate(invalid="ignore", divide="ignore"):  # what does not vary has no correlation
            correlation = np.nan_to_num(np.atleast_2d(np.corrcoef(paths[:, :, d].T)))
        np.fill_diagonal(correlation, 1.0)
        blocks.append(correlation * np.outer(sigma, sigma))
    rows = list(index) if index.nlevels > 1 else [(stamp,) for stamp in index]
    columns = pd.MultiIndex.from_tuples(
        [(name, *row) for name in variance.columns for row in rows], names=[None, *index.names]
    )
    return pd.DataFrame(np.concatenate(blocks, 1), index=index, columns=columns)
