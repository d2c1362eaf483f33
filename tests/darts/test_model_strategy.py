"""How a darts model chooses between statistics, the pretrained network and training, and what it says."""

from __future__ import annotations

import inspect
import logging

import numpy as np
import pandas as pd
import pytest
import pytorch_lightning as pl
import torch
from all_models import OTHERS, models, small
from darts.utils.likelihood_models.torch import GaussianLikelihood, PoissonLikelihood, QuantileRegression
from darts.utils.timeseries_generation import linear_timeseries, sine_timeseries
from quiet import QUIET, finite

from taylorformer_forecast.darts import TaylorformerModel
from taylorformer_forecast.engine.strategy import KINDS, PRETRAINED, STATISTICAL, STRATEGIES
from taylorformer_forecast.models.correction import CorrectionNet
from taylorformer_forecast.models.direct import DirectTaylorformer
from taylorformer_forecast.models.taylorformer import Taylorformer

N = 72
AVERAGED = [name for name, kind in KINDS.items() if kind.averages]
TRAINED = ("train", "averaged", "finetune")
LOGGER = "taylorformer_forecast"


def make(**params):
    """Return a model for chunks of 12 and 6 steps whose training, if there is any, is short."""
    usual = {"n_epochs": 1, "d_model": 8, "random_state": 0, "pl_trainer_kwargs": QUIET}
    return TaylorformerModel(12, 6, **{**usual, **params})


def chosen(model):
    """What a fitted model has done, by its summary and by its network."""
    name = model.summary().strategy
    kinds = {"baseline": type(None), "corrected": CorrectionNet}
    kinds |= dict.fromkeys(("train", "averaged"), Taylorformer)
    assert isinstance(model.model.net, kinds.get(name, DirectTaylorformer))
    return name


@pytest.fixture(scope="module")
def long():
    """Return a noisy series of sixteen output chunks."""
    season = sine_timeseries(length=96, value_frequency=1 / 12)
    return (season + 0.5 * np.random.default_rng(0).normal(size=(96, 1, 1))).astype("float32")


# --- "auto" -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "expected"), [(40, "corrected"), (95, "corrected"), (96, "averaged")])
def test_series_of_fewer_values_than_sixteen_chunks_have_statistical_forecasts(long, n, expected):
    model = make().fit(long[:n])
    assert chosen(model) == expected
    assert (model.epochs_trained == 0) == (expected == "corrected")
    if expected == "corrected":
        asked = make(strategy="corrected").fit(long[:n])
        forecasts = (m.predict(8, num_samples=3, random_state=0).all_values() for m in (model, asked))
        np.testing.assert_array_equal(*forecasts)


def test_observed_values_of_the_longest_series_and_component_count(long):
    values = long.values().copy()
    values[3::16] = np.nan
    assert chosen(make().fit(long.with_values(values))) == "corrected"
    assert chosen(make().fit([long[:95], long[:60]])) == "corrected"
    assert chosen(make().fit(long[:60].stack(long[:60]))) == "corrected"
    assert chosen(make().fit([long[:20], long])) == "averaged"
    assert chosen(make().fit(long.stack(long.with_values(values)))) == "averaged"


def test_a_short_series_of_which_most_is_missing_has_the_pretrained_network(long):
    values = np.full((60, 1), np.nan, dtype="float32")
    values[::5] = long.values()[:60:5]
    sparse = long[:60].with_values(values)
    assert chosen(make().fit(sparse)) == "pretrained"
    with pytest.raises(ValueError, match="most values of component 'sine' are missing, too many"):
        make(strategy="baseline").fit(sparse)
    with pytest.raises(ValueError, match="component 'sine' of series number 1 are missing"):
        make(strategy="baseline").fit([long[:60], sparse])
    panel = [long[:60], long[10:70], sparse]
    found = make().fit(panel)
    assert chosen(found) == "corrected"  # one of many decides nothing
    assert np.isfinite(found.predict(3, series=panel, num_samples=5)[2].all_values()).all()


DEFAULTS = {
    name: parameter.default
    for name, parameter in inspect.signature(TaylorformerModel.__init__).parameters.items()
    if parameter.default is not inspect.Parameter.empty
}
TRAINING = {
    "n_epochs": 3,
    "lr": 0.01,
    "batch_size": 4,
    "dropout": 0.5,
    "d_model": 16,
    "n_heads": 1,
    "n_layers": 3,
    "taylor_order": 1,
    "n_derivative_neighbours": 3,
    "attention": "local",
    "optimizer_cls": torch.optim.SGD,
    "pl_trainer_kwargs": {**QUIET, "callbacks": [pl.Callback()]},
}


def default(**params):
    return TaylorformerModel(12, 6, **{"random_state": 0, "pl_trainer_kwargs": QUIET} | params)


@pytest.mark.parametrize("name", DEFAULTS)
def test_a_default_that_is_written_out_changes_nothing(series, name):
    plain, written = (default(**given).fit(series[:40]) for given in ({}, {name: DEFAULTS[name]}))
    assert chosen(plain) == chosen(written) == "corrected"
    np.testing.assert_array_equal(*(m.predict(8, random_state=0).values() for m in (plain, written)))


@pytest.mark.parametrize("name", TRAINING)
def test_no_parameter_of_training_or_of_a_trained_network_changes_the_choice(series, long, name):
    plain, other = (default(**given).fit(series[:40]) for given in ({}, {name: TRAINING[name]}))
    assert chosen(other) == "corrected"
    assert other.summary().steps == 0
    np.testing.assert_array_equal(*(m.predict(8, random_state=0).values() for m in (plain, other)))
    assert chosen(make(**{name: TRAINING[name]}).fit(long)) == "averaged"


@pytest.mark.parametrize(("n", "expected"), [(40, "corrected"), (96, "averaged")])
def test_a_grid_of_learning_rates_compares_one_kind_of_model(long, n, expected):
    rates = (1e-4, 2e-3, 1e-2)  # the second is the default
    assert {chosen(make(lr=rate).fit(long[:n])) for rate in rates} == {expected}


@pytest.mark.parametrize("options", [{"epochs": 2}, {"val_series": None}])
def test_options_of_a_fit_do_not_change_the_choice(series, options):
    options = {name: series[30:] if name == "val_series" else value for name, value in options.items()}
    model = make().fit(series[:40], **options)
    assert chosen(model) == "corrected"
    assert model.epochs_trained == model.summary().steps == 0


def test_weights_of_samples_are_for_training_alone(series):
    assert chosen(make().fit(series[:40], sample_weight="linear")) == "train"
    assert chosen(make(strategy="finetune").fit(series[:40], sample_weight="linear")) == "finetune"
    for strategy in (*STATISTICAL, "pretrained", *AVERAGED):
        with pytest.raises(ValueError, match=f"strategy='{strategy}': sample_weight is given"):
            make(strategy=strategy).fit(series[:40], sample_weight="linear")


def cannot(series):
    """What cannot be done without training: parameters, the series, options of a fit, and the reason."""
    covariates = linear_timeseries(length=2 * N).astype("float32")
    static = series.with_static_covariates(pd.DataFrame({"size": [1.0]}).astype("float32"))
    return {
        "likelihood": (
            {"likelihood": GaussianLikelihood()},
            series,
            {},
            "GaussianLikelihood is given, which",
        ),
        "quantiles": (
            {"likelihood": QuantileRegression([0.1, 0.5, 0.9])},
            series,
            {},
            "QuantileRegression is given",
        ),
        "counts": ({"likelihood": PoissonLikelihood()}, series, {}, "PoissonLikelihood is given"),
        "loss": ({"loss_fn": torch.nn.L1Loss()}, series, {}, "a loss_fn is given"),
        "norm": ({"use_reversible_instance_norm": False}, series, {}, "use_reversible_instance_norm=False"),
        "path": ({"linear_path": False}, series, {}, "linear_path=False, which"),
        "past": ({}, series, {"past_covariates": covariates}, "past_covariates are given, which"),
        "encoders": (
            {"add_encoders": {"cyclic": {"future": ["month"]}}},
            series,
            {},
            "add_encoders is given, whose",
        ),
        "static": ({}, static, {}, "the series has static covariates, which"),
    }


CANNOT = ("likelihood", "quantiles", "counts", "loss", "norm", "path", "past", "encoders", "static")


@pytest.mark.parametrize("what", CANNOT)
def test_what_cannot_be_done_without_training_is_trained_or_refused(series, what):
    params, short, options, reason = cannot(series[:40])[what]
    model = make(**params).fit(short, **options)
    assert chosen(model) == "train"
    assert model.summary().reason.startswith(reason)
    for strategy in STRATEGIES[1:]:
        if strategy == "train":
            continue
        with pytest.raises(ValueError, match=f"strategy='{strategy}': {reason}.*; take strategy='train'"):
            make(strategy=strategy, **params).fit(short, **options)


@pytest.mark.parametrize("what", ["likelihood", "loss", "norm", "path"])
def test_parameters_that_rule_it_out_are_refused_before_any_fit(series, what):
    params = cannot(series)[what][0]
    with pytest.raises(ValueError, match=r"strategy='pretrained': .*; take strategy='train'"):
        make(strategy="pretrained", **params)


@pytest.mark.parametrize("strategy", ["zero", None, "Train"])
def test_an_unknown_strategy_is_refused_at_once(strategy):
    with pytest.raises(ValueError, match=f"strategy={strategy!r}, but it must be one of auto, baseline"):
        make(strategy=strategy)


@pytest.mark.parametrize("strategy", [*STATISTICAL, "pretrained"])
@pytest.mark.parametrize("what", ["past", "static"])
def test_what_is_refused_leaves_the_fit_before_as_it_was(series, what, strategy):
    _, other, options, reason = cannot(series)[what]
    model = make(strategy=strategy).fit(series)
    before, network = model.predict(6, random_state=0), model.model
    with pytest.raises(ValueError, match=reason):
        model.fit(other, **options)
    assert model.model is network
    assert chosen(model) == strategy
    assert model.predict(6, random_state=0) == before


# --- a strategy that is asked for -------------------------------------------------------------------------


@pytest.mark.parametrize("n", [30, 96])
@pytest.mark.parametrize("strategy", STRATEGIES[1:])
def test_a_strategy_that_is_asked_for_is_taken_whatever_the_length(long, n, strategy):
    model = make(strategy=strategy).fit(long[:n])
    assert chosen(model) == strategy
    assert model.epochs_trained == (strategy in TRAINED)
    assert finite(model.predict(8, num_samples=3))


def test_a_further_short_series_is_not_forecast_by_what_was_fitted_to_the_first(series):
    other = make().fit(series[:40]).fit(series[20:60])
    fresh = make().fit(series[20:60])
    with pytest.raises(ValueError, match="infinite"):
        other.fit(series[:40].map(lambda values: values / 0.0))
    np.testing.assert_array_equal(*(m.predict(6, random_state=0).values() for m in (other, fresh)))


def test_a_model_of_a_short_series_can_be_saved_loaded_and_fitted_anew(series, long, tmp_path):
    model = make().fit(series[:40])
    model.save(str(tmp_path / "model.pt"))
    again = TaylorformerModel.load(str(tmp_path / "model.pt"), pl_trainer_kwargs=QUIET)
    weights = make()
    weights.load_weights(str(tmp_path / "model.pt"))
    forecasts = [m.predict(6, series[:40], random_state=0).values() for m in (model, again, weights)]
    np.testing.assert_array_equal(forecasts[0], forecasts[1])
    np.testing.assert_array_equal(forecasts[0], forecasts[2])
    for one in (model, again, weights, model.untrained_model()):
        assert chosen(one.fit(long)) == "averaged"
        assert one.epochs_trained == 1


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_learning_rate_can_be_looked_for(series, strategy):
    model = make(strategy=strategy, n_epochs=None)
    assert len(model.lr_find(series[:40], num_training=5).results["lr"]) > 0
    model._arguments["n_epochs"] = 1
    expected = "corrected" if strategy == "auto" else strategy
    assert chosen(model.fit(series[:40])) == expected


def test_looking_for_a_learning_rate_leaves_a_fit_as_it_was(series):
    model = make(strategy="pretrained").fit(series)
    before = model.predict(6, random_state=0)
    model.lr_find(series, num_training=5)
    assert chosen(model) == "pretrained"
    assert model.predict(6, random_state=0) == before


def test_short_series_have_statistical_forecasts_in_backtests_lists_and_after_a_shift(series):
    model = make()
    forecasts = model.historical_forecasts(series[:44], forecast_horizon=6, start=38, retrain=True)
    assert finite(forecasts)
    assert chosen(model.untrained_model().fit([series[:22], series[:20]])) == "corrected"
    shifted = make(output_chunk_shift=2).fit(series[:40])
    assert chosen(shifted) == "corrected"
    assert finite(shifted.predict(6))


# --- what is said of it -----------------------------------------------------------------------------------


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_the_summary_says_what_was_done_and_is_kept(series, strategy, tmp_path):
    model = make(strategy=strategy).fit(series)
    done, net, name = model.summary(), model.model.net, "corrected" if strategy == "auto" else strategy
    assert done.strategy == name
    share = f"; statistics weigh {model._strategy.statistics:.2f}" if strategy in AVERAGED else ""
    assert done.reason == (
        "72 values are fewer than 16 horizons of 6" if strategy == "auto" else f"{strategy=}{share}"
    )
    if name in STATISTICAL:
        none = name == "baseline"
        size = ("none", 0) if none else ("CorrectionNet", 204_999)
        assert (done.network, done.n_parameters, done.baseline) == (*size, "statistical forecasts")
        assert (done.weight, done.inflation) == (0.0 if none else net.weight, 1.0)
    else:
        assert done.network == type(net).__name__
        assert done.baseline == ("LinearBaseline" if name in PRETRAINED else "LinearPathBaseline")
        assert done.n_parameters == sum(p.numel() for p in net.parameters() if p.requires_grad) > 0
        assert done.weight == float(net.calibration.weight)
        assert done.inflation == float(net.calibration.inflation)
    assert (done.context_length, done.horizon) == (12, 6)
    assert done.seasons == ("week", "12 steps")
    assert done.steps == (2 if name in TRAINED else 0)  # of 32 windows, and then 23
    assert done.seconds > 0
    text = str(done)
    for part in (f"{name} ({done.reason})", f"{done.network} around {done.baseline}", f"{done.steps} steps"):
        assert part in text
    model.predict(6)
    assert model.summary() == done
    model.save(str(tmp_path / "model.pt"))
    assert TaylorformerModel.load(str(tmp_path / "model.pt")).summary() == done


@pytest.mark.parametrize("kind", models(OTHERS), ids=lambda k: k.__name__)
def test_models_without_a_pretrained_network_train_and_have_a_summary(series, kind):
    model = kind(12, 6, **small(kind, n_epochs=1, pl_trainer_kwargs=QUIET)).fit(series)
    assert model.summary().strategy == "train"
    assert model.summary().reason == "this model has no pretrained network"
    assert model.summary().steps == 2


def test_there_is_no_summary_before_a_fit():
    with pytest.raises(ValueError, match="has not been fitted"):
        make().summary()


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_every_fit_leaves_one_record_in_the_log(series, strategy, caplog):
    with caplog.at_level(logging.INFO, logger=LOGGER):
        model = make(strategy=strategy).fit(series)
    records = [record for record in caplog.records if record.name == LOGGER]
    assert [(r.levelname, r.getMessage()) for r in records] == [("INFO", str(model.summary()))]
