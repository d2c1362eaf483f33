"""Gaps filled: three series with holes of 1, 5 and 20 points, against linear interpolation and drift.

Values of monthly airline passengers, carbon dioxide and yearly sunspots are hidden; every method fills
them, and errors are counted on what was hidden. The rivals get the fairest Gaussian that they can have: its
width is that of their true errors.

Run from a checkout, in less than a minute::

    python examples/fill_gaps.py --output gaps.png
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
from scipy.stats import norm
from sktime.datasets import load_airline
from sktime.transformations.impute import Imputer
from statsmodels.datasets import co2, sunspots

from taylorformer_forecast.sktime import TaylorformerImputer

LENGTHS = {1: 10, 5: 4, 20: 2}  # length of a gap -> how many of them


def load() -> dict[str, pd.Series]:
    """Three series without gaps of their own."""
    weeks = co2.load_pandas().data["co2"]
    months = weeks.resample("MS").mean().loc["1965":].to_period("M")
    years = sunspots.load_pandas().data
    index = pd.period_range(str(int(years["YEAR"].iloc[0])), periods=len(years), freq="Y")
    return {
        "airline passengers": load_airline(),
        "carbon dioxide": months,
        "sunspots": pd.Series(years["SUNACTIVITY"].to_numpy(), index),
    }


def punch(y: pd.Series, rng: np.random.Generator) -> pd.Series:
    """Length of the gap that every point lies in, 0 where it stays; three points between gaps stay."""
    length_at = np.zeros(len(y), dtype=int)
    for length, number in sorted(LENGTHS.items(), reverse=True):
        while (length_at == length).sum() < length * number:
            start = rng.integers(3, len(y) - length - 2)
            if not length_at[start - 3 : start + length + 3].any():
                length_at[start : start + length] = length
    return pd.Series(length_at, y.index)


def gaussian_crps(truth: np.ndarray, mean: np.ndarray, deviation: float) -> np.ndarray:
    """CRPS of a normal distribution."""
    z = (truth - mean) / deviation
    return deviation * (z * (2 * norm.cdf(z) - 1) + 2 * norm.pdf(z) - 1 / np.sqrt(np.pi))


def compare(name: str, y: pd.Series, length_at: pd.Series) -> tuple[list[dict], pd.DataFrame]:
    """Scores of all methods for every length of gap, and the bands to draw."""
    hidden = length_at > 0
    gappy = y.astype(float).mask(hidden)
    imputer = TaylorformerImputer(random_state=0).fit(gappy)
    distribution = imputer.transform_proba(gappy)
    bands = imputer.transform_quantiles(gappy, [0.1, 0.9]).set_axis(["low", "high"], axis=1)
    bands["mean"] = imputer.transform(gappy)
    steps = np.arange(len(y))
    rivals = {
        "linear": np.interp(steps, steps[~hidden], y[~hidden]),
        "drift": Imputer("drift").fit_transform(gappy).to_numpy(),
    }
    rows = []
    for length in LENGTHS:
        here = (length_at == length).to_numpy()
        truth = y[here].to_numpy(dtype=float)
        part = distribution.loc[y.index[here]]
        far, wide = (np.ravel(e) for e in (part.energy(truth[:, None]), part.energy()))
        inside = (truth >= bands["low"][here]) & (truth <= bands["high"][here])
        row = {"series": name, "gap": length}
        row[("MAE", "Taylorformer")] = np.abs(truth - bands["mean"][here]).mean()
        row[("CRPS", "Taylorformer")] = (far - 0.5 * wide).mean()
        row[("80 % interval", "covers")] = inside.mean()
        for rival, filled in rivals.items():
            error = truth - filled[here]
            row[("MAE", rival)] = np.abs(error).mean()
            deviation = np.sqrt((error**2).mean())
            row[("CRPS", rival)] = gaussian_crps(truth, filled[here], deviation).mean()
        rows.append(row)
    return rows, bands


def draw(axes: plt.Axes, name: str, y: pd.Series, hidden: pd.Series, bands: pd.DataFrame) -> None:
    """Observed points, hidden truth, mean and band of what fills the gaps."""
    blue, dark = "#3b6fb6", "#1c2b3a"
    x = y.index.to_timestamp()
    near = hidden | hidden.shift(1, fill_value=False) | hidden.shift(-1, fill_value=False)
    axes.fill_between(
        x, bands["low"], bands["high"], where=near, color=blue, alpha=0.3, lw=0, label="80 % band"
    )
    axes.plot(x, bands["mean"].where(near), color=blue, lw=1.6, label="filled (mean)")
    axes.plot(x, y.where(~hidden), color=dark, lw=1.1, label="observed")
    axes.plot(x, y.where(hidden), "o", color="#c8553d", ms=2.6, label="hidden truth")
    axes.set_title(name, loc="left", fontsize=10)
    axes.spines[["top", "right"]].set_visible(False)


def main() -> None:
    """Print the scores and save the picture."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    default = Path(__file__).parent / "output" / "fill_gaps.png"
    parser.add_argument("--output", type=Path, default=default, help="where to save the picture")
    output = parser.parse_args().output
    start, rows = time.perf_counter(), []
    figure, axes = plt.subplots(3, 1, figsize=(9, 8), layout="constrained")
    for axis, (name, y) in zip(axes, load().items(), strict=True):
        length_at = punch(y, np.random.default_rng(0))
        # Kept back: sktime announces a change of its defaults whenever a forecaster is made.
        with warnings.catch_warnings(record=True):
            scores, bands = compare(name, y, length_at)
        rows += scores
        draw(axis, name, y, length_at > 0, bands)
    axes[0].legend(frameon=False, loc="upper left", ncols=2, fontsize=9)
    table = pd.DataFrame(rows).set_index(["series", "gap"])
    table.columns = pd.MultiIndex.from_tuples(table.columns)
    print("Errors on hidden values (lower is better), by length of the gap\n")
    print(table[["MAE", "CRPS", "80 % interval"]].round(2).to_string(), "\n")
    output.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(output, dpi=130)
    print(f"Saved {output} after {time.perf_counter() - start:.0f} s in all.")


if __name__ == "__main__":
    main()
