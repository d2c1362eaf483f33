"""Score parts of the correction of statistical forecasts on collections of short series.

    python examples/pretrain/score_correction.py --data FOLDER --series DIR --out docs/results/correction.json

FOLDER holds collections as ``examples/benchmark/short_series.py`` reads them, DIR long series as
``examples/benchmark/arena/run.py`` does: short windows of these are further collections. Losses are pinball
losses over nine deciles, relative to the combination without a correction: of the sums over all series, and
as geometric mean over series; and coverage of the central 80 %.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import torch
from torch import Tensor

from taylorformer_forecast.baselines.combination import CombinationFit
from taylorformer_forecast.baselines.forecast import Correction
from taylorformer_forecast.engine.statistics.correction import load_correction
from taylorformer_forecast.engine.statistics.forecast import forecast_series
from taylorformer_forecast.models.correction import CorrectionNet

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmark"))
from series_windows import windows
from short_series import LEVELS, Collection, quantiles, requests

# Of the shift of locations, and of the logarithms of the factors of widths.
SHARES = ((0.0, 0.0), (0.25, 1.0), (0.25, 0.25), (1 / 3, 1 / 3), (0.5, 0.5), (1.0, 1.0))


def partly(net: CorrectionNet, shift: float, width: float) -> Callable[[CombinationFit], Correction]:
    """A correction of which only parts are taken."""
    return lambda fit: net.correct(fit, 1.0).partly(shift, width)


def deciles(collection: Collection, correct: Callable[[CombinationFit], Correction]) -> Tensor:
    """Deciles (N, H, 9) of all series of a collection."""
    found = forecast_series(requests(collection), 1, 0, SimpleNamespace(correct=correct))
    return torch.as_tensor(np.stack([quantiles(one, LEVELS) for one in found]))


def losses(collection: Collection, found: Tensor) -> tuple[Tensor, float]:
    """Loss of every series, and the coverage of all."""
    truth, levels = torch.as_tensor(np.stack(collection.test)), torch.as_tensor(LEVELS)
    error = truth[..., None] - found
    pinball = torch.maximum(levels * error, (levels - 1) * error).nan_to_num().sum((1, 2))
    known = ~truth.isnan()
    inside = (truth >= found[..., 0]) & (truth <= found[..., -1])
    return pinball, float(inside[known].double().mean())


def main(argv: list[str] | None = None) -> None:
    """Score all shares on all collections."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", type=Path, required=True, help="folder of collections")
    parser.add_argument("--series", type=Path, metavar="DIR", help="where the files of long series are")
    parser.add_argument("--pretrained", default="default", help="'default' or a file")
    parser.add_argument("--n", type=int, help="random series of each collection; all by default")
    parser.add_argument("--out", type=Path, metavar="FILE.json")
    args = parser.parse_args(argv)
    torch.set_num_threads(1)
    net, rows = load_correction(args.pretrained), []
    collections = [Collection.read(path, args.n, 0) for path in sorted(args.data.glob("*.jsonl.gz"))]
    collections += [] if args.series is None else windows(args.series)
    for collection in collections:
        base = None
        for shift, width in SHARES:
            loss, coverage = losses(collection, deciles(collection, partly(net, shift, width)))
            base = loss if base is None else base
            ratio = (loss.clamp_min(1e-12) / base.clamp_min(1e-12)).log().mean().exp()
            row = {"set": collection.name, "n": len(loss), "shift": shift, "width": width}
            row |= {"relative": float(loss.sum() / base.sum()), "geometric_mean": float(ratio)}
            rows.append({**row, "coverage": coverage})
            print(json.dumps(rows[-1]), flush=True)
    if args.out:
        about = {"torch": torch.__version__, "numpy": np.__version__, "machine": platform.machine()}
        args.out.write_text(json.dumps({**about, "results": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
