"""What forecasts of the darts models are worth: joint, calibrated, equal to those of sktime."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from darts import TimeSeries
from darts.metrics import mae
from darts.models import NaiveSeasonal
from darts.utils.data.torch_datasets.utils import TorchInferenceBatch
from darts.utils.likelihood_models.torch import GaussianLikelihood
from pytorch_lightning.callbacks import Callback, EarlyStopping
from quiet import QUIET
from sktime.datasets import load_airline

from taylorformer_forecast.darts import ContiFormerModel, LAMModel, TaylorformerModel, TNPModel, UNNModel
from taylorformer_forecast.darts._state import evaluating
from taylorformer_forecast.darts.tnp import TNPModule
from taylorformer_forecast.sktime import TaylorformerForecaster


def make(model_class, *lengths, **params):
    if model_class is TaylorformerModel:
        params = {"strategy": "train", **params}  # however short the series
    return model_class(*lengths, **{"random_state": 0, "pl_trainer_kwargs": QUIET, **params})


def from_values(values):
    return TimeSeries.from_values(np.asarray(values, dtype="float32"))


def test_paths_of_a_random_walk_are_joint():
    walk = np.random.default_rng(0).normal(size=3000).cumsum()
    model = make(TaylorformerModel, 24, 12).fit(from_values(walk))
    paths = model.predict(12, num_samples=1000).all_values()[:, 0]
    # Long, as a network that sees a few hundred steps of a walk takes its turns for returns to a mean.
    # The correlation of a random walk's steps 6 and 12 is the square root of a half.
    assert np.corrcoef(paths[5], paths[11])[0, 1] == pytest.approx(0.71, abs=0.1)


def test_paths_of_components_that_share_a_window_are_joint():
    shared, own = np.random.default_rng(1).normal(size=(2, 300))
    both = from_values(np.stack([shared, 7.0 - 2.0 * (shared + 0.2 * own)], 1))
    model = make(UNNModel, 12, 4, n_layers=1, n_epochs=15, seasonal_periods=None).fit(both)
    paths = model.predict(6, num_samples=300).all_values()  # beyond the chunk, too
    for step in (0, 5):
        assert np.corrcoef(paths[step])[0, 1] < -0.7
    assert abs(np.corrcoef(paths[0, 0], paths[1, 1])[0, 1]) < 0.3


@pytest.mark.parametrize(
    ("model_class", "joint"), [(UNNModel, True), (TNPModel, False), (TaylorformerModel, False)]
)
def test_the_past_of_a_component_reaches_others_only_where_they_share_a_window(model_class, joint):
    values = np.random.default_rng(0).normal(size=(40, 2))
    model = make(model_class, 8, 4, n_epochs=1, d_model=8, n_heads=2).fit(from_values(values))
    other = values.copy()
    other[-1, 0] += 1.0
    first, second = (
        model.predict(4, series=from_values(v), num_samples=2, random_state=0).all_values()
        for v in (values, other)
    )
    assert (first[:, 0] != second[:, 0]).all()
    assert (first[:, 1] != second[:, 1]).all() == joint


@pytest.mark.parametrize("model_class", [TaylorformerModel, LAMModel, ContiFormerModel])
@pytest.mark.parametrize("likelihood", [None, GaussianLikelihood()], ids=["default", "Gaussian"])
def test_instance_normalisation_leaves_the_parameters_of_a_likelihood_intact(model_class, likelihood):
    noise = from_values(100.0 + np.random.default_rng(0).normal(size=2000))
    model = make(model_class, 64, 6, d_model=16, n_heads=2, n_epochs=2, likelihood=likelihood).fit(noise)
    parameters = model.historical_forecasts(
        noise,
        start=1500,
        stride=20,
        forecast_horizon=1,
        retrain=False,
        predict_likelihood_parameters=True,
        verbose=False,
    ).values()
    deviation = parameters[:, 1]
    if likelihood is None:
        deviation = deviation * np.sqrt(parameters[:, 2] / (parameters[:, 2] - 2))
    assert parameters[:, 0].mean() == pytest.approx(100.0, abs=0.2)
    assert 0.9 < deviation.mean() < 1.1


@pytest.mark.parametrize(("model_class", "part"), [(TaylorformerModel, 0.75), (LAMModel, 0.5)])
def test_what_a_network_alone_learns_of_covariates_is_taken_whole(model_class, part):
    values = np.sin(2 * np.pi * np.arange(120) / 12)  # a season, whose phases are no covariates of the user
    series, covariate = from_values(values), from_values(np.random.default_rng(0).normal(size=140))

    def weight(given, **params):
        return make(model_class, 24, 6, **params).fit(series, **given).model.net.calibration.weight

    assert weight({}, seasonal_periods="auto") == part
    assert weight({"future_covariates": covariate}, seasonal_periods=12) == part  # what they add is taken off
    assert weight({"past_covariates": covariate}) == 1.0


@pytest.mark.parametrize("ending", ["epochs", "no epoch", "validation", "stopped early", "out of time"])
def test_the_inflation_is_set_once_after_every_training(ending, monkeypatch):
    calls = []
    monkeypatch.setattr(
        "taylorformer_forecast.darts._module.inflate_by_paths", lambda net, w: calls.append(net.training)
    )
    series = from_values(np.sin(np.arange(80) / 2) + np.random.default_rng(0).normal(size=80))
    trainer = dict(QUIET)
    if ending == "stopped early":
        trainer["callbacks"] = [EarlyStopping("train_loss", min_delta=1e9, patience=1, strict=False)]
    elif ending == "out of time":
        trainer["max_time"] = {"seconds": 0.1}
    model = make(
        TaylorformerModel, 24, 6, n_epochs=0 if ending == "no epoch" else 40, pl_trainer_kwargs=trainer
    )
    for number in (1, 2):
        if ending == "epochs":
            model.fit(series, epochs=2)
        else:
            model.fit(series, val_series=series if ending == "validation" else None)
        assert calls == [False] * number * (ending != "no epoch")


@pytest.fixture(scope="module")
def airline():
    y = load_airline()
    return TimeSeries.from_times_and_values(y.index.to_timestamp(), y.to_numpy(dtype="float32"))


@pytest.mark.parametrize("model_class", [TaylorformerModel, LAMModel, ContiFormerModel])
def test_with_a_fifth_missing_airline_is_forecast_better_than_by_the_last_season(model_class, airline):
    past, truth = airline[:-12], airline[-12:]
    values = past.values().copy()
    values[np.random.default_rng(0).random(len(past)) < 0.2] = np.nan
    forecast = make(model_class, 36, 12).fit(past.with_values(values)).predict(12, num_samples=200)
    assert np.isfinite(forecast.all_values()).all()
    naive = NaiveSeasonal(12).fit(past).predict(12)  # which sees all of the past
    assert mae(truth, forecast.quantile(0.5)) < mae(truth, naive)


def test_the_same_weights_give_the_same_paths_in_sktime_and_darts():
    values = np.random.default_rng(0).normal(size=80).cumsum() * 3.0 + 50.0
    same = {"time_features": None, "seasonal_periods": None, "d_model": 8, "n_heads": 2, "random_state": 0}
    same["strategy"] = "train"
    forecaster = TaylorformerForecaster(context_length=24, max_steps=5, num_samples=7, **same)
    forecaster.fit(pd.Series(values), fh=range(1, 9))
    model = TaylorformerModel(24, 8, n_epochs=1, pl_trainer_kwargs=QUIET, **same).fit(from_values(values))
    module = model.model
    module.net.load_state_dict(forecaster.network_.state_dict())
    _, expected = forecaster._predictive(forecaster._check_fh(range(1, 18)), None)

    batch = TorchInferenceBatch(past_target=torch.tensor(values[-24:], dtype=torch.float32)[None, :, None])
    module.pred_mc_dropout = False
    module.eval()
    torch.manual_seed(forecaster._seed)
    found = module.sample(batch, 17, n_paths=7, roll_size=8)
    np.testing.assert_allclose(found.paths[0, :, :, 0], expected.paths[:, :, 0], rtol=1e-4)
    mixture = expected.mixture
    known = {"loc": mixture.loc, "scale": mixture.scale, **mixture.shape}
    assert "df" in known
    for name, values in known.items():
        ours = found.conditionals.tensors()[name][0, :, :, 0, 0].T
        np.testing.assert_allclose(ours, values[:, 0], rtol=1e-3)


def test_parameters_of_later_steps_are_those_of_the_marginals(airline):
    model = make(TaylorformerModel, 24, 12, likelihood=GaussianLikelihood()).fit(airline)
    parameters = model.predict(12, predict_likelihood_parameters=True, random_state=0).values()
    paths = model.predict(12, num_samples=2000, random_state=1).all_values()[:, 0]
    np.testing.assert_allclose(parameters[:, 0], paths.mean(1), rtol=0.05)
    np.testing.assert_allclose(parameters[:, 1], paths.std(1), rtol=0.3)


@pytest.mark.parametrize("model_class", [TaylorformerModel, TNPModel, UNNModel])
def test_parameters_are_the_same_at_every_call(model_class, airline):
    model = make(model_class, 24, 6, n_epochs=1, likelihood=GaussianLikelihood()).fit(airline)
    state = torch.get_rng_state()
    first, second = (model.predict(6, predict_likelihood_parameters=True) for _ in range(2))
    np.testing.assert_array_equal(first.values(), second.values())
    samples = [model.predict(6, num_samples=20).all_values() for _ in range(2)]
    assert (samples[0] != samples[1]).any()
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize(("model_class", "most"), [(TaylorformerModel, 150), (LAMModel, 400)])
def test_the_default_training_of_a_long_series_ends_after_some_steps_and_is_finished(
    model_class, most, monkeypatch
):
    steps, finished = [], []

    class Counter(Callback):
        def on_train_batch_end(self, trainer, *args):
            steps.append(trainer.global_step)

    monkeypatch.setattr(
        "taylorformer_forecast.darts._module.inflate_by_paths", lambda net, w: finished.append(len(steps))
    )
    long = from_values(np.random.default_rng(0).normal(size=10_000))
    trainer = {**QUIET, "callbacks": [Counter()]}
    model = make(model_class, 12, 4, d_model=8, n_heads=2, batch_size=16, pl_trainer_kwargs=trainer).fit(long)
    assert steps == list(range(1, most + 1))  # of 623 in one pass
    assert finished == [most]
    assert model.summary().steps == most
    assert model.trainer.optimizers[0].param_groups[0]["lr"] < 1e-4  # the schedule has come to its end
    assert np.isfinite(model.predict(4).values()).all()


def test_steps_that_are_asked_for_are_taken():
    series = from_values(np.random.default_rng(0).normal(size=200))
    small = {"d_model": 8, "n_heads": 2, "batch_size": 16}
    asked = make(TaylorformerModel, 12, 4, pl_trainer_kwargs={**QUIET, "max_steps": 5}, **small).fit(series)
    assert asked.summary().steps == 5
    passes = make(TaylorformerModel, 12, 4, n_epochs=2, **small).fit(series)
    assert passes.summary().steps == 2 * 12
    once = make(TaylorformerModel, 12, 4, **small).fit(series, epochs=1)
    assert once.summary().steps == 12
    for most, steps in ({"max_epochs": 2}, 2 * 12), ({"max_epochs": -1, "max_steps": 5}, 5):
        bounded = make(TaylorformerModel, 12, 4, n_epochs=3, pl_trainer_kwargs={**QUIET, **most}, **small)
        assert bounded.fit(series).summary().steps == steps


@pytest.mark.parametrize("validated", [False, True])
def test_a_pass_that_would_take_too_many_steps_is_not_left_out(validated, monkeypatch):
    """Whole passes made 27 steps of 40, where sktime takes all."""
    monkeypatch.setattr(TNPModule, "spec", replace(TNPModule.spec, max_steps=40))
    y = from_values(np.random.default_rng(0).normal(size=42))
    val = {"val_series": y} if validated else {}
    model = make(TNPModel, 12, 4, d_model=8, n_heads=2, batch_size=1).fit(y, **val)
    assert model.summary().steps == 40  # 27 in a pass
    assert model.fit(y, **val).summary().steps == 40
    assert make(TNPModel, 12, 4, d_model=8, n_epochs=2, batch_size=1).fit(y, **val).summary().steps == 2 * 27


def test_steps_of_many_components_have_fewer_windows_unless_asked_for(monkeypatch):
    y = from_values(np.random.default_rng(0).normal(size=(40, 20)))
    small = {"d_model": 8, "n_heads": 2, "n_epochs": 1}
    assert make(UNNModel, 4, 2, **small).fit(y).batch_size == 8
    assert make(UNNModel, 4, 2, **small).fit(y[list(y.components[:10])]).batch_size == 32
    monkeypatch.setattr("taylorformer_forecast.engine.lengths.PAIRS_AT_ONCE", 1000)
    asked = "20 columns, with input_chunk_length=4, output_chunk_length=2, batch_size=20"
    with pytest.warns(UserWarning, match=asked):
        assert make(UNNModel, 4, 2, batch_size=20, **small).fit(y).batch_size == 20


def test_apples_gpu_is_not_taken(monkeypatch):
    """It has no double precision, which a fit needs, and Lightning would choose it by itself."""
    found = []
    monkeypatch.setattr("pytorch_lightning.accelerators.MPSAccelerator.is_available", lambda: True)
    monkeypatch.setattr("pytorch_lightning.Trainer", lambda **options: found.append(options["accelerator"]))
    TaylorformerModel(24, 12)._setup_trainer(None, None)
    assert found == ["cpu"]
    with pytest.raises(ValueError, match="or a dict, whose accelerator has double precision"):
        TaylorformerModel(24, 12, pl_trainer_kwargs={"accelerator": "mps"})
    with pytest.raises(ValueError, match="accelerator='gpu' is Apple's on this machine"):
        TaylorformerModel(24, 12, pl_trainer_kwargs={"accelerator": "gpu"})._setup_trainer(None, None)


def test_a_gpu_that_is_not_there_is_named(monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    with pytest.raises(ValueError, match="accelerator='gpu' cannot be used here"):
        TaylorformerModel(24, 12, pl_trainer_kwargs={"accelerator": "gpu"})._setup_trainer(None, None)


@pytest.mark.parametrize(
    ("given", "devices"), [({}, 1), ({"devices": 2}, 2), ({"strategy": "ddp"}, None)], ids=str
)
def test_several_devices_are_taken_only_where_that_is_asked_for(given, devices, monkeypatch):
    found = []
    monkeypatch.setattr("pytorch_lightning.Trainer", lambda **options: found.append(options.get("devices")))
    TaylorformerModel(24, 12, pl_trainer_kwargs=given)._setup_trainer(None, None)
    assert found == [devices]


@pytest.mark.parametrize("training", [True, False])
def test_a_network_that_is_evaluated_is_back_in_its_mode_even_after_an_error(training):
    net = torch.nn.Dropout().train(training)
    with pytest.raises(ValueError, match="False"), evaluating(net):
        raise ValueError(net.training)
    assert net.training == training
