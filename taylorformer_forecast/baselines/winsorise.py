"""Outliers in view of the values before them and the next one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from taylorformer_forecast.defaults import (
    DECIDED_SIZE,
    FEWEST_SHIFTS,
    FIRST_CHECKED_VALUE,
    LEVEL_SHIFT_MEMORY,
    LEVEL_SHIFT_PART,
    OUTLIER_SIZE,
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


def winsorise(y: Float[Tensor, "B n"], seasons: Sequence[int] = ()) -> Winsorised:
    """Pull outliers back to a multiple of the usual step.

    A value is compared with the values before it alone: the last one without outliers, and those a season
    ago as they were, since a peak of every year is none. What lies further outside their range than eight
    mean absolute steps is an outlier. The next value decides on it. If it lies twice as close to the outlier
    as to the range before, the level has shifted, and the outlier stays as it is. Else it is moved to two
    steps. The last value is moved to four, unless the level shifted twice, and twice more for each outlier.
    The first change of a constant is such a shift. The first four values are not checked; see
    :func:`~.wrong_values.without_wrong_values`.

    Parameters
    ----------
    y : Tensor of shape (B, n)
        Series; NaN where nothing was observed.
    seasons : sequence of int, optional
        Steps of the seasons.

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
    >>> from taylorformer_forecast.baselines.winsorise import winsorise
    >>> y = torch.tensor([[1.0, 2.0, 1.0, 2.0, 1.0, 1e6, 2.0, 1.0]])
    >>> winsorise(y).values.tolist()
    [[1.0, 2.0, 1.0, 2.0, 1.0, 3.0, 2.0, 1.0]]
    """
    observed = ~y.isnan()
    found = _pulled_back(torch.nan_to_num(y).T.numpy(force=True), observed.T.numpy(force=True), seasons)
    values, doubt, shifted = (torch.as_tensor(part, device=y.device) for part in found)
    return Winsorised(torch.where(observed, values.T, torch.nan), doubt, shifted)


def _pulled_back(values: np.ndarray, observed: np.ndarray, seasons: Sequence[int]) -> tuple[np.ndarray, ...]:
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
        for season in seasons:
            if season <= t:
                earlier = np.where(observed[t - season], values[t - season], last)
                low, high = np.minimum(low, earlier), np.maximum(high, earlier)
        near = np.maximum(np.minimum(value, high), low)
        limit = np.where((seen >= FIRST_CHECKED_VALUE - 1) & (step > 0), OUTLIER_SIZE * step, np.inf)
        far = np.abs(value - near) > limit
        is_shift = shifts >= FEWEST_SHIFTS * (1 + outliers)
        first = (step == 0) & (value != near) & (seen >= FIRST_CHECKED_VALUE - 1)
        shift_at = np.where(now & ((far & is_shift) | first), t, shift_at)
        rows[t] = np.where(far & ~is_shift, near + np.sign(value - near) * UNDECIDED_SIZE * step, value)
        size = np.minimum(np.abs(value - last), limit)
        held = np.where(now, far, held)
        raw, inside, unit = np.where(now, (value, near, step), (raw, inside, unit))
        change = (size - step) / np.minimum(np.maximum(seen, 1), STEP_SIZE_MEMORY)
        step = np.where(now & (seen > 0), step + change, step)
        last, seen, at = np.where(now, rows[t], last), seen + now, np.where(now, t, at)
    late = len(values) - shift_at <= LEVEL_SHIFT_MEMORY
    return rows, np.where(held, UNDECIDED_SIZE * unit, 0.0), np.where(late, last, np.nan)
