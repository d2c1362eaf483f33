"""darts models that average a network, trained or not, with statistical forecasts."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from darts import TimeSeries
from quiet import QUIET

from taylorformer_forecast.darts import TaylorformerModel

N_STEPS, N_PATHS = 6, 400


def make(strategy="averaged", **params):
    usual = {"n_epochs": 1, "d_model": 8, "random_state": 0, "pl_trainer_kwargs": QUIET}
    return TaylorformerModel(12, N_STEPS, strategy=strategy, **{**usual, **params})


@pytest.fixture(scope="module")
def noisy():
    """Return two components with a season of 12 steps and noise."""
    rng = np.random.default_rng(0)
    season = np.sin(np.arange(120)[:, None] * np.pi / 6 + [0.0, 1.0])
    return TimeSeries.from_values((10 + season + 0.3 * rng.normal(size=(120, 2))).astype("float32"))


def drawn(model, **options):
    options = {"num_samples": N_PATHS, "random_state": 0} | options
    return model.predict(N_STEPS, **options).all_values()


@pytest.mark.parametrize(("average", "network"), [("averaged", "train"), ("zero_shot", "pretrained")])
def test_quantiles_of_the_average_lie_between_those_of_its_parts(noisy, average, network):
    levels = [0.1, 0.3, 0.5, 0.7, 0.9]
    models = {name: make(name).fit(noisy) for name in (network, "corrected", average)}
    strategy = models[average]._strategy
    assert 0.1 < strategy.statistics < 0.9
    assert 0.05 < strategy.analogues < 0.5
    models["corrected"].model.statistics.analogues = strategy.part_of_analogues
    found = {name: np.quantile(drawn(model), levels, axis=2) for name, model in models.items()}
    share = strategy.weight_of_others
    between = (1 - share) * found[network] + share * found["corrected"]
    assert np.abs(found[network] - found["corrected"]).max() > 0.3
    np.testing.assert_allclose(found[average], between, atol=0.12)  # of 400 draws


def test_weights_of_an_average_follow_the_losses_of_the_past():
    """A linear forecast continues two sines exactly; statistics have a season for one of them."""
    t, rng = np.arange(400), np.random.default_rng(0)
    exact = np.sin(t / 5) + np.sin(t / 7.3)
    jumps = exact + np.repeat(rng.normal(size=8), 50) * 3
    weights = [
        make().fit(TimeSeries.from_values(y.astype("float32")))._strategy.statistics for y in (exact, jumps)
    ]
    assert weights[0] < 0.05 < 2 * weights[1]


def test_no_network_is_trained_on_intermittent_demand_alone(noisy):
    demand = np.random.default_rng(0).poisson(0.4, (120, 2)).astype("float32")
    demand[:9, 0] = np.nan
    chosen = make("auto").fit([TimeSeries.from_values(demand), TimeSeries.from_values(demand[:100])])
    assert chosen.summary().strategy == "corrected"
    assert chosen.summary().reason.endswith("but all others are intermittent demand")
    demand[:, 1] = noisy.values()[:, 0]
    assert make("auto").fit(TimeSeries.from_values(demand)).summary().strategy == "averaged"


def test_a_short_series_of_a_list_is_forecast_as_if_it_were_alone(noisy):
    """One long history moved all of a list to an average, and lent them its seasons."""
    values = np.random.default_rng(1).normal(size=(30, 2)).cumsum(0) + 100
    short = TimeSeries.from_values(values.astype("float32"))
    options = {"predict_likelihood_parameters": True, "random_state": 0}
    model = make("auto").fit([noisy, short])
    assert "at least 16 horizons of 6, and statistics alone forecast 2 of 4 series" in model.summary().reason
    weights = make("auto").fit(noisy)._strategy
    assert model._strategy.weight_of_others == pytest.approx(weights.weight_of_others)
    expected = make("corrected").fit(short).predict(N_STEPS, **options)
    found = model.predict(N_STEPS, [noisy, short], **options)
    np.testing.assert_array_equal(found[1].values(), expected.values())
    statistics = make("corrected").fit(noisy).predict(N_STEPS, **options)
    assert np.abs(found[0].values() - statistics.values())[:, ::3].max() > 0.01
    assert np.isfinite(make("auto", joint=True).fit([noisy, short]).predict(N_STEPS, short).values()).all()


def test_a_short_component_beside_a_long_one_is_forecast_as_if_it_were_alone(noisy):
    values = noisy.values().copy()
    values[:90, 1] = np.nan
    options = {"predict_likelihood_parameters": True, "random_state": 0}
    found = make("auto").fit(noisy.with_values(values)).predict(N_STEPS, **options)
    alone = make("corrected").fit(noisy[noisy.components[1]][90:]).predict(N_STEPS, **options)
    np.testing.assert_array_equal(found.values()[:, 3:], alone.values())


def test_backtests_of_unlike_lengths_pass_to_the_average_as_fits_of_their_own(noisy):
    model = make("auto").fit([noisy, noisy[:40]])
    options = {"predict_likelihood_parameters": True, "random_state": 0}
    found = model.historical_forecasts(
        noisy, start=95, forecast_horizon=N_STEPS, retrain=False, last_points_only=False, **options
    )
    for k, statistical in enumerate((True, False)):
        own = make("corrected").fit(noisy[: 95 + k]).predict(N_STEPS, **options)
        assert np.array_equal(found[k].values(), own.values()) == statistical


def test_a_model_of_long_series_alone_serves_short_ones_too(noisy):
    options = {"predict_likelihood_parameters": True, "random_state": 0}
    found, asked = (
        make(name).fit(noisy).predict(N_STEPS, noisy[:40], **options) for name in ("auto", "averaged")
    )
    np.testing.assert_array_equal(found.values(), asked.values())


def test_components_and_series_that_ended_are_not_compared(noisy):
    """They would be forecast from their own end, through many horizons."""
    values = noisy.values()
    ended = values.copy()
    ended[60:, 1] = np.nan
    weights = [
        make().fit(one)._strategy.statistics
        for one in (
            noisy[noisy.components[0]],
            TimeSeries.from_values(ended),
            [noisy[noisy.components[1]].with_values(ended[:, 1:]), noisy[noisy.components[0]]],
        )
    ]
    assert weights[0] != 0.5
    np.testing.assert_allclose(weights[1:], weights[0], rtol=0.02)


def test_a_component_that_begins_late_says_nothing_of_the_weights(noisy):
    values = noisy.values().copy()
    values[100:, 1], values[:100, 1] = 1000 * values[100:, 1], np.nan
    alone, late = (
        make().fit(one)._strategy for one in (noisy[noisy.components[0]], noisy.with_values(values))
    )
    assert late.weight_of_others == pytest.approx(alone.weight_of_others, rel=0.05)


def test_a_comparison_leaves_no_trace_of_itself(noisy, tmp_path, caplog):
    """It trains the same network, keeps no files and reports nothing."""
    options = {"work_dir": str(tmp_path), "model_name": "own", "save_checkpoints": True}
    options["pl_trainer_kwargs"] = {"accelerator": "cpu", "enable_progress_bar": False}
    with caplog.at_level("INFO", logger="taylorformer_forecast"):
        averaged = make(**options).fit(noisy)
    assert len([one for one in caplog.records if one.name == "taylorformer_forecast"]) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["own"]
    train = make("train").fit(noisy)
    for ours, own in zip(averaged.model.net.parameters(), train.model.net.parameters(), strict=True):
        np.testing.assert_array_equal(ours.detach(), own.detach())


def test_paths_of_the_average_keep_their_dependence(noisy):
    averaged, train = (drawn(make(strategy).fit(noisy)) for strategy in ("averaged", "train"))
    ranks = [one.argsort(2).argsort(2) for one in (averaged, train)]
    assert np.abs(ranks[0] - ranks[1]).max() <= 1  # ties of single precision


def test_parameters_of_the_average_have_the_mean_of_its_paths(noisy):
    model = make().fit(noisy)
    loc = model.predict(N_STEPS, predict_likelihood_parameters=True, random_state=0).values()[:, ::3]
    np.testing.assert_allclose(loc, drawn(model).mean(2), atol=0.1)


def test_the_average_sees_more_of_the_past_than_the_network(noisy):
    before = noisy.values().copy()
    before[:-12] = 10 + 3 * (before[:-12] - 10)  # before the input chunk
    other = noisy.with_values(before)
    assert not np.array_equal(*(drawn(make().fit(noisy), series=one) for one in (noisy, other)))
    train = make("train").fit(noisy)
    np.testing.assert_array_equal(*(drawn(train, series=one) for one in (noisy, other)))


def test_series_of_unlike_lengths_are_each_averaged_with_their_own_past(noisy):
    model = make().fit(noisy)
    together = model.predict(N_STEPS, [noisy, noisy[:40]], predict_likelihood_parameters=True, random_state=0)
    for one, found in zip((noisy, noisy[:40]), together, strict=True):
        alone = model.predict(N_STEPS, one, predict_likelihood_parameters=True, random_state=0)
        np.testing.assert_allclose(found.values()[:, ::3], alone.values()[:, ::3], atol=0.1)


def test_backtests_forecast_as_predict_does_from_each_origin(noisy):
    model = make().fit(noisy)
    options = {"predict_likelihood_parameters": True, "random_state": 0}
    found = model.historical_forecasts(
        noisy, start=100, forecast_horizon=N_STEPS, stride=8, retrain=False, last_points_only=False, **options
    )
    assert len(found) == 2
    for k, one in enumerate(found):
        expected = model.predict(N_STEPS, noisy[: 100 + 8 * k], **options)
        assert one.start_time() == expected.start_time()
        np.testing.assert_allclose(one.values()[:, ::3], expected.values()[:, ::3], atol=0.1)


def test_a_saved_model_forecasts_alike(noisy, tmp_path):
    model = make().fit(noisy)
    model.save(str(tmp_path / "model.pt"))
    again = TaylorformerModel.load(str(tmp_path / "model.pt"), pl_trainer_kwargs=QUIET)
    weights = make()
    weights.load_weights(str(tmp_path / "model.pt"))
    for one in (again, weights):
        np.testing.assert_array_equal(drawn(model), drawn(one, series=noisy))


@pytest.mark.parametrize("parameters", [True, False])
def test_averages_of_half_precision_are_as_those_of_single(noisy, parameters):
    options = {"predict_likelihood_parameters": True, "num_samples": 1} if parameters else {}
    single, half = (drawn(make().fit(noisy.astype(kind)), **options) for kind in ("float32", "float16"))
    every = slice(None, None, 3 if parameters else 1)  # of parameters the mean
    np.testing.assert_allclose(half.mean(2)[:, every], single.mean(2)[:, every], atol=0.3)


def test_where_the_input_chunk_is_empty_statistics_forecast_alone(noisy):
    values = noisy.values().copy()
    values[-12:, 0] = np.nan
    gappy = noisy.with_values(values)
    found = {name: drawn(make(name).fit(gappy)) for name in ("averaged", "corrected")}
    assert np.isfinite(found["averaged"]).all()
    np.testing.assert_allclose(found["averaged"][:, 0].mean(1), found["corrected"][:, 0].mean(1), atol=0.1)
    values[:, 1] = np.nan
    unseen = drawn(make().fit(noisy), series=noisy.with_values(values))
    assert np.isfinite(unseen[:, 0]).all()
    assert np.isnan(unseen[:, 1]).all()


def test_steps_before_the_first_value_say_nothing(noisy):
    """They moved the origins that weigh an average, and the windows that calibrate the network."""
    empty = np.full((40, 2), np.nan, dtype="float32")
    late = TimeSeries.from_times_and_values(
        pd.RangeIndex(160), np.concatenate([empty, noisy.values()]), columns=noisy.components
    )
    options = {"predict_likelihood_parameters": True, "random_state": 0}
    found = [make("zero_shot").fit(one).predict(N_STEPS, **options).values() for one in (noisy, late)]
    np.testing.assert_allclose(*found, rtol=1e-5)


@pytest.mark.parametrize("strategy", ["averaged", "zero_shot"])
def test_after_an_outage_statistics_decide(strategy):
    """A network that saw a sixth of its input chunk kept its weight: one truth in four was covered."""
    t, rng = np.arange(744), np.random.default_rng(0)
    y = (100 + 30 * np.sin(2 * np.pi * t / 24) + rng.normal(0, 3, 744)).astype("float32")
    model = TaylorformerModel(
        48, 24, strategy=strategy, n_epochs=1, d_model=8, random_state=0, pl_trainer_kwargs=QUIET
    )
    model.fit(hourly(y[:720]))
    for gap in (slice(0), slice(-48, -8), slice(-40, None)):
        past = y[:720].copy()
        past[gap] = np.nan
        found = model.predict(24, series=hourly(past), num_samples=N_PATHS, random_state=0)
        low, high = (found.quantile(q).values()[:, 0] for q in (0.05, 0.95))
        assert ((low < y[-24:]) & (y[-24:] < high)).mean() > 0.7


def hourly(y):
    return TimeSeries.from_times_and_values(pd.date_range("2024-01-01", periods=len(y), freq="h"), y)


@pytest.mark.parametrize("strategy", ["auto", "averaged", "zero_shot", "train", "corrected"])
def test_a_series_that_begins_late_may_stand_among_others(strategy):
    """An aligned panel with a product that was launched twenty months ago."""
    y = 100 + 20 * np.sin(np.arange(120) * np.pi / 6) + np.random.default_rng(0).normal(0, 3, 120)
    old, new = y.copy(), y.copy()
    new[:100] = np.nan
    panel = [TimeSeries.from_values(one.astype("float32")) for one in (old, new)]
    model = TaylorformerModel(
        24, 6, strategy=strategy, n_epochs=1, d_model=8, random_state=0, pl_trainer_kwargs=QUIET
    )
    found = model.fit(panel).predict(6, series=panel, num_samples=50)
    assert all(np.abs(one.quantile(0.5).values() - 105).max() < 25 for one in found)


@pytest.mark.parametrize("strategy", ["averaged", "zero_shot"])
def test_young_series_are_forecast_by_what_others_taught(strategy):
    """Statistics of seven values know no week, and the weight of the network was next to nothing."""
    rng = np.random.default_rng(0)

    def daily(n):
        t = np.arange(n)
        y = 50 + 10 * np.sin(2 * np.pi * t / 7) + rng.normal(0, 2, n)
        return TimeSeries.from_times_and_values(pd.date_range("2024-01-01", periods=n), y.astype("float32"))

    small = {"n_epochs": 1, "d_model": 8, "random_state": 0, "pl_trainer_kwargs": QUIET}
    model = TaylorformerModel((7, 28), 14, strategy=strategy, **small).fit([daily(300) for _ in range(3)])
    found = model.predict(14, series=[daily(7) for _ in range(6)], num_samples=100)
    truth = 50 + 10 * np.sin(2 * np.pi * np.arange(7, 21) / 7)
    assert np.mean([np.abs(one.mean(axis=2).values()[:, 0] - truth).mean() for one in found]) < 2.5  # 5.7
