"""What tests of the sktime classes share."""

import pytest

from taylorformer_forecast.baselines.linear import LinearBaseline
from taylorformer_forecast.baselines.linear_path import LinearPathBaseline, LinearTwoSidedBaseline


@pytest.fixture
def nothing_is_fitted(monkeypatch):
    """Leave linear baselines as they are built: networks without training then know nothing of the data."""
    for kind in (LinearBaseline, LinearPathBaseline, LinearTwoSidedBaseline):
        monkeypatch.setattr(kind, "fit_closed_form", lambda *_: None)
