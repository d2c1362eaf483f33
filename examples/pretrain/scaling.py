"""How the loss of the correction falls with the size of the network and with the steps of training.

    python examples/pretrain/scaling.py --folder RUNS                                    # two hours of a core
    python examples/pretrain/scaling.py --folder RUNS --data FOLDER --out scaling.json     # real series too
    python examples/pretrain/scaling.py --out scaling.json --page docs/prior.md
    python examples/pretrain/scaling.py --folder RUNS --quick                              # a check

Every size is trained with every budget from nothing, as ``train_correction.py`` does, so that the learning
rate falls to its end in each. What is finished is not trained again. FOLDER holds collections of real series
as ``examples/benchmark/short_series.py`` reads them; a third of the correction is taken there, as by default.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch
import train_correction
from score_correction import deciles, losses, partly

from taylorformer_forecast.engine.statistics.correction import load_correction

sys.path[:0] = [str(Path(__file__).parents[1] / "benchmark" / part) for part in ("", "arena")]
from run import fill_page
from short_series import Collection
from short_series_report import table as markdown

SIZES = ((32, 2), (64, 4), (128, 6))  # width and layers
STEPS = (400, 1600, 6400)
SHARE = 1 / 3
MARKS = ("<!-- scaling -->\n", "<!-- end -->")


def trained(folder: Path, size: tuple[int, int], steps: int, extra: list[str]) -> dict[str, Any]:
    """Train one network, or read what it came to."""
    file = folder / f"{size[0]}x{size[1]}-{steps}.safetensors"
    if not file.exists():
        shape = ["--d-model", str(size[0]), "--n-layers", str(size[1])]
        train_correction.main(["--out", str(file), "--steps", str(steps), *shape, "--every", "400", *extra])
    last = torch.load(file.with_suffix(".ckpt"), weights_only=True)["curve"][-1]
    n_parameters = sum(p.numel() for p in load_correction(file).parameters())
    row = {"d_model": size[0], "n_layers": size[1], "n_parameters": n_parameters, "steps": last["step"]}
    return row | {"seconds": last["seconds"], "synthetic": last["mean"], "file": str(file)}


def loss_of(collection: Collection, file: str, share: float) -> float:
    """Loss of all series of a collection with a part of the correction of a file."""
    correct = partly(load_correction(file), share, share)
    return float(losses(collection, deciles(collection, correct))[0].sum())


def table(rows: list[dict[str, Any]]) -> str:
    """Return the table of the page: a line for each size, a column for each budget."""
    budgets = sorted({row["steps"] for row in rows})
    header = ["width, layers, parameters", *[f"{steps:,} steps" for steps in budgets]]
    lines = []
    for size in sorted({(row["d_model"], row["n_layers"], row["n_parameters"]) for row in rows}):
        cells = {row["steps"]: row for row in rows if row["n_parameters"] == size[2]}
        line = [f"{size[0]}, {size[1]}, {size[2]:,}"]
        for steps in budgets:
            if steps not in cells:
                line.append("-")
                continue
            row = cells[steps]
            real = list(row.get("real", {}).values())
            mean = f"{np.exp(np.log(real).mean()):.3f}" if real else "-"
            line.append(f"{row['synthetic']:.3f}, {mean}, {row['seconds'] / 3600:.2f}")
        lines.append(line)
    return markdown(header, lines)


def power_law(rows: list[dict[str, Any]]) -> tuple[float, float]:
    """Exponents of parameters and of steps: log of what the correction gains, regressed on their logs."""
    gain = np.log([1 - row["synthetic"] for row in rows])
    logs = [np.log([row[name] for row in rows]) for name in ("n_parameters", "steps")]
    found = np.linalg.lstsq(np.column_stack([np.ones(len(rows)), *logs]), gain, rcond=None)[0]
    return float(found[1]), float(found[2])


def main(argv: list[str] | None = None) -> None:
    """Train what is missing, score it, write numbers and the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--folder", type=Path, help="of checkpoints and files of weights")
    parser.add_argument("--data", type=Path, help="folder of collections of real series")
    parser.add_argument("--out", type=Path, metavar="FILE.json")
    parser.add_argument("--page", type=Path, help="the page whose table is written")
    parser.add_argument("--skip", default="", help="runs to leave out, as WIDTHxLAYERS-STEPS,...")
    parser.add_argument("--quick", action="store_true", help="one size and three steps, as a check")
    args = parser.parse_args(argv)
    torch.set_num_threads(1)
    if args.folder:
        runs = [(SIZES[0], 3)] if args.quick else [(size, n) for n, size in product(STEPS, SIZES)]
        runs = [(size, n) for size, n in runs if f"{size[0]}x{size[1]}-{n}" not in args.skip.split(",")]
        args.folder.mkdir(parents=True, exist_ok=True)
        paths = sorted(args.data.glob("*.jsonl.gz")) if args.data else []
        collections = [Collection.read(path, None, 0) for path in paths]
        alone = [loss_of(collection, "default", 0.0) for collection in collections]
        rows = []
        for size, steps in runs:
            row = trained(args.folder, size, steps, ["--quick"] if args.quick else [])
            file = row.pop("file")
            if collections:
                row["real"] = {
                    collection.name: round(loss_of(collection, file, SHARE) / loss, 4)
                    for collection, loss in zip(collections, alone, strict=True)
                }
            rows.append(row)
            print(json.dumps(row), flush=True)
        book = {"torch": torch.__version__, "machine": platform.machine(), "rows": rows}
        if args.out:
            args.out.write_text(json.dumps(book, indent=1) + "\n")
    else:
        rows = json.loads(args.out.read_text())["rows"]
    print(table(rows))
    if len(rows) > 2:
        print("exponents of parameters and steps:", *(f"{x:.3f}" for x in power_law(rows)))
    if args.page:
        fill_page(args.page, MARKS, table(rows))


if __name__ == "__main__":
    main()
