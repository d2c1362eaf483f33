"""The weight of statistical forecasts in an average with a network, from forecasts of the past."""

from __future__ import annotations

import numpy as np
import pandas as pd
from sktime.forecasting.base import ForecastingHorizon

from taylorformer_forecast.core.window import evenly
from taylorformer_forecast.defaults import DECILES, MIN_SCALE_VALUES, MOST_SHARE_SERIES
from taylorformer_forecast.engine.average import decile_loss, origins_to_compare, share_of_statistics
from taylorformer_forecast.engine.contexts import robust_columns
from taylorformer_forecast.engine.strategy import Strategy
from taylorformer_forecast.sktime._frames import to_float
from taylorformer_forecast.sktime._host import Host


class Averaging(Host):
    """How the forecasts of a :class:`BaseTorchForecaster` are averaged, where its strategy is an average."""

    def _weighed(self, strategy: Strategy, seed) -> Strategy:
        """An average with the weight of statistics that forecasts from origins in the last quarter show.

        The pretrained network stands in for a new one, which sees these values when it is trained.
        """
        of_network = of_statistics = np.empty(0)
        stamps = self._cur_y.index.get_level_values(-1).unique().sort_values()
        origins = origins_to_compare(len(stamps), self.horizon_)
        y = self._compared(stamps[origins[0]], stamps[origins[-1]]) if origins else self._cur_y[:0]
        if not y.empty:
            times = y.index.get_level_values(-1)
            network = self._with(
                _cur_y=y[times < stamps[origins[0]]],
                strategy="pretrained",
                pretrained=self.pretrained if strategy.is_pretrained else "default",
                _effects=None,
                _scaler=None,
            )
            network._fit_new(seed)
            statistics = self._with(
                network_=None, _strategy=Strategy("corrected", ""), _n_ahead=self.horizon_
            )
            statistics._load_correction()
            truth = self._without_outliers(y)
            of_network, of_statistics = (
                sum(self._past_losses(one, truth, y[times < stamps[k]]) for k in origins).to_numpy().ravel()
                for one in (network, statistics)
            )
        return strategy.with_share(self.strategy, share_of_statistics(of_network, of_statistics))

    def _compared(self, start, end) -> pd.DataFrame:
        """Series whose past is forecast: some of those with values before all origins and after all.

        One that ended long ago would be forecast from its own end, through many horizons.
        """
        times = self._cur_y.index.get_level_values(-1)
        y = self._cur_y.loc[:, self._cur_y[times >= end].notna().any()]
        y = y.iloc[:, evenly(y.shape[1], MOST_SHARE_SERIES).numpy()]
        before, after = y[times < start].notna(), y[times >= end].notna()
        if y.index.nlevels == 1:
            return y if bool((before.sum() >= MIN_SCALE_VALUES).all()) else y[:0]
        levels = list(range(y.index.nlevels - 1))
        count, late = (part.groupby(level=levels).sum() for part in (before, after))
        keys = count.index[(count >= MIN_SCALE_VALUES).all(axis=1)]
        keys = keys.intersection(late.index[late.any(axis=1)])
        keys = keys[evenly(len(keys), max(1, MOST_SHARE_SERIES // y.shape[1])).numpy()]
        return y[y.index.droplevel(-1).isin(keys)]

    def _without_outliers(self, y) -> pd.DataFrame:
        """Values that forecasts are compared with: one outlier would outweigh all others."""
        levels, lengths = list(range(y.index.nlevels - 1)), self._seasonal.lengths
        parts = [part for _, part in y.groupby(level=levels, sort=False)] if levels else [y]
        times = [self._axis.numbers(part.index.get_level_values(-1)) for part in parts]
        robust = [robust_columns(t, to_float(part), lengths) for t, part in zip(times, parts, strict=True)]
        return pd.DataFrame(np.concatenate(robust), pd.concat(parts).index, y.columns)

    def _past_losses(self, forecaster, y, past) -> pd.DataFrame:
        """Sums of the losses of every series from one origin."""
        index, p = forecaster._with(_cur_y=past, _effects=None)._predictive(
            ForecastingHorizon(range(1, self.horizon_ + 1)), None
        )
        truth = y.reindex(index).to_numpy()
        loss = pd.DataFrame(decile_loss(p.mixture.at_levels(DECILES), truth), index, y.columns)
        return loss.groupby(level=list(range(index.nlevels - 1))).sum() if index.nlevels > 1 else loss.sum()
