"""Ridge regression from a context to all steps ahead: the baseline of long series.

Most of what can be known of many series is linear in their recent past. Ridge regression finds that part in a
second; networks learn what remains.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn

from taylorformer_forecast.baselines.base import Baseline, only_time
from taylorformer_forecast.baselines.residuals import Residuals
from taylorformer_forecast.baselines.ridge import fit_shrunk
from taylorformer_forecast.baselines.shrinkage import damped_trend, decaying_seasonal_naive, seasonal_naive
from taylorformer_forecast.core.protocol import PathNoise
from taylorformer_forecast.core.temporal import TOLERANCE, TemporalMap, interpolate, on_grid
from taylorformer_forecast.core.window import Window, evenly, holds_everywhere
from taylorformer_forecast.defaults import (
    FARTHEST_TARGET,
    LOW_RANK,
    MIN_RIDGE_WINDOWS,
    N_ERROR_LAGS,
    N_RIDGE_BLOCKS,
)


class LinearBaseline(Baseline):
    """Linear map from the last L steps to H steps ahead, the same for every column.

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
    log_scale: Tensor
    log_optimism: Tensor
    lag_weights: Tensor
    innovation_scale: Tensor
    lag_one: Tensor

    def __init__(self, n_context: int, horizon: int, shift: int = 0) -> None:
        super().__init__()
        self.n_context, self.horizon, self.shift = n_context, horizon, shift
        with torch.random.fork_rng(devices=[]):  # what else is initialised does not depend on it
            self.map = TemporalMap(n_context, horizon).requires_grad_(False)
        self.register_buffer("log_scale", torch.zeros(horizon))
        # Errors on new windows are larger than on those of the fit, which is all that training sees.
        self.register_buffer("log_optimism", torch.zeros(horizon))
        # How standardised errors follow from those before them; not at all before a fit.
        self.register_buffer("lag_weights", torch.zeros(horizon, N_ERROR_LAGS))
        self.register_buffer("innovation_scale", torch.ones(horizon))
        self.register_buffer("lag_one", torch.zeros(horizon))
        last, ahead = F.pad(torch.ones(1, 1), (0, 0, n_context - 1, 0)), torch.ones(1, horizon)
        self._write(ahead, torch.zeros(horizon), last)

    def forward(self, window: Window) -> Float[Tensor, "B T D"]:
        """Forecasts at the times of the targets; off the grid, on the lines between its steps."""
        past = on_grid(window, self.n_context)
        steps = self._bounded(self.map(past, self.horizon), past)
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
        log_scale = self.log_scale if self.training else self.log_scale + self.log_optimism
        steps = log_scale.exp()[None, :, None]
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
        for step in range(n_steps):
            lags = path[:, :, step : step + N_ERROR_LAGS]
            predicted = torch.einsum("bskd,k->bsd", lags, self.lag_weights[step])
            innovation = self.innovation_scale[step] * path[:, :, step + N_ERROR_LAGS]
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
        variance = (1 - part) ** 2 + part**2 + 2 * part * (1 - part) * self.lag_one[high][:, None, :, None]
        return torch.lerp(taken(low), taken(high), part) / variance.clamp_min(1e-6).sqrt()

    @torch.no_grad()
    def fit_closed_form(self, window: Window, embargo: int = 0) -> None:
        """Fit the map, the scale of its errors, and how these go together along a path.

        Parameters
        ----------
        window, embargo
            See :meth:`fit_map`.
        """
        residuals = self.fit_map(window, embargo)
        if residuals is None:
            return
        self._fit_scale(*residuals)
        found = residuals[1].dependence(N_ERROR_LAGS, self.horizon)
        for buffer, value in zip((self.lag_weights, self.innovation_scale, self.lag_one), found, strict=True):
            buffer.copy_(value)

    def _fit_scale(self, inside: Residuals, outside: Residuals) -> None:
        """Set the scale of the errors of the fit, and how much larger those on new windows are."""
        fit, new = inside.log_scale(self.horizon), outside.log_scale(self.horizon)
        self.log_scale.copy_(fit)
        self.log_optimism.copy_((new - fit).clamp_min(0.0))

    @torch.no_grad()
    def fit_map(self, window: Window, embargo: int = 0) -> tuple[Residuals, Residuals] | None:
        """Fit the map by ridge regression, in closed form.

        Targets farther than 20 deviations of their context from its mean are left out: least squares would
        fit these alone. Penalty, shrinkage target (:mod:`~taylorformer_forecast.baselines.shrinkage`) and
        intercept are chosen by cross-validation over contiguous blocks of windows. With fewer than four
        windows that share no targets there is no intercept, and more shrinkage targets are tried.

        Parameters
        ----------
        window : Window
            Training windows of one column, targets in order of time; windows one after another as they were
            cut. Where targets are not one step apart, steps are read from the lines between them.
        embargo : int, default=0
            How many windows after a window share targets with it.

        Returns
        -------
        (Residuals, Residuals) or None
            Errors on the windows of the fit, and on windows that the map in question was not fitted to. None,
            and nothing is changed, where windows are too few.
        """
        window = window.to("cpu")  # in double precision, which not every device has
        rows = self._usable(window)
        if rows is None:
            return None
        past, y, observed = rows
        low_rank = isinstance(self.map.reduce, nn.Linear)
        basis = None
        if low_rank:  # the map lies in the span of as many windows: the regression is in its coordinates
            pick = evenly(len(past), LOW_RANK)
            past, y, observed, embargo = past[pick], y[pick], observed[pick], 0
            basis = torch.linalg.qr(past.mT).Q
            past = past @ basis
        few = len(y) < N_RIDGE_BLOCKS * (embargo + 1)
        targets = [
            past.new_zeros(past.shape[1], y.shape[1])
        ]  # of the shrinkage; the first: the mean of the context
        if few and not low_rank:
            targets += [decaying_seasonal_naive(past, y, observed), damped_trend(past, y, observed)]
        elif not low_rank:
            targets.append(seasonal_naive(past, y, observed))
        fit = fit_shrunk(past, y, observed, targets, embargo, (False,) if few else (False, True))
        self._write(fit.weight, fit.bias, basis)
        inside = y - past @ fit.weight - fit.bias
        return Residuals(inside, observed), Residuals(fit.held_out, observed)

    def _usable(
        self, window: Window
    ) -> tuple[Float[Tensor, "n L"], Float[Tensor, "n H"], Bool[Tensor, "n H"]] | None:
        """Contexts, steps ahead and which are known, of windows that can be fitted to; None if too few."""
        past = on_grid(window, self.n_context)[..., 0].double()
        y, observed = self._steps(window)
        y, observed = y.double(), observed & (y.abs() <= FARTHEST_TARGET)
        usable = observed.any(1)
        whole = usable & window.observed[:, : window.n_context, 0].all(1)
        usable = whole if whole.sum() >= MIN_RIDGE_WINDOWS else usable
        return (past[usable], y[usable], observed[usable]) if usable.sum() >= MIN_RIDGE_WINDOWS else None

    def _steps(self, window: Window) -> tuple[Float[Tensor, "B H"], Bool[Tensor, "B H"]]:
        """Values at the steps ahead, and which of them have an observed target within half a step."""
        t = window.times[..., 0]
        grid = (torch.arange(1, self.horizon + 1, device=t.device) + self.shift) / self.n_context
        targets = t[:, window.n_context :]
        same_number = targets.shape[1] == len(grid)
        if same_number and holds_everywhere((targets - grid).abs() < TOLERANCE / self.n_context):
            y, seen = window.targets
            return y[..., 0], seen[..., 0]
        # Padding after the end of a series stands at its last time, and is not observed.
        values, distance = interpolate(
            t, window.y, window.observed, grid.to(t.dtype), TOLERANCE / self.n_context
        )
        return values[..., 0], distance[..., 0] <= 0.5 / self.n_context

    @torch.no_grad()
    def _write(self, weight: Tensor, bias: Tensor, basis: Tensor | None = None) -> None:
        """Store a map (L, T), or one (K, T) from coordinates along a basis (L, K); the last step goes on."""
        fill = self.horizon - weight.shape[1]
        weight, bias = (F.pad(v, (0, fill), mode="replicate") for v in (weight, bias[None]))
        reduce = self.map.reduce
        if basis is not None and isinstance(reduce, nn.Linear):
            rank = reduce.out_features
            if basis.shape[1] > rank:  # than steps ahead: these need no more directions
                turn, weight = torch.linalg.qr(weight)
                basis = basis @ turn
            reduce.weight.copy_(F.pad(basis.mT, (0, 0, 0, rank - basis.shape[1])))
            weight = F.pad(weight, (0, 0, 0, rank - len(weight)))
        elif basis is not None:
            weight = basis @ weight
        self.map.steps.weight.copy_(weight.mT)
        self.map.steps.bias.copy_(bias[0])
