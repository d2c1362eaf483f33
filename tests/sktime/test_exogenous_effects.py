"""X that is known ahead is used from few values on, whatever the strategy."""

import numpy as np
import pandas as pd
import pytest
from sktime.forecasting.base import ForecastingHorizon
from sktime.forecasting.model_evaluation import evaluate
from sktime.performance_metrics.forecasting import MeanAbsoluteError
from sktime.split import ExpandingWindowSplitter

from taylorformer_forecast.sktime import LAMForecaster, TaylorformerForecaster, UNNForecaster

H, N = 10, 70
FH = range(1, H + 1)


def promoted(effect=40.0, seed=0, n=N + H):
    """Daily sales with promotions, of known effect."""
    rng = np.random.default_rng(seed)
    index = pd.date_range("2024-01-01", periods=n, freq="D")
    X = pd.DataFrame({"promotion": (rng.random(n) < 0.25).astype(float)}, index)
    week = 20 * np.sin(2 * np.pi * np.arange(n) / 7)
    return pd.Series(100 + week + effect * X["promotion"] + rng.normal(0, 2, n), index, name="sales"), X


def panel(effects=(40.0, 10.0)):
    parts = [promoted(effect, seed) for seed, effect in enumerate(effects)]
    names = [f"shop {k}" for k in range(len(parts))]
    y, X = (pd.concat([part[k] for part in parts], keys=names) for k in (0, 1))
    return y.to_frame(), X


def effect_of_promotion(forecaster, X):
    """What a forecast gains by a promotion on the last of its days alone."""
    last = np.where(X.index.get_level_values(-1) == X.index.get_level_values(-1).max(), 1.0, 0.0)
    with_it, without = (forecaster.predict(X=X.assign(promotion=value)) for value in (last, 0.0))
    return with_it - without


@pytest.mark.parametrize(
    "strategy", ["auto", "baseline", "corrected", "averaged", "pretrained", "zero_shot", "train"]
)
def test_forecasts_have_the_effect_of_x(strategy):
    y, X = promoted()
    forecaster = TaylorformerForecaster(strategy=strategy, max_steps=5, num_samples=30, random_state=0)
    forecaster.fit(y[:N], X[:N], fh=FH)
    assert effect_of_promotion(forecaster, X[N:]).iloc[-1] == pytest.approx(40, abs=6)
    interval = forecaster.predict_interval(X=X[N:], coverage=0.9)["sales"][0.9]
    assert ((y[N:] > interval["lower"]) & (y[N:] < interval["upper"])).mean() >= 0.7


def sales_on_days_of_promotion(least=0.0):
    """Daily sales of a year that promotions double, and X ahead with one on every second day."""
    rng, n = np.random.default_rng(0), 365
    X = pd.DataFrame({"promotion": (rng.random(n) < 0.2) * 1.0}, pd.date_range("2024-01-01", periods=n))
    y = pd.Series(rng.poisson(50 * (1 + X["promotion"])) * 1.0 + least, X.index)
    ahead = pd.DataFrame({"promotion": np.tile([0.0, 1.0], 6)}, pd.date_range("2024-12-31", periods=12))
    return y, X, ahead


@pytest.mark.parametrize("strategy", ["baseline", "corrected", "zero_shot"])
def test_intervals_grow_with_what_x_adds_to_values_that_are_never_negative(strategy):
    ratios = []
    for least in (0.0, -1000.0):
        y, X, ahead = sales_on_days_of_promotion(least)
        forecaster = TaylorformerForecaster(strategy=strategy, random_state=0).fit(y, X, fh=range(1, 13))
        interval = forecaster.predict_interval(X=ahead, coverage=0.8)
        width = interval.diff(axis=1).iloc[:, 1]
        ratios.append(width[1::2].mean() / width[::2].mean())
    assert 1.3 < ratios[0] < 2  # of Poisson numbers 1.41
    assert ratios[1] == pytest.approx(1, abs=0.1)


def test_a_short_series_with_x_needs_no_network():
    y, X = promoted()
    forecaster = TaylorformerForecaster(random_state=0).fit(y[:N], X[:N], fh=FH)
    assert forecaster.strategy_ == "corrected"
    naive = np.tile(y[N - 7 : N].to_numpy(), 2)[:H]
    error = np.abs(forecaster.predict(X=X[N:]) - y[N:]).mean()
    assert error < 4 < np.abs(naive - y[N:]).mean()


@pytest.mark.parametrize("cls", [LAMForecaster, UNNForecaster])
def test_models_that_train_have_the_effect_of_x(cls):
    y, X = promoted()
    forecaster = cls(max_steps=5, num_samples=30, random_state=0).fit(y[:N], X[:N], fh=FH)
    assert effect_of_promotion(forecaster, X[N:]).iloc[-1] == pytest.approx(40, abs=8)


def test_series_of_a_panel_have_effects_of_their_own():
    y, X = panel()
    early = y.index.get_level_values(-1) < "2024-03-11"
    forecaster = TaylorformerForecaster(random_state=0).fit(y[early], X[early], fh=FH)
    found = effect_of_promotion(forecaster, X[~early]).groupby(level=0).last()["sales"]
    assert found.to_numpy() == pytest.approx([40, 10], abs=6)


def test_columns_of_a_frame_have_effects_of_their_own():
    y, X = promoted()
    y = pd.DataFrame({"b": y, "a": 2 * promoted(0.0)[0]})
    forecaster = TaylorformerForecaster(random_state=0).fit(y[:N], X[:N], fh=FH)
    found = effect_of_promotion(forecaster, X[N:]).iloc[-1]
    assert (found["b"], found["a"]) == (pytest.approx(40, abs=6), pytest.approx(0, abs=4))


@pytest.mark.parametrize("strategy", ["baseline", "corrected", "zero_shot"])
def test_a_constant_has_none_of_the_effects_of_other_columns(strategy):
    """From 37 to 65 were forecast in place of 50."""
    y, X = promoted()
    y = pd.DataFrame({"sales": y, "others": 3 * promoted()[0], "stores": 50.0})
    forecaster = TaylorformerForecaster(strategy=strategy, random_state=0).fit(y[:N], X[:N], fh=FH)
    np.testing.assert_allclose(forecaster.predict(X=X[N:])["stores"], 50, rtol=1e-3)


def test_units_of_y_and_x_do_not_matter():
    y, X = promoted()
    one, other = (
        TaylorformerForecaster(random_state=0).fit(y[:N] * a, X[:N] * b, fh=FH).predict(X=X[N:] * b) / a
        for a, b in ((1.0, 1.0), (1e5, 1e-3))
    )
    np.testing.assert_allclose(one, other, rtol=1e-6)


def test_in_sample_forecasts_have_the_effect_of_x():
    y, X = promoted()
    forecaster = TaylorformerForecaster(random_state=0).fit(y[:N], X[:N], fh=FH)
    residual = forecaster.predict_residuals(y[N - 20 : N], X[N - 20 : N])
    assert np.abs(residual).mean() < 5


def test_update_takes_effects_off_new_values():
    y, X = promoted()
    early = TaylorformerForecaster(random_state=0).fit(y[: N - 5], X[: N - 5], fh=FH)
    late = early.update(y[N - 5 : N], X[N - 5 : N], update_params=False)
    assert np.abs(late.predict(X=X[N:]) - y[N:]).mean() < 4


def test_backtests_use_x():
    y, X = promoted()
    cv = ExpandingWindowSplitter(fh=[1, 2, 3], initial_window=60, step_length=3)
    found = evaluate(
        TaylorformerForecaster(random_state=0),
        cv,
        y,
        X,
        strategy="no-update_params",
        scoring=MeanAbsoluteError(),
    )
    assert found["test_MeanAbsoluteError"].mean() < 4


def test_effects_of_a_pretraining_serve_other_series():
    y, X = panel((40.0, 40.0, 40.0))
    new_y, new_X = promoted(80.0, seed=9)
    forecaster = TaylorformerForecaster(max_steps=5, random_state=0).pretrain(y, X, fh=FH)
    forecaster.fit(2 * new_y[:20], new_X[:20], fh=FH)
    assert effect_of_promotion(forecaster, new_X[20 : 20 + H]).iloc[-1] > 40  # in units of its deviation


def test_the_mean_of_x_is_a_part_of_explanations():
    y, X = promoted()
    forecaster = TaylorformerForecaster(random_state=0).fit(y[:N], X[:N], fh=FH)
    every_other = X[N:].assign(promotion=[0.0, 1.0] * (H // 2))
    change = forecaster.explain(X=every_other)["X: promotion"].to_numpy()
    assert change[1::2].mean() - change[::2].mean() == pytest.approx(40, abs=4)


def test_known_values_of_the_future_are_met_whatever_x_adds():
    y, X = promoted()
    forecaster = TaylorformerForecaster(order="random", max_steps=5, random_state=0)
    forecaster.fit(y[:N], X[:N], fh=FH)
    goal = pd.Series([500.0], y.index[N + 4 : N + 5], name="sales")
    assert forecaster.condition(goal).predict(X=X[N:]).iloc[4] == pytest.approx(500)


@pytest.mark.parametrize("strategy", ["corrected", "averaged"])
def test_sales_are_not_forecast_below_zero_by_what_x_takes_off(strategy):
    _, X = promoted()
    sales = np.random.default_rng(1).poisson(5 + 20 * X["promotion"]).astype(float)
    parts = {key: pd.DataFrame({"sales": sales, "less": sales - 30}, X.index) for key in ("a", "b")}
    y, X = pd.concat(parts), pd.concat({"a": X, "b": X})
    past = y.index.get_level_values(-1) < y.index[N][1]
    forecaster = TaylorformerForecaster(strategy=strategy, max_steps=5, num_samples=200, random_state=0)
    forecaster.fit(y[past], X[past], fh=FH)
    found = forecaster.predict_quantiles(X=X[~past], alpha=[0.05, 0.2, 0.5])
    assert (found["sales"] >= 0).all(axis=None)
    assert (found["sales"][0.05] < 1).any()
    assert (found["less"][0.05] < -30).any()
    paths = forecaster.predict_proba(X=X[~past], marginal=False).sample(50)
    assert (paths["sales"] >= 0).all()
    cdf = forecaster.predict_proba(X=X[~past]).cdf(
        pd.DataFrame({"sales": -0.01, "less": -31.0}, y[~past].index)
    )
    assert (cdf["sales"] == 0).all()


def later_by(delay, n_instances=1, n=210, seed=0):
    """Days whose values follow a covariate some days later; instances of one panel, or a single series."""
    rng = np.random.default_rng(seed)
    index = pd.date_range("2020-01-01", periods=n, freq="D")
    parts = []
    for _ in range(n_instances):
        x = rng.normal(size=n)
        late = np.r_[np.zeros(delay), x[: n - delay]]
        parts.append(pd.DataFrame({"x": x, "y": 10 + 2 * late + 0.1 * rng.normal(size=n)}, index))
    both = parts[0] if n_instances == 1 else pd.concat(parts, keys=[f"i{k}" for k in range(n_instances)])
    return both[["y"]], both[["x"]]


def test_new_values_one_by_one_leave_the_same_rest_as_all_together():
    y, X = later_by(3)
    together, one_by_one = (TaylorformerForecaster(random_state=0).fit(y[:150], X[:150], fh=FH) for _ in "ab")
    together.update(y[150:200], X[150:200], update_params=False)
    for k in range(150, 200):
        one_by_one.update(y[k : k + 1], X[k : k + 1], update_params=False)
    pd.testing.assert_frame_equal(one_by_one._cur_y, together._cur_y)
    assert float((together.predict(X=X[200:]) - y[200:]).abs().mean().iloc[0]) < 0.3


@pytest.mark.parametrize("scale", [1.0, 1e-6, 1e6])
@pytest.mark.parametrize("values", [[10.0], [10.0] * 5])
def test_new_series_of_equal_values_get_effects_in_their_own_units(values, scale):
    y, X = later_by(0, 3)
    early = y.index.get_level_values(-1) < "2020-07-01"
    forecaster = TaylorformerForecaster(max_steps=20, random_state=0).fit(scale * y[early], X[early], fh=FH)
    index = pd.MultiIndex.from_product([["new"], X.index.levels[-1]])
    new_X = pd.DataFrame({"x": np.linspace(-1, 1, len(index))}, index)
    n = int((index.get_level_values(-1) < "2020-07-01").sum())
    new_y = pd.DataFrame({"y": scale * np.array(values)}, index[n - len(values) : n])
    forecaster.update(new_y, new_X.loc[new_y.index], update_params=False)
    found = forecaster.predict(X=pd.concat([X[~early], new_X[n:]])).loc["new", "y"] / scale
    assert found.between(9, 14).all()


def test_series_that_end_earlier_need_x_from_their_own_end():
    y, X = later_by(0, 2)
    stamps = y.index.get_level_values(-1)
    known = (stamps < "2020-06-01") | ((stamps < "2020-07-01") & (y.index.get_level_values(0) == "i0"))
    forecaster = TaylorformerForecaster(max_steps=20, random_state=0).fit(y[known], X[known], fh=[1, 2, 3])
    found = forecaster.predict(X=X[~known])
    assert float((found - y.reindex(found.index)).abs().mean().iloc[0]) < 0.3
    with pytest.raises(ValueError, match="X of instance 'i1' has no row for 2020-06-01"):
        forecaster.predict(X=X[stamps >= "2020-07-01"])


def test_zeros_before_a_series_begins_stay_out_of_what_is_left():
    _, X = promoted()
    y = 50 + 20 * X["promotion"] + np.random.default_rng(0).normal(0, 1, len(X))
    y[:40] = 0.0
    forecaster = TaylorformerForecaster(random_state=0).fit(y[:N], X[:N], fh=FH)
    assert np.abs(forecaster.predict(X=X[N:]) - y[N:]).mean() < 3


def test_times_beside_the_grid_have_the_effects_of_their_own_rows_of_x():
    y, X = later_by(0)
    forecaster = TaylorformerForecaster(random_state=0).fit(y[:150], X[:150])
    noon = y.index[150:152] + pd.Timedelta("12h")
    given = pd.concat([X[150:], pd.DataFrame({"x": [-2.0, 2.0]}, noon)]).sort_index()
    found = forecaster.predict(fh=noon, X=given)["y"]
    assert found.diff().iloc[1] == pytest.approx(8, abs=1)


def test_steps_of_several_integers_have_effects():
    y, X = later_by(0)
    even = pd.Index(range(0, 2 * len(y), 2))
    y, X = y.set_axis(even), X.set_axis(even)
    forecaster = TaylorformerForecaster(random_state=0).fit(y[:150], X[:150])
    assert float((forecaster.predict(fh=[2, 4], X=X[150:]) - y[150:152]).abs().max().iloc[0]) < 0.5


@pytest.mark.parametrize("closed", [False, True], ids=["always open", "closed on Mondays"])
@pytest.mark.parametrize("n_before", [0, 1], ids=["from the first value", "from before it"])
@pytest.mark.parametrize("strategy", ["auto", "corrected", "pretrained", "averaged"])
def test_effects_are_those_of_the_steps_if_the_index_is_finer(strategy, closed, n_before):
    """Rows between the steps were irregular times, of which no effects can be estimated."""
    y, X = promoted()
    y = y.where(y.index.dayofweek > 0, 0.0) if closed else y
    fine = pd.date_range(y.index[0] - n_before * pd.Timedelta("8h"), y.index[-1], freq="8h")
    found = []
    for own_y, own_X in ((y, X), (y.reindex(fine), X.reindex(fine).ffill().bfill())):
        ahead, early = pd.DatetimeIndex(y.index[N:], freq=None), own_y.index <= y.index[N - 1]
        forecaster = TaylorformerForecaster(strategy=strategy, max_steps=1, num_samples=20, random_state=0)
        forecaster.fit(own_y[early], own_X[early], fh=ForecastingHorizon(ahead, is_relative=False))
        found.append(forecaster.predict_quantiles(X=own_X[~early], alpha=[0.1, 0.5, 0.9]))
        assert forecaster._effects is not None
    np.testing.assert_allclose(*found, rtol=0.02, atol=0.1)


def test_the_order_of_instances_and_columns_does_not_matter_to_effects(monkeypatch):
    monkeypatch.setattr("taylorformer_forecast.engine.effects.slopes.SERIES_AT_ONCE", 2)
    y, X = later_by(0, 5, n=80)
    y = y.assign(a=y["y"] ** 2)
    order = y.index.get_level_values(0).unique()[[3, 0, 4, 2, 1]]
    other = [pd.concat([part.loc[[key]] for key in order]) for part in (y[["a", "y"]], X)]
    last = [part.index.get_level_values(-1).max() for part in (y, X)]
    assert last[0] == last[1]
    found = []
    for own_y, own_X in ((y, X), other):
        early = own_y.index.get_level_values(-1) <= last[0] - pd.Timedelta(days=H)
        forecaster = TaylorformerForecaster(max_steps=20, random_state=0).fit(
            own_y[early], own_X[early], fh=FH
        )
        found.append(forecaster.predict(X=own_X[~early]))
    pd.testing.assert_frame_equal(found[1].loc[found[0].index, found[0].columns], found[0], rtol=1e-6)


def test_columns_known_of_the_past_only_are_left_to_a_network():
    y, X = promoted()
    forecaster = TaylorformerForecaster(past_only=("promotion",), max_steps=2, random_state=0)
    forecaster.fit(y[:N], X[:N], fh=FH)
    assert forecaster.strategy_ == "train"
    assert "known of the past only, ['promotion']" in forecaster.summary().reason


def demand(n_instances=1, n=200):
    """Intermittent demand of which promotions sell four times as much."""
    rng = np.random.default_rng(0)
    index = pd.date_range("2024-01-01", periods=n + H, freq="D", name="day")
    parts = []
    for _ in range(n_instances):
        promotion = (rng.random(n + H) < 0.25).astype(float)
        sold = rng.poisson(0.3 * 4**promotion).astype(float)
        parts.append(pd.DataFrame({"sold": sold, "promotion": promotion}, index))
    both = parts[0] if n_instances == 1 else pd.concat(parts, keys=[f"i{k}" for k in range(n_instances)])
    return both[["sold"]], both[["promotion"]]


@pytest.mark.parametrize("strategy", ["auto", "baseline", "averaged"])
@pytest.mark.parametrize("n_instances", [1, 3])
def test_x_multiplies_intermittent_demand(strategy, n_instances):
    y, X = demand(n_instances)
    early = y.index.get_level_values(-1) < X.index.get_level_values(-1).max() - pd.Timedelta(days=H - 1)
    forecaster = TaylorformerForecaster(strategy=strategy, max_steps=2, num_samples=500, random_state=0)
    forecaster.fit(y[early], X[early], fh=FH)
    low, high = (forecaster.predict_proba(X=X[~early].assign(promotion=value)) for value in (0.0, 1.0))
    assert (high.mean() / low.mean()).to_numpy() == pytest.approx(4, rel=0.5)
    assert (low.mean()["sold"] / 0.3).between(0.5, 1.8).all()
    quantiles = high.quantile([0.1, 0.5, 0.9])
    np.testing.assert_allclose(quantiles, quantiles.round(), atol=1e-9)
    assert (quantiles >= 0).all(axis=None)
    paths = forecaster.predict_proba(X=X[~early].assign(promotion=1.0), marginal=False)
    drawn = paths.sample(200)["sold"]
    assert drawn.mean() == pytest.approx(float(high.mean()["sold"].mean()), rel=0.2)
    np.testing.assert_allclose(drawn, drawn.round(), atol=1e-9)


def lasting(n=107, start=60, seed=0):
    """Demand that is six times as much from some day on, as a covariate says."""
    rng = np.random.default_rng(seed)
    index = pd.date_range("2024-01-01", periods=n, freq="D")
    x = (np.arange(n) >= start) * 1.0
    return pd.DataFrame({"sold": rng.poisson(np.where(x > 0, 2.5, 0.4)) * 1.0}, index), pd.DataFrame(
        {"x": x}, index
    )


def test_what_lasts_is_not_counted_twice_in_demand():
    means = []
    for seed in range(4):
        y, X = lasting(seed=seed)
        forecaster = TaylorformerForecaster(strategy="corrected", random_state=0).fit(
            y[:100], X[:100], fh=[1]
        )
        means.append(float(forecaster.predict(X=X[100:]).iloc[0, 0]))
    assert np.mean(means) == pytest.approx(2.5, abs=0.8)


def test_new_values_of_demand_move_what_is_usual():
    y, X = lasting(260, 150)
    forecaster = TaylorformerForecaster(strategy="corrected", random_state=0).fit(y[:160], X[:160], fh=[1])
    forecaster.update(y[160:250], X[160:250], update_params=False)
    assert float(forecaster.predict(X=X[250:]).iloc[0, 0]) == pytest.approx(2.5, abs=0.8)


def test_what_was_demand_at_the_fit_and_is_no_longer_is_not_multiplied():
    y, X = demand(n=200)
    y[100:] = 50 + np.random.default_rng(1).normal(0, 3, (len(y) - 100, 1))
    forecaster = TaylorformerForecaster(strategy="corrected", random_state=0).fit(y[:100], X[:100], fh=FH)
    forecaster.update(y[100:200], X[100:200], update_params=False)
    assert forecaster.predict(X=X[200:])["sold"].between(46, 54).all()
    assert (forecaster.predict_interval(X=X[200:], coverage=0.8).to_numpy()[:, 0] > 20).all()


def test_earlier_origins_of_demand_use_x_as_later_ones():
    y, X = demand(n=100)
    late = TaylorformerForecaster(strategy="corrected", random_state=0).fit(y[:100], X[:100], fh=[1, 2, 3])
    cv = ExpandingWindowSplitter(fh=[1, 2, 3], initial_window=60, step_length=3)
    found = late.update_predict(y[:72], cv, X=X[:72], update_params=False)
    promoted_days = X["promotion"][60:63].to_numpy()
    means = found.iloc[:3, 0].dropna().to_numpy() if found.shape[1] > 1 else found.iloc[:3, 0].to_numpy()
    assert np.ptp(means) > 0.3
    assert np.corrcoef(means, promoted_days[: len(means)])[0, 1] > 0.9


def test_demand_is_whole_beside_a_column_of_large_values():
    y, X = demand()
    y = y.assign(large=1e9 * (10 + X["promotion"] + np.random.default_rng(0).normal(size=len(y))))
    forecaster = TaylorformerForecaster(strategy="corrected", random_state=0).fit(y[:200], X[:200], fh=FH)
    found = forecaster.predict_quantiles(X=X[200:], alpha=[0.1, 0.5, 0.9])["sold"]
    np.testing.assert_allclose(found, found.round(), atol=1e-9)


def test_draws_of_demand_do_not_depend_on_the_order_of_columns():
    y, X = demand()
    y = y.assign(a=np.random.default_rng(1).poisson(0.4, len(y)))
    drawn = []
    for columns in (["sold", "a"], ["a", "sold"]):
        forecaster = TaylorformerForecaster(strategy="corrected", random_state=0)
        forecaster.fit(y[columns][:200], X[:200], fh=FH)
        paths = forecaster.predict_proba(X=X[200:], marginal=False)
        drawn.append(paths.mean()[["sold", "a"]])
    pd.testing.assert_frame_equal(*drawn)


def test_zeros_before_a_series_begins_may_come_again():
    _, X = promoted()
    y = 50 + 20 * X["promotion"] + np.random.default_rng(0).normal(0, 1, len(X))
    y[:40] = 0.0
    forecaster = TaylorformerForecaster(random_state=0).fit(y[:N], X[:N], fh=FH)
    before = forecaster.predict_interval(X=X[N:])
    after = forecaster.update(y[:N], X[:N], update_params=False).predict_interval(X=X[N:])
    np.testing.assert_allclose(after, before, rtol=1e-9)


def test_a_refused_update_leaves_what_is_known_of_series():
    y, X = promoted()
    forecaster = TaylorformerForecaster(random_state=0).fit(y[:N], X[:N], fh=FH)
    known = dict(forecaster._of_series)
    wrong = pd.Series([-5.0], pd.DatetimeIndex(["2040-01-01 07:13:11"]), name="sales")
    with pytest.raises(ValueError, match="the times are not regular"):
        forecaster.update(wrong, X[:1].set_axis(wrong.index), update_params=False)
    assert forecaster._of_series == known


def test_demand_needs_no_network_beside_other_series_with_x():
    y, X = demand(2)
    noise = np.random.default_rng(0).normal(0, 0.5, len(X) // 2)
    first = y.index.get_level_values(0) == "i0"
    y.loc[first, "sold"] = 10 + 5 * X["promotion"][first].to_numpy() + noise
    early = y.index.get_level_values(-1) < "2024-07-12"
    forecaster = TaylorformerForecaster(max_steps=20, random_state=0).fit(y[early], X[early], fh=FH)
    assert forecaster.strategy_ != "train"
    low, high = (forecaster.predict_proba(X=X[~early].assign(promotion=v)).mean()["sold"] for v in (0.0, 1.0))
    assert (high - low)["i0"].to_numpy() == pytest.approx(5, abs=1)
    assert (high / low)["i1"].to_numpy() == pytest.approx(4, rel=0.6)


@pytest.mark.parametrize("strategy", ["pretrained", "finetune"])
def test_the_pretrained_network_refuses_demand_with_x(strategy):
    y, X = demand()
    forecaster = TaylorformerForecaster(strategy=strategy, max_steps=1)
    with pytest.raises(ValueError, match="effects on intermittent demand the pretrained network cannot use"):
        forecaster.fit(y, X, fh=FH)


@pytest.mark.parametrize("n", [4, 7, 10, 12])
def test_few_values_with_x_need_no_network(n):
    y, X = promoted()
    forecaster = TaylorformerForecaster(random_state=0).fit(y[:n], X[:n], fh=[1, 2, 3])
    assert forecaster.strategy_ == "corrected"
    assert forecaster.predict(X=X[n : n + 3]).between(0, 250).all()


def test_missing_values_leave_the_effect_of_x():
    y, X = promoted(n=120 + H)
    y = y.where(np.random.default_rng(1).random(len(y)) >= 0.4)
    forecaster = TaylorformerForecaster(random_state=0).fit(y[:120], X[:120], fh=FH)
    assert forecaster.strategy_ == "corrected"
    assert effect_of_promotion(forecaster, X[120:]).iloc[-1] == pytest.approx(40, abs=5)


def test_irregular_times_with_x_are_left_to_a_network():
    y, X = promoted()
    rng = np.random.default_rng(0)
    index = y.index[:N] + pd.to_timedelta(rng.uniform(-0.4, 0.4, N), unit="D")
    forecaster = TaylorformerForecaster(max_steps=2, random_state=0)
    assert forecaster.fit(y[:N].set_axis(index), X[:N].set_axis(index)).strategy_ == "train"


@pytest.mark.parametrize("given", ["none", "few rows", "another column"])
def test_x_that_is_missing_in_predict_is_one_clear_error(given):
    y, X = promoted()
    forecaster = TaylorformerForecaster(random_state=0).fit(y[:N], X[:N], fh=FH)
    wrong = {"none": None, "few rows": X[N : N + 4], "another column": X[N:].rename(columns=str.upper)}[given]
    message = {"none": "X is needed in predict", "few rows": "has no row for", "another column": "columns"}
    with pytest.raises(ValueError, match=message[given]):
        forecaster.predict(X=wrong)
    assert np.isfinite(forecaster.predict(X=X[N:])).all()


@pytest.mark.parametrize("n_instances", [1, 2])
def test_steps_on_the_way_are_needed_where_effects_come_later(n_instances):
    rng = np.random.default_rng(0)
    index = pd.period_range("2000-01", periods=210, freq="M")
    parts = [pd.DataFrame({"x": rng.normal(size=210)}, index) for _ in range(n_instances)]
    X = parts[0] if n_instances == 1 else pd.concat(parts, keys=["a", "b"])
    late = X.groupby(level=0).shift(2) if n_instances > 1 else X.shift(2)
    y = (10 * late.fillna(0.0) + rng.normal(size=X.shape)).rename(columns={"x": "y"})
    early = X.index.get_level_values(-1) < index[200]
    forecaster = TaylorformerForecaster(strategy="corrected", random_state=0).fit(y[early], X[early], fh=[5])
    found = forecaster.predict(X=X[~early])
    truth = y[y.index.get_level_values(-1) == index[204]]
    np.testing.assert_allclose(found.to_numpy(), truth.to_numpy(), atol=4)
    with pytest.raises(ValueError, match="has no row for 2016-09"):
        forecaster.predict(X=X[X.index.get_level_values(-1) == index[204]])


def test_an_instance_that_update_brings_has_the_effects_in_common():
    y, X = panel((40.0, 40.0))
    new_y, new_X = panel((40.0, 40.0, 40.0))
    late = new_y.index.get_level_values(0) == "shop 2"
    now = new_y.index.get_level_values(-1) < "2024-03-11"
    before = y.index.get_level_values(-1) < "2024-03-11"
    forecaster = TaylorformerForecaster(max_steps=20, random_state=0).fit(y[before], X[before], fh=FH)
    forecaster.update(new_y[late & now], new_X[late & now], update_params=False)
    found = effect_of_promotion(forecaster, new_X[~now]).groupby(level=0).last()["sales"]
    assert found.to_numpy() == pytest.approx([40, 40, 40], abs=8)


@pytest.mark.parametrize("strategy", ["corrected", "train"])
def test_a_column_without_a_value_is_told(strategy):
    y = pd.Series(np.sin(np.arange(50.0)), pd.date_range("2024-01-01", periods=50, freq="D"))
    X = pd.DataFrame({"promotion": np.arange(50.0), "price": np.nan}, y.index)
    forecaster = TaylorformerForecaster(strategy=strategy, max_steps=2, random_state=0)
    with pytest.warns(UserWarning, match="X has no value of 'price', which counts for nothing"):
        forecaster.fit(y, X=X, fh=[1, 2])


def test_a_number_that_may_stand_for_missing_values_is_told():
    y = pd.Series(np.sin(np.arange(50.0)), pd.date_range("2024-01-01", periods=50, freq="D"))
    X = pd.DataFrame({"temperature": np.arange(50.0), "visitors": 980.0 + np.arange(50)}, y.index)
    X.iloc[20] = -9999.0, 999.0
    told = r"X has -9999 in 'temperature', far from all others \(0 to 49\)"
    with pytest.warns(UserWarning, match=told) as found:
        TaylorformerForecaster(strategy="corrected").fit(y, X=X, fh=[1, 2])
    assert not any("visitors" in str(one.message) for one in found)


def test_a_number_that_may_be_an_error_is_told_and_a_flag_of_one_event_is_not():
    y = pd.Series(np.sin(np.arange(50.0)), pd.date_range("2024-01-01", periods=50, freq="D"))
    X = pd.DataFrame({"promotion": np.arange(50) % 5 == 0, "strike": np.arange(50) == 20}, y.index).astype(
        float
    )
    X.loc[X.index[30], "promotion"] = 1e6
    told = (
        r"X has 1000000 in 'promotion', far from all others \(0 to 1\): if it is an error, replace it by NaN"
    )
    with pytest.warns(UserWarning, match=told) as found:
        TaylorformerForecaster(strategy="corrected").fit(y, X=X, fh=[1, 2])
    assert not any("strike" in str(one.message) for one in found)


def test_forecasts_with_covariates_stop_where_values_did_until_one_goes_farther():
    rng, hour = np.random.default_rng(0), np.arange(264)
    x = rng.normal(size=264)
    load = np.minimum(85 + 25 * np.sin(2 * np.pi * hour / 24) + 4 * rng.normal(size=264) + 6 * x, 100)
    index = pd.date_range("2024-01-01", periods=264, freq="h")
    y, X = pd.Series(load, index), pd.DataFrame({"x": x}, index)
    forecaster = TaylorformerForecaster(strategy="baseline", random_state=0).fit(
        y[:240], X=X[:240], fh=range(1, 13)
    )

    def largest() -> float:
        found = forecaster.predict_proba(X=X[forecaster.cutoff[0] :][1:], marginal=False).sample(50)
        return max(
            found.to_numpy().max(), forecaster.predict_quantiles(X=X[240:], alpha=0.999).to_numpy().max()
        )

    assert largest() == pytest.approx(100, abs=1e-6)
    forecaster.update(pd.Series([101.0], index[240:241]), X=X[240:241])
    assert largest() > 101


def test_days_that_are_always_zero_stay_so_beside_x_that_adds_nothing():
    rng = np.random.default_rng(1)
    index = pd.date_range("2023-01-01", periods=400, freq="D")
    y = pd.Series(rng.poisson(np.where(index.dayofweek == 6, 0, 40)).astype(float), index, name="calls")
    X = pd.DataFrame({"noise": rng.normal(size=len(y))}, index)
    forecaster = TaylorformerForecaster(random_state=0).fit(y[:-28], X[:-28], fh=range(1, 29))
    found = forecaster.predict_quantiles(alpha=[0.01, 0.5, 0.99], X=X[-28:])
    closed = (index[-28:].dayofweek == 6).tolist()
    assert (found[closed] == 0).all(axis=None)
    assert (found.iloc[:, 1][[not own for own in closed]] > 20).all()
