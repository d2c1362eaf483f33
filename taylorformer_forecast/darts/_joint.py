"""Samples of all components of a series drawn together, for ``joint=True``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from einops import rearrange
from torch import Tensor, nn

from taylorformer_forecast.core.protocol import ForecastNet
from taylorformer_forecast.core.sampling import sample_paths
from taylorformer_forecast.darts._dataset import samples_by_weight
from taylorformer_forecast.darts._state import evaluating
from taylorformer_forecast.darts._windows import BatchWindows
from taylorformer_forecast.defaults import N_CALIBRATION_WINDOWS, N_COPULA_PATHS
from taylorformer_forecast.engine.state import kept_rng
from taylorformer_forecast.engine.statistics.copula import GaussianCopula, scores_among


class JointComponents(nn.Module):
    """The copula of the components of a series, as a part of a module: checkpoints hold it.

    Until it is fitted, components are independent of each other.

    Parameters
    ----------
    n_components : int
        Components C.
    """

    own: Tensor
    factors: Tensor

    def __init__(self, n_components: int) -> None:
        super().__init__()
        self.register_buffer("own", torch.ones(()))
        self.register_buffer("factors", torch.zeros(n_components, n_components))

    def fit(self, scores: np.ndarray, n_times: int) -> None:
        """Take the copula of the components from scores (n, C) of their errors."""
        found = GaussianCopula.of(scores, n_times)
        self.own.fill_(found.own)
        self.factors.zero_()
        self.factors[:, : found.factors.shape[1]] = torch.as_tensor(found.factors)

    def reorder(self, samples: Tensor) -> Tensor:
        """Samples (S, B, n, C) of B series, of all components together."""
        copula = GaussianCopula(float(self.own), self.factors.cpu().double().numpy())
        found = [copula.reorder(one.cpu().numpy()) for one in samples.unbind(1)]
        return torch.as_tensor(np.stack(found, 1)).to(samples)


def joint_components(joint: bool | None, n_components: int) -> JointComponents | None:
    """The copula that a module needs, if any."""
    return JointComponents(n_components) if joint and n_components > 1 else None


class JointWindows(BatchWindows):
    """What ``joint=True`` changes of a :class:`ForecastModule`: which values make one sample."""

    net: ForecastNet
    joint: JointComponents | None

    def fit_joint(self, dataset: Sequence[Any], collate: Callable[..., Any]) -> None:
        """Estimate how components go together from windows of the training set, if that is asked for."""
        if self.joint is None:
            return
        n_targets = self.output_chunk_length or 1
        samples, _ = samples_by_weight(dataset, N_CALIBRATION_WINDOWS, n_targets)
        window = self.training_windows(samples, collate)
        # Likelihoods of darts draw from the global generator.
        with evaluating(self.net), kept_rng():
            drawn = sample_paths(self.net, window, N_COPULA_PATHS).paths
        y, observed = window.targets
        n_windows = len(self.floor) // y.shape[2]  # of a series
        y = rearrange(y.masked_fill(~observed, torch.nan), "(b g) t w -> (b t) (g w)", g=n_windows)
        drawn = rearrange(drawn, "(b g) s t w -> s (b t) (g w)", g=n_windows)
        scores = scores_among(*(part.cpu().double().numpy() for part in (drawn, y)))
        self.joint.fit(scores, min(len(scores), len(dataset) + n_targets - 1))
