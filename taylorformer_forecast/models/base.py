"""The protocol that every network follows, and the one loss."""

from __future__ import annotations

from typing import Any, Protocol

from jaxtyping import Float
from torch import Tensor
from torch.distributions import Distribution

from taylorformer_forecast.core.window import Window

__all__ = ["ForecastNet", "negative_log_likelihood"]


class ForecastNet(Protocol):
    """A network that forecasts the targets of a window.

    Autoregressive networks see earlier targets: ``forward`` is teacher-forced, and sampling goes through
    ``encode`` once, then ``query`` and ``observe`` for each target in turn. For networks that predict all
    targets at once ``observe`` changes nothing.
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


def negative_log_likelihood(distribution: Distribution, window: Window) -> Float[Tensor, ""]:
    """Mean negative log-density of the observed targets: the training loss of every model.

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
    >>> from taylorformer_forecast.models.base import negative_log_likelihood
    >>> w = Window(torch.arange(3.0)[None], torch.zeros(1, 3, 1), n_context=1)
    >>> round(negative_log_likelihood(Normal(torch.zeros(1, 2, 1), 1.0), w).item(), 4)
    0.9189
    """
    y, observed = window.targets
    weight = observed.to(y.dtype)
    return -(distribution.log_prob(y) * weight).sum() / weight.sum().clamp_min(1.0)
