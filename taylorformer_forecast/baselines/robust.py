"""Guards of a forecast: winsorised values, and the range that forecasts may not leave.

Everything is causal: row ``t`` of a result depends on the values up to ``t`` only.
"""

from __future__ import annotations

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from taylorformer_forecast.defaults import (
    FIRST_CHECKED_VALUE,
    LARGEST_GROWTH,
    LEVEL_SHIFT_RUN,
    OUTLIER_SIZE,
    STEP_SIZE_MEMORY,
)

__all__ = ["forecast_range", "positive_so_far", "winsorise"]

FLAT = 1e-9  # variance of times below which there is no slope


def winsorise(y: Float[Tensor, "B n"], season: int = 1) -> Float[Tensor, "B n"]:
    """Pull outliers back to a multiple of the usual step.

    A value is compared with the range between the value before it and the value one season earlier. What
    lies further from this range than eight mean absolute steps is moved to that distance. The third such
    value in a row on the same side is a shift of the level and stays as it is.

    Parameters
    ----------
    y : Tensor of shape (B, n)
        Series; NaN where nothing was observed.
    season : int, default=1
        Steps of a season.

    Returns
    -------
    Tensor of shape (B, n)
        The same with outliers moved.

    References
    ----------
    Gelper, Fried and Croux, "Robust forecasting with exponential and Holt-Winters smoothing", 2010.

    Examples
    --------
    >>> import torch
    >>> from taylorformer_forecast.baselines.robust import winsorise
    >>> y = torch.tensor([[1.0, 2.0, 1.0, 2.0, 1.0, 1e6, 2.0]])
    >>> winsorise(y).tolist()
    [[1.0, 2.0, 1.0, 2.0, 1.0, 9.0, 2.0]]
    """
    observed = ~y.isnan()
    rows = _pulled_back(torch.nan_to_num(y).T.numpy(force=True), observed.T.numpy(force=True), season)
    return torch.where(observed, torch.as_tensor(rows, device=y.device).T, torch.nan)


def _pulled_back(values: np.ndarray, observed: np.ndarray, season: int) -> np.ndarray:
    """Values without outliers, shape (n, B); numpy, as many small steps take less time there."""
    rows = np.empty_like(values)
    last, seen, step, row = np.zeros((4, values.shape[1]), values.dtype)
    for t, (value, now) in enumerate(zip(values, observed, strict=True)):
        low = high = last
        if 1 < season <= t:
            earlier = np.where(observed[t - season], rows[t - season], last)
            low, high = np.minimum(last, earlier), np.maximum(last, earlier)
        inside = np.maximum(np.minimum(value, high), low)
        limit = np.where((seen >= FIRST_CHECKED_VALUE - 1) & (step > 0), OUTLIER_SIZE * step, np.inf)
        away = value - inside
        side = np.sign(away) * (np.abs(away) > limit)
        row = np.where(now, np.where(side * row > 0, row + side, side), row)
        held = np.maximum(np.minimum(away, limit), -limit)
        new = inside + np.where(np.abs(row) >= LEVEL_SHIFT_RUN, away, held)
        size = (np.minimum(np.abs(new - last), limit) - step) / np.minimum(
            np.maximum(seen, 1), STEP_SIZE_MEMORY
        )
        step = np.where(now & (seen > 0), step + size, step)
        last, seen = np.where(now, new, last), seen + now
        rows[t] = new
    return rows


def positive_so_far(y: Float[Tensor, "B n"]) -> Tensor:
    """Whether all values up to each point are positive, shape (B, n).

    Examples
    --------
    >>> import torch
    >>> from taylorformer_forecast.baselines.robust import positive_so_far
    >>> positive_so_far(torch.tensor([[1.0, float("nan"), 0.0, 2.0]])).tolist()
    [[True, True, False, False]]
    """
    return ~((y <= 0).cumsum(1) > 0)


def slope_so_far(y: Float[Tensor, "B n"]) -> tuple[Float[Tensor, "B n"], Float[Tensor, "B n"]]:
    """Slope of the least-squares line through the values up to each point, and its squared correlation.

    Examples
    --------
    >>> import torch
    >>> from taylorformer_forecast.baselines.robust import slope_so_far
    >>> slope, r2 = slope_so_far(torch.tensor([[0.0, 1.0, float("nan"), 3.0]]))
    >>> slope.tolist(), r2.tolist()
    ([[0.0, 1.0, 1.0, 1.0]], [[0.0, 1.0, 1.0, 1.0]])
    """
    observed = (~y.isnan()).to(y.dtype)
    t = torch.arange(y.shape[1], dtype=y.dtype, device=y.device) * observed
    count = observed.cumsum(1).clamp_min(1)
    first = torch.where(observed.bool(), y, 0.0).gather(1, observed.argmax(1, keepdim=True))
    x = torch.nan_to_num(y - first)  # offsets would cost digits

    def mean(values: Tensor) -> Tensor:
        return values.cumsum(1) / count

    at, of = mean(t), mean(x)
    spread, joint, size = mean(t * t) - at**2, mean(t * x) - at * of, mean(x * x) - of**2
    known = spread > FLAT
    slope = torch.where(known, joint / spread.clamp_min(FLAT), 0.0)
    r2 = torch.where(known & (size > 0), slope * joint / size.clamp_min(1e-300), 0.0)
    return slope, r2.clamp(0.0, 1.0)


def forecast_range(
    y: Float[Tensor, "B n"], horizon: int
) -> tuple[Float[Tensor, "B n H"], Float[Tensor, "B n H"]]:
    """Lower and upper bound of forecasts from every origin.

    A forecast may leave the range of the values so far by the width of that range. A positive series may
    also grow as fast as the line through its logarithms, to the degree that the line fits, up to three times
    its largest value. Where no value is negative no forecast is.

    Parameters
    ----------
    y : Tensor of shape (B, n)
        Series without outliers; NaN where nothing was observed.
    horizon : int
        Number of steps ahead.

    Returns
    -------
    low, high : Tensor of shape (B, n, H)
        Bounds of the forecasts from each point; both are 0 before the first observed value.

    Examples
    --------
    >>> import torch
    >>> from taylorformer_forecast.baselines.robust import forecast_range
    >>> low, high = forecast_range(torch.tensor([[4.0, 6.0, 5.0]]).double(), 1)
    >>> low[0, -1].tolist(), high[0, -1].tolist()
    ([2.0], [8.0])
    """
    observed = ~y.isnan()
    any_seen = observed.cumsum(1) > 0
    top = torch.where(observed, y, -torch.inf).cummax(1).values
    bottom = torch.where(observed, y, torch.inf).cummin(1).values
    top, bottom = torch.where(any_seen, top, 0.0), torch.where(any_seen, bottom, 0.0)
    width = (top - bottom)[..., None]
    positive = positive_so_far(y)
    slope, r2 = slope_so_far(torch.where(observed & (y > 0), y, torch.nan).log())
    steps = torch.arange(1, horizon + 1, dtype=y.dtype, device=y.device)
    growth = torch.expm1(((slope * r2).clamp_min(0.0)[..., None] * steps).clamp_max(10.0))
    growth = torch.where(positive[..., None], growth.clamp_max(LARGEST_GROWTH) * top[..., None], 0.0)
    low = bottom[..., None] - width
    low = torch.where((bottom >= 0)[..., None], low.clamp_min(0.0), low).expand(-1, -1, horizon)
    return low, top[..., None] + torch.maximum(width, growth)
