"""Forecasting tasks from synthetic series: what a pretrained network is trained and validated on.

A task is a window whose targets lie after the part of a series that its linear forecast was fitted to: what a
forecaster meets when it is fitted to a new series and asked for the future.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from taylorformer_forecast.baselines.base import Baseline
from taylorformer_forecast.baselines.linear import LinearBaseline
from taylorformer_forecast.calendar.cycles import phase_features
from taylorformer_forecast.core.window import Window
from taylorformer_forecast.defaults import CONTEXT_FLOOR, MAX_CYCLES, N_HARMONICS
from taylorformer_forecast.engine.windows import Batches, Series, WindowMaker
from taylorformer_forecast.synthetic import SyntheticBatch, SyntheticGenerator

__all__ = ["GivenBaseline", "Sizes", "Tasks", "draw_sizes", "join", "make_tasks"]

KNOWN = 0.9  # how often it sees those of the series
PER_SERIES = 8  # windows of one series, at most
FITTED = 300  # windows that a linear forecast is fitted to, at most


@dataclass(frozen=True)
class Sizes:
    """Sizes that the tasks of a batch share.

    Parameters
    ----------
    n_context, horizon : int
        Points of the contexts, and targets.
    n_train : int
        Points of the part that linear forecasts are fitted to.
    """

    n_context: int
    horizon: int
    n_train: int


@dataclass(frozen=True)
class Tasks:
    """Windows and the linear forecasts of their targets.

    Parameters
    ----------
    window : Window
        Scaled windows of one column, their covariates the phases of ``MAX_CYCLES`` seasons.
    loc, scale : Tensor of shape (B, T, 1)
        Forecasts, and scales of their errors.
    """

    window: Window
    loc: Tensor
    scale: Tensor

    def rows(self, index: Tensor | slice) -> Tasks:
        """Some of the tasks."""
        return Tasks(self.window.rows(index), self.loc[index], self.scale[index])

    def to(self, device: str) -> Tasks:
        """The same on a device."""
        return Tasks(self.window.to(device), self.loc.to(device), self.scale.to(device))

    def __len__(self) -> int:
        return len(self.window.y)


class GivenBaseline(Baseline):
    """Baselines of windows of many series, each fitted to its own: they are given."""

    given: Tasks

    def direct(self, window: Window) -> tuple[Tensor, Tensor]:
        """Locations and scales of the tasks."""
        return self.given.loc, self.given.scale


def draw_sizes(rng: np.random.Generator) -> Sizes:
    """Contexts, horizons and lengths of series as the defaults of the forecasters choose them."""
    horizon = round(np.exp(rng.uniform(np.log(4), np.log(97))))
    n_context = round(np.exp(rng.uniform(np.log(max(12, 0.75 * horizon)), np.log(max(64, 3 * horizon)))))
    longest = 6 * (n_context + horizon)
    n_train = round(np.exp(rng.uniform(np.log(2 * n_context), np.log(max(longest, 2.5 * n_context)))))
    return Sizes(n_context, horizon, max(n_train, 4 * horizon))


def _series(batch: SyntheticBatch, row: int, n_train: int, rng: np.random.Generator) -> Series:
    """One series, standardised by the first part, with phases of its seasons; unknown ones are 0."""
    t, y = batch.times[row], batch.values[row]
    known = (batch.periods[row] > 0) & (rng.random() < KNOWN)
    width = 2 * N_HARMONICS * MAX_CYCLES
    features = phase_features(t[:, None] / batch.periods[row, known] + batch.phases[row, known])[:, :width]
    features = np.pad(features, ((0, 0), (0, width - features.shape[1])))
    part = y[:n_train]
    center, spread = np.nanmean(part), np.nanstd(part)
    y = (y - center) / (spread if spread > 0 else 1.0)
    return Series(t, np.clip(y, -50.0, 50.0)[:, None], features)


def make_tasks(n_series: int, sizes: Sizes, seed: int) -> Tasks:
    """Make tasks of synthetic series.

    Parameters
    ----------
    n_series : int
        How many series; some may give no task, where nothing was observed.
    sizes : Sizes
        Sizes of the windows and of the training parts.
    seed : int
        Seed of everything.

    Returns
    -------
    Tasks
        Up to eight for each series, those of one series after another.
    """
    rng = np.random.default_rng(seed)
    n_context, horizon, n_train = sizes.n_context, sizes.horizon, sizes.n_train
    n_more = 2 * horizon
    parts: list[Tasks] = []
    batch = SyntheticGenerator(seed, n_series).batch(0, length=n_train + n_more)
    for row, y in enumerate(batch.values):
        if np.isfinite(y[:n_train]).sum() < n_train // 2:
            continue
        series = _series(batch, row, n_train, rng)
        past = Series(series.t[:n_train], series.y[:n_train], series.covariates[:n_train])
        unit = float(n_context)
        fitted = WindowMaker([past], n_context, horizon, unit, CONTEXT_FLOOR)
        starts = fitted.starts(max(3, n_context // 2))
        forecast = LinearBaseline(n_context, horizon).eval()
        window, embargo = Batches(fitted, starts, len(starts)).sample(FITTED)
        forecast.fit_closed_form(window, embargo)
        maker = WindowMaker([series], n_context, horizon, unit, CONTEXT_FLOOR)
        later = n_more - horizon + 1
        row = n_train + torch.as_tensor(rng.permutation(later)[:PER_SERIES])
        window, _ = maker.windows(torch.stack([torch.zeros_like(row), row], -1))
        assert window.observed is not None
        # What no forecast could predict, and what would outweigh all else.
        far = window.y.abs() > 30.0
        window = Window(
            window.t, window.y.clamp(-30, 30), window.observed & ~far, window.covariates, n_context=n_context
        )
        usable = window.observed[:, n_context:].any(1)[:, 0] & (
            window.observed[:, :n_context].sum(1)[:, 0] > 2
        )
        tasks = Tasks(window, *forecast.direct(window))
        if usable.any():
            parts.append(tasks.rows(usable.nonzero()[:, 0]))
    return join(parts)


def join(parts: list[Tasks]) -> Tasks:
    """Tasks of equal sizes as one batch."""
    first = parts[0]
    w = [p.window for p in parts]
    window = Window(
        torch.cat([x.t for x in w]),
        torch.cat([x.y for x in w]),
        torch.cat([x.observed for x in w if x.observed is not None]),
        torch.cat([x.covariates for x in w if x.covariates is not None]),
        n_context=first.window.n_context,
    )
    return Tasks(window, torch.cat([p.loc for p in parts]), torch.cat([p.scale for p in parts]))
