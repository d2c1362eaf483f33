"""What users add to the package: a family, kernels, a baseline and a model."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import torch
from torch import distributions, nn

from taylorformer_forecast.baselines.base import Baseline
from taylorformer_forecast.core.attention.kernels import Full
from taylorformer_forecast.core.families import LocationScaleFamily, find_family
from taylorformer_forecast.core.protocol import ForecastNet, OneShotNet
from taylorformer_forecast.core.temporal import last_seen
from taylorformer_forecast.models.lam import LAMTransformer
from taylorformer_forecast.models.spec import ModelSpec
from taylorformer_forecast.models.specs import LAM


class Laplace(distributions.Laplace):
    """Of its own, so that the package may have a family of torch's."""


class LaplaceFamily(LocationScaleFamily):
    """A family of distributions."""

    kind = Laplace
    symmetric = True

    def cdf(self, z, shape):
        tail = np.exp(-np.abs(z)) / 2
        return np.where(np.asarray(z) < 0, tail, 1 - tail)

    def log_pdf(self, z, shape):
        return -np.abs(z) - np.log(2)


class Sharp(Full):
    """Attention with another temperature."""

    def __call__(self, q, k, v, mask=None, scale=None):
        return super().__call__(q, k, v, mask, 3 * (q.shape[-1] ** -0.5 if scale is None else scale))

    def one_query(self, query, points, scale):
        return super().one_query(query, points, 3 * scale)


class WholeOnly(Full):
    """Another temperature, of which the inherited one-query form knows nothing."""

    def __call__(self, q, k, v, mask=None, scale=None):
        return super().__call__(q, k, v, mask, 3 * scale)


class LastValue(Baseline):
    """The last value, whatever the step."""

    def direct(self, window):
        seen = last_seen(window.observed, 0)[:, window.n_context - 1 : window.n_context]
        last = window.y.gather(1, seen)
        return last.expand(-1, window.n_targets, -1), torch.ones_like(last)


def from_last_value(task, **options):
    """The network of LAM, with another baseline."""
    sizes = task.n_context, task.horizon
    covariates = {"dim_covariates": task.n_covariates}
    return LAMTransformer(*sizes, **covariates, distribution=task.family, baseline=LastValue(), **options)


LAST_VALUE = replace(LAM, build=partial(from_last_value, **LAM.defaults))


class Level(OneShotNet):
    """Every step from its time, its covariates and the mean of the context."""

    def __init__(self, task, width):
        super().__init__(find_family(task.family))
        self.layers = nn.Sequential(
            nn.Linear(2 + task.n_covariates, width), nn.Tanh(), nn.Linear(width, self.head.n_params)
        )

    def parts(self, window):
        known, n = window.observed, window.n_context
        mean = (window.y * known)[:, :n].sum(1) / known[:, :n].sum(1).clamp_min(1)
        mean = mean[:, None].expand(-1, window.n_targets, -1)
        covariates = [] if window.covariates is None else [window.covariates[:, n:]]
        raw = self.layers(torch.cat([window.t[:, n:, None], mean, *covariates], -1))
        return raw[:, :, None], mean


def level(task, *, width=8):
    """Build the network.

    Parameters
    ----------
    width : int
        Hidden units.
    """
    return Level(task, width)


LEVEL = ModelSpec("level", level)


class Walk(ForecastNet):
    """One step after another: a normal distribution around the value before."""

    def __init__(self, task):
        super().__init__(find_family(task.family))
        self.layer = nn.Linear(1, self.head.n_params)

    def around(self, before):
        return self.calibration(self.head, self.layer(before[..., None]), before)

    def forward(self, window):
        return self.around(window.y[:, window.n_context - 1 : -1])

    def encode(self, window, n_paths):
        return window.y[:, window.n_context - 1, None].expand(-1, n_paths, -1)

    def query(self, state, step):
        return self.around(state)

    def observe(self, state, step, y):
        return y


def walk(task):
    """Build the network."""
    return Walk(task)


WALK = ModelSpec("walk", walk)


class Together(OneShotNet):
    """All columns from the means of all, in windows that they share, without any weight."""

    def __init__(self, task, order):
        super().__init__(find_family(task.family))
        self.order = order

    def parts(self, window):
        mean = window.y[:, : window.n_context].mean((1, 2), keepdim=True)
        mean = self.order * mean.expand(-1, window.n_targets, window.y.shape[2])
        return mean.new_zeros(*mean.shape, self.head.n_params), mean


def together(task, *, order=1.5):
    """Build the network.

    Parameters
    ----------
    order : float
        Factor on the mean; the package has a parameter of this name that is something else.
    """
    return Together(task, order)


TOGETHER = ModelSpec("together", together, shares_windows=True)
