"""What is no part of a series is left out of its forecasts: closures, codes of errors, bounds, floods."""

import math

import numpy as np
import pandas as pd
import pytest
import torch
from combined import forecast

from taylorformer_forecast.baselines.bounds import bounds, recurring_minimum
from taylorformer_forecast.baselines.outliers import without_outliers
from taylorformer_forecast.baselines.wrong_values import without_wrong_values
from taylorformer_forecast.baselines.zeros import without_outages
from taylorformer_forecast.defaults import STATISTICAL_LEVELS
from taylorformer_forecast.engine.contexts import robust_columns
from taylorformer_forecast.engine.statistics.average import average_quantiles
from taylorformer_forecast.engine.statistics.forecast import forecast_series
from taylorformer_forecast.engine.statistics.requests import SeriesRequest
from taylorformer_forecast.sktime import TaylorformerForecaster

NAN = float("nan")
DECILES = [k / 10 for k in range(1, 10)]
LEVELS = list(STATISTICAL_LEVELS)


def hours(n: int = 480, seed: int = 0, level: float = 100.0) -> np.ndarray:
    """Values with a season of 24 steps."""
    rng = np.random.default_rng(seed)
    return level + 30 * np.sin(2 * np.pi * np.arange(n) / 24) + 4 * rng.normal(size=n)


def solar(n: int = 480, seed: int = 0) -> np.ndarray:
    """Days with zeros at night."""
    rng, hour = np.random.default_rng(seed), np.arange(n) % 24
    return 100 * np.where((hour > 6) & (hour < 18), np.sin(np.pi * (hour - 6) / 12), 0.0) * rng.beta(3, 1, n)


def quantiles(y: np.ndarray, horizon: int = 24, season: int = 24) -> np.ndarray:
    """Statistical quantiles of the next steps, (H, L)."""
    ahead = np.arange(len(y), len(y) + horizon)
    return forecast_series([SeriesRequest(y, ahead, seasons=[season])], 50, 0)[0].quantiles


def alike(found: np.ndarray, expected: np.ndarray, part: float = 0.25) -> bool:
    """Whether quantiles differ by less than a part of the width of the central half, in the mean."""
    width = (expected[:, LEVELS.index(0.75)] - expected[:, LEVELS.index(0.25)]).mean()
    inner = slice(LEVELS.index(0.1), LEVELS.index(0.9) + 1)
    return bool(np.abs(found - expected)[:, inner].mean() < part * width)


@pytest.mark.parametrize("start", [100, 300, 440])
@pytest.mark.parametrize("length", [3, 12, 30])
def test_zeros_while_something_was_closed_count_as_missing(start, length):
    y = hours()
    y[start : start + length] = NAN
    expected = quantiles(y)
    y[start : start + length] = 0.0
    np.testing.assert_allclose(quantiles(y), expected)
    assert np.isnan(robust_columns(np.arange(len(y)), y[:, None])[start : start + length]).all()


@pytest.mark.parametrize(
    "case", ["not over", "short", "slow edges", "in many runs", "at a place in a season"]
)
def test_other_zeros_are_a_part_of_the_series(case):
    y = torch.from_numpy(hours())
    if case == "not over":
        y[440:] = 0.0
    elif case == "short":
        y = torch.from_numpy(hours(level=45.0))  # which comes near zero every day
        y[100:108] = 0.0
    elif case == "slow edges":
        y[80:140] *= torch.cat([torch.linspace(1, 0, 10), torch.zeros(40), torch.linspace(0, 1, 10)])
    elif case == "in many runs":
        for start in (50, 170, 290):
            y[start : start + 12] = 0.0
    else:
        y[[*range(100, 112), *range(268, 280)]] = 0.0
    assert (without_outages(y[None], [24, 168]) == y).all()


def test_values_stop_where_their_largest_one_comes_again_and_again():
    y = np.minimum(hours(level=85.0), 100.0)
    found = forecast_series([SeriesRequest(y, np.arange(480, 504), seasons=[24])], 200, 0)[0]
    assert found.bounds[1] == 100.0
    assert found.quantiles.max() == found.paths.max() == 100.0
    assert (found.loc + found.scale).max() < 100.0 + 1e-6
    free = quantiles(np.minimum(hours(level=85.0), 100.0 + np.arange(480) / 1e6))
    assert free.max() > 105


def test_an_average_with_a_network_keeps_to_bounds():
    y = np.minimum(hours(level=85.0), 100.0)
    request = SeriesRequest(y, np.arange(480, 484), seasons=[24])
    found = forecast_series([request], 5, 0)[0]
    network = np.tile(np.linspace(50.0, 300.0, len(LEVELS)), (4, 1))
    both = average_quantiles(found, request, network, np.full((5, 4), 290.0), weight=0.25)
    assert both.quantiles.max() == both.paths.max() == 100.0


@pytest.mark.parametrize("kind", ["walk", "counts", "prices"])
def test_most_series_have_no_upper_bound(kind):
    rng = np.random.default_rng(0)
    draws = {
        "walk": lambda: np.round(50 + rng.normal(size=200).cumsum()),
        "counts": lambda: rng.poisson(5, 200).astype(float),
        "prices": lambda: np.round(20 + 0.5 * rng.normal(size=200).cumsum(), 1),
    }
    assert (
        bounds(torch.from_numpy(np.stack([draws[kind]() for _ in range(100)])))[1].isinf().float().mean()
        > 0.98
    )


@pytest.mark.parametrize("value", [-0.3, 2.0])
def test_nights_are_forecast_as_the_smallest_value_that_they_always_had(value):
    y = solar()
    night = y == 0
    expected = quantiles(y)
    y[night] = value
    y[~night] += value
    assert recurring_minimum(torch.from_numpy(y)[None], [24]).item() == value
    np.testing.assert_allclose(quantiles(y), expected + value, atol=1e-9)


def test_a_negligible_negative_value_leaves_nights_at_zero():
    y = solar()
    expected = quantiles(y)
    y[98] = -0.01
    np.testing.assert_allclose(quantiles(y), expected)


@pytest.mark.parametrize("position", [0, 1, 2, 3])
@pytest.mark.parametrize("value", [9999.0, 1e9, 1e20, -1e9])
def test_an_outlier_among_the_first_values_is_left_out(position, value):
    y = hours(120)
    y[position] = NAN
    expected = quantiles(y, 12)
    y[position] = value
    assert alike(quantiles(y, 12), expected, 0.1)


@pytest.mark.parametrize("value", [1e15, 1e18, 1e30])
def test_intervals_do_not_depend_on_how_far_an_outlier_lies(value):
    y = hours(120)
    y[70] = 1e6
    expected = quantiles(y, 12)
    y[70] = value
    assert alike(quantiles(y, 12), expected, 0.05)


@pytest.mark.parametrize(("length", "value"), [(2, 600.0), (3, 2000.0), (8, 400.0), (4, -9999.0)])
@pytest.mark.parametrize("start", [200, 450])
def test_extreme_values_in_a_row_that_are_over_count_as_missing(length, value, start):
    y = hours()
    y[start : start + length] = NAN
    expected = quantiles(y)
    y[start : start + length] = value
    assert alike(quantiles(y), expected, 0.1)
    clean = without_outliers(torch.arange(480.0), torch.from_numpy(y), [24.0])
    assert clean[start : start + length].isnan().all()


def test_a_first_value_is_left_out_also_beside_outliers_that_are_many():
    y = torch.as_tensor(hours(66))
    y[[0, 25, 48]] *= 50
    assert without_wrong_values(y[None]).isnan().nonzero().tolist() == [[0, 0]]
    few, many = (forecast(y[None, start:], 12, 1).quantiles(DECILES) for start in (1, 0))
    torch.testing.assert_close(few, many, rtol=0.1, atol=5.0)


def test_codes_of_errors_leave_nights_at_zero():
    y = solar()
    y[250:254] = -9999.0
    found, hour = quantiles(y), np.arange(24)
    assert (found >= 0).all()
    assert (found[(hour <= 6) | (hour >= 18)] == 0).all()


def test_a_level_that_lasts_and_runs_that_come_often_stay():
    shifted, often = torch.from_numpy(hours()), torch.from_numpy(hours())
    shifted[300:] += 500
    for start in range(20, 460, 50):
        often[start : start + 4] += 800
    assert (without_wrong_values(torch.stack([shifted, often]), [24]) == torch.stack([shifted, often])).all()


def flow(n: int, seed: int) -> np.ndarray:
    """A river: sudden floods, and slow recessions."""
    rng, rain, storage = np.random.default_rng(seed), 0.0, 0.0
    values = []
    for _ in range(n):
        rain = (rng.random() < 0.06) * (20 + rng.gamma(2.0, 15.0))
        storage = 0.85 * storage + rain
        values.append((5 + storage) * math.exp(0.03 * rng.normal()))
    return np.array(values)


def test_a_rise_is_followed_at_once_where_rises_always_lasted():
    y = flow(1500, 0)
    at = [t for t in range(700, 1499) if y[t] - y[t - 1] > 40 and y[t - 1] < 12]
    past = torch.from_numpy(np.stack([y[t - 699 : t + 1] for t in at]))
    median = forecast(past, 1).quantiles([0.5])[:, 0, 0].numpy()
    assert len(at) > 8
    assert np.median(np.abs(median - y[np.array(at) + 1])) < 0.5 * np.median(past[:, -1] - past[:, -2])
    kept = [without_outliers(torch.arange(700.0), own)[-1] == own[-1] for own in past]
    assert np.mean(kept) > 0.9
    calm = torch.from_numpy(5 + 0.2 * np.random.default_rng(0).normal(size=700))
    calm[-1] = 60.0
    assert without_outliers(torch.arange(700.0), calm)[-1] < 10
    assert forecast(calm[None], 1).quantiles([0.5]).item() < 10


@pytest.mark.parametrize("values", [(1.0, 2.0, 3.0, 4.0, 5.0), (-1.0, 1.0), (1.0, 2.0)])
def test_a_scale_of_few_values_ends_where_a_fifth_of_them_are(values):
    weights = torch.arange(1.0, len(values) + 1).double() ** 2
    drawn = torch.multinomial(weights, 120, replacement=True, generator=torch.Generator().manual_seed(0))
    y = torch.tensor(values).double()[drawn][None]
    low, high = bounds(y)
    assert high.item() == values[-1]
    assert (low.item() == values[0]) == ((y == values[0]).double().mean().item() >= 0.2)


@pytest.mark.parametrize("kind", ["steps", "line"])
def test_few_values_that_rise_have_no_ends_of_a_scale(kind):
    t, generator = torch.arange(60.0), torch.Generator().manual_seed(0)
    noise = torch.randn(20, 60, generator=generator)
    y = {
        "steps": 2 + (t >= 20) + (noise > 0).double(),
        "line": (1 + t / 20 + 0.45 * noise).round(),
    }[kind]
    assert (bounds(y)[1] == torch.inf).double().mean() > 0.9


@pytest.mark.parametrize("level", [9.99, 1.0, -5.0])
@pytest.mark.parametrize("back", [1, 2, 6, 30])
@pytest.mark.parametrize("count", [1, 2])
def test_an_exception_from_a_constant_that_came_back_is_no_part_of_it(level, back, count):
    """A price with one promotion: it was expected again a week later, or half of it at once."""
    y = np.full(100, level)
    y[100 - back - count : 100 - back] -= 2.0
    found = quantiles(y, 14, 7)
    np.testing.assert_allclose(found[:, LEVELS.index(0.05) : LEVELS.index(0.95) + 1], level, rtol=1e-6)
    np.testing.assert_allclose(found[:, : LEVELS.index(0.005) + 1], level - 2.0)  # as seldom as it was
    others = np.random.default_rng(0).normal(size=y.shape)
    batch = torch.as_tensor(np.stack([others, y]))
    np.testing.assert_array_equal(without_wrong_values(batch)[0], others)


@pytest.mark.parametrize(
    "y",
    [
        np.r_[np.full(40, 5.0), np.full(5, 6.0)],  # not come back
        np.r_[np.full(40, 5.0), np.full(12, 6.0), np.full(8, 5.0)],  # a fifth of the series
        np.r_[np.full(20, 5.0), 8.0, np.full(20, 6.0)],  # to another level
        np.repeat([1, 1.25, 1.0, 0.75, 0.5], [40, 6, 60, 6, 60]),  # rates
        np.repeat([10.0, 11, 9, 11, 12], [60, 20, 3, 40, 40]),  # prices with a promotion
    ],
    ids=["a shift", "a long one", "between two levels", "rates", "prices"],
)
def test_other_changes_of_a_constant_are_a_part_of_it(y):
    assert torch.equal(without_wrong_values(torch.as_tensor(y)[None])[0], torch.as_tensor(y))
    assert np.ptp(quantiles(y, 3, 1)) > 0.1


def test_paths_of_a_constant_have_its_exceptions_as_often_as_they_were():
    y = np.ones(200)
    y[[40, 90, 91, 150]] = 0.0
    found = forecast_series([SeriesRequest(y, np.arange(190, 210))], 2000, 0)[0]
    assert set(np.unique(found.paths[:, 10:])) == {0.0, 1.0}
    np.testing.assert_allclose((found.paths[:, 10:] == 0).mean(), 4 / 200, atol=0.004)
    np.testing.assert_allclose((found.weights * found.loc).sum(1)[10:], 0.98, rtol=1e-6)


@pytest.mark.parametrize("spikes", [[1000.0], [-1000.0], [1000.0, -1000.0], [1000.0, 990.0]])
def test_the_mean_of_a_constant_has_its_exceptions_as_often_as_they_were(spikes):
    """One of a hundred weighed .0175 above and .0075 below, and values between had a share."""
    y = pd.Series(np.full(100, 7.0))
    y[13 * np.arange(1, len(spikes) + 1)] = spikes
    forecaster = TaylorformerForecaster(strategy="baseline", random_state=0).fit(y, fh=[1, 2])
    np.testing.assert_allclose(forecaster.predict(), y.mean(), rtol=1e-5)
    np.testing.assert_allclose(forecaster.predict_var().iloc[:, 0], y.var(ddof=0), rtol=1e-5)
    levels = [0.001, 0.004, 0.012, 0.5, 0.985, 0.999]
    found = forecaster.predict_quantiles(alpha=levels).to_numpy()
    np.testing.assert_allclose(
        found, np.tile(np.quantile(y, levels, method="inverted_cdf"), (2, 1)), rtol=1e-5
    )


def test_counts_that_ended_are_demand_whatever_zeros_they_had_before():
    """The zeros since the end were taken for nights if three others had been seen."""
    for seed in range(12):
        y = np.r_[np.random.default_rng(seed).poisson(3, 90), np.zeros(30)].astype(float)
        assert forecast_series([SeriesRequest(y, np.arange(120, 126), seasons=[12])], 5, 0)[0].intermittent
