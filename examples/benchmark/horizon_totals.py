"""Intervals of the total over all steps of a forecast, from sample paths, on collections of short series.

Every series is forecast once, from its whole training part, by the default ``TaylorformerForecaster``. The
total of a path is the sum of its steps. Two rows show what that is worth: the same values of every step in
random order, as if steps were independent, and the total of the last season again with the quantiles of its
past errors. Scores are the coverage of the central 80 % and twice the quantile loss at .1 to .9 over that of
the naive row. Missing values of the test part are left out of both sums::

    python examples/benchmark/horizon_totals.py --data DIR --out horizon_totals.json --page totals.md

The page has a table between two marks, which is written anew.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import torch

sys.path.append(str(Path(__file__).parent / "arena"))
from run import fill_page
from short_series import LEVELS, Collection, last_season, versions
from short_series_report import table as markdown

from taylorformer_forecast.sktime import TaylorformerForecaster

ROWS = {"naive": "last season", "independent": "independent steps", "paths": "paths"}
MARKS = "<!-- horizon: start -->\n", "<!-- horizon: end -->\n"
N_PATHS = 400


def naive(y: np.ndarray, season: int, horizon: int) -> np.ndarray:
    """Deciles of the total: that of the last season again, and the quantiles of its past errors."""
    filled = pd.Series(y).ffill().bfill().to_numpy()
    origins = range(max(season, len(y) // 2), len(y) - horizon + 1)
    errors = [
        filled[o : o + horizon].sum() - last_season(filled[:o], season, horizon).sum() for o in origins
    ] or [0.0]
    return last_season(y, season, horizon).sum() + np.quantile(errors, LEVELS)


def deciles(collection: Collection, number: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Deciles of the total of one series, for every row."""
    y, truth, horizon = collection.train[number], collection.test[number], collection.horizon
    calendar = pd.period_range if collection.freq in "MQY" else pd.date_range
    index = calendar(collection.starts[number], periods=len(y), freq=collection.freq)
    forecaster = TaylorformerForecaster(num_samples=N_PATHS, random_state=0, verbose=False)
    forecaster.fit(pd.DataFrame({"y": y}, index), fh=range(1, horizon + 1))
    paths = np.asarray(forecaster.predict_proba(marginal=False).paths)[..., 0][:, ~np.isnan(truth)]
    share = 1 - np.isnan(truth).mean()  # of the steps that were observed
    return {
        "naive": naive(y, collection.season, horizon) * share,
        "independent": np.quantile(rng.permuted(paths, axis=0).sum(1), LEVELS),
        "paths": np.quantile(paths.sum(1), LEVELS),
    }


def run(collection: Collection) -> list[dict]:
    """Scores of every row on a collection."""
    rng, found = np.random.default_rng(0), []
    for number, truth in enumerate(collection.test):
        total = np.nansum(truth)
        for name, q in deciles(collection, number, rng).items():
            loss = 2 * np.maximum(LEVELS * (total - q), (LEVELS - 1) * (total - q)).mean()
            found.append({"model": name, "inside": q[0] <= total <= q[-1], "loss": loss})
    means = pd.DataFrame(found).groupby("model").mean()
    return [
        {
            "set": collection.name,
            "n": len(collection.train),
            "steps": collection.horizon,
            "model": name,
            "coverage": round(float(means.loc[name, "inside"]), 3),
            "relative": round(float(means.loc[name, "loss"] / means.loc["naive", "loss"]), 3),
        }
        for name in ROWS
    ]


def table(book: dict) -> str:
    """A line for each collection."""
    rows = pd.DataFrame(book["rows"])
    header = ["collection", "series", "steps", *ROWS.values()]
    lines = []
    for (name, n, steps), part in rows.groupby(["set", "n", "steps"], sort=False):
        own = part.set_index("model")
        cells = [f"{own.loc[row, 'coverage']:.2f} ({own.loc[row, 'relative']:.2f})" for row in ROWS]
        lines.append([name.replace("_", " "), str(n), str(steps), *cells])
    return markdown(header, lines)


def main() -> None:
    """Forecast all collections of a folder, and score."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", type=Path, metavar="DIR", help="folder of collections")
    parser.add_argument("--n", type=int, default=200, help="random series of each collection at most")
    parser.add_argument("--out", type=Path, metavar="FILE.json", default=Path("horizon_totals.json"))
    parser.add_argument("--page", type=Path, metavar="FILE.md", help="a page with the marks")
    args = parser.parse_args()
    torch.set_num_threads(1)
    if args.data:
        book = {**versions(), "rows": []}
        for path in sorted(args.data.glob("*.jsonl.gz")):
            book["rows"] += run(Collection.read(path, args.n, 0))
            print(book["rows"][-3:], flush=True)
        args.out.write_text(json.dumps(book, indent=1) + "\n")
    book = json.loads(args.out.read_text())
    print(table(book))
    if args.page is not None:
        fill_page(args.page, MARKS, f"\n{table(book)}\n")


if __name__ == "__main__":
    main()
