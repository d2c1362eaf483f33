"""Pretraining on a panel: what it leaves behind, and how other series take it up."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from taylorformer_forecast.calendar.axis import TimeAxis
from taylorformer_forecast.calendar.cycles import SeasonalFeatures
from taylorformer_forecast.engine.effects.covariate_effects import CovariateEffects
from taylorformer_forecast.engine.strategy import STATISTICAL, UNTRAINED, Strategy
from taylorformer_forecast.sktime._checks import check_enough
from taylorformer_forecast.sktime._frames import ExogenousScaler
from taylorformer_forecast.sktime._host import Host
from taylorformer_forecast.sktime._panel import Panel


@dataclass(frozen=True)
class FromPanel:
    """A trained network and all that was chosen with it, so that other series can be shown to it.

    Parameters
    ----------
    network : nn.Module
        The network. It is shared by forecasters and never changed: training further trains a copy.
    context_length, horizon : int
        Points of a context, and targets of a training window.
    seasonal : SeasonalFeatures
        Calendar cycles and seasons, and the time axis of the panel.
    scaler : ExogenousScaler, optional
        Columns of X and their scale.
    training : dict
        Steps taken and last losses.
    strategy : Strategy
        How it came to be.
    numbers : mapping
        Of the series of the panel, by instance and column.
    effects : CovariateEffects, optional
        What X adds to these.
    effect_numbers : mapping
        As ``numbers``, of all that have effects of their own.
    n_columns : int
        Columns of the panel.
    """

    network: torch.nn.Module
    context_length: int
    horizon: int
    seasonal: SeasonalFeatures
    scaler: ExogenousScaler | None
    training: dict
    strategy: Strategy
    numbers: Mapping
    effects: CovariateEffects | None
    effect_numbers: Mapping
    n_columns: int

    @classmethod
    def of(cls, forecaster) -> FromPanel:
        """What a fitted forecaster knows, without its data."""
        f = forecaster
        sizes = f.context_length_, f.horizon_
        strategy = replace(f._strategy, least=0)  # series that it is shown later are short
        about = f._seasonal, f._scaler, f.training_, strategy, f._numbers
        return cls(f.network_, *sizes, *about, f._effects, f._effect_numbers, f._cur_y.shape[1])

    def axis(self, own: TimeAxis, longest: int) -> TimeAxis:
        """The time axis of other series, given their own and the rows of the longest."""
        if own.kind == "number" and self.seasonal.cycles:
            raise ValueError(
                f"the index of y holds integers, but the forecaster was pretrained with "
                f"time_features={self.seasonal.cycles}, which need dates or periods: "
                f"pretrain with time_features=None"
            )
        return self.seasonal.axis.continued(own, longest < 3)


class Pretraining(Host):
    """``pretrain`` of :class:`BaseTorchForecaster`.

    A forecaster with the same parameters is fitted to the panel, and what it learnt is kept as
    ``pretrained_``: the one attribute that clones, pickles and further fits take along. ``fit`` never changes
    it, so that what is learnt about one series does not reach the forecast of the next.
    """

    network_: Any

    def _pretrain(self, y, X=None, fh=None):
        if self.strategy in STATISTICAL:
            raise ValueError(
                f"strategy={self.strategy!r} trains no network, so that there is nothing to pretrain: "
                f"take strategy='train', 'finetune' or 'auto'"
            )
        fresh = self._like_new()
        if fresh.strategy == "auto":  # what is asked for is to learn from the panel
            fresh.strategy = "train"
        self.pretrained_ = FromPanel.of(fresh.fit(y, X=X, fh=fh))
        return self

    def _pretrain_update(self, y, X=None, fh=None):
        """Train the network further: that of the pretraining, or of a fit without one."""
        check_enough(y, self.context_length)
        start = getattr(self, "pretrained_", None)
        left = start is None and self.strategy == "auto" and not self._strategy.kind.trains
        if left or self.strategy in UNTRAINED:
            return self._pretrain(y, X, fh)  # nothing was trained that could be trained further
        fresh = self._like_new()
        fresh.pretrained_ = FromPanel.of(self) if start is None else start
        fresh._state = "pretrained"  # else fit would reset it
        fresh.finetune_steps = 0
        fresh.fit(y, X=X, fh=fh)
        fresh._train_on(fresh._seed, fresh.network_)
        self.pretrained_ = FromPanel.of(fresh)
        return self

    def _like_new(self):
        """A forecaster with the same parameters, the very objects: callbacks can be looked at later."""
        return copy.copy(self).reset()

    def _adopt(self, y, X, own: TimeAxis):
        """Take over what was chosen in pretraining."""
        from_panel = self.pretrained_
        if self.spec.shares_windows and y.shape[1] != from_panel.n_columns:
            raise ValueError(
                f"y has {y.shape[1]} columns in fit, but the forecaster was pretrained with "
                f"{from_panel.n_columns}, which its network joins"
            )
        self._axis = from_panel.axis(own, int(np.diff(Panel.of(y).offsets).max()))
        if X is not None and from_panel.scaler is None:
            raise ValueError(
                f"X has columns {list(X.columns)} in fit, but the forecaster was pretrained without X: "
                f"pretrain with X, or fit without"
            )
        self._scaler, self.network_ = from_panel.scaler, from_panel.network
        self.context_length_, self.horizon_ = from_panel.context_length, from_panel.horizon
        self._n_ahead = self.horizon_
        self._take_seasons(replace(from_panel.seasonal, axis=self._axis))
        self.training_, self._strategy = from_panel.training, from_panel.strategy
        self._numbers = from_panel.numbers
        self._effects, self._effect_numbers = from_panel.effects, from_panel.effect_numbers
        self._load_correction()
