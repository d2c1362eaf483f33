"""Adversarial series, drawn at random: what holds for all forecasts without a network."""

import numpy as np
import pandas as pd
import pytest

from taylorformer_forecast.sktime import TaylorformerForecaster

LEVELS = [k / 10 for k in range(1, 10)]
SEEDS = range(3)


def adversary(rng, signed=False):
    """A series of 3 to 60 values that is built to break forecasts; with ``signed`` its first is negative."""
    n = int(rng.integers(3, 61))
    t, noise = np.arange(n), rng.normal(size=n)
    season = np.sin(2 * np.pi * t / rng.choice([4, 7, 12]))
    y = rng.choice([0.0, 1.0, 10.0]) + rng.choice([0.0, 0.1, 1.0]) * noise
    y = y + rng.choice([0.0, 5.0]) * season + rng.choice([0.0, 0.3, -0.3]) * t
    y = [y, y.cumsum(), np.exp(rng.choice([-0.1, 0.05, 0.2]) * t), y**3][rng.integers(4)]
    if rng.random() < 0.3:  # a glitch, anywhere
        y[rng.integers(n)] *= rng.choice([-1e3, 1e3, 1e6])
    if rng.random() < 0.3:  # a level shift, often near the end
        y[-int(rng.integers(1, 6)) :] += rng.choice([-1e3, 1e2])
    if rng.random() < 0.2:  # the same again, or nothing new
        y = np.tile(y, 2) if rng.random() < 0.5 else np.full(n, y[0])
    if rng.random() < 0.2:
        y = np.abs(y)
    if rng.random() < 0.3:  # values are missing, but for the first and the last
        y[1:-1][rng.random(len(y) - 2) < 0.4] = np.nan
    if signed:
        y[0] = np.nanmedian(y)
        y = y - y[0] - np.nanmax(np.abs(y)) - 100.0
    return y


def count(rng):
    """Counts, most of them zero; some of leading zeros, some that end, some with one enormous value."""
    n = int(rng.integers(5, 61))
    y = rng.poisson(rng.choice([0.1, 0.5, 2.0]), size=n).astype(float)
    y[: rng.integers(0, n // 2)] = 0.0
    y[n - rng.integers(0, n // 2) :] = 0.0
    if rng.random() < 0.3:
        y[rng.integers(n)] = 5000.0
    return y


def drawn(seed, make, size=20, **options):
    rng = np.random.default_rng(seed)
    return [make(rng, **options) for _ in range(size)]


def deciles(series, horizon=12):
    """Deciles of every series, shape (horizon, 9), of one panel."""
    frames = [pd.DataFrame({"y": y}, pd.RangeIndex(len(y))) for y in series]
    panel = pd.concat(dict(enumerate(frames)), names=["series", "time"])
    settings = {"strategy": "baseline", "num_samples": 2, "random_state": 0}
    forecaster = TaylorformerForecaster(**settings).fit(panel, fh=range(1, horizon + 1))
    found = forecaster.predict_quantiles(alpha=LEVELS).to_numpy()
    return found.reshape(len(series), horizon, len(LEVELS))


def seldom_zero(series):
    """Those that are not taken for intermittent demand."""
    return [y for y in series if np.nanmean(y == 0) < 0.1]


@pytest.mark.parametrize("seed", SEEDS)
def test_deciles_leave_the_range_by_half_more_than_its_width_at_most_unless_a_positive_series_grows(seed):
    series = drawn(seed, adversary)
    for y, found in zip(series, deciles(series), strict=True):
        low, high = np.nanmin(y), np.nanmax(y)
        width, rounding = high - low, 1e-9 * np.nanmax(np.abs(y)) + 1e-12
        growth = 2 * high if low > 0 else 0.0
        assert np.isfinite(found).all()
        assert (np.diff(found, axis=1) >= -rounding).all()
        least, most = low - width, high + max(width, growth)  # of what is expected
        more = (most - least) / 6 + rounding
        assert found.min() >= least - more
        assert found.max() <= (most + more if low < 0 else max(most, min(most + more, 3 * high)) + rounding)
        if low >= 0:
            assert found.min() >= 0


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("factor", [1e-3, 1e3])
def test_forecasts_follow_the_units(seed, factor):
    series = seldom_zero(drawn(seed, adversary))
    one, other = deciles(series), deciles([factor * y for y in series])
    for y, a, b in zip(series, one, other, strict=True):
        np.testing.assert_allclose(b / factor, a, rtol=0, atol=1e-6 * np.nanmax(np.abs(y)))


@pytest.mark.parametrize("unit", [1e-150, 1e100])
def test_counts_in_any_unit_stay_near_what_was_seen(unit):
    series = [y for y in drawn(0, count) if y.any()]
    for y, found in zip(series, deciles([unit * y for y in series]), strict=True):
        assert found.min() >= 0
        assert found.max() <= 3 * unit * y.max()
    y = pd.Series(unit * series[0])
    insample = TaylorformerForecaster(strategy="baseline", random_state=0).fit(y).predict(range(-3, 1))
    assert 0 <= insample.min() <= insample.max() <= y.max()


@pytest.mark.parametrize("seed", SEEDS)
def test_forecasts_of_signed_series_follow_a_shift(seed):
    series = seldom_zero(drawn(seed, adversary, signed=True))
    series = [y for y in series if np.isfinite(y).sum() > 2]  # errors of two values are a part of them
    shifts = [0.3 * np.nanmax(np.abs(y)) for y in series]
    one, other = deciles(series), deciles([y + by for y, by in zip(series, shifts, strict=True)])
    for y, by, a, b in zip(series, shifts, one, other, strict=True):
        np.testing.assert_allclose(b - by, a, rtol=0, atol=1e-6 * np.nanmax(np.abs(y)))


@pytest.mark.parametrize("seed", SEEDS)
def test_the_same_series_has_the_same_forecast_in_any_company(seed):
    series = drawn(seed, adversary, 12) + drawn(seed, count, 12)
    once, again = deciles(series), deciles([*series[::-1], *drawn(seed + 1, count, 5), *series])
    for k, y in enumerate(series):
        for found in (again[len(series) - 1 - k], again[len(series) + 5 + k]):
            np.testing.assert_allclose(found, once[k], rtol=0, atol=1e-9 * np.nanmax(np.abs(y)))


@pytest.mark.parametrize("seed", SEEDS)
def test_deciles_of_counts_are_whole_and_not_negative(seed):
    series = [y for y in drawn(seed, count) if np.mean(y == 0) > 0.4]
    for y, found in zip(series, deciles(series), strict=True):
        assert (found >= 0).all()
        np.testing.assert_array_equal(found, found.round())
        assert found.max() <= 2 * y.max() + 8
