"""Time courses that made-up series are mixed from, for many series at once: arrays of shape (k, n)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.random import Generator

BURN_IN = 200  # steps before the first one that is kept
MOST_HARMONICS = 12
LONGEST_TABLE = 62  # steps of a season whose values are drawn one by one


def log_uniform(rng: Generator, low: float, high: float, size: int | tuple[int, ...]) -> np.ndarray:
    """Draws whose logarithm is uniform; all are ``low`` if ``high`` is not above it."""
    return np.exp(rng.uniform(np.log(low), np.log(max(low, high)), size))


def standardise(x: np.ndarray) -> np.ndarray:
    """Mean 0 and deviation 1 of every row; constant rows become 0."""
    x = x - x.mean(1, keepdims=True)
    deviation = x.std(1, keepdims=True)
    return x / np.where(deviation > 1e-12, deviation, np.inf)


def pick(rng: Generator, shares: Mapping[str, float], size: int) -> np.ndarray:
    """Names at random, with these (unnormalised) probabilities."""
    p = np.array(list(shares.values()))
    return rng.choice(list(shares), size, p=p / p.sum())


def stationary(rng: Generator, covariance: np.ndarray, n: int) -> np.ndarray:
    """Draw stationary Gaussian processes, exactly, by circulant embedding [1]_.

    Parameters
    ----------
    rng : Generator
        Source of randomness.
    covariance : ndarray of shape (k, m + 1)
        Covariances at lags 0 to m >= n, small at the last ones: where they are not, the embedding is not
        quite positive, and what is negative is left out.
    n : int
        Points to keep.

    Returns
    -------
    ndarray of shape (k, n)

    References
    ----------
    .. [1] Dietrich and Newsam (1997), "Fast and exact simulation of stationary Gaussian processes through
       circulant embedding of the covariance matrix", SIAM Journal on Scientific Computing 18.

    Examples
    --------
    >>> import numpy as np
    >>> from taylorformer_forecast.training._time_courses import stationary
    >>> lags = np.arange(64.0)
    >>> x = stationary(np.random.default_rng(0), np.exp(-lags / 5) * np.ones((20000, 1)), 12)
    >>> abs(np.mean(x[:, 2] * x[:, 7]) - np.exp(-1)).round(1)
    np.float64(0.0)
    """
    size = 2 * (covariance.shape[1] - 1)
    power = np.fft.hfft(covariance, size)[:, : size // 2 + 1].clip(0.0)
    white = np.fft.rfft(rng.standard_normal((len(covariance), size)))
    return np.fft.irfft(white * np.sqrt(power), size)[:, :n]


def lags(n: int) -> np.ndarray:
    """Lags of an embedding in which time scales up to n / 4 have died away."""
    return np.arange(2.0 ** (np.ceil(np.log2(1.5 * n))) + 1)


def slow(rng: Generator, scale: np.ndarray, n: int) -> np.ndarray:
    """Smooth random functions of deviation 1 with these time scales (k,), or n / 4 where that is less."""
    scaled = lags(n) / np.minimum(scale, n / 4)[:, None]
    return stationary(rng, np.exp(-0.5 * scaled**2), n)


def kernel(rng: Generator, kind: str, n: int, period: np.ndarray) -> np.ndarray:
    """Covariances of one kind of kernel at :func:`lags`, with random time scales; periods (k,)."""
    k, lag = len(period), lags(n)
    scale = np.minimum(log_uniform(rng, 3.0, n / 4, k), n / 4)[:, None]
    s = lag / scale
    if kind == "rbf":
        return np.exp(-0.5 * s**2)
    if kind == "matern12":
        return np.exp(-s)
    if kind == "matern32":
        return (1 + np.sqrt(3) * s) * np.exp(-np.sqrt(3) * s)
    if kind == "matern52":
        return (1 + np.sqrt(5) * s + 5 / 3 * s**2) * np.exp(-np.sqrt(5) * s)
    if kind == "rational":
        alpha = log_uniform(rng, 0.3, 3.0, (k, 1))
        return (1 + s**2 / (2 * alpha)) ** -alpha
    assert kind == "periodic"  # and slowly forgotten
    width = log_uniform(rng, 0.4, 2.0, (k, 1))
    memory = np.minimum(period * log_uniform(rng, 2.0, 20.0, k), n / 4)[:, None]
    wave = np.sin(np.pi * lag / period[:, None]) ** 2
    return np.exp(-2 * wave / width**2 - 0.5 * (lag / memory) ** 2)


def autoregression(coefficients: np.ndarray, innovations: np.ndarray) -> np.ndarray:
    """Values of autoregressions with coefficients (k, q) of the last q values, nearest first."""
    backwards = coefficients.T[::-1].copy()
    order, e = len(backwards), innovations.T
    y = np.zeros((len(e) + order, e.shape[1]))
    for i, now in enumerate(e):
        y[i + order] = now + (backwards * y[i : i + order]).sum(0)
    return y[order:].T


def _quadratic(rng: Generator, cyclic: np.ndarray, n: int, forget: float) -> tuple[np.ndarray, np.ndarray]:
    """Two coefficients of a stationary autoregression: of a stochastic cycle, or with two real roots."""
    k = len(cyclic)
    period = log_uniform(rng, 3.0, n / 5, k)
    memory = log_uniform(rng, 0.5, 15.0, k)  # in periods
    radius, angle = np.exp(-1 / (period * memory)).clip(0.0, 1 - forget), 2 * np.pi / period
    slow_root, quick_root = 1 - log_uniform(rng, forget, 1.0, k), rng.uniform(-0.7, 0.0, k)
    one, two = np.where(rng.random(k) < 0.75, slow_root, quick_root), rng.uniform(-0.6, 0.8, k)
    return (
        np.where(cyclic, 2 * radius * np.cos(angle), one + two),
        np.where(cyclic, -(radius**2), -one * two),
    )


def coloured(rng: Generator, order: np.ndarray, n: int, cyclic: float, forget: float) -> np.ndarray:
    """Draw stationary autoregressions of deviation 1, with random coefficients.

    Parameters
    ----------
    rng : Generator
        Source of randomness.
    order : int ndarray of shape (k,)
        Orders, from 1 to 4.
    n : int
        Points.
    cyclic : float
        Share of stochastic cycles among those of order 2 or more.
    forget : float
        Least share of its value that a process forgets in a step.

    Returns
    -------
    ndarray of shape (k, n)
    """
    k = len(order)
    a1, a2 = _quadratic(rng, (rng.random(k) < cyclic) & (order > 1), n, forget)
    first = 1 - log_uniform(rng, forget, 1.0, k)
    a1, a2 = np.where(order == 1, first, a1), np.where(order == 1, 0.0, a2)
    b1, b2 = _quadratic(rng, (rng.random(k) < cyclic) & (order > 3), n, forget)
    b1 = np.where(order > 2, np.where(order > 3, b1, rng.uniform(-0.7, 0.7, k)), 0.0)
    b2 = np.where(order > 3, b2, 0.0)
    # (1 - a1 L - a2 L^2) (1 - b1 L - b2 L^2), with the lag operator L
    coefficients = np.stack([a1 + b1, a2 + b2 - a1 * b1, -a1 * b2 - a2 * b1, -a2 * b2], -1)
    return standardise(autoregression(coefficients, rng.standard_normal((k, n + BURN_IN)))[:, BURN_IN:])


def heavy(rng: Generator, k: int, n: int, calm: float = 0.5) -> np.ndarray:
    """White noise of deviation 1: normal for a share ``calm`` of the rows, else Student-t."""
    freedom = np.where(rng.random(k) < calm, 200.0, log_uniform(rng, 2.5, 15.0, k))[:, None]
    chi = rng.standard_gamma(np.broadcast_to(freedom / 2, (k, n))) * 2 / freedom
    return rng.standard_normal((k, n)) / np.sqrt(chi.clip(1e-3)) * np.sqrt((freedom - 2) / freedom)


def garch(rng: Generator, e: np.ndarray) -> np.ndarray:
    """Deviations that make white noise (k, n) of deviation 1 a GARCH(1, 1) process [1]_.

    References
    ----------
    .. [1] Bollerslev (1986), "Generalized autoregressive conditional heteroskedasticity", Journal of
       Econometrics 31.
    """
    k = len(e)
    persistence = 1 - log_uniform(rng, 0.005, 0.2, k)
    shock = persistence * rng.uniform(0.03, 0.25, k)
    variance, out = np.ones(k), np.empty((e.shape[1], k))
    for i, now in enumerate(e.T):
        out[i] = np.sqrt(variance)
        last = np.minimum(variance * now**2, 25.0)  # a bound that keeps all moments finite
        variance = 1 - persistence + shock * last + (persistence - shock) * variance
    return out.T


def trend(rng: Generator, kind: str, k: int, n: int) -> np.ndarray:
    """Deterministic trends of random direction."""
    u = np.linspace(0.0, 1.0, n)
    sign = np.where(rng.random((k, 1)) < 0.65, 1.0, -1.0)  # growth is more common than decline
    if kind == "none":
        return np.zeros((k, n))
    if kind == "linear":
        return sign * u
    if kind == "damped":
        return sign * (1 - np.exp(-u * log_uniform(rng, 1.5, 12.0, (k, 1))))
    if kind == "logistic":
        return sign / (1 + np.exp(-log_uniform(rng, 4.0, 40.0, (k, 1)) * (u - rng.uniform(0.1, 0.9, (k, 1)))))
    if kind == "exponential":
        return sign * np.exp(log_uniform(rng, 0.7, 4.0, (k, 1)) * u)
    assert kind == "broken"
    out = rng.standard_normal((k, 1)) * u
    for _ in range(4):
        bend = rng.standard_normal((k, 1)) * (rng.random((k, 1)) < 0.5)
        out += bend * np.maximum(u - rng.random((k, 1)), 0.0)
    return out


def steps(rng: Generator, k: int, n: int, most: float) -> np.ndarray:
    """Sums of jumps at random times, from one to about ``most`` of them."""
    jumps = rng.random((k, n)) < log_uniform(rng, 1.0, most, (k, 1)) / n
    jumps[np.arange(k), rng.integers(n // 10, n - n // 10, k)] = True
    return np.cumsum(jumps * heavy(rng, k, n), 1)


def peaks(rng: Generator, spacing: np.ndarray, anchored: np.ndarray, n: int) -> np.ndarray:
    """Peaks of random heights and widths, faster up than down, as of epidemics and sunspots.

    Distances vary about ``spacing`` (k,); where ``anchored`` (k,), dates vary about multiples of it instead.
    """
    k, t = len(spacing), np.arange(float(n))
    rise = spacing * log_uniform(rng, 0.03, 0.2, k)
    fall = rise * log_uniform(rng, 0.8, 3.0, k)
    spread = log_uniform(rng, 0.1, 1.0, k)
    jitter = np.where(anchored, log_uniform(rng, 0.01, 0.1, k), log_uniform(rng, 0.02, 0.5, k))
    date = -spacing * rng.random(k)
    out = np.zeros((k, n))
    live = np.arange(k)
    while len(live):
        late = jitter[live] * spacing[live] * rng.standard_normal(len(live))
        away = t - (date[live] + late)[:, None]
        width = np.where(away < 0, rise[live, None], fall[live, None])
        width *= np.exp(0.15 * rng.standard_normal((len(live), 1)))
        height = np.exp(spread[live] * rng.standard_normal(len(live)))[:, None]
        out[live] += height * np.exp(-0.5 * (away / width) ** 2)
        date[live] += spacing[live] + np.where(anchored[live], 0.0, late).clip(-0.7 * spacing[live])
        live = live[date[live] < n + spacing[live]]
    return out


def season_shape(rng: Generator, kind: str, period: np.ndarray, phase: np.ndarray) -> np.ndarray:
    """Periodic functions of a random shape, mean about 0 and deviation 1, at phases (k, n) in revolutions."""
    k = len(phase)
    angle = 2 * np.pi * phase
    if kind in ("smooth", "sharp"):
        flat, steep = (1.0, 3.0) if kind == "smooth" else (0.3, 1.2)
        decay = rng.uniform(flat, steep, k)
        out = np.zeros_like(phase)
        for h in range(1, MOST_HARMONICS + 1 if kind == "sharp" else 5):
            known = 2 * h <= period  # faster ones would fold back
            size = known * h**-decay * rng.standard_normal(k)
            out += size[:, None] * np.cos(h * angle + rng.uniform(0, 2 * np.pi, (k, 1)))
        return standardise(out)
    if kind == "bumps":
        out = np.zeros_like(phase)
        for b in range(3):
            size = rng.uniform(-0.3, 1.0, (k, 1)) if b else 1.0
            size = size * (rng.random((k, 1)) < (1.0, 0.6, 0.3)[b])
            sharpness = np.minimum(log_uniform(rng, 0.7, 30.0, k), period**2 / 10)[:, None]
            out += size * np.exp(sharpness * (np.cos(angle + rng.uniform(0, 2 * np.pi, (k, 1))) - 1))
        return standardise(out)
    if kind == "switch":  # day and night
        start = rng.uniform(0, 2 * np.pi, (k, 1))
        slope = log_uniform(rng, 1.0, 10.0, (k, 1))
        day = np.tanh(slope * (np.cos(angle + start) - rng.uniform(-0.6, 0.6, (k, 1))))
        inside = rng.uniform(0.0, 0.4, (k, 1)) * np.cos(2 * angle + rng.uniform(0, 2 * np.pi, (k, 1)))
        return standardise(day + inside)
    assert kind == "table"  # of one value for each step, as of weekdays or months
    table = rng.standard_normal((k, LONGEST_TABLE))
    working = (period == 7) & (rng.random(k) < 0.7)  # days alike, and a weekend
    table[working, :5] = table[working, :1] + 0.25 * table[working, :5]
    step = np.floor((phase % 1.0) * period[:, None] + 1e-6).astype(int) % period[:, None]
    return standardise(np.take_along_axis(table, step, 1))


def seasonal(rng: Generator, period: np.ndarray, t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Seasons of periods (k,) at times (n,), and the kinds of their shapes.

    Their amplitude drifts in about half of them, their shape and phase in some.
    """
    k, n, step = len(period), len(t), t[1] - t[0]
    kinds = pick(rng, {"smooth": 35, "bumps": 20, "sharp": 12, "switch": 13, "table": 20}, k)
    kinds = np.where(period < 4, "table", kinds)
    kinds = np.where((kinds == "table") & (period > LONGEST_TABLE), "sharp", kinds)
    start = np.where(kinds == "table", np.floor(rng.random(k) * period), rng.random(k) * period)
    phase = (t + start[:, None]) / period[:, None]

    def drift(rows: np.ndarray) -> np.ndarray:
        scale = np.exp(rng.uniform(np.log(1.5 * period[rows] / step), np.log(2.0 * n)))
        return slow(rng, scale, n)

    rows = np.flatnonzero((rng.random(k) < 0.12) & (kinds != "table"))
    phase[rows] += log_uniform(rng, 0.005, 0.06, (len(rows), 1)) * drift(rows)
    out = np.empty((k, n))
    for kind in np.unique(kinds):
        these = np.flatnonzero(kinds == kind)
        out[these] = season_shape(rng, kind, period[these], phase[these])
    rows = np.flatnonzero(rng.random(k) < 0.2)
    other = season_shape(rng, "smooth", period[rows], phase[rows])
    out[rows] += rng.uniform(0.1, 0.6, (len(rows), 1)) * drift(rows) * other
    rows = np.flatnonzero(rng.random(k) < 0.5)
    out[rows] *= np.exp(log_uniform(rng, 0.03, 0.5, (len(rows), 1)) * drift(rows))
    return standardise(out), kinds


def weekly(rng: Generator, day: np.ndarray, t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Days of length (k,) whose level, amplitude and shape depend on the weekday, and kinds of their shapes.

    The period is seven days. A few days are holidays in some series: working days like the last of a weekend.
    """
    k = len(day)
    ordinary, kinds = seasonal(rng, day, t)
    other = season_shape(rng, "smooth", day, t / day[:, None] + rng.random((k, 1)))
    position = t / day[:, None] + rng.integers(0, 7, (k, 1))
    n_days = int(position.max()) + 2
    weekday = np.arange(n_days) % 7
    off = np.broadcast_to((weekday >= 5).astype(float), (k, n_days)).copy()
    off[:, weekday == 5] *= rng.uniform(0.2, 1.0, (k, 1))
    off[rng.random((k, n_days)) < np.where(rng.random((k, 1)) < 0.4, 0.02, 0.0)] = 1.0
    low, alike = rng.uniform(-2.0, 0.7, (k, 1)), log_uniform(rng, 0.02, 0.4, (k, 1))
    level = off * low + (alike * rng.standard_normal((k, 7)))[:, weekday]
    whole = position.astype(int)
    ramp = ((position - whole - 0.75) * 4).clip(0.0)  # from one day to the next over a quarter
    ramp = ramp**2 * (3 - 2 * ramp)

    def over_time(of_day: np.ndarray) -> np.ndarray:
        today, tomorrow = (np.take_along_axis(of_day, whole + j, 1) for j in (0, 1))
        return today + ramp * (tomorrow - today)

    free = over_time(off)
    shape = ordinary * (1 - rng.uniform(0.0, 0.8, (k, 1)) * free)
    shape += rng.uniform(0.0, 0.7, (k, 1)) * free * other
    return standardise(shape + log_uniform(rng, 0.15, 1.2, (k, 1)) * over_time(level)), kinds
