"""What a forecast owes to its baseline, its network, covariates and past values."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from taylorformer_forecast.engine.explanation import baseline_alone, lag_blocks, split
from taylorformer_forecast.sktime._host import Host


class Explaining(Host):
    """Parts of the mean of a fitted :class:`BaseTorchForecaster`."""

    def explain(self, fh: Any = None, X: Any = None, lags: int | None = None) -> pd.DataFrame:
        """Split the mean of a forecast into baseline and network, and leave inputs out one by one.

        Nothing is trained: each part is a difference of two forecasts of the fitted forecaster, drawn with
        the same random numbers. Baseline and network add up to the forecast. The changes of the inputs need
        not: two inputs that carry the same information can each be left out without a change. They show
        what the forecaster uses, not what causes what.

        Parameters
        ----------
        fh, X
            As for ``predict``.
        lags : int, optional
            Length of blocks of past values that are left out in turn, up to the length of the context; a
            season, for instance.

        Returns
        -------
        pd.DataFrame
            A row for each of ``predict``, and columns in the units of y; with several columns of y, or a
            panel, a second level of columns has their names.

            - "forecast": what ``predict`` returns;
            - "baseline": the same with a network that adds nothing. It is the statistical combination, or
              the baseline that was fitted in closed form. Networks without one then predict what their
              output of zero means, mostly the mean of the context;
            - "network": the difference of the two;
            - "X: name": how the forecast differs from that with the mean of this column of X in the place of
              all its values;
            - "lags 1-12": how it differs from that with these past values missing; NaN where no value is left
              of a series.

        Raises
        ------
        ValueError
            If ``lags`` is no positive whole number.

        Examples
        --------
        >>> from sktime.datasets import load_airline
        >>> from taylorformer_forecast.sktime import TaylorformerForecaster
        >>> forecaster = TaylorformerForecaster(random_state=0).fit(load_airline(), fh=[1, 2, 3])
        >>> parts = forecaster.explain()
        >>> list(parts), bool((parts["baseline"] + parts["network"] - parts["forecast"]).abs().max() < 1e-6)
        (['forecast', 'baseline', 'network'], True)
        """
        self.check_is_fitted()
        blocks = lag_blocks(lags, self.context_length_)
        without = {}
        X = self._check_X(X=X)  # a table, whatever it was
        for name in [] if self._cur_X is None else self._cur_X.columns:
            mean = float(self._cur_X[name].mean())
            still = self._with(_cur_X=_constant(self._cur_X, name, mean))
            ahead = X if X is None or name not in X.columns else _constant(X, name, mean)
            without[f"X: {name}"] = partial(still._mean, fh, ahead)
        for name, (first, last) in blocks.items():
            without[name] = partial(self._predict_without_lags, first, last, fh, X)
        network = None if self.network_ is None else baseline_alone(self.network_)
        alone = self._with(_correction=None, network_=network)
        parts = split(partial(self._mean, fh, X), partial(alone._mean, fh, X), without)
        return pd.concat(parts, axis=1)

    def _mean(self, fh, X):
        """What predict returns, as a series or table where it is an array."""
        found = self.predict(fh=fh, X=X)
        return pd.DataFrame(found).squeeze(axis=1) if isinstance(found, np.ndarray) else found

    def _predict_without_lags(self, first, last, fh, X):
        """Predict as if the past values number ``first`` to ``last``, counted backwards, were missing."""
        early = self._cur_y.index.get_level_values(-1) <= self.cutoff[0]
        y = self._cur_y[early].astype(float)
        groups = list(range(y.index.nlevels - 1)) or None
        series = y.groupby(None if groups else np.zeros(len(y)), level=groups)
        lag = series.cumcount(ascending=False).to_numpy()[:, None]
        hidden = np.broadcast_to((lag >= first) & (lag < last), y.shape)
        left = (y.notna() & ~hidden).groupby(None if groups else np.zeros(len(y)), level=groups).any()
        found = self._with(_cur_y=y.mask(hidden & self._of_rows(left, y)))._mean(fh, X)
        return found.where(self._of_rows(self._left(left), found).reshape(found.shape))

    def _left(self, left):
        """Which series and columns have values left, as a forecast has them: a row for each series."""
        return left

    def _of_rows(self, of_series, rows):
        """Values of every series (a row each) and column, at rows that belong to them."""
        keys = rows.index.droplevel(-1) if rows.index.nlevels > 1 else np.zeros(len(rows))
        return of_series.reindex(keys).to_numpy()


def _constant(X, name, value):
    """A table with one value in a column."""
    X = X.copy()
    X[name] = value
    return X
