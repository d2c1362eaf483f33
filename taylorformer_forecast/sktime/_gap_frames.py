"""Frames with gaps, and what fills them: the part of the imputer between pandas and arrays."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd

from taylorformer_forecast.calendar.steps import content
from taylorformer_forecast.core.families.base import POINT_MASS
from taylorformer_forecast.defaults import FILL_END_WINDOWS
from taylorformer_forecast.engine.contexts import robust_columns
from taylorformer_forecast.engine.state import own_state
from taylorformer_forecast.engine.windows import Series
from taylorformer_forecast.sktime._checks import check_observed, check_positive, unnamed
from taylorformer_forecast.sktime._frames import check_values, instances, shown, to_float
from taylorformer_forecast.sktime._gaps import Gaps
from taylorformer_forecast.sktime._host import Host
from taylorformer_forecast.sktime._imputations import Imputations, fill_gaps
from taylorformer_forecast.sktime._requests import ColumnSeries
from taylorformer_forecast.sktime._transforms import transform_of
from taylorformer_forecast.sktime.distributions import PathMixture


class GapMethods(Host):
    """Data and draws of a fitted :class:`BaseImputer`."""

    def _remember(self, parts):
        """Keep the end of every instance: new rows that continue it are filled from it, too."""
        self._ends = {
            key: part.iloc[-FILL_END_WINDOWS * self.window_length_ :].copy() for key, part in parts.items()
        }

    def _checked(self, X):
        """Instances of X, if they are of the kind of those in the fit."""
        check_values(X, "X")
        known, new = self._columns, list(X.columns)
        unknown = [column for column in new if column not in known]
        if unknown and not unnamed(new, known):
            raise ValueError(
                f"X has a column {shown(unknown[0])} that it had not in the fit; the columns were {known}"
            )
        parts = list(instances(X))
        if content(parts[0][1].index) != self._content:
            raise TypeError(
                f"the index of X holds {content(parts[0][1].index)}, but it held {self._content} in the fit"
            )
        return parts

    def _continued(self, key, part):
        """An instance with the rows that were known before it, if it goes on where they end."""
        end = self._ends.get(key)
        if end is None or (len(part.columns) > 1 and list(end.columns) != list(part.columns)):
            return part
        before, shared = end[end.index < part.index[0]], end.index.intersection(part.index)
        here, there = to_float(part.loc[shared]), to_float(end.loc[shared])
        if not len(before) or not (np.isnan(here) | np.isnan(there) | (here == there)).all():
            return part
        return pd.concat([before.set_axis(part.columns, axis=1), part])

    def _robust(self, part):
        """Times and values of an instance, and the values without outliers."""
        t, values = self._axis.numbers(part.index), to_float(part)
        return t, values, robust_columns(t, values, self._seasonal.lengths)

    def _gaps(self, part):
        """What is observed, without outliers, and what is missing of every column of an instance."""
        t, values, clean = self._robust(part)
        covariates = self._seasonal(part.index) if self._seasonal else None
        alone = len(self.offsets_) == 1  # a column whose name may differ
        for name, column, y in zip(part.columns, values.T, clean.T, strict=True):
            own = transform_of(y, self.offsets_[self._columns[0] if alone else name])
            whole = Series(t, (y if own is None else own(y))[:, None], covariates)
            yield Gaps(ColumnSeries.of(t, whole.y, covariates), whole.take(np.isnan(column)), own)

    @own_state()
    def _impute(self, X, n_paths):
        """Draw all that is missing in X."""
        jobs, places, first = [], [], 0
        for key, part in self._checked(X):
            whole = self._continued(key, part)
            check_observed(key, whole, "X")
            if self.logarithm:
                check_positive(key, whole)
            lost, lead = part.isna().to_numpy(), len(whole) - len(part)
            for d, gaps in enumerate(self._gaps(whole)):
                if lost[:, d].any():
                    here = self._axis.numbers(part.index)[lost[:, d]]
                    asked = np.isin(gaps.points.t, here) if lead else slice(None)
                    jobs.append(replace(gaps, points=gaps.points.take(asked)))
                    places.append((first + np.flatnonzero(lost[:, d]), d))
            first += len(part)
        values = to_float(X)
        rows = np.flatnonzero(np.isnan(values).any(1))
        about = self.network_, self.window_length_, self.gap_length_, n_paths, self._seed, self.device
        samples = fill_gaps(jobs, *about)
        parts = [
            (job, job.settled(sample), np.searchsorted(rows, row), d)
            for job, sample, (row, d) in zip(jobs, samples, places, strict=True)
        ]
        return Imputations(rows, values[rows], n_paths, parts)

    def _mixture(self, X, imputed):
        """The marginal distributions of the rows of X in which something is missing."""
        bent = any(job.transform for job, *_ in imputed.parts)  # all cells are of one family
        found = [(job.mixture(sample.conditionals, bent), at, d) for job, sample, at, d in imputed.parts]
        like, known = found[0][0], imputed.values[..., None]

        def full(value):
            return np.broadcast_to(value, (*imputed.values.shape, like.loc.shape[-1])).copy()

        # What is known has the weights and shapes of others.
        points = full(known), full(POINT_MASS * np.where(known == 0, 1.0, np.abs(known)))
        mixture = replace(like.map(lambda value: full(value.mean())), loc=points[0], scale=points[1])
        for part, at, d in found:
            mixture[at, d] = part
        return PathMixture._of(mixture, self._seed, X.index[imputed.rows], X.columns)


def gap_lengths(X):
    """Rows of every run of missing values."""
    lengths = []
    for _, part in instances(X):
        for lost in part.isna().to_numpy().T:
            edges = np.flatnonzero(np.diff(np.concatenate([[False], lost, [False]]).astype(int)))
            lengths += (edges[1::2] - edges[::2]).tolist()
    return lengths


def fill_frame(X, rows, lost, values):
    """A copy of X with what was missing; columns without gaps keep their dtype."""
    X = X.copy()
    for d, column in enumerate(X.columns):
        if len(rows) and lost[:, d].any():
            filled = to_float(X.iloc[:, [d]])[:, 0].copy()
            filled[rows[lost[:, d]]] = values[lost[:, d], d]
            X[column] = pd.Series(filled, X.index).astype(X.dtypes.iloc[d])
    return X
