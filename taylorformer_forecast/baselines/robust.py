"""Guards of a forecast: series without outliers, and the range that forecasts may not leave.

All but :func:`without_outliers` is causal; only :func:`winsorise` looks at the next value.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from taylorformer_forecast.baselines.smoothing import slope_so_far
from taylorformer_forecast.defaults import (
    DECIDED_SIZE,
    FEWEST_SHIFTS,
    FIRST_CHECKED_VALUE,
    INTERMITTENT_ZEROS,
    LARGE_STEP,
    LARGEST_GROWTH,
    LAST_OUTLIER_SIZE,
    LEVEL_SHIFT_MEMORY,
    LEVEL_SHIFT_PART,
    LONG_SERIES,
    MIN_CHECKED_VALUES,
    MOST_OUTLIERS,
    OUTLIER_SIZE,
    SPIKE_SIZES,
    STEP_BLOCK,
    STEP_SIZE_MEMORY,
    UNDECIDED_SIZE,
)


class Winsorised(NamedTuple):
    """Series without outliers, and what is not known yet of their ends.

    Parameters
    ----------
    values : Tensor of shape (B, n)
        Values with outliers moved; NaN where nothing was observed.
    doubt : Tensor of shape (B,)
        How far the last value was moved to, from the values before it; 0 if it is no outlier.
    shifted : Tensor of shape (B,)
        The last value, where a shift of the level was found at one of the last six points; NaN elsewhere.
    """

    values: Float[Tensor, "B n"]
    doubt: Float[Tensor, " B"]
    shifted: Float[Tensor, " B"]


def winsorise(y: Float[Tensor, "B n"], season: int = 1) -> Winsorised:
    """Pull outliers back to a multiple of the usual step.

    A value is compared with the values before it alone: the last one and the one a season ago, both without
    outliers. What lies further outside their range than eight mean absolute steps is an outlier. The next
    value decides on it. If it lies twice as close to the outlier as to the range before, the level has
    shifted, and the outlier stays as it is. Else it is moved to two steps. The last value is moved to four,
    unless the level shifted twice and no value was an outlier. The first change of a constant is a shift. The
    first four values are not checked.

    Parameters
    ----------
    y : Tensor of shape (B, n)
        Series; NaN where nothing was observed.
    season : int, default=1
        Steps of a season.

    Returns
    -------
    Winsorised
        The same with outliers moved.

    References
    ----------
    Gelper, Fried and Croux, "Robust forecasting with exponential and Holt-Winters smoothing", 2010.

    Examples
    --------
    >>> import torch
    >>> from taylorformer_forecast.baselines.robust import winsorise
    >>> y = torch.tensor([[1.0, 2.0, 1.0, 2.0, 1.0, 1e6, 2.0, 1.0]])
    >>> winsorise(y).values.tolist()
    [[1.0, 2.0, 1.0, 2.0, 1.0, 3.0, 2.0, 1.0]]
    """
    observed = ~y.isnan()
    found = _pulled_back(torch.nan_to_num(y).T.numpy(force=True), observed.T.numpy(force=True), season)
    values, doubt, shifted = (torch.as_tensor(part, device=y.device) for part in found)
    return Winsorised(torch.where(observed, values.T, torch.nan), doubt, shifted)


def _pulled_back(values: np.ndarray, observed: np.ndarray, season: int) -> tuple[np.ndarray, ...]:
    """Values without outliers, shape (n, B), and their ends; numpy: many small steps take less time there."""
    rows, columns = np.empty_like(values), np.arange(values.shape[1])
    last, seen, step, raw, inside, unit, shifts, outliers = np.zeros((8, values.shape[1]), values.dtype)
    held = np.zeros(values.shape[1], bool)  # whether the last value is an outlier, and not decided yet
    at, shift_at = 0 * columns, np.full_like(columns, -LEVEL_SHIFT_MEMORY)
    for t, (value, now) in enumerate(zip(values, observed, strict=True)):
        decided = now & held
        shifted = decided & (np.abs(value - raw) < LEVEL_SHIFT_PART * np.abs(value - inside))
        shifts, outliers = shifts + shifted, outliers + (decided & ~shifted)
        settled = np.where(shifted, raw, inside + np.sign(raw - inside) * DECIDED_SIZE * unit)
        rows[at[decided], columns[decided]] = settled[decided]
        last, shift_at = np.where(decided, settled, last), np.where(shifted, t, shift_at)
        low = high = last
        if 1 < season <= t:
            earlier = np.where(observed[t - season], rows[t - season], last)
            low, high = np.minimum(last, earlier), np.maximum(last, earlier)
        near = np.maximum(np.minimum(value, high), low)
        limit = np.where((seen >= FIRST_CHECKED_VALUE - 1) & (step > 0), OUTLIER_SIZE * step, np.inf)
        far = np.abs(value - near) > limit
        trusted = (shifts >= FEWEST_SHIFTS) & (outliers == 0)
        first = (step == 0) & (value != near) & (seen >= FIRST_CHECKED_VALUE - 1)
        shift_at = np.where(now & ((far & trusted) | first), t, shift_at)
        rows[t] = np.where(far & ~trusted, near + np.sign(value - near) * UNDECIDED_SIZE * step, value)
        size = np.minimum(np.abs(value - last), limit)
        held = np.where(now, far, held)
        raw, inside, unit = np.where(now, (value, near, step), (raw, inside, unit))
        change = (size - step) / np.minimum(np.maximum(seen, 1), STEP_SIZE_MEMORY)
        step = np.where(now & (seen > 0), step + change, step)
        last, seen, at = np.where(now, rows[t], last), seen + now, np.where(now, t, at)
    late = len(values) - shift_at <= LEVEL_SHIFT_MEMORY
    return rows, np.where(held, UNDECIDED_SIZE * unit, 0.0), np.where(late, last, np.nan)


def without_outliers(
    t: Float[Tensor, " n"], y: Float[Tensor, " n"], seasons: Sequence[float] = ()
) -> Float[Tensor, " n"]:
    """Take outliers out of a series, in view of the values on both sides of them.

    A value is compared with the range of the levels before and after it (medians of three values) and of the
    values one season before and after it. What lies further from this range than four large steps (the 0.9
    quantile of the steps around it; in a long series six of them) is an outlier and becomes missing, if it is
    one of two in a row at most: more are a shift of the level. At the ends, where no one can tell which, two
    values are moved to two large steps from the range. Series with many zeros or outliers stay as they are.

    Parameters
    ----------
    t, y : Tensor of shape (n,)
        Times, increasing, and values; NaN where nothing was observed.
    seasons : sequence of float, optional
        Lengths of seasons, in units of the times.

    Returns
    -------
    Tensor of shape (n,)
        Values; ``y`` itself if nothing is an outlier.

    References
    ----------
    Tukey, "Exploratory data analysis", 1977, on running medians.

    Examples
    --------
    >>> import torch
    >>> from taylorformer_forecast.baselines.robust import without_outliers
    >>> y = torch.tensor([1.0, 2.0, 1.5, 1.0, 2.0, 1.0, 2.0] * 6)
    >>> y[[10, -1]] = 1e6
    >>> without_outliers(torch.arange(42.0), y)[[9, 10, 11, -2, -1]].tolist()
    [1.5, nan, 2.0, 1.0, 3.0]
    """
    seen = ~y.isnan()
    values, at = y[seen], t[seen]
    if len(values) < MIN_CHECKED_VALUES or (values == 0).float().mean() >= INTERMITTENT_ZEROS:
        return y
    around = _seasonal_values(at, values, seasons)
    unit, size = _usual_steps(values), SPIKE_SIZES[len(values) > LONG_SERIES]
    clean = _without_spikes(values, around, size * unit)
    for _ in range(2):  # both ends
        values, around, unit = values.flip(0), around.flip(1), unit.flip(0)
        clean = _with_near_end(clean.flip(0), values, around, unit, size)
    changed = clean != values  # NaN too
    if not changed.any() or changed.float().mean() > max(MOST_OUTLIERS, 2.5 / len(values)):
        return y
    return y.masked_scatter(seen, clean)


def _usual_steps(y: Float[Tensor, " n"]) -> Float[Tensor, " n"]:
    """Size of a large step around every value: that of its block, or of one beside it."""
    steps = y.diff().abs()
    blocks = steps.tensor_split(max(1, len(steps) // STEP_BLOCK))
    size = torch.stack([block.quantile(LARGE_STEP) for block in blocks])
    size = torch.nn.functional.max_pool1d(size[None], 3, stride=1, padding=1)[0]
    every = torch.cat([one.expand(len(block)) for one, block in zip(size, blocks, strict=True)])
    return torch.cat([every[:1], every])


def _seasonal_values(t: Tensor, y: Tensor, seasons: Sequence[float]) -> Float[Tensor, "K n"]:
    """Values one season before and after each; NaN where there is none."""
    found = [torch.full_like(y, torch.nan)]
    for season in seasons:
        for apart in (-season, season):
            near = torch.searchsorted(t, t + apart - 0.5).clamp_max(len(t) - 1)
            found.append(torch.where((t[near] - t - apart).abs() <= 0.5, y[near], torch.nan))
    return torch.stack(found)


def _beyond(y: Tensor, around: Float[Tensor, "K n"]) -> Float[Tensor, " n"]:
    """How far values lie above (or, negative, below) the range of what is around them."""
    low = torch.where(around.isnan(), torch.inf, around).amin(0)
    high = torch.where(around.isnan(), -torch.inf, around).amax(0)
    return (y - high).clamp_min(0.0) + (y - low).clamp_max(0.0)


def _without_spikes(y: Tensor, around: Tensor, most: Tensor) -> Float[Tensor, " n"]:
    """Values with those missing that leave the levels on both sides, the first and last as they are."""
    n = len(y)
    padded = torch.nn.functional.pad(y, (3, 3), value=torch.nan).unfold(0, 3, 1)  # three in a row
    before, after = padded[:n], padded[4:]
    level = torch.stack([before.median(1).values, after.median(1).values])
    for row, side, other in ((level[0], before, 1), (level[1], after, 0)):  # with fewer: nearest to the other
        few = row.isnan() & ~level[other].isnan()
        apart = (side - level[other][:, None]).abs().nan_to_num(torch.inf)
        nearest = side.gather(1, apart.argmin(1, keepdim=True))[:, 0]
        row[few] = nearest[few]
    away = _beyond(y, torch.cat([level, around]))
    far = (away.abs() > most) & (most > 0)
    far[[0, -1]] = False
    return torch.where(far, torch.nan, y)


def _with_near_end(
    clean: Tensor, y: Tensor, around: Tensor, unit: Tensor, size: float
) -> Float[Tensor, " n"]:
    """The last one or two values moved, where they alone lie far from the values before them."""
    if not bool((y[-3:].diff().abs() > (size - 2) * unit[-2:]).any()):
        return clean  # no step is large enough to lead so far from one of the three values before it
    for count in (1, 2):
        first = len(y) - count
        step = torch.maximum(unit[first:], y[first - 3 : first].diff().abs().max())
        level = y[first - 3 : first].median().expand(1, count)
        away = _beyond(y[first:], torch.cat([level, around[:, first:]]))
        if bool((away.abs() > size * step).all() & (step > 0).all() & (away.sign().diff() == 0).all()):
            moved = y[first:] - away + LAST_OUTLIER_SIZE * step * away.sign()
            return torch.cat([clean[:first], moved])
    return clean


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


def forecast_range(
    y: Float[Tensor, "B n"], horizon: int, bounded: Bool[Tensor, "B n"]
) -> tuple[Float[Tensor, "B n H"], Float[Tensor, "B n H"]]:
    """Lower and upper bound of forecasts from every origin.

    A forecast may leave the range of the values so far by the width of that range. A positive series may
    also grow as fast as the line through its logarithms, to the degree that the line fits, up to three times
    its largest value.

    Parameters
    ----------
    y : Tensor of shape (B, n)
        Series without outliers; NaN where nothing was observed.
    horizon : int
        Number of steps ahead.
    bounded : bool Tensor of shape (B, n)
        Origins from which no forecast is negative.

    Returns
    -------
    low, high : Tensor of shape (B, n, H)
        Bounds of the forecasts from each point; both are 0 before the first observed value.

    Examples
    --------
    >>> import torch
    >>> from taylorformer_forecast.baselines.robust import forecast_range
    >>> low, high = forecast_range(torch.tensor([[4.0, 6.0, 5.0]]), 1, torch.tensor([[True] * 3]))
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
    low = torch.where(bounded[..., None], low.clamp_min(0.0), low).expand(-1, -1, horizon)
    return low, top[..., None] + torch.maximum(width, growth)
