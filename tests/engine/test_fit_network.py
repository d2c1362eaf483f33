"""Windows, baseline, training and calibration of a fit, in this order."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from taylorformer_forecast.baselines.linear import LinearBaseline
from taylorformer_forecast.baselines.linear_path import LinearPathBaseline
from taylorformer_forecast.core.window import shuffle_targets
from taylorformer_forecast.engine.fit_network import Training, fit_network, fit_pretrained, train_further
from taylorformer_forecast.engine.pretrained import Pretrained, build_direct
from taylorformer_forecast.engine.windows import Series
from taylorformer_forecast.models.direct import DirectTaylorformer
from taylorformer_forecast.models.taylorformer import Taylorformer

L, H = 12, 6
SIZES = {"d_model": 8, "n_heads": 2, "n_layers": 2}


def wave(n=150, dim_covariates=0, seed=0):
    t = np.arange(float(n))
    y = np.sin(2 * np.pi * t / 6) + 0.3 * np.random.default_rng(seed).normal(size=n)
    covariates = np.random.default_rng(1).normal(size=(n, dim_covariates)) if dim_covariates else None
    return Series(t, y[:, None], covariates)


def training(series=None, **changes):
    settings = {"seed": 0, "batch_size": 16, "lr": 1e-2, "options": {"device": "cpu"}}
    return Training(series or [wave()], L, H, **{**settings, **changes})


def around_path(maker=None):
    return Taylorformer(**SIZES, baseline=LinearPathBaseline(L, H), weight=0.5)


def state(net):
    return {name: value.clone() for name, value in net.state_dict().items()}


def differ(first, second):
    """Names of the values that differ, by the part of the network that they belong to."""
    return {name.split(".")[0] for name in first if not torch.equal(first[name], second[name])}


@pytest.fixture
def rates(monkeypatch):
    """Record the learning rate and the steps of every fit, and train nothing."""
    seen = []

    def record(net, batches, validation, *, max_steps, lr, **options):
        seen.append((lr, max_steps))
        net.eval()
        return {"steps": max_steps}

    monkeypatch.setattr("taylorformer_forecast.engine.fit_network.fit", record)
    return seen


# --- windows of a training --------------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "expected"), [(1, 1), (2, 1), (4, 3), (6, 5), (7, 6), (100, 6)])
def test_windows_have_half_a_context_before_their_targets_where_there_is_one(n, expected):
    assert training([wave(n)]).min_context == expected


def test_the_longest_series_decides_how_much_precedes_the_targets():
    assert training([wave(4), wave(100)]).min_context == 6
    assert replace(training([wave(100)]), context_length=2).min_context == 3


def test_without_a_validation_part_everything_is_trained_on():
    one = training()
    batches, validation = one.batches(one.maker())
    assert validation is None
    assert one.keep == 1.0
    assert batches.starts[:, 1].tolist() == list(range(6, 150))


def test_windows_of_the_validation_part_are_not_trained_on():
    one = training(validation_split=0.2)
    batches, validation = one.batches(one.maker())
    assert batches.starts[:, 1].tolist() == list(range(6, 120))
    assert validation.starts[:, 1].tolist() == list(range(120, 150))
    assert (batches.last, validation.last) == (0.8, 1.0)


def test_the_windows_of_a_validation_loss_are_few_and_spread():
    one = training([wave(3000)], validation_split=0.5)
    starts = one.batches(one.maker())[1].starts[:, 1]
    assert (len(starts), starts[0], starts[-1]) == (256, 1500, 2999)
    assert starts.diff().unique().tolist() == [5, 6]


def test_a_split_that_leaves_nothing_is_an_error():
    one = training([wave(20)], validation_split=0.9)
    with pytest.raises(ValueError, match=r"validation_split=0\.9 leaves nothing to train on"):
        one.batches(one.maker())


def test_orders_and_covariates_of_the_past_reach_the_batches():
    one = training([wave(dim_covariates=3)], past_only=2, reorder=shuffle_targets, validation_split=0.2)
    batches, validation = one.batches(one.maker())
    window, held_out = next(iter(batches)), next(iter(validation))
    assert bool((window.t[:, L:].diff(dim=1) < 0).any())
    assert bool((held_out.t[:, L:].diff(dim=1) >= 0).all())
    for w in (window, held_out):
        assert not w.covariates[:, L:, 1:].any()
        assert w.covariates[:, L:, 0].any()
        assert w.covariates[:, :L, 1:].any()


# --- a new network ----------------------------------------------------------------------------------------


def test_without_steps_the_network_is_its_fitted_baseline():
    one = training()
    net, record = fit_network(one, around_path, lambda n: 0)
    baseline = LinearPathBaseline(L, H)
    window, embargo = one.batches(one.maker())[0].sample()
    baseline.fit_closed_form(window, embargo)
    for name, value in baseline.state_dict().items():
        assert torch.equal(net.baseline.state_dict()[name], value), name
    assert record == {"steps": 0}
    assert not net.training
    assert net.calibration.inflation == 1.0


def test_training_changes_the_network_and_not_the_baseline():
    untrained, _ = fit_network(training(), around_path, lambda n: 0)
    net, record = fit_network(training(), around_path, lambda n: 3)
    assert differ(state(untrained), state(net)) - {"calibration"} == {"streams"}
    assert record["steps"] == 3
    assert not net.training


def test_steps_follow_from_the_batches_of_one_pass(rates):
    seen = []
    fit_network(training(batch_size=50), around_path, lambda n: seen.append(n) or 7)
    assert seen == [training(batch_size=50).batches(training().maker())[0].n_batches]
    assert rates == [(1e-2, 7)]


def test_paths_that_are_too_narrow_are_inflated_after_training_alone():
    def build(maker):
        net = around_path()
        usual = net.baseline.fit_closed_form

        def narrow(*about):
            usual(*about)
            net.baseline.log_scale.sub_(2.0)

        net.baseline.fit_closed_form = narrow
        return net

    assert fit_network(training(lr=1e-6), build, lambda n: 1)[0].calibration.inflation > 1.5
    assert fit_network(training(lr=1e-6), build, lambda n: 0)[0].calibration.inflation == 1.0


def test_a_fit_is_decided_by_its_seed_and_leaves_the_global_generator_alone():
    torch.manual_seed(5)
    before = torch.get_rng_state()
    first = state(fit_network(training(), around_path, lambda n: 2)[0])
    assert torch.equal(torch.get_rng_state(), before)
    torch.manual_seed(6)
    assert not differ(first, state(fit_network(training(), around_path, lambda n: 2)[0]))
    assert "streams" in differ(first, state(fit_network(training(seed=1), around_path, lambda n: 2)[0]))


def test_a_validation_loss_is_recorded_where_there_is_a_validation_part():
    _, record = fit_network(training(validation_split=0.2), around_path, lambda n: 2)
    assert np.isfinite(record["val_loss"])


# --- irregular times --------------------------------------------------------------------------------------


def test_a_new_network_at_irregular_times_is_calibrated_on_the_last_quarter():
    one = training(irregular=True)
    batches, held_out = one.batches(one.maker(), calibrates=True)
    assert batches.starts[:, 1].tolist() == list(range(6, 112))
    assert held_out.starts[:, 1].tolist() == list(range(113, 150))
    assert (batches.last, held_out.last) == (0.75, 1.0)


@pytest.mark.parametrize(
    ("changes", "calibrates"),
    [
        ({"irregular": True}, False),
        ({}, True),
        ({"irregular": True, "series": [wave(40)]}, True),
        ({"irregular": True, "options": {"trainer_kwargs": {"max_time": {"seconds": 9}}}}, True),
    ],
    ids=["no new network", "regular", "short", "a limit of time for one training"],
)
def test_nothing_is_held_out_of_regular_or_short_series_or_where_training_is_to_be_one(changes, calibrates):
    one = training(**changes)
    batches, held_out = one.batches(one.maker(), calibrates)
    assert held_out is None
    assert batches.starts[-1, 1] == len(one.series[0].t) - 1


@pytest.fixture
def harm(monkeypatch):
    """Let training move all forecasts by three errors, as a network does that has learnt noise."""

    def fit(net, batches, validation, **options):
        with torch.no_grad():
            net.streams.to_params.bias[0] += 3.0
        net.eval()
        assert validation is None
        return {"steps": 1}

    monkeypatch.setattr("taylorformer_forecast.engine.fit_network.fit", fit)


@pytest.mark.parametrize("anew", [False, True])
@pytest.mark.usefixtures("harm")
def test_what_a_network_learns_at_irregular_times_counts_if_it_holds_for_new_windows(anew):
    def fitted(irregular):
        one = training(irregular=irregular)
        net, _ = fit_network(one, around_path, lambda n: 1)
        if anew:
            net.calibration.set_weight(0.5, net.head)
            net, _ = train_further(one, net, 1, anew=True)
        return net

    assert fitted(irregular=True).calibration.weight == 0.0
    assert fitted(irregular=False).calibration.weight == 0.5


def test_a_third_of_the_steps_are_of_the_first_part_and_the_others_of_all(monkeypatch):
    seen = []

    def fit(net, batches, validation, *, max_steps, **options):
        seen.append((max_steps, batches.last))
        net.eval()
        return {"steps": max_steps}

    monkeypatch.setattr("taylorformer_forecast.engine.fit_network.fit", fit)
    net, record = fit_network(training(irregular=True), around_path, lambda n: 7)
    assert seen == [(3, 0.75), (4, 1.0)]
    assert record == {"steps": 7}
    untrained, _ = fit_network(training(), around_path, lambda n: 0)
    assert not differ(state(untrained.baseline), state(net.baseline))


@pytest.mark.parametrize("asked", [{"max_steps": 6}, {"max_epochs": 1}, {"max_epochs": 1, "max_steps": -1}])
def test_steps_of_the_users_trainer_count_once_at_irregular_times(asked):
    one = training(irregular=True, options={"trainer_kwargs": asked})
    n_batches = one.batches(one.maker(), calibrates=True)[0].n_batches
    _, record = fit_network(one, around_path, lambda n: 50)
    assert record["steps"] == (n_batches if "max_epochs" in asked else 6)


@pytest.mark.parametrize("irregular", [False, True])
def test_further_training_at_irregular_times_does_not_take_back_an_inflation(rates, irregular):
    one = training(irregular=irregular)
    net, _ = fit_network(one, around_path, lambda n: 0)
    net.eval().calibration.set(inflation=3.0)
    further, _ = train_further(one, net, 1)
    assert (further.calibration.inflation == 3.0) == irregular


# --- pretrained weights -----------------------------------------------------------------------------------


def weights():
    torch.manual_seed(3)
    net = build_direct(SIZES, 2, L, H, 0)
    torch.nn.init.normal_(net.layers.to_params.weight, std=0.1)
    taken = {name: v.detach().clone() for name, v in net.state_dict().items() if name.startswith("layers.")}
    return Pretrained(taken, {**SIZES, "distribution": "normal"}, weight=0.75)


def test_without_steps_the_pretrained_weights_stay_and_baseline_and_calibration_are_set():
    net, record = fit_pretrained(training(), weights(), 0, lambda n: 0, 0.1)
    for name, value in weights().weights.items():
        assert torch.equal(net.state_dict()[name], value), name
    assert record == {"steps": 0}
    assert not net.training
    one, baseline = training(), LinearBaseline(L, H)
    baseline.fit_closed_form(*one.batches(one.maker())[0].sample())
    for name, value in baseline.state_dict().items():
        assert torch.equal(net.baseline.state_dict()[name], value), name
    assert net.calibration.inflation != 1.0  # chosen from the held-out windows


def test_a_short_series_takes_the_usual_weight_of_the_pretrained_network():
    net, _ = fit_pretrained(training([wave(20)]), weights(), 0, lambda n: 0, 0.1)
    assert (net.calibration.weight, net.calibration.inflation) == (0.75, 1.0)


def test_the_validation_part_chooses_nothing_either():
    changed = wave()
    changed.y[120:] += 50.0
    one, other = (
        fit_pretrained(training([series], validation_split=0.2), weights(), 0, lambda n: 0, 0.1)[0]
        for series in (wave(), changed)
    )
    assert not differ(state(one), state(other))


def test_pretrained_weights_are_trained_further_at_a_small_rate(rates):
    fit_pretrained(training(), weights(), 0, lambda n: 4, 0.1)
    assert rates == [(pytest.approx(1e-2 * DirectTaylorformer.lr_factor), 4)]


# --- further training -------------------------------------------------------------------------------------


def test_further_training_changes_a_copy_and_leaves_the_baseline_as_it_was():
    net, _ = fit_network(training(), around_path, lambda n: 1)
    before = state(net)
    further, record = train_further(training([wave(seed=7)]), net, 3)
    assert record["steps"] == 3
    assert not differ(before, state(net))
    assert differ(before, state(further)) - {"calibration"} == {"streams"}
    assert not further.training


@pytest.mark.parametrize(("options", "factor"), [({}, 0.1), ({"anew": True}, 1.0)])
def test_the_rate_of_further_training_is_a_part_of_the_first(rates, options, factor):
    train_further(training(), around_path(), 5, **options)
    assert rates == [(pytest.approx(1e-2 * factor), 5)]
