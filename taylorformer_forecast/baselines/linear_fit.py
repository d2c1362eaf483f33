"""Fit of the linear baseline: ridge regression for all series together, and for each of few by itself."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn

from taylorformer_forecast.baselines.base import Baseline
from taylorformer_forecast.baselines.residuals import Residuals
from taylorformer_forecast.baselines.ridge import Contexts, Known, ShrunkFit, Steps, averaged, fit_shrunk
from taylorformer_forecast.baselines.shrinkage import (
    damped_trend,
    decaying_seasonal_naive,
    seasonal_gaps,
    seasonal_naive,
)
from taylorformer_forecast.core.temporal import TOLERANCE, TemporalMap, interpolate, on_grid
from taylorformer_forecast.core.window import Window, evenly, holds_everywhere
from taylorformer_forecast.defaults import (
    FARTHEST_TARGET,
    LEAST_SEEN,
    LOW_RANK,
    MIN_RIDGE_WINDOWS,
    MOST_OWN_MAPS,
    N_ERROR_LAGS,
    N_RIDGE_BLOCKS,
)

OWN_NUMBERS_AT_ONCE = 2**22  # of all maps of single series


@dataclass(frozen=True)
class Rows:
    """Windows that a map can be fitted to, those of one series after another.

    Parameters
    ----------
    past : Tensor of shape (n, L)
        Contexts.
    y : Tensor of shape (n, H)
        Steps ahead.
    observed : bool Tensor of shape (n, H)
        Which of these are known.
    offsets : tuple of int
        Where the windows of each series start, and the end; empty where no series has a map of its own.
    """

    past: Contexts
    y: Steps
    observed: Known
    offsets: tuple[int, ...] = ()

    def take(self, index: slice | Tensor) -> Rows:
        """Some of the windows."""
        return Rows(self.past[index], self.y[index], self.observed[index])

    def residuals(self, fit: ShrunkFit) -> tuple[Residuals, Residuals]:
        """Errors of a map on these windows, and on windows that the map in question was not fitted to."""
        inside = self.y - self.past @ fit.weight - fit.bias
        return Residuals(inside, self.observed), Residuals(fit.held_out, self.observed)


class LinearFit(Baseline):
    """Fit of a :class:`~taylorformer_forecast.baselines.linear.LinearBaseline`.

    One map is fitted to the windows of all series. Where every series has windows enough, each of up to 32
    has a map, a scale and a correlation of errors of its own. Its map is an average of that of all and of one
    that is fitted to it alone (:func:`~taylorformer_forecast.baselines.ridge.averaged`). Series differ: a
    walk says nothing of a season. Related ones share what few windows of each do not tell.

    Parameters
    ----------
    n_context, horizon : int
        Steps L and H.
    shift : int, default=0
        Steps between the context and the first of the H.

    Attributes
    ----------
    own : nn.ModuleList
        Baselines of the series of the fit by number; empty where one serves all.
    """

    map: TemporalMap
    own: nn.ModuleList
    log_scale: Tensor
    log_optimism: Tensor
    lag_weights: Tensor
    innovation_scale: Tensor
    lag_one: Tensor

    def __init__(self, n_context: int, horizon: int, shift: int = 0) -> None:
        super().__init__()
        self.n_context, self.horizon, self.shift = n_context, horizon, shift
        self.own = nn.ModuleList()
        with torch.random.fork_rng(devices=[]):  # what else is initialised does not depend on it
            self.map = TemporalMap(n_context, horizon).requires_grad_(False)
        self.seasonal = (1, 1)  # a season, and the gaps that it fills; a part of the state
        self.register_buffer("log_scale", torch.zeros(horizon))
        # Errors on new windows are larger than on those of the fit, which is all that training sees.
        self.register_buffer("log_optimism", torch.zeros(horizon))
        # How standardised errors follow from those before them; not at all before a fit.
        self.register_buffer("lag_weights", torch.zeros(horizon, N_ERROR_LAGS))
        self.register_buffer("innovation_scale", torch.ones(horizon))
        self.register_buffer("lag_one", torch.zeros(horizon))
        last, ahead = F.pad(torch.ones(1, 1), (0, 0, n_context - 1, 0)), torch.ones(1, horizon)
        self._write(ahead, torch.zeros(horizon), last)

    def mapped(self, past: Float[Tensor, "B L D"], window: Window) -> Float[Tensor, "B H D"]:
        """Forecasts of all steps by the map of each window."""
        steps = self.map(past, self.horizon)
        if window.series is not None:
            for number, own in enumerate(self.own):
                mine = (window.series[:, 0] == number)[:, None, None]
                steps = torch.where(mine, own.map(past, self.horizon), steps)  # type: ignore[operator]
        return steps

    def own_of(self, name: str, window: Window) -> Float[Tensor, "#B ..."]:
        """A buffer as it is for the series of each window."""
        shared = getattr(self, name)[None]
        if not len(self.own) or window.series is None:
            return shared
        number = window.series[:, 0]
        each = torch.cat([*(getattr(own, name)[None] for own in self.own), shared])
        return each[torch.where(number < len(self.own), number, -1)]

    @torch.no_grad()
    def fit_closed_form(self, window: Window, embargo: int = 0) -> None:
        """Fit the maps, the scales of their errors, and how these go together along a path.

        Parameters
        ----------
        window, embargo
            See :meth:`fit_map`.
        """
        found = self._fit_shared(window, embargo)
        if found is None:
            return
        rows, shared = found
        self.own = nn.ModuleList()
        self.settle(*rows.residuals(shared))
        for start, stop in pairwise(rows.offsets):
            part, own = slice(start, stop), self._like()
            mine = rows.take(part)
            fit = averaged(shrunk(mine, embargo), shared, shared.held_out[part], mine.observed)
            own._write(fit.weight, fit.bias)
            own.settle(*mine.residuals(fit))
            self.own.append(own)

    def settle(self, inside: Residuals, outside: Residuals) -> None:
        """Take the scale and the dependence of errors from those of the fit, and of new windows."""
        raise NotImplementedError

    @torch.no_grad()
    def fit_map(self, window: Window, embargo: int = 0) -> tuple[Residuals, Residuals] | None:
        """Fit the map of all series by ridge regression, in closed form.

        Targets farther than 20 deviations of their context from its mean are left out: least squares would
        fit these alone. Penalty, shrinkage target (:mod:`~taylorformer_forecast.baselines.shrinkage`) and
        intercept are chosen by cross-validation over blocks of windows, contiguous in their series. With
        fewer than four windows that share no targets there is no intercept, and more shrinkage targets are
        tried.

        Parameters
        ----------
        window : Window
            Training windows of one column, targets in order of time; windows of one series one after another
            as they were cut. Where targets are not one step apart, steps are read from the lines between.
        embargo : int, default=0
            How many windows of its series after a window share targets with it.

        Returns
        -------
        (Residuals, Residuals) or None
            Errors on the windows of the fit, and on windows that the map in question was not fitted to. None,
            and nothing is changed, where windows are too few.
        """
        found = self._fit_shared(window, embargo)
        return None if found is None else found[0].residuals(found[1])

    def _fit_shared(self, window: Window, embargo: int) -> tuple[Rows, ShrunkFit] | None:
        """Fit the map of all series, write it, and return it with the windows that it was fitted to."""
        rows, basis = self._usable(window, embargo), None
        if rows is None:
            return None
        self.seasonal = seasonal_gaps(rows.past)
        if isinstance(self.map.reduce, nn.Linear):
            # The map lies in the span of as many windows: the regression is in its coordinates.
            rows, embargo = rows.take(evenly(len(rows.y), LOW_RANK)), 0
            basis = torch.linalg.qr(rows.past.mT).Q
            rows = replace(rows, past=rows.past @ basis)
        fit = shrunk(rows, embargo, simple=basis is None)
        self._write(fit.weight, fit.bias, basis)
        return rows, fit

    def _usable(self, window: Window, embargo: int) -> Rows | None:
        """Windows that can be fitted to, those of one series after another; None if too few."""
        window = window.to("cpu")  # in double precision, which not every device has
        if window.series is not None:
            window = window.rows(window.series[:, 0].argsort(stable=True))
        past = on_grid(window, self.n_context)[..., 0].double()  # no season is known yet
        y, observed = self._steps(window)
        y, observed = y.double(), observed & (y.abs() <= FARTHEST_TARGET)
        usable, seen = observed.any(1), window.observed[:, : window.n_context, 0]
        # Contexts that reach back beyond the start of the series, or lack much, are taken only if others are
        # few. To leave out all that lack something would leave out a time: those around a missing value.
        full = usable & seen[:, 0] & (seen.double().mean(1) >= LEAST_SEEN)
        usable = full if full.sum() >= MIN_RIDGE_WINDOWS else usable
        if usable.sum() < MIN_RIDGE_WINDOWS:
            return None
        offsets = self._offsets(window.series, usable, embargo)
        return Rows(past[usable], y[usable], observed[usable], offsets)

    def _offsets(self, series: Tensor | None, usable: Tensor, embargo: int) -> tuple[int, ...]:
        """Where the windows of each series start, and the end, if every series has a map of its own."""
        if series is None or series[0, 0] < 0:
            return ()
        numbers, counts = series[usable, 0].unique_consecutive(return_counts=True)
        n_numbers = len(numbers) * self.n_context * self.horizon
        few = len(numbers) <= int(series.max()) or counts.min() < N_RIDGE_BLOCKS * (embargo + 1)
        if few or n_numbers > OWN_NUMBERS_AT_ONCE or not 1 < len(numbers) <= MOST_OWN_MAPS:
            return ()
        return (0, *counts.cumsum(0).tolist())

    def _like(self) -> LinearFit:
        """A baseline of the same kind that is not fitted."""
        return type(self)(self.n_context, self.horizon, self.shift).to(self.log_scale)

    def get_extra_state(self) -> Tensor:
        """What is no buffer, as networks are traced without its value."""
        return torch.tensor(self.seasonal)

    def set_extra_state(self, state: Tensor) -> None:
        """Take up what :meth:`get_extra_state` returned."""
        season, gap = (int(number) for number in state)
        self.seasonal = season, gap

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *args: Any) -> None:
        """Make room for as many baselines of single series as there are in the file."""
        inside = f"{prefix}own."
        numbers = {name[len(inside) :].split(".")[0] for name in state_dict if name.startswith(inside)}
        self.own = nn.ModuleList(self._like() for _ in numbers)
        super()._load_from_state_dict(state_dict, prefix, *args)

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


def shrunk(rows: Rows, embargo: int, simple: bool = True) -> ShrunkFit:
    """Ridge regression on these windows; shrinkage targets are simple forecasts, or only the mean."""
    past, y, observed = rows.past, rows.y, rows.observed
    few = len(y) < N_RIDGE_BLOCKS * (embargo + 1)
    targets = [past.new_zeros(past.shape[1], y.shape[1])]  # the mean of the context
    if few and simple:
        targets += [decaying_seasonal_naive(past, y, observed), damped_trend(past, y, observed)]
    elif simple:
        targets.append(seasonal_naive(past, y, observed))
    return fit_shrunk(past, y, observed, targets, embargo, (False,) if few else (False, True), rows.offsets)
