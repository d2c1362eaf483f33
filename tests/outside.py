"""What users add to the package: a family, kernels, a baseline and a model."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import torch
from torch import nn
from torch.distributions import Laplace

from taylorformer_forecast.baselines.base import Baseline
from taylorformer_forecast.core.attention.kernels import Full
from taylorformer_forecast.core.families import LocationScaleFamily, find_family
from taylorformer_forecast.core.protocol import OneShotNet
from taylorformer_forecast.models.lam import LAMTransformer
from taylorformer_forecast.models.spec import ModelSpec
from taylorformer_forecast.models.specs import LAM


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
        last = window.y[:, window.n_context - 1 : window.n_context]
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
