"""Base of the package's skpro distributions: labels, indexing and frames over arrays."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from skpro.distributions.base import BaseDistribution

from taylorformer_forecast.engine.parameters import NATURAL, check_rule


class ArrayDistribution(BaseDistribution):
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

    def quantile_array(self, alpha: float | Sequence[float] | np.ndarray) -> np.ndarray:
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
        >>> from taylorformer_forecast.sktime.sample_paths import SamplePaths
        >>> SamplePaths([1.0, 2.0, 3.0, 4.0]).quantile_array([0.25, 0.5])
        array([1., 2.])
        """
        alpha = np.atleast_1d(np.asarray(alpha, dtype=float))
        if not ((alpha >= 0) & (alpha <= 1)).all():
            raise ValueError(f"alpha must lie between 0 and 1, got {alpha.tolist()}")
        return self._quantiles(np.multiply.outer(alpha, np.ones(self.shape)))

    def quantile(self, alpha: float | Sequence[float] | np.ndarray) -> pd.DataFrame:
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
        >>> from taylorformer_forecast.sktime.sample_paths import SamplePaths
        >>> SamplePaths([[[1.0]], [[2.0]], [[3.0]]], columns=["y"]).quantile([0.5]).iloc[0, 0].item()
        2.0
        """
        levels = np.atleast_1d(alpha).tolist()
        values = self.quantile_array(levels).reshape(len(levels), *(self.shape or (1, 1)))
        names = self.columns if self.ndim else [type(self).__name__]
        columns = pd.MultiIndex.from_product([names, levels])
        return pd.DataFrame(values.transpose(1, 2, 0).reshape(-1, len(columns)), self.index, columns)

    def _ppf(self, p):
        return self._quantiles(np.asarray(p, dtype=float)[None])[0]

    def _log_pmf(self, x):
        with np.errstate(divide="ignore"):
            return np.log(self._pmf(x))

    def _energy_self(self):
        return self._energy_x(None)

    def _energy_x(self, x):
        energy = self._cell_energy(x)
        return energy.sum(axis=1) if self.ndim else energy

    def _sample(self, n_samples=None):
        check_rule("n_samples", n_samples, NATURAL.or_none())
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
