"""Moments of noise and of events."""

import numpy as np
import pytest

from taylorformer_forecast.synthetic.events import outliers
from taylorformer_forecast.synthetic.noise import garch, skewed, student_t
from taylorformer_forecast.synthetic.processes import KINDS

rng = np.random.default_rng


def covariance(x, lag):
    return np.mean(x[:, lag:] * x[:, : x.shape[1] - lag])


@pytest.mark.parametrize("name", KINDS["noise"])
def test_noise_has_mean_zero_and_deviation_one(draw, name):
    x = draw(name, 4000, 100, periods=(12,))
    assert x.mean() == pytest.approx(0, abs=0.02)
    assert x.std() == pytest.approx(1, abs=0.03)


def test_white_noise_is_normal_and_uncorrelated(draw):
    x = draw("white_noise", 2000, 100)
    assert np.mean(x**4) == pytest.approx(3, abs=0.1)
    assert covariance(x, 1) == pytest.approx(0, abs=0.01)


def test_student_t_has_the_kurtosis_of_its_degrees_of_freedom(draw):
    x = student_t(rng(0), np.full(4000, 10.0), 200)
    assert np.mean(x**4) == pytest.approx(3 + 6 / (10 - 4), rel=0.05)
    assert np.mean(draw("student_t", 1000, 200) ** 4) > 4.5


def test_skewed_noise_has_the_skewness_of_a_gamma_variable(draw):
    x = skewed(rng(0), np.full(2000, 2.0), 200)
    assert np.mean(x**3) == pytest.approx(2 / np.sqrt(2), rel=0.04)
    # The mean of 2 / sqrt(shape) over log-uniform shapes from 1 to 20.
    assert np.mean(draw("skewed_noise", 4000, 200) ** 3) == pytest.approx(
        4 * (1 - 20**-0.5) / np.log(20), rel=0.04
    )


def test_autocorrelated_noise_has_the_mean_correlations_of_its_coefficients(draw):
    x = draw("autocorrelated_noise", 8000, 60)
    r = np.linspace(-0.5, 0.9, 2001)
    for lag in (1, 2, 5):
        assert covariance(x, lag) == pytest.approx(np.mean(r**lag), abs=0.015)


def test_garch_has_the_kurtosis_and_the_memory_of_its_variance(draw):
    a, b = 0.2, 0.6
    x = garch(rng(0).standard_normal((4000, 300)), np.full(4000, a), np.full(4000, b))[:, 50:]
    kurtosis = 3 * (1 - (a + b) ** 2) / (1 - (a + b) ** 2 - 2 * a**2)
    assert np.mean(x**2) == pytest.approx(1, abs=0.01)
    assert np.mean(x**4) == pytest.approx(kurtosis, rel=0.06)
    square = x**2 - 1
    assert covariance(square, 2) / covariance(square, 1) == pytest.approx(a + b, abs=0.06)
    assert covariance(draw("garch", 2000, 200) ** 2 - 1, 1) > 0.1


def test_seasonal_spread_repeats_after_a_period_and_is_lowest_half_a_period_later(draw):
    x = np.log(draw("seasonal_spread", 6000, 48, periods=(12,)) ** 2)
    x -= x.mean(1, keepdims=True)
    # The log-variance is 2 a cos, whose covariance at lag l is 2 a^2 cos(2 pi l / 12); the mean that was
    # taken off has the variance pi^2 / 2 of the logarithm of a squared normal variable, over 48.
    bias = np.pi**2 / 96
    size = (1.5**3 - 0.3**3) / (3 * 1.2)
    assert covariance(x, 12) == pytest.approx(2 * size - bias, rel=0.06)
    assert covariance(x, 6) == pytest.approx(-2 * size - bias, rel=0.06)


def test_slow_spread_has_squares_that_are_correlated_and_values_that_are_not(draw):
    x = draw("slow_spread", 4000, 200)
    log_square = np.log(x**2)
    log_square -= log_square.mean(1, keepdims=True)
    size = (1 - 0.3**3) / (3 * 0.7)
    assert covariance(log_square, 1) == pytest.approx(4 * size, rel=0.06)
    assert covariance(x, 1) == pytest.approx(0, abs=0.01)


# --- events -----------------------------------------------------------------------------------------------

K, N = 4000, 120


def test_level_shift_is_one_to_three_steps_that_stay(draw):
    steps = np.diff(draw("level_shift", 20_000, N))
    number = (steps != 0).sum(1)
    assert number.min() >= 1
    assert number.mean() == pytest.approx(1 + 1.7 / np.log(2 / 0.3), rel=0.03)
    size = (4 - 0.09) / (2 * np.log(2 / 0.3))
    assert np.mean(steps[steps != 0] ** 2) == pytest.approx(size, rel=0.06)


def test_ramp_is_monotone_and_ends_at_its_height(draw):
    x = draw("ramp", K, N)
    x *= np.sign(x[:, -1:])
    assert (np.diff(x) >= 0).all()
    assert (x[:, 0] == 0).mean() > 0.95
    done = x[:, -1] == x[:, -2]
    assert x[done, -1].min() >= 0.3
    assert x[done, -1].max() <= 2.0
    rising = (np.diff(x) > 0).sum(1)
    assert rising.max() <= N / 5 + 1


def test_temporary_change_decays_by_a_constant_factor(draw):
    x = draw("temporary_change", K, N)
    start = (x != 0).argmax(1)
    assert start.mean() == pytest.approx((N - 1) / 2, abs=2.5)
    rows = np.flatnonzero(start < N - 3)
    first, second, third = (np.abs(x[rows, start[rows] + j]) for j in range(3))
    np.testing.assert_allclose(second / first, third / second, rtol=1e-9)
    half_life = np.log(0.5) / np.log(second / first)
    assert half_life.mean() == pytest.approx((N / 10 - 1) / np.log(N / 10), rel=0.05)
    assert np.mean(x[rows, start[rows]] > 0) == pytest.approx(0.4, abs=0.03)


def test_outliers_are_as_frequent_and_as_large_as_asked_for(draw):
    x = outliers(rng(0), np.full(2000, 0.05), 1.0, 8.0, 200)
    assert np.mean(x != 0) == pytest.approx(0.05, abs=0.001)
    assert np.abs(x[x != 0]).mean() == pytest.approx(7 / np.log(8), rel=0.02)
    share = np.mean(draw("outliers", 8000, N) != 0)
    low = 0.5 / N
    assert share == pytest.approx((0.03 - low) / np.log(0.03 / low), rel=0.05)


def test_interruption_is_one_span_of_another_level(draw):
    x = draw("interruption", K, N)
    edges = (np.diff((x != 0).astype(int), prepend=0, append=0) != 0).sum(1)
    assert (edges == 2).all()
    assert (np.ptp(x, axis=1) == np.abs(x).max(1)).all()
    assert np.mean(x.sum(1) > 0) == pytest.approx(0.2, abs=0.02)
    inside = (x != 0).sum(1)[(x[:, -1] == 0)]
    assert inside.max() <= N / 6 + 1


def test_promotions_come_at_the_mean_rate_and_are_followed_by_dips(draw):
    n = 600
    x = draw("promotions", K, n)
    rises = (np.diff(x, prepend=0) > 1e-9) & (x > 0)
    spacing = np.exp(np.linspace(np.log(8), np.log(n / 3), 2001))
    assert rises.mean() == pytest.approx(np.mean(1 / spacing), rel=0.12)
    assert (x < 0).any(1).mean() > 0.9
    assert x.mean() > 0
