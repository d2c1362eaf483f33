"""Averages of a network's quantiles with statistical ones."""

import numpy as np
import pandas as pd
import pytest

from taylorformer_forecast.defaults import STATISTICAL_LEVELS
from taylorformer_forecast.engine.average import average_quantiles
from taylorformer_forecast.engine.series_requests import SeriesRequest
from taylorformer_forecast.engine.statistical import forecast_series

HOURS = np.arange(24 * 30)
SUN = np.maximum(np.sin((HOURS % 24 - 6) * np.pi / 12), 0) * np.random.default_rng(0).uniform(
    0.4, 1, len(HOURS)
)
SUN[SUN < 0.02] = 0.0


def test_nights_that_were_always_zero_are_zero_whatever_a_network_says():
    request = SeriesRequest(SUN[:-24], np.arange(len(SUN) - 24, len(SUN)))
    found = forecast_series([request], [24], n_paths=50, seed=0)[0]
    rng = np.random.default_rng(0)
    paths = rng.normal(0.3, 1.0, (50, 24))
    network = np.quantile(rng.normal(0.3, 1.0, (4000, 24)), STATISTICAL_LEVELS, axis=0).T
    both = average_quantiles(found, request, network, paths, share=0.5)
    night = SUN[-24:] == 0
    assert night.sum() >= 10
    assert (both.quantiles[night] == 0).all()
    assert (both.paths[:, night] == 0).all()
    assert ((both.weights * both.loc).sum(1)[night] == 0).all()
    assert (both.quantiles[~night][:, -1] > 0).all()


@pytest.mark.parametrize("host", ["sktime", "darts"])
def test_solar_power_is_zero_at_night_by_the_average_of_pretrained_forecasts(host):
    pytest.importorskip(host)
    y = pd.Series(1000 * SUN, pd.date_range("2024-05-01", periods=len(SUN), freq="h"), name="power")
    if host == "sktime":
        from taylorformer_forecast.sktime import TaylorformerForecaster

        forecaster = TaylorformerForecaster(strategy="zero_shot", random_state=0)
        found = forecaster.fit(y[:-24], fh=range(1, 25)).predict_quantiles(alpha=[0.05, 0.5, 0.95]).to_numpy()
    else:
        from darts import TimeSeries

        from taylorformer_forecast.darts import TaylorformerModel

        model = TaylorformerModel(96, 24, strategy="zero_shot", random_state=0)
        model.fit(TimeSeries.from_series(y[:-24].astype("float32")))
        found = model.predict(24, num_samples=200).quantile([0.05, 0.5, 0.95]).values()
    night = SUN[-24:] == 0
    assert np.abs(found[night]).max() < 1e-3
    assert found[~night][:, 1].max() > 300
