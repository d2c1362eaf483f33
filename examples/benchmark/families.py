"""What each part of the statistical combination is worth: losses of the combination without it.

Parts are the families of its members, steady growth and errors that fade among them, what skewed errors
change, the logarithms in which quantiles of positive values are taken below the median, factors by which each
side reaches as far as its errors, and errors that grow faster than the root of the level::

    python examples/benchmark/families.py --data FOLDER --series DIR --out docs/results/families.json

FOLDER holds collections as ``short_series.py`` reads them, DIR long series as ``arena/run.py`` does: short
windows of these are further collections, and so are the airline passengers of sktime, a year ahead of every
quarter from the ninth year on. Losses are pinball losses over nine deciles, in sums over series, over those
of the whole combination. No network corrects them.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import numpy as np
import torch
from torch import Tensor

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT / "examples" / "pretrain"))
sys.path.append(str(Path(__file__).parent / "arena"))
from run import fill_page
from score_correction import deciles, losses
from series_windows import windows
from short_series import Collection
from short_series_report import NAMES, table

from taylorformer_forecast.baselines import combination, errors, families, forecast, members, tails, weights
from taylorformer_forecast.baselines.combination import CombinationFit
from taylorformer_forecast.baselines.families import FAMILIES

SKIPPED = ("car_parts",)  # intermittent demand, which no family forecasts
NONE = 1e-12  # prior of a family that is left out
FASTER, GROWTH, FADING = "errors that grow as the level", "steady growth", "errors that fade"
OTHERS = ("skewness of errors", "logarithms below the median", "a reach of each side")
PARTS = (*FAMILIES, GROWTH, FADING, *OTHERS, FASTER)
COLUMNS = ("m3_yearly", "m3_quarterly", "m3_monthly", "nn5_daily", "airline")


def airline() -> Collection:
    """Airline passengers from the ninth year on."""
    from sktime.datasets import load_airline

    y = load_airline().to_numpy(dtype=float, copy=True)
    origins = range(96, len(y) - 11, 3)
    return Collection("airline", "M", 12, 12, [], [y[:o] for o in origins], [y[o : o + 12] for o in origins])


def without(part: str | None) -> AbstractContextManager:
    """Leave out a part of the combination."""
    if part is None:
        return nullcontext()
    if part == "skewness of errors":
        return patch.object(forecast, "asymmetry", symmetric)
    if part == "logarithms below the median":
        return patch.object(forecast, "fit_combination", not_positive)
    if part == "a reach of each side":
        return patch.object(tails, "REACH_ERRORS", np.inf)
    if part == GROWTH:
        return patch.object(families, "GROWTH_PRIOR", NONE)
    if part == FADING:
        return patch.object(members, "LONGEST_REGRESSED_SEASON", np.inf)
    if part == FASTER:
        return patch.object(errors, "ERROR_LEVEL_EVIDENCE", np.inf)
    return patch.dict(weights.FAMILY_PRIOR, {part: NONE})


def symmetric(error: Tensor, scale: Tensor, steady: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """No skewness, as where the level may have shifted."""
    return errors.asymmetry(error, scale, torch.zeros_like(steady))


def not_positive(*args: object) -> CombinationFit:
    """The combination, as if its values were of both signs."""
    found = combination.fit_combination(*args)
    return replace(found, positive=torch.zeros_like(found.positive))


def loss_without(part: str | None, collections: list[Collection]) -> dict[str, float]:
    """Loss of every collection by the combination without a part."""
    with without(part):
        return {one.name: float(losses(one, deciles(one, None))[0].sum()) for one in collections}


def page(rows: list[dict]) -> str:
    """Table of the page; windows are a geometric mean over their sets."""
    cells = []
    for row in rows:
        own = [f"{row['relative'][name]:.3f}" for name in COLUMNS if name in row["relative"]]
        others = [np.log(value) for name, value in row["relative"].items() if name not in COLUMNS]
        cells.append([row["without"], *own, f"{np.exp(np.mean(others)):.3f}"])
    return table(["without", *(NAMES.get(name, name) for name in COLUMNS), "windows"], cells)


def main(argv: list[str] | None = None) -> None:
    """Score the combination without each part, or fill the page."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", type=Path, help="folder of collections")
    parser.add_argument("--series", type=Path, metavar="DIR", help="where the files of long series are")
    parser.add_argument("--n", type=int, help="random series of each collection; all by default")
    parser.add_argument("--out", type=Path, default=ROOT / "docs/results/families.json")
    parser.add_argument("--page", action="store_true", help="only write the table of docs/ablations.md")
    args = parser.parse_args(argv)
    if not args.page:
        torch.set_num_threads(1)
        paths = [p for p in sorted(args.data.glob("*.jsonl.gz")) if p.name.split(".")[0] not in SKIPPED]
        collections = [Collection.read(path, args.n, 0) for path in paths] + [airline()]
        collections += [] if args.series is None else windows(args.series)
        whole, rows = loss_without(None, collections), []
        for part in PARTS:
            found = loss_without(part, collections)
            rows.append({"without": part, "relative": {name: found[name] / whole[name] for name in found}})
            print(json.dumps(rows[-1]), flush=True)
        about = {"torch": torch.__version__, "numpy": np.__version__, "machine": platform.machine()}
        args.out.write_text(json.dumps({**about, "results": rows}, indent=1) + "\n")
    marks = "<!-- families -->\n", "<!-- end -->"
    fill_page(ROOT / "docs/ablations.md", marks, page(json.loads(args.out.read_text())["results"]))


if __name__ == "__main__":
    main()
