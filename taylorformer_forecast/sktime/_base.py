"""What every forecaster of the package does: fit and update; how it predicts is in :mod:`._answers`.

A forecaster names its parameters and builds its network (:meth:`BaseTorchForecaster._build_network`);
everything else is here.
"""

from __future__ import annotations

import time

import numpy as np
from sklearn.utils import check_random_state
from sktime.datatypes import update_data
from sktime.forecasting.base import BaseForecaster

from taylorformer_forecast.calendar.axis import TimeAxis
from taylorformer_forecast.calendar.cycles import SeasonalFeatures
from taylorformer_forecast.engine.strategy import choose_strategy, log_decision
from taylorformer_forecast.sktime._answers import PredictiveMethods
from taylorformer_forecast.sktime._checks import (
    check_enough,
    check_observed,
    check_parameters,
    check_same_kind,
)
from taylorformer_forecast.sktime._frames import (
    ExogenousScaler,
    arranged,
    check_values,
    instances,
    of_instance,
    to_float,
)
from taylorformer_forecast.sktime._predictive import ColumnSeries
from taylorformer_forecast.sktime._pretraining import Pretraining

__all__ = ["BaseTorchForecaster"]

CLEARLY = 0.9  # ratio of errors from which a longer context pays


class BaseTorchForecaster(Pretraining, PredictiveMethods, BaseForecaster):
    """Base of the package's sktime forecasters."""

    _tags = {
        "authors": ["taylorformer_forecast developers"],
        "maintainers": ["taylorformer_forecast developers"],
        "python_dependencies": ["torch>=2.6", "pytorch-lightning>=2.5", "skpro>=2.14"],
        "y_inner_mtype": ["pd.DataFrame", "pd-multiindex", "pd_multiindex_hier"],
        "X_inner_mtype": ["pd.DataFrame", "pd-multiindex", "pd_multiindex_hier"],
        "capability:multivariate": True,
        "capability:exogenous": True,
        "capability:categorical_in_X": False,
        "capability:missing_values": True,
        "capability:non_contiguous_X": False,
        "capability:insample": True,
        "capability:pred_int": True,
        "capability:pred_int:insample": True,
        "capability:unequal_length": True,
        "capability:update": True,
        "capability:pretrain": True,
        "pretrain:fitted_params": ["pretrained_"],
        "capability:random_state": True,
        "property:randomness": "derandomized",
        "requires-fh-in-fit": False,
        "X-y-must-have-same-index": True,
        "fit_is_empty": False,
    }
    # The context is kept as _cur_y and _cur_X; a second copy by the base class would double the memory.
    _config = {"remember_data": False}

    # What a forecaster may say of itself: bounds of the lengths that are chosen from the series, whether its
    # network needs points on a regular grid, and whether the columns of y share windows.
    _usual_context = 192
    _longest_context = 192  # where a longer one pays
    _longest_horizon = 96  # targets of a training window
    _regular = False
    _joins_columns = False

    horizon = None  # parameters that a forecaster may do without
    strategy = "train"

    def __init__(self):
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

    @property
    def _network_weight(self):
        """Part of what a network adds to its baseline that is taken.

        All if it alone sees X, and where it is to minimise an error that the baseline does not.
        """
        return self._usual_weight if self._scaler is None and not self._is_point else 1.0

    _usual_weight = 0.5

    def _build_network(self, dim_covariates):
        """Return an untrained network for windows of :meth:`_columns` and this many covariates."""
        raise NotImplementedError(f"{type(self).__name__} does not say what its network is")

    # ---- fit and update: what fails leaves the forecaster as it was ------------------------------------

    def _remember(self):
        """Attributes as they are, to be restored. Only sktime's own dicts are written into."""
        return {
            name: value.copy() if name.startswith("_") and isinstance(value, dict) else value
            for name, value in vars(self).items()
        }

    def fit(self, y, X=None, fh=None):
        """Fit to y; see :meth:`sktime.forecasting.base.BaseForecaster.fit`."""
        before = self._remember()
        try:
            return super().fit(y=y, X=X, fh=fh)
        except BaseException:  # a keyboard interrupt too
            self.__dict__ = before
            raise

    def update(self, y, X=None, update_params=True):
        """Take note of new data; see :meth:`sktime.forecasting.base.BaseForecaster.update`."""
        before = self._remember()
        try:
            return super().update(y=y, X=X, update_params=update_params)
        except BaseException:
            self.__dict__ = before
            raise

    def _fit(self, y, X, fh):
        check_parameters(self.get_params(deep=False))
        check_values(y, "y")
        pretrained = getattr(self, "pretrained_", None)
        if pretrained is None:
            check_enough(y, self.context_length)
        else:
            check_enough(y, None, least=3 if self.finetune_steps else 1)
        start = time.perf_counter()
        rng = check_random_state(self.random_state)
        fit_seed, self._seed = (int(seed) for seed in rng.randint(0, 2**31 - 1, size=2))
        self._cur_y = y.copy()  # what the user does to it later leaves the forecaster alone
        self._given = None
        axis = self._own_axis(y)
        if pretrained is None:
            self._axis, self._scaler = axis, ExogenousScaler.of(X, y, self.past_only)
        else:
            self._adopt(y, X, axis)
        self._cur_X = self._accepted(X, y, "fit")
        if pretrained is None:
            self._choose(y, fh)
            self._fit_new(fit_seed)
        elif self.finetune_steps:
            self._train_further(fit_seed, self.network_, self.finetune_steps)
        else:
            self._series()  # what cannot be used is refused now, not by predict
        self._seconds = time.perf_counter() - start
        log_decision(str(self._summary()))
        return self

    # ---- strategy: the pretrained network of the package, or one that is trained -----------------------

    def _fit_new(self, seed):
        """Choose the strategy, and fit a network accordingly."""
        from taylorformer_forecast.engine.forecaster import fit_network, fit_pretrained
        from taylorformer_forecast.engine.pretrained import load_pretrained

        weights = None if self.strategy == "train" else load_pretrained(self.pretrained)
        n_values = int(self._cur_y.notna().sum().sum())
        obstacle = None if weights is None else self._obstacle(weights)
        self._strategy = choose_strategy(self.strategy, n_values, self.horizon_, obstacle)
        trains = self._strategy.name != "pretrained"
        training = self._training(seed, float(self.validation_split or 0.0) if trains else 0.0)
        if self._strategy.is_pretrained:
            steps = self._n_steps if trains else lambda per_epoch: 0
            fitted = fit_pretrained(training, weights, self._seasonal.width, steps)
        else:
            width = _width(training.series)
            fitted = fit_network(training, lambda: self._build_network(width), self._n_steps)
        self.network_, self.training_ = fitted

    def _train_further(self, seed, net, steps):
        """Train a copy of a network for some steps, gently and without validation."""
        from taylorformer_forecast.engine.forecaster import train_further

        self.network_, self.training_ = train_further(self._training(seed), net, steps)

    def _train_on(self, seed, net):
        """Train a copy of a network as long as a new one would be."""
        from taylorformer_forecast.engine.forecaster import train_further

        training = self._training(seed, float(self.validation_split or 0.0))
        steps = self._n_steps(len(training.batches(training.maker())[0]))
        self.network_, self.training_ = train_further(training, net, steps, 1.0)

    def _training(self, seed, validation_split=0.0):
        """The series as they are now, and how a network is trained on them."""
        from taylorformer_forecast.engine.forecaster import Training

        options = ("patience", "device", "verbose", "trainer_kwargs")
        return Training(
            self._series(),
            self.context_length_,
            self.horizon_,
            seed,
            self.batch_size,
            self.lr,
            self._instance_norm,
            validation_split,
            self._reorder,
            0 if self._scaler is None else self._scaler.past_only,
            {name: getattr(self, name) for name in options},
        )

    def _obstacle(self, weights):
        """What the pretrained network cannot do, in words; None if it can do all that is asked."""
        return None

    @property
    def strategy_(self):
        """What was done: "pretrained", "train" or "finetune"."""
        return self._strategy.name

    def summary(self):
        """Decisions of the fit: strategy, sizes, seasons, baseline, calibration, steps and seconds.

        Returns
        -------
        Summary
            See :class:`~taylorformer_forecast.engine.summary.Summary`; it prints as a table.
        """
        self.check_is_fitted()
        return self._summary()

    def _summary(self):
        from taylorformer_forecast.engine.summary import summarise

        return summarise(
            self.network_,
            self._strategy,
            self.context_length_,
            self.horizon_,
            self._seasonal.cycles,
            self._seasonal.periods,
            self.training_["steps"],
            self._seconds,
        )

    def _own_axis(self, y):
        """The time axis of y."""
        parts = [part for _, part in instances(y)]
        observed = None if self._regular else [part.index[part.notna().any(axis=1)] for part in parts]
        return TimeAxis.of([part.index for part in parts], getattr(self.cutoff, "freq", None), observed)

    def _accepted(self, X, y, when):
        """A copy of X, arranged as it is stored, if it is what the forecaster was trained with."""
        if self._scaler is None:
            return None
        self._scaler.check(X, when)
        check_same_kind(X, self._cur_y, "X")
        self._scaler.check_known(X[X.index.isin(y.index)], when)
        return X[self._scaler.columns]

    def _update(self, y, X=None, update_params=True):
        check_values(y, "y")
        check_same_kind(y, self._cur_y, "y")
        known, new = list(self._cur_y.columns), list(y.columns)
        if len(new) == len(known) == 1 and 0 in (*new, *known):  # a series without a name
            y = y.set_axis(self._cur_y.columns, axis=1)
        elif new != known:
            raise ValueError(f"y has columns {new}, but the forecaster was fitted with {known}")
        if self._scaler is not None:
            self._cur_X = update_data(self._cur_X, self._accepted(X, y, "update"))
        self._cur_y = update_data(self._cur_y, y)
        self._series()  # what cannot be used is refused now, not by the next predict
        if update_params and self.update_steps > 0:
            self._train_further(self._seed, self.network_, self.update_steps)
        return self

    def _choose(self, y, fh):
        """Choose what the user left open, from the series."""
        parts = [part for _, part in arranged(y)]
        sample = max(parts, key=len)
        self._seasonal = SeasonalFeatures.choose(
            self._axis, sample.index, to_float(sample)[:, 0], self.time_features, self.seasonal_periods
        )
        self.time_features_, self.seasonal_periods_ = self._seasonal.cycles, self._seasonal.periods

        longest = max(int(part.notna().sum().max()) for part in parts)
        season = self._seasonal.season
        ahead = self._steps_ahead(parts[0].index, fh)
        horizon = min(max(season, 12), 48) if ahead is None else min(max(ahead, 8), self._longest_horizon)
        horizon = max(1, min(horizon, longest // 4))
        context = min(max(3 * season, 2 * horizon, 32), self._usual_context)
        # Two weeks of hours: calendar cycles are certain, seasons that the autocorrelation shows are not.
        context = max(context, min(2 * self._seasonal.cycle, self._longest_context))
        # A third of a short series, or one season of it: the rest are windows to learn from.
        most = max(longest // 3, min(season, longest // 2))
        self.context_length_ = self.context_length or max(2, min(context, most))
        horizon = min(horizon, longest - min(self.context_length_, longest // 2))
        self.horizon_ = self.horizon or horizon
        if self.context_length is None:
            self.context_length_ = self._long_enough(self.context_length_, longest)

    def _long_enough(self, context, longest):
        """The context as it is, or the longest allowed if a linear forecast does clearly better with that."""
        from taylorformer_forecast.engine.windows import error_of_context

        most = min(self._longest_context, longest // 4)
        if most < 1.5 * context or self._joins_columns:
            return context
        series = self._series()
        short, long = (error_of_context(series, length, self.horizon_, most) for length in (context, most))
        return most if long < CLEARLY * short else context

    def _steps_ahead(self, index, fh):
        """Steps from the end of y to the end of fh, if fh is known and lies ahead."""
        if fh is None:
            return None
        stamps = self._axis.horizon(fh, index[-1], index)
        steps = self._axis.numbers(stamps[-1:])[0] - self._axis.numbers(index[-1:])[0]
        return max(1, round(steps)) if steps > 0 else None

    def _n_steps(self, per_epoch):
        """Optimiser steps: the smaller of ``max_steps`` and ``num_epochs`` passes, where given."""
        if self.num_epochs is None:
            return self.max_steps
        steps = self.num_epochs * per_epoch
        return steps if self.max_steps is None else min(steps, self.max_steps)

    # ---- the data, seen from the present cutoff --------------------------------------------------------

    def _known(self):
        """Yield (key, y, X) of every instance up to the cutoff, which a backtest may have moved back.

        Instances and columns are arranged by name, so that networks and draws do not depend on their order.
        """
        exogenous = {} if self._cur_X is None else dict(instances(self._cur_X))
        for key, y in arranged(self._cur_y):
            y, X = y[y.index <= self.cutoff[0]], exogenous.get(key)
            check_observed(key, y)
            if self._regular:
                y = y.reindex(self._axis.grid(y.index, f"y{of_instance(key)}"))
                if X is not None:  # nothing is known of X either where a row is missing
                    X = X.reindex(X.index.union(y.index))
            yield key, y, X

    def _covariates(self, index, X, key=(), target=False):
        """Phases of calendar cycles and seasons, and scaled exogenous columns, at points or at targets."""
        features = [self._seasonal(index)] if self._seasonal else []
        if self._scaler is not None:
            if X is None:
                raise ValueError(f"X has no rows{of_instance(key)}")
            missing = index.difference(X.index)
            if len(missing) and not (target and self._scaler.n_ahead == 0):
                raise ValueError(
                    f"X{of_instance(key)} has no row for {missing[0]} ({len(missing)} missing): "
                    f"it must cover every step up to the last of fh"
                )
            features.append(self._scaler.features(X.reindex(index), target))
        return np.concatenate(features, 1) if features else None

    def _columns(self, key, y, X):
        """Columns of one instance, each by itself or all together, standardised."""
        t, values, covariates = self._axis.numbers(y.index), to_float(y), self._covariates(y.index, X, key)
        groups = [values] if self._joins_columns else np.split(values, values.shape[1], 1)
        return [ColumnSeries.of(t, group, covariates, self._regular) for group in groups]

    def _series(self):
        """What windows are cut from: all columns of all instances."""
        return [c.series for key, y, X in self._known() for c in self._columns(key, y, X)]


def _width(series):
    """Covariates of the series."""
    return 0 if series[0].covariates is None else series[0].covariates.shape[1]
