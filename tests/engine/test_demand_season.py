"""Intermittent demand whose mean follows a season."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from darts import TimeSeries
from quiet import QUIET

from taylorformer_forecast.darts import TaylorformerModel
from taylorformer_forecast.defaults import STATISTICAL_LEVELS
from taylorformer_forecast.engine.statistics.demand_season import season_of_demand
from taylorformer_forecast.engine.statistics.forecast import forecast_series
from taylorformer_forecast.engine.statistics.past_losses import decile_loss
from taylorformer_forecast.engine.statistics.requests import SeriesRequest
from taylorformer_forecast.sktime import TaylorformerForecaster

WEEK = np.array([0.1, 0.1, 0.2, 0.2, 0.3, 1.0, 0.9])


def poisson(n, profile=WEEK, seed=0):
    return np.random.default_rng(seed).poisson(np.resize(profile, n)).astype(float)


def test_means_follow_the_season_and_all_parts_of_a_forecast_agree():
    y = poisson(280)
    y[3::11] = np.nan
    y[-1] = 1.0
    found = forecast_series([SeriesRequest(y, np.arange(270, 301), seasons=[7])], 2000, 0)[0]
    mean = (found.weights * found.loc).sum(1)
    np.testing.assert_allclose(mean[10:17], WEEK, atol=0.25)
    np.testing.assert_allclose(found.paths[:, 10:].mean(0), mean[10:], atol=0.05)
    middle = np.quantile(found.paths[:, 10:], 0.5, axis=0, method="inverted_cdf")
    half = STATISTICAL_LEVELS.index(0.5)
    np.testing.assert_array_equal(found.quantiles[10:, half], middle)
    np.testing.assert_array_equal(found.paths[:, 10:], np.round(found.paths[:, 10:]))
    assert np.ptp(mean[:10]) < np.ptp(mean[10:])  # in sample the level alone counts


def test_demand_without_a_season_is_forecast_alike_at_all_steps():
    series = np.random.default_rng(0).poisson(0.4, (200, 280)).astype(float)
    ratios = np.stack([season_of_demand(y, [7], np.arange(7)) for y in series])
    assert (ratios == 1).all(1).mean() > 0.93
    y = series[(ratios == 1).all(1)][0]
    weights = forecast_series([SeriesRequest(y, np.arange(280, 290), seasons=[7])], 10, 0)[0].weights
    np.testing.assert_array_equal(weights, weights[:1].repeat(10, 0))
    few = np.array([*WEEK * 10] * 2)[:13]
    assert (season_of_demand(few, [7], np.arange(7)) == 1).all()  # less than two weeks


def test_a_season_of_more_than_half_of_what_is_usually_seen_is_found():
    profile = np.where(np.arange(672) % 96 < 40, 0.05, 1.5)  # quarter-hours of a week
    y = poisson(2100, profile)
    found = forecast_series([SeriesRequest(y, np.arange(2100, 2196), seasons=[672])], 100, 0)[0]
    mean, busy = (found.weights * found.loc).sum(1), np.resize(profile, 2196)[2100:] > 1
    assert found.intermittent
    assert mean[busy].mean() > 3 * mean[~busy].mean()


def test_means_of_a_season_are_shrunk_as_far_as_chance_explains_them():
    """Twice as many cycles of the same values leave less to chance."""
    y = np.tile([0.0, 1.0, 0.0, 2.0, 1.0, 2.0, 3.0, 2.0], 4)
    profile = y.reshape(-1, 4).mean(0) / y.mean()
    few, many = (season_of_demand(part, [4], np.arange(4)) - 1 for part in (y, np.tile(y, 8)))
    raw = profile - 1
    assert (np.abs(few) < 0.97 * np.abs(raw))[raw != 0].all()
    assert (np.abs(few) < np.abs(many))[raw != 0].all()
    np.testing.assert_allclose(many, raw, atol=0.05)


def test_places_with_many_zeros_alone_have_next_to_no_demand():
    """Shrunk to the mean of all places, closed Sundays had a tenth of that."""
    week = np.array([1.4] * 6 + [0.0])
    for seed in range(3):
        long, short = (season_of_demand(poisson(n, week, seed), [7], np.arange(7)) for n in (147, 28))
        assert 0 < long[-1] < 0.03
        assert short[-1] > 0.1  # four zeros may be chance
    rare = season_of_demand(np.tile([0.0, 0.0, 0.0, 0.0, 0.0, 4.0, 0.0], 3), [7], np.arange(7))
    assert (rare > 0).all()


def test_of_two_seasons_the_one_that_explains_more_counts():
    day = np.repeat([0.1, 0.8], 12)
    found = season_of_demand(poisson(960, day), [7, 24], np.arange(24))
    np.testing.assert_allclose(found * day.mean(), day, atol=0.3)


def test_the_season_lowers_the_loss_and_costs_next_to_nothing_where_there_is_none():
    for profile, least, most in ((WEEK, 0.8, 0.98), (np.full(7, 0.4), 0.995, 1.005)):
        series = [poisson(308, profile, seed) for seed in range(60)]
        truth = np.stack([y[280:] for y in series])
        with_it, without = (
            np.stack([one.quantiles for one in forecast_series(requests, 10, 0)])
            for seasons in ([7], [])
            for requests in [[SeriesRequest(y[:280], np.arange(280, 308), seasons=seasons) for y in series]]
        )
        deciles = slice(None), slice(None), [4, 6, 8, 10, 12, 14, 16, 18, 20]
        ratio = decile_loss(with_it[deciles], truth).mean() / decile_loss(without[deciles], truth).mean()
        assert least < ratio < most


@pytest.mark.parametrize("host", ["sktime", "darts"])
def test_a_season_that_covariates_multiply_does_not_count_twice(host):
    y, index = poisson(280), pd.date_range("2024-01-01", periods=287, freq="D")
    X = pd.DataFrame({"weekend": (np.arange(287) % 7 >= 5) * 1.0}, index)
    if host == "sktime":
        forecaster = TaylorformerForecaster(strategy="corrected", random_state=0)
        fitted = forecaster.fit(pd.Series(y, index[:280]), X=X[:280], fh=np.arange(1, 8))
        mean = fitted.predict(X=X[280:]).to_numpy()
    else:
        model = TaylorformerModel(14, 7, strategy="corrected", random_state=0, pl_trainer_kwargs=QUIET)
        covariates = TimeSeries.from_dataframe(X)
        model.fit(TimeSeries.from_times_and_values(index[:280], y), future_covariates=covariates)
        mean = model.predict(7, num_samples=2000).mean(axis=2).values()[:, 0]
    np.testing.assert_allclose(mean, WEEK, atol=0.4)


@pytest.mark.parametrize("host", ["sktime", "darts"])
def test_demand_beside_a_covariate_keeps_its_season(host):
    """A column without any effect switched it off: weekends were forecast as other days."""
    index, rng = pd.date_range("2024-01-01", periods=154, freq="D"), np.random.default_rng(2)
    promotion = (rng.random(154) < 0.15) * 1.0
    week = np.where(index.dayofweek >= 5, 1.6, 0.3)
    sold = np.stack([rng.poisson(week), rng.poisson(week * 3**promotion)], 1).astype(float)
    sold[:5] = sold[40:44] = np.nan  # grids of values and of covariates begin at different steps
    y, X = pd.DataFrame(sold, index, columns=["usual", "moved"]), pd.DataFrame({"x": promotion}, index)
    if host == "sktime":
        forecaster = TaylorformerForecaster(strategy="corrected", random_state=0)
        mean = forecaster.fit(y[:140], X[:140], fh=np.arange(1, 15)).predict(X=X[140:]).to_numpy()
    else:
        model = TaylorformerModel(133, 14, strategy="corrected", random_state=0, pl_trainer_kwargs=QUIET)
        y, X = TimeSeries.from_dataframe(y), TimeSeries.from_dataframe(X)
        model.fit(y[5:140], future_covariates=X)
        mean = model.predict(14, num_samples=2000).mean(axis=2).values()
    week, promotion = week[140:], promotion[140:]
    np.testing.assert_allclose(mean[:, 0], week, atol=0.6)
    usual = promotion == 0
    assert (mean[usual & (week > 1)].mean(0) > 2.5 * mean[usual & (week < 1)].mean(0)).all()
    usual_sum, moved_sum = mean[~usual].sum(0)
    assert moved_sum > 1.5 * usual_sum


def test_the_season_of_demand_is_that_of_demand_over_what_covariates_do():
    rng, week = np.random.default_rng(0), np.resize(WEEK, 700)
    others = np.exp(rng.normal(size=700))
    others[::7] *= 4  # which is no part of the season
    y = rng.poisson(week * others).astype(float)
    found = season_of_demand(y, [7], np.arange(7), others)
    np.testing.assert_allclose(found / found.mean() * WEEK.mean(), WEEK, atol=0.1)
    flat = rng.poisson(0.4 * others).astype(float)
    assert (season_of_demand(flat, [7], np.arange(7)) != 1).any()
    assert (season_of_demand(flat, [7], np.arange(7), others) == 1).all()


@pytest.mark.parametrize("strategy", ["auto", "corrected"])
def test_demand_that_is_only_seldom_outside_its_season_is_intermittent_demand(strategy):
    """As a series with a season, Saturday's .99 quantile was 8, and the median of other days .3."""
    rng = np.random.default_rng(0)
    sold = rng.poisson(np.tile([0.4] * 5 + [5.0, 0.4], 60)).astype(float)
    y = pd.Series(sold, pd.period_range("2024-01-01", periods=len(sold), freq="D"))
    forecaster = TaylorformerForecaster(strategy=strategy, random_state=0).fit(y, fh=range(1, 15))
    assert forecaster.strategy_ == "corrected"
    found = forecaster.predict_quantiles(alpha=[0.5, 0.9, 0.99]).to_numpy()
    assert (found[[0, 1, 2, 3, 4, 6], 0] == 0).all()
    assert np.abs(found[[5, 12]] - [5, 8, 11]).max() <= 2


def test_hours_of_sales_are_forecast_from_the_level_of_the_whole_day():
    """From the level of the last hours, those of the next morning were a third too large."""
    rng, day = np.random.default_rng(0), np.exp(-(((np.arange(24) - 13) / 4) ** 2))
    sold = rng.poisson(np.tile(4 * day, 42)[:998]).astype(float)  # up to the hour of the largest demand
    request = SeriesRequest(sold, np.arange(998, 1022), seasons=[24])
    found = forecast_series([request], 200, 0)[0]
    mean = (found.weights * found.loc).sum(1)
    assert found.intermittent
    assert mean.sum() == pytest.approx(4 * day.sum(), rel=0.15)


def test_two_winters_are_enough_to_see_that_the_third_is_coming():
    """Four cycles were asked for: in December of the third year, forecasts were the mean of all weeks."""
    rng = np.random.default_rng(0)
    week = (np.arange(133) + 26) % 52 - 26
    mean = 0.3 + 100 * np.exp(-0.5 * (week / 3.5) ** 2)
    cases = rng.negative_binomial(8, 8 / (8 + mean)).astype(float)
    request = SeriesRequest(
        cases[:127], np.arange(127, 131), seasons=[52]
    )  # the peak of the third is at week 130
    found = forecast_series([request], 200, 0)[0]
    forecast = (found.weights * found.loc).sum(1)
    assert found.intermittent
    assert forecast.mean() > 0.4 * mean[127:131].mean()


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("cycles", [2, 3, 4])
@pytest.mark.parametrize(
    "cycle", [[0.0] * 11 + [100], [0.0] * 5 + [5, 9, 4] + [0] * 4, [3.0, 0, 0, 0, 2, 0, 0]]
)
def test_cycles_that_are_equal_are_forecast_and_nothing_beyond_them(cycle, cycles):
    """A ratio of zero made the level no number, and all mass lay at the largest value, or beyond."""
    n, season = len(cycle) * cycles, len(cycle)
    request = SeriesRequest(np.tile(cycle, cycles), np.arange(n, n + season), seasons=[season])
    found = forecast_series([request], 200, 0)[0]
    np.testing.assert_allclose((found.weights * found.loc).sum(1), cycle, atol=0.1 * np.max(cycle))
    np.testing.assert_array_equal(found.quantiles[np.equal(cycle, 0)][:, STATISTICAL_LEVELS.index(0.9)], 0)
