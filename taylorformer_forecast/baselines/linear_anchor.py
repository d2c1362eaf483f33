"""Anchors from a linear forecast: every target is predicted around it and the errors made before."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn

from taylorformer_forecast.baselines.linear import LinearForecast
from taylorformer_forecast.baselines.residuals import N_LAGS, lagged
from taylorformer_forecast.core.window import Window

__all__ = ["LinearAnchor", "LinearState"]


@dataclass(frozen=True)
class LinearState:
    """A linear forecast at the targets of windows.

    Parameters
    ----------
    center : Tensor of shape (B, T, D)
        Forecasts.
    unit : Tensor of shape (B, T, 1)
        Unit of what remains.
    weights : Tensor of shape (B, T, K), optional
        Of the K errors before each; None where the line between neighbours' errors takes their place.
    """

    center: Tensor
    unit: Tensor
    weights: Tensor | None


class LinearAnchor(nn.Module):
    """Anchor of a target: a linear forecast from the context plus what earlier errors say of the next.

    The forecast of every step comes straight from the context, so that errors do not pile up along a path;
    an autoregression of its errors joins the steps. Where points look to both sides, as for targets in any
    order, the line between the errors at both neighbours takes its place.

    Parameters
    ----------
    forecast : LinearForecast
        The forecast.
    both_sides : bool, default=False
        Whether points look to both sides.

    Examples
    --------
    >>> import torch
    >>> from taylorformer_forecast.baselines.linear import LinearForecast
    >>> from taylorformer_forecast.core.window import Window
    >>> from taylorformer_forecast.baselines.linear_anchor import LinearAnchor
    >>> anchor = LinearAnchor(LinearForecast(4, 2))
    >>> w = Window(torch.arange(-3.0, 3.0)[None] / 4, torch.arange(6.0)[None, :, None], n_context=4)
    >>> anchor.in_order(w, anchor.look(w)).flatten().tolist()  # not fitted: the value before
    [3.0, 4.0]
    """

    weights: Tensor

    def __init__(self, forecast: LinearForecast, both_sides: bool = False) -> None:
        super().__init__()
        self.forecast, self.both_sides = forecast, both_sides
        # Whether errors are counted from the forecast with what a network adds to it, or from it alone.
        self.counts_added = not both_sides and float(forecast.trust) < 1.0
        weights = torch.zeros(forecast.horizon, N_LAGS)
        weights[:, -1] = 1.0  # before the fit errors stay as they are
        self.register_buffer("weights", weights)

    def look(self, window: Window) -> LinearState:
        """Forecasts, units and weights at the targets."""
        steps = torch.cat([self.weights[:1], self.weights])[None]
        weights = None if self.both_sides else self.forecast.at_targets(steps, window)
        return LinearState(self.forecast(window), self.forecast.unit(window), weights)

    def in_order(
        self, window: Window, state: LinearState, added: Tensor | float = 0.0
    ) -> Float[Tensor, "B T D"]:
        """Anchors of all targets, given the true earlier ones; those not observed count as forecast.

        Parameters
        ----------
        window : Window
            Targets in order of time.
        state : LinearState
            From :meth:`look`.
        added : Tensor of shape (B, T, D), default=0.0
            What is added to the forecasts before errors are counted. Anchors themselves are without it.
        """
        assert state.weights is not None
        y, observed = window.targets
        error = ((y - state.center - added) * observed).transpose(1, 2)
        lags = lagged(error.flatten(0, 1), N_LAGS).unflatten(0, error.shape[:2])  # (B, D, T, K)
        return state.center + (lags * state.weights[:, None]).sum(-1).transpose(1, 2)

    def step(self, state: LinearState, drawn: Float[Tensor, "B S K D"], step: int) -> Float[Tensor, "B S D"]:
        """Anchor of one target, given all before it on every path: values less what is added to forecasts."""
        assert state.weights is not None
        before = slice(max(0, step - N_LAGS), step)
        error = drawn[:, :, before] - state.center[:, None, before]
        weights = state.weights[:, step, N_LAGS - error.shape[2] :]
        return state.center[:, None, step] + torch.einsum("bskd,bk->bsd", error, weights)

    def start(self, window: Window, overlap: int = 0, age: Float[Tensor, " B"] | None = None) -> None:
        """Fit forecast and autoregression in closed form.

        Parameters
        ----------
        window, overlap, age
            See :meth:`~taylorformer_forecast.baselines.linear.LinearForecast.start`.
        """
        residuals = self.forecast.start(window, overlap, age)
        if residuals is None:
            return
        inside, outside = residuals
        if self.both_sides:  # on one side of all, the error of the neighbour stays
            weights = outside.error.new_ones(self.forecast.horizon, 1)
        else:
            weights = outside.autoregression(N_LAGS, self.forecast.horizon)
            self.weights.copy_(weights)
        self.forecast.start_scale(inside.after(weights), outside.after(weights), outside.growth())
