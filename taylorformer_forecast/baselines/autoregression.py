"""Seasonal autoregression from every origin: how changes since a season ago go on."""

from __future__ import annotations

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from taylorformer_forecast.baselines.bounds import positive_so_far
from taylorformer_forecast.baselines.smoothing import points_since_first
from taylorformer_forecast.defaults import (
    LARGEST_REGRESSED_CHANGE,
    REGRESSION_CYCLES,
    REGRESSION_MEMORY,
    REGRESSION_PENALTIES,
)

__all__ = ["autoregression"]


def autoregression(
    y: Float[Tensor, "B n"], season: int, horizon: int
) -> tuple[Float[Tensor, "B n K H"], Bool[Tensor, "B n"]]:
    """Forecasts from every origin by a regression of seasonal changes on earlier ones.

    The change of a value since a season ago follows from those one and two steps, a season, and a season and
    a step before it, and from a constant. Coefficients are those of all values up to the origin, shrunk to a
    change that fades away. Positive series have changes of logarithms. Changes far from the mean one are held
    near it, so that an outlier does not come back a season later.

    Parameters
    ----------
    y : Tensor of shape (B, n)
        Series without outliers, double precision; NaN where nothing was observed.
    season : int
        Steps of the season.
    horizon : int
        Number of steps ahead.

    Returns
    -------
    forecasts : Tensor of shape (B, n, K, H)
        One for each penalty; NaN where nothing is known of the phase.
    known : bool Tensor of shape (B, n)
        Origins that come after enough seasons.

    References
    ----------
    Box and Jenkins, "Time series analysis: forecasting and control", 1970, on seasonal differences.

    Examples
    --------
    >>> import torch
    >>> from taylorformer_forecast.baselines.autoregression import autoregression
    >>> t = torch.arange(48.0).double()
    >>> y = (1.02**t * (2 + (t % 4 == 0)))[None]  # a season that grows by 2 % a step
    >>> forecasts, known = autoregression(y, 4, 4)
    >>> (forecasts[0, -1, 0] / y[0, -4:]).round(decimals=2).tolist(), int(known.sum())
    ([1.08, 1.08, 1.08, 1.08], 17)
    """
    positive = positive_so_far(y)
    forecasts = _regress(torch.where(y > 0, y, torch.nan).log(), season, horizon).exp()
    if not bool(positive.all()):
        forecasts = torch.where(positive[..., None, None], forecasts, _regress(y, season, horizon))
    return forecasts, points_since_first(y) >= REGRESSION_CYCLES * season


def _regress(y: Float[Tensor, "B n"], season: int, horizon: int) -> Float[Tensor, "B n K H"]:
    """Forecasts of the series itself; NaN where a value one season ago is not known."""
    values = torch.as_tensor(_held(y.T.numpy(force=True), season), device=y.device).T
    change = values - _before(values, season)
    lags = tuple(dict.fromkeys((1, 2, season, season + 1)))
    count = (~change.isnan()).cumsum(1).clamp_min(1)
    size = (torch.nan_to_num(change).square().cumsum(1) / count).sqrt().clamp_min(1e-12)[..., None]
    coefficients = _coefficients(change, lags, ~y.isnan(), size)
    changes: list[Tensor] = []
    found: list[Tensor] = []
    for step in range(1, horizon + 1):
        seen = [_at(change, changes, step - lag) for lag in lags]
        z = torch.stack([*seen, torch.ones_like(seen[0])], -1)
        changes.append(REGRESSION_MEMORY * seen[0] + (z * coefficients).sum(-1))
        found.append(changes[-1] + _at(values, found, step - season, torch.nan))
    return torch.stack(found, -1)


def _held(y: np.ndarray, season: int) -> np.ndarray:
    """Values whose change since a season ago is held near the mean change, shape (n, B).

    Where a value is missing, its change is the mean one. In numpy, whose loops cost less.
    """
    values = y.copy()
    count, mean, size = np.zeros((3, y.shape[1]))
    for t in range(season, len(y)):
        earlier = values[t - season]
        change = y[t] - earlier
        seen = ~np.isnan(change)
        most = np.where(count >= season, LARGEST_REGRESSED_CHANGE * size, np.inf)
        held = np.where(seen, np.clip(change, mean - most, mean + most), mean)
        values[t] = np.where(seen | np.isnan(y[t]), earlier + held, y[t])
        count += seen
        part = seen / np.maximum(count, 1.0)
        size += part * (np.abs(held - mean) - size)
        mean += part * (held - mean)
    return values


def _before(x: Float[Tensor, "B n"], lag: int) -> Float[Tensor, "B n"]:
    """Of every point, what stood some steps before it; NaN before the first."""
    return torch.nn.functional.pad(x, (lag, 0), value=torch.nan)[:, : x.shape[1]]


def _at(
    past: Float[Tensor, "B n"], ahead: list[Tensor], step: int, fill: float = 0.0
) -> Float[Tensor, "B n K"]:
    """What stands some steps after every origin: forecast, or observed where the step is not positive."""
    if step > 0:
        return ahead[step - 1]
    known = _before(past, -step).nan_to_num(fill)
    return known[..., None].expand(-1, -1, len(REGRESSION_PENALTIES))


def _coefficients(
    change: Float[Tensor, "B n"],
    lags: tuple[int, ...],
    observed: Bool[Tensor, "B n"],
    size: Float[Tensor, "B n 1"],
) -> Float[Tensor, "B n K p"]:
    """Ridge regression on the changes up to every origin; what is left where changes fade away."""
    z = torch.stack([_before(change, lag) for lag in lags], -1)
    left = change - REGRESSION_MEMORY * z[..., 0]
    used = observed & ~left.isnan() & ~z.isnan().any(-1)
    z = torch.cat([torch.nan_to_num(z), torch.ones_like(left)[..., None]], -1) * used[..., None]
    left = torch.where(used, left, 0.0)
    size = torch.cat([size.expand(-1, -1, len(lags)), torch.ones_like(size)], -1)
    gram = (z[..., :, None] * z[..., None, :]).cumsum(1) / (size[..., :, None] * size[..., None, :])
    product = (z * left[..., None]).cumsum(1) / size
    penalty = gram.new_tensor(REGRESSION_PENALTIES)[:, None, None] * torch.eye(z.shape[-1]).to(gram)
    found = torch.linalg.solve(gram[:, :, None] + penalty, product[:, :, None, :, None])
    return found[..., 0] / size[:, :, None]
