"""The data of a case: indexes, values, frames of sktime and series of darts."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pandas as pd

LATER = 45  # rows after those that are fitted

# Starts of dates at a frequency are written otherwise than those of periods.
AS_DATES = {"Y": "YS", "Q": "QS", "M": "MS", "3M": "3MS"}


def make_index(spec: dict[str, Any], n: int) -> pd.Index:
    """n stamps."""
    kind = spec["kind"]
    if kind == "period":
        return pd.period_range(pd.Period(spec["start"], spec["freq"]), periods=n, freq=spec["freq"])
    if kind == "dates":
        freq = AS_DATES.get(spec["freq"], spec["freq"])
        index = pd.date_range(spec["start"], periods=n, freq=freq, tz=spec["zone"]).as_unit(spec["unit"])
        return index if spec["has_freq"] else pd.DatetimeIndex(index, freq=None)
    if kind == "range":
        return pd.RangeIndex(spec["start"], spec["start"] + n)
    if kind == "integers":
        return pd.Index(spec["start"] + spec["step"] * np.arange(n))
    if kind == "irregular":
        steps = np.random.default_rng(n).integers(1, spec["spread"], size=n).cumsum()
        return (
            pd.Timestamp(spec["start"]) + pd.to_timedelta(steps, unit="h")
            if spec["dates"]
            else pd.Index(steps)
        )
    if kind == "floats":
        return pd.Index(np.arange(n) / 2)
    return (
        pd.to_timedelta(np.arange(n), unit="D")
        if kind == "timedelta"
        else pd.Index([f"t{k}" for k in range(n)])
    )


def make_values(spec: dict[str, Any], n: int, number: int = 0) -> np.ndarray:
    """n values, before they are spoiled."""
    rng, t = np.random.default_rng([spec["seed"], number]), np.arange(n)
    noise, season = rng.normal(size=n), np.sin(2 * np.pi * t / spec["period"])
    y = {
        "noise": noise,
        "walk": noise.cumsum(),
        "trend": 0.5 * t + 0.2 * noise,
        "season": 3 * season + 0.2 * noise,
        "growth": np.exp(0.1 * t + 0.02 * noise),
        "decay": np.exp(-0.2 * t),
        "steps": np.where(t % 20 < 10, 0.0, 5.0) + 0.1 * noise,
        "alternating": (-1.0) ** t,
        "counts": rng.poisson(2.0, n).astype(float),
        "sparse": rng.poisson(0.2, n).astype(float),
        "constant": np.ones(n),
        "zeros": np.zeros(n),
        "one step": (t >= n - 2).astype(float),
        "outliers": noise + 100 * (rng.random(n) < 0.1),
        "season and trend": 3 * season + 0.3 * t + 0.2 * noise,
        "heavy tails": rng.standard_t(1, n),
    }[spec["shape"]]
    return spec["scale"] * (y + spec["level"])


def spoil(y: np.ndarray, how: str | None, seed: int) -> np.ndarray:
    """Values with gaps, or such as no model can use."""
    y, rng, n = y.copy(), np.random.default_rng(seed), len(y)
    if how == "gaps":
        y[rng.random(n) < 0.3] = np.nan
    elif how == "block":
        y[n // 3 : 2 * n // 3] = np.nan
    elif how == "start":
        y[: n // 2] = np.nan
    elif how == "end":
        y[n - n // 3 :] = np.nan
    elif how == "last outlier":
        y[-1] += 50 * (np.std(y) + 1)
    elif how == "all":
        y[:] = np.nan
    elif how == "one left":
        y[np.arange(n) != n // 2] = np.nan
    elif how in ("inf", "huge"):
        y[rng.integers(n)] = np.inf if how == "inf" else 1e200
    return y


def column(spec: dict[str, Any], n: int, number: int = 0) -> pd.Series:
    """A column of n + LATER rows, of which the first n are spoiled; integers cannot be missing."""
    y = make_values(spec, n + LATER, number)
    y[:n] = spoil(y[:n], spec["spoiled"], spec["seed"])
    kept = pd.Series(y)
    if spec["dtype"] in ("int64", "Int64", "bool") and (np.abs(np.nan_to_num(y, nan=np.inf)) > 1e15).any():
        return kept
    if spec["dtype"] in ("int64", "Int64"):
        kept = kept.round()
    with np.errstate(over="ignore"):
        return kept.astype(spec["dtype"])


def exogenous(spec: dict[str, Any], index: pd.Index, n: int) -> pd.DataFrame:
    """X of all rows, of which the first n are fitted."""
    rng, how = np.random.default_rng(spec["seed"]), spec["spoiled"]
    X = pd.DataFrame(rng.normal(size=(len(index), spec["columns"])), index).add_prefix("x")
    if how in ("gaps", "inf", "huge"):
        X.iloc[rng.integers(n), 0] = {"gaps": np.nan, "inf": np.inf, "huge": 1e160}[how]
    elif how == "constant":
        X["x0"] = 3.0
    elif how in ("bool", "text"):
        X["x0"] = (X["x0"] > 0).astype(how.replace("text", "str"))
    if spec["later"] == "far":
        X.iloc[n:] *= 1e12
    return X


def frames(case: dict[str, Any]) -> tuple[pd.DataFrame, pd.DataFrame, Any]:
    """y of the fit, y that comes later, and X of all rows (None without), as sktime takes them."""
    n, sizes = case["n"], case["panel"]
    index, parts, covariates = make_index(case["index"], n + LATER), {}, {}
    for number, key in enumerate(product(*[range(size) for size in sizes or [1]])):
        columns = range(case["columns"])
        values = {f"y{c}": column(case["values"], n, 10 * number + c).to_numpy() for c in columns}
        part = pd.DataFrame(values, index)
        if case["flaw"] == "rows missing" and n > 5:
            part = part.drop(index[[2, n - 3]])
        if case["flaw"] == "unequal" and number == 0:
            part = part.iloc[n // 2 :]
        parts[key] = part
        if case.get("X"):
            covariates[key] = exogenous(case["X"], index, n)
    fitted = {key: part[: len(part) - LATER] for key, part in parts.items()}
    later = {key: part[len(part) - LATER :] for key, part in parts.items()}
    fitted = {key: _flawed(part, case["flaw"]) for key, part in fitted.items()}
    y, new = _joined(fitted, sizes), _joined(later, sizes)
    return y, new, _joined(covariates, sizes) if covariates else None


def _flawed(part: pd.DataFrame, flaw: str | None) -> pd.DataFrame:
    if flaw == "unsorted":
        return part.iloc[::-1]
    return pd.concat([part, part.iloc[-1:]]) if flaw == "duplicated" else part


def _joined(parts: dict[tuple, pd.DataFrame], sizes: list[int] | None) -> pd.DataFrame:
    if not sizes:
        return parts[(0,)]
    names = [f"level{k}" for k in range(len(sizes))]
    if len(sizes) == 1:
        parts = {key[0]: part for key, part in parts.items()}
    return pd.concat(parts, names=[*names, "time"])


def as_user(frame: pd.DataFrame) -> Any:
    """A series where there is one column and one instance."""
    return frame["y0"] if frame.shape[1] == 1 and frame.index.nlevels == 1 else frame
