"""Effects of the calendar are found where there are some, and not elsewhere."""

import numpy as np
import pytest
import torch

from taylorformer_forecast.calendar.steps import StepDate
from taylorformer_forecast.engine.statistics.days import (
    effects_of_calendar,
    surplus_of_working_days,
    without_effects,
)

FIRST = int(np.datetime64("2021-03-01", "D").astype(int))
N, AHEAD = 800, 28
DATES = (FIRST + np.arange(N + AHEAD)).astype("datetime64[D]").astype(str)
LAST = StepDate(np.datetime64(FIRST + N - 1, "D"))
RNG = np.random.default_rng(0)
NOISE = RNG.normal(size=(40, N))


def effects(y, last=LAST):
    return effects_of_calendar(torch.as_tensor(y, dtype=torch.float64), [last] * len(y), AHEAD).numpy()


@pytest.mark.parametrize("n", [60, 100, 300])
def test_a_trend_is_no_effect_of_days_of_the_month(n):
    line = 10 * np.arange(n) + NOISE[:5, :n]
    assert np.abs(effects(line)).max() < 3


@pytest.mark.parametrize("n", [90, 150, 220])
@pytest.mark.parametrize("cycle", [5, 6, 10])
def test_a_cycle_that_is_no_week_is_no_effect_of_days_of_the_month(cycle, n):
    cycles = 100 + 10 * np.sin(2 * np.pi * np.arange(n) / cycle + np.arange(5)[:, None]) + 2 * NOISE[:5, :n]
    y = torch.as_tensor(cycles)
    found = effects_of_calendar(y, [LAST - 31 * k for k in range(5)], AHEAD, [7, round(cycle)])
    assert found[:, n:].abs().mean() < 0.1


@pytest.mark.parametrize("seasons", [[7], [7, 10]])
def test_pay_days_are_found_in_half_a_year_and_beside_a_season_that_is_no_week(seasons):
    n, dates = 240, DATES[N - 240 :]
    paid = np.array([date[8:] in ("25", "26") for date in dates])
    y = 100 + 20.0 * paid[:n] + NOISE[:5, :n] + (len(seasons) - 1) * np.sin(np.arange(n) * np.pi / 5)
    found = effects_of_calendar(torch.as_tensor(y), [LAST] * 5, AHEAD, seasons).numpy()[:, n:]
    assert found[:, paid[n:]].mean() > 10
    assert np.abs(found[:, ~paid[n:]]).mean() < 1


def test_a_curve_over_each_month_is_found_though_a_season_of_thirty_days_explains_it_nearly_as_well():
    n, day = 240, np.array([int(date[8:]) for date in DATES[N - 240 :]])
    curve = 10 * np.sin(2 * np.pi * (day - 1) / 31)
    y = torch.as_tensor(100 + curve[:n] + 2 * NOISE[:5, :n])
    found = effects_of_calendar(y, [LAST] * 5, AHEAD, [7, 30]).numpy()[:, n:]
    assert np.abs(found - curve[n:]).mean() < 0.5 * np.abs(curve[n:]).mean()


def with_holidays(size=30.0):
    """Noise, more on three days before each Easter and Christmas, and half of that late in every month."""
    added = np.zeros(N)
    for date in ("2021-04-04", "2022-04-17", "2023-04-09", "2021-12-25", "2022-12-25"):
        at = list(DATES).index(date)
        added[at - 3 : at] = size
    added[[date[8:] in ("27", "28") for date in DATES[:N]]] += size / 2
    return 100 + 5 * NOISE[0] + added, added


def test_holidays_and_days_of_the_month_are_found():
    y, added = with_holidays()
    found = effects(y[None])[0]
    many = added > 0
    assert np.corrcoef(found[:N], added)[0, 1] > 0.9
    assert 0.6 < found[:N][many].mean() / added[many].mean() < 1.1
    assert np.abs(found[:N][~many]).mean() < 1.5
    future = [date[8:] in ("27", "28") for date in DATES[N:]]
    assert found[N:][future].mean() > 7
    assert np.abs(found[N:][np.invert(future)]).max() < 4


@pytest.mark.parametrize("kind", ["noise", "walks", "weekly"])
def test_series_without_effects_have_hardly_any(kind):
    y = {
        "noise": 50 + NOISE,
        "walks": NOISE.cumsum(1),
        "weekly": 50 + 10 * np.sin(np.arange(N) * 2 * np.pi / 7) + NOISE,
    }[kind]
    usual = np.abs(np.diff(y, axis=1, n=1) if kind == "walks" else NOISE).mean()
    found = np.abs(effects(y)).mean(1)
    assert np.median(found) < 0.1 * usual
    assert found.mean() < 0.2 * usual


@pytest.mark.parametrize("first", range(7))
@pytest.mark.parametrize("n_closed", [1, 2])
def test_a_shop_that_is_closed_at_weekends_has_effects_on_its_open_days_alone(first, n_closed):
    closed = (np.arange(N + AHEAD) + first) % 7 < n_closed
    y = np.where(closed[:N], 0.0, with_holidays()[0])
    found = effects_of_calendar(torch.as_tensor(y)[None], [LAST], AHEAD, [7]).numpy()[0]
    assert (found[closed] == 0).all()
    late = np.array([date[8:] in ("27", "28") for date in DATES]) & ~closed
    assert found[late][-4:].mean() > 7


def test_a_zero_among_the_first_values_changes_no_effect():
    y = with_holidays()[0]
    with_zero = np.where(np.arange(N) == 3, 0.0, y)
    np.testing.assert_allclose(effects(with_zero[None])[0, N:], effects(y[None])[0, N:], atol=2.0)


def test_effects_follow_the_units():
    y = with_holidays()[0]
    for values in (y, np.where(np.arange(N) < N - 60, y, 0.0)):  # the second one has closed
        np.testing.assert_allclose(effects(1e-6 * values[None]), 1e-6 * effects(values[None]), rtol=1e-9)


def test_gaps_hardly_matter():
    y = with_holidays()[0]
    gappy = np.where(RNG.uniform(size=N) < 0.1, np.nan, y)
    assert np.corrcoef(effects(gappy[None])[0], effects(y[None])[0])[0, 1] > 0.9


def test_effects_of_a_series_with_negative_values_follow_a_shift():
    y = with_holidays()[0] - 200
    np.testing.assert_allclose(effects(y[None] - 1000), effects(y[None]), atol=1e-6)


@pytest.mark.parametrize(
    "y",
    [np.zeros(N), np.full(N, 7.0), np.full(N, np.nan), np.arange(50.0), RNG.poisson(0.2, size=N) * 1.0],
    ids=["zeros", "constant", "missing", "few", "intermittent"],
)
def test_some_series_have_none(y):
    assert (effects(y[None]) == 0).all()


def test_series_that_are_not_daily_have_none_and_others_in_a_batch_do_not_matter():
    y = np.stack([with_holidays()[0], 100 + NOISE[1], 100 + NOISE[2]])
    y[2, :500] = np.nan
    together = effects_of_calendar(torch.as_tensor(y), [LAST, None, LAST - 3], AHEAD).numpy()
    assert (together[1] == 0).all()
    np.testing.assert_allclose(together[0], effects(y[:1])[0], atol=1e-9)
    alone = effects_of_calendar(torch.as_tensor(y[2:, 500:]), [LAST - 3], AHEAD).numpy()
    np.testing.assert_allclose(together[2, 500:], alone[0], atol=1e-9)


WORKDAYS = (0, 1, 2, 3, 4)


def of_weekdays(weekdays):
    """Which days are steps, and the date of the last of the past."""
    steps = np.array([np.datetime64(date).item().weekday() in weekdays for date in DATES])
    return steps, StepDate(np.datetime64(DATES[:N][steps[:N]][-1]), weekdays)


@pytest.mark.parametrize("weekdays", [WORKDAYS, (0, 1, 2, 3, 4, 5), (6, 0, 1, 2, 3), (0, 2, 4)], ids=len)
def test_series_of_some_weekdays_have_effects_of_holidays(weekdays):
    y, added = with_holidays(size=60)
    steps, last = of_weekdays(tuple(sorted(weekdays)))
    y, ahead = torch.as_tensor(y[steps[:N]]), int(steps[N:].sum())
    found = effects_of_calendar(y[None], [last], ahead, [len(weekdays)])[0].numpy()
    many = added[steps[:N]] == 60
    assert found[: len(y)][many].mean() > 25
    assert np.abs(found[: len(y)][added[steps[:N]] == 0]).mean() < 4


def test_the_last_working_day_of_a_month_is_one_day_whatever_its_date():
    steps, last = of_weekdays(WORKDAYS)
    months = np.array([date[:7] for date in DATES[steps]])
    closing = np.append(months[1:] != months[:-1], False)
    n = int(steps[:N].sum())
    y = torch.as_tensor(100 + NOISE[0, :n] + 20 * closing[:n])
    found = effects_of_calendar(y[None], [last], len(closing) - n, [5])[0].numpy()
    assert closing[n:].sum() == 1
    ordinary = ~np.isin([date[5:7] for date in DATES[steps]], ["03", "04", "12"])  # far from holidays
    np.testing.assert_allclose(found[ordinary], 20 * closing[ordinary], atol=4)


def test_series_of_all_days_and_of_some_do_not_matter_to_each_other():
    _, last = of_weekdays(WORKDAYS)
    both = torch.as_tensor(np.stack([with_holidays()[0][-500:]] * 2))
    together = effects_of_calendar(both, [LAST, last], AHEAD).numpy()
    for row, at in enumerate((LAST, last)):
        np.testing.assert_allclose(together[row], effects_of_calendar(both[:1], [at], AHEAD)[0], atol=1e-9)


def test_values_without_effects_stay_above_the_least():
    y = torch.tensor([[1.0, 5.0, 2.0], [-1.0, 5.0, 2.0]])
    assert without_effects(y, torch.full((2, 4), 3.0)).tolist() == [[1.0, 2.0, 1.0], [-4.0, 2.0, -1.0]]


# --- working days of monthly series -------------------------------------------------------------------------

MONTHS = np.arange("1990-01", "2000-01", dtype="datetime64[M]")
SURPLUS = surplus_of_working_days(MONTHS.astype(int))
YEARS, LATER = slice(0, 102), slice(102, 120)
MONTHLY = RNG.normal(size=(40, 102))


def of_months(y):
    last = StepDate(MONTHS[101])
    return effects_of_calendar(torch.as_tensor(y, dtype=torch.float64), [last] * len(y), 18).numpy()


def with_working_days(size=0.01):
    season = 1 + 0.2 * np.sin(np.arange(120) * np.pi / 6)
    return 100 * season * np.exp(size * SURPLUS), 100 * season


def test_working_days_of_positive_series_are_found_in_shares():
    y, without = with_working_days()
    noisy = y[YEARS] * np.exp(0.01 * MONTHLY[0])
    found, added = of_months(noisy[None])[0], y - without
    np.testing.assert_allclose(found, added, atol=1.0)
    assert np.corrcoef(found[LATER], added[LATER])[0, 1] > 0.99


def test_working_days_of_series_with_negative_values_are_found_in_units_and_follow_a_shift():
    y = 3 * SURPLUS[YEARS] + MONTHLY[0]
    np.testing.assert_allclose(of_months(y[None])[0], 3 * SURPLUS, atol=0.1 * np.abs(SURPLUS).max())
    np.testing.assert_allclose(of_months(y[None] - 1000), of_months(y[None]), atol=1e-6)


def test_effects_of_working_days_follow_the_units():
    y = with_working_days()[0][YEARS] * np.exp(0.01 * MONTHLY[0])
    np.testing.assert_allclose(of_months(1e-6 * y[None]), 1e-6 * of_months(y[None]), rtol=1e-9)


def test_most_monthly_series_without_effects_have_none():
    found = np.abs(of_months(100 + MONTHLY)).mean(1)
    assert (found == 0).mean() > 0.7  # an F statistic is below 2 in 84 %
    assert found.mean() < 0.1


@pytest.mark.parametrize(
    "y",
    [
        np.zeros(102),
        np.full(102, 7.0),
        np.full(102, np.nan),
        with_working_days()[0][66:102],
        with_working_days()[0][90:102],
        RNG.poisson(0.2, size=102) * 1.0,
    ],
    ids=["zeros", "constant", "missing", "three years", "one year", "intermittent"],
)
def test_some_monthly_series_have_none(y):
    assert (of_months(y[None]) == 0).all()


def test_gaps_and_longer_series_in_a_batch_hardly_matter_to_working_days():
    y = with_working_days()[0][YEARS] * np.exp(0.01 * MONTHLY[0])
    gappy = np.where(np.arange(102) % 23 == 5, np.nan, y)
    np.testing.assert_allclose(of_months(gappy[None]), of_months(y[None]), atol=2.0)
    short = np.where(np.arange(102) < 30, np.nan, y)
    last = [*[StepDate(MONTHS[101])] * 2, StepDate(np.datetime64("1998-06-30"))]
    together = effects_of_calendar(torch.as_tensor(np.stack([short, y, y])), last, 18).numpy()
    np.testing.assert_allclose(together[0, 30:], of_months(y[None, 30:])[0], atol=1e-9)
    np.testing.assert_allclose(together[1], of_months(y[None])[0], atol=1e-9)


def test_erratic_series_get_no_effect_beyond_twice_their_values():
    y = np.exp(np.clip(0.5 * SURPLUS[YEARS] + MONTHLY[0], -300, 300))
    found = of_months(y[None])[0]
    assert np.isfinite(found).all()
    assert (np.abs(found[YEARS]) <= 2 * y).all()


def test_an_outlier_of_the_last_year_does_not_come_back_as_an_effect():
    y = with_working_days()[0][YEARS] * np.exp(0.01 * MONTHLY[0])
    usual = of_months(y[None])[0, LATER]
    y[95] *= 1e6
    np.testing.assert_allclose(of_months(y[None])[0, LATER], usual, atol=0.5 * np.abs(usual).max())
