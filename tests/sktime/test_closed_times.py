"""Where X or a season says that a series is closed, forecasts are zero, and values there teach nothing."""

import numpy as np
import pandas as pd
import pytest

from taylorformer_forecast.sktime import LAMForecaster, TaylorformerForecaster

H, N = 21, 210


def shop(seed=0, n=N + H, start="2023-01-02"):
    """Daily sales of a shop that is closed on Sundays and some other days, with promotions."""
    rng = np.random.default_rng(seed)
    index = pd.date_range(start, periods=n, freq="D", name="day")
    is_open = (index.dayofweek < 6) & (rng.random(n) > 0.06)
    X = pd.DataFrame({"open": is_open.astype(float), "promotion": (rng.random(n) < 0.3).astype(float)}, index)
    X.iloc[N + 2, 0] = 0.0
    usual = 100 + 10 * np.sin(index.dayofweek.to_numpy()) + 30 * X["promotion"] + rng.normal(0, 4, n)
    return (usual * X["open"]).rename("sales"), X


def closed_in(X):
    return (X["open"] == 0).to_numpy()


@pytest.mark.parametrize("strategy", ["auto", "baseline", "averaged", "zero_shot", "train"])
def test_forecasts_are_zero_where_a_code_closes_and_only_there(strategy):
    y, X = shop()
    forecaster = TaylorformerForecaster(strategy=strategy, max_steps=5, num_samples=40, random_state=0)
    forecaster.fit(y[:N], X[:N], fh=range(1, H + 1))
    closed = closed_in(X[N:])
    quantiles = forecaster.predict_quantiles(X=X[N:], alpha=[0.01, 0.5, 0.99])
    distribution = forecaster.predict_proba(X=X[N:])
    paths = distribution.sample(40).to_numpy().reshape(40, H).T
    for found in (quantiles.to_numpy(), forecaster.predict(X=X[N:]).to_numpy(), paths):
        assert (found[closed] == 0).all()
        assert (found[~closed] > 10).all()
    assert (distribution.var().to_numpy()[closed] == 0).all()
    assert np.abs(quantiles.to_numpy()[~closed, 1] - y[N:].to_numpy()[~closed]).mean() < 15


@pytest.mark.parametrize("cls", [TaylorformerForecaster, LAMForecaster])
def test_days_that_a_code_closes_count_as_missing(cls):
    y, X = shop()
    options = {"max_steps": 5, "num_samples": 20, "random_state": 0}
    options |= {"strategy": "train"} if cls is TaylorformerForecaster else {}
    forecaster = cls(**options).fit(y[:N], X[:N], fh=range(1, H + 1))
    without = cls(**options).fit(y[:N].mask(closed_in(X[:N])), X[:N], fh=range(1, H + 1))
    usual = ~closed_in(X[N:])
    # Units of effects are those of all values: the rest is not the same to the last digit.
    np.testing.assert_allclose(forecaster.predict(X=X[N:])[usual], without.predict(X=X[N:])[usual], rtol=0.03)


def test_a_day_is_open_if_the_code_says_so_even_after_sundays_that_never_were():
    y, X = shop()
    forecaster = TaylorformerForecaster(random_state=0).fit(y[:N], X[:N], fh=range(1, H + 1))
    sunday = X.index[N:].dayofweek == 6
    assert (forecaster.predict(X=X[N:].assign(open=1.0))[sunday] > 50).all()


def test_the_instances_of_a_panel_are_closed_by_their_own_flags():
    parts = [shop(seed) for seed in range(3)]
    y, X = (pd.concat([part[k] for part in parts], keys=["a", "b", "c"]) for k in (0, 1))
    early = X.index.get_level_values(-1) < X.index.get_level_values(-1).max() - pd.Timedelta(H - 1, "D")
    forecaster = TaylorformerForecaster(random_state=0).fit(y[early].to_frame(), X[early], fh=range(1, H + 1))
    found = forecaster.predict(X=X[~early])["sales"]
    assert (found[closed_in(X[~early])] == 0).all()
    assert (found[~closed_in(X[~early])] > 50).all()


def test_an_update_after_days_that_were_closed_goes_on_from_the_last_open_one():
    y, X = shop()
    corrected = TaylorformerForecaster(strategy="corrected", random_state=0)
    forecaster = corrected.clone().fit(y[:N], X[:N], fh=range(1, 8))
    forecaster.update(y[N : N + 3], X=X[N : N + 3])
    assert closed_in(X[N : N + 3])[-1]
    found = forecaster.predict(X=X[N + 3 :])
    again = corrected.fit(y[: N + 3], X[: N + 3], fh=range(1, 8))
    np.testing.assert_allclose(found, again.predict(X=X[N + 3 :]), rtol=0.02)
    assert (found[closed_in(X[N + 3 : N + 10])] == 0).all()


def test_explanations_say_what_a_code_closes():
    y, X = shop()
    forecaster = TaylorformerForecaster(random_state=0).fit(y[:N], X[:N], fh=range(1, H + 1))
    parts, closed = forecaster.explain(X=X[N:]), closed_in(X[N:])
    assert (parts["X: open"][closed] < -50).all()
    assert (parts["X: open"][~closed].abs() < 1e-9).all()


def test_demand_is_zero_where_a_code_closes():
    rng = np.random.default_rng(3)
    index = pd.date_range("2023-01-02", periods=300, freq="D")
    X = pd.DataFrame({"open": (rng.random(300) > 0.3).astype(float), "noise": rng.normal(size=300)}, index)
    y = pd.Series(rng.poisson(0.7 * X["open"] + 1e-12).astype(float), index, name="sold")
    forecaster = TaylorformerForecaster(random_state=0).fit(y[:280], X[:280], fh=range(1, 21))
    found = forecaster.predict(X=X[280:])
    assert (forecaster.predict_proba(X=X[280:]).pmf(0.0) > 0.3).all(axis=None)
    assert (found[X["open"][280:] == 0] == 0).all()
    assert found[X["open"][280:] == 1].mean() == pytest.approx(0.7, abs=0.15)


def test_a_shop_that_never_opened_is_forecast_beside_others():
    y, X = shop()
    y, X = (pd.concat([part, 0 * part], keys=["a", "b"]) for part in (y, X))
    early = X.index.get_level_values(-1) < X.index.get_level_values(-1).max() - pd.Timedelta(H - 1, "D")
    X.loc[("b", X[~early].index.get_level_values(-1)[-7:]), "open"] = 1.0  # it will
    forecaster = TaylorformerForecaster(random_state=0).fit(y[early].to_frame(), X[early], fh=range(1, H + 1))
    found = forecaster.predict(X=X[~early])["sales"]
    assert (found["b"] < 5).all()
    assert (found["a"][closed_in(X[~early].loc["a"]) == 0] > 50).all()


@pytest.mark.parametrize("strategy", ["corrected", "averaged"])
def test_a_market_on_one_day_of_the_week_has_statistical_forecasts(strategy):
    rng = np.random.default_rng(0)
    index = pd.date_range("2023-01-02", periods=N + H, freq="D")
    X = pd.DataFrame({"open": (index.dayofweek == 5).astype(float)}, index)
    y = ((100 + rng.normal(0, 4, N + H)) * X["open"]).rename("sales")
    forecaster = TaylorformerForecaster(strategy=strategy, max_steps=5, num_samples=40, random_state=0)
    found = forecaster.fit(y[:N], X[:N], fh=range(1, H + 1)).predict(X=X[N:])
    assert (found[closed_in(X[N:])] == 0).all()
    assert found[~closed_in(X[N:])].between(90, 110).all()


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("cls", [TaylorformerForecaster, LAMForecaster])
def test_zero_is_a_single_value_in_every_distribution(cls):
    y, X = shop()
    forecaster = cls(max_steps=5, num_samples=20, random_state=0).fit(y[:N], X[:N], fh=range(1, H + 1))
    found, closed = forecaster.predict_proba(X=X[N:]), closed_in(X[N:])
    actual = y[N:].to_frame()
    for name, expected in (("pmf", 1.0), ("cdf", 1.0), ("energy", 0.0)):
        assert getattr(found, name)(actual).to_numpy()[closed] == pytest.approx(expected, abs=1e-12)
    assert found.energy().to_numpy()[closed] == pytest.approx(0, abs=1e-12)
    assert (found.cdf(actual - 1).to_numpy()[closed] == 0).all()
    assert (found.quantile([0.0, 0.3, 1.0]).to_numpy().reshape(H, 3)[closed] == 0).all()
    assert np.isfinite(found.log_pdf(actual)).all(axis=None)


def nightly(n=24 * 42):
    """Calls by the hour, from 8 to 20, that follow the temperature."""
    rng = np.random.default_rng(0)
    index = pd.date_range("2024-01-01", periods=n, freq="h")
    X = pd.DataFrame({"temperature": rng.normal(0, 1, n).cumsum() / 8 + rng.normal(0, 1, n)}, index)
    is_open = (index.hour >= 8) & (index.hour < 20)
    mean = np.where(is_open, 60 + 6 * X["temperature"], 0)
    return pd.Series(rng.poisson(mean.clip(0)).astype(float), index, name="calls"), X, is_open


@pytest.mark.parametrize("strategy", ["auto", "averaged"])
def test_hours_that_are_always_closed_stay_so_whatever_x_adds_to_others(strategy):
    y, X, is_open = nightly()
    ahead = 48
    forecaster = TaylorformerForecaster(strategy=strategy, max_steps=5, num_samples=40, random_state=0)
    forecaster.fit(y[:-ahead], X[:-ahead], fh=range(1, ahead + 1))
    quantiles = forecaster.predict_quantiles(X=X[-ahead:], alpha=[0.01, 0.5, 0.99])
    assert (quantiles[~is_open[-ahead:]] == 0).all(axis=None)
    more = forecaster.predict(X=X[-ahead:] + 1) - forecaster.predict(X=X[-ahead:])
    assert (more[~is_open[-ahead:]] == 0).all()
    assert more[is_open[-ahead:]].mean() == pytest.approx(6, abs=1)


def test_an_hour_opens_when_an_update_brings_calls():
    y, X, _ = nightly()
    forecaster = TaylorformerForecaster(random_state=0).fit(y[:-192], X[:-192], fh=range(1, 169))
    later = y[-192:-168].where(y[-192:-168].index.hour != 3, 50.0)
    forecaster.update(later, X=X[-192:-168])
    more = forecaster.predict(X=X[-168:] + 9) - forecaster.predict(X=X[-168:])
    assert more.iloc[147] > 0  # a week later: on other days it was always closed
    assert (more.iloc[[123, 146]] == 0).all()
