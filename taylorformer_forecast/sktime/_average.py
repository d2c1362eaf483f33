"""Weights of a network, statistics and analogues in an average, from forecasts of the past."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

import numpy as np
import pandas as pd
from sktime.forecasting.base import ForecastingHorizon

from taylorformer_forecast.core.window import evenly
from taylorformer_forecast.defaults import DECILES, MIN_SCALE_VALUES
from taylorformer_forecast.engine.contexts import robust_columns
from taylorformer_forecast.engine.statistics.forecast import MOST_PAST
from taylorformer_forecast.engine.statistics.past_losses import (
    MOST_COMPARED_SERIES,
    decile_loss,
    losses_of_statistics,
    origins_to_compare,
    weights_by_losses,
)
from taylorformer_forecast.engine.strategy import Strategy
from taylorformer_forecast.sktime._frames import instances, to_float
from taylorformer_forecast.sktime._host import Host
from taylorformer_forecast.sktime._panel import rows_of_instances


class Averaging(Host):
    """How the forecasts of a :class:`BaseTorchForecaster` are averaged, where its strategy is an average."""

    def _weighed(self, strategy: Strategy, seed) -> Strategy:
        """An average with the weights that forecasts from origins in the last quarter show.

        The pretrained network stands in for a new one, which sees these values when it is trained.
        """
        losses: list[tuple] = []  # of every instance and column
        seen = self._cur_y.dropna(how="all")  # rows without a value say nothing
        stamps = seen.index.get_level_values(-1).unique().sort_values()
        origins = origins_to_compare(len(stamps), self.horizon_)
        y = self._compared(seen, stamps[origins[0]], stamps[origins[-1]]) if origins else seen[:0]
        if not y.empty:
            times = y.index.get_level_values(-1)
            network = self._with(
                _cur_y=y[times < stamps[origins[0]]],
                strategy="pretrained",
                pretrained=self.pretrained if strategy.kind.pretrained else "default",
                _effects=None,
                _scaler=None,
            )
            network._fit_new(seed)
            truth, pasts = self._without_outliers(y), [y[times < stamps[k]] for k in origins]
            of_network, of_others = self._losses(network, truth, pasts), self._other_losses(truth, pasts)
            losses = [(loss, *of_others[name]) for name, loss in of_network.items()]
        return strategy.weighed(self.strategy, *weights_by_losses(*np.reshape(losses, (-1, 3)).T))

    def _compared(self, y, start, end) -> pd.DataFrame:
        """Series whose past is forecast: some of those with values before all origins and after all.

        One that ended long ago would be forecast from its own end, through many horizons.
        """
        times = y.index.get_level_values(-1)
        y = y.loc[:, y[times >= end].notna().any()]
        y = y.iloc[:, evenly(y.shape[1], MOST_COMPARED_SERIES).numpy()]
        before, after = y[times < start].notna(), y[times >= end].notna()
        if y.index.nlevels == 1:
            return y if bool((before.sum() >= MIN_SCALE_VALUES).all()) else y[:0]
        levels = list(range(y.index.nlevels - 1))
        count, late = (part.groupby(level=levels).sum() for part in (before, after))
        keys = count.index[(count >= MIN_SCALE_VALUES).all(axis=1)]
        keys = keys.intersection(late.index[late.any(axis=1)])
        keys = keys[evenly(len(keys), max(1, MOST_COMPARED_SERIES // y.shape[1])).numpy()]
        return y[y.index.droplevel(-1).isin(keys)]

    def _without_outliers(self, y) -> pd.DataFrame:
        """Values that forecasts are compared with: one outlier would outweigh all others."""
        levels, lengths = list(range(y.index.nlevels - 1)), self._seasonal.lengths
        by = levels[0] if len(levels) == 1 else levels
        parts = [part for _, part in y.groupby(level=by, sort=False)] if levels else [y]
        times = [self._axis.numbers(part.index.get_level_values(-1)) for part in parts]
        robust = [robust_columns(t, to_float(part), lengths) for t, part in zip(times, parts, strict=True)]
        return pd.DataFrame(np.concatenate(robust), pd.concat(parts).index, y.columns)

    def _losses(self, network, y, pasts) -> dict[tuple, float]:
        """Losses of a network from all origins, by instance and column."""
        found: dict = defaultdict(float)
        for past in pasts:
            index, p = network._with(_cur_y=past, _effects=None)._predictive(self._whole_horizon(), None)
            loss = decile_loss(p.mixture.at_levels(DECILES), to_float(y.reindex(index)))
            for key, rows in rows_of_instances(index).items():
                for d, column in enumerate(y.columns):
                    found[key, column] += loss[rows, d].sum()
        return found

    def _other_losses(self, y, pasts) -> dict[tuple, np.ndarray]:
        """Losses of statistics and of analogues from all origins, by instance and column."""
        statistics = self._with(network_=None, _strategy=Strategy("corrected", ""), _effects=None)
        statistics._load_correction()
        known, names = dict(instances(y)), []
        requests, truths = [], []
        for past in pasts:
            asked, found = statistics._with(_cur_y=past)._of_every_series(self._whole_horizon())
            names += found
            for q in found.values():  # no more of the past than counts, as all are held at once
                cut = max(len(q.y) - MOST_PAST, 0)
                requests.append(replace(q, y=q.y[cut:].copy(), at=q.at - cut))
            truths += [known[key][column].reindex(asked[key]).to_numpy(float) for key, column in found]
        losses = losses_of_statistics(requests, truths, statistics._correction, self.horizon_)
        sums: dict = defaultdict(lambda: np.zeros(2))
        for name, *both in zip(names, *losses, strict=True):
            sums[name] += both
        return sums

    def _whole_horizon(self) -> ForecastingHorizon:
        """All steps of a forecast."""
        return ForecastingHorizon(self._axis.ahead(self.horizon_))
