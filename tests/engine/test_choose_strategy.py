"""Which series have statistical forecasts, the pretrained network, or one that is trained."""

from __future__ import annotations

import logging

import pytest

from taylorformer_forecast.core.families import find_family
from taylorformer_forecast.engine.strategy import (
    STRATEGIES,
    choose_strategy,
    log_decision,
    obstacle_of_options,
)


@pytest.mark.parametrize(
    ("n_observed", "name"),
    [([1], "corrected"), ([191] * 50, "corrected"), ([192] * 3, "averaged"), ([50_000], "averaged")],
)
def test_series_of_which_each_has_fewer_than_sixteen_horizons_have_statistical_forecasts(n_observed, name):
    chosen = choose_strategy("auto", n_observed, horizon=12)
    assert chosen.name == name
    assert not chosen.kind.pretrained
    compared = "fewer than" if name == "corrected" else "at least"
    assert chosen.reason == f"{max(n_observed)} values are {compared} 16 horizons of 12"
    assert chosen.least == 0  # nothing is to be told apart


def test_of_series_of_unlike_lengths_the_average_serves_those_of_sixteen_horizons():
    chosen = choose_strategy("auto", [20, 192, 191], horizon=12)
    assert (chosen.name, chosen.least) == ("averaged", 192)
    why = "192 values are at least 16 horizons of 12, and statistics alone forecast 2 of 3 series, with fewer"
    assert chosen.reason == why
    assert chosen.of_demand().reason == f"{why}, but all others are intermittent demand"
    weighed = chosen.weighed("auto", 0.01)
    assert (weighed.name, weighed.least) == ("averaged", 192)  # short series need statistics
    for asked, irregular in (("averaged", None), ("auto", "the times are not regular")):
        assert choose_strategy(asked, [20, 192], 12, irregular=irregular).least == 0


def test_short_irregular_series_have_the_pretrained_network():
    assert choose_strategy("auto", [100], 12, irregular="the times are not regular").name == "pretrained"
    assert choose_strategy("auto", [1000], 12, irregular="the times are not regular").name == "train"
    with pytest.raises(ValueError, match="strategy='baseline': the times are not regular; take"):
        choose_strategy("baseline", [100], 12, irregular="the times are not regular")


@pytest.mark.parametrize("n_values", [10, 5000])
@pytest.mark.parametrize("irregular", [None, "the times are not regular"])
def test_an_obstacle_means_training(n_values, irregular):
    chosen = choose_strategy("auto", [n_values], 12, "it takes no covariates", irregular)
    assert (chosen.name, chosen.reason) == ("train", "it takes no covariates")


@pytest.mark.parametrize("asked", STRATEGIES[1:])
@pytest.mark.parametrize("n_values", [10, 5000])
def test_what_is_asked_for_is_done_whatever_the_size(asked, n_values):
    chosen = choose_strategy(asked, [n_values], 12)
    assert (chosen.name, chosen.reason) == (asked, f"strategy={asked!r}")
    assert chosen.kind.pretrained == (asked in ("pretrained", "zero_shot", "finetune"))
    assert chosen.kind.trains == (asked in ("train", "averaged", "finetune"))


@pytest.mark.parametrize("asked", ["baseline", "pretrained", "zero_shot", "finetune"])
def test_an_obstacle_to_what_is_asked_for_is_an_error_that_names_a_way_out(asked):
    with pytest.raises(ValueError, match=f"strategy='{asked}': no covariates; take strategy='train' or"):
        choose_strategy(asked, [10], 12, obstacle="no covariates")


@pytest.mark.parametrize("asked", ["baseline", "corrected", "zero_shot", "averaged"])
def test_irregular_times_leave_networks_alone(asked):
    message = f"strategy='{asked}': no grid; take strategy='pretrained', 'train' or 'auto'"
    with pytest.raises(ValueError, match=message):
        choose_strategy(asked, [10], 12, irregular="no grid")


@pytest.mark.parametrize("own", ["studentt", "normal"])
def test_a_family_is_the_one_of_its_name(own):
    assert obstacle_of_options({}, find_family(own), own) is None


@pytest.mark.parametrize("asked", [None, "normal", find_family("normal"), find_family("studentt", "bounded")])
def test_another_distribution_than_that_of_the_pretrained_network_is_an_obstacle(asked):
    found = obstacle_of_options({}, asked, "studentt")
    assert found == f"distribution={asked!r}, which only a new network can have"


def test_training_has_no_obstacles():
    assert choose_strategy("train", [10], 12, obstacle="no covariates").reason == "strategy='train'"


@pytest.mark.parametrize("asked", ["none", "Auto", ""])
def test_an_unknown_strategy_is_refused_and_the_known_ones_are_listed(asked):
    with pytest.raises(ValueError, match=f"strategy={asked!r} is not one of {', '.join(STRATEGIES)}"):
        choose_strategy(asked, [10], 12)


def test_a_decision_is_one_record_for_those_who_listen(caplog):
    with caplog.at_level(logging.INFO, logger="taylorformer_forecast"):
        log_decision("left to the pretrained network")
    assert [(r.name, r.levelname, r.message) for r in caplog.records] == [
        ("taylorformer_forecast", "INFO", "left to the pretrained network")
    ]
    caplog.clear()
    log_decision("not heard by default")
    assert caplog.records == []
