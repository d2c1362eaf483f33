"""Classes of whole series: windows of labelled series, training, probabilities."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from taylorformer_forecast.core.window import Window
from taylorformer_forecast.engine.training import fit, private_rng
from taylorformer_forecast.engine.windows import Series
from taylorformer_forecast.models.contiformer_classes import ContiFormerClasses

__all__ = ["ClassWindows", "fit_classifier", "thinned"]

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


class ClassWindows:
    """Series as windows for a classifier: every column standardised over all of them, times from 0 to 1.

    Parameters
    ----------
    series : sequence of Series
        What scales are taken from. Times count from the first row of each.
    most_points : int
        Rows of a window; longer series are averaged over neighbours (:func:`thinned`).
    """

    def __init__(self, series: Sequence[Series], most_points: int) -> None:
        self.most_points = most_points
        y = np.concatenate([s.y for s in series])
        known = ~np.isnan(y)
        count = known.sum(0).clip(1)
        self.loc = np.where(known, y, 0.0).sum(0) / count
        scale = np.sqrt(np.where(known, np.square(y - self.loc), 0.0).sum(0) / count)
        self.scale = np.where(scale > 0, scale, 1.0)
        self.span = max([float(s.t[-1] - s.t[0]) for s in series if len(s.t)] + [0.0]) or 1.0

    def scaled(self, series: Series) -> Series:
        """A series in the units of the network."""
        t = (series.t - series.t[0]) / self.span if len(series.t) else series.t
        return thinned(Series(t, (series.y - self.loc) / self.scale), self.most_points)

    def stack(self, series: Sequence[Series], labels: Tensor | None = None) -> Window:
        """Scaled series side by side, filled up with rows that were not observed, and their classes."""
        dtype = torch.get_default_dtype()
        n = max(1, *(len(s.t) for s in series))
        t = torch.zeros(len(series), n + 1, dtype=dtype)
        y = torch.full((len(series), n + 1, len(self.loc)), torch.nan, dtype=dtype)
        for row, one in enumerate(series):
            t[row, : len(one.t)] = torch.as_tensor(one.t)
            y[row, : len(one.t)] = torch.as_tensor(one.y)
        if labels is not None:
            y[:, n] = labels[:, None].to(dtype)
        return Window(t, y, n_context=n)

    def probabilities(self, net: ContiFormerClasses, series: Sequence[Series]) -> np.ndarray:
        """Probabilities of the classes, shape (n, n_classes)."""
        parts = []
        scaled = [self.scaled(one) for one in series]
        with torch.no_grad():
            for start in range(0, len(scaled), SERIES_AT_ONCE):
                parts.append(net(self.stack(scaled[start : start + SERIES_AT_ONCE])).probs.double())
        return torch.cat(parts).numpy()


class _LabelledBatches:
    """Endless random batches of series; of each a random part of the rows is hidden."""

    def __init__(
        self, windows: ClassWindows, series: Sequence[Series], labels: Tensor, batch_size: int, hide: float
    ) -> None:
        self.windows, self.hide = windows, hide
        self.series, self.labels = [windows.scaled(one) for one in series], labels
        self.batch_size = min(batch_size, len(series))

    def __iter__(self) -> Iterator[Window]:
        while True:
            for chunk in torch.randperm(len(self.series)).split(self.batch_size):
                window = self.windows.stack([self.series[i] for i in chunk], self.labels[chunk])
                shown = torch.rand(window.t.shape) >= self.hide * torch.rand(len(chunk), 1)
                shown[:, window.n_context :] = True
                yield Window(
                    window.t, window.y, window.observed & shown[..., None], n_context=window.n_context
                )


def fit_classifier(
    series: Sequence[Series],
    labels: np.ndarray,
    n_classes: int,
    *,
    most_points: int,
    hide: float,
    batch_size: int,
    seed: int,
    network: Mapping[str, Any],
    training: Mapping[str, Any],
) -> tuple[ContiFormerClasses, ClassWindows, dict[str, float]]:
    """Train a ContiFormer for the classes of series.

    Parameters
    ----------
    series : sequence of Series
        Series of any lengths and times, NaN where missing.
    labels : int ndarray of shape (n,)
        Numbers of their classes.
    n_classes : int
        Number of classes.
    most_points : int
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
    ContiFormerClasses, ClassWindows, dict
        The network in evaluation mode, what cuts its windows, steps taken and the last loss.
    """
    windows = ClassWindows(series, most_points)
    with private_rng(seed):
        net = ContiFormerClasses(n_classes, len(windows.loc), **network)
        batches: Any = _LabelledBatches(windows, series, torch.as_tensor(labels), batch_size, hide)
        record = fit(net, batches, **training)
    return net, windows, record
