"""Outliers of series that darts models are trained on, and forecast from."""

from __future__ import annotations

import numpy as np
import pytest
from darts import TimeSeries
from quiet import QUIET

from taylorformer_forecast.darts import LAMModel, TaylorformerModel

N, AHEAD = 240, 6
MODELS = ["pretrained", "train", "averaged", "lam"]


def make(kind, **params):
    usual = {"n_epochs": 1, "d_model": 8, "random_state": 0, "pl_trainer_kwargs": QUIET} | params
    if kind == "lam":
        return LAMModel(24, AHEAD, **usual)
    return TaylorformerModel(24, AHEAD, strategy=kind, **usual)


def values(**changes):
    """Return a season of 12 steps with noise, some values multiplied; names are places from the end."""
    y = 10 + np.sin(np.arange(N) * np.pi / 6) + 0.1 * np.random.default_rng(0).normal(size=N)
    for place, factor in changes.items():
        y[-int(place[1:])] *= factor
    return TimeSeries.from_values(y.astype("float32"))


def medians(model, **options):
    return np.median(model.predict(AHEAD, num_samples=200, random_state=0, **options).all_values(), 2)[:, 0]


@pytest.fixture(scope="module")
def fitted():
    return {kind: make(kind).fit(values()) for kind in MODELS}


@pytest.mark.parametrize("changes", [{"p1": 0.0}, {"p2": 50.0}, {"p8": 1000.0}])
@pytest.mark.parametrize("kind", MODELS)
def test_one_wrong_value_of_the_input_chunk_does_not_carry_forecasts_away(fitted, kind, changes):
    clean, wrong = (medians(fitted[kind], series=y) for y in (values(), values(**changes)))
    np.testing.assert_allclose(wrong, clean, atol=1.5)


@pytest.mark.parametrize("kind", MODELS)
def test_one_wrong_value_of_the_training_series_leaves_the_fit_alone(fitted, kind):
    model = make(kind).fit(values(p100=1000.0))
    np.testing.assert_allclose(medians(model, series=values()), medians(fitted[kind]), atol=0.5)
    np.testing.assert_allclose(model._floor, fitted[kind]._floor, rtol=0.05)


@pytest.mark.parametrize("kind", ["pretrained", "lam"])
def test_backtests_take_outliers_for_what_they_are_at_their_origins(fitted, kind):
    """An outlier is the last value at one origin, the last but one at the next, and is known later."""
    y = values(p30=0.0)
    backtest = fitted[kind].historical_forecasts(
        y,
        start=N - 31,
        start_format="position",
        forecast_horizon=1,
        retrain=False,
        predict_likelihood_parameters=True,
    )
    for one in backtest[:6]:
        until = y.get_index_at_point(one.start_time())
        alone = fitted[kind].predict(1, series=y[:until], predict_likelihood_parameters=True)
        np.testing.assert_allclose(one.values(), alone.values(), rtol=1e-4)


def test_a_network_that_sees_covariates_sees_what_they_explain():
    """Peaks of a value of a covariate are not taken for outliers."""
    x = np.zeros((N + AHEAD, 1), dtype="float32")
    x[[50, 110, 170]] = 1.0
    model = make("train").fit(values(), past_covariates=TimeSeries.from_values(x))
    assert model._outlier_seasons is None
    assert model.model.outlier_seasons is None


def test_units_of_covariates_are_those_of_the_training_series():
    """Not those of the series for validation."""
    x = TimeSeries.from_values(np.random.default_rng(0).normal(size=(N, 1)).astype("float32"))
    options = {"val_series": values(), "val_past_covariates": 100 * x, "past_covariates": x}
    assert make("train").fit(values(), **options)._units["past"][0][1] < 2


def test_saved_models_tell_outliers_as_before(fitted, tmp_path):
    fitted["pretrained"].save(str(tmp_path / "model.pt"))
    loaded = TaylorformerModel.load(str(tmp_path / "model.pt"))
    wrong = values(p1=0.0)
    np.testing.assert_allclose(medians(loaded, series=wrong), medians(fitted["pretrained"], series=wrong))
