"""Fit the Gaussian process that a network is trained around, by maximum likelihood."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

from taylorformer_forecast.baselines.gaussian_process import GaussianProcessBaseline
from taylorformer_forecast.core.window import Window
from taylorformer_forecast.defaults import GAUSSIAN_PROCESS_LR
from taylorformer_forecast.engine.lightning import make_optimizer


def fit_gaussian_process(process: GaussianProcessBaseline, windows: Iterable[Window], n_steps: int) -> None:
    """Maximise the marginal likelihood of whole windows, and leave the parameters fixed.

    A handful of parameters is all there is, so that it neither needs validation nor overfits as networks do.

    Parameters
    ----------
    process : GaussianProcessBaseline
        What is fitted, in place.
    windows : iterable of Window
        Scaled windows, as the network sees them.
    n_steps : int
        Steps of Adam.
    """
    process.requires_grad_(True)
    optimizer, schedule = make_optimizer(process, GAUSSIAN_PROCESS_LR, n_steps, weight_decay=0.0)
    for window in islice(windows, n_steps):
        optimizer.zero_grad()
        process.loss(window).backward()
        optimizer.step()
        schedule.step()
    process.requires_grad_(False)
