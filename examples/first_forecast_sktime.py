"""A first forecast with sktime: airline passengers, with intervals, joint paths and a fair comparison.

Fits :class:`TaylorformerForecaster` with its defaults, with which statistical forecasts are made of so
short a series, backtests it beside networks that are trained on the series and the seasonal naive forecast on
the last three years, prints the scores and saves a fan chart of the last year.

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
import pandas as pd
from sktime.datasets import load_airline
from sktime.forecasting.naive import NaiveForecaster
from sktime.performance_metrics.forecasting import MeanAbsoluteScaledError
from sktime.performance_metrics.forecasting.probabilistic import CRPS, EmpiricalCoverage
from sktime.split import ExpandingWindowSplitter

from taylorformer_forecast.plot import plot_forecast
from taylorformer_forecast.sktime import TaylorformerForecaster

HOLD_OUT = 12  # months in the picture
PATHS = 10


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
    forecaster = TaylorformerForecaster(random_state=0).fit(past, fh=range(1, HOLD_OUT + 1))
    figure = plot_forecast(past, forecaster, paths=PATHS, truth=truth, history=60)
    axes = figure.axes[0]
    axes.set_ylabel("thousands per month")
    plt.setp(axes.lines[1 : 1 + PATHS], color="0.35", lw=0.4)  # after the history; the mean stays in front
    legend = axes.get_legend()
    plt.setp(legend.get_lines()[1], color="0.35", lw=0.4)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
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
    print("Three origins are few: on 5,000 short series the defaults are ahead of other models, and on")
    print("pieces of 400 values ahead of trained networks (docs/short_series.md, docs/strategies.md).\n")
    fan_chart(y, output)
    print(f"Saved {output} after {time.perf_counter() - start:.0f} s in all.")


if __name__ == "__main__":
    main()
