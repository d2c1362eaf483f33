"""Distributions of demand whose mean covariates or a season multiply."""

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.stats import poisson

from taylorformer_forecast.baselines.demand import fit_intermittent
from taylorformer_forecast.defaults import ALIKE_DEMAND, FEWEST_ALIKE
from taylorformer_forecast.engine.statistics.demand_ratios import alike_demand, level_of_demand, tilt_demand

LEVELS = np.array([0.5, 0.8, 0.9, 0.95, 0.99])


def forecast_from(y):
    """Values and probabilities of a forecast from all of a series."""
    found = fit_intermittent(torch.as_tensor(y)[None])
    mass = np.diff(found.cdf[0].numpy(), prepend=0.0)
    return found.support[0].numpy(), mass


def test_values_without_probability_stay_so_however_large_they_are():
    values, weights = np.arange(7.0), np.array([0.7, 0.2, 0.1, 0, 0, 0, 0])
    paths, found = tilt_demand(
        np.zeros((5, 1)),
        values[None],
        weights[None],
        weights[None],
        np.array([0.6]),
        np.random.default_rng(0),
    )
    assert (found[0] @ values) == pytest.approx(0.6)
    assert np.isfinite(paths).all()


def test_tilted_demand_keeps_its_order_and_its_support():
    rng = np.random.default_rng(0)
    values = np.array([[0.0, 1.0, 5.0, 0.0]])  # the last has no probability
    weights = np.array([[0.7, 0.2, 0.1, 0.0]])
    draws = rng.choice([0.0, 1.0, 5.0], size=(2000, 1), p=[0.7, 0.2, 0.1])
    for ratio in (0.2, 1.0, 3.0, 100.0):
        found, p = tilt_demand(draws, values, weights, weights, np.array([0.7 * ratio]), rng)
        mean = (p * values).sum()
        assert mean == pytest.approx(min(0.7 * ratio, 0.7 + 0.9 * 4.3), rel=1e-6)
        assert found.mean() == pytest.approx(mean, rel=0.05)
        assert np.isin(found, [0.0, 1.0, 5.0]).all()
        larger = draws[:, None, 0] > draws[None, :, 0]
        assert (found[:, None, 0] >= found[None, :, 0])[larger].all()
        assert p[0, 3] == 0


def test_the_level_weighs_demand_as_forecasts_do_whatever_is_missing():
    """Values that are missing make none older: the forecasts' decays are those of observed values."""
    rng = np.random.default_rng(0)
    ratio = np.repeat([1.0, 4.0], 120)
    demand = rng.poisson(0.6 * ratio).astype(float)
    seen = np.union1d(np.flatnonzero(rng.random(240) < 0.2), [239])
    sparse = np.full(240, np.nan)
    sparse[seen] = demand[seen]
    expected = level_of_demand(demand[seen], ratio[seen])
    assert level_of_demand(sparse, ratio) == pytest.approx(expected, rel=1e-12)
    assert level_of_demand(sparse[:-1], ratio[:-1]) == level_of_demand(demand[seen[:-1]], ratio[seen[:-1]])


@pytest.mark.parametrize("unit", [1.0, 0.25, 1000.0])
def test_the_level_follows_changes_and_no_season(unit):
    """Hours of sales are no changes of the level: the mean of the last ones was twice that of the day."""
    rng = np.random.default_rng(0)
    day = np.tile(np.exp(-(((np.arange(24) - 13) / 4) ** 2)), 30)
    sales = unit * rng.poisson(4 * day[:-10]).astype(float)  # the last hour is that of the largest demand
    assert level_of_demand(sales, day[:-10]) == pytest.approx(4 * unit, rel=0.15)
    risen = unit * rng.poisson(np.repeat([0.5, 3.0], [200, 40])).astype(float)
    assert 2 * unit < level_of_demand(risen, np.ones(240)) < 4 * unit
    assert level_of_demand(0 * risen, np.ones(240)) < 0.01


def test_demand_varies_as_it_did_where_its_mean_was_multiplied_by_as_much():
    """Tilted from all of the past, promotions of mean 4 had 15 and 22 at .95 and .99, not 7 and 9."""
    rng = np.random.default_rng(0)
    ratio = np.where(rng.random(400) < 0.25, 8.0, 1.0)
    y = rng.poisson(0.5 * ratio).astype(float)
    values, weights = forecast_from(y)
    base = alike_demand(values, weights, y, ratio, np.array([1.0, 8.0]))
    assert base.sum(1) == pytest.approx([1.0, 1.0])
    assert base @ values == pytest.approx([0.5, 4.0], abs=0.5)  # the latest values count for more
    found = values[(base.cumsum(1)[:, None] < LEVELS[:, None]).sum(2)]
    for own, mean in zip(found, (0.5, 4.0), strict=True):
        assert np.abs(own - poisson(mean).ppf(LEVELS)).max() <= 1.5, own


def test_demand_that_covariates_hardly_multiply_has_the_forecast_from_all_of_it():
    rng = np.random.default_rng(0)
    y, ratio = rng.poisson(0.5, 100).astype(float), rng.choice([1.0, 1.1], 100)
    values, weights = forecast_from(y)
    assert (alike_demand(values, weights, y, ratio, np.array([1.0, 1.1])) == weights).all()


def test_what_was_seldom_seen_is_told_by_the_nearest_and_latest_values():
    y, ratio = np.r_[np.full(50, 3.0), np.zeros(50), 7.0], np.r_[np.ones(100), 9.0]
    values, weights = np.array([0.0, 3.0, 7.0]), np.array([0.5, 0.4, 0.1])
    found = alike_demand(values, weights, y, ratio, np.array([9.0]))[0]
    assert found[2] == pytest.approx(1 / FEWEST_ALIKE, abs=0.05)
    assert found[1] < 0.1  # of the others the latest, which are zero


def test_missing_values_are_no_demand():
    rng = np.random.default_rng(0)
    ratio = np.where(rng.random(200) < 0.3, 5.0, 1.0)
    y = rng.poisson(0.5 * ratio).astype(float)
    seen = rng.random(200) < 0.7
    values, weights = forecast_from(y)
    gappy = np.where(seen, y, np.nan)
    found = alike_demand(values, weights, gappy, ratio, np.array([1.0, 5.0]))
    assert np.array_equal(found, alike_demand(values, weights, y[seen], ratio[seen], np.array([1.0, 5.0])))


@pytest.mark.parametrize("scale", [1.0, 0.37])
def test_ratios_of_every_size_have_distributions_on_the_values_of_the_forecast(scale):
    rng = np.random.default_rng(0)
    ratio = np.exp(rng.normal(size=300))
    y = scale * rng.poisson(0.5 * ratio)
    values, weights = forecast_from(y)
    ahead = np.exp(np.linspace(-4, 4, 50))
    found = alike_demand(values, weights, y, ratio, ahead)
    assert found.sum(1) == pytest.approx(np.ones(50))
    assert (found[:, weights == 0] == 0).all()
    near = np.abs(np.log(ahead[:-1] / ahead[1:])) < np.log(ALIKE_DEMAND)
    assert near.all()
    assert np.diff(found @ values).min() > -0.5 * scale


@pytest.mark.parametrize("host", ["sktime", "darts"])
def test_promotions_have_the_quantiles_that_promotions_had(host):
    pytest.importorskip(host)
    rng = np.random.default_rng(0)
    promotion = (rng.random(280) < 0.25).astype(float)
    promoted = promotion[266:] > 0
    y = rng.poisson(np.where(promotion > 0, 4.0, 0.5)).astype(float)
    index = pd.date_range("2023-01-01", periods=280)
    y, x = pd.DataFrame({"sales": y, "twice": 2 * y}, index), pd.DataFrame({"promotion": promotion}, index)
    if host == "sktime":
        from taylorformer_forecast.sktime import TaylorformerForecaster

        forecaster = TaylorformerForecaster(strategy="corrected", random_state=0)
        forecaster.fit(y[:266].asfreq("D"), X=x[:266].asfreq("D"), fh=range(1, 15))
        found = forecaster.predict_quantiles(X=x[266:].asfreq("D"), alpha=[0.5, 0.95]).to_numpy()
        found, twice = np.split(found, 2, 1)
    else:
        from darts import TimeSeries

        from taylorformer_forecast.darts import TaylorformerModel

        model = TaylorformerModel(24, 14, strategy="corrected", random_state=0)
        model.fit(TimeSeries.from_dataframe(y[:266]), future_covariates=TimeSeries.from_dataframe(x))
        found = model.predict(14, num_samples=2000).quantile([0.5, 0.95]).values()
        found, twice = np.split(found, 2, 1)
    assert found[promoted].mean(0) == pytest.approx([4.0, 8.0], abs=1.2)
    assert twice[promoted].mean(0) == pytest.approx([8.0, 16.0], abs=3.0)
    assert found[~promoted].mean(0) == pytest.approx([0.3, 2.0], abs=0.8)
