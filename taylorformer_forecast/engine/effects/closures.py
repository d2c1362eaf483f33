"""Where values are always zero: at places in a season, and where a covariate says so."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float

from taylorformer_forecast.baselines.seasonal import season_of_zeros, zero_places
from taylorformer_forecast.baselines.zeros import is_intermittent
from taylorformer_forecast.defaults import MOST_CODES, SPARSEST_STEPS, ZEROS_CHANCE
from taylorformer_forecast.engine.effects.series_scale import since_start
from taylorformer_forecast.engine.statistics.requests import past_length, whole_seasons


@dataclass(frozen=True)
class ZeroPlaces:
    """Places in seasons where a series is always zero, as statistical forecasts see them.

    Parameters
    ----------
    cycles : tuple of bool ndarrays
        Which places of each season are, from the step of the first value on; none of other series.

    Examples
    --------
    >>> import numpy as np
    >>> from taylorformer_forecast.engine.effects.closures import ZeroPlaces
    >>> weekly = ZeroPlaces.of(np.tile([5.0, 4.0, 6.0, 5.0, 7.0, 0.0, 0.0], 8), [7])
    >>> weekly.at(np.array([4, 5, 6, 7, 8])).tolist()
    [False, True, True, False, False]
    """

    cycles: tuple[Bool[np.ndarray, " m"], ...] = ()

    @classmethod
    def of(cls, y: Float[np.ndarray, " n"], seasons: Sequence[float]) -> ZeroPlaces:
        """Places of a series on a regular grid, NaN where nothing was observed; by its latest values."""
        if not (y == 0).any():
            return cls()
        latest, whole = torch.as_tensor(y[-past_length(seasons) :])[None], whole_seasons(seasons)
        if not bool(season_of_zeros(latest, whole)):
            return cls()
        before = len(y) - latest.shape[1]
        found = [zero_places(latest, (torch.arange(m) - before) % m, [m])[0].numpy() for m in whole]
        return cls(tuple(found))

    def at(self, steps: np.ndarray) -> Bool[np.ndarray, " k"]:
        """Whether steps since the first value lie at such places, or between two of them."""
        low, high = np.floor(steps).astype(int), np.ceil(steps).astype(int)
        return self._at(low) & self._at(high)

    def _at(self, steps: np.ndarray) -> np.ndarray:
        """The same of whole steps."""
        found = np.zeros(steps.shape, dtype=bool)
        for zero in self.cycles:
            found |= zero[steps % len(zero)]
        return found

    def without(self, steps: np.ndarray) -> ZeroPlaces:
        """Those that are left when there were other values at some steps."""
        cycles = tuple(zero.copy() for zero in self.cycles)
        for zero in cycles:
            zero[np.round(steps).astype(int) % len(zero)] = False
        return ZeroPlaces(cycles)


def closing_codes(
    y: Sequence[Float[np.ndarray, " n"]], x: Sequence[Float[np.ndarray, "n C"]]
) -> tuple[np.ndarray, np.ndarray]:
    """Covariates, and those of their codes beside which all values are zero: a shop that is not open.

    A covariate with few different values is a code. It closes if zeros alone lie beside it, in two runs at
    least, of one series or of several, and if they are so many that chance would not do it with the share of
    zeros beside other codes. A quarter of all values at least has to be beside these.

    Parameters
    ----------
    y : sequence of K ndarrays of shape (n,)
        Series, NaN where nothing was observed or values do not count.
    x : sequence of K ndarrays of shape (n, C)
        Covariates, NaN where not known.

    Returns
    -------
    columns, codes : ndarray of shape (Q,)
        Numbers of covariates, and the codes.

    Examples
    --------
    >>> import numpy as np
    >>> from taylorformer_forecast.engine.effects.closures import closing_codes
    >>> is_open = np.array([1.0, 1.0, 1.0, 0.0] * 5)
    >>> columns, codes = closing_codes([3 * is_open], [is_open[:, None]])
    >>> columns.tolist(), codes.tolist()
    ([0], [0.0])
    """
    values, known = np.concatenate(y), np.concatenate(x)
    number = np.concatenate([np.full(len(own), k) for k, own in enumerate(y)])  # of the series
    seen = ~np.isnan(values)
    zero, known, number = values[seen] == 0, known[seen], number[seen]
    columns, codes = [], []
    for column in range(known.shape[1]) if zero.any() else ():
        of_code, which = np.unique(known[:, column], return_inverse=True)
        if len(of_code) > MOST_CODES:
            continue
        first = np.append(True, (np.diff(which) != 0) | (np.diff(number) != 0))  # of a run of a code
        count, zeros, runs = (np.bincount(which, weights, len(of_code)) for weights in (None, zero, first))
        others, open_ = count.sum() - count, (~zero).sum() - (count - zeros)
        closes = (zeros == count) & (runs > 1) & (open_ > 0) & (others * SPARSEST_STEPS > count.sum())
        closes &= ((others - open_ + 1) / (others + 2)) ** count < ZEROS_CHANCE
        closes &= ~np.isnan(of_code)
        columns += [column] * int(closes.sum())
        codes += of_code[closes].tolist()
    return np.array(columns, dtype=int), np.array(codes, dtype=float)


def while_open(
    y: Sequence[Float[np.ndarray, " n"]], x: Sequence[Float[np.ndarray, "n C"]], seasons: Sequence[float]
) -> tuple[list[np.ndarray], list[ZeroPlaces], np.ndarray, np.ndarray]:
    """Values of series at times when they may be other than zero, NaN elsewhere, and what tells these times.

    Returns
    -------
    values : list of ndarrays of shape (n,)
        Values, NaN at zero places and beside codes that close.
    places : list of ZeroPlaces
        Zero places of each series.
    columns, codes : ndarray of shape (Q,)
        See :func:`closing_codes`.

    Examples
    --------
    >>> import numpy as np
    >>> from taylorformer_forecast.engine.effects.closures import while_open
    >>> y, x = np.array([3.0, 2.0, 0.0] * 8), np.zeros((24, 1))
    >>> while_open([y], [x], [3])[0][0][:6].tolist()
    [3.0, 2.0, nan, 3.0, 2.0, nan]
    """
    started = [since_start(own) for own in y]
    columns, codes = closing_codes(started, x)
    closed = [beside_codes(known, columns, codes) for known in x]
    places = [ZeroPlaces.of(own, seasons) for own in _without(started, closed)]
    at_zero = [zero.at(np.arange(len(own))) for own, zero in zip(y, places, strict=True)]
    columns, codes = closing_codes(_without(started, at_zero), x)  # once more, as fewer values are zero
    closed = [beside_codes(known, columns, codes) for known in x]
    return _without(_without(y, at_zero), closed), places, columns, codes


def demand_of(y: Float[np.ndarray, "B n"], places: Sequence[ZeroPlaces]) -> Bool[np.ndarray, " B"]:
    """Which series are intermittent demand: one with places that are always zero is none.

    Parameters
    ----------
    y : ndarray of shape (B, n)
        Values at times when they may be other than zero, NaN elsewhere.
    places : sequence of B ZeroPlaces
        Zero places of each series.
    """
    return is_intermittent(torch.as_tensor(y))[:, -1].numpy() & [not one.cycles for one in places]


def beside_codes(x: Float[np.ndarray, "*B C"], columns: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """Whether any of some columns has its code."""
    return (np.float32(x[..., columns]) == np.float32(codes)).any(-1)  # precisions of x may differ


def _without(y: Sequence[np.ndarray], hidden: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Series some values of which become missing."""
    return [np.where(at, np.nan, own) for own, at in zip(y, hidden, strict=True)]
