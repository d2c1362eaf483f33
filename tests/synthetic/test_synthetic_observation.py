"""How values are observed: moments of what rounding, censoring, failures and gaps leave."""

import numpy as np
import pytest

from taylorformer_forecast.synthetic.observation import (
    OBSERVATIONS,
    censor,
    irregular_times,
    round_to,
)

rng = np.random.default_rng
K, N = 3000, 100


@pytest.fixture(scope="module")
def normal():
    return 10 + rng(0).standard_normal((K, N))


def observe(name, y):
    return OBSERVATIONS[name](rng(1), y.copy())


def test_rounding_leaves_uniform_errors(normal):
    grain = np.full(K, 0.2)
    error = round_to(normal, grain) - normal
    assert error.var() == pytest.approx(0.2**2 / 12, rel=0.02)
    y = observe("rounding", normal)
    error = y - normal
    # The grain is a power of ten near a third to a hundredth of the deviation.
    assert set(np.round(np.log10(np.abs(error).max(1) * 2), 0)) <= {-2.0, -1.0, 0.0}
    assert np.mean([len(np.unique(row)) for row in y]) < 0.7 * N


def test_censoring_leaves_the_asked_share_of_zeros(normal):
    y = censor(normal, np.full(K, 0.3))
    np.testing.assert_allclose(np.mean(y == 0, axis=1), 0.3)
    shares = np.mean(observe("censoring", normal) == 0, axis=1)
    assert shares.mean() == pytest.approx(0.9 * 0.6 / 2.6, abs=0.015)
    assert observe("censoring", normal).min() == 0


def test_saturation_leaves_a_share_of_values_at_the_capacity(normal):
    y = observe("saturation", normal)
    share = np.mean(y == y.max(1, keepdims=True), axis=1)
    # The mean of a beta variable, and one and a half points more: the largest value, and half of the next.
    assert share.mean() == pytest.approx(0.99 * 0.8 / 3.8 / 1.5 + 0.015, abs=0.012)
    assert (y <= normal).all()


def test_glitches_repeat_a_value_or_store_zero_for_less_than_half_of_a_series(normal):
    y = observe("glitches", normal)
    changed = y != normal
    assert changed.mean(1).max() <= 0.5
    zero = (y == 0).any(1)
    assert zero.mean() == pytest.approx(0.4, abs=0.03)
    begun = ~zero & changed.any(1)
    rows, at = np.nonzero(changed & begun[:, None])
    np.testing.assert_array_equal(y[rows, at], y[rows, at - 1])


def test_missing_points_are_independent_and_of_log_uniform_shares(normal):
    gone = np.isnan(observe("missing_points", normal))
    low = 1.5 / N
    assert gone.mean() == pytest.approx((0.4 - low) / np.log(0.4 / low), rel=0.05)
    share = gone.mean(1, keepdims=True)
    centred = gone - share
    assert np.mean(centred[:, 1:] * centred[:, :-1]) == pytest.approx(0, abs=0.002)


def test_missing_blocks_are_up_to_four_and_of_up_to_an_eighth_of_the_series(normal):
    gone = np.isnan(observe("missing_blocks", normal))
    edges = np.diff(gone.astype(int), axis=1, prepend=0) == 1
    assert edges.sum(1).min() >= 1
    assert edges.sum(1).max() <= 4
    assert edges.sum(1).mean() == pytest.approx(1 + 0.5 + 0.5 + 0.3, rel=0.12)  # some overlap
    assert gone.mean(1).max() <= 4 * (1 / 8 + 0.02)


@pytest.mark.parametrize("kind", ["jittered", "random", "bursts"])
def test_irregular_times_increase_and_are_a_step_apart_on_average(kind):
    t = np.array([irregular_times(rng(seed), kind, 80) for seed in range(300)])
    steps = np.diff(t) / 3
    assert (steps > 0).all()
    assert steps.mean() == pytest.approx(1, abs=0.1 if kind == "bursts" else 0.02)
    if kind == "jittered":
        np.testing.assert_array_equal(t // 3, np.tile(np.arange(80), (300, 1)))
        assert steps.var() == pytest.approx(2 * (2 / 3) / 9, rel=0.05)
    elif kind == "random":  # of sampling without replacement, negative hypergeometric gaps
        assert steps.var() * 9 == pytest.approx(3 * (3 - 1), rel=0.08)
    else:
        assert steps.var() * 9 > 7
