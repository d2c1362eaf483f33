"""What exogenous columns add to series: taken off before these are forecast, and added to forecasts."""

from __future__ import annotations

from itertools import product

import numpy as np
import pandas as pd

from taylorformer_forecast.calendar.axis import on_steps
from taylorformer_forecast.core.families import find_family
from taylorformer_forecast.engine.effects import CovariateEffects, fit_effects, spread_of
from taylorformer_forecast.sktime._frames import rows_are_missing, to_float
from taylorformer_forecast.sktime._host import Host
from taylorformer_forecast.sktime._panel import Panel
from taylorformer_forecast.sktime._requests import Predictive


def of_every_instance(stamps: pd.Index, like: pd.Index) -> pd.Index:
    """Time stamps of every instance of an index.

    Examples
    --------
    >>> import pandas as pd
    >>> from taylorformer_forecast.sktime._effects import of_every_instance
    >>> like = pd.MultiIndex.from_tuples([("a", 5), ("b", 5)])
    >>> of_every_instance(pd.Index([4, 5]), like).tolist()
    [('a', 4), ('a', 5), ('b', 4), ('b', 5)]
    """
    if like.nlevels == 1:
        return stamps
    keys = [key if isinstance(key, tuple) else (key,) for key in like.droplevel(-1).unique()]
    return pd.MultiIndex.from_tuples([(*key, at) for key in keys for at in stamps], names=like.names)


def on_the_way(stamps: pd.Index, asked: pd.Index) -> pd.Index:
    """Time stamps up to the last that is asked for, of every instance its own.

    Examples
    --------
    >>> import pandas as pd
    >>> from taylorformer_forecast.sktime._effects import on_the_way
    >>> on_the_way(pd.Index([4, 5]), pd.MultiIndex.from_tuples([("a", 4), ("b", 5)])).tolist()
    [('a', 4), ('b', 4), ('b', 5)]
    """
    every = of_every_instance(stamps, asked)
    if asked.nlevels == 1:
        return every
    own = pd.Series(asked.get_level_values(-1), asked.droplevel(-1))
    last = own.groupby(level=list(range(asked.nlevels - 1))).max()
    return every[every.get_level_values(-1) <= pd.Index(last.reindex(every.droplevel(-1)))]


class ExogenousEffects(Host):
    """What X adds to the series of a :class:`BaseTorchForecaster`.

    Once it is known, ``_cur_y`` has the rest: strategies are chosen, networks trained and weights found as if
    there were no X, but that a network which is trained sees it too.
    """

    _cur_y: pd.DataFrame
    _effects: CovariateEffects | None = None
    _effect_numbers: dict  # of the series of the fit, by instance and column
    _spreads: dict  # of all series

    def _find_effects(self) -> None:
        """Estimate what X adds to the series, and leave what remains of them."""
        self._effects = self._estimated()
        names = product(Panel.of(self._cur_y).keys, self._cur_y.columns)
        self._effect_numbers = {name: number for number, name in enumerate(names)}
        self._take_off_effects()

    def _take_off_effects(self) -> None:
        """Leave of the series what remains without that which X adds."""
        if self._effects is not None:
            self._spreads = {}
            self._cur_y = self._less_effects(self._cur_y, self._cur_X)

    def _estimated(self) -> CovariateEffects | None:
        """Effects of the columns that are known ahead, on series with regular steps."""
        has_location = find_family(self.distribution).has_location and self._instance_norm
        if self._scaler.n_ahead == 0 or not has_location:
            return None
        n_columns = self._cur_y.shape[1]
        known = self._scaler.ahead(self._cur_X.reindex(self._cur_y.index))
        both = pd.concat([self._cur_y, pd.DataFrame(known, self._cur_y.index)], axis=1)
        panel = Panel.of(both)
        times = self._axis.numbers(panel.stamps)
        series, covariates = [], []
        for _, at, values in panel.parts():
            steps = on_steps(times[at])
            if steps is None:
                return None
            grid = np.full((steps[-1] + 1, values.shape[1]), np.nan)
            grid[steps] = values
            series += list(grid[:, :n_columns].T)
            covariates += [grid[:, n_columns:]] * n_columns
        return fit_effects(series, covariates, self._seasonal.lengths)

    def _less_effects(self, y: pd.DataFrame, X: pd.DataFrame) -> pd.DataFrame:
        """Series less what X adds to them; those that are new are measured by these values."""
        panel = Panel.of(y)
        spreads = (spread_of(column) for _, _, values in panel.parts() for column in values.T)
        self._spreads = dict(zip(product(panel.keys, panel.columns), spreads, strict=True)) | self._spreads
        return pd.DataFrame(to_float(y) - self._additions(y.index, X), y.index, y.columns)

    def _additions(self, index: pd.Index, X: pd.DataFrame) -> np.ndarray:
        """What X adds to all columns at some rows; X has these and those before."""
        assert self._effects is not None
        columns = self._cur_y.columns
        which, names = np.zeros(len(index), dtype=int), [()]
        of_rows = np.zeros(len(X), dtype=int)
        if index.nlevels > 1:
            which, keys = pd.factorize(index.droplevel(-1))
            names = [key if isinstance(key, tuple) else (key,) for key in keys]
            of_rows = keys.get_indexer(X.index.droplevel(-1))
        step, steps = (
            np.round(self._axis.numbers(rows.get_level_values(-1))).astype(int) for rows in (index, X.index)
        )
        ahead = pd.DataFrame(self._scaler.ahead(X), pd.MultiIndex.from_arrays([of_rows, steps]))[of_rows >= 0]
        earlier = [
            ahead.reindex(pd.MultiIndex.from_arrays([which, step - back])).to_numpy()
            for back in range(self._effects.reach + 1)
        ]
        known, found = np.stack(earlier, 1), np.empty((len(index), len(columns)))
        for d, column in enumerate(columns):
            numbers = np.array([self._effect_numbers.get((key, column), -1) for key in names])
            spreads = np.array([self._spreads[key, column] for key in names])
            found[:, d] = self._effects(known, numbers[which]) * spreads[which]
        return found

    def _with_effects(self, index: pd.Index, found: Predictive, X: pd.DataFrame | None) -> Predictive:
        """A forecast with what X adds, as it is stored and, for other times and the future, given."""
        assert self._effects is not None
        stored = self._cur_X
        if X is not None:
            past = stored.index[stored.index.get_level_values(-1) <= self.cutoff[0]]
            new = X[~X.index.isin(past)].reindex(columns=stored.columns)
            stored = pd.concat([stored[~stored.index.isin(new.index)], new])
        ahead = index[index.get_level_values(-1) > self.cutoff[0]]  # before that, rows may be missing
        if self._effects.reach and len(ahead):  # steps on the way count too
            stamps = self._axis.between(
                self.cutoff[0], ahead.get_level_values(-1).max(), index.get_level_values(-1)
            )
            ahead = ahead.union(on_the_way(stamps[stamps > self.cutoff[0]], ahead))
        missing = ahead[~ahead.isin(stored.index)]
        if len(missing):
            self._scaler.check(X, "predict")
            *key, stamp = missing[0] if index.nlevels > 1 else missing[:1]
            raise ValueError(rows_are_missing(tuple(key), stamp, len(missing)))
        self._scaler.check_known(stored.reindex(ahead), "predict")
        return found.shifted(self._additions(index, stored))

    def _rest_of_given(self, key: tuple, given: pd.DataFrame, X: pd.DataFrame | None) -> np.ndarray:
        """Known values of the future of one instance, less what its X adds."""
        if self._effects is None:
            return to_float(given)
        assert X is not None
        like = pd.MultiIndex.from_tuples([(*key, 0)]) if key else given.index
        index, known = (of_every_instance(rows, like) for rows in (given.index, X.index))
        added = pd.DataFrame(self._additions(index, X.set_axis(known)))
        return to_float(given) - added.set_axis(self._cur_y.columns, axis=1)[given.columns].to_numpy()
