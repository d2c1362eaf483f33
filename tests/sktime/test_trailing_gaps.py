"""Values that are missing at the end: forecasts begin where values end, whatever rows are there."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from taylorformer_forecast.sktime import ContiFormerForecaster, LAMForecaster, TaylorformerForecaster

DAYS = pd.date_range("2024-01-01", periods=127, freq="D")
TRUTH = pd.Series(
    50 + 10 * np.sin(2 * np.pi * np.arange(127) / 7) + np.random.default_rng(0).normal(size=127), DAYS
)
ASKED = DAYS[120:]
KINDS = {
    "pretrained": lambda: TaylorformerForecaster(strategy="pretrained", random_state=0),
    "LAM": lambda: LAMForecaster(d_model=8, n_heads=2, max_steps=3, random_state=0),
    "ContiFormer": lambda: ContiFormerForecaster(d_model=8, n_heads=2, max_steps=3, random_state=0),
}


def gappy(n=14):
    y = TRUTH[:120].copy()
    y.iloc[-n:] = np.nan
    return y


def error(forecast):
    return (forecast - TRUTH[ASKED]).abs().mean()


@pytest.mark.parametrize("kind", KINDS)
def test_missing_rows_at_the_end_are_as_good_as_none(kind):
    with_rows, without = (KINDS[kind]().fit(y, fh=ASKED) for y in (gappy(), gappy().dropna()))
    assert with_rows.horizon_ == without.horizon_ == 21
    np.testing.assert_allclose(with_rows.predict(), without.predict(), rtol=0.02)
    assert error(with_rows.predict()) < 2.0


@pytest.mark.parametrize("kind", KINDS)
def test_a_column_that_ends_early_is_forecast_from_its_end(kind):
    frame = pd.DataFrame({"whole": TRUTH[:120], "late": gappy()})
    forecast = KINDS[kind]().fit(frame, fh=ASKED).predict()
    assert error(forecast["whole"]) < 2.5
    assert error(forecast["late"]) < 2.5


def test_an_update_with_missing_values_moves_the_forecast_on():
    forecaster = KINDS["pretrained"]().fit(TRUTH[:106], fh=range(1, 22))
    forecaster.update(gappy()[106:], update_params=False)
    assert error(forecaster.predict(fh=range(1, 8))) < 2.0


def test_steps_count_from_the_last_row_and_trends_go_on_over_the_gap():
    line = pd.Series(np.r_[np.arange(60.0), [np.nan] * 10], pd.period_range("2000-01", periods=70, freq="M"))
    forecast = KINDS["pretrained"]().fit(line, fh=range(1, 5)).predict()
    assert forecast.index[0] == pd.Period("2005-11", "M")
    np.testing.assert_allclose(forecast, [70, 71, 72, 73], atol=0.5)
