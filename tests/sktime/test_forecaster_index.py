"""Every kind of time index, every kind of horizon: the forecast stands at the right stamps."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from all_models import NAMES, trained
from sktime.forecasting.base import ForecastingHorizon

from taylorformer_forecast.sktime import ContiFormerForecaster, LAMForecaster, TaylorformerForecaster

N = 50


def tiny(**changes):
    settings = {"d_model": 4, "n_heads": 1, "max_steps": 1, "num_samples": 5, "random_state": 0}
    settings |= {"distribution": "normal", "num_epochs": None}
    return TaylorformerForecaster(**{"strategy": "train", **settings, **changes})


def values(n=N):
    return 10 + np.sin(np.arange(n) * 2 * np.pi / 12) + 0.3 * np.random.default_rng(0).normal(size=n)


def fitted(index, name="y", **changes):
    return tiny(**changes).fit(pd.Series(values(len(index)), index=index, name=name))


def periods(freq):
    return pd.period_range("2000-01-03", periods=N + 20, freq=freq, name="when")


def dates(freq, start="2000-01-03", **kwargs):
    return pd.date_range(start, periods=N + 20, freq=freq, name="when", **kwargs)


# A calendar that goes on after the N observations.
CALENDARS = {
    **{f"period {freq}": periods(freq) for freq in ("M", "Q", "Q-NOV", "Y", "D", "h", "W", "15min", "2M")},
    **{
        f"date {freq}": dates(freq)
        for freq in (
            *("D", "2D", "B", "C", "W", "W-WED", "h", "6h", "15min", "s", "ms", "us"),
            *("MS", "ME", "2MS", "QS", "QE", "QS-NOV", "YS", "YE", "BMS", "BME", "SMS"),
        )
    },
    "Berlin D": dates("D", "2023-02-20", tz="Europe/Berlin"),
    "Berlin h, spring": dates("h", "2023-03-24 06:00", tz="Europe/Berlin"),
    "Berlin h, autumn": dates("h", "2023-10-27 06:00", tz="Europe/Berlin"),
    "New York MS": dates("MS", tz="America/New_York"),
    "New York B": dates("B", tz="America/New_York"),
    "UTC 15min": dates("15min", tz="UTC"),
    "integers": pd.RangeIndex(N + 20),
    "integers from 5": pd.RangeIndex(5, N + 25, name="when"),
    "negative integers": pd.RangeIndex(-100, N - 80),
}
REGULAR = pytest.mark.parametrize("calendar", CALENDARS.values(), ids=CALENDARS)


@REGULAR
def test_steps_ahead_and_back_are_steps_of_the_calendar(calendar):
    forecast = fitted(calendar[:N]).predict(fh=[-7, 0, 1, 2, 13])
    expected = calendar[[N - 8, N - 1, N, N + 1, N + 12]]
    pd.testing.assert_index_equal(forecast.index, expected, exact="equiv")
    assert type(forecast.index) is type(expected)
    assert forecast.name == "y"
    assert np.isfinite(forecast).all()


@REGULAR
def test_absolute_stamps_mean_the_same_as_steps(calendar):
    forecaster, steps = fitted(calendar[:N]), [-7, 0, 1, 2, 13]
    stamps = ForecastingHorizon(calendar[[N - 1 + k for k in steps]], is_relative=False)
    pd.testing.assert_frame_equal(
        forecaster.predict_quantiles(fh=stamps, alpha=[0.1, 0.9]),
        forecaster.predict_quantiles(fh=steps, alpha=[0.1, 0.9]),
        check_freq=False,
        check_index_type="equiv",
    )


INFERRED = [
    name
    for name in CALENDARS
    if name.startswith(("date", "Berlin", "New York")) and name not in ("date C", "date SMS")  # not by pandas
]


@pytest.mark.parametrize("name", INFERRED)
def test_a_calendar_is_recognised_from_the_index_alone(name):
    """``freq`` is lost when dates are read from a file."""
    calendar = CALENDARS[name]
    plain = pd.DatetimeIndex(calendar[:N], freq=None)
    pd.testing.assert_series_equal(
        fitted(plain).predict(fh=[-7, 1, 13]), fitted(calendar[:N]).predict(fh=[-7, 1, 13]), check_freq=False
    )


@pytest.mark.parametrize(("freq", "gone"), [("MS", [3, 17, 40]), ("ME", [1, 2, 3, 30])])
def test_missing_months_leave_a_monthly_calendar(freq, gone):
    calendar = dates(freq)
    kept = pd.DatetimeIndex(calendar.delete(gone)[: N - len(gone)])
    forecast = fitted(kept).predict(fh=[1, 2, 13])
    pd.testing.assert_index_equal(forecast.index, calendar[[N, N + 1, N + 12]], exact="equiv")


@pytest.mark.parametrize("freq", ["D", "h", "15min", "W"])
def test_missing_rows_of_other_calendars_leave_the_typical_step(freq):
    calendar = dates(freq)
    kept = pd.DatetimeIndex(calendar.delete([3, 17, 40])[: N - 3])
    forecast = fitted(kept).predict(fh=[-N + 4, 0, 1, 2, 13])
    expected = kept[[0, -1]].append(calendar[[N, N + 1, N + 12]])
    pd.testing.assert_index_equal(forecast.index, expected, exact="equiv")


def test_missing_periods_leave_the_frequency():
    calendar = periods("M")
    forecast = fitted(calendar.delete([3, 17, 40])[: N - 3]).predict(fh=[1, 13])
    pd.testing.assert_index_equal(forecast.index, calendar[[N, N + 12]])


@pytest.mark.parametrize(
    ("index", "ahead"),
    [
        (pd.Index(np.delete(np.arange(N + 3), [4, 17, 30])), [1, 2, 5]),
        (pd.RangeIndex(0, 2 * N, 2), [2, 4, 10]),
        (pd.RangeIndex(0, 2 * N, 2), [1, 3]),  # sktime counts units, not rows
        (pd.Index(np.arange(N), dtype="int32"), [1, 2, 5]),
        (pd.Index(np.arange(N), dtype="uint64"), [1, 2, 5]),
    ],
    ids=["gaps", "step 2", "between steps", "int32", "uint64"],
)
def test_steps_on_integers_are_added_to_the_last(index, ahead):
    forecast = fitted(index).predict(fh=ahead)
    np.testing.assert_array_equal(forecast.index, int(index[-1]) + np.array(ahead))
    assert np.isfinite(forecast).all()


WEEKS = pd.date_range("2020-01-05", periods=N + 9, freq="7D")
QUARTERS = pd.date_range("2000-01-01", periods=N + 9, freq="QS")
SPARSE_PERIODS = {  # the same stamps as dates, and as periods that are shorter than a step
    "weeks in days": (WEEKS, WEEKS.to_period("D")),
    "quarters in months": (QUARTERS, QUARTERS.to_period("M")),
}


@pytest.mark.parametrize(("steps", "sparse"), SPARSE_PERIODS.values(), ids=SPARSE_PERIODS)
@pytest.mark.parametrize("cls", [TaylorformerForecaster, LAMForecaster, ContiFormerForecaster])
@pytest.mark.parametrize("with_x", [False, True], ids=["alone", "with X"])
def test_periods_that_are_sparser_than_their_frequency_are_forecast_as_dates_are(cls, steps, sparse, with_x):
    """Paths passed through every period between the steps, and X had to have rows for these."""
    forecasts, x = [], np.random.default_rng(1).normal(size=(N + 9, 1))
    settings = {"strategy": "train"} if cls is TaylorformerForecaster else {}
    for index in (steps, sparse):
        X = pd.DataFrame(x, index, columns=["x"]) if with_x else None
        forecaster = cls(d_model=4, n_heads=1, max_steps=1, random_state=0, time_features=None, **settings)
        fh = ForecastingHorizon(index[N:], is_relative=False)
        forecaster.fit(pd.Series(values(), index[:N]), X=None if X is None else X[:N], fh=fh)
        forecasts.append(forecaster.predict_quantiles(X=None if X is None else X[N:], alpha=[0.1, 0.9]))
    np.testing.assert_allclose(*forecasts, rtol=1e-6)


def test_lam_takes_periods_at_unequal_steps():
    """Of days on which there is a row for Monday, Wednesday and Friday, the typical step is two."""
    days = pd.period_range("2020-01-06", periods=200, freq="D")
    days = days[np.isin(days.dayofweek, [0, 2, 4])]
    forecaster = LAMForecaster(d_model=4, n_heads=1, max_steps=1, random_state=0)
    found = forecaster.fit(pd.Series(np.arange(len(days), dtype=float), days), fh=[1, 2]).predict()
    assert np.isfinite(found).all()


# --- irregular dates --------------------------------------------------------------------------------------


def irregular(tz=None):
    seconds = np.random.default_rng(0).integers(3000, 200_000, N)
    return pd.DatetimeIndex(pd.Timestamp("2020-01-01", tz=tz) + pd.to_timedelta(seconds.cumsum(), unit="s"))


@pytest.mark.parametrize("tz", [None, "UTC", "Europe/Berlin"])
def test_irregular_dates_take_steps_dates_and_time_spans(tz):
    index = irregular(tz)
    forecaster, last = fitted(index), index[-1]
    step = pd.Series(index).diff().median()
    steps = forecaster.predict(fh=[1, 2, 5])
    assert list(steps.index) == [last + k * step for k in (1, 2, 5)]
    stamps = last + pd.to_timedelta([5, 30, 300], unit="h")
    absolute = forecaster.predict(fh=pd.DatetimeIndex(stamps))
    assert list(absolute.index) == list(stamps)
    spans = forecaster.predict(fh=pd.to_timedelta([5, 30, 300], unit="h"))
    pd.testing.assert_series_equal(spans, absolute, check_freq=False)
    assert np.isfinite(absolute).all()


def test_dates_between_steps_do_not_make_a_horizon_longer():
    """Paths pass through the steps and through all dates; what lies within the horizon is not rolled."""
    index = irregular()
    step, last = pd.Series(index).diff().median(), index[-1]
    asked = pd.DatetimeIndex([last + 0.75 * k * step for k in range(1, 11)])
    settings = {"d_model": 4, "n_heads": 1, "max_steps": 20, "num_epochs": None, "random_state": 0}
    forecaster = ContiFormerForecaster(joint=False, **settings).fit(pd.Series(values(), index), fh=asked)
    assert forecaster.horizon_ < len(asked)
    levels = [0.1, 0.5, 0.9]
    together = forecaster.predict_quantiles(fh=asked, alpha=levels)
    for k in (0, 8, 9):
        alone = forecaster.predict_quantiles(fh=asked[[k]], alpha=levels)
        np.testing.assert_allclose(alone.iloc[0], together.iloc[k], rtol=1e-4)


def test_steps_back_on_irregular_dates_are_observed_rows():
    index = irregular()
    forecast = fitted(index).predict(fh=[1 - N, -3, 0])
    assert list(forecast.index) == [index[0], index[-4], index[-1]]
    with pytest.raises(ValueError, match="goes back before the first of 50 observations"):
        fitted(index).predict(fh=[-N])


@pytest.mark.usefixtures("nothing_is_fitted")
def test_stamps_between_observations_are_predicted_from_what_was_before():
    index = irregular()
    y = pd.Series(values(), index=index)
    between = index[29] + (index[30] - index[29]) / 2
    changed = y.copy()
    changed.iloc[30:] += 5.0
    one, other = (tiny(max_steps=0, seasonal_periods=None).fit(data) for data in (y, changed))
    rescaled = [f.predict(fh=pd.DatetimeIndex([between])).iloc[0] for f in (one, other)]
    assert np.isfinite(rescaled).all()
    assert rescaled[0] == pytest.approx(
        rescaled[1], abs=1e-3
    )  # the scale of the whole series is all that leaks


@pytest.mark.parametrize("fh", [["2000-02-22 01:00"], ["2000-02-22 01:00", "2000-02-22 06:00", "2000-03-01"]])
def test_stamps_off_the_grid_are_predicted_where_they_are(fh):
    fh = pd.DatetimeIndex(fh)
    forecast = fitted(dates("D")[:N]).predict(fh=fh)
    pd.testing.assert_index_equal(forecast.index, fh, check_names=False, exact="equiv")
    assert np.isfinite(forecast).all()


def test_stamps_off_the_grid_do_not_disturb_those_on_it():
    """At least hardly: paths pass through the extra stamp too."""
    forecaster = fitted(dates("D")[:N], num_samples=400)
    on = pd.DatetimeIndex(dates("D")[[N + 2]])
    both = on.append(pd.DatetimeIndex([on[0] + pd.Timedelta("30min")]))
    alone, with_another = forecaster.predict(fh=on).iloc[0], forecaster.predict(fh=both).iloc[0]
    assert alone == pytest.approx(with_another, rel=1e-6)


def test_nanoseconds_are_distinguished():
    index = pd.DatetimeIndex(
        pd.Timestamp("2020-01-01").as_unit("ns") + pd.to_timedelta(np.arange(N), unit="ns")
    )
    forecast = fitted(index).predict(fh=[1, 2])
    assert list(forecast.index - index[-1]) == [pd.Timedelta(1, unit="ns"), pd.Timedelta(2, unit="ns")]


def test_milliseconds_are_steps_of_exactly_one():
    forecaster = fitted(dates("ms")[:N])
    np.testing.assert_array_equal(forecaster._axis.numbers(dates("ms")), np.arange(N + 20))


# --- horizons ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "fh",
    [
        [2, 1],
        2,
        np.array([1, 2]),
        range(1, 3),
        pd.Index([1, 2]),
        pd.RangeIndex(1, 3),
        ForecastingHorizon([1, 2]),
        pd.period_range("2004-03", periods=2, freq="M"),
        pd.period_range("2004-04", periods=1, freq="M"),
    ],
    ids=str,
)
def test_horizons_may_be_written_in_many_ways(fh):
    """And come out sorted."""
    forecaster = fitted(periods("M")[:N])
    both = forecaster.predict(fh=[1, 2])
    forecast = forecaster.predict(fh=fh)
    np.testing.assert_allclose(forecast, both.loc[forecast.index], rtol=1e-5)
    assert forecast.index[-1] == pd.Period("2004-04", "M")


def test_the_horizon_may_come_with_fit():
    y = pd.Series(values(), index=periods("M")[:N])
    forecaster = tiny().fit(y, fh=[1, 2, 3])
    pd.testing.assert_index_equal(forecaster.predict().index, periods("M")[N : N + 3])
    assert len(forecaster.predict_interval()) == 3
    assert len(forecaster.predict(fh=[40])) == 1


def test_the_whole_past_can_be_predicted_and_nothing_before_it():
    calendar = periods("M")
    forecaster = fitted(calendar[:N])
    pd.testing.assert_index_equal(forecaster.predict(fh=range(1 - N, 1)).index, calendar[:N])
    with pytest.raises(ValueError, match="1999-12, before the first observation at 2000-01"):
        forecaster.predict(fh=[-N, 1])
    with pytest.raises(ValueError, match="1990-01, before the first observation"):
        forecaster.predict(fh=pd.period_range("1990-01", periods=2, freq="M"))


@pytest.mark.parametrize(
    ("fh", "message"),
    [
        (pd.date_range("2010-01-01", periods=2, freq="MS"), "fh holds dates, but .* periods of frequency M"),
        (
            pd.period_range("2010-01-01", periods=2, freq="D"),
            "fh holds periods of frequency D, but .* frequency M",
        ),
        (ForecastingHorizon([60, 61], is_relative=False), "fh holds integers, but .* periods of frequency M"),
        ([0.5], "Invalid `fh`"),
        (["a"], "Invalid `fh`"),
    ],
    ids=str,
)
def test_horizons_of_another_kind_are_refused(fh, message):
    with pytest.raises(TypeError, match=message):
        fitted(periods("M")[:N]).predict(fh=fh)


@pytest.mark.parametrize("zone", [None, "UTC"])
def test_dates_of_two_time_zones_are_not_mixed(zone):
    dates = pd.date_range("2024-01-01", periods=2, tz=zone)
    forecaster = fitted(CALENDARS["Berlin D"][:N])
    with pytest.raises(TypeError, match=r"fh holds dates.*, but .* in the time zone Europe/Berlin$"):
        forecaster.predict(fh=dates)
    before = forecaster.predict(fh=[1])
    later = CALENDARS["Berlin D"][N : N + 2].tz_convert(zone)
    with pytest.raises(TypeError, match=r"y holds dates.*, but .* time zone Europe/Berlin in the fit$"):
        forecaster.update(pd.Series([1.0, 2.0], later))
    pd.testing.assert_series_equal(forecaster.predict(fh=[1]), before)


def test_a_horizon_with_too_many_steps_is_refused_before_it_fills_the_memory():
    with pytest.raises(ValueError, match=r"31536001 steps after the last observation .* at most 100000"):
        fitted(dates("s")[:N]).predict(fh=pd.DatetimeIndex([dates("s")[N] + pd.Timedelta(days=365)]))


@pytest.mark.parametrize("strategy", ["baseline", "corrected", "pretrained"])
def test_too_many_steps_are_refused_whatever_the_strategy(strategy):
    y = pd.Series(np.arange(20.0), pd.RangeIndex(20))
    forecaster = TaylorformerForecaster(strategy=strategy, num_samples=2, random_state=0).fit(y)
    with pytest.raises(ValueError, match=r"fh ends at 1000019, 1000000 steps after .* at most 100000"):
        forecaster.predict(fh=[1, 10**6])


def test_steps_beyond_what_dates_can_count_are_refused_in_one_line():
    index = pd.Timestamp("2001") + pd.to_timedelta([0, 400, 1300, 1900, 2500], unit="D")
    forecaster = TaylorformerForecaster(random_state=0).fit(pd.Series(np.arange(5.0), index))
    for steps in (400, 10**6):
        with pytest.raises(ValueError, match=r"^fh goes beyond the dates that can be counted: [^\n]*$"):
            forecaster.predict(fh=[steps])


@pytest.mark.parametrize("fh", [[], None, [1, 1]], ids=str)
def test_horizons_without_content_are_refused(fh):
    with pytest.raises(ValueError, match="fh"):
        fitted(periods("M")[:N]).predict(fh=fh)


def test_a_series_without_a_name_stays_without():
    assert fitted(periods("M")[:N], name=None).predict(fh=[1]).name is None


# --- what the network sees of the calendar ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("calendar", "cycles"),
    [
        (dates("h")[:60], ("day",)),
        (pd.date_range("2020-01-01", periods=24 * 21, freq="h"), ("day", "week")),
        (periods("M")[:N], ("year",)),
        (dates("QS")[:N], ("year",)),
        (dates("YS")[:N], ()),
        (dates("D")[:N], ("week",)),
        (pd.date_range("2020-01-01", periods=800, freq="D"), ("week", "year")),
        (pd.RangeIndex(N), ()),
    ],
    ids=[
        "hours of days",
        "hours of weeks",
        "months",
        "quarters",
        "years",
        "days",
        "days of years",
        "integers",
    ],
)
def test_cycles_are_those_that_the_index_resolves_and_repeats(calendar, cycles):
    assert fitted(calendar, max_steps=0).time_features_ == cycles


def test_time_features_need_a_calendar():
    with pytest.raises(ValueError, match=r"time_features='day' needs dates or periods, but .* integers"):
        fitted(pd.RangeIndex(N), time_features=("day",))


def test_all_time_features_work_on_every_calendar():
    for name in ("period M", "period h", "date B", "date ME", "Berlin h, spring"):
        forecaster = fitted(CALENDARS[name][:N], time_features=("day", "week", "month", "year"))
        assert np.isfinite(forecaster.predict(fh=[1, 2])).all()


def test_seasons_are_counted_in_steps_and_not_in_rows():
    kept = np.flatnonzero(np.random.default_rng(1).random(200) > 0.3)
    y = pd.Series(np.sin(2 * np.pi * kept / 12), index=pd.Index(kept))
    assert tiny(max_steps=0).fit(y).seasonal_periods_ == (12.0,)


def test_a_context_holds_two_weeks_of_hours_but_not_two_seasons_that_only_the_values_show():
    n = 1400
    y = np.sin(2 * np.pi * np.arange(n) / 168) + 0.1 * np.random.default_rng(0).normal(size=n)
    hours = pd.Series(y, pd.date_range("2024-01-01", periods=n, freq="h"))
    fitted = tiny(max_steps=0, context_length=None).fit(hours, fh=range(1, 25))
    assert fitted.context_length_ == 336
    fitted = tiny(max_steps=0, context_length=None).fit(pd.Series(y), fh=range(1, 25))
    assert fitted.context_length_ == 192


# ---- far from zero ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("first", [2**53 - 30, 2**53 + 2**40, 10**17, -(10**18)])
def test_integer_stamps_far_from_zero_forecast_as_those_near_it(name, first):
    import taylorformer_forecast.sktime as hosts

    kind = getattr(hosts, f"{name}Forecaster")
    values = 10 + np.sin(np.arange(60) * 2 * np.pi / 7)
    near, far = (
        kind(**trained(kind, seasonal_periods=7, max_steps=1, num_samples=5))
        .fit(pd.Series(values, np.arange(60) + start))
        .predict([1, 2, 9])
        for start in (0, first)
    )
    np.testing.assert_array_equal(far.to_numpy(), near.to_numpy())
    assert list(far.index) == [first + 60, first + 61, first + 68]


@pytest.mark.parametrize(
    "index",
    [
        pd.period_range("2020-01-01", periods=60, freq="ns"),
        pd.period_range("1500-01-01", periods=60, freq="D"),
        pd.period_range("2020-01-01", periods=60, freq="us"),
        pd.period_range("2800-01", periods=60, freq="M"),
    ],
    ids=["nanoseconds", "days of 1500", "microseconds", "months of 2800"],
)
def test_periods_of_any_size_and_age_have_forecasts(index):
    from taylorformer_forecast.sktime import TaylorformerForecaster

    y = pd.Series(np.random.default_rng(0).normal(size=60), index)
    found = TaylorformerForecaster(num_samples=5, random_state=0).fit(y).predict([1, 2])
    assert list(found.index) == [index[-1] + 1, index[-1] + 2]
    assert found.notna().all()


@pytest.mark.parametrize("unit", ["D", "M"])
def test_dates_that_nanoseconds_cannot_count_are_refused(unit):
    from taylorformer_forecast.sktime import TaylorformerForecaster

    stamps = np.arange("1500-01", "1503-01", dtype=f"datetime64[{unit}]").astype("datetime64[s]")
    y = pd.Series(np.ones(len(stamps)), pd.DatetimeIndex(stamps))
    with pytest.raises(ValueError, match=r"the index has the date 1500-01-01 .* give periods"):
        TaylorformerForecaster().fit(y)


def test_differences_of_time_after_periods_are_refused():
    from taylorformer_forecast.sktime import TaylorformerForecaster

    y = pd.Series(np.ones(30), pd.period_range("2020-01", periods=30, freq="M"))
    with pytest.raises(TypeError, match=r"fh holds differences of time, .* periods of frequency M"):
        TaylorformerForecaster().fit(y).predict(pd.to_timedelta([1, 2], unit="D"))


@pytest.mark.parametrize("date", ["1500-01-01", "2500-01-01"])
def test_dates_of_the_horizon_that_nanoseconds_cannot_count_are_refused(date):
    y = pd.Series(np.arange(60.0) % 7, pd.date_range("2024-01-01", periods=60))
    fh = pd.DatetimeIndex([date])
    message = f"^fh has the date {date} 00:00:00, but dates must lie between [^\n]*$"
    with pytest.raises(ValueError, match=message):
        TaylorformerForecaster(strategy="baseline").fit(y).predict(fh)
    with pytest.raises(ValueError, match=message):
        TaylorformerForecaster(strategy="baseline").fit(y, fh=fh)


@pytest.mark.parametrize("forecaster", [TaylorformerForecaster, LAMForecaster])
def test_an_exchange_calendar_skips_its_holidays_and_has_weeks_of_five_days(forecaster):
    freq = pd.offsets.CustomBusinessDay(holidays=["2024-04-01"])
    index = pd.date_range("2024-01-02", periods=70, freq=freq)
    y = pd.Series(20.0 + 8 * (index.dayofweek == 4) + 0.1 * np.sin(np.arange(70.0)), index)
    fitted = forecaster(max_steps=5, random_state=0).fit(y[:60], fh=range(1, 9))
    forecast = fitted.predict()
    assert forecast.index.equals(pd.DatetimeIndex([y.index[59] + k * freq for k in range(1, 9)]))
    assert fitted.summary().seasons == ("week",)
    before = 4 if forecaster is LAMForecaster else 8  # LAM counts rows: a holiday moves its weeks
    assert np.abs(forecast - y[60:68])[:before].max() < 3.0


def _plain(index):
    """Dates as they are read from a file, without a frequency."""
    return pd.DatetimeIndex(np.asarray(index))


def test_weekdays_with_holidays_missing_are_forecast_on_weekdays():
    days = _plain(pd.bdate_range("2023-01-02", periods=300)).delete([40, 130, 200])
    y = pd.Series(np.random.default_rng(0).normal(size=len(days)).cumsum(), days)
    forecast = TaylorformerForecaster(strategy="baseline", random_state=0).fit(y, fh=range(1, 8)).predict()
    expected = pd.bdate_range(days[-1], periods=8)[1:]
    assert list(forecast.index) == list(expected)


def test_steps_after_an_update_of_part_of_a_week_are_weekdays():
    days = _plain(pd.bdate_range("2024-01-01", periods=100))
    y = pd.Series(np.random.default_rng(0).normal(size=100), days)
    forecaster = TaylorformerForecaster(strategy="baseline", random_state=0).fit(y[:90], fh=[1, 2, 3])
    forecaster.update(y[90:94], update_params=False)
    assert list(forecaster.predict().index) == list(forecaster.predict(fh=[1, 2, 3]).index)
    assert [day.day_name() for day in forecaster.predict(fh=[1, 2, 3]).index] == [
        "Friday",
        "Monday",
        "Tuesday",
    ]


@pytest.mark.parametrize("freq", ["BME", "BMS", "BQE"])
def test_business_months_are_months(freq):
    index = pd.date_range("2014-01-31", periods=60, freq=freq)
    values = 100 + 30 * np.sin(2 * np.pi * np.arange(60) / (4 if freq == "BQE" else 12))
    kind = "Q" if freq == "BQE" else "M"
    forecasts = [
        TaylorformerForecaster(random_state=0).fit(pd.Series(values, at), fh=range(1, 13))
        for at in (index, index.to_period(kind))
    ]
    assert forecasts[0].strategy_ == forecasts[1].strategy_
    assert forecasts[0].time_features_ == ("year",)
    np.testing.assert_allclose(forecasts[0].predict(), forecasts[1].predict(), rtol=1e-3)
    assert forecasts[0].predict().index[-1] == pd.date_range(index[-1], periods=13, freq=freq)[-1]


@pytest.mark.parametrize("name", ["a", "z"])
def test_a_column_without_a_season_takes_none_from_others_whatever_its_name(name):
    t, r = np.arange(300), np.random.default_rng(0)
    waves = {f"s{k}": 10 * np.sin(2 * np.pi * (t + k) / 60) + r.normal(size=300) for k in range(3)}
    frame = pd.DataFrame({name: r.normal(size=300), **waves})
    assert TaylorformerForecaster(strategy="pretrained").fit(frame, fh=range(1, 9)).seasonal_periods_ == (
        60.0,
    )
    panel = pd.concat({key: frame[[key]].set_axis(["y"], axis=1) for key in frame})
    assert TaylorformerForecaster(strategy="pretrained").fit(panel, fh=range(1, 9)).seasonal_periods_ == (
        60.0,
    )


@pytest.mark.parametrize("freq", ["MS", "ME", "QE-DEC", "QS-OCT", "BME", "YE-DEC", "B", "2MS", "W-SUN", "D"])
def test_forecasts_of_neighbouring_dates_have_the_frequency_of_y(freq):
    y = pd.Series(np.arange(24) % 5.0, pd.date_range("2015-01-31", periods=24, freq=freq))
    forecaster = TaylorformerForecaster(strategy="baseline").fit(y)
    forecasts = forecaster.predict(fh=[1, 2, 3]), forecaster.predict_interval(fh=[-1, 0, 1])
    assert [forecast.index.freqstr for forecast in forecasts] == [freq, freq]
    assert forecaster.predict(fh=[1, 3]).index.freq is None


def test_an_update_with_a_sparser_frequency_leaves_the_steps_of_a_forecast():
    y = pd.Series(np.sin(np.arange(60.0)), pd.date_range("2024-01-01", periods=60))
    forecaster = TaylorformerForecaster(strategy="baseline").fit(y[:40])
    forecaster.update(y[40:60:2], update_params=False)
    assert list(forecaster.predict(fh=[1, 2]).index) == list(pd.date_range("2024-02-29", periods=2))
