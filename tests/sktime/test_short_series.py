"""Short and awkward series, forecast by the defaults: never a silly forecast."""

import numpy as np
import pandas as pd
import pytest
import torch
from combined import forecast

from taylorformer_forecast.sktime import TaylorformerForecaster

FH = range(1, 13)
LEVELS = [0.1, 0.25, 0.5, 0.75, 0.9]
RNG = np.random.default_rng(0)
NOISE = 10 + RNG.normal(size=40)

AWKWARD = {
    "intermittent demand": np.r_[np.zeros(27), 1, 7, 8, 1, 1, 0, 0, 0, 0, 0, 2, 2],
    "rare demand": np.r_[np.zeros(27), 1, 1, 1, 0, 1, 0, 0, 1, 0, 1, 0, 0],
    "zeros": np.zeros(30),
    "zeros at the end": np.r_[NOISE, np.zeros(20)],
    "a constant": np.full(30, 5.0),
    "three values": np.array([3.0, 4.0, 3.5]),
    "a glitch": np.r_[NOISE[:-2], 1e4, NOISE[-1]],
    "a glitch at the end": np.r_[NOISE, 1e4],
    "a level shift": np.r_[NOISE, NOISE[:6] + 100],
    "growth that ends": np.r_[np.exp(np.arange(40) / 8), np.full(6, np.exp(39 / 8))],
    "a step from nothing": np.r_[np.zeros(20), 1e6],
    "huge values": 1e30 * NOISE,
    "tiny values": 1e-30 * NOISE,
    "gaps": np.where(np.arange(40) % 3 == 1, np.nan, NOISE),
}


def series(values):
    return pd.Series(values, pd.period_range("2000-01", periods=len(values), freq="M"))


def fitted(y, **changes):
    return TaylorformerForecaster(**{"random_state": 0, "num_samples": 50} | changes).fit(y, fh=FH)


@pytest.fixture(scope="module")
def forecasts():
    return {name: fitted(series(values)) for name, values in AWKWARD.items()}


@pytest.mark.parametrize("name", AWKWARD)
def test_no_decile_is_far_outside_what_was_seen(forecasts, name):
    seen = AWKWARD[name][~np.isnan(AWKWARD[name])]
    bands = forecasts[name].predict_quantiles(alpha=LEVELS).to_numpy()
    width = 1.5 * abs(seen).max()
    assert np.isfinite(bands).all()
    assert (np.diff(bands, axis=1) >= 0).all()
    assert bands.min() >= seen.min() - width
    assert bands.max() <= seen.max() + width


@pytest.mark.parametrize("name", ["intermittent demand", "rare demand"])
def test_counts_are_forecast_by_whole_numbers_that_are_not_negative(forecasts, name):
    bands = forecasts[name].predict_quantiles(alpha=LEVELS).to_numpy()
    assert (bands >= 0).all()
    np.testing.assert_allclose(bands, np.round(bands), atol=1e-6)
    paths = forecasts[name].predict_proba(marginal=False).sample(20).to_numpy()
    assert (paths >= 0).all()


@pytest.mark.parametrize("seed", range(5))
def test_zeros_stay_zeros_on_their_way_to_the_forecast(seed):
    """Of fewer than four years, of which no season shows."""
    values = np.random.default_rng(seed).poisson(0.4, size=40).astype(float)
    direct = forecast(torch.as_tensor(values)[None], 12, 12).quantiles(LEVELS)[0].numpy()
    np.testing.assert_array_equal(fitted(series(values)).predict_quantiles(alpha=LEVELS), direct)


def test_lower_ends_and_quantiles_at_the_bound_are_zero_and_have_its_probability():
    """They were just above it, so that no interval covered a truth of zero."""
    few_zeros = np.random.default_rng(0).poisson(2, size=80).astype(float)
    forecaster = fitted(series(few_zeros))
    low = forecaster.predict_quantiles(alpha=[0.02]).to_numpy()
    marginal = forecaster.predict_proba()
    at_zero = marginal.cdf(pd.DataFrame(0.0, marginal.index, marginal.columns)).to_numpy()
    assert (low >= 0).all()
    assert (low == 0).any()
    assert (at_zero[low == 0] > 0).all()


def test_every_quantile_of_a_closed_day_is_zero():
    open_days = np.random.default_rng(0).poisson(100, size=84) * (np.arange(84) % 7 < 5)
    forecaster = fitted(pd.Series(open_days * 1.0, pd.date_range("2024-01-01", periods=84)))
    bands = forecaster.predict_quantiles(alpha=[0.01, 0.1, 0.5, 0.9, 0.99]).to_numpy()
    assert (bands[[5, 6]] == 0).all()
    assert (bands[:5] > 0).all()


def test_forecasts_of_a_constant_are_that_constant(forecasts):
    np.testing.assert_allclose(forecasts["a constant"].predict_quantiles(alpha=LEVELS), 5.0, rtol=1e-6)


@pytest.mark.parametrize("name", ["a level shift", "gaps", "a glitch"])
@pytest.mark.parametrize("scale", [1e3, 1e-3])
def test_forecasts_scale_with_the_units_of_the_series(forecasts, name, scale):
    bands = forecasts[name].predict_quantiles(alpha=LEVELS).to_numpy()
    scaled = fitted(series(AWKWARD[name] * scale)).predict_quantiles(alpha=LEVELS).to_numpy()
    np.testing.assert_allclose(scaled / scale, bands, rtol=1e-4)


def test_mean_intervals_and_paths_are_of_one_distribution(forecasts):
    forecaster = fitted(series(NOISE), num_samples=2000)
    paths = forecaster.predict_proba(marginal=False).sample(2000)
    by_step = paths.groupby(level=1)
    np.testing.assert_allclose(by_step.mean().to_numpy()[:, 0], forecaster.predict(), atol=0.1)
    quantiles = forecaster.predict_quantiles(alpha=[0.1, 0.9]).to_numpy()
    for column, level in enumerate((0.1, 0.9)):
        np.testing.assert_allclose(by_step.quantile(level).to_numpy()[:, 0], quantiles[:, column], atol=0.2)


@pytest.mark.parametrize("name", ["intermittent demand", "rare demand", "gaps"])
def test_distributions_of_steps_are_those_with_joint_paths(name):
    y = series(AWKWARD[name])
    X = pd.DataFrame({"x": np.random.default_rng(0).normal(size=len(y))}, y.index)
    fitted = TaylorformerForecaster(strategy="corrected", num_samples=30, random_state=0).fit(y[:-5], X[:-5])
    fh = fitted._check_fh(range(-2, 6))
    alone, joint = (fitted._predictive(fh, X[-5:], joint=own)[1].mixture for own in (False, True))
    for levels in ([0.1, 0.5, 0.9], [0.01, 0.99]):
        np.testing.assert_array_equal(alone.at_levels(levels), joint.at_levels(levels))


def test_paths_have_the_mean_of_the_forecast_with_fewer_of_them_too():
    forecaster = fitted(series(np.cumsum(NOISE - 10)), num_samples=100)
    paths = forecaster.predict_proba(marginal=False).mean().to_numpy()[:, 0]
    deviation = np.sqrt(forecaster.predict_var().to_numpy()[:, 0])
    assert (abs(paths - forecaster.predict()) < 0.05 * deviation).all()  # .1 with independent draws


def test_the_forecast_of_a_step_does_not_depend_on_which_others_are_asked_for():
    forecaster = fitted(series(NOISE.cumsum() + 5 * RNG.normal(size=40)))
    every = forecaster.predict_quantiles(alpha=LEVELS)
    for asked in ([1], [1, 2, 3], [2, 12]):
        alone = forecaster.predict_quantiles(fh=asked, alpha=LEVELS)
        pd.testing.assert_frame_equal(alone, every.iloc[[step - 1 for step in asked]])


def test_an_outlier_hides_no_season():
    y = pd.Series(20 + 5 * np.sin(2 * np.pi * np.arange(90) / 10) + RNG.normal(size=90))
    y.iloc[40] += 300.0
    truth = 20 + 5 * np.sin(2 * np.pi * np.arange(90, 102) / 10)
    assert abs(fitted(y).predict() - truth).mean() < 1.5  # 3.2 without the season


def test_calendar_cycles_of_one_step_hide_no_season():
    values = 100 + 20 * np.sin(2 * np.pi * np.arange(84) / 12)
    found = fitted(series(values[:72]), time_features=("month",)).predict()
    np.testing.assert_allclose(found, values[72:], atol=1.0)


SHOP = RNG.poisson(np.array([30, 25, 28, 40, 60, 0, 0])[np.arange(168) % 7]).astype(float)
SUN = np.maximum(0, np.sin((np.arange(264) % 24 - 6) / 12 * np.pi)) * (3 + 0.5 * RNG.random(264))


@pytest.mark.parametrize(
    ("values", "freq", "season"), [(SHOP, "D", 7), (SUN, "h", 24), (np.tile([0.0, 10.0], 60), "D", 2)]
)
@pytest.mark.parametrize("strategy", ["auto", "baseline", "averaged"])
def test_zeros_that_a_season_explains_are_no_intermittent_demand(values, freq, season, strategy):
    y = pd.Series(values, pd.date_range("2024-01-01", periods=len(values), freq=freq))
    past, truth = y.iloc[:-24], y.iloc[-24:]
    forecaster = fitted(past, strategy=strategy, max_steps=10)
    found = forecaster.predict(fh=range(1, 25))
    flat = abs(truth - past.mean()).mean()
    assert abs(found - truth).mean() < 0.4 * flat
    assert forecaster.predict_quantiles(fh=range(1, 25), alpha=LEVELS).min().min() >= 0


def test_in_sample_forecasts_do_not_see_the_value_that_they_are_for():
    y = series(NOISE)
    other = y.copy()
    other.iloc[-1] = 30.0
    one, two = (fitted(z).predict_quantiles(fh=[0], alpha=LEVELS).to_numpy() for z in (y, other))
    assert abs(one - two).max() < 2.0  # only what is fitted to the whole series moves


def test_an_instance_of_a_panel_is_forecast_as_by_itself():
    parts = {"a": series(NOISE), "b": series(AWKWARD["intermittent demand"])}
    panel = pd.concat({key: part.to_frame("y") for key, part in parts.items()}, names=["key", "month"])
    together = fitted(panel).predict_quantiles(alpha=LEVELS)
    for key, part in parts.items():
        alone = fitted(part).predict_quantiles(alpha=LEVELS)
        np.testing.assert_allclose(together.loc[key], alone, rtol=1e-6, atol=1e-6)


def test_an_update_is_as_good_as_a_fit_to_all_of_it():
    y = series(NOISE)
    updated = fitted(y.iloc[:30]).update(y.iloc[30:])
    pd.testing.assert_frame_equal(
        updated.predict_quantiles(fh=FH, alpha=LEVELS), fitted(y).predict_quantiles(fh=FH, alpha=LEVELS)
    )


@pytest.mark.parametrize(("freq", "season"), [("Q", 4), ("D", 7), ("M", 12)])
def test_two_whole_cycles_of_a_short_season_are_enough(freq, season):
    pattern = np.random.default_rng(1).normal(100, 15, season)
    y = pd.Series(np.tile(pattern, 3), pd.period_range("2020-01-06", periods=3 * season, freq=freq))
    forecast = TaylorformerForecaster(random_state=0).fit(y[: 2 * season], fh=range(1, season + 1)).predict()
    naive = np.abs(pattern - pattern.mean()).mean()
    assert np.abs(forecast - y[2 * season :]).mean() < 0.4 * naive


def test_the_week_of_hours_is_used_from_the_third_week_on():
    t = np.arange(24 * 7 * 4)
    shape = 10 * np.sin(2 * np.pi * t / 24) * np.where(t // 24 % 7 < 5, 1.0, 0.3)
    y = pd.Series(
        100 + shape + np.random.default_rng(0).normal(size=len(t)),
        pd.date_range("2024-01-01", periods=len(t), freq="h"),
    )
    n = 24 * 19  # the last Saturday is ahead
    forecast = TaylorformerForecaster(strategy="corrected", random_state=0).fit(y[:n], fh=range(1, 49))
    assert np.abs(forecast.predict() - y[n : n + 48]).mean() < 1.7


def test_steps_without_any_error_do_not_widen_intervals_without_end():
    r = np.random.default_rng(0)
    y = pd.Series(100 + 20 * np.tile(r.normal(size=12), 4), pd.period_range("2010-01", periods=48, freq="M"))
    y += r.normal(0, 5, 48)
    forecaster = TaylorformerForecaster(random_state=0).fit(y, fh=range(1, 121))
    ends = forecaster.predict_interval(coverage=0.8)
    width = (ends.iloc[:, 1] - ends.iloc[:, 0]).to_numpy()
    assert width[-1] < 6 * width[0]


@pytest.mark.parametrize("strategy", ["baseline", "corrected", "zero_shot"])
def test_what_nobody_expected_has_a_density(strategy):
    """Logarithms of densities were infinite from some five deviations on."""
    for n in (8, 120):
        y = pd.Series(np.random.default_rng(0).normal(size=n))
        found = TaylorformerForecaster(strategy=strategy, random_state=0).fit(y, fh=[1, 6]).predict_proba()
        for far in (-5.0, 5.0) if n == 8 else (-15.0, 15.0):
            density = found.log_pdf(found.mean() + far).to_numpy()
            assert ((density > -30) & (density < -1)).all()
    np.testing.assert_allclose(found.var(), 1.0, atol=0.5)
