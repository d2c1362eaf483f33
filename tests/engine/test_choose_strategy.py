"""Which series are left to the pretrained network."""

from __future__ import annotations

import logging

import pytest

from taylorformer_forecast.engine.strategy import STRATEGIES, choose_strategy, log_decision


@pytest.mark.parametrize(
    ("n_values", "name"), [(1, "pretrained"), (191, "pretrained"), (192, "train"), (5000, "train")]
)
def test_series_of_fewer_than_sixteen_horizons_are_left_to_the_pretrained_network(n_values, name):
    chosen = choose_strategy("auto", n_values, horizon=12)
    assert chosen.name == name
    assert chosen.is_pretrained == (name == "pretrained")
    compared = "fewer than" if name == "pretrained" else "at least"
    assert chosen.reason == f"{n_values} values are {compared} 16 horizons of 12"


@pytest.mark.parametrize("n_values", [10, 5000])
def test_an_obstacle_to_the_pretrained_network_means_training(n_values):
    chosen = choose_strategy("auto", n_values, 12, obstacle="it takes no covariates")
    assert (chosen.name, chosen.reason) == ("train", "it takes no covariates")


@pytest.mark.parametrize("asked", ["pretrained", "train", "finetune"])
@pytest.mark.parametrize("n_values", [10, 5000])
def test_what_is_asked_for_is_done_whatever_the_size(asked, n_values):
    chosen = choose_strategy(asked, n_values, 12)
    assert (chosen.name, chosen.reason) == (asked, f"strategy={asked!r}")
    assert chosen.is_pretrained == (asked != "train")


@pytest.mark.parametrize("asked", ["pretrained", "finetune"])
def test_an_obstacle_to_what_is_asked_for_is_an_error_that_names_a_way_out(asked):
    with pytest.raises(ValueError, match=f"strategy='{asked}': no covariates; take strategy='train', or"):
        choose_strategy(asked, 10, 12, obstacle="no covariates")


def test_training_has_no_obstacles():
    assert choose_strategy("train", 10, 12, obstacle="no covariates").reason == "strategy='train'"


@pytest.mark.parametrize("asked", ["none", "Auto", ""])
def test_an_unknown_strategy_is_refused_and_the_known_ones_are_listed(asked):
    with pytest.raises(ValueError, match=f"strategy={asked!r} is not one of {', '.join(STRATEGIES)}"):
        choose_strategy(asked, 10, 12)


def test_a_decision_is_one_record_for_those_who_listen(caplog):
    with caplog.at_level(logging.INFO, logger="taylorformer_forecast"):
        log_decision("left to the pretrained network")
    assert [(r.name, r.levelname, r.message) for r in caplog.records] == [
        ("taylorformer_forecast", "INFO", "left to the pretrained network")
    ]
    caplog.clear()
    log_decision("not heard by default")
    assert caplog.records == []
