"""Forecast a panel of many short series in one call: seconds of one core, and peak memory.

OMP_NUM_THREADS=1 python examples/benchmark/many_series.py --out docs/results/many_series.json

``--host darts`` goes through darts, into docs/results/many_series_darts.json.
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

LEVELS = [k / 10 for k in range(1, 10)]


def values(n_series: int, length: int) -> np.ndarray:
    """Monthly random walks with a season, (n_series, length)."""
    months, rng = np.arange(length), np.random.default_rng(0)
    return 50 + rng.normal(size=(n_series, length)).cumsum(1) + 5 * np.sin(months / 6 * np.pi)


def through_sktime(y: np.ndarray, horizon: int) -> tuple[list[float], str, int]:
    """Processor times of the start, the fit and nine quantiles; the strategy; numbers of steps forecast."""
    from taylorformer_forecast.sktime import TaylorformerForecaster

    stamps = pd.period_range("2000-01", periods=y.shape[1], freq="M")
    rows = pd.MultiIndex.from_product([range(len(y)), stamps], names=["series", "month"])
    frame = pd.DataFrame({"y": y.ravel()}, index=rows)
    marks = [time.process_time()]
    forecaster = TaylorformerForecaster(random_state=0).fit(frame, fh=range(1, horizon + 1))
    marks.append(time.process_time())
    found = forecaster.predict_quantiles(alpha=LEVELS)
    marks.append(time.process_time())
    return marks, forecaster.strategy_, len(found)


def through_darts(y: np.ndarray, horizon: int) -> tuple[list[float], str, int]:
    """The same, for a list of series and 100 sample paths of each."""
    from darts import TimeSeries

    from taylorformer_forecast.darts import TaylorformerModel

    stamps = pd.date_range("2000-01", periods=y.shape[1], freq="MS")
    series = [TimeSeries.from_times_and_values(stamps, one.astype("float32")) for one in y]
    quiet = {"accelerator": "cpu", "enable_progress_bar": False, "logger": False}
    marks = [time.process_time()]
    model = TaylorformerModel(36, horizon, batch_size=256, random_state=0, pl_trainer_kwargs=quiet)
    model.fit(series)
    marks.append(time.process_time())
    found = [one.quantile(LEVELS) for one in model.predict(horizon, series=series, num_samples=100)]
    marks.append(time.process_time())
    return marks, model.summary().strategy, sum(map(len, found))


HOSTS = {"sktime": through_sktime, "darts": through_darts}


def main(argv: list[str] | None = None) -> None:
    """Fit and predict nine quantiles; print and write what they took."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--host", choices=HOSTS, default="sktime")
    parser.add_argument("--series", type=int, default=10_000)
    parser.add_argument("--length", type=int, default=100)
    parser.add_argument("--horizon", type=int, default=12)
    parser.add_argument("--out", type=Path, metavar="FILE.json")
    args = parser.parse_args(argv)
    torch.set_num_threads(1)
    marks, strategy, n_rows = HOSTS[args.host](values(args.series, args.length), args.horizon)
    book = {
        "host": args.host,
        "series": args.series,
        "length": args.length,
        "horizon": args.horizon,
        "strategy": strategy,
        "rows": n_rows,
        "seconds_fit": round(marks[1] - marks[0], 2),
        "seconds_predict": round(marks[2] - marks[1], 2),
        "peak_gib": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20, 2),
        "torch": torch.__version__,
        "machine": platform.machine(),
    }
    print(json.dumps(book))
    if args.out:
        args.out.write_text(json.dumps(book, indent=1) + "\n")


if __name__ == "__main__":
    main()
