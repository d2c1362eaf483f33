"""Both hosts forecast holidays and working days as earlier ones were, unless they see no calendar."""

import numpy as np
import pandas as pd
import pytest
from darts import TimeSeries
from quiet import QUIET

from taylorformer_forecast.darts import TaylorformerModel
from taylorformer_forecast.sktime import TaylorformerForecaster

AHEAD, LEVELS = 28, [0.1, 0.5, 0.9]
NO_CALENDAR = {"time_features": None, "seasonal_periods": 7}


@pytest.fixture(scope="module")
def sales():
    """Two years with more on Saturdays, twice as much before Christmas, and hardly anything after it."""
    dates = pd.date_range("2020-11-01", "2022-12-13", freq="D")
    y = 100 + 20.0 * (dates.dayofweek == 5) + np.random.default_rng(0).normal(0, 5, len(dates))
    y = np.where(dates.strftime("%m%d").isin(["1222", "1223", "1224"]), 2 * y, y)
    return pd.Series(np.where(dates.strftime("%m%d").isin(["1225", "1226"]), 10.0, y), dates, name="sales")


def of_sktime(y, ahead=AHEAD, **settings):
    forecaster = TaylorformerForecaster(strategy="corrected", **settings).fit(y, fh=range(1, ahead + 1))
    return forecaster.predict_quantiles(alpha=LEVELS).to_numpy()


def of_darts(y, ahead=AHEAD, **settings):
    model = TaylorformerModel(
        len(y) - ahead, ahead, strategy="corrected", random_state=0, pl_trainer_kwargs=QUIET, **settings
    )
    model.fit(TimeSeries.from_series(y))
    values = model.predict(ahead, num_samples=500).all_values()[:, 0]
    return np.quantile(values, LEVELS, axis=1).T


def before_and_after_christmas(found):
    """Medians on the days before and after Christmas, in medians of the week before."""
    return found[8:11, 1].mean() / found[:7, 1].mean(), found[11:13, 1].mean() / found[:7, 1].mean()


@pytest.mark.parametrize("host", [of_sktime, of_darts])
def test_christmas_is_forecast_as_earlier_ones_were_unless_no_calendar_is_seen(sales, host):
    before, after = before_and_after_christmas(host(sales))
    assert before > 1.7
    assert after < 0.4
    before, after = before_and_after_christmas(host(sales, **NO_CALENDAR))
    assert before < 1.1
    assert after > 0.9


@pytest.mark.parametrize(
    "weekmask", ["Mon Tue Wed Thu Fri", "Mon Tue Wed Thu Fri Sat", "Tue Wed Thu Fri Sat"]
)
@pytest.mark.parametrize("host", [of_sktime, of_darts])
def test_christmas_is_forecast_on_the_weekdays_that_are_steps(sales, host, weekmask):
    freq, last = pd.offsets.CustomBusinessDay(weekmask=weekmask), sales.index[-1]
    found = host(sales[sales.index.isin(pd.date_range(sales.index[0], last, freq=freq))].asfreq(freq))[:, 1]
    day = pd.date_range(last, periods=AHEAD + 1, freq=freq).difference([last])[:AHEAD].strftime("%m%d")
    assert (found[day.isin(["1222", "1223", "1224"])] > 1.4 * np.median(found)).all()


@pytest.mark.parametrize(
    "change",
    [
        lambda y: y.to_period("D"),
        lambda y: y.tz_localize("America/New_York"),
        lambda y: y.drop(y.index[[100, 200, 201]]),
        lambda y: pd.concat([y, pd.Series([np.nan] * 2, pd.date_range("2022-12-14", periods=2))]),
    ],
    ids=["periods", "time zone", "gaps", "missing at the end"],
)
def test_any_daily_index_has_the_effects(sales, change):
    y = change(sales)
    shift = 2 if y.isna().any() else 0  # the first steps are of other days
    found = of_sktime(y)[: AHEAD - shift]
    np.testing.assert_allclose(found[:, 1], of_sktime(sales)[shift:, 1], rtol=0.1)


def test_series_of_a_panel_have_their_own_days(sales):
    short = sales[:-60]  # to the 14th of October
    panel = pd.concat({"long": sales, "short": short}, names=["shop", "time"]).to_frame()
    found = of_sktime(panel).reshape(2, AHEAD, 3)
    np.testing.assert_allclose(found[0], of_sktime(sales), rtol=1e-3)
    np.testing.assert_allclose(found[1], of_sktime(short), rtol=1e-3)
    assert before_and_after_christmas(found[0])[0] > 1.7
    assert before_and_after_christmas(found[1])[0] < 1.3


def test_points_in_sample_have_the_effects_too(sales):
    forecaster = TaylorformerForecaster(strategy="corrected").fit(sales, fh=[1])
    christmas = [sales.index.get_loc("2021-12-24") - len(sales) + 1 + k for k in (0, 1, 2)]
    found = forecaster.predict(fh=christmas)
    assert found.iloc[0] > 1.7 * sales.median()
    assert (found.iloc[1:] < 0.5 * sales.median()).all()


def test_nothing_of_a_series_without_negative_values_is_forecast_below_zero(sales):
    found = of_sktime(sales - 10.0)
    assert (found >= 0).all()
    assert (np.diff(found, axis=1) >= 0).all()


@pytest.fixture(scope="module")
def admissions():
    """Eight years of a clinic that is busy on working days, in 1,000 by month, and the year after them."""
    months = pd.date_range("2014-01-01", periods=108, freq="MS")
    ends = months + pd.offsets.MonthBegin()
    working = np.busday_count(months.to_numpy("datetime64[D]"), ends.to_numpy("datetime64[D]"))
    noise = np.random.default_rng(0).normal(0, 0.05, 108)
    return pd.Series(3 + (working + noise) / 7, months, name="admissions")


@pytest.mark.parametrize("host", [of_sktime, of_darts])
def test_months_are_forecast_by_their_working_days_unless_no_calendar_is_seen(admissions, host):
    def error(ahead=12, **settings):
        found = host(admissions[:-ahead], ahead, **settings)[:, 1]
        return np.abs(found - admissions[-ahead:]).mean()

    assert error() < 0.5 * error(time_features=None, seasonal_periods=12)


@pytest.mark.parametrize(
    "change",
    [
        lambda y: y.to_period("M"),
        lambda y: y.set_axis(y.index + pd.offsets.MonthEnd(0)),
        lambda y: y.tz_localize("America/New_York"),
    ],
    ids=["periods", "month ends", "time zone"],
)
def test_any_monthly_index_has_the_effects(admissions, change):
    y = admissions[:-12]
    np.testing.assert_allclose(of_sktime(change(y), 12), of_sktime(y, 12), rtol=1e-6)


def test_steps_of_two_months_have_no_working_days(admissions):
    y = admissions[:-12:2]
    found = of_sktime(y, 6)
    np.testing.assert_allclose(of_sktime(y.set_axis(y.index.shift(3, "MS")), 6), found, rtol=1e-6)
