"""What is counted for frequencies of dates."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from darts import TimeSeries
from quiet import QUIET

from taylorformer_forecast.calendar.axis import TimeAxis
from taylorformer_forecast.darts import TaylorformerModel
from taylorformer_forecast.sktime import TaylorformerForecaster


@pytest.mark.parametrize("freq", ["WOM-2TUE", "LWOM-FRI"])
def test_weekdays_of_every_month_are_steps_of_a_month(freq):
    index = pd.date_range("2000-01-03", periods=84, freq=freq)
    axis = TimeAxis.of([index])
    np.testing.assert_array_equal(axis.numbers(index), np.arange(84))
    assert axis.usual_cycles() == ("year",)
    assert axis.cycle_steps("year") == pytest.approx(12)


@pytest.mark.parametrize("freq", ["WOM-2TUE", "LWOM-FRI"])
def test_weekdays_of_every_month_are_forecast_by_both_hosts(freq):
    index = pd.date_range("2000-01-03", periods=84, freq=freq)
    y = pd.Series(10 + np.random.default_rng(0).normal(size=12)[np.arange(84) % 12], index)
    past = TimeSeries.from_times_and_values(index[:72], y.to_numpy()[:72], freq=freq)
    found = TaylorformerModel(24, 12, random_state=0, pl_trainer_kwargs=QUIET).fit(past).predict(12)
    assert found.time_index.equals(index[72:])
    np.testing.assert_allclose(found.values()[:, 0], y[72:], atol=0.2)
    if freq.startswith("WOM"):  # of the others, sktime's cutoff is more than pandas can do
        forecast = TaylorformerForecaster().fit(y[:72], fh=np.arange(1, 13)).predict()
        assert forecast.index.equals(index[72:])
        np.testing.assert_allclose(forecast, y[72:], atol=0.2)
