"""What every forecaster of the package does: fit and update; how it predicts is in :mod:`._answers`.

A forecaster names its parameters and its model (:class:`~taylorformer_forecast.models.spec.ModelSpec`);
everything else is here.
"""

from __future__ import annotations

import copy
from typing import Any, Self

import numpy as np
from sklearn.utils import check_random_state
from sktime.datatypes import update_data
from sktime.forecasting.base import BaseForecaster

from taylorformer_forecast.calendar.axis import TimeAxis
from taylorformer_forecast.calendar.cycles import SeasonalFeatures
from taylorformer_forecast.models.documentation import SIZES, document
from taylorformer_forecast.models.spec import ModelSpec, Task
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
from taylorformer_forecast.sktime._parameters import ATTRIBUTES, PARAMETERS
from taylorformer_forecast.sktime._predictive import ColumnSeries
from taylorformer_forecast.sktime._pretraining import Pretraining

__all__ = ["BaseTorchForecaster"]

CLEARLY = 0.9  # ratio of errors from which a longer context pays
# Parameters that say how a network is trained.
TRAINING = ("max_steps", "num_epochs", "batch_size", "lr", "dropout", "validation_split", "update_steps")


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

    spec: ModelSpec
    horizon = None  # parameters that a forecaster may do without
    pretrained = None

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        if "spec" in vars(cls):
            document(cls, (cls.spec.docs, PARAMETERS, SIZES), vars(cls.spec), ATTRIBUTES)

    def __init__(self) -> None:
        super().__init__()
        self._y = None
        self._X = None
        if self._is_point:
            self.set_tags(**{"capability:pred_int": False, "capability:pred_int:insample": False})

    def _store(self, arguments):
        """Set the parameters of a constructor, given its ``locals()``, as they are."""
        for name, value in arguments.items():
            if name not in ("self", "__class__"):
                setattr(self, name, value)

    @property
    def _instance_norm(self):
        """Whether every window is scaled by its context."""
        return True

    @property
    def _reorder(self):
        """How targets of training windows are ordered: a function of windows, None for order of time."""
        return None

    @property
    def _trust(self):
        """How much of what a network adds to its linear forecast is taken.

        All if it alone sees X, and where it is to minimise an error that the linear forecast does not.
        """
        return self.spec.weight if self._scaler is None and not self._is_point else 1.0

    def _build_network(self, dim_covariates, baseline=None):
        """Return an untrained network for windows of :meth:`_columns` and this many covariates."""
        task = Task(
            self.context_length_,
            self.horizon_,
            n_covariates=dim_covariates,
            n_columns=self._cur_y.shape[1],
            family=self.distribution,
            weight=self._trust,
            baseline=baseline,
        )
        return self.spec.build(task, **self.spec.options(vars(self)))

    # ---- fit and update: what fails leaves the forecaster as it was ------------------------------------

    def _remember(self):
        """Attributes as they are, to be restored. Only sktime's own dicts are written into."""
        return {
            name: value.copy() if name.startswith("_") and isinstance(value, dict) else value
            for name, value in vars(self).items()
        }

    def fit(self, y: Any, X: Any = None, fh: Any = None) -> Self:
        """Fit to y; see :meth:`sktime.forecasting.base.BaseForecaster.fit`."""
        before = self._remember()
        try:
            return super().fit(y=y, X=X, fh=fh)
        except BaseException:  # a keyboard interrupt too
            self.__dict__ = before
            raise

    def update(self, y: Any, X: Any = None, update_params: bool = True) -> Self:
        """Take note of new data; see :meth:`sktime.forecasting.base.BaseForecaster.update`."""
        before = self._remember()
        try:
            return super().update(y=y, X=X, update_params=update_params)
        except BaseException:
            self.__dict__ = before
            raise

    def _fit(self, y, X, fh):
        check_parameters(vars(self))
        check_values(y, "y")
        pretrained = getattr(self, "pretrained_", None)
        prior = self._prior(self.pretrained) if pretrained is None else None
        if pretrained is None:
            check_enough(y, self.context_length)
        else:
            check_enough(y, None, least=3 if self.finetune_steps else 1)
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
            if short := self._too_short():
                prior = self._prior("default")
            self._train(fit_seed, steps=0 if short else None, prior=prior)
        elif self.finetune_steps:
            self._train(fit_seed, self.network_, self.finetune_steps)
        else:
            self._series()  # what cannot be used is refused now, not by predict
        return self

    def _too_short(self):
        """Whether the prior in the package is to forecast alone.

        Not so if anything was asked for that only a network which is trained has.
        """
        if self.pretrained != "auto" or self._scaler is not None:
            return False
        from taylorformer_forecast.engine.pretrained import SETTINGS, asks_for_training, too_few

        params, defaults = self.get_params(deep=False), self.get_param_defaults()
        if any(params[name] != defaults[name] for name in (*SETTINGS, *TRAINING)):
            return False
        if asks_for_training(self.trainer_kwargs or {}):
            return False
        return too_few(int(self._cur_y.notna().sum().sum()), self.horizon_)

    def _prior(self, source):
        """The network to start from, None for none so far."""
        if source in (None, "auto"):
            return None
        from taylorformer_forecast.engine.pretrained import load_prior

        prior = load_prior(source)
        params = self.get_params(deep=False)
        if 0 not in (self.max_steps, self.num_epochs):  # else it forecasts alone
            params = {"linear_path": params["linear_path"]}
        prior.check(params, self.get_param_defaults())
        return prior

    def _own_axis(self, y):
        """The time axis of y."""
        parts = [part for _, part in instances(y)]
        observed = None if self.spec.regular else [part.index[part.notna().any(axis=1)] for part in parts]
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
            self._train(self._seed, self.network_, self.update_steps)
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
        horizon = min(max(season, 12), 48) if ahead is None else min(max(ahead, 8), self.spec.longest_horizon)
        horizon = max(1, min(horizon, longest // 4))
        context = min(max(3 * season, 2 * horizon, 32), self.spec.context(self._cur_y.shape[1]))
        # Two weeks of hours: calendar cycles are certain, seasons that the autocorrelation shows are not.
        context = max(context, min(2 * self._seasonal.cycle, self.spec.longest_context))
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

        most = min(self.spec.longest_context, longest // 4)
        if most < 1.5 * context or self.spec.joins_columns:
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

    def _train(self, seed, net=None, steps=None, prior=None):
        """Train a network, by default a new one, for some steps, by default as many as a fit takes.

        A network that is given stays as it is: a copy is trained. A new one starts from the prior, if any,
        which forecasts alone if there are no steps.
        """
        from taylorformer_forecast.engine.calibration import N_WINDOWS, widen
        from taylorformer_forecast.engine.pretrained import GENTLE
        from taylorformer_forecast.engine.training import fit, private_rng
        from taylorformer_forecast.engine.windows import FLOOR, Batches, WindowMaker
        from taylorformer_forecast.models.direct import DirectTaylorformer

        series = self._series()
        context = self.context_length_
        maker = WindowMaker(series, context, self.horizon_, float(context), FLOOR, self._instance_norm)
        split = float(self.validation_split or 0.0) if steps is None else 0.0
        fewest = max(1, min(max(3, context // 2), max(len(s.t) for s in series) - 1))
        train = maker.starts(fewest, keep=1.0 - split)
        if len(train) == 0:
            raise ValueError(f"validation_split={split} leaves nothing to train on")
        held_out = maker.starts(fewest, skip=1.0 - split) if split else train[:0]
        held_out = held_out[:: max(1, len(held_out) // 256)]
        hidden = 0 if self._scaler is None else self._scaler.past_only
        batches = Batches(maker, train, self.batch_size, seed, 1.0 - split, self._reorder, hidden)
        lr = self.lr if steps is None else 0.1 * self.lr
        steps = self._n_steps(len(batches)) if steps is None else steps
        new = net is None
        with private_rng(seed):
            if net is not None:
                net = copy.deepcopy(net)
            elif prior is not None:
                net = self._from_prior(prior, series, maker, fewest, 1.0 - split, alone=steps == 0)
            else:
                net = self._build_network(_width(series))
            if isinstance(net, DirectTaylorformer):
                lr *= GENTLE
            self.training_ = fit(
                net,
                batches,
                Batches(maker, held_out, self.batch_size, past_only=hidden) if len(held_out) else None,
                max_steps=steps,
                lr=lr,
                patience=self.patience,
                device=self.device,
                verbose=self.verbose,
                trainer_kwargs=self.trainer_kwargs,
                start=new,
            )
        if steps:
            widen(net, batches.sample(N_WINDOWS)[0])
        self.network_ = net

    def _from_prior(self, prior, series, maker, fewest, keep, alone):
        """The prior's network, or one that is trained as without it and corrected by it."""
        import torch

        from taylorformer_forecast.baselines.linear import LinearForecast
        from taylorformer_forecast.engine.pretrained import adapt, adapt_beside, build_direct
        from taylorformer_forecast.models.direct import CorrectedForecast

        with torch.random.fork_rng(devices=[]):  # what is drawn for the other network is as without this
            linear = LinearForecast(self.context_length_, self.horizon_)
            direct = build_direct(prior.settings, linear, prior.slots, self._seasonal.width)
        prior.write_into(direct)
        if alone:
            adapt(direct, maker, fewest, prior.trust, keep)
            return direct
        adapt_beside(direct, maker, fewest, keep)
        return self._build_network(_width(series), CorrectedForecast(direct, self._trust))

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
            if self.spec.regular:
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
        groups = [values] if self.spec.joins_columns else np.split(values, values.shape[1], 1)
        return [ColumnSeries.of(t, group, covariates, self.spec.regular) for group in groups]

    def _series(self):
        """What windows are cut from: all columns of all instances."""
        return [c.series for key, y, X in self._known() for c in self._columns(key, y, X)]


def _width(series):
    """Covariates of the series."""
    return 0 if series[0].covariates is None else series[0].covariates.shape[1]
