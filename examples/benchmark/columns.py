"""Columns of one frame: one forecaster for all of them, or one for each.

Four frames, 2,500 rows of each for the fit, and 12 origins after these:

simulated
    A random walk beside a series with the seasons 24 and 168. New draws for every seed.
mixed
    Five real series that have little to do with each other: two oil temperatures, an electric load, taxi
    passengers and an exchange rate, by row.
etth1, exchange
    The seven columns of ETTh1, and eight exchange rates: the last 4,000 rows.

A network is trained on all columns together, or a network for each column. The loss of a column is twice the
mean quantile loss at .1, .3, .5, .7 and .9, 24 steps ahead, in mean absolute differences of neighbours; the
score of a frame is the mean over its columns. Naive rows are forecasts of one value::

    python examples/benchmark/columns.py --data DIR --out columns.json --page related_series.md

The page has a table between two marks, which is written anew.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

sys.path.append(str(Path(__file__).parent / "arena"))
from run import fill_page, open_book, run_missing, set_up

from taylorformer_forecast.sktime import TaylorformerForecaster

TRAINED, HORIZON, DAY, N_ORIGINS, APART = 2500, 24, 24, 12, 101
FH, LEVELS = list(range(1, HORIZON + 1)), np.array([0.1, 0.3, 0.5, 0.7, 0.9])
MODELS = {
    "last": "last value",
    "day": "value 24 steps before",
    "each": "one forecaster for each column",
    "together": "one forecaster for the frame",
}
MARKS = "<!-- columns: start -->\n", "<!-- columns: end -->\n"


def simulated(seed: int, n: int = TRAINED + N_ORIGINS * APART + HORIZON) -> pd.DataFrame:
    """A walk beside a seasonal series."""
    rng, t = np.random.default_rng(seed), np.arange(n)
    season = 10 * np.sin(2 * np.pi * t / 24) + 5 * np.sin(2 * np.pi * t / 168) + rng.normal(size=n)
    return pd.DataFrame({"walk": rng.normal(size=n).cumsum(), "season": season})


def frames(data: Path | None, seed: int) -> Iterator[tuple[str, pd.DataFrame]]:
    """Yield the frames by name."""
    yield "simulated", simulated(seed)
    if data is None:
        return

    def numbers(name: str) -> pd.DataFrame:
        return pd.read_csv(data / name).select_dtypes("number").astype(float)

    etth1, rates = numbers("ETTh1.csv"), numbers("exchange_rate.csv")
    parts = {
        "ETTh1": etth1["OT"],
        "ETTh2": numbers("ETTh2.csv")["OT"],
        "exchange rate": rates.iloc[:, 0],
        "load": numbers("taylor.csv").iloc[:, 0],
        "taxi": numbers("taxi_new_york_passengers.csv").iloc[:, 0],
    }
    yield "mixed", pd.DataFrame({name: part.iloc[:4000].to_numpy() for name, part in parts.items()})
    yield "etth1", etth1.iloc[-4000:].reset_index(drop=True)
    yield "exchange", rates.iloc[-4000:].reset_index(drop=True)


def forecasts(forecaster: TaylorformerForecaster, wide: pd.DataFrame, origins: range) -> np.ndarray:
    """Quantiles from all origins, (origins, steps, columns, levels), by a fitted forecaster."""
    found, seen = [], origins[0]
    for origin in origins:
        if origin > seen:
            forecaster.update(wide.iloc[seen:origin], update_params=False)
            seen = origin
        quantiles = forecaster.predict_quantiles(fh=FH, alpha=LEVELS.tolist()).to_numpy()
        found.append(quantiles.reshape(HORIZON, wide.shape[1], len(LEVELS)))
    return np.stack(found)


def run(wide: pd.DataFrame, model: str, seed: int, settings: dict) -> dict[str, float]:
    """Fit a model to the first rows, forecast from later origins, and score.

    Parameters
    ----------
    wide : pd.DataFrame
        The series.
    model : {"last", "day", "each", "together"}
        A naive forecast, or how many forecasters there are.
    seed : int
        Of the networks.
    settings : dict
        Further arguments of the forecasters.

    Returns
    -------
    dict
        Scores, and seconds of the fit.
    """
    values, fit = wide.to_numpy(), wide.iloc[:TRAINED]
    origins = range(TRAINED, min(len(wide) - HORIZON, TRAINED + N_ORIGINS * APART - 1) + 1, APART)
    truth = np.stack([values[k : k + HORIZON] for k in origins])
    start = time.process_time()
    if model in ("last", "day"):
        back = 1 if model == "last" else DAY
        steps = np.arange(HORIZON) % back - back
        naive = np.stack([values[k + steps] for k in origins])
        found = np.broadcast_to(naive[..., None], (*truth.shape, len(LEVELS)))
        seconds = 0.0
    else:
        groups = [wide] if model == "together" else [wide[[name]] for name in wide]
        fitted = [
            TaylorformerForecaster(random_state=seed, **{"strategy": "train", **settings}).fit(
                part.iloc[:TRAINED], fh=FH
            )
            for part in groups
        ]
        seconds = time.process_time() - start
        found = np.concatenate([forecasts(f, g, origins) for f, g in zip(fitted, groups, strict=True)], 2)
    error = truth[..., None] - found
    loss = 2 * np.maximum(LEVELS * error, (LEVELS - 1) * error).mean((0, 1, 3))
    covered = (truth >= found[..., 0]) & (truth <= found[..., -1])
    scores = {"loss": (loss / fit.diff().abs().mean()).mean(), "coverage": covered.mean()}
    return {**{name: float(f"{value:.4g}") for name, value in scores.items()}, "fit_s": round(seconds, 1)}


def table(book: dict) -> str:
    """Means over seeds, and their range."""
    rows = pd.DataFrame(book["rows"])
    lines = ["| frame | model | loss | coverage of 80 % | seconds of a fit |", "|---|---|---|---|---|"]
    for (frame, model), part in rows.groupby(["frame", "model"], sort=False):
        loss, rest = part["loss"], ["", ""]
        if model in ("each", "together"):
            rest = [f"{part['coverage'].mean():.2f}", f"{part['fit_s'].median():.0f}"]
        cells = [f"{loss.mean():.3g} ({loss.min():.3g} to {loss.max():.3g})", *rest]
        lines.append(f"| {frame} | {MODELS[model]} | {' | '.join(cells)} |")
    return "\n".join(lines)


def section(book: dict) -> str:
    """What the page says between the marks."""
    seeds = sorted({row["seed"] for row in book["rows"]})
    settings = ", ".join(f"`{name}={value}`" for name, value in book["settings"].items())
    return f"""
{table(book)}

Means over seeds {", ".join(map(str, seeds))}, in brackets the lowest and the highest. Seconds are processor
time of one thread. Settings: {settings or "the defaults"}.

"""


def main(argv: list[str] | None = None) -> None:
    """Run what is missing, write it, print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", type=Path, metavar="DIR", help="real series; without, simulated alone")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--out", type=Path, metavar="FILE.json", default=Path("columns.json"))
    parser.add_argument("--page", type=Path, metavar="FILE.md", help="a page with the marks")
    parser.add_argument("--set", default="{}", help="JSON of further arguments of the forecaster")
    args = parser.parse_args(argv)
    set_up()

    book = open_book(args.out, json.loads(args.set))
    run_missing(
        book,
        args.out,
        (
            (
                {"frame": frame, "model": model, "seed": seed},
                partial(run, wide, model, seed, book["settings"]),
            )
            for seed in args.seeds
            for frame, wide in frames(args.data, seed)
            for model in MODELS
        ),
    )
    print(table(book))
    if args.page:
        fill_page(args.page, MARKS, section(book))


if __name__ == "__main__":
    main()
