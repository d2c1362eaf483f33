"""Batches of synthetic series: each is a pure function of a seed and its number."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import Generator

from taylorformer_forecast.synthetic.archetypes import ARCHETYPES, archetypes_at
from taylorformer_forecast.synthetic.composition import Composition
from taylorformer_forecast.synthetic.counts import COUNTS
from taylorformer_forecast.synthetic.frame import log_uniform, pick
from taylorformer_forecast.synthetic.observation import FINER, irregular_times
from taylorformer_forecast.synthetic.processes import Switch
from taylorformer_forecast.synthetic.weights import IRREGULAR

SHORTEST = 5


@dataclass(frozen=True)
class SyntheticBatch:
    """Synthetic series of equal lengths, each a history and the horizon after it.

    Parameters
    ----------
    values : float64 ndarray of shape (B, n)
        Values, NaN where missing; histories and horizons together.
    times : float64 ndarray of shape (B, n)
        Times in steps, strictly increasing: 0, 1, ..., n - 1 if regular, one step apart on average if not.
    horizon : int
        Points at the end that are to be forecast.
    periods : float64 ndarray of shape (B, 3)
        Seasonal periods in steps, the shortest first; 0 for none. They are those of the calendar where there
        is one, whether or not the values have a season.
    phases : float64 ndarray of shape (B, 3)
        Positions of time 0 within the periods, from 0 to below 1. Weeks begin on Mondays, years in January.
    archetype, frequency : str ndarray of shape (B,)
        Kinds of series, and frequencies of their calendars.
    counts, nonnegative : bool ndarray of shape (B,)
        Whether values are counts, and whether none is below zero.
    processes : tuple of tuple of str
        Processes of each series.

    Examples
    --------
    >>> from taylorformer_forecast.synthetic import SyntheticGenerator
    >>> batch = SyntheticGenerator(seed=0, n_series=8).batch(0, length=60, horizon=12)
    >>> batch.values[:, :-12].shape, batch.cycles().shape
    ((8, 48), (8, 60, 3))
    """

    values: np.ndarray
    times: np.ndarray
    horizon: int
    periods: np.ndarray
    phases: np.ndarray
    archetype: np.ndarray
    frequency: np.ndarray
    counts: np.ndarray
    nonnegative: np.ndarray
    processes: tuple[tuple[str, ...], ...]

    def cycles(self) -> np.ndarray:
        """Positions (B, n, 3) of all times within the periods, from 0 to below 1; NaN for no period."""
        period = np.where(self.periods > 0, self.periods, np.nan)[:, None]
        return (self.times[..., None] / period + self.phases[:, None]) % 1.0


@dataclass(frozen=True)
class SyntheticGenerator:
    """Generator of batches of synthetic series; a batch depends on the seed and its number alone.

    The state of the generator is the number of the next batch.

    Parameters
    ----------
    seed : int, default=0
        Seed of all batches.
    n_series : int, default=256
        Series of a batch.
    archetypes : mapping of str to float, optional
        Weights of archetypes (:data:`~taylorformer_forecast.synthetic.ARCHETYPES`); without it their own.
        Over many batches of random lengths, shares of series follow the weights.
    processes : mapping of str to float, or collection of str, optional
        Factors of the weights of processes (:data:`~taylorformer_forecast.synthetic.PROCESSES`), or the
        names of all that are on.

    Examples
    --------
    >>> from taylorformer_forecast.synthetic import SyntheticGenerator
    >>> generator = SyntheticGenerator(seed=0, n_series=16)
    >>> one, same = generator.batch(3), generator.batch(3)
    >>> one.values.shape == same.values.shape, one.values.shape[0]
    (True, 16)
    >>> only = SyntheticGenerator(archetypes={"yearly": 1.0}, processes=["linear", "white_noise"])
    >>> sorted({name for names in only.batch(0, length=20).processes for name in names})
    ['linear', 'white_noise']
    """

    seed: int = 0
    n_series: int = 256
    archetypes: Mapping[str, float] | None = None
    processes: Mapping[str, float] | Collection[str] | None = None

    def __post_init__(self) -> None:
        if unknown := sorted(set(self.archetypes or ()) - set(ARCHETYPES)):
            raise ValueError(f"unknown archetypes {unknown}; there are {sorted(ARCHETYPES)}")
        Switch(self.processes)

    def batch(self, number: int, length: int | None = None, horizon: int | None = None) -> SyntheticBatch:
        """Draw a batch.

        Parameters
        ----------
        number : int
            Number of the batch, from 0.
        length : int, optional
            Points of every series, history and horizon together, from 5 to 2,000 or more. Without it, one
            archetype is drawn, and a length and a horizon that are usual for it.
        horizon : int, optional
            Points to forecast, less than ``length``.

        Returns
        -------
        SyntheticBatch

        Raises
        ------
        ValueError
            If the length is too short, or not longer than the horizon.
        """
        rng, switch = np.random.default_rng((self.seed, number)), Switch(self.processes)
        weights = self.archetypes or {name: one.weight for name, one in ARCHETYPES.items()}
        n, usual = _sizes(rng, weights)
        n = n if length is None else length
        horizon = min(usual, max(1, n // 3)) if horizon is None else horizon
        if n < SHORTEST or not 0 < horizon < n:
            raise ValueError(
                f"length={n}, horizon={horizon}: a series needs at least {SHORTEST} points, and a horizon "
                "shorter than itself"
            )
        archetype = pick(rng, archetypes_at(n, weights), self.n_series)
        irregular = np.zeros(self.n_series, dtype=bool)
        irregular[switch.happens(rng, "irregular_times", IRREGULAR, self.n_series)] = True
        parts = [
            (rows, _draw(rng, archetype[rows], n, switch, uneven))
            for uneven, rows in ((False, np.flatnonzero(~irregular)), (True, np.flatnonzero(irregular)))
            if len(rows)
        ]
        return _join(parts, archetype, horizon)


def _sizes(rng: Generator, weights: Mapping[str, float]) -> tuple[int, int]:
    """Draw a length and a horizon that are usual for a random archetype."""
    one = ARCHETYPES[str(pick(rng, weights, 1)[0])]
    length, horizon = (
        round(float(log_uniform(rng, low, high, 1)[0])) for low, high in (one.lengths, one.horizons)
    )
    return length, horizon


def _draw(rng: Generator, archetype: np.ndarray, n: int, switch: Switch, irregular: bool) -> dict[str, Any]:
    """Draw series that are all regular or all irregular; fields of a batch."""
    k = len(archetype)
    one = Composition(rng, archetype, FINER * n if irregular else n, switch)
    values, periods = one.values(), one.frame.periods
    times = np.broadcast_to(np.arange(float(n)), (k, n))
    if irregular:
        kinds = pick(rng, {"jittered": 1, "random": 1, "bursts": 1}, k)
        at = np.stack([irregular_times(rng, kind, n) for kind in kinds])
        values, times, periods = np.take_along_axis(values, at, 1), at / FINER, periods / FINER
        for names in one.used:
            names.append("irregular_times")
    _make_usable(rng, values)
    return {
        "values": values,
        "times": times,
        "periods": periods,
        "phases": one.frame.phases,
        "frequency": one.frame.frequency,
        "counts": np.isin(one.link, list(COUNTS)),
        "nonnegative": np.nanmin(values, axis=1) >= 0,
        "processes": tuple(tuple(dict.fromkeys(names)) for names in one.used),
    }


def _make_usable(rng: Generator, y: np.ndarray) -> None:
    """Give constant series, such as demand that never came, one other value, and empty ones two."""
    span = np.nanmax(np.where(np.isnan(y), -np.inf, y), axis=1) - np.nanmin(
        np.where(np.isnan(y), np.inf, y), axis=1
    )
    rows = np.flatnonzero(~(span > 0))
    at = rng.integers(0, y.shape[1] - 1, len(rows))
    y[rows, at] = np.nan_to_num(y[rows, at]) + 1.0
    y[rows, at + 1] = np.nan_to_num(y[rows, at + 1])


def _join(
    parts: list[tuple[np.ndarray, dict[str, Any]]], archetype: np.ndarray, horizon: int
) -> SyntheticBatch:
    """Put rows of regular and irregular series into one batch."""
    order = np.argsort(np.concatenate([rows for rows, _ in parts]))
    joined = {
        name: np.concatenate([part[name] for _, part in parts])[order]
        for name in parts[0][1]
        if name != "processes"
    }
    names = [one for _, part in parts for one in part["processes"]]
    processes = tuple(names[i] for i in order)
    return SyntheticBatch(horizon=horizon, archetype=archetype, processes=processes, **joined)
