"""Classes of series of which a part was lost: ContiFormer beside two classifiers of sktime on filled series.

Sets of the UCR and UEA archives that sktime ships, with their own training and test parts. Of every series 0,
30, 50 and 70 % of the rows are dropped at random, in training and test alike. ContiFormer gets the rows that
are left, and their times. The others need series of equal lengths without gaps: rows are filled on straight
lines, ends are held, and shorter series are drawn out to the longest.

majority
    The most frequent class of the training part.
MiniRocket
    ``RocketClassifier(rocket_transform="minirocket")``.
TimeSeriesForest
    ``TimeSeriesForestClassifier``, for sets of one column.
linear
    What the ContiFormer corrects: ``ContiFormerClassifier(max_steps=0)``.
ContiFormer
    ``ContiFormerClassifier`` with its defaults.

Scores are accuracies, times processor times of one thread. Every finished row is written at once, and what
the file holds already is not run again::

    python examples/benchmark/classification.py --out classification.json --page classification.md

The page has a table between two marks, which is written anew.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd

sys.path.append(str(Path(__file__).parent / "arena"))
from run import fill_page, machine, set_up, write_json

from taylorformer_forecast.sktime import ContiFormerClassifier

SETS = ("UnitTest", "ItalyPowerDemand", "GunPoint", "ArrowHead", "BasicMotions", "JapaneseVowels")
DROPPED = (0.0, 0.3, 0.5, 0.7)
LABELS = {
    "majority": "majority",
    "minirocket": "MiniRocket",
    "forest": "TimeSeriesForest",
    "linear": "linear scores alone",
    "contiformer": "ContiFormer",
}
MARKS = "<!-- classification: start -->\n", "<!-- classification: end -->\n"


def load(name: str, split: str) -> tuple[list[np.ndarray], np.ndarray]:
    """Series (rows, columns) and their classes."""
    from sktime.datasets import load_UCR_UEA_dataset

    X, y = load_UCR_UEA_dataset(name, split=split, return_type="nested_univ")
    return [np.stack([np.asarray(c, float) for c in row], 1) for row in X.itertuples(index=False)], y


def drop(series: list[np.ndarray], rate: float, rng: np.random.Generator) -> list[np.ndarray]:
    """Series with rows of NaN at random places, two rows at least left."""
    out = []
    for values in series:
        lost = rng.permutation(len(values))[: min(round(rate * len(values)), len(values) - 2)]
        values = values.copy()
        values[lost] = np.nan
        out.append(values)
    return out


def as_panel(series: list[np.ndarray]) -> pd.DataFrame:
    """What is left of the series, as sktime's panel: rows that were dropped are not there."""
    parts = {
        i: pd.DataFrame(v, columns=[f"x{c}" for c in range(v.shape[1])]).dropna()
        for i, v in enumerate(series)
    }
    return pd.concat(parts, names=["instance", "time"])


def filled(series: list[np.ndarray], length: int) -> np.ndarray:
    """Series on straight lines between what is left, drawn out to a length: (series, columns, length)."""
    out = []
    for values in series:
        at, grid = np.flatnonzero(~np.isnan(values[:, 0])), np.linspace(0, len(values) - 1, length)
        out.append([np.interp(grid, at, column[at]) for column in values.T])
    return np.array(out)


def classifier(model: str, seed: int, quick: bool):
    """A classifier by its name; small ones as a check."""
    from sktime.classification.interval_based import TimeSeriesForestClassifier
    from sktime.classification.kernel_based import RocketClassifier

    if model == "minirocket":
        return RocketClassifier(
            rocket_transform="minirocket", num_kernels=84 if quick else 10_000, random_state=seed
        )
    if model == "forest":
        return TimeSeriesForestClassifier(n_estimators=5 if quick else 200, random_state=seed)
    steps = {"max_steps": 0} if model == "linear" else {"max_steps": 2} if quick else {}
    return ContiFormerClassifier(random_state=seed, verbose=False, **steps)


def run(name: str, rate: float, model: str, seed: int, quick: bool = False) -> dict[str, float]:
    """Drop rows of a set, fit a classifier to the training part, and score it on the test part.

    Parameters
    ----------
    name : str
        Name of the set.
    rate : float
        Fraction of the rows that is dropped.
    model : str
        The classifier, a key of ``LABELS``.
    seed : int
        Of the rows that are dropped and of the classifier.
    quick : bool, default=False
        Small classifiers, as a check.

    Returns
    -------
    dict
        ``accuracy``; ``seconds`` of the fit and the prediction.
    """
    (train, y), (test, truth) = load(name, "train"), load(name, "test")
    if model == "majority":
        classes, counts = np.unique(y, return_counts=True)
        return {"accuracy": round(float(np.mean(truth == classes[counts.argmax()])), 4), "seconds": 0.0}
    rng = np.random.default_rng(seed)
    length = max(len(v) for v in train + test)
    parts = [drop(part, rate, rng) for part in (train, test)]
    if model in ("minirocket", "forest"):
        first, second = (filled(part, length) for part in parts)
    else:
        first, second = map(as_panel, parts)
    start = time.process_time()
    found = classifier(model, seed, quick).fit(first, y).predict(second)
    seconds = round(time.process_time() - start, 1)
    return {"accuracy": round(float(np.mean(found == truth)), 4), "seconds": seconds}


def accuracies(book: dict) -> pd.DataFrame:
    """Accuracies of every set and rate, one column for each classifier; means over seeds."""
    rows = pd.DataFrame(book["rows"])
    return rows.pivot_table("accuracy", ["set", "dropped"], "model", sort=False).reindex(columns=list(LABELS))


def table(book: dict) -> str:
    """Accuracies, the highest of a row in bold, and means of the classifiers that all sets have."""
    scores = accuracies(book)
    means = scores.groupby(level="dropped").agg(lambda column: column.mean(skipna=False))

    def breakable(name: str) -> str:
        """A name that may be hyphenated at its capitals, on a phone."""
        return re.sub(r"(?<=[a-z])(?=[A-Z])", "&shy;", name)

    header = " | ".join(map(breakable, LABELS.values()))
    lines = [f"| set | dropped | {header} |", "|---" * (2 + len(LABELS)) + "|"]
    for (name, rate), row in pd.concat([scores, pd.concat({"mean": means})]).iterrows():
        cells = [f"**{v:.3f}**" if v == row.max() else "–" if np.isnan(v) else f"{v:.3f}" for v in row]
        lines.append(f"| {breakable(name)} | {rate:.0%} | {' | '.join(cells)} |")
    return "\n".join(lines)


def verdict(book: dict, other: str) -> str:
    """In how many rows the ContiFormer is better or worse than another classifier."""
    both = accuracies(book)[["contiformer", other]].dropna()
    ahead = both["contiformer"] - both[other]
    return (
        f"Against {LABELS[other]}, ContiFormer is higher in {(ahead > 0).sum()} and lower in "
        f"{(ahead < 0).sum()} of {len(both)} rows."
    )


def section(book: dict) -> str:
    """What the page says between the marks."""
    rows = pd.DataFrame(book["rows"])
    seeds = ", ".join(map(str, sorted(rows["seed"].unique())))
    seconds = rows.groupby("model")["seconds"].median()
    took = ", ".join(f"{LABELS[m]} {seconds[m]:.0f} s" for m in ("contiformer", "minirocket", "forest"))
    versions = ", ".join(f"{k} {v}" for k, v in book["machine"].items() if k != "processor")
    verdicts = "\n".join(verdict(book, other) for other in ("minirocket", "forest", "linear"))
    return f"""
{table(book)}

{verdicts}

Seeds: {seeds}. Fit and prediction took, in the median: {took}, of one thread of a busy machine
({book["machine"]["processor"]}; {versions}).

"""


def main(argv: list[str] | None = None) -> None:
    """Run what is missing, write it, print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--sets", nargs="+", default=list(SETS))
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--out", type=Path, metavar="FILE.json", default=Path("classification.json"))
    parser.add_argument("--page", type=Path, metavar="FILE.md", help="a page with the marks")
    parser.add_argument("--quick", action="store_true", help="one set, small classifiers, as a check")
    args = parser.parse_args(argv)
    set_up()

    if args.quick:
        args.sets, args.seeds = ["UnitTest"], [0]
    book = json.loads(args.out.read_text()) if args.out.exists() else {"rows": []}
    book = {"machine": machine(), "rows": book["rows"]}
    done = {(row["set"], row["dropped"], row["model"], row["seed"]) for row in book["rows"]}
    for name, rate, seed, model in product(args.sets, DROPPED, args.seeds, LABELS):
        if (name, rate, model, seed) in done:
            continue
        if model == "forest" and load(name, "train")[0][0].shape[1] > 1:
            continue
        row = {"set": name, "dropped": rate, "model": model, "seed": seed}
        book["rows"].append({**row, **run(name, rate, model, seed, args.quick)})
        print(book["rows"][-1], flush=True)
        write_json(book, args.out)
    print(table(book))
    if args.page is not None:
        fill_page(args.page, MARKS, section(book))


if __name__ == "__main__":
    main()
