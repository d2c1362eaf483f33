"""What the imputer can be asked beside its means: quantiles, distributions, joint draws."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from taylorformer_forecast.engine.parameters import POSITIVE, check_rule
from taylorformer_forecast.sktime._checks import check_levels
from taylorformer_forecast.sktime._frames import to_float
from taylorformer_forecast.sktime._gap_frames import GapMethods, fill_frame
from taylorformer_forecast.sktime.distributions import PathMixture
from taylorformer_forecast.sktime.sample_paths import SamplePaths


class ImputationMethods(GapMethods):
    """Public methods of a :class:`BaseImputer`, all of one draw."""

    def _inner(self, X):
        """X as the private methods take it."""
        self.check_is_fitted()
        return self._check_X_y(X=X, return_metadata=False)[0]

    def transform_quantiles(self, X: Any, alpha: float | Sequence[float] | None = None) -> pd.DataFrame:
        """Quantiles of every value of X: of its distribution where it is missing, else the value itself.

        Parameters
        ----------
        X : time series in any format of sktime
            As for ``transform``.
        alpha : float or list of float, optional
            Probabilities, by default 0.05 and 0.95.

        Returns
        -------
        pd.DataFrame
            Rows of X; columns (variable, alpha), as forecasters return them.

        Raises
        ------
        ValueError
            If ``alpha`` holds no probabilities.

        Examples
        --------
        >>> from sktime.datasets import load_airline
        >>> from taylorformer_forecast.sktime import TaylorformerImputer
        >>> y = load_airline()
        >>> y.iloc[3] = None
        >>> TaylorformerImputer(max_steps=1).fit(y).transform_quantiles(y, [0.1, 0.5, 0.9]).shape
        (144, 3)
        """
        X = self._inner(X)
        check_levels(alpha, "alpha")
        levels = np.atleast_1d([0.05, 0.95] if alpha is None else alpha).astype(float).tolist()
        if not all(0 <= level <= 1 for level in levels):
            raise ValueError(f"alpha={levels}, but probabilities lie between 0 and 1")
        imputed = self._impute(X, self.num_samples)
        values = np.repeat(to_float(X)[..., None], len(levels), 2)
        if len(imputed.rows):
            quantiles = np.moveaxis(self._mixture(X, imputed).quantile_array(levels), 0, -1)
            values[imputed.rows] = np.where(imputed.lost[..., None], quantiles, values[imputed.rows])
        columns = pd.MultiIndex.from_product([X.columns, levels])
        return pd.DataFrame(values.reshape(len(values), -1), index=X.index, columns=columns)

    def transform_proba(self, X: Any, marginal: bool = True) -> PathMixture | SamplePaths:
        """Distribution of the rows of X in which something is missing.

        Parameters
        ----------
        X : time series in any format of sktime
            As for ``transform``.
        marginal : bool, default=True
            Whether every value is described on its own, by a density; else the joint distribution of all,
            as sample paths.

        Returns
        -------
        PathMixture or SamplePaths
            Rows of X where any column is missing. Columns that are observed there are known: their
            distribution is a point, for the mixture one whose scale is 1e-12 of the value.

        Raises
        ------
        ValueError
            If nothing is missing.

        Examples
        --------
        >>> from sktime.datasets import load_airline
        >>> from taylorformer_forecast.sktime import TaylorformerImputer
        >>> y = load_airline()
        >>> y.iloc[3:9] = None
        >>> TaylorformerImputer(max_steps=1).fit(y).transform_proba(y).var().shape
        (6, 1)
        """
        X = self._inner(X)
        imputed = self._impute(X, self.num_samples)
        if not len(imputed.rows):
            raise ValueError("nothing is missing in X, so that there is no distribution")
        if marginal:
            return self._mixture(X, imputed)
        index = X.index[imputed.rows]
        return SamplePaths(imputed.paths, index=index, columns=X.columns, random_state=self._seed)

    def sample(self, X: Any, n_samples: int = 1) -> pd.DataFrame:
        """Draw X with its gaps filled, jointly over time.

        Points of one gap, and of gaps close to each other, are drawn jointly; gaps that lie further apart
        than a window are independent given what was observed.

        Parameters
        ----------
        X : time series in any format of sktime
            As for ``transform``.
        n_samples : int, default=1
            How many draws.

        Returns
        -------
        pd.DataFrame
            All rows of X, the number of the draw as outermost row level.

        Raises
        ------
        ValueError
            If ``n_samples`` is no number of draws.

        Examples
        --------
        >>> from sktime.datasets import load_airline
        >>> from taylorformer_forecast.sktime import TaylorformerImputer
        >>> y = load_airline()
        >>> y.iloc[3:9] = None
        >>> TaylorformerImputer(max_steps=1).fit(y).sample(y, 10).loc[9].shape
        (144, 1)
        """
        check_rule("n_samples", n_samples, POSITIVE)
        X = self._inner(X)
        imputed = self._impute(X, n_samples)
        draws = [fill_frame(X, imputed.rows, imputed.lost, path) for path in imputed.paths]
        return pd.concat(draws, keys=range(n_samples), names=[None, *X.index.names])
