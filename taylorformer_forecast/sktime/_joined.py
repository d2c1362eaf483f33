"""Columns that share windows; instances of a panel as such columns, and their forecasts as the panel's."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from taylorformer_forecast.defaults import USUAL_BATCH
from taylorformer_forecast.engine.lengths import warn_of_large_steps, windows_of_step
from taylorformer_forecast.engine.parameters import POSITIVE, check_rule
from taylorformer_forecast.engine.predictive import Predictive
from taylorformer_forecast.sktime._checks import check_columns
from taylorformer_forecast.sktime._frames import check_values, of_instance
from taylorformer_forecast.sktime._host import Host
from taylorformer_forecast.sktime._panel import Panel


@dataclass(frozen=True)
class JoinedInstances:
    """The instances and columns of a panel that are forecast jointly.

    Parameters
    ----------
    keys : list of tuple
        Keys of the I instances, in the order of the data.
    columns : pd.Index
        Labels of the D columns.

    Examples
    --------
    >>> import pandas as pd
    >>> from taylorformer_forecast.sktime._joined import JoinedInstances
    >>> index = pd.MultiIndex.from_tuples([("a", 0), ("a", 1), ("b", 1)])
    >>> y = pd.DataFrame({"y": [1.0, 2.0, 3.0]}, index)
    >>> JoinedInstances.of(y).as_columns(y).iloc[1].to_dict()
    {"y of instance 'a'": 2.0, "y of instance 'b'": 3.0}
    """

    keys: list[tuple]
    columns: pd.Index

    @classmethod
    def of(cls, y: pd.DataFrame) -> JoinedInstances:
        """Take note of the instances of a panel, if every one shares times with others."""
        panel = Panel.of(y)
        seen = np.bincount(panel.at)
        for key, at, _ in panel.parts() if len(panel.keys) > 1 else ():
            if (seen[at] == 1).all():
                raise ValueError(
                    f"join='instances' needs instances with common times, but y{of_instance(key)} has none "
                    f"with the others"
                )
        return cls(panel.keys, panel.columns)

    def as_columns(self, y: pd.DataFrame) -> pd.DataFrame:
        """Every column of every instance side by side, at all times of any; NaN where one has no row."""
        check_values(y, "y")
        panel = Panel.of(y)
        place = {key: number for number, key in enumerate(self.keys)}
        for key in panel.keys:
            if key not in place:
                raise ValueError(
                    f"y has values{of_instance(key)}, but join='instances' forecasts those of the fit alone"
                )
        check_columns(list(panel.columns), list(self.columns))
        used, row = np.unique(panel.at, return_inverse=True)
        stamps = panel.stamps[used]
        values = np.full((len(stamps), len(self.keys), len(self.columns)), np.nan)
        instance = np.repeat([place[key] for key in panel.keys], np.diff(panel.offsets))
        values[row, instance] = panel.values
        labels = [f"{column}{of_instance(key)}" for key in self.keys for column in self.columns]
        return pd.DataFrame(values.reshape(len(stamps), -1), stamps, labels).sort_index()

    def as_instances(self, stamps: pd.Index, p: Predictive, names: list) -> tuple[pd.Index, Predictive]:
        """Rows (instance, time) and columns of the panel from rows (time) and joined columns."""
        n, n_keys, n_columns = len(stamps), len(self.keys), len(self.columns)

        def turn(value):
            """Shape (..., n, I * D, K) to (..., I * n, D, K)."""
            value = value.reshape(n, n_keys, n_columns, -1).swapaxes(0, 1)
            return value.reshape(n_keys * n, n_columns, -1)

        keys = pd.MultiIndex.from_tuples(self.keys)
        of_key = [keys.get_level_values(level).repeat(n) for level in range(keys.nlevels)]
        index = pd.MultiIndex.from_arrays([*of_key, stamps.take(np.tile(np.arange(n), n_keys))], names=names)
        paths = p.paths.reshape(-1, n, n_keys, n_columns).swapaxes(1, 2)
        return index, Predictive(paths.reshape(len(paths), -1, n_columns), p.mixture.map(turn))


class JoiningInstances(Host):
    """A forecaster whose network joins columns, and with ``join="instances"`` those of all instances."""

    def _fit(self, y, X, fh):
        check_rule("batch_size", self.batch_size, POSITIVE.or_none())
        self._joined = None
        if self.join == "instances" and y.index.nlevels > 1:
            if X is not None:
                raise ValueError("X is given, but join='instances' takes none: add its columns to y instead")
            self._joined, self._levels = JoinedInstances.of(y), y.index.names
            y = self._joined.as_columns(y)
        return super()._fit(y, X, fh)

    def _training(self, seed, validation_split=0.0):
        """The series, and steps of a size that their columns allow unless the user wrote another."""
        n_columns = self._cur_y.shape[1]
        size = windows_of_step(n_columns, USUAL_BATCH) if self.batch_size is None else self.batch_size
        lengths = {"context_length": self.context_length_, "horizon": self.horizon_}
        warn_of_large_steps(n_columns, size, lengths, "take LAMForecaster, or fit related columns together")
        return replace(super()._training(seed, validation_split), batch_size=size)

    def _update_y_X(self, y, X=None, enforce_index_type=None):
        joined = self._joined if self.is_fitted else None
        super()._update_y_X(y if joined is None else joined.as_columns(y), X, enforce_index_type)

    def _update(self, y, X=None, update_params=True):
        y = y if self._joined is None else self._joined.as_columns(y)
        return super()._update(y, X, update_params)

    def _left(self, left):
        """Which series and columns have values left, a row for each instance of the panel."""
        found = super()._left(left)
        if self._joined is None:
            return found
        keys = pd.MultiIndex.from_tuples(self._joined.keys)
        keys = keys if keys.nlevels > 1 else keys.get_level_values(0)
        return pd.DataFrame(found.to_numpy().reshape(len(keys), -1), keys, self._joined.columns)

    @property
    def _labels(self):
        return super()._labels if self._joined is None else self._joined.columns

    def _predictive(self, fh, X, joint=False):
        stamps, p = super()._predictive(fh, X, joint)
        return (stamps, p) if self._joined is None else self._joined.as_instances(stamps, p, self._levels)
