"""What is counted for frequencies of dates."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from darts import TimeSeries
from quiet import QUIET

from taylorformer_forecast.calendar.axis import TimeAxis
from taylorformer_forecast.calendar.frequency import check_alike
from taylorformer_forecast.darts import TaylorformerModel
from taylorformer_forecast.sktime import TaylorformerForecaster


@pytest.mark.parametrize("freq", ["WOM-2TUE", "LWOM-FRI"])
def test_weekdays_of_every_month_are_steps_of_a_month(freq):
    index = pd.date_range("2000-01-03", periods=84, freq=freq)
    axis = TimeAxis.of([index])
    np.testing.assert_array_equal(axis.numbers(index), np.arange(84))
    assert axis.usual_cycles() == ("year",)
    assert axis.cycle_steps("year") == pytest.approx(12)


@pytest.mark.parametrize("freq", ["WOM-2TUE", "LWOM-FRI"])
def test_weekdays_of_every_month_are_forecast_by_both_hosts(freq):
    index = pd.date_range("2000-01-03", periods=84, freq=freq)
    y = pd.Series(10 + np.random.default_rng(0).normal(size=12)[np.arange(84) % 12], index)
    past = TimeSeries.from_times_and_values(index[:72], y.to_numpy()[:72], freq=freq)
    found = TaylorformerModel(24, 12, random_state=0, pl_trainer_kwargs=QUIET).fit(past).predict(12)
    assert found.time_index.equals(index[72:])
    np.testing.assert_allclose(found.values()[:, 0], y[72:], atol=0.2)
    if freq.startswith("WOM"):  # of the others, sktime's cutoff is more than pandas can do
        forecast = TaylorformerForecaster().fit(y[:72], fh=np.arange(1, 13)).predict()
        assert forecast.index.equals(index[72:])
        np.testing.assert_allclose(forecast, y[72:], atol=0.2)


@pytest.mark.parametrize(("months", "day"), [(1, 15), (1, 28), (3, 10)])
def test_months_that_are_known_by_a_day_are_months(months, day):
    """They were irregular dates, whose steps ahead drifted from the day."""
    first = pd.date_range("2010-01-01", periods=72, freq=f"{months}MS")
    index = first + pd.Timedelta(days=day - 1)
    y = 10 + np.random.default_rng(0).normal(size=(2, 72)).cumsum(1)[0]
    kept = np.delete(np.arange(72), [20, 41])  # rows may be missing
    found = [
        TaylorformerForecaster(random_state=0).fit(pd.Series(y[kept], own[kept]), fh=range(1, 5))
        for own in (first, index)
    ]
    assert found[1].strategy_ == "corrected"
    forecasts = [one.predict_quantiles(alpha=[0.1, 0.9]) for one in found]
    assert (forecasts[1].index == forecasts[0].index + pd.Timedelta(days=day - 1)).all()
    np.testing.assert_array_equal(*forecasts)


@pytest.mark.parametrize("freq", ["QS", "QE-NOV", "YS-APR", "YE"])
def test_quarters_and_years_with_missing_rows_stay_what_they_are(freq):
    """Steps ahead were months."""
    index = pd.date_range("1990-01-01", periods=34, freq=freq)
    y = pd.Series(10 + np.random.default_rng(0).normal(size=30).cumsum(), index[:30])
    gone = index[[12, 21]]
    found = [
        TaylorformerForecaster(random_state=0).fit(one, fh=range(1, 5)).predict_quantiles(alpha=[0.1, 0.9])
        for one in (y.drop(gone), y.where(~y.index.isin(gone)))
    ]
    assert list(found[0].index) == list(found[1].index) == list(index[30:])
    np.testing.assert_array_equal(*found)


def test_months_that_are_known_by_a_day_are_forecast_in_darts():
    index = pd.date_range("2010-01-01", periods=72, freq="MS") + pd.Timedelta(days=14)
    y = 10 + np.random.default_rng(0).normal(size=12)[np.arange(72) % 12]
    past = TimeSeries.from_times_and_values(index[:60], y[:60], freq=pd.DateOffset(months=1))
    found = TaylorformerModel(24, 12, random_state=0, pl_trainer_kwargs=QUIET).fit(past).predict(12)
    assert found.time_index.equals(index[60:])
    np.testing.assert_allclose(found.values()[:, 0], y[60:], atol=0.2)


def test_both_hosts_see_working_days_in_months_of_every_frequency():
    """darts knew those of MS and ME alone."""
    first = pd.date_range("2010-01-01", periods=108, freq="MS")
    days = np.busday_count(
        first.to_numpy().astype("M8[D]"), (first + pd.DateOffset(months=1)).to_numpy().astype("M8[D]")
    )
    y = days * (10 + 0.05 * np.random.default_rng(0).normal(size=108))
    found = []
    for freq in ("MS", "ME", "BMS", "BME"):
        index = pd.date_range("2010-01-01", periods=108, freq=freq)
        of_sktime = TaylorformerForecaster(strategy="baseline").fit(
            pd.Series(y[:96], index[:96]), fh=range(1, 13)
        )
        past = TimeSeries.from_times_and_values(index[:96], y[:96], freq=freq)
        of_darts = TaylorformerModel(24, 12, strategy="baseline", pl_trainer_kwargs=QUIET).fit(past)
        mean = of_darts.predict(12, predict_likelihood_parameters=True).values()[:, 0]
        found += [of_sktime.predict().to_numpy(), mean]
        assert np.abs(mean / y[96:] - 1).mean() < 0.012  # without them, three times as much
    np.testing.assert_allclose(found, np.broadcast_to(found[0], (8, 12)), rtol=1e-3)


DAYS = pd.date_range("2015-01-01", periods=60)
ALIKE = {
    "gaps": ("D", DAYS[[0, 1, 5, 9, 30]]),
    "weekdays of days": ("D", pd.bdate_range("2015-01-01", periods=30)),
    "days among weekdays": ("B", pd.date_range("2015-01-05", periods=4)),
    "few weeks": ("D", DAYS[::7][:4]),
    "other minutes": ("h", pd.date_range("2015-01-01 00:30", periods=40, freq="h")),
    "other phase of two days": ("2D", DAYS[1::2]),
    "two dates": ("MS", DAYS[[0, 1]]),
    "month ends that are weekdays": ("BME", pd.date_range("2016-06-30", periods=3, freq="BME")),
    "months that are missing": ("MS", pd.date_range("2015-01-01", periods=9, freq="MS")[[0, 1, 5, 8]]),
    "days of a zone": ("D", pd.date_range("2015-01-01", periods=200, tz="CET")[[0, 1, 3, 5, 100, 199]]),
    "hours of a zone": ("h", pd.date_range("2015-03-28", periods=99, freq="h", tz="CET")),
}


@pytest.mark.parametrize(("freq", "index"), ALIKE.values(), ids=ALIKE)
def test_gaps_and_other_phases_are_no_other_frequency(freq, index):
    longest = pd.date_range("2015-01-01", periods=200, freq=freq, tz=index.tz)
    check_alike(longest.freq, [longest, index, index], ["", "", ""])


@pytest.mark.parametrize(
    ("freq", "other"), [("D", "W-SUN"), ("MS", "2MS"), ("QS-JAN", "QS-FEB"), ("min", "s")]
)
def test_another_frequency_is_named_with_its_series(freq, other):
    longest, index = (pd.date_range("2015", periods=n, freq=f) for n, f in [(40, freq), (30, other)])
    with pytest.raises(ValueError, match=f"dates of b have frequency {other}, .* longest have {freq}"):
        check_alike(longest.freq, [longest, index], [" of a", " of b"])


@pytest.mark.parametrize("zone", ["America/Santiago", "Africa/Cairo", "Asia/Beirut"])
def test_hours_with_a_gap_are_forecast_where_a_day_has_no_midnight(zone):
    index = pd.date_range("2024-01-01", "2024-12-01", freq="h", tz=zone)
    midnights = pd.Series(index.tz_localize(None).normalize(), index)
    change = index[~midnights.isin(index.tz_localize(None))][0]
    place = index.get_loc(change)
    y = pd.Series(np.arange(288) % 24 + 0.0, index[place - 150 : place + 138]).drop(index[place - 100])
    found = TaylorformerForecaster(random_state=0).fit(y).predict(fh=[1, 2, 3])
    np.testing.assert_allclose(found, [0, 1, 2], atol=0.01)
