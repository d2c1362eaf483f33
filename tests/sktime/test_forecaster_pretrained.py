"""Forecasts of the pretrained network, as it is and trained further."""

import importlib

import numpy as np
import pandas as pd
import pytest
import torch
from sktime.datasets import load_airline

from taylorformer_forecast.defaults import NETWORK_WEIGHTS
from taylorformer_forecast.engine.pretrained import load_pretrained, save_pretrained
from taylorformer_forecast.models.direct import DirectTaylorformer
from taylorformer_forecast.models.taylorformer import Taylorformer
from taylorformer_forecast.sktime import TaylorformerForecaster

FH = range(1, 13)


def forecaster(**changes):
    return TaylorformerForecaster(**{"strategy": "pretrained", "random_state": 0} | changes)


def panel_of(y):
    return pd.concat({"a": y.to_frame("y"), "b": y[::-1].set_axis(y.index).to_frame("y")}, names=["s", "t"])


def weights(network):
    return torch.cat([parameter.detach().ravel() for parameter in network.parameters()])


@pytest.fixture(scope="module")
def y():
    return load_airline()


def test_without_training_the_weights_are_those_of_the_file(y):
    net = forecaster().fit(y, fh=FH).network_
    state = net.state_dict()
    for name, value in load_pretrained("default").weights.items():
        assert torch.equal(state[name], value), name
    assert float(net.calibration.weight) in NETWORK_WEIGHTS
    assert net.baseline.log_scale.all()  # the baseline is fitted


def test_fine_tuning_trains_the_weights_of_the_file(y):
    fitted = forecaster(strategy="finetune", max_steps=2, num_epochs=None, lr=0.1).fit(y, fh=FH)
    assert isinstance(fitted.network_, DirectTaylorformer)
    assert fitted.training_["steps"] == 2
    known = load_pretrained("default").weights
    found = {name: value for name, value in fitted.network_.named_parameters() if name in known}
    assert len(found) > 20
    for name, value in found.items():
        torch.testing.assert_close(value, known[name], rtol=0.0, atol=0.01)
    assert sum(not torch.equal(value, known[name]) for name, value in found.items()) > 20
    assert np.isfinite(fitted.predict_quantiles().to_numpy()).all()


def test_fine_tuning_of_no_step_is_the_pretrained_network(y):
    tuned, plain = forecaster(strategy="finetune", max_steps=0).fit(y, fh=FH), forecaster().fit(y, fh=FH)
    pd.testing.assert_frame_equal(tuned.predict_quantiles(), plain.predict_quantiles())


def test_forecasts_are_close_to_the_season_to_come_before_any_training(y):
    past, future = y[:-12], y[-12:]
    forecast = forecaster().fit(past, fh=FH)
    error = (forecast.predict() - future).abs().mean()
    assert error < (past[-12:].to_numpy() - future).abs().mean()
    interval = forecast.predict_interval(coverage=0.9)
    assert (interval.to_numpy()[:, 1] > interval.to_numpy()[:, 0]).all()


@pytest.mark.parametrize("strategy", ["pretrained", "finetune"])
def test_clones_and_fits_that_follow_start_from_the_file_again(y, strategy):
    first = forecaster(strategy=strategy, max_steps=1).fit(y, fh=FH)
    again = first.clone().fit(y, fh=FH)
    pd.testing.assert_frame_equal(first.predict_quantiles(), again.predict_quantiles())
    pd.testing.assert_frame_equal(first.fit(y, fh=FH).predict_quantiles(), again.predict_quantiles())


@pytest.mark.parametrize("strategy", ["pretrained", "finetune"])
def test_pretraining_on_a_panel_starts_from_it_and_fit_takes_what_the_panel_left(y, strategy):
    fitted = forecaster(strategy=strategy, max_steps=1).pretrain(panel_of(y), fh=FH)
    assert isinstance(fitted.pretrained_.network, DirectTaylorformer)
    assert fitted.pretrained_.training["steps"] == (strategy == "finetune")
    assert fitted.fit(y).strategy_ == strategy
    assert fitted.predict(fh=FH).notna().all()


def test_where_nothing_is_trained_a_second_panel_takes_the_place_of_the_first(y):
    first, second = panel_of(y), panel_of(10.0 * y[:100])
    both = forecaster().pretrain(first, fh=FH).pretrain(second, fh=FH)
    only = forecaster().pretrain(second, fh=FH)
    fitted = forecaster().fit(first, fh=FH).pretrain(second, fh=FH)
    for one in (both, fitted):
        assert one.pretrained_.training["steps"] == 0
        assert torch.equal(weights(one.pretrained_.network), weights(only.pretrained_.network))


def test_panels_that_follow_train_a_fine_tuned_network_further(y):
    one = forecaster(strategy="finetune", max_steps=1).pretrain(panel_of(y), fh=FH)
    before = weights(one.pretrained_.network)
    after = weights(one.pretrain(panel_of(y)).pretrained_.network)
    assert not torch.equal(before, after)
    torch.testing.assert_close(before, after, rtol=0.0, atol=0.02)


@pytest.mark.parametrize(
    ("strategy", "rate"), [("pretrained", None), ("finetune", DirectTaylorformer.lr_factor), ("train", 1.0)]
)
def test_a_pretrained_network_is_trained_with_a_small_learning_rate_only(y, monkeypatch, strategy, rate):
    rates = []
    module = importlib.import_module("taylorformer_forecast.engine.fit_network")
    fit = module.fit

    def record(*args, **kwargs):
        if kwargs["max_steps"]:
            rates.append(kwargs["lr"])
        return fit(*args, **kwargs)

    monkeypatch.setattr(module, "fit", record)
    started = forecaster(strategy=strategy, max_steps=1, update_steps=1, finetune_steps=1, lr=0.1)
    started.clone().fit(y[:-12], fh=FH).update(y[-12:])
    started.pretrain(panel_of(y), fh=FH).fit(y)
    if rate is None:  # updates and fits after a panel train if steps are asked for
        assert rates == pytest.approx([0.01 * DirectTaylorformer.lr_factor] * 2)
    else:
        assert rates == pytest.approx([0.1 * rate, 0.01 * rate, 0.1 * rate, 0.01 * rate])


@pytest.mark.parametrize("strategy", ["pretrained", "finetune"])
def test_a_file_of_ones_own_is_the_pretrained_network(y, tmp_path, strategy):
    path, known = tmp_path / "own.safetensors", load_pretrained("default")
    net = known.build(36, 12, 4)
    torch.nn.init.normal_(net.layers.to_params.weight, std=0.05)
    save_pretrained(net, path, known.settings, weight=0.25)
    for source in (path, str(path)):
        fitted = forecaster(strategy=strategy, pretrained=source, max_steps=0).fit(y[:100], fh=FH)
        found = fitted.network_.state_dict()["layers.to_params.weight"]
        assert torch.equal(found, net.layers.to_params.weight.half().float())


@pytest.mark.parametrize("n", [3, 5, 9, 30])
def test_short_series_are_forecast(n):
    y = pd.Series(np.random.default_rng(n).normal(size=n))
    assert np.isfinite(forecaster().fit(y).predict_interval(fh=[1, 2, 7]).to_numpy()).all()


@pytest.mark.parametrize("kind", ["constant", "gaps", "huge", "irregular"])
def test_difficult_series_are_forecast(kind):
    rng = np.random.default_rng(0)
    y = pd.Series(np.sin(np.arange(90) / 4) + 0.1 * rng.normal(size=90))
    if kind == "constant":
        y[:] = 4.0
    elif kind == "gaps":
        y[rng.random(90) < 0.4] = np.nan
    elif kind == "huge":
        y = 1e12 + 1e9 * y
    elif kind == "irregular":
        y.index = pd.to_datetime("2020-01-01") + pd.to_timedelta(np.cumsum(rng.exponential(5, 90)), "h")
    fh = [1, 2, 30]
    assert np.isfinite(forecaster().fit(y).predict_quantiles(fh=fh).to_numpy()).all()


def test_x_is_learnt_by_a_network_that_is_trained():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.normal(size=220)})
    y = pd.Series(3 * X["a"].to_numpy() + 0.3 * rng.normal(size=220))
    fitted = forecaster(strategy="train", max_steps=60).fit(y[:200], X=X[:200], fh=range(1, 21))
    assert isinstance(fitted.network_, Taylorformer)
    error = (fitted.predict(X=X[200:]) - y[200:]).abs().mean()
    assert error < 0.6 * (y[200:] - y[200:].mean()).abs().mean()
