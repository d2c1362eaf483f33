"""Missing points of a series, and windows around them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch

from taylorformer_forecast.core.families import Components
from taylorformer_forecast.core.window import Window
from taylorformer_forecast.defaults import JOINT_POINTS
from taylorformer_forecast.sktime._mixtures import Mixture
from taylorformer_forecast.sktime._requests import ColumnSeries
from taylorformer_forecast.sktime._scale import Logarithm


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

    def mixture(self, conditionals: Components, as_pieces: bool) -> Mixture:
        """The marginal mixtures (m, K) in the units of the data, from conditionals (S, m, K).

        ``as_pieces`` gives uniform ones, whatever the family: what a logarithm needs.
        """
        found = Mixture.over_paths(conditionals)
        if as_pieces:
            return found.mapped(self.to_data)
        return found.affine(self.column.center.item(), self.column.spread.item())

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
                stop = gap.start if gap.start > start else min(gap.stop, start + max(JOINT_POINTS, n_targets))
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
        return Window(join(s.t[around], asked)[None], y[None], covariates=covariates, n_context=n_context)
