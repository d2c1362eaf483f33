"""Phases of calendar cycles and seasons: features that are known of any future."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch

from taylorformer_forecast.baselines.outliers import without_outliers
from taylorformer_forecast.calendar.axis import TimeAxis
from taylorformer_forecast.calendar.seasonality import seasons_beside
from taylorformer_forecast.defaults import (
    LEAST_FOUND_CYCLES,
    LEAST_SEEN_CYCLES,
    MOST_SEARCHED_SERIES,
    N_HARMONICS,
)

LONGEST_CONTEXT_PERIOD = 168  # steps, a week of hours: a context of longer seasons costs too much


@dataclass(frozen=True)
class SeasonalFeatures:
    """Phases of calendar cycles and of seasons at time stamps: features that are known of any future.

    Parameters
    ----------
    axis : TimeAxis
        Of the series.
    cycles : tuple of str
        Calendar cycles.
    periods : tuple of float
        Seasons, in steps.
    """

    axis: TimeAxis
    cycles: tuple[str, ...] = ()
    periods: tuple[float, ...] = ()

    @classmethod
    def choose(
        cls,
        axis: TimeAxis,
        series: Iterable[tuple[pd.Index, np.ndarray]],
        cycles: object = "auto",
        periods: object = "auto",
    ) -> SeasonalFeatures:
        """Choose what is left at "auto" by the longest series, given as stamps and values (n, D).

        Of columns with seasons most decide: those without any have no use for phases, and do not mind them.
        """
        if isinstance(cycles, str) and cycles == "auto":
            cycles = axis.usual_cycles()
        names: tuple[str, ...] = tuple(cycles or ())  # type: ignore[arg-type]
        if isinstance(periods, str) and periods == "auto":
            steps, found = [axis.cycle_steps(name) for name in names], Counter[tuple[int, ...]]()
            pairs = list(series)
            most = max(len(index) for index, _ in pairs)
            longest = [pair for pair in pairs if len(pair[0]) == most]
            for index, values in longest[:MOST_SEARCHED_SERIES]:
                t = torch.tensor(axis.numbers(index), dtype=torch.float64)
                for column in torch.tensor(values.copy(), dtype=torch.float64).T:
                    grid = axis.on_grid(index, without_outliers(t, column).numpy())
                    found[tuple(seasons_beside(steps, grid, _hour_and_minute(axis)))] += 1
            periods = min(found, key=lambda seasons: (not seasons, -found[seasons], seasons))
        seasons = np.atleast_1d(() if periods is None else periods).astype(float)  # type: ignore[call-overload]
        return cls(axis, names, tuple(seasons.tolist()))

    def __bool__(self) -> bool:
        return self.width > 0

    @property
    def lengths(self) -> list[float]:
        """Lengths of all cycles and seasons, in steps."""
        return [*(self.axis.cycle_steps(name) for name in self.cycles), *self.periods]

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all cycles, and of seasons by their lengths."""
        return (*self.cycles, *(f"{period:g} steps" for period in self.periods))

    @property
    def width(self) -> int:
        """Number of features."""
        return 2 * N_HARMONICS * len(self.lengths)

    @property
    def season(self) -> int:
        """The longest season that a window can span, in steps; 1 without one."""
        return round(max((c for c in self.lengths if c <= LONGEST_CONTEXT_PERIOD), default=1))

    @property
    def cycle(self) -> int:
        """The longest calendar cycle that a window can span, in steps; 1 without one."""
        lengths = self.lengths[: len(self.cycles)]
        return round(max((c for c in lengths if c <= LONGEST_CONTEXT_PERIOD), default=1))

    def own_lengths(
        self, y: np.ndarray, cycles: object, periods: object, longer: Sequence[float] = ()
    ) -> list[float]:
        """Lengths of the cycles and seasons of one series of a panel, chosen by that series where left open.

        The first ones count most, as statistical forecasts try few: what the user gave, and what is found in
        the values before the longer cycles of the calendar.

        Parameters
        ----------
        y : ndarray of shape (n,)
            Values on the regular grid, NaN where missing.
        cycles, periods : object
            What the user gave: "auto" leaves the choice open.
        longer : sequence of float
            Seasons of which ``y`` shows two, which are too few to find them: they are taken as given.
        """
        names, known, seasons = self.cycles, self.cycles, self.periods
        if isinstance(cycles, str) and cycles == "auto":
            names, known = _usual_cycles(self.axis, len(y) - 1)
        lengths = [self.axis.cycle_steps(name) for name in names]
        if not (isinstance(periods, str) and periods == "auto"):
            return [*seasons, *lengths]
        t, values = torch.arange(len(y), dtype=torch.float64), torch.tensor(y)
        cleaned = without_outliers(t, values).numpy()
        steps, usual = [self.axis.cycle_steps(name) for name in known], _hour_and_minute(self.axis)
        found: list[float] = [*seasons_beside(steps, cleaned, usual)]
        found += [p for p in longer if len(y) // LEAST_FOUND_CYCLES <= p <= len(y) / 2]
        return [*lengths[:1], *found, *lengths[1:]]

    def __call__(self, index: pd.Index) -> np.ndarray:
        """Features, shape (n, ``width``), those of the shortest cycle or season first."""
        positions = [self.axis.numbers(index)[:, None] / np.array(self.periods)]
        if self.cycles:
            positions.insert(0, self.axis.cycles(index, self.cycles))
        at = np.concatenate(positions, 1)[:, np.argsort(self.lengths, kind="stable")]
        return phase_features(at)


@functools.lru_cache
def _usual_cycles(axis: TimeAxis, span: float) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Usual cycles of series on an axis, once for all of one length: those to try, and those seen twice."""
    return axis.usual_cycles(span, LEAST_SEEN_CYCLES), axis.usual_cycles(span)


@functools.lru_cache
def _hour_and_minute(axis: TimeAxis) -> tuple[int, ...]:
    """Steps of an hour and of a minute, where they are several: a cycle found in values may be one."""
    if axis.kind not in ("clock", "period") or axis.hours is not None:
        return ()
    steps = (axis.cycle_steps("day") / parts for parts in (24, 24 * 60))
    return tuple(round(one) for one in steps if one > 1 and one == round(one))


def phase_features(positions: np.ndarray) -> np.ndarray:
    """Phases of cycles, one cycle after another.

    Parameters
    ----------
    positions : ndarray of shape (n, P)
        Positions within cycles, in revolutions.

    Returns
    -------
    ndarray
        Shape (n, 2 * N_HARMONICS * P).

    Examples
    --------
    >>> import numpy as np
    >>> from taylorformer_forecast.calendar.cycles import phase_features
    >>> phase_features(np.array([[0.25]])).round(3).tolist()
    [[1.0, 0.0, 0.0, -1.0]]
    """
    angle = 2 * np.pi * positions[..., None] * np.arange(1, N_HARMONICS + 1)
    return np.concatenate([np.sin(angle), np.cos(angle)], -1).reshape(len(positions), -1)
