"""Predictive distributions of series that are forecast by statistics, corrected or not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from taylorformer_forecast.calendar.axis import TimeAxis
from taylorformer_forecast.core.families import find_component
from taylorformer_forecast.engine.statistical import Columns, on_steps
from taylorformer_forecast.sktime._panel import Panel
from taylorformer_forecast.sktime._requests import Predictive


def on_grids(panel: Panel, axis: TimeAxis) -> Iterator[tuple[tuple, float, np.ndarray | None]]:
    """Yield key, first time and values of every column of every instance, on its own grid of steps.

    The values are None where steps are not regular. Times are counted in steps.
    """
    times = axis.numbers(panel.stamps)
    for key, at, values in panel.parts():
        for column in values.T:
            seen = ~np.isnan(column)
            t = times[at[seen]]
            steps = on_steps(t)
            y = None
            if steps is not None:
                y = np.full(steps[-1] + 1, np.nan)
                y[steps] = column[seen]
            yield key, t[0], y


def as_predictive(answers: Sequence[Columns], n_columns: int) -> Predictive:
    """Answers of all columns of one instance after another, as rows.

    Parameters
    ----------
    answers : sequence of Columns
        One for each column of each instance.
    n_columns : int
        Columns of an instance.

    Returns
    -------
    Predictive
        Rows of all instances, one after another.
    """
    rows = np.cumsum([0, *(len(found.loc) for found in answers[::n_columns])])
    shape = rows[-1], n_columns, max(found.loc.shape[1] for found in answers)
    paths = np.empty((len(answers[0].paths), *shape[:2]))
    loc, scale, weights = np.empty(shape), np.empty(shape), np.zeros(shape)
    for number, found in enumerate(answers):
        instance, d = divmod(number, n_columns)
        at, n_pieces = slice(*rows[instance : instance + 2]), found.loc.shape[1]
        paths[:, at, d], weights[at, d, :n_pieces] = found.paths, found.weights
        for every, own in ((loc, found.loc), (scale, found.scale)):
            every[at, d, :n_pieces], every[at, d, n_pieces:] = own, own[:, -1:]
    return Predictive(paths, loc, scale, weights, {}, find_component("uniform"))
