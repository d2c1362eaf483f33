"""Panels and hierarchies: one network for all instances, each forecast from its own last stamp."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sktime.forecasting.base import ForecastingHorizon
from sktime.forecasting.model_evaluation import evaluate
from sktime.forecasting.reconcile import ReconcilerForecaster
from sktime.performance_metrics.forecasting import MeanAbsoluteError
from sktime.performance_metrics.forecasting.probabilistic import CRPS, LogLoss, PinballLoss
from sktime.split import ExpandingWindowSplitter
from sktime.transformations.hierarchical.aggregate import Aggregator
from sktime.transformations.hierarchical.reconcile import Reconciler

from taylorformer_forecast.sktime import ContiFormerForecaster, LAMForecaster, TaylorformerForecaster


def tiny(forecaster=TaylorformerForecaster, **changes):
    settings = {"d_model": 4, "n_heads": 1, "max_steps": 1, "num_samples": 8, "random_state": 0}
    settings |= {"distribution": "normal", "num_epochs": None}
    if forecaster is TaylorformerForecaster:
        settings["strategy"] = "train"  # however short the series
    return forecaster(**{**settings, **changes})


FORECASTERS = [TaylorformerForecaster, LAMForecaster, ContiFormerForecaster]


def stamps(kind, start, n):
    if kind == "integers":
        return pd.RangeIndex(int(start), int(start) + n)
    first = pd.Period("2000-01", "M") + int(start)
    if kind == "periods":
        return pd.period_range(first, periods=n, freq="M")
    return pd.date_range(first.to_timestamp(), periods=n, freq="MS")


def panel(kind="periods", lengths=None, columns=("y",), seed=0):
    """Instances of these lengths, each starting three steps after the one before, at levels 10, 20, ..."""
    parts = {}
    for i, (key, n) in enumerate((lengths or {"a": 30, "b": 40, "c": 25}).items()):
        rng = np.random.default_rng(seed + i)
        values = 10 * (i + 1) + rng.normal(size=(n, len(columns)))
        parts[key] = pd.DataFrame(values, stamps(kind, 3 * i, n), list(columns))
    return pd.concat(parts, names=["shop", "time"])


@pytest.fixture(scope="module")
def y():
    return panel()


@pytest.fixture(scope="module", params=FORECASTERS)
def fitted(y, request):
    return tiny(request.param).fit(y)


@pytest.mark.parametrize("kind", ["periods", "dates", "integers"])
def test_steps_count_from_the_last_stamp_of_each_instance(kind):
    y = panel(kind)
    forecast = tiny().fit(y).predict(fh=[-2, 0, 1, 5])
    assert forecast.index.names == ["shop", "time"]
    for key, n, start in (("a", 30, 0), ("b", 40, 3), ("c", 25, 6)):
        expected = stamps(kind, start, n + 5)[[n - 3, n - 1, n, n + 4]]
        assert list(forecast.loc[key].index) == list(expected)
    assert np.isfinite(forecast.to_numpy()).all()


@pytest.mark.parametrize("kind", ["periods", "dates"])
def test_an_absolute_stamp_may_be_past_for_one_instance_and_future_for_another(kind):
    y = panel(kind)
    stamp = stamps(kind, 28, 8)  # a ends at 29, b at 42, c at 30
    forecast = tiny(time_features=("year",)).fit(y).predict(fh=stamp)
    assert len(forecast) == 3 * 8
    assert all(list(forecast.loc[key].index) == list(stamp) for key in "abc")
    assert np.isfinite(forecast.to_numpy()).all()


@pytest.mark.parametrize("strategy", ["auto", "corrected", "zero_shot", "train"])
def test_the_horizon_is_counted_from_the_end_of_all_whatever_the_names_of_those_that_ended_before(strategy):
    """It was counted from the end of the first instance by name, even if that closed long ago."""
    days, rng = pd.date_range("2023-01-01", periods=307, freq="D"), np.random.default_rng(0)
    shop = pd.DataFrame({"y": 50 + 5 * np.sin(np.arange(300) * 2 * np.pi / 7) + rng.normal(size=300)})
    shop = shop.set_axis(days[:300])
    fh, fitted = ForecastingHorizon(days[300:], is_relative=False), []
    for name in "az":
        y = pd.concat({name: shop[:225], "shop": shop}, names=["shop", "day"])
        fitted.append(tiny(strategy=strategy, distribution="studentt").fit(y, fh=fh))
        found = fitted[-1].predict()
        assert list(found.loc[name].index) == list(found.loc["shop"].index) == list(days[300:])
        np.testing.assert_allclose(found["y"], 50, atol=10)
    assert [one.horizon_ for one in fitted] == [8, 8]
    assert fitted[0].strategy_ == fitted[1].strategy_
    assert fitted[0].context_length_ == fitted[1].context_length_
    if strategy in ("corrected", "zero_shot"):  # no network is trained on windows in the order of names
        forecasts = [one.predict_quantiles(alpha=[0.1, 0.9]).loc["shop"] for one in fitted]
        np.testing.assert_allclose(*forecasts, rtol=1e-3)


def test_a_panel_of_which_some_ended_after_fh_is_trained_for_the_steps_of_the_others():
    days = pd.date_range("2023-01-01", periods=300, freq="D")
    y = pd.DataFrame({"y": np.sin(np.arange(300) / 3)}, days)
    fh = ForecastingHorizon(days[200:230], is_relative=False)
    for early, late in ("ab", "ba"):
        panel = pd.concat({early: y[:200], late: y}, names=["shop", "day"])
        forecaster = TaylorformerForecaster(strategy="baseline").fit(panel, fh=fh)
        assert forecaster.horizon_ == 30
        assert len(forecaster.predict().loc[early]) == 30


def test_all_predictive_methods_agree(fitted):
    distribution = fitted.predict_proba(fh=[-1, 1, 2])
    pd.testing.assert_frame_equal(fitted.predict(fh=[-1, 1, 2]), distribution.mean())
    pd.testing.assert_frame_equal(fitted.predict_var(fh=[-1, 1, 2]), distribution.var())
    quantiles = fitted.predict_quantiles(fh=[-1, 1, 2], alpha=[0.1, 0.9])
    pd.testing.assert_frame_equal(quantiles, distribution.quantile([0.1, 0.9]), check_exact=True)
    intervals = fitted.predict_interval(fh=[-1, 1, 2], coverage=0.8)
    np.testing.assert_allclose(intervals, quantiles, rtol=1e-12)
    covariance = fitted.predict_var(fh=[-1, 1, 2], cov=True)
    assert list(covariance.columns) == [("y", *row) for row in covariance.index]
    np.testing.assert_allclose(np.diag(covariance), distribution.var()["y"])


def test_the_distribution_is_indexed_like_a_frame(fitted):
    distribution, mean = fitted.predict_proba(fh=[1, 2]), fitted.predict(fh=[1, 2])
    for key in ("b", [("b", pd.Period("2003-08", "M"))], ["a", "c"], mean.index[:3]):
        np.testing.assert_allclose(distribution.loc[key].mean(), mean.loc[key])
    paths = fitted.predict_proba(fh=[1, 2], marginal=False).sample(8)
    assert paths.index.nlevels == 3
    assert len(paths) == 8 * 6


def test_metrics_score_the_distribution(fitted):
    forecast = fitted.predict_proba(fh=[1, 2])
    truth = fitted.predict(fh=[1, 2]) + 0.1
    for metric in (CRPS(), LogLoss(), PinballLoss()):
        predicted = (
            fitted.predict_quantiles(fh=[1, 2], alpha=[0.1, 0.9])
            if isinstance(metric, PinballLoss)
            else forecast
        )
        assert np.isfinite(metric(truth, predicted))


def test_a_panel_of_one_is_forecast_like_the_series_alone():
    y = panel(lengths={"a": 30})
    alone, among = tiny().fit(y.loc["a"]), tiny().fit(y)
    pd.testing.assert_frame_equal(
        among.predict_quantiles(fh=[-3, 1, 20]).loc["a"],
        alone.predict_quantiles(fh=[-3, 1, 20]),
        check_names=False,
    )


def test_an_instance_that_is_too_short_to_train_on_is_forecast_with_the_others():
    forecaster = tiny(context_length=20).fit(panel(lengths={"new": 1, "young": 5, "old": 40}))
    forecast = forecaster.predict(fh=[0, 1, 5])
    assert np.isfinite(forecast.to_numpy()).all()
    assert forecast.loc["new"].index[0] == pd.Period("2000-01", "M")


@pytest.mark.parametrize("make", [TaylorformerForecaster, LAMForecaster])
def test_an_instance_that_is_shorter_than_a_context_is_forecast_by_its_season(make):
    """Its context began with its first value, again and again: 80 % intervals covered a fifth."""
    index = pd.date_range("2024-01-01", periods=624, freq="h")
    wave = 10 + 3 * np.sin(np.arange(624) * np.pi / 12)
    y = pd.DataFrame(
        {key: wave + np.random.default_rng(k).normal(0, 0.5, 624) for k, key in enumerate(["a", "b", "c"])},
        index,
    )
    parts = {"a": y[["a"]][:600], "b": y[["b"]][550:600], "c": y[["c"]][564:600]}
    known = pd.concat([part.set_axis(["y"], axis=1) for part in parts.values()], keys=parts)
    options = {"strategy": "pretrained"} if make is TaylorformerForecaster else {"max_steps": 5}
    forecaster = make(random_state=0, **options).fit(known, fh=range(1, 25))
    assert forecaster.context_length_ > 100
    found = forecaster.predict_quantiles(alpha=[0.1, 0.5, 0.9])
    for key in "bc":
        truth, own = y[key][600:].to_numpy(), found.loc[key].to_numpy()
        assert np.abs(own[:, 1] - truth).mean() < 0.8  # 1.5, and .4 by the truth itself
        assert ((own[:, 0] <= truth) & (truth <= own[:, 2])).mean() > 0.5


def test_instances_come_back_in_their_order():
    y = panel()
    for keys in (["b", "a", "c"], ["c", "b"]):
        shuffled = pd.concat([y.loc[[key]] for key in keys])
        assert list(tiny().fit(shuffled).predict(fh=[1]).index.get_level_values(0)) == keys


def test_seasons_are_looked_for_in_the_longest_instance():
    t = np.arange(120)
    long = pd.DataFrame({"y": np.sin(2 * np.pi * t / 7)}, pd.RangeIndex(120))
    y = pd.concat({"young": long.iloc[:4], "old": long}, names=["shop", "time"])
    assert tiny(max_steps=0).fit(y).seasonal_periods_ == (7.0,)


def test_gaps_in_some_instances_and_columns():
    y = panel(columns=("u", "v"))
    y.iloc[25:30, 0] = np.nan
    y.iloc[35:60, 1] = np.nan
    assert np.isfinite(tiny().fit(y).predict(fh=[-1, 1, 2]).to_numpy()).all()
    y.loc["b", "v"] = np.nan
    with pytest.raises(ValueError, match="y column 'v' of instance 'b' has no observed values"):
        tiny().fit(y)


def test_irregular_dates_in_every_instance():
    parts = {}
    for i in range(2):
        seconds = np.random.default_rng(i).integers(3000, 200_000, 30).cumsum()
        index = pd.Timestamp("2020-01-01") + pd.to_timedelta(seconds, unit="s")
        parts[f"sensor {i}"] = pd.DataFrame({"y": np.sin(np.arange(30.0))}, index)
    y = pd.concat(parts, names=["shop", "time"])
    forecast = tiny().fit(y).predict(fh=[-1, 0, 1])
    for key, part in parts.items():
        assert list(forecast.loc[key].index[:2]) == list(part.index[-2:])
        assert forecast.loc[key].index[2] > part.index[-1]


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (lambda y: y.iloc[[0, 40]], ValueError, "y has 1 observation, at least 3 are needed"),
        (lambda y: pd.concat([y, y.iloc[:1]]), TypeError, "Unsupported input data type"),
        (lambda y: y.replace(y.iloc[3, 0], np.inf), ValueError, "y has infinite values in column 'y'"),
    ],
    ids=["too short", "duplicates", "infinite"],
)
def test_unfit_panels_are_refused(y, change, error, message):
    with pytest.raises(error, match=message):
        tiny().fit(change(y))


# --- exogenous columns ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def X():
    return panel(lengths={"a": 42, "b": 52, "c": 37}, columns=("price", "promotion"), seed=9)


def ahead(X, y):
    return X.drop(y.index)


def test_every_instance_has_its_own_exogenous_columns(y, X):
    forecaster = tiny().fit(y, X=X.loc[y.index])
    one = forecaster.predict(fh=[1, 2], X=ahead(X, y))
    changed = ahead(X, y)
    changed.loc[["b"]] += 1.0
    other = forecaster.predict(fh=[1, 2], X=changed)
    assert list((one == other)["y"].groupby("shop").all()) == [True, False, True]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda X: X.drop("b"), "X has no rows of instance 'b'"),
        (lambda X: X.drop(X.loc[["b"]].index[1]), r"X of instance 'b' has no row for 2003-09 \(1 missing\)"),
        (lambda X: X.loc["a"], r"X has 1 index level\(s\), but y has 2 in the fit"),
    ],
    ids=["instance", "row", "levels"],
)
def test_missing_exogenous_rows_are_named(y, X, change, message):
    forecaster = tiny().fit(y, X=X.loc[y.index])
    before = forecaster.predict(fh=[1, 2], X=ahead(X, y))
    with pytest.raises(ValueError, match=message):
        forecaster.predict(fh=[1, 2], X=change(ahead(X, y)))
    pd.testing.assert_frame_equal(forecaster.predict(fh=[1, 2], X=ahead(X, y)), before)


@pytest.mark.parametrize("method", ["fit", "update", "pretrain"])
def test_exogenous_columns_without_instances_are_refused(y, X, method):
    forecaster = tiny()
    if method == "update":
        forecaster.fit(y, X=X.loc[y.index])
    with pytest.raises(ValueError, match=r"X has 1 index level\(s\), but y has 2: X needs rows for every"):
        getattr(forecaster, method)(y, X=X.loc["a"])


@pytest.mark.parametrize("strategy", ["train", "corrected", "zero_shot"])
def test_missing_exogenous_rows_are_named_at_fit(y, X, strategy):
    X = X.loc[y.index]
    with pytest.raises(ValueError, match="X has no rows of instance 'b'"):
        tiny(strategy=strategy).fit(y, X=X.drop("b"))
    with pytest.raises(ValueError, match=r"X of instance 'a' has no row for 2000-01 \(1 missing\)"):
        tiny(strategy=strategy).fit(y, X=X.iloc[1:])
    with pytest.raises(ValueError, match=r"X of instance 'a' has no row for 2000-01 \(1 missing\)"):
        tiny(strategy=strategy).fit(y, X=X.groupby(level=0).tail(-1))  # the first row of each


# --- updates and backtests --------------------------------------------------------------------------------


def test_an_update_of_one_instance_moves_that_one(y, fitted):
    forecaster = tiny().fit(y)
    new = forecaster.predict(fh=[1, 2]).loc[["b"]]
    before, after = forecaster.predict(fh=[1]), forecaster.update(new).predict(fh=[1])
    pd.testing.assert_frame_equal(after.loc[["a", "c"]], before.loc[["a", "c"]], rtol=1e-6)
    assert after.loc["b"].index[0] == before.loc["b"].index[0] + 2


@pytest.mark.parametrize("update_steps", [0, 1])
def test_an_instance_that_is_new_in_an_update_is_forecast_from_then_on(y, update_steps):
    forecaster = tiny(update_steps=update_steps).fit(y)
    new = panel(lengths={"d": 12})
    forecast = forecaster.update(new).predict(fh=[1, 2])
    assert list(forecast.index.get_level_values(0).unique()) == ["a", "b", "c", "d"]
    assert list(forecast.loc["d"].index) == list(stamps("periods", 12, 2))


@pytest.mark.parametrize("strategy", ["corrected", "pretrained", "train"])
def test_values_that_come_late_for_one_instance_hide_none_of_the_others(y, strategy):
    late = y.loc[["a"]].iloc[-10:-5]
    known = y.drop(y.loc[["a"]].index[-10:])
    fitted = tiny(strategy=strategy, distribution="studentt").fit(known, fh=[1, 2])
    before = fitted.predict()
    after = fitted.update(late, update_params=False).predict()
    assert after.loc["a"].index[0] == before.loc["a"].index[0] + 5
    assert after.loc["b"].index.equals(before.loc["b"].index)


def test_an_update_that_fails_changes_nothing(y):
    forecaster = tiny().fit(y)
    before = forecaster.predict(fh=[1, 2])
    empty = panel(lengths={"d": 12}) * np.nan
    with pytest.raises(ValueError, match="y column 'y' of instance 'd' has no observed values"):
        forecaster.update(empty)
    with pytest.raises(ValueError, match=r"y has 1 index level\(s\), but y has 2 in the fit"):
        forecaster.update(y.loc["a"])
    pd.testing.assert_frame_equal(forecaster.predict(fh=[1, 2]), before)


@pytest.mark.parametrize("strategy", ["refit", "update", "no-update_params"])
def test_panels_are_backtested(strategy):
    aligned = pd.concat({key: panel(lengths={"a": 40}).loc["a"] * k for key, k in (("a", 1), ("b", 2))})
    aligned.index.names = ["shop", "time"]
    cv = ExpandingWindowSplitter(initial_window=30, step_length=4, fh=[1, 2])
    scores = evaluate(
        tiny(update_steps=1),
        cv,
        aligned,
        strategy=strategy,
        scoring=[MeanAbsoluteError(), CRPS()],
        error_score="raise",
    )
    assert np.isfinite(scores[["test_MeanAbsoluteError", "test_CRPS"]].to_numpy(dtype=float)).all()


# --- hierarchies ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def hierarchy():
    leaves = {
        (region, shop): pd.DataFrame(
            {"y": level + np.random.default_rng(level).normal(size=30)}, stamps("periods", 0, 30)
        )
        for level, (region, shop) in enumerate([("n", "a"), ("n", "b"), ("s", "c"), ("s", "d")], start=10)
    }
    return pd.concat(leaves, names=["region", "shop", "time"])


def test_hierarchies_are_forecast(hierarchy):
    forecaster = tiny().fit(hierarchy)
    forecast = forecaster.predict(fh=[1, 2])
    assert forecast.index.names == hierarchy.index.names
    assert forecast.index.droplevel(2).unique().equals(hierarchy.index.droplevel(2).unique())
    assert forecaster.predict_proba(fh=[1, 2]).quantile([0.1, 0.9]).shape == (8, 2)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "method", ["predict", "predict_interval", "predict_quantiles", "predict_var", "predict_proba"]
)
@pytest.mark.parametrize("forecaster", FORECASTERS)
def test_hierarchies_are_aggregated_and_reconciled(hierarchy, forecaster, method):
    pipeline = Aggregator() * tiny(forecaster) * Reconciler("bu")
    forecast = getattr(pipeline.fit(hierarchy), method)(fh=[1, 2])
    assert len(forecast.index) == 2 * 7
    if method == "predict":
        total = forecast.loc[("__total", "__total")].to_numpy()
        leaves = forecast.loc[[key in "abcd" for key in forecast.index.get_level_values(1)]]
        np.testing.assert_allclose(total, leaves.groupby(level=2).sum().to_numpy())


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("strategy", ["train", "corrected"])
def test_hierarchies_of_shops_that_opened_late_are_reconciled_by_their_residuals(hierarchy, strategy):
    late = hierarchy.drop(hierarchy.loc[("s", "d")].index[:12].map(lambda time: ("s", "d", time)))
    every = Aggregator().fit_transform(late)
    forecaster = tiny(TaylorformerForecaster, strategy=strategy, distribution="studentt")
    forecast = ReconcilerForecaster(forecaster, method="mint_shrink").fit(every, fh=[1, 2]).predict()
    assert np.isfinite(forecast.to_numpy()).all()
    assert forecast.loc[("__total", "__total")].iloc[0, 0] == pytest.approx(46, abs=3)
    in_sample = forecaster.fit(late, fh=[1]).predict(late.index.get_level_values(-1).unique())
    assert in_sample.index.equals(late.index)
