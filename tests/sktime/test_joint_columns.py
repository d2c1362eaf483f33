"""Columns of y that share windows: each is forecast from all of them, in its own unit, without its gaps."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from taylorformer_forecast.sktime import TaylorformerForecaster, TNPForecaster, UNNForecaster

FH = [1, 2, 3]


def tiny(forecaster=UNNForecaster, **params):
    small = {"context_length": 8, "d_model": 8, "n_heads": 2, "max_steps": 5, "num_samples": 20}
    return forecaster(**{**small, "random_state": 0, **params})


@pytest.fixture
def y():
    """Return three noisy seasons of very different size."""
    t = np.arange(48.0)
    noise = np.random.default_rng(0).normal(size=(48, 3))
    values = np.sin(2 * np.pi * (t[:, None] / 12 + [0, 0.2, 0.5])) + 0.3 * noise
    index = pd.period_range("2000-01", periods=48, freq="M")
    return pd.DataFrame(values * [1.0, 100.0, 1e-3] + [0.0, 1e4, 5.0], index, columns=["a", "b", "c"])


@pytest.mark.parametrize(
    ("forecaster", "joint"), [(UNNForecaster, True), (TNPForecaster, False), (TaylorformerForecaster, False)]
)
def test_the_past_of_one_column_reaches_the_forecasts_of_others_only_where_they_are_joined(
    y, forecaster, joint
):
    fitted = tiny(forecaster).fit(y)
    before = fitted.predict(fh=FH)
    new = y.iloc[-1:].copy()
    new.index = y.index[-1:] + 1
    other = new.copy()
    other["b"] += 50.0
    first, second = (tiny(forecaster).fit(y).update(v, update_params=False).predict(FH) for v in (new, other))
    assert before.shape == (3, 3)
    assert (first["b"] != second["b"]).all()
    assert (first["a"] != second["a"]).all() == joint
    assert (first["c"] != second["c"]).all() == joint


def test_every_column_has_its_own_unit(y):
    moved = y * [10.0, 0.1, 1e6] + [5.0, 0.0, -7.0]
    forecast = tiny().fit(y).predict_quantiles(fh=FH, alpha=[0.1, 0.9]).to_numpy().reshape(3, 3, 2)
    expected = forecast * [[10.0], [0.1], [1e6]] + [[5.0], [0.0], [-7.0]]
    actual = tiny().fit(moved).predict_quantiles(fh=FH, alpha=[0.1, 0.9]).to_numpy().reshape(3, 3, 2)
    np.testing.assert_allclose(actual, expected, rtol=1e-4)


def test_a_missing_value_is_as_good_as_one_that_was_never_there(y):
    fitted = tiny().fit(y)
    late = y.iloc[-1:].set_axis(y.index[-1:] + 1)
    late.loc[:, "b"] = np.nan
    later = y.iloc[-1:].set_axis(y.index[-1:] + 2)
    fitted.update(late, update_params=False).update(later, update_params=False)
    series = fitted._series()
    assert len(series) == 1
    assert np.isnan(series[0].y).sum() == 1
    assert np.isfinite(fitted.predict_quantiles(fh=FH, alpha=[0.1, 0.9])).all(axis=None)


def test_times_without_any_observation_are_dropped(y):
    holes = y.copy()
    holes.iloc[20:24] = np.nan
    holes.iloc[30, 1] = np.nan
    series = tiny().fit(holes)._series()[0]
    assert len(series.t) == 44
    assert np.isnan(series.y).sum() == 1


def test_a_column_that_ended_early_is_forecast_from_the_others(y):
    ended = y.copy()
    ended.iloc[-20:, 0] = np.nan  # none of its values is in the context
    forecast = tiny().fit(ended).predict_interval(fh=FH, coverage=0.9)
    assert np.isfinite(forecast).all(axis=None)
    past = tiny().fit(ended).predict(fh=[-2, -1, 0])
    assert np.isfinite(past).all(axis=None)


def test_paths_are_joint_over_columns():
    shared, own = np.random.default_rng(1).normal(size=(2, 300))
    y = pd.DataFrame({"a": shared, "b": 7.0 - 2.0 * (shared + 0.2 * own)})  # nothing follows from the past
    fitted = UNNForecaster(
        context_length=12, max_steps=150, n_layers=1, num_samples=300, seasonal_periods=None, random_state=0
    ).fit(y, fh=[1, 2])
    paths = fitted._predictive(fitted._check_fh([1, 2]), None)[1].paths  # (S, 2, 2)
    for step in (0, 1):
        assert np.corrcoef(paths[:, step].T)[0, 1] < -0.7
    assert abs(np.corrcoef(paths[:, 0, 0], paths[:, 1, 1])[0, 1]) < 0.3


def test_a_column_that_leads_another_tells_what_it_will_do():
    rng = np.random.default_rng(0)
    leader = rng.normal(size=303)
    for t in range(1, 303):
        leader[t] += 0.5 * leader[t - 1]
    y = pd.DataFrame({"a": leader[3:], "b": 5 + 3 * leader[:-3] + 0.3 * rng.normal(size=300)})
    forecaster = UNNForecaster(
        context_length=16, max_steps=250, num_samples=50, seasonal_periods=None, random_state=0
    ).fit(y.iloc[:240], fh=FH)
    errors = []
    for origin in range(240, 297, 3):
        truth = y["b"].iloc[origin : origin + 3]
        errors.append(forecaster.predict(fh=FH)["b"] - truth)
        forecaster.update(y.iloc[origin : origin + 3], update_params=False)
    # From its own past, at best the deviation of b three steps ahead is 3; its noise is 0.3.
    assert np.sqrt(np.mean(np.square(errors))) < 1.0


def test_instances_of_a_panel_are_windows_of_their_own(y):
    panel = pd.concat({"one": y, "two": y * 3.0 + 1.0}, names=["instance", "time"])
    fitted = tiny().fit(panel)
    assert len(fitted._series()) == 2
    assert fitted.network_.n_series == 3
    forecast = fitted.predict(fh=FH)
    np.testing.assert_allclose(forecast.loc["two"], forecast.loc["one"] * 3.0 + 1.0, rtol=0.2)


@pytest.mark.parametrize("indicator", [True, False])
def test_the_indicator_reaches_the_network(y, indicator):
    assert tiny(history_indicator=indicator).fit(y).network_.history_indicator is indicator


@pytest.mark.parametrize("minutes", [10, 30])
def test_instances_may_lie_between_the_steps_of_others(minutes):
    """From the last stamp but one there was no step ahead."""
    hours = pd.date_range("2024-01-01", periods=80, freq="h")
    rng = np.random.default_rng(0)
    parts = {
        name: pd.DataFrame({"y": rng.normal(size=80)}, hours + pd.Timedelta(minutes=shift))
        for name, shift in (("a", 0), ("b", minutes))
    }
    y = pd.concat(parts, names=["place", "hour"])
    forecaster = TaylorformerForecaster(
        strategy="train", joint=True, d_model=4, n_heads=1, max_steps=2, num_samples=5, random_state=0
    )
    assert np.isfinite(forecaster.fit(y, fh=[1, 2]).predict()).all(axis=None)
