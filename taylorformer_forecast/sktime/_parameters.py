"""Types of parameters, and settings for sktime's test suite."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from os import PathLike
from typing import Any

import numpy as np

Columns = str | Sequence[Hashable] | None
Options = Mapping[str, Any] | None
Periods = str | float | Sequence[float] | None
Seed = int | np.random.RandomState | None
Source = str | PathLike[str]
TestParams = list[dict[str, Any]]

# Settings for sktime's test suite.
SMALL: dict[str, Any] = {"d_model": 4, "n_heads": 1, "max_steps": 1, "random_state": 0}
TINY: dict[str, Any] = {**SMALL, "num_samples": 3}
VALIDATED: dict[str, Any] = {"validation_split": 0.25, "update_steps": 1, "num_epochs": 1}
ONE_SEASON: dict[str, Any] = {"time_features": None, "seasonal_periods": 4}
