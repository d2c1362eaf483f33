"""The time axis and the cycles of series of a frequency, which a batch knows of them."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd

from taylorformer_forecast.calendar.axis import TimeAxis
from taylorformer_forecast.calendar.cycles import SeasonalFeatures


@lru_cache(maxsize=16)
def axis_of(freq: Any) -> tuple[TimeAxis, pd.Index]:
    """Axis of series of a frequency, and an index of theirs."""
    index: pd.Index = pd.RangeIndex(12)
    if not isinstance(freq, int):
        index = pd.date_range("2000-01-01", periods=len(index), freq=freq)
    return TimeAxis.of([index], None if isinstance(freq, int) else freq), index


def seasonal_features(freq: Any, time_features: object, seasonal_periods: object) -> SeasonalFeatures:
    """Cycles and seasons of series of a frequency, without those that the values of a series would show."""
    axis, index = axis_of(freq)
    return SeasonalFeatures.choose(axis, [(index, np.zeros((12, 1)))], time_features, seasonal_periods)
