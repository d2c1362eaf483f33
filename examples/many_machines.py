"""Forecast many series on several processes or machines, by Dask or by Spark.

    pip install "dask[distributed]"    # or pyspark, which needs Java
    python examples/many_machines.py --engine dask --series 2000 --workers 2
    python examples/many_machines.py --engine spark --series 2000 --workers 2

The table is long: a row for each series and time. Each part of it holds whole series, and is forecast as one
panel. The forecaster is sent to every worker once. Forecasts are those of one process (``--engine none``).
"""

from __future__ import annotations

import argparse
import copy
import os
import sys
import time
from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any

import numpy as np
import pandas as pd

from taylorformer_forecast.sktime import TaylorformerForecaster

LEVELS = (0.1, 0.5, 0.9)


def forecast_part(
    rows: pd.DataFrame, forecaster: Any, horizon: int, levels: Sequence[float] = LEVELS
) -> pd.DataFrame:
    """Forecast all series of a part of the table.

    Parameters
    ----------
    rows : pd.DataFrame
        Columns ``series``, ``time`` and ``value``, in any order of rows.
    forecaster : forecaster of sktime
        Not fitted, or trained on other series by ``pretrain``. It stays as it is.
    horizon : int
        Steps ahead.
    levels : sequence of float
        Of the quantiles.

    Returns
    -------
    pd.DataFrame
        Columns ``series``, ``time`` and one for each level: ``q0.1``, ``q0.5``, ``q0.9``.
    """
    names = [f"q{level:g}" for level in levels]
    y = rows.set_index(["series", "time"])[["value"]].sort_index()
    fitted = copy.deepcopy(forecaster).fit(y, fh=range(1, horizon + 1))
    found = fitted.predict_quantiles(alpha=list(levels)).set_axis(names, axis=1)
    return found.rename_axis(["series", "time"]).reset_index()


def part_of(series: pd.Series, n_parts: int) -> np.ndarray:
    """Number of the part of the table that a series belongs to, so that none is split."""
    return (pd.util.hash_array(series.to_numpy()) % n_parts).astype(int)


def by_dask(table: pd.DataFrame, forecaster: Any, horizon: int, workers: int) -> pd.DataFrame:
    """Forecast on a cluster of Dask; here of processes of this machine."""
    from dask.distributed import Client

    # On a cluster: Client("scheduler:8786"). A table that Dask holds, shuffled by series, has
    # map_partitions(forecast_part, forecaster, horizon) in the place of map.
    with Client(n_workers=workers, threads_per_worker=1, dashboard_address=None) as client:
        parts = [rows for _, rows in table.groupby(part_of(table["series"], 2 * workers))]
        sent = client.scatter(forecaster, broadcast=True)
        return pd.concat(client.gather(client.map(forecast_part, parts, forecaster=sent, horizon=horizon)))


def by_spark(table: pd.DataFrame, forecaster: Any, horizon: int, workers: int) -> pd.DataFrame:
    """Forecast on a cluster of Spark; here of processes of this machine."""
    from pyspark.sql import SparkSession

    # On a cluster: the session of the cluster, and spark.read.parquet(...) for the table.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    session = SparkSession.builder.master(f"local[{workers}]").config("spark.ui.enabled", False).getOrCreate()
    frame = session.createDataFrame(table.assign(part=part_of(table["series"], 2 * workers)))
    session.sparkContext.addPyFile(__file__)  # workers import forecast_part
    sent = session.sparkContext.broadcast(forecaster)
    quantiles = ", ".join(f"`q{level:g}` double" for level in LEVELS)

    def forecast(rows: pd.DataFrame) -> pd.DataFrame:
        return forecast_part(rows, sent.value, horizon)

    found = frame.groupBy("part").applyInPandas(forecast, f"series long, time timestamp, {quantiles}")
    out = found.toPandas()
    session.stop()
    return out


def alone(table: pd.DataFrame, forecaster: Any, horizon: int, workers: int) -> pd.DataFrame:
    """Forecast in this process."""
    return forecast_part(table, forecaster, horizon)


ENGINES = {"none": alone, "dask": by_dask, "spark": by_spark}
NEEDED = {"dask": ("distributed", '"dask[distributed]"'), "spark": ("pyspark", "pyspark")}


def make_table(n_series: int, length: int) -> pd.DataFrame:
    """Monthly random walks with a season, one below the other."""
    months, rng = np.arange(length), np.random.default_rng(0)
    values = 50 + rng.normal(size=(n_series, length)).cumsum(1) + 5 * np.sin(months / 6 * np.pi)
    times = pd.date_range("2015-01-01", periods=length, freq="MS")
    series, at = np.repeat(np.arange(n_series), length), np.tile(times, n_series)
    return pd.DataFrame({"series": series, "time": at, "value": values.ravel()})


def main(argv: Sequence[str] | None = None) -> None:
    """Forecast, and print the time and the first rows."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--engine", choices=list(ENGINES), default="dask")
    parser.add_argument("--series", type=int, default=200)
    parser.add_argument("--length", type=int, default=60)
    parser.add_argument("--horizon", type=int, default=12)
    parser.add_argument("--workers", type=int, default=2)
    args = parser.parse_args(argv)
    module, package = NEEDED.get(args.engine, (None, None))
    if module and find_spec(module) is None:
        sys.exit(f"--engine {args.engine} needs another package: pip install {package}")
    table = make_table(args.series, args.length)
    start = time.perf_counter()
    found = ENGINES[args.engine](table, TaylorformerForecaster(random_state=0), args.horizon, args.workers)
    print(f"{args.series} series, {time.perf_counter() - start:.0f} s with {args.engine}")
    first = found.sort_values(["series", "time"]).head(3)
    numbers = first.select_dtypes("number").round(2)
    print(first.assign(**numbers).to_string(index=False))


if __name__ == "__main__":
    main()
