"""Neural processes with a latent variable, plain and attentive: peers of the networks of the package.

Sources: Garnelo et al., "Neural Processes" (2018); Kim et al., "Attentive Neural Processes" (ICLR 2019).
Targets are independent of each other given the latent variable, and are predicted at once.
"""

from __future__ import annotations

import itertools
import math

import torch
from torch import Tensor, nn
from torch.distributions import Distribution, Normal, kl_divergence

from taylorformer_forecast.core.attention.layer import MultiHeadAttention
from taylorformer_forecast.core.families import find_family
from taylorformer_forecast.core.protocol import ForecastNet
from taylorformer_forecast.core.window import Window

__all__ = ["AttentiveNeuralProcess", "JointDraws", "NeuralProcess"]

DRAWS = 100  # of the latent variable, for a likelihood


def mlp(*widths: int) -> nn.Sequential:
    """Linear maps between these widths, ReLU between the maps."""
    maps = [nn.Linear(*pair) for pair in itertools.pairwise(widths)]
    return nn.Sequential(maps[0], *(part for each in maps[1:] for part in (nn.ReLU(), each)))


class JointDraws(Distribution):
    """Targets that are independent given a latent variable, by weighted draws of it.

    Only all targets of a sequence together have a density here. ``log_prob`` divides its logarithm equally
    among them.

    Parameters
    ----------
    given : Distribution of batch shape (K, B, T, D)
        Targets given each draw.
    log_weights : Tensor of shape (K, B)
        Logarithms of the draws' importance weights.
    """

    def __init__(self, given: Distribution, log_weights: Tensor) -> None:
        super().__init__(given.batch_shape[1:], validate_args=False)
        self.given, self.log_weights = given, log_weights

    def log_prob(self, value: Tensor) -> Tensor:
        """Equal parts (B, T, D) of the logarithm of the joint density."""
        joint = (self.given.log_prob(value).sum((-2, -1)) + self.log_weights).logsumexp(0)
        joint = joint - math.log(len(self.log_weights))
        return (joint / value[0].numel())[:, None, None].expand_as(value)


class NeuralProcess(ForecastNet):
    """The latent neural process: points are encoded one by one and averaged.

    Trained by the evidence lower bound, with the approximate posterior of all points and, as the prior, that
    of the context. Likelihoods are estimated by importance sampling from the posterior.

    Parameters
    ----------
    width : int
        Width of all layers and of the latent variable.
    """

    def __init__(self, width: int) -> None:
        super().__init__(find_family("normal"))
        self.encoder, self.to_latent = mlp(2, width, width, width), mlp(width, width, 2 * width)
        self.decoder = mlp(self.n_features(width), width, width, self.head.n_params)

    def n_features(self, width: int) -> int:
        """Numbers that the decoder gets: the time and the latent variable."""
        return 1 + width

    def latent(self, points: Tensor) -> Normal:
        """Distribution of the latent variable given points (B, N, 2)."""
        mean, raw = self.to_latent(self.encoder(points).mean(1)).chunk(2, -1)
        return Normal(mean, 0.1 + 0.9 * raw.sigmoid(), validate_args=False)

    def latents(self, window: Window) -> tuple[Normal, Normal]:
        """The latent variable given the context, and given all points."""
        points = torch.cat([window.times, window.y], -1)
        return self.latent(points[:, : window.n_context]), self.latent(points)

    def features(self, window: Window) -> Tensor:
        """What the decoder gets of every target beside the latent variable, (B, T, F)."""
        return window.times[:, window.n_context :]

    def given(self, window: Window, z: Tensor) -> Distribution:
        """Targets given draws of the latent variable, (K, B, Z) -> (K, B, T, 1)."""
        features = self.features(window).expand(len(z), -1, -1, -1)
        z = z[:, :, None].expand(-1, -1, window.n_targets, -1)
        raw = self.decoder(torch.cat([features, z], -1))[..., None, :]
        return self.head(raw, torch.zeros_like(raw[..., 0]))

    def loss(self, window: Window) -> Tensor:
        """Negative evidence lower bound for each target."""
        prior, posterior = self.latents(window)
        likelihood = self.given(window, posterior.rsample((1,))).log_prob(window.targets[0]).sum((0, 2, 3))
        return (kl_divergence(posterior, prior).sum(-1) - likelihood).mean() / window.n_targets

    def forward(self, window: Window) -> JointDraws:
        """Joint distribution of the targets, from the same noise in every call."""
        prior, posterior = self.latents(window)
        noise = torch.randn(DRAWS, posterior.mean.shape[1], generator=torch.Generator().manual_seed(0))
        z = posterior.mean + posterior.stddev * noise.to(posterior.mean)[:, None]
        return JointDraws(self.given(window, z), (prior.log_prob(z) - posterior.log_prob(z)).sum(-1))


class AttentiveNeuralProcess(NeuralProcess):
    """The attentive neural process: every target attends the context beside the latent variable.

    Parameters
    ----------
    width : int
        Width of all layers and of the latent variable.
    n_heads : int
        Attention heads.
    """

    def __init__(self, width: int, n_heads: int) -> None:
        super().__init__(width)
        self.values, self.places = mlp(2, width, width, width), mlp(1, width, width)
        self.attention = MultiHeadAttention(width, width, n_heads, width // n_heads)

    def n_features(self, width: int) -> int:
        """Numbers that the decoder gets: those of the plain one, and what the target attends."""
        return super().n_features(width) + width

    def features(self, window: Window) -> Tensor:
        """Times of the targets and what they attend, (B, T, F)."""
        n, layer = window.n_context, self.attention
        places = self.places(window.times)
        values = self.values(torch.cat([window.times, window.y], -1)[:, :n])
        q, k, v = layer.query(places[:, n:]), layer.key(places[:, :n]), layer.value(values)
        attended = layer.kernel(*map(layer.split, (q, k, v)), None, layer.scale)
        return torch.cat([super().features(window), layer.merge(attended)], -1)
