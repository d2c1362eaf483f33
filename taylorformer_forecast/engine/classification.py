"""Classes of whole series: windows, scores by a linear baseline, training of the network, probabilities."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from taylorformer_forecast.baselines.ridge import fit_shrunk
from taylorformer_forecast.core.window import Window
from taylorformer_forecast.defaults import (
    CLASSIFIER_TIMES,
    FARTHEST_READING,
    FEW_READINGS,
    LATE_START,
)
from taylorformer_forecast.engine.covariates import mean_and_deviation
from taylorformer_forecast.engine.state import private_rng
from taylorformer_forecast.engine.training import data_name, fit
from taylorformer_forecast.engine.windows import Series
from taylorformer_forecast.models.contiformer_classes import ContiFormerClasses

SERIES_AT_ONCE = 64  # series whose probabilities are computed together


def thinned(series: Series, most: int) -> Series:
    """A series of at most so many rows: rows are averaged in groups of neighbours, what is missing left out.

    Examples
    --------
    >>> import numpy as np
    >>> from taylorformer_forecast.engine.classification import thinned
    >>> from taylorformer_forecast.engine.windows import Series
    >>> found = thinned(Series(np.arange(6.0), np.array([[0.0], [2], [4], [np.nan], [6], [8]])), 2)
    >>> found.t.tolist(), found.y[:, 0].tolist()
    ([1.0, 4.5], [2.0, 7.0])
    """
    seen = ~np.isnan(series.y).all(1)
    t, y = series.t[seen], series.y[seen]
    if len(t) <= most:
        return Series(t, y)
    group = np.arange(len(t)) * most // len(t)
    starts = np.flatnonzero(np.diff(group, prepend=-1))
    known = ~np.isnan(y)
    count = np.add.reduceat(known, starts, axis=0, dtype=float)
    total = np.add.reduceat(np.where(known, y, 0.0), starts, axis=0)
    mean = np.divide(total, count, out=np.full_like(total, np.nan), where=count > 0)
    return Series(np.add.reduceat(t, starts) / np.diff(starts, append=len(t)), mean)


@dataclass(frozen=True)
class LinearScores:
    """Scores of classes that are linear in the values of a series: ridge regression to indicators of them.

    Values are read at regular times, on straight lines between those that were observed; the first and the
    last are held. What a column without any value would have is its mean, 0.

    Parameters
    ----------
    weight : Tensor of shape (L, n_classes)
        Weights of the values.
    bias : Tensor of shape (n_classes,)
        Intercepts.

    Examples
    --------
    >>> import numpy as np
    >>> import torch
    >>> from taylorformer_forecast.engine.classification import LinearScores
    >>> from taylorformer_forecast.engine.windows import Series
    >>> series = [Series(np.array([0.0, 1.0]), np.array([[v], [v]])) for v in (-1.0, -0.9, 1.0, 1.1) * 3]
    >>> scores, held_out = LinearScores.fit(series, torch.tensor([0, 0, 1, 1] * 3), 2)
    >>> scores(series[:1]).argmax(1).tolist(), tuple(held_out.shape)
    ([0], (12, 2))
    """

    weight: Float[Tensor, "L K"]
    bias: Float[Tensor, " K"]

    @classmethod
    def fit(
        cls, series: Sequence[Series], labels: Int[Tensor, " n"], n_classes: int
    ) -> tuple[LinearScores, Float[Tensor, "n K"]]:
        """Fit to scaled series; and their scores by regressions that each was left out of."""
        order = torch.randperm(len(series))
        x = cls._values(series)[order]
        y = torch.eye(n_classes, dtype=x.dtype)[labels[order]]
        known = torch.ones_like(y, dtype=torch.bool)
        found = fit_shrunk(x, y, known, [x.new_zeros(x.shape[1], n_classes)], embargo=0, intercepts=(True,))
        return cls(found.weight, found.bias), (y - found.held_out)[order.argsort()]

    def __call__(self, series: Sequence[Series]) -> Float[Tensor, "n K"]:
        """Scores of scaled series."""
        return self._values(series) @ self.weight + self.bias

    @staticmethod
    def _values(series: Sequence[Series]) -> Float[Tensor, "n L"]:
        """Values at regular times, columns one after another."""
        grid = np.linspace(0.0, 1.0, CLASSIFIER_TIMES)
        values = np.zeros((len(series), series[0].y.shape[1], len(grid)))
        for number, one in enumerate(series):
            for column, y in enumerate(one.y.T):
                known = ~np.isnan(y)
                if known.any():
                    values[number, column] = np.interp(grid, one.t[known], y[known])
        return torch.as_tensor(values).flatten(1)


class ClassWindows:
    """Series as windows for a classifier: every column standardised over all of them, times from 0 to 1.

    Few values far outside all others, as codes for missing ones are, have no part in the scale. They count as
    the farthest that is possible, and so do values of new series beyond those of the fit.

    Parameters
    ----------
    series : sequence of Series
        What scales are taken from.
    most_points : int
        Rows of a window; longer series are averaged over neighbours (:func:`thinned`).
    common_clock : bool or None
        Whether times count from the earliest row of all series, or from the first row of each. None: from
        the earliest, if the median of the first rows is at most a quarter of the longest series later.
    """

    def __init__(self, series: Sequence[Series], most_points: int, common_clock: bool | None) -> None:
        self.most_points = most_points
        values = np.concatenate([s.y for s in series])
        self.low, self.high = _usual_range(values)
        usual = (values >= self.low) & (values <= self.high)
        self.loc, self.scale = mean_and_deviation(np.where(usual, values, np.nan))
        first, last = (np.array([s.t[k] for s in series if len(s.t)] or [0.0]) for k in (0, -1))
        longest = float((last - first).max())
        if common_clock is None:
            common_clock = float(np.median(first) - first.min()) <= LATE_START * longest
        self.start = float(first.min()) if common_clock else None
        self.span = (longest if self.start is None else float(last.max()) - self.start) or 1.0

    def scaled(self, series: Series) -> Series:
        """A series in the units of the network."""
        t = series.t
        if len(t):
            t = (t - (t[0] if self.start is None else self.start)) / self.span
            if t[0] > 1 or t[-1] < 0:
                raise ValueError(
                    "a series of X has no times in common with those of the fit, where the same time means "
                    "the same in all series: fit with common_clock=False"
                )
        y = series.y.clip(self.low, self.high)
        return thinned(Series(t, (y - self.loc) / self.scale), self.most_points)

    def stack(self, series: Sequence[Series], scores: Tensor, labels: Tensor | None = None) -> Window:
        """Scaled series side by side, filled up with rows that were not observed.

        The only target has the scores of the classes as covariates, and maybe the class as its value.
        """
        dtype = torch.get_default_dtype()
        n = max(1, *(len(s.t) for s in series))
        t = torch.zeros(len(series), n + 1, dtype=dtype)
        y = torch.full((len(series), n + 1, len(self.loc)), torch.nan, dtype=dtype)
        covariates = torch.zeros(len(series), n + 1, scores.shape[1], dtype=dtype)
        covariates[:, n] = scores.to(dtype)
        for row, one in enumerate(series):
            t[row, : len(one.t)] = torch.as_tensor(one.t)
            y[row, : len(one.t)] = torch.as_tensor(one.y)
        if labels is not None:
            y[:, n] = labels[:, None].to(dtype)
        return Window(t, y, covariates=covariates, n_context=n)


def _usual_range(values: Float[np.ndarray, "n P"]) -> tuple[np.ndarray, np.ndarray]:
    """Smallest and largest value of every column that is no error, if errors are few; else of all values."""
    known = np.isfinite(values).any(0)
    values = np.where(known, values, 0.0)
    middle = np.nanmedian(values, 0)
    away = np.abs(values - middle)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a column of equal values has no deviation
        reach = FARTHEST_READING * np.nanmedian(np.where(away > 0, away, np.nan), 0)
    few = (away > reach).sum(0) <= FEW_READINGS * np.isfinite(values).sum(0)
    reach = np.where(few, reach, np.inf)
    return np.fmax(np.nanmin(values, 0), middle - reach), np.fmin(np.nanmax(values, 0), middle + reach)


class _LabelledBatches:
    """Endless random batches of series; of each a random part of the rows is hidden."""

    def __init__(
        self,
        windows: ClassWindows,
        series: Sequence[Series],
        scores: Tensor,
        labels: Tensor,
        batch_size: int,
        hide: float,
    ) -> None:
        self.windows, self.series, self.scores, self.labels = windows, series, scores, labels
        self.batch_size, self.hide = min(int(batch_size), len(series)), hide
        self.n_batches = math.ceil(len(series) / self.batch_size)

    def __iter__(self) -> Iterator[Window]:
        while True:
            for chunk in torch.randperm(len(self.series)).split(self.batch_size):
                series = [self.series[i] for i in chunk]
                window = self.windows.stack(series, self.scores[chunk], self.labels[chunk])
                shown = torch.rand(window.t.shape) >= self.hide * torch.rand(len(chunk), 1)
                shown[:, window.n_context :] = True
                yield replace(window, observed=window.observed & shown[..., None])


@dataclass(frozen=True)
class FittedClassifier:
    """A trained network with what it needs around it.

    Parameters
    ----------
    network : ContiFormerClasses
        The network, in evaluation mode.
    windows : ClassWindows
        What cuts its windows.
    linear : LinearScores
        What it corrects.
    record : dict
        Steps taken and the last loss.
    """

    network: ContiFormerClasses
    windows: ClassWindows
    linear: LinearScores
    record: dict[str, float]

    def probabilities(self, series: Sequence[Series]) -> np.ndarray:
        """Probabilities of the classes, shape (n, n_classes)."""
        parts = []
        scaled = [self.windows.scaled(one) for one in series]
        with torch.no_grad():
            for start in range(0, len(scaled), SERIES_AT_ONCE):
                few = scaled[start : start + SERIES_AT_ONCE]
                parts.append(self.network(self.windows.stack(few, self.linear(few))).probs.double())
        return torch.cat(parts).numpy()


def fit_classifier(
    series: Sequence[Series],
    labels: np.ndarray,
    n_classes: int,
    *,
    most_points: int,
    common_clock: bool | None,
    hide: float,
    batch_size: int,
    seed: int,
    network: Mapping[str, Any],
    training: Mapping[str, Any],
) -> FittedClassifier:
    """Fit the linear scores of the classes of series, and train a ContiFormer that corrects them.

    In training the score of a series is that of a regression without it: the network sees scores as good as
    those of new series.

    Parameters
    ----------
    series : sequence of Series
        Series of any lengths and times, NaN where missing.
    labels : int ndarray of shape (n,)
        Numbers of their classes.
    n_classes : int
        Number of classes.
    most_points, common_clock : int, bool or None
        See :class:`ClassWindows`.
    hide : float
        Largest part of the rows of a series that is hidden in a step of the training.
    batch_size, seed : int
        Series in a step; seed of weights, batches and dropout.
    network, training : mapping
        Options of :class:`~taylorformer_forecast.models.contiformer_classes.ContiFormerClasses` and of
        :func:`~taylorformer_forecast.engine.training.fit`.

    Returns
    -------
    FittedClassifier
        What gives the probabilities of classes.
    """
    windows = ClassWindows(series, most_points, common_clock)
    scaled, numbers = [windows.scaled(one) for one in series], torch.as_tensor(labels)
    with private_rng(seed):
        linear, held_out = LinearScores.fit(scaled, numbers, n_classes)
        net = ContiFormerClasses(n_classes, len(windows.loc), **network)
        batches = _LabelledBatches(windows, scaled, held_out, numbers, batch_size, hide)
        name = data_name([labels, *(part for one in series for part in (one.t, one.y))])
        record = fit(net, batches, data=name, **training)
    return FittedClassifier(net, windows, linear, record)
