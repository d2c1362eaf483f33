"""Forecasts from one, two and three values after the first jump of every series.

Whether a value far from those before is an outlier or the first of a new level is known later only. A jump is
a value that lies more than eight mean absolute steps (of at most twenty before it) outside the range of the
last value and the one a season before; eight values precede it. Every series of a collection that has one is
forecast from there, by what it is then. Scores are those of ``short_series.py``; what lies beyond the end of
a series does not count::

    python examples/benchmark/after_jumps.py --data FOLDER --out docs/results/short_series_jumps.json

The page is made by ``short_series_report.py``.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from short_series import Collection, Forecaster, about, of_sktime, of_statsforecast, score, seasonal_naive
from worst_short_series import MODEL

SETS = ("m3_yearly", "m3_quarterly", "m3_monthly")
JUMP, STEPS, BEFORE = 8.0, 20, 8
ROWS: dict[str, Forecaster] = {
    MODEL + " (panel)": of_sktime(MODEL, panel=True),
    "naive": seasonal_naive,
    "ets": of_statsforecast("AutoETS"),
    "theta": of_statsforecast("Theta"),
}


def first_jump(y: np.ndarray, season: int) -> int | None:
    """Where the first jump is; None if there is none."""
    for t in range(BEFORE, len(y)):
        near = y[[t - 1, t - season if t >= season else t - 1]]
        away = max(y[t] - near.max(), near.min() - y[t])
        step = np.abs(np.diff(y[max(t - STEPS - 1, 0) : t])).mean()
        if 0 < JUMP * step < away:
            return t
    return None


def after_jumps(collection: Collection, values: int) -> Collection:
    """The series that end so many values after their first jump, and what follows."""
    starts, train, test = [], [], []
    for start, *parts in zip(collection.starts, collection.train, collection.test, strict=True):
        y = np.concatenate(parts)
        jump = None if np.isnan(y).any() else first_jump(y, collection.season)
        if jump is None or jump + values >= len(y):
            continue
        ahead = y[jump + values :][: collection.horizon]
        starts.append(start)
        train.append(y[: jump + values])
        test.append(np.pad(ahead, (0, collection.horizon - len(ahead)), constant_values=np.nan))
    return replace(collection, starts=starts, train=train, test=test)


def score_cuts(
    name: str,
    sets: Sequence[str],
    cuts: Sequence[int],
    cut: Callable[[Collection, int], Collection],
    rows: Mapping[str, Forecaster],
    description: str,
    argv: list[str] | None,
) -> None:
    """Score every row on every collection, cut after each number of values, and write them by their name."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--data", type=Path, required=True, help="folder of collections")
    parser.add_argument("--out", type=Path, required=True, metavar="FILE.json")
    args = parser.parse_args(argv)
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    found = []
    for one in sets:
        whole = Collection.read(args.data / f"{one}.jsonl.gz", None, 0)
        for values in cuts:
            part = cut(whole, values)
            for row, run in rows.items():
                found.append({"row": row, "values": values, **score(part, run)})
                print(json.dumps(found[-1]), flush=True)
    args.out.write_text(json.dumps({name: found, **about(0)}, indent=1) + "\n")


def main(argv: list[str] | None = None) -> None:
    """Score every row on every collection."""
    score_cuts("jumps", SETS, (1, 2, 3), after_jumps, ROWS, __doc__.partition("\n")[0], argv)


if __name__ == "__main__":
    main()
