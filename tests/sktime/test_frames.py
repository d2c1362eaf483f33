"""From pandas to numbers: stamps, instances, calendars, exogenous columns."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sktime.forecasting.base import ForecastingHorizon

from taylorformer_forecast.calendar.axis import TimeAxis, content
from taylorformer_forecast.sktime._frames import (
    ExogenousScaler,
    check_values,
    instances,
    of_instance,
    to_float,
)


def frame(index, **columns):
    return pd.DataFrame(columns or {"y": np.arange(float(len(index)))}, index)


def axis_of(index, freq=None):
    return TimeAxis.of([index], freq)


# --- instances and values ---------------------------------------------------------------------------------


def test_a_single_series_is_one_instance_without_a_key():
    y = frame(pd.RangeIndex(3))
    [(key, part)] = instances(y)
    assert key == ()
    assert part is y


@pytest.mark.parametrize("n_levels", [1, 2])
def test_instances_come_in_the_order_of_the_data_with_plain_indexes(n_levels):
    keys = [("b", "x"), ("a", "y"), ("a", "x")] if n_levels == 2 else ["b", "a"]
    y = pd.concat({key: frame(pd.period_range("2000", periods=3, freq="M")) for key in keys})
    found = list(instances(y))
    assert [key for key, _ in found] == [key if n_levels == 2 else (key,) for key in keys]
    assert all(isinstance(part.index, pd.PeriodIndex) for _, part in found)


def test_instances_are_named_in_messages():
    assert of_instance(()) == ""
    assert of_instance(("shop 1",)) == " of instance 'shop 1'"
    assert of_instance(("north", 3)) == " of instance ('north', 3)"


def test_numbers_of_any_type_become_floats():
    y = pd.DataFrame(
        {
            "whole": pd.array([1, None, 3], dtype="Int64"),
            "real": pd.array([0.5, None, 1.5], dtype="Float64"),
            "truth": [True, False, True],
            "small": np.array([1, 2, np.nan], dtype="float16"),
        }
    )
    expected = [[1, 0.5, 1, 1], [np.nan, np.nan, 0, 2], [3, 1.5, 1, np.nan]]
    np.testing.assert_array_equal(to_float(y), np.array(expected))
    check_values(y, "y")


@pytest.mark.parametrize(
    ("y", "error", "message"),
    [
        (frame(pd.RangeIndex(0)), ValueError, "y is empty"),
        (pd.DataFrame(index=[1, 2]), ValueError, "y has no columns"),
        (frame(pd.RangeIndex(2), a=[1.0, 2.0], b=["u", "v"]), TypeError, "y column 'b' has dtype"),
        (frame(pd.RangeIndex(2), a=[1j, 2.0]), TypeError, "y column 'a' is complex"),
        (
            frame(pd.RangeIndex(2), a=[1.0, 2.0], b=[1.0, -np.inf]),
            ValueError,
            "infinite values in column 'b'",
        ),
        (frame(pd.RangeIndex(2), a=[1.0, -1e151]), ValueError, r"values beyond 1e\+150 in column 'a'"),
        (frame(pd.Index([1, 1])), ValueError, r"y has duplicate time stamps: 1 \(first of 1\)"),
        (frame(pd.Index([2, 1])), ValueError, "y must be sorted by time"),
        (
            pd.concat({"s": frame(pd.Index([1, 1]))}),
            ValueError,
            "y of instance 's' has duplicate time stamps",
        ),
    ],
)
def test_values_that_cannot_be_used_are_named(y, error, message):
    with pytest.raises(error, match=message):
        check_values(y, "y")


def test_the_content_of_an_index_in_words():
    assert content(pd.RangeIndex(3)) == content(pd.Index([1, 5], dtype="uint64")) == "integers"
    assert content(pd.period_range("2000", periods=2, freq="Q")) == "periods of frequency Q-DEC"
    assert content(pd.date_range("2000", periods=2)) == "dates"
    assert content(pd.date_range("2000", periods=2, tz="UTC")) == "dates in the time zone UTC"


# --- stamps as numbers ------------------------------------------------------------------------------------

GRIDS = {
    "integers": pd.RangeIndex(5, 105),
    "integers by 7": pd.RangeIndex(-70, 630, 7),
    **{
        f"period {freq}": pd.period_range("1999-11", periods=100, freq=freq)
        for freq in ("M", "Q", "D", "15min", "2h")
    },
    **{
        f"date {freq}": pd.date_range("1999-11-03", periods=100, freq=freq)
        for freq in ("D", "h", "7min", "W", "B", "MS", "ME", "QS", "QE", "YS", "2MS", "ms", "us")
    },
    "New York months": pd.date_range("2000", periods=100, freq="MS", tz="America/New_York"),
    "New York hours": pd.date_range("2000-10-28", periods=100, freq="h", tz="America/New_York"),
}


@pytest.mark.parametrize("index", GRIDS.values(), ids=GRIDS)
def test_stamps_of_a_grid_are_whole_steps(index):
    axis = axis_of(index)
    np.testing.assert_allclose(axis.numbers(index), np.arange(100), atol=1e-9)
    assert axis.span == pytest.approx(99)


@pytest.mark.parametrize("index", GRIDS.values(), ids=GRIDS)
def test_the_future_of_a_grid_is_the_grid(index):
    axis = axis_of(index[:90])
    assert list(axis.between(index[89], index[99], index[:90])) == list(index[89:])
    assert list(axis.between(index[89], index[90], index[:90])) == list(index[89:91])


@pytest.mark.parametrize("name", [name for name in GRIDS if "date" in name or "month" in name])
def test_gaps_are_long_steps(name):
    index = GRIDS[name]
    keep = np.delete(np.arange(100), [3, 4, 50])
    axis = axis_of(index[keep], index.freq)
    np.testing.assert_allclose(axis.numbers(index[keep]), keep, atol=1e-9)


def test_a_day_is_as_long_as_the_clock_says():
    index = pd.date_range("2023-03-24", periods=5, freq="D", tz="Europe/Berlin")
    steps = np.diff(axis_of(index).numbers(index))
    np.testing.assert_allclose(steps, [1, 1, 23 / 24, 1])


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_the_resolution_of_dates_does_not_matter(unit):
    index = pd.date_range("2000-01-01", periods=50, freq="90min")
    axis = axis_of(index)
    np.testing.assert_array_equal(axis.numbers(index.as_unit(unit)), axis.numbers(index))


def test_instances_share_one_axis():
    y = pd.concat({"late": frame(pd.RangeIndex(10, 20)), "early": frame(pd.RangeIndex(4, 30))})
    axis = TimeAxis.of([part.index for _, part in instances(y)])
    assert axis.numbers(pd.Index([4, 10])).tolist() == [0.0, 6.0]
    assert axis.span == 25


def test_one_stamp_is_enough_for_an_axis():
    assert axis_of(pd.RangeIndex(3, 4)).numbers(pd.Index([3, 5])).tolist() == [0.0, 2.0]
    assert axis_of(pd.DatetimeIndex(["2000-01-01"])).step > 0


def test_other_indexes_are_refused():
    with pytest.raises(TypeError, match="dates, periods or integers are needed"):
        axis_of(pd.timedelta_range("1h", periods=3, freq="h"))


# --- horizons ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("index", GRIDS.values(), ids=GRIDS)
def test_relative_and_absolute_horizons_name_the_same_stamps(index):
    known, step = index[:90], getattr(index, "step", 1)
    axis = axis_of(known)
    relative = axis.horizon(ForecastingHorizon([-2 * step, 0, step, 9 * step]), known[-1], known)
    absolute = axis.horizon(ForecastingHorizon(index[[87, 89, 90, 98]], is_relative=False), known[-1], known)
    assert list(relative) == list(absolute) == list(index[[87, 89, 90, 98]])


def test_an_instance_that_ends_off_the_grid_goes_on_with_it():
    sundays = pd.date_range("2000-01-02", periods=20, freq="W")
    axis = axis_of(sundays)
    ends = sundays[-1] + pd.Timedelta(days=2)
    ahead = axis.horizon(ForecastingHorizon([1, 2]), ends, sundays.append(pd.DatetimeIndex([ends])))
    assert list(ahead) == [sundays[-1] + pd.Timedelta(days=7), sundays[-1] + pd.Timedelta(days=14)]


# --- calendar cycles --------------------------------------------------------------------------------------


def test_phases_of_the_calendar():
    index = pd.DatetimeIndex(["2001-01-01 00:00", "2001-01-03 12:00", "2000-02-15 12:00", "2001-07-01"])
    day, week, month, year = axis_of(index).cycles(index, ("day", "week", "month", "year")).T
    np.testing.assert_allclose(day, [0, 0.5, 0.5, 0])
    np.testing.assert_allclose(week, [0, 2.5 / 7, 1.5 / 7, 6 / 7])
    np.testing.assert_allclose(month, [0, 2.5 / 31, 0.5, 0])
    np.testing.assert_allclose(year, [0, 2.5 / 31 / 12, 1.5 / 12, 0.5])


def test_the_phase_of_the_day_is_that_of_local_clocks():
    index = pd.date_range("2023-03-25", periods=72, freq="h", tz="Europe/Berlin")
    phase = axis_of(index).cycles(index, ("day",))[:, 0]
    np.testing.assert_allclose(phase, index.hour / 24)


@pytest.mark.parametrize(
    ("index", "steps"),
    [
        (pd.period_range("2000", periods=30, freq="M"), {"year": 12}),
        (pd.period_range("2000", periods=30, freq="Q"), {"year": 4}),
        (pd.period_range("2000", periods=30, freq="2h"), {"day": 12, "week": 84}),
        (pd.period_range("2000", periods=30, freq="15min"), {"day": 96}),
        (pd.date_range("2000", periods=30, freq="MS"), {"year": 12, "month": 1}),
        (pd.date_range("2000", periods=30, freq="QE"), {"year": 4}),
        (pd.date_range("2000", periods=30, freq="B"), {"week": 5}),
        (pd.date_range("2000", periods=30, freq="W"), {"year": 52.18}),
        (pd.date_range("2000", periods=30, freq="15min"), {"day": 96, "week": 672}),
    ],
    ids=lambda value: getattr(value, "freqstr", ""),
)
def test_lengths_of_cycles_in_steps(index, steps):
    axis = axis_of(index)
    assert {name: axis.cycle_steps(name) for name in steps} == pytest.approx(steps, rel=2e-3)


def test_rows_are_put_on_a_grid():
    axis = axis_of(pd.Index([3, 5, 7, 13]))
    values = axis.on_grid(pd.Index([3, 5, 7, 13]), np.array([1.0, 2.0, 3.0, 4.0]))
    np.testing.assert_array_equal(values, [1, 2, 3, np.nan, np.nan, 4])
    sparse = pd.Index([0, 1, 2, 1000])
    assert len(axis_of(sparse).on_grid(sparse, np.zeros(4))) == 4


@pytest.mark.parametrize(
    ("stamps", "stride", "step"),
    [
        (pd.period_range("2020-01-05", periods=30, freq="W").asfreq("D"), 7, "7D"),
        (pd.period_range("2020-03", periods=90, freq="M")[::3], 3, "3M"),
        (pd.period_range("2020-03", periods=30, freq="2M"), 1, "2M"),
        (pd.period_range("2020-03", periods=90, freq="2M")[::3], 3, "6M"),
    ],
    ids=["weeks in days", "quarters in months", "pairs of months", "half years in pairs of months"],
)
def test_periods_that_are_sparser_than_their_frequency_have_the_steps_of_their_rows(stamps, stride, step):
    axis = TimeAxis.of([stamps])
    assert axis.stride == stride
    np.testing.assert_array_equal(axis.numbers(stamps), np.arange(len(stamps)))
    pd.testing.assert_index_equal(axis.between(stamps[2], stamps[6], stamps), stamps[2:7])
    gone = stamps.delete([3, 5])
    pd.testing.assert_index_equal(axis.grid(gone), stamps)
    with pytest.raises(ValueError, match=f"2 rows are spread over 29 steps of {step}"):
        axis.grid(stamps[[0, -1]])


# --- exogenous columns ------------------------------------------------------------------------------------


def test_columns_are_standardised_by_the_values_of_the_fit():
    X = frame(pd.RangeIndex(4), a=[1.0, 3.0, 1.0, 3.0], b=[0.0, 0.0, 10.0, 10.0])
    scaler = ExogenousScaler.of(X, X)
    np.testing.assert_allclose(scaler.features(X), [[-1, -1], [1, -1], [-1, 1], [1, 1]])
    np.testing.assert_allclose(scaler.features(frame(pd.Index([9]), b=[5.0], a=[5.0])), [[3, 0]])
    assert scaler.past_only == 0


def test_missing_values_are_zero_and_flagged_if_the_fit_had_some():
    X = frame(pd.RangeIndex(4), a=[1.0, np.nan, 3.0, 2.0], b=[1.0, 2.0, 3.0, 4.0])
    scaler = ExogenousScaler.of(X, X)
    features = scaler.features(X)
    assert features[:, 2].tolist() == [1, 0, 1, 1]
    assert features[1, 0] == 0
    later = frame(pd.RangeIndex(1), a=[2.0], b=[np.nan])
    np.testing.assert_allclose(scaler.features(later), [[0, 0, 1]], atol=1e-12)
    with pytest.raises(ValueError, match="X column 'b' has no value for 0 in predict"):
        scaler.check_known(later, "predict")
    scaler.check_known(frame(pd.RangeIndex(1), a=[np.nan], b=[1.0]), "predict")


def test_columns_of_the_past_come_last_with_a_flag_and_leave_no_trace_at_targets():
    X = frame(pd.RangeIndex(4), b=[1.0, 3.0, 1.0, 3.0], a=[0.0, np.nan, 10.0, 5.0], c=[2.0, 4.0, 2.0, 4.0])
    scaler = ExogenousScaler.of(X, X, past_only=["b"])
    assert (scaler.columns, scaler.n_ahead, scaler.past_only) == (["a", "c", "b"], 2, 2)
    features = scaler.features(X)  # a, c, whether a is known, b, whether b is known
    np.testing.assert_allclose(features[:, 2:], [[1, -1, 1], [0, 1, 1], [1, -1, 1], [1, 1, 1]])
    gone = scaler.features(X.assign(b=np.nan))
    np.testing.assert_array_equal(gone[:, 3:], 0)
    np.testing.assert_array_equal(scaler.features(X, target=True), gone)


# --- steps of an index that is finer than the observations ------------------------------------------------


def finer(index):
    """A regular index with two further stamps in every step."""
    if isinstance(index, pd.PeriodIndex):
        return pd.period_range(index[0], index[-1], freq="M")
    if isinstance(index, pd.DatetimeIndex):
        return pd.date_range(index[0], index[-1], freq="8h" if index.freqstr == "D" else "MS")
    return pd.RangeIndex(index[0], index[-1] + 1)


@pytest.mark.parametrize(
    ("index", "step"),
    [
        (pd.RangeIndex(0, 90, 3), 3),
        (pd.date_range("2020-01-01", periods=30, freq="D"), 3),
        (pd.date_range("2020-01-01", periods=30, freq="QS"), 3),
        (pd.period_range("2020-03", periods=90, freq="M")[::3], 3),
    ],
    ids=["integers", "days", "quarters", "periods"],
)
def test_steps_are_those_of_the_observations_where_all_lie_on_a_coarser_grid(index, step):
    fine = finer(index)
    axis = TimeAxis.of([fine], getattr(fine, "freq", None), [index])
    assert axis.every == step
    np.testing.assert_allclose(axis.numbers(index), np.arange(len(index)), atol=1e-9)
    assert list(axis.between(index[0], index[4], fine)) == list(index[:5])
    np.testing.assert_array_equal(axis.on_grid(fine, np.arange(len(fine))), np.arange(0, len(fine), step))
    one_more = index.union(fine[1:2])
    assert TimeAxis.of([fine], getattr(fine, "freq", None), [one_more]).every == 1


@pytest.mark.parametrize(
    ("new", "same"),
    [
        (pd.date_range("2030-01-01", periods=9, freq="D"), True),
        (pd.date_range("2030-01-01", periods=9, freq="2D"), False),
        (pd.date_range("2030-01-01", periods=9, freq="MS"), False),
        (pd.date_range("2030-01-01", periods=1), True),
        (pd.period_range("2030-01-01", periods=1, freq="D"), False),
        (pd.RangeIndex(9), False),
    ],
    ids=["days", "other days", "months", "one date", "one period", "integers"],
)
def test_further_series_go_on_with_an_axis_that_counts_alike(new, same):
    axis = axis_of(pd.date_range("2020-01-01", periods=30, freq="D"))
    own = axis_of(pd.DatetimeIndex(new, freq=None) if isinstance(new, pd.DatetimeIndex) else new)
    assert axis.continued(own, len(new) < 3) is (axis if same else own)


@pytest.mark.parametrize("level", [0.0, 0.1, 1e100, np.nan])
def test_columns_that_do_not_move_are_left_in_their_unit(level):
    X = frame(pd.RangeIndex(48), a=np.full(48, level))
    scaler = ExogenousScaler.of(X, X)
    assert scaler.deviation.tolist() == [1.0]
    assert np.abs(scaler.features(frame(pd.RangeIndex(1), a=[level])))[0, 0] <= 1e-10 * abs(
        np.nan_to_num(level)
    )


def test_values_far_away_are_drawn_nearer():
    X = frame(pd.RangeIndex(4), a=[1.0, 3.0, 1.0, 3.0])
    scaler = ExogenousScaler.of(X, X)
    assert scaler.features(frame(pd.RangeIndex(2), a=[1e100, -1e100]))[:, 0].tolist() == [1e6, -1e6]
