"""Anchors from a linear forecast: every target is predicted around it and the errors made before."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.distributions import Distribution

from taylorformer_forecast.core.heads import Head, center
from taylorformer_forecast.core.linear import LinearForecast, lagged
from taylorformer_forecast.core.window import Window

__all__ = ["ErrorPaths", "LinearAnchor", "LinearState"]

N_LAGS = 8  # earlier errors that the next one follows from


@dataclass(frozen=True)
class LinearState:
    """A linear forecast at the targets of windows.

    Parameters
    ----------
    center : Tensor of shape (B, T, D)
        Forecasts.
    spread : Tensor of shape (B, T, 1)
        Unit of their errors.
    unit : Tensor of shape (B, T, 1)
        Unit of what earlier errors leave of these.
    weights : Tensor of shape (B, T, K), optional
        Of the K errors before each; None where the line between neighbours' errors takes their place.
    """

    center: Tensor
    spread: Tensor
    unit: Tensor
    weights: Tensor | None

    def moved(self, shift: Float[Tensor, "B T D"]) -> LinearState:
        """The same around forecasts that are moved, in units of their errors."""
        return replace(self, center=self.center + self.spread * shift)


@dataclass(frozen=True)
class ErrorPaths:
    """Distributions of all targets from the context, made conditional on the errors along a path.

    A path follows the autoregression of errors around the means of these distributions. What is drawn of each
    step is the distribution itself, around its mean and in the unit that earlier errors leave.

    Parameters
    ----------
    head : Head
        Turns raw numbers into distributions.
    raw : Tensor of shape (B, T, D, P)
        Raw numbers, in units of errors around the linear forecasts.
    shift : Tensor of shape (B, T, D)
        Means beyond the linear forecasts, in the same units.
    state : LinearState
        Forecasts, with the means as their centers.
    """

    head: Head
    raw: Tensor
    shift: Tensor
    state: LinearState

    @classmethod
    def of(cls, head: Head, raw: Float[Tensor, "B T D P"], state: LinearState) -> ErrorPaths:
        """Take the means of the distributions for the centers of the paths."""
        shift = center(head(raw, torch.zeros_like(raw[..., 0])))
        return cls(head, raw, shift, state.moved(shift))

    def around(self, anchor: Float[Tensor, "*b D"], step: int | None = None) -> Distribution:
        """Distributions with given means: of all targets (B, T, D), or of one on every path (B, S, D)."""
        raw, shift, unit = self.raw, self.shift, self.state.unit
        if step is not None:
            raw, shift, unit = (v[:, step, None] for v in (raw, shift, unit))
            raw = raw.expand(-1, anchor.shape[1], -1, -1)
        return self.head(raw, anchor - unit * shift, unit.expand_as(anchor))


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
    >>> from taylorformer_forecast.core.linear import LinearForecast
    >>> from taylorformer_forecast.core.window import Window
    >>> from taylorformer_forecast.models.linear_anchor import LinearAnchor
    >>> anchor = LinearAnchor(LinearForecast(4, 2))
    >>> w = Window(torch.arange(-3.0, 3.0)[None] / 4, torch.arange(6.0)[None, :, None], n_context=4)
    >>> anchor.in_order(w, anchor.look(w)).flatten().tolist()  # not fitted: the value before
    [3.0, 4.0]
    """

    weights: Tensor
    share: Tensor

    def __init__(self, forecast: LinearForecast, both_sides: bool = False) -> None:
        super().__init__()
        self.forecast, self.both_sides = forecast, both_sides
        weights = torch.zeros(forecast.horizon, N_LAGS)
        weights[:, -1] = 1.0  # before the fit errors stay as they are
        self.register_buffer("weights", weights)
        # What earlier errors leave of the next, as a fraction of its unit: on windows of the fit, on new.
        self.register_buffer("share", torch.ones(2, forecast.horizon))

    def look(self, window: Window) -> LinearState:
        """Forecasts, units and weights at the targets."""
        center, spread = self.forecast(window), self.forecast.unit(window)
        if self.both_sides:
            return LinearState(center, spread, spread, None)
        steps = torch.cat([self.weights, self.share[0 if self.training else 1, :, None]], 1)
        found = self.forecast.at_targets(torch.cat([steps[:1], steps])[None], window)
        return LinearState(center, spread, spread * found[..., -1:], found[..., :-1])

    def in_order(self, window: Window, state: LinearState) -> Float[Tensor, "B T D"]:
        """Anchors of all targets, given the true earlier ones; those not observed count as forecast."""
        assert state.weights is not None
        y, observed = window.targets
        error = ((y - state.center) * observed).transpose(1, 2)
        lags = lagged(error.flatten(0, 1), N_LAGS).unflatten(0, error.shape[:2])  # (B, D, T, K)
        return state.center + (lags * state.weights[:, None]).sum(-1).transpose(1, 2)

    def step(self, state: LinearState, drawn: Float[Tensor, "B S K D"], step: int) -> Float[Tensor, "B S D"]:
        """Anchor of one target, given the values of all before it on every path."""
        assert state.weights is not None
        before = slice(max(0, step - N_LAGS), step)
        error = drawn[:, :, before] - state.center[:, None, before]
        weights = state.weights[:, step, N_LAGS - error.shape[2] :]
        return state.center[:, None, step] + torch.einsum("bskd,bk->bsd", error, weights)

    def start(self, window: Window, overlap: int = 0) -> None:
        """Fit forecast and autoregression in closed form.

        Parameters
        ----------
        window, overlap
            See :meth:`~taylorformer_forecast.core.linear.LinearForecast.start`.
        """
        residuals = self.forecast.start(window, overlap)
        if residuals is None:
            return
        inside, outside = residuals
        horizon = self.forecast.horizon
        if self.both_sides:  # on one side of all, the error of the neighbour stays
            weights = outside.error.new_ones(horizon, 1)
            self.forecast.start_scale(inside.after(weights), outside.after(weights))
            return
        weights = outside.autoregression(N_LAGS, horizon)
        self.weights.copy_(weights)
        for share, errors in zip(self.share, residuals, strict=True):
            share.copy_((errors.after(weights).log_scale(horizon) - errors.log_scale(horizon)).exp())
        self.forecast.start_scale(inside, outside)
