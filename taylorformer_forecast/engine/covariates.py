"""Covariates: warnings of their values, their means and deviations in training, and earlier steps."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool, Float

CODES = [sign * (10.0**digits - 1) for digits in range(3, 10) for sign in (-1, 1)]  # as -9999
FAR_IN_RANGES = 100  # of all other numbers of a column, that a single one is outside


def warn_of_values(values: Float[np.ndarray, "n P"], columns: Sequence, name: str) -> None:
    """Warn of columns without a value, which count for nothing, and of numbers that stand for missing values.

    Such a number has nines alone, and lies outside the range of all others by more than that range. A single
    number that lies outside by a hundred ranges is taken for an error.

    Parameters
    ----------
    values : ndarray of shape (n, P)
        Columns, NaN where missing.
    columns : sequence of length P
        Their names.
    name : str
        What they are, as the user calls them.
    """
    empty = [column for column, known in zip(columns, ~np.isnan(values).all(0), strict=True) if not known]
    if empty:
        warnings.warn(
            f"{name} has no value of {str(empty[0])!r}, which counts for nothing",
            stacklevel=2,
        )
    for column, own in zip(columns, values.T, strict=True):
        known = own[~np.isnan(own)]
        coded, outermost = np.isin(known, CODES), np.zeros(len(known), bool)
        if len(known):
            outermost[np.abs(known - np.median(known)).argmax()] = True
        meaning = "it stands for missing values"
        found = _far_from_others(known, coded, 1)
        if found is None:
            meaning = "it is an error"
            found = _far_from_others(known, outermost, FAR_IN_RANGES)
        if found is not None:
            value, low, high = found
            warnings.warn(
                f"{name} has {value:.10g} in {str(column)!r}, far from all others ({low:g} to {high:g}): "
                f"if {meaning}, replace it by NaN",
                stacklevel=2,
            )


def _far_from_others(
    values: Float[np.ndarray, " n"], which: Bool[np.ndarray, " n"], ranges: int
) -> tuple[float, float, float] | None:
    """The first of some values that is so many ranges of the others outside of these, and their range."""
    others = values[~which]
    if not len(others) or not which.any():
        return None
    low, high = float(others.min()), float(others.max())
    reach = ranges * (high - low)
    far = which & ((values < low - reach) | (values > high + reach))
    if not far.any() or (ranges > 1 and high == low):  # a flag of one event is no error
        return None
    return float(values[far][0]), low, high


def mean_and_deviation(
    values: Float[np.ndarray, "n P"],
) -> tuple[Float[np.ndarray, " P"], Float[np.ndarray, " P"]]:
    """Mean and standard deviation of columns; 1 in place of the latter where a column is constant.

    Parameters
    ----------
    values : ndarray of shape (n, P)
        Columns, NaN where missing.

    Returns
    -------
    mean, deviation : ndarray of shape (P,)
        Of the values that are known; 0 and 1 where none is.

    Examples
    --------
    >>> import numpy as np
    >>> from taylorformer_forecast.engine.covariates import mean_and_deviation
    >>> mean, deviation = mean_and_deviation(np.array([[1.0, 5.0], [np.nan, 5.0], [3.0, 5.0]]))
    >>> mean.tolist(), deviation.tolist()
    ([2.0, 5.0], [1.0, 1.0])
    """
    known = ~np.isnan(values)
    count = np.maximum(known.sum(0), 1)
    mean = np.where(known, values, 0).sum(0) / count
    deviation = np.sqrt((np.where(known, values - mean, 0) ** 2).sum(0) / count)
    return mean, np.where(deviation > 1e-12 * np.abs(mean), deviation, 1.0)  # less is rounding


def with_earlier(x: Float[np.ndarray, "*B n C"], reach: int) -> Float[np.ndarray, "*B n R C"]:
    """Covariates of each step of a grid, and of the steps before; NaN before the first.

    Examples
    --------
    >>> import numpy as np
    >>> from taylorformer_forecast.engine.covariates import with_earlier
    >>> with_earlier(np.array([[1.0], [2.0]]), 1)[..., 0].tolist()
    [[1.0, nan], [2.0, 1.0]]
    """
    n, before = x.shape[-2], np.full((*x.shape[:-2], reach, x.shape[-1]), np.nan)
    padded = np.concatenate([before, x], -2)
    return np.stack([padded[..., reach - back : reach - back + n, :] for back in range(reach + 1)], -2)
