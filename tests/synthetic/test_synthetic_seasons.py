"""Moments and shapes of seasons and of effects of the calendar."""

import numpy as np
import pytest

from taylorformer_forecast.calendar.easter import easter
from taylorformer_forecast.synthetic.calendar import year_and_day
from taylorformer_forecast.synthetic.season import harmonics, modulate

rng = np.random.default_rng


@pytest.mark.parametrize("name", ["harmonics", "profile", "bumps", "day_and_night"])
@pytest.mark.parametrize("period", [2, 4, 7, 12, 24, 96, 168])
def test_constant_seasons_come_back_exactly(draw, name, period):
    x = draw(name, 50, 2 * period + 3, periods=(period,))
    np.testing.assert_allclose(x[:, period:], x[:, :-period], atol=1e-9)


def test_harmonics_have_half_the_squares_of_their_amplitudes_and_none_is_aliased(draw):
    k, m = 2000, 24
    amplitudes, angles = rng(0).standard_normal((k, 5)), rng(1).uniform(0, 7, (k, 5))
    x = harmonics(amplitudes, angles, np.tile(np.arange(m) / m, (k, 1)))
    np.testing.assert_allclose((x**2).mean(1), (amplitudes**2).sum(1) / 2, rtol=1e-9)
    for m in (4, 7, 12):
        np.testing.assert_allclose(draw("harmonics", 200, m, periods=(m,)).sum(1), 0, atol=1e-9)
    h = np.arange(1, 7)  # all of a period of 12 but the sixth, whose phase matters
    steepness = np.linspace(0.3, 2.5, 2001)[:, None]
    x = draw("harmonics", 20_000, 12, periods=(12,))
    assert np.mean(x**2) == pytest.approx(np.mean((h ** (-2 * steepness)).sum(1)) / 2, rel=0.05)


def test_profile_has_independent_steps_with_some_that_stand_out(draw):
    x = draw("profile", 20_000, 12, periods=(12,))
    # A third of the tables are signed squares, of variance 3.
    assert x.var() == pytest.approx(0.7 + 0.3 * 3, rel=0.03)
    assert np.mean(x[:, 1] * x[:, 0]) == pytest.approx(0, abs=0.05)


def test_profile_of_a_week_has_working_days_alike(draw, frame):
    one = frame(20_000, 7, "daily", (7,))
    x = draw("profile", 20_000, 7, "daily", (7,))
    first = np.round(7 * one.phases[:, 0]).astype(int)
    by_day = np.take_along_axis(x, (np.arange(7) - first[:, None]) % 7, 1)
    # In 70 %, Tuesday is Monday's draw plus a quarter of its own.
    assert np.mean(by_day[:, 0] * by_day[:, 1]) == pytest.approx(0.7 * 1.25 * 1.6, rel=0.06)
    assert np.mean(by_day[:, 5] * by_day[:, 6]) == pytest.approx(0, abs=0.06)


def test_evolving_season_changes_by_the_same_variance_in_every_cycle(draw):
    m, cycles = 12, 10
    n = m * cycles
    x = draw("evolving_season", 20_000, n, periods=(m,))
    changes = x[:, m:] - x[:, :-m]
    wanted = (1 - 0.05**2) / (2 * np.log(20)) / cycles
    assert np.mean(changes[:, :m] ** 2) == pytest.approx(wanted, rel=0.05)
    assert np.mean(changes[:, -m:] ** 2) == pytest.approx(wanted, rel=0.05)
    two = x[:, 2 * m :] - x[:, : -2 * m]
    assert np.mean(two**2) == pytest.approx(2 * wanted, rel=0.05)


def test_bumps_have_the_mean_of_von_mises_shapes(draw):
    m = 96
    x = draw("bumps", 8000, m, periods=(m,))
    sharpness = np.exp(np.linspace(np.log(0.7), np.log(30), 2001))
    one = np.mean(np.i0(sharpness) * np.exp(-sharpness))
    assert x.mean() == pytest.approx(one * (1 + 0.35 * (0.6 + 0.3)), rel=0.02)


def test_day_and_night_are_two_levels_of_equal_shares_on_average(draw):
    x = draw("day_and_night", 4000, 48, periods=(48,))
    assert x.mean() == pytest.approx(0, abs=0.03)
    assert np.abs(x).max() <= 1.4
    assert np.mean(np.abs(x) > 0.5) > 0.65
    crossings = (np.diff(np.sign(x)) != 0).sum(1)
    assert np.median(crossings) == 2


def test_working_week_has_lower_weekends_and_days_of_mean_zero(draw, frame):
    one = frame(6000, 24 * 14, "hourly", (24, 168))
    x = draw("working_week", 6000, 24 * 14, "hourly", (24, 168))
    weekday = (one.days() + 3) % 7
    hour = np.round(24 * (one.phase() % 1)).astype(int) % 24
    day = hour < 18  # before the passage to the next day
    of_day = [x[(weekday == d) & day].mean() for d in range(7)]
    effect = -0.75 * (1.0 / np.log(6))  # means of the level and of its weight
    assert of_day[6] - np.mean(of_day[:5]) == pytest.approx(effect, abs=0.06)
    assert of_day[5] - np.mean(of_day[:5]) == pytest.approx(0.6 * effect, abs=0.06)
    np.testing.assert_allclose(x[:, 168:], x[:, :168], atol=1e-9)


def test_seasonal_modulation_changes_amplitudes_and_keeps_the_mean_square(frame):
    one = frame(4000, 120, periods=(12,))
    x = np.sqrt(2) * np.cos(2 * np.pi * one.phase())
    y = modulate(rng(0), one, x)
    assert np.mean(y**2) == pytest.approx(1.0, abs=0.03)
    ratio = np.log(np.abs(y) / np.abs(x).clip(1e-12))[np.abs(x) > 1e-3]
    size = np.log(0.5 / 0.03)
    assert ratio.var() == pytest.approx(
        (0.5**2 - 0.03**2) / (2 * size) + np.var(np.exp(np.linspace(np.log(0.03), np.log(0.5), 2001)) ** 2),
        rel=0.1,
    )


def test_phases_of_seasons_follow_from_dates(frame):
    hours = frame(300, 50, "hourly", (24, 168))
    hour = np.round(24 * (hours.start % 1)) % 24
    np.testing.assert_allclose(24 * hours.phases[:, 0], hour, atol=1e-6)
    weekday = (np.floor(hours.start).astype(int) + 3) % 7  # 1970-01-01 was a Thursday
    np.testing.assert_allclose(168 * hours.phases[:, 1], 24 * weekday + hour, atol=1e-4)
    days = frame(300, 50, "daily", (7, 365.25))
    np.testing.assert_array_equal(np.floor(7 * days.phases[:, 0] + 1e-6), (days.days()[:, 0] + 3) % 7)
    year_day = year_and_day(days.days()[:, 0])[1]
    away = np.abs(365.25 * days.phases[:, 1] - year_day)
    assert np.minimum(away, 365.25 - away).max() < 1.5  # around the end of the year, too
    months = frame(300, 50, "monthly", (12,))
    np.testing.assert_allclose(12 * months.phases[:, 0], months.months()[:, 0] % 12, atol=1e-9)
    quarters = frame(300, 50, "quarterly", (4,))
    np.testing.assert_allclose(4 * quarters.phases[:, 0], quarters.months()[:, 0] % 12 / 3, atol=1e-9)


# --- calendar ---------------------------------------------------------------------------------------------


def months_of(frame):
    date = frame.months().astype("datetime64[M]")
    return date, frame.months() % 12


def test_month_length_follows_a_power_of_the_number_of_days(draw, frame):
    x = draw("month_length", 3000, 48, "monthly", (12,))
    date, _ = months_of(frame(3000, 48, "monthly", (12,)))
    days = ((date + 1).astype("datetime64[D]") - date.astype("datetime64[D]")).astype(int)
    z = np.log(days / days.mean(1, keepdims=True))
    power = (x * z).sum(1) / (z**2).sum(1)
    np.testing.assert_allclose(x, power[:, None] * z, atol=1e-9)
    assert power.mean() == pytest.approx(1.7 / np.log(2 / 0.3), rel=0.04)


def test_working_days_have_no_effect_in_months_of_four_weeks_and_mean_zero(draw, frame):
    x = draw("working_days", 4000, 60, "monthly", (12,))
    date, _ = months_of(frame(4000, 60, "monthly", (12,)))
    days = ((date + 1).astype("datetime64[D]") - date.astype("datetime64[D]")).astype(int)
    np.testing.assert_allclose(x[days == 28], 0, atol=1e-9)
    assert x.mean() == pytest.approx(0, abs=0.1)
    # A month of 29 days has one day more: the variance of one centred effect.
    working = 6 / 7 + 4 * (5 / 7 * 2 / 7)
    assert np.mean(x[days == 29] ** 2) == pytest.approx(working, rel=0.1)


def test_easter_is_in_march_or_april_and_its_effect_sums_to_one_in_a_year(draw, frame):
    year = np.array([1961, 1990, 2000, 2019, 2024, 2038])
    dates = ["1961-04-02", "1990-04-15", "2000-04-23", "2019-04-21", "2024-03-31", "2038-04-25"]
    assert easter(year).astype("datetime64[D]").astype(str).tolist() == dates
    one = frame(3000, 24, "monthly", (12,))
    x = draw("easter", 3000, 24, "monthly", (12,))
    _, month = months_of(one)
    assert (x[~np.isin(month, [2, 3])] == 0).all()
    whole = month[:, 0] != 3  # the others begin and end within a season of Easter
    np.testing.assert_allclose(np.abs(x[whole].sum(1)), 2, atol=1e-9)
    assert np.mean(x.sum(1) > 0) == pytest.approx(0.6, abs=0.03)
    days = draw("easter", 50, 730, "daily", (7,))
    assert (days != 0).sum(1).mean() / 2 == pytest.approx(9, abs=0.3)


def test_holidays_are_on_the_same_days_of_all_years_and_mostly_lower(draw, frame):
    one = frame(2000, 1461, "daily", (7,))
    x = draw("holidays", 2000, 1461, "daily", (7,))
    day = year_and_day(one.days())[1]
    for row in range(20):
        for d in (12, 200, 358):
            assert np.ptp(x[row, day[row] == d]) == 0
    assert np.mean(np.sign(x[day == 360])) == pytest.approx(-0.4 * 0.85, abs=0.1)
    ordinary = (day > 10) & (day < 340)
    # Seven holidays a year on average, each with one neighbour.
    assert np.mean(x[ordinary] != 0) * 366 == pytest.approx(2 * (4 * 0.9 + 8 * 0.4), rel=0.06)
    weeks = draw("holidays", 100, 104, "weekly", (52.18,))
    assert np.isfinite(weeks).all()


def test_payment_days_are_followed_by_an_exponential_decay(draw, frame):
    x = draw("payment_days", 4000, 62, "daily", (7,))
    day = year_and_day(frame(4000, 62, "daily", (7,)).days())[2]
    paid = day[np.arange(4000), x.argmax(1)]
    assert set(paid) <= {0, 9, 14, 24, 26}
    assert np.mean(paid == 0) == pytest.approx(1 / 3, abs=0.03)
    assert x.max() == pytest.approx(1.0)
    next_day = np.mean([np.exp(-1 / s) for s in np.exp(np.linspace(0, np.log(8), 2001))])
    at = x.argmax(1)
    inside = at < 61
    assert x[inside, at[inside] + 1].mean() == pytest.approx(next_day, abs=0.03)
