"""Exponential smoothing over a grid of parameters, and lines, of many series from every origin at once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from taylorformer_forecast.defaults import FLAT_SLOPE_COUNT, SMOOTHING_LEVELS, TREND_LEVELS, TREND_SLOPES

FLAT = 1e-9  # variance of times below which there is no slope


@dataclass(frozen=True)
class Grid:
    """Parameters of exponential smoothing, one entry for each member of the grid.

    Parameters
    ----------
    level, slope, damping : Tensor of shape (G,)
        Weight of a new value in the level, weight of a new slope in the trend relative to that, and damping
        of the trend in a step.
    has_trend : bool Tensor of shape (G,)
        Which members have a trend.

    Examples
    --------
    >>> from taylorformer_forecast.baselines.smoothing import Grid
    >>> grid = Grid.default()
    >>> len(grid.level), int(grid.has_trend.sum())
    (23, 16)
    """

    level: Float[Tensor, " G"]
    slope: Float[Tensor, " G"]
    damping: Float[Tensor, " G"]
    has_trend: Bool[Tensor, " G"]

    @classmethod
    def default(cls, device: torch.device | str = "cpu") -> Grid:
        """Return the members without trend, then those with a trend, damped or not, in double precision."""
        rows = [(level, 0.0, 1.0) for level in SMOOTHING_LEVELS]
        rows += [(level, slope, damping) for level in TREND_LEVELS for slope, damping in TREND_SLOPES]
        level, slope, damping = torch.tensor(rows, dtype=torch.float64, device=device).unbind(1)
        return cls(level, slope, damping, torch.arange(len(rows), device=device) >= len(SMOOTHING_LEVELS))

    @classmethod
    def of_level(cls, weight: float, device: torch.device | str = "cpu") -> Grid:
        """Return a single member without trend, that of this weight of a new value."""
        level, slope, damping = torch.tensor([[weight], [0.0], [1.0]], dtype=torch.float64, device=device)
        return cls(level, slope, damping, slope > 0)


def smooth(
    x: Float[Tensor, "K n"], observed: Bool[Tensor, "K n"], grid: Grid
) -> tuple[Float[Tensor, "K n G"], Float[Tensor, "K n G"]]:
    """Level and trend after every point, by exponential smoothing with damped trend.

    The weights of the first values are those of the running mean, for members with a trend those of the line
    through the values so far, until they fall to the weights of the grid. So nothing has to be known about
    initial states. A value that was not observed changes nothing but the level, by the trend.

    Parameters
    ----------
    x : Tensor of shape (K, n)
        Series.
    observed : bool Tensor of shape (K, n)
        Which values were observed.
    grid : Grid
        Parameters of the G members.

    Returns
    -------
    level, trend : Tensor of shape (K, n, G)
        The forecast of step h is the level plus the trend times ``damping + ... + damping ** h``.

    References
    ----------
    Gardner, "Exponential smoothing: the state of the art, part II", 2006.

    Examples
    --------
    >>> import torch
    >>> from taylorformer_forecast.baselines.smoothing import Grid, smooth
    >>> x = torch.arange(10.0)[None].double()
    >>> level, trend = smooth(x, torch.ones(1, 10, dtype=torch.bool), Grid.default())
    >>> level[0, -1, 6].item(), level.shape
    (9.0, torch.Size([1, 10, 23]))
    """
    count = observed.cumsum(1).to(x.dtype)[..., None]
    mean, line = 1 / count.clamp_min(1), (4 * count - 2) / (count * (count + 1)).clamp_min(1)
    slope = 6 / ((count + FLAT_SLOPE_COUNT) * (count + 1 + FLAT_SLOPE_COUNT)).clamp_min(1)
    first = torch.where(grid.has_trend, line.clamp_max(1.0), mean)
    gain = torch.maximum(grid.level, first) * observed[..., None]
    turn = torch.maximum(grid.level * grid.slope, slope) * (
        observed[..., None] & (count > 1) & grid.has_trend
    )
    x = torch.where(observed, x, 0.0)[..., None]
    x, gain, turn = (value.transpose(0, 1).contiguous() for value in (x, gain, turn))
    states = _states(*(value.numpy(force=True) for value in (x, gain, turn, grid.damping)))
    level, trend = torch.as_tensor(states, device=x.device).unbind()
    return level.transpose(0, 1), trend.transpose(0, 1)


def _states(x: np.ndarray, gain: np.ndarray, turn: np.ndarray, damping: np.ndarray) -> np.ndarray:
    """Levels and trends after every point, shape (2, n, K, G); in numpy, whose loops cost less."""
    states = np.zeros((2, *gain.shape))
    level = trend = np.zeros(gain.shape[1:])
    for t in range(len(x)):
        trend = damping * trend
        level = level + trend
        error = x[t] - level
        level = np.add(level, gain[t] * error, out=states[0, t])
        trend = np.add(trend, turn[t] * error, out=states[1, t])
    return states


def points_since_first(y: Float[Tensor, "B n"]) -> Int[Tensor, "B n"]:
    """Numbers of points from the first observed one on, shape (B, n).

    Examples
    --------
    >>> import torch
    >>> from taylorformer_forecast.baselines.smoothing import points_since_first
    >>> points_since_first(torch.tensor([[float("nan"), 1.0, float("nan"), 2.0]])).tolist()
    [[0, 1, 2, 3]]
    """
    return ((~y.isnan()).cumsum(1) > 0).cumsum(1)


def slope_so_far(y: Float[Tensor, "B n"]) -> tuple[Float[Tensor, "B n"], Float[Tensor, "B n"]]:
    """Slope of the least-squares line through the values up to each point, and its squared correlation.

    Examples
    --------
    >>> import torch
    >>> from taylorformer_forecast.baselines.smoothing import slope_so_far
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
