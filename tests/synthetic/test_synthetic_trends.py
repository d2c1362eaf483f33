"""Moments and shapes of trends."""

import numpy as np
import pytest

K, N = 4000, 40


def test_linear_trends_have_equal_steps_and_three_quarters_of_them_grow(draw):
    x = draw("linear", K, N)
    np.testing.assert_allclose(np.diff(x, 2), 0, atol=1e-12)
    np.testing.assert_allclose(np.abs(x[:, -1] - x[:, 0]), 1)
    assert np.mean(x[:, -1] > 0) == pytest.approx(0.75, abs=0.025)


def test_damped_trends_have_steps_in_a_constant_ratio_with_half_lives_within_the_span(draw):
    x = draw("damped", K, N)
    steps = np.diff(x)
    phi = steps[:, 1] / steps[:, 0]
    np.testing.assert_allclose(np.abs(x[:, :2]), np.tile([0.0, 1.0], (K, 1)), atol=1e-9)
    np.testing.assert_allclose(steps[:, 1:], steps[:, :-1] * phi[:, None], rtol=1e-8)
    half_life = np.log(0.5) / np.log(phi) / N
    assert 0.05 <= half_life.min() < half_life.max() <= 0.7
    # The mean of a log-uniform variable.
    assert half_life.mean() == pytest.approx(0.65 / np.log(14), rel=0.04)


def test_logistic_trends_are_monotone_between_two_levels_and_halfway_at_any_time(draw):
    x = np.abs(draw("logistic", K, N))
    assert (np.diff(x) >= 0).all()
    assert x.min() >= 0
    assert x.max() <= 1
    halfway = (x < 0.5).sum(1) / (N - 1)
    assert halfway.mean() == pytest.approx(0.5, abs=0.025)
    assert halfway.std() == pytest.approx(0.8 / np.sqrt(12), rel=0.06)


def test_exponential_trends_grow_at_a_constant_rate_which_is_positive_in_seven_of_ten(draw):
    steps = np.diff(np.abs(draw("exponential", K, N)))
    ratio = steps[:, 1] / steps[:, 0]
    np.testing.assert_allclose(steps[:, 1:], steps[:, :-1] * ratio[:, None], rtol=1e-6)
    rate = np.log(ratio) * (N - 1)
    assert np.mean(rate > 0) == pytest.approx(0.7, abs=0.025)
    assert np.abs(rate).min() >= 0.5
    assert np.abs(rate).max() <= 4 + 1e-6


def test_broken_trends_are_lines_with_two_breaks_on_average(draw):
    n = 400
    x = draw("broken", K, n)
    slope = np.diff(x) * (n - 1)
    assert slope[:, 0].mean() == pytest.approx(0.3, abs=0.06)
    bends = np.abs(np.diff(slope)) > 1e-9
    starts = bends[:, 1:] & ~bends[:, :-1]  # a break between two points bends the line at both
    assert starts.sum(1).mean() == pytest.approx(2.0, abs=0.1)
    # Four breaks of probability one half, each with deviation 1.5.
    change = slope[:, -1] - slope[:, 0]
    assert change.std() == pytest.approx(1.5 * np.sqrt(2), rel=0.05)
