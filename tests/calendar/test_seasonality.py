"""Seasonal periods of signals whose periods are known."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from darts import TimeSeries

from taylorformer_forecast.calendar.axis import TimeAxis
from taylorformer_forecast.calendar.cycles import SeasonalFeatures, phase_features
from taylorformer_forecast.calendar.seasonality import detect_periods, seasons_beside
from taylorformer_forecast.darts import TaylorformerModel
from taylorformer_forecast.sktime import TaylorformerForecaster

T = np.arange(240)
NOISE = np.random.default_rng(0).normal(size=240)


def wave(period):
    return np.sin(2 * np.pi * T / period)


def spikes(period):
    return (T % period == 0).astype(float)


@pytest.mark.parametrize("period", [4, 7, 12, 24, 52])
@pytest.mark.parametrize("signal", [wave, spikes])
@pytest.mark.parametrize("disturbance", [0.0, 0.1], ids=["clean", "noisy"])
def test_the_period_of_a_signal_is_found(signal, period, disturbance):
    assert detect_periods(signal(period) + disturbance * NOISE) == [period]


@pytest.mark.parametrize(
    ("period", "n", "noise"), [(24, 5000, 1.0), (60, 5000, 1.0), (168, 20000, 1.0), (365, 3000, 0.5)]
)
def test_the_period_of_a_long_series_is_found_among_the_peaks_of_noise(period, n, noise):
    rng = np.random.default_rng(5)
    for _ in range(3):
        found = detect_periods(np.sin(2 * np.pi * np.arange(n) / period) + noise * rng.normal(size=n))
        assert len(found) == 1
        assert abs(found[0] - period) <= 0.01 * period


@pytest.mark.parametrize(
    "carrier",
    [1e6 + 0.0 * T, 0.3 * T, 0.01 * T**1.3, np.exp(T / 100)],
    ids=["level", "trend", "bend", "growth"],
)
def test_levels_and_trends_do_not_hide_it(carrier):
    assert detect_periods(carrier + wave(12)) == [12]


def test_growing_swings_do_not_hide_it():
    assert detect_periods((10 + T) * wave(12)) == [12]


def test_a_wandering_level_does_not_hide_it():
    walk = np.random.default_rng(1).normal(size=240).cumsum()
    assert detect_periods(walk + 2 * wave(12)) == [12]


@pytest.mark.parametrize(("short", "long", "n"), [(4, 24, 240), (6, 48, 240), (24, 168, 700)])
def test_two_periods_are_found_if_one_is_a_multiple_of_the_other(short, long, n):
    t = np.arange(n)
    y = np.sin(2 * np.pi * t / short) + 0.8 * np.sin(2 * np.pi * t / long)
    assert detect_periods(y) == [short, long]


@pytest.mark.parametrize(
    "y",
    [NOISE, NOISE.cumsum(), 3.0 * T, np.full(240, 5.0), 0.0 * T, np.full(240, np.nan), NOISE[:5], wave(100)],
    ids=["noise", "random walk", "line", "constant", "zero", "missing", "short", "seen twice"],
)
def test_no_period_is_invented(y):
    assert detect_periods(y) == []


@pytest.mark.parametrize("n", [40, 120])
def test_short_noise_with_a_calendar_has_no_further_period(n):
    noise = np.random.default_rng(3).normal(size=(200, n))
    assert not any(seasons_beside((12.0,), y) for y in noise)


def test_values_that_stay_for_a_week_by_chance_have_no_season_and_a_price_of_every_fourth_week_has_one():
    """Blocks are alike at many lags: a third of such prices had a season of 14 to 49 days."""
    rng = np.random.default_rng(1)
    weeks = np.where(rng.random((100, 30)) < 0.2, 7.99, 9.99)
    assert not any(seasons_beside((7.0,), y[:200]) for y in weeks.repeat(7, axis=1))
    assert seasons_beside((7.0,), np.where(np.arange(200) // 7 % 4 == 0, 7.99, 9.99)) == [28]


def test_a_clear_period_beside_a_calendar_is_found():
    assert seasons_beside((12.0,), wave(7) + 0.1 * NOISE) == [7]


@pytest.mark.parametrize(("period", "cycle"), [(5, 52.0), (3, 52.0), (10, 168.0), (10, 365.25)])
def test_a_period_far_below_a_calendar_cycle_is_no_multiple_of_it(period, cycle):
    """It was: none at all is a multiple, too."""
    assert seasons_beside((cycle,), wave(period) + 0.1 * NOISE) == [period]


def test_periods_near_multiples_of_a_calendar_cycle_are_left_to_it():
    assert seasons_beside((12.0,), wave(12) + 0.1 * NOISE) == []
    assert seasons_beside((6.0,), wave(6) + 0.1 * NOISE) == []


@pytest.mark.parametrize("weeks", [2, 3, 4])
def test_a_roster_of_some_weeks_is_found_beside_the_week(weeks):
    day = np.arange(460)
    rate = 20 + 5 * (day % 7 < 5) + 20 * (day % (7 * weeks) < 3.5 * weeks)
    assert seasons_beside((7.0,), np.random.default_rng(0).poisson(rate).astype(float)) == [7 * weeks]


def test_missing_values_do_not_hide_it():
    y = wave(12) + 0.1 * NOISE
    y[np.random.default_rng(2).random(240) < 0.3] = np.nan
    y[100:130] = np.nan
    assert detect_periods(y) == [12]


@pytest.mark.parametrize(("factor", "offset"), [(1e12, 0.0), (1e-12, 0.0), (1.0, 1e6), (-1.0, 0.0)])
def test_units_do_not_matter(factor, offset):
    assert detect_periods(factor * (wave(12) + 0.1 * NOISE) + offset) == [12]


def test_phases_are_points_on_circles_that_repeat_every_revolution():
    position = np.random.default_rng(0).random((4, 3))
    found = phase_features(position)
    assert found.shape == (4, 12)
    np.testing.assert_allclose(phase_features(position + 5), found, atol=1e-12)
    sines, cosines = np.moveaxis(found.reshape(4, 3, 2, 2), 2, 0)
    np.testing.assert_allclose(sines**2 + cosines**2, 1.0)


def test_phases_know_a_quarter_turn_and_its_double():
    np.testing.assert_allclose(phase_features(np.array([[0.25]])), [[1.0, 0.0, 0.0, -1.0]], atol=1e-15)


def test_the_longest_of_many_series_are_found_by_asking_each_a_few_times_for_its_length():
    asked = 0

    class Counted(list):
        def __len__(self):
            nonlocal asked
            asked += 1
            return super().__len__()

    many = [(Counted([0.0] * 20), np.zeros((20, 1))) for _ in range(200)]
    many.append((pd.RangeIndex(60), np.sin(2 * np.pi * np.arange(60.0) / 6)[:, None]))
    axis = TimeAxis.of([pd.RangeIndex(60)])
    assert SeasonalFeatures.choose(axis, many).periods == (6.0,)
    assert asked <= 3 * 200


def test_a_single_pair_of_neighbours_shows_nothing_and_warns_of_nothing():
    y = np.full(100, np.nan)
    known = [15, 26, 32, 37, 44, 45, 49, 56, 74, 80, 82, 93]
    y[known] = known
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert detect_periods(y) == []


def test_a_part_of_a_cycle_is_no_further_season():
    """Two rush hours a day would leave no place for the week."""
    hour = np.arange(24 * 35)
    rush = np.exp(-(((hour % 24 - 8) / 2) ** 2)) + np.exp(-(((hour % 24 - 18) / 2) ** 2))
    y = (1 + rush) * np.where(hour // 24 % 7 < 5, 1.0, 0.7)
    y += 0.02 * np.random.default_rng(0).normal(size=len(y))
    assert seasons_beside((24.0, 168.0), y) == []


def test_seasons_that_are_given_or_found_come_before_the_longer_cycles_of_the_calendar():
    """Statistical forecasts try the first two."""
    hours = pd.date_range("2024-01-01", periods=460, freq="h")
    y = 20.0 + 20 * (np.arange(460) % 9 < 4) + np.random.default_rng(0).normal(size=460)
    axis = TimeAxis.of([hours], "h")
    features = SeasonalFeatures.choose(axis, [(hours, y[:, None])], "auto", (9,))
    assert features.own_lengths(y, "auto", (9,)) == [9, 24, 168]
    assert features.own_lengths(y, "auto", "auto") == [24, 9, 168]


@pytest.mark.parametrize("strategy", ["baseline", "corrected"])
@pytest.mark.parametrize(
    ("freq", "season", "n"), [("MS", 12, 18), ("QS", 4, 7), ("W", 52, 78), ("D", 7, 8), ("h", 24, 36)]
)
def test_a_season_that_was_seen_once_is_forecast(freq, season, n, strategy):
    """It had to be seen twice: errors were as large as without dates."""
    rng, index = np.random.default_rng(0), pd.date_range("2024-01-01", periods=n + season, freq=freq)
    shape = 10 * np.sin(2 * np.pi * np.arange(season) / season)
    y = pd.Series(100 + np.resize(shape, len(index)) + rng.normal(0, 1, len(index)), index)
    h = season - 1
    forecaster = TaylorformerForecaster(strategy=strategy, random_state=0)
    dated = forecaster.clone().fit(y[:n], fh=range(1, h + 1)).predict()
    numbered = forecaster.fit(y[:n].reset_index(drop=True), fh=range(1, h + 1)).predict()
    past = TimeSeries.from_series(y[:n].astype("float32"), freq=freq)
    model = TaylorformerModel(season, h, strategy=strategy, random_state=0).fit(past, verbose=False)
    of_darts = model.predict(h, num_samples=200, verbose=False).mean(axis=2).values()[:, 0]
    truth = y.iloc[n : n + h].to_numpy()
    for found in (dated.to_numpy(), of_darts):
        assert np.abs(found - truth).mean() < 0.85 * np.abs(numbered.to_numpy() - truth).mean()


@pytest.mark.parametrize(("freq", "n"), [("MS", 18), ("D", 12), ("h", 30)])
def test_a_shorter_season_that_values_show_is_found_beside_a_cycle_seen_once(freq, n):
    """A year of 18 months hid a season of three, and losses were three times as large."""
    rng, index = np.random.default_rng(0), pd.date_range("2024-01-01", periods=n + 3, freq=freq)
    y = pd.Series(np.resize([100.0, 100.0, 160.0], n + 3) + rng.normal(size=n + 3), index)
    found = TaylorformerForecaster(random_state=0).fit(y[:n], fh=[1, 2, 3]).predict()
    np.testing.assert_allclose(found, y[n:], atol=12)


@pytest.mark.parametrize(("freq", "n"), [("min", 240), ("s", 200)])
def test_a_cycle_of_sixty_minutes_or_seconds_seen_four_times_has_sixty_steps(freq, n):
    """It had 59 or 61 in six of ten series, and forecasts an hour ahead had 22 % more error."""
    index = pd.date_range("2021-01-04", periods=n, freq=freq)
    for seed in range(6):
        y = np.sin(2 * np.pi * np.arange(n) / 60) + 0.2 * np.random.default_rng(seed).normal(size=n)
        features = SeasonalFeatures.choose(TimeAxis.of([index]), [(index, y[:, None])])
        assert features.periods == (60.0,)


def test_a_period_near_a_usual_one_stays_where_the_series_tells_them_apart():
    t = np.arange(2400)
    noise = np.random.default_rng(0).normal(size=2400)
    y = np.sin(2 * np.pi * t / 61) + 0.2 * noise
    assert seasons_beside([1440], y, [60]) == [61]
