"""What if the target is met: forecasts of airline passengers, free and conditional on a value of the future.

A forecaster trained with ``order="random"`` is conditioned on two targets, one for the next summer and one
for the spring after it; the forecast bends towards them, and is narrower in the months around them. The
forecaster itself stays as it is.

Run from a checkout, in less than a minute::

    python examples/what_if.py --output what_if.png
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import matplotlib

matplotlib.use("Agg")  # a file is written; no screen is needed
import matplotlib.pyplot as plt
import pandas as pd
from sktime.datasets import load_airline

from taylorformer_forecast.sktime import TaylorformerForecaster

FH = range(1, 19)
TARGET = pd.Series([760.0, 630.0], pd.PeriodIndex(["1961-07", "1962-04"], freq="M"), name="target")


def draw(axes: plt.Axes, forecaster: TaylorformerForecaster, color: str, label: str) -> pd.DataFrame:
    """Mean, 80 % band and five joint paths; returns the table of the first two."""
    mean = forecaster.predict()
    band = forecaster.predict_interval(coverage=0.8).set_axis(["low", "high"], axis=1)
    paths = forecaster.predict_proba(marginal=False).sample(5)
    x = mean.index.to_timestamp()
    axes.fill_between(x, band["low"], band["high"], color=color, alpha=0.22, lw=0)
    for number in range(5):
        axes.plot(x, paths.loc[number].iloc[:, 0], color=color, lw=0.6, alpha=0.6)
    axes.plot(x, mean, color=color, lw=2, label=label)
    return band.assign(mean=mean)


def main() -> None:
    """Print both forecasts and save the picture."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    default = Path(__file__).parent / "output" / "what_if.png"
    parser.add_argument("--output", type=Path, default=default, help="where to save the picture")
    output = parser.parse_args().output

    y, start = load_airline(), time.perf_counter()
    forecaster = TaylorformerForecaster(order="random", num_epochs=None, random_state=0).fit(y, fh=FH)
    conditional = forecaster.condition(TARGET)

    figure, axes = plt.subplots(figsize=(9, 4.2), layout="constrained")
    axes.plot(y.index[-48:].to_timestamp(), y.iloc[-48:], color="#1c2b3a", lw=1.4, label="history")
    free = draw(axes, forecaster, "#3b6fb6", "free forecast")
    bound = draw(axes, conditional, "#c8553d", "if the targets are met")
    axes.plot(TARGET.index.to_timestamp(), TARGET, "o", color="#7a1f0c", ms=6, zorder=5, label="targets")
    axes.set_title("Airline passengers: what if?", loc="left")
    axes.set_ylabel("thousands per month")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, loc="upper left", ncols=2, fontsize=9)
    output.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(output, dpi=130)

    table = pd.DataFrame(
        {
            ("mean", "free"): free["mean"],
            ("mean", "conditional"): bound["mean"],
            ("width of 80 % band", "free"): free["high"] - free["low"],
            ("width of 80 % band", "conditional"): bound["high"] - bound["low"],
        }
    )
    print(f"Forecasts of {y.name.lower()}, free and with targets in {', '.join(map(str, TARGET.index))}\n")
    print(table.round(0).astype(int).to_string(), "\n")
    print(f"Saved {output} after {time.perf_counter() - start:.0f} s in all.")


if __name__ == "__main__":
    main()
