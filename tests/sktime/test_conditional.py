"""Forecasts that are conditional on known values of the future."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest

from taylorformer_forecast.sktime import TaylorformerForecaster

AHEAD = range(1, 13)


def tiny(**changes):
    settings = {"d_model": 4, "n_heads": 1, "max_steps": 2, "num_samples": 12, "random_state": 0}
    settings |= {"distribution": "normal", "order": "random", "num_epochs": None}
    return TaylorformerForecaster(**{"strategy": "train", **settings, **changes})


def series(n=60, seed=0):
    wave = 10 + np.sin(np.arange(n) * 2 * np.pi / 12)
    index = pd.period_range("2000-01", periods=n, freq="M")
    return pd.Series(wave + 0.3 * np.random.default_rng(seed).normal(size=n), index, name="sales")


def known(**values):
    """Series of values at months, given as year and month: known(y200504=3.0)."""
    months = pd.PeriodIndex([f"{name[1:5]}-{name[5:]}" for name in values], freq="M")
    return pd.Series(list(values.values()), months, name="sales", dtype=float)


@pytest.mark.parametrize("distribution", ["normal", "studentt", "mixture", "quantile"])
def test_given_values_are_hit_by_all_methods_and_the_original_stays(distribution):
    forecaster = tiny(distribution=distribution).fit(series(), fh=AHEAD)
    before = forecaster.predict_quantiles(alpha=[0.1, 0.9])
    goal = known(y200504=12.5, y200510=9.0)
    conditional = forecaster.condition(goal)
    assert conditional.predict()[goal.index].to_numpy() == pytest.approx(goal.to_numpy(), rel=1e-12)
    quantiles = conditional.predict_quantiles(alpha=[0.1, 0.9])
    for column in quantiles:
        assert quantiles.loc[goal.index, column].to_numpy() == pytest.approx(goal.to_numpy(), rel=1e-9)
    assert (conditional.predict_interval().loc[goal.index].diff(axis=1).iloc[:, 1] < 1e-9).all()
    paths = conditional.predict_proba(marginal=False).paths
    assert paths[:, [3, 9], 0] == pytest.approx(np.tile(goal, (12, 1)), rel=1e-12)
    assert (paths[:, [0, 1, 2, 4, 5], 0].std(axis=0) > 0).all()
    assert (conditional.predict_var().loc[goal.index] < 1e-12).all(axis=None)
    pd.testing.assert_frame_equal(forecaster.predict_quantiles(alpha=[0.1, 0.9]), before)


def test_values_beyond_the_fh_and_between_regular_steps_count():
    days = pd.date_range("2000-01-01", periods=60, freq="D")
    forecaster = tiny().fit(series().set_axis(days), fh=AHEAD)
    late = pd.Series([30.0], [days[-1] + pd.Timedelta(days=6, hours=7)])
    free, bound = forecaster.predict(fh=[1, 2, 5]), forecaster.condition(late).predict(fh=[1, 2, 5])
    assert list(free.index) == list(bound.index)
    assert (bound != free).all()


def test_conditions_add_up_and_the_later_one_wins():
    forecaster = tiny().fit(series(), fh=AHEAD)
    first = forecaster.condition(known(y200502=1.0, y200503=2.0))
    second = first.condition(known(y200503=3.0, y200504=np.nan, y200505=4.0))
    assert second.predict().iloc[[1, 2, 4]].to_numpy() == pytest.approx([1.0, 3.0, 4.0])
    assert first.predict().iloc[[1, 2]].to_numpy() == pytest.approx([1.0, 2.0])


def test_columns_are_conditioned_on_their_own_values():
    y = pd.DataFrame({"a": series(), "b": series(seed=1)})
    forecaster = tiny().fit(y, fh=AHEAD)
    conditional = forecaster.condition(known(y200503=20.0).rename("b"))
    assert conditional.predict()["b"].iloc[2] == pytest.approx(20.0)
    both = forecaster.condition(known(y200503=20.0).to_frame("b").assign(a=5.0)).predict().iloc[2]
    assert both.to_numpy() == pytest.approx([5.0, 20.0])


def test_instances_of_a_panel_are_conditioned_one_by_one():
    parts = {"x": series(), "y": series(40, seed=1)}
    panel = pd.concat(parts, names=["shop", "time"]).to_frame()
    forecaster = tiny().fit(panel, fh=AHEAD)
    goal = pd.concat({"y": known(y200306=30.0)}, names=["shop", "time"]).to_frame()
    bound = forecaster.condition(goal).predict()
    assert bound.loc[("y", pd.Period("2003-06", "M"))].item() == pytest.approx(30.0)
    assert np.isfinite(bound).all(axis=None)


def test_known_values_that_were_passed_by_an_update_no_longer_count():
    y = series(62)
    forecaster = tiny().fit(y.iloc[:60], fh=AHEAD)
    conditional = forecaster.condition(known(y200501=100.0)).update(y.iloc[60:], update_params=False)
    free = forecaster.update(y.iloc[60:], update_params=False)
    pd.testing.assert_series_equal(conditional.predict(), free.predict())


def test_exogenous_values_are_needed_up_to_the_last_known_value():
    X = pd.DataFrame({"price": np.arange(72.0)}, pd.period_range("2000-01", periods=72, freq="M"))
    forecaster = tiny().fit(series(), X=X.iloc[:60], fh=[1, 2])
    conditional = forecaster.condition(known(y200506=11.0))
    assert np.isfinite(conditional.predict(X=X.iloc[60:])).all()
    with pytest.raises(ValueError, match="X has no row for 2005-03"):
        conditional.predict(X=X.iloc[60:62])


@pytest.fixture(scope="module")
def wandering():
    """A forecaster that has learnt a random walk."""
    y = pd.Series(np.random.default_rng(0).normal(size=500).cumsum())
    settings = {"d_model": 16, "n_heads": 2, "max_steps": 150, "num_samples": 200, "lr": 1e-2}
    return y, tiny(**settings, context_length=16, seasonal_periods=None).fit(y, fh=AHEAD)


def test_spread_shrinks_and_the_mean_bends_towards_a_known_value(wandering):
    y, forecaster = wandering
    goal = pd.Series([y.iloc[-1] + 6.0], [y.index[-1] + 8])
    conditional = forecaster.condition(goal)
    free, bound = (np.sqrt(f.predict_var()).to_numpy()[:, 0] for f in (forecaster, conditional))
    assert (bound[[6, 8]] < 0.75 * free[[6, 8]]).all()
    assert (bound[4:] < free[4:]).all()
    assert bound[6] < bound[3]
    pull = (conditional.predict() - forecaster.predict()).to_numpy()
    assert pull[6] > 3
    assert pull[6] > pull[3] > pull[0] - 0.3
    assert pull[11] > 3  # a walk goes on from there


@pytest.mark.parametrize(
    ("goal", "error", "message"),
    [
        (known(y200412=1.0), ValueError, "y_known has a value at 2004-12, but y was observed up to 2004-12"),
        (known(y200502=np.nan), ValueError, "y_known has missing values only"),
        (known(y200502=np.inf), ValueError, "y_known has infinite values"),
        (
            known(y200502=1.0).to_frame("b"),
            ValueError,
            "y_known has a column 'b', but y has columns ['sales']",
        ),
        (pd.Series([1.0]), TypeError, "the index of y_known holds integers, but that of y holds periods"),
        ([1.0], TypeError, "y_known is a list; a pandas Series or DataFrame is needed"),
    ],
    ids=["past", "nan", "infinite", "column", "index", "list"],
)
def test_what_cannot_be_known_is_refused(goal, error, message):
    forecaster = tiny().fit(series(), fh=AHEAD)
    with pytest.raises(error, match=re.escape(message)):
        forecaster.condition(goal)


def test_a_forecaster_trained_in_order_of_time_says_how_to_train_another():
    with pytest.raises(ValueError, match="fit one with order='random'"):
        tiny(order="time").fit(series()).condition(known(y200502=1.0))
    with pytest.raises(ValueError, match="order='any', but it must be 'time' or 'random'"):
        tiny(order="any").fit(series())
