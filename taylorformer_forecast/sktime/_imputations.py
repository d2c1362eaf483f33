"""What was missing in series, drawn jointly from what lies around it: from arrays to arrays."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch

from taylorformer_forecast.core.sampling import PathSamples, join_samples, sample_paths
from taylorformer_forecast.core.scaling import Scale
from taylorformer_forecast.core.window import Window
from taylorformer_forecast.defaults import CONTEXT_FLOOR, N_IMPUTATION_ORDERS
from taylorformer_forecast.engine.contexts import stack_contexts
from taylorformer_forecast.engine.gaps import scale_gaps
from taylorformer_forecast.engine.training import on_device
from taylorformer_forecast.sktime._gaps import Gaps

WINDOWS_AT_ONCE = 64


@dataclass(frozen=True)
class Imputations:
    """What was drawn for a frame.

    Parameters
    ----------
    rows : int ndarray of shape (R,)
        Numbers of the rows in which something is missing.
    values : ndarray of shape (R, D)
        Values there, NaN where they are missing.
    n_paths : int
        Paths S.
    parts : list of (Gaps, PathSamples, int ndarray, int)
        For every column of every instance in which something is missing: what, the draws, where they belong
        in the rows, and the number of the column.
    """

    rows: np.ndarray
    values: np.ndarray
    n_paths: int
    parts: list[tuple[Gaps, PathSamples, np.ndarray, int]]

    @property
    def lost(self):
        """Which values are missing, (R, D) bool."""
        return np.isnan(self.values)

    @property
    def paths(self):
        """Paths (S, R, D) in the units of the data, through the values that are known."""
        paths = np.repeat(self.values[None], self.n_paths, 0)
        for job, sample, at, d in self.parts:
            paths[:, at, d] = job.to_data(sample.paths.numpy())
        return paths


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
            parts = [gaps[i].parts(missing, around, size) for i, missing, around in chosen]
            seen, asked = zip(*parts, strict=True)
            t, y = np.stack([a.t for a in asked]), np.stack([a.y for a in asked])
            known = [a.covariates for a in asked if a.covariates is not None]
            window = stack_contexts(seen, n_context, t, np.stack(known) if known else None, y)
            lengths = torch.tensor([missing.stop - missing.start for _, missing, _ in chosen])
            yield [(i, missing) for i, missing, _ in chosen], window, lengths


def in_random_order(
    window: Window, lengths: torch.Tensor, n_orders: int, time_unit: float, generator: torch.Generator
) -> tuple[Window, Scale, torch.Tensor]:
    """Scale every window, its targets in several random orders, padding last: nobody sees it.

    Returns
    -------
    Window, Scale, int Tensor of shape (B * n_orders, T)
        The windows, the orders of one window next to each other; the way back to the units; the orders.
    """
    scaled, scale = scale_gaps(
        window.map(lambda v: v.repeat_interleave(n_orders, 0)), time_unit, CONTEXT_FLOOR
    )
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
    net, generator, device = on_device(net, device, seed)
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


def _draw(net, window, lengths, n_paths, time_unit, generator) -> PathSamples:
    """Joint paths of every window, in several random orders of its targets."""
    n_windows, n = window.y.shape[0], window.n_targets
    n_orders = 1 if n == 1 else next(k for k in range(N_IMPUTATION_ORDERS, 0, -1) if n_paths % k == 0)
    window, scale, order = in_random_order(window, lengths, n_orders, time_unit, generator)
    samples = sample_paths(net, window, n_paths // n_orders, generator).to_data(scale)
    samples = samples.reordered(order.argsort(1))
    return samples.map(lambda value: value.reshape(n_windows, n_paths, *value.shape[2:]).cpu())
