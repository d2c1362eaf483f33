"""What must hold whatever the case: of forecasts, of errors, of the caller's data and of global state."""

from __future__ import annotations

import copy
import linecache
import pickle
import random
import signal
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from darts import TimeSeries

import taylorformer_forecast

OURS = Path(taylorformer_forecast.__file__).parent
HOSTS = ("sktime", "skpro", "darts", "skbase", "sklearn")
REFUSALS = (ValueError, TypeError, NotImplementedError, RuntimeError, FileNotFoundError)
LEVELS = [0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99]
FARTHEST_MEAN, WIDEST_BAND = 3.0, 10.0  # in ranges of the data
ROUNDING = 1e-6  # in the largest value
SELDOM = 0.25  # part of zeros, from which on series are taken for counts


class WrongError(Exception):
    """Something that must hold does not."""


def require(holds: Any, what: str) -> None:
    """Raise a WrongError if something does not hold."""
    if not holds:
        raise WrongError(what)


# ---- errors -------------------------------------------------------------------------------------------


def kind_of_error(error: BaseException) -> str:
    """ "wrong", "refused" (one line of ours), "host" (the host's own) or "raw"."""
    if isinstance(error, WrongError):
        return "wrong"
    trace, frames = error.__traceback__, []
    while trace is not None:
        frames.append((trace.tb_frame.f_code.co_filename, trace.tb_lineno))
        trace = trace.tb_next
    path, line = frames[-1]
    if Path(path).is_relative_to(OURS) and linecache.getline(path, line).strip().startswith("raise"):
        one_line = "\n" not in str(error) and str(error).strip()
        return "refused" if one_line and isinstance(error, REFUSALS) else "raw"
    owners = [_owner(path) for path, _ in frames]
    return "host" if [owner for owner in owners if owner][-1] == "host" else "raw"


def _owner(path: str) -> str | None:
    parts = Path(path).parts
    if Path(path).is_relative_to(OURS) or Path(path).is_relative_to(Path(__file__).parent):
        return "ours"
    return "host" if "site-packages" in parts and any(host in parts for host in HOSTS) else None


# ---- what the caller has set, and owns ----------------------------------------------------------------


@contextmanager
def environment(name: str | None) -> Iterator[None]:
    """What a caller may have set in torch."""
    mode = {
        "inference_mode": torch.inference_mode,
        "no_grad": torch.no_grad,
        "autocast": lambda: torch.autocast("cpu", dtype=torch.bfloat16),
    }.get(name or "", nullcontext)
    threads = torch.get_num_threads()
    try:
        if name == "float64":
            torch.set_default_dtype(torch.float64)
        if name == "threads":
            torch.set_num_threads(threads + 1)
        with mode():
            yield
    finally:
        torch.set_default_dtype(torch.float32)
        torch.set_num_threads(threads)


def global_state() -> dict[str, Any]:
    """All that belongs to the caller and could be changed by the way."""
    return {
        "the default dtype": torch.get_default_dtype(),
        "the number of threads": torch.get_num_threads(),
        "whether gradients are taken": torch.is_grad_enabled(),
        "automatic precision": torch.is_autocast_enabled("cpu"),
        "the random state of torch": torch.get_rng_state().numpy().tobytes(),
        "the random state of numpy": pickle.dumps(np.random.get_state()),  # noqa: NPY002
        "the random state of Python": random.getstate(),
        "the handler of interrupts": signal.getsignal(signal.SIGINT),
    }


@contextmanager
def untouched(*data: Any) -> Iterator[None]:
    """Require that a block changes neither data nor global state, even if it fails."""
    before, state = copy.deepcopy(data), global_state()
    try:
        yield
    finally:
        after = global_state()
        changed = [name for name in state if state[name] != after[name]]
        require(not changed, f"changed: {', '.join(changed)}")
        require(_same(before, data), "the caller's data were changed")


def _same(one: Any, other: Any) -> bool:
    """Whether data are the same, missing values included."""
    if type(one) is not type(other):
        return False
    if isinstance(one, (pd.Series, pd.DataFrame)):
        return one.equals(other) and one.index.equals(other.index)
    if isinstance(one, TimeSeries):
        return one.time_index.equals(other.time_index) and _same(one.all_values(), other.all_values())
    if isinstance(one, np.ndarray):
        return np.array_equal(one, other, equal_nan=one.dtype.kind == "f")
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(_same(one[name], other[name]) for name in one)
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(map(_same, one, other))
    return bool(one == other)


# ---- forecasts ----------------------------------------------------------------------------------------


def reach(y: np.ndarray, ahead: int) -> float:
    """A range of the data, or how far the series itself leads in as many steps."""
    at = np.flatnonzero(np.isfinite(y))
    values = y[at]
    size = np.ptp(values) or abs(values[0]) or 1.0
    if len(values) < 3 or ahead < 1 or not np.ptp(values):
        return size
    unit = np.abs(values).max()
    slope = abs(np.polyfit(at, values / unit, 1)[0]) * unit
    size = max(size, slope * min(ahead, 3 * np.ptp(at)))
    if values.min() > 0:  # growth in percent
        rate = np.polyfit(at, np.log(values / unit), 1)[0]
        size = max(size, values.max() * min(2.0, np.expm1(min(max(rate, 0.0) * ahead, 2.0))))
    return size


def check_forecast(
    y: np.ndarray, ahead: int, mean: np.ndarray, quantiles: np.ndarray | None, steady: bool = True
) -> None:
    """Check means (R,) and quantiles (R, levels) of one column, given what was known of it.

    With ``steady=False`` only what holds for networks with exogenous variables is checked.
    """
    require(np.isfinite(mean).all(), "a mean is not finite")
    rounding = max(ROUNDING, 4 * np.finfo(y.dtype).eps) if y.dtype.kind == "f" else ROUNDING
    y = y.astype(float)
    known = y[np.isfinite(y)]
    size, slack = reach(y, ahead), rounding * np.abs(known).max() + 1e-300
    if steady:
        far = FARTHEST_MEAN * size + slack
        away = max(known.min() - mean.min(), mean.max() - known.max())
        require(away <= far, f"a mean is {away / size:.3g} ranges outside of the data")
    if quantiles is None:
        return
    require(np.isfinite(quantiles).all(), "a quantile is not finite")
    require((np.diff(quantiles, axis=-1) >= -slack).all(), "quantiles are not ordered")
    if (known == 0).mean() < SELDOM:  # means of counts that are seldom positive lie beyond their quantiles
        low, high = quantiles[:, 0] - slack, quantiles[:, -1] + slack
        require(((low <= mean) & (mean <= high)).all(), "a mean is outside of its 98 % band")
    if steady:
        width = (quantiles[:, -2] - quantiles[:, 1]).max()
        require(width <= WIDEST_BAND * size + slack, f"a 90 % band is {width / size:.3g} ranges wide")


def require_equal(one: Any, other: Any, what: str) -> None:
    """Require that two answers are the same to the bit."""
    if isinstance(one, (pd.Series, pd.DataFrame)):
        require(one.equals(other), what)
    else:
        require(np.array_equal(one, other, equal_nan=True), what)
