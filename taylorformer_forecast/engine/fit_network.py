"""Fit a network to series, as sktime does: windows, baseline, training, calibration, in this order."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

from taylorformer_forecast.core.protocol import ForecastNet
from taylorformer_forecast.core.window import Window, evenly
from taylorformer_forecast.defaults import (
    CALIBRATED_AFTER,
    CONTEXT_FLOOR,
    HOLDOUT_START,
    MIN_HELD_OUT_WINDOWS,
    MOST_VALIDATION_WINDOWS,
    N_CALIBRATION_WINDOWS,
    UPDATE_LR_FACTOR,
)
from taylorformer_forecast.engine.calibration import (
    calibrate_by_paths,
    calibrate_pretrained,
    inflate_by_paths,
)
from taylorformer_forecast.engine.pretrained import Pretrained
from taylorformer_forecast.engine.state import private_rng
from taylorformer_forecast.engine.training import bounded, data_name, fit
from taylorformer_forecast.engine.windows import Batches, Series, WindowMaker


@dataclass(frozen=True)
class Training:
    """Series, sizes of their windows, and how a network is trained on them.

    Parameters
    ----------
    series : sequence of Series
        The data, standardised.
    context_length, horizon : int
        Points of a context, and targets of a window.
    seed : int
        Seed of everything random.
    batch_size : int
        Windows in a step.
    lr : float
        Peak learning rate.
    normalise : bool, default=True
        Whether every window is scaled by its context.
    validation_split : float, default=0.0
        Fraction at the end of every series that is kept from training.
    reorder : callable, optional
        How targets are ordered, see :class:`~taylorformer_forecast.engine.windows.Batches`.
    past_only : int, default=0
        How many covariates, the last ones, are known of the past only.
    irregular : bool, default=False
        Whether times are irregular. A network then learns much that does not hold for new windows: early in
        its training it is calibrated on the last part of every series, which it has not seen by then.
    options : mapping
        ``patience``, ``device``, ``verbose``, ``trainer_kwargs`` of
        :func:`~taylorformer_forecast.engine.training.fit`.
    """

    series: Sequence[Series]
    context_length: int
    horizon: int
    _: KW_ONLY
    seed: int
    batch_size: int
    lr: float
    normalise: bool = True
    validation_split: float = 0.0
    reorder: Callable[..., Window] | None = None
    past_only: int = 0
    irregular: bool = False
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Name of the series, by which a checkpoint is told from those of others."""
        return data_name(part for one in self.series for part in (one.t, one.y, one.covariates))

    @property
    def keep(self) -> float:
        """Part of every series that is trained on."""
        return 1.0 - self.validation_split

    @property
    def min_context(self) -> int:
        """Rows that precede the first target of a window, at least: half of a context where there are."""
        longest = max(len(one.t) for one in self.series)
        return max(1, min(max(3, self.context_length // 2), longest - 1))

    def maker(self) -> WindowMaker:
        """Cutter of the windows."""
        unit = float(self.context_length)
        return WindowMaker(
            self.series, self.context_length, self.horizon, unit, CONTEXT_FLOOR, normalise=self.normalise
        )

    def batches(self, maker: WindowMaker, calibrates: bool = False) -> tuple[Batches, Batches | None]:
        """Random batches of the training part, and one pass over windows of the part that is held out.

        That is the validation part, or what a network at irregular times is calibrated on, where there is
        enough.
        """
        keep = self.keep
        # What holds for one training alone leaves no other one for the calibration.
        single = {"max_time", "ckpt_path"} & set(self.options.get("trainer_kwargs") or ())
        if calibrates and self.irregular and not self.validation_split and not single:
            early = maker.starts(self.min_context, keep=HOLDOUT_START)
            late = maker.starts(self.min_context, skip=HOLDOUT_START)
            keep = HOLDOUT_START if min(len(early), len(late)) >= MIN_HELD_OUT_WINDOWS else keep
        train = maker.starts(self.min_context, keep=keep)
        if len(train) == 0:
            raise ValueError(f"validation_split={self.validation_split} leaves nothing to train on")
        batches = Batches(maker, train, self.batch_size, self.seed, keep, self.reorder, self.past_only)
        held_out = maker.starts(self.min_context, skip=keep)
        if not len(held_out):
            return batches, None
        held_out = held_out[evenly(len(held_out), MOST_VALIDATION_WINDOWS)]
        return batches, Batches(maker, held_out, self.batch_size, past_only=self.past_only)


Steps = Callable[[int], int]  # from the batches of one pass to optimiser steps


def fit_network(
    training: Training, build: Callable[[WindowMaker], ForecastNet], steps: Steps
) -> tuple[ForecastNet, dict[str, float]]:
    """Fit the baseline of a new network in closed form, train the network, and calibrate it.

    Parameters
    ----------
    training : Training
        Series, windows, seeds.
    build : callable
        Makes the network, for windows of a maker. It is called in a random state of its own.
    steps : callable
        From the number of batches in one pass to optimiser steps.

    Returns
    -------
    ForecastNet, dict
        The network on the CPU, in evaluation mode; steps taken and last losses.
    """
    maker = training.maker()
    with private_rng(training.seed):
        net = build(maker)
        batches, held_out = training.batches(maker, net.inflates)
        net.fit_closed_form(*batches.sample())
        sizes = steps(batches.n_batches), training.lr * net.lr_factor
        return _trained(net, training, batches, held_out, *sizes, data=training.name, refits=True)


def fit_pretrained(
    training: Training, weights: Pretrained, n_phases: int, steps: Steps, dropout: float
) -> tuple[ForecastNet, dict[str, float]]:
    """Build the pretrained network around a baseline of these series, and calibrate it.

    Parameters
    ----------
    training : Training
        Series, windows, seeds.
    weights : Pretrained
        The pretrained network.
    n_phases : int
        Phases of seasons among the covariates, the first ones.
    steps : callable
        As for :func:`fit_network`; zero leaves the weights as they are.
    dropout : float
        Part of the activations that is dropped in training.

    Returns
    -------
    ForecastNet, dict
        As for :func:`fit_network`.
    """

    def build(maker: WindowMaker) -> ForecastNet:
        net = weights.build(training.context_length, training.horizon, n_phases, dropout=dropout)
        calibrate_pretrained(net, maker, training.min_context, weights.weight, training.keep)
        return net

    return fit_network(training, build, steps)


def train_further(
    training: Training, net: ForecastNet, steps: int, anew: bool = False
) -> tuple[ForecastNet, dict[str, float]]:
    """Train a copy of a network further; its baseline stays as it is.

    Parameters
    ----------
    training : Training
        Series, windows, seeds.
    net : ForecastNet
        The network. It is not changed.
    steps : int
        Optimiser steps.
    anew : bool, default=False
        Whether it is trained and calibrated as a new network is; else at a small learning rate.

    Returns
    -------
    ForecastNet, dict
        As for :func:`fit_network`.
    """
    batches, held_out = training.batches(training.maker(), anew and net.inflates)
    with private_rng(training.seed):
        lr = training.lr * net.lr_factor * (1.0 if anew else UPDATE_LR_FACTOR)
        return _trained(copy.deepcopy(net), training, batches, held_out, steps, lr)


def _trained(
    net: ForecastNet,
    training: Training,
    batches: Batches,
    held_out: Batches | None,
    steps: int,
    lr: float,
    *,
    data: str | None = None,
    refits: bool = False,
) -> tuple[ForecastNet, dict[str, float]]:
    """Train a network in place, and set its calibration: early where a part is held out for that alone."""
    options = {"lr": lr, **training.options}
    steps = bounded(steps, training.options.get("trainer_kwargs"), batches.n_batches)
    if held_out is not None and not training.validation_split:
        early = math.ceil(CALIBRATED_AFTER * steps)
        first = fit(net, batches, None, max_steps=early, **options)
        if first["steps"]:
            calibrate_by_paths(net, held_out.sample(N_CALIBRATION_WINDOWS)[0])
        batches = training.batches(batches.maker)[0]
        if refits:
            net.fit_closed_form(*batches.sample())
        record = fit(net, batches, None, max_steps=steps - early, data=data, **options)
        return net, {**first, **record, "steps": first["steps"] + record["steps"]}
    record = fit(net, batches, held_out, max_steps=steps, data=data, **options)
    if not record["steps"]:
        return net, record
    if training.irregular and held_out is not None and len(held_out.starts) >= MIN_HELD_OUT_WINDOWS:
        calibrate_by_paths(net, held_out.sample(N_CALIBRATION_WINDOWS)[0])
    else:
        before = float(net.calibration.inflation)
        inflate_by_paths(net, batches.sample(N_CALIBRATION_WINDOWS)[0])
        if training.irregular:  # windows of the training do not show all that others did
            net.calibration.set(inflation=max(before, float(net.calibration.inflation)))
    return net, record
