"""What tests of the sktime classes share."""

import pytest

from taylorformer_forecast.baselines.linear import LinearForecast


@pytest.fixture
def nothing_is_fitted(monkeypatch):
    """Leave linear forecasts at their start, so that networks without training know nothing of the data."""
    monkeypatch.setattr(LinearForecast, "start", lambda *_: None)
