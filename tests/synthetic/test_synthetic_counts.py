"""Moments of counts and of intermittent demand."""

import numpy as np
import pytest

from taylorformer_forecast.synthetic.counts import COUNTS, bursts, croston, negative_binomial, poisson

rng = np.random.default_rng
K, N = 3000, 100


def of(name, k=K, n=N, seed=0):
    return COUNTS[name](rng(seed), np.ones((k, n)))


def log_uniform_mean(low, high):
    return (high - low) / np.log(high / low)


@pytest.mark.parametrize("name", COUNTS)
def test_counts_are_whole_and_not_negative(name):
    x = COUNTS[name](rng(0), np.exp(rng(1).standard_normal((300, 50))))
    assert (x >= 0).all()
    np.testing.assert_array_equal(x, np.round(x))


def test_poisson_counts_have_a_variance_equal_to_their_mean():
    x = poisson(rng(0), np.full((K, N), 3.5))
    assert x.mean() == pytest.approx(3.5, rel=0.01)
    assert x.var() == pytest.approx(3.5, rel=0.02)
    x = of("poisson")
    assert np.mean(x.var(1, ddof=1) / x.mean(1).clip(0.1)) == pytest.approx(1, abs=0.03)


def test_negative_binomial_counts_are_overdispersed_by_the_square_of_the_mean():
    x = negative_binomial(rng(0), np.full((K, N), 6.0), np.full(K, 3.0))
    assert x.mean() == pytest.approx(6.0, rel=0.01)
    assert x.var() == pytest.approx(6 + 36 / 3, rel=0.03)
    x = of("negative_binomial")
    assert np.median(x.var(1) / x.mean(1).clip(0.1)) > 3


def test_zero_inflated_counts_are_zero_as_often_as_the_shop_is_closed():
    x = of("zero_inflated")
    rate = np.exp(np.linspace(0, np.log(100), 2001))
    closed = 1 - 0.625 * (1 - np.mean(np.exp(-rate)))
    assert np.mean(x == 0) == pytest.approx(closed, abs=0.01)


def test_croston_demand_has_geometric_intervals_and_sizes_of_the_asked_mean():
    p, extra = 0.25, 3.0
    x = croston(rng(0), np.full((K, N), p), np.full((K, N), extra), np.full(K, 2.0))
    assert np.mean(x > 0) == pytest.approx(p, abs=0.004)
    assert x[x > 0].mean() == pytest.approx(1 + extra, rel=0.02)
    assert x[x > 0].var() == pytest.approx(extra + extra**2 / 2, rel=0.05)
    both = np.mean((x[:, 1:] > 0) & (x[:, :-1] > 0))
    assert both == pytest.approx(p**2, abs=0.003)  # no memory
    assert np.mean(of("croston") > 0) == pytest.approx(log_uniform_mean(0.04, 0.6), rel=0.04)


def test_changing_demand_has_a_probability_with_memory():
    x = of("changing_demand", 6000) > 0
    share = x.mean(1, keepdims=True)
    near = np.mean((x[:, 1:] - share) * (x[:, :-1] - share))
    far = np.mean((x[:, 60:] - share) * (x[:, :-60] - share))
    assert near > far + 0.015
    # The mean of the logistic function of a normal variable, its deviation that of level and course together.
    z, s = rng(1).standard_normal(200_000), rng(2).uniform(0.5, 2.0, 200_000)
    assert x.mean() == pytest.approx(np.mean(1 / (1 + np.exp(1.5 - np.sqrt(1 + s**2) * z))), abs=0.012)


def test_lumpy_demand_comes_in_bursts_of_the_asked_share_and_length():
    on, leave = 0.3, 0.2
    x = bursts(rng(0), np.full(K, on), np.full(K, leave), N)
    assert x.mean() == pytest.approx(on, abs=0.01)
    enter = leave * on / (1 - on)
    correlation = np.mean((x[:, 1:] - on) * (x[:, :-1] - on)) / (on * (1 - on))
    assert correlation == pytest.approx(1 - leave - enter, abs=0.02)
    y = of("lumpy_demand")
    assert np.mean(y > 0) == pytest.approx(log_uniform_mean(0.05, 0.5), rel=0.05)
    positive = [row[row > 0] for row in y if (row > 0).sum() > 10]
    assert np.median([row.var() / row.mean() ** 2 for row in positive]) > 0.4  # of sizes, between series


def test_demand_life_cycle_begins_late_in_half_of_the_series_and_ends_early_in_the_others():
    x = of("demand_life_cycle", 6000) > 0
    early, late = x[:, : N // 4].mean(1), x[:, -N // 4 :].mean(1)
    assert early.mean() == pytest.approx(late.mean(), rel=0.06)
    changed = np.abs(late - early) > 0.15
    assert changed.mean() > 0.35
    assert np.mean((late > early)[changed]) == pytest.approx(0.5, abs=0.04)


def test_regime_demand_has_the_mean_of_its_states_and_their_memory():
    x = of("regime_demand", 6000)
    assert x.mean() == pytest.approx(log_uniform_mean(0.05, 8.0), rel=0.05)
    second = (64 - 0.05**2) / (2 * np.log(160))
    assert np.mean(x[:, 1:] * x[:, :-1]) == pytest.approx(second, rel=0.1)  # nearly always the same state
