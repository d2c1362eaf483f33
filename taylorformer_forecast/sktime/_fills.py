"""What was missing in series, drawn jointly from what lies around it: from arrays to arrays."""

from __future__ import annotations

import copy
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from taylorformer_forecast.core.families import Components
from taylorformer_forecast.core.sampling import PathSamples, join_samples, sample_paths
from taylorformer_forecast.core.scaling import Scale
from taylorformer_forecast.core.window import Window
from taylorformer_forecast.engine.gaps import scale_gaps
from taylorformer_forecast.engine.training import resolve_device
from taylorformer_forecast.engine.windows import FLOOR
from taylorformer_forecast.sktime import _mixtures as mixtures
from taylorformer_forecast.sktime._logarithm import Logarithm
from taylorformer_forecast.sktime._predictive import POINT_MASS, ColumnSeries

__all__ = ["Gaps", "fill_gaps", "gap_windows", "in_random_order"]

N_ORDERS = 4  # orders in which the points of a window are drawn, each by a part of the paths
AT_ONCE = 256  # missing points that are drawn jointly
WINDOWS_AT_ONCE = 64


@dataclass(frozen=True)
class Gaps:
    """Missing points of one column of one instance.

    Parameters
    ----------
    column : ColumnSeries
        The observed points.
    t : ndarray of shape (m,)
        Times of the missing points, in steps.
    covariates : ndarray of shape (m, C), optional
        Covariates there.
    y : ndarray of shape (m, 1), optional
        Standardised values there, if they are only hidden: to check a network.
    log : Logarithm, optional
        What the values of the column were mapped by before they were standardised.
    """

    column: ColumnSeries
    t: np.ndarray
    covariates: np.ndarray | None
    y: np.ndarray | None = None
    log: Logarithm | None = None

    def to_data(self, value: np.ndarray) -> np.ndarray:
        """Values of the column, standardised, in the units of the data."""
        value = self.column.center.item() + self.column.spread.item() * value
        return value if self.log is None else self.log.inverse(value)

    def mixture(self, conditionals: Components, as_pieces: bool) -> dict[str, Any]:
        """Parameters of the marginal mixtures in the units of the data, arrays (m, K), from (S, m, K).

        ``as_pieces`` gives uniform ones, whatever the family: what a logarithm needs.
        """
        c = conditionals.map(lambda value: value.transpose(0, 1).flatten(1))
        loc, scale, shape = c.loc.numpy(), c.scale.numpy(), {k: v.numpy() for k, v in c.shape.items()}
        weights = None if c.weights is None else c.weights.numpy()
        if as_pieces:
            weights = None if weights is None else weights / len(conditionals.loc)
            pieces = mixtures.mapped(c.family, loc, scale, weights, shape, self.to_data)
            return {**dict(zip(("mu", "sigma", "weights"), pieces, strict=True)), "family": "uniform"}
        spread = self.column.spread.item()
        mu = self.column.center.item() + spread * loc
        weights = {} if weights is None else {"weights": weights}
        return {"mu": mu, "sigma": spread * scale, **weights, **shape, "family": c.family}

    @property
    def point_mass(self) -> float:
        """Scale of a value that is known, in the units of the data."""
        step = self.to_data(np.array([-0.5, 0.5]))
        return POINT_MASS * float(step[1] - step[0])

    def chunks(self, n_context: int, n_targets: int) -> Iterator[tuple[slice, slice]]:
        """Yield (missing points, observed points around them) for one window after another.

        Neighbouring gaps share a window while it has place; a gap is cut only if it is very long.
        """
        seen = self.column.series.t
        before = np.searchsorted(seen, self.t)  # observed points before every missing one
        start = 0
        while start < len(self.t):
            full = start + n_targets
            wide = int(np.searchsorted(before, before[start] + n_context // 2, side="right"))
            stop = min(full, wide, len(self.t))
            # To the end of the gap that the last point lies in, or back to the end of the gap before.
            gap = slice(
                int(np.searchsorted(before, before[stop - 1], side="left")),
                int(np.searchsorted(before, before[stop - 1], side="right")),
            )
            if stop < gap.stop:
                stop = gap.start if gap.start > start else min(gap.stop, start + max(AT_ONCE, n_targets))
            inside = before[stop - 1] - before[start]
            first = max(0, before[start] - (n_context - inside) // 2)
            last = min(len(seen), first + n_context)
            yield slice(start, stop), slice(max(0, last - n_context), last)
            start = stop

    def window(self, missing: slice, around: slice, n_context: int, length: int) -> Window:
        """One window, its context padded at the start and its targets at the end."""
        s, lack = self.column.series, n_context - (around.stop - around.start)
        n_extra = length - (missing.stop - missing.start)

        def join(seen: np.ndarray, asked: np.ndarray, fill: float | None = None) -> torch.Tensor:
            def pad(like: np.ndarray, n: int) -> np.ndarray:
                return np.repeat(like, n, 0) if fill is None else np.full((n, *like.shape[1:]), fill)

            parts = [pad(seen[:1], lack), seen, asked, pad(asked[-1:], n_extra)]
            return torch.as_tensor(np.concatenate(parts))

        asked = self.t[missing]
        hidden = np.full((len(asked), 1), np.nan) if self.y is None else self.y[missing]
        y = join(s.y[around], hidden, np.nan)
        covariates = None
        if s.covariates is not None and self.covariates is not None:
            covariates = join(s.covariates[around], self.covariates[missing])[None]
        return Window(join(s.t[around], asked)[None], y[None], None, covariates, n_context=n_context)


def gap_windows(
    gaps: list[Gaps], n_context: int, n_targets: int
) -> Iterator[tuple[list[tuple[int, slice]], Window, torch.Tensor]]:
    """Cut windows around all missing points; those of about the same size go together.

    Parameters
    ----------
    gaps : list of Gaps
        One for each column of each instance, each with at least one missing point.
    n_context, n_targets : int
        Points of the context, and missing points up to which neighbouring gaps share a window.

    Yields
    ------
    list of (int, slice), Window, int Tensor of shape (B,)
        Which of the gaps, and which of its points, every window is about; the windows; and how many of their
        targets are no padding.
    """
    groups: dict[int, list[tuple[int, slice, slice]]] = defaultdict(list)
    for i, each in enumerate(gaps):
        for missing, around in each.chunks(n_context, n_targets):
            size = 2 ** int(np.ceil(np.log2(missing.stop - missing.start)))
            groups[size].append((i, missing, around))
    for size, members in sorted(groups.items()):
        for first in range(0, len(members), WINDOWS_AT_ONCE):
            chosen = members[first : first + WINDOWS_AT_ONCE]
            windows = [gaps[i].window(missing, around, n_context, size) for i, missing, around in chosen]
            lengths = torch.tensor([missing.stop - missing.start for _, missing, _ in chosen])
            yield [(i, missing) for i, missing, _ in chosen], _stack(windows), lengths


def in_random_order(
    window: Window, lengths: torch.Tensor, n_orders: int, time_unit: float, generator: torch.Generator
) -> tuple[Window, Scale, torch.Tensor]:
    """Scale every window, its targets in several random orders, padding last: nobody sees it.

    Returns
    -------
    Window, Scale, int Tensor of shape (B * n_orders, T)
        The windows, the orders of one window next to each other; the way back to the units; the orders.
    """
    scaled, scale = scale_gaps(window.map(lambda v: v.repeat_interleave(n_orders, 0)), time_unit, FLOOR)
    place = torch.rand(len(scaled.y), scaled.n_targets, generator=generator, device=window.y.device)
    padding = torch.arange(scaled.n_targets, device=place.device)
    padding = padding >= lengths.repeat_interleave(n_orders)[:, None]
    order = (place + padding).argsort(1)
    return scaled.reorder_targets(order), scale, order


def fill_gaps(
    gaps: list[Gaps],
    net: torch.nn.Module,
    n_context: int,
    n_targets: int,
    n_paths: int,
    seed: int,
    device: str,
) -> list[PathSamples]:
    """Draw all missing points, those of one window jointly.

    Parameters
    ----------
    gaps : list of Gaps
        One for each column of each instance, each with at least one missing point.
    net : nn.Module
        The trained network.
    n_context, n_targets : int
        Points of the context, as many as windows of the training had in all, and missing points up to which
        neighbouring gaps share a window.
    n_paths : int
        Paths S.
    seed : int
        Seed of the draw.
    device : str
        Where to compute.

    Returns
    -------
    list of PathSamples
        For each of them paths (S, m) and components (S, m, K), standardised: see :meth:`Gaps.to_data`.
    """
    device = resolve_device(device)
    net = net if device == "cpu" else copy.deepcopy(net).to(device)
    generator = torch.Generator(device).manual_seed(seed)
    parts: dict[int, list[tuple[int, PathSamples]]] = defaultdict(list)
    for members, window, lengths in gap_windows(gaps, n_context, n_targets):
        samples = _draw(net, window.to(device), lengths.to(device), n_paths, float(n_context), generator)
        for row, (i, missing) in enumerate(members):
            m = slice(0, missing.stop - missing.start)
            parts[i].append((missing.start, samples.map(lambda v: v[row][:, m, 0])))  # noqa: B023
    return [
        join_samples([part for _, part in sorted(parts[i], key=lambda part: part[0])], 1)
        for i in range(len(gaps))
    ]


def _stack(windows: list[Window]) -> Window:
    """Join windows of equal shape."""

    def join(name: str) -> torch.Tensor | None:
        parts = [getattr(window, name) for window in windows]
        return None if parts[0] is None else torch.cat(parts)

    names = ("t", "y", "observed", "covariates")
    return Window(*(join(name) for name in names), n_context=windows[0].n_context)  # type: ignore[arg-type]


def _draw(net, window, lengths, n_paths, time_unit, generator) -> PathSamples:
    """Joint paths of every window, in several random orders of its targets."""
    n_windows, n = window.y.shape[0], window.n_targets
    n_orders = 1 if n == 1 else next(k for k in range(N_ORDERS, 0, -1) if n_paths % k == 0)
    window, scale, order = in_random_order(window, lengths, n_orders, time_unit, generator)
    samples = sample_paths(net, window, n_paths // n_orders, generator).to_data(scale)
    back = order.argsort(1)[:, None, :]

    def restore(value: torch.Tensor) -> torch.Tensor:
        index = back.view(len(back), 1, n, *[1] * (value.ndim - 3)).expand_as(value)
        return value.gather(2, index).reshape(n_windows, n_paths, *value.shape[2:]).cpu()

    return samples.map(restore)
