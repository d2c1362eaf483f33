"""Instances of a panel that share windows: as columns of one frame, with forecasts of the panel's form."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sktime.datatypes import check_raise

from taylorformer_forecast.sktime import UNNForecaster

FH = [1, 2, 3]
pytestmark = pytest.mark.filterwarnings("ignore:The default of config:FutureWarning")  # sktime's own


def tiny(**params):
    small = {"context_length": 8, "d_model": 8, "n_heads": 2, "max_steps": 3, "num_samples": 10}
    return UNNForecaster(**{**small, "random_state": 0, "join": "instances", **params})


@pytest.fixture
def wide():
    """Return three noisy seasons of very different size, columns in another order than by name."""
    t = np.arange(48.0)
    noise = np.random.default_rng(0).normal(size=(48, 3))
    values = np.sin(2 * np.pi * (t[:, None] / 12 + [0, 0.2, 0.5])) + 0.3 * noise
    index = pd.period_range("2000-01", periods=48, freq="M", name="month")
    return pd.DataFrame(values * [1.0, 100.0, 1e-3] + [0.0, 1e4, 5.0], index, columns=["b", "c", "a"])


def as_panel(wide):
    """The columns as instances of a panel, without rows that are missing."""
    return pd.concat({name: part.dropna().to_frame("y") for name, part in wide.items()}, names=["shop"])


def as_wide(forecast):
    """Instances of a forecast next to each other, as arrays (time, instance, ...)."""
    parts = [part.to_numpy() for _, part in forecast.groupby(level=0, sort=False)]
    return np.stack(parts, 1)


def gappy(wide):
    """Instances that start, end and pause at times of their own."""
    wide = wide[wide.index.month != 7].copy()
    wide.iloc[:5, 1] = wide.iloc[-2:, 2] = wide.iloc[[7, 20], 0] = np.nan
    return wide


@pytest.mark.parametrize("lacks", [False, True], ids=["complete", "with gaps"])
def test_forecasts_are_those_of_the_same_series_as_columns(wide, lacks):
    wide = gappy(wide) if lacks else wide
    joined, columns = tiny().fit(as_panel(wide)), tiny(join="columns").fit(wide)
    ask = {
        "predict": {},
        "predict_interval": {"coverage": 0.8},
        "predict_quantiles": {"alpha": [0.1, 0.5]},
        "predict_var": {},
    }
    for method, options in ask.items():
        panel, flat = (getattr(f, method)(fh=FH, **options) for f in (joined, columns))
        assert panel.index.names == ["shop", "month"]
        assert list(panel.index.get_level_values(0).unique()) == list(wide)
        np.testing.assert_allclose(as_wide(panel).reshape(3, -1), flat.to_numpy(), rtol=1e-6)
    check_raise(joined.predict(fh=FH), "pd-multiindex", "Panel")


def test_distributions_are_joint_over_instances(wide):
    joined, columns = tiny().fit(as_panel(wide)), tiny(join="columns").fit(wide)
    panel, flat = (f.predict_proba(fh=FH, marginal=False) for f in (joined, columns))
    np.testing.assert_allclose(
        panel.paths.reshape(10, 3, 3).swapaxes(1, 2), flat.paths.reshape(10, 3, 3), rtol=1e-6
    )
    marginal = joined.predict_proba(fh=FH)
    np.testing.assert_allclose(marginal.mean(), joined.predict(fh=FH), rtol=1e-9)
    assert joined.predict_var(fh=FH, cov=True).shape == (9, 9)


def test_the_past_of_one_instance_reaches_the_forecasts_of_others_only_where_they_are_joined(wide):
    panel = as_panel(wide)
    new = panel.groupby(level=0).tail(1)
    new = new.set_axis(new.index.set_levels(new.index.levels[1] + 1, level=1))
    other = new.copy()
    other.loc["c"] += 50.0
    for join in ("instances", "columns"):
        first, second = (
            tiny(join=join).fit(panel).update(v, update_params=False).predict(fh=FH) for v in (new, other)
        )
        changed = (first != second)["y"].groupby(level=0).all()
        assert changed.to_dict() == {"a": join == "instances", "b": join == "instances", "c": True}


def test_in_sample_forecasts_and_updates_are_those_of_columns(wide):
    early, late = wide.iloc[:44], wide.iloc[44:]
    joined, columns = (
        tiny(update_steps=2).fit(as_panel(early)),
        tiny(update_steps=2, join="columns").fit(early),
    )
    joined.update(as_panel(late))
    columns.update(late)
    fh = [-20, -1, 0, 2]
    np.testing.assert_allclose(
        as_wide(joined.predict(fh=fh)).reshape(4, -1), columns.predict(fh=fh).to_numpy(), rtol=1e-6
    )


def test_all_columns_of_all_instances_of_a_hierarchy_are_joined(wide):
    parts = {("north", 1): wide[["b", "c"]], ("south", 2): wide[["c", "a"]].set_axis(["b", "c"], axis=1)}
    y = pd.concat(parts, names=["region", "shop"])
    forecast = tiny().fit(y).predict(fh=FH)
    assert forecast.index.names == ["region", "shop", "month"]
    flat = pd.concat(parts, axis=1)
    flat = flat.set_axis([f"{c}{k}" for *k, c in flat.columns], axis=1)
    assert forecast.shape == (6, 2)
    assert tiny(join="columns").fit(flat).predict(fh=FH).shape == (3, 4)
    assert np.isfinite(forecast).all(axis=None)


def test_an_instance_that_is_absent_from_new_data_is_forecast_all_the_same(wide):
    panel = as_panel(wide.iloc[:45])
    new = as_panel(wide.iloc[45:].drop(columns="c"))
    forecast = tiny().fit(panel).update(new, update_params=False).predict(fh=FH)
    assert list(forecast.index.get_level_values(0).unique()) == ["b", "c", "a"]
    assert forecast.index.get_level_values(1).min() == pd.Period("2004-01", "M")
    assert np.isfinite(forecast).all(axis=None)


def test_lags_of_joined_instances_are_explained_as_those_of_columns(wide):
    joined = tiny().fit(as_panel(wide), fh=FH).explain(lags=8)
    columns = tiny(join="columns").fit(wide, fh=FH).explain(lags=8)
    assert not columns["lags 1-8"].isna().any(axis=None)
    for name in joined.columns.get_level_values(0).unique():
        of_columns = columns[name].to_numpy().T.ravel()
        np.testing.assert_allclose(joined[name].to_numpy().ravel(), of_columns, rtol=1e-5)


def test_one_series_is_forecast_as_ever(wide):
    first, second = (tiny(join=join).fit(wide[["b"]]).predict(fh=FH) for join in ("instances", "columns"))
    pd.testing.assert_frame_equal(first, second)


def test_an_instance_that_leads_another_tells_what_it_will_do():
    rng = np.random.default_rng(0)
    leader = rng.normal(size=303)
    for t in range(1, 303):
        leader[t] += 0.5 * leader[t - 1]
    wide = pd.DataFrame({"a": leader[3:], "b": 5 + 3 * leader[:-3] + 0.3 * rng.normal(size=300)})
    forecaster = UNNForecaster(
        join="instances",
        context_length=16,
        max_steps=250,
        num_samples=50,
        seasonal_periods=None,
        random_state=0,
    ).fit(as_panel(wide.iloc[:240]), fh=FH)
    errors = []
    for origin in range(240, 297, 3):
        errors.append(forecaster.predict(fh=FH).loc["b", "y"] - wide["b"].iloc[origin : origin + 3])
        forecaster.update(as_panel(wide.iloc[origin : origin + 3]), update_params=False)
    # From its own past, at best the deviation of b three steps ahead is 3; its noise is 0.3.
    assert np.sqrt(np.mean(np.square(errors))) < 1.0


# --- what is refused ------------------------------------------------------------------------------------


def test_instances_without_common_times_are_refused(wide):
    panel = as_panel(pd.concat([wide.iloc[:24, :2], wide.iloc[24:, 2:]]))
    message = "join='instances' needs instances with common times, but y of instance 'a' has none with"
    with pytest.raises(ValueError, match=message):
        tiny().fit(panel)


def test_new_instances_and_other_columns_are_refused_and_leave_the_forecaster_as_it_was(wide):
    panel = as_panel(wide)
    fitted = tiny().fit(panel)
    before = fitted.predict(fh=FH)
    with pytest.raises(ValueError, match="y has values of instance 'z', but join='instances' forecasts"):
        fitted.update(panel.rename(index={"a": "z"}))
    with pytest.raises(ValueError, match="y column \"y of instance 'a'\" has no observed values"):
        fitted.fit(panel.where(panel.index.get_level_values(0).to_numpy()[:, None] != "a"))
    pd.testing.assert_frame_equal(fitted.predict(fh=FH), before)


def test_covariates_of_a_panel_are_refused(wide):
    panel = as_panel(wide)
    with pytest.raises(ValueError, match="X is given, but join='instances' takes none"):
        tiny().fit(panel, X=panel.rename(columns={"y": "x"}))


def test_after_pretraining_as_many_instances_are_joined(wide):
    panel = as_panel(wide)
    pretrained = tiny().pretrain(panel.rename(index={"a": "x", "b": "y", "c": "z"}))
    assert list(pretrained.fit(panel).predict(fh=FH).index.get_level_values(0).unique()) == list(wide)
    with pytest.raises(ValueError, match="y has 1 columns in fit, but the forecaster was pretrained with 3"):
        pretrained.fit(panel.loc[["a"]])


def test_another_word_is_refused(wide):
    with pytest.raises(ValueError, match="join='rows', but it must be 'columns' or 'instances'"):
        tiny(join="rows").fit(wide)


def noise(n_columns=20):
    return pd.DataFrame(np.random.default_rng(0).normal(size=(40, n_columns)), pd.RangeIndex(40))


@pytest.mark.parametrize(("n_columns", "asked", "found"), [(10, None, 16), (20, None, 4), (20, 7, 7)])
def test_steps_of_wide_data_have_fewer_windows_unless_asked_for(n_columns, asked, found):
    forecaster = UNNForecaster(4, d_model=8, n_heads=2, max_steps=1, batch_size=asked, random_state=0)
    assert forecaster.fit(noise(n_columns), fh=[1])._training(0).batch_size == found


def test_steps_that_are_large_are_announced(monkeypatch):
    monkeypatch.setattr("taylorformer_forecast.engine.lengths.PAIRS_AT_ONCE", 1000)
    forecaster = UNNForecaster(4, d_model=8, n_heads=2, max_steps=1, batch_size=3, random_state=0)
    with pytest.warns(UserWarning, match="20 columns, with context_length=4, horizon=8, batch_size=3"):
        forecaster.fit(noise(), fh=[1])


@pytest.mark.parametrize("wrong", [0, "many"])
def test_a_batch_size_is_a_number_or_left_open(wrong):
    with pytest.raises(ValueError, match=f"batch_size={wrong!r}, but it must be None or a whole number"):
        UNNForecaster(4, max_steps=1, batch_size=wrong).fit(noise(2))
