"""Predictive distributions of series that are forecast without a network."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from taylorformer_forecast.core.families import find_component
from taylorformer_forecast.engine.statistical import Columns, Question, answer, on_steps
from taylorformer_forecast.sktime._requests import ColumnSeries, Predictive, Request

__all__ = ["predict_without_network"]


def predict_without_network(
    requests: Sequence[Request], seasons: Sequence[float], n_paths: int, seed: int
) -> Predictive:
    """Predict all that is asked by statistical forecasts, every column by itself.

    Parameters
    ----------
    requests : sequence of Request
        One for each instance.
    seasons : sequence of float
        Lengths of cycles and seasons, in steps.
    n_paths, seed : int
        Paths S, and seed of the draw.

    Returns
    -------
    Predictive
        Rows of all requests, one after another.
    """
    questions = [_question(column, request.t) for request in requests for column in request.columns]
    answers = answer(questions, seasons, n_paths, seed)
    width = max(found.loc.shape[1] for found in answers)
    blocks, number = [], 0
    for request in requests:
        several = answers[number : number + len(request.columns)]
        number += len(request.columns)
        blocks.append(
            [np.stack(parts, -1) for parts in zip(*(_padded(a, width) for a in several), strict=True)]
        )
    paths = np.concatenate([block[0] for block in blocks], 1)
    loc, scale, weights = (
        np.moveaxis(np.concatenate([block[k] for block in blocks]), -1, 1) for k in (1, 2, 3)
    )
    return Predictive(paths, loc, scale, weights, {}, find_component("uniform"))


def _padded(found: Columns, width: int) -> tuple[np.ndarray, ...]:
    """Paths and pieces of an answer, with further pieces of weight zero."""
    missing = ((0, 0), (0, width - found.loc.shape[1]))
    loc, scale = (np.pad(part, missing, mode="edge") for part in (found.loc, found.scale))
    return found.paths, loc, scale, np.pad(found.weights, missing)


def _question(column: ColumnSeries, t: np.ndarray) -> Question:
    """A column on its grid of steps, and where on it the times lie."""
    seen = ~np.isnan(column.y[:, 0])
    times = column.series.t[seen]
    at = on_steps(times)
    if at is None:
        raise ValueError("y is no longer regular: strategy='baseline' needs equal steps, with rows missing")
    y = np.full(at[-1] + 1, np.nan)
    y[at] = column.y[seen, 0]  # as it is: standardising would round zeros and counts
    return Question(y, np.round(t - times[0]).astype(int))
