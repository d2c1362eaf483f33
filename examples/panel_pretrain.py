"""Pretraining: a network learns from forty series, and forecasts others at once.

Demand by the hour, drawn at random: every series has a level, two peaks of the day, a weekend that is more or
less quiet, and noise. One network is pretrained on four weeks of forty of them. Ten others, of three days
only, are then forecast for a day without any training. Rows of the table: "pretrained" is this network,
"defaults" are statistics corrected by a network of the package, "trained on each" are networks of three days,
and the day before. Three days say little of weekends: the panel does.

Run from a checkout, in less than a minute::

    python examples/panel_pretrain.py --output panel_pretrain.png
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import matplotlib

matplotlib.use("Agg")  # a file is written; no screen is needed
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from taylorformer_forecast.sktime import TaylorformerForecaster

FH, DAYS, KNOWN = range(1, 25), 28, 72
BLUE, RED, DARK = "#3b6fb6", "#c8553d", "#1c2b3a"


def make_panel(n_series: int, seed: int) -> pd.DataFrame:
    """Draw series at levels from 10 to 10,000."""
    rng = np.random.default_rng(seed)
    hours = pd.date_range("2024-01-01", periods=24 * DAYS, freq="h")
    day, weekend = hours.hour.to_numpy() / 24, (hours.dayofweek >= 5).astype(float)
    parts = {}
    for number in range(n_series):
        morning, evening = rng.uniform(0.2, 1, 2)
        rhythm = morning * np.exp(-60 * (day - 0.33) ** 2) + evening * np.exp(-40 * (day - 0.8) ** 2)
        noise = 0.05 * rng.normal(size=len(hours))
        for i in range(1, len(hours)):
            noise[i] += 0.8 * noise[i - 1]
        demand = 10 ** rng.uniform(1, 4) * (1 + rhythm * (1 - rng.uniform(0.3, 0.7) * weekend) + noise)
        parts[f"series {number}"] = pd.DataFrame({"demand": demand}, hours)
    return pd.concat(parts, names=["series", "hour"])


def main() -> None:
    """Print the scores and save the picture."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    default = Path(__file__).parent / "output" / "panel_pretrain.png"
    parser.add_argument("--output", type=Path, default=default, help="where to save the picture")
    output = parser.parse_args().output

    start = time.perf_counter()
    pretrained = TaylorformerForecaster(context_length=KNOWN, max_steps=250, batch_size=32, random_state=0)
    pretrained.pretrain(make_panel(40, seed=0), fh=FH)
    print(f"Pretrained on 40 series of {24 * DAYS} hours in {time.perf_counter() - start:.0f} s\n")

    rows, others = [], make_panel(10, seed=1)
    figure, axes = plt.subplots(2, 2, figsize=(10, 5.4), layout="constrained")
    for number, name in enumerate(others.index.unique(0)):
        y = others.loc[name, "demand"].asfreq("h")
        now = 24 * (5 + number)  # on all days of the week
        known, truth = y.iloc[now - KNOWN : now], y.iloc[now : now + len(FH)]
        step = known.diff().abs().mean()
        naive = np.abs(truth.to_numpy() - known.iloc[-24:].to_numpy()).mean() / step
        rows.append(("the day before", naive, np.nan, 0.0))
        methods = {
            "pretrained": pretrained,
            "defaults": TaylorformerForecaster(random_state=0),
            "trained on each": TaylorformerForecaster(strategy="train", random_state=0),
        }
        for method, forecaster in methods.items():
            begin = time.perf_counter()
            mean = forecaster.fit(known, fh=FH).predict(fh=FH)
            band = forecaster.predict_interval(fh=FH, coverage=0.8).set_axis(["low", "high"], axis=1)
            seconds = time.perf_counter() - begin
            inside = ((truth >= band["low"]) & (truth <= band["high"])).mean()
            rows.append((method, np.abs(truth - mean).mean() / step, inside, seconds))
            if method == "pretrained" and number < 4:
                axis = axes.flat[number]
                axis.fill_between(mean.index, band["low"], band["high"], color=BLUE, alpha=0.25, lw=0)
                axis.plot(mean.index, mean, color=BLUE, lw=1.8, label="forecast, without training")
                axis.plot(known.index, known, color=DARK, lw=1.2, label="all that is known")
                axis.plot(truth.index, truth, color=RED, lw=1, label="what comes")
                axis.set_title(f"{name}, forecast of {truth.index[0]:%A}", loc="left", fontsize=10)
                axis.set_xticks(pd.date_range(known.index[0], periods=5), labels=[])
                axis.spines[["top", "right"]].set_visible(False)
    handles, labels = axes.flat[0].get_legend_handles_labels()
    figure.legend(handles, labels, frameon=False, fontsize=8, loc="outside lower center", ncols=3)
    output.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(output, dpi=130)

    columns = ["method", "error", "80 % interval covers", "seconds for each"]
    table = pd.DataFrame(rows, columns=columns).groupby("method", sort=False).mean()
    print("A day ahead for ten new series of three days; errors in mean steps of each series\n")
    print(table.round(2).to_string(na_rep="-"), "\n")
    print(f"Saved {output} after {time.perf_counter() - start:.0f} s in all.")


if __name__ == "__main__":
    main()
