"""Darts models without a network: statistical forecasts of every series from its own past."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch
from darts import TimeSeries
from darts.metrics import mae
from quiet import QUIET

from taylorformer_forecast.darts import FamilyLikelihood, TaylorformerModel
from taylorformer_forecast.engine.strategy import STATISTICAL
from taylorformer_forecast.sktime import TaylorformerForecaster

RNG = np.random.default_rng(0)
WALK = 50 + RNG.normal(size=60).cumsum()
SEASON = np.round(10 + 4 * np.sin(np.arange(60) * np.pi / 6) + RNG.normal(size=60), 2)
COUNTS = np.r_[np.zeros(27), 1, 7, 8, 1, 1, 0, 0, 0, 0, 0, 2, 2]


def from_values(values):
    return TimeSeries.from_times_and_values(
        pd.date_range("2000-01-01", periods=len(values), freq="MS"), np.asarray(values)
    )


def make(lengths=(12, 6), **params):
    usual = {"strategy": "baseline", "random_state": 0, "pl_trainer_kwargs": QUIET}
    return TaylorformerModel(*lengths, **{**usual, **params})


def moments(model, n=6, **given):
    """Mean and variance of every step, from the parameters of the likelihood."""
    mu, sigma, nu = model.predict(n, predict_likelihood_parameters=True, **given).values().T[:3]
    return mu, sigma**2 * nu / (nu - 2)


@pytest.mark.parametrize("values", [WALK, SEASON, COUNTS], ids=["walk", "season", "counts"])
def test_both_hosts_give_the_same_forecasts(values):
    """Made from the whole past, however short the input chunk."""
    y = pd.Series(values, pd.period_range("2000-01", periods=len(values), freq="M"))
    forecaster = TaylorformerForecaster(random_state=0).fit(y, fh=range(1, 7))
    assert forecaster.strategy_ == "corrected"
    model = make(lengths=((3, 4), 6), strategy="auto").fit(from_values(values))
    mean, variance = moments(model)
    np.testing.assert_allclose(mean, forecaster.predict(), rtol=1e-6)
    np.testing.assert_allclose(variance, forecaster.predict_var().squeeze(), rtol=1e-6)
    paths = model.predict(6, num_samples=4000).all_values()[:, 0]
    deciles = forecaster.predict_quantiles(alpha=[0.1, 0.5, 0.9]).to_numpy()
    below = (paths[:, None] < deciles[..., None]).mean(2)
    upto = (paths[:, None] <= deciles[..., None] + 1e-9).mean(2)
    assert (below < np.array([0.1, 0.5, 0.9]) + 0.04).all()
    assert (upto > np.array([0.1, 0.5, 0.9]) - 0.04).all()


@pytest.mark.parametrize("unit", [2.0**-532, 2.0**400])
def test_parameters_follow_the_unit_of_a_series_however_small_or_large(unit):
    usual, other = (
        make().fit(from_values(values)).predict(6, predict_likelihood_parameters=True).values().T
        for values in (WALK, unit * WALK)
    )
    np.testing.assert_allclose(other / [[unit], [unit], [1.0]], usual, rtol=1e-6)


def test_mixed_precision_does_not_reach_statistical_forecasts():
    y = from_values(100 + 20 * np.sin(np.arange(72) / 2) + np.random.default_rng(0).normal(size=72))
    found = [
        moments(make(strategy="corrected", pl_trainer_kwargs={**QUIET, "precision": precision}).fit(y))
        for precision in ("32-true", "bf16-mixed")
    ]
    np.testing.assert_array_equal(*found)


def test_paths_are_joint_at_any_horizon():
    paths = make().fit(from_values(WALK)).predict(20, num_samples=500).all_values()[:, 0]
    assert np.corrcoef(paths[5], paths[6])[0, 1] > 0.8
    assert np.corrcoef(paths[18], paths[19])[0, 1] > 0.8  # far beyond the output chunk
    assert paths[19].std() > 1.5 * paths[0].std()


@pytest.mark.parametrize("num_samples", [1, 50])
def test_counts_are_forecast_by_whole_numbers_that_are_not_negative(num_samples):
    paths = make().fit(from_values(COUNTS)).predict(12, num_samples=num_samples).all_values()
    assert paths.min() >= 0
    np.testing.assert_array_equal(paths, np.round(paths))


def test_another_series_is_forecast_from_its_own_past():
    model, other = make(seasonal_periods=12).fit(from_values(SEASON)), from_values(1000 + 3 * WALK)
    refitted = make(seasonal_periods=12).fit(other)
    np.testing.assert_array_equal(moments(model, series=other), moments(refitted))
    first, second = model.predict(4, series=[from_values(SEASON), other[:13]], num_samples=20)
    assert first.all_values().max() < 30
    assert second.all_values().min() > 1000


def test_components_are_forecast_each_by_itself():
    both = from_values(np.stack([SEASON, COUNTS.repeat(2)[:60]], 1))
    model = make(seasonal_periods=12).fit(both)
    parameters = model.predict(6, predict_likelihood_parameters=True).values()
    for k in (0, 1):
        alone = make(seasonal_periods=12).fit(both[both.components[k]])
        expected = alone.predict(6, predict_likelihood_parameters=True).values()
        np.testing.assert_array_equal(parameters[:, 3 * k : 3 * k + 3], expected)
    assert model.predict(6, num_samples=7).all_values().shape == (6, 2, 7)


@pytest.mark.parametrize("strategy", ["corrected", "averaged"])
def test_seasons_are_those_of_each_component_whatever_comes_first(strategy):
    rng = np.random.default_rng(0)
    season = 20 + 8 * np.tile(np.r_[0.0, 1, 2, 1, 0, -3, -1], 18)[:120] + 0.5 * rng.normal(size=120)
    walk = rng.normal(size=120).cumsum()
    by_itself, rest = from_values(season)[:-7], from_values(walk)[:-7]
    both = from_values(np.stack([walk, season], 1))[:-7]
    errors = []
    for known, asked in ((by_itself, by_itself), ([rest, by_itself], by_itself), (both, both)):
        model = make(strategy=strategy).fit(known)
        found = model.predict(7, series=asked, num_samples=50).mean(axis=2).values()[:, -1]
        errors.append(np.abs(found - season[-7:]).mean())
    assert errors[0] < 1.0
    if strategy == "corrected":
        assert max(errors) < 1.0
    else:  # the network of all sees no season of one of them
        assert max(errors) < 4.0


@pytest.mark.parametrize("loaded", [False, True])
def test_a_season_of_the_training_series_is_known_where_the_latest_values_show_it_twice(tmp_path, loaded):
    """Statistics see the last 1,000 values: too few to find a season of 400 steps."""
    shape = 50 + 9 * RNG.normal(size=400)
    y = TimeSeries.from_values(np.tile(shape, 4)[:1520] + RNG.normal(size=1520))
    model = make().fit(y[:1500])
    if loaded:
        model.save(str(tmp_path / "model.pt"))
        model = TaylorformerModel.load(str(tmp_path / "model.pt"))
    found = model.predict(6, series=y[:1500], num_samples=50).mean(axis=2)
    assert mae(y[1500:1506], found) < 2.5


def test_series_of_two_frequencies_have_the_cycles_of_their_own():
    dates = {
        "D": pd.date_range("2020-01-01", periods=100),
        "MS": pd.date_range("2012-01-01", periods=95, freq="MS"),
    }
    both = [
        TimeSeries.from_times_and_values(index, 50 + 9 * np.sin(2 * np.pi * np.arange(len(index)) / period))
        for index, period in ((dates["D"], 7), (dates["MS"], 12))
    ]
    model = make().fit(both)
    for one in both:
        together = model.predict(4, series=one, predict_likelihood_parameters=True)
        alone = make().fit(one).predict(4, predict_likelihood_parameters=True)
        np.testing.assert_allclose(together.values(), alone.values(), rtol=1e-6)


def test_a_shifted_output_chunk_has_the_forecasts_of_later_steps():
    y = from_values(SEASON)
    shifted = make(output_chunk_shift=3).fit(y)
    assert shifted.predict(3).start_time() == y.end_time() + 4 * y.freq
    np.testing.assert_array_equal(moments(shifted, 3), np.stack(moments(make((12, 9)).fit(y), 6))[:, 3:])


def test_the_forecast_of_a_step_does_not_depend_on_how_many_are_asked_for():
    model = make().fit(from_values(WALK))
    np.testing.assert_array_equal(np.stack(moments(model, 2)), np.stack(moments(model, 6))[:, :2])


def test_zeros_that_a_season_explains_are_no_intermittent_demand():
    model = make().fit(from_values(np.tile([0.0, 0.0, 10.0, 20.0], 15)))
    found = model.predict(4, num_samples=200).mean().values()[:, 0]
    np.testing.assert_allclose(found, [0.0, 0.0, 10.0, 20.0], atol=0.5)


@pytest.mark.parametrize("horizon", [6, 9])
def test_historical_forecasts_are_those_of_the_past_before_them(horizon):
    y, model = from_values(SEASON), make().fit(from_values(SEASON))
    options = {"forecast_horizon": horizon, "stride": 5, "last_points_only": False, "num_samples": 3}
    kept, refitted = (model.historical_forecasts(y, retrain=retrain, **options) for retrain in (False, True))
    assert [f.start_time() for f in kept] == [f.start_time() for f in refitted]
    assert kept[0].start_time() == y.time_index[12]
    one = model.historical_forecasts(
        y, start=40, forecast_horizon=6, retrain=False, predict_likelihood_parameters=True
    )
    np.testing.assert_allclose(one.values()[0, 0], moments(model, series=y[:40])[0][5], rtol=1e-12)
    assert np.isfinite(model.backtest(y, metric=mae, start=40, retrain=True, stride=9, num_samples=9))
    errors = model.backtest(y, metric=mae, start=36, forecast_horizon=6, retrain=False, num_samples=200)
    assert errors < 0.6 * np.std(SEASON)


@pytest.mark.parametrize("strategy", STATISTICAL)
def test_a_model_that_was_saved_gives_the_same_forecasts(tmp_path, strategy):
    path, model = str(tmp_path / "model.pt"), make(strategy=strategy).fit(from_values(SEASON))
    expected = model.predict(9, num_samples=5, random_state=1)
    model.save(path)
    loaded = TaylorformerModel.load(path)
    assert loaded.predict(9, num_samples=5, random_state=1) == expected
    for asked in (strategy, "auto"):
        fresh = make(strategy=asked)
        fresh.load_weights(path)
        assert fresh.predict(9, series=from_values(SEASON), num_samples=5, random_state=1) == expected
        assert fresh.summary().strategy == strategy
    with pytest.raises(ValueError, match=f"strategy={strategy!r}, and fit no model with strategy='train'"):
        make(strategy="train").load_weights(path)


@pytest.mark.filterwarnings("error:The state dict")
def test_models_without_a_network_are_read_without_a_warning(tmp_path):
    path, model = str(tmp_path / "model.pt"), make().fit(from_values(SEASON))
    model.save(path)
    assert TaylorformerModel.load(path).predict(6, random_state=1) == model.predict(6, random_state=1)


def test_missing_values_at_the_end_are_steps_of_the_forecast():
    known = make(lengths=(12, 26)).fit(from_values(WALK))
    late = from_values(np.r_[WALK, np.full(20, np.nan)])
    np.testing.assert_array_equal(moments(known, 6, series=late), np.stack(moments(known, 26))[:, 20:])


def test_of_a_series_without_values_nothing_is_made_up():
    empty = from_values(np.full(20, np.nan))
    first, second = make().fit(from_values(WALK)).predict(4, series=[empty, from_values(WALK)], num_samples=3)
    assert np.isnan(first.all_values()).all()
    assert np.isfinite(second.all_values()).all()


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16"])
def test_forecasts_have_the_precision_of_the_series(dtype):
    forecast = make().fit(from_values(COUNTS).astype(dtype)).predict(3, num_samples=50)
    assert forecast.dtype == ("float32" if dtype == "float16" else dtype)
    assert np.isfinite(forecast.all_values()).all()


def test_the_likelihood_may_be_any_student_t_and_no_other():
    y = from_values(SEASON)
    own = make(likelihood=FamilyLikelihood("studentt"), strategy="auto").fit(y)
    assert own.summary().strategy == "corrected"
    np.testing.assert_array_equal(moments(own), moments(make(strategy="corrected").fit(y)))
    with pytest.raises(ValueError, match=r"FamilyLikelihood is given.*take strategy='train'"):
        make(likelihood=FamilyLikelihood("normal"))


def test_there_is_no_network():
    model = make().fit(from_values(SEASON))
    assert (model.epochs_trained, model.summary().steps) == (0, 0)
    assert not model.uses_future_covariates
    with pytest.raises(NotImplementedError, match="have no network"):
        model.model(None)


def awkward(seed):
    """Series that break forecasts: a random choice of kind, length and size."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 50))
    noise = rng.normal(size=n)
    late = np.arange(n) >= n - rng.integers(1, n)
    kinds = [
        late.astype(float),  # zeros, then ones
        np.full(n, 5.0),
        10 + noise + 1e4 * (np.arange(n) == rng.integers(n)),  # an outlier
        10 + noise + 100 * late,  # another level
        rng.poisson(0.3, size=n).astype(float),
        np.exp(np.arange(n) / 5),
        np.where(rng.random(n) < 0.3, np.nan, noise),
        (noise * 1e6).cumsum(),
    ]
    values = kinds[seed % len(kinds)] * 10.0 ** rng.integers(-3, 4)
    values[[0, -1]] = np.nan_to_num(values[[0, -1]])
    return values


@pytest.mark.parametrize("host", ["darts", "sktime"])
@pytest.mark.parametrize("part", range(3))
def test_no_sample_of_an_awkward_series_lies_beyond_three_times_its_largest_value(host, part):
    for seed in range(16 * part, 16 * part + 16):
        values = awkward(seed)
        if host == "darts":
            model = make(lengths=((3, 12), 6), strategy="auto").fit(from_values(values))
            paths = model.predict(12, num_samples=50).all_values()
        else:
            y = pd.Series(values, pd.period_range("2000-01", periods=len(values), freq="M"))
            forecaster = TaylorformerForecaster(num_samples=50, random_state=0).fit(y, fh=range(1, 13))
            paths = forecaster.predict_proba(marginal=False).sample(50).to_numpy()
        assert np.isfinite(paths).all(), seed
        # Of counts, twice the largest and eight is possible, though once in thousands of draws.
        counts = (values == np.round(values)).all() and (values >= 0).all() and (values == 0).mean() > 0.25
        assert np.abs(paths).max() <= 3.0001 * np.nanmax(np.abs(values)) + 8 * counts, seed


@pytest.mark.parametrize("n", [1, 2, 3])
def test_one_two_and_three_points_have_forecasts(n):
    model = make(lengths=((1, 12), 6)).fit(from_values(WALK[:n]))
    mean, _ = moments(model)
    assert np.isfinite(model.predict(9, num_samples=9).all_values()).all()
    assert abs(mean - WALK[n - 1]).max() < 10


def test_the_global_random_state_of_torch_is_left_alone():
    state = torch.get_rng_state()
    make().fit(from_values(SEASON)).predict(4, num_samples=3)
    assert torch.equal(state, torch.get_rng_state())


@pytest.mark.parametrize("fitted", [from_values(WALK)[-20:], from_values(SEASON)[-20:]], ids=["other", "end"])
def test_all_of_a_series_is_seen_whatever_the_model_was_fitted_to(fitted):
    long = from_values(SEASON)
    model, alone = make().fit(fitted), make(strategy="baseline").fit(long)
    for series in (long, [long, long]):
        found = model.predict(6, series=series, predict_likelihood_parameters=True)
        found = found[0] if isinstance(found, list) else found
        np.testing.assert_allclose(
            found.values(), alone.predict(6, predict_likelihood_parameters=True).values()
        )


def test_paths_of_a_backtest_do_not_depend_on_values_after_their_origin():
    values = SEASON.copy()
    values[50:] += 100 * np.arange(10)  # other seasons are sought then, in another batch
    options = {"forecast_horizon": 6, "start": 40, "stride": 4, "last_points_only": False, "num_samples": 10}
    found = []
    for own in (SEASON, values):
        model = make(random_state=3).fit(from_values(own[:36]))
        found.append(model.historical_forecasts(from_values(own), retrain=False, **options))
    same = [np.array_equal(one.all_values(), other.all_values()) for one, other in zip(*found, strict=True)]
    assert same == [True, True, True, False]  # from 40, 44, 48 and 52 values
