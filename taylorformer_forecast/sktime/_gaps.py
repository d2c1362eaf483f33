"""Missing points of a series, and windows around them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch

from taylorformer_forecast.core.families import Components
from taylorformer_forecast.core.sampling import PathSamples
from taylorformer_forecast.defaults import JOINT_POINTS
from taylorformer_forecast.engine.mixtures import Mixture
from taylorformer_forecast.engine.windows import Series
from taylorformer_forecast.sktime._requests import ColumnSeries
from taylorformer_forecast.sktime._transforms import Floor, Logarithm, raised_by_floor


@dataclass(frozen=True)
class Gaps:
    """Missing points of one column of one instance.

    Parameters
    ----------
    column : ColumnSeries
        The observed points.
    points : Series
        The missing points, m of them; with values, standardised, if they are only hidden: to check a network.
    transform : Logarithm or Floor, optional
        What the values of the column were mapped by before they were standardised.
    """

    column: ColumnSeries
    points: Series
    transform: Logarithm | Floor | None = None

    def to_data(self, value: np.ndarray) -> np.ndarray:
        """Values of the column, standardised, in the units of the data."""
        value = self.column.loc.item() + self.column.scale.item() * value
        return value if self.transform is None else self.transform.inverse(value)

    def settled(self, samples: PathSamples) -> PathSamples:
        """Samples (S, m), lower where a floor would raise their mean."""
        if not isinstance(self.transform, Floor):
            return samples
        scale, found = self.column.scale.item(), Mixture.over_paths(samples.conditionals)
        mean = self.column.loc.item() + scale * found.mean()
        less = raised_by_floor(mean, scale * np.sqrt(found.variance())) / scale
        return samples.affine(-torch.as_tensor(less), torch.ones(()))

    def mixture(self, conditionals: Components, as_pieces: bool) -> Mixture:
        """The marginal mixtures (m, K) in the units of the data, from conditionals (S, m, K).

        ``as_pieces`` gives uniform ones, whatever the family: what a transform needs.
        """
        found = Mixture.over_paths(conditionals)
        if as_pieces:
            return found.mapped(self.to_data)
        return found.affine(self.column.loc.item(), self.column.scale.item())

    def chunks(self, n_context: int, n_targets: int) -> Iterator[tuple[slice, slice]]:
        """Yield (missing points, observed points around them) for one window after another.

        Neighbouring gaps share a window while it has place; a gap is cut only if it is very long.
        """
        seen = self.column.series.t
        before = np.searchsorted(seen, self.points.t)  # observed points before every missing one
        start = 0
        while start < len(before):
            full = start + n_targets
            wide = int(np.searchsorted(before, before[start] + n_context // 2, side="right"))
            stop = min(full, wide, len(before))
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

    def parts(self, missing: slice, around: slice, length: int) -> tuple[Series, Series]:
        """Observed points of a window, and its missing ones, the last repeated up to a length."""
        n = missing.stop - missing.start
        asked = self.points.take(missing.start + np.minimum(np.arange(length), n - 1))
        asked.y[n:] = np.nan
        return self.column.series.take(around), asked
