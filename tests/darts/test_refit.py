"""A further fit begins anew from its own series, and goes on from the weights of the network."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch
from darts import TimeSeries
from quiet import QUIET

from taylorformer_forecast.darts import LAMModel, TaylorformerModel

N, H = 200, 6
KINDS = ("auto", "averaged", "train", "finetune", "corrected", "LAM")
SMALL = {"d_model": 8, "n_heads": 2, "n_epochs": 1, "random_state": 0, "pl_trainer_kwargs": QUIET}


def make(kind, **options):
    if kind == "LAM":
        return LAMModel(24, H, **SMALL | options)
    return TaylorformerModel(24, H, strategy=kind, **SMALL | options)


def series_of(values, freq="D"):
    index = pd.date_range("2020-01-01", periods=len(values), freq=freq)
    return TimeSeries.from_times_and_values(index, np.asarray(values, dtype=float))


def sales(effect=0.0, period=7, level=50.0, seed=0):
    """Sales with a season, and promotions of some effect on them."""
    rng = np.random.default_rng(seed)
    promotion = (rng.random(N + H) < 0.25).astype(float)
    wave = 8 * np.sin(2 * np.pi * np.arange(N + H) / period)
    return series_of(level + wave + effect * promotion + rng.normal(size=N + H)), series_of(promotion)


def closed_form(model):
    """What a fitted model has found without training."""
    state = model.model.state_dict().items()
    fitted = {name: v.tolist() for name, v in state if name.startswith("net.baseline.") or "units" in name}
    own = model._effects, model._seasonal.lengths, model._floor, model._level, model._strategy
    return str((fitted, *own))


def error_of(model, y, x=None):
    found = model.predict(H, future_covariates=x, num_samples=100, random_state=1, verbose=False)
    return np.abs(found.median().values() - y[N:].values()).mean()


@pytest.mark.parametrize("covariates", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_a_further_fit_is_as_good_as_a_first_one(kind, covariates):
    (other, x), (y, _) = sales(20.0), sales(-20.0 * covariates, 12, 400.0)
    x = x if covariates else None
    model, fresh = make(kind).fit(other[:N], future_covariates=x), make(kind)
    model.fit(y[:N], future_covariates=x)
    fresh.fit(y[:N], future_covariates=x)
    assert closed_form(model) == closed_form(fresh)
    assert error_of(model, y, x) < 1.3 * error_of(fresh, y, x) + 0.5


@pytest.mark.parametrize("origin", ["a fit", "a file", "weights of a file"])
@pytest.mark.parametrize("kind", ["averaged", "train", "finetune", "LAM"])
def test_a_further_fit_goes_on_from_the_weights_of_the_network(kind, origin, tmp_path):
    y, _ = sales()
    model = make(kind, lr=1e-9).fit(y[:N])
    model.model.net.load_state_dict({k: v + 0.01 for k, v in model.model.net.state_dict().items()})
    before = dict(model.model.net.named_parameters())
    if origin != "a fit":
        model.save(str(tmp_path / "model.pt"))
        model = type(model).load(str(tmp_path / "model.pt"), pl_trainer_kwargs=QUIET)
    if origin == "weights of a file":
        model = make(kind, lr=1e-9)
        model.load_weights(str(tmp_path / "model.pt"))
    model.fit((2 * y - 30)[:N])
    after = {name: value for name, value in model.model.net.named_parameters() if value.requires_grad}
    assert len(after) > 10
    for name, value in after.items():
        torch.testing.assert_close(value, before[name], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_a_further_fit_may_be_to_other_components_and_covariates(kind):
    y, x = sales(20.0)
    model = make(kind).fit(y[:N], future_covariates=x)
    wide = y[:N].stack(y[:N])
    assert model.fit(wide).predict(H, verbose=False).shape == (H, 2, 1)
    both = x.stack(x.map(lambda values: 1 - values))
    model.fit(y[:N], future_covariates=both)
    assert error_of(model, y, both) < 5


@pytest.mark.parametrize("kind", ["averaged", "train", "LAM"])
def test_it_is_said_that_a_network_begins_anew(kind):
    (week, _), (other, x) = sales(), sales(20.0, 12)
    model = make(kind).fit(week[:N])
    with pytest.warns(UserWarning, match="the network begins anew: weights that it had are for other"):
        model.fit(other[:N], future_covariates=x)


def test_it_is_said_that_a_network_is_left_out_where_none_is_trained(tmp_path):
    y, _ = sales()
    model = make("auto").fit(y[:N])
    assert model._strategy.kind.trains
    model.save(str(tmp_path / "long.pt"))
    loaded = make("auto")
    loaded.load_weights(str(tmp_path / "long.pt"))
    for trained in (model, loaded):
        with pytest.warns(UserWarning, match="was trained or loaded is left out"):
            trained.fit(y[:50])
        assert trained._strategy.name == "corrected"
        assert np.isfinite(trained.predict(H, verbose=False).values()).all()


@pytest.mark.parametrize("kind", ["train", "LAM", "corrected"])
def test_the_precision_of_a_model_is_that_of_the_latest_series(kind):
    y, _ = sales()
    model = make(kind).fit(y[:N]).fit(y[:N].astype("float32"))
    assert model.trainer_params["precision"] == "32-true"
    assert model.predict(H, verbose=False).dtype == np.float32


def test_a_training_that_is_resumed_has_all_that_it_had(tmp_path):
    saving = {"model_name": "m", "work_dir": str(tmp_path), "save_checkpoints": True}
    trainer = {**QUIET, "enable_checkpointing": True}
    y, _ = sales()
    model = make("train", **saving, pl_trainer_kwargs=trainer).fit(y[:N])
    loaded = TaylorformerModel.load_from_checkpoint("m", work_dir=str(tmp_path), best=False)
    loaded.fit(y[:N], epochs=2)
    assert loaded.epochs_trained == 2
    assert closed_form(loaded) == closed_form(model)
    assert loaded.model.net.calibration.weight == model.model.net.calibration.weight
