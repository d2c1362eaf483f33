"""What a forecaster for conditional forecasts costs, and what a known value of the future gives.

``TaylorformerForecaster(order="random")`` learns to be conditional on known values of the future. It and
``order="time"``, both with defaults, are trained on the first 80 % of a series and forecast from evenly
spaced origins in the rest. Compared are the free forecasts of both, and that of the first given the true
value of the last step; all are scored on the steps before it, by the weighted quantile loss over nine deciles
and the coverage of the central 80 % interval.

The series ship with sktime and statsmodels; every finished (series, seed) is written at once, and what the
file holds already is not run again::

    python examples/benchmark/conditional.py --out conditional.json
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

sys.path.append(str(Path(__file__).parent / "arena"))
from models import LEVELS, Settings
from run import machine, set_up, write_json
from series import Task, load

from taylorformer_forecast.sktime import TaylorformerForecaster

SERIES = ("airline", "sunspots_yearly", "co2")
LABELS = {"time": "order='time'", "random": "order='random'", "given": "given the last step"}


def deciles(task: Task, order: str, settings: Settings) -> dict[str, np.ndarray]:
    """Free forecasts of one kind of forecaster, and those given the last step: (origins, 9, horizon)."""
    steps = {} if settings.max_steps is None else {"max_steps": settings.max_steps, "num_epochs": None}
    model = TaylorformerForecaster(
        order=order,
        num_samples=settings.n_paths,
        random_state=settings.seed,
        device="cpu",
        strategy="train",  # both are trained, however short the series
        **steps,
    )
    model.fit(task.y.iloc[: task.cut], fh=range(1, task.horizon + 1))
    found: dict[str, list[np.ndarray]] = {order: []}
    if order == "random":
        found["given"] = []
    seen = task.cut
    for origin in task.origins:
        if origin > seen:
            model.update(task.y.iloc[seen:origin], update_params=False)
            seen = origin
        last = task.y.iloc[origin + task.horizon - 1 : origin + task.horizon]
        for name, rows in found.items():
            asked = model.condition(last) if name == "given" else model
            rows.append(asked.predict_quantiles(alpha=LEVELS.tolist()).to_numpy().T)
    return {name: np.stack(rows) for name, rows in found.items()}


def compare(task: Task, settings: Settings) -> list[dict]:
    """One row of scores for every kind of forecast, on all steps but the last."""
    truth = task.truth()[:, None, :-1]
    rows = []
    for name, found in {**deciles(task, "time", settings), **deciles(task, "random", settings)}.items():
        error = truth - found[..., :-1]
        pinball = 2 * np.maximum(LEVELS[:, None] * error, (LEVELS[:, None] - 1) * error)
        row = {"model": name, "series": task.name, "seed": settings.seed}
        row["wql"] = round(float(pinball.mean(1).sum() / np.abs(truth).sum()), 5)
        row["coverage"] = round(float(((error[:, 0] >= 0) & (error[:, -1] <= 0)).mean()), 5)
        rows.append(row)
    return rows


def table(book: dict) -> str:
    """Weighted quantile losses and coverages, averages over the seeds."""
    rows = pd.DataFrame(book["rows"]).groupby(["series", "model"], sort=False)[["wql", "coverage"]].mean()
    lines = ["| series | " + " | ".join(LABELS.values()) + " |", "|---" * (1 + len(LABELS)) + "|"]
    for name, part in rows.groupby(level="series", sort=False):
        cells = [f"{part.loc[(name, m), 'wql']:.3g} ({part.loc[(name, m), 'coverage']:.2f})" for m in LABELS]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    """Run what is missing, write it, print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--series", default=",".join(SERIES), help="names, separated by commas")
    parser.add_argument("--seeds", default="0,1,2", help="numbers, separated by commas")
    parser.add_argument("--out", type=Path, metavar="FILE.json", default=Path("conditional.json"))
    parser.add_argument("--quick", action="store_true", help="one origin, one step, as a check")
    args = parser.parse_args()
    set_up()
    if args.quick:
        args.series, args.seeds = "airline", "0"

    book = json.loads(args.out.read_text()) if args.out.exists() else {"rows": []}
    book["machine"] = machine()
    done = {(row["series"], row["seed"]) for row in book["rows"]}
    for seed in map(int, args.seeds.split(",")):
        for name in args.series.split(","):
            if (name, seed) not in done:
                task = load(name, None)
                if args.quick:
                    task = replace(task, n_origins=1)
                settings = Settings(seed=seed, **({"n_paths": 20, "max_steps": 1} if args.quick else {}))
                book["rows"] += compare(task, settings)
                write_json(book, args.out)
                print(name, seed, book["rows"][-3:], flush=True)
    print(table(book))


if __name__ == "__main__":
    main()
