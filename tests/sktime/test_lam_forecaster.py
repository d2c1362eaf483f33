"""LAMForecaster: regular grids, horizons, point forecasts, scaling, kernels."""

from __future__ import annotations

import pickle
import re

import numpy as np
import pandas as pd
import pytest
from sktime.forecasting.base import ForecastingHorizon

from taylorformer_forecast.core.attention.local import Local
from taylorformer_forecast.core.attention.registry import KERNELS
from taylorformer_forecast.sktime import LAMForecaster


def tiny(**changes):
    settings = {"d_model": 4, "n_heads": 1, "max_steps": 2, "num_samples": 12, "random_state": 0}
    settings |= {"distribution": "normal", "num_epochs": None, "time_features": None}
    return LAMForecaster(**{**settings, **changes})


def series(index, seed=0):
    wave = 10 + np.sin(np.arange(len(index)) * 2 * np.pi / 12)
    return pd.Series(wave + 0.3 * np.random.default_rng(seed).normal(size=len(index)), index, name="sales")


MONTHS = pd.period_range("2000-01", periods=60, freq="M")
INDEXES = {
    "months": MONTHS,
    "days": pd.date_range("2000-01-01", periods=60, freq="D"),
    "hours": pd.date_range("2000-01-01", periods=60, freq="h", tz="Europe/Berlin"),
    "integers": pd.RangeIndex(5, 65),
    "every third integer": pd.RangeIndex(0, 180, 3),
}


# --- the regular grid -------------------------------------------------------------------------------------


@pytest.mark.parametrize("index", INDEXES.values(), ids=INDEXES)
def test_missing_rows_mean_the_same_as_rows_without_a_value(index):
    y = series(index)
    y.iloc[[7, 8, 9, 31]] = np.nan
    step = 3 if index.equals(INDEXES["every third integer"]) else 1
    fh = [-50 * step, 0, step, 20 * step]
    settings = {"seasonal_periods": 12, "context_length": 10}
    kept, dropped = (tiny(**settings).fit(data, fh=fh).predict() for data in (y, y.dropna()))
    np.testing.assert_allclose(dropped.to_numpy(), kept.to_numpy(), rtol=1e-6)
    assert list(dropped.index) == list(kept.index)


@pytest.mark.parametrize(
    ("index", "message"),
    [
        (
            pd.date_range("2000-01-01", periods=60, freq="h") + pd.to_timedelta([0] * 59 + [7], unit="min"),
            "y is not regular: 2000-01-03 11:07:00 is not on the grid of step 0 days 01:00:00 that starts at "
            "2000-01-01",
        ),
        (pd.Index([*range(0, 118, 2), 119]), "119 is not on the grid of step 2 that starts at 0"),
        (pd.Index([*range(59), 10**9]), "60 rows are spread over 1000000000 steps of 1"),
    ],
    ids=["dates", "integers", "sparse"],
)
def test_irregular_times_are_refused_with_a_way_out(index, message):
    with pytest.raises(ValueError, match=re.escape(message) + ".*use TaylorformerForecaster"):
        tiny().fit(series(index))


def test_an_irregular_instance_of_a_panel_is_named():
    parts = {"a": series(INDEXES["days"]), "b": series(INDEXES["days"])}
    parts["b"].index = parts["b"].index[:-1].append(parts["b"].index[-1:] + pd.Timedelta(hours=7))
    y = pd.concat(parts, names=["shop", "time"]).to_frame()
    with pytest.raises(ValueError, match="y of instance 'b' is not regular"):
        tiny().fit(y)


def test_an_update_beside_the_grid_is_refused_and_one_with_a_gap_is_not():
    days = INDEXES["days"]
    forecaster = tiny().fit(series(days))
    before = forecaster.predict(fh=[1])
    late = pd.Series([10.0], pd.DatetimeIndex([days[-1] + pd.Timedelta(hours=30)]), name="sales")
    with pytest.raises(ValueError, match="is not regular"):
        forecaster.update(late, update_params=False)
    pd.testing.assert_series_equal(forecaster.predict(fh=[1]), before)
    forecaster.update(late.set_axis(days[-1:] + pd.Timedelta(days=5)), update_params=False)
    assert forecaster.predict(fh=ForecastingHorizon([1])).index[0] == days[-1] + pd.Timedelta(days=6)


@pytest.mark.parametrize("stamp", ["2000-01-20 01:00", "2000-03-03 01:00"])
def test_times_between_steps_are_refused(stamp):
    forecaster = tiny().fit(series(INDEXES["days"]))
    fh = ForecastingHorizon(pd.DatetimeIndex([stamp]), is_relative=False)
    with pytest.raises(ValueError, match=f"fh asks for {stamp}:00, which is not a step of the regular grid"):
        forecaster.predict(fh=fh)


def test_rows_that_are_missing_need_no_exogenous_values():
    y = series(MONTHS).drop(MONTHS[[20, 21]])
    X = pd.DataFrame({"price": np.arange(72.0)}, pd.period_range("2000-01", periods=72, freq="M"))
    forecaster = tiny().fit(y, X=X.loc[y.index])
    assert np.isfinite(forecaster.predict(fh=[-38, 1, 12], X=X.iloc[60:])).all()


# --- lengths ----------------------------------------------------------------------------------------------


def test_the_horizon_is_that_of_fit_or_a_season_and_may_be_given():
    y = series(pd.RangeIndex(400))
    assert tiny().fit(y, fh=range(1, 51)).horizon_ == 50
    assert tiny(seasonal_periods=24).fit(y).horizon_ == 24
    assert tiny(horizon=7).fit(y, fh=range(1, 51)).horizon_ == 7


@pytest.mark.parametrize("fh", [None, [1], range(1, 61)], ids=["later", "one step", "all steps"])
def test_the_context_has_two_horizons_that_are_given_whenever_fh_is(fh):
    y = pd.Series(np.random.default_rng(0).normal(size=400).cumsum())
    forecaster = tiny(horizon=60, context_length=None, max_steps=0).fit(y, fh=fh)
    assert (forecaster.context_length_, forecaster.horizon_) == (120, 60)


@pytest.mark.parametrize("n", [3, 10, 40, 90])
def test_a_horizon_beyond_a_short_series_leaves_it_a_context_that_fits(n):
    y = pd.Series(np.random.default_rng(n).normal(size=n).cumsum())
    forecaster = tiny(horizon=60, context_length=None, max_steps=0).fit(y)
    assert forecaster.context_length_ == max(2, n // 3)
    assert np.isfinite(forecaster.predict(fh=[1, 60])).all()


@pytest.mark.parametrize(
    ("context_length", "horizon", "n"), [(900, 800, 2000), (50, 100, 60), (1, 1, 10)], ids=str
)
def test_lengths_that_are_given_are_taken(context_length, horizon, n):
    forecaster = tiny(context_length=context_length, horizon=horizon, max_steps=1)
    forecaster.fit(series(pd.RangeIndex(n)))
    assert (forecaster.context_length_, forecaster.horizon_) == (context_length, horizon)
    assert np.isfinite(forecaster.predict(fh=sorted({1, horizon}))).all()


def test_marginals_are_stored_once_within_the_horizon_and_for_each_path_beyond():
    forecaster = tiny(horizon=6).fit(series(MONTHS))
    within, beyond = forecaster.predict_proba(fh=[1, 6]), forecaster.predict_proba(fh=[1, 6, 7, 20])
    assert within.mu.shape == (2, 1, 1)
    assert beyond.mu.shape == (4, 1, 12)
    np.testing.assert_allclose(beyond.iloc[:2].mean(), within.mean(), rtol=1e-6)


def test_beyond_the_horizon_paths_go_on_from_their_own_values():
    y = pd.Series(np.random.default_rng(0).normal(size=400).cumsum())
    forecaster = tiny(horizon=2, context_length=16, max_steps=150, num_samples=400, lr=1e-2).fit(y)
    paths = forecaster.predict_proba(fh=range(1, 11), marginal=False).paths[:, :, 0]
    correlation = np.corrcoef(paths.T)
    assert 0.5 < correlation[0, 1] < 0.9  # of one window; a walk's are correlated by 0.71
    assert correlation[5, 7] > 0.4
    assert np.std(paths[:, 9]) > 1.3 * np.std(paths[:, 0])


# --- distributions ----------------------------------------------------------------------------------------


def test_squared_and_absolute_errors_are_minimised_by_mean_and_median():
    """Values jump between two levels at random: most are 0, some are 10."""
    y = pd.Series(np.where(np.random.default_rng(0).random(600) < 0.3, 10.0, 0.0))
    settings = {"max_steps": 200, "lr": 3e-3, "instance_norm": False, "seasonal_periods": None}
    settings |= {"context_length": 8, "horizon": 4, "dropout": 0.0, "batch_size": 64}
    mean, median = (
        tiny(distribution=name, **settings).fit(y).predict(fh=range(1, 5)).mean() for name in ("mse", "mae")
    )
    assert 1.5 < mean < 4.5
    assert abs(median) < 1.0


def test_quantiles_learn_a_distribution_with_two_modes():
    y = pd.Series(np.where(np.random.default_rng(0).random(600) < 0.5, 10.0, 0.0))
    y += 0.5 * np.random.default_rng(1).normal(size=600)
    settings = {"max_steps": 200, "lr": 3e-3, "instance_norm": False, "seasonal_periods": None}
    settings |= {"context_length": 8, "horizon": 4, "dropout": 0.0, "batch_size": 64}
    forecaster = tiny(distribution="quantile", **settings).fit(y)
    low, high = forecaster.predict_quantiles(fh=[1], alpha=[0.2, 0.8]).to_numpy()[0]
    assert -2 < low < 2.5
    assert 7.5 < high < 12
    density = forecaster.predict_proba(fh=[1])
    assert density.pdf([[5.0]]).iloc[0, 0] < density.pdf([[low]]).iloc[0, 0]


@pytest.mark.parametrize("distribution", ["quantile", "studentt", "mixture", "mse"])
def test_before_the_first_observation_the_series_itself_is_the_forecast(distribution):
    y = series(MONTHS)
    y.iloc[1:4] = np.nan
    y = y.iloc[1:]  # the grid starts with three rows of which nothing is known
    forecaster = tiny(distribution=distribution).fit(y)
    first = forecaster.predict(fh=ForecastingHorizon(MONTHS[1:5], is_relative=False))
    np.testing.assert_allclose(first, y.mean(), rtol=1e-6)


# --- scaling ----------------------------------------------------------------------------------------------


def shifted_forecast(shift, **settings):
    """Train on a series, then forecast after a full context at another level."""
    forecaster = tiny(context_length=12, horizon=4, **settings).fit(series(MONTHS))
    later = series(pd.period_range("2005-01", periods=12, freq="M"), seed=1)
    return forecaster.update(later + shift, update_params=False).predict(fh=[1, 2, 3])


def test_with_instance_norm_forecasts_move_with_the_level_of_the_context():
    np.testing.assert_allclose(shifted_forecast(100.0), shifted_forecast(0.0) + 100.0, rtol=1e-4)
    far = shifted_forecast(100.0, instance_norm=False) - shifted_forecast(0.0, instance_norm=False)
    assert (np.abs(far - 100) > 1).all()


def test_the_faithful_preset_standardises_the_series_instead():
    settings = {"preset": "faithful", "time_features": "auto"}
    default, off, on = (
        shifted_forecast(50.0, **settings, **norm)
        for norm in ({}, {"instance_norm": False}, {"instance_norm": True})
    )
    pd.testing.assert_series_equal(default, off)
    assert not np.allclose(default, on)


# --- kernels ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("attention", [*KERNELS, Local(window=4)], ids=str)
def test_any_kernel_may_be_used_and_the_forecaster_copied(attention):
    forecaster = tiny(attention=attention).fit(series(MONTHS))
    expected = forecaster.predict(fh=[1, 30])
    assert np.isfinite(expected).all()
    pd.testing.assert_series_equal(pickle.loads(pickle.dumps(forecaster)).predict(fh=[1, 30]), expected)
    pd.testing.assert_series_equal(forecaster.clone().fit(series(MONTHS)).predict(fh=[1, 30]), expected)


def test_an_unknown_kernel_is_named():
    with pytest.raises(ValueError, match="attention='nearest' is neither a kernel nor one of"):
        tiny(attention="nearest").fit(series(MONTHS))
