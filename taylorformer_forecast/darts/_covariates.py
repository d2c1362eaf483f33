"""What a darts model remembers of the series it was trained with: units, and gaps of covariates."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from darts import TimeSeries
from torch import Tensor

from taylorformer_forecast.defaults import CONTEXT_FLOOR, MIN_SERIES_POINTS
from taylorformer_forecast.engine.covariates import mean_and_deviation


def units_of(
    covariates: Sequence[TimeSeries] | None, series: Sequence[TimeSeries], n_phases: int = 0
) -> list[tuple[float, float]]:
    """Mean and standard deviation of every component at the times of the series; phases stay as they are."""
    if not covariates:
        return []
    parts = [one.slice_intersect(other) for one, other in zip(covariates, series, strict=True)]
    values = np.concatenate([one.values(copy=False) for one in parts])
    mean, deviation = mean_and_deviation(values[:, : values.shape[1] - n_phases].astype(float))
    return [*zip(mean.tolist(), deviation.tolist(), strict=True), *[(0.0, 1.0)] * n_phases]


def units_of_static(series: Sequence[TimeSeries]) -> list[tuple[float, float]]:
    """Mean and standard deviation of every static covariate over components and series."""
    tables = [one.static_covariates for one in series]
    mean, deviation = mean_and_deviation(np.concatenate([table.to_numpy(dtype=float) for table in tables]))
    return list(zip(mean.tolist(), deviation.tolist(), strict=True))


def columns_with_gaps(covariates: Sequence[TimeSeries] | None) -> tuple[int, ...]:
    """Components with missing values."""
    if not covariates:
        return ()
    gaps = np.any([np.isnan(one.all_values(copy=False)).any((0, 2)) for one in covariates], axis=0)
    return tuple(np.flatnonzero(gaps).tolist())


def least_spread(values: Sequence[np.ndarray]) -> float:
    """The least standard deviation of values of several series; of constant ones their level, or 1."""
    known = [v[np.isfinite(v)] for v in values]
    moving = [v for v in known if len(v) and v.min() < v.max()]
    enough = [float(v.std()) for v in moving if len(v) >= MIN_SERIES_POINTS] or [
        float(v.std()) for v in moving
    ]
    level = [abs(float(v[0])) for v in known if len(v) and v[0] != 0]
    return min(enough or level or [1.0])


def scales_of(values: Sequence[np.ndarray]) -> tuple[tuple[float, ...], float]:
    """What each component of several series (n, C) is divided by at least, and the mean size of all."""
    floor = [least_spread([v[:, k] for v in values]) * CONTEXT_FLOOR for k in range(values[0].shape[1])]
    every = np.abs(np.concatenate([v.ravel() for v in values]))
    return tuple(floor), float(every[np.isfinite(every)].mean()) or 1.0


def check_gaps(parts: Sequence[Tensor | None], flags: Sequence[int], name: str) -> None:
    """Raise a ValueError if components miss values that had none missing in training.

    Parameters
    ----------
    parts : sequence of (Tensor of shape (B, n, C), or None)
        Covariates of a batch, one stretch of time after another. Rows before the first value are padding.
    flags : sequence of int
        Components with missing values in training: of these the network sees where they are known.
    name : str
        What they are, as the user calls them.
    """
    given = [part for part in parts if part is not None]
    if not given:
        return
    missing = torch.cat(given, 1).isnan()
    started = (~missing).any(-1, keepdim=True).cummax(1).values
    gaps = (missing & started).any(0).any(0).nonzero()[:, 0].tolist()
    if new := sorted({*gaps} - {*flags}):
        raise ValueError(
            f"{name} has missing values in component number {new[0]} (from 0), which had none in "
            f"training: nothing was learnt for them; fill them, or train with some missing"
        )
