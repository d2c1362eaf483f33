"""What a sampling forecaster returns as skpro distributions: marginal mixtures and joint sample paths.

Shapes: H rows (forecast stamps, per instance for panels), C columns, K mixture components, S sample paths.
Without the H and C axes the same classes describe a scalar distribution.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.polynomial import legendre
from scipy.special import erf, gammaln, logsumexp, ndtr, ndtri, stdtr, stdtrit
from skpro.distributions.base import BaseDistribution
from skpro.distributions.empirical import Empirical

__all__ = ["PathMixture", "SamplePaths"]

_BLOCK = 2**17  # numbers per temporary array: bounds the memory and stays in the processor's cache


class _ArrayDistribution(BaseDistribution):
    """Labels, pandas indexing, quantile and sample frames over arrays.

    Subclasses supply ``_array_shape()``, ``_pick(key)`` (parameters at an array key), ``_quantiles(p)``
    for p of shape (n, H, C), ``_draw(rng, n)`` of that shape and ``_cell_energy(x)``.
    """

    _tags = {"broadcast_init": "off"}

    def _init_shape_bc(self, index=None, columns=None):
        self._shape = self._array_shape()
        if not self._shape and (index is not None or columns is not None):
            raise ValueError("index and columns need arrays with a row and a column axis")
        for name, length in zip(("index", "columns"), self._shape, strict=False):
            labels = getattr(self, name)
            if labels is None:
                setattr(self, name, pd.RangeIndex(length))
            elif len(labels) != length:
                raise ValueError(f"{name} has {len(labels)} labels but the arrays have {length}")

    def _select(self, indexer, rowidx, colidx):
        """Subset by whatever key pandas accepts: it indexes a frame of cell numbers for us.

        A row key may be the whole tuple of ``d.loc[:, [col]]``, which skpro passes on undivided for a
        MultiIndex; pandas then tells rows from columns as it does for a data frame.
        """
        rows = slice(None) if rowidx is None else rowidx
        number = np.arange(np.prod(self.shape)).reshape(self.shape)
        frame = pd.DataFrame(number, index=self.index, columns=self.columns)
        found = getattr(frame, indexer)[rows if colidx is None else (rows, colidx)]
        i, j = np.divmod(np.asarray(found), self.shape[1])
        if i.ndim == 0:
            return self._iat(int(i), int(j))
        if i.ndim == 1:  # pandas has squeezed a single row or a single column
            i, j = (i[:1], j) if (i == i[0]).all() else (i, j[:1])
        else:
            i, j = i[:, 0], j[0]
        return type(self)(**self._pick(np.ix_(i, j)), index=self.index[i], columns=self.columns[j])

    def _loc(self, rowidx=None, colidx=None):
        if isinstance(rowidx, pd.Index) and rowidx.equals(self.index) and self.columns.equals(colidx):
            return self
        return self._select("loc", rowidx, colidx)

    def _iloc(self, rowidx=None, colidx=None):
        return self._select("iloc", rowidx, colidx)

    def _at(self, rowidx=None, colidx=None):
        return self._select("loc", rowidx, colidx)

    def _iat(self, rowidx=None, colidx=None):
        if rowidx is None or colidx is None:
            raise ValueError("iat needs a row and a column position")
        return type(self)(**self._pick((rowidx, colidx)))

    def quantile_array(self, alpha):
        """Quantiles as an array, the numbers that ``quantile`` puts into a frame.

        Parameters
        ----------
        alpha : float or sequence of float
            Probabilities between 0 and 1.

        Returns
        -------
        np.ndarray of shape (len(alpha), H, C)
            (len(alpha),) for a scalar distribution.

        Raises
        ------
        ValueError
            If a probability lies outside [0, 1].

        Examples
        --------
        >>> SamplePaths([1.0, 2.0, 3.0, 4.0]).quantile_array([0.25, 0.5])
        array([1., 2.])
        """
        alpha = np.atleast_1d(np.asarray(alpha, dtype=float))
        if not ((alpha >= 0) & (alpha <= 1)).all():
            raise ValueError(f"alpha must lie between 0 and 1, got {alpha.tolist()}")
        return self._quantiles(np.multiply.outer(alpha, np.ones(self.shape)))

    def quantile(self, alpha):
        """Quantiles in sktime's format, equal to ``quantile_array`` to the last bit.

        Parameters
        ----------
        alpha : float or list of float
            Probabilities between 0 and 1.

        Returns
        -------
        pd.DataFrame
            Rows as in ``index``; columns (variable, alpha), variables varying slowest.

        Examples
        --------
        >>> SamplePaths([[[1.0]], [[2.0]], [[3.0]]], columns=["y"]).quantile([0.5]).iloc[0, 0].item()
        2.0
        """
        alpha = np.atleast_1d(alpha).tolist()
        values = self.quantile_array(alpha).reshape(len(alpha), *(self.shape or (1, 1)))
        names = self.columns if self.ndim else [type(self).__name__]
        columns = pd.MultiIndex.from_product([names, alpha])
        return pd.DataFrame(values.transpose(1, 2, 0).reshape(-1, len(columns)), self.index, columns)

    def _ppf(self, p):
        return self._quantiles(np.asarray(p, dtype=float)[None])[0]

    def _energy_self(self):
        return self._energy_x(None)

    def _energy_x(self, x):
        energy = self._cell_energy(x)
        return energy.sum(axis=1) if self.ndim else energy

    def _sample(self, n_samples=None):
        draws = self._draw(np.random.default_rng(self.random_state), 1 if n_samples is None else n_samples)
        if n_samples is not None:
            return self._stack(draws)
        return pd.DataFrame(draws[0], self.index, self.columns) if self.ndim else float(draws[0])

    def _stack(self, draws):
        """Frame of draws (n, H, C) with the draw's number as outermost row level."""
        if not self.ndim:
            return pd.DataFrame(draws)
        n, h, c = draws.shape
        index = self.index
        if not isinstance(index, pd.MultiIndex):
            index = pd.MultiIndex.from_arrays([index])
        codes = [np.repeat(np.arange(n), h), *(np.tile(code, n) for code in index.codes)]
        index = pd.MultiIndex([pd.RangeIndex(n), *index.levels], codes, names=[None, *index.names])
        return pd.DataFrame(draws.reshape(n * h, c), index=index, columns=self.columns)


def _average(values, w):
    """Mean over components, the last axis."""
    return values.mean(-1) if w is None else np.einsum("...k,...k->...", values, w)


def _std_cdf(z, df):
    return ndtr(z) if df is None else stdtr(df, z)


def _std_log_pdf(z, df):
    if df is None:
        return -0.5 * z * z - 0.5 * np.log(2 * np.pi)
    norm = gammaln((df + 1) / 2) - gammaln(df / 2) - 0.5 * np.log(np.pi * df)
    return norm - (df + 1) / 2 * np.log1p(z * z / df)


def _cdf(m, s, w, df, x):
    return _average(_std_cdf((x[..., None] - m) / s, df), w)


def _log_pdf(m, s, w, df, x):
    logs = _std_log_pdf((x[..., None] - m) / s, df) - np.log(s)
    return logsumexp(logs, axis=-1, b=1 / m.shape[-1] if w is None else w)


def _variance(m, s, w, df):
    if df is not None:
        with np.errstate(divide="ignore"):
            s = s * np.sqrt(np.where(df > 2, df / np.maximum(df - 2, 0), np.inf))
    return _average(s * s + (m - _average(m, w)[..., None]) ** 2, w)


def _distance(m, s, w, df, x):
    """E|X - x|."""
    z = (x[..., None] - m) / s
    tail = 1.0 if df is None else (df + z * z) / (df - 1)
    spread = z * (2 * _std_cdf(z, df) - 1) + 2 * tail * np.exp(_std_log_pdf(z, df))
    return _average(s * spread, w)


def _self_distance(m, s, w, df):
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
    outside = [_distance(m, s, w, df, edges[:, end]) for end in (0, -1)]
    total = sum(outside) - (edges[:, -1] - edges[:, 0])
    allowed = tol * _distance(m, s, w, df, _average(m, w))  # E|X - mean| <= E|X - X'|

    x, weight = legendre.leggauss(nodes)
    polynomials = legendre.legvander(x, nodes - 1)
    last = weight * polynomials[:, -1] * (nodes - 0.5)
    antiderivative = legendre.legval(x, legendre.legint(np.linalg.inv(polynomials), lbnd=-1))
    mass = np.stack([_cdf(m, s, w, df, edge) for edge in edges.T], axis=1)
    cell = np.repeat(np.arange(len(m)), edges.shape[1] - 1)
    low, high, below, upto = (a.ravel() for a in (edges[:, :-1], edges[:, 1:], mass[:, :-1], mass[:, 1:]))
    for _ in range(40):
        half = (high - low) / 2
        mid = low + half
        density = half[:, None] * np.exp(_log_pdf(*at(cell[:, None]), mid[:, None] + half[:, None] * x))
        f = below[:, None] + density @ antiderivative
        error = np.maximum(np.abs(density @ weight - (upto - below)), 0.01 * np.abs(density @ last))
        split = half * error > allowed[cell]
        total += np.bincount(cell[~split], (2 * half * ((f - f * f) @ weight))[~split], len(total))
        if not split.any():
            break
        low, mid, high, below, upto, cell = (a[split] for a in (low, mid, high, below, upto, cell))
        between = _cdf(*at(cell), mid)
        low, high, cell = np.append(low, mid), np.append(mid, high), np.append(cell, cell)
        below, upto = np.append(below, between), np.append(between, upto)
    return total.reshape(shape)


def _solve(m, s, w, df, p):
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
    width = np.sqrt(_variance(m, s, w, None))
    low, high = low - 1e-6 * width, high + 1e-6 * width  # rounding must not put the root outside
    x, step = np.clip(_average(m, w) + width * goal, low, high), high - low
    for _ in range(200):
        z = (x[:, None] - m) / s
        f = _average(_std_cdf(z, df), w)
        low, high = np.where(f < p, x, low), np.where(f < p, high, x)
        with np.errstate(all="ignore"):  # a nan leads to a bisection
            score = ndtri(f)
            slope = _average(np.exp(_std_log_pdf(z, df)) / s, w) / np.exp(_std_log_pdf(score, None))
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


class PathMixture(_ArrayDistribution):
    """Mixture of Normal or Student-t components in every cell.

    Use it for the per-step predictive distributions of a forecaster averaged over its sample paths: each
    path contributes the component(s) it predicts for the step. It holds the marginals only: ``sample``
    draws every cell on its own. For whole trajectories use :class:`SamplePaths`.

    Parameters
    ----------
    mu : array of shape (H, C, K)
        Locations of the K components. Shape (K,) makes a scalar distribution.
    sigma : array that broadcasts to the shape of mu
        Scales, positive. For Normal components the standard deviations.
    weights : array that broadcasts to the shape of mu, optional
        Weights, not negative; normalised in every cell. None: equal weights, at no cost.
    df : float or array that broadcasts to the shape of mu, optional
        Degrees of freedom of Student-t components: mean and energy need df > 1, a finite variance
        df > 2. None: Normal components.
    random_state : int, optional
        Seed of ``sample``: equal calls then return equal draws. None: fresh draws at every call.
        numpy's global generator is never touched.
    index, columns : pd.Index, optional
        Labels of rows (a MultiIndex for panels) and columns. Default: counted from 0.

    Raises
    ------
    ValueError
        If shapes or labels do not fit together, or a parameter is out of its range.

    Notes
    -----
    Exact are all methods but ``pdfnorm`` (Monte Carlo), quantiles (solved to a relative error below
    1e-10) and the self-energy of Student-t mixtures (quadrature, relative error below 1e-4). The
    self-energy of Normal mixtures is a sum over K (K - 1) / 2 pairs per cell.

    Examples
    --------
    >>> from taylorformer_forecast.sktime.distributions import PathMixture
    >>> dist = PathMixture(mu=[[[-1.0, 1.0]], [[0.0, 4.0]]], sigma=0.5, columns=["y"])
    >>> dist.mean()
         y
    0  0.0
    1  2.0
    >>> dist.loc[[1]].quantile_array(0.5)
    array([[[2.]]])
    """

    _tags = {
        "capabilities:approx": ["pdfnorm"],
        "capabilities:exact": ["mean", "var", "energy", "pdf", "log_pdf", "cdf", "ppf"],
        "distr:measuretype": "continuous",
    }

    def __init__(self, mu, sigma, weights=None, df=None, random_state=None, index=None, columns=None):
        self.mu = mu
        self.sigma = sigma
        self.weights = weights
        self.df = df
        self.random_state = random_state
        super().__init__(index=index, columns=columns)
        if df is not None:
            exact = [method for method in self.get_tag("capabilities:exact") if method != "energy"]
            self.set_tags(**{"capabilities:exact": exact, "capabilities:approx": ["energy", "pdfnorm"]})

    def _array_shape(self):
        shape = np.shape(self.mu)
        if len(shape) not in (1, 3) or 0 in shape:
            raise ValueError(f"mu must have shape (rows, columns, components) or (components,), got {shape}")
        for name in ("sigma", "weights", "df"):
            value = getattr(self, name)
            if value is None and name != "sigma":
                continue
            value = np.asarray(value, dtype=float)
            try:
                np.broadcast_to(value, shape)
            except ValueError:
                raise ValueError(f"{name} of shape {value.shape} does not fit mu of shape {shape}") from None
            if name == "weights" and ((value < 0).any() or (value.sum(-1) == 0).any()):
                raise ValueError("weights must not be negative nor all zero in a cell")
            if name != "weights" and (value <= 0).any():
                raise ValueError(f"{name} must be positive, its smallest value is {value.min()}")
        return shape[:-1]

    def _pick(self, key):
        shape = np.shape(self.mu)
        params = {name: getattr(self, name) for name in ("mu", "sigma", "weights", "df")}
        params = {k: v if v is None else np.broadcast_to(v, shape)[key] for k, v in params.items()}
        return params | {"random_state": self.random_state}

    def _arrays(self):
        """Mu, sigma, weights, df as float arrays (H, C, K), or None; views where possible."""
        shape = (*(self.shape or (1, 1)), np.shape(self.mu)[-1])
        values = (self.mu, self.sigma, self.weights, self.df)
        return [None if v is None else np.broadcast_to(np.asarray(v, dtype=float), shape) for v in values]

    def _by_rows(self, func, *args, cost=1):
        """Apply func(mu, sigma, weights, df, *args) to blocks of rows."""
        arrays = self._arrays()
        h, c, k = arrays[0].shape
        args = [np.reshape(a, (h, c)) for a in args]
        size = max(1, _BLOCK // (c * k * cost))
        out = []
        for block in (slice(i, i + size) for i in range(0, h, size)):
            m, s, w, df = (None if a is None else a[block] for a in arrays)
            w = None if w is None else w / w.sum(-1, keepdims=True)
            out.append(func(m, s, w, df, *(a[block] for a in args)))
        return np.concatenate(out).reshape(self.shape)

    def _mean(self):
        return self._by_rows(lambda m, s, w, df: _average(m, w))

    def _var(self):
        return self._by_rows(_variance)

    def _cdf(self, x):
        return self._by_rows(_cdf, x)

    def _log_pdf(self, x):
        return self._by_rows(_log_pdf, x)

    def _pdf(self, x):
        return np.exp(self._log_pdf(x))

    def _quantiles(self, p):
        return np.stack([self._by_rows(_solve, one) for one in p])

    def _cell_energy(self, x):
        if x is not None:
            return self._by_rows(_distance, x)
        return self._by_rows(_self_distance, cost=1 if self.df is None else 64)

    def pdfnorm(self, a=2):
        """Integral of pdf ** a, by Monte Carlo over draws that differ even if ``sample`` is seeded."""
        return self._boilerplate("_pdfnorm", a=a)

    def _pdfnorm(self, a):
        draws = self._draw(np.random.default_rng(self.random_state), self.get_tag("approx_spl"))
        return np.mean([self._pdf(x) ** (a - 1) for x in draws], axis=0)

    def _draw(self, rng, n):
        m, s, w, df = (None if a is None else a.reshape(-1, a.shape[-1]) for a in self._arrays())
        cell, k = np.arange(len(m)), m.shape[-1]
        if w is None:
            chosen = rng.integers(k, size=(n, len(m)))
        else:  # one search for all cells: cell i owns the interval [i, i + 1)
            upper = np.cumsum(w, -1) / w.sum(-1, keepdims=True) + cell[:, None]
            chosen = np.searchsorted(upper.ravel(), rng.random((n, len(m))) + cell, side="right") - k * cell
            chosen = np.clip(chosen, 0, k - 1)
        noise = rng.standard_normal(chosen.shape) if df is None else rng.standard_t(df[cell, chosen])
        return (m[cell, chosen] + s[cell, chosen] * noise).reshape(n, *self.shape)

    @classmethod
    def get_test_params(cls, parameter_set="default"):
        """Parameters of test instances: Normal, weighted Student-t, panel, scalar."""
        rng = np.random.default_rng(0)
        mu, sigma = rng.normal(size=(4, 2, 3)), rng.uniform(0.5, 2, size=(4, 2, 3))
        panel = pd.MultiIndex.from_product([["a", "b"], [0, 1]], names=["instance", "time"])
        return [
            {"mu": mu, "sigma": sigma},
            {"mu": mu, "sigma": sigma, "weights": sigma, "df": 2 + sigma, "columns": ["y", "z"]},
            {"mu": mu, "sigma": 1.0, "weights": [0.5, 0.3, 0.2], "random_state": 1, "index": panel},
            {"mu": mu[0, 0], "sigma": sigma[0, 0]},
        ]


class SamplePaths(_ArrayDistribution):
    """Joint empirical distribution of sample paths.

    Use it for a forecaster that draws trajectories: the marginals are the empirical ones, and ``sample``
    returns whole trajectories, so that sums, maxima or differences over steps and columns are right.

    It is discrete: ``pdf`` is 0 and the log loss infinite. Score it by CRPS or quantiles, or average the
    per-step predictive distributions in a :class:`PathMixture`.

    Parameters
    ----------
    paths : array of shape (S, H, C)
        S equally likely trajectories. Shape (S,) makes a scalar distribution.
    random_state : int, optional
        Seed of ``sample``: equal calls then return equal draws, also after subsetting (the same
        trajectories). None: fresh draws at every call. numpy's global generator is never touched.
    index, columns : pd.Index, optional
        Labels of rows (a MultiIndex for panels) and columns. Default: counted from 0.

    Raises
    ------
    ValueError
        If shapes or labels do not fit together.

    Notes
    -----
    ``quantile`` is the order statistic of rank ceil(alpha S), the inverse of the empirical cdf.
    ``sample(n)`` draws with replacement, but ``sample(S)`` returns every path once, in its order.
    In a panel, all instances of a draw come from the same path.

    Examples
    --------
    >>> from taylorformer_forecast.sktime.distributions import SamplePaths
    >>> dist = SamplePaths([[[0.0], [1.0]], [[10.0], [11.0]]], columns=["y"])
    >>> dist.sample(2)
            y
    0 0   0.0
      1   1.0
    1 0  10.0
      1  11.0
    >>> dist.var().loc[0, "y"].item()
    25.0
    """

    _tags = {
        "capabilities:approx": [],
        "capabilities:exact": ["mean", "var", "energy", "pmf", "log_pmf", "cdf", "ppf"],
        "distr:measuretype": "discrete",
        "distr:paramtype": "nonparametric",
    }

    def __init__(self, paths, random_state=None, index=None, columns=None):
        self.paths = paths
        self.random_state = random_state
        super().__init__(index=index, columns=columns)

    def _array_shape(self):
        shape = np.shape(self.paths)
        if len(shape) not in (1, 3) or 0 in shape:
            raise ValueError(f"paths must have shape (samples, rows, columns) or (samples,), got {shape}")
        return shape[1:]

    def _pick(self, key):
        return {"paths": np.asarray(self.paths)[(slice(None), *key)], "random_state": self.random_state}

    @property
    def _values(self):
        return np.asarray(self.paths, dtype=float)

    def _mean(self):
        return self._values.mean(0)

    def _var(self):
        return self._values.var(0)

    def _cdf(self, x):
        return (self._values <= x).mean(0)

    def _pmf(self, x):
        return (self._values == x).mean(0)

    def _log_pmf(self, x):
        with np.errstate(divide="ignore"):
            return np.log(self._pmf(x))

    def _quantiles(self, p):
        s = len(self._values)
        valid = (p >= 0) & (p <= 1)
        rank = np.ceil(np.where(valid, p, 0) * s * (1 - 1e-14))  # 0.07 * 100 is above 7
        values = np.take_along_axis(np.sort(self._values, axis=0), np.maximum(rank, 1).astype(int) - 1, 0)
        return np.where(valid, values, np.nan)

    def _cell_energy(self, x):
        if x is not None:
            return np.abs(self._values - x).mean(0)
        s = len(self._values)
        coefficient = (2 * np.arange(s) - s + 1) * 2 / s**2
        return np.tensordot(coefficient, np.sort(self._values, axis=0), axes=1)

    def _draw(self, rng, n):
        s = len(self._values)
        return self._values[np.arange(s) if n == s else rng.integers(s, size=n)]

    def to_empirical(self):
        """Convert to skpro's ``Empirical``, which draws whole trajectories too (``time_indep=False``).

        Returns
        -------
        skpro.distributions.Empirical
            With the same index and columns, equally weighted.

        Examples
        --------
        >>> SamplePaths([[[0.0], [1.0]], [[10.0], [11.0]]]).to_empirical().mean()
             0
        0  5.0
        1  6.0
        """
        spl = self._stack(self._values.copy()) if self.ndim else pd.Series(self._values)
        return Empirical(spl, time_indep=False, skip_init_sorted=True, index=self.index, columns=self.columns)

    @classmethod
    def get_test_params(cls, parameter_set="default"):
        """Parameters of test instances: plain, panel, scalar."""
        paths = np.random.default_rng(0).normal(size=(20, 4, 2)).cumsum(1)
        panel = pd.MultiIndex.from_product([["a", "b"], [0, 1]], names=["instance", "time"])
        return [
            {"paths": paths},
            {"paths": paths, "random_state": 1, "index": panel, "columns": ["y", "z"]},
            {"paths": paths[:, 0, 0]},
        ]
