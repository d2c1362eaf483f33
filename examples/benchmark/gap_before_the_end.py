"""Forecasts of the networks where values are missing shortly before the end of what is known.

A model is fitted to the first four fifths of a series. From origins in the rest it forecasts one horizon,
with the values missing that lie before the last three. Losses are weighted quantile losses over that of the
same model without a gap, and coverage is that of the central 80 %. The seasonal naive forecast takes the
latest known value of every phase::

    python examples/benchmark/gap_before_the_end.py --data DIR --out docs/results/gap_before_the_end.json
    python examples/benchmark/gap_before_the_end.py --page     # the table of docs/strategies.md
    python examples/benchmark/gap_before_the_end.py --quick --out gaps.json     # a check
"""

from __future__ import annotations

import argparse
import copy
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
from series import load
from short_series_report import table as markdown

from taylorformer_forecast.sktime import LAMForecaster, TaylorformerForecaster

SERIES = {"airline": 12, "taylor": 48, "etth1": 24, "taxi": 48}  # and their horizons
GAPS = (0, 6, 12, 24)
KNOWN = 3  # values after the gap
ORIGINS = 10
MODELS = {
    "`pretrained`": partial(TaylorformerForecaster, strategy="pretrained"),
    "`train`": partial(TaylorformerForecaster, strategy="train"),
    "LAM": LAMForecaster,
    "`corrected`": partial(TaylorformerForecaster, strategy="corrected"),
}
NAIVE = "seasonal naive"
MARKS = ("<!-- gaps -->\n", "<!-- end of gaps -->")


def with_gap(y: pd.Series, origin: int, gap: int) -> pd.Series:
    """What is known at an origin, without the values before the last three."""
    known = y[:origin].astype(float)
    known.iloc[origin - KNOWN - gap : origin - KNOWN] = np.nan
    return known


def naive(known: pd.Series, season: int, h: int) -> np.ndarray:
    """The latest known value of every phase, as all deciles (h, 9)."""
    cycles = known.to_numpy()[len(known) % season :].reshape(-1, season)
    latest = pd.DataFrame(cycles).ffill().to_numpy()[-1]
    return np.repeat(np.resize(latest, h)[:, None], len(LEVELS), 1)


def score(model: str, name: str, gap: int, data: Path | None, **options: Any) -> dict[str, float]:
    """Loss and coverage over all origins of a series."""
    task, h = load(name, data), SERIES[name]
    y, first, found = task.y, int(0.8 * len(task.y)), []
    origins = np.linspace(first + KNOWN, len(y) - h, ORIGINS).astype(int)
    if model != NAIVE:
        fitted = MODELS[model](random_state=0, verbose=False, **options).fit(y[:first], fh=range(1, h + 1))
    for origin in origins:
        known = with_gap(y, origin, gap)
        if model == NAIVE:
            found.append(naive(known, task.season, h))
            continue
        there = copy.deepcopy(fitted).update(known[max(0, first - KNOWN - gap) :], update_params=False)
        found.append(there.predict_quantiles(alpha=LEVELS.tolist()).to_numpy())
    truth = np.stack([y.to_numpy()[origin : origin + h] for origin in origins])
    wql, coverage = loss(truth, np.stack(found))
    return {"wql": round(wql, 5), "coverage": round(coverage, 3)}


def table(rows: list[dict[str, Any]]) -> str:
    """Loss over that without a gap, and coverage: a line for each series and model."""
    frame = pd.DataFrame(rows).set_index(["series", "model", "gap"])
    gaps = sorted(frame.index.unique("gap"))
    lines = []
    for (name, model), part in frame.groupby(level=[0, 1], sort=False):
        found = part.droplevel([0, 1])
        cells = [f"{found.wql[gap] / found.wql[0]:.2f} ({found.coverage[gap]:.2f})" for gap in gaps[1:]]
        lines.append([name, model, f"{found.wql[0]:.4f} ({found.coverage[0]:.2f})", *cells])
    return markdown(["series", "model", "no gap: loss", *(f"{gap} values" for gap in gaps[1:])], lines)


def main(argv: list[str] | None = None) -> None:
    """Run what is missing, write it, print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", type=Path, metavar="DIR", help="files of the series, as for the arena")
    parser.add_argument("--out", type=Path, default=ROOT / "docs/results/gap_before_the_end.json")
    parser.add_argument("--page", action="store_true", help="only write the table into docs/strategies.md")
    parser.add_argument("--quick", action="store_true", help="airline, one model and one step, as a check")
    args = parser.parse_args(argv)
    book = open_book(args.out, {"seed": 0, "origins": ORIGINS, "known": KNOWN})
    if args.page:
        fill_page(ROOT / "docs/strategies.md", MARKS, table(book["rows"]))
        return
    set_up()

    names, models = (["airline"], ["LAM"]) if args.quick else (list(SERIES), list(MODELS))
    options = {"max_steps": 1} if args.quick else {}
    cases = [
        (
            {"series": name, "model": model, "gap": gap},
            partial(score, model, name, gap, args.data, **options),
        )
        for name, model, gap in product(names, [*models, NAIVE], GAPS)
    ]
    run_missing(book, args.out, cases)
    print(table(book["rows"]))


if __name__ == "__main__":
    main()
