"""Anchors from a linear forecast: every target is predicted around it and the errors made before."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn

from taylorformer_forecast.core.linear import LinearForecast, lagged
from taylorformer_forecast.core.window import Window

__all__ = ["LinearAnchor"]

N_LAGS = 8  # earlier errors that the next one follows from


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
    >>> anchor.in_order(w, anchor.forecast(w)).flatten().tolist()  # not fitted: the value before
    [3.0, 4.0]
    """

    def __init__(self, forecast: LinearForecast, both_sides: bool = False) -> None:
        super().__init__()
        self.forecast = forecast
        weights = torch.zeros(N_LAGS)
        weights[-1] = 1.0  # before the fit errors stay as they are
        self.weights = None if both_sides else nn.Parameter(weights)

    def in_order(self, window: Window, center: Float[Tensor, "B T D"]) -> Float[Tensor, "B T D"]:
        """Anchors of all targets, given the true earlier ones; those not observed count as forecast."""
        assert self.weights is not None
        y, observed = window.targets
        error = ((y - center) * observed).transpose(1, 2)
        return center + (lagged(error.flatten(0, 1), N_LAGS) @ self.weights).view_as(error).transpose(1, 2)

    def step(
        self, center: Float[Tensor, "B T D"], drawn: Float[Tensor, "B S K D"], step: int
    ) -> Float[Tensor, "B S D"]:
        """Anchor of one target, given the values of all before it on every path."""
        assert self.weights is not None
        before = slice(max(0, step - N_LAGS), step)
        error = drawn[:, :, before] - center[:, None, before]
        weights = self.weights[N_LAGS - error.shape[2] :]
        return center[:, None, step] + torch.einsum("bskd,k->bsd", error, weights)

    def start(self, window: Window, overlap: int = 0) -> None:
        """Fit forecast and autoregression in closed form.

        Parameters
        ----------
        window, overlap
            See :meth:`~taylorformer_forecast.core.linear.LinearForecast.start`.
        """
        residuals = self.forecast.start(window, overlap)
        if residuals is not None:
            inside, outside = residuals
            weights = outside.autoregression(N_LAGS)
            if self.weights is not None:
                with torch.no_grad():
                    self.weights.copy_(weights)
            self.forecast.start_scale(inside.after(weights), outside.after(weights))
