"""Mathematics of location-scale mixtures, vectorised over cells.

Every function takes the family of the components (:class:`NORMAL`, :class:`STUDENT`, :class:`UNIFORM`),
locations ``m`` and scales ``s`` of shape (..., K), weights ``w`` (..., K) or None for equal ones, and degrees
of freedom ``df`` (..., K) of Student-t components, else None. Uniform components lie between ``m - s`` and
``m + s``.
"""

from __future__ import annotations

import numpy as np
from numpy.polynomial import legendre
from scipy.special import erf, gammaln, logsumexp, ndtr, ndtri, stdtr, stdtrit

__all__ = [
    "FAMILIES",
    "NORMAL",
    "STUDENT",
    "UNIFORM",
    "average",
    "cdf",
    "distance",
    "log_pdf",
    "mapped",
    "quantiles",
    "self_distance",
    "variance",
]

PIECES, REACH = 128, 20.0  # of a mapped distribution: how many, and how many deviations to either side


def average(values, w):
    """Mean over components, the last axis."""
    return values.mean(-1) if w is None else np.einsum("...k,...k->...", values, w)


class NORMAL:
    """Standard Normal distribution."""

    @staticmethod
    def cdf(z, df):
        return ndtr(z)

    @staticmethod
    def log_pdf(z, df):
        return -0.5 * z * z - 0.5 * np.log(2 * np.pi)

    @staticmethod
    def distance(z, df):
        """E|Z - z|."""
        return z * (2 * ndtr(z) - 1) + 2 * np.exp(NORMAL.log_pdf(z, df))

    @staticmethod
    def variance(df):
        return 1.0

    @staticmethod
    def bounds(p, df):
        """Bounds of the quantiles at p < 1/2 of all components of a cell."""
        goal = ndtri(p)
        return goal, goal


class STUDENT:
    """Standard Student-t distribution."""

    @staticmethod
    def cdf(z, df):
        return stdtr(df, z)

    @staticmethod
    def log_pdf(z, df):
        norm = gammaln((df + 1) / 2) - gammaln(df / 2) - 0.5 * np.log(np.pi * df)
        return norm - (df + 1) / 2 * np.log1p(z * z / df)

    @staticmethod
    def distance(z, df):
        """E|Z - z|."""
        tail = (df + z * z) / (df - 1)
        return z * (2 * stdtr(df, z) - 1) + 2 * tail * np.exp(STUDENT.log_pdf(z, df))

    @staticmethod
    def variance(df):
        with np.errstate(divide="ignore"):
            return np.where(df > 2, df / np.maximum(df - 2, 0), np.inf)

    @staticmethod
    def bounds(p, df):
        """The heaviest tail among the components and the Normal tail."""
        return stdtrit(df.min(-1), p) * (1 + 1e-6), ndtri(p)


class UNIFORM:
    """Uniform distribution between -1 and 1."""

    @staticmethod
    def cdf(z, df):
        return np.clip((z + 1) / 2, 0, 1)

    @staticmethod
    def log_pdf(z, df):
        return np.where((z >= -1) & (z < 1), -np.log(2), -np.inf)

    @staticmethod
    def distance(z, df):
        """E|Z - z|."""
        return np.where(np.abs(z) < 1, (1 + z * z) / 2, np.abs(z))

    @staticmethod
    def variance(df):
        return 1 / 3

    @staticmethod
    def bounds(p, df):
        """Bounds of the quantiles at p of all components of a cell."""
        return 2 * p - 1, 2 * p - 1


FAMILIES = {"normal": NORMAL, "uniform": UNIFORM}  # of components without degrees of freedom


def cdf(family, m, s, w, df, x):
    return average(family.cdf((x[..., None] - m) / s, df), w)


def log_pdf(family, m, s, w, df, x):
    logs = family.log_pdf((x[..., None] - m) / s, df) - np.log(s)
    return logsumexp(logs, axis=-1, b=1 / m.shape[-1] if w is None else w)


def variance(family, m, s, w, df):
    return average(s * s * family.variance(df) + (m - average(m, w)[..., None]) ** 2, w)


def distance(family, m, s, w, df, x):
    """E|X - x|."""
    return average(s * family.distance((x[..., None] - m) / s, df), w)


def self_distance(family, m, s, w, df):
    """E|X - X'|, pair by pair; pairs at the same lag together: memory stays O(K)."""
    if family is STUDENT:
        return _self_distance_t(m, s, w, df)
    k, alone, between = m.shape[-1], *_PAIRS[family]
    total = alone * (s if w is None else s * w * w).sum(-1)
    for lag in range(1, k):
        pairs = between(m[..., lag:] - m[..., :-lag], s[..., lag:], s[..., :-lag])
        total += 2 * (pairs if w is None else pairs * w[..., lag:] * w[..., :-lag]).sum(-1)
    return total if w is not None else total / k**2


def _normal_pairs(gap, s, t):
    """E|X - X'| of Normal variables whose means differ by ``gap``."""
    var = s**2 + t**2
    return gap * erf(gap / np.sqrt(2 * var)) + np.sqrt(2 / np.pi * var) * np.exp(-0.5 * gap * gap / var)


def _uniform_pairs(gap, s, t):
    """E|X - X'| of uniform variables: the gap itself unless they overlap."""
    gap, wide, narrow = np.abs(gap), np.maximum(s, t), np.minimum(s, t)
    inside = (gap**2 + wide**2 + narrow**2 / 3) / (2 * wide)  # the narrow one lies within the wide one
    excess = np.maximum(gap + narrow - wide, 0) ** 3 / (12 * wide * narrow)
    return np.where(gap >= wide + narrow, gap, inside - excess)


# What a component adds with itself, in units of its scale, and what a pair adds.
_PAIRS = {NORMAL: (2 / np.sqrt(np.pi), _normal_pairs), UNIFORM: (2 / 3, _uniform_pairs)}


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
    outside = [distance(STUDENT, m, s, w, df, edges[:, end]) for end in (0, -1)]
    total = sum(outside) - (edges[:, -1] - edges[:, 0])
    allowed = tol * distance(STUDENT, m, s, w, df, average(m, w))  # E|X - mean| <= E|X - X'|

    x, weight = legendre.leggauss(nodes)
    polynomials = legendre.legvander(x, nodes - 1)
    last = weight * polynomials[:, -1] * (nodes - 0.5)
    antiderivative = legendre.legval(x, legendre.legint(np.linalg.inv(polynomials), lbnd=-1))
    mass = np.stack([cdf(STUDENT, m, s, w, df, edge) for edge in edges.T], axis=1)
    cell = np.repeat(np.arange(len(m)), edges.shape[1] - 1)
    low, high, below, upto = (a.ravel() for a in (edges[:, :-1], edges[:, 1:], mass[:, :-1], mass[:, 1:]))
    for _ in range(40):
        half = (high - low) / 2
        mid = low + half
        density = half[:, None] * np.exp(
            log_pdf(STUDENT, *at(cell[:, None]), mid[:, None] + half[:, None] * x)
        )
        f = below[:, None] + density @ antiderivative
        error = np.maximum(np.abs(density @ weight - (upto - below)), 0.01 * np.abs(density @ last))
        split = half * error > allowed[cell]
        total += np.bincount(cell[~split], (2 * half * ((f - f * f) @ weight))[~split], len(total))
        if not split.any():
            break
        low, mid, high, below, upto, cell = (a[split] for a in (low, mid, high, below, upto, cell))
        between = cdf(STUDENT, *at(cell), mid)
        low, high, cell = np.append(low, mid), np.append(mid, high), np.append(cell, cell)
        below, upto = np.append(below, between), np.append(between, upto)
    return total.reshape(shape)


def mapped(family, m, s, w, df, function):
    """The distribution of function(X) for a strictly increasing function, as uniform pieces.

    The distribution function of X is known at many points, close to each other in the middle and further
    apart in the tails, and is drawn straight between their images: quantiles are off by less than a
    hundredth of the deviation of X.

    Returns
    -------
    m, s, w : ndarray of shape (..., PIECES)
        Middles, half widths and weights of the pieces.
    """
    middle, width = average(m, w)[..., None], np.sqrt(variance(NORMAL, m, s, w, None))[..., None]
    reach = np.arcsinh(2 * REACH)
    edges = middle + 0.5 * width * np.sinh(np.linspace(-reach, reach, PIECES + 1))
    mass = np.stack([cdf(family, m, s, w, df, edge) for edge in np.moveaxis(edges[..., 1:-1], -1, 0)], -1)
    zero = np.zeros_like(middle)
    weights = np.diff(np.concatenate([zero, mass, zero + 1], -1), axis=-1)
    edges = function(edges)
    middle, half = (edges[..., 1:] + edges[..., :-1]) / 2, np.diff(edges, axis=-1) / 2
    return middle, np.maximum(half, np.spacing(np.abs(middle))), np.maximum(weights, 0)


def _end(family, m, s, w, sign):
    """The lowest (-1) or highest (1) possible value."""
    if family is not UNIFORM:
        return sign * np.inf
    ends = sign * m + s
    return sign * (ends if w is None else np.where(w > 0, ends, -np.inf)).max(-1, initial=-np.inf)


def quantiles(family, m, s, w, df, p):
    """Quantiles: Newton steps on ndtri(F(x)) = ndtri(p), bisection where they leave the bracket or stall.

    The score ndtri(F) is nearly straight, so three to six steps do. Above the median the mixture is
    mirrored: F near 0 has all its digits, F near 1 has not.
    """
    shape, k, p = p.shape, m.shape[-1], p.ravel()
    out = np.full(len(p), np.nan)
    for end, sign in ((0, -1), (1, 1)):
        out[p == end] = _end(
            family, *(None if a is None else a.reshape(-1, k)[p == end] for a in (m, s, w)), sign
        )
    live = np.flatnonzero((p > 0) & (p < 1))
    sign, p = np.where(p > 0.5, -1.0, 1.0)[live], np.minimum(p, 1 - p)[live]
    m, s, w, df = (None if a is None else a.reshape(-1, k)[live] for a in (m, s, w, df))
    m = m * sign[:, None]
    goal = ndtri(p)
    # The quantile lies between those of the components.
    least, most = family.bounds(p, df)
    low, high = (m + s * least[:, None]).min(-1), (m + s * most[:, None]).max(-1)
    width = np.sqrt(variance(NORMAL, m, s, w, None))
    low, high = low - 1e-6 * width, high + 1e-6 * width  # rounding must not put the root outside
    x, step = np.clip(average(m, w) + width * goal, low, high), high - low
    for _ in range(200):
        z = (x[:, None] - m) / s
        f = average(family.cdf(z, df), w)
        low, high = np.where(f < p, x, low), np.where(f < p, high, x)
        with np.errstate(all="ignore"):  # a nan leads to a bisection
            score = ndtri(f)
            slope = average(np.exp(family.log_pdf(z, df)) / s, w) / np.exp(NORMAL.log_pdf(score, None))
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
