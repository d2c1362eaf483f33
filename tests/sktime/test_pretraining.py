"""Pretraining on a panel: other series are forecast without training, or after a little more."""

from __future__ import annotations

import pickle
import time

import numpy as np
import pandas as pd
import pytest
from all_models import forecasters, trained
from sklearn.model_selection import KFold
from sktime.forecasting.model_evaluation import evaluate
from sktime.forecasting.model_selection import ForecastingGridSearchCV
from sktime.performance_metrics.forecasting import MeanAbsoluteError
from sktime.performance_metrics.forecasting.probabilistic import CRPS
from sktime.split import ExpandingWindowSplitter, InstanceSplitter

from taylorformer_forecast.defaults import MOST_OWN_MAPS
from taylorformer_forecast.sktime import LAMForecaster, TaylorformerForecaster, UNNForecaster

MONTHS = pd.period_range("2000-01", periods=80, freq="M")


def tiny(forecaster=TaylorformerForecaster, **changes):
    settings = {"max_steps": 2, "num_samples": 8, "num_epochs": None, "context_length": 24}
    return forecaster(**trained(forecaster, **{**settings, "distribution": "normal", **changes}))


def wave(index, level=10.0, size=1.0, seed=0, period=12):
    """A season at any level and size."""
    noise = 0.2 * np.random.default_rng(seed).normal(size=len(index))
    season = np.sin(2 * np.pi * np.arange(len(index)) / period)
    return pd.Series(level + size * (season + noise), index, name="sales")


def panel(index=MONTHS, keys="abcd", **kwargs):
    parts = {key: wave(index, seed=number, **kwargs).to_frame() for number, key in enumerate(keys)}
    return pd.concat(parts, names=["shop", "time"])


def weights(network):
    return np.concatenate([p.detach().numpy().ravel() for p in network.parameters() if p.requires_grad])


@pytest.fixture(scope="module", params=forecasters())
def pretrained(request):
    return tiny(request.param).pretrain(panel(), fh=range(1, 7))


# --- what is kept -----------------------------------------------------------------------------------------


def test_fit_trains_nothing_and_takes_over_what_the_panel_said(pretrained):
    forecaster = pretrained.clone().fit(wave(MONTHS[:30]))
    kept = forecaster.pretrained_
    assert forecaster.network_ is kept.network
    assert (forecaster.context_length_, forecaster.horizon_) == (kept.context_length, kept.horizon) == (24, 8)
    assert forecaster.time_features_ == kept.seasonal.cycles == ("year",)
    np.testing.assert_array_equal(weights(forecaster.network_), weights(pretrained.pretrained_.network))
    assert np.isfinite(forecaster.predict(fh=range(-5, 20))).all()


def test_the_panel_itself_is_not_kept(pretrained):
    many = panel(keys=[f"{k}" for k in range(MOST_OWN_MAPS + 1)])  # so that none has a map of its own
    size = len(pickle.dumps(tiny(type(pretrained)).pretrain(many, fh=range(1, 7))))
    assert size < 1.02 * len(pickle.dumps(pretrained))


def test_series_of_the_panel_keep_their_own_linear_forecasts():
    r, t = np.random.default_rng(0), np.arange(300)
    values = {"season": np.sin(t / 2) + 0.1 * r.normal(size=300), "walk": r.normal(size=300).cumsum()}
    y = pd.concat({key: pd.DataFrame({"y": v}, index=t) for key, v in values.items()})
    taught = TaylorformerForecaster(context_length=24, max_steps=1, random_state=0)
    taught.pretrain(y, fh=range(1, 9))
    assert len(taught.pretrained_.network.baseline.own) == 2

    def forecast(key):
        instance = pd.concat({key: y.loc["season"]})
        found = taught.clone().fit(instance).predict(fh=range(1, 9))["y"].to_numpy()
        return np.abs(found - np.sin(np.arange(300, 308) / 2)).mean()

    assert forecast("season") < 0.8 * forecast("unknown")


def test_pretraining_is_fitting_to_the_panel(pretrained):
    fitted = tiny(type(pretrained)).fit(panel(), fh=range(1, 7))
    np.testing.assert_array_equal(weights(pretrained.pretrained_.network), weights(fitted.network_))
    again = pretrained.clone().fit(panel(), fh=range(1, 7))
    pd.testing.assert_frame_equal(again.predict(fh=[-1, 1, 20]), fitted.predict(fh=[-1, 1, 20]))


@pytest.mark.parametrize(
    "copied", [lambda f: f.clone(), lambda f: pickle.loads(pickle.dumps(f))], ids=["clone", "pickle"]
)
def test_copies_keep_what_was_learnt(pretrained, copied):
    y = wave(MONTHS[:30])
    one, other = (
        f.fit(y).predict_quantiles(fh=[1, 9], alpha=[0.1]) for f in (pretrained.clone(), copied(pretrained))
    )
    pd.testing.assert_frame_equal(one, other)
    refitted = copied(copied(pretrained).fit(wave(MONTHS[:40], level=99.0))).fit(y)
    pd.testing.assert_frame_equal(refitted.predict_quantiles(fh=[1, 9], alpha=[0.1]), one)


def test_pretraining_again_trains_further(pretrained):
    first, more = pretrained.pretrained_, pretrained.clone().pretrain(panel(keys="xyz", size=3.0))
    assert (weights(more.pretrained_.network) != weights(first.network)).any()
    assert (weights(pretrained.pretrained_.network) == weights(first.network)).all()
    other = tiny(type(pretrained)).pretrain(panel(keys="xyz", size=3.0), fh=range(1, 7))
    assert (weights(more.pretrained_.network) != weights(other.pretrained_.network)).any()  # not from nothing
    assert more.pretrained_.training["steps"] == 2
    assert more.pretrained_.context_length == first.context_length
    assert np.isfinite(more.fit(wave(MONTHS[:30])).predict(fh=[1, 20])).all()


def test_a_fitted_forecaster_is_pretrained_from_its_network():
    forecaster = tiny().fit(panel())
    fitted = weights(forecaster.network_)
    forecaster.max_steps = 0
    np.testing.assert_array_equal(weights(forecaster.pretrain(panel(keys="xy")).pretrained_.network), fitted)
    assert forecaster.state == "pretrained"


def test_fine_tuning_changes_the_fit_and_not_what_was_pretrained(pretrained):
    y, forecaster = wave(MONTHS[:40], level=99.0), pretrained.clone()
    before = weights(forecaster.pretrained_.network)
    forecaster.finetune_steps = 3
    tuned = weights(forecaster.fit(y).network_)
    assert (tuned != before).any()
    assert forecaster.training_["steps"] == 3
    np.testing.assert_array_equal(weights(forecaster.pretrained_.network), before)
    np.testing.assert_array_equal(weights(forecaster.fit(y).network_), tuned)  # from the same start again
    forecaster.finetune_steps = 0
    np.testing.assert_array_equal(weights(forecaster.fit(y).network_), before)


def test_a_forecast_that_was_conditional_is_forgotten_by_pretraining():
    forecaster = tiny(order="random").fit(wave(MONTHS))
    free = forecaster.clone()
    given = pd.Series([50.0], pd.PeriodIndex(["2006-10"], freq="M"))
    bound = forecaster.condition(given).pretrain(panel())
    y = wave(MONTHS)
    expected = free.pretrain(panel()).fit(y).predict(fh=[1, 2]).index
    assert bound.fit(y).predict(fh=[1, 2]).index.equals(expected)
    assert (bound.predict(fh=[1, 2]) < 20).all()


# --- other series -----------------------------------------------------------------------------------------

SERIES = {
    "another level and size": wave(MONTHS, level=1e6, size=1e4),
    "shorter than the context": wave(MONTHS[:5]),
    "two observations": wave(MONTHS[:2]),
    "one observation": wave(MONTHS[:1]),
    "one of two observed": wave(MONTHS[:2]).where([True, False]),
    "constant": 0 * wave(MONTHS) + 7,
    "longer": wave(pd.period_range("1950-01", periods=300, freq="M")),
    "quarters": wave(pd.period_range("2000Q1", periods=30, freq="Q")),
    "days": wave(pd.date_range("2000-01-01", periods=60, freq="D")),
    "hours with a zone": wave(pd.date_range("2000-01-01", periods=60, freq="h", tz="Europe/Berlin")),
    "month starts": wave(pd.date_range("2000-01-01", periods=60, freq="MS")),
    "two columns": pd.DataFrame({"u": wave(MONTHS), "v": wave(MONTHS, level=-5)}),
    "gaps": wave(MONTHS).where(np.random.default_rng(0).random(80) > 0.3),
    "a panel": panel(keys="xyz"),
}


@pytest.mark.parametrize("y", SERIES.values(), ids=SERIES)
def test_other_series_are_forecast_without_training(pretrained, y):
    if isinstance(pretrained, UNNForecaster) and isinstance(y, pd.DataFrame):
        y = y.iloc[:, :1]  # as many columns as in pretraining: it joins them
    forecast = pretrained.clone().fit(y).predict_quantiles(fh=[1, 2, 20], alpha=[0.1, 0.5, 0.9])
    assert np.isfinite(forecast.to_numpy()).all()
    assert (np.diff(forecast.to_numpy()[:, :3], axis=1) >= 0).all()


def test_levels_and_sizes_of_the_panel_do_not_matter(pretrained):
    here, there = (
        pretrained.clone().fit(y).predict(fh=[1, 5, 20]) for y in (wave(MONTHS), 4 + 3 * wave(MONTHS))
    )
    np.testing.assert_allclose(there, 4 + 3 * here, rtol=1e-5)


def test_irregular_dates_are_forecast_by_a_network_of_regular_ones():
    forecaster = tiny().pretrain(panel(pd.date_range("2000-01-01", periods=80, freq="D")))
    hours = np.random.default_rng(0).integers(5, 60, 30).cumsum()
    y = wave(pd.Timestamp("2021-03-01") + pd.to_timedelta(hours, unit="h"))
    assert np.isfinite(forecaster.fit(y).predict(fh=[-3, 1, 4])).all()
    with pytest.raises(ValueError, match="y is not regular"):
        tiny(LAMForecaster).pretrain(panel(pd.date_range("2000-01-01", periods=80, freq="D"))).fit(y)


@pytest.mark.parametrize("index", [pd.RangeIndex(80), MONTHS, pd.date_range("2000-01-01", periods=80)])
def test_phases_of_seasons_go_on_from_the_panel(index):
    """A series that starts later in the season is seen there."""
    forecaster = tiny(seasonal_periods=7, time_features=None).pretrain(panel(index, period=7))
    later = forecaster.fit(wave(index)[40:])
    np.testing.assert_array_equal(later._seasonal(index[40:]), forecaster.pretrained_.seasonal(index)[40:])


def test_a_pretrained_network_forecasts_a_season_it_has_seen_in_other_series():
    """Better than the mean, at another level, without any training on the series."""
    settings = {"d_model": 8, "n_heads": 2, "max_steps": 150, "lr": 1e-2, "dropout": 0.0, "num_samples": 20}
    forecaster = tiny(**settings).pretrain(panel(keys="abcdefgh"), fh=range(1, 13))
    y = wave(MONTHS, level=300.0, size=40.0, seed=99)
    forecast = forecaster.fit(y.iloc[:40]).predict(fh=range(1, 13))
    assert (forecast - y).dropna().abs().mean() < 0.4 * (y.iloc[40:52] - y.iloc[:40].mean()).abs().mean()


def test_a_network_that_joins_columns_wants_as_many_as_in_pretraining():
    y = wave(MONTHS).to_frame()
    with pytest.raises(ValueError, match="y has 2 columns in fit, but the forecaster was pretrained with 1"):
        tiny(UNNForecaster).pretrain(panel()).fit(y.assign(price=1.0 + y["sales"]))


def test_a_new_series_is_forecast_in_less_than_a_second():
    forecaster = TaylorformerForecaster(max_steps=1, random_state=0).pretrain(panel())
    y, times = wave(MONTHS), []
    for _ in range(3):
        start = time.process_time()
        forecaster.fit(y).predict_quantiles(fh=range(1, 13), alpha=[0.1, 0.9])
        times.append(time.process_time() - start)
    assert min(times) < 1.0


# --- hosts ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("forecaster", forecasters())
def test_evaluate_pretrains_on_some_instances_and_forecasts_others(forecaster, monkeypatch):
    seen = []
    original = forecaster._pretrain

    def record(self, y, X=None, fh=None):
        seen.append(set(y.index.get_level_values(0)))
        return original(self, y, X=X, fh=fh)

    monkeypatch.setattr(forecaster, "_pretrain", record)
    table = evaluate(
        tiny(forecaster, max_steps=1),
        ExpandingWindowSplitter(initial_window=60, step_length=10, fh=[1, 2]),
        panel(),
        cv_global=InstanceSplitter(KFold(2)),
        scoring=[MeanAbsoluteError(), CRPS()],
        error_score="raise",
    )
    assert np.isfinite(table[["test_MeanAbsoluteError", "test_CRPS"]].to_numpy(dtype=float)).all()
    assert len(table) == 4
    assert seen[0] | seen[-1] == set("abcd")


def test_a_backtest_keeps_the_pretrained_network(pretrained):
    table = evaluate(
        pretrained,
        ExpandingWindowSplitter(initial_window=60, step_length=10, fh=[1, 2]),
        wave(MONTHS),
        return_model=True,
        scoring=MeanAbsoluteError(),
        error_score="raise",
    )
    expected = weights(pretrained.pretrained_.network)
    for model in table["fitted_forecaster"]:
        np.testing.assert_array_equal(weights(model.network_), expected)


@pytest.mark.filterwarnings("ignore")
def test_a_grid_search_runs_over_a_pretrained_forecaster(pretrained):
    """sktime resets where parameters of the forecaster itself are set: those are trained anew."""
    search = ForecastingGridSearchCV(
        pretrained,
        cv=ExpandingWindowSplitter(initial_window=70, step_length=5, fh=[1, 2]),
        param_grid={"finetune_steps": [0, 2]},
        backend=None,
        scoring=MeanAbsoluteError(),
        error_score="raise",
    ).fit(wave(MONTHS))
    assert search.predict(fh=[1, 2]).notna().all()


# --- exogenous columns ------------------------------------------------------------------------------------


def with_columns(y, names=("price", "promotion"), seed=5):
    values = np.random.default_rng(seed).normal(size=(len(y), len(names)))
    return pd.DataFrame(values, y.index, list(names))


@pytest.mark.parametrize("past_only", [None, "all", ("price",)])
@pytest.mark.parametrize("forecaster", forecasters())
def test_columns_keep_the_scale_of_the_panel(forecaster, past_only):
    y, new = panel(), wave(MONTHS)
    forecaster = tiny(forecaster, past_only=past_only).pretrain(y, X=100 * with_columns(y))
    X = with_columns(new)
    fitted = forecaster.fit(new.iloc[:60], X=X.iloc[:60])
    assert (fitted._scaler.deviation > 80).all()
    assert np.isfinite(fitted.predict(fh=[-2, 1, 15], X=X.iloc[60:])).all()


@pytest.mark.parametrize(
    ("panel_has", "series_has", "message"),
    [
        (None, ["price"], r"X has columns \['price'\] in fit, but the forecaster was pretrained without X"),
        (["price"], None, r"X is needed in fit: the forecaster was pretrained with X columns \['price'\]"),
        (["price"], ["cost"], r"X has columns \['cost'\] in fit, but the .* pretrained with \['price'\]"),
        (["price"], ["price", "cost"], r"X has columns \['price', 'cost'\] in fit, but .* \['price'\]"),
    ],
)
def test_other_columns_than_those_of_the_panel_are_refused(panel_has, series_has, message):
    y, new = panel(), wave(MONTHS)
    forecaster = tiny().pretrain(y, X=None if panel_has is None else with_columns(y, panel_has))
    for method, target in ((forecaster.fit, new), (forecaster.pretrain, y)):
        with pytest.raises(ValueError, match=message):
            method(target, X=None if series_has is None else with_columns(target, series_has))
        assert forecaster.state == "pretrained"


def test_missing_values_that_the_panel_had_none_of_are_refused():
    y, new = panel(), wave(MONTHS)
    forecaster, X = tiny().pretrain(y, X=with_columns(y)), with_columns(new)
    X.iloc[7, 1] = np.nan
    with pytest.raises(ValueError, match="X column 'promotion' has no value for 2000-08 in fit"):
        forecaster.fit(new, X=X)
    gappy = with_columns(y).mask(np.random.default_rng(0).random((len(y), 2)) < 0.2)
    assert np.isfinite(tiny().pretrain(y, X=gappy).fit(new, X=X).predict(fh=[0])).all()


# --- what cannot be -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("y", "settings", "message"),
    [
        (wave(pd.RangeIndex(50)), {}, r"holds integers, but .* pretrained with time_features=\('year',\)"),
        (np.nan * wave(MONTHS), {}, "y column 'sales' has no observed values"),
        (wave(MONTHS[:2]), {"finetune_steps": 1}, "y has 2 observations, at least 3 are needed"),
    ],
    ids=["integers", "nothing observed", "too short to fine-tune"],
)
def test_series_that_cannot_be_taken_up_are_refused(y, settings, message):
    forecaster = tiny(**settings).pretrain(panel())
    with pytest.raises(ValueError, match=message):
        forecaster.fit(y)
    assert forecaster.state == "pretrained"
    assert np.isfinite(forecaster.fit(wave(MONTHS)).predict(fh=[1])).all()


def test_a_pretraining_that_fails_leaves_what_was_there(pretrained):
    forecaster, before = pretrained.clone(), weights(pretrained.pretrained_.network)
    with pytest.raises(ValueError, match="context_length=24 but y has 20 observations"):
        forecaster.pretrain(panel(MONTHS[:20]))
    with pytest.raises(TypeError, match="requires Panel or Hierarchical data"):
        forecaster.pretrain(wave(MONTHS))
    np.testing.assert_array_equal(weights(forecaster.pretrained_.network), before)


def test_a_longer_horizon_than_that_of_the_panel_is_rolled(pretrained):
    assert np.isfinite(pretrained.clone().fit(wave(MONTHS)).predict(fh=range(1, 60))).all()
