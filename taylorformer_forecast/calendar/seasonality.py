"""Seasonal periods of a series without a calendar, from its autocorrelation."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from taylorformer_forecast.defaults import (
    MIN_AUTOCORRELATION,
    MOST_FOUND_SEASONS,
    SEASON_BESIDE_CALENDAR_ERRORS,
    SEASON_STANDARD_ERRORS,
)


def detect_periods(y: np.ndarray, standard_errors: float = SEASON_STANDARD_ERRORS) -> list[int]:
    """Find seasonal periods as peaks of the autocorrelation of the detrended series.

    Parameters
    ----------
    y : ndarray of shape (n,)
        Values on a regular grid, NaN where missing.
    standard_errors : float, default=2.5
        Least autocorrelation at a period, in standard errors of that of white noise, ``n ** -0.5``; at least
        .3 in any case.

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
    threshold = max(MIN_AUTOCORRELATION, standard_errors / n_observed**0.5)
    # The level of a wandering series drowns its season; the season of its changes remains.
    return _peaks(y, threshold) or _peaks(np.diff(y), threshold)


def seasons_beside(cycles: Sequence[float], y: np.ndarray) -> list[int]:
    """Seasonal periods that are not multiples of known cycles: a calendar says those better.

    A series with a calendar cycle seldom has another season. So the evidence for one has to be stronger.

    Parameters
    ----------
    cycles : sequence of float
        Lengths of calendar cycles in steps.
    y : ndarray of shape (n,)
        Values on a regular grid, NaN where missing.

    Returns
    -------
    list of int
        As for :func:`detect_periods`.
    """
    cycles = [c for c in cycles if c > 1]  # of a cycle of one step every period is a multiple
    errors = SEASON_BESIDE_CALENDAR_ERRORS if cycles else SEASON_STANDARD_ERRORS
    found = detect_periods(y, standard_errors=errors)
    return [p for p in found if all(min(p % c, -p % c) > 0.1 * c for c in cycles)]


def _autocorrelation(residual: np.ndarray, known: np.ndarray) -> np.ndarray:
    """Autocorrelation at all lags, over the pairs that are known."""
    n, size = len(residual), 2 ** int(np.ceil(np.log2(2 * len(residual))))
    power = np.fft.irfft(np.abs(np.fft.rfft(residual, size)) ** 2)[:n]
    pairs = np.fft.irfft(np.abs(np.fft.rfft(known.astype(float), size)) ** 2)[:n].round()
    mean = power / np.maximum(pairs, 1)
    return mean / mean[0] if mean[0] > 0 else np.zeros(n)


def _peaks(y: np.ndarray, threshold: float) -> list[int]:
    known, t = np.isfinite(y), np.arange(len(y))
    if not known.any():
        return []  # differences of neighbours, where every other value is missing
    trend = np.polyval(np.polyfit(t[known], y[known], 1), t)
    residual = np.where(known, y - trend, 0.0)
    if np.abs(residual).max() <= 1e-9 * np.abs(y[known]).max():
        return []  # a straight line
    acf = _autocorrelation(residual, known)
    lags = np.arange(2, len(y) // 3)
    lags = lags[(acf[lags] > acf[lags - 1]) & (acf[lags] >= acf[lags + 1]) & (acf[lags] > threshold)]
    # A season is a valley and a peak: a peak counts by its height over the lowest point before it.
    lags = lags[[bool(acf[lag] - acf[1 : lag + 1].min() > threshold) for lag in lags]] if len(lags) else lags
    found: list[int] = []
    while len(lags) and len(found) < MOST_FOUND_SEASONS:
        best = lags[acf[lags] >= acf[lags].max() - 0.05].min()  # the shortest of those about as high
        found.append(int(best))
        lags = lags[np.abs(lags / best - np.round(lags / best)) >= 0.1]
    return sorted(found)
