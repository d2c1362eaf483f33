"""Outliers of series that a darts model is trained on, and of pasts that it forecasts from."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from darts import TimeSeries
from einops import rearrange
from torch import Tensor

from taylorformer_forecast.baselines.outliers import large_step, without_outliers
from taylorformer_forecast.darts._effects import Additions
from taylorformer_forecast.defaults import SPIKE_SIZES, STEP_BLOCK
from taylorformer_forecast.engine.contexts import robust_columns


def series_without_outliers(
    series: TimeSeries,
    seasons: Sequence[float],
    covariates: TimeSeries | None = None,
    additions: Additions | None = None,
) -> TimeSeries:
    """A series without outliers, in view of all of its values, less what covariates add.

    Parameters
    ----------
    series : TimeSeries
        The series.
    seasons : sequence of float
        Lengths of seasons, in steps.
    covariates, additions : TimeSeries and Additions, optional
        Future covariates, and what they add.
    """
    rest = series if additions is None or covariates is None else additions.rest_of(series, covariates)
    values = rest.values(copy=False).astype(float)
    clean = robust_columns(np.arange(len(values)), values, seasons)
    moved = np.where(np.isnan(values), 0.0, clean - values)
    if not moved.any():
        return series
    known = series.all_values(copy=False)
    return series.with_values((known + moved[..., None]).astype(known.dtype))


def late_outliers(y: Tensor, n_last: int, seasons: Sequence[float]) -> Tensor:
    """What is added to the last values of pasts to move outliers among them, NaN where they become missing.

    All values of a past are looked at where one of the last lies far from those before it, or some are
    missing: that takes longer than a forecast.

    Parameters
    ----------
    y : Tensor of shape (B, L, C)
        Pasts of B series, NaN where missing.
    n_last : int
        Number of the last values.
    seasons : sequence of float
        Lengths of seasons, in steps.

    Returns
    -------
    Tensor of shape (B, n_last, C)
        Zero where a value stays, or was missing before.

    Examples
    --------
    >>> import torch
    >>> from taylorformer_forecast.darts._outliers import late_outliers
    >>> y = torch.tensor([1.0, 2.0, 1.5, 1.0, 2.0, 1.0, 2.0] * 6)
    >>> y[-1] = 1000.0
    >>> late_outliers(y.view(1, 42, 1), 3, []).flatten().tolist()
    [0.0, 0.0, -997.0]
    """
    rows = rearrange(y, "b l c -> (b c) l").cpu().double()
    t, moved = torch.arange(rows.shape[1], dtype=torch.float64), torch.zeros_like(rows[:, -n_last:])
    for k in _may_have_outliers(rows, n_last).nonzero()[:, 0].tolist():
        change = without_outliers(t, rows[k], seasons) - rows[k]
        moved[k] = torch.where(rows[k].isnan(), 0.0, change)[-n_last:]
    return rearrange(moved, "(b c) l -> b l c", c=y.shape[2]).to(y)


def _may_have_outliers(rows: Tensor, n_last: int) -> Tensor:
    """Which rows have a value, among the last ones, that is no continuation of the three before it."""
    near = rows[:, -max(n_last, STEP_BLOCK) - 3 :]
    if near.shape[1] <= 3:
        return torch.zeros(len(rows), dtype=torch.bool)
    level = near.unfold(1, 3, 1)[:, :-1].median(-1).values
    step = large_step(near.diff().abs())
    away = (near[:, 3:] - level).abs().amax(1)
    return ~(away <= min(SPIKE_SIZES) * step)  # also where some values are missing
