"""Mixtures over sample paths as skpro distributions: the marginal distributions of a forecast.

Shapes: H rows (forecast stamps, per instance for panels), C columns, K mixture components, S sample paths.
Without the H and C axes the same classes describe a scalar distribution.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from taylorformer_forecast.core.families import Family, find_component
from taylorformer_forecast.engine.mixtures import Mixture
from taylorformer_forecast.sktime._array_distribution import ArrayDistribution


class PathMixture(ArrayDistribution):
    """Mixture of Normal, Student-t, uniform or other location-scale components in every cell.

    Use it for the per-step predictive distributions of a forecaster averaged over its sample paths: each
    path contributes the component(s) it predicts for the step. It holds the marginals only: ``sample``
    draws every cell on its own. For whole trajectories use :class:`SamplePaths`.

    Parameters
    ----------
    mu : array of shape (H, C, K)
        Locations of the K components. Shape (K,) makes a scalar distribution.
    sigma : array that broadcasts to the shape of mu
        Scales, positive. For Normal components the standard deviations, for uniform ones half the widths.
    weights : array that broadcasts to the shape of mu, optional
        Weights, not negative; normalised in every cell. None: equal weights, at no cost.
    df : float or array that broadcasts to the shape of mu, optional
        Degrees of freedom of Student-t components: mean and energy need df > 1, a finite variance
        df > 2. Short for ``family="studentt"`` and ``shape_params={"df": df}``.
    family : str or Family, default="normal"
        Family of components without ``df``: "normal", "uniform", or a name in
        :data:`~taylorformer_forecast.core.families.FAMILIES`. Uniform ones lie between ``mu - sigma`` and
        ``mu + sigma``; side by side they make a piecewise linear quantile function.
    shape_params : dict of str to array that broadcasts to the shape of mu, optional
        Shape parameters of the family, by name.
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
    Uniform components of next to no width stand for single values, as counts have: ``pmf`` is their
    probability, and ``pdf`` is huge there. Exact are all methods but ``pdfnorm`` (Monte Carlo), quantiles
    (solved to a relative error below 1e-10) and the self-energy of mixtures that are neither Normal nor
    uniform (quadrature, relative error below 1e-4). That of Normal and uniform ones is a sum over
    K (K - 1) / 2 pairs per cell. Families without closed forms integrate their moments numerically.

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

    _tags: dict[str, Any] = {
        "capabilities:approx": ["pdfnorm"],
        "capabilities:exact": ["mean", "var", "energy", "pdf", "log_pdf", "cdf", "ppf"],
        "distr:measuretype": "continuous",
    }

    def __init__(
        self,
        mu: Any,
        sigma: Any,
        weights: Any = None,
        df: Any = None,
        family: str | Family = "normal",
        shape_params: Mapping[str, Any] | None = None,
        random_state: int | None = None,
        index: pd.Index | Sequence[Any] | None = None,
        columns: pd.Index | Sequence[Any] | None = None,
    ) -> None:
        self.mu = mu
        self.sigma = sigma
        self.weights = weights
        self.df = df
        self.family = family
        self.shape_params = shape_params
        self.random_state = random_state
        super().__init__(index=index, columns=columns)
        if not self._kind.has_pair_distance:
            exact = [method for method in self.get_tag("capabilities:exact") if method != "energy"]
            self.set_tags(**{"capabilities:exact": exact, "capabilities:approx": ["energy", "pdfnorm"]})
        mixture = self._mixture()
        if mixture.points().any():  # as of counts
            self.set_tags(**{"distr:measuretype": "mixed"})

    @classmethod
    def _of(cls, mixture, *labels):
        """Distribution of mixtures (rows, columns, components); labels are the arguments after the shapes."""
        arrays = mixture.loc, mixture.scale, mixture.weights
        return cls(*arrays, None, mixture.family, mixture.shape or None, *labels)

    def _array_shape(self):
        shape = np.shape(self.mu)
        if len(shape) not in (1, 3) or 0 in shape:
            raise ValueError(f"mu must have shape (rows, columns, components) or (components,), got {shape}")
        if self.df is not None and self.family != "normal":
            raise ValueError(f"family={self.family!r} takes no df: leave it out, or write without df")
        find_component(self.family)  # raises a ValueError if there is none
        known, given = set(self._kind.shape_names), set(self._shapes)
        if known != given:
            raise ValueError(f"shape_params of {self._kind} must be {sorted(known)}, got {sorted(given)}")
        for name, value in {"sigma": self.sigma, "weights": self.weights, **self._shapes}.items():
            if value is None:
                continue
            value = np.asarray(value, dtype=float)
            try:
                np.broadcast_to(value, shape)
            except ValueError:
                raise ValueError(f"{name} of shape {value.shape} does not fit mu of shape {shape}") from None
            if name == "weights" and ((value < 0).any() or (value.sum(-1) == 0).any()):
                raise ValueError("weights must not be negative nor all zero in a cell")
            if name in ("sigma", *self._kind.positive_names) and (value <= 0).any():
                raise ValueError(f"{name} must be positive, its smallest value is {value.min()}")
        return shape[:-1]

    @property
    def _shapes(self):
        """Shape parameters by name, as they were given."""
        return dict(self.shape_params or {}) if self.df is None else {"df": self.df}

    @property
    def _kind(self):
        return find_component("studentt" if self.df is not None else self.family)

    def _pick(self, key):
        shape = np.shape(self.mu)

        def at(value):
            return None if value is None else np.broadcast_to(value, shape)[key]

        params = {name: at(getattr(self, name)) for name in ("mu", "sigma", "weights", "df")}
        shapes = None if self.shape_params is None else {k: at(v) for k, v in self.shape_params.items()}
        return params | {"family": self.family, "random_state": self.random_state, "shape_params": shapes}

    def _mixture(self):
        """The mixtures as float arrays (H, C, K)."""
        shape = (*(self.shape or (1, 1)), np.shape(self.mu)[-1])
        mixture = Mixture(self._kind, self.mu, self.sigma, self.weights, self._shapes)
        return mixture.map(lambda value: np.broadcast_to(np.asarray(value, dtype=float), shape))

    def _by_rows(self, func, *args, cost=1):
        """Apply func(mixture, *args) to blocks of rows."""
        whole = self._mixture()
        rows = [np.reshape(a, whole.loc.shape[:2]) for a in args]
        return whole.by_rows(func, *rows, cost=cost).reshape(self.shape)

    def _mean(self):
        return self._by_rows(Mixture.mean)

    def _var(self):
        return self._by_rows(Mixture.variance)

    def _cdf(self, x):
        return self._by_rows(Mixture.cdf, x)

    def _log_pdf(self, x):
        return self._by_rows(Mixture.log_pdf, x)

    def _pdf(self, x):
        return np.exp(self._log_pdf(x))

    def _pmf(self, x):
        return self._by_rows(Mixture.pmf, x)

    def _quantiles(self, p):
        return np.stack([self._by_rows(Mixture.quantiles, one) for one in p])

    def _cell_energy(self, x):
        if x is not None:
            return self._by_rows(Mixture.distance, x)
        return self._by_rows(Mixture.self_distance, cost=1 if self._kind.has_pair_distance else 64)

    def pdfnorm(self, a: float = 2) -> Any:
        """Integral of pdf ** a, by Monte Carlo over draws from the seed ``random_state``."""
        return self._boilerplate("_pdfnorm", a=a)

    def _pdfnorm(self, a):
        draws = self._draw(np.random.default_rng(self.random_state), self.get_tag("approx_spl"))
        return np.mean([self._pdf(x) ** (a - 1) for x in draws], axis=0)

    def _draw(self, rng, n):
        cells = self._mixture().flat()
        w, k, cell = cells.weights, cells.loc.shape[-1], np.arange(len(cells.loc))
        if w is None:
            chosen = rng.integers(k, size=(n, len(cell)))
        else:  # one search for all cells: cell i owns the interval [i, i + 1)
            upper = np.cumsum(w, -1) / w.sum(-1, keepdims=True) + cell[:, None]
            chosen = (
                np.searchsorted(upper.ravel(), rng.random((n, len(cell))) + cell, side="right") - k * cell
            )
            chosen = np.clip(chosen, 0, k - 1)
        drawn = cells[cell, chosen]
        noise = self._kind.random(rng, chosen.shape, drawn.shape)
        points = cells.points()[cell, chosen]
        return np.where(points, drawn.loc, drawn.loc + drawn.scale * noise).reshape(n, *self.shape)

    @classmethod
    def get_test_params(cls, parameter_set: str = "default") -> list[dict[str, Any]]:
        """Parameters of test instances: Normal, weighted Student-t, panel, uniform, shapes, scalar."""
        rng = np.random.default_rng(0)
        mu, sigma = rng.normal(size=(4, 2, 3)), rng.uniform(0.5, 2, size=(4, 2, 3))
        panel = pd.MultiIndex.from_product([["a", "b"], [0, 1]], names=["instance", "time"])
        return [
            {"mu": mu, "sigma": sigma},
            {"mu": mu, "sigma": sigma, "weights": sigma, "df": 2 + sigma, "columns": ["y", "z"]},
            {"mu": mu, "sigma": 1.0, "weights": [0.5, 0.3, 0.2], "random_state": 1, "index": panel},
            {"mu": mu, "sigma": sigma, "family": "uniform"},
            {"mu": mu, "sigma": sigma, "family": "studentt", "shape_params": {"df": 2 + sigma}},
            {"mu": mu[0, 0], "sigma": sigma[0, 0]},
        ]
