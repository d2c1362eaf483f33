"""What exogenous columns add to series: taken off before these are forecast, and added to forecasts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from zlib import crc32

import numpy as np
import pandas as pd

from taylorformer_forecast.calendar.steps import at_steps, on_steps, snapped
from taylorformer_forecast.core.families import find_family
from taylorformer_forecast.engine.effects.covariate_effects import CovariateEffects, fit_effects
from taylorformer_forecast.engine.predictive import Predictive
from taylorformer_forecast.engine.statistics.demand_season import with_season
from taylorformer_forecast.engine.statistics.requests import SeriesForecast, SeriesRequest
from taylorformer_forecast.engine.strategy import Strategy
from taylorformer_forecast.sktime._frames import labels_are_missing, to_float
from taylorformer_forecast.sktime._host import Host
from taylorformer_forecast.sktime._panel import Panel, by_name, instances_of, rows_of_instances
from taylorformer_forecast.sktime._series_effects import SeriesEffects

PARTS = 1000  # of a step, by which times are told apart


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
    _, keys = instances_of(like)
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
    _strategy: Strategy
    _effects: CovariateEffects | None = None
    _effect_numbers: Mapping  # of the series of the fit, by instance and column
    _origins: dict  # numbers of the first time stamps, by instance
    _of_series: dict[tuple, SeriesEffects]  # by instance and column

    def _find_effects(self) -> None:
        """Estimate what X adds to the series, and leave what remains of them."""
        self._effects = self._estimated()
        self._take_off_effects()

    def _take_off_effects(self) -> None:
        """Leave of the series what remains without that which X adds."""
        if self._effects is not None:
            self._origins, self._of_series = {}, {}
            self._cur_y = self._less_effects(self._cur_y)

    def _estimated(self) -> CovariateEffects | None:
        """Effects of the columns that are known ahead, on series with regular steps."""
        has_location = find_family(self.distribution).has_location and self._instance_norm
        if self._scaler.n_ahead == 0 or not has_location:
            return None
        y = self._cur_y.iloc[:, by_name(self._cur_y.columns)]
        known = self._scaler.ahead(self._cur_X.reindex(y.index))
        panel = Panel.of(pd.concat([y, pd.DataFrame(known, y.index)], axis=1))
        parts, times = list(panel.parts()), self._axis.numbers(panel.stamps)
        names: list[tuple] = []
        series, covariates = [], []
        for key, at, values in (parts[k] for k in by_name(panel.keys)):
            rows = at_steps(times[at], ~np.isnan(values[:, : y.shape[1]]).all(1))
            steps, values = on_steps(times[at[rows]]), values[rows]
            if steps is None:
                return None
            grid = np.full((steps[-1] + 1, values.shape[1]), np.nan)
            grid[steps] = values
            names += product([key], y.columns)
            series += list(grid[:, : y.shape[1]].T)
            covariates += [grid[:, y.shape[1] :]] * y.shape[1]
        self._effect_numbers = {name: number for number, name in enumerate(names)}
        return fit_effects(series, covariates, self._seasonal.lengths)

    def _less_effects(self, y: pd.DataFrame) -> pd.DataFrame:
        """Series less what X adds to them; those that are new are measured by these values."""
        assert self._effects is not None
        values, numbers = to_float(y).copy(), self._axis.numbers(y.index.get_level_values(-1))
        origins, of_series = dict(self._origins), dict(self._of_series)  # an update may fail later
        X = self._scaler.ahead(self._cur_X.reindex(y.index))
        closed = self._effects.closed(X)
        for key, own in rows_of_instances(y.index).items():
            own = own[at_steps(numbers[own], ~np.isnan(values[own]).all(1))]  # others have no value
            steps = snapped(numbers[own] - origins.setdefault(key, numbers[own].min()))
            for d, column in enumerate(y.columns):
                known, seen = of_series.get((key, column)), values[own, d]
                if known is None:
                    about = self._effects, self._effect_numbers.get((key, column)), self._seasonal.lengths
                    known = SeriesEffects.of(numbers[own], steps, seen, X[own], *about)
                else:
                    known = known.within(steps, seen)
                of_series[key, column] = known
                values[own, d] = np.where((numbers[own] < known.start) & (seen == 0), np.nan, seen)
        self._origins, self._of_series = origins, of_series
        added = self._additions(y.index, self._cur_X)
        self._take_usual(added, ~np.isnan(values) & ~closed[:, None], y.index)
        rest = np.where(closed[:, None] & self._each("hides", y.index), np.nan, values - added)
        return pd.DataFrame(rest, y.index, y.columns)

    def _take_usual(self, added: np.ndarray, seen: np.ndarray, index: pd.Index) -> None:
        """Take note of what X added, in the mean, to the values of series that are new."""
        for key, own in rows_of_instances(index).items():
            for d, column in enumerate(self._cur_y.columns):
                known = self._of_series[key, column]
                if known.usual is None:
                    found = added[own, d][seen[own, d]]
                    mean = float(found.mean()) if len(found) else 0.0
                    self._of_series[key, column] = replace(known, usual=mean)

    def _steps(self, stamps: pd.Index, origins: np.ndarray) -> np.ndarray:
        """Steps of time stamps since origins, in parts by which they are told apart."""
        return np.round(snapped(self._axis.numbers(stamps) - origins) * PARTS).astype(int)

    def _each(self, name: str, index: pd.Index) -> np.ndarray:
        """A field of what is known of the series of some rows, shape (R, D)."""
        (which, keys), columns = instances_of(index), self._cur_y.columns
        known = [[getattr(self._of_series[key, one], name) for one in columns] for key in keys]
        return np.array(known)[which]

    def _additions(self, index: pd.Index, X: pd.DataFrame) -> np.ndarray:
        """What X adds to all columns at some rows; X has these rows and those before."""
        added, numbers = self._found(index, X), self._axis.numbers(index.get_level_values(-1))
        added = added * self._each("unit", index)
        for key, own in rows_of_instances(index).items():
            for d, column in enumerate(self._cur_y.columns):
                if (places := self._of_series[key, column].places).cycles:
                    added[own, d] *= ~places.at(snapped(numbers[own] - self._origins[key]))
        return added

    def _closed(self, index: pd.Index, X: pd.DataFrame) -> np.ndarray:
        """Where X says that all is zero, of rows that it has."""
        assert self._effects is not None
        return self._effects.closed(self._scaler.ahead(X.reindex(index)))

    def _found(self, index: pd.Index, X: pd.DataFrame) -> np.ndarray:
        """Effects of X on all columns at some rows, in units; on the logarithm of the mean of demand."""
        assert self._effects is not None
        which, keys = instances_of(index)
        origins = np.array([self._origins[key] for key in keys])
        of_rows, names = instances_of(X.index)
        numbers = {key: number for number, key in enumerate(keys)}
        of_rows = np.array([numbers.get(name, -1) for name in names])[of_rows]
        X, of_rows = X[of_rows >= 0], of_rows[of_rows >= 0]
        steps = self._steps(X.index.get_level_values(-1), origins[of_rows])
        ahead = pd.DataFrame(self._scaler.ahead(X), pd.MultiIndex.from_arrays([of_rows, steps])).sort_index()
        for own in ahead.groupby(level=0).indices.values() if ahead.isna().to_numpy().any() else ():
            ahead.iloc[own] = self._effects.filled(ahead.iloc[own].to_numpy())
        step = self._steps(index.get_level_values(-1), origins[which])
        earlier = [
            ahead.reindex(pd.MultiIndex.from_arrays([which, step - back * PARTS])).to_numpy()
            for back in range(self._effects.reach + 1)
        ]
        known, numbers_of_fit = np.stack(earlier, 1), self._each("number", index)
        return np.stack([self._effects(known, column) for column in numbers_of_fit.T], 1)

    def _known_for(self, index: pd.Index, X: pd.DataFrame | None) -> pd.DataFrame:
        """X that a forecast at some rows needs: as stored and, for other times and the future, given."""
        stored = self._cur_X
        if X is not None:
            past = stored.index[stored.index.get_level_values(-1) <= self.cutoff[0]]
            new = X[~X.index.isin(past)].reindex(columns=stored.columns)
            stored = pd.concat([stored[~stored.index.isin(new.index)], new])
        needed = self._needed(index)
        missing = needed[~needed.isin(stored.index)]
        if len(missing):
            self._scaler.check(X, "predict")
            raise ValueError(labels_are_missing(missing, X))
        self._scaler.check_known(stored.reindex(needed), "predict")
        return stored

    def _with_effects(self, index: pd.Index, found: Predictive, X: pd.DataFrame) -> Predictive:
        """A forecast with what X adds."""
        assert self._effects is not None
        added, closed = self._additions(index, X), self._closed(index, X)
        if not self._strategy.kind.statistics:
            found = found.shifted(added)
        else:
            usual, *ends = (self._each(name, index) for name in ("usual", "low", "high"))
            found = found.with_effects(added, usual, self._effects.power, ends)
        return found.zero_at(closed[:, None]) if closed.any() else found

    def _multiplied(
        self,
        forecasts: Sequence[SeriesForecast],
        requests: Mapping[tuple, SeriesRequest],
        index: pd.Index,
        X: pd.DataFrame,
    ) -> list[SeriesForecast]:
        """Statistical forecasts whose means X multiplies after the last value, if they are of demand.

        The season is found beside X.
        A series that was demand at the fit, and is none with the values of an update, is left alone.
        """
        forecasts, names = list(forecasts), list(requests)
        demand = [
            number
            for number, (name, found) in enumerate(zip(names, forecasts, strict=True))
            if found.intermittent and self._of_series[name].of_demand
        ]
        if not demand:
            return forecasts
        past = self._cur_y[self._cur_y.index.get_level_values(-1) <= self.cutoff[0]]
        values, rows, asked = to_float(past), rows_of_instances(past.index), rows_of_instances(index)
        before, ahead = (np.exp(self._found(part, X)) for part in (past.index, index))
        for number in demand:
            key, column = names[number]
            own, at, d = rows[key], asked[key], past.columns.get_loc(column)
            request = requests[names[number]]
            future = request.at > len(request.y) - 1
            if future.any():
                rng = np.random.default_rng([self._seed, crc32(repr((key, column)).encode())])
                ratio = np.ones(len(request.y))
                ratio[~np.isnan(request.y)] = before[own[~np.isnan(values[own, d])], d]
                ratios = ratio, ahead[at[future], d]
                forecasts[number] = with_season(forecasts[number], request, rng, *ratios)
        return forecasts

    def _needed(self, index: pd.Index) -> pd.Index:
        """Rows of X that a forecast needs: those after the last value, and those on the way to them."""
        assert self._effects is not None
        seen = self._cur_y.dropna(how="all").index
        seen = seen[seen.get_level_values(-1) <= self.cutoff[0]]
        stamps, numbers = seen.get_level_values(-1), self._axis.numbers(seen.get_level_values(-1))
        ends = {key: stamps[own[numbers[own].argmax()]] for key, own in rows_of_instances(seen).items()}
        alike, needed = defaultdict(list), []
        for key, own in rows_of_instances(index).items():
            alike[ends[key]].append(own)
        for end, rows in alike.items():
            ahead = index[np.concatenate(rows)]
            ahead = ahead[ahead.get_level_values(-1) > end]  # before that, rows may be missing
            if self._effects.reach and len(ahead):  # steps on the way count too
                times = ahead.get_level_values(-1)
                between = self._axis.between(end, times.max(), times, opened=True)
                ahead = ahead.union(on_the_way(between[between > end], ahead))
            needed.append(ahead)
        return needed[0].append(needed[1:])

    def _rest_of_given(self, key: tuple, given: pd.DataFrame, X: pd.DataFrame | None) -> np.ndarray:
        """Known values of the future of one instance, less what its X adds."""
        if self._effects is None:
            return to_float(given)
        assert X is not None
        like = pd.MultiIndex.from_tuples([(*key, 0)]) if key else given.index
        index, known = (of_every_instance(rows, like) for rows in (given.index, X.index))
        X, own = X.set_axis(known), self._cur_y.columns.get_indexer(given.columns)
        rest = to_float(given) - self._additions(index, X)[:, own]
        return np.where(self._closed(index, X)[:, None], np.nan, rest)
