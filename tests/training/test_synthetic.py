"""Made-up series: what is promised of all of them, and of their parts."""

from __future__ import annotations

import numpy as np
import pytest

from taylorformer_forecast.training import _time_courses as courses
from taylorformer_forecast.training._seasons import seasonal, weekly
from taylorformer_forecast.training._styles import LINKS, STYLES, WANDERS
from taylorformer_forecast.training.synthetic import synthetic_series


@pytest.fixture(scope="module")
def many():
    return synthetic_series(3000, 60, seed=0)


def with_part(series, *names):
    return [s for s in series if set(names) <= set(s.recipe)]


def without_surprises(series):
    surprises = {"shift", "interruption", "outliers", "rounded"}
    return [s for s in series if not surprises & set(s.recipe)]


# --- all series -------------------------------------------------------------------------------------------


def test_a_seed_gives_the_same_series_and_another_one_others():
    one, same, other = (synthetic_series(20, 80, seed) for seed in (3, np.random.default_rng(3), 4))
    for a, b, c in zip(one, same, other, strict=True):
        np.testing.assert_array_equal(a.t, b.t)
        np.testing.assert_array_equal(a.y, b.y)
        assert (a.periods, a.recipe) == (b.periods, b.recipe)
        assert not np.array_equal(a.y, c.y, equal_nan=True)
    assert len({s.y.tobytes() for s in one}) == 20


@pytest.mark.parametrize("length", [16, 37, 200, 1100])
def test_series_are_finite_and_vary_at_increasing_times(length):
    with np.errstate(divide="raise", over="raise", invalid="raise"):
        series = synthetic_series(200, length, seed=1)
    for s in series:
        assert s.t.shape == s.y.shape == (length,)
        assert s.t.dtype == s.y.dtype == np.float64
        assert (np.diff(s.t) > 0).all()
        seen = s.y[~np.isnan(s.y)]
        assert len(seen) >= length / 2 - 1
        assert np.isfinite(seen).all()
        assert np.ptp(seen) > 0


def test_as_many_series_are_gappy_and_irregular_as_documented(many):
    gappy = np.array([np.isnan(s.y).any() for s in many])
    uneven = np.array([not np.array_equal(s.t, np.arange(60.0)) for s in many])
    assert gappy.mean() == pytest.approx(0.10, abs=0.02)
    assert uneven.mean() == pytest.approx(0.04, abs=0.012)
    assert (~gappy & ~uneven).mean() > 0.83
    assert gappy.tolist() == [any(name.startswith("missing:") for name in s.recipe) for s in many]
    assert uneven.tolist() == ["irregular" in s.recipe for s in many]


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_the_caller_says_how_many_are_gappy_or_irregular(share):
    series = synthetic_series(30, 40, 0, missing=share, irregular=share)
    assert {bool(np.isnan(s.y).any()) for s in series} == {share == 1.0}
    assert {np.array_equal(s.t, np.arange(40.0)) for s in series} == {share == 0.0}


def test_irregular_times_are_a_step_apart_on_average():
    for s in synthetic_series(30, 300, 0, irregular=1.0):
        assert s.t[0] >= 0
        assert s.t[-1] < 300
        assert np.diff(s.t).mean() == pytest.approx(1.0, abs=0.1)


def test_too_short_a_length_is_refused():
    with pytest.raises(ValueError, match="length=15: a made-up series needs at least 16 points"):
        synthetic_series(2, 15, 0)


def test_every_ingredient_is_found_in_a_large_sample(many):
    expected = {f"style:{name}" for name in STYLES} | {f"wander:{name}" for name in WANDERS}
    expected |= {f"link:{name}" for name in [*LINKS, "intermittent"]}
    for part, kinds in {
        "trend": "linear damped logistic broken exponential",
        "kernel": "rbf matern12 matern32 matern52 rational periodic sum product linear times-linear",
        "season": "smooth sharp bumps switch table weekly additive multiplicative",
        "noise": "white ar1 ar2 ar3 ar4",
        "spread": "even seasonal level garch slow",
        "walk": "garch",
        "missing": "points blocks",
    }.items():
        expected |= {f"{part}:{kind}" for kind in kinds.split()}
    expected |= {"shift", "interruption", "outliers", "rounded", "irregular"}
    assert {name for s in many for name in s.recipe} == expected


# --- seasons ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("length", [60, 520])
def test_there_are_up_to_two_seasons_each_seen_three_times(length):
    numbers = []
    for s in synthetic_series(400, length, 0):
        assert list(s.periods) == sorted(set(s.periods))
        assert all(2 <= p <= length / 3 for p in s.periods)
        assert bool(s.periods) == any(name.startswith("season:") for name in s.recipe)
        numbers.append(len(s.periods))
    assert set(numbers) == {0, 1, 2}


def test_a_day_and_its_week_are_frequent_in_long_series():
    pairs = [s.periods for s in synthetic_series(500, 1100, 0) if "season:weekly" in s.recipe]
    assert all(week == 7 * day for day, week in pairs)
    assert {(24, 168), (48, 336)} <= set(pairs)


def test_the_period_of_a_series_ruled_by_its_season_is_in_its_autocorrelation():
    series = synthetic_series(1000, 400, 2, missing=0.0, irregular=0.0)
    ruled = without_surprises(with_part(series, "style:regular", "link:identity"))
    at_period, is_peak = [], []
    for s in ruled:
        t = np.arange(400.0)
        y = s.y - np.polyval(np.polyfit(t, s.y, 3), t)
        period = s.periods[-1]
        beside = max(1, period // 8)
        before, at, after = (
            np.corrcoef(y[p:], y[:-p])[0, 1] for p in (period - beside, period, period + beside)
        )
        at_period.append(at)
        is_peak.append(max(before, after) < at)
    assert len(ruled) > 80
    assert np.median(at_period) > 0.85
    assert np.mean(is_peak) > 0.95


@pytest.mark.parametrize("period", [2, 4, 7, 12, 24, 52, 100])
def test_seasons_repeat_after_their_period_and_not_a_step_off_it(period):
    x, kinds = seasonal(np.random.default_rng(period), np.full(300, period), np.arange(5.0 * period))

    def change(lag):
        return np.median((x[:, lag:] - x[:, :-lag]).std(1))

    assert change(period) < 0.3
    assert change(period) < 0.8 * min(change(period - 1), change(period + 1))
    assert len(set(kinds)) == (1 if period < 4 else 5 if period <= 62 else 4)


def test_a_weekend_differs_from_working_days():
    t = np.arange(24.0 * 7 * 8)
    x, _ = weekly(np.random.default_rng(0), np.full(200, 24), t)
    days = x.reshape(200, 8, 7, 24).mean((1, 3))
    gaps = []
    for first in range(7):  # of the weekend
        turned = np.roll(days, -first, 1)
        working = turned[:, 2:]
        gaps.append(np.abs(turned[:, :2].mean(1) - working.mean(1)) / working.std(1))
    assert np.median(np.max(gaps, 0)) > 4


# --- values -----------------------------------------------------------------------------------------------


def test_values_are_of_the_kind_that_the_recipe_says(many):
    for s in without_surprises(with_part(many, "link:counts")):
        seen = s.y[~np.isnan(s.y)]
        assert (seen >= 0).all()
        np.testing.assert_array_equal(seen, np.round(seen))
    for s in without_surprises(many):
        link = next(name for name in s.recipe if name.startswith("link:"))
        low, high = np.nanmin(s.y), np.nanmax(s.y)
        if link == "link:exponential":
            assert low > 0
        if link in ("link:floor", "link:intermittent"):
            assert low >= 0
        if link == "link:bounded":
            assert 0 <= low < high <= 100
    assert np.mean([(s.y == 0).mean() for s in with_part(many, "link:intermittent")]) > 0.5


def test_some_series_are_nearly_all_noise_and_some_have_hardly_any():
    series = synthetic_series(1500, 300, 0, missing=0.0, irregular=0.0)

    def roughness(name):
        return np.median([np.diff(s.y).std() / s.y.std() for s in with_part(series, name)])

    assert roughness("style:noise") > 0.7
    assert roughness("style:walk") < 0.25  # the square root of 6 / 300, of a random walk, is 0.14


def test_levels_and_scales_spread_over_many_powers_of_ten(many):
    scale = np.log10([np.nanstd(s.y) for s in many])
    assert np.ptp(np.quantile(scale, [0.05, 0.95])) > 4
    assert 0.1 < np.mean([np.nanmean(s.y) < 0 for s in many]) < 0.4


# --- parts ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["rbf", "matern12", "matern32", "matern52", "rational", "periodic"])
def test_draws_from_a_kernel_have_its_covariance(kind):
    rng, n, k = np.random.default_rng(0), 40, 20_000
    covariance = courses.kernel(rng, kind, n, np.array([9.0]))
    assert covariance[0, 0] == 1
    x = courses.stationary(rng, np.repeat(covariance, k, 0), n)
    for i, j in ((0, 0), (0, 1), (5, 14), (39, 39), (0, 39)):
        # the heaviest tails have not died away at the end of the embedding
        assert np.mean(x[:, i] * x[:, j]) == pytest.approx(covariance[0, j - i], abs=0.04)


def test_an_autoregression_follows_its_recursion():
    rng = np.random.default_rng(0)
    coefficients, e = rng.uniform(-0.3, 0.3, (2, 3)), rng.standard_normal((2, 10))
    y = courses.autoregression(coefficients, e)
    for i in range(3, 10):
        before = y[:, i - 3 : i][:, ::-1]
        np.testing.assert_allclose(y[:, i], e[:, i] + (coefficients * before).sum(1))


def test_autoregressions_are_stationary_and_forget_as_fast_as_asked():
    rng = np.random.default_rng(0)
    order = np.repeat(np.arange(1, 5), 100)
    x = courses.coloured(rng, order, 400, cyclic=0.5, forget=0.08)
    spread = x[:, :200].std(1) / x[:, 200:].std(1)
    assert (np.abs(np.log(spread)) < 1.2).all()
    far = np.mean(x[:, 100:] * x[:, :-100], 1)
    assert np.abs(far).mean() < 0.15


def test_clusters_of_large_steps_keep_the_variance_and_correlate_in_size():
    rng = np.random.default_rng(0)
    e = rng.standard_normal((300, 1000))
    x = e * courses.garch(rng, e)
    assert np.mean(x**2) == pytest.approx(1.0, abs=0.1)
    size = courses.standardise(np.abs(x))
    assert np.mean(size[:, 1:] * size[:, :-1]) > 0.05
    assert abs(np.mean(x[:, 1:] * x[:, :-1])) < 0.02


def test_heavy_tails_keep_the_variance():
    x = courses.heavy(np.random.default_rng(0), 400, 2000, calm=0.0)
    assert np.mean(x**2) == pytest.approx(1.0, abs=0.1)
    assert np.mean(np.abs(x) > 5) > 1e-3  # 6e-7 of a normal distribution


def test_anchored_peaks_stay_at_their_season():
    rng, n = np.random.default_rng(0), 400
    spacing = np.full(200, 40.0)

    def autocorrelation(anchored):
        x = courses.standardise(courses.peaks(rng, spacing, np.full(200, anchored), n))
        return np.mean(x[:, 320:] * x[:, :-320])  # eight seasons later

    assert autocorrelation(True) > 0.4 > autocorrelation(False) + 0.2
