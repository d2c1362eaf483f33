"""Gaps of 1, 5 and 20 points in real series, filled by networks, lines, drift and nearby seasons.

Of every series disjoint gaps of one length are hidden at random places, at least 15 % of its points; every
method fills them, and is scored on what was hidden. Nothing is tuned by what is hidden. Scores:

mae
    Mean absolute error (of the imputers: of the median).
crps
    Continuous ranked probability score; of methods that give one value it is the absolute error.
coverage
    Fraction of hidden values inside the central 80 % interval.

Times are processor times of one thread. Every finished row is written at once, and what the file holds
already is not run again. Series that ship with sktime and statsmodels need no files::

    python examples/benchmark/imputation.py --out imputation.json
    python examples/benchmark/imputation.py --data DIR --out imputation.json --page imputation.md
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
from sktime.transformations.impute import Imputer

sys.path.append(str(Path(__file__).parent / "arena"))
from imputation_report import LABELS, page, table
from run import machine, set_up, write_json
from series import SOURCES, load

from taylorformer_forecast.sktime import ContiFormerImputer, TaylorformerImputer

GAPS = (1, 5, 20)
HIDDEN = 0.15  # least fraction of a series that is hidden
APART = 2  # points between two gaps, and before the first and after the last
# Points at the end of each series that are used; None: all.
SHIPPED = {"airline": None, "lynx": None, "co2": None}
FILES = {"sunspots": 800, "ili": 700, "taylor": 1000}
IMPUTERS = {"taylorformer": TaylorformerImputer, "contiformer": ContiFormerImputer}


def punch(n: int, length: int, rng: np.random.Generator) -> np.ndarray:
    """Where a series of ``n`` points is hidden: disjoint gaps of one length, (n,) bool."""
    hidden = np.zeros(n, dtype=bool)
    while hidden.mean() < HIDDEN:
        start = rng.integers(APART, n - length - APART + 1)
        if not hidden[start - APART : start + length + APART].any():
            hidden[start : start + length] = True
    return hidden


def between_seasons(y: pd.Series, season: int) -> np.ndarray:
    """Every season's own line: from the value that many steps before to that after; other gaps straight."""
    filled = y.reset_index(drop=True)
    if season > 1:
        filled = filled.groupby(np.arange(len(y)) % season).transform(
            lambda part: part.interpolate(limit_direction="both")
        )
    return filled.interpolate(limit_direction="both").to_numpy()


def score(truth: np.ndarray, median: np.ndarray) -> dict[str, float]:
    """Scores of a method that gives one value."""
    error = float(np.abs(truth - median).mean())
    return {"mae": error, "crps": error}


def fit_and_fill(imputer, gappy: pd.Series, truth: np.ndarray) -> dict[str, float]:
    """Fit an imputer, fill, and score."""
    start = time.process_time()
    imputer.fit(gappy)
    middle = time.process_time()
    filled = imputer.transform_proba(gappy)
    end = time.process_time()
    low, median, high = filled.quantile([0.1, 0.5, 0.9]).to_numpy().T
    far, wide = (np.ravel(e) for e in (filled.energy(truth[:, None]), filled.energy()))
    return {
        "mae": score(truth, median)["mae"],
        "crps": float((far - 0.5 * wide).mean()),
        "coverage": float(((truth >= low) & (truth <= high)).mean()),
        "fit_s": round(middle - start, 2),
        "fill_s": round(end - middle, 2),
        **{name: imputer.training_[name] for name in ("weight", "mean_weight", "inflation")},
    }


def run(model: str, y: pd.Series, season: int, gap: int, seed: int, settings: dict) -> dict:
    """Hide points of one series, fill them by one method, and score.

    Parameters
    ----------
    model : str
        The method, a key of ``LABELS``.
    y : pd.Series
        Values without gaps.
    season : int
        Steps of a season.
    gap : int
        Length of the gaps.
    seed : int
        Of the places of the gaps and of the imputer.
    settings : dict
        Further arguments of the imputers.

    Returns
    -------
    dict
        The part of a row of results that is about the method.
    """
    hidden = punch(len(y), gap, np.random.default_rng(seed))
    gappy, truth = y.mask(hidden), y[hidden].to_numpy()
    if model in IMPUTERS:
        found = fit_and_fill(IMPUTERS[model](random_state=seed, **settings), gappy, truth)
    elif model == "linear":
        found = score(truth, gappy.reset_index(drop=True).interpolate().to_numpy()[hidden])
    elif model == "drift":
        found = score(truth, Imputer("drift").fit_transform(gappy).to_numpy()[hidden])
    else:
        found = score(truth, between_seasons(gappy, season)[hidden])
    rounded = {key: float(f"{value:.5g}") for key, value in found.items()}
    return {"hidden": int(hidden.sum()), "model": model, **rounded}


def numbers(text: str) -> list[int]:
    """Numbers, separated by commas."""
    return [int(part) for part in text.split(",")]


def main() -> None:
    """Run what is missing, write it, print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--series", help="names, separated by commas; default: all there are")
    parser.add_argument("--data", type=Path, metavar="DIR", help="where the files of published series are")
    parser.add_argument("--gaps", default=",".join(map(str, GAPS)), help="lengths, separated by commas")
    parser.add_argument("--seeds", default="0,1,2", help="numbers, separated by commas")
    parser.add_argument("--out", type=Path, metavar="FILE.json", default=Path("imputation.json"))
    parser.add_argument("--page", type=Path, metavar="FILE.md", help="where to write the page of the docs")
    parser.add_argument("--quick", action="store_true", help="one gap length, a tiny network, as a check")
    parser.add_argument("--set", default="{}", help="JSON of further arguments of the imputer")
    args = parser.parse_args()
    set_up()
    settings = json.loads(args.set)
    if args.quick:
        args.series, args.gaps, args.seeds = "airline", "5", "0"
        settings = {"d_model": 4, "n_heads": 1, "max_steps": 2, "num_samples": 8}

    book = json.loads(args.out.read_text()) if args.out.exists() else {"series": {}, "rows": []}
    book["machine"], book["settings"] = machine(), settings
    done = {(row["series"], row["gap"], row["seed"], row["model"]) for row in book["rows"]}
    for name in (args.series or ",".join([*SHIPPED, *(FILES if args.data else ())])).split(","):
        task = load(name, args.data)
        y = task.y.iloc[-({**SHIPPED, **FILES}[name] or 0) :]
        book["series"][name] = {"length": len(y), "season": task.season}
        for gap, seed, model in product(numbers(args.gaps), numbers(args.seeds), LABELS):
            if (name, gap, seed, model) in done:
                continue
            row = run(model, y, task.season, gap, seed, settings)
            book["rows"].append({"series": name, "gap": gap, "seed": seed, **row})
            write_json(book, args.out)
            print(name, gap, seed, model, row["mae"], row["crps"], row.get("coverage", ""), flush=True)
    print(table(book))
    if args.page is not None:
        args.page.write_text(page(book, HIDDEN, APART, SOURCES))


if __name__ == "__main__":
    main()
