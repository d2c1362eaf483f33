"""Units of covariates: their means and standard deviations in training."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float


def warn_of_empty(values: Float[np.ndarray, "n P"], columns: Sequence, name: str) -> None:
    """Warn of columns without a value: they count for nothing.

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
