"""LAM transformer on ETTh1 and ETTh2, on the protocol of its paper, beside forecasts that need no training.

Rows 0..8640 are for training, the next 2880 for validation, the next 2880 for the test. All seven variables
are standardised by the training part. Every window of the test part counts (one starts at every row), and MSE
and MAE are means over windows, steps and variables. ``whole_batches`` in the results leaves out the windows
after the last full batch of 32, as published numbers do.

zero, last value, last day, window mean
    The training mean; the last value, or the last 24 values, repeated; the mean of as many values as there
    are steps.
faithful
    The paper's network for all variables together, on windows as long as the horizon, by its recipe: squared
    error, Adam with rate 1e-3, batches of 32, early stopping (here on the validation part).
modern
    The default network with the library's own training, on windows of ``--context`` values: one network for
    all variables, which sees one at a time, scaled by its window. The mean of its Student-t distribution is
    scored, which is its median too.

Kernels are local, full and prob; "autocorrelation" is one more, and "none" leaves out the layers, to see what
attention adds to the map over time. Rows are appended to the results as they are finished, and not run
again. Run from a checkout::

    python examples/benchmark/lam_ett.py --data DIR --horizons 96 --out lam_ett.json --table lam_ett.md

where DIR has ETTh1.csv and ETTh2.csv (github.com/zhouhaoyi/ETDataset).
"""

from __future__ import annotations

import argparse
import json
import os
import platform
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from datasets import Data, load
from lam_networks import BATCH, train
from numpy.lib.stride_tricks import sliding_window_view

NAMES, HORIZONS, DAY = ("ETTh1", "ETTh2"), (24, 48, 96, 168, 336, 720), 24


# ---- forecasts without training ---------------------------------------------------------------------------


def last_day(context: np.ndarray, horizon: int) -> np.ndarray:
    """Repeat the last day, (W, T, D)."""
    return context[:, -DAY:][:, np.arange(horizon) % DAY]


NAIVE: dict[str, Callable[[np.ndarray, int], np.ndarray]] = {
    "zero": lambda context, horizon: np.zeros((1, 1, 1)),
    "last value": lambda context, horizon: context[:, -1:],
    "last day": last_day,
    "window mean": lambda context, horizon: context.mean(1, keepdims=True),
}


def test_windows(values: np.ndarray, data: Data, horizon: int) -> tuple[np.ndarray, np.ndarray]:
    """Contexts as long as the horizon and targets of all windows of the test part, (W, T, D) each."""
    windows = sliding_window_view(values[data.part("test", before=horizon)], 2 * horizon, axis=0).mT
    return windows[:, :horizon], windows[:, horizon:]


def score(forecast: np.ndarray, targets: np.ndarray) -> dict[str, Any]:
    """Mean squared and absolute error over all windows, and over those of whole batches."""
    squared, absolute = (np.empty(len(targets)) for _ in range(2))
    for start in range(0, len(targets), 256):  # the errors of all windows at once would take gigabytes
        rows = slice(start, start + 256)
        error = (forecast[rows] if len(forecast) > 1 else forecast) - targets[rows]
        squared[rows], absolute[rows] = np.square(error).mean((1, 2)), np.abs(error).mean((1, 2))
    whole = max(BATCH, len(targets) // BATCH * BATCH)
    return {
        "mse": squared.mean(),
        "mae": absolute.mean(),
        "windows": len(targets),
        "whole_batches": {"mse": squared[:whole].mean(), "mae": absolute[:whole].mean()},
    }


# ---- results ----------------------------------------------------------------------------------------------


def recipe(preset: str, args: argparse.Namespace) -> dict[str, Any]:
    """Options of a preset: the paper's, or those that are good for half a thousand steps on a CPU."""
    common = {"seconds": args.seconds, "test_windows": 64 if args.quick else None, "lr": 1e-3, "dropout": 0.1}
    if preset == "faithful":
        epochs_100 = 100 * 8640 // BATCH
        return {**common, "batch": BATCH, "patience": 5, "max_steps": args.max_steps or epochs_100}
    modern = {"context": args.context, "d_model": args.d_model, "n_layers": 2, "distribution": "studentt"}
    length = {"patience": 4, "checks": 8, "max_steps": args.max_steps or 400}
    return {**common, **modern, **length, "batch": BATCH}


def versions() -> dict[str, Any]:
    """What a row was measured with."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = [line.partition(":")[2] for line in lines if line.startswith("model name")]
    return {
        "torch": torch.__version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
        "processor": names[0].strip() if names else platform.machine(),
        "threads": torch.get_num_threads(),
    }


KEY = ("data", "horizon", "preset", "kernel", "seed", "recipe")


def plan(args: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Rows to run, in order."""
    for horizon in args.horizons:
        for name in args.names:
            for rule in NAIVE:
                yield dict(zip(KEY, (name, horizon, "naive", rule, 0, {}), strict=True))
            for preset in args.presets:
                for kernel in args.kernels:
                    for seed in args.seeds:
                        options = recipe(preset, args)
                        yield dict(zip(KEY, (name, horizon, preset, kernel, seed, options), strict=True))


def table(rows: list[dict[str, Any]]) -> str:
    """Markdown: one line for each data set and horizon, MSE / MAE, the best in bold, means over seeds.

    A network that is worse than repeating the last day, in either, is marked by a cross.
    """
    columns = list(dict.fromkeys((row["preset"], row["kernel"]) for row in rows))
    columns.sort(key=lambda column: ("naive", "faithful", "modern").index(column[0]))
    lines = ["| | " + " | ".join(k if p == "naive" else f"{p}, {k}" for p, k in columns) + " |"]
    lines.append("|---" * (len(columns) + 1) + "|")
    for name, horizon in sorted({(row["data"], row["horizon"]) for row in rows}):
        found: dict[tuple[str, str], np.ndarray] = {}
        for column in columns:
            which = (name, horizon, *column)
            same = [row for row in rows if tuple(row[key] for key in KEY[:4]) == which]
            latest = {row["seed"]: (row["mse"], row["mae"]) for row in same}
            if latest:
                found[column] = np.mean(list(latest.values()), axis=0)
        best = np.min(list(found.values()), axis=0)
        day = found.get(("naive", "last day"), np.full(2, np.inf))
        cells = []
        for column in columns:
            if column not in found:
                cells.append("")
                continue
            shown = [
                f"**{value:.3f}**" if round(value, 3) == round(least, 3) else f"{value:.3f}"
                for value, least in zip(found[column], best, strict=True)
            ]
            worse = column[0] != "naive" and bool((found[column] > day).any())
            cells.append(" / ".join(shown) + (" ✗" if worse else ""))
        lines.append(f"| {name} {horizon} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def main(argv: list[str] | None = None) -> None:
    """Run what is missing, append each row to the results, write the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", type=Path, required=True, metavar="DIR", help="has ETTh1.csv and ETTh2.csv")
    parser.add_argument("--names", nargs="+", choices=NAMES, default=NAMES)
    parser.add_argument("--horizons", nargs="+", type=int, default=HORIZONS)
    parser.add_argument("--presets", nargs="*", default=["modern", "faithful"])
    parser.add_argument(
        "--kernels", nargs="*", default=["local", "full", "prob"], help="also: autocorrelation, none"
    )
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    parser.add_argument("--context", type=int, default=336, help="of the modern network")
    parser.add_argument("--d-model", type=int, default=32, help="width of the modern network")
    parser.add_argument("--max-steps", type=int, help="400 by default, 100 epochs for the faithful network")
    parser.add_argument("--seconds", type=float, default=86400.0, help="to stop training of a row after")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument(
        "--quick", action="store_true", help="a check: horizon 24, 10 steps, few test windows"
    )
    parser.add_argument("--out", type=Path, default=Path("lam_ett.json"), metavar="FILE.json")
    parser.add_argument("--table", type=Path, metavar="FILE.md", help="where to write the results as a table")
    args = parser.parse_args(argv)
    if args.quick:
        args.horizons, args.context, args.d_model, args.max_steps = (24,), 48, 16, 10
    torch.set_num_threads(args.threads)

    rows = json.loads(args.out.read_text()) if args.out.exists() else []
    loaded: dict[str, Data] = {}
    for job in plan(args):
        if any(all(row[key] == job[key] for key in KEY) for row in rows):
            continue
        name, horizon, preset, kernel, seed, options = job.values()
        if name not in loaded:
            loaded[name] = load(name, args.data / f"{name}.csv")
        data = loaded[name]
        if preset == "naive":
            context, targets = test_windows(data.standardised(), data, horizon)
            found = score(NAIVE[kernel](context, horizon), targets)
        else:
            forecast, targets, trained = train(data, horizon, preset, kernel, seed, options)
            found = {**score(forecast, targets), **trained}
        rows.append({**job, **found, "versions": versions()})
        # Written anew and moved into place: an interrupted run leaves all finished rows.
        part = args.out.with_suffix(".part")
        part.write_text(json.dumps(rows, indent=1) + "\n")
        os.replace(part, args.out)
        print(f"{name} {horizon:4} {preset:>9} {kernel:15} ", end="")
        print(
            f"MSE {found['mse']:.3f}  MAE {found['mae']:.3f}  {found.get('seconds', 0.0):6.1f} s", flush=True
        )
    if args.table is not None:
        args.table.write_text(table(rows))


if __name__ == "__main__":
    main()
