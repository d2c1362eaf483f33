r"""What single parameters of ``TaylorformerForecaster`` cost, and what they bring.

One parameter at a time is changed. Every forecaster is trained on the first 80 % of a series and forecasts
from evenly spaced origins in the rest, as in the arena. Compared with the defaults, in the same run, are the
weighted quantile loss, and the processor times of the fit and of all forecasts, of one thread. Ratios are
geometric means over series and seeds; those of the loss within the spread of seeds may be chance.

Every finished (series, seed) is written at once, and what the file holds already is not run again::

    python examples/benchmark/settings.py --data DIR --out settings.json
    python examples/benchmark/settings.py --data DIR --out local.json --changes 'attention="local"' \
        --series ili,sunspots,taylor,taxi,etth1,etth2,exchange
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

sys.path.append(str(Path(__file__).parent / "arena"))
from models import LEVELS
from run import machine, scores, set_up, write_json
from series import Task, load

from taylorformer_forecast.sktime import TaylorformerForecaster

SERIES = ("ili", "sunspots")
CHANGES: dict[str, dict[str, Any]] = {
    "defaults": {},
    'strategy="pretrained"': {"strategy": "pretrained"},
    "max_steps=40": {"max_steps": 40},
    "max_steps=600, num_epochs=None": {"max_steps": 600, "num_epochs": None},
    "validation_split=0.2": {"validation_split": 0.2},
    "half the context_length": {"context_length": 0.5},
    "twice the context_length": {"context_length": 2.0},
    "lr=5e-4": {"lr": 5e-4},
    "lr=8e-3": {"lr": 8e-3},
    "batch_size=64": {"batch_size": 64},
    "d_model=64": {"d_model": 64},
    "n_layers=4": {"n_layers": 4},
    'attention="local"': {"attention": "local"},
    'distribution="normal"': {"distribution": "normal"},
    "num_samples=25": {"num_samples": 25},
    "num_samples=400": {"num_samples": 400},
}


def run(task: Task, name: str, seed: int, usual_context: int | None, **bounds: Any) -> dict[str, Any]:
    """Scores and processor times of one change; ``context_length`` is a factor on the usual one."""
    change = {**CHANGES[name], **bounds}
    if "context_length" in change:
        assert usual_context is not None
        change["context_length"] = round(change["context_length"] * usual_context)
    change = {"strategy": "train", **change}  # a network alone, whatever the length of the series
    model = TaylorformerForecaster(device="cpu", random_state=seed, verbose=False, **change)
    start = time.process_time()
    model.fit(task.y.iloc[: task.cut], fh=range(1, task.horizon + 1))
    fitted, deciles, seen = time.process_time(), [], task.cut
    for origin in task.origins:
        if origin > seen:
            model.update(task.y.iloc[seen:origin], update_params=False)
            seen = origin
        deciles.append(model.predict_quantiles(alpha=LEVELS.tolist()).to_numpy().T)
    times = {"fit_s": fitted - start, "predict_s": time.process_time() - fitted}
    found = scores(np.stack(deciles), task)
    row = {"series": task.name, "seed": seed, "model": name, "context_length": model.context_length_}
    return row | {key: round(value, 5) for key, value in (times | found).items()}


def table(rows: list[dict[str, Any]]) -> str:
    """Ratios to the defaults: loss, seconds of the fit, seconds of the forecasts."""
    keys = ["series", "seed"]
    numbers = pd.DataFrame(rows).set_index([*keys, "model"])[["wql", "fit_s", "predict_s"]]
    usual = numbers.xs("defaults", level="model")
    lines = ["| change | loss | time of `fit` | time of forecasts |", "|---|---|---|---|"]
    for name in CHANGES:
        if name != "defaults" and name in numbers.index.unique("model"):
            ratios = np.exp(np.log(numbers.xs(name, level="model") / usual).mean())
            loss, fit, predict = (ratios[column] for column in ("wql", "fit_s", "predict_s"))
            parameter = name.replace("half the ", "half the `").replace("twice the ", "twice the `")
            label = f"{parameter}`" if parameter != name else f"`{name}`"
            lines.append(f"| {label} | {loss:.3f} | {fit:.1f} | {predict:.1f} |")
    return "\n".join(lines)


def main() -> None:
    """Run what is missing, write it, print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", type=Path, metavar="DIR", help="files of the series, as for the arena")
    parser.add_argument("--series", default=",".join(SERIES), help="names, separated by commas")
    parser.add_argument("--seeds", default="0", help="numbers, separated by commas")
    parser.add_argument("--changes", nargs="+", choices=CHANGES, default=list(CHANGES), metavar="CHANGE")
    parser.add_argument("--out", type=Path, metavar="FILE.json", default=Path("settings.json"))
    parser.add_argument("--quick", action="store_true", help="one short series and few steps, as a check")
    args = parser.parse_args()
    set_up()

    bounds: dict[str, Any] = {}
    if args.quick:
        args.series, args.seeds, bounds = "airline", "0", {"max_steps": 1, "strategy": "train"}
    book = json.loads(args.out.read_text()) if args.out.exists() else {"rows": []}
    book["machine"] = machine()
    run(
        load("airline"), "defaults", 0, None, strategy="train", max_steps=1
    )  # what is loaded once is not timed
    for seed in map(int, args.seeds.split(",")):
        for series in args.series.split(","):
            task = load(series, args.data)
            if args.quick:
                task = replace(task, n_origins=1)
            done = {
                row["model"]: row for row in book["rows"] if (row["series"], row["seed"]) == (series, seed)
            }
            usual = done.get("defaults", {}).get("context_length")
            for name in CHANGES:
                if name not in done and name in ("defaults", *args.changes):
                    row = run(task, name, seed, usual, **bounds)
                    usual = row["context_length"] if name == "defaults" else usual
                    book["rows"].append(row)
                    write_json(book, args.out)
                    print(row, flush=True)
    print(table(book["rows"]))


if __name__ == "__main__":
    main()
