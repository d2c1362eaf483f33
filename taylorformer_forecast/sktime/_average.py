"""Weights of a network, statistics and analogues in an average, from forecasts of the past."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pandas as pd
from sktime.forecasting.base import ForecastingHorizon

from taylorformer_forecast.core.window import evenly
from taylorformer_forecast.defaults import DECILES, MIN_SCALE_VALUES
from taylorformer_forecast.engine.contexts import robust_columns
from taylorformer_forecast.engine.statistics.past_losses import (
    MOST_COMPARED_SERIES,
    PastForecast,
    origins_to_compare,
    weights_from_past,
)
from taylorformer_forecast.engine.strategy import Strategy
from taylorformer_forecast.sktime._frames import to_float
from taylorformer_forecast.sktime._host import Host
from taylorformer_forecast.sktime._panel import instances_of, rows_of_instances


class Averaging(Host):
    """How the forecasts of a :class:`BaseTorchForecaster` are averaged, where its strategy is an average."""

    def _weighed(self, strategy: Strategy, seed) -> Strategy:
        """An average with the weights that forecasts from origins in the last quarter show.

        The pretrained network stands in for a new one, which sees these values when it is trained.
        """
        seen = self._averaged_series(strategy.least).dropna(how="all")  # rows without a value say nothing
        stamps = seen.index.get_level_values(-1).unique().sort_values()
        origins = [stamps[k] for k in origins_to_compare(len(stamps), self.horizon_)]
        y = self._compared(seen, origins[0], origins[-1]) if origins else seen[:0]
        statistics = self._with(network_=None, _strategy=Strategy("corrected", ""), _effects=None)
        statistics._load_correction()
        forecasts: Iterable[PastForecast] = ()
        if not y.empty:
            times = y.index.get_level_values(-1)
            network = self._with(
                _cur_y=y[times < origins[0]],
                strategy="pretrained",
                pretrained=self.pretrained if strategy.kind.pretrained else "default",
                _effects=None,
                _scaler=None,
            )
            network._fit_new(seed)
            forecasts = self._past_forecasts(network, statistics, y, [y[times < one] for one in origins])
        weights = weights_from_past(forecasts, statistics._correction, self.horizon_)
        return strategy.weighed(self.strategy, *weights)

    def _averaged_series(self, least) -> pd.DataFrame:
        """All series, without the values of those that statistics alone forecast, as they have too few."""
        which, _ = instances_of(self._cur_y.index)
        return self._cur_y.where(self._cur_y.groupby(which).transform("count") >= least)

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

    def _past_forecasts(self, network, statistics, y, pasts) -> Iterator[PastForecast]:
        """Forecasts of every instance and column, from all origins."""
        truth, ahead = self._without_outliers(y), ForecastingHorizon(self._axis.ahead(self.horizon_))
        for past in pasts:
            index, p = network._with(_cur_y=past)._predictive(ahead, None)
            _, requests = statistics._with(_cur_y=past)._of_every_series(ahead)
            rows, deciles = rows_of_instances(index), p.mixture.at_levels(DECILES)
            values = to_float(truth.reindex(index))
            for (key, column), request in requests.items():
                at = rows[key], y.columns.get_loc(column)
                yield PastForecast((key, column), deciles[at], values[at], request)
