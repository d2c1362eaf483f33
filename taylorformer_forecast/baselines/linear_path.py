"""The linear baseline along a path: forecasts from the context, and what earlier errors say of the next."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from taylorformer_forecast.baselines.base import Neighbourhood, Placed, given
from taylorformer_forecast.baselines.linear import LinearBaseline
from taylorformer_forecast.baselines.neighbour import NeighbourBaseline
from taylorformer_forecast.baselines.residuals import Residuals, lagged
from taylorformer_forecast.core.neighbours import gather_points
from taylorformer_forecast.core.window import Window
from taylorformer_forecast.defaults import N_ERROR_LAGS


@dataclass(frozen=True)
class LinearState:
    """Linear forecasts at the targets of windows.

    Parameters
    ----------
    loc : Tensor of shape (B, T, D)
        Forecasts.
    scale : Tensor of shape (B, T, 1)
        Scale of what remains.
    weights : Tensor of shape (B, T, K), optional
        Of the K errors before each, where errors are carried on in order of time.
    context : Tensor of shape (B, L, D), optional
        Values of the context, where errors are read at neighbours.
    """

    loc: Tensor
    scale: Tensor
    weights: Tensor | None = None
    context: Tensor | None = None


class LinearPathBaseline(LinearBaseline):
    """Linear forecast from the context, plus an autoregression of the errors made on the path so far.

    The forecast of every step comes straight from the context, so that errors do not accumulate along a path.

    Parameters
    ----------
    n_context, horizon, shift : int
        See :class:`~taylorformer_forecast.baselines.linear.LinearBaseline`.
    carries : bool, default=True
        Whether errors are carried on. They are not on irregular times: the autoregression is one from step to
        step of a grid, and where points are closer it would let paths explode.

    Examples
    --------
    >>> import torch
    >>> from taylorformer_forecast.baselines.linear_path import LinearPathBaseline
    >>> from taylorformer_forecast.core.window import Window
    >>> w = Window(torch.arange(-3.0, 3.0)[None] / 4, torch.arange(6.0)[None, :, None], n_context=4)
    >>> loc, scale = LinearPathBaseline(4, 2).teacher_forced(w, None)
    >>> loc.flatten().tolist()  # not fitted: the value before
    [3.0, 4.0]
    """

    weights: Tensor

    def __init__(self, n_context: int, horizon: int, shift: int = 0, *, carries: bool = True) -> None:
        super().__init__(n_context, horizon, shift)
        self.carries_errors = carries
        weights = torch.zeros(horizon, N_ERROR_LAGS)
        weights[:, -1] = float(carries)  # before the fit errors stay as they are
        self.register_buffer("weights", weights)

    def settle(self, inside: Residuals, outside: Residuals) -> None:
        """Set the autoregression of errors, and the scale of what it leaves."""
        weights = self.weights
        if self.carries_errors:
            weights.copy_(outside.autoregression(N_ERROR_LAGS, self.horizon))
        self._fit_scale(inside.after(weights), outside.after(weights))

    def _like(self) -> LinearPathBaseline:
        return type(self)(self.n_context, self.horizon, self.shift, carries=self.carries_errors).to(
            self.log_scale
        )

    def encode(self, window: Window, n_paths: int) -> LinearState:
        """Forecasts, scales and weights at the targets."""
        steps = self.own_of("weights", window)
        steps = torch.cat([steps[:, :1], steps], 1)
        return LinearState(self(window), self.scales(window), self.at_targets(steps, window))

    def teacher_forced(
        self, window: Window, neighbourhood: Neighbourhood | None, added: Tensor | None = None
    ) -> Placed:
        """Location and scale of all targets; earlier ones that were not observed count as forecast."""
        state = self.encode(window, 1)
        assert state.weights is not None
        y, observed = window.targets
        error = y - state.loc if added is None else y - state.loc - added
        error = (error * observed).transpose(1, 2)
        lags = lagged(error.flatten(0, 1), N_ERROR_LAGS).unflatten(0, error.shape[:2])  # (B, D, T, K)
        return state.loc + (lags * state.weights[:, None]).sum(-1).transpose(1, 2), state.scale

    def scale_at(self, state: LinearState, step: int) -> Float[Tensor, "B 1 1"]:
        """Scale of one target."""
        return state.scale[:, step, None]

    def at(self, state: LinearState, step: int, drawn: Tensor, neighbourhood: Neighbourhood | None) -> Placed:
        """Location of one target on every path, and its scale."""
        assert state.weights is not None
        before = slice(max(0, step - N_ERROR_LAGS), step)
        error = drawn[:, :, before] - state.loc[:, None, before]
        weights = state.weights[:, step, N_ERROR_LAGS - error.shape[2] :]
        loc = state.loc[:, None, step] + torch.einsum("bskd,bk->bsd", error, weights)
        return loc, self.scale_at(state, step)


class LinearTwoSidedBaseline(LinearBaseline):
    """Linear forecast from the context, plus the line between the errors at both neighbours in time.

    For targets in any order, where points look to both sides.

    Parameters
    ----------
    n_context, horizon, shift : int
        See :class:`~taylorformer_forecast.baselines.linear.LinearBaseline`.
    """

    def __init__(self, n_context: int, horizon: int, shift: int = 0) -> None:
        super().__init__(n_context, horizon, shift)
        self.between = NeighbourBaseline(both_sides=True)

    def settle(self, inside: Residuals, outside: Residuals) -> None:
        """Set the scale of errors: on one side of all known points, the error of the neighbour stays."""
        weights = outside.error.new_ones(self.horizon, 1)
        self._fit_scale(inside.after(weights), outside.after(weights))

    def encode(self, window: Window, n_paths: int) -> LinearState:
        """Forecasts and scales at the targets."""
        return LinearState(self(window), self.scales(window), context=window.y[:, : window.n_context])

    def error_between(self, state: LinearState, seen: Neighbourhood | None) -> Float[Tensor, "B M D"]:
        """Error on the line between neighbours; at points of the context there is none."""
        assert state.context is not None
        seen = given(seen, self)
        forecast = torch.cat([state.context, state.loc], 1)
        there = gather_points(forecast, seen.found.index)  # shared by all paths of a target
        error = (seen.near - there) * seen.found.valid
        return self.between.expand(Neighbourhood(seen.found, error, torch.zeros_like(seen.slopes)))

    def teacher_forced(
        self, window: Window, neighbourhood: Neighbourhood | None, added: Tensor | None = None
    ) -> Placed:
        """Location and scale of all targets, given true values at their neighbours."""
        state = self.encode(window, 1)
        return state.loc + self.error_between(state, neighbourhood), state.scale

    def at(self, state: LinearState, step: int, drawn: Tensor, neighbourhood: Neighbourhood | None) -> Placed:
        """Location of one target on every path, and its scale."""
        error = self.error_between(state, neighbourhood)
        return state.loc[:, None, step] + error, state.scale[:, step, None]
