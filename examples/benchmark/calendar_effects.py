"""What effects of the calendar bring to forecasts of daily and monthly series: with them, and without.

Forecasts are those of ``strategy="corrected"``, which looks for effects of the days of the month, Easter and
Christmas on daily series, and of the number of working days on monthly ones; and the same with
``time_features`` given, which looks for seasons only. NN5 is cut at several dates, with all days and with
Mondays to Fridays alone. Transformers and exchange rates have no holidays that matter: there the effects
should cost nothing. Their hourly values are daily means here, and days of exchange rates follow each other
without weekends, as if they were dates. Monthly series with wrong dates show the same. Losses are weighted
quantile losses over those of seasonal naive forecasts::

    python examples/benchmark/calendar_effects.py --data DIR --out docs/results/calendar_effects.json
    python examples/benchmark/calendar_effects.py --page     # only the tables of docs/calendar_effects.md
"""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import short_series
from short_series import Collection
from short_series_report import table as markdown

ROOT = Path(__file__).parents[2]
sys.path.append(str(Path(__file__).parent / "arena"))
from run import fill_page, machine, write_json

SEED, N, HORIZON, ORIGINS = 0, 400, 28, 10
LATE = 19  # months
YEAR = 1.9 * 365.25  # days from which the year is a season by default
ENDS = {735: "April and May", 679: "February and March", 615: "December", 540: "September and October"}
FORECASTER = "taylorformer_forecast.sktime:TaylorformerForecaster"


def cuts(collection: Collection) -> Iterator[tuple[str, Collection]]:
    """NN5 up to several dates, and the weeks after each."""
    whole = [np.concatenate(pair) for pair in zip(collection.train, collection.test, strict=True)]
    for end, name in ENDS.items():
        train, test = [y[:end] for y in whole], [y[end : end + collection.horizon] for y in whole]
        yield f"cash machines (NN5), {name}", replace(collection, train=train, test=test)


def working_days(collection: Collection) -> Collection:
    """The values of Mondays to Fridays alone, and as many weeks ahead."""
    starts, parts = [], []
    for start, train, test in zip(collection.starts, collection.train, collection.test, strict=True):
        dates = pd.date_range(start[:10], periods=len(train) + len(test))
        working = np.asarray(dates.dayofweek < 5)
        starts.append(str(dates[working][0].date()))
        parts.append((train[working[: len(train)]], test[working[len(train) :]]))
    train, test = map(list, zip(*parts, strict=True))
    return Collection(collection.name, "B", 5, len(test[0]), starts, train, test)


def monthly(data: Path) -> Iterator[tuple[str, Collection]]:
    """M3, and M3 with dates that are some months and years too late: the months keep no working days."""
    m3 = Collection.read(data / "collections" / "m3_monthly.jsonl.gz", None, SEED)
    yield "1428 series (M3)", m3
    starts = [str(np.datetime64(start[:7]) + LATE * (1 + k % 5)) for k, start in enumerate(m3.starts)]
    yield "the same with wrong dates", replace(m3, starts=starts)


def daily(data: Path) -> Iterator[tuple[str, pd.DataFrame]]:
    """Daily series of other kinds, a column each."""
    for name in ("ETTh1", "ETTh2"):
        table = pd.read_csv(data / f"{name}.csv", index_col=0, parse_dates=True)
        yield f"transformer ({name})", table.resample("D").mean()
    table = pd.read_csv(data / "exchange_rate.csv", index_col=0).astype(float)
    yield "exchange rates", table.set_axis(pd.date_range("1990-01-01", periods=len(table)), axis=0)


def pieces(name: str, table: pd.DataFrame, n: int = N) -> Collection:
    """``n`` values before random origins of every column, and the weeks after them."""
    rng, parts = np.random.default_rng(SEED), []
    for column in table:
        for origin in rng.integers(n, len(table) - HORIZON, ORIGINS):
            parts.append(table[column].iloc[origin - n : origin + HORIZON])
    starts = [str(part.index[0].date()) for part in parts]
    values = [part.to_numpy() for part in parts]
    return Collection(
        name, "D", 7, HORIZON, starts, [y[:-HORIZON] for y in values], [y[-HORIZON:] for y in values]
    )


def row(name: str, collection: Collection) -> dict[str, Any]:
    """Losses with and without effects."""
    n = int(np.median([len(y) for y in collection.train]))
    steps = "months" if collection.freq == "M" else "days"
    found: dict[str, Any] = {"series": name, "steps": steps, "values": n, "forecasts": len(collection.train)}
    seasons = (
        ["year"] if steps == "months" else ["week", "year"] if n * 7 >= YEAR * collection.season else ["week"]
    )
    for key, settings in {"without": {"time_features": seasons}, "with": {}}.items():
        options = json.dumps({"strategy": "corrected", "random_state": SEED, **settings})
        score = short_series.score(collection, short_series.of_sktime(f"{FORECASTER}:{options}", panel=True))
        found[key], found[f"coverage_{key}"] = round(score["relative"], 4), round(score["coverage"], 3)
    return found


def table(book: dict[str, Any], steps: str) -> str:
    """A line for each set of daily or monthly series."""
    lines = []
    for one in book["rows"]:
        if one["steps"] == steps:
            cells = [f"{one[key]:.3f} ({one[f'coverage_{key}']:.2f})" for key in ("without", "with")]
            lines.append([one["series"], str(one["values"]), str(one["forecasts"]), *cells])
    return markdown([f"series of {steps}", "values", "forecasts", "without", "with"], lines)


def main(argv: list[str] | None = None) -> None:
    """Score all, write, print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", type=Path, metavar="DIR", help="files of the series, and collections/")
    parser.add_argument(
        "--out", type=Path, metavar="FILE.json", default=ROOT / "docs/results/calendar_effects.json"
    )
    parser.add_argument(
        "--page", action="store_true", help="only write the tables into docs/calendar_effects.md"
    )
    args = parser.parse_args(argv)
    if args.page:
        book = json.loads(args.out.read_text())
        for steps in ("days", "months"):
            marks = f"<!-- {steps} -->\n", "<!-- end -->"
            fill_page(ROOT / "docs/calendar_effects.md", marks, table(book, steps))
        return
    warnings.filterwarnings("ignore")
    book = {"machine": machine(), "seed": SEED, "rows": []}
    nn5 = Collection.read(args.data / "collections" / "nn5_daily.jsonl.gz", None, SEED)
    others = ((name, pieces(name, table)) for name, table in daily(args.data))
    working = [(name.replace(",", ", Mondays to Fridays,"), working_days(part)) for name, part in cuts(nn5)]
    sets = [*cuts(nn5), *working, *others, *monthly(args.data)]
    for name, collection in sets:
        book["rows"].append(row(name, collection))
        print(book["rows"][-1], flush=True)
        write_json(book, args.out)


if __name__ == "__main__":
    main()
