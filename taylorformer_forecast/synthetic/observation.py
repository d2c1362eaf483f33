"""How values are observed: rounded, censored, saturated, repeated by mistake, missing, at irregular times."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator

from taylorformer_forecast.synthetic.frame import log_uniform
from taylorformer_forecast.synthetic.gaussian_process import smooth

FINER = 3  # grid points for each irregular time


def round_to(y: np.ndarray, grain: np.ndarray) -> np.ndarray:
    """Round values (k, n) to multiples of ``grain`` (k,).

    Examples
    --------
    >>> import numpy as np
    >>> from taylorformer_forecast.synthetic.observation import round_to
    >>> round_to(np.array([[1.26, 7.74]]), np.array([0.5]))
    array([[1.5, 7.5]])
    """
    return np.round(y / grain[:, None]) * grain[:, None]


def censor(y: np.ndarray, share: np.ndarray) -> np.ndarray:
    """Shift values (k, n) so that a share (k,) of each series is below zero, and set these to zero.

    Examples
    --------
    >>> import numpy as np
    >>> from taylorformer_forecast.synthetic.observation import censor
    >>> censor(np.array([[1.0, 2.0, 3.0, 5.0]]), np.array([0.5]))
    array([[0., 0., 1., 3.]])
    """
    rank = (share * y.shape[1]).astype(int).clip(1, y.shape[1] - 1)[:, None] - 1
    return np.maximum(y - np.take_along_axis(np.sort(y, 1), rank, 1), 0.0)


def irregular_times(rng: Generator, kind: str, n: int) -> np.ndarray:
    """Draw n of 3 n grid points, in increasing order.

    Parameters
    ----------
    rng : Generator
        Source of randomness.
    kind : str
        ``"jittered"`` (one in each step), ``"random"`` or ``"bursts"`` (more of them at some times).
    n : int
        How many.

    Returns
    -------
    int ndarray of shape (n,)

    Examples
    --------
    >>> import numpy as np
    >>> from taylorformer_forecast.synthetic.observation import irregular_times
    >>> irregular_times(np.random.default_rng(0), "jittered", 4).tolist()
    [2, 4, 7, 9]
    """
    grid = np.arange(n * FINER)
    if kind == "jittered":
        return grid[::FINER] + rng.integers(0, FINER, n)
    busy = np.zeros(n * FINER)
    if kind == "bursts":
        busy = 2.0 * smooth(rng, log_uniform(rng, 4.0, max(n / 2, 5.0), 1), n * FINER)[0]
    # The largest of Gumbel variables are a weighted sample without replacement.
    return np.sort(np.argsort(busy + rng.gumbel(size=len(grid)))[-n:])


def _rounding(rng: Generator, y: np.ndarray) -> np.ndarray:
    """To a power of ten, a tenth to a hundredth of the deviation."""
    grain = y.std(1) / log_uniform(rng, 3.0, 100.0, len(y))
    return round_to(y, 10.0 ** np.round(np.log10(np.maximum(grain, 1e-9))))


def _censoring(rng: Generator, y: np.ndarray) -> np.ndarray:
    return censor(y, rng.beta(0.6, 2.0, len(y)) * 0.9)


def _saturation(rng: Generator, y: np.ndarray) -> np.ndarray:
    """A capacity that up to a third of the values reach."""
    rank = ((1 - rng.beta(0.8, 3.0, (len(y), 1)) / 1.5) * (y.shape[1] - 1)).astype(int)
    return np.minimum(y, np.take_along_axis(np.sort(y, 1), rank, 1))


def _glitches(rng: Generator, y: np.ndarray) -> np.ndarray:
    """Spans where the last value is repeated, or where zero is stored."""
    k, n = y.shape
    begins = rng.random((k, n)) < log_uniform(rng, 0.5, 4.0, (k, 1)) / n
    begins[np.arange(k), rng.integers(1, n, k)] = True
    length = log_uniform(rng, 1.0, max(n / 15, 2.0), (k, 1))
    last = np.maximum.accumulate(np.where(begins, np.arange(n), -n), 1)
    bad = np.arange(n) - last < length
    zero = rng.random((k, 1)) < 0.4
    # Up to half of the points; a longer failure would be a change of level.
    bad &= np.cumsum(bad, 1) <= n / 2
    stuck = np.take_along_axis(y, last.clip(0), 1)
    return np.where(bad, np.where(zero, 0.0, stuck), y)


def _missing_points(rng: Generator, y: np.ndarray) -> np.ndarray:
    share = log_uniform(rng, 1.5 / y.shape[1], 0.4, (len(y), 1))
    return np.where(rng.random(y.shape) < share, np.nan, y)


def _missing_blocks(rng: Generator, y: np.ndarray) -> np.ndarray:
    """From one to four blocks, of up to an eighth of the series each."""
    k, n = y.shape
    out = y.copy()
    for share in (1.0, 0.5, 0.5, 0.3):
        since = np.arange(n) - rng.integers(0, n, (k, 1))
        inside = (since >= 0) & (since < log_uniform(rng, 1.0, max(n / 8, 2.0), (k, 1)))
        out[inside & (rng.random((k, 1)) < share)] = np.nan
    return out


OBSERVATIONS = {
    "rounding": _rounding,
    "censoring": _censoring,
    "saturation": _saturation,
    "glitches": _glitches,
    "missing_points": _missing_points,
    "missing_blocks": _missing_blocks,
}
