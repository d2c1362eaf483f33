"""A linear forecast from a context, with a closed-form start: the part of a mean that needs no network.

Most of what can be known of many series is linear in their recent past. Ridge regression finds that part in a
second, and says by cross-validation how far to trust it; networks learn what remains.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn

from taylorformer_forecast.baselines.residuals import N_LAGS, Residuals
from taylorformer_forecast.baselines.ridge import FEWEST, N_BLOCKS, held_out_errors, ridge
from taylorformer_forecast.baselines.shrinkage import best_continuation, best_repetition, best_smoothing
from taylorformer_forecast.core.temporal import RANK, TOLERANCE, TemporalMap, interpolate, on_grid
from taylorformer_forecast.core.window import Window, holds_everywhere

__all__ = ["TRUST", "LinearForecast"]

TRUST = 0.5  # in what a network adds
FARTHEST = 20.0  # in deviations of the context: targets beyond are outliers or shifts that nothing foretells


class LinearForecast(nn.Module):
    """Linear map from the last L steps to H steps ahead, the same for every column.

    Nothing in it is trained by gradients: :meth:`start` fits it in closed form. Before that the last value is
    repeated.

    A network that learns from the same windows what the forecast leaves learns some of it by heart. Half of
    what it says (``trust``) is the safer forecast, less sure of itself than all of it, unless the network
    alone sees covariates that say more than the past does.

    Parameters
    ----------
    n_context, horizon : int
        Steps L and H. Times of windows are in units of the context: a step is 1 / L.
    shift : int, default=0
        Steps between the context and the first of the H.
    trust : float, default=0.5
        How much of what a network adds is taken, after training: from 0 to 1.

    Examples
    --------
    >>> import torch
    >>> from taylorformer_forecast.baselines.linear import LinearForecast
    >>> from taylorformer_forecast.core.window import Window
    >>> t = torch.arange(-7.0, 5.0).expand(50, -1) / 8
    >>> y = torch.sin(8 * t + torch.arange(50.0)[:, None])[..., None]
    >>> w = Window(t, y, n_context=8)
    >>> linear = LinearForecast(8, 4)
    >>> _ = linear.start(w)
    >>> bool(torch.allclose(linear(w), w.targets[0], atol=1e-2))
    True
    """

    log_scale: Tensor
    log_honesty: Tensor
    trust: Tensor
    stretch: Tensor
    lag_weights: Tensor
    fresh: Tensor
    neighbour: Tensor

    def __init__(self, n_context: int, horizon: int, shift: int = 0, trust: float = TRUST) -> None:
        super().__init__()
        self.n_context, self.horizon, self.shift = n_context, horizon, shift
        self.map = TemporalMap(n_context, horizon).requires_grad_(False)
        self.register_buffer("log_scale", torch.zeros(horizon))
        # Errors on new windows are larger than on those of the fit, which is all that training sees.
        self.register_buffer("log_honesty", torch.zeros(horizon))
        self.register_buffer("trust", torch.tensor(float(trust)))
        # Of the unit after training, beside the honesty: what the coverage of intervals says.
        self.register_buffer("stretch", torch.tensor(1.0))
        # How standardised errors follow from those before them; not at all before a fit.
        self.register_buffer("lag_weights", torch.zeros(horizon, N_LAGS))
        self.register_buffer("fresh", torch.ones(horizon))
        self.register_buffer("neighbour", torch.zeros(horizon))
        last = torch.zeros(n_context, horizon)
        last[-1] = 1.0
        self._write(last, torch.zeros(horizon), last[:, :1].mT)

    def forward(self, window: Window) -> Float[Tensor, "B T D"]:
        """Forecasts at the times of the targets; off the grid, on the lines between its steps."""
        past = on_grid(window, self.n_context)
        return self.at_targets(torch.cat([past[:, -1:], self.map(past, self.horizon)], 1), window)

    def unit(self, window: Window) -> Float[Tensor, "B T 1"]:
        """Unit of the errors at the times of the targets: in training of those that it was fitted to."""
        log_scale = self.log_scale
        if not self.training:
            log_scale = log_scale + self.log_honesty + self.stretch.log()
        steps = log_scale.exp()[None, :, None]
        return self.at_targets(torch.cat([steps[:, :1], steps], 1), window)

    def beyond(self, raw: Tensor) -> Tensor:
        """What a network says beyond the forecast, in training; afterwards the part of it that is trusted."""
        return raw if self.training else self.trust * raw

    def at_targets(self, steps: Float[Tensor, "#B H1 #D"], window: Window) -> Float[Tensor, "B T D"]:
        """Values at steps 0 to H, at the times of the targets; the last goes on beyond."""
        at = self._position(window)
        low = at.floor().clamp_max(self.horizon - 1)
        steps = steps.expand(len(at), -1, -1)
        index = low.long().expand(-1, -1, steps.shape[2])
        return torch.lerp(steps.gather(1, index), steps.gather(1, index + 1), (at - low).to(steps.dtype))

    def _position(self, window: Window) -> Float[Tensor, "B T 1"]:
        """Times of the targets in steps, between 0 and H."""
        at = window.times[:, window.n_context :, :1] * self.n_context - self.shift
        nearest = at.round()  # times are sums of rounded numbers
        return torch.where((at - nearest).abs() < TOLERANCE, nearest, at).clamp(0.0, self.horizon)

    def noise(
        self, window: Window, n_paths: int, generator: torch.Generator | None = None
    ) -> Float[Tensor, "B S T D"]:
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
        n_steps = int(at.max().ceil()) + 1
        size = (len(at), n_paths, N_LAGS + n_steps, window.y.shape[2])
        path = torch.randn(size, generator=generator, device=at.device, dtype=self.fresh.dtype)
        path[:, :, :N_LAGS] = 0.0
        for step in range(n_steps):
            told = torch.einsum("bskd,k->bsd", path[:, :, step : step + N_LAGS], self.lag_weights[step])
            path[:, :, step + N_LAGS] = told + self.fresh[step] * path[:, :, step + N_LAGS]
        path = path[:, :, N_LAGS:]
        low = at.floor().long()
        regular = at.shape[1] == n_steps
        if regular and holds_everywhere(at == torch.arange(n_steps, device=at.device)):
            return path
        part, high = (at - low).to(path.dtype)[:, None, :, None], (low + 1).clamp_max(n_steps - 1)

        def taken(steps: Tensor) -> Tensor:
            return path.gather(2, steps[:, None, :, None].expand(-1, n_paths, -1, size[-1]))

        # Between two steps, on the line between them, again with variance 1.
        variance = (1 - part) ** 2 + part**2 + 2 * part * (1 - part) * self.neighbour[high][:, None, :, None]
        return torch.lerp(taken(low), taken(high), part) / variance.clamp_min(1e-6).sqrt()

    @torch.no_grad()
    def start(
        self, window: Window, overlap: int = 0, age: Float[Tensor, " B"] | None = None
    ) -> tuple[Residuals, Residuals] | None:
        """Fit by ridge regression, in closed form.

        Targets farther than 20 deviations of their context from its mean are left out: least squares would
        fit these alone. The penalty, and whether forecasts are shrunk to the mean of the context or to a
        simple rule (:mod:`~taylorformer_forecast.baselines.shrinkage`), are chosen by cross-validation over
        contiguous
        blocks of windows; so is whether there is a bias, a drift that goes on whatever the context shows. Few
        windows that all rise do not tell: with fewer than four that share no targets there is none, and more
        rules are tried.

        Parameters
        ----------
        window : Window
            Training windows of one column, targets in order of time; windows one after another as they were
            cut. Where targets are not one step apart, steps are read from the lines between them.
        overlap : int, default=0
            How many windows after a window share targets with it.
        age : Tensor of shape (B,), optional
            Time from each window to the end of its series, in lengths of the series.

        Returns
        -------
        (Residuals, Residuals) or None
            Errors on the windows of the fit, and on windows that the map in question was not fitted to. None,
            and nothing is changed, where windows are too few.
        """
        window = window.to("cpu")  # in double precision, which not every device has
        assert window.observed is not None
        past = on_grid(window, self.n_context)[..., 0].double()
        y, observed = self._steps(window)
        y, observed = y.double(), observed & (y.abs() <= FARTHEST)
        usable = observed.any(1)
        whole = usable & window.observed[:, : window.n_context, 0].all(1)
        usable = whole if whole.sum() >= FEWEST else usable
        rows = usable.nonzero()[:, 0]
        past, y, observed = past[rows], y[rows], observed[rows]
        if len(past) < FEWEST:
            return None
        low_rank = isinstance(self.map.reduce, nn.Linear)
        if low_rank:  # the map lies in the span of as many windows
            pick = torch.linspace(0, len(past) - 1, min(len(past), RANK)).round().long()
            past, y, observed, rows, overlap = past[pick], y[pick], observed[pick], rows[pick], 0
        few = len(y) < N_BLOCKS * (overlap + 1)
        # What forecasts are shrunk to, side by side: the mean of the context, simple rules.
        shapes = [torch.zeros_like(past[:1].mT @ y[:1])]
        if few and not low_rank:
            shapes += [best_continuation(past, y, observed), best_smoothing(past, y, observed)]
        elif not low_rank:
            shapes.append(best_repetition(past, y, observed))
        known = observed.repeat(1, len(shapes))
        rest = y.repeat(1, len(shapes)) - past @ torch.cat(shapes, 1)

        def held_out(drift: bool) -> tuple[float, int, Tensor]:
            """Least mean squared error, what has it, and its errors."""
            errors = [
                part
                for parts in held_out_errors(past, rest, known, overlap, drift)
                for part in parts.chunk(len(shapes), 1)
            ]
            squares = [error[observed].square().mean().item() for error in errors]
            best = min(range(len(errors)), key=squares.__getitem__)
            return squares[best], best, errors[best]

        # Few windows show one rise, not that it goes on.
        found = {drift: held_out(drift) for drift in ((False,) if few else (False, True))}
        drift = min(found, key=lambda choice: found[choice][0])
        _, best, outside = found[drift]
        penalty, shape = divmod(best, len(shapes))
        fit = ridge(past, rest, known, drift)[penalty]
        weight, bias = (v.chunk(len(shapes), -1)[shape] for v in fit)
        weight = weight + shapes[shape]
        self._write(weight, bias, past)
        inside = y - past @ weight - bias
        age = None if age is None else age[rows]
        return Residuals(inside, observed, age), Residuals(outside, observed, age)

    def _steps(self, window: Window) -> tuple[Float[Tensor, "B H"], Bool[Tensor, "B H"]]:
        """Values at the steps ahead, and which of them have an observed target within half a step."""
        assert window.observed is not None
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
    def start_alone(
        self, window: Window, overlap: int = 0, age: Float[Tensor, " B"] | None = None
    ) -> tuple[Residuals, Residuals] | None:
        """Fit the forecast, the unit of its errors, and how these go together along a path.

        Parameters
        ----------
        window, overlap, age
            See :meth:`start`.

        Returns
        -------
        (Residuals, Residuals) or None
            See :meth:`start`.
        """
        residuals = self.start(window, overlap, age)
        if residuals is None:
            return None
        self.start_scale(*residuals, residuals[1].growth())
        found = residuals[1].dependence(N_LAGS, self.horizon)
        for buffer, value in zip((self.lag_weights, self.fresh, self.neighbour), found, strict=True):
            buffer.copy_(value)
        return residuals

    @torch.no_grad()
    def start_scale(self, inside: Residuals, outside: Residuals, growth: float) -> None:
        """Start the unit of errors at that of the fit, and note how much larger those ahead will be.

        They are larger as those on new windows are, and as errors have become larger or smaller of late.
        """
        fit, new = inside.log_scale(self.horizon), outside.log_scale(self.horizon)
        self.log_scale.copy_(fit)
        self.log_honesty.copy_((new - fit).clamp_min(0.0) + math.log(growth))

    @torch.no_grad()
    def _write(self, weight: Tensor, bias: Tensor, past: Tensor) -> None:
        """Put a map (L, T), made of windows (n, L), into the parameters; steps beyond T repeat the last."""
        fill = self.horizon - weight.shape[1]
        weight, bias = (F.pad(v, (0, fill), mode="replicate") for v in (weight, bias[None]))
        if isinstance(self.map.reduce, nn.Linear):
            basis = torch.linalg.qr(past.mT).Q.mT
            basis = F.pad(basis, (0, 0, 0, self.map.reduce.out_features - len(basis)))
            self.map.reduce.weight.copy_(basis)
            weight = basis @ weight
        self.map.steps.weight.copy_(weight.mT)
        self.map.steps.bias.copy_(bias[0])
