"""Choose the strategy of a forecaster, train its network, and summarise what was decided."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np

from taylorformer_forecast.defaults import MOST_OWN_MAPS
from taylorformer_forecast.engine.fit_network import Training, fit_network, fit_pretrained, train_further
from taylorformer_forecast.engine.lengths import longer_context
from taylorformer_forecast.engine.parameters import check_network
from taylorformer_forecast.engine.pretrained import USUAL_DISTRIBUTION, find_own, load_pretrained
from taylorformer_forecast.engine.statistics.correction import choose_correction
from taylorformer_forecast.engine.statistics.forecast import are_demand
from taylorformer_forecast.engine.strategy import (
    DEMAND_OF_X,
    PRETRAINED,
    WITH_STATISTICS,
    choose_strategy,
    obstacle_of_options,
)
from taylorformer_forecast.engine.summary import Summary, summarise
from taylorformer_forecast.models.spec import Task
from taylorformer_forecast.sktime._average import Averaging
from taylorformer_forecast.sktime._frames import of_instance
from taylorformer_forecast.sktime._panel import Panel


class NetworkFitting(Averaging):
    """Fitting of the network of a :class:`BaseTorchForecaster`, by the engine."""

    horizon = None  # parameters that a forecaster may do without
    strategy, pretrained = "train", "default"
    _correction = None  # of statistical forecasts
    _numbers: Mapping  # of the series of the fit, by instance and column
    context_length_: int
    network_: Any
    training_: dict[str, Any]

    def _fit_new(self, seed):
        """Choose the strategy, and fit a network accordingly."""
        if self.strategy != "train":  # a network that is trained is built, and so checked
            check_network(self.spec, vars(self))
        weights = None if self.pretrained == "default" else find_own(self.strategy, self.pretrained)
        panel = Panel.of(self._cur_y).arranged()
        names = list(product(panel.keys, panel.columns))
        self._numbers = {name: k for k, name in enumerate(names) if 1 < len(names) <= MOST_OWN_MAPS}
        n_observed = panel.count().ravel().tolist()
        obstacle = None if self.strategy == "train" else self._obstacle(weights)
        of_statistics = obstacle is None and self.strategy in ("auto", *WITH_STATISTICS)
        irregular = self._irregular() if of_statistics else None
        self._strategy = choose_strategy(self.strategy, n_observed, self.horizon_, obstacle, irregular)
        if self._strategy.kind.averages:
            demand = self.strategy == "auto" and self._is_demand(panel, self._strategy.least)
            self._strategy = self._strategy.of_demand() if demand else self._weighed(self._strategy, seed)
        self._load_correction()
        if not self._strategy.kind.has_network:
            self.network_, self.training_ = None, {"steps": 0}
            return
        if self.context_length is None:
            sizes = self.context_length_, self.horizon_, max(n_observed)
            self.context_length_ = longer_context(self._series(), *sizes, self.spec)
        trains = self._strategy.kind.trains
        training = self._training(seed, float(self.validation_split or 0.0) if trains else 0.0)
        if self._strategy.kind.pretrained:
            weights = weights or load_pretrained("default")
            steps = self._n_steps if trains else lambda per_epoch: 0
            fitted = fit_pretrained(training, weights, self._seasonal.width, steps, self.dropout)
        else:
            fitted = fit_network(training, self._build_network, self._n_steps)
        self.network_, self.training_ = fitted

    def _is_demand(self, panel, least):
        """Whether all series that have so many values are intermittent demand."""
        series = [y for _, _, y in panel.on_grids(self._axis) if (~np.isnan(y)).sum() >= least]
        return are_demand(series, lambda: [self._own_seasons(y) for y in series])

    def _load_correction(self):
        """Load what corrects statistical forecasts, if the strategy has any."""
        corrects = self._strategy.kind.corrects
        self._correction = choose_correction(self.strategy, self.pretrained) if corrects else None

    def _train_further(self, seed, net, steps):
        """Train a copy of a network for some steps, gently and without validation; without one, nothing."""
        if net is None:
            return
        start = time.perf_counter()
        self.network_, self.training_ = train_further(self._training(seed), net, steps)
        self._seconds = time.perf_counter() - start

    def _train_on(self, seed, net):
        """Train a copy of a network as long as a new one would be."""
        training = self._training(seed, float(self.validation_split or 0.0))
        steps = self._n_steps(training.batches(training.maker(), net.inflates)[0].n_batches)
        self.network_, self.training_ = train_further(training, net, steps, anew=True)

    def _without_network(self, missing):
        """A copy that forecasts by statistics and the analogues it has, if "auto" chose the network.

        Else, and where statistics cannot do what is asked for, the error is raised that X has missing rows.
        """
        chosen = self.strategy == "auto" and getattr(self, "pretrained_", None) is None
        if not chosen or self._obstacle(None) is not None or self._irregular() is not None:
            raise missing
        alone = self._with(network_=None, _strategy=replace(self._strategy, name="corrected"))
        if not self._strategy.kind.corrects:
            alone._load_correction()
        return alone

    def _training(self, seed, validation_split=0.0):
        """The series as they are now, and how a network is trained on them."""
        options = ("patience", "device", "verbose", "trainer_kwargs")
        return Training(
            self._series(),
            self.context_length_,
            self.horizon_,
            seed=seed,
            batch_size=self.batch_size,
            lr=self.lr,
            normalise=self._instance_norm,
            validation_split=validation_split,
            reorder=self._reorder,
            past_only=0 if self._shown_scaler is None else self._shown_scaler.past_only,
            irregular=not self.spec.regular and self._irregular() is not None,
            options={name: getattr(self, name) for name in options},
        )

    def _obstacle(self, weights):
        """What the pretrained network cannot do, in words; None if it can do all that is asked."""
        if self._scaler is not None and (beyond := self._beyond_effects()):
            return beyond
        own = USUAL_DISTRIBUTION if weights is None else weights.distribution
        return obstacle_of_options(vars(self), self.distribution, own)

    def _beyond_effects(self):
        """What of X only a trained network can use, in words; None if its effects are all there is."""
        if self._scaler.past_only:
            late = self._scaler.columns[self._scaler.n_ahead :]
            return f"X has columns known of the past only, {late}, which only a trained network sees"
        if self._effects is None:
            return "X is given, and no effects of it could be estimated: only a trained network sees it"
        if self._effects.of_demand.any() and self.strategy in PRETRAINED:
            return f"X is given, {DEMAND_OF_X}"
        return None

    def _check_usable(self):
        """Raise an error if what is known cannot be forecast: now, not when it is asked for."""
        if self.network_ is not None:
            self._series()
        elif (irregular := self._irregular()) is not None:
            remedy = "fit again, or take strategy=" if self.strategy == "auto" else "take strategy='auto' or "
            raise ValueError(f"{irregular}; {remedy}'pretrained'")

    def _irregular(self):
        """Why the statistical forecasts cannot be used: they need regular steps."""
        panel = self._known_panel()
        for number, (key, _, y) in enumerate(panel.on_grids(self._axis)):
            if y is None:
                gap = panel.widest_gap(self._axis, *divmod(number, len(panel.columns)))
                if gap is None:
                    return f"the times{of_instance(key)} are not regular, which statistical forecasts need"
                return f"too many steps{of_instance(key)} have no value for statistical forecasts: {gap}"
        return None

    @property
    def strategy_(self) -> str:
        """What was done: a value of ``strategy`` other than "auto"."""
        return self._strategy.name

    def summary(self) -> Summary:
        """Decisions of the fit: strategy, sizes, seasons, baseline, calibration, steps and seconds.

        Returns
        -------
        Summary
            See :class:`~taylorformer_forecast.engine.summary.Summary`; it prints as a table.
        """
        self.check_is_fitted()
        return self._summary()

    def _summary(self):
        net = self._correction if self.network_ is None else self.network_
        return summarise(
            net,
            self._strategy,
            context_length=self.context_length_,
            horizon=self.horizon_,
            seasonal=self._seasonal,
            steps=self.training_["steps"],
            seconds=self._seconds,
        )

    def _n_steps(self, per_epoch):
        """Optimiser steps: the smaller of ``max_steps`` and ``num_epochs`` passes, where given."""
        if self.num_epochs is None:
            return self.max_steps
        steps = self.num_epochs * per_epoch
        return steps if self.max_steps is None else min(steps, self.max_steps)

    def _build_network(self, maker):
        """Return an untrained network for windows of a maker."""
        alone = self._scaler is not None and (
            self._beyond_effects() is not None or bool(self._effects.of_demand.all())
        )
        task = Task(
            self.context_length_,
            self.horizon_,
            n_covariates=maker.n_covariates,
            n_columns=self._cur_y.shape[1],
            family=self.distribution,
            weight=self.spec.weight_of(alone, not self._is_point),
            regular=self.spec.regular or self._irregular() is None,
        )
        return self.spec.build(task, **self.spec.options(vars(self)))
