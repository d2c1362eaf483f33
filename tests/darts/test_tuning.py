"""Searches for training parameters, loading of weights, and backtests leave a darts model as it was."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch
from darts import TimeSeries
from darts.utils.likelihood_models.torch import QuantileRegression
from quiet import QUIET

from taylorformer_forecast.darts import LAMModel, TaylorformerModel, TNPModel, UNNModel

KINDS = {
    "corrected": (TaylorformerModel, {"strategy": "corrected"}),
    "pretrained": (TaylorformerModel, {"strategy": "pretrained"}),
    "train": (TaylorformerModel, {"strategy": "train"}),
    "LAM": (LAMModel, {}),
}


def make(kind="LAM", **options):
    model_class, own = KINDS[kind]
    small = {"d_model": 8, "n_heads": 2, "n_epochs": 1, "random_state": 0, "pl_trainer_kwargs": QUIET}
    return model_class(14, 7, **small | own | options)


def from_values(values, start="2021-01-01"):
    return TimeSeries.from_times_and_values(pd.date_range(start, periods=len(values)), np.asarray(values))


def season(n=100, period=7, seed=0):
    noise = np.random.default_rng(seed).normal(size=n)
    return from_values(10 + 3 * np.sin(2 * np.pi * np.arange(n) / period) + 0.3 * noise)


@pytest.mark.parametrize("kind", KINDS)
def test_a_search_for_a_learning_rate_leaves_what_was_fitted(kind, tmp_path):
    model = make(kind).fit(season())
    before = model.predict(9, num_samples=3, random_state=1)
    model.lr_find(season(period=5, seed=1), num_training=5)
    assert model.predict(9, num_samples=3, random_state=1) == before
    model.save(str(tmp_path / "m.pt"))
    assert type(model).load(str(tmp_path / "m.pt")).predict(9, num_samples=3, random_state=1) == before


def test_a_search_for_a_learning_rate_tries_all_though_losses_are_negative():
    """Lightning stopped after two: no loss is below four times a negative one."""
    y = TimeSeries.from_values(season(500).values() * 1e-3)
    found = make("LAM", use_reversible_instance_norm=False).lr_find(y, num_training=12)
    assert found.results["loss"][0] < 0
    assert len(found.results["lr"]) == 12


@pytest.mark.parametrize("kind", ["train", "LAM"])
def test_a_search_before_the_fit_leaves_no_units(kind):
    y, x = season(200), from_values(np.random.default_rng(0).normal(size=300))
    fresh = make(kind).fit(y, future_covariates=x)
    model = make(kind)
    model.lr_find(season(400, period=30)[:300], future_covariates=x * 1000, num_training=5)
    model.fit(y, future_covariates=x)
    torch.testing.assert_close(model.model.future_units, fresh.model.future_units, rtol=0, atol=0)


def test_the_batch_size_that_was_found_is_kept():
    model = make().fit(season())
    before = model.predict(7, num_samples=3, random_state=1)
    found = model.scale_batch_size(season(), max_trials=2)
    assert model.batch_size == found
    assert model.predict(7, num_samples=3, random_state=1) == before


def test_a_batch_size_that_was_found_holds_for_many_columns():
    """A size of 32, as if none had been written, became that of so many columns."""
    y = TimeSeries.from_values(np.random.default_rng(0).normal(size=(60, 20)))
    options = {"accelerator": "cpu", "enable_progress_bar": False}
    model = UNNModel(4, 2, d_model=4, n_heads=2, n_epochs=1, pl_trainer_kwargs=options)
    assert model.scale_batch_size(y, init_val=2, max_trials=5) == model.fit(y).batch_size


@pytest.mark.parametrize("kind", ["corrected", "train", "LAM"])
def test_weights_that_are_refused_change_nothing(kind, tmp_path):
    other = make(kind, d_model=16) if kind != "corrected" else make("train")
    months = TimeSeries.from_times_and_values(
        pd.date_range("2001", periods=100, freq="MS"), season(period=12).values()
    )
    other.fit(months).save(str(tmp_path / "m.pt"))
    model = make(kind).fit(season())
    before = model.predict(9, num_samples=3, random_state=1)
    with pytest.raises(ValueError):  # noqa: PT011
        model.load_weights(str(tmp_path / "m.pt"))
    assert model.predict(9, num_samples=3, random_state=1) == before


@pytest.mark.parametrize("strategy", ["baseline", "corrected"])
def test_a_backtest_with_a_training_length_sees_no_more(strategy):
    values = np.where(np.arange(100) < 60, 1e3, 10.0) + season().values()[:, 0]
    y = from_values(values)
    model = make("corrected", strategy=strategy)
    options = {"start": 95, "stride": 10, "forecast_horizon": 5, "last_points_only": False, "num_samples": 99}
    found = model.historical_forecasts(y, retrain=True, train_length=30, **options)[0]
    alone = model.untrained_model().fit(y[65:95]).predict(5, num_samples=99)
    assert found.std().values().max() < 2 * alone.std().values().max()
    assert abs(found.mean().values() - alone.mean().values()).max() < alone.std().values().max()
    assert model.historical_forecasts(y, retrain=True, **options)[0].std().values().min() > 3.0


@pytest.mark.parametrize("strategy", ["auto", "corrected"])
def test_every_fit_of_a_backtest_sees_as_many_values_whatever_the_last_one_chose(strategy, monkeypatch):
    seen, fit = [], TaylorformerModel.fit

    def spy(self, *args, **kwargs):
        fitted = fit(self, *args, **kwargs)
        seen.append(len(fitted.training_series))
        return fitted

    monkeypatch.setattr(TaylorformerModel, "fit", spy)
    options = {"start": -2, "start_format": "position", "forecast_horizon": 2, "num_samples": 9}
    model = make("corrected", strategy=strategy)
    both = model.historical_forecasts([season(), season()], retrain=True, train_length=30, **options)
    assert set(seen) == {30}
    assert both[0] == both[1]


@pytest.mark.parametrize("strategy", ["corrected", "zero_shot"])
def test_what_comes_before_the_series_of_the_fit_is_seen_outside_of_a_backtest(strategy):
    values = season().values()[:, 0] * np.where(np.arange(100) < 60, 0.3, 1.0)
    model = make("corrected", strategy=strategy).fit(from_values(values)[60:])
    draws = {"num_samples": 99, "random_state": 1}
    found = model.predict(7, series=from_values(values), **draws)
    if strategy == "corrected":
        again = make("corrected", strategy=strategy).fit(season())
        assert found == again.predict(7, series=from_values(values), **draws)
    assert found != model.predict(7, series=from_values(values)[60:], **draws)
    backtest = {"start": 93, "forecast_horizon": 7, "retrain": False, "last_points_only": False, **draws}
    fast, slow = (
        model.historical_forecasts(from_values(values), enable_optimization=fast, **backtest)[0]
        for fast in (True, False)
    )
    np.testing.assert_allclose(fast.all_values(), slow.all_values(), rtol=1e-6)


def test_missing_covariates_of_a_forecast_are_refused_where_training_had_none():
    y, x = season(60), np.arange(80) % 3 / 2
    given = {"past_covariates": from_values(x), "future_covariates": from_values(x)}
    model = make().fit(y, **given)
    holes = from_values(np.where(np.arange(80) == 62, np.nan, x))
    for name in given:
        with pytest.raises(ValueError, match=f"{name} has missing values in component number 0"):
            model.predict(12, **{**given, name: holes})


@pytest.mark.parametrize("strategy", ["corrected", "pretrained"])
def test_the_best_of_no_epochs_is_what_was_fitted(strategy, tmp_path):
    files = {"save_checkpoints": True, "work_dir": str(tmp_path), "model_name": "m", "force_reset": True}
    quiet = {**QUIET, "enable_checkpointing": True}
    model = make("corrected", strategy=strategy, pl_trainer_kwargs=quiet, **files)
    with pytest.warns(UserWarning, match="saves nothing"):
        model.fit(season(), val_series=season(), load_best=True)
    assert np.isfinite(model.predict(7).values()).all()


def test_weights_with_gaps_are_refused_as_such():
    weights = np.ones(100)
    weights[50] = np.nan
    with pytest.raises(ValueError, match="sample_weight has missing values"):
        make().fit(season(), sample_weight=from_values(weights))


def test_a_second_fit_refuses_a_series_without_values_too():
    model = make().fit(season())
    with pytest.raises(ValueError, match="the target series has no observed value"):
        model.fit(from_values(np.full(100, np.nan)))


@pytest.mark.parametrize("model_class", [TNPModel, UNNModel])
def test_quantiles_do_not_depend_on_units(model_class):
    def forecast(units):
        options = {"d_model": 8, "n_heads": 2, "n_epochs": 3, "random_state": 0}
        likelihood = QuantileRegression([0.1, 0.5, 0.9])
        model = model_class(14, 7, likelihood=likelihood, pl_trainer_kwargs=QUIET, **options)
        y = season().stack(season(seed=1).with_columns_renamed("0", "1"))
        model.fit(y.with_values(y.values() * units))
        return model.predict(7, predict_likelihood_parameters=True).values().reshape(7, 2, 3) / units[:, None]

    plain = forecast(np.array([1.0, 1.0]))
    for units in ([1e-7, 1e-7], [1e4, 1.0]):
        np.testing.assert_allclose(forecast(np.array(units)), plain, rtol=1e-3)
