"""Units of covariates: their means and standard deviations in training."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

CODES = [sign * (10.0**digits - 1) for digits in range(3, 10) for sign in (-1, 1)]  # as -9999


def warn_of_values(values: Float[np.ndarray, "n P"], columns: Sequence, name: str) -> None:
    """Warn of columns without a value, which count for nothing, and of numbers that stand for missing values.

    Such a number has nines alone, and lies outside the range of all others by more than that range.

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
        coded = np.isin(own, CODES)
        others = own[~coded & ~np.isnan(own)]
        if coded.any() and len(others):
            low, high = others.min(), others.max()
            far = coded & ((own < 2 * low - high) | (own > 2 * high - low))
            if far.any():
                warnings.warn(
                    f"{name} has {own[far][0]:.0f} in {str(column)!r}, far from all others "
                    f"({low:g} to {high:g}): if it stands for missing values, replace it by NaN",
                    stacklevel=2,
                )


def center_and_spread(
    values: Float[np.ndarray, "n P"],
) -> tuple[Float[np.ndarray, " P"], Float[np.ndarray, " P"]]:
    """Mean and standard deviation of columns; 1 in place of the latter where a column is constant.

    Parameters
    ----------
    values : ndarray of shape (n, P)
        Columns, NaN where missing.

    Returns
    -------
    center, spread : ndarray of shape (P,)
        Of the values that are known; 0 and 1 where none is.

    Examples
    --------
    >>> import numpy as np
    >>> from taylorformer_forecast.engine.covariates import center_and_spread
    >>> center, spread = center_and_spread(np.array([[1.0, 5.0], [np.nan, 5.0], [3.0, 5.0]]))
    >>> center.tolist(), spread.tolist()
    ([2.0, 5.0], [1.0, 1.0])
    """
    known = ~np.isnan(values)
    count = np.maximum(known.sum(0), 1)
    center = np.where(known, values, 0).sum(0) / count
    spread = np.sqrt((np.where(known, values - center, 0) ** 2).sum(0) / count)
    return center, np.where(spread > 1e-12 * np.abs(center), spread, 1.0)  # less is rounding
