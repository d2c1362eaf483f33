"""What series are taken to be, and windows for prediction from their last rows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from taylorformer_forecast.baselines.outliers import without_outliers
from taylorformer_forecast.baselines.zeros import without_outages
from taylorformer_forecast.core.window import Window
from taylorformer_forecast.engine.windows import Series


def robust_columns(t: np.ndarray, y: np.ndarray, seasons: Sequence[float] = ()) -> np.ndarray:
    """Columns without outliers, which would spoil fits in closed form and contexts.

    Parameters
    ----------
    t : ndarray of shape (n,)
        Times in steps.
    y : ndarray of shape (n, D)
        Values, NaN where missing.
    seasons : sequence of float, optional
        Lengths of seasons, in steps.

    Returns
    -------
    ndarray of shape (n, D)
        See :func:`~taylorformer_forecast.baselines.outliers.without_outliers`, and
        :func:`~taylorformer_forecast.baselines.zeros.without_outages`.

    Examples
    --------
    >>> import numpy as np
    >>> from taylorformer_forecast.engine.contexts import robust_columns
    >>> y = np.sin(np.arange(40.0))[:, None]
    >>> y[20] = 100.0
    >>> np.argwhere(robust_columns(np.arange(40.0), y) != y).tolist()
    [[20, 0]]
    """
    # Copies in usual order: arrays of pandas may be read-only, or views that run backwards.
    times, values = (torch.as_tensor(np.array(a, order="C")) for a in (t, y))
    values = without_outages(values.T, seasons)
    columns = [without_outliers(times.double(), column, seasons) for column in values]
    return torch.stack(columns, 1).numpy()


def stack_contexts(
    contexts: Sequence[Series],
    n_context: int,
    t: np.ndarray,
    covariates: np.ndarray | None = None,
    y: np.ndarray | None = None,
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
    y : ndarray of shape (B, T, D), optional
        Known values of the targets, NaN for others; by default none is known.

    Returns
    -------
    Window
        In the units of the data, float64.
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

    y = np.full((*t.shape, contexts[0].y.shape[1]), np.nan) if y is None else y
    times, values = stack([tail(c.t) for c in contexts], t), stack([tail(c.y, np.nan) for c in contexts], y)
    numbers = torch.tensor([c.number for c in contexts])[:, None]
    series = None if (numbers < 0).all() else numbers.expand(times.shape)
    if covariates is not None:
        past = [tail(c.covariates) for c in contexts if c.covariates is not None]
        features = stack(past, covariates)
        return Window(times, values, covariates=features, series=series, n_context=n_context)
    return Window(times, values, series=series, n_context=n_context)
