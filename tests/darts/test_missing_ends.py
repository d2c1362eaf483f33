"""Values that are missing at the end of a series are steps of its forecast."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from darts import TimeSeries
from quiet import QUIET

from taylorformer_forecast.darts import ContiFormerModel, LAMModel, TaylorformerModel, TNPModel, UNNModel

GAP, N_STEPS = 6, 5
LENGTHS = 14, 12
TINY = {"d_model": 8, "n_epochs": 1}
MODELS = {
    "LAM": lambda **options: make(LAMModel, **TINY, **options),
    "UNN": lambda **options: make(UNNModel, n_heads=2, **TINY, **options),
    "TNP": lambda **options: make(TNPModel, n_heads=2, **TINY, **options),
    "ContiFormer": lambda **options: make(ContiFormerModel, n_heads=2, **TINY, **options),
    **{
        name: lambda name=name, **options: make(TaylorformerModel, strategy=name, **TINY, **options)
        for name in ("pretrained", "train", "zero_shot", "averaged")
    },
}


def make(model_class, **options):
    return model_class(*LENGTHS, random_state=0, pl_trainer_kwargs=QUIET, **options)


def daily(values):
    times = pd.date_range("2022-01-01", periods=len(values))
    return TimeSeries.from_times_and_values(times, np.asarray(values, dtype="float32"))


def without_end(series, *gaps):
    """A series whose components, or some of them, are missing the last values."""
    values = series.values().copy()
    for column, gap in enumerate(gaps):
        values[len(values) - gap :, column] = np.nan
    return series.with_values(values)


@pytest.fixture(scope="module")
def growing():
    """Two growing components with a week."""
    t, rng = np.arange(120), np.random.default_rng(0)
    y = 50 + 0.5 * t + 5 * np.sin(2 * np.pi * t / 7) + rng.normal(0, 1, 120)
    return daily(np.stack([y, 3 * y[::-1] + rng.normal(0, 2, 120)], 1))


@pytest.fixture(scope="module")
def flag():
    """Noise that is known ahead."""
    return daily(np.random.default_rng(1).normal(size=160))


def forecast(model, n, **options):
    return model.predict(n, num_samples=5, random_state=0, **options).all_values()[-N_STEPS:]


def parameters(model, n, series):
    return model.predict(n, series=series, predict_likelihood_parameters=True).values()[-N_STEPS:]


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("gap", [GAP, 10])  # the second ends beyond the output chunk
def test_missing_values_at_the_end_are_steps_of_the_forecast(name, gap, growing):
    """The network took them for steps that had not passed: growth of the gap was not in the forecast."""
    series = growing[growing.components[0]]
    model = MODELS[name]().fit(series)
    late = forecast(model, N_STEPS, series=without_end(series, gap))
    known = forecast(model, gap + N_STEPS, series=series[:-gap])
    np.testing.assert_allclose(late, known, rtol=1e-4)


@pytest.mark.parametrize("name", ["LAM", "pretrained", "train"])
def test_every_component_and_series_is_forecast_from_its_own_last_value(name, growing):
    model = MODELS[name]().fit(growing)
    some = [growing, without_end(growing, 3, 7), without_end(growing, 0, 2)]
    found = model.predict(N_STEPS, series=some, predict_likelihood_parameters=True)
    for series, one in zip(some, found, strict=True):
        width = one.n_components // 2
        for column, missing in enumerate(np.isnan(series.values()).sum(0)):
            alone = parameters(model, int(missing) + N_STEPS, growing[: len(growing) - missing])
            location = column * width
            np.testing.assert_allclose(one.values()[:, location], alone[:, location], rtol=0.005)


def test_columns_that_share_a_window_are_forecast_from_the_last_value_of_any(growing):
    model = MODELS["UNN"]().fit(growing)
    late = forecast(model, N_STEPS, series=without_end(growing, 4, 7))
    known = forecast(model, 4 + N_STEPS, series=without_end(growing[:-4], 0, 3))
    np.testing.assert_allclose(late, known, rtol=1e-4)


@pytest.mark.parametrize("shift", [0, 2])
@pytest.mark.parametrize("name", ["LAM", "UNN", "train", "pretrained"])
def test_future_covariates_of_missing_values_are_known(name, shift, growing, flag):
    series = growing + 3 * np.asarray(flag.values()[: len(growing)])[..., None]
    model = MODELS[name](output_chunk_shift=shift).fit(series, future_covariates=flag)
    late = forecast(model, N_STEPS, series=without_end(series, GAP, GAP), future_covariates=flag)
    known = forecast(model, GAP + N_STEPS, series=series[:-GAP], future_covariates=flag)
    np.testing.assert_allclose(late, known, rtol=1e-4)


def test_the_latest_past_covariates_are_seen_although_values_are_missing(growing, flag):
    model = MODELS["LAM"]().fit(growing, past_covariates=flag)
    late, now = without_end(growing, GAP, GAP), flag[: len(growing)]
    values = now.values().copy()
    values[-GAP:] += 9
    found = [forecast(model, N_STEPS, series=late, past_covariates=x) for x in (now, now.with_values(values))]
    assert np.abs(found[0] - found[1]).max() > 1e-3


def test_encoders_know_the_times_of_missing_values(growing):
    encoders = {"datetime_attribute": {"future": ["dayofweek"]}}
    model = MODELS["LAM"](add_encoders=encoders).fit(growing)
    late = forecast(model, N_STEPS, series=without_end(growing, GAP, GAP))
    np.testing.assert_allclose(late, forecast(model, GAP + N_STEPS, series=growing[:-GAP]), rtol=1e-4)


@pytest.mark.parametrize("kind", ["past_covariates", "future_covariates"])
def test_covariates_that_begin_with_the_input_chunk_are_enough(kind, growing, flag):
    model = MODELS["LAM"]().fit(growing, **{kind: flag})
    near = flag[len(growing) - LENGTHS[0] :]
    late = forecast(model, N_STEPS, series=without_end(growing, GAP, GAP), **{kind: near})
    assert np.isfinite(late).all()


@pytest.mark.parametrize("name", ["LAM", "pretrained"])
def test_a_backtest_through_a_gap_forecasts_from_before_it(name, growing):
    series = growing[growing.components[0]]
    values = series.values().copy()
    values[100:106] = np.nan
    gappy, model = series.with_values(values), MODELS[name]().fit(series)
    options = {"predict_likelihood_parameters": True, "retrain": False, "last_points_only": False}
    found = model.historical_forecasts(gappy, start=98, forecast_horizon=N_STEPS, **options)
    for end in (100, 103, 106):
        known = series[: min(end, 100)]
        alone = parameters(model, end - len(known) + N_STEPS, known)
        np.testing.assert_allclose(found[end - 98].values(), alone, rtol=0.02)


def test_a_shifted_forecast_that_cannot_reach_over_missing_values_says_so(growing):
    model = MODELS["LAM"](output_chunk_shift=2).fit(growing)
    with pytest.warns(UserWarning, match="as if 3 of them had not passed.*strip"):
        model.predict(N_STEPS, series=without_end(growing, 10, 0))
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        warnings.filterwarnings("ignore", message="'pin_memory'|Total length|.*LeafSpec")
        model.predict(N_STEPS, series=without_end(growing, 7, 0))


def test_without_a_value_in_the_input_chunk_there_is_no_forecast(growing):
    model = MODELS["LAM"]().fit(growing)
    found = model.predict(N_STEPS, series=without_end(growing, LENGTHS[0], LENGTHS[0] - 1)).values()
    assert np.isnan(found[:, 0]).all()
    assert np.isfinite(found[:, 1]).all()
