"""Averages of a network's quantiles with statistical ones."""

import numpy as np
import pandas as pd
import pytest

from taylorformer_forecast.defaults import STATISTICAL_LEVELS
from taylorformer_forecast.engine.statistics.average import average_quantiles, with_analogues
from taylorformer_forecast.engine.statistics.forecast import forecast_series
from taylorformer_forecast.engine.statistics.requests import SeriesRequest

HOURS = np.arange(24 * 30)
SUN = np.maximum(np.sin((HOURS % 24 - 6) * np.pi / 12), 0) * np.random.default_rng(0).uniform(
    0.4, 1, len(HOURS)
)
SUN[SUN < 0.02] = 0.0


def test_nights_that_were_always_zero_are_zero_whatever_a_network_says():
    request = SeriesRequest(SUN[:-24], np.arange(len(SUN) - 24, len(SUN)), seasons=[24])
    found = forecast_series([request], n_paths=50, seed=0)[0]
    rng = np.random.default_rng(0)
    paths = rng.normal(0.3, 1.0, (50, 24))
    network = np.quantile(rng.normal(0.3, 1.0, (4000, 24)), STATISTICAL_LEVELS, axis=0).T
    both = average_quantiles(found, request, network, paths, weight=0.5)
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


def hares(n=300):
    """Cycles of ten steps whose rises are slower than their falls, of unlike heights."""
    rng = np.random.default_rng(0)
    shape = np.array([0.0, 1, 2, 3, 4, 5, 6, 7, 4, 1])
    return np.concatenate([shape * height for height in rng.uniform(5, 15, n // 10)]) + rng.normal(size=n)


@pytest.mark.parametrize("weight", [0.0, 0.4, 1.0])
def test_analogues_are_averaged_at_every_level_with_the_tails_of_statistics(weight):
    request = SeriesRequest(hares(), np.array([290, 299, 300, 301, 304.5, 311]), seasons=[10])
    found = forecast_series([request], n_paths=200, seed=0, horizon=12)[0]
    both, alone = (with_analogues(found, request, 12, w) for w in (weight, 1.0))
    average = (1 - weight) * found.quantiles + weight * alone.quantiles
    np.testing.assert_allclose(both.quantiles, average)
    np.testing.assert_array_equal(both.quantiles[:2], found.quantiles[:2])  # in sample
    low, tail = STATISTICAL_LEVELS.index(0.1), STATISTICAL_LEVELS.index(0.01)
    np.testing.assert_allclose(*(np.diff(one.quantiles[:, [tail, low]]) for one in (both, found)))
    assert (np.diff(both.quantiles) >= 0).all()
    np.testing.assert_allclose((both.weights).sum(1), 1)
    ranks = [one.paths.argsort(0).argsort(0) for one in (both, found)]
    np.testing.assert_array_equal(*ranks)


def test_analogues_of_the_first_steps_do_not_depend_on_which_others_are_asked_for():
    requests = [SeriesRequest(hares(), 300 + np.arange(k), seasons=[10]) for k in (3, 12)]
    few, all_ = (with_analogues(forecast_series([q], 5, 0, horizon=12)[0], q, 12, 0.5) for q in requests)
    np.testing.assert_allclose(few.quantiles, all_.quantiles[:3])


def test_missing_values_and_outliers_hardly_move_analogues():
    y = hares()
    spoilt = y.copy()
    spoilt[[20, 21, 77, 150, 151, 152]], spoilt[[200, 297]] = np.nan, 5000.0
    q = [SeriesRequest(values, 300 + np.arange(12), seasons=[10]) for values in (y, spoilt)]
    whole, other = (with_analogues(forecast_series([one], 5, 0)[0], one, 12, 1.0) for one in q)
    median = STATISTICAL_LEVELS.index(0.5)
    assert np.abs(whole.quantiles - other.quantiles)[:, median].max() < 15


def test_bounds_hold_for_analogues_too():
    y = np.maximum(hares() - 20, 0.0) + 0.01
    request = SeriesRequest(y, 300 + np.arange(12), seasons=[10])
    found = with_analogues(forecast_series([request], 50, 0)[0], request, 12, 0.7)
    assert (found.quantiles >= 0).all()
    assert (found.paths >= 0).all()


def test_demand_series_that_are_short_and_those_with_many_gaps_have_no_analogues():
    gappy = hares()
    gappy[np.random.default_rng(1).random(300) < 0.5] = np.nan
    gappy[-1] = 20.0
    for y in (np.random.default_rng(0).poisson(0.3, 300).astype(float), hares(60), gappy):
        request = SeriesRequest(y, len(y) + np.arange(12), seasons=[10])
        found = forecast_series([request], 5, 0)[0]
        assert with_analogues(found, request, 12, 0.5) is found
