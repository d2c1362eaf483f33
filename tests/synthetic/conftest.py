"""Frames of equal series, and draws of one process."""

from __future__ import annotations

import numpy as np
import pytest

from taylorformer_forecast.synthetic.frame import make_frame
from taylorformer_forecast.synthetic.processes import draw_component


@pytest.fixture
def frame():
    """Make a frame of k series with the same frequency and periods."""

    def make(k, n, frequency="none", periods=(), seed=0):
        padded = np.zeros((k, 3))
        padded[:, : len(periods)] = periods
        return make_frame(np.random.default_rng(seed), n, np.full(k, frequency), padded)

    return make


@pytest.fixture
def draw(frame):
    """Draw k series of one process."""

    def make(name, k, n, frequency="none", periods=(), seed=1):
        one = frame(k, n, frequency, periods)
        return draw_component(np.random.default_rng(seed), one, np.full(k, name))

    return make
