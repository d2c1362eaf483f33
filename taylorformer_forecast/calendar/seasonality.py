"""Seasonal periods of a series without a calendar, from its autocorrelation."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from taylorformer_forecast.defaults import (
    ALIKE_PEAK_ERRORS,
    ALIKE_PEAKS,
    EXACT_AUTOCORRELATION,
    LEAST_FOUND_CYCLES,
    LEAST_MULTIPLE,
    MIN_AUTOCORRELATION,
    MIN_SEASONAL_CYCLES,
    MOST_FOUND_SEASONS,
    MOST_MULTIPLES,
    MULTIPLE_SHARE,
    MULTIPLE_TOLERANCE,
    NEARLY_USUAL,
    PEAK_DISTANCE,
    SEASON_BESIDE_CALENDAR_ERRORS,
    SEASON_STANDARD_ERRORS,
    SHORT_STAYS,
)


def detect_periods(
    y: np.ndarray, standard_errors: float = SEASON_STANDARD_ERRORS, n_values: int | None = None
) -> list[int]:
    """Find seasonal periods as peaks of the autocorrelation of the detrended series.

    Parameters
    ----------
    y : ndarray of shape (n,)
        Values on a regular grid, NaN where missing.
    standard_errors : float, default=2.5
        Least autocorrelation at a period, in standard errors of that of white noise, ``n ** -0.5``; at least
        .3 in any case, and .9 at most.
    n_values : int, optional
        Number of independent values, that of observed ones by default.

    Returns
    -------
    list of int
        Up to two periods in steps, ascending; each was seen at least three times.

    Examples
    --------
    >>> import numpy as np
    >>> from taylorformer_forecast.calendar.seasonality import detect_periods
    >>> detect_periods(np.sin(2 * np.pi * np.arange(120) / 12))
    [12]
    """
    n_observed = np.isfinite(y).sum()
    if n_observed < 12:
        return []
    error = (n_values or n_observed) ** -0.5
    threshold = min(max(MIN_AUTOCORRELATION, standard_errors * error), EXACT_AUTOCORRELATION)
    # The level of a wandering series hides its season; the season of its changes remains.
    return _peaks(y, threshold) or _peaks(np.diff(y), threshold)


def seasons_beside(cycles: Sequence[float], y: np.ndarray, usual: Sequence[int] = ()) -> list[int]:
    """Seasonal periods beside known cycles, which the calendar has more exactly.

    A series with a calendar cycle seldom has another season. So the evidence for one has to be stronger, and
    has to be there in what is left without the cycles too: half a day is no further season. A multiple of a
    cycle, as a roster of two weeks, may show there alone, but often. A value that stays for some steps, as a
    price that changes on Mondays, counts once.

    Parameters
    ----------
    cycles : sequence of float
        Lengths of calendar cycles in steps.
    y : ndarray of shape (n,)
        Values on a regular grid, NaN where missing.
    usual : sequence of int
        Lengths that are likelier than others, as that of an hour. They are taken where a period is so near
        that both are the same in the few cycles of the series.

    Returns
    -------
    list of int
        As for :func:`detect_periods`.

    Examples
    --------
    >>> import numpy as np
    >>> from taylorformer_forecast.calendar.seasonality import seasons_beside
    >>> day = np.arange(280)
    >>> week, roster = day % 7 < 5, day % 28 < 14
    >>> seasons_beside([7], 1.0 * week), seasons_beside([7], 1.0 * week + roster)
    ([], [28])
    """
    cycles = [c for c in cycles if c > 1]  # of a cycle of one step every period is a multiple
    n_values = _n_independent(y)
    if not cycles:
        return _usual(detect_periods(y, n_values=n_values), usual, len(y))
    whole, left = (
        detect_periods(own, SEASON_BESIDE_CALENDAR_ERRORS, n_values)
        for own in (y, _without_cycles(y, cycles))
    )
    beside = []
    for period in left:
        times = {c: max(round(period / c), 1) for c in cycles}
        near = [c for c in cycles if abs(period - times[c] * c) <= MULTIPLE_TOLERANCE * c]
        if not near:
            beside += [p for p in whole if abs(p - period) <= MULTIPLE_TOLERANCE * period]
        elif all(times[c] > 1 for c in near) and MIN_SEASONAL_CYCLES * period <= len(y):
            beside.append(round(times[near[-1]] * near[-1]))
    return _usual(beside, usual, len(y))


def _n_independent(y: np.ndarray) -> int:
    """Number of values, those that nearly always stay for some steps, as prices of a week, counted once."""
    seen = y[np.isfinite(y)]
    stays = np.diff(np.flatnonzero(np.diff(seen)))
    return len(seen) // int(np.quantile(stays, SHORT_STAYS, method="lower")) if len(stays) else len(seen)


def _usual(periods: Sequence[int], usual: Sequence[int], n: int) -> list[int]:
    """Periods, or usual ones from which they are less than a part of a cycle apart after n values."""
    near = ((p, [c for c in usual if n * abs(p - c) <= NEARLY_USUAL * p * c]) for p in periods)
    return sorted({others[0] if others else p for p, others in near})


def _without_cycles(y: np.ndarray, cycles: Sequence[float] = ()) -> np.ndarray:
    """Values less the line through all, and less the means of the steps of cycles that are seen often."""
    known, t = np.isfinite(y), np.arange(len(y))
    rest = y
    if known.sum() > 1:  # in a tenth of the time of numpy.polyfit
        at = t - t[known].mean()
        level = y[known].mean()
        rest = y - level - (at[known] @ (y[known] - level)) / (at[known] @ at[known]) * at
    for cycle in cycles:
        if len(y) >= LEAST_FOUND_CYCLES * cycle:
            step = (t % cycle).astype(int)
            sums, counts = (np.bincount(step[known], by, int(cycle) + 1) for by in (rest[known], None))
            rest = rest - (sums / np.maximum(counts, 1))[step]
    return rest


def _autocorrelation(residual: np.ndarray, known: np.ndarray) -> np.ndarray:
    """Autocorrelation at all lags, over the pairs that are known."""
    n, size = len(residual), 2 ** int(np.ceil(np.log2(2 * len(residual))))
    power = np.fft.irfft(np.abs(np.fft.rfft(residual, size)) ** 2)[:n]
    pairs = np.arange(n, 0.0, -1)
    if not known.all():
        pairs = np.fft.irfft(np.abs(np.fft.rfft(known.astype(float), size)) ** 2)[:n].round()
    mean = power / np.maximum(pairs, 1)
    return mean / mean[0] if mean[0] > 0 else np.zeros(n)


def _peaks(y: np.ndarray, threshold: float) -> list[int]:
    known = np.isfinite(y)
    if known.sum() < 2:
        return []  # differences of neighbours, where every other value is missing
    residual = np.where(known, _without_cycles(y), 0.0)
    if np.abs(residual).max() <= 1e-9 * np.abs(y[known]).max():
        return []  # a straight line
    acf = _autocorrelation(residual, known)
    lags = np.arange(2, len(y) // LEAST_FOUND_CYCLES)
    lags = lags[(acf[lags] > acf[lags - 1]) & (acf[lags] >= acf[lags + 1]) & (acf[lags] > threshold)]
    # A season is a valley and a peak: a peak counts by its height over the lowest point before it.
    lags = lags[acf[lags] - np.minimum.accumulate(acf[1:])[lags - 1] > threshold]
    # Noise has many peaks near that of a long season: the highest one counts.
    beside = np.maximum((PEAK_DISTANCE * lags).astype(int), 1)
    first, end = np.searchsorted(lags, [lags - beside, lags + beside + 1])
    highest = np.maximum.reduceat(np.append(acf[lags], 0.0), np.stack([first, end], 1).ravel())[::2]
    lags = lags[acf[lags] >= highest]
    found: list[int] = []
    while len(lags) and len(found) < MOST_FOUND_SEASONS:
        top = float(acf[lags].max())
        noise = (max(1 - top**2, 0) / known.sum()) ** 0.5
        alike = acf[lags] >= top - max(ALIKE_PEAKS, ALIKE_PEAK_ERRORS * noise)
        best = lags[alike].min()  # the shortest of those about as high
        period = _by_multiples(acf, int(best))
        found.append(round(period))
        times = np.round(lags / period)
        nearest = np.maximum(MULTIPLE_TOLERANCE, MULTIPLE_SHARE * times)
        lags = lags[np.abs(lags / period - times) >= nearest]
    return sorted(set(found))


def _by_multiples(acf: np.ndarray, lag: int) -> float:
    """Period of the peak at a lag: peaks at multiples of it are as far off as that, so more exact."""
    period, times = float(lag), 2
    while times <= MOST_MULTIPLES and times * period < len(acf) // LEAST_FOUND_CYCLES:
        around, half = round(times * period), max(1, round(2 * PEAK_DISTANCE * period))
        peak = around - half + int(acf[around - half : around + half + 1].argmax())
        if acf[peak] < LEAST_MULTIPLE * acf[lag]:
            break
        period, times = peak / times, 2 * times
    return period
