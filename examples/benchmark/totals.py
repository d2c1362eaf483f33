"""Intervals of totals: paths of several series drawn together (``joint=True``) and each by itself.

Three hierarchies, each of a total and what it is the sum of:

simulated
    Four autoregressions of order one (.6), whose innovations have correlations of .7, 180 steps. New draws
    for every origin.
spending
    Real quarterly consumption, investment and government spending of the USA, 1959 to 2009, which come with
    sktime; 8 steps from every eighth quarter of the second half.
machines
    Daily withdrawals from cash machines (NN5), the first 50 of them in five groups of ten, with their last
    200 values; 14 steps from every 14th day of the last quarter, where no value of them is missing. Read from
    a file: ``nn5_daily.jsonl.gz`` with a line for each machine, whose "train" and "test" are its values.

Scores are of the total at every step: coverage of the central 80 %, its mean width, and the mean of the
quantile losses at .1 to .9, times two, both divided by the mean absolute value of the total. Other rows
forecast the total alone: the value of one season before with the quantiles of its past errors, and the same
forecasters fitted to the total::

    python examples/benchmark/totals.py --data DIR --out totals.json --page totals.md

The page has a table between two marks, which is written anew.
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
from collections.abc import Iterator
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd

sys.path.append(str(Path(__file__).parent / "arena"))
from run import fill_page, open_book, run_missing, set_up
from short_series_report import table as markdown
from sktime.datasets import load_macroeconomic

from taylorformer_forecast.sktime import LAMForecaster, TaylorformerForecaster

LEVELS = np.arange(1, 10) / 10
HORIZONS = {"simulated": 12, "spending": 8, "machines": 14}
SEASONS = {"simulated": 1, "spending": 1, "machines": 7}
MODELS = {
    "naive": "last season of the total",
    "total": "Taylorformer, the total alone",
    "independent": "Taylorformer, parts by themselves",
    "joint": "Taylorformer, parts jointly",
    "lam_total": "LAM, the total alone",
    "lam_independent": "LAM, parts by themselves",
    "lam_joint": "LAM, parts jointly",
}
MARKS = "<!-- totals: start -->\n", "<!-- totals: end -->\n"


def simulated(seed: int, n: int = 192, correlation: float = 0.7) -> pd.DataFrame:
    """Four autoregressions with innovations that go together."""
    rng = np.random.default_rng(seed)
    common, own = rng.normal(size=(n + 50, 1)), rng.normal(size=(n + 50, 4))
    y = np.sqrt(correlation) * common + np.sqrt(1 - correlation) * own
    for t in range(1, len(y)):
        y[t] += 0.6 * y[t - 1]
    return pd.DataFrame(20 + y[50:], columns=["a", "b", "c", "d"])


def cases(panel: str, data: Path | None, at_most: int) -> Iterator[pd.DataFrame]:
    """Columns that end with the steps to forecast; every column is complete there."""
    horizon = HORIZONS[panel]
    if panel == "simulated":
        yield from (simulated(seed) for seed in range(at_most))
    elif panel == "spending":
        y = load_macroeconomic()[["realcons", "realinv", "realgovt"]]
        ends = range(len(y) // 2 + horizon, len(y) + 1, 8)
        yield from (y.iloc[:end] for end in [*ends][:at_most])
    else:
        with gzip.open(data / "nn5_daily.jsonl.gz", "rt") as lines:
            rows = [json.loads(line) for line in lines]
        rows = [row for row in rows if "train" in row][:50]
        values = np.array([row["train"] + row["test"] for row in rows], dtype=float).T
        whole = pd.DataFrame(values, pd.period_range(rows[0]["start"], periods=len(values), freq="D"))
        whole.columns = [row["id"] for row in rows]
        ends = range(3 * len(whole) // 4 + horizon, len(whole) + 1, 14)
        parts = [whole.iloc[end - 200 - horizon : end, k : k + 10] for end in ends for k in range(0, 50, 10)]
        complete = [part for part in parts if not part.iloc[-horizon:].isna().any(axis=None)]
        yield from complete[:at_most]


def of_total(y: pd.DataFrame, model: str, horizon: int, season: int, settings: dict) -> np.ndarray:
    """Quantiles of the total of the next steps, (levels, steps).

    Parameters
    ----------
    y : pd.DataFrame
        The parts, up to now.
    model : str
        One of ``MODELS``.
    horizon, season : int
        Steps to forecast, and steps of the season.
    settings : dict
        Further arguments of the forecaster.

    Returns
    -------
    ndarray of shape (levels, steps)
        Quantiles at ``LEVELS``.
    """
    fh = range(1, horizon + 1)
    total = y.interpolate(limit_direction="both").sum(axis=1)
    if model == "naive":
        values, found = total.to_numpy(), []
        for step in fh:
            back = season * -(-step // season)
            found.append(
                values[len(values) - 1 + step - back] + np.quantile(values[back:] - values[:-back], LEVELS)
            )
        return np.stack(found, 1)
    kind = LAMForecaster if model.startswith("lam") else TaylorformerForecaster
    forecaster = kind(
        joint=model.endswith("joint"), random_state=0, num_samples=400, verbose=False, **settings
    )
    if model.endswith("total"):
        return (
            forecaster.fit(total.rename("total"), fh=fh).predict_quantiles(alpha=LEVELS.tolist()).to_numpy().T
        )
    paths = forecaster.fit(y, fh=fh).predict_proba(marginal=False).paths
    return np.quantile(paths.sum(2), LEVELS, axis=0)


def run(panel: str, model: str, data: Path | None, at_most: int, settings: dict) -> dict[str, float]:
    """Forecast the total in all cases of a hierarchy, and score."""
    horizon, scores = HORIZONS[panel], []
    for y in cases(panel, data, at_most):
        truth, parts = y.iloc[-horizon:].sum(axis=1).to_numpy(), y.iloc[:-horizon]
        found = of_total(parts, model, horizon, SEASONS[panel], settings)
        error = truth - found
        loss = 2 * np.maximum(LEVELS[:, None] * error, (LEVELS[:, None] - 1) * error).mean()
        covered = ((found[0] <= truth) & (truth <= found[-1])).mean()
        unit = np.abs(truth).mean()
        scores.append((covered, (found[-1] - found[0]).mean() / unit, loss / unit))
    every = np.array(scores)
    names = ("coverage", "width", "loss")
    mean = {name: float(f"{value:.4g}") for name, value in zip(names, every.mean(0), strict=True)}
    error = every[:, 0].std(ddof=1) / np.sqrt(len(every)) if len(every) > 1 else 0.0
    return {"cases": len(every), **mean, "coverage_error": float(f"{error:.2g}")}


def table(book: dict) -> str:
    """Scores of every model on every hierarchy."""
    lines = []
    for row in book["rows"]:
        coverage = f"{row['coverage']:.2f} (±{row['coverage_error']:.2f})"
        scores = (str(row["cases"]), coverage, f"{row['width']:.3f}", f"{row['loss']:.4f}")
        lines.append([row["panel"], MODELS[row["model"]], *scores])
    return markdown(["hierarchy", "model", "n", "coverage", "width", "loss"], lines)


def section(book: dict) -> str:
    """What the page says between the marks."""
    settings = ", ".join(f"`{name}={value}`" for name, value in book["settings"].items())
    about = "Coverage is of 80 %, in n forecasts, with its standard error; loss is the quantile loss. "
    about += f"Settings: {settings or 'the defaults'}, 400 paths."
    return f"\n{table(book)}\n{about}\n\n"


def main(argv: list[str] | None = None) -> None:
    """Run what is missing, write it, print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", type=Path, metavar="DIR", help="where nn5_daily.jsonl.gz is")
    parser.add_argument("--out", type=Path, metavar="FILE.json", default=Path("totals.json"))
    parser.add_argument("--page", type=Path, metavar="FILE.md", help="a page with the marks")
    parser.add_argument("--cases", type=int, default=40, help="forecasts of a hierarchy at most")
    parser.add_argument("--models", nargs="+", choices=MODELS, default=[*MODELS])
    parser.add_argument("--panels", nargs="+", choices=HORIZONS, default=None)
    parser.add_argument("--set", default="{}", help="JSON of further arguments of the forecasters")
    args = parser.parse_args(argv)
    set_up()

    book = open_book(args.out, json.loads(args.set))
    panels = args.panels or [name for name in HORIZONS if args.data or name != "machines"]
    run_missing(
        book,
        args.out,
        (
            (
                {"panel": panel, "model": model},
                partial(run, panel, model, args.data, args.cases, book["settings"]),
            )
            for panel, model in product(panels, args.models)
        ),
        order=lambda row: ([*HORIZONS].index(row["panel"]), [*MODELS].index(row["model"])),
    )
    print(table(book))
    if args.page is not None:
        fill_page(args.page, MARKS, section(book))


if __name__ == "__main__":
    main()
