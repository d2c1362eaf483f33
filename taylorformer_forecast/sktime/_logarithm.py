"""Choose for every column whether its gaps are filled on a logarithmic scale."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch

from taylorformer_forecast.baselines.gaussian_process import GaussianProcessBaseline
from taylorformer_forecast.defaults import (
    CONTEXT_FLOOR,
    LOGARITHM_BATCH,
    LOGARITHM_EVIDENCE,
    LOGARITHM_OFFSETS,
    LOGARITHM_STEPS,
    LOGARITHM_WINDOWS,
)
from taylorformer_forecast.engine.gaps import GapBatches, scale_gaps
from taylorformer_forecast.engine.windows import WindowMaker
from taylorformer_forecast.sktime._gaps import Gaps


def choose_offsets(
    nats: Callable[[Sequence[float | None]], np.ndarray], possible: Sequence[bool]
) -> list[float | None]:
    """Choose for every column whether its logarithm is taken, and of what: from slight to strong.

    Parameters
    ----------
    nats : callable
        From offsets, one for each column, to the negative log-densities of the columns, in nats.
    possible : sequence of bool
        Which columns have a logarithm.

    Returns
    -------
    list of float or None
        Offsets in units of the means; None for columns that are best left as they are.
    """
    chosen: list[float | None] = [None] * len(possible)
    open_, lowest = np.array(possible), np.zeros(len(possible))
    if not open_.any():
        return chosen
    lowest = nats(chosen)
    for offset in LOGARITHM_OFFSETS:
        found = nats([offset if go_on else old for go_on, old in zip(open_, chosen, strict=True)])
        open_ = open_ & (found < lowest - LOGARITHM_EVIDENCE)
        if not open_.any():
            break
        chosen = [offset if better else old for better, old in zip(open_, chosen, strict=True)]
        lowest = np.where(open_, found, lowest)
    return chosen


def nats_of_columns(
    columns: Sequence[Gaps], n_columns: int, length: int, n_hidden: int, n_steps: int, seed: int
) -> np.ndarray:
    """Negative log-density of every column, in nats, by a Gaussian process fitted to all.

    It is that of all observed values in the units of the data. Densities of logarithms are those of the
    values times their slope, so that columns as they are and their logarithms compare [1]_.

    Parameters
    ----------
    columns : sequence of Gaps
        Those of one instance after another.
    n_columns : int
        Columns of an instance.
    length, n_hidden : int
        Points of a window, and how many of them are hidden in training.
    n_steps : int
        Steps of the fit, at most.
    seed : int
        Of the windows.

    References
    ----------
    .. [1] Box, Cox: "An Analysis of Transformations", Journal of the Royal Statistical Society B 26 (1964)
    """
    from taylorformer_forecast.engine.gaussian_process import fit_gaussian_process

    def batches(chosen: Sequence[Gaps]) -> GapBatches:
        maker = WindowMaker(
            [gaps.column.series for gaps in chosen], length - 1, 1, float(length), CONTEXT_FLOOR
        )
        return GapBatches(maker, n_hidden, LOGARITHM_BATCH, seed)

    first = columns[0].column.series.covariates
    process = GaussianProcessBaseline(0 if first is None else first.shape[1])
    fit_gaussian_process(process, batches(columns), min(LOGARITHM_STEPS, n_steps))
    found = []
    for own in (columns[d::n_columns] for d in range(n_columns)):
        data = batches(own)
        starts = data.starts[torch.linspace(0, len(data.starts) - 1, LOGARITHM_WINDOWS).long()]
        window = data.maker.cut(starts)
        scaled, scale = scale_gaps(window, data.maker.time_unit, data.maker.floor)
        of = starts[:, 0].tolist()
        center, spread = (
            torch.tensor([getattr(own[i].column, name).item() for i in of])[:, None, None]
            for name in ("center", "spread")
        )
        bent = torch.tensor([own[i].log is not None for i in of])[:, None, None]
        # The slope of a logarithm z is exp(-z) where values were observed.
        steep = torch.where(bent, center + spread * window.y, 0.0)
        units = ((scale.scale.log() + spread.log() + steep) * window.observed).sum() / window.observed.sum()
        with torch.no_grad():
            each = process.loss(scaled) + units
        found.append(each.item() * sum(len(gaps.column.series.t) for gaps in own))
    return np.array(found)
