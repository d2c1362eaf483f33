"""What values are mapped by before they are filled: logarithms, the choice of their offsets, a floor."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from scipy.special import ndtr

from taylorformer_forecast.baselines.seasonal import season_of_zeros
from taylorformer_forecast.core.families.numeric import bisect
from taylorformer_forecast.defaults import LOGARITHM_EVIDENCE, LOGARITHM_OFFSETS, MOST_TIED

REACH = 8.0  # deviations


@dataclass(frozen=True)
class Logarithm:
    """The map from ``y`` to ``log(y + offset)``; beyond the largest value known it goes on straight.

    What lies above all that was seen is thus not raised to a power: heavy tails keep their weight, and
    moments exist.

    Parameters
    ----------
    offset : float
        Added before the logarithm is taken.
    top : float
        Where the straight part begins.
    """

    offset: float
    top: float

    @classmethod
    def of(cls, y: np.ndarray, offset: float | None) -> Logarithm | None:
        """The map for observed values; None if there is no offset, or for values that have no logarithm.

        Parameters
        ----------
        y : ndarray
            Values, NaN where missing.
        offset : float or None
            In units of the mean, so that what is filled follows the units of the data.
        """
        if offset is None or np.nanmin(y) < 0 or np.nanmax(y) == 0 or (offset == 0 and np.nanmin(y) == 0):
            return None
        return cls(offset * float(np.nanmean(y)), float(np.nanmax(y)))

    def __call__(self, y: np.ndarray) -> np.ndarray:
        """Logarithms of values."""
        edge = self.top + self.offset
        beyond = np.maximum(y - self.top, 0.0)
        return np.log(np.minimum(y, self.top) + self.offset) + beyond / edge

    def inverse(self, z: np.ndarray) -> np.ndarray:
        """Values of logarithms."""
        edge = self.top + self.offset
        highest = math.log(edge)
        return np.exp(np.minimum(z, highest)) - self.offset + np.maximum(z - highest, 0.0) * edge


@dataclass(frozen=True)
class Floor:
    """Values as they are; of what is filled, no value is negative."""

    def __call__(self, y: np.ndarray) -> np.ndarray:
        """Values."""
        return y

    def inverse(self, z: np.ndarray) -> np.ndarray:
        """Values, zero where they are negative."""
        return np.maximum(z, 0.0)


def raised_by_floor(mean: np.ndarray, deviation: np.ndarray) -> np.ndarray:
    """How much lower normal values must be, so that a floor at zero leaves their mean as it was.

    At most a deviation: of a mean near zero it would leave nothing.

    Examples
    --------
    >>> import numpy as np
    >>> from taylorformer_forecast.sktime._transforms import raised_by_floor
    >>> less = raised_by_floor(np.array([1.0, 9.0]), np.array([2.0, 2.0]))
    >>> less.round(2)
    array([0.62, 0.  ])
    >>> np.maximum(np.random.default_rng(0).normal(1 - less[0], 2, 10**6), 0).mean().round(2)
    np.float64(1.0)
    """
    ratio = (np.maximum(mean, 0.0) / np.maximum(deviation, np.finfo(float).tiny)).clip(max=REACH)

    def of_rest(z: np.ndarray) -> np.ndarray:
        """Means of what normal values of deviation 1 and mean z have above zero."""
        return z * ndtr(z) + np.exp(-(z**2) / 2) / math.sqrt(2 * math.pi)

    lowered = bisect(of_rest, ratio, -REACH, ratio)
    return np.where(ratio < REACH, mean - deviation * lowered, 0.0).clip(0.0, deviation)


def has_logarithm(parts: Sequence[np.ndarray], seasons: Sequence[int] = ()) -> bool:
    """Whether logarithms ``log(y + offset)`` of a column can be compared with its values by their densities.

    No value is negative, and few are the smallest: those of a dry day have a density as large as the offset
    is small, so that the smallest offset would always win. Zeros of the night are no such: a season has them.

    Parameters
    ----------
    parts : sequence of ndarray
        Values of its instances, NaN where missing. Those that are constant do not count.
    seasons : sequence of int
        Rows of the seasons.

    Examples
    --------
    >>> import numpy as np
    >>> from taylorformer_forecast.sktime._transforms import has_logarithm
    >>> has_logarithm([np.array([1.0, 3.0, 9.0] * 7)]), has_logarithm([np.arange(40.0)])
    (False, True)
    """
    vary = [y for y in parts if np.nanmax(y) > np.nanmin(y)]
    if not vary or min(np.nanmin(y) for y in parts) < 0:
        return False
    counted = [y for y in vary if not season_of_zeros(torch.as_tensor(y)[None], seasons)]
    return not _often_smallest(counted)


def _often_smallest(parts: Sequence[np.ndarray]) -> bool:
    """Whether many values are as small as the smallest of their instance, which one may be alone."""
    n_ties = sum((y == np.nanmin(y)).sum() - 1 for y in parts)
    return bool(n_ties > MOST_TIED * sum((~np.isnan(y)).sum() for y in parts))


def transform_of(y: np.ndarray, offset: float | None) -> Logarithm | Floor | None:
    """What observed values, NaN where missing, are mapped by; see :class:`Logarithm`, :class:`Floor`."""
    log = Logarithm.of(y, offset)
    return Floor() if log is None and np.nanmin(y) == 0 and _often_smallest([y]) else log


def choose_offsets(
    nats: Callable[[Sequence[float | None]], np.ndarray], possible: Sequence[bool]
) -> list[float | None]:
    """Choose for every column whether its logarithm is taken, and of what: from slight to strong.

    Parameters
    ----------
    nats : callable
        From offsets, one for each column, to the negative log-densities of the columns, in nats.
    possible : sequence of bool
        Which columns have a logarithm.

    Returns
    -------
    list of float or None
        Offsets in units of the means; None for columns that are best left as they are.
    """
    chosen: list[float | None] = [None] * len(possible)
    open_, lowest = np.array(possible), np.zeros(len(possible))
    if not open_.any():
        return chosen
    lowest = nats(chosen)
    for offset in LOGARITHM_OFFSETS:
        found = nats([offset if go_on else old for go_on, old in zip(open_, chosen, strict=True)])
        open_ = open_ & (found < lowest - LOGARITHM_EVIDENCE)
        if not open_.any():
            break
        chosen = [offset if better else old for better, old in zip(open_, chosen, strict=True)]
        lowest = np.where(open_, found, lowest)
    return chosen
