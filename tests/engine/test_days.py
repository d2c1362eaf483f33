"""Days of the month, around Easter and around Christmas."""

import numpy as np
import pytest

from taylorformer_forecast.defaults import CHRISTMAS_REACH, EASTER_REACH
from taylorformer_forecast.engine.statistics.days import (
    around_christmas,
    around_easter,
    day_of_month,
    surplus_of_working_days,
)


def days(first, last):
    return np.arange(first, last, dtype="datetime64[D]").astype(int)


@pytest.mark.parametrize("sunday", ["1961-04-02", "1997-03-30", "2000-04-23", "2024-03-31", "2038-04-25"])
def test_the_days_around_easter_are_numbered(sunday):
    year = days(f"{sunday[:4]}-01-01", f"{sunday[:4]}-12-31")
    around = around_easter(year)
    assert around[around >= 0].tolist() == list(range(2 * EASTER_REACH + 1))
    assert np.datetime64(int(year[around == EASTER_REACH][0]), "D") == np.datetime64(sunday)


def test_the_days_around_christmas_go_into_the_next_year():
    winter = days("1968-07-01", "1972-07-01")
    around = around_christmas(winter)
    assert around[around >= 0].tolist() == 4 * list(range(2 * CHRISTMAS_REACH + 1))
    dates = winter[around == CHRISTMAS_REACH].astype("datetime64[D]").astype(str)
    assert dates.tolist() == [f"{year}-12-25" for year in range(1968, 1972)]


def test_days_of_the_month_follow_leap_years():
    february = day_of_month(days("2024-02-01", "2024-03-02"))
    assert february.tolist() == [*range(29), 0]


def test_many_rows_of_days_are_numbered_at_once():
    many = days("1999-01-01", "2003-01-01")[: 4 * 300].reshape(4, 300)
    for number in (day_of_month, around_easter, around_christmas):
        assert (number(many) == np.stack([number(row) for row in many])).all()


def test_working_days_are_counted_in_every_month():
    months = np.arange("1968-01", "2030-01", dtype="datetime64[M]")
    for month, found in zip(months, surplus_of_working_days(months.astype(int)), strict=True):
        days = np.arange(month, month + 1, dtype="datetime64[D]")
        assert found == np.where(np.is_busday(days), 1.0, -2.5).sum()
