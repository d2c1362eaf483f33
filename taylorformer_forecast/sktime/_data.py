"""The data of a forecaster as seen from its present cutoff: what windows are cut from."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np

from taylorformer_forecast.calendar.steps import StepDate
from taylorformer_forecast.engine.contexts import robust_columns
from taylorformer_forecast.sktime._checks import check_observed, check_panel_observed
from taylorformer_forecast.sktime._frames import (
    MissingRows,
    instances,
    of_instance,
    rows_are_missing,
    to_float,
)
from taylorformer_forecast.sktime._host import Host
from taylorformer_forecast.sktime._panel import Panel, by_name
from taylorformer_forecast.sktime._requests import ColumnSeries


class KnownData(Host):
    """Series and covariates of a :class:`BaseTorchForecaster`, up to the cutoff."""

    _numbers: Mapping = MappingProxyType({})  # of the series of the fit, by instance and column

    @property
    def _shown_scaler(self):
        """Scaler of X, if the network sees X."""
        return self._scaler if self._strategy.kind.trains_a_new_network else None

    def _known(self):
        """Yield (key, y, X) of every instance up to the cutoff, which a backtest may have moved back.

        Instances and columns are arranged by name, so that networks and draws do not depend on their order.
        """
        exogenous = {} if self._cur_X is None else dict(instances(self._cur_X))
        parts = list(instances(self._cur_y.iloc[:, by_name(self._cur_y.columns)]))
        for number in by_name([key for key, _ in parts]):
            key, y = parts[number]
            y, X = y[y.index <= self.cutoff[0]], exogenous.get(key)
            check_observed(key, y)
            if self.spec.regular:
                y = y.reindex(self._axis.grid(y.index, f"y{of_instance(key)}"))
                if X is not None:  # nothing is known of X either where a row is missing
                    X = X.reindex(X.index.union(y.index))
            yield key, y, X

    def _known_panel(self):
        """All instances up to the cutoff as arrays, arranged as in :meth:`_known`."""
        panel = Panel.of(self._cur_y).arranged()
        early = np.asarray(panel.stamps <= self.cutoff[0])
        if not early.all():
            panel = panel.take(early[panel.at])
        check_panel_observed(panel)
        return panel

    def _last_dates(self, panel):
        """Dates of the last values of every series, where effects of the calendar are sought; else None."""
        dates, weekdays = self._axis.dates(panel.stamps)
        if dates is None or self.time_features != "auto":
            return [None] * (len(panel.keys) * len(panel.columns))
        return [
            StepDate(dates[at[np.flatnonzero(~np.isnan(column))[-1]]], weekdays)
            for _, at, values in panel.parts()
            for column in values.T
        ]

    def _own_seasons(self, y):
        """Seasons of a series on its grid that statistics try, in steps."""
        return self._seasonal.own_lengths(y, self.time_features, self.seasonal_periods)

    def _covariates(self, index, X, key=(), target=False):
        """Phases of calendar cycles and seasons, and scaled exogenous columns, at points or at targets."""
        features = [self._seasonal(index)] if self._seasonal else []
        scaler = self._shown_scaler
        if scaler is not None:
            if X is None:
                raise ValueError(f"X has no rows{of_instance(key)}")
            missing = index.difference(X.index)
            if len(missing) and not (target and scaler.n_ahead == 0):
                raise MissingRows(rows_are_missing(key, missing[0], len(missing), X.index[-1]))
            features.append(scaler.features(X.reindex(index), target))
        return np.concatenate(features, 1) if features else None

    def _columns(self, key, y, X):
        """Columns of one instance, each by itself or all together, standardised.

        Without outliers: a network that sees X sees them too, as X may be what explains them.
        """
        t, values, covariates = self._axis.numbers(y.index), to_float(y), self._covariates(y.index, X, key)
        if self._shown_scaler is None:
            values = robust_columns(t, values, self._seasonal.lengths)
        if self.spec.shares_windows:
            return [ColumnSeries.of(t, values, covariates, self.spec.regular)]
        about = covariates, self.spec.regular
        numbers = [self._numbers.get((key, name), -1) for name in y.columns]
        groups = zip(np.split(values, len(numbers), 1), numbers, strict=True)
        return [ColumnSeries.of(t, group, *about, number) for group, number in groups]

    def _series(self):
        """What windows are cut from: all columns of all instances."""
        return [c.series for key, y, X in self._known() for c in self._columns(key, y, X)]
