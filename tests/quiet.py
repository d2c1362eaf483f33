"""What tests of darts models share: a trainer that prints and writes nothing, and a look at forecasts."""

from __future__ import annotations

import numpy as np

QUIET = {
    "accelerator": "cpu",
    "enable_progress_bar": False,
    "enable_model_summary": False,
    "logger": False,
    "enable_checkpointing": False,
}


def finite(forecast):
    """Whether all values of a forecast are finite."""
    return bool(np.isfinite(forecast.all_values()).all())
