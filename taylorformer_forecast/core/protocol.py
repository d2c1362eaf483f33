"""The protocol that every network follows, and the losses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.distributions import Distribution

from taylorformer_forecast.core.families import Family, family_of
from taylorformer_forecast.core.window import Window

__all__ = ["ForecastNet", "OneShotNet", "OneShotState", "negative_log_likelihood", "training_loss"]


class ForecastNet(Protocol):
    """A network that forecasts the targets of a window.

    Autoregressive networks see earlier targets: ``forward`` is teacher-forced, and sampling goes through
    ``encode`` once, then ``query`` and ``observe`` for each target in turn. Networks that predict all targets
    at once have an attribute ``one_shot = True``; their ``observe`` changes nothing, and sampling may call
    them once instead. Networks with ``joins_columns = True`` take the columns of a window as series of one
    set of points (:func:`~taylorformer_forecast.core.window.join_columns`): they score each column of a
    target given those before it, and sampling goes through the points.

    A network with parts that have a closed-form solution has a method ``start(window, overlap)`` too, which
    is called before training with windows of the training set.
    """

    def __call__(self, window: Window) -> Distribution:
        """Distribution of every target given the context and the true earlier targets, (B, T, D)."""
        ...

    def encode(self, window: Window, n_paths: int) -> Any:
        """Process the context once for all paths and steps."""
        ...

    def query(self, state: Any, step: int) -> Distribution:
        """Distribution of target number ``step`` on every path, its own value unseen, (B, S, D)."""
        ...

    def observe(self, state: Any, step: int, y: Float[Tensor, "B S D"]) -> Any:
        """Take note of the value of target number ``step`` on every path."""
        ...


@dataclass(frozen=True)
class OneShotState:
    """What sampling keeps of a network that predicts all targets at once.

    Parameters
    ----------
    parts : tuple of Tensor of shape (B, T, ...)
        Arguments of the family's distributions, for all targets. No drawn value changes them.
    n_paths : int
        Paths S.
    """

    parts: tuple[Tensor, ...]
    n_paths: int


class OneShotNet(nn.Module):
    """Base of networks that predict all targets at once, each on its own given the context.

    A subclass has a ``head``, its family, and defines the arguments of its distributions (:meth:`parts`).
    """

    one_shot = True
    head: Family

    def parts(self, window: Window) -> tuple[Tensor, ...]:
        """Unconstrained parameters (B, T, D, P), locations (B, T, D), maybe residual scales."""
        raise NotImplementedError

    def forward(self, window: Window) -> Distribution:
        """Distribution of every target given the context.

        Parameters
        ----------
        window : Window
            Scaled windows; the values of the targets are ignored.

        Returns
        -------
        Distribution
            Batch shape (B, T, D).
        """
        return self.head(*self.parts(window))

    def encode(self, window: Window, n_paths: int) -> OneShotState:
        """Predict all targets; see :meth:`forward`."""
        return OneShotState(self.parts(window), n_paths)

    def query(self, state: OneShotState, step: int) -> Distribution:
        """Distribution of target number ``step``, the same on every path, batch shape (B, S, D)."""
        return self.head(
            *(part[:, step, None].expand(-1, state.n_paths, *part.shape[2:]) for part in state.parts)
        )

    def observe(self, state: OneShotState, step: int, y: Float[Tensor, "B S D"]) -> OneShotState:
        """Nothing: no prediction depends on the value of a target."""
        return state


def training_loss(distribution: Distribution, window: Window) -> Float[Tensor, ""]:
    """Mean score of the observed targets: the loss that every model is trained with.

    The score is the loss of the distribution's family: the negative log-density, for quantiles the pinball
    loss, for points the squared or absolute error.

    Parameters
    ----------
    distribution : Distribution
        What the network returned for the window, batch shape (B, T, D).
    window : Window
        The window.

    Returns
    -------
    Tensor
        A scalar, per observed value. Targets that were not observed do not count.

    Examples
    --------
    >>> import torch
    >>> from taylorformer_forecast.core.families.point import Point
    >>> from taylorformer_forecast.core.window import Window
    >>> from taylorformer_forecast.core.protocol import training_loss
    >>> w = Window(torch.arange(3.0)[None], torch.zeros(1, 3, 1), n_context=1)
    >>> training_loss(Point(torch.full((1, 2, 1), 3.0), power=2), w).item()
    9.0
    """
    return _mean_over_observed(family_of(distribution).loss(distribution, window.targets[0]), window)


def negative_log_likelihood(distribution: Distribution, window: Window) -> Float[Tensor, ""]:
    """Mean negative log-density of the observed targets.

    Parameters
    ----------
    distribution : Distribution
        What the network returned for the window, batch shape (B, T, D).
    window : Window
        The window.

    Returns
    -------
    Tensor
        A scalar, in nats per observed value. Targets that were not observed do not count.

    Examples
    --------
    >>> import torch
    >>> from torch.distributions import Normal
    >>> from taylorformer_forecast.core.window import Window
    >>> from taylorformer_forecast.core.protocol import negative_log_likelihood
    >>> w = Window(torch.arange(3.0)[None], torch.zeros(1, 3, 1), n_context=1)
    >>> round(negative_log_likelihood(Normal(torch.zeros(1, 2, 1), 1.0), w).item(), 4)
    0.9189
    """
    return _mean_over_observed(-distribution.log_prob(window.targets[0]), window)


def _mean_over_observed(score: Float[Tensor, "B T D"], window: Window) -> Float[Tensor, ""]:
    """Mean over the observed targets; zero if there are none."""
    observed = window.targets[1]
    return torch.where(observed, score, 0.0).sum() / observed.sum().clamp_min(1)
