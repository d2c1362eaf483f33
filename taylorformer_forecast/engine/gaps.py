"""Windows with artificial gaps: what a network that fills gaps is trained on."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from taylorformer_forecast.core.scaling import Scale, least_scale, scale_window
from taylorformer_forecast.core.window import Window
from taylorformer_forecast.defaults import SINGLE_GAPS
from taylorformer_forecast.engine.windows import WindowMaker, process_rank


def gap_mask(n_points: int, n_hidden: int, generator: torch.Generator) -> Tensor:
    """Which points of a window are hidden: single points and blocks, exactly ``n_hidden`` in all."""
    mask = torch.zeros(n_points, dtype=torch.bool)
    missing = n_hidden
    while missing > 0:
        single, size, place = torch.rand(3, generator=generator).tolist()
        length = 1 if single < SINGLE_GAPS else int((n_hidden + 1) ** size)  # short ones are more frequent
        # A block may reach beyond the ends: gaps at the start and the end of a series are filled too.
        start = int(place * (n_points + length - 1)) - length + 1
        block = torch.arange(max(0, start), min(n_points, start + length))
        block = block[~mask[block]][:missing]
        mask[block] = True
        missing -= len(block)
    return mask


def hide_gaps(window: Window, n_hidden: int, generator: torch.Generator) -> Window:
    """Make targets of random gaps, and context of the points before, between and after them.

    Parameters
    ----------
    window : Window
        Windows of points in order of time; what is context in them plays no role.
    n_hidden : int
        Points to hide in every window: single ones, and blocks of all lengths up to this.
    generator : torch.Generator
        Source of randomness.

    Returns
    -------
    Window
        Context in order of time, then the hidden points in random order: values, times and covariates moved
        together.

    Examples
    --------
    >>> import torch
    >>> from taylorformer_forecast.core.window import Window
    >>> from taylorformer_forecast.engine.gaps import hide_gaps
    >>> w = Window(torch.arange(9.0)[None], torch.arange(9.0)[None, :, None], n_context=9)
    >>> hidden = hide_gaps(w, 3, torch.Generator().manual_seed(1))
    >>> hidden.n_context, hidden.n_targets, sorted(hidden.t[0].tolist()) == w.t[0].tolist()
    (6, 3, True)
    """
    n_windows, n = window.y.shape[:2]
    mask = torch.stack([gap_mask(n, n_hidden, generator) for _ in range(n_windows)])
    in_time = (torch.arange(n) / n).expand(n_windows, n)
    order = torch.argsort(torch.where(mask, 1 + torch.rand(n_windows, n, generator=generator), in_time), 1)
    return replace(window.reorder(order), n_context=n - n_hidden)


def gaps_like(n_points: int, lengths: Sequence[int], n_hidden: int, generator: torch.Generator) -> Tensor:
    """Hide gaps whose lengths are drawn from given ones: points to check a network on.

    Parameters
    ----------
    n_points : int
        Points to choose from, in order.
    lengths : sequence of int
        Lengths to draw from; those beyond ``n_hidden`` are cut.
    n_hidden : int
        Points to hide, about.
    generator : torch.Generator
        Source of randomness.

    Returns
    -------
    bool Tensor of shape (n_points,)
        Which points are hidden; gaps do not touch, while there is place.

    Examples
    --------
    >>> import torch
    >>> from taylorformer_forecast.engine.gaps import gaps_like
    >>> int(gaps_like(100, [5], 20, torch.Generator().manual_seed(0)).sum())
    20
    """
    mask = torch.zeros(n_points, dtype=torch.bool)
    for _ in range(20 * n_hidden):
        if (missing := n_hidden - int(mask.sum())) <= 0:
            break
        which, place = torch.rand(2, generator=generator).tolist()
        length = min(lengths[int(which * len(lengths))], max(missing, n_hidden // 2), n_points)
        start = int(place * (n_points - length + 1))
        if not mask[max(0, start - 1) : start + length + 1].any():
            mask[start : start + length] = True
    return mask


def some_first(window: Window, generator: torch.Generator) -> Window:
    """Put some targets of every window first, in random order; the others stay in order of time.

    That is how forecasts are made that are conditional on known values of the future: those come first. In
    many windows none does, in none more than half of them.

    Parameters
    ----------
    window : Window
        Windows with targets in order of time.
    generator : torch.Generator
        Source of randomness.

    Returns
    -------
    Window
        The same windows, times, values and covariates moved together.

    Examples
    --------
    >>> import torch
    >>> from taylorformer_forecast.core.window import Window
    >>> from taylorformer_forecast.engine.gaps import some_first
    >>> w = Window(torch.arange(9.0)[None], torch.arange(9.0)[None, :, None], n_context=2)
    >>> some_first(w, torch.Generator().manual_seed(9)).t[0].tolist()
    [0.0, 1.0, 7.0, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0]
    """
    n_windows, n = window.y.shape[0], window.n_targets
    u = torch.rand(n_windows, 1, generator=generator)
    count = (u.square() * (n // 2 + 1)).long()
    place = torch.rand(n_windows, n, generator=generator).argsort(1).argsort(1)
    order = torch.where(place < count, place, n + torch.arange(n)).argsort(1)
    return window.reorder_targets(order)


def scale_gaps(window: Window, time_unit: float, floor: float) -> tuple[Window, Scale]:
    """Scale a window whose context lies around its targets: times are measured from its middle.

    Parameters
    ----------
    window : Window
        Windows in the units of standardised series.
    time_unit : float
        Length of the time that maps to 1.
    floor : float
        Smallest standard deviation of a context to divide by.

    Returns
    -------
    Window, Scale
        See :func:`~taylorformer_forecast.core.scaling.scale_window`.
    """
    middle = 0.5 * (window.t.amin(1, keepdim=True) + window.t.amax(1, keepdim=True))
    return scale_window(window, time_unit, least_scale(window, floor), origin=middle)


class GapBatches:
    """Endless random batches of windows with gaps; what a Lightning loader iterates over.

    Parameters
    ----------
    maker : WindowMaker
        Cuts windows; all of their points, context and targets, make one window here.
    n_hidden : int
        Points to hide in every window.
    batch_size : int
        Windows in a batch. The same part of a series may occur twice, with other gaps.
    seed : int
        Seed of windows and gaps.
    """

    def __init__(self, maker: WindowMaker, n_hidden: int, batch_size: int, seed: int) -> None:
        self.maker, self.n_hidden, self.batch_size, self.seed = maker, n_hidden, batch_size, seed
        self.starts = maker.starts(maker.n_context)
        if not len(self.starts):  # every series is shorter than a window: each fills the end of one
            self.starts = torch.stack([torch.arange(len(maker.end)), maker.end - 1], -1)

    @property
    def n_batches(self) -> int:
        """Batches with as many windows as there are."""
        return math.ceil(len(self.starts) / self.batch_size)

    def __iter__(self) -> Iterator[Window]:
        """Yield scaled windows."""
        generator = torch.Generator().manual_seed(self.seed + process_rank())
        while True:
            chosen = torch.randint(len(self.starts), (self.batch_size,), generator=generator)
            window = hide_gaps(self.maker.cut(self.starts[chosen]), self.n_hidden, generator)
            yield scale_gaps(window, self.maker.time_unit, self.maker.floor)[0]
