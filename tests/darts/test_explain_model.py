"""What a forecast of a darts model owes to baseline, network, covariates and past values."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from all_models import models
from darts import TimeSeries
from darts.utils.likelihood_models.torch import PoissonLikelihood
from quiet import QUIET
from torch.nn import MSELoss

from taylorformer_forecast.darts import LAMModel, TaylorformerModel
from taylorformer_forecast.sktime import TaylorformerForecaster


def model_of(cls, **params):
    usual = {"n_epochs": 1, "random_state": 0, "pl_trainer_kwargs": {**QUIET, "max_steps": 5}}
    return cls(24, 6, **{**usual, **params})


def values(parts, name):
    return parts[name].values()


@pytest.mark.parametrize("strategy", ["baseline", "corrected", "pretrained", "train"])
def test_baseline_and_network_add_up_to_the_mean_of_the_paths(series, strategy):
    model = model_of(TaylorformerModel, strategy=strategy).fit(series)
    before = model.predict(6, num_samples=50, random_state=3)
    parts = model.explain(6, num_samples=50, random_state=3)
    np.testing.assert_allclose(values(parts, "forecast"), before.mean(axis=2).values())
    total = values(parts, "baseline") + values(parts, "network")
    np.testing.assert_allclose(total, values(parts, "forecast"), rtol=1e-5)
    nothing = strategy == "baseline" or (strategy == "pretrained" and model.summary().weight == 0)
    assert (values(parts, "network") == 0).all() == nothing
    assert model.predict(6, num_samples=50, random_state=3) == before


@pytest.mark.parametrize("cls", models())
def test_the_network_is_what_its_weight_of_zero_takes_away(series, cls):
    strategy = {"strategy": "train"} if cls is TaylorformerModel else {}
    model = model_of(cls, **strategy).fit(series)
    parts = model.explain(2, num_samples=20)
    assert (np.abs(values(parts, "network")) > 1e-6).all()
    model.model.net.calibration.set(weight=0.0)
    alone = model.predict(2, num_samples=20, random_state=0).mean(axis=2)
    np.testing.assert_array_equal(values(parts, "baseline"), alone.values())


def test_a_covariate_counts_as_much_as_it_changes_the_forecast():
    rng = np.random.default_rng(1)
    times = pd.date_range("2024-01-01", periods=150, freq="D")
    used, unused = rng.normal(size=(2, 150)).astype("float32")
    past = TimeSeries.from_times_and_values(times, unused, columns=["unused"])
    future = TimeSeries.from_times_and_values(times, used, columns=["used"])
    y = TimeSeries.from_times_and_values(times[:144], 10 * used[:144])
    trainer = {**QUIET, "max_steps": 60}
    model = LAMModel(12, 6, n_epochs=20, lr=5e-3, random_state=0, pl_trainer_kwargs=trainer)
    model.fit(y, past_covariates=past, future_covariates=future)
    parts = model.explain(6, num_samples=20)  # with the covariates of the fit
    assert list(parts) == ["forecast", "baseline", "network", "past: unused", "future: used"]
    size = {name: np.abs(series.values()).mean() for name, series in parts.items()}
    assert size["future: used"] > 5 * size["past: unused"]
    assert np.corrcoef(values(parts, "future: used")[:, 0], used[144:])[0, 1] > 0.9
    still = future.with_values(np.full_like(future.values(), used.mean()))
    assert np.abs(values(model.explain(6, future_covariates=still), "future: used")).mean() < 1e-5


@pytest.mark.parametrize(
    "settings", [{"use_reversible_instance_norm": False}, {"likelihood": PoissonLikelihood()}]
)
def test_a_covariate_that_only_the_network_sees_is_explained_on_the_series_as_it_is(settings):
    rng = np.random.default_rng(1)
    times = pd.date_range("2024-01-01", periods=150, freq="D")
    x = rng.normal(size=150).astype("float32")
    y = TimeSeries.from_times_and_values(times[:144], np.round(20 + 5 * x[:144]))
    X = TimeSeries.from_times_and_values(times, x, columns=["x"])
    model = model_of(LAMModel, **settings).fit(y, future_covariates=X)
    still = X.with_values(np.full_like(X.values(), x.mean()))
    drawn = {"num_samples": 20, "random_state": 0}
    apart = [model.predict(6, future_covariates=one, **drawn).mean(axis=2).values() for one in (X, still)]
    found = values(model.explain(6, **drawn), "future: x")
    np.testing.assert_allclose(found, apart[0] - apart[1], atol=1e-5)


@pytest.mark.parametrize("strategy", ["corrected", "train"])
def test_what_a_covariate_adds_is_explained_alike_in_both_hosts(strategy):
    """Its effect is taken off the past as it was, and added to the forecast as it would be on average."""
    rng = np.random.default_rng(1)
    index = pd.period_range("2010-01", periods=126, freq="M")
    promo = (rng.random(126) < 0.3).astype(float)
    promo[114:] = np.r_[np.ones(6), np.zeros(6)]
    y = pd.Series(20 + 10 * promo + 0.3 * rng.normal(size=126), index)[:120]
    X = pd.DataFrame({"promo": promo}, index)
    forecaster = TaylorformerForecaster(strategy=strategy, max_steps=5, random_state=0)
    expected = forecaster.fit(y, X=X[:120], fh=[1, 2, 3]).explain(X=X[120:123])["X: promo"]
    times = index.to_timestamp()
    series = TimeSeries.from_times_and_values(times[:120], y.to_numpy())
    covariates = TimeSeries.from_times_and_values(times, promo, columns=["promo"])
    model = model_of(TaylorformerModel, strategy=strategy).fit(series, future_covariates=covariates)
    found = values(model.explain(3), "future: promo")[:, 0]
    np.testing.assert_allclose(found, expected, atol=0.4)
    np.testing.assert_allclose(found, -10 * promo[:120].mean(), atol=0.5)


def test_lags_are_left_out_block_by_block_in_every_component(series):
    two = series.stack(10 * series)
    model = model_of(TaylorformerModel).fit(two)
    parts = model.explain(3, lags=10)
    assert list(parts)[3:] == ["lags 1-10", "lags 11-20", "lags 21-24"]
    gappy = two.all_values()
    gappy[-20:-10] = np.nan
    left_out = model.predict(3, series=two.with_values(gappy), num_samples=100, random_state=0).mean(axis=2)
    expected = values(parts, "forecast") - left_out.values()
    np.testing.assert_allclose(values(parts, "lags 11-20"), expected)
    assert (expected != 0).any(axis=0).all()


def test_point_forecasts_are_explained_too(series):
    model = model_of(LAMModel, loss_fn=MSELoss()).fit(series)
    np.testing.assert_array_equal(
        values(model.explain(6), "forecast"), model.predict(6, random_state=0).values()
    )


def test_what_cannot_be_explained_is_refused(series):
    model = model_of(TaylorformerModel)
    with pytest.raises(ValueError, match="not been fitted"):
        model.explain(3)
    model.fit([series, series])
    with pytest.raises(ValueError, match="series must be one TimeSeries"):
        model.explain(3)
    with pytest.raises(ValueError, match=r"^lags=0, but it must be None or a whole number"):
        model.explain(3, series, lags=0)
