"""Columns and instances may come in any order, and values may not vary."""

import numpy as np
import pandas as pd
import pytest

from taylorformer_forecast.sktime import (
    ContiFormerClassifier,
    LAMForecaster,
    TaylorformerForecaster,
    TaylorformerImputer,
    UNNForecaster,
)

TINY = {"d_model": 8, "n_heads": 2, "max_steps": 2, "num_samples": 20, "random_state": 0}
DAYS = pd.date_range("2024", periods=120, freq="D")
Y = pd.DataFrame(np.random.default_rng(0).normal(size=(120, 2)).cumsum(0), DAYS, columns=["sales", "price"])


@pytest.mark.parametrize("model", [TaylorformerForecaster, LAMForecaster])
def test_descending_names_of_columns_change_no_forecast(model):
    strategy = {"strategy": "train"} if model is TaylorformerForecaster else {}
    forecasts = [model(**TINY, **strategy).fit(y, fh=[1, 2]).predict() for y in (Y, Y[["price", "sales"]])]
    pd.testing.assert_frame_equal(forecasts[0], forecasts[1][["sales", "price"]])


def test_instances_in_descending_order_are_joined():
    panel = pd.concat({key: Y[["sales"]] for key in "zma"}, names=["id", "day"])
    found = UNNForecaster(join="instances", **TINY).fit(panel, fh=[1]).predict()
    assert found.notna().all(axis=None)


def test_a_reversed_view_of_a_frame_is_filled():
    X = Y.copy()
    X.iloc[3] = np.nan
    filled = TaylorformerImputer(**TINY).fit_transform(X.iloc[:, ::-1])
    assert filled.notna().all(axis=None)


def test_what_does_not_vary_has_the_variance_of_its_distribution_and_no_covariance():
    y = pd.Series(7.0, DAYS)
    forecaster = TaylorformerForecaster(random_state=0).fit(y, fh=[1, 2, 3])
    covariance = forecaster.predict_var(cov=True).to_numpy()
    np.testing.assert_allclose(np.diag(covariance), forecaster.predict_var().to_numpy().ravel(), atol=1e-12)
    assert np.isfinite(covariance).all()


@pytest.mark.parametrize("labels", [[0, 1, 0, np.nan], ["a", "b", "a", None]])
def test_a_missing_label_is_an_error(labels):
    X = pd.concat({k: pd.DataFrame({"v": np.arange(9.0) + k}) for k in range(4)}, names=["i", "t"])
    with pytest.raises(ValueError, match="no label for case 3"):
        ContiFormerClassifier(max_steps=1).fit(X, np.array(labels))


def test_an_update_may_have_its_columns_in_another_order():
    t = np.arange(60.0)
    frame = pd.DataFrame({"u": t, "v": 100 - t}, pd.period_range("2000-01", periods=60, freq="M"))
    methods = ("predict", "predict_interval", "predict_quantiles", "predict_var")
    forecasts = []
    for names in (["u", "v"], ["v", "u"]):
        forecaster = TaylorformerForecaster(strategy="baseline", random_state=0).fit(frame[:50], fh=[1, 2])
        forecaster.update(frame[50:][names], update_params=False)
        forecasts.append([getattr(forecaster, method)() for method in methods])
    for one, other in zip(*forecasts, strict=True):
        pd.testing.assert_frame_equal(one, other)
