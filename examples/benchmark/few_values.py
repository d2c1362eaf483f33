"""Forecasts of new series: from the last three to eight values of the training part of every series.

Six steps ahead, as far as the test part goes. Scores are those of ``short_series.py``, relative to the last
value, which the best of simple forecasts is compared with: the mean of all values::

    python examples/benchmark/few_values.py --data FOLDER --out docs/results/short_series_few.json

The page is made by ``short_series_report.py``.
"""

from __future__ import annotations

import argparse
import json
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from short_series import Collection, Forecaster, about, of_sktime, score, seasonal_naive
from worst_short_series import MODEL

SETS = ("m3_yearly", "m3_quarterly", "m3_monthly")
VALUES, STEPS = (3, 4, 6, 8), 6


def mean_so_far(collection: Collection) -> list[np.ndarray]:
    """Mean of all values, in every decile and step."""
    return [np.full((collection.horizon, 9), np.nanmean(y)) for y in collection.train]


ROWS: dict[str, Forecaster] = {
    MODEL + " (panel)": of_sktime(MODEL, panel=True),
    "mean": mean_so_far,
    "naive": seasonal_naive,
}


def last_values(collection: Collection, n: int) -> Collection:
    """The last values of every training part, forecast a few steps ahead; no season is told."""
    train, test = [y[-n:] for y in collection.train], [y[:STEPS] for y in collection.test]
    return replace(collection, season=1, horizon=min(collection.horizon, STEPS), train=train, test=test)


def main(argv: list[str] | None = None) -> None:
    """Score every row on every collection."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", type=Path, required=True, help="folder of collections")
    parser.add_argument("--out", type=Path, required=True, metavar="FILE.json")
    args = parser.parse_args(argv)
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    found = []
    for name in SETS:
        whole = Collection.read(args.data / f"{name}.jsonl.gz", None, 0)
        for values in VALUES:
            part = last_values(whole, values)
            for row, run in ROWS.items():
                found.append({"row": row, "values": values, **score(part, run)})
                print(json.dumps(found[-1]), flush=True)
    args.out.write_text(json.dumps({"few": found, **about(0)}, indent=1) + "\n")


if __name__ == "__main__":
    main()
