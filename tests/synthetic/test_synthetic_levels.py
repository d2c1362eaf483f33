"""Moments of stochastic levels: state-space processes and Gaussian processes."""

import numpy as np
import pytest

from taylorformer_forecast.synthetic import gaussian_process as gp
from taylorformer_forecast.synthetic.regimes import markov_states, pulses, stochastic_volatility
from taylorformer_forecast.synthetic.state_space import arma, seasonal_arima, smoothing

rng = np.random.default_rng


def covariance(x, lag):
    """Covariance at a lag, of values with mean 0."""
    return np.mean(x[:, lag:] * x[:, : x.shape[1] - lag])


def log_uniform_mean(low, high, power=1):
    """Mean of a power of a log-uniform variable."""
    return (high**power - low**power) / (power * np.log(high / low))


def test_random_walk_has_white_steps_of_deviation_one_and_drift_that_is_more_often_upwards(draw):
    steps = np.diff(draw("random_walk", 6000, 60))
    white = steps - steps.mean(1, keepdims=True)
    assert white.var(1, ddof=1).mean() == pytest.approx(1.0, abs=0.01)
    assert covariance(white, 1) == pytest.approx(-1 / 59, abs=0.006)  # of deviations from the own mean
    assert steps.mean() == pytest.approx(0.4 * log_uniform_mean(0.01, 0.5), abs=0.008)


def test_local_trend_has_steps_with_the_memory_of_its_slope(draw):
    steps = np.diff(draw("local_trend", 6000, 200))
    phi = 1 - np.exp(np.linspace(np.log(0.005), np.log(0.3), 2001))
    for lag in (1, 5):
        assert covariance(steps, lag) == pytest.approx(np.mean(phi**lag / (1 - phi**2)), rel=0.1)
    # Its innovation of the level is white: it is in the variance alone.
    own = covariance(steps, 0) - np.mean(1 / (1 - phi**2))
    slope_step = np.mean((1 - phi) ** 2 / (1 - phi**2) + 1)
    second = np.diff(steps).var() - 2 * log_uniform_mean(0.05, 2.0, 2)
    assert second == pytest.approx(slope_step, rel=0.1)
    assert own == pytest.approx(log_uniform_mean(0.05, 2.0, 2), abs=2.0)


def test_arima_has_the_autocovariances_of_its_coefficients(draw):
    n, r, m = 400, 0.7, 0.4
    one = np.ones((500, 1))
    x = arma(rng(0).standard_normal((500, n)), r * one, m * one)[:, 60:]
    variance = (1 + 2 * r * m + m**2) / (1 - r**2)
    assert covariance(x, 0) == pytest.approx(variance, rel=0.02)
    assert covariance(x, 1) == pytest.approx(r * variance + m, rel=0.02)
    # Second order, through the equations of Yule and Walker.
    ar = np.tile([0.5, 0.3], (500, 1))
    x = arma(rng(1).standard_normal((500, n)), ar, np.empty((500, 0)))[:, 60:]
    first = 0.5 / (1 - 0.3)
    assert covariance(x, 1) / covariance(x, 0) == pytest.approx(first, abs=0.015)
    assert covariance(x, 2) / covariance(x, 0) == pytest.approx(0.5 * first + 0.3, abs=0.02)
    # As drawn, half of them are integrated: only their variance grows.
    x = draw("arima", 4000, 600)
    late, early = (
        np.median(np.sort((x[:, part] ** 2).mean(1))[-1000:]) for part in (slice(400, 600), slice(0, 50))
    )
    assert late > 5 * early


def test_autoregression_has_the_stationary_variance_of_its_memory(draw):
    n = 100
    x = draw("autoregression", 6000, n)
    memory = np.exp(np.linspace(np.log(0.5), np.log(n / 4), 2001))
    r = np.exp(-1 / memory)
    assert covariance(x, 0) == pytest.approx(np.mean(1 / (1 - r**2)), rel=0.05)
    assert covariance(x, 3) == pytest.approx(np.mean(r**3 / (1 - r**2)), rel=0.06)
    assert x[:, 0].var() == pytest.approx(x[:, -1].var(), rel=0.12)


def test_a_long_autoregression_equals_its_recursion():
    e, r = rng(0).standard_normal((3, 137)), np.array([[0.99], [-0.7], [0.2]])
    found, y = arma(e, r, np.empty((3, 0))), np.zeros(3)
    for i in range(137):
        y = r[:, 0] * y + e[:, i]
        np.testing.assert_allclose(found[:, i], y, rtol=1e-9, atol=1e-12)


def test_cycle_returns_after_a_period_and_is_opposite_after_half_of_one(draw):
    radius, period = 0.97, 12
    ar = np.tile([2 * radius * np.cos(2 * np.pi / period), -(radius**2)], (600, 1))
    x = arma(rng(0).standard_normal((600, 500)), ar, np.empty((600, 0)))[:, 100:]
    rho = [1.0, ar[0, 0] / (1 - ar[0, 1])]
    while len(rho) <= period:
        rho.append(ar[0, 0] * rho[-1] + ar[0, 1] * rho[-2])
    for lag in (6, 12):
        assert covariance(x, lag) / covariance(x, 0) == pytest.approx(rho[lag], abs=0.02)
    n = 240
    power = np.abs(np.fft.rfft(draw("cycle", 1500, n)))[:, 1:]
    peak = n / (1 + power.argmax(1))
    # Periods are log-uniform from 4 to n / 3.
    assert np.median(peak) == pytest.approx(np.sqrt(4 * n / 3), rel=0.15)
    assert np.mean((peak > 3) & (peak < n / 2)) > 0.95


def test_exponential_smoothing_is_an_integrated_moving_average(draw):
    k, alpha = 2000, 0.3
    zero, one = np.zeros(k), np.ones(k)
    e = rng(0).standard_normal((k, 80))
    y = smoothing(e, alpha * one, zero, one, zero, zero, np.zeros((k, 1)), np.ones(k, dtype=int))
    steps = np.diff(y)
    assert covariance(steps, 0) == pytest.approx(1 + (1 - alpha) ** 2, rel=0.01)
    assert covariance(steps, 1) == pytest.approx(-(1 - alpha), rel=0.02)
    assert covariance(steps, 2) == pytest.approx(0, abs=0.01)
    # A season that is in its state comes back.
    y = draw("exponential_smoothing", 2000, 96, periods=(12,))
    changes = np.diff(y - y.mean(1, keepdims=True))
    assert covariance(changes, 12) > 3 * abs(covariance(changes, 5))


def test_seasonal_arima_has_the_covariances_of_an_airline_model():
    k, a, b, m = 1500, -0.4, -0.6, 4
    y = seasonal_arima(rng(0).standard_normal((k, 120)), np.full(k, a), np.full(k, b), m)
    w = np.diff(y)
    w = (w[:, m:] - w[:, :-m])[:, 10:]
    assert covariance(w, 0) == pytest.approx((1 + a**2) * (1 + b**2), rel=0.02)
    assert covariance(w, 1) == pytest.approx(a * (1 + b**2), rel=0.03)
    assert covariance(w, m) == pytest.approx(b * (1 + a**2), rel=0.03)
    assert covariance(w, 2) == pytest.approx(0, abs=0.02)


def test_regime_switching_has_levels_of_deviation_one_and_the_noise_of_its_states(draw):
    x = draw("regime_switching", 6000, 100)
    noise = log_uniform_mean(0.03, 0.6, 2)
    assert covariance(x, 0) == pytest.approx(1 + noise, abs=0.06)
    states = markov_states(rng(0), np.full(4000, 0.1), 3, 60)
    assert np.mean(states[:, 1:] != states[:, :-1]) == pytest.approx(0.1, abs=0.003)
    np.testing.assert_allclose(np.bincount(states.ravel()) / states.size, 1 / 3, atol=0.01)


def test_stochastic_volatility_has_the_kurtosis_of_a_lognormal_variance(draw):
    v = 0.7
    x = stochastic_volatility(rng(0), np.full(4000, 0.9), np.full(4000, v), 200)
    assert np.mean(x**2) == pytest.approx(1.0, abs=0.01)
    assert np.mean(x**4) == pytest.approx(3 * np.exp(v**2), rel=0.05)
    assert covariance(x, 1) == pytest.approx(0, abs=0.005)
    log_square = np.log(x**2)
    log_square -= log_square.mean()
    assert covariance(log_square, 1) == pytest.approx(0.9 * v**2, rel=0.05)
    steps = np.diff(draw("stochastic_volatility", 3000, 100))
    assert np.mean(steps**2) == pytest.approx(1.0, abs=0.05)
    assert np.mean(steps**4) > 3.6


def test_pulses_have_the_mean_of_their_area(draw):
    k, spacing, width, spread = 500, 25.0, 2.0, 0.4
    row = np.ones(k)
    x = pulses(rng(0), spacing * row, 3 * row, width * row, spread * row, 400)
    area = 1.5 * width * np.sqrt(2 * np.pi) * np.exp(spread**2 / 2)
    assert x.mean() == pytest.approx(area / spacing, rel=0.02)
    assert draw("pulses", 200, 100).min() >= 0


def test_kernels_have_their_textbook_values_at_one_length_scale():
    found = {name: round(float(kernel(np.array(1.0))), 4) for name, kernel in gp.KERNELS.items()}
    assert found == {
        "rbf": 0.6065,
        "matern12": 0.3679,
        "matern32": 0.4834,
        "matern52": 0.524,
        "rational": 0.6667,
    }


@pytest.mark.parametrize("kernel", gp.KERNELS)
def test_draws_have_the_covariance_of_their_kernel(kernel):
    n, scale = 64, 6.0
    wanted = gp.KERNELS[kernel](gp.lags(n) / scale)
    x = gp.stationary(rng(0), np.tile(wanted, (8000, 1)), n)
    for lag in (0, 1, 4, 11, 30):
        assert covariance(x, lag) == pytest.approx(wanted[lag], abs=0.03)


def mean_kernel(frame, lag):
    return gp._kernel(rng(5), frame(20_000, 80))[:, lag].mean()


@pytest.mark.parametrize("lag", [0, 1, 5])
def test_gp_kernel_has_the_mean_covariance_of_all_kernels(draw, frame, lag):
    assert covariance(draw("gp_kernel", 6000, 80), lag) == pytest.approx(mean_kernel(frame, lag), abs=0.04)


@pytest.mark.parametrize("lag", [0, 1, 5])
def test_gp_sum_has_the_mean_covariance_of_all_kernels(draw, frame, lag):
    assert covariance(draw("gp_sum", 6000, 80), lag) == pytest.approx(mean_kernel(frame, lag), abs=0.04)


def test_gp_product_forgets_its_season_as_its_other_factor_does(draw):
    n, m = 96, 12
    x = draw("gp_product", 8000, n, periods=(m,))
    memory = np.exp(np.linspace(np.log(n / 16), np.log(n / 4), 2001))
    z = np.linspace(-2.0, 2.0, n)
    line = 0.75 + 0.25 * (1 + np.mean(z[m:] * z[:-m]))  # a quarter of them times a line
    wanted = line * np.mean(np.exp(-0.5 * (m / memory) ** 2))
    assert covariance(x, m) == pytest.approx(wanted, rel=0.07)
    assert covariance(x, 0) == pytest.approx(0.75 + 0.25 * (1 + np.mean(z**2)), rel=0.05)
    assert covariance(x, m) > covariance(x, m // 2) + 0.1


def test_gp_seasonal_is_half_season_on_average(draw, frame):
    n, m = 80, 10
    x = draw("gp_seasonal", 8000, n, periods=(m,))
    season = np.exp(-0.5 * (m / (n / 4)) ** 2)
    assert covariance(x, m) == pytest.approx(0.5 * mean_kernel(frame, m) + 0.5 * season, abs=0.04)
    assert covariance(x, 0) == pytest.approx(1.0, abs=0.04)
