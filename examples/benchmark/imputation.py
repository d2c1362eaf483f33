"""Gaps of 1, 5 and 20 points in real series, filled by the Taylorformer, lines, drift and nearby seasons.

Of every series disjoint gaps of one length are hidden at random places, at least 15 % of its points; every
method fills them, and is scored on what was hidden. Nothing is tuned by what is hidden. Scores:

mae
    Mean absolute error (ours: of the median).
crps
    Continuous ranked probability score; of methods that give one value it is the absolute error.
coverage
    Fraction of hidden values inside the central 80 % interval.

Times are processor times of one thread. Every finished (series, gap, seed) is written at once, and what the
file holds already is not run again. Series that ship with sktime and statsmodels need no files::

    python examples/benchmark/imputation.py --out imputation.json
    python examples/benchmark/imputation.py --data DIR --out imputation.json --page imputation.md
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
from sktime.transformations.impute import Imputer

sys.path.append(str(Path(__file__).parent / "arena"))
from run import machine, quiet, write_json
from series import SOURCES, load

from taylorformer_forecast.sktime import TaylorformerImputer

GAPS = (1, 5, 20)
HIDDEN = 0.15  # least fraction of a series that is hidden
APART = 2  # points between two gaps, and before the first and after the last
# Points at the end of each series that are used; None: all.
SHIPPED = {"airline": None, "lynx": None, "co2": None}
FILES = {"sunspots": 800, "ili": 700, "taylor": 1000}
LABELS = {
    "linear": "linear interpolation",
    "drift": "drift",
    "seasonal": "line between seasons",
    "taylorformer": "TaylorformerImputer",
}


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


def ours(gappy: pd.Series, truth: np.ndarray, seed: int, settings: dict) -> dict[str, float]:
    """Fit the imputer, fill, and score."""
    start = time.process_time()
    imputer = TaylorformerImputer(random_state=seed, **settings).fit(gappy)
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


def compare(name: str, y: pd.Series, season: int, gap: int, seed: int, settings: dict) -> list[dict]:
    """Hide points of one series, and fill them by every method.

    Parameters
    ----------
    name : str
        Name of the series.
    y : pd.Series
        Values without gaps.
    season : int
        Steps of a season.
    gap : int
        Length of the gaps.
    seed : int
        Of the places of the gaps and of the imputer.
    settings : dict
        Further arguments of the imputer.

    Returns
    -------
    list of dict
        A row of results for every method.
    """
    hidden = punch(len(y), gap, np.random.default_rng(seed))
    gappy, truth = y.mask(hidden), y[hidden].to_numpy()
    rows = {
        "linear": score(truth, gappy.reset_index(drop=True).interpolate().to_numpy()[hidden]),
        "drift": score(truth, Imputer("drift").fit_transform(gappy).to_numpy()[hidden]),
        "seasonal": score(truth, between_seasons(gappy, season)[hidden]),
        "taylorformer": ours(gappy, truth, seed, settings),
    }
    about = {"series": name, "gap": gap, "seed": seed, "hidden": int(hidden.sum())}
    return [
        {**about, "model": model, **{key: float(f"{value:.5g}") for key, value in row.items()}}
        for model, row in rows.items()
    ]


def pooled(book: dict) -> pd.DataFrame:
    """Scores over all hidden points of a series and length of gap, one row for each method."""
    rows = pd.DataFrame(book["rows"])
    keys = ["series", "gap", "model"]
    scores = [name for name in ("mae", "crps", "coverage") if name in rows]
    weighted = rows[scores].mul(rows["hidden"], axis=0).groupby([rows[k] for k in keys], sort=False)
    points = rows.groupby(keys, sort=False)["hidden"].sum()
    return weighted.sum(min_count=1).div(points, axis=0).assign(points=points)


def first_placements(book: dict) -> dict:
    """The same of the first three placements, which all series have."""
    seeds = sorted({row["seed"] for row in book["rows"]})[:3]
    return {**book, "rows": [row for row in book["rows"] if row["seed"] in seeds]}


def table(book: dict, score: str = "mae") -> str:
    """Table of one score, the lowest of every row in bold; our CRPS and coverage (of single placements)."""
    scores, rows, early = pooled(book), pd.DataFrame(book["rows"]), pooled(first_placements(book))
    each = rows[rows["model"] == "taylorformer"].groupby(["series", "gap"])["coverage"].agg(["min", "max"])
    single = {key: tuple(ends) for key, ends in zip(each.index, each.to_numpy(), strict=True)}
    lines = [
        "| series | gap | points | "
        + " | ".join(LABELS.values())
        + " | its CRPS | its coverage | of the first three |",
        "|---" * (6 + len(LABELS)) + "|",
    ]
    for (series, gap), part in scores.groupby(level=["series", "gap"], sort=False):
        part = part.droplevel(["series", "gap"])
        values, own = part[score], part.loc["taylorformer"]
        cells = [f"**{values[m]:.4g}**" if values[m] == values.min() else f"{values[m]:.4g}" for m in LABELS]
        low, high = single[series, gap]
        crps = f"{own['crps']:.4g} | {own['coverage']:.2f} ({low:.2f} to {high:.2f})"
        crps += f" | {early.loc[(series, gap, 'taylorformer'), 'coverage']:.2f}"
        lines.append(f"| {series} | {gap} | {own['points']:.0f} | {' | '.join(cells)} | {crps} |")
    return "\n".join(lines)


def verdicts(book: dict) -> str:
    """Lines on what was lost to another method, and where intervals cover too little or too much."""
    scores, lines = pooled(book), []
    for (series, gap), part in scores.groupby(level=["series", "gap"], sort=False):
        part = part.droplevel(["series", "gap"])
        own, others, where = part.loc["taylorformer"], part.drop("taylorformer"), f"{series}, gaps of {gap}"
        for score in ("mae", "crps"):
            best = others[score].idxmin()
            if own[score] > others[score].min():
                above = 100 * (own[score] / others.loc[best, score] - 1)
                lines.append(f"- {where}: {score.upper()} is {above:.1f} % above that of {LABELS[best]}.")
        if not 0.7 <= own["coverage"] <= 0.9:
            lines.append(f"- {where}: the 80 % interval covers {100 * own['coverage']:.0f} %.")
    return "\n".join(lines) or "None: lowest errors and scores in all rows, and coverage between 70 and 90 %."


def page(book: dict) -> str:
    """The page of the docs."""
    rows = pd.DataFrame(book["rows"])
    ours = rows[rows["model"] == "taylorformer"]
    each = sorted(set(ours.groupby(["series", "gap"]).size()))
    placements = str(each[0]) if len(each) == 1 else f"{each[0]} to {each[-1]}"
    versions = ", ".join(f"{k} {v}" for k, v in book["machine"].items() if k != "processor")
    series = "\n".join(
        f"| {name} | {SOURCES[name]} | {about['length']:,} | {about['season']} |"
        for name, about in book["series"].items()
    )
    return f"""# Filling gaps

Made by `examples/benchmark/imputation.py` from `results/imputation.json`. Mean absolute errors on hidden
points, lowest in bold. `TaylorformerImputer` also has a CRPS, to be compared with the errors of the methods
that give one value. The coverage of its 80 % interval should be 0.80. In brackets is that of single
placements of the gaps, and in the last column that of the first three placements, which all series have.

{table(book)}

## Losses

Where another method is better, or the coverage lies outside 70 to 90 %:

{verdicts(book)}

## Protocol

Of every series disjoint gaps of one length were hidden at random places, at least {100 * HIDDEN:.0f} % of its
points, with {APART} points or more between them; scores are over all hidden points of {placements}
placements (the table counts the points; airline, the shortest, has more, as coverage on its first
three varies too much). The imputer runs with its defaults, without the hidden values. The width of its
intervals follows from further gaps, which it cuts itself. Linear interpolation and drift are the usual ones
(drift: sktime's `Imputer("drift")`). "Line between seasons" interpolates every season by itself, for instance
every January.

These series and placements were also used while the method was made. The learning rate of the process, and
the rule that calibration never narrows intervals, were chosen on them. The choice between values and their
logarithms was made on other placements in airline and sunspots. Expect somewhat less on other series.

| series | what | length | season |
|---|---|---|---|
{series}

A fit took {ours["fit_s"].median():.0f} s (median; at most {ours["fit_s"].max():.0f} s), filling
{ours["fill_s"].median():.1f} s, in processor time of one thread of a busy machine.

## How it works

Every point is predicted around the conditional mean of a Gaussian process, in units of its conditional
deviation. The conditions are all observed values, before, between and after the gaps, and the values drawn so
far. The covariance has a level, a line, three Matérn parts and one that repeats with the seasons. Its
parameters are fitted by marginal likelihood. The same likelihood chooses between values and logarithms, for
columns that are never negative. Deviations fitted by maximum likelihood are too small. They are enlarged as
those of a regression with as many parameters and points. The Taylorformer is trained on what is left: shape,
spread and shifts. Then further gaps are cut, with lengths like those of the data. On them the weights of the
network and the inflation of its distributions are chosen.

## Machine

{book["machine"]["processor"]}; {versions}. Seeds: {", ".join(map(str, sorted(rows["seed"].unique())))}.
"""


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
    quiet()
    settings = json.loads(args.set)
    if args.quick:
        args.series, args.gaps, args.seeds = "airline", "5", "0"
        settings = {"d_model": 4, "n_heads": 1, "max_steps": 2, "num_samples": 8}

    import torch

    torch.set_num_threads(1)
    book = json.loads(args.out.read_text()) if args.out.exists() else {"series": {}, "rows": []}
    book["machine"], book["settings"] = machine(), settings
    done = {(row["series"], row["gap"], row["seed"]) for row in book["rows"]}
    for name in (args.series or ",".join([*SHIPPED, *(FILES if args.data else ())])).split(","):
        task = load(name, args.data)
        y = task.y.iloc[-({**SHIPPED, **FILES}[name] or 0) :]
        book["series"][name] = {"length": len(y), "season": task.season}
        for gap in map(int, args.gaps.split(",")):
            for seed in map(int, args.seeds.split(",")):
                if (name, gap, seed) in done:
                    continue
                rows = compare(name, y, task.season, gap, seed, settings)
                book["rows"] += rows
                write_json(book, args.out)
                own = rows[-1]
                others = " ".join(f"{row['model']} {row['mae']}" for row in rows[:-1])
                print(name, gap, seed, others, "ours", own["mae"], own["crps"], own["coverage"], flush=True)
    print(table(book))
    if args.page is not None:
        args.page.write_text(page(book))


if __name__ == "__main__":
    main()
