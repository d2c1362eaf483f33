"""Estimators on a CUDA device: what is fitted there is used anywhere, and forecasts are those of the CPU."""

from __future__ import annotations

import pickle
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import torch
from all_models import NAMES, small, trained
from darts import TimeSeries
from darts.utils.likelihood_models.torch import QuantileRegression
from quiet import QUIET, finite

import taylorformer_forecast.darts as darts_models
import taylorformer_forecast.sktime as forecasters
from taylorformer_forecast.darts import FamilyLikelihood
from taylorformer_forecast.engine.strategy import STRATEGIES
from taylorformer_forecast.sktime import ContiFormerClassifier, ContiFormerImputer, TaylorformerImputer

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")

FH, LEVELS = range(1, 9), [0.1, 0.5, 0.9]

each_model = pytest.mark.parametrize("name", NAMES)
each_strategy = pytest.mark.parametrize("strategy", STRATEGIES)


def values(n=240, columns=1):
    """Noisy seasons, whose levels are far apart."""
    t, noise = np.arange(n)[:, None], np.random.default_rng(0).normal(size=(n, columns))
    return 50 * 10.0 ** np.arange(columns) + 8 * np.sin(2 * np.pi * t / 12) + noise


def frame(columns=1):
    """The same for sktime, with a gap."""
    y = values(columns=columns)
    y[100:104, 0] = np.nan
    index = pd.period_range("2001-01", periods=len(y), freq="M")
    return pd.Series(y[:, 0], index) if columns == 1 else pd.DataFrame(y, index).add_prefix("y")


def near(found, expected):
    """Assert that quantiles (.., 3) of many draws are alike."""
    width = (expected[..., 2] - expected[..., 0])[..., None]
    assert np.isfinite(found).all()
    assert np.abs((found - expected) / width).mean() < 0.1


# --- sktime -----------------------------------------------------------------------------------------------


def forecaster(name, **changes):
    """A small forecaster that a GPU trains."""
    usual = {"max_steps": 20, "num_samples": 1000, "verbose": False, "device": "cuda"}
    kind = getattr(forecasters, f"{name}Forecaster")
    return kind(**trained(kind, **usual | changes))


def quantiles(fitted, device="cuda"):
    fitted.device = device
    return fitted.predict_quantiles(FH, alpha=LEVELS).to_numpy().reshape(len(FH), -1, len(LEVELS))


@each_model
@pytest.mark.parametrize("columns", [1, 2])
def test_what_a_gpu_trained_forecasts_alike_on_both_devices(name, columns):
    fitted = forecaster(name).fit(frame(columns), fh=FH)
    assert not any(parameter.is_cuda for parameter in fitted.network_.parameters())
    near(quantiles(fitted), quantiles(fitted, "cpu"))
    near(quantiles(pickle.loads(pickle.dumps(fitted))), quantiles(fitted, "cpu"))


@each_strategy
def test_strategies_of_sktime_forecast_on_a_gpu_as_on_the_cpu(strategy):
    found = []
    for device in ("cuda", "cpu"):
        fitted = forecaster("Taylorformer", strategy=strategy, device=device)
        found.append(quantiles(fitted.fit(frame(), fh=FH), device))
    near(*found)


@each_model
def test_panels_with_covariates_are_forecast_on_a_gpu(name):
    y = pd.concat({k: frame().to_frame("y")[: 120 + 10 * k] for k in range(3)}, names=["id"])
    X = pd.DataFrame({"x": np.arange(len(y)) % 5.0}, y.index)
    later = pd.concat(
        {k: pd.DataFrame({"x": np.arange(8) % 5.0}, y.loc[k].index[-1] + np.arange(1, 9)) for k in range(3)},
        names=["id"],
    )
    later.index.names = y.index.names
    fitted = forecaster(name).fit(y, X=X, fh=FH)
    assert np.isfinite(fitted.predict_quantiles(FH, X=later, alpha=LEVELS).to_numpy()).all()
    assert np.isfinite(fitted.predict(FH, X=later).to_numpy()).all()


def test_points_paths_residuals_and_explanations_come_from_a_gpu():
    fitted = forecaster("Taylorformer").fit(frame(), fh=FH)
    assert np.isfinite(fitted.predict(FH)).all()
    assert np.isfinite(fitted.predict_proba(FH, marginal=False).sample(3).to_numpy()).all()
    assert np.isfinite(fitted.predict(range(-3, 1))).all()
    assert np.isfinite(fitted.explain(FH).to_numpy()).any()
    fitted.update(frame()[-3:].set_axis(frame().index[-3:] + 3))
    assert np.isfinite(fitted.predict(FH)).all()


@pytest.mark.parametrize("n", [4, 60])
def test_faithful_networks_of_one_column_forecast_on_a_gpu(n):
    fitted = forecaster("LAM", preset="faithful", distribution="normal").fit(frame()[:n])
    assert np.isfinite(fitted.predict([1 - n, 0, 1, 5])).all()


def test_statistics_do_not_start_cuda_and_its_numbers_follow_the_callers_seed():
    program = """
import torch, numpy as np, pandas as pd
from taylorformer_forecast.sktime import LAMForecaster, TaylorformerForecaster
y = pd.Series(np.sin(np.arange(60.0)) + 5)
torch.manual_seed(3)
TaylorformerForecaster(strategy="corrected", random_state=0).fit(y, fh=[1]).predict()
LAMForecaster(device="cpu", max_steps=1, random_state=0, verbose=False).fit(y, fh=[1]).predict()
assert not torch.cuda.is_initialized()
found = torch.rand(3, device="cuda")
torch.cuda.manual_seed(3)
assert torch.equal(torch.rand(3, device="cuda"), found)
"""
    subprocess.run([sys.executable, "-W", "ignore", "-c", program], check=True, timeout=120)


def test_a_fit_leaves_the_random_numbers_of_the_gpu_as_they_were():
    torch.cuda.manual_seed(7)
    expected = torch.rand(3, device="cuda")
    torch.cuda.manual_seed(7)
    forecaster("LAM").fit(frame(), fh=FH).predict()
    assert torch.equal(torch.rand(3, device="cuda"), expected)


@pytest.mark.parametrize("kind", [TaylorformerImputer, ContiFormerImputer])
def test_gaps_are_filled_on_a_gpu(kind):
    filled = kind(**small(kind, max_steps=20, num_samples=50, device="cuda")).fit_transform(frame())
    assert np.isfinite(filled).all()


def test_series_are_classified_on_a_gpu():
    X = np.sin(np.linspace(0, 1, 30) * np.array([10.0, 50.0] * 20)[:, None, None])
    y = np.array(["slow", "fast"] * 20)
    options = small(ContiFormerClassifier, n_layers=1, max_steps=60, lr=1e-2, device="cuda")
    fitted = ContiFormerClassifier(**options).fit(X, y)
    assert (fitted.predict(X) == y).mean() > 0.8


# --- darts ------------------------------------------------------------------------------------------------

GPU = {**QUIET, "accelerator": "gpu", "devices": 1}


def model(name, trainer=GPU, **changes):
    """A small model of darts that a GPU trains."""
    kind, usual = getattr(darts_models, f"{name}Model"), {"n_epochs": 2, "pl_trainer_kwargs": trainer}
    return kind(24, 8, **trained(kind, **usual | changes))


def draws(fitted):
    """Quantiles (steps, components, 3) of its draws."""
    paths = fitted.predict(8, num_samples=1000, random_state=0).all_values()
    return np.moveaxis(np.quantile(paths, LEVELS, axis=2), 0, -1)


def series(columns=1):
    return TimeSeries.from_values(values(columns=columns).astype("float32"))


@each_model
@pytest.mark.parametrize("columns", [1, 2])
def test_a_darts_model_that_a_gpu_trained_is_loaded_on_the_cpu(name, columns, tmp_path):
    fitted = model(name).fit(series(columns))
    found = draws(fitted)
    fitted.save(str(tmp_path / "model.pt"))
    loaded = type(fitted).load(str(tmp_path / "model.pt"), pl_trainer_kwargs=QUIET, map_location="cpu")
    near(found, draws(loaded))


@each_model
@pytest.mark.parametrize(
    "options",
    [{"loss_fn": torch.nn.MSELoss()}, {"likelihood": QuantileRegression([0.1, 0.5, 0.9])}, {"joint": True}],
    ids=["loss", "quantiles", "joint"],
)
def test_losses_likelihoods_and_joint_components_of_darts_run_on_a_gpu(name, options):
    if name == "UNN" and "joint" in options:
        pytest.skip("it always joins components")
    fitted = model(name, **options).fit(series(2))
    n_samples = 1 if "loss_fn" in options else 20
    assert finite(fitted.predict(20, num_samples=n_samples))


def test_points_of_a_registered_family_are_not_widened_on_a_gpu():
    fitted = model("Taylorformer", likelihood=FamilyLikelihood("mse")).fit(series())
    assert fitted.model.net.calibration.inflation == 1
    assert np.abs(fitted.predict(8).values() - values()[-12:-4]).max() < 30


@pytest.mark.parametrize("precision", ["64-true", "bf16-mixed", "16-mixed"])
@pytest.mark.parametrize("name", ["LAM", "Taylorformer"])
def test_precisions_of_the_trainer_are_taken_on_a_gpu(name, precision):
    fitted = model(name, {**GPU, "precision": precision}).fit(series())
    assert finite(fitted.predict(8, num_samples=20))
    options = {"context_length": 96, "trainer_kwargs": {"precision": precision}}
    assert np.isfinite(quantiles(forecaster(name, **options).fit(frame(), fh=FH))).all()


def test_quantile_regression_goes_on_on_another_device(tmp_path):
    fitted = model("LAM", likelihood=QuantileRegression([0.1, 0.5, 0.9])).fit(series())
    fitted.save(str(tmp_path / "model.pt"))
    for options in ({"map_location": "cpu", "pl_trainer_kwargs": QUIET}, {"pl_trainer_kwargs": GPU}):
        loaded = type(fitted).load(str(tmp_path / "model.pt"), **options)
        assert finite(loaded.fit(series(), epochs=1).predict(8, num_samples=20))


@each_strategy
def test_strategies_of_darts_forecast_on_a_gpu_as_on_the_cpu(strategy):
    found = [
        draws(model("Taylorformer", trainer, strategy=strategy, n_epochs=1).fit(series(2)))
        for trainer in (GPU, QUIET)
    ]
    near(*found)


@each_model
def test_backtests_of_darts_run_on_a_gpu(name):
    fitted = model(name).fit(series()[:200])
    found = fitted.historical_forecasts(
        series(),
        start=200,
        forecast_horizon=4,
        stride=8,
        retrain=False,
        last_points_only=False,
        num_samples=5,
    )
    assert len(found) > 2
    assert all(finite(forecast) for forecast in found)


@each_model
def test_single_values_and_parameters_of_darts_come_from_a_gpu(name):
    fitted = model(name).fit(series())
    assert finite(fitted.predict(20))
    if name != "UNN":
        assert finite(fitted.predict(8, predict_likelihood_parameters=True))
