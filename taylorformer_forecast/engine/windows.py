"""Windows from arrays: one or many series, of any lengths, cut into contexts and targets."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor, distributed

from taylorformer_forecast.core.scaling import Scale, least_scale, scale_window
from taylorformer_forecast.core.window import Window
from taylorformer_forecast.defaults import (
    MIN_CLOSED_FORM_WINDOWS,
    MOST_CLOSED_FORM_WINDOWS,
)

POINTS_AT_ONCE = 2**23  # of the windows that baselines are fitted to: memory grows with these


@dataclass(frozen=True)
class Series:
    """One series as arrays.

    Parameters
    ----------
    t : float64 ndarray of shape (n,)
        Times, strictly increasing.
    y : ndarray of shape (n, D)
        Values, NaN where missing. Best standardised by the caller, in float64: windows hold float32.
    covariates : ndarray of shape (n, C), optional
        Features of every point.
    number : int, default=-1
        Which of the series of the fit it is; -1 for none of them.
    """

    t: np.ndarray
    y: np.ndarray
    covariates: np.ndarray | None = None
    number: int = -1

    def take(self, rows: np.ndarray | slice) -> Series:
        """Some of the rows."""
        covariates = None if self.covariates is None else self.covariates[rows]
        return Series(self.t[rows], self.y[rows], covariates, self.number)


class WindowSource(Protocol):
    """What windows are cut from: series, or the training set of a host. Windows are named by two numbers."""

    n_context: int
    n_targets: int

    def starts(self, min_context: int, skip: float = 0.0, keep: float = 1.0) -> Tensor:
        """Windows with so long a context, whose first target lies between fractions of their series."""

    def windows(self, starts: Tensor, last: float = 1.0) -> tuple[Window, Scale | None]:
        """Scaled windows; targets beyond the fraction ``last`` of their series are hidden."""


class WindowMaker:
    """Cut scaled windows from series.

    A window is named by its series and the row of its first target. Rows before the start of the series and
    after its end are padding: present in the tensors, not observed.

    Parameters
    ----------
    series : sequence of Series
        The data.
    n_context, n_targets : int
        Points of the context and of the targets.
    time_unit : float
        Time that the networks see as 1, see :func:`~taylorformer_forecast.core.scaling.scale_window`.
    floor : float, default=0.0
        Smallest standard deviation of a context to divide by; see
        :func:`~taylorformer_forecast.core.scaling.least_scale`.
    normalise : bool, default=True
        Whether values of every window are scaled by its context at all.

    Examples
    --------
    >>> import numpy as np
    >>> from taylorformer_forecast.engine.windows import Series, WindowMaker
    >>> y = np.sin(np.arange(30.0))[:, None]
    >>> maker = WindowMaker([Series(np.arange(30.0), y)], n_context=8, n_targets=4, time_unit=8.0)
    >>> starts = maker.starts(min_context=8)
    >>> window, scale = maker.windows(starts[:5])
    >>> window.y.shape, window.n_context
    (torch.Size([5, 12, 1]), 8)
    """

    def __init__(
        self,
        series: Sequence[Series],
        n_context: int,
        n_targets: int,
        time_unit: float,
        floor: float = 0.0,
        normalise: bool = True,
    ) -> None:
        self.n_context, self.n_targets = n_context, n_targets
        self.time_unit, self.floor, self.normalise = time_unit, floor, normalise
        lengths = np.array([len(s.t) for s in series])
        self.end = torch.as_tensor(np.cumsum(lengths))
        self.begin = self.end - torch.as_tensor(lengths)
        self.t = torch.as_tensor(np.concatenate([s.t for s in series]), dtype=torch.float64)
        y = np.concatenate([s.y for s in series])
        self.y = torch.as_tensor(np.nan_to_num(y), dtype=torch.get_default_dtype())
        self.observed = torch.as_tensor(~np.isnan(y))
        numbers = torch.tensor([s.number for s in series])
        self.numbers = None if (numbers < 0).all() else numbers
        stacked = [s.covariates for s in series if s.covariates is not None]
        self.covariates = torch.as_tensor(np.concatenate(stacked), dtype=self.y.dtype) if stacked else None

    @property
    def n_covariates(self) -> int:
        """Covariates of a window."""
        return 0 if self.covariates is None else self.covariates.shape[1]

    def starts(self, min_context: int, skip: float = 0.0, keep: float = 1.0) -> Tensor:
        """Rows that may be the first target of a window.

        Parameters
        ----------
        min_context : int
            Rows that must precede it in its series.
        skip, keep : float
            The first target lies between these fractions of its series.

        Returns
        -------
        int Tensor of shape (n, 2)
            Series number and row (counted over all series).
        """
        rows = []
        for number, (begin, end) in enumerate(zip(self.begin.tolist(), self.end.tolist(), strict=True)):
            length = end - begin
            first = begin + max(min_context, math.ceil(skip * length))
            row = torch.arange(first, max(first, begin + math.floor(keep * length)))
            rows.append(torch.stack([torch.full_like(row, number), row], -1))
        return torch.cat(rows)

    def _parts(self, starts: Tensor, last: float) -> tuple[Tensor, Tensor]:
        """First row of the series of each window, and the first row that the window may not show."""
        begin, end = self.begin[starts[:, 0]], self.end[starts[:, 0]]
        return begin, begin + torch.floor((end - begin).double() * last).long()

    def whole(self, starts: Tensor, last: float = 1.0) -> Tensor:
        """Which windows hold no padding and, before the fraction ``last`` of their series, all their targets.

        Parameters
        ----------
        starts : int Tensor of shape (n, 2)
            The windows.
        last : float, default=1.0
            Targets beyond this fraction of their series are hidden.

        Returns
        -------
        bool Tensor of shape (n,)
            Whether they do.
        """
        begin, stop = self._parts(starts, last)
        return (starts[:, 1] - self.n_context >= begin) & (starts[:, 1] + self.n_targets <= stop)

    def cut(self, starts: Tensor, last: float = 1.0) -> Window:
        """Windows in the units of the series; targets beyond the fraction ``last`` of theirs are hidden."""
        index = starts[:, 1:] + torch.arange(-self.n_context, self.n_targets)
        begin, stop = (row[:, None] for row in self._parts(starts, last))
        inside = (index >= begin) & (index < stop)
        index = torch.minimum(torch.maximum(index, begin), self.end[starts[:, :1]] - 1)
        return Window(
            self.t[index],
            self.y[index],
            self.observed[index] & inside[..., None],
            None if self.covariates is None else self.covariates[index],
            None if self.numbers is None else self.numbers[starts[:, :1]].expand_as(index),
            n_context=self.n_context,
        )

    def windows(self, starts: Tensor, last: float = 1.0) -> tuple[Window, Scale]:
        """Cut scaled windows; targets beyond the fraction ``last`` of their series are hidden."""
        window = self.cut(starts, last)
        return scale_window(window, self.time_unit, least_scale(window, self.floor), normalise=self.normalise)


def fitting_windows(n_points: int, at_most: int = MOST_CLOSED_FORM_WINDOWS) -> int:
    """How many windows of so many points closed-form solutions are fitted to, at most.

    Examples
    --------
    >>> from taylorformer_forecast.engine.windows import fitting_windows
    >>> fitting_windows(100), fitting_windows(10_000), fitting_windows(10_000_000)
    (4096, 838, 32)
    """
    return min(at_most, max(MIN_CLOSED_FORM_WINDOWS, POINTS_AT_ONCE // n_points))


class Batches:
    """Endless random batches, or one pass over fixed windows; what a Lightning loader iterates over.

    In random batches windows with padding keep to themselves, if they fill a batch: on a regular grid the
    others then share their masks and neighbours, which networks work out once for the batch.

    Parameters
    ----------
    maker : WindowMaker
        Cuts the windows, or what cuts them alike.
    starts : int Tensor of shape (n, 2)
        Windows to draw from.
    batch_size : int
        Windows in a batch; a random batch has no more than there are starts.
    seed : int, optional
        Seed of the order; without one, a single pass in the order given.
    last : float, default=1.0
        Targets beyond this fraction of their series are hidden: those kept for validation.
    reorder : callable, optional
        How to order the targets: takes a window and a ``generator``, gives a window, as
        :func:`~taylorformer_forecast.core.window.shuffle_targets` does. By default they keep their order.
    past_only : int, default=0
        How many covariates, the last ones, are known of the past only: they are hidden at the targets.
    """

    def __init__(
        self,
        maker: Any,
        starts: Tensor,
        batch_size: int,
        seed: int | None = None,
        last: float = 1.0,
        reorder: Callable[..., Window] | None = None,
        past_only: int = 0,
    ) -> None:
        self.maker, self.starts, self.seed = maker, starts, seed
        self.last, self.reorder, self.past_only = last, reorder, past_only
        self.batch_size = min(int(batch_size), len(starts))
        self.groups = [starts]
        if seed is not None and self.batch_size < len(starts):
            whole = maker.whole(starts, last)
            groups = [starts[whole], starts[~whole]]
            # A small batch would count as much as a full one.
            self.groups = groups if min(map(len, groups)) >= self.batch_size else self.groups

    @property
    def n_batches(self) -> int:
        """Batches in one pass."""
        return sum(math.ceil(len(group) / self.batch_size) for group in self.groups)

    def sample(self, at_most: int = MOST_CLOSED_FORM_WINDOWS) -> tuple[Window, int]:
        """Evenly spaced windows, and how many of them after one share targets with it (the embargo)."""
        stride = -(-len(self.starts) // fitting_windows(self.maker.n_context + self.maker.n_targets, at_most))
        starts = self.starts[::stride]
        return self._windows(starts), -(-self.maker.n_targets // stride)

    def _windows(self, starts: Tensor) -> Window:
        return self.maker.windows(starts, self.last)[0].hide_covariates(self.past_only)

    def __iter__(self) -> Iterator[Window]:
        """Yield scaled windows."""
        if self.seed is None:
            return (yield from map(self._windows, self.starts.split(self.batch_size)))
        generator = torch.Generator().manual_seed(self.seed + process_rank())
        while True:
            chunks = [
                group[chunk]
                for group in self.groups
                for chunk in torch.randperm(len(group), generator=generator).split(self.batch_size)
            ]
            for number in torch.randperm(len(chunks), generator=generator).tolist():
                window = self._windows(chunks[number])
                yield window if self.reorder is None else self.reorder(window, generator=generator)


def process_rank() -> int:
    """Rank of this process in distributed training: each one draws its own batches."""
    return distributed.get_rank() if distributed.is_available() and distributed.is_initialized() else 0
