"""A Gaussian process as the baseline: each point given those before it, by a covariance that is learnt.

Whichever points a window holds, and in whatever order they are predicted, one Cholesky factor of their
covariance has all conditional means and deviations in its rows: the linear part of filling gaps, exact for
any pattern of missing values and any times.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn

from taylorformer_forecast.baselines.base import Baseline, Neighbourhood, only_time
from taylorformer_forecast.core.window import Window, holds_everywhere
from taylorformer_forecast.defaults import (
    INITIAL_NOISE,
    INITIAL_RANGES,
    INITIAL_SEASON_RANGE,
    INITIAL_VARIANCE,
    VAGUE_TREND_VARIANCE,
)

JITTER = 1e-6


@dataclass(frozen=True)
class GaussianProcessState:
    """What sampling keeps between steps.

    Parameters
    ----------
    factor : Tensor of shape (B, G, T, T)
        Rows and columns of the targets in the Cholesky factor; G is 1 where all columns share it.
    context : Tensor of shape (B, T, D)
        Part of the mean of every target that the context makes up.
    shocks : Tensor of shape (B, S, T, D)
        What every drawn value adds to what was expected, in deviations.
    """

    factor: Tensor
    context: Tensor
    shocks: Tensor


class GaussianProcessBaseline(Baseline):
    """Conditional means and deviations of a Gaussian process.

    Its covariance is the sum of a level and a line, both vague; a rough, a medium and a smooth part (Matérn
    1/2, 3/2 and 5/2), each with its own variance and range; a part that repeats where covariates (phases of
    seasons and calendar cycles) repeat, and wanders slowly; and noise. It adds nothing but the logarithms of
    these variances and ranges to the parameters of a network. Computed in double precision.

    Parameters
    ----------
    dim_covariates : int, default=0
        Covariates; without any there is no part that repeats.

    References
    ----------
    Rasmussen, Williams: "Gaussian Processes for Machine Learning" (2006), chapters 2 and 4.

    Examples
    --------
    >>> import torch
    >>> from taylorformer_forecast.core.window import Window
    >>> from taylorformer_forecast.baselines.gaussian_process import GaussianProcessBaseline
    >>> w = Window(torch.tensor([[0.0, 0.2, 0.1]]), torch.tensor([[[1.0], [3.0], [0.0]]]), n_context=2)
    >>> mean, deviation = GaussianProcessBaseline()(w)
    >>> round(mean[0, 2].item(), 1)  # between its neighbours
    2.0
    """

    shown = True

    def __init__(self, dim_covariates: int = 0) -> None:
        super().__init__()
        self.log_variance = nn.Parameter(torch.full((3,), INITIAL_VARIANCE).log())
        self.log_range = nn.Parameter(torch.tensor(INITIAL_RANGES).log())
        self.log_noise = nn.Parameter(torch.tensor(INITIAL_NOISE).log())
        self.dim_covariates = dim_covariates
        if dim_covariates:
            self.log_season = nn.Parameter(torch.tensor(INITIAL_VARIANCE).log())
            self.log_season_range = nn.Parameter(torch.tensor(INITIAL_SEASON_RANGE).log())
            self.log_weights = nn.Parameter(torch.zeros(dim_covariates))

    def covariance(
        self, t: Float[Tensor, "B N"], covariates: Float[Tensor, "B N C"] | None
    ) -> Float[Tensor, "B N N"]:
        """Covariance of the values at given times, in the type of the times, without noise."""
        apart = (t[..., :, None] - t[..., None, :]).abs()
        rough, medium, smooth = self.log_variance.to(t).exp()
        scales = (torch.tensor([1.0, 3.0, 5.0]).to(t)).sqrt() / self.log_range.to(t).exp()
        far = apart * scales[1]
        further = apart * scales[2]
        total = VAGUE_TREND_VARIANCE * (1 + t[..., :, None] * t[..., None, :])
        total = total + rough * torch.exp(-apart * scales[0]) + medium * (1 + far) * torch.exp(-far)
        total = total + smooth * (1 + further + further.square() / 3) * torch.exp(-further)
        if covariates is None or not self.dim_covariates:
            return total
        phase = covariates.to(t) * (0.5 * self.log_weights.to(t)).exp()
        norm = phase.square().sum(-1)
        differ = norm[..., :, None] + norm[..., None, :] - 2 * phase @ phase.transpose(-1, -2)
        repeats = torch.exp(-0.5 * differ.clamp_min(0) - apart / self.log_season_range.to(t).exp())
        return total + self.log_season.to(t).exp() * repeats

    def factor(self, window: Window) -> Float[Tensor, "B G N N"]:
        """Cholesky factor of the covariance of all points, in their order.

        Nobody sees points that were not observed: their columns are zero, and their rows are those that they
        would have if they alone were observed beside the others.
        """
        t, covariates = only_time(window, self).double(), window.covariates
        eye = torch.eye(t.shape[1], dtype=t.dtype, device=t.device)
        total = self.covariance(t, covariates)[:, None] + (self.log_noise.to(t).exp() + JITTER) * eye
        observed = window.observed
        if observed.shape[2] > 1 and holds_everywhere(observed == observed[..., :1]):
            observed = observed[..., :1]
        known = observed.transpose(1, 2)  # (B, G, N)
        if holds_everywhere(known):
            return torch.linalg.cholesky(total)
        seen = known[..., None, :]
        factor = torch.linalg.cholesky(torch.where(seen & known[..., None], total, eye))
        rows = torch.linalg.solve_triangular(factor, torch.where(seen, total, 0.0).mT, upper=False).mT.tril(
            -1
        )
        variance = total.diagonal(dim1=-2, dim2=-1) - rows.square().sum(-1)
        rows = rows + torch.diag_embed(variance.clamp_min(JITTER).sqrt())
        return torch.where(known[..., None], factor, rows)

    def forward(self, window: Window) -> tuple[Float[Tensor, "B N D"], Float[Tensor, "B N D"]]:
        """Mean and deviation of every point given those before it."""
        mean, _, deviation = self.whiten(window)
        return mean.to(window.y), deviation.expand_as(mean).to(window.y)

    def teacher_forced(
        self, window: Window, neighbourhood: Neighbourhood | None = None, added: Tensor | None = None
    ) -> tuple[Float[Tensor, "B T D"], Float[Tensor, "B T D"]]:
        """Mean and deviation of every target given the true points before it."""
        mean, deviation = self(window)
        return mean[:, window.n_context :], deviation[:, window.n_context :]

    def whiten(
        self, window: Window
    ) -> tuple[Float[Tensor, "B N D"], Float[Tensor, "B N D"], Float[Tensor, "B N G"]]:
        """Means given earlier points, what values add to them in deviations, and these deviations."""
        factor = self.factor(window)
        y = window.y.to(factor).transpose(1, 2)[..., None]  # (B, D, N, 1)
        shocks = torch.linalg.solve_triangular(factor.expand(-1, y.shape[1], -1, -1), y, upper=False)
        mean = (factor.tril(-1) @ shocks)[..., 0].transpose(1, 2)  # no rounding that depends on later values
        deviation = factor.diagonal(dim1=-2, dim2=-1).transpose(1, 2)
        return mean, shocks[..., 0].transpose(1, 2), deviation

    def loss(self, window: Window) -> Float[Tensor, ""]:
        """Negative log-density of all observed points of a batch, in nats for each."""
        _, shocks, deviation = self.whiten(window)
        nats = 0.5 * shocks.square() + deviation.log() + 0.5 * math.log(2 * math.pi)
        return (nats * window.observed).sum() / window.observed.sum().clamp_min(1)

    # ---- sampling ------------------------------------------------------------------------------------

    def encode(self, window: Window, n_paths: int) -> GaussianProcessState:
        """All that no target's value can change."""
        context, targets = slice(0, window.n_context), slice(window.n_context, None)
        factor = self.factor(window)
        y = window.y[:, context].to(factor).transpose(1, 2)[..., None]
        within = factor[..., context, context].expand(-1, y.shape[1], -1, -1)
        shocks = torch.linalg.solve_triangular(within, y, upper=False)
        mean = (factor[..., targets, context] @ shocks)[..., 0].transpose(1, 2)
        drawn = window.y.new_zeros(len(window.y), n_paths, window.n_targets, window.y.shape[2])
        return GaussianProcessState(factor[..., targets, targets].to(drawn), mean.to(drawn), drawn)

    def at(
        self,
        state: GaussianProcessState,
        step: int,
        drawn: Tensor | None = None,
        neighbourhood: Neighbourhood | None = None,
    ) -> tuple[Float[Tensor, "B S D"], Float[Tensor, "B 1 D"]]:
        """Mean and deviation of a target on every path, given the earlier ones."""
        row = state.factor[:, None, :, step, :step].transpose(2, 3)  # (B, 1, step, G)
        mean = state.context[:, None, step] + (state.shocks[:, :, :step] * row).sum(2)
        return mean, state.factor[:, None, :, step, step].expand(-1, 1, mean.shape[2])

    def observe(self, state: GaussianProcessState, step: int, y: Float[Tensor, "B S D"]) -> None:
        """Take the value of a target on every path into the state."""
        mean, deviation = self.at(state, step)
        state.shocks[:, :, step] = (y - mean) / deviation
