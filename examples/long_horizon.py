"""Four days of minutes from four days of minutes: a long context and a long horizon in little memory.

A synthetic load with daily and weekly cycles and noise, 50,000 minutes, is forecast 5,760 steps ahead from a
context of 5,760 steps by :class:`LAMForecaster`, in one call. Prints the time of training and of a forecast,
the weighted quantile loss beside that of repeating the last day, and the peak memory of the process.

Run from a checkout::

    python examples/long_horizon.py          # minutes on a laptop
    python examples/long_horizon.py --quick  # the same sizes, a few optimiser steps
"""

from __future__ import annotations

import argparse
import resource
import sys
import time
import warnings

import numpy as np
import pandas as pd

from taylorformer_forecast.sktime import LAMForecaster

POINTS, LENGTH, DAY = 50_000, 5_760, 1_440
LEVELS = np.arange(1, 10) / 10


def load(n: int, seed: int = 0) -> pd.Series:
    """Electric load of a building: a cycle of the day, quieter at weekends, and noise with a memory."""
    rng = np.random.default_rng(seed)
    minute = np.arange(n)
    day = 2 * np.pi * minute / DAY
    weekend = (minute // DAY) % 7 >= 5
    shape = 10 - 3 * np.cos(day) - np.cos(2 * day - 1)
    noise = rng.normal(size=n)
    for i in range(1, n):
        noise[i] += 0.95 * noise[i - 1]
    values = shape * np.where(weekend, 0.7, 1.0) + 0.1 * noise
    return pd.Series(values, pd.date_range("2024-01-01", periods=n, freq="min"), name="load")


def quantile_loss(truth: np.ndarray, quantiles: np.ndarray) -> float:
    """Weighted quantile loss over nine deciles; ``quantiles`` has shape (steps, 9) or (steps, 1)."""
    miss = truth[:, None] - quantiles
    return float(2 * np.maximum(LEVELS * miss, (LEVELS - 1) * miss).mean(1).sum() / np.abs(truth).sum())


def peak_memory() -> float:
    """Largest resident memory of this process so far, in GiB."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (2**30 if sys.platform == "darwin" else 2**20)


def main() -> None:
    """Fit, forecast, print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="five optimiser steps instead of 200")
    arguments = parser.parse_args()
    warnings.filterwarnings("ignore")

    y = load(POINTS)
    past, truth = y.iloc[:-LENGTH], y.iloc[-LENGTH:].to_numpy()
    forecaster = LAMForecaster(
        context_length=LENGTH,
        horizon=LENGTH,
        d_model=32,
        batch_size=4,
        max_steps=5 if arguments.quick else 200,
        random_state=0,
    )
    start = time.perf_counter()
    forecaster.fit(past)
    print(f"training     {time.perf_counter() - start:6.1f} s, {forecaster.training_['steps']} steps")
    start = time.perf_counter()
    quantiles = forecaster.predict_quantiles(fh=range(1, LENGTH + 1), alpha=LEVELS.tolist()).to_numpy()
    print(f"forecast     {time.perf_counter() - start:6.1f} s, {LENGTH} steps ahead")
    last_day = np.tile(past.to_numpy()[-DAY:], LENGTH // DAY)[:, None]
    ours, naive = quantile_loss(truth, quantiles), quantile_loss(truth, last_day)
    print(f"WQL          {ours:6.4f}, repeating the last day {naive:6.4f}")
    inside = np.mean((truth >= quantiles[:, 0]) & (truth <= quantiles[:, -1]))
    print(f"coverage     {inside:6.2f} of the central 80 % interval")
    print(f"peak memory  {peak_memory():6.2f} GiB")


if __name__ == "__main__":
    main()
