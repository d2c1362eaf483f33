"""The arena: free-running probabilistic forecasts of real series by our models and others.

Every model is trained once on the first 80 % of a series, within one budget of time, and forecasts from
evenly spaced origins in the rest by 200 sample paths. No true value of the future is ever shown. Scores:

wql
    Weighted quantile loss: twice the pinball loss over nine deciles, over the sum of absolute values.
mase
    Absolute error of the median, in seasonal differences of the training part.
crps
    Continuous ranked probability score, approximated by the deciles, in the same unit.
coverage
    Fraction of true values inside the central 80 % interval.

Times, also the budget, are processor times of one thread. Every finished (model, series, seed, budget) is
written at once, and what the file holds already is not run again. Models without training are the same for
any budget: they are run once. Tables are of the largest budget; with several, the page has a curve. Series
that ship with sktime and statsmodels need no files::

    python examples/benchmark/arena/run.py --out arena.json
    python examples/benchmark/arena/run.py --data DIR --models lam_darts,dlinear --out arena.json
    python examples/benchmark/arena/run.py --budget 5,15,30,60 --out arena.json
    python examples/benchmark/arena/report.py arena.json
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import platform
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from itertools import product
from pathlib import Path

import numpy as np
from compare import Table
from models import LEVELS, MODELS, Entry, Settings
from rows import key
from series import FILES, SHIPPED, Task, load

LIBRARIES = (
    "torch",
    "pytorch-lightning",
    "sktime",
    "darts",
    "statsforecast",
    "statsmodels",
    "numpy",
    "pandas",
)


def scores(deciles: np.ndarray, task: Task) -> dict[str, float]:
    """Score forecasts.

    Parameters
    ----------
    deciles : np.ndarray
        Forecasts, (origins, 9, horizon).
    task : Task
        The series.

    Returns
    -------
    dict
        ``wql``, ``mase``, ``crps``, ``coverage``.
    """
    truth = task.truth()[:, None]
    level = LEVELS[:, None]
    error = truth - deciles
    pinball = 2 * np.maximum(level * error, (level - 1) * error)
    train = task.y.to_numpy()[: task.cut]
    scale = np.abs(train[task.season :] - train[: -task.season]).mean()
    inside = (truth[:, 0] >= deciles[:, 0]) & (truth[:, 0] <= deciles[:, -1])
    return {
        "wql": float(pinball.mean(1).sum() / np.abs(truth).sum()),
        "mase": float(np.abs(error[:, 4]).mean() / scale),
        "crps": float(pinball.mean() / scale),
        "coverage": float(inside.mean()),
    }


def run(name: str, task: Task, settings: Settings) -> dict:
    """Train one model, forecast from all origins, and score.

    Parameters
    ----------
    name : str
        A key of :data:`models.MODELS`.
    task : Task
        The series.
    settings : Settings
        Budget, seed, paths.

    Returns
    -------
    dict
        A row of results; ``error`` instead of scores where the model failed.
    """
    row = {"model": name, "series": task.name, "seed": settings.seed, "budget_s": settings.budget}
    try:
        entry: Entry = MODELS[name](task, settings)
        start, wall = time.process_time(), time.monotonic()
        entry.fit(task.y.iloc[: task.cut])
        middle = time.process_time()
        row["fit_wall_s"] = round(time.monotonic() - wall, 2)
        deciles = entry.forecast([task.y.iloc[:o] for o in task.origins])
        end = time.process_time()
        if not np.isfinite(deciles).all():
            raise ValueError("forecasts are not finite")
    except Exception as error:  # a model that cannot do a task is a result too
        return {**row, "error": f"{type(error).__name__}: {error}"[:300]}
    fan = np.array([[float(f"{v:.4g}") for v in line] for line in deciles[-1, ::2]])
    row |= {"fit_s": round(middle - start, 2), "predict_s": round(end - middle, 2)}
    row |= {key: round(value, 5) for key, value in scores(deciles, task).items()}
    return {**row, "fan": fan.tolist()}


def describe(task: Task) -> dict:
    """Return the protocol of a series, and its end for pictures."""
    end = task.y.iloc[-3 * task.horizon :].to_numpy()
    return {
        "length": len(task.y),
        "season": task.season,
        "horizon": task.horizon,
        "context": task.context,
        "origins": len(task.origins),
        "end": [float(f"{v:.4g}") for v in end],
    }


def machine() -> dict[str, str]:
    """Processor and versions of libraries."""
    found = {"python": platform.python_version()}
    for library in LIBRARIES:
        try:
            found[library] = version(library)
        except PackageNotFoundError:
            continue
    cpu = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        names = [
            line.partition(":")[2].strip() for line in info.read_text().splitlines() if "model name" in line
        ]
        cpu = names[0] if names else cpu
    return {"processor": f"{cpu}, {os.cpu_count()} cores, one thread used", **found}


def write_json(book: dict, path: Path) -> None:
    """Write results, one row on a line, so that an interrupted write leaves the old file."""
    head = {key: value for key, value in book.items() if key != "rows"}
    rows = ",\n  ".join(json.dumps(row) for row in book["rows"])
    text = json.dumps(head, indent=1).removesuffix("\n}") + f',\n "rows": [\n  {rows}\n ]\n}}\n'
    new = path.with_suffix(".tmp")
    new.write_text(text)
    new.replace(path)


def open_book(path: Path, settings: dict) -> dict:
    """Rows that a file has, or none, with this machine and these settings."""
    known = json.loads(path.read_text())["rows"] if path.exists() else []
    return {"machine": machine(), "settings": settings, "rows": known}


def run_missing(
    book: dict,
    path: Path,
    cases: Iterable[tuple[dict, Callable[[], dict]]],
    order: Callable[[dict], tuple] | None = None,
) -> None:
    """Run the cases of which a book has no row, and write it after each.

    A case is what names its row, and a function that returns the rest of it. Rows are in the order of the
    cases, or in one of their own. A line says how many rows were kept, as those may come from older code.
    """
    kept = 0
    for names, run_case in cases:
        if any(all(row.get(key) == value for key, value in names.items()) for row in book["rows"]):
            kept += 1
            continue
        book["rows"].append({**names, **run_case()})
        print(json.dumps(book["rows"][-1]), flush=True)
        if order is not None:
            book["rows"].sort(key=order)
        write_json(book, path)
    if kept:
        print(f"{kept} rows were kept as they are. To measure all again, name a new file by --out.")


def fill_page(page: Path, marks: tuple[str, str], text: str) -> None:
    """Write what a page says between two marks anew."""
    before, _, rest = page.read_text().partition(marks[0])
    page.write_text(before + marks[0] + text + marks[1] + rest.partition(marks[1])[2])


def set_up() -> None:
    """Silence hints of the hosts, of which errors are still seen, and give torch one thread."""
    import pytorch_lightning  # noqa: F401  # it sets its level when it is imported, and is not to be timed
    import torch

    torch.set_num_threads(1)
    warnings.filterwarnings("ignore")
    for name in ("pytorch_lightning", "lightning.pytorch", "darts"):
        logging.getLogger(name).setLevel(logging.ERROR)


def numbers(text: str) -> list[float]:
    """Read numbers that are separated by commas."""
    return [float(number) for number in text.split(",")]


def missing(book: dict, names: list[str], series: str, seed: int, budgets: list[float]) -> Iterator[tuple]:
    """Yield the models and budgets of a series that a book has no row of.

    Parameters
    ----------
    book : dict
        Results so far; rows may be added while this runs.
    names : list of str
        Keys of :data:`models.MODELS`.
    series : str
        Name of the series.
    seed : int
        Seed.
    budgets : list of float
        Seconds of training.

    Yields
    ------
    tuple
        A name and a budget.
    """
    for budget, name in product(budgets, names):
        new = key({"model": name, "series": series, "seed": seed, "budget_s": budget})
        if new not in map(key, book["rows"]):
            yield name, budget


def main() -> None:
    """Run what is missing, write every row at once, print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--models", default=",".join(MODELS), help="names, separated by commas")
    parser.add_argument("--series", help="names, separated by commas; default: all there are")
    parser.add_argument("--data", type=Path, metavar="DIR", help="where the files of published series are")
    parser.add_argument(
        "--budget",
        type=numbers,
        default=[60.0],
        metavar="SECONDS",
        help="of training, processor time; several are separated by commas",
    )
    parser.add_argument("--seeds", default="0", help="numbers, separated by commas")
    parser.add_argument("--out", type=Path, metavar="FILE.json", default=Path("arena.json"))
    parser.add_argument("--quick", action="store_true", help="two models, one origin, one step, as a check")
    args = parser.parse_args()
    set_up()
    if args.quick:
        args.models, args.series = "naive,lam_sktime", "airline"
    series = args.series or ",".join([*SHIPPED, *(FILES if args.data else ())])
    names = args.models.split(",")
    if unknown := [name for name in names if name not in MODELS]:
        raise SystemExit(f"unknown models {unknown}; known: {', '.join(MODELS)}")

    book = json.loads(args.out.read_text()) if args.out.exists() else {"series": {}, "rows": []}
    book["machine"] = machine()
    settings = Settings(n_paths=20, max_steps=1) if args.quick else Settings()
    book["paths"] = settings.n_paths
    for seed in map(int, args.seeds.split(",")):
        for one in series.split(","):
            task = load(one, args.data)
            if args.quick:
                task = Task(task.name, task.y, task.season, task.horizon, task.context, 1)
            book["series"][one] = describe(task)
            for name, budget in missing(book, names, one, seed, args.budget):
                row = run(name, task, replace(settings, budget=budget, seed=seed))
                book["rows"].append(row)
                write_json(book, args.out)
                print(json.dumps({k: v for k, v in row.items() if k != "fan"}), flush=True)
    print(Table(book).markdown())


if __name__ == "__main__":
    main()
