"""Forecasts of few parameters that larger maps are shrunk to."""

import pytest
import torch
from torch.testing import assert_close as close

from taylorformer_forecast.baselines.shrinkage import damped_trend, decaying_seasonal_naive, seasonal_naive

TARGETS = [decaying_seasonal_naive, seasonal_naive, damped_trend]
N, L, T = 30, 12, 5


def seen(y):
    return torch.ones(y.shape, dtype=torch.bool)


def walks(n_steps=L + T, seed=0):
    return torch.randn(N, n_steps, generator=torch.Generator().manual_seed(seed)).double().cumsum(1)


@pytest.mark.parametrize("shrinkage_target", TARGETS)
def test_a_series_that_stands_still_goes_on_as_it_is(shrinkage_target):
    x = walks(1).expand(-1, L + T)
    close(x[:, :L] @ shrinkage_target(x[:, :L], x[:, L:], seen(x[:, L:])), x[:, L:])


@pytest.mark.parametrize("shrinkage_target", TARGETS)
def test_shrinkage_targets_forecast_walks_better_than_their_mean(shrinkage_target):
    x, new = walks(), walks(seed=1)
    error = new[:, L:] - new[:, :L] @ shrinkage_target(x[:, :L], x[:, L:], seen(x[:, L:]))
    assert error.square().mean() < 0.7 * (new[:, L:] - new[:, :L].mean(1, keepdim=True)).square().mean()


@pytest.mark.parametrize("shrinkage_target", TARGETS)
def test_what_was_not_observed_does_not_count(shrinkage_target):
    x = walks()
    y, other = x[:, L:], x[:, L:].clone()
    known = torch.rand(y.shape, generator=torch.Generator().manual_seed(2)) < 0.7
    other[~known] = 0.0
    close(shrinkage_target(x[:, :L], y * known, known), shrinkage_target(x[:, :L], other, known))


@pytest.mark.parametrize("shrinkage_target", [decaying_seasonal_naive, damped_trend])
def test_forecasts_go_on_from_the_last_value_of_a_walk(shrinkage_target):
    x = walks()
    forecast = x[:, :L] @ shrinkage_target(x[:, :L], x[:, L:], seen(x[:, L:]))
    first = (forecast[:, 0] - x[:, L - 1]).square().mean()
    assert first < 0.1 * x[:, :L].var(1).mean()


def test_a_season_goes_on_from_a_level_that_has_just_shifted():
    t = torch.arange(L + T).double()
    shift = walks(1, seed=4) * (t >= L - 1)
    x = 3.0 * torch.sin(2 * torch.pi * t / 4) + shift + 0.1 * walks(seed=5)
    errors = {
        shrinkage_target: (x[:, L:] - x[:, :L] @ shrinkage_target(x[:, :L], x[:, L:], seen(x[:, L:])))
        .square()
        .mean()
        for shrinkage_target in TARGETS
    }
    assert errors[decaying_seasonal_naive] < 0.9 * errors[seasonal_naive]
    assert errors[decaying_seasonal_naive] < 0.5 * errors[damped_trend]


def test_smoothing_follows_a_trend_and_damps_it_where_it_fades():
    t = torch.arange(L + T).double()
    line = walks(1) * t
    close(
        line[:, :L] @ damped_trend(line[:, :L], line[:, L:], seen(line[:, L:])),
        line[:, L:],
        atol=0.05,
        rtol=0.01,
    )
    fading = walks(1) * 0.8**t
    map = damped_trend(fading[:, :L], fading[:, L:], seen(fading[:, L:]))
    assert (fading[:, :L] @ map - fading[:, L:]).abs().max() < 0.05 * fading[:, L - 1 :].abs().max()
