"""Windows for prediction, from the last rows of series."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from taylorformer_forecast.core.window import Window
from taylorformer_forecast.engine.windows import Series

__all__ = ["stack_contexts"]


def stack_contexts(
    contexts: Sequence[Series], n_context: int, t: np.ndarray, covariates: np.ndarray | None = None
) -> Window:
    """Windows for prediction: the last rows of each series as context, then target times.

    Parameters
    ----------
    contexts : sequence of B Series
        What is known of each window before its targets, at least one row; shorter ones are padded.
    n_context : int
        Points of the context.
    t : ndarray of shape (B, T)
        Times of the targets.
    covariates : ndarray of shape (B, T, C), optional
        Covariates of the targets.

    Returns
    -------
    Window
        In the units of the data, float64; targets are not observed.
    """

    def tail(values: np.ndarray, fill: float | None = None) -> np.ndarray:
        values = values[-n_context:]
        missing = n_context - len(values)
        padding = (
            np.repeat(values[:1], missing, 0) if fill is None else np.full((missing, *values.shape[1:]), fill)
        )
        return np.concatenate([padding, values])

    def stack(parts: list[np.ndarray], targets: np.ndarray) -> Tensor:
        return torch.as_tensor(np.concatenate([np.stack(parts), targets], 1), dtype=torch.float64)

    unknown = np.full((*t.shape, contexts[0].y.shape[1]), np.nan)
    return Window(
        stack([tail(c.t) for c in contexts], t),
        stack([tail(c.y, np.nan) for c in contexts], unknown),
        covariates=None
        if covariates is None
        else stack([tail(c.covariates) for c in contexts if c.covariates is not None], covariates),
        n_context=n_context,
    )
