"""Mathematics of mixtures of one location-scale family, vectorised over cells.

Every function takes the family of the components, locations ``m`` and scales ``s`` of shape (..., K), weights
``w`` (..., K) or None for equal ones, and the shape parameters of the family by name, each (..., K). What
depends on the family is asked of it.
"""

from __future__ import annotations

import numpy as np
from numpy.polynomial import legendre
from scipy.special import logsumexp, ndtri

PIECES, REACH = 128, 20.0  # of a mapped distribution: how many, and how many deviations to either side
STEPS = 3  # of the search for quantiles with an approximation of the distribution function


def average(values, w):
    """Mean over components, the last axis."""
    return values.mean(-1) if w is None else np.einsum("...k,...k->...", values, w)


def take(shape, cells):
    """Shape parameters of some cells."""
    return {name: value[cells] for name, value in shape.items()}


def cdf(family, m, s, w, shape, x):
    """Probability of values up to x."""
    return average(family.cdf((x[..., None] - m) / s, shape), w)


def log_pdf(family, m, s, w, shape, x):
    """Log-density."""
    logs = family.log_pdf((x[..., None] - m) / s, shape) - np.log(s)
    return logsumexp(logs, axis=-1, b=1 / m.shape[-1] if w is None else w)


def mean(family, m, s, w, shape):
    """Mean."""
    return average(m + s * family.mean(shape), w)


def variance(family, m, s, w, shape):
    """Variance."""
    means = m + s * family.mean(shape)
    return average(s * s * family.variance(shape) + (means - average(means, w)[..., None]) ** 2, w)


def spread(m, s, w):
    """Standard deviation if that of every component were its scale: finite for every family."""
    return np.sqrt(average(s * s + (m - average(m, w)[..., None]) ** 2, w))


def distance(family, m, s, w, shape, x):
    """E|X - x|."""
    return average(s * family.distance((x[..., None] - m) / s, shape), w)


def self_distance(family, m, s, w, shape):
    """E|X - X'|: pair by pair where the family knows that of pairs, else by quadrature."""
    if not family.has_pair_distance:
        return _self_distance_by_panels(family, m, s, w, shape)
    # Pairs at the same lag together: memory stays O(K).
    k, alone = m.shape[-1], family.pair_distance(np.zeros_like(s), s, s)
    total = (alone if w is None else alone * w * w).sum(-1)
    for lag in range(1, k):
        pairs = family.pair_distance(m[..., lag:] - m[..., :-lag], s[..., lag:], s[..., :-lag])
        total += 2 * (pairs if w is None else pairs * w[..., lag:] * w[..., :-lag]).sum(-1)
    return total if w is not None else total / k**2


def _self_distance_by_panels(family, m, s, w, params, nodes=8, tol=3e-6):
    """E|X - X'| = 2 int F (1 - F) by panels that are halved until they fit.

    A panel takes the density at Gauss nodes and the exact F at its ends: the mass it misses measures its
    error, so that no narrow component can hide; its last Legendre coefficient guards against a mass that
    fits by accident. Outside the panels F (1 - F) is min(F, 1 - F) up to its square: a known integral.
    """
    shape, k = m.shape[:-1], m.shape[-1]
    m, s, w = (None if a is None else a.reshape(-1, k) for a in (m, s, w))
    params = {name: value.reshape(-1, k) for name, value in params.items()}

    def at(cell):
        return m[cell], s[cell], None if w is None else w[cell], take(params, cell)

    reach = np.sinh(np.linspace(-1, 1, 9) * np.arcsinh(30))
    edges = np.sort((m[..., None] + s[..., None] * reach).reshape(len(m), -1), axis=-1)
    edges = edges[:, np.linspace(0, edges.shape[1] - 1, 9).round().astype(int)]
    outside = [distance(family, m, s, w, params, edges[:, end]) for end in (0, -1)]
    total = sum(outside) - (edges[:, -1] - edges[:, 0])
    middle = mean(family, m, s, w, params)
    allowed = tol * distance(family, m, s, w, params, middle)  # E|X - mean| <= E|X - X'|

    x, weight = legendre.leggauss(nodes)
    polynomials = legendre.legvander(x, nodes - 1)
    last = weight * polynomials[:, -1] * (nodes - 0.5)
    antiderivative = legendre.legval(x, legendre.legint(np.linalg.inv(polynomials), lbnd=-1))
    mass = np.stack([cdf(family, m, s, w, params, edge) for edge in edges.T], axis=1)
    cell = np.repeat(np.arange(len(m)), edges.shape[1] - 1)
    low, high, below, upto = (a.ravel() for a in (edges[:, :-1], edges[:, 1:], mass[:, :-1], mass[:, 1:]))
    for _ in range(40):
        half = (high - low) / 2
        mid = low + half
        density = half[:, None] * np.exp(
            log_pdf(family, *at(cell[:, None]), mid[:, None] + half[:, None] * x)
        )
        f = below[:, None] + density @ antiderivative
        error = np.maximum(np.abs(density @ weight - (upto - below)), 0.01 * np.abs(density @ last))
        split = half * error > allowed[cell]
        total += np.bincount(cell[~split], (2 * half * ((f - f * f) @ weight))[~split], len(total))
        if not split.any():
            break
        low, mid, high, below, upto, cell = (a[split] for a in (low, mid, high, below, upto, cell))
        between = cdf(family, *at(cell), mid)
        low, high, cell = np.append(low, mid), np.append(mid, high), np.append(cell, cell)
        below, upto = np.append(below, between), np.append(between, upto)
    return total.reshape(shape)


def mapped(family, m, s, w, shape, function):
    """The distribution of function(X) for a strictly increasing function, as uniform pieces.

    The distribution function of X is known at many points, close to each other in the middle and further
    apart in the tails, and is drawn straight between their images: quantiles are off by less than a
    hundredth of the deviation of X.

    Returns
    -------
    m, s, w : ndarray of shape (..., PIECES)
        Middles, half widths and weights of the pieces.
    """
    middle, width = average(m, w)[..., None], spread(m, s, w)[..., None]
    reach = np.arcsinh(2 * REACH)
    edges = middle + 0.5 * width * np.sinh(np.linspace(-reach, reach, PIECES + 1))
    mass = np.stack([cdf(family, m, s, w, shape, edge) for edge in np.moveaxis(edges[..., 1:-1], -1, 0)], -1)
    zero = np.zeros_like(middle)
    weights = np.diff(np.concatenate([zero, mass, zero + 1], -1), axis=-1)
    edges = function(edges)
    middle, half = (edges[..., 1:] + edges[..., :-1]) / 2, np.diff(edges, axis=-1) / 2
    return middle, np.maximum(half, np.spacing(np.abs(middle))), np.maximum(weights, 0)


def _end(family, m, s, w, sign):
    """The lowest (-1) or highest (1) possible value."""
    ends = sign * m + s * (sign * family.support[int(sign > 0)])
    return sign * (ends if w is None else np.where(w > 0, ends, -np.inf)).max(-1, initial=-np.inf)


def _newton_step(goal, f, density):
    """Newton step on ndtri(F(x)) = goal; nan or infinite where F is 0 or 1 or has no slope."""
    with np.errstate(all="ignore"):
        score = ndtri(f)
        return (goal - score) * np.exp(-0.5 * score * score - 0.5 * np.log(2 * np.pi)) / density


def quantiles(family, m, s, w, params, p):
    """Quantiles: exact where the family has them, else Newton steps on ndtri(F(x)) = ndtri(p).

    Steps that leave the bracket or stall are bisections. The score ndtri(F) is nearly straight, so three to
    six steps do, of which an approximation of F takes the first where the family has one. Above the median
    the mixture is mirrored: F near 0 has all its digits, F near 1 has not.
    """
    shape, k, p = p.shape, m.shape[-1], p.ravel()
    if family.inverts_mixtures:
        m, s, w = (None if a is None else a.reshape(-1, k) for a in (m, s, w))
        found = family.mixture_quantile(p.clip(0, 1), m, s, w)
        return np.where((p >= 0) & (p <= 1), found, np.nan).reshape(shape)
    out = np.full(len(p), np.nan)
    for end, sign in ((0, -1), (1, 1)):
        out[p == end] = _end(
            family, *(None if a is None else a.reshape(-1, k)[p == end] for a in (m, s, w)), sign
        )
    live = np.flatnonzero((p > 0) & (p < 1))
    sign, p = np.where(p > 0.5, -1.0, 1.0)[live], np.minimum(p, 1 - p)[live]
    m, s, w = (None if a is None else a.reshape(-1, k)[live] for a in (m, s, w))
    params = {name: value.reshape(-1, k)[live] for name, value in params.items()}
    m = m * sign[:, None]
    goal = ndtri(p)
    # The quantile lies between those of the components.
    least, most = family.bounds(p, params, sign)
    low, high = (m + s * least[:, None]).min(-1), (m + s * most[:, None]).max(-1)
    width = spread(m, s, w)
    low, high = low - 1e-6 * width, high + 1e-6 * width  # rounding must not put the root outside
    x, step = np.clip(average(m, w) + width * goal, low, high), high - low
    for _ in range(STEPS):
        rough = family.rough((x[:, None] - m) / s, params)
        if rough is None:
            break
        new = x + _newton_step(goal, average(rough[0], w), average(rough[1] / s, w))
        x = np.where(np.isfinite(new), np.clip(new, low, high), x)
    for _ in range(200):
        z = (x[:, None] - m) / s
        side = sign[:, None]
        f = average(family.below(z, params, side), w)
        low, high = np.where(f < p, x, low), np.where(f < p, high, x)
        density = np.exp(family.log_pdf(z if family.symmetric else side * z, params)) / s
        new = x + np.where(f == p, 0, _newton_step(goal, f, average(density, w)))
        newton = (new >= low) & (new <= high) & (np.abs(new - x) <= step / 2)
        new = np.where(newton, new, (low + high) / 2)
        x, step = new, np.abs(new - x)
        out[live] = sign * x
        # The error after a Newton step is about the square of the step, in widths of the narrowest component.
        more = (step > 1e-12 * np.maximum(np.abs(x), width)) & ~(newton & (step < 1e-6 * s.min(-1)))
        if not more.any():
            break
        if not more.all():
            state = (live, sign, p, goal, width, x, step, low, high)
            live, sign, p, goal, width, x, step, low, high = (a[more] for a in state)
            m, s, w = (None if a is None else a[more] for a in (m, s, w))
            params = take(params, more)
    return out.reshape(shape)
