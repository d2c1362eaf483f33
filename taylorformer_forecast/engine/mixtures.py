"""Mixtures of one location-scale family, a mixture in every cell of an array: their mathematics."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from numpy.polynomial import legendre
from scipy.special import logsumexp, ndtri
from torch import Tensor

from taylorformer_forecast.core.families import Components, find_component

Array: TypeAlias = np.ndarray

PIECES, REACH = 128, 20.0  # of a mapped distribution: how many, and how many deviations to either side
NUMBERS_AT_ONCE = 2**17  # in a temporary array: bounds the memory and stays in the processor's cache
NODES, TOLERANCE = 8, 3e-6  # of quadrature: in a panel, and in mean distances
LAST_STEP = 1e-6  # of a search for quantiles, in scales of the narrowest component: its error is the square
ROUGH_STEP = 1e-2  # the same for quantiles that are averaged with others
STEPS = 3  # of the search for quantiles with an approximation of the distribution function


@dataclass(frozen=True)
class Mixture:
    """Mixtures of K components of one location-scale family.

    Parameters
    ----------
    family : LocationScaleFamily
        Family of the components. What depends on it is asked of it.
    loc, scale : ndarray of shape (..., K)
        Of the components.
    weights : ndarray of shape (..., K), optional
        Of the components; equal if None.
    shape : dict of str to ndarray of shape (..., K)
        Shape parameters of the family, by name.
    """

    family: Any
    loc: np.ndarray
    scale: np.ndarray
    weights: np.ndarray | None = None
    shape: dict[str, np.ndarray] = field(default_factory=dict)

    @classmethod
    def over_paths(cls, parts: Components) -> Mixture:
        """The mixtures (..., S * K) over all paths of components along each, (S, ..., K)."""

        def joined(value: Tensor) -> Array:
            return value.movedim(0, -2).flatten(-2).numpy()

        weights = None if parts.weights is None else joined(parts.weights / len(parts.weights))
        shape = {name: joined(value) for name, value in parts.shape.items()}
        return cls(parts.family, joined(parts.loc), joined(parts.scale), weights, shape)

    def map(self, function: Callable[[Any], Any]) -> Mixture:
        """Apply a function to every array."""
        weights = None if self.weights is None else function(self.weights)
        shape = {name: function(value) for name, value in self.shape.items()}
        return Mixture(self.family, function(self.loc), function(self.scale), weights, shape)

    def affine(self, loc: Array, factor: Array) -> Mixture:
        """The mixtures of ``loc + factor * y`` for a positive factor."""
        return replace(self, loc=loc + factor * self.loc, scale=factor * self.scale)

    def __getitem__(self, cells: Any) -> Mixture:
        return self.map(lambda value: value[cells])

    def __setitem__(self, cells: Any, other: Mixture) -> None:
        pairs = [(self.loc, other.loc), (self.scale, other.scale), (self.weights, other.weights)]
        pairs += [(value, other.shape[name]) for name, value in self.shape.items()]
        for own, new in pairs:
            if own is not None:
                own[cells] = new

    def flat(self) -> Mixture:
        """All cells in a row, (n, K)."""
        return self.map(lambda value: value.reshape(-1, value.shape[-1]))

    def by_rows(self, function: Callable[..., Array], *args: Array, cost: int = 1) -> Array:
        """Apply function(mixture, *args) to blocks of rows of mixtures (R, D, K), their weights of sum 1."""
        n_rows, n_columns, n_components = self.loc.shape
        size, out = max(1, NUMBERS_AT_ONCE // (n_columns * n_components * cost)), []
        for block in (slice(start, start + size) for start in range(0, n_rows, size)):
            part = self[block]
            if part.weights is not None:
                part = replace(part, weights=part.weights / part.weights.sum(-1, keepdims=True))
            out.append(function(part, *(values[block] for values in args)))
        return np.concatenate(out)

    def average(self, values: Array) -> Array:
        """Mean over components, the last axis."""
        return values.mean(-1) if self.weights is None else np.einsum("...k,...k->...", values, self.weights)

    def standard(self, x: Array) -> Array:
        """Values in units of the components."""
        return (x[..., None] - self.loc) / self.scale

    def points(self) -> Array:
        """Which components stand for a single value."""
        return self.family.points(self.loc, self.scale)

    def cdf(self, x: Array) -> Array:
        """Probability of values up to x, a single value that has a probability included."""
        z, points = self.standard(x), self.points()
        return self.average(self.family.cdf(np.where(points & (z >= -1), np.inf, z), self.shape))

    def pmf(self, x: Array) -> Array:
        """Probability of the single value x, which only values that stand for themselves have."""
        points = self.points() & (np.abs(self.standard(x)) <= 1)
        return self.average(points.astype(float))

    def log_pdf(self, x: Array) -> Array:
        """Log-density."""
        logs = self.family.log_pdf(self.standard(x), self.shape) - np.log(self.scale)
        return logsumexp(logs, axis=-1, b=1 / self.loc.shape[-1] if self.weights is None else self.weights)

    def mean(self) -> Array:
        """Mean."""
        return self.average(self.loc + self.scale * self.family.mean(self.shape))

    def variance(self) -> Array:
        """Variance."""
        means = self.loc + self.scale * self.family.mean(self.shape)
        within = np.where(self.points(), 0.0, self.scale**2) * self.family.variance(self.shape)
        return self.average(within + (means - self.average(means)[..., None]) ** 2)

    def spread(self) -> Array:
        """Standard deviation if that of every component were its scale: finite for every family."""
        return np.sqrt(self.average(self.scale**2 + (self.loc - self.average(self.loc)[..., None]) ** 2))

    def distance(self, x: Array) -> Array:
        """E|X - x|."""
        return self.average(self.scale * self.family.distance(self.standard(x), self.shape))

    def self_distance(self) -> Array:
        """E|X - X'|: pair by pair where the family knows that of pairs, else by quadrature."""
        if not self.family.has_pair_distance:
            return _self_distance_by_panels(self.flat()).reshape(self.loc.shape[:-1])
        # Pairs at the same lag together: memory stays O(K).
        m, s, w, pair_distance = self.loc, self.scale, self.weights, self.family.pair_distance
        alone = pair_distance(np.zeros_like(s), s, s)
        total = (alone if w is None else alone * w * w).sum(-1)
        for lag in range(1, m.shape[-1]):
            pairs = pair_distance(m[..., lag:] - m[..., :-lag], s[..., lag:], s[..., :-lag])
            total += 2 * (pairs if w is None else pairs * w[..., lag:] * w[..., :-lag]).sum(-1)
        return total if w is not None else total / m.shape[-1] ** 2

    def mapped(self, function: Callable[[Array], Array]) -> Mixture:
        """The distribution of function(X) for a strictly increasing function, as uniform pieces.

        The distribution function of X is known at many points, close to each other in the middle and further
        apart in the tails, and is drawn straight between their images: quantiles are off by less than a
        hundredth of the deviation of X.
        """
        middle, width = self.average(self.loc)[..., None], self.spread()[..., None]
        reach = np.arcsinh(2 * REACH)
        edges = middle + 0.5 * width * np.sinh(np.linspace(-reach, reach, PIECES + 1))
        mass = np.stack([self.cdf(edge) for edge in np.moveaxis(edges[..., 1:-1], -1, 0)], -1)
        zero = np.zeros_like(middle)
        weights = np.diff(np.concatenate([zero, mass, zero + 1], -1), axis=-1)
        edges = function(edges)
        middle, half = (edges[..., 1:] + edges[..., :-1]) / 2, np.diff(edges, axis=-1) / 2
        half = np.maximum(half, np.spacing(np.abs(middle)))
        return Mixture(find_component("uniform"), middle, half, np.maximum(weights, 0))

    def at_levels(self, levels: Sequence[float], last_step: float = LAST_STEP) -> Array:
        """Quantiles of mixtures (R, D, K) at some levels, (R, D, L), in double precision."""
        shape, wide = self.loc.shape[:2], self.map(lambda value: np.asarray(value, dtype=float))
        at = partial(Mixture.quantiles, last_step=last_step)
        return np.stack([wide.by_rows(at, np.full(shape, level)) for level in levels], -1)

    def end(self, sign: int) -> Array:
        """The lowest (-1) or highest (1) possible value."""
        ends = sign * self.loc + self.scale * (sign * self.family.support[int(sign > 0)])
        possible = ends if self.weights is None else np.where(self.weights > 0, ends, -np.inf)
        return sign * possible.max(-1, initial=-np.inf)

    def quantiles(self, p: Array, last_step: float = LAST_STEP) -> Array:
        """Quantiles at probabilities p of the shape of the cells; NaN beyond 0 and 1.

        The search ends at a step of that many scales of the narrowest component: the error is its square.
        """
        cells, level, out = self.flat(), p.ravel(), np.full(p.size, np.nan)
        if self.family.inverts_mixtures:
            found = self.family.mixture_quantile(level.clip(0, 1), cells.loc, cells.scale, cells.weights)
            out = np.where((level >= 0) & (level <= 1), found, out)
        else:
            for end, sign in ((0, -1), (1, 1)):
                out[level == end] = cells[level == end].end(sign)
            inside = (level > 0) & (level < 1)
            out[inside] = _inverted(cells[inside], level[inside], last_step)
        certain = (cells.points() & (cells.loc == cells.loc[:, :1])).all(-1) & ~np.isnan(out)
        out[certain] = cells.loc[certain, 0]
        return out.reshape(p.shape)


def _self_distance_by_panels(cells: Mixture) -> Array:
    """E|X - X'| = 2 int F (1 - F) by panels that are halved until they fit.

    A panel takes the density at Gauss nodes and the exact F at its ends: the mass it misses measures its
    error, so that no narrow component can hide; its last Legendre coefficient guards against a mass that
    fits by accident. Outside the panels F (1 - F) is min(F, 1 - F) up to its square: a known integral.
    """
    reach = np.sinh(np.linspace(-1, 1, 9) * np.arcsinh(30))
    edges = np.sort(
        (cells.loc[..., None] + cells.scale[..., None] * reach).reshape(len(cells.loc), -1), axis=-1
    )
    edges = edges[:, np.linspace(0, edges.shape[1] - 1, 9).round().astype(int)]
    outside = [cells.distance(edges[:, end]) for end in (0, -1)]
    total = sum(outside) - (edges[:, -1] - edges[:, 0])
    allowed = TOLERANCE * cells.distance(cells.mean())  # E|X - mean| <= E|X - X'|

    x, weight = legendre.leggauss(NODES)
    polynomials = legendre.legvander(x, NODES - 1)
    last = weight * polynomials[:, -1] * (NODES - 0.5)
    antiderivative = legendre.legval(x, legendre.legint(np.linalg.inv(polynomials), lbnd=-1))
    mass = np.stack([cells.cdf(edge) for edge in edges.T], axis=1)
    cell = np.repeat(np.arange(len(edges)), edges.shape[1] - 1)
    low, high, below, upto = (a.ravel() for a in (edges[:, :-1], edges[:, 1:], mass[:, :-1], mass[:, 1:]))
    for _ in range(40):
        half = (high - low) / 2
        mid = low + half
        density = half[:, None] * np.exp(cells[cell[:, None]].log_pdf(mid[:, None] + half[:, None] * x))
        f = below[:, None] + density @ antiderivative
        error = np.maximum(np.abs(density @ weight - (upto - below)), 0.01 * np.abs(density @ last))
        split = half * error > allowed[cell]
        total += np.bincount(cell[~split], (2 * half * ((f - f * f) @ weight))[~split], len(total))
        if not split.any():
            break
        low, mid, high, below, upto, cell = (a[split] for a in (low, mid, high, below, upto, cell))
        between = cells[cell].cdf(mid)
        low, high, cell = np.append(low, mid), np.append(mid, high), np.append(cell, cell)
        below, upto = np.append(below, between), np.append(between, upto)
    return total


def _newton_step(goal: Array, f: Array, density: Array) -> Array:
    """Newton step on ndtri(F(x)) = goal; nan or infinite where F is 0 or 1 or has no slope."""
    with np.errstate(all="ignore"):
        score = ndtri(f)
        return (goal - score) * np.exp(-0.5 * score * score - 0.5 * np.log(2 * np.pi)) / density


def _inverted(cells: Mixture, p: Array, last_step: float) -> Array:
    """Quantiles of a row of mixtures at 0 < p < 1: Newton steps on ndtri(F(x)) = ndtri(p).

    Steps that leave the bracket or stall are bisections. The score ndtri(F) is nearly straight, so three to
    six steps do, of which an approximation of F takes the first where the family has one. Above the median
    the mixture is mirrored: F near 0 has all its digits, F near 1 has not.
    """
    family, out, live = cells.family, np.empty(len(p)), np.arange(len(p))
    sign, p = np.where(p > 0.5, -1.0, 1.0), np.minimum(p, 1 - p)
    cells = replace(cells, loc=cells.loc * sign[:, None])
    goal = ndtri(p)
    # The quantile lies between those of the components.
    least, most = family.bounds(p, cells.shape, sign)
    width = cells.spread()
    outside = 1e-6 * width  # rounding must not put the root outside
    low = (cells.loc + cells.scale * least[:, None]).min(-1) - outside
    high = (cells.loc + cells.scale * most[:, None]).max(-1) + outside
    x, step = np.clip(cells.average(cells.loc) + width * goal, low, high), high - low
    for _ in range(STEPS):
        rough = family.rough(cells.standard(x), cells.shape)
        if rough is None:
            break
        new = x + _newton_step(goal, cells.average(rough[0]), cells.average(rough[1] / cells.scale))
        x = np.where(np.isfinite(new), np.clip(new, low, high), x)
    for _ in range(200):
        z, side = cells.standard(x), sign[:, None]
        f = cells.average(family.below(z, cells.shape, side))
        low, high = np.where(f < p, x, low), np.where(f < p, high, x)
        density = np.exp(family.log_pdf(z if family.symmetric else side * z, cells.shape)) / cells.scale
        new = x + np.where(f == p, 0, _newton_step(goal, f, cells.average(density)))
        newton = (new >= low) & (new <= high) & (np.abs(new - x) <= step / 2)
        new = np.where(newton, new, (low + high) / 2)
        x, step = new, np.abs(new - x)
        out[live] = sign * x
        # The error after a Newton step is about the square of the step, in widths of the narrowest component.
        more = (step > 1e-12 * np.maximum(np.abs(x), width)) & ~(
            newton & (step < last_step * cells.scale.min(-1))
        )
        if not more.any():
            break
        if not more.all():
            state = (live, sign, p, goal, width, x, step, low, high)
            live, sign, p, goal, width, x, step, low, high = (a[more] for a in state)
            cells = cells[more]
    return out
