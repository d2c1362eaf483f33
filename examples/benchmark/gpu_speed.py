"""Training steps and forecasts on a GPU, on one core and on eight, for small and large networks.

Every forecaster of sktime is fitted to one hourly series of 10,000 values, with its default sizes and with a
wide network over long contexts. Seconds of training are those of a fit with many steps minus those of a fit
with one, so that the linear forecast and the first use of a device do not count. Forecasts are nine deciles
of 24 steps, or of 96 for large networks. Times are those of the wall: nothing else should be running. Run
from a checkout::

    python examples/benchmark/gpu_speed.py --devices cpu cuda --out docs/results/gpu_speed.json
    python examples/benchmark/gpu_speed.py --quick --devices cpu       # a check, in seconds
"""

from __future__ import annotations

import argparse
import platform
import sys
import time
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

from taylorformer_forecast import sktime as forecasters

sys.path.append(str(Path(__file__).parent / "arena"))
from run import write_json

SEED, SEASON, VALUES = 0, 24, 10_000
LEVELS = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9]
MODELS = ("Taylorformer", "LAM", "ContiFormer", "TNP", "UNN")
LARGE = {"d_model": 128, "n_heads": 8, "batch_size": 64, "context_length": 336}
SIZES: dict[str, tuple[dict[str, Any], int, int]] = {  # parameters, training steps, steps ahead
    "default": ({}, 60, 24),
    "large": (LARGE, 6, 96),
}


def series(n: int) -> pd.Series:
    """A season, a slow walk and noise."""
    rng, t = np.random.default_rng(SEED), np.arange(n)
    values = 10 + 3 * np.sin(2 * np.pi * t / SEASON) + rng.normal(size=n).cumsum() / n**0.5
    return pd.Series(values + 0.3 * rng.normal(size=n), pd.date_range("2000", periods=n, freq="h"))


def now(device: str) -> float:
    """Time of the wall, all submitted work included."""
    if device != "cpu":
        torch.cuda.synchronize(device)
    return time.perf_counter()


def measure(model: str, size: str, device: str, y: pd.Series) -> dict[str, float]:
    """Seconds of one training step and of a forecast, and GiB of the GPU where there is one."""
    parameters, steps, horizon = SIZES[size]
    parameters = parameters | ({"strategy": "train"} if model == "Taylorformer" else {})
    took = []
    if device != "cpu":
        torch.cuda.reset_peak_memory_stats(device)
    for n_steps in (1, 1, steps):  # the first one warms up
        forecaster = getattr(forecasters, f"{model}Forecaster")(
            random_state=SEED, verbose=False, device=device, max_steps=n_steps, **parameters
        )
        start = now(device)
        forecaster.fit(y, fh=range(1, horizon + 1))
        took.append(now(device) - start)
    start = now(device)
    forecaster.predict_quantiles(alpha=LEVELS)
    found = {
        "step_ms": round(1000 * (took[2] - took[1]) / (steps - 1), 2),
        "forecast_s": round(now(device) - start, 3),
    }
    if device != "cpu":
        found["gib"] = round(torch.cuda.max_memory_allocated(device) / 2**30, 2)
    return found


def main(argv: list[str] | None = None) -> None:
    """Measure every forecaster on every device and write the numbers."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--models", nargs="+", default=MODELS)
    parser.add_argument("--sizes", nargs="+", default=list(SIZES))
    parser.add_argument("--devices", nargs="+", default=["cpu", "cuda"])
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 8], help="of a CPU")
    parser.add_argument("--quick", action="store_true", help="a short series and one thread, as a check")
    parser.add_argument("--out", type=Path, metavar="FILE.json")
    args = parser.parse_args(argv)
    y, threads = series(400 if args.quick else VALUES), [1] if args.quick else args.threads
    book: dict[str, Any] = {
        "torch": torch.__version__,
        "python": platform.python_version(),
        "processor": platform.machine(),
        "gpu": torch.cuda.get_device_name() if torch.cuda.is_available() else None,
        "seed": SEED,
        "values": len(y),
        "rows": [],
    }
    for size, model, device in product(args.sizes, args.models, args.devices):
        for n in threads if device == "cpu" else [1]:
            torch.set_num_threads(n)
            row = {"model": model, "size": size, "device": device, "threads": n}
            row |= measure(model, size, device, y)
            print(row, flush=True)
            book["rows"].append(row)
            if args.out:
                write_json(book, args.out)


if __name__ == "__main__":
    main()
