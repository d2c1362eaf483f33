"""Fit and update, for every forecaster of the package; how it predicts is in :mod:`._predict_methods`.

A forecaster names its parameters and its model (:class:`~taylorformer_forecast.models.spec.ModelSpec`);
everything else is here.
"""

from __future__ import annotations

import copy
import time
from typing import Any, Self

import numpy as np
from sktime.datatypes import update_data
from sktime.forecasting.base import BaseForecaster

from taylorformer_forecast.calendar.axis import TimeAxis
from taylorformer_forecast.calendar.cycles import SeasonalFeatures
from taylorformer_forecast.calendar.frequency import check_alike
from taylorformer_forecast.engine.lengths import choose_lengths
from taylorformer_forecast.engine.state import all_or_nothing
from taylorformer_forecast.engine.strategy import log_decision
from taylorformer_forecast.sktime._checks import (
    check_columns,
    check_enough,
    check_instances,
    check_parameters,
    check_rows,
    check_same_kind,
)
from taylorformer_forecast.sktime._data import KnownData
from taylorformer_forecast.sktime._effects import ExogenousEffects
from taylorformer_forecast.sktime._estimator import Estimator
from taylorformer_forecast.sktime._explain import Explaining
from taylorformer_forecast.sktime._frames import ExogenousScaler, check_values, of_instance
from taylorformer_forecast.sktime._networks import NetworkFitting
from taylorformer_forecast.sktime._panel import Panel
from taylorformer_forecast.sktime._predict_methods import PredictiveMethods
from taylorformer_forecast.sktime._pretraining import Pretraining


class BaseTorchForecaster(
    Pretraining,
    Explaining,
    PredictiveMethods,
    ExogenousEffects,
    NetworkFitting,
    KnownData,
    Estimator,
    BaseForecaster,
):
    """Base of the package's sktime forecasters.

    Attributes
    ----------
    network_ : nn.Module or None
        The network, on the CPU; None if ``strategy_`` is "baseline" or "corrected", which need none.
    strategy_ : str
        How series are forecast: the parameter ``strategy``, or what its "auto" chose. Models without that
        parameter have "train".
    context_length_, horizon_ : int
        Points of a context, and targets of a training window. Longer horizons are rolled: every path goes on
        from a context that ends with its own last points.
    time_features_, seasonal_periods_ : tuple
        Cycles and seasons in use.
    training_ : dict
        Steps taken and last losses.
    pretrained_ : FromPanel
        After ``pretrain``: its network and what was chosen from the panel. Clones keep it, and so does
        ``fit``, which never changes it.
    """

    _tags = {
        "y_inner_mtype": ["pd.DataFrame", "pd-multiindex", "pd_multiindex_hier"],
        "X_inner_mtype": ["pd.DataFrame", "pd-multiindex", "pd_multiindex_hier"],
        "capability:exogenous": True,
        "capability:non_contiguous_X": False,
        "capability:insample": True,
        "capability:pred_int": True,
        "capability:pred_int:insample": True,
        "capability:update": True,
        "capability:pretrain": True,
        "pretrain:fitted_params": ["pretrained_"],
        "requires-fh-in-fit": False,
        "X-y-must-have-same-index": True,
    }
    # The context is kept as _cur_y and _cur_X; a second copy by the base class would double the memory.
    _config = {"remember_data": False}

    def __init__(self) -> None:
        super().__init__()
        self._y = None
        self._X = None
        if self._is_point:
            self.set_tags(**{"capability:pred_int": False, "capability:pred_int:insample": False})

    @property
    def _instance_norm(self):
        """Whether every window is scaled by its context."""
        return True

    @property
    def _reorder(self):
        """How targets of training windows are ordered: a function of windows, None for order of time."""
        return None

    # ---- fit and update: what fails leaves the forecaster as it was ------------------------------------

    def fit(self, y: Any, X: Any = None, fh: Any = None) -> Self:
        """Fit to y; see :meth:`sktime.forecasting.base.BaseForecaster.fit`.

        ``fh`` is how far ahead forecasts will be asked for. The strategy, the weights of statistics and the
        lengths of training windows depend on it; without it a season is supposed, from 12 to 48 steps.
        """
        check_instances(X, y)
        with all_or_nothing(self):
            return super().fit(y=y, X=X, fh=fh)

    def update(self, y: Any, X: Any = None, update_params: bool = True) -> Self:
        """Take note of new data; see :meth:`sktime.forecasting.base.BaseForecaster.update`.

        Forecasts start after them. The strategy, seasons and effects of X stay those of ``fit``; a network is
        trained further only if ``update_steps`` says so.
        """
        check_instances(X, y)
        with all_or_nothing(self):
            return super().update(y=y, X=X, update_params=update_params)

    def pretrain(self, y: Any, X: Any = None, fh: Any = None) -> Self:
        """Learn from a panel; see :meth:`sktime.forecasting.base.BaseForecaster.pretrain`.

        ``strategy="baseline"`` and "corrected" train no network: they are refused.
        """
        check_instances(X, y)
        with all_or_nothing(self):
            return super().pretrain(y=y, X=X, fh=fh)

    def _fit(self, y, X, fh):
        check_parameters(vars(self), self._free)
        check_values(y, "y")
        pretrained = getattr(self, "pretrained_", None)
        if pretrained is None:
            check_enough(y, self.context_length)
        else:
            check_enough(y, None, least=3 if self.finetune_steps else 1)
        start = time.perf_counter()
        fit_seed, self._seed = self._seeds()
        self._cur_y = y.copy()  # what the user does to it later leaves the forecaster alone
        self._given, self._effects, self._effect_numbers = None, None, {}
        axis = self._own_axis(y)
        if pretrained is None:
            self._axis, self._scaler = axis, ExogenousScaler.of(X, y, self.past_only)
        else:
            self._adopt(y, X, axis)
        self._cur_X = self._accepted(X, y, "fit")
        if pretrained is None:
            self._choose(y, fh)
            if self._scaler is not None:
                self._find_effects()
            self._fit_new(fit_seed)
        else:
            self._take_off_effects()
            if self.finetune_steps:
                self._train_further(fit_seed, self.network_, self.finetune_steps)
            else:
                self._check_usable()
        self._copula = self._fitted_copula() if self.joint else None
        self._seconds = time.perf_counter() - start
        log_decision(str(self._summary()))
        return self

    def _with(self, **attributes):
        """A copy with other data or another network."""
        changed = copy.copy(self)
        changed.__dict__.update(attributes)
        return changed

    def _own_axis(self, y):
        """The time axis of y."""
        panel = Panel.of(y)
        seen = ~np.isnan(panel.values).all(1)
        observed = None if self.spec.regular else panel.take(seen).indexes()
        indexes = panel.indexes()
        axis = TimeAxis.of(indexes, getattr(self.cutoff, "freq", None), observed)
        if axis.freq is not None and axis.kind != "period":
            check_alike(axis.freq, indexes, [of_instance(key) for key in panel.keys])
        return axis

    def _accepted(self, X, y, when):
        """A copy of X, arranged as it is stored, if it is what the forecaster was trained with."""
        if self._scaler is None:
            return None
        self._scaler.check(X, when)
        check_same_kind(X, self._cur_y, "X")
        check_rows(X, y)
        self._scaler.check_known(X[X.index.isin(y.index)], when)
        return X[self._scaler.columns]

    def _update(self, y, X=None, update_params=True):
        check_values(y, "y")
        if set(y.columns) == set(self._cur_y.columns):
            y = y[list(self._cur_y.columns)]
        check_columns(list(y.columns), list(self._cur_y.columns))
        y = y.set_axis(self._cur_y.columns, axis=1)
        # A series that is predicted has the name of the fit: sktime stores that of the latest data.
        name = None if y.columns[0] == 0 else y.columns[0]
        self._converter_store_y = {**self._converter_store_y, "name": name}
        if self._scaler is not None:
            self._cur_X = update_data(self._cur_X, self._accepted(X, y, "update"))
            if self._effects is not None:
                y = self._less_effects(y)
        self._cur_y = update_data(self._cur_y, y)
        self._check_usable()
        if update_params and self.update_steps > 0:
            self._train_further(self._seed, self.network_, self.update_steps)
        return self

    def _update_y_X(self, y, X=None, enforce_index_type=None):
        """Take note of the end of new data; values that come late hide none that are known."""
        before = None
        if self.is_fitted:
            check_same_kind(y, self._cur_y, "y")
            before = self.cutoff
        super()._update_y_X(y, X, enforce_index_type)
        if before is not None and before[0] > self.cutoff[0] and not y.index.isin(self._cur_y.index).all():
            self._set_cutoff(before)

    def _choose(self, y, fh):
        """Choose what the user left open, from the series."""
        panel = Panel.of(y).arranged()
        parts = ((panel.stamps[at], values) for _, at, values in panel.parts())
        asked = self.time_features, self.seasonal_periods
        self._take_seasons(SeasonalFeatures.choose(self._axis, parts, *asked))
        longest = int(panel.count().max())
        # From the last end before that of fh: an instance that ended long ago is forecast farther.
        stamps = panel.stamps[np.unique(panel.at)].sort_values()
        ends = panel.stamps[panel.at[panel.offsets[1:] - 1]].unique().sort_values()[::-1]
        every = (self._steps_ahead(stamps[stamps <= end], fh) for end in ends)
        ahead = next((steps for steps in every if steps), None)
        empty = np.isnan(panel.values[panel.offsets[1:] - 1]).all(1)  # in its last row
        reach = ahead and ahead + (self._missing_at_end(panel) if 2 * empty.sum() > len(empty) else 0)
        about = longest, self._seasonal, reach, self._cur_y.shape[1], self.spec
        self.context_length_, self.horizon_ = choose_lengths(*about, self.context_length, self.horizon)
        self._n_ahead = ahead or self.horizon_

    def _steps_ahead(self, index, fh):
        """Steps from the end of y to the end of fh, if fh is known and lies ahead."""
        if fh is None:
            return None
        stamps = self._axis.horizon(fh, index[-1], index)
        steps = self._axis.numbers(stamps[-1:])[0] - self._axis.numbers(index[-1:])[0]
        return max(1, round(steps)) if steps > 0 else None

    def _missing_at_end(self, panel):
        """Steps without a value at the end of most instances, of which a path passes through each."""
        ends = panel.offsets[1:] - 1
        seen = ~np.isnan(panel.values).all(1)
        last = np.maximum.accumulate(np.where(seen, np.arange(len(seen)), 0))[ends]
        numbers = self._axis.numbers(panel.stamps)[panel.at]
        return max(0, round(np.median(numbers[ends] - numbers[last])))
