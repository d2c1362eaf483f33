"""The short series that the default forecasts worst: a table and a picture of what happened.

Every series of a collection is forecast once by the default ``TaylorformerForecaster``, all as one panel. The
two with the largest loss beyond that of the seasonal naive forecast are shown, in mean absolute values of the
series, so that small ones count as large ones do::

    python examples/benchmark/worst_short_series.py --data FOLDER --out docs/results/worst_short_series.json \
        --plot docs/images/worst_short_series.png

The page is made by ``short_series_report.py``.
"""

from __future__ import annotations

import argparse
import json
import warnings
from pathlib import Path

import numpy as np
import torch
from short_series import Collection, of_sktime, pinball, seasonal_naive
from short_series_report import NAMES

MODEL = 'taylorformer_forecast.sktime:TaylorformerForecaster:{"random_state": 0}'
EACH = 2  # series of a collection
SHOWN = 72  # values before a forecast in the picture, at most


def worst(collection: Collection, deciles: list[np.ndarray]) -> list[dict]:
    """Losses of the series whose loss is farthest above the naive one's."""
    rows = []
    naive = seasonal_naive(collection)
    for number, (y, truth) in enumerate(zip(collection.train, collection.test, strict=True)):
        unit = (np.nanmean(np.abs(y)) or 1.0) * (~np.isnan(truth)).sum()
        ours, usual = (pinball(truth, found[number]) / unit for found in (deciles, naive))
        rows.append(
            {"set": collection.name, "series": number, "values": len(y), "loss": ours, "naive": usual}
        )
    return sorted(rows, key=lambda row: row["naive"] - row["loss"])[:EACH]


def plot(panels: list[tuple[str, np.ndarray, np.ndarray, np.ndarray]], path: Path) -> None:
    """Draw history, what followed, median and central 80 %."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(
        len(panels) // EACH, EACH, figsize=(8, 1.7 * len(panels) // EACH), squeeze=False
    )
    for axis, (title, y, truth, found) in zip(axes.flat, panels, strict=True):
        past = y[-SHOWN:]
        ahead = np.arange(len(truth))
        axis.plot(np.arange(-len(past), 0), past, color="0.35", lw=1)
        axis.plot(ahead, truth, "--", color="0.2", lw=1)
        axis.fill_between(ahead, found[:, 0], found[:, -1], color="C0", alpha=0.25, lw=0)
        axis.plot(ahead, found[:, found.shape[1] // 2], color="C0", lw=1.5)
        axis.set_title(title, fontsize=8)
        axis.tick_params(labelsize=7)
        axis.xaxis.get_major_locator().set_params(integer=True)
        axis.spines[["top", "right"]].set_visible(False)
    steps = "steps from the first one that is forecast (months, quarters, years or days)"
    figure.supxlabel(steps, fontsize=9)
    figure.supylabel("value; black: past, dashed: what happened, blue: median and central 80 %", fontsize=9)
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    plt.close(figure)


def main(argv: list[str] | None = None) -> None:
    """Forecast all collections and show the worst series of each."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", type=Path, required=True, help="folder of collections")
    parser.add_argument("--out", type=Path, required=True, metavar="FILE.json")
    parser.add_argument("--plot", type=Path, metavar="FILE.png")
    args = parser.parse_args(argv)
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    rows, panels = [], []
    for path in sorted(args.data.glob("*.jsonl.gz")):
        collection = Collection.read(path, None, 0)
        deciles = of_sktime(MODEL, panel=True)(collection)
        for row in worst(collection, deciles):
            rows.append({key: round(v, 3) if isinstance(v, float) else v for key, v in row.items()})
            print(json.dumps(rows[-1]), flush=True)
            k = row["series"]
            title = f"{NAMES.get(collection.name, collection.name)}, number {k}"
            panels.append((title, collection.train[k], collection.test[k], deciles[k]))
    args.out.write_text(json.dumps({"worst": rows, "model": MODEL}, indent=1) + "\n")
    if args.plot:
        plot(panels, args.plot)


if __name__ == "__main__":
    main()
