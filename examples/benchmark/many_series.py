"""Forecast a panel of many short series in one call: seconds of one core, and peak memory.

OMP_NUM_THREADS=1 python examples/benchmark/many_series.py --out docs/results/many_series.json
"""

from __future__ import annotations

import argparse
import json
import platform
import resource
import time
from pathlib import Path

import numpy as np
import pandas as pd
import torch

from taylorformer_forecast.sktime import TaylorformerForecaster


def panel(n_series: int, length: int) -> pd.DataFrame:
    """Monthly random walks with a season."""
    months, rng = np.arange(length), np.random.default_rng(0)
    y = 50 + rng.normal(size=(n_series, length)).cumsum(1) + 5 * np.sin(months / 6 * np.pi)
    stamps = pd.period_range("2000-01", periods=length, freq="M")
    rows = pd.MultiIndex.from_product([range(n_series), stamps], names=["series", "month"])
    return pd.DataFrame({"y": y.ravel()}, index=rows)


def main(argv: list[str] | None = None) -> None:
    """Fit and predict nine quantiles; print and write what they took."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--series", type=int, default=10_000)
    parser.add_argument("--length", type=int, default=100)
    parser.add_argument("--horizon", type=int, default=12)
    parser.add_argument("--out", type=Path, metavar="FILE.json")
    args = parser.parse_args(argv)
    torch.set_num_threads(1)
    y = panel(args.series, args.length)
    start = time.process_time()
    forecaster = TaylorformerForecaster(random_state=0).fit(y, fh=range(1, args.horizon + 1))
    fitted = time.process_time()
    found = forecaster.predict_quantiles(alpha=[k / 10 for k in range(1, 10)])
    book = {
        "series": args.series,
        "length": args.length,
        "horizon": args.horizon,
        "strategy": forecaster.strategy_,
        "rows": len(found),
        "seconds_fit": round(fitted - start, 2),
        "seconds_predict": round(time.process_time() - fitted, 2),
        "peak_gib": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20, 2),
        "torch": torch.__version__,
        "machine": platform.machine(),
    }
    print(json.dumps(book))
    if args.out:
        args.out.write_text(json.dumps(book, indent=1) + "\n")


if __name__ == "__main__":
    main()
