"""Values of covariates that are not known: what stands for them, and where nothing does."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool, Float

from taylorformer_forecast.defaults import LEAST_MEMORY


def memory_of(
    x: Sequence[Float[np.ndarray, "n C"]], means: Float[np.ndarray, " C"]
) -> Float[np.ndarray, " C"]:
    """Correlation of neighbouring values of every covariate, from 0 on."""
    products, squares = np.zeros((2, len(means)))
    for one in x:
        away = one - means
        both = ~np.isnan(away[1:] * away[:-1])
        products += np.where(both, away[1:] * away[:-1], 0.0).sum(0)
        squares += np.where(both, (away[1:] ** 2 + away[:-1] ** 2) / 2, 0.0).sum(0)
    return np.clip(products / np.maximum(squares, 1e-300), 0.0, 1.0)


def filled(
    x: Float[np.ndarray, "*B n C"], means: Float[np.ndarray, " C"], memory: Float[np.ndarray, " C"]
) -> Float[np.ndarray, "*B n C"]:
    """Covariates in order of time, those that are not known between their last value and their mean.

    A price that lacks the latest months is about what it was; a day off is as likely as any.
    """
    last, share = _last_values(x, memory)
    before = np.take_along_axis(x, np.maximum(last, 0), -2)
    return np.where(~np.isnan(x) | (last < 0), x, means + share * (before - means))


def unknown(x: Float[np.ndarray, "*B n C"], memory: Float[np.ndarray, " C"]) -> Bool[np.ndarray, "*B n C"]:
    """Where covariates in order of time have no value, and their last one says little of it.

    Examples
    --------
    >>> import numpy as np
    >>> from taylorformer_forecast.engine.effects.covariate_gaps import unknown
    >>> price_and_flag = np.array([[np.nan, np.nan], [3.0, 1.0], [np.nan, np.nan]])
    >>> unknown(price_and_flag, np.array([0.95, 0.1])).tolist()
    [[True, True], [False, False], [False, True]]
    """
    last, share = _last_values(x, memory)
    return np.isnan(x) & ((last < 0) | (share < LEAST_MEMORY))


def before_all_or_long(missing: Bool[np.ndarray, "*B n"], least: int) -> Bool[np.ndarray, "*B n"]:
    """Which missing rows come before all others, or are ``least`` and more in a row.

    Examples
    --------
    >>> import numpy as np
    >>> from taylorformer_forecast.engine.effects.covariate_gaps import before_all_or_long
    >>> before_all_or_long(np.array([True, False, True, False, True, True]), 2).tolist()
    [True, False, False, False, True, True]
    """
    last, last_backwards = _last_row(missing), _last_row(missing[..., ::-1])[..., ::-1]
    following = missing.shape[-1] - 1 - last_backwards
    return missing & ((last < 0) | (following - last > least))


def _last_values(x: np.ndarray, memory: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Row of the last value at each row, -1 for none, and correlation with it."""
    last = _last_row(np.isnan(x).swapaxes(-1, -2)).swapaxes(-1, -2)
    return last, memory ** (np.arange(x.shape[-2])[:, None] - last)


def _last_row(missing: Bool[np.ndarray, "*B n"]) -> np.ndarray:
    """Row of the last value at each row, -1 for none."""
    return np.maximum.accumulate(np.where(missing, -1, np.arange(missing.shape[-1])), -1)
