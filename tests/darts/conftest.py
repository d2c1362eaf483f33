"""Series that tests of darts models share."""

from __future__ import annotations

import numpy as np
import pytest
from darts.utils.timeseries_generation import sine_timeseries


@pytest.fixture(scope="session")
def series():
    """Return a noisy season of one component, 72 steps."""
    noise = np.random.default_rng(0).normal(size=(72, 1))
    season = sine_timeseries(length=72, value_frequency=1 / 12)
    return season.with_values(season.values() + 0.1 * noise + 3.0).astype("float32")
