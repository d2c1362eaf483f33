"""Ridge regression from a context to all steps ahead: the baseline of long series.

Most of what can be known of many series is linear in their recent past. Ridge regression finds that part in a
second; networks learn what remains.
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from taylorformer_forecast.baselines.base import only_time
from taylorformer_forecast.baselines.linear_fit import LinearFit
from taylorformer_forecast.baselines.residuals import Residuals
from taylorformer_forecast.core.protocol import PathNoise
from taylorformer_forecast.core.temporal import TOLERANCE, on_grid
from taylorformer_forecast.core.window import Window, holds_everywhere
from taylorformer_forecast.defaults import N_ERROR_LAGS


class LinearBaseline(LinearFit):
    """Linear map from the last L steps to H steps ahead, one for all series and maybe one for each.

    Nothing in it is trained by gradients: :meth:`fit_closed_form` fits map, scale and correlation of the
    errors. Before that the last value is repeated.

    Parameters
    ----------
    n_context, horizon : int
        Steps L and H. Times of windows are in units of the context: a step is 1 / L.
    shift : int, default=0
        Steps between the context and the first of the H.

    Examples
    --------
    >>> import torch
    >>> from taylorformer_forecast.baselines.linear import LinearBaseline
    >>> from taylorformer_forecast.core.window import Window
    >>> t = torch.arange(-7.0, 5.0).expand(50, -1) / 8
    >>> y = torch.sin(8 * t + torch.arange(50.0)[:, None])[..., None]
    >>> w = Window(t, y, n_context=8)
    >>> linear = LinearBaseline(8, 4)
    >>> linear.fit_closed_form(w)
    >>> bool(torch.allclose(linear(w), w.targets[0], atol=1e-2))
    True
    """

    from_context = True

    def forward(self, window: Window) -> Float[Tensor, "B T D"]:
        """Forecasts at the times of the targets; off the grid, on the lines between its steps."""
        past = on_grid(window, self.n_context, self.seasonal)
        steps = self._bounded(self.mapped(past, window), past)
        return self.at_targets(torch.cat([past[:, -1:], steps], 1), window)

    def _bounded(self, steps: Float[Tensor, "B H D"], past: Float[Tensor, "B L D"]) -> Float[Tensor, "B H D"]:
        """Forecasts that leave the range of the context by its width at most, plus that again per context."""
        low, high = past.amin(1, keepdim=True), past.amax(1, keepdim=True)
        ahead = torch.arange(1, self.horizon + 1, device=past.device, dtype=past.dtype)[:, None]
        room = (high - low) * (1 + ahead / max(1, self.n_context - 1))
        return torch.minimum(torch.maximum(steps, low - room), high + room)

    def direct(self, window: Window) -> tuple[Float[Tensor, "B T D"], Float[Tensor, "B T 1"]]:
        """Forecasts, and the scale of their errors."""
        return self(window), self.scales(window)

    def scales(self, window: Window) -> Float[Tensor, "B T 1"]:
        """Scale of the errors at the times of the targets: in training of those that it was fitted to."""
        log_scale = self.own_of("log_scale", window)
        log_scale = log_scale if self.training else log_scale + self.own_of("log_optimism", window)
        steps = log_scale.exp()[..., None]
        return self.at_targets(torch.cat([steps[:, :1], steps], 1), window)

    def at_targets(self, steps: Float[Tensor, "#B H1 #D"], window: Window) -> Float[Tensor, "B T D"]:
        """Values at steps 0 to H, at the times of the targets; the last goes on beyond."""
        at = self._position(window)
        low = at.floor().clamp_max(self.horizon - 1)
        steps = steps.expand(at.shape[0], -1, -1)
        index = low.long().expand(-1, -1, steps.shape[2])
        return torch.lerp(steps.gather(1, index), steps.gather(1, index + 1), (at - low).to(steps.dtype))

    def _position(self, window: Window) -> Float[Tensor, "B T 1"]:
        """Times of the targets in steps, between 0 and H."""
        at = only_time(window, self)[:, window.n_context :, None] * self.n_context - self.shift
        nearest = at.round()  # times are sums of rounded numbers
        return torch.where((at - nearest).abs() < TOLERANCE, nearest, at).clamp(0.0, self.horizon)

    def noise(self, window: Window, n_paths: int, generator: torch.Generator | None = None) -> PathNoise:
        """Draw standard Gaussian noise that goes along a path as the errors of the forecast do.

        Parameters
        ----------
        window : Window
            Windows; their targets are in order of time.
        n_paths : int
            Paths S of each window.
        generator : torch.Generator, optional
            Source of randomness; the global one by default.

        Returns
        -------
        Tensor
            Shape (B, S, T, D). Targets beyond step H share the noise of that.
        """
        at = self._position(window)[..., 0].clamp_min(1.0) - 1  # along the steps, from 0
        n_steps = int(at.max().ceil()) + 1 if at.device.type == "cpu" else self.horizon
        size = (len(at), n_paths, N_ERROR_LAGS + n_steps, window.y.shape[2])
        path = torch.randn(size, generator=generator, device=at.device, dtype=self.lag_weights.dtype)
        path[:, :, :N_ERROR_LAGS] = 0.0
        names = "lag_weights", "innovation_scale", "lag_one"
        lag_weights, innovation_scale, lag_one = (self.own_of(name, window) for name in names)
        lag_weights = lag_weights.expand(len(at), -1, -1)
        for step in range(n_steps):
            lags = path[:, :, step : step + N_ERROR_LAGS]
            predicted = torch.einsum("bskd,bk->bsd", lags, lag_weights[:, step])
            innovation = innovation_scale[:, step, None, None] * path[:, :, step + N_ERROR_LAGS]
            path[:, :, step + N_ERROR_LAGS] = predicted + innovation
        path = path[:, :, N_ERROR_LAGS:]
        low = at.floor().long()
        regular = at.shape[1] == n_steps
        if regular and holds_everywhere(at == torch.arange(n_steps, device=at.device)):
            return path
        part, high = (at - low).to(path.dtype)[:, None, :, None], (low + 1).clamp_max(n_steps - 1)

        def taken(steps: Tensor) -> Tensor:
            return path.gather(2, steps[:, None, :, None].expand(-1, n_paths, -1, size[-1]))

        # Between two steps, on the line between them, again with variance 1.
        together = lag_one.expand(len(at), -1).gather(1, high)[:, None, :, None]
        variance = (1 - part) ** 2 + part**2 + 2 * part * (1 - part) * together
        return torch.lerp(taken(low), taken(high), part) / variance.clamp_min(1e-6).sqrt()

    def settle(self, inside: Residuals, outside: Residuals) -> None:
        """Set scales, and how standardised errors follow from those before them."""
        self._fit_scale(inside, outside)
        found = outside.dependence(N_ERROR_LAGS, self.horizon)
        for buffer, value in zip((self.lag_weights, self.innovation_scale, self.lag_one), found, strict=True):
            buffer.copy_(value)

    def _fit_scale(self, inside: Residuals, outside: Residuals) -> None:
        """Set the scale of the errors of the fit, and how much larger those on new windows are."""
        fit, new = inside.log_scale(self.horizon), outside.log_scale(self.horizon)
        self.log_scale.copy_(fit)
        self.log_optimism.copy_((new - fit).clamp_min(0.0))
