"""The series of the arena: some ship with sktime and statsmodels, others are files as they were published."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

__all__ = ["FILES", "SHIPPED", "SOURCES", "Task", "load"]

TRAIN = 0.8  # fraction that models are trained on


@dataclass(frozen=True)
class Task:
    """A series and how it is forecast.

    Parameters
    ----------
    name : str
        Short name.
    y : pd.Series
        Values without gaps on a regular index.
    season, horizon, context : int
        Steps of a season, of a forecast, and of what networks of fixed input length see.
    n_origins : int
        Forecast origins, evenly spaced after the training part.
    """

    name: str
    y: pd.Series
    season: int
    horizon: int
    context: int
    n_origins: int

    @property
    def cut(self) -> int:
        """Length of the training part."""
        return int(len(self.y) * TRAIN)

    @property
    def origins(self) -> list[int]:
        """Numbers of observations known at each origin."""
        last = len(self.y) - self.horizon
        return np.unique(np.linspace(self.cut, last, self.n_origins).astype(int)).tolist()

    def truth(self) -> np.ndarray:
        """What the forecasts are compared with, (origins, horizon)."""
        values = self.y.to_numpy()
        return np.stack([values[o : o + self.horizon] for o in self.origins])


def _airline() -> pd.Series:
    from sktime.datasets import load_airline

    y = load_airline()
    return pd.Series(y.to_numpy(), y.index.to_timestamp())


def _lynx() -> pd.Series:
    from sktime.datasets import load_lynx

    return pd.Series(load_lynx().to_numpy())


def _statsmodels(name: str, column: str) -> pd.Series:
    import statsmodels.api as sm

    return pd.Series(getattr(sm.datasets, name).load_pandas().data[column].to_numpy())


def _co2() -> pd.Series:
    import statsmodels.api as sm

    return sm.datasets.co2.load_pandas().data["co2"].resample("MS").mean()


def _column(
    name: str,
    column: str | int,
    time: str | None = None,
    freq: str | None = None,
    tail: int | None = None,
) -> Callable[[Path], pd.Series]:
    """Return a reader of one column, whose index is made regular from the first time and a frequency."""

    def read(folder: Path) -> pd.Series:
        table = pd.read_csv(folder / name)
        values = table[column] if isinstance(column, str) else table.iloc[:, column]
        values = pd.to_numeric(values, errors="coerce").to_numpy(dtype=float)
        index = None
        if time is not None:
            index = pd.date_range(pd.to_datetime(table[time].iloc[0]), periods=len(values), freq=freq)
        y = pd.Series(values, index)
        return y if tail is None else y.iloc[-tail:]

    return read


# Reader, season, horizon, context, origins.
SHIPPED: dict[str, tuple[Callable[[], pd.Series], int, int, int, int]] = {
    "airline": (_airline, 12, 12, 36, 4),
    "lynx": (_lynx, 10, 10, 30, 4),
    "sunspots_yearly": (lambda: _statsmodels("sunspots", "SUNACTIVITY"), 11, 11, 44, 6),
    "co2": (_co2, 12, 24, 72, 6),
    "nile": (lambda: _statsmodels("nile", "volume"), 1, 8, 16, 4),
}
FILES: dict[str, tuple[Callable[[Path], pd.Series], int, int, int, int]] = {
    "ili": (_column("ILINet.csv", 1, "DATE", "W-SUN"), 52, 26, 104, 10),
    "sunspots": (_column("monthly-sunspots.csv", 1, "Month", "MS"), 132, 48, 264, 10),
    "taylor": (_column("taylor.csv", 0), 48, 48, 336, 14),
    "taxi": (_column("taxi_new_york_passengers.csv", 1, "time", "30min"), 48, 48, 336, 20),
    "etth1": (_column("ETTh1.csv", "OT", "date", "h", tail=14_400), 24, 96, 192, 20),
    "etth2": (_column("ETTh2.csv", "OT", "date", "h", tail=14_400), 24, 96, 192, 20),
    "exchange": (_column("exchange_rate.csv", 7), 5, 96, 192, 12),
}
SOURCES = {
    "airline": "airline passengers, monthly; sktime",
    "lynx": "Canadian lynx, yearly; sktime",
    "sunspots_yearly": "sunspots, yearly; statsmodels",
    "co2": "CO2 at Mauna Loa, weekly, here monthly means; statsmodels",
    "nile": "flow of the Nile, yearly; statsmodels",
    "ili": "influenza-like illness in the US (weighted ILI), weekly; CDC ILINet, through darts",
    "sunspots": "sunspots, monthly; through darts",
    "taylor": "electricity demand in England and Wales, half-hourly; Taylor (2003), through darts",
    "taxi": "taxi passengers in New York, half-hourly; Numenta Anomaly Benchmark, through darts",
    "etth1": "oil temperature (OT) of a transformer, hourly, last 14,400; zhouhaoyi/ETDataset",
    "etth2": "the same of another transformer; zhouhaoyi/ETDataset",
    "exchange": "exchange rate (last column), daily; laiguokun/multivariate-time-series-data",
}


def load(name: str, folder: Path | None = None) -> Task:
    """Load a series.

    Parameters
    ----------
    name : str
        A key of :data:`SHIPPED` or :data:`FILES`.
    folder : Path, optional
        Where the files are; not needed for series that ship with a library.

    Returns
    -------
    Task
        The series, gaps interpolated, and its protocol.
    """
    if name in SHIPPED:
        shipped, *rest = SHIPPED[name]
        y = shipped()
    elif name in FILES:
        if folder is None:
            raise SystemExit(f"{name} is read from a file: say where by --data DIR")
        reader, *rest = FILES[name]
        y = reader(folder)
    else:
        raise SystemExit(f"unknown series {name}; known: {', '.join([*SHIPPED, *FILES])}")
    # Single precision for every model, as networks see it.
    y = y.interpolate().astype("float32").astype("float64")
    return Task(name, y, *rest)
