"""Panels: how fast a network is pretrained on 1,000 series, in how much memory, and how soon it forecasts.

A panel of random seasonal series is given to ``pretrain``. A callback notes the time and the peak memory of
the process after every fiftieth step: the rate is that of the second half of the steps, and the profile is
flat if the peak no longer grows there. Everything that is not a step (looking at the panel, cutting windows
into arrays, loading Lightning) is the preparation. Afterwards series that the panel did not have are fitted
and forecast, each with its quantiles for 12 steps, and the median time of one is taken.

One thread is used, and times are its processor times, so that other work on the machine disturbs them little.
Ratios mean more than seconds. Run from a checkout::

    python examples/benchmark/panel_speed.py --out panel_speed.json
"""

from __future__ import annotations

import argparse
import json
import platform
import resource
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytorch_lightning as pl
import sktime
import torch

from taylorformer_forecast.sktime import LAMForecaster, TaylorformerForecaster

SEED, EVERY, FH = 0, 50, range(1, 13)


def peak_mib() -> float:
    """Largest memory that the process has held so far, in MiB."""
    kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return kib / (2**20 if sys.platform == "darwin" else 2**10)


class Profile(pl.Callback):
    """Note steps, seconds and peak memory while training."""

    def __init__(self) -> None:
        self.rows: list[tuple[int, float, float]] = []

    def on_train_batch_end(self, trainer: pl.Trainer, *args: object) -> None:
        """Take note after every fiftieth step."""
        if trainer.global_step % EVERY == 0:
            self.rows.append((trainer.global_step, time.process_time(), peak_mib()))


def make_panel(n_series: int, length: int, seed: int) -> pd.DataFrame:
    """Monthly series with a season and a trend of their own, at levels from 1 to 1,000."""
    rng, t = np.random.default_rng(seed), np.arange(length)
    level = 10 ** rng.uniform(0, 3, (n_series, 1))
    season = rng.uniform(0.1, 0.5, (n_series, 1)) * np.sin(2 * np.pi * (t / 12 + rng.random((n_series, 1))))
    trend = rng.normal(0, 0.3, (n_series, 1)) * t / length
    values = level * (1 + season + trend + 0.05 * rng.normal(size=(n_series, length)))
    months = pd.period_range("2000-01", periods=length, freq="M")
    index = pd.MultiIndex.from_product([range(n_series), months], names=["series", "month"])
    return pd.DataFrame({"y": values.ravel()}, index)


def measure(name: str, forecaster: type, panel: pd.DataFrame, others: pd.DataFrame, steps: int) -> dict:
    """Pretrain and forecast with one class."""
    profile = Profile()
    pretrained = forecaster(
        max_steps=steps,
        num_epochs=None,
        random_state=SEED,
        device="cpu",
        trainer_kwargs={"callbacks": [profile]},
    )
    start = time.process_time()
    pretrained.pretrain(panel, fh=FH)
    total = time.process_time() - start
    half = len(profile.rows) // 2
    (first, since, before), (last, until, after) = profile.rows[half - 1], profile.rows[-1]
    rate = (last - first) * pretrained.batch_size / (until - since)
    targets = pretrained.pretrained_.horizon
    seconds = []
    for number in others.index.unique(0):
        start = time.process_time()
        pretrained.fit(others.loc[number]).predict_quantiles(fh=FH, alpha=[0.1, 0.5, 0.9])
        seconds.append(time.process_time() - start)
    return {
        "forecaster": name,
        "parameters": sum(p.numel() for p in pretrained.pretrained_.network.parameters()),
        "context": pretrained.pretrained_.context_length,
        "targets": targets,
        "windows_per_second": rate,
        "targets_per_second": rate * targets,
        "pretrain_s": total,
        "preparation_s": total - steps * (until - since) / (last - first),
        "panels_trained_on": steps * pretrained.batch_size * targets / len(panel),
        "peak_mib": [round(mib, 1) for _, _, mib in profile.rows],
        "peak_growth_over_second_half": after / before - 1,
        "new_series_s": float(np.median(seconds)),
        "pretrain_by_new_series": total / float(np.median(seconds)),
    }


def main() -> None:
    """Measure both forecasters, print a table, write the numbers."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--series", type=int, default=1000, help="series of the panel")
    parser.add_argument("--length", type=int, default=200, help="points of each")
    parser.add_argument("--steps", type=int, default=400, help="optimiser steps")
    parser.add_argument("--out", type=Path, metavar="FILE.json", help="where to write the numbers")
    args = parser.parse_args()
    torch.set_num_threads(1)
    panel, others = make_panel(args.series, args.length, SEED), make_panel(7, 60, SEED + 1)
    rows = []
    for name, forecaster in (("Taylorformer", TaylorformerForecaster), ("LAM", LAMForecaster)):
        rows.append(row := measure(name, forecaster, panel, others, args.steps))
        print(f"{name}: {args.series} series of {args.length} points, {args.steps} steps of 32 windows")
        print(f"  {row['windows_per_second']:.0f} windows/s, {row['targets_per_second']:.0f} targets/s")
        print(f"  {row['pretrain_s']:.1f} s in all, {row['preparation_s']:.1f} s before the steps")
        print(f"  peak memory {row['peak_mib'][0]} MiB after {EVERY} steps, {row['peak_mib'][-1]} at the end")
        print(f"  a new series is fitted and forecast in {row['new_series_s']:.2f} s", flush=True)
    if args.out is not None:
        setting = {
            "torch": torch.__version__,
            "sktime": sktime.__version__,
            "pandas": pd.__version__,
            "processor": platform.processor() or platform.machine(),
            "threads": torch.get_num_threads(),
            "seed": SEED,
            "series": args.series,
            "length": args.length,
            "steps": args.steps,
        }
        args.out.write_text(json.dumps({**setting, "rows": rows}, indent=2) + "\n")


if __name__ == "__main__":
    main()
