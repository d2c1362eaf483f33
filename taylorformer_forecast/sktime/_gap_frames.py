"""Frames with gaps, and what fills them: the part of the imputer between pandas and arrays."""

from __future__ import annotations

import numpy as np
import pandas as pd

from taylorformer_forecast.sktime._checks import check_observed
from taylorformer_forecast.sktime._fills import Gaps, fill_gaps
from taylorformer_forecast.sktime._frames import check_values, instances, to_float
from taylorformer_forecast.sktime._predictive import POINT_MASS, ColumnSeries
from taylorformer_forecast.training.time_axis import content

__all__ = ["GapMethods", "fill_frame", "gap_lengths"]


class GapMethods:
    """Data and draws of a fitted :class:`TaylorformerImputer`."""

    def _remember(self, parts):
        """Keep the end of every instance: new rows that continue it are filled from it, too."""
        self._ends = {key: part.iloc[-4 * self.window_length_ :].copy() for key, part in parts.items()}

    def _checked(self, X):
        """Instances of X, if they are of the kind of those in the fit."""
        check_values(X, "X")
        known, new = self._columns, list(X.columns)
        unnamed = len(new) == len(known) == 1 and 0 in (*new, *known)  # a series without a name
        unknown = [column for column in new if column not in known]
        if unknown and not unnamed:
            raise ValueError(
                f"X has a column {unknown[0]!r} that it had not in the fit; the columns were {known}"
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

    def _gaps(self, part):
        """What is observed and what is missing of every column of an instance."""
        t, values = self._axis.numbers(part.index), to_float(part)
        covariates = self._seasonal(part.index) if self._seasonal else None
        for column in values.T:
            lost = np.isnan(column)
            there = None if covariates is None else covariates[lost]
            yield Gaps(ColumnSeries.of(t, column[:, None], covariates), t[lost], there)

    def _fills(self, X, n_paths):
        """Rows of X in which something is missing, and what fills them, as arrays.

        Returns the numbers of the rows, a mask of what is missing there (R, D), paths (S, R, D) and the
        parameters of the marginal mixtures, (R, D, K).
        """
        jobs, places, first = [], [], 0
        for key, part in self._checked(X):
            whole = self._continued(key, part)
            check_observed(key, whole, "X")
            lost, lead = part.isna().to_numpy(), len(whole) - len(part)
            for d, gaps in enumerate(self._gaps(whole)):
                asked = np.isin(gaps.t, self._axis.numbers(part.index)[lost[:, d]]) if lead else slice(None)
                if lost[:, d].any():
                    there = None if gaps.covariates is None else gaps.covariates[asked]
                    jobs.append(Gaps(gaps.column, gaps.t[asked], there))
                    places.append((first + np.flatnonzero(lost[:, d]), d))
            first += len(part)
        values = to_float(X)
        rows = np.flatnonzero(np.isnan(values).any(1))
        if not len(rows):
            return rows, None, None, None
        samples = fill_gaps(
            jobs, self.network_, self.window_length_, self.gap_length_, n_paths, self._seed, self.device
        )
        values, c = values[rows], samples[0].conditionals
        n = n_paths * c.loc.shape[-1]
        paths = np.repeat(values[None], n_paths, 0)
        spread = {d: job.column.spread.item() for job, (_, d) in zip(jobs, places, strict=True)}
        tiny = np.array([POINT_MASS * spread.get(d, 1.0) for d in range(values.shape[1])])
        mixture = {"mu": np.repeat(values[..., None], n, 2)}
        mixture["sigma"] = np.broadcast_to(tiny[:, None], mixture["mu"].shape).copy()
        mixture["weights"] = None if c.weights is None else np.full(mixture["mu"].shape, 1.0 / n)
        mixture["df"] = None if c.df is None else np.full(mixture["mu"].shape, 10.0)
        for sample, (row, d) in zip(samples, places, strict=True):
            at = np.searchsorted(rows, row)
            paths[:, at, d] = sample.paths.numpy()
            names = {"mu": "loc", "sigma": "scale", "weights": "weights", "df": "df"}
            for name, field in names.items():
                if mixture[name] is not None:
                    value = getattr(sample.conditionals, field)
                    mixture[name][at, d] = value.transpose(0, 1).flatten(1).numpy()
        return rows, np.isnan(values), paths, {**mixture, "family": c.family}

    def _mixture(self, X, rows, mixture):
        from taylorformer_forecast.sktime.distributions import PathMixture

        return PathMixture(**mixture, random_state=self._seed, index=X.index[rows], columns=X.columns)


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
