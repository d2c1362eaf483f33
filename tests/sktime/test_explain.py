"""What a forecast owes to baseline, network, covariates and past values."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from all_models import forecasters

from taylorformer_forecast.sktime import TaylorformerForecaster

INDEX = pd.date_range("2024-01-01", periods=90, freq="D")


def panel(*levels):
    rng = np.random.default_rng(0)
    week = np.sin(2 * np.pi * np.arange(90) / 7)
    frames = {
        chr(97 + k): pd.DataFrame({"y": a * (5 + week) + 0.1 * a * rng.normal(size=90)}, INDEX)
        for k, a in enumerate(levels)
    }
    return pd.concat(frames, names=["series", "day"])


@pytest.mark.parametrize("strategy", ["baseline", "corrected", "pretrained", "train"])
def test_baseline_and_network_add_up_to_what_predict_returns(strategy):
    y = panel(1.0, 10.0)
    forecaster = TaylorformerForecaster(strategy=strategy, max_steps=3, num_samples=20, random_state=0)
    forecaster.fit(y, fh=[1, 2, 3])
    before = forecaster.predict()
    parts = forecaster.explain()
    pd.testing.assert_frame_equal(parts["forecast"], before)
    pd.testing.assert_frame_equal(parts["baseline"] + parts["network"], before)
    nothing = strategy == "baseline" or (strategy == "pretrained" and forecaster.summary().weight == 0)
    assert (parts["network"] == 0).all(axis=None) == nothing
    pd.testing.assert_frame_equal(forecaster.predict(), before)


@pytest.mark.parametrize("forecaster", forecasters())
def test_the_network_is_what_its_weight_of_zero_takes_away(forecaster):
    y = panel(1.0).loc["a", "y"]
    fitted = forecaster(max_steps=3, num_samples=20, random_state=0)
    if forecaster is TaylorformerForecaster:
        fitted.set_params(strategy="train")
    parts = fitted.fit(y, fh=[1, 2]).explain()
    assert (parts["network"].abs() > 1e-6).all()
    fitted.network_.calibration.set(weight=0.0)
    pd.testing.assert_series_equal(parts["baseline"], fitted.predict(), check_names=False)


def test_the_baseline_of_an_average_has_neither_network_nor_correction():
    y = panel(1.0).loc["a", "y"]
    averaged = TaylorformerForecaster(strategy="averaged", max_steps=3, num_samples=20, random_state=0)
    parts = averaged.fit(y, fh=[1, 2, 3]).explain()
    averaged.network_.calibration.set(weight=0.0)
    averaged._correction = None
    pd.testing.assert_series_equal(parts["baseline"], averaged.predict(), check_names=False)


def test_a_column_of_x_counts_as_much_as_it_changes_the_forecast():
    rng = np.random.default_rng(1)
    X = pd.DataFrame({"used": rng.normal(size=90), "past": rng.normal(size=90)}, INDEX)
    y = 10 * X["used"].rename("y") + 0.1 * rng.normal(size=90)
    forecaster = TaylorformerForecaster(past_only=("past",), max_steps=30, num_samples=20, random_state=0)
    forecaster.fit(y[:-5], X[:-5], fh=range(1, 6))
    ahead = X[["used"]][-5:]
    parts = forecaster.explain(X=ahead)
    assert list(parts) == ["forecast", "baseline", "network", "X: used", "X: past"]
    size = parts.abs().mean()
    assert size["X: used"] > 5 * size["X: past"]
    assert np.corrcoef(parts["X: used"], ahead["used"])[0, 1] > 0.9
    still = ahead.assign(used=X["used"][:-5].mean())
    with_mean = forecaster.explain(X=still)
    assert with_mean["X: used"].abs().mean() < 0.5 * size["X: used"]


def test_lags_are_left_out_block_by_block_in_every_series():
    y = panel(1.0, 10.0)
    forecaster = TaylorformerForecaster(context_length=30, random_state=0).fit(y, fh=[1, 2])
    parts = forecaster.explain(lags=14)
    assert list(parts.columns.unique(0))[3:] == ["lags 1-14", "lags 15-28", "lags 29-30"]
    gappy = y.copy()
    for key in "ab":
        gappy.loc[(key, INDEX[-28:-14]), "y"] = np.nan
    left_out = forecaster._with(_cur_y=gappy).predict()
    pd.testing.assert_frame_equal(parts["forecast"] - parts["lags 15-28"], left_out)


def test_lags_are_left_out_of_several_columns():
    y = panel(1.0, 10.0)["y"].unstack("series")
    forecaster = TaylorformerForecaster(strategy="pretrained", context_length=30, random_state=0)
    parts = forecaster.fit(y, fh=[1, 2]).explain(lags=14)
    assert list(parts.columns.unique(1)) == ["a", "b"]
    left_out = forecaster._with(_cur_y=y.mask(np.isin(np.arange(90)[::-1], range(14))[:, None] & (y == y)))
    found = parts["forecast"] - parts["lags 1-14"]
    pd.testing.assert_frame_equal(found, left_out.predict(), check_names=False)


@pytest.mark.parametrize("lags", [0, -1, 1.5, "a"])
def test_lags_that_are_no_length_are_refused(lags):
    forecaster = TaylorformerForecaster(random_state=0).fit(panel(1.0).loc["a"], fh=1)
    message = f"^lags={lags!r}, but it must be None or a whole number, at least 1$"
    with pytest.raises(ValueError, match=message):
        forecaster.explain(lags=lags)


@pytest.mark.parametrize("strategy", ["auto", "train"])
def test_a_series_of_which_no_value_is_left_has_no_change(strategy):
    long, short = panel(1.0).loc["a"], panel(5.0).loc["a"][-12:]
    y = pd.concat({"long": long, "short": short}, names=["series", "day"])
    forecaster = TaylorformerForecaster(
        strategy=strategy, context_length=24, max_steps=2, num_samples=20, random_state=0
    )
    parts = forecaster.fit(y, fh=[1, 2]).explain(lags=12)["lags 1-12"]["y"]
    assert parts["short"].isna().all()
    assert (parts["long"].abs() > 0).all()


@pytest.mark.parametrize(
    "of_kind",
    [
        lambda X: X["a"],
        lambda X: X["a"].rename(None),
        lambda X: X.set_axis([3], axis=1),
        lambda X: X.set_axis(pd.Index([("a", 1)], tupleize_cols=False), axis=1),
    ],
    ids=["series", "without a name", "integer", "tuple"],
)
def test_x_is_explained_whatever_its_labels_are(of_kind):
    X = pd.DataFrame({"a": np.random.default_rng(1).normal(size=90)}, INDEX)
    y = 10 * X["a"].rename("y") + np.random.default_rng(2).normal(size=90)
    corrected = TaylorformerForecaster(strategy="corrected", random_state=0)
    expected, found = (
        corrected.clone().fit(y[:88], X=given[:88], fh=[1, 2]).explain(X=given[88:])
        for given in (X, of_kind(X))
    )
    assert (expected.iloc[:, 3].abs() > 0.1).all()
    np.testing.assert_allclose(found, expected)


def test_arrays_are_explained_as_series():
    y = panel(1.0).loc["a", "y"].reset_index(drop=True)
    corrected = TaylorformerForecaster(strategy="corrected", random_state=0)
    expected, found = (
        corrected.clone().fit(given, fh=[1, 2]).explain(lags=40) for given in (y, y.to_numpy())
    )
    assert list(found) == list(expected)
    np.testing.assert_allclose(found, expected)
