"""Bars of trading hours, and weekdays: only steps of open hours and days count."""

import numpy as np
import pandas as pd
import pytest
from darts import TimeSeries

from taylorformer_forecast.calendar.axis import TimeAxis
from taylorformer_forecast.darts import TaylorformerModel
from taylorformer_forecast.sktime import LAMForecaster, TaylorformerForecaster

EVERY = pd.date_range("2024-01-01", periods=10 * 7 * 24, freq="h")


def office(weeks=6, tz=None, freq="h", unit="ns", first=9, end=16):
    times = pd.date_range("2024-01-01", periods=weeks * 7 * 24, freq="h")
    times = pd.date_range(times[0], times[-1], freq=freq)
    times = times[(times.hour >= first) & (times.hour < end) & (times.dayofweek < 5)]
    return times.tz_localize(tz).as_unit(unit)


def relative(axis, times, steps):
    from sktime.forecasting.base import ForecastingHorizon

    return axis.horizon(ForecastingHorizon(steps), times[-1], times)


@pytest.mark.parametrize("tz", [None, "America/New_York"])
@pytest.mark.parametrize("freq", ["h", "30min", "15min"])
def test_bars_are_one_step_apart_over_nights_weekends_and_clock_changes(freq, tz):
    times = office(weeks=14, tz=tz, freq=freq)  # clocks of New York change in the tenth week
    axis = TimeAxis.of([times])
    np.testing.assert_allclose(axis.numbers(times), np.arange(len(times)))
    assert axis.cycle_steps("week") == 5 * axis.cycle_steps("day") == len(times) / 14
    assert axis.usual_cycles() == ("day", "week")


@pytest.mark.parametrize("unit", ["s", "us", "ns"])
def test_relative_steps_go_on_at_the_next_opening(unit):
    times = office(unit=unit)
    ahead = relative(TimeAxis.of([times]), times, [-1, 0, 1, 7, 8, 36])
    hours = ["02-09 14:00", "02-09 15:00", "02-12 09:00", "02-12 15:00", "02-13 09:00", "02-19 09:00"]
    pd.testing.assert_index_equal(ahead, pd.DatetimeIndex([f"2024-{h}" for h in hours]).as_unit(unit))


def test_a_holiday_and_a_half_day_are_gaps():
    times = office()
    kept = times[(times < "2024-01-17") | (times >= "2024-01-18 13:00")]
    axis = TimeAxis.of([kept])
    numbers = axis.numbers(kept)
    assert np.diff(numbers).max() == 7 + 4 + 1
    assert numbers[-1] == len(times) - 1


@pytest.mark.parametrize("weeks", [3, 4, 8])
def test_a_holiday_hides_no_open_hours_however_many_steps_a_day_has(weeks):
    for freq in ("h", "min"):
        times = office(weeks=weeks, freq=freq)
        kept = times[times.normalize() != "2024-01-09"]
        axis = TimeAxis.of([kept])
        assert axis.cycle_steps("week") == len(times) / weeks
        assert axis.numbers(kept)[-1] == len(times) - 1


def test_two_working_weeks_are_enough_and_a_third_of_the_minutes_may_be_missing():
    assert TimeAxis.of([office(weeks=2)]).kind == "open"
    assert TimeAxis.of([office(weeks=2)[14:]]).kind == "open"  # from the first Wednesday
    times = office(weeks=8, freq="min")
    kept = times[np.random.default_rng(0).random(len(times)) < 0.7]
    assert TimeAxis.of([kept]).cycle_steps("day") == 7 * 60


def test_short_fridays_leave_gaps():
    times = office(weeks=6)
    kept = times[(times.dayofweek < 4) | (times.hour < 12)]
    axis = TimeAxis.of([kept])
    assert axis.cycle_steps("week") == 35
    np.testing.assert_array_equal(np.unique(np.diff(axis.numbers(kept))), [1, 5])


def test_bars_of_a_panel_that_lie_beside_each_other_are_counted_by_the_clock():
    times = office()
    assert TimeAxis.of([times, times + pd.Timedelta("30min")]).kind == "clock"
    assert TimeAxis.of([times, times[40:80]]).kind == "open"


def test_hours_in_which_clocks_change_are_counted_by_the_clock():
    every = pd.date_range("2024-01-01", periods=20 * 7 * 24, freq="h", tz="Europe/Berlin")
    night = (every.hour < 12) | (every.hour >= 20)
    assert TimeAxis.of([every[night]]).kind == "clock"
    assert TimeAxis.of([every.tz_convert("UTC")[night]]).kind == "open"
    assert TimeAxis.of([every[(every.hour >= 4) & (every.hour < 12)]]).kind == "open"


def test_a_horizon_beyond_all_dates_is_refused():
    times = office()
    with pytest.raises(ValueError, match="fh goes beyond the dates"):
        relative(TimeAxis.of([times]), times, [10_000_000])


def test_short_series_have_the_open_hours_of_those_before():
    times = office(weeks=8)
    axis = TimeAxis.of([times])
    few = TimeAxis.of([times[:6]])
    assert few.kind == "clock"
    assert axis.continued(few, few=False) is axis


def test_a_darts_model_of_business_hours_can_be_loaded(tmp_path):
    times = pd.date_range("2024-01-01 09:00", periods=200, freq="bh")
    series = TimeSeries.from_times_and_values(times, np.sin(np.arange(200.0)))
    model = TaylorformerModel(40, 8, strategy="corrected", random_state=0).fit(series)
    model.save(str(tmp_path / "model.pt"))
    loaded = TaylorformerModel.load(str(tmp_path / "model.pt"))
    np.testing.assert_allclose(loaded.predict(8).values(), model.predict(8).values(), atol=0.05)


def test_the_last_time_may_lie_in_closed_hours():
    times = office()
    axis = TimeAxis.of([times])
    late = times[:-1].append(pd.DatetimeIndex(["2024-02-10 12:00"]))
    assert relative(axis, late, [1])[0] == pd.Timestamp("2024-02-12 09:00")


@pytest.mark.parametrize(
    "times",
    [
        office(weeks=1),
        EVERY[EVERY.hour != 3],
        office(weeks=6)[::3],
        office()[np.random.default_rng(0).random(len(office())) < 0.5],
        office().append(pd.DatetimeIndex(["2024-02-09 20:17"])),
        office().append(pd.DatetimeIndex(["2024-02-10 09:00"])),
    ],
    ids=[
        "one week",
        "hardly closed",
        "every third",
        "half at random",
        "beside the grid",
        "one Saturday",
    ],
)
def test_other_times_are_counted_by_the_clock(times):
    assert TimeAxis.of([times]).kind == "clock"


def test_random_times_of_a_fine_grid_have_no_open_hours():
    rng = np.random.default_rng(0)
    for share in (0.1, 0.2, 0.3, 0.5, 0.9):
        assert TimeAxis.of([EVERY[rng.random(len(EVERY)) < share]]).hours is None


def test_currencies_that_trade_from_sunday_to_friday_have_open_hours():
    since_monday = EVERY.dayofweek * 24 + EVERY.hour
    times = EVERY[(since_monday < 4 * 24 + 22) | (since_monday >= 6 * 24 + 22)]
    axis = TimeAxis.of([times])
    np.testing.assert_allclose(axis.numbers(times), np.arange(len(times)))
    assert (axis.cycle_steps("day"), axis.cycle_steps("week")) == (24, 120)


def test_forecasts_of_bars_are_those_of_their_numbers():
    times = office(weeks=12)
    rng = np.random.default_rng(0)
    week = np.tile(10 * rng.standard_normal(35), 12)
    y = pd.Series(100 + week + rng.standard_normal(len(times)), times)
    forecast = TaylorformerForecaster(strategy="baseline", random_state=0)
    dates = forecast.clone().fit(y, fh=range(1, 36)).predict_interval(coverage=0.9)
    numbers = forecast.fit(y.reset_index(drop=True), fh=range(1, 36)).predict_interval(coverage=0.9)
    assert dates.index[0] == pd.Timestamp("2024-03-25 09:00")
    widths = [np.diff(x.to_numpy(), axis=1).mean() for x in (dates, numbers)]
    assert widths[0] == pytest.approx(2 * 1.645, rel=0.3)
    assert widths[0] < 1.1 * widths[1]


@pytest.mark.parametrize("freq", ["bh", pd.offsets.CustomBusinessHour(start="10:00", end="15:00"), "2bh"])
def test_frequencies_of_business_hours_need_no_weeks_to_show_them(freq):
    times = pd.date_range("2024-01-01", periods=12, freq=freq)
    axis = TimeAxis.of([times])
    np.testing.assert_allclose(axis.numbers(times), np.arange(12))
    pd.testing.assert_index_equal(
        relative(axis, times, [1, 2]), times[-1:].shift(1).append(times[-1:].shift(2))
    )


@pytest.mark.parametrize("host", ["sktime", "darts"])
def test_intervals_of_business_hours_are_as_wide_as_the_noise(host):
    times = pd.date_range("2024-01-01 09:00", periods=12 * 40, freq="bh")
    rng = np.random.default_rng(0)
    y = 100 + np.tile(10 * rng.standard_normal(40), 12) + rng.standard_normal(len(times))
    if host == "sktime":
        forecaster = TaylorformerForecaster(strategy="baseline", random_state=0)
        forecast = forecaster.fit(pd.Series(y, times), fh=range(1, 41)).predict_interval(coverage=0.9)
        ends, first = forecast.to_numpy().T, forecast.index[0]
    else:
        model = TaylorformerModel(80, 40, strategy="baseline", random_state=0)
        series = TimeSeries.from_times_and_values(times, y)
        paths = model.fit(series).predict(40, num_samples=200)
        ends, first = np.quantile(paths.all_values()[:, 0], [0.05, 0.95], axis=1), paths.start_time()
    assert first == pd.Timestamp("2024-03-25 09:00")
    assert np.mean(ends[1] - ends[0]) == pytest.approx(2 * 1.645, rel=0.3)


def test_absolute_and_relative_horizons_agree_after_an_update():
    times = office()
    y = pd.Series(np.random.default_rng(0).standard_normal(len(times)).cumsum(), times)
    forecaster = TaylorformerForecaster(strategy="zero_shot", random_state=0).fit(y[:-35], fh=range(1, 15))
    forecaster.update(y[-35:-14])
    forecast = forecaster.predict()
    assert list(forecast.index) == list(times[-14:])
    pd.testing.assert_series_equal(forecaster.predict(times[-14:]), forecast)


def test_models_that_need_regular_times_take_bars():
    times = office()
    y = pd.Series(np.sin(np.arange(len(times)) / 7 * 2 * np.pi), times).drop(times[40:44])
    forecaster = LAMForecaster(max_steps=2, verbose=False, random_state=0)
    assert forecaster.fit(y, fh=range(1, 8)).predict().index[0] == pd.Timestamp("2024-02-12 09:00")


LEVEL_OF_WEEKDAY = np.array([100.0, 110, 95, 105, 130, 60, 20])


def days_of(weekdays, n=260, tz=None):
    days = pd.date_range("2023-03-01", periods=n, tz=tz)
    return days[days.dayofweek.isin(weekdays)]


SOME_DAYS = [(0, 2, 4), (1, 3, 5), (2, 5), (0, 1, 5), (0, 1, 3, 4), (6, 0, 1, 2, 3), (0, 1, 2, 3, 4, 5)]


@pytest.mark.parametrize("tz", [None, "Europe/Berlin"])
@pytest.mark.parametrize("weekdays", SOME_DAYS)
def test_relative_steps_are_the_next_days_that_have_rows(weekdays, tz):
    days = days_of(weekdays, tz=tz)
    axis = TimeAxis.of([days[:-5]])
    pd.testing.assert_index_equal(
        relative(axis, days[:-5], [-2, 0, 1, 2, 3, 4, 5]), days[[-8, -6, -5, -4, -3, -2, -1]]
    )
    assert axis.cycle_steps("week") == (len(weekdays) if len(weekdays) < 5 else 7)
    counted = sorted(weekdays) if len(weekdays) < 5 else range(7)
    dates, are_steps = axis.dates(days)
    assert are_steps == tuple(counted)
    assert (dates == days.tz_localize(None)).all()


@pytest.mark.parametrize("weekdays", SOME_DAYS)
def test_series_of_some_weekdays_are_forecast_with_their_week(weekdays):
    days = days_of(weekdays)
    y = pd.Series(LEVEL_OF_WEEKDAY[days.dayofweek] + np.random.default_rng(0).normal(0, 2, len(days)), days)
    ahead = 3 * len(weekdays)
    forecast = TaylorformerForecaster(strategy="baseline", random_state=0).fit(
        y[:-ahead], fh=range(1, ahead + 1)
    )
    pd.testing.assert_index_equal(forecast.predict().index, y.index[-ahead:], exact="equiv")
    truth = LEVEL_OF_WEEKDAY[days[-ahead:].dayofweek]
    assert np.abs(forecast.predict().to_numpy() - truth).mean() < 2
    widths = np.diff(forecast.predict_interval(coverage=0.8).to_numpy(), axis=1)
    assert widths.mean() < 12


@pytest.mark.parametrize("numbered", [lambda days: days.to_period("D"), lambda days: (days - days[0]).days])
def test_some_weekdays_of_numbers_and_periods_are_regular(numbered):
    days = days_of((0, 2, 4))
    index = numbered(days)
    y = pd.Series(LEVEL_OF_WEEKDAY[days.dayofweek] + np.random.default_rng(0).normal(0, 2, len(days)), index)
    forecast = TaylorformerForecaster(strategy="baseline", random_state=0).fit(y[:-9], fh=y.index[-9:])
    assert np.abs(forecast.predict().to_numpy() - LEVEL_OF_WEEKDAY[days[-9:].dayofweek]).mean() < 3


def test_readings_at_some_hours_of_all_days_are_steps():
    times = EVERY[EVERY.hour.isin((8, 12, 18))]
    axis = TimeAxis.of([times[:-4]])
    assert (axis.cycle_steps("day"), axis.cycle_steps("week")) == (3, 21)
    pd.testing.assert_index_equal(relative(axis, times[:-4], [1, 2, 3, 4]), times[-4:])


@pytest.mark.parametrize("weekmask", ["Mon Wed Fri", "Mon Tue Wed Thu Fri Sat"])
def test_a_frequency_of_some_weekdays_skips_the_others(weekmask):
    days = pd.date_range("2023-03-01", periods=60, freq=pd.offsets.CustomBusinessDay(weekmask=weekmask))
    axis = TimeAxis.of([days])
    assert axis.cycle_steps("week") == len(axis.dates(days)[1]) == len(weekmask.split())
    pd.testing.assert_index_equal(relative(axis, days[:-3], [1, 2, 3]), days[-3:])


@pytest.mark.parametrize("kept", [0.4, 0.8])
def test_days_that_are_missing_at_random_close_no_weekday(kept):
    days = pd.date_range("2023-01-01", periods=200)
    axis = TimeAxis.of([days[np.random.default_rng(0).random(200) < kept]])
    assert axis.hours is None
    assert axis.open_days is None


def test_other_series_than_short_ones_do_not_take_open_hours_of_those_before():
    bars, some = TimeAxis.of([office(weeks=8)]), TimeAxis.of([days_of((0, 2, 4))])
    daily, weekly = (pd.date_range("2024-01-01", periods=40, freq=freq) for freq in ("D", "W"))
    for axis in (bars, some):
        for times in (daily, weekly, daily[:5]):
            own = TimeAxis.of([times])
            assert axis.continued(own, few=False) is own
    few = TimeAxis.of([days_of((0, 2, 4), n=12)[:4]])
    assert some.continued(few, few=False) is some


def test_one_number_beside_the_steps_is_an_exception():
    numbers = np.sort(np.append(3 * np.arange(100), 100))
    assert TimeAxis.of([pd.Index(numbers)]).step == 3


@pytest.mark.parametrize(
    "model", [TaylorformerForecaster(strategy="baseline"), LAMForecaster(max_steps=2, verbose=False)]
)
def test_covariates_of_open_days_are_enough(model):
    days = days_of((0, 1, 2, 3, 4, 5), n=120)
    x = pd.DataFrame({"x": np.random.default_rng(0).random(len(days))}, days)
    y = pd.Series(np.arange(len(days)) % 6 + 10 * x["x"], days)
    model = model.clone().set_params(random_state=0).fit(y[:-7], X=x[:-7], fh=range(1, 8))
    pd.testing.assert_index_equal(model.predict(X=x[-7:]).index, y.index[-7:], exact="equiv")
