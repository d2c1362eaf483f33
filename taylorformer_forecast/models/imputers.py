"""The networks that fill gaps, for imputers: around a Gaussian process, asked on both sides."""

from __future__ import annotations

from functools import partial
from typing import Any

from taylorformer_forecast.baselines.gaussian_process import GaussianProcessBaseline
from taylorformer_forecast.defaults import LARGEST_SLOPE
from taylorformer_forecast.models.contiformer_gaps import ContiFormerGaps
from taylorformer_forecast.models.spec import ModelSpec, Task
from taylorformer_forecast.models.taylorformer import Taylorformer


def _taylorformer(task: Task, **options: Any) -> Taylorformer:
    """Taylorformer around a Gaussian process, asked on both sides.

    Parameters
    ----------
    n_layers : int
        Layers of each of the two streams, at least 2.
    """
    return Taylorformer(
        dim_covariates=task.n_covariates,
        distribution=task.family,
        derivative_clip=LARGEST_SLOPE * (task.n_context + task.horizon),  # slopes are per window
        both_sides=True,
        baseline=GaussianProcessBaseline(task.n_covariates),
        **options,
    )


TAYLORFORMER_GAPS = ModelSpec(
    "Taylorformer",
    partial(_taylorformer, d_model=32, n_heads=4, n_layers=2, dropout=0.1),
)


def _contiformer(task: Task, **options: Any) -> ContiFormerGaps:
    """ContiFormer around a Gaussian process, asked on both sides.

    Parameters
    ----------
    n_layers : int
        Layers; targets are queries of the last one.
    dynamics : {"linear", "mlp", "none"}
        Equation of keys and values; see
        :class:`~taylorformer_forecast.core.continuous.attention.ContinuousAttention`.
    """
    return ContiFormerGaps(
        GaussianProcessBaseline(task.n_covariates),
        dim_covariates=task.n_covariates,
        distribution=task.family,
        **options,
    )


CONTIFORMER_GAPS = ModelSpec(
    "ContiFormer",
    partial(_contiformer, d_model=32, n_heads=4, n_layers=1, dropout=0.1, dynamics="linear"),
)
