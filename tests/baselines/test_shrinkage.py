"""Simple rules that larger maps are shrunk to."""

import pytest
import torch
from torch.testing import assert_close as close

from taylorformer_forecast.baselines.shrinkage import best_continuation, best_repetition, best_smoothing

RULES = [best_continuation, best_repetition, best_smoothing]
N, L, T = 30, 12, 5


def seen(y):
    return torch.ones(y.shape, dtype=torch.bool)


def walks(n_steps=L + T, seed=0):
    return torch.randn(N, n_steps, generator=torch.Generator().manual_seed(seed)).double().cumsum(1)


@pytest.mark.parametrize("rule", RULES)
def test_a_series_that_stands_still_goes_on_as_it_is(rule):
    x = walks(1).expand(-1, L + T)
    close(x[:, :L] @ rule(x[:, :L], x[:, L:], seen(x[:, L:])), x[:, L:])


@pytest.mark.parametrize("rule", RULES)
def test_rules_forecast_walks_better_than_their_mean(rule):
    x, new = walks(), walks(seed=1)
    error = new[:, L:] - new[:, :L] @ rule(x[:, :L], x[:, L:], seen(x[:, L:]))
    assert error.square().mean() < 0.7 * (new[:, L:] - new[:, :L].mean(1, keepdim=True)).square().mean()


@pytest.mark.parametrize("rule", RULES)
def test_what_was_not_observed_does_not_count(rule):
    x = walks()
    y, other = x[:, L:], x[:, L:].clone()
    known = torch.rand(y.shape, generator=torch.Generator().manual_seed(2)) < 0.7
    other[~known] = 0.0
    close(rule(x[:, :L], y * known, known), rule(x[:, :L], other, known))


@pytest.mark.parametrize("rule", [best_continuation, best_smoothing])
def test_rules_go_on_from_the_last_value_of_a_walk(rule):
    x = walks()
    forecast = x[:, :L] @ rule(x[:, :L], x[:, L:], seen(x[:, L:]))
    first = (forecast[:, 0] - x[:, L - 1]).square().mean()
    assert first < 0.1 * x[:, :L].var(1).mean()


def test_a_season_goes_on_from_a_level_that_has_just_shifted():
    t = torch.arange(L + T).double()
    shift = walks(1, seed=4) * (t >= L - 1)
    x = 3.0 * torch.sin(2 * torch.pi * t / 4) + shift + 0.1 * walks(seed=5)
    errors = {
        rule: (x[:, L:] - x[:, :L] @ rule(x[:, :L], x[:, L:], seen(x[:, L:]))).square().mean()
        for rule in RULES
    }
    assert errors[best_continuation] < 0.9 * errors[best_repetition]
    assert errors[best_continuation] < 0.5 * errors[best_smoothing]


def test_smoothing_follows_a_trend_and_damps_it_where_it_fades():
    t = torch.arange(L + T).double()
    line = walks(1) * t
    close(
        line[:, :L] @ best_smoothing(line[:, :L], line[:, L:], seen(line[:, L:])),
        line[:, L:],
        atol=0.05,
        rtol=0.01,
    )
    fading = walks(1) * 0.8**t
    map = best_smoothing(fading[:, :L], fading[:, L:], seen(fading[:, L:]))
    assert (fading[:, :L] @ map - fading[:, L:]).abs().max() < 0.05 * fading[:, L - 1 :].abs().max()
