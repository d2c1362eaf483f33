"""Instances of a panel as one joint model: what is gained where one series leads another.

Two panels:

simulated
    A leader, x_t = .95 x_{t-1} + e_t, and two followers that are .8 times the leader of 3 and of 6 steps ago,
    with noise of standard deviation .1 of its own, 240 steps. New draws for every seed.
gas furnace
    Gas rate and CO2 of a furnace (Box and Jenkins, series J), 296 steps: CO2 follows the gas rate by about
    five steps. It ships with darts, and is read from a file.

Every model is fitted to the first 70 % and forecasts 6 steps from every sixth of the rest, with all values up
to there. The same network is fitted with ``join="instances"``, and with ``join="columns"``, which forecasts
every instance from its own past. Scores are of the followers: mean absolute error of the median, and mean of
the quantile losses at .1 to .9, times two; of the last value, which is one number, both are the same::

    python examples/benchmark/leading_series.py --data DIR --out leading_series.json --page related_series.md

The page has a table between two marks, which is written anew.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd

sys.path.append(str(Path(__file__).parent / "arena"))
from run import fill_page, open_book, run_missing, set_up

from taylorformer_forecast.sktime import UNNForecaster

HORIZON, TRAINED = 6, 0.7
FH = list(range(1, HORIZON + 1))
LEVELS = np.arange(1, 10) / 10
MODELS = {"last": "last value", "columns": "each by itself", "instances": "jointly"}
MARKS = "<!-- leading series: start -->\n", "<!-- leading series: end -->\n"


def simulated(seed: int, n: int = 240) -> pd.DataFrame:
    """A leader and two followers, next to each other."""
    rng = np.random.default_rng(seed)
    leader = np.zeros(n + 50)
    for t in range(1, len(leader)):
        leader[t] = 0.95 * leader[t - 1] + rng.normal()
    noise = 0.1 * rng.normal(size=(2, n))
    late = {
        f"follows by {lag}": 0.8 * leader[50 - lag : 50 - lag + n] + e
        for lag, e in zip((3, 6), noise, strict=True)
    }
    return pd.DataFrame({"leader": leader[50:], **late})


def gas_furnace(data: Path) -> pd.DataFrame:
    """Gas rate and CO2, next to each other."""
    return pd.read_csv(data / "gasrate_co2.csv").set_axis(["gas rate", "CO2"], axis=1)


def as_panel(wide: pd.DataFrame) -> pd.DataFrame:
    """Columns as instances."""
    return pd.concat({name: part.to_frame("y") for name, part in wide.items()}, names=["series", "step"])


def quantiles(forecaster: UNNForecaster, names: list[str]) -> np.ndarray:
    """Quantiles of the next steps of some instances, (instances, steps, levels)."""
    found = forecaster.predict_quantiles(fh=FH, alpha=LEVELS.tolist())
    return np.stack([found.loc[name].to_numpy() for name in names])


def run(wide: pd.DataFrame, model: str, seed: int, settings: dict) -> dict[str, float]:
    """Fit a model, forecast from every sixth step of the end, and score the followers.

    Parameters
    ----------
    wide : pd.DataFrame
        The series, the leader first.
    model : {"last", "columns", "instances"}
        The last value, or what the network joins.
    seed : int
        Of the network.
    settings : dict
        Further arguments of the forecaster.

    Returns
    -------
    dict
        Scores, and seconds of the fit.
    """
    followers, first = list(wide.columns[1:]), int(TRAINED * len(wide))
    origins = range(first, len(wide) - HORIZON + 1, HORIZON)
    truth = np.stack([wide[followers].iloc[k : k + HORIZON].to_numpy().T for k in origins])
    seconds = 0.0
    if model == "last":
        last = np.stack([wide[followers].iloc[k - 1].to_numpy() for k in origins])
        found = np.broadcast_to(last[:, :, None, None], (*truth.shape, len(LEVELS)))
    else:
        start = time.process_time()
        forecaster = UNNForecaster(join=model, random_state=seed, **settings)
        forecaster.fit(as_panel(wide.iloc[:first]), fh=FH)
        seconds = time.process_time() - start
        parts = []
        for k in origins:
            if k > first:
                forecaster.update(as_panel(wide.iloc[k - HORIZON : k]), update_params=False)
            parts.append(quantiles(forecaster, followers))
        found = np.stack(parts)
    error = truth[..., None] - found
    loss = 2 * np.maximum(LEVELS * error, (LEVELS - 1) * error)
    covered = (truth >= found[..., 0]) & (truth <= found[..., -1])
    scores = {"mae": np.abs(error[..., 4]).mean(), "loss": loss.mean(), "coverage": covered.mean()}
    return {**{name: float(f"{value:.4g}") for name, value in scores.items()}, "fit_s": round(seconds, 1)}


def table(book: dict) -> str:
    """Means over seeds, and their range."""
    rows = pd.DataFrame(book["rows"])
    lines = ["| panel | model | MAE | quantile loss | coverage of 80 % |", "|---|---|---|---|---|"]
    for (panel, model), part in rows.groupby(["panel", "model"], sort=False):
        cells = [
            f"{part[s].mean():.3g} ({part[s].min():.3g} to {part[s].max():.3g})" for s in ("mae", "loss")
        ]
        coverage = "" if model == "last" else f"{part['coverage'].mean():.2f}"
        lines.append(f"| {panel} | {MODELS[model]} | {' | '.join(cells)} | {coverage} |")
    return "\n".join(lines)


def section(book: dict) -> str:
    """What the page says between the marks."""
    rows = pd.DataFrame(book["rows"])
    seeds, fit = sorted(rows["seed"].unique()), rows.groupby("model")["fit_s"].median()
    settings = ", ".join(f"`{name}={value}`" for name, value in book["settings"].items())
    return f"""
{table(book)}

Means over seeds {", ".join(map(str, seeds))}, in brackets the lowest and the highest. Settings:
{settings or "the defaults"}. A fit took {fit["columns"]:.0f} s of a busy core with each series by itself,
{fit["instances"]:.0f} s jointly.

"""


def main(argv: list[str] | None = None) -> None:
    """Run what is missing, write it, print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--data", type=Path, metavar="DIR", help="where gasrate_co2.csv is; without, simulated alone"
    )
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--out", type=Path, metavar="FILE.json", default=Path("leading_series.json"))
    parser.add_argument("--page", type=Path, metavar="FILE.md", help="a page with the marks")
    parser.add_argument("--set", default="{}", help="JSON of further arguments of the forecaster")
    args = parser.parse_args(argv)
    set_up()

    book = open_book(args.out, json.loads(args.set))

    def case(panel: str, model: str, seed: int) -> dict:
        wide = simulated(seed) if panel == "simulated" else gas_furnace(args.data)
        return run(wide, model, seed, book["settings"])

    names = product(["simulated", *(["gas furnace"] if args.data else [])], MODELS, args.seeds)
    cases = (dict(zip(("panel", "model", "seed"), one, strict=True)) for one in names)
    run_missing(book, args.out, ((one, partial(case, **one)) for one in cases))
    print(table(book))
    if args.page is not None:
        fill_page(args.page, MARKS, section(book))


if __name__ == "__main__":
    main()
