"""Parameters and attributes that all forecasters share, for their docstrings and signatures."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from os import PathLike
from typing import Any

import numpy as np

Columns = str | Sequence[Hashable] | None
Options = Mapping[str, Any] | None
Periods = str | float | Sequence[float] | None
Seed = int | np.random.RandomState | None
Source = str | PathLike[str]
TestParams = list[dict[str, Any]]

PARAMETERS = """
context_length : int
    Observations that a forecast is conditioned on. By default three seasons or two horizons, between 32 and
    {usual_context}, at most half of the series.
horizon : int
    Targets of a training window. By default the steps to the end of ``fh`` if it is known at ``fit``, else a
    season; at most {longest_horizon} and a quarter of the series.
num_samples : int
    Sample paths of a prediction.
num_epochs : int or None
    Passes over all windows. More would overfit short series.
max_steps : int or None
    Optimiser steps. Training ends with the earlier of both; None leaves its length to the other.
batch_size : int
    Windows in a step.
lr : float
    Peak learning rate; it warms up and decays by a cosine.
validation_split : float
    Fraction at the end of every series that is kept from training and decides about early stopping. By
    default training uses all of the series and takes all of its steps.
patience : int
    With a ``validation_split``: checks without improvement (20 in all) before training stops. The best
    weights are kept.
time_features : "auto", None or tuple of str
    Cycles of the calendar among "day", "week", "month", "year" whose phases the network sees. "auto" takes
    those that the index resolves and that the series covers at least twice.
seasonal_periods : "auto", None, number or tuple of numbers
    Further seasons, in steps. "auto" looks for them in the autocorrelation.
distribution : {"normal", "studentt", "mixture", "quantile", "mse", "mae"}
    Distribution of a point, given the path so far where paths are drawn step by step: forecasts further ahead
    are then mixtures of it. "quantile" is a piecewise linear quantile function trained by the pinball loss;
    "mse" and "mae" give point forecasts, trained by squared and absolute errors, without intervals.
update_steps : int
    Optimiser steps of ``update(..., update_params=True)``. With 0, updates change the context only.
finetune_steps : int
    Optimiser steps of ``fit`` after ``pretrain``. With 0, ``fit`` gives the pretrained network the series as
    context and changes nothing else; without ``pretrain`` it has no meaning.
past_only : None, "all" or tuple of column labels
    Columns of X that are known of the past only. The network sees their past, and is trained without their
    future: ``predict`` needs no values of them, and uses none. All others are known ahead: ``predict`` needs
    them for every step up to the last of ``fh``.
device : str
    "auto" takes a CUDA device if there is one, else the CPU.
random_state : int, RandomState or None
    Seed of training and of the paths.
verbose : bool
    Whether training that takes more than seconds shows a progress bar, in a terminal or a notebook.
trainer_kwargs : dict
    Arguments of ``pytorch_lightning.Trainer``, such as ``{"precision": "bf16-mixed"}``, loggers, callbacks,
    ``{"devices": 4, "strategy": "ddp"}`` or ``{"max_time": {"seconds": 30}}``.
"""

ATTRIBUTES = """
Attributes
----------
network_ : nn.Module
    The trained network, on the CPU.
context_length_, horizon_ : int
    Points of a context, and targets of a training window. Longer horizons are rolled: every path goes on from
    a context that ends with its own last points.
time_features_, seasonal_periods_ : tuple
    Cycles and seasons in use.
training_ : dict
    Steps taken and last losses.
pretrained_ : Pretrained
    After ``pretrain``: its network and what was chosen from the panel. Clones keep it, and so does ``fit``,
    which never changes it.
"""

# Settings for sktime's test suite.
SMALL: dict[str, Any] = {"d_model": 4, "n_heads": 1, "max_steps": 1, "random_state": 0}
TINY: dict[str, Any] = {**SMALL, "num_samples": 3}
VALIDATED: dict[str, Any] = {"validation_split": 0.25, "update_steps": 1, "num_epochs": 1}
ONE_SEASON: dict[str, Any] = {"time_features": None, "seasonal_periods": 4}
