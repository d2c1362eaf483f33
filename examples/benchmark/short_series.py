r"""Many short series, one forecast each from its whole training part, by one setting for all collections.

A collection is a file ``NAME.jsonl.gz``: a header with ``name``, ``freq``, ``season`` and ``horizon``, then
one line for each series with ``id``, ``start``, ``train`` and ``test`` (null where nothing was observed).
Scores:

relative
    Weighted quantile loss (twice the pinball loss over nine deciles, summed, over the sum of absolute
    truths), over that of the seasonal naive forecast.
mase
    Mean absolute error of the median over that of the seasonal naive forecast in the training part.
coverage
    Fraction of truths inside the central 80 % interval.
randomised_coverage
    The same for the statistical baseline, where single values have probabilities: the part that is inside.
largest
    Largest absolute decile over the largest absolute value of its series: what runs away shows.

Rows are the statistical baseline of the package, the seasonal naive forecast, AutoETS, Theta and (by name
only, as it takes long) AutoARIMA where statsforecast is installed, and any sktime forecaster given by its
import path::

    python examples/benchmark/short_series.py --data DIR --out short.json
    python examples/benchmark/short_series.py --data DIR --sets m3_yearly --n 100 --rows baseline,ets,theta
    python examples/benchmark/short_series.py --data DIR --model \
        'taylorformer_forecast.sktime:TaylorformerForecaster:{"max_steps": 0}'
    python examples/benchmark/short_series.py --data DIR --n 120 --rows ets,theta,arima \
        --model sktime.forecasting.fbprophet:Prophet

With ``--panel`` such a forecaster is fitted once for each collection, to all of its series.
"""

from __future__ import annotations

import argparse
import gzip
import importlib
import importlib.metadata
import importlib.util
import json
import os
import platform
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from taylorformer_forecast.engine.predictive import Predictive
from taylorformer_forecast.engine.statistics.forecast import forecast_series
from taylorformer_forecast.engine.statistics.requests import SeriesForecast, SeriesRequest

LEVELS = np.arange(1, 10) / 10
FINE = 400  # levels of a distribution
LIBRARIES = ("taylorformer-forecast", "torch", "numpy", "statsforecast", "sktime", "prophet")


@dataclass
class Collection:
    """Series of one kind: training parts, test parts, and the calendar that hosts need."""

    name: str
    freq: str
    season: int
    horizon: int
    starts: list[str]
    train: list[np.ndarray]
    test: list[np.ndarray]

    @classmethod
    def read(cls, path: Path, n: int | None, seed: int) -> Collection:
        """Read a file, or ``n`` random series of it."""
        with gzip.open(path, "rt") as file:
            head, *rows = map(json.loads, file)
        if n and n < len(rows):
            rows = [rows[i] for i in np.random.default_rng(seed).choice(len(rows), n, replace=False)]
        train, test = ([np.array(row[part], dtype=float) for row in rows] for part in ("train", "test"))
        starts = [row["start"] for row in rows]
        return cls(head["name"], head["freq"], head["season"], head["horizon"], starts, train, test)


Forecaster = Callable[[Collection], list[np.ndarray]]  # deciles of every series, of shape (horizon, 9)


def baseline(collection: Collection, levels: np.ndarray = LEVELS) -> list[np.ndarray]:
    """Forecast by the statistical baseline, many series at once."""
    return [quantiles(one, levels) for one in forecast_series(requests(collection), 1, 0)]


def requests(collection: Collection) -> list[SeriesRequest]:
    """Series up to their last observed value, and the times of their test parts."""
    known = [y[: np.flatnonzero(~np.isnan(y))[-1] + 1] for y in collection.train]
    times = [len(y) + np.arange(collection.horizon) for y in collection.train]
    return [SeriesRequest(y, at, seasons=[collection.season]) for y, at in zip(known, times, strict=True)]


def quantiles(found: SeriesForecast, levels: np.ndarray) -> np.ndarray:
    """Quantiles (horizon, n) at n levels."""
    return Predictive.of_columns([found], 1).mixture.at_levels(levels.tolist())[:, 0]


def randomised_coverage(truths: list[np.ndarray], quantiles: list[np.ndarray]) -> float:
    """Coverage of the central 80 %, of a value that has a probability itself the part that is inside.

    The probability integral transform of such a value is drawn between the probabilities below and up to it
    (Czado, Gneiting and Held, "Predictive model assessment for count data", 2009). Quantiles, of shape
    (horizon, n), are at n equidistant levels.
    """
    inside: list[float] = []
    for truth, q in zip(truths, quantiles, strict=True):
        known = ~np.isnan(truth)
        below, upto = (
            (q[known].round(9) < truth[known, None]).mean(1),
            (q[known].round(9) <= truth[known, None]).mean(1),
        )
        width = np.maximum(upto - below, 1e-9)
        inside += list((np.minimum(below + width, 0.9) - np.maximum(below, 0.1)).clip(0) / width)
    return float(np.mean(inside))


def last_season(y: np.ndarray, season: int, horizon: int) -> np.ndarray:
    """Seasonal naive forecast; missing values are those before them."""
    at = np.maximum.accumulate(np.where(np.isnan(y), -1, np.arange(len(y))))
    first = int(np.argmax(~np.isnan(y)))
    y = y[np.where(at < 0, first, at)]
    season = season if len(y) >= season else 1
    return y[len(y) - season + np.arange(horizon) % season]


def seasonal_naive(collection: Collection) -> list[np.ndarray]:
    """Repeat the last season in every decile."""
    season, horizon = collection.season, collection.horizon
    return [np.repeat(last_season(y, season, horizon)[:, None], 9, 1) for y in collection.train]


def of_statsforecast(name: str) -> Forecaster:
    """Return a model of statsforecast, which knows the season; missing values are one season earlier."""

    def run(collection: Collection) -> list[np.ndarray]:
        models = importlib.import_module("statsforecast.models")
        coverage, found = [20, 40, 60, 80], []
        for y in collection.train:
            y = y.copy()
            for i in np.flatnonzero(np.isnan(y)):
                y[i] = y[i - collection.season] if i >= collection.season else np.nanmean(y)
            try:
                model = getattr(models, name)(season_length=collection.season)
                f = model.forecast(y=y, h=collection.horizon, level=coverage)
                below, above = ([f[f"{side}-{c}"] for c in coverage] for side in ("lo", "hi"))
                found.append(np.stack([*below[::-1], f["mean"], *above], 1))
            except Exception:
                found.append(np.full((collection.horizon, 9), np.nan))
        return found

    return run


def of_sktime(path: str, panel: bool = False) -> Forecaster:
    """Return an sktime forecaster by ``module:Class`` or ``module:Class:{json}``, fitted to each series.

    As a ``panel`` it is fitted once to all of them.
    """
    module, name, *settings = path.split(":", 2)

    def run(collection: Collection) -> list[np.ndarray]:
        import pandas as pd

        make = getattr(importlib.import_module(module), name)
        arguments = json.loads(settings[0]) if settings else {}
        calendar = pd.period_range if collection.freq in "MQY" else pd.date_range
        fh, levels = range(1, collection.horizon + 1), [round(float(v), 1) for v in LEVELS]
        series = [
            pd.DataFrame({"y": y}, calendar(start, periods=len(y), freq=collection.freq))
            for start, y in zip(collection.starts, collection.train, strict=True)
        ]
        if panel:
            y = pd.concat(dict(enumerate(series)), names=["series", "time"])
            found = make(**arguments).fit(y, fh=fh).predict_quantiles(alpha=levels).to_numpy()
            return list(found.reshape(len(series), collection.horizon, len(levels)))
        return [make(**arguments).fit(y, fh=fh).predict_quantiles(alpha=levels).to_numpy() for y in series]

    return run


def pinball(truth: np.ndarray, deciles: np.ndarray) -> float:
    """Twice the pinball loss over the nine deciles, summed over what was observed."""
    d = (truth[:, None] - deciles)[~np.isnan(truth)]
    return float(2 * np.maximum(LEVELS * d, (LEVELS - 1) * d).sum() / 9)


def processor_time() -> float:
    """Seconds of this process and of those that it waited for, as Prophet's."""
    children = os.times()
    return time.process_time() + children.children_user + children.children_system


def score(collection: Collection, run: Forecaster) -> dict[str, float | int | str]:
    """Forecast a collection and score it; a forecast that is not finite counts as the seasonal naive one."""
    start = processor_time()
    found = run(collection)
    seconds = (processor_time() - start) / len(found)
    naive = seasonal_naive(collection)
    failed = [not np.isfinite(q).all() for q in found]
    found = [n if bad else q for q, n, bad in zip(found, naive, failed, strict=True)]
    mase, inside, largest = [], [], 0.0
    for y, truth, q in zip(collection.train, collection.test, found, strict=True):
        known = ~np.isnan(truth)
        steps = np.abs(y[collection.season :] - y[: -collection.season])
        if len(steps) and np.nanmean(steps) > 0:
            mase.append(np.abs(truth - q[:, 4])[known].mean() / np.nanmean(steps))
        inside.append(((truth >= q[:, 0]) & (truth <= q[:, 8]))[known].mean())
        largest = max(largest, float(np.abs(q).max() / (np.nanmax(np.abs(y)) or 1.0)))
    losses = [sum(map(pinball, collection.test, f)) for f in (found, naive)]
    return {
        "set": collection.name,
        "n": len(found),
        "wql": losses[0] / sum(float(np.nansum(np.abs(t))) for t in collection.test),
        "relative": losses[0] / losses[1],
        "mase": float(np.mean(mase)),
        "coverage": float(np.mean(inside)),
        "largest": largest,
        "seconds_each": seconds,
        "failed": sum(failed),
    }


def versions() -> dict[str, str]:
    """Versions of the libraries that are installed."""
    found = {"python": platform.python_version()}
    for name in LIBRARIES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def about(seed: int) -> dict[str, object]:
    """What scores were measured with."""
    machine = f"{platform.machine()}, {platform.system()}, one thread"
    return {"versions": versions(), "seed": seed, "hardware": machine}


def main() -> None:
    """Score every row on every collection."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help="folder of collections")
    parser.add_argument("--sets", help="names of collections; all of the folder by default")
    parser.add_argument("--rows", help="of baseline, naive, ets, theta, arima; by default all but the last")
    parser.add_argument("--model", action="append", default=[], help="module:Class or module:Class:{json}")
    parser.add_argument("--panel", action="store_true", help="fit models once to all series of a collection")
    parser.add_argument("--n", type=int, help="random series of each collection; all by default")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path)
    a = parser.parse_args()
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    np.random.seed(a.seed)  # noqa: NPY002 - Prophet draws from it
    rows: dict[str, Forecaster] = {"baseline": baseline, "naive": seasonal_naive}
    if importlib.util.find_spec("statsforecast"):
        rows |= {"ets": of_statsforecast("AutoETS"), "theta": of_statsforecast("Theta")}
        rows["arima"] = of_statsforecast("AutoARIMA")
    names = a.rows.split(",") if a.rows else [name for name in rows if name != "arima"]
    rows = {name: rows[name] for name in names}
    rows |= {path + " (panel)" * a.panel: of_sktime(path, a.panel) for path in a.model}
    sets = a.sets.split(",") if a.sets else sorted(p.name.split(".")[0] for p in a.data.glob("*.jsonl.gz"))
    results = []
    for name in sets:
        collection = Collection.read(a.data / f"{name}.jsonl.gz", a.n, a.seed)
        for row, run in rows.items():
            results.append({"row": row, **score(collection, run)})
            if run is baseline:
                found = baseline(collection, np.arange(1, FINE) / FINE)
                results[-1]["randomised_coverage"] = randomised_coverage(collection.test, found)
            print(json.dumps(results[-1]), flush=True)
    for row in rows:
        logs = [np.log(r["relative"]) for r in results if r["row"] == row]
        print(f"{row}: geometric mean of relative scores {np.exp(np.mean(logs)):.3f}")
    if a.out:
        page = {"results": results, **about(a.seed)}
        a.out.write_text(json.dumps(page, indent=1) + "\n")


if __name__ == "__main__":
    main()
