"""Forecasters that start from a prior."""

import importlib

import numpy as np
import pandas as pd
import pytest
import pytorch_lightning as pl
import torch
from sktime.datasets import load_airline

from taylorformer_forecast.engine.pretrained import GENTLE, load_prior
from taylorformer_forecast.models.direct import DirectTaylorformer
from taylorformer_forecast.sktime import TaylorformerForecaster

FH = range(1, 13)


def forecaster(**changes):
    return TaylorformerForecaster(**{"pretrained": "default", "max_steps": 0, "random_state": 0} | changes)


@pytest.fixture(scope="module")
def y():
    return load_airline()


def test_without_training_the_weights_are_those_of_the_file(y):
    net = forecaster().fit(y, fh=FH).network_
    prior = load_prior("default")
    state = net.state_dict()
    for name, value in prior.weights.items():
        if not name.startswith("layers.to_params"):
            assert torch.equal(state[name], value), name
    part = state["layers.to_params.weight"].norm() / prior.weights["layers.to_params.weight"].norm()
    assert 0 <= part <= 1.001


def test_training_leaves_them_and_starts_from_what_the_prior_forecasts(y):
    net = forecaster(max_steps=2, num_epochs=None).fit(y, fh=FH).network_
    inside = net.linear.forecast.direct.state_dict()
    for name, value in load_prior("default").weights.items():
        if not name.startswith("layers.to_params"):
            assert torch.equal(inside[name], value), name
    assert net.to_params.weight.any()
    assert not any(parameter.requires_grad for parameter in net.linear.parameters())


def test_a_prior_that_is_not_sure_to_help_leaves_the_trained_network_as_it_is(y):
    """A last quarter of three years does not tell."""
    beside, without = (forecaster(max_steps=3, pretrained=name).fit(y, fh=FH) for name in ("default", None))
    assert beside.network_.linear.forecast.direct.forecast.trust == 0
    pd.testing.assert_frame_equal(beside.predict_quantiles(), without.predict_quantiles())


@pytest.mark.parametrize(
    ("n", "change", "alone"),
    [
        (90, {}, True),
        (90, {"max_steps": 150}, True),  # the default
        (191, {}, True),
        (192, {}, False),
        (90, {"trainer_kwargs": {"callbacks": [pl.callbacks.Timer({"minutes": 1})]}}, True),
        (90, {"trainer_kwargs": {"callbacks": pl.callbacks.Timer({"minutes": 1})}}, True),
        (90, {"trainer_kwargs": {"callbacks": pl.Callback()}}, False),
        (90, {"trainer_kwargs": {"callbacks": (pl.callbacks.Timer({"minutes": 1}), pl.Callback())}}, False),
        (90, {"trainer_kwargs": {"logger": True}}, False),
        (90, {"pretrained": None}, False),
        (90, {"max_steps": 1}, False),
        (90, {"d_model": 16}, False),
        (90, {"order": "random", "num_epochs": 1}, False),
        (90, {"update_steps": 1}, False),
        (90, {"trainer_kwargs": {"callbacks": [pl.Callback()]}}, False),
    ],
)
def test_series_too_short_to_teach_a_network_are_left_to_the_prior_unless_one_is_asked_for(n, change, alone):
    y = pd.Series(np.sin(np.arange(192.0)) + np.random.default_rng(0).normal(size=192))
    fitted = TaylorformerForecaster(**{"random_state": 0} | change).fit(y[:n], fh=FH)
    assert isinstance(fitted.network_, DirectTaylorformer) == alone
    assert (fitted.training_["steps"] == 0) == alone
    if alone:
        asked = forecaster().fit(y[:n], fh=FH)
        pd.testing.assert_frame_equal(fitted.predict_quantiles(), asked.predict_quantiles())


def test_a_short_series_with_x_and_a_panel_to_pretrain_on_are_learnt_from(y):
    x = pd.DataFrame({"x": np.arange(60.0)}, y.index[:60])
    fitted = TaylorformerForecaster(random_state=0).fit(y[:60], X=x, fh=FH)
    assert fitted.training_["steps"] > 0
    panel = pd.concat({name: y[:40].to_frame() for name in "ab"})
    short = TaylorformerForecaster(random_state=0).fit(y[:60], fh=FH)
    learnt = [f.pretrain(panel).pretrained_ for f in (TaylorformerForecaster(random_state=0), short)]
    assert all(one.training["steps"] > 0 for one in learnt)
    assert not any(isinstance(one.network, DirectTaylorformer) for one in learnt)
    assert not isinstance(fitted.network_, DirectTaylorformer)


@pytest.mark.parametrize(
    "change",
    [
        {"d_model": 16, "n_heads": 2},
        {"order": "random"},
        {"distribution": "quantile"},
        {"attention": "local"},
    ],
)
def test_the_network_around_a_prior_may_be_another(y, change):
    fitted = forecaster(max_steps=2, **change).fit(y, fh=FH)
    assert np.isfinite(fitted.predict_quantiles().to_numpy()).all()


def test_forecasts_are_close_to_the_season_to_come_before_any_training(y):
    past, future = y[:-12], y[-12:]
    forecast = forecaster().fit(past, fh=FH)
    error = (forecast.predict() - future).abs().mean()
    assert error < (past[-12:].to_numpy() - future).abs().mean()
    interval = forecast.predict_interval(coverage=0.9)
    assert (interval.to_numpy()[:, 1] > interval.to_numpy()[:, 0]).all()


def test_clones_and_fits_that_follow_start_from_the_file_again(y):
    first = forecaster(max_steps=1).fit(y, fh=FH)
    again = first.clone().fit(y, fh=FH)
    pd.testing.assert_frame_equal(first.predict_quantiles(), again.predict_quantiles())
    pd.testing.assert_frame_equal(first.fit(y, fh=FH).predict_quantiles(), again.predict_quantiles())


def test_pretraining_on_a_panel_starts_from_it_and_fit_takes_what_the_panel_left(y):
    index = pd.MultiIndex.from_product([["a", "b"], y.index], names=["series", "month"])
    panel = pd.DataFrame({"y": np.concatenate([y, y[::-1]])}, index)
    pretrained = forecaster(max_steps=1).pretrain(panel, fh=FH)
    assert pretrained.fit(y).predict(fh=FH).notna().all()


def test_x_is_learnt_in_training_and_says_nothing_without(y):
    X = pd.DataFrame({"x": np.random.default_rng(0).normal(size=len(y))}, y.index)
    future = pd.DataFrame({"x": np.ones(12)}, pd.period_range("1961-01", periods=12, freq="M"))
    silent = forecaster().fit(y, X=X, fh=FH)
    same = silent.predict_quantiles(X=future)
    pd.testing.assert_frame_equal(same, silent.predict_quantiles(X=5 * future))


def test_x_is_learnt_in_training_at_the_defaults():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.normal(size=220)})
    y = pd.Series(3 * X["a"].to_numpy() + 0.3 * rng.normal(size=220))
    heard = forecaster(max_steps=60).fit(y[:200], X=X[:200], fh=range(1, 21))
    error = (heard.predict(X=X[200:]) - y[200:]).abs().mean()
    assert error < 0.6 * (y[200:] - y[:200].mean()).abs().mean()


@pytest.mark.parametrize(("max_steps", "rate"), [(0, GENTLE), (1, 1.0)])
def test_all_training_of_a_prior_itself_is_gentle(y, monkeypatch, max_steps, rate):
    rates = []
    module = importlib.import_module("taylorformer_forecast.engine.training")
    fit = module.fit
    monkeypatch.setattr(module, "fit", lambda *args, **kw: rates.append(kw["lr"]) or fit(*args, **kw))
    started = forecaster(max_steps=max_steps, update_steps=1, finetune_steps=1, lr=0.1)
    started.clone().fit(y[:-12], fh=FH).update(y[-12:])
    panel = pd.concat({"a": y.to_frame("y"), "b": y.to_frame("y")}, names=["series", "month"])
    started.pretrain(panel, fh=FH).fit(y)
    assert rates == pytest.approx([0.1 * rate, 0.01 * rate, 0.1 * rate, 0.01 * rate])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"d_model": 16}, "d_model=16, but the network of pretrained has d_model=32"),
        ({"order": "random"}, "order='random', but the network of pretrained has order='time'"),
        ({"linear_path": False}, "linear_path=False"),
        ({"taylor_order": 1}, "taylor_order=1, but the network of pretrained has taylor_order=0"),
        ({"pretrained": "nowhere"}, "'nowhere' is neither 'default' nor a file"),
        ({"pretrained": 3}, "pretrained=3"),
    ],
)
def test_what_does_not_fit_is_refused_and_leaves_the_forecaster_as_it_was(y, change, message):
    fitted = forecaster().fit(y, fh=FH)
    before = fitted.predict()
    for name, value in change.items():
        setattr(fitted, name, value)
    with pytest.raises((ValueError, FileNotFoundError), match=message):
        fitted.fit(y, fh=FH)
    pd.testing.assert_series_equal(fitted.predict(), before)


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
