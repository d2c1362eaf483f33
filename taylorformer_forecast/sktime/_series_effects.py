"""What is known of each series for the effects of X on it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Float

from taylorformer_forecast.baselines.zeros import never_negative
from taylorformer_forecast.defaults import SPARSEST_STEPS
from taylorformer_forecast.engine.effects.closures import ZeroPlaces, demand_of
from taylorformer_forecast.engine.effects.covariate_effects import CovariateEffects
from taylorformer_forecast.engine.effects.series_scale import bounds_with_effects, since_start


@dataclass(frozen=True)
class SeriesEffects:
    """What is known of a series for the effects of X on it.

    Parameters
    ----------
    number : int
        Its number among those of the fit, or what stands for others.
    of_demand : bool
        Whether it is intermittent demand, whose mean X multiplies.
    unit : float
        Unit of additions.
    low, high : float
        Bounds of values; infinite for none, and for demand.
    start : float
        Number of the time stamp before which zeros are missing values.
    places : ZeroPlaces
        Where in a season it is always zero, from the first time stamp of its instance on.
    hides : bool
        Whether values where X says that all is zero count as missing: not if too few others are left.
    usual : float, optional
        What X added to the values of the past, in the mean; None before it is known.
    """

    number: int
    of_demand: bool
    unit: float
    low: float
    high: float
    start: float
    places: ZeroPlaces
    hides: bool
    usual: float | None = None

    @classmethod
    def of(
        cls,
        numbers: Float[np.ndarray, " n"],
        steps: Float[np.ndarray, " n"],
        y: Float[np.ndarray, " n"],
        x: Float[np.ndarray, "n C"],
        effects: CovariateEffects,
        number: int | None,
        seasons: Sequence[float],
    ) -> SeriesEffects:
        """What is known of a series that was not seen before, by its values.

        Parameters
        ----------
        numbers, steps : ndarray of shape (n,)
            Numbers of its time stamps, and steps since the first.
        y : ndarray of shape (n,)
            Values.
        x : ndarray of shape (n, C)
            X, NaN where it is not known.
        effects : CovariateEffects
            Effects of X.
        number : int, optional
            Number of the series, if it was in their fit.
        seasons : sequence of float
            Lengths of seasons.
        """
        seen, closed = ~np.isnan(y), effects.closed(x)
        hides = bool((seen & ~closed).sum() * SPARSEST_STEPS > seen.sum())
        while_open = np.where(closed, np.nan, y) if hides else y
        places = _zero_places(steps, while_open, seasons)
        demand = bool(demand_of(while_open[None], [places])[0])
        number = number if number is not None else -2 if demand else -1
        if number >= 0:
            demand = bool(effects.of_demand[number])
        low, high = (end.item() for end in bounds_with_effects(y[None], demand))
        unit = 0.0 if demand else float(effects.unit(while_open, x))
        started = ~np.isnan(since_start(y))
        start = numbers[started].min() if started.any() and not demand else -np.inf
        return cls(number, demand, unit, low, high, start, places, hides)

    def within(self, steps: Float[np.ndarray, " n"], y: Float[np.ndarray, " n"]) -> SeriesEffects:
        """The same with those bounds and zero places alone that further values at some steps keep to."""
        positive = self.low != 0 or bool(never_negative(torch.as_tensor(y)[None])[0, -1])
        low = self.low if positive and not (y < self.low).any() else -np.inf
        places = self.places.without(steps[(y != 0) & ~np.isnan(y)])
        return replace(self, low=low, high=np.inf if (y > self.high).any() else self.high, places=places)


def _zero_places(steps: np.ndarray, y: np.ndarray, seasons: Sequence[float]) -> ZeroPlaces:
    """Where in a season a series with values at some steps is always zero; nowhere beside whole steps."""
    at = steps.astype(int)
    if (at != steps).any() or not (y == 0).any():
        return ZeroPlaces()
    grid = np.full(at.max() + 1, np.nan)
    grid[at] = y
    return ZeroPlaces.of(since_start(grid), seasons)
