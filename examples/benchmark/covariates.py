"""Forecasts with covariates that are known ahead: the defaults with and without them, and other models.

Real series with the true covariates of the future, which practice would have to forecast too. Every model is
fitted anew at each origin in the second half. Losses are weighted quantile losses over that of the seasonal
naive forecast, and coverage is that of the central 80 %. AutoARIMA regresses on the covariates, with errors
of order and differences that it chooses; it is of statsforecast, ``pip install ".[benchmarks]"``::

    python examples/benchmark/covariates.py --data DIR --out docs/results/covariates.json
    python examples/benchmark/covariates.py --page     # the table of docs/covariates.md
    python examples/benchmark/covariates.py --quick --out covariates.json     # a check
"""

from __future__ import annotations

import argparse
import sys
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sktime.datasets import load_macroeconomic, load_uschange

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parent / "arena")]
from lengths import loss
from models import LEVELS
from run import fill_page, open_book, run_missing, set_up
from short_series_report import table as markdown

from taylorformer_forecast.sktime import LAMForecaster, TaylorformerForecaster

# Names of the series, what is forecast, its covariates, season and horizon.
SERIES = {
    "US consumption": (["Income", "Production", "Savings", "Unemployment"], 4, 8),
    "US consumption, level": (["realgdp", "realinv", "unemp"], 4, 8),
    "US inflation": (["tbilrate", "unemp"], 4, 8),
    "CO2 of a furnace": (["GasRate(ft3/min)"], 1, 8),
    "oil temperature, days": (["HUFL", "HULL", "MUFL", "MULL", "LUFL", "LULL"], 7, 14),
    "oil temperature, hours": (["HUFL", "HULL", "MUFL", "MULL", "LUFL", "LULL"], 24, 48),
}
TARGETS = ("Consumption", "realcons", "infl", "CO2%", "OT", "OT")
ORIGINS = 8
LONGEST = 1000  # latest values of hours
MARKS = ("<!-- table -->\n", "<!-- end of the table -->")
NAIVE = "seasonal naive"


def load(name: str, data: Path | None) -> tuple[pd.Series, pd.DataFrame]:
    """A series and its covariates."""
    if name == "US consumption":
        y, X = load_uschange()
        frame = pd.concat([y, X], axis=1)
    elif name.startswith("US"):
        frame = load_macroeconomic()
    elif data is None:
        raise SystemExit(f"{name} is in a file: give --data")
    elif name.startswith("CO2"):
        frame = pd.read_csv(data / "gasrate_co2.csv")
    else:
        frame = pd.read_csv(data / "ETTh1.csv", parse_dates=["date"], index_col="date").asfreq("h")
        frame = frame.resample("D").mean().iloc[:-1] if name.endswith("days") else frame[: 5 * LONGEST]
    target = TARGETS[list(SERIES).index(name)]
    return frame[target].astype(float).rename("y"), frame[SERIES[name][0]].astype(float)


def deciles_of(model: str, y: pd.Series, X: pd.DataFrame, known: int, season: int, h: int, **options: Any):
    """Deciles (h, 9) of one forecast."""
    first = max(0, known - LONGEST)
    past, ahead = slice(first, known), slice(known, known + h)
    if model == NAIVE:
        return np.repeat(np.resize(y.to_numpy()[known - season : known], h)[:, None], len(LEVELS), 1)
    if model == "AutoARIMA":
        from statsforecast.models import AutoARIMA

        levels = [20, 40, 60, 80]
        found = AutoARIMA(season_length=season).forecast(
            y.to_numpy()[past], h, X=X.to_numpy()[past], X_future=X.to_numpy()[ahead], level=levels
        )
        low = [found[f"lo-{level}"] for level in reversed(levels)]
        return np.stack([*low, found["mean"], *(found[f"hi-{level}"] for level in levels)], 1)
    cls = LAMForecaster if model == "LAM" else TaylorformerForecaster
    if model == "`train`":
        options["strategy"] = "train"
    forecaster = cls(random_state=0, verbose=False, **options)
    if model == "without covariates":
        fitted = forecaster.fit(y[past], fh=range(1, h + 1))
        return fitted.predict_quantiles(alpha=LEVELS.tolist()).to_numpy()
    fitted = forecaster.fit(y[past], X[past], fh=range(1, h + 1))
    return fitted.predict_quantiles(X=X[ahead], alpha=LEVELS.tolist()).to_numpy()


def score(model: str, name: str, data: Path | None, **options: Any) -> dict[str, float]:
    """Loss and coverage over all origins of a series."""
    (y, X), (_, season, h) = load(name, data), SERIES[name]
    origins = np.linspace(len(y) // 2, len(y) - h, ORIGINS).astype(int)
    found = [deciles_of(model, y, X, int(known), season, h, **options) for known in origins]
    truth = np.stack([y.to_numpy()[known : known + h] for known in origins])
    wql, coverage = loss(truth, np.stack(found))
    return {"wql": round(wql, 5), "coverage": round(coverage, 3)}


def table(rows: list[dict[str, Any]]) -> str:
    """Loss over that of the naive forecast, and coverage: a line for each model."""
    frame = pd.DataFrame(rows).set_index(["model", "series"])
    names = list(dict.fromkeys(frame.index.get_level_values("series")))
    ratio = frame.wql / frame.wql[NAIVE].reindex(frame.index, level="series")
    best = ratio.groupby(level="series").min()
    lines = []
    for model in dict.fromkeys(frame.index.get_level_values("model")):
        cells = []
        for name in names:
            if (model, name) not in ratio:
                cells.append("–")
                continue
            text = f"{ratio[model, name]:.2f} ({frame.coverage[model, name]:.2f})"
            cells.append(f"**{text}**" if ratio[model, name] == best[name] else text)
        mean = "–" if "–" in cells else f"{np.exp(np.log(ratio[model]).mean()):.2f}"
        lines.append([model, *cells, mean])
    return markdown(["", *names, "all"], lines)


def main(argv: list[str] | None = None) -> None:
    """Run what is missing, write it, print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", type=Path, metavar="DIR", help="files of the series, as for the arena")
    parser.add_argument("--out", type=Path, default=ROOT / "docs/results/covariates.json")
    parser.add_argument("--page", action="store_true", help="only write the table into docs/covariates.md")
    parser.add_argument("--quick", action="store_true", help="two series, without AutoARIMA, as a check")
    args = parser.parse_args(argv)
    book = open_book(args.out, {"seed": 0, "origins": ORIGINS})
    if args.page:
        fill_page(ROOT / "docs/covariates.md", MARKS, table(book["rows"]))
        return
    set_up()

    names = list(SERIES)[:1] if args.quick else list(SERIES)
    options = {"max_steps": 1} if args.quick else {}
    models = ["with covariates", "without covariates", "`train`", "LAM", "AutoARIMA", NAIVE]
    if args.quick:
        models.remove("AutoARIMA")
    cases = [
        ({"model": model, "series": name}, partial(score, model, name, args.data, **options))
        for name, model in product(names, models)
        if (model, SERIES[name][1]) != ("AutoARIMA", 24)  # which takes minutes for each forecast
    ]
    run_missing(book, args.out, cases)
    print(table(book["rows"]))


if __name__ == "__main__":
    main()
