"""Irregular times: carbon dioxide by the week, with the weeks that Mauna Loa really missed.

From 1958 to 1970 one week in twelve has no reading, and 18 in a row had none in 1964. The readings go in with
their dates, nothing is filled; the forecast of the next year is asked for at the dates at which readings
came, and at any other time of day. Rivals get a regular weekly series, its gaps filled by straight lines.

Run from a checkout, in less than a minute::

    python examples/irregular_times.py --output irregular_times.png
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
from statsmodels.datasets import co2
from statsmodels.tsa.holtwinters import ExponentialSmoothing

from taylorformer_forecast.sktime import TaylorformerForecaster

UNTIL, AHEAD = "1970-12-31", "1971-12-31"


def rivals(known: pd.Series, stamps: pd.DatetimeIndex) -> dict[str, np.ndarray]:
    """Forecasts from a weekly series whose gaps are filled by straight lines."""
    weekly = known.resample("W-SAT").mean().interpolate()
    weeks = pd.date_range(weekly.index[0], stamps[-1] + pd.Timedelta(weeks=1), freq="W-SAT")
    n = len(weeks) - len(weekly)
    smooth = ExponentialSmoothing(weekly.to_numpy(), trend="add", seasonal="add", seasonal_periods=52).fit()
    growth = (weekly.iloc[-1] - weekly.iloc[-53]) / 52
    naive = [weekly.iloc[-52 + k % 52] + 52 * growth * (1 + k // 52) for k in range(n)]
    x = weeks.as_unit("ns").asi8.astype(float)
    return {
        name: np.interp(stamps.as_unit("ns").asi8, x[-n:], values)
        for name, values in (("a year ago, and growth", naive), ("Holt-Winters", smooth.forecast(n)))
    }


def main() -> None:
    """Print the scores and save the picture."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    default = Path(__file__).parent / "output" / "irregular_times.png"
    parser.add_argument("--output", type=Path, default=default, help="where to save the picture")
    output = parser.parse_args().output

    start = time.perf_counter()
    weekly = co2.load_pandas().data["co2"].loc[:AHEAD]
    readings = weekly.dropna()
    known, truth = readings.loc[:UNTIL], readings.loc[UNTIL:]
    print(f"{len(known)} readings in {len(weekly.loc[:UNTIL])} weeks; the longest gap lasts", end=" ")
    print(f"{known.index.to_series().diff().max().days} days\n")

    forecaster = TaylorformerForecaster(max_steps=200, random_state=0).fit(known, fh=truth.index)
    bands = forecaster.predict_quantiles(fh=truth.index, alpha=[0.1, 0.5, 0.9])
    bands.columns = ["low", "median", "high"]
    mean = forecaster.predict(fh=truth.index)
    noon = forecaster.predict(fh=pd.DatetimeIndex(["1971-03-02 12:00", "1971-03-03 18:30"]))

    rows = {"Taylorformer, irregular dates": mean.to_numpy()}
    with warnings.catch_warnings(record=True):  # kept back: statsmodels on its starting values
        rows |= rivals(known, truth.index)
    table = pd.DataFrame({name: {"MAE": np.abs(truth - values).mean()} for name, values in rows.items()}).T
    inside = ((truth >= bands["low"]) & (truth <= bands["high"])).mean()
    print("Errors at the dates of a year of readings, in parts per million (lower is better)\n")
    print(table.round(2).to_string(), "\n")
    print(f"The 80 % band covers {inside:.0%} of them. Between readings, at any time of day:\n")
    print(noon.round(2).to_string(), "\n")

    figure, axes = plt.subplots(figsize=(9, 4.2), layout="constrained")
    blue, dark = "#3b6fb6", "#1c2b3a"
    axes.fill_between(
        truth.index, bands["low"], bands["high"], color=blue, alpha=0.25, lw=0, label="80 % band"
    )
    axes.plot(truth.index, mean, color=blue, lw=1.8, label="forecast (mean)")
    axes.plot(known.index, known, "o", color=dark, ms=2, label="readings")
    axes.plot(truth.index, truth, "o", color="#c8553d", ms=2, label="readings to come")
    gaps = known.index.to_series().diff() > pd.Timedelta(days=20)
    for stamp in known.index[gaps]:
        before = known.index[known.index.get_loc(stamp) - 1]
        axes.axvspan(before, stamp, color="#d9c9a3", alpha=0.5, lw=0, label="_")
    axes.set_title("Carbon dioxide at Mauna Loa: gaps of more than 20 days are shaded", loc="left")
    axes.set_ylabel("parts per million")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, loc="upper left", fontsize=9)
    output.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(output, dpi=130)
    print(f"Saved {output} after {time.perf_counter() - start:.0f} s in all.")


if __name__ == "__main__":
    main()
