"""Made-up series of many kinds, for networks that are to forecast series which they have never seen."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from taylorformer_forecast.training._drafts import Draft
from taylorformer_forecast.training._time_courses import log_uniform, slow

__all__ = ["SyntheticSeries", "synthetic_series"]

SHORTEST = 16
FINER = 4  # steps of the grid that irregular times are drawn from, for each of theirs


@dataclass(frozen=True)
class SyntheticSeries:
    """One made-up series.

    Parameters
    ----------
    t : float64 ndarray of shape (n,)
        Times in steps, strictly increasing: 0, 1, ..., n - 1 if regular.
    y : float64 ndarray of shape (n,)
        Values, NaN where missing.
    periods : tuple of int
        Its seasons in steps: none, one or two, the shortest first, at most a third of the length.
    recipe : tuple of str
        What it was made of, such as ``("style:structural", "trend:damped", "season:table", "noise:ar2",
        "link:exponential", "season:multiplicative")``.
    """

    t: np.ndarray
    y: np.ndarray
    periods: tuple[int, ...]
    recipe: tuple[str, ...]


def _times(rng: Generator, n: int) -> np.ndarray:
    """Grid points of n irregular times: jittered, at random, or in bursts."""
    grid = np.arange(n * FINER)
    kind = rng.integers(3)
    if kind == 0:
        return grid[::FINER] + rng.integers(0, FINER, n)
    busy = np.ones(n * FINER)
    if kind == 2:
        busy = np.exp(2.0 * slow(rng, np.array([log_uniform(rng, 4.0, n / 2, 1)[0]]), n * FINER)[0])
    # The largest of Gumbel variables are a weighted sample without replacement.
    keys = np.log(busy) + rng.gumbel(size=len(grid))
    return np.sort(np.argsort(keys)[-n:])


def _hide(rng: Generator, y: np.ndarray) -> str:
    """Make points of one series missing, at most half of them; gives how."""
    n = len(y)
    if rng.random() < 0.5:
        share = log_uniform(rng, 1.5 / n, 0.4, 1)[0]
        y[rng.permutation(n)[: max(1, int(share * n))]] = np.nan
        return "missing:points"
    for _ in range(rng.integers(1, 5)):
        begin = rng.integers(0, n - 1)
        y[begin : begin + int(log_uniform(rng, 2.0, n / 8, 1)[0])] = np.nan
    return "missing:blocks"


def synthetic_series(
    n_series: int,
    length: int,
    seed: int | Generator,
    *,
    missing: float = 0.1,
    irregular: float = 0.04,
) -> list[SyntheticSeries]:
    """Make up series to pretrain a forecaster on.

    Every series has a style (such as ``"regular"``: nearly all of it is seasons, ``"walk"``, ``"peaks"``,
    ``"intermittent"``) that says which parts it has, and in which proportions:

    - a trend: linear, damped, logistic, broken, exponential;
    - a level that wanders: a Gaussian process with a sum or product of kernels, an autoregression of order 1
      to 4, a stochastic cycle, an integrated or twice integrated walk with heavy tails and clusters of large
      steps, jumps, peaks at irregular distances;
    - up to two seasons: of smooth and of sharp shapes, days and weeks with weekends and holidays; their
      amplitude, phase and shape may drift;
    - noise: white or autoregressive, with heavy tails, and with a spread that depends on the season, on the
      level, or on itself;
    - shifts of the level, passing interruptions, outliers.

    Their sum is the series itself, its logarithm (growth, multiplicative seasons), the rate of counts or of
    intermittent demand, or is cut off at zero or squeezed between bounds. Some are rounded.

    Parameters
    ----------
    n_series : int
        How many.
    length : int
        Points of each one, at least 16.
    seed : int or numpy Generator
        Seed of all randomness; the same one gives the same series.
    missing, irregular : float, default=0.1, 0.04
        Probabilities that a series has missing values, and that its times are irregular, with one step
        between neighbours on average.

    Returns
    -------
    list of SyntheticSeries
        None is constant, and all observed values are finite.

    Raises
    ------
    ValueError
        If the length is too short.

    Examples
    --------
    >>> from taylorformer_forecast.training.synthetic import synthetic_series
    >>> series = synthetic_series(64, 500, seed=0)
    >>> len(series), series[0].y.shape
    (64, (500,))
    >>> "style:regular" in {name for s in series for name in s.recipe}
    True
    """
    if length < SHORTEST:
        raise ValueError(f"length={length}: a made-up series needs at least {SHORTEST} points")
    rng = np.random.default_rng(seed)
    uneven = rng.random(n_series) < irregular
    gappy = rng.random(n_series) < missing
    out: list[SyntheticSeries | None] = [None] * n_series
    for finer, rows in ((1, np.flatnonzero(~uneven)), (FINER, np.flatnonzero(uneven))):
        if len(rows) == 0:
            continue
        draft = Draft(rng, len(rows), length * finer, finer)
        values = draft.mix()
        for row, y, periods, recipe in zip(rows, values, draft.periods, draft.recipes, strict=True):
            t = np.arange(float(length))
            if finer > 1:
                at = _times(rng, length)
                t, y = at / finer, y[at]
                recipe.append("irregular")
            y = y.copy()
            if gappy[row]:
                recipe.append(_hide(rng, y))
            seen = np.flatnonzero(~np.isnan(y))
            if np.ptp(y[seen]) == 0:  # a demand that never came: once it does
                y[rng.choice(seen)] += 1.0
            out[row] = SyntheticSeries(t, y, tuple(int(p) for p in periods if p), tuple(recipe))
    return [series for series in out if series is not None]
