"""Joint sample paths as an skpro distribution."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from skpro.distributions.empirical import Empirical

from taylorformer_forecast.sktime._array_distribution import ArrayDistribution


class SamplePaths(ArrayDistribution):
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
    ``sample(n)`` draws with replacement, and warns where n is larger than S: more draws have no finer tails.
    ``sample(S)`` returns every path once, in its order.
    In a panel, all instances of a draw come from the same path.

    Examples
    --------
    >>> from taylorformer_forecast.sktime.sample_paths import SamplePaths
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

    _tags: dict[str, Any] = {
        "capabilities:approx": [],
        "capabilities:exact": ["mean", "var", "energy", "pmf", "log_pmf", "cdf", "ppf"],
        "distr:measuretype": "discrete",
        "distr:paramtype": "nonparametric",
    }

    def __init__(
        self,
        paths: Any,
        random_state: int | None = None,
        index: pd.Index | Sequence[Any] | None = None,
        columns: pd.Index | Sequence[Any] | None = None,
    ) -> None:
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
        if n > s > 1:
            warnings.warn(
                f"sample({n}) draws again and again from {s} paths; for {n} of them, set num_samples={n} "
                "in the forecaster",
                stacklevel=3,
            )
        return self._values[np.arange(s) if n == s else rng.integers(s, size=n)]

    def to_empirical(self) -> Empirical:
        """Convert to skpro's ``Empirical``, which draws whole trajectories too (``time_indep=False``).

        Returns
        -------
        skpro.distributions.Empirical
            With the same index and columns, equally weighted.

        Examples
        --------
        >>> from taylorformer_forecast.sktime.sample_paths import SamplePaths
        >>> SamplePaths([[[0.0], [1.0]], [[10.0], [11.0]]]).to_empirical().mean()
             0
        0  5.0
        1  6.0
        """
        spl = self._stack(self._values.copy()) if self.ndim else pd.Series(self._values)
        return Empirical(spl, time_indep=False, skip_init_sorted=True, index=self.index, columns=self.columns)

    @classmethod
    def get_test_params(cls, parameter_set: str = "default") -> list[dict[str, Any]]:
        """Parameters of test instances: plain, panel, scalar."""
        paths = np.random.default_rng(0).normal(size=(20, 4, 2)).cumsum(1)
        panel = pd.MultiIndex.from_product([["a", "b"], [0, 1]], names=["instance", "time"])
        return [
            {"paths": paths},
            {"paths": paths, "random_state": 1, "index": panel, "columns": ["y", "z"]},
            {"paths": paths[:, 0, 0]},
        ]
