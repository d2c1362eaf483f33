"""``joint=True``: paths of several series are drawn together in both hosts; marginals stay as they are."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from darts import TimeSeries

from taylorformer_forecast import darts as in_darts
from taylorformer_forecast import sktime as in_sktime

N, H, S = 120, 6, 200
TINY = {"d_model": 4, "n_heads": 1, "time_features": None, "seasonal_periods": None, "random_state": 0}
SKTIME = {**TINY, "context_length": 12, "num_samples": S, "max_steps": 3, "verbose": False}
QUIET = {"accelerator": "cpu", "enable_progress_bar": False, "enable_model_summary": False, "logger": False}
MODELS = [
    ("Taylorformer", {"strategy": "baseline"}),
    ("Taylorformer", {"strategy": "corrected"}),
    ("Taylorformer", {"strategy": "pretrained"}),
    ("Taylorformer", {"strategy": "averaged"}),
    ("Taylorformer", {"strategy": "zero_shot"}),
    ("Taylorformer", {"strategy": "train"}),
    ("Taylorformer", {"strategy": "train", "distribution": "quantile"}),
    ("LAM", {}),
    ("TNP", {}),
    ("ContiFormer", {}),
]
NAMES = [" ".join([name, *options.values()]) for name, options in MODELS]


def related(n_columns=3, seed=0, n=N):
    """Autoregressions whose innovations have a correlation of .9."""
    rng = np.random.default_rng(seed)
    noise = np.sqrt(0.9) * rng.normal(size=(n + 50, 1)) + np.sqrt(0.1) * rng.normal(size=(n + 50, n_columns))
    y = noise.copy()
    for t in range(1, len(y)):
        y[t] = 0.6 * y[t - 1] + noise[t]
    return pd.DataFrame(
        20 + y[50:], pd.period_range("2000-01", periods=n, freq="M"), columns=[*"abcdef"][:n_columns]
    )


def forecaster(name, options, **more):
    return getattr(in_sktime, f"{name}Forecaster")(**{**SKTIME, **options, **more})


def sktime_paths(name, options, y, joint, **more):
    fitted = forecaster(name, options, joint=joint, **more).fit(y, fh=range(1, H + 1))
    return fitted, fitted.predict_proba(marginal=False).paths


def series_of(y):
    return TimeSeries.from_values(y.to_numpy().astype("float32"), columns=list(y.columns))


def darts_model(name, options, joint, **more):
    options = dict(options)
    if options.pop("distribution", None) == "quantile":
        from darts.utils.likelihood_models.torch import QuantileRegression

        options["likelihood"] = QuantileRegression([0.1, 0.3, 0.5, 0.7, 0.9])
    known = {"input_chunk_length": 12, "output_chunk_length": H, "n_epochs": 1, "batch_size": 64}
    known["pl_trainer_kwargs"] = {**QUIET, "max_steps": 3}
    return getattr(in_darts, f"{name}Model")(**{**known, **TINY, **options, **more}, joint=joint)


def darts_paths(name, options, y, joint):
    model = darts_model(name, options, joint).fit(series_of(y))
    return model, np.moveaxis(model.predict(H, num_samples=S, random_state=1).all_values(), 2, 0)


def paths(host, name, options, y, joint):
    return (sktime_paths if host == "sktime" else darts_paths)(name, options, y, joint)


def mean_correlation(drawn):
    return np.mean(
        [np.corrcoef(step.T)[np.triu_indices(drawn.shape[2], 1)].mean() for step in drawn.swapaxes(0, 1)]
    )


CASES = [
    pytest.param(host, name, options, id=f"{host} {label}")
    for host in ("sktime", "darts")
    for (name, options), label in zip(MODELS, NAMES, strict=True)
]


@pytest.mark.parametrize(("host", "name", "options"), CASES)
def test_joint_paths_go_together_and_have_the_marginals_of_independent_ones(host, name, options):
    # A ContiFormer with joint=None draws step by step as with True, but every column by itself.
    y, apart = related(), None if name == "ContiFormer" else False
    alone, independent = paths(host, name, options, y, apart)
    model, together = paths(host, name, options, y, True)
    assert abs(mean_correlation(independent)) < 0.15
    assert mean_correlation(together) > 0.5
    np.testing.assert_array_equal(np.sort(together, 0), np.sort(independent, 0))
    if host == "sktime":
        pd.testing.assert_frame_equal(
            model.predict_quantiles(alpha=[0.1, 0.9]), alone.predict_quantiles(alpha=[0.1, 0.9])
        )


@pytest.mark.parametrize(("host", "name", "options"), CASES[1:2] + CASES[4:5] + CASES[10:11] + CASES[-1:])
def test_one_column_is_forecast_as_ever(host, name, options):
    y, apart = related(1), None if name == "ContiFormer" else False
    np.testing.assert_array_equal(
        paths(host, name, options, y, True)[1], paths(host, name, options, y, apart)[1]
    )


@pytest.mark.parametrize("strategy", ["baseline", "train"])
def test_series_without_a_relation_stay_almost_independent(strategy):
    y = related()
    for k, column in enumerate(y):
        y[column] = related(1, seed=k + 1).to_numpy()
    _, drawn = sktime_paths("Taylorformer", {"strategy": strategy}, y, True)
    assert abs(mean_correlation(drawn)) < 0.25


def test_totals_of_joint_paths_are_covered_and_those_of_independent_ones_are_not():
    """Central 80 % of the total of four columns, over origins of several data sets."""
    inside = {True: [], False: []}
    for seed in range(12):
        y = related(4, seed, N + H)
        truth = y.iloc[N:].to_numpy().sum(1)
        for joint, found in inside.items():
            drawn = sktime_paths("Taylorformer", {"strategy": "baseline"}, y.iloc[:N], joint)[1].sum(2)
            low, high = np.quantile(drawn, [0.1, 0.9], axis=0)
            found.append(((low <= truth) & (truth <= high)).mean())
    assert np.mean(inside[True]) > 0.7
    assert np.mean(inside[False]) < 0.6


@pytest.mark.parametrize("host", ["sktime", "darts"])
def test_effects_of_the_calendar_that_forecasts_have_join_no_paths(host):
    """More on the first five days of a month is all that these series have in common."""
    dates = pd.date_range("2020-12-01", periods=500)
    values = 50 + 4.0 * (dates.day <= 5)[:, None] + np.random.default_rng(0).normal(size=(len(dates), 3))
    y = pd.DataFrame(values, dates, columns=[*"abc"])
    found = {}
    for time_features in ("auto", None):
        options = {"strategy": "baseline", "time_features": time_features, "seasonal_periods": 7}
        if host == "sktime":
            drawn = sktime_paths("Taylorformer", options, y, True)[1]
        else:
            model = darts_model("Taylorformer", options, True).fit(TimeSeries.from_dataframe(y))
            drawn = np.moveaxis(model.predict(H, num_samples=S, random_state=1).all_values(), 2, 0)
        found[time_features] = mean_correlation(drawn)
    assert found["auto"] < 0.15
    assert found[None] > 0.4  # no calendar is seen


def as_panel(y):
    return pd.concat({name: part.to_frame("y") for name, part in y.items()}, names=["series", "month"])


@pytest.mark.parametrize("strategy", ["baseline", "train"])
def test_instances_of_a_panel_go_together_however_they_are_arranged(strategy):
    y = related()
    panel = as_panel(y.set_axis(["c", "a", "b"], axis=1))
    _, drawn = sktime_paths("Taylorformer", {"strategy": strategy}, panel, True)
    assert mean_correlation(drawn[..., 0].reshape(S, 3, H).swapaxes(1, 2)) > 0.5


@pytest.mark.parametrize("strategy", ["baseline", "train"])
def test_instances_of_unequal_spans_go_together_where_they_overlap_and_new_ones_are_independent(strategy):
    y = related(4)
    late = as_panel(y)
    late = late.drop(late.loc[["c"]].index[:90]).drop(late.loc[["b"]].index[-2:])
    fitted = forecaster("Taylorformer", {"strategy": strategy}, joint=True)
    fitted.fit(late.drop("d"), fh=range(1, H + 1))
    stamps = pd.period_range("2010-01", periods=H, freq="M")
    fitted.update(as_panel(y[["d"]]), update_params=False)
    drawn = fitted.predict_proba(fh=stamps, marginal=False)
    found = np.stack([drawn.loc[[name]].paths[..., 0] for name in "abcd"], -1)
    between = np.mean([np.corrcoef(found[:, step].T) for step in range(H)], 0)
    assert between[0, 1] > 0.5
    assert abs(between[3, :3]).max() < 0.2


@pytest.mark.parametrize("strategy", ["baseline", "train"])
def test_missing_values_and_columns_that_end_early_are_served(strategy):
    y = related()
    y.iloc[::7, 0] = np.nan
    y.iloc[-4:, 2] = np.nan
    _, drawn = sktime_paths("Taylorformer", {"strategy": strategy}, y, True)
    assert np.isfinite(drawn).all()
    assert mean_correlation(drawn) > 0.4


@pytest.mark.parametrize("strategy", ["corrected", "train"])
def test_series_of_a_hierarchy_go_together(strategy):
    panel = as_panel(related())
    y = pd.concat({"n": panel.loc[["a", "b"]], "s": panel.loc[["c"]]}, names=["region"])
    _, drawn = sktime_paths("Taylorformer", {"strategy": strategy}, y, True)
    assert mean_correlation(drawn[..., 0].reshape(S, 3, H).swapaxes(1, 2)) > 0.5


@pytest.mark.parametrize("name", ["Taylorformer", "LAM"])
def test_covariates_with_missing_rows_are_served(name):
    y = related().drop(related().index[[20, 50, 51, 90]])
    ahead = pd.period_range(y.index[-1] + 1, periods=H, freq="M")
    X, later = (pd.DataFrame({"x": np.arange(len(index)) / 10}, index) for index in (y.index, ahead))
    fitted = forecaster(name, {}, joint=True).fit(y, X, fh=range(1, H + 1))
    assert mean_correlation(fitted.predict_proba(X=later, marginal=False).paths) > 0.5


def test_a_pretrained_forecaster_takes_the_relation_from_the_series_it_is_fitted_to():
    y = related()
    for k, column in enumerate(y):
        y[column] = related(1, seed=k + 1).to_numpy()
    pretrained = forecaster("LAM", {"horizon": H}, joint=True).pretrain(as_panel(y))
    fitted = pretrained.fit(related(), fh=range(1, H + 1))
    assert mean_correlation(fitted.predict_proba(marginal=False).paths) > 0.5


def test_paths_pass_through_known_values():
    fitted = forecaster("Taylorformer", {"order": "random"}, joint=True).fit(related(), fh=range(1, H + 1))
    known = pd.DataFrame({"a": [25.0]}, pd.PeriodIndex(["2010-02"], freq="M"))
    drawn = fitted.condition(known).predict_proba(marginal=False).paths
    np.testing.assert_allclose(drawn[:, 1, 0], 25.0)
    assert mean_correlation(drawn[:, 2:]) > 0.5


def test_irregular_times_are_served():
    rng = np.random.default_rng(0)
    y = related()
    y.index = pd.Timestamp("2020") + pd.to_timedelta(np.sort(rng.choice(3000, N, replace=False)), unit="h")
    fitted = forecaster("Taylorformer", {"strategy": "train"}, joint=True).fit(y)
    ahead = y.index[-1] + pd.to_timedelta([5, 40, 90], unit="h")
    assert mean_correlation(fitted.predict_proba(fh=ahead, marginal=False).paths) > 0.5


def test_what_is_explained_by_covariates_makes_no_series_go_together():
    rng = np.random.default_rng(0)
    x = rng.normal(size=N)
    y = related()
    y[:] = 5 * x[:, None] + rng.normal(size=(N, 3))
    X = pd.DataFrame({"x": x}, y.index)
    options = {
        "strategy": "train",
        "d_model": 16,
        "max_steps": 120,
        "lr": 5e-3,
        "dropout": 0.0,
        "num_epochs": None,
    }
    fitted = forecaster("Taylorformer", options, joint=True).fit(y, X)
    _, copula = fitted._copula
    root = copula.own * np.eye(3) + copula.factors @ copula.factors.T
    assert np.abs(root @ root - np.eye(3)).max() < 0.5


@pytest.mark.parametrize(("host", "name", "options"), [CASES[0], CASES[4], CASES[9], CASES[12]])
def test_a_model_that_was_saved_draws_the_same_joint_paths(host, name, options, tmp_path):
    model, before = paths(host, name, options, related(), True)
    if host == "sktime":
        again = pickle.loads(pickle.dumps(model)).predict_proba(marginal=False).paths
    else:
        model.save(str(tmp_path / "model.pt"))
        loaded = type(model).load(str(tmp_path / "model.pt"))
        again = np.moveaxis(loaded.predict(H, num_samples=S, random_state=1).all_values(), 2, 0)
    np.testing.assert_array_equal(before, again)


def test_weights_of_a_darts_checkpoint_have_the_copula(tmp_path):
    y = related()
    options = {"strategy": "train"}
    model, before = darts_paths("Taylorformer", options, y, True)
    model.save(str(tmp_path / "model.pt"))
    other = darts_model("Taylorformer", options, True)
    other.load_weights(str(tmp_path / "model.pt"))
    again = other.predict(H, series=series_of(y), num_samples=S, random_state=1).all_values()
    np.testing.assert_allclose(before, np.moveaxis(again, 2, 0), rtol=1e-5)


@pytest.mark.parametrize("name", ["LAM", "Taylorformer"])
def test_the_best_checkpoint_of_darts_draws_components_together(tmp_path, name):
    y = series_of(related(2, n=200))
    keep = {"save_checkpoints": True, "model_name": "m", "work_dir": str(tmp_path)}
    keep["pl_trainer_kwargs"] = {**QUIET, "enable_checkpointing": True}
    options = {"strategy": "train"} if name == "Taylorformer" else {}
    model = darts_model(name, options, joint=True, n_epochs=4, lr=0.05, **keep)
    model.fit(y[:150], val_series=y[130:], load_best=True)
    loaded = type(model).load_from_checkpoint("m", work_dir=str(tmp_path), best=True)
    for one in (model, loaded):
        paths = one.predict(H, series=y[:150], num_samples=S, random_state=0).all_values()
        assert np.corrcoef(paths[1])[0, 1] > 0.6


def test_a_backtest_and_rolled_forecasts_of_darts_are_joint():
    series = series_of(related())
    model = darts_model("LAM", {}, True).fit(series)
    rolled = np.moveaxis(model.predict(2 * H + 1, num_samples=S).all_values(), 2, 0)
    assert mean_correlation(rolled) > 0.5
    found = model.historical_forecasts(
        series, start=100, forecast_horizon=H, retrain=False, num_samples=S, last_points_only=False, stride=10
    )
    assert all(mean_correlation(np.moveaxis(one.all_values(), 2, 0)) > 0.5 for one in found)


def test_several_darts_series_show_together_how_their_components_go_together():
    model = darts_model("Taylorformer", {"strategy": "baseline"}, True)
    model.fit([series_of(related(seed=k, n=60)) for k in range(3)])
    found = model.predict(H, series=series_of(related(seed=9)), num_samples=S)
    assert mean_correlation(np.moveaxis(found.all_values(), 2, 0)) > 0.5
