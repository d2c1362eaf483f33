"""Mathematics of location-scale mixtures, vectorised over cells: Normal and Student-t components.

Every function takes locations ``m`` and scales ``s`` of shape (..., K), weights ``w`` (..., K) or None for
equal ones, and degrees of freedom ``df`` (..., K) or None for Normal components.
"""

from __future__ import annotations

import numpy as np
from numpy.polynomial import legendre
from scipy.special import erf, gammaln, logsumexp, ndtr, ndtri, stdtr, stdtrit

__all__ = ["average", "cdf", "distance", "log_pdf", "quantiles", "self_distance", "variance"]


def average(values, w):
    """Mean over components, the last axis."""
    return values.mean(-1) if w is None else np.einsum("...k,...k->...", values, w)


def std_cdf(z, df):
    return ndtr(z) if df is None else stdtr(df, z)


def std_log_pdf(z, df):
    if df is None:
        return -0.5 * z * z - 0.5 * np.log(2 * np.pi)
    norm = gammaln((df + 1) / 2) - gammaln(df / 2) - 0.5 * np.log(np.pi * df)
    return norm - (df + 1) / 2 * np.log1p(z * z / df)


def cdf(m, s, w, df, x):
    return average(std_cdf((x[..., None] - m) / s, df), w)


def log_pdf(m, s, w, df, x):
    logs = std_log_pdf((x[..., None] - m) / s, df) - np.log(s)
    return logsumexp(logs, axis=-1, b=1 / m.shape[-1] if w is None else w)


def variance(m, s, w, df):
    if df is not None:
        with np.errstate(divide="ignore"):
            s = s * np.sqrt(np.where(df > 2, df / np.maximum(df - 2, 0), np.inf))
    return average(s * s + (m - average(m, w)[..., None]) ** 2, w)


def distance(m, s, w, df, x):
    """E|X - x|."""
    z = (x[..., None] - m) / s
    tail = 1.0 if df is None else (df + z * z) / (df - 1)
    spread = z * (2 * std_cdf(z, df) - 1) + 2 * tail * np.exp(std_log_pdf(z, df))
    return average(s * spread, w)


def self_distance(m, s, w, df):
    """E|X - X'| of Normal mixtures, pair by pair; pairs at the same lag together: memory stays O(K)."""
    if df is not None:
        return _self_distance_t(m, s, w, df)
    k = m.shape[-1]
    total = (2 / np.sqrt(np.pi)) * (s if w is None else s * w * w).sum(-1)
    for lag in range(1, k):
        gap, var = m[..., lag:] - m[..., :-lag], s[..., lag:] ** 2 + s[..., :-lag] ** 2
        pairs = gap * erf(gap / np.sqrt(2 * var)) + np.sqrt(2 / np.pi * var) * np.exp(-0.5 * gap * gap / var)
        total += 2 * (pairs if w is None else pairs * w[..., lag:] * w[..., :-lag]).sum(-1)
    return total if w is not None else total / k**2


def _self_distance_t(m, s, w, df, nodes=8, tol=3e-6):
    """E|X - X'| = 2 int F (1 - F) of Student-t mixtures, by panels that are halved until they fit.

    A panel takes the density at Gauss nodes and the exact F at its ends: the mass it misses measures its
    error, so that no narrow component can hide; its last Legendre coefficient guards against a mass that
    fits by accident. Outside the panels F (1 - F) is min(F, 1 - F) up to its square: a known integral.
    """
    shape, k = m.shape[:-1], m.shape[-1]
    m, s, w, df = (None if a is None else a.reshape(-1, k) for a in (m, s, w, df))

    def at(cell):
        return m[cell], s[cell], None if w is None else w[cell], df[cell]

    reach = np.sinh(np.linspace(-1, 1, 9) * np.arcsinh(30))
    edges = np.sort((m[..., None] + s[..., None] * reach).reshape(len(m), -1), axis=-1)
    edges = edges[:, np.linspace(0, edges.shape[1] - 1, 9).round().astype(int)]
    outside = [distance(m, s, w, df, edges[:, end]) for end in (0, -1)]
    total = sum(outside) - (edges[:, -1] - edges[:, 0])
    allowed = tol * distance(m, s, w, df, average(m, w))  # E|X - mean| <= E|X - X'|

    x, weight = legendre.leggauss(nodes)
    polynomials = legendre.legvander(x, nodes - 1)
    last = weight * polynomials[:, -1] * (nodes - 0.5)
    antiderivative = legendre.legval(x, legendre.legint(np.linalg.inv(polynomials), lbnd=-1))
    mass = np.stack([cdf(m, s, w, df, edge) for edge in edges.T], axis=1)
    cell = np.repeat(np.arange(len(m)), edges.shape[1] - 1)
    low, high, below, upto = (a.ravel() for a in (edges[:, :-1], edges[:, 1:], mass[:, :-1], mass[:, 1:]))
    for _ in range(40):
        half = (high - low) / 2
        mid = low + half
        density = half[:, None] * np.exp(log_pdf(*at(cell[:, None]), mid[:, None] + half[:, None] * x))
        f = below[:, None] + density @ antiderivative
        error = np.maximum(np.abs(density @ weight - (upto - below)), 0.01 * np.abs(density @ last))
        split = half * error > allowed[cell]
        total += np.bincount(cell[~split], (2 * half * ((f - f * f) @ weight))[~split], len(total))
        if not split.any():
            break
        low, mid, high, below, upto, cell = (a[split] for a in (low, mid, high, below, upto, cell))
        between = cdf(*at(cell), mid)
        low, high, cell = np.append(low, mid), np.append(mid, high), np.append(cell, cell)
        below, upto = np.append(below, between), np.append(between, upto)
    return total.reshape(shape)


def quantiles(m, s, w, df, p):
    """Quantiles: Newton steps on ndtri(F(x)) = ndtri(p), bisection where they leave the bracket or stall.

    The score ndtri(F) is nearly straight, so three to six steps do. Above the median the mixture is
    mirrored: F near 0 has all its digits, F near 1 has not.
    """
    shape, k, p = p.shape, m.shape[-1], p.ravel()
    out = np.where(p == 0, -np.inf, np.where(p == 1, np.inf, np.nan))
    live = np.flatnonzero((p > 0) & (p < 1))
    sign, p = np.where(p > 0.5, -1.0, 1.0)[live], np.minimum(p, 1 - p)[live]
    m, s, w, df = (None if a is None else a.reshape(-1, k)[live] for a in (m, s, w, df))
    m = m * sign[:, None]
    goal = ndtri(p)
    # The quantile lies between those of the components; the heaviest and the Normal tail bound these.
    heavy = goal if df is None else stdtrit(df.min(-1), p) * (1 + 1e-6)
    low, high = (m + s * heavy[:, None]).min(-1), (m + s * goal[:, None]).max(-1)
    width = np.sqrt(variance(m, s, w, None))
    low, high = low - 1e-6 * width, high + 1e-6 * width  # rounding must not put the root outside
    x, step = np.clip(average(m, w) + width * goal, low, high), high - low
    for _ in range(200):
        z = (x[:, None] - m) / s
        f = average(std_cdf(z, df), w)
        low, high = np.where(f < p, x, low), np.where(f < p, high, x)
        with np.errstate(all="ignore"):  # a nan leads to a bisection
            score = ndtri(f)
            slope = average(np.exp(std_log_pdf(z, df)) / s, w) / np.exp(std_log_pdf(score, None))
            new = x + np.where(f == p, 0, (goal - score) / slope)
        newton = (new >= low) & (new <= high) & (np.abs(new - x) <= step / 2)
        new = np.where(newton, new, (low + high) / 2)
        x, step = new, np.abs(new - x)
        out[live] = sign * x
        more = step > 1e-12 * np.maximum(np.abs(x), width)
        if not more.any():
            break
        if not more.all():
            state = (live, sign, p, goal, width, x, step, low, high)
            live, sign, p, goal, width, x, step, low, high = (a[more] for a in state)
            m, s, w, df = (None if a is None else a[more] for a in (m, s, w, df))
    return out.reshape(shape)
