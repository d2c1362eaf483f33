"""Forecasts stay as they are while the code around them changes."""

import json

import numpy as np
import pytest
from golden.cases import CASES, FILE, forecast

KNOWN = json.loads(FILE.read_text())


@pytest.mark.parametrize("name", CASES)
def test_forecasts_are_the_recorded_ones(name):
    found, known = forecast(name).ravel(), np.array(KNOWN[name])
    # Single precision and a few steps of training: rounding may differ, in a part of the data's spread of 10.
    np.testing.assert_allclose(found, known, rtol=2e-4, atol=2e-3)


def test_no_recorded_forecast_is_left_over():
    assert set(KNOWN) == set(CASES)
