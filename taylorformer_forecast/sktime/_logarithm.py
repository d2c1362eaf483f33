"""Logarithms of values whose spread grows with their level, and the choice of their offsets."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from taylorformer_forecast.defaults import LOGARITHM_EVIDENCE, LOGARITHM_OFFSETS


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
        """The map for observed values; None if there is no offset, or for values that go below zero.

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
