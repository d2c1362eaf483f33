"""The table of what a fit decided."""

from __future__ import annotations

import pytest

from taylorformer_forecast.baselines.linear import LinearBaseline
from taylorformer_forecast.calendar.cycles import SeasonalFeatures
from taylorformer_forecast.engine.strategy import Strategy, choose_strategy
from taylorformer_forecast.engine.summary import Summary, summarise
from taylorformer_forecast.models.lam import LAMTransformer


def network(baseline=None):
    net = LAMTransformer(24, 12, d_model=8, n_heads=2, baseline=baseline)
    net.calibration.set(weight=0.75, inflation=1.234)
    return net


def summary(baseline=None, cycles=("day", "week"), periods=(7.0, 365.25)):
    strategy = choose_strategy("auto", [5000], 12)
    seasonal = SeasonalFeatures(None, cycles, periods)
    return summarise(
        network(baseline), strategy, context_length=24, horizon=12, seasonal=seasonal, steps=150, seconds=2.04
    )


def test_the_table_has_a_line_for_each_decision():
    baseline = LinearBaseline(24, 12)
    n_parameters = sum(p.numel() for p in network(baseline).parameters() if p.requires_grad)
    assert str(summary(baseline)).splitlines() == [
        "strategy        averaged (5000 values are at least 16 horizons of 12)",
        f"network         LAMTransformer around LinearBaseline, {n_parameters:,} parameters",
        "context length  24",
        "horizon         12",
        "seasons         day, week, 7 steps, 365.25 steps",
        "calibration     weight 0.75, inflation 1.23",
        "training        150 steps, 2.0 s",
    ]


@pytest.mark.parametrize("name", ["baseline", "corrected"])
def test_statistical_forecasts_have_no_line_of_a_context_which_they_do_not_use(name):
    done = summarise(
        None, Strategy(name, "few"), context_length=24, horizon=12, seasonal=None, steps=0, seconds=0.1
    )
    assert [line[:14].strip() for line in str(done).splitlines()] == [
        *("strategy", "network", "horizon", "seasons", "calibration", "training"),
    ]


def test_parameters_of_the_baseline_do_not_count_as_trained():
    assert summary(LinearBaseline(24, 12)).n_parameters == summary().n_parameters


@pytest.mark.parametrize("seasons", [(), ("year",)])
def test_a_network_without_baseline_and_a_series_without_seasons_have_their_lines_too(seasons):
    lines = str(summary(cycles=seasons, periods=())).splitlines()
    assert "around" not in lines[1]
    assert lines[4] == f"seasons         {seasons[0] if seasons else 'none'}"


def test_decisions_can_be_read_as_attributes():
    found = summary(LinearBaseline(24, 12))
    assert isinstance(found, Summary)
    assert (found.strategy, found.baseline, found.network) == ("averaged", "LinearBaseline", "LAMTransformer")
    assert (found.weight, found.inflation) == pytest.approx((0.75, 1.234))
    assert (found.context_length, found.horizon, found.steps) == (24, 12, 150)
