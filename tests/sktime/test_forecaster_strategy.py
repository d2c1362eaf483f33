"""How a forecaster chooses between statistical forecasts, the pretrained network and training."""

import logging
import pickle
import re

import numpy as np
import pandas as pd
import pytest
import pytorch_lightning as pl
import torch
from all_models import OTHERS, forecasters, small
from sktime.base import load
from sktime.datasets import load_airline
from sktime.forecasting.base import ForecastingHorizon

from taylorformer_forecast.engine.strategy import KINDS, STATISTICAL, STRATEGIES
from taylorformer_forecast.models.direct import DirectTaylorformer
from taylorformer_forecast.models.taylorformer import Taylorformer
from taylorformer_forecast.sktime import TaylorformerForecaster, TNPForecaster

FH = range(1, 13)
AVERAGED = [name for name, kind in KINDS.items() if kind.averages]
LOGGER = "taylorformer_forecast"


def forecaster(**changes):
    return TaylorformerForecaster(**{"random_state": 0} | changes)


def quick(**changes):
    """A forecaster whose training, if there is any, is short."""
    return forecaster(**{"max_steps": 1, "d_model": 8, "num_samples": 8} | changes)


@pytest.fixture(scope="module")
def y():
    return load_airline()


@pytest.fixture(scope="module")
def noisy():
    return pd.Series(np.sin(np.arange(192.0)) + np.random.default_rng(0).normal(size=192))


DEFAULTS = {
    name: value
    for name, value in TaylorformerForecaster().get_params(deep=False).items()
    if name not in ("random_state", "num_samples")
}
TRAINING = {
    "max_steps": 1,
    "num_epochs": 2,
    "batch_size": 4,
    "lr": 0.01,
    "validation_split": 0.3,
    "patience": 1,
    "dropout": 0.5,
    "d_model": 16,
    "n_heads": 1,
    "n_layers": 3,
    "taylor_order": 1,
    "n_derivative_neighbours": 3,
    "attention": "local",
    "update_steps": 3,
    "finetune_steps": 3,
    "trainer_kwargs": {"callbacks": [pl.Callback()]},
}


# --- "auto" ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "chosen"), [(90, "corrected"), (191, "corrected"), (192, "averaged")])
def test_series_of_fewer_values_than_sixteen_horizons_are_forecast_by_corrected_statistics(noisy, n, chosen):
    fitted = quick().fit(noisy[:n], fh=FH)
    assert fitted.strategy_ == chosen
    assert (fitted.network_ is None) == (chosen == "corrected")
    assert (fitted.training_["steps"] == 0) == (chosen == "corrected")
    if chosen == "corrected":
        asked = quick(strategy="corrected").fit(noisy[:n], fh=FH)
        pd.testing.assert_frame_equal(fitted.predict_quantiles(), asked.predict_quantiles())


def test_observed_values_of_the_longest_series_count(noisy):
    gappy = noisy.mask(np.arange(192) % 16 == 3)
    assert quick().fit(gappy, fh=FH).strategy_ == "corrected"
    columns = pd.DataFrame({"a": noisy[:96], "b": noisy[96:].to_numpy()})
    assert quick().fit(columns, fh=FH).strategy_ == "corrected"
    panel = pd.concat({"a": columns[["a"]], "b": columns[["b"]].set_axis(["a"], axis=1)}, names=["s", "t"])
    assert quick().fit(panel, fh=FH).strategy_ == "corrected"
    assert quick().fit(panel.loc[["a"]], fh=FH).strategy_ == "corrected"


def beside(short, long):
    return pd.concat({"a": long.to_frame("y"), "b": short.to_frame("y")}, names=["s", "t"])


@pytest.fixture(scope="module")
def short():
    return pd.Series(100 + np.random.default_rng(1).normal(size=60).cumsum(), range(100, 160))


def test_a_short_series_of_a_panel_is_forecast_as_if_it_were_alone(noisy, short):
    """One long history moved all of a panel to an average with weights of its own."""
    fitted = quick(joint=True).fit(beside(short, noisy), fh=range(1, 13))
    assert fitted.strategy_ == "averaged"
    assert (
        "at least 16 horizons of 12, and statistics alone forecast 1 of 2 series" in fitted.summary().reason
    )
    long = quick().fit(beside(noisy, noisy).loc[["a"]], fh=FH)
    assert fitted._strategy.weight_of_others == pytest.approx(long._strategy.weight_of_others)
    alone = quick(strategy="corrected").fit(short, fh=FH)
    for fh in (FH, [-2, 0, 3]):
        found = fitted.predict_quantiles(fh=fh).loc["b"]
        np.testing.assert_array_equal(found, alone.predict_quantiles(fh=fh))
    paths = fitted.predict_proba(fh=FH, marginal=False).paths
    assert np.isfinite(paths).all()
    statistics = quick(strategy="corrected").fit(beside(short, noisy), fh=FH).predict_quantiles()
    assert np.abs(fitted.predict_quantiles(fh=FH) - statistics).loc["a"].min(axis=None) > 1e-3
    asked = quick(strategy="averaged").fit(beside(short, noisy), fh=FH)
    assert np.abs(asked.predict_quantiles() - statistics).loc["b"].max(axis=None) > 1e-3


def test_a_short_column_beside_a_long_one_is_forecast_as_if_it_were_alone(noisy, short):
    both = pd.DataFrame({"long": noisy, "short": short})
    fitted = quick().fit(both, fh=FH)
    assert fitted.strategy_ == "averaged"
    alone = quick(strategy="corrected").fit(both[["short"]], fh=range(33, 45))
    alone = alone.predict_quantiles(fh=FH)
    np.testing.assert_array_equal(fitted.predict_quantiles()["short"], alone["short"])


def test_short_series_keep_statistics_where_a_network_forecasts_the_long_ones_best(short):
    t = np.arange(400)
    exact = pd.Series(np.sin(t / 5) + np.sin(t / 7.3))
    fitted = quick().fit(beside(short, exact), fh=FH)
    assert fitted._strategy.weight_of_others < 0.05
    alone = quick(strategy="corrected").fit(short, fh=FH).predict_quantiles()
    np.testing.assert_array_equal(fitted.predict_quantiles().loc["b"], alone)


def test_a_network_learns_from_no_demand_beside_short_series(noisy, short):
    demand = pd.Series(np.random.default_rng(0).poisson(0.4, 192).astype(float))
    fitted = quick().fit(beside(short, demand), fh=FH)
    assert fitted.strategy_ == "corrected"
    assert fitted.summary().reason.endswith("but all others are intermittent demand")


def test_irregular_series_that_are_short_have_the_pretrained_network(noisy):
    hours = np.cumsum(np.random.default_rng(0).exponential(5, 90))
    irregular = noisy[:90].set_axis(pd.Timestamp("2020-01-01") + pd.to_timedelta(hours, "h"))
    fitted = quick().fit(irregular, fh=FH)
    assert fitted.strategy_ == "pretrained"
    assert isinstance(fitted.network_, DirectTaylorformer)
    for strategy in STATISTICAL:
        with pytest.raises(ValueError, match="the times are not regular, which statistical forecasts need"):
            quick(strategy=strategy).fit(irregular, fh=FH)


@pytest.mark.parametrize("name", DEFAULTS)
def test_a_default_that_is_written_out_changes_nothing(noisy, name):
    plain, written = (
        TaylorformerForecaster(**{"random_state": 0, "num_samples": 8} | given).fit(noisy[:60], fh=FH)
        for given in ({}, {name: DEFAULTS[name]})
    )
    assert plain.strategy_ == written.strategy_ == "corrected"
    pd.testing.assert_frame_equal(plain.predict_quantiles(), written.predict_quantiles())


@pytest.mark.parametrize("name", TRAINING)
def test_no_parameter_of_training_or_of_a_trained_network_changes_the_choice(noisy, name):
    plain, other = (
        forecaster(num_samples=8, **given).fit(noisy[:60], fh=FH) for given in ({}, {name: TRAINING[name]})
    )
    assert other.strategy_ == "corrected"
    pd.testing.assert_frame_equal(plain.predict_quantiles(), other.predict_quantiles())
    long = forecaster(**{"max_steps": 1, "d_model": 8} | {name: TRAINING[name]}).fit(noisy, fh=FH)
    assert long.strategy_ == "averaged"


@pytest.mark.parametrize(("n", "chosen"), [(60, "corrected"), (192, "averaged")])
def test_a_grid_of_learning_rates_compares_one_kind_of_model(noisy, n, chosen):
    rates = (1e-4, 2e-3, 1e-2)  # the second is the default
    assert {quick(lr=rate).fit(noisy[:n], fh=FH).strategy_ for rate in rates} == {chosen}


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"distribution": "normal"}, "distribution='normal', which only a new network can have"),
        ({"distribution": "quantile"}, "distribution='quantile'"),
        ({"distribution": "mae"}, "distribution='mae'"),
        ({"order": "random"}, "order='random', which only a new network can use"),
        ({"linear_path": False}, "linear_path=False, which only a new network can use"),
    ],
)
def test_what_the_pretrained_network_cannot_do_is_trained_or_refused(y, change, reason):
    fitted = quick(**change).fit(y[:60], fh=FH)
    assert fitted.strategy_ == "train"
    assert reason in fitted.summary().reason
    assert isinstance(fitted.network_, Taylorformer)
    for strategy in ("pretrained", "finetune"):
        with pytest.raises(ValueError, match=rf"strategy='{strategy}': {reason}.*; take strategy='train'"):
            quick(strategy=strategy, **change).fit(y[:60], fh=FH)


def test_x_of_the_past_alone_is_learnt_by_a_new_network_or_refused(y):
    X = pd.DataFrame({"x": np.arange(60.0)}, y.index[:60])
    fitted = quick(past_only="all").fit(y[:60], X=X, fh=FH)
    assert fitted.strategy_ == "train"
    reason = "X has columns known of the past only, ['x'], which only a trained network sees"
    assert fitted.summary().reason == reason
    assert fitted.training_["steps"] > 0
    for strategy in ("corrected", "pretrained", "finetune"):
        with pytest.raises(ValueError, match=re.escape(f"strategy='{strategy}': {reason}")):
            quick(strategy=strategy, past_only="all").fit(y[:60], X=X, fh=FH)


def test_a_panel_to_pretrain_on_is_learnt_from_however_short_it_is(y):
    panel = pd.concat({name: y[:40].to_frame() for name in "ab"})
    fitted = quick().fit(y[:60], fh=FH)
    assert fitted.strategy_ == "corrected"
    learnt = [one.pretrain(panel) for one in (quick(), fitted)]
    assert all(one.pretrained_.training["steps"] > 0 for one in learnt)
    assert not any(isinstance(one.pretrained_.network, DirectTaylorformer) for one in learnt)
    for one in learnt:
        assert one.strategy == "auto"
        assert one.fit(y[:60]).strategy_ == "train"


# --- a strategy that is asked for -----------------------------------------------------------------------


@pytest.mark.parametrize("n", [30, 144])
@pytest.mark.parametrize("strategy", STRATEGIES[1:])
def test_a_strategy_that_is_asked_for_is_taken_whatever_the_length(y, n, strategy):
    fitted = quick(strategy=strategy).fit(y[:n], fh=[1, 2, 3])
    assert fitted.strategy_ == strategy
    assert isinstance(fitted.network_, Taylorformer) == (strategy in ("train", "averaged"))
    assert fitted.training_["steps"] == (strategy in ("train", "averaged", "finetune"))
    assert np.isfinite(fitted.predict_quantiles().to_numpy()).all()


@pytest.mark.parametrize("strategy", ["auto", "baseline", "corrected", "averaged"])
def test_a_file_that_does_not_exist_is_refused_whether_it_is_needed_or_not(y, strategy):
    with pytest.raises(FileNotFoundError, match="pretrained='nowhere' is neither 'default' nor a file"):
        quick(strategy=strategy, pretrained="nowhere").fit(y[:60], fh=FH)


@pytest.mark.parametrize("strategy", ["auto", "baseline", "pretrained"])
@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"attention": "ful"}, "attention='ful' is neither a kernel nor one of"),
        ({"n_heads": 3, "d_model": 4}, "d_model=4 is not a multiple of n_heads=3"),
        ({"n_layers": 1}, "n_layers=1, but each stream needs at least 2"),
        ({"taylor_order": 3}, "taylor_order=3, but it must be 0 or 1"),
    ],
)
def test_parameters_of_no_network_are_refused_where_none_is_trained(y, strategy, settings, message):
    with pytest.raises(ValueError, match=message):
        quick(**{"strategy": strategy, **settings}).fit(y[:60], fh=FH)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"strategy": "zero"},
            "strategy='zero', but it must be one of auto, baseline, corrected, pretrained, zero_shot, train, "
            "averaged, finetune",
        ),
        ({"strategy": None}, "strategy=None"),
        ({"pretrained": "nowhere"}, "'nowhere' is neither 'default' nor a file"),
        ({"pretrained": 3}, "pretrained=3, but it must be 'default' or a path"),
        ({"pretrained": None}, "pretrained=None"),
        ({"strategy": "pretrained", "order": "random"}, "strategy='pretrained': order='random'"),
        ({"strategy": "finetune", "distribution": "normal"}, "strategy='finetune': distribution='normal'"),
        ({"strategy": "pretrained", "linear_path": False}, "strategy='pretrained': linear_path=False"),
        ({"strategy": "zero_shot", "linear_path": False}, "strategy='zero_shot': linear_path=False"),
    ],
)
@pytest.mark.parametrize("before", ["pretrained", "train"])
def test_what_is_refused_leaves_the_fit_before_as_it_was(y, change, message, before):
    fitted = quick(strategy=before).fit(y, fh=FH)
    forecast, network, summary = fitted.predict(), fitted.network_, str(fitted.summary())
    for name, value in change.items():
        setattr(fitted, name, value)
    if before == "train" and set(change) == {"pretrained"}:
        fitted.strategy = "auto"  # else no file is looked for
    with pytest.raises((ValueError, FileNotFoundError), match=message):
        fitted.fit(y[:60], fh=FH)
    assert fitted.network_ is network
    assert str(fitted.summary()) == summary
    pd.testing.assert_series_equal(fitted.predict(), forecast)


def test_x_that_is_refused_leaves_the_fit_before_as_it_was(y):
    fitted = quick(strategy="finetune", past_only="all").fit(y, fh=FH)
    before = fitted.predict()
    with pytest.raises(ValueError, match="strategy='finetune': X has columns known of the past only"):
        fitted.fit(y, X=pd.DataFrame({"x": np.arange(144.0)}, y.index), fh=FH)
    assert fitted.strategy_ == "finetune"
    pd.testing.assert_series_equal(fitted.predict(), before)


def test_a_network_that_is_trained_needs_no_file(y):
    assert quick(strategy="train", pretrained="nowhere").fit(y[:60], fh=FH).strategy_ == "train"


# --- what is said of it ---------------------------------------------------------------------------------


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_the_summary_says_what_was_done(y, strategy):
    fitted = quick(strategy=strategy, max_steps=2, num_epochs=None).fit(y, fh=FH)
    done, net = fitted.summary(), fitted.network_
    chosen = "corrected" if strategy == "auto" else strategy
    assert done.strategy == fitted.strategy_ == chosen
    weights = fitted._strategy.statistics, fitted._strategy.analogues
    share = "; statistics weigh {:.2f}, analogues {:.2f}".format(*weights) if strategy in AVERAGED else ""
    assert done.reason == (
        "144 values are fewer than 16 horizons of 12" if strategy == "auto" else f"{strategy=}{share}"
    )
    if chosen in STATISTICAL:
        name, size = ("none", 0) if chosen == "baseline" else ("CorrectionNet", 204_999)
        assert (done.network, done.baseline, done.n_parameters) == (name, "statistical forecasts", size)
    else:
        assert done.network == type(net).__name__
        assert done.baseline == (
            "LinearPathBaseline" if chosen in ("train", "averaged") else "LinearBaseline"
        )
        assert done.n_parameters == sum(p.numel() for p in net.parameters() if p.requires_grad) > 0
        assert done.weight == float(net.calibration.weight)
        assert done.inflation == float(net.calibration.inflation)
    assert (done.context_length, done.horizon) == (fitted.context_length_, fitted.horizon_)
    assert done.seasons == ("year",)
    assert (
        done.steps == fitted.training_["steps"] == (2 if chosen in ("train", "averaged", "finetune") else 0)
    )
    assert done.seconds > 0
    text = str(done)
    for part in (
        f"{chosen} ({done.reason})",
        f"{done.network} around {done.baseline}",
        f"{done.steps} steps",
    ):
        assert part in text


@pytest.mark.parametrize("kind", forecasters(OTHERS), ids=lambda k: k.__name__)
def test_forecasters_without_a_pretrained_network_train_and_have_a_summary(y, kind):
    fitted = kind(**small(kind, max_steps=1, num_samples=4)).fit(y[:60], fh=[1, 2])
    assert fitted.strategy_ == fitted.summary().strategy == "train"
    assert fitted.summary().steps == 1


def test_there_is_no_summary_before_a_fit():
    with pytest.raises(Exception, match="has not been fitted"):
        forecaster().summary()
    assert not hasattr(forecaster(), "strategy_")


def test_every_fit_leaves_one_record_in_the_log(y, caplog):
    panel = pd.concat({name: y[:40].to_frame() for name in "ab"})
    for strategy in STRATEGIES:
        with caplog.at_level(logging.INFO, logger=LOGGER):
            fitted = quick(strategy=strategy).fit(y, fh=FH)
        records = [record for record in caplog.records if record.name == LOGGER]
        assert [(record.levelname, record.getMessage()) for record in records] == [
            ("INFO", str(fitted.summary()))
        ]
        caplog.clear()
    learnt = quick().pretrain(panel)
    caplog.clear()
    with caplog.at_level(logging.INFO, logger=LOGGER):
        learnt.fit(y)
    assert [r.getMessage() for r in caplog.records if r.name == LOGGER] == [str(learnt.summary())]


# --- the same forecaster, elsewhere or later ------------------------------------------------------------


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_copies_and_files_keep_the_strategy_and_the_forecast(y, strategy, tmp_path):
    fitted = quick(strategy=strategy).fit(y, fh=FH)
    expected = fitted.predict_quantiles()
    fitted.save(str(tmp_path / "forecaster"))
    for same in (pickle.loads(pickle.dumps(fitted)), load(str(tmp_path / "forecaster"))):
        assert same.strategy_ == fitted.strategy_
        assert str(same.summary()) == str(fitted.summary())
        pd.testing.assert_frame_equal(same.predict_quantiles(), expected)
    clone = fitted.clone()
    assert clone.strategy == strategy
    assert not hasattr(clone, "strategy_")
    pd.testing.assert_frame_equal(clone.fit(y, fh=FH).predict_quantiles(), expected)


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("update_steps", [0, 2])
def test_updates_keep_the_strategy(y, strategy, update_steps):
    fitted = quick(strategy=strategy, update_steps=update_steps).fit(y[:-12], fh=FH)
    before, network = fitted.strategy_, fitted.network_
    fitted.update(y[-12:])
    assert fitted.strategy_ == before
    assert (fitted.network_ is network) == (update_steps == 0 or network is None)
    assert type(fitted.network_) is type(network)
    assert fitted.predict().index[0] == y.index[-1] + 1
    assert fitted.predict().notna().all()


@pytest.mark.parametrize("strategy", [one for one in STRATEGIES if one not in STATISTICAL])
def test_a_panel_is_pretrained_on_before_or_after_a_fit(y, strategy):
    panel = pd.concat({name: y[:60].to_frame() for name in "ab"})
    made = "train" if strategy == "auto" else strategy
    for one in (quick(strategy=strategy), quick(strategy=strategy).fit(y, fh=FH)):
        one.pretrain(panel)
        assert one.pretrained_.strategy.name == made
        assert one.fit(y[:30]).strategy_ == made
        assert one.summary().strategy == made
        assert one.predict(fh=FH).notna().all()


@pytest.mark.parametrize("strategy", STATISTICAL)
def test_statistics_alone_cannot_be_pretrained_and_stay_as_they_were(y, strategy):
    fitted = quick(strategy=strategy).fit(y, fh=FH)
    for one in (quick(strategy=strategy), fitted):
        with pytest.raises(ValueError, match=f"strategy='{strategy}' trains no network"):
            one.pretrain(pd.concat({name: y[:60].to_frame() for name in "ab"}))
    assert fitted.strategy_ == strategy
    assert fitted.predict().notna().all()


def test_a_short_series_after_a_long_one_is_chosen_for_anew(noisy):
    fitted = quick()
    for n, chosen in ((60, "corrected"), (192, "averaged"), (60, "corrected")):
        assert fitted.fit(noisy[:n], fh=FH).strategy_ == chosen


# --- the average ----------------------------------------------------------------------------------------

AVERAGES = pytest.mark.parametrize(
    ("average", "network"), [("averaged", "train"), ("zero_shot", "pretrained")]
)


@AVERAGES
def test_quantiles_of_the_average_lie_between_those_of_its_parts(noisy, average, network):
    panel = pd.concat({name: noisy[:n].to_frame() + n for name, n in (("b", 60), ("a", 90))})
    panel = pd.concat([panel, (10 - panel).set_axis([1], axis=1)], axis=1)
    averaged, *parts = (
        quick(strategy=strategy).fit(panel, fh=FH) for strategy in (average, network, "corrected")
    )
    parts = [one.predict_quantiles(alpha=[0.05, 0.5, 0.9]) for one in parts]
    found = averaged.predict_quantiles(alpha=[0.05, 0.5, 0.9])
    share = averaged._strategy.statistics
    assert 0 < share < 1
    pd.testing.assert_frame_equal(found, (1 - share) * parts[0] + share * parts[1], rtol=1e-6)
    np.testing.assert_allclose(averaged.predict(), averaged.predict_proba().mean(), rtol=1e-6)


def test_weights_of_an_average_follow_the_losses_of_the_past():
    """A linear forecast continues two sines exactly; statistics have a season for one of them."""
    t, rng = np.arange(400), np.random.default_rng(0)
    exact = pd.Series(np.sin(t / 5) + np.sin(t / 7.3))
    jumps = exact + np.repeat(rng.normal(size=8), 50) * 3
    chosen = [quick(strategy="auto").fit(y, fh=FH) for y in (exact, jumps)]
    assert chosen[0].strategy_ == "train"
    assert chosen[1].strategy_ == "averaged"
    assert chosen[0]._strategy.statistics < 0.05 < 2 * chosen[1]._strategy.statistics


def test_of_a_panel_some_series_say_what_weighs_how_much(noisy, monkeypatch):
    panel = pd.concat({f"{n}": noisy.to_frame("y") + n for n in range(30)})
    late = pd.concat({"late": noisy[-4:].to_frame("y")})  # of which nothing is known at the first origin
    seen = []
    own = TaylorformerForecaster._compared
    monkeypatch.setattr(
        TaylorformerForecaster, "_compared", lambda self, *ends: seen.append(own(self, *ends)) or seen[-1]
    )
    fitted = quick(strategy="averaged").fit(pd.concat([panel, late]), fh=FH)
    keys = seen[0].index.droplevel(-1).unique()
    assert len(keys) == 16
    assert "late" not in keys
    assert 0 < fitted._strategy.statistics < 1
    assert np.isfinite(fitted.predict().to_numpy()).all()


def test_no_network_is_trained_on_intermittent_demand_alone(noisy):
    """Its forecasts are statistical, whatever a network would say."""
    demand = pd.DataFrame(np.random.default_rng(0).poisson(0.4, (192, 2)), noisy.index, ["a", "b"])
    chosen = quick(strategy="auto").fit(demand, fh=FH)
    assert chosen.strategy_ == "corrected"
    assert chosen.summary().reason.endswith("of 12, but all are intermittent demand")
    assert quick(strategy="auto").fit(demand.assign(c=noisy), fh=FH).strategy_ == "averaged"
    asked = quick(strategy="averaged").fit(demand, fh=FH)
    assert asked.training_["steps"] == 1
    pd.testing.assert_frame_equal(chosen.predict(), asked.predict())


def test_series_that_ended_are_not_compared(noisy):
    """They would be forecast from their own end, through many horizons."""
    both = pd.DataFrame({"a": noisy, "b": noisy.where(np.arange(len(noisy)) < len(noisy) // 2)})
    panel = pd.concat({"a": both[["a"]], "b": both[["b"]].set_axis(["a"], axis=1).dropna()})
    weights = [
        quick(strategy="averaged").fit(y, fh=FH)._strategy.statistics for y in (both[["a"]], both, panel)
    ]
    assert weights[0] != 0.5
    np.testing.assert_allclose(weights[1:], weights[0], rtol=0.02)


def test_weights_of_an_average_do_not_depend_on_steps_beyond_the_trained_horizon():
    y = pd.Series(np.random.default_rng(0).normal(size=400))
    fitted = [quick(strategy="averaged").fit(y, fh=fh) for fh in ([96], [300])]
    assert fitted[0].horizon_ == fitted[1].horizon_
    assert fitted[0]._strategy == fitted[1]._strategy


@AVERAGES
def test_paths_of_the_average_keep_their_dependence(noisy, average, network):
    found = [
        quick(strategy=strategy, num_samples=200).fit(noisy, fh=FH).predict_proba(marginal=False)
        for strategy in (average, network)
    ]
    ranks = [one.paths.argsort(0).argsort(0) for one in found]
    np.testing.assert_array_equal(*ranks)


@pytest.mark.parametrize("average", AVERAGED)
def test_an_average_of_series_without_negative_values_has_none(noisy, average):
    counts = noisy.clip(lower=0)
    fitted = quick(strategy=average).fit(counts, fh=FH)
    assert fitted.predict_quantiles(alpha=[0.005, 0.1]).min(axis=None) >= 0
    assert fitted.predict_proba().cdf(pd.DataFrame(-1e-3, fitted.predict().index, [0])).max(axis=None) == 0


@AVERAGES
def test_what_the_statistics_cannot_do_is_left_to_the_network_of_an_average(noisy, average, network):
    y = noisy.set_axis(pd.date_range("2020", periods=192, freq="D"))
    both = [quick(strategy=strategy).fit(y[:150], fh=FH) for strategy in (average, network)]
    in_sample = [one.predict_quantiles(fh=[-3, -2], alpha=[0.5]) for one in both]
    pd.testing.assert_frame_equal(*in_sample)
    later = y[150:].set_axis(y.index[150:] + pd.to_timedelta(np.arange(42) * 7.3, "h"))
    for one in both:
        one.update(later, update_params=False)
    fh = ForecastingHorizon(pd.DatetimeIndex([later.index[-1] + pd.Timedelta(9, "h")]), is_relative=False)
    pd.testing.assert_series_equal(*(one.predict(fh=fh) for one in both))


def test_dropout_is_that_of_further_training_too(noisy):
    fitted = quick(strategy="finetune", dropout=0.4).fit(noisy, fh=FH)
    rates = {m.p for m in fitted.network_.modules() if isinstance(m, torch.nn.Dropout)}
    rates |= {m.dropout for m in fitted.network_.modules() if isinstance(getattr(m, "dropout", None), float)}
    assert 0.4 in rates
    assert 0.1 not in rates


def test_attributes_of_a_fit_are_documented(y):
    for fitted in (quick().fit(y, fh=FH), TNPForecaster(max_steps=1, d_model=8).fit(y)):
        found = {name for name in dir(fitted) if name.endswith("_") and not name.startswith("_")}
        assert "strategy_" in found
        assert not {name for name in found if name not in type(fitted).__doc__}
