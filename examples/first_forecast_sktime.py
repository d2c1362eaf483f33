"""A first forecast with sktime: airline passengers, with intervals, joint paths and a fair comparison.

Fits :class:`TaylorformerForecaster` with its defaults, with which statistical forecasts are made of so
short a series, backtests it beside networks that are trained on the series and the seasonal naive forecast on
the last three years, prints the scores and saves a fan chart of the last two years.

Run from a checkout with ``make demo``, or::

    python examples/first_forecast_sktime.py --output fan.png
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path

import matplotlib

matplotlib.use("Agg")  # a file is written; no screen is needed
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sktime.datasets import load_airline
from sktime.forecasting.naive import NaiveForecaster
from sktime.performance_metrics.forecasting import MeanAbsoluteScaledError
from sktime.performance_metrics.forecasting.probabilistic import CRPS, EmpiricalCoverage
from sktime.split import ExpandingWindowSplitter

from taylorformer_forecast.sktime import TaylorformerForecaster

HOLD_OUT = 24  # months in the picture


def backtest(y: pd.Series) -> pd.DataFrame:
    """Refit before each of the last three years, forecast it, and average the scores."""
    fh = list(range(1, 13))
    folds = ExpandingWindowSplitter(initial_window=len(y) - 36, step_length=12, fh=fh)
    crps, mase, coverage = CRPS(), MeanAbsoluteScaledError(sp=12), EmpiricalCoverage(coverage=0.8)
    models = {
        "Taylorformer": TaylorformerForecaster(random_state=0),
        "Taylorformer, trained": TaylorformerForecaster(strategy="train", random_state=0),
        "seasonal naive": NaiveForecaster("last", sp=12),
    }
    rows = []
    for name, model in models.items():
        for past, truth in folds.split_series(y):
            fitted = model.clone().fit(past, fh=fh)
            scores = {
                "model": name,
                "CRPS": crps(truth, fitted.predict_proba()),
                "MASE": mase(truth, fitted.predict(), y_train=past),
                "coverage of 80 % interval": coverage(truth, fitted.predict_interval(coverage=0.8)),
            }
            rows.append(scores)
    return pd.DataFrame(rows).groupby("model", sort=False).mean().rename_axis(None)


def fan_chart(y: pd.Series, path: Path) -> None:
    """Draw history, 50 and 90 % bands, ten joint paths and the truth that was held out."""
    past, truth = y.iloc[:-HOLD_OUT], y.iloc[-HOLD_OUT:]
    forecaster = TaylorformerForecaster(random_state=0).fit(past)
    fh = np.arange(1, HOLD_OUT + 1)
    mean = forecaster.predict(fh)
    bands = forecaster.predict_interval(fh, coverage=[0.5, 0.9])[y.name]
    paths = forecaster.predict_proba(fh, marginal=False).sample(10)

    blue, dark = "#3b6fb6", "#1c2b3a"
    figure, axes = plt.subplots(figsize=(9, 4.2), layout="constrained")
    history = past.iloc[-60:]
    axes.plot(history.index.to_timestamp(), history, color=dark, lw=1.4, label="history")
    x = mean.index.to_timestamp()
    for coverage, alpha in ((0.9, 0.18), (0.5, 0.35)):
        low, high = bands[coverage]["lower"], bands[coverage]["upper"]
        axes.fill_between(x, low, high, color=blue, alpha=alpha, lw=0, label=f"{coverage:.0%} interval")
    for number in range(10):
        label = "joint sample paths" if number == 0 else None
        axes.plot(x, paths.loc[number].iloc[:, 0], color=blue, lw=0.7, alpha=0.55, label=label)
    axes.plot(x, mean, color=blue, lw=2, label="mean forecast")
    axes.plot(x, truth, color=dark, lw=1.4, ls="--", label="held-out truth")
    axes.axvline(x[0], color="grey", lw=0.8, ls=":")
    axes.set_title("Airline passengers, two years ahead", loc="left")
    axes.set_ylabel("thousands per month")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, loc="upper left", ncols=2, fontsize=9)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130)
    plt.close(figure)


def main() -> None:
    """Print the scores and save the picture."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    default = Path(__file__).parent / "output" / "first_forecast_sktime.png"
    parser.add_argument("--output", type=Path, default=default, help="where to save the picture")
    output = parser.parse_args().output

    y = load_airline()
    start = time.perf_counter()
    print("Three forecasts of one year each, refitted every year (means; CRPS and MASE: lower is better)\n")
    # Kept back: sktime announces a change of its defaults whenever a naive forecaster is made.
    with warnings.catch_warnings(record=True):
        scores = backtest(y)
    print(scores.round(3).to_string(), "\n")
    fan_chart(y, output)
    print(f"Saved {output} after {time.perf_counter() - start:.0f} s in all.")


if __name__ == "__main__":
    main()
