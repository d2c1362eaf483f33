"""The imputers: what they fill, how well, how sure they are, and what they refuse."""

from __future__ import annotations

import pickle
import re
from functools import partial

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm
from sktime.forecasting.naive import NaiveForecaster
from sktime.transformations.impute import Imputer

from taylorformer_forecast.sktime import ContiFormerImputer, TaylorformerForecaster, TaylorformerImputer
from taylorformer_forecast.sktime._transforms import Logarithm

pytestmark = pytest.mark.filterwarnings("ignore:The default of config:FutureWarning")  # sktime's own


def small(imputer=TaylorformerImputer, **changes):
    settings = {"d_model": 4, "n_heads": 1, "max_steps": 2, "num_samples": 8, "random_state": 0}
    return imputer(**{**settings, "distribution": "normal", **changes})


@pytest.fixture(params=[TaylorformerImputer, ContiFormerImputer])
def tiny(request):
    """Return the maker of small imputers, every one in turn."""
    return partial(small, request.param)


def series(n=60, seed=0, index=None, name="sales"):
    index = pd.period_range("2000-01", periods=n, freq="M") if index is None else index
    wave = 10 + np.sin(np.arange(len(index)) * 2 * np.pi / 12)
    return pd.Series(wave + 0.3 * np.random.default_rng(seed).normal(size=len(index)), index, name=name)


def with_gaps(y, *places):
    y = y.copy()
    for place in places or (3, slice(20, 25), 40):
        y.iloc[place] = np.nan
    return y


INDEXES = {
    "months": pd.period_range("2000-01", periods=60, freq="M"),
    "days": pd.date_range("2000-01-01", periods=60, freq="D"),
    "hours with a zone": pd.date_range("2000-01-01", periods=60, freq="h", tz="Europe/Berlin"),
    "integers": pd.RangeIndex(5, 65),
    "irregular": pd.date_range("2000-01-01", periods=60, freq="D")
    + pd.to_timedelta(np.random.default_rng(0).integers(0, 600, 60), unit="min"),
}


# --- what is filled -------------------------------------------------------------------------------------


@pytest.mark.parametrize("index", INDEXES.values(), ids=INDEXES)
def test_gaps_are_filled_and_observed_values_stay_on_every_index(tiny, index):
    y = with_gaps(series(index=index))
    before = y.copy()
    filled = tiny().fit_transform(y)
    assert filled.notna().all()
    assert filled.index.equals(index)
    assert filled.name == "sales"
    assert (filled[y.notna()] == y[y.notna()]).all()
    pd.testing.assert_series_equal(y, before)


def test_the_start_and_the_end_and_gaps_longer_than_a_window_are_filled(tiny):
    y = with_gaps(series(200), slice(0, 5), slice(60, 150), slice(197, 200))
    imputer = tiny(window_length=24)
    filled = imputer.fit_transform(y)
    assert np.isfinite(filled).all()
    assert imputer.transform_proba(y).shape == (98, 1)


def test_columns_are_filled_one_by_one_and_those_without_gaps_keep_their_type(tiny):
    X = pd.DataFrame({"a": with_gaps(series()), "b": with_gaps(series(seed=1), 30), "c": np.arange(60)})
    imputer = tiny().fit(X)
    filled = imputer.transform(X)
    assert filled.notna().all(axis=None)
    assert filled["c"].dtype == X["c"].dtype
    quantiles = imputer.transform_quantiles(X, [0.1, 0.9])
    assert list(quantiles.columns) == [(name, alpha) for name in "abc" for alpha in (0.1, 0.9)]
    other = X.assign(a=X["a"] * 5)
    pd.testing.assert_series_equal(imputer.transform(other)["b"], filled["b"])


def test_instances_of_a_panel_are_filled_and_new_ones_too(tiny):
    parts = {"x": with_gaps(series()), "y": with_gaps(series(30, seed=1), 3, 29)}
    panel = pd.concat(parts, names=["shop", "time"]).to_frame()
    imputer = tiny().fit(panel)
    assert imputer.transform(panel).notna().all(axis=None)
    other = pd.concat({"z": parts["x"]}, names=["shop", "time"]).to_frame()
    assert imputer.transform(other).notna().all(axis=None)
    assert list(imputer.transform_proba(panel).index.get_level_values(0).unique()) == ["x", "y"]


def test_a_series_without_gaps_is_returned_as_it_is_and_has_no_distribution(tiny):
    y = series()
    imputer = tiny().fit(y)
    pd.testing.assert_series_equal(imputer.transform(y), y)
    assert imputer.transform_quantiles(y, [0.1, 0.9]).eq(y, axis=0).all(axis=None)
    assert imputer.sample(y, 2).shape == (120, 1)
    with pytest.raises(ValueError, match="nothing is missing in X"):
        imputer.transform_proba(y)


def test_rows_that_continue_a_series_are_filled_from_its_end(tiny):
    y = series(60)
    imputer = tiny().fit(y.iloc[:50])
    new = with_gaps(y.iloc[50:], 0)
    alone = imputer.transform(new.set_axis(new.index + 500))  # far away: the end tells little
    assert imputer.transform(new).iloc[0] != alone.iloc[0]
    imputer.update(y.iloc[50:55])
    lost = y.iloc[55:].mask(np.ones(5, dtype=bool))
    assert imputer.transform(lost).notna().all()


@pytest.mark.parametrize("inverse", [False, True])
def test_it_works_in_pipelines(inverse):
    y = with_gaps(series())
    forecaster = small() * NaiveForecaster("mean", sp=12)
    predicted = forecaster.fit(y, fh=[1, 2]).predict()
    assert predicted.notna().all()
    if inverse:
        imputer = small().fit(y)
        pd.testing.assert_series_equal(imputer.inverse_transform(imputer.transform(y)), imputer.transform(y))
    network = TaylorformerForecaster(d_model=4, n_heads=1, max_steps=1, num_samples=3, random_state=0)
    assert (small() * network).fit(y, fh=[1, 2]).predict_interval().notna().all(axis=None)


# --- one draw for all methods ---------------------------------------------------------------------------


@pytest.mark.parametrize("logarithm", [False, True])
@pytest.mark.parametrize("distribution", ["normal", "studentt", "mixture", "quantile"])
def test_all_methods_agree_with_one_distribution(tiny, distribution, logarithm):
    X = pd.DataFrame({"a": with_gaps(series()), "b": with_gaps(series(seed=1), slice(22, 28))})
    imputer = tiny(distribution=distribution, logarithm=logarithm).fit(X)
    lost = X.isna()
    marginal = imputer.transform_proba(X)
    rows = lost.any(axis=1)
    assert marginal.index.equals(X.index[rows])
    means = imputer.transform(X)
    np.testing.assert_allclose(marginal.mean(), means[rows], rtol=1e-9)
    quantiles = imputer.transform_quantiles(X, [0.1, 0.5, 0.9])
    np.testing.assert_allclose(marginal.quantile([0.1, 0.5, 0.9]), quantiles[rows], rtol=1e-9)
    assert quantiles.loc[lost["a"], "a"].diff(axis=1).iloc[:, 1:].gt(0).all(axis=None)
    joint = imputer.transform_proba(X, marginal=False)
    assert joint.var().to_numpy()[~lost[rows].to_numpy()] == pytest.approx(0)
    draws = imputer.sample(X, 3)
    assert draws.shape == (180, 2)
    for number in range(3):
        drawn = draws.loc[number]
        pd.testing.assert_frame_equal(drawn.where(~lost), X, check_freq=False)
        assert drawn.notna().all(axis=None)
    assert (draws.loc[0] != draws.loc[1]).to_numpy()[lost.to_numpy()].all()


def test_the_same_seed_gives_the_same_fills_and_copies_agree(tiny):
    y = with_gaps(series())
    imputer = tiny().fit(y)
    expected = imputer.transform(y)
    for other in (tiny().fit(y), pickle.loads(pickle.dumps(imputer)), imputer):
        pd.testing.assert_series_equal(other.transform(y), expected)
    assert not np.allclose(tiny(random_state=1).fit_transform(y), expected)


# --- logarithms -----------------------------------------------------------------------------------------


def growing(n=150, seed=0):
    """A season and errors in proportion to a level that grows tenfold."""
    rng = np.random.default_rng(seed)
    steps = np.arange(n)
    log = 2.3 * steps / n + 0.3 * np.sin(steps * np.pi / 6) + 0.1 * rng.normal(size=n)
    return pd.Series(np.exp(log), pd.period_range("2000-01", periods=n, freq="M"), name="sales")


def test_logarithms_are_taken_of_columns_whose_spread_grows_with_their_level():
    y = growing()
    X = pd.DataFrame({"grows": y, "even": np.log(y) + 50, "both signs": y - 5.0})
    imputer = small(max_steps=15).fit(X.mask(np.random.default_rng(1).random(X.shape) < 0.1))
    assert imputer.offsets_["grows"] is not None
    assert imputer.offsets_["even"] is None
    assert imputer.offsets_["both signs"] is None


@pytest.mark.parametrize("imputer", [TaylorformerImputer, ContiFormerImputer])
@pytest.mark.parametrize("kind", ["rain", "counts"])
def test_gaps_of_rain_and_of_counts_have_about_the_mean_of_what_was_seen(imputer, kind):
    rng, n = np.random.default_rng(0), 365
    rain = np.where(rng.random(n) < 0.35, rng.gamma(0.8, 6, n), 0.0).round(1)
    y = pd.Series({"rain": rain, "counts": rng.poisson(0.5, n) * 1.0}[kind], pd.date_range("2024", periods=n))
    lost = rng.random(n) < 0.12
    fitted = small(imputer, max_steps=20, num_samples=100, distribution="studentt").fit(y.mask(lost))
    fill = fitted.transform(y.mask(lost))[lost]
    assert fitted.offsets_ == {0: None}
    assert 0.6 < fill.mean() / y.mean() < 2  # with a logarithm about three times as much
    assert fitted.sample(y.mask(lost), 50).min().item() == 0
    one = fitted.sample(y.mask(lost), 1).to_numpy().ravel()[lost]
    assert 0.4 < one.mean() / y.mean() < 2.5
    assert (fitted.transform_quantiles(y.mask(lost), [0.05]) >= 0).all(axis=None)


def test_an_instance_of_zeros_takes_no_logarithm_from_others():
    y = growing().mask(np.random.default_rng(1).random(150) < 0.1)
    alone = pd.concat({"a": y}, names=["shop", "time"]).to_frame()
    beside = pd.concat({"a": y, "b": 0.0 * y}, names=["shop", "time"]).to_frame()
    assert small(max_steps=15).fit(alone).offsets_["sales"] is not None
    assert small(max_steps=15).fit(beside).offsets_["sales"] is not None


def test_an_outlier_below_zero_rules_out_no_logarithm():
    y = growing().mask(np.random.default_rng(1).random(150) < 0.1)
    y.iloc[70] = -999.0
    assert small(max_steps=15).fit(y.to_frame()).offsets_["sales"] is not None


def test_with_logarithms_intervals_grow_with_the_level_and_nothing_falls_below_zero():
    y = growing()
    gappy = with_gaps(y, slice(10, 20), slice(130, 140))
    imputer = small(max_steps=15, num_samples=100, logarithm=True).fit(gappy)
    width = imputer.transform_quantiles(gappy, [0.1, 0.9]).diff(axis=1).iloc[:, 1]
    early, late = (
        width.iloc[10:20].mean() / y.iloc[10:20].mean(),
        width.iloc[130:140].mean() / y.iloc[130:140].mean(),
    )
    assert early == pytest.approx(late, rel=0.5)
    assert imputer.sample(gappy, 200).min().item() > 0
    paths = imputer.transform_proba(gappy, marginal=False)
    np.testing.assert_allclose(paths.mean(), imputer.transform_proba(gappy).mean(), rtol=0.1)


@pytest.mark.parametrize("settings", [{}, {"logarithm": True}])
def test_what_is_filled_follows_the_units(settings):
    y = with_gaps(growing())
    fitted = [small(max_steps=5, **settings).fit(unit * y) for unit in (1.0, 1000.0)]
    assert fitted[0].offsets_ == fitted[1].offsets_ != {"sales": None}
    fills = [imputer.transform(unit * y) / unit for imputer, unit in zip(fitted, (1.0, 1000.0), strict=True)]
    np.testing.assert_allclose(*fills, rtol=1e-4)


def test_an_instance_that_falls_below_zero_is_filled_where_others_had_logarithms():
    y = with_gaps(growing())
    parts = {"x": y, "y": 3 * y}
    imputer = small(max_steps=5).fit(pd.concat(parts, names=["shop", "time"]).to_frame())
    assert imputer.offsets_["sales"] is not None
    new = pd.concat({"z": y - 5}, names=["shop", "time"]).to_frame()
    assert imputer.transform(new).notna().all(axis=None)


@pytest.mark.parametrize("value", [0.0, -1.0])
def test_logarithms_of_values_that_have_none_are_refused(value):
    X = pd.DataFrame({"a": with_gaps(growing()), "b": growing(seed=1)})
    wrong = X.copy()
    wrong.iloc[7, 1] = value
    message = f"logarithm=True, but X column 'b' has values that are not positive, such as {value}"
    with pytest.raises(ValueError, match=message):
        small(logarithm=True).fit(wrong)
    with pytest.raises(ValueError, match=message):
        small(logarithm=True).fit(X).transform(with_gaps(wrong))


def test_the_map_is_a_logarithm_up_to_the_largest_value_and_straight_beyond():
    log = Logarithm.of(np.array([1.0, 2.0, np.nan, 6.0]), 0.5)
    assert (log.offset, log.top) == (1.5, 6.0)
    y = np.array([-1.4, 0.0, 1.0, 5.9, 6.0, 6.1, 100.0])
    np.testing.assert_allclose(log.inverse(log(y)), y)
    np.testing.assert_allclose(log(y[:5]), np.log(y[:5] + 1.5))
    np.testing.assert_allclose(np.diff(log(np.array([6.0, 7.0, 8.0]))), 1 / 7.5)
    for none in ([1.0, -0.1], [0.0, 0.0]):
        assert Logarithm.of(np.array(none), 0.3) is None


# --- how good it is -------------------------------------------------------------------------------------


@pytest.fixture(scope="module", params=[TaylorformerImputer, ContiFormerImputer])
def learnt(request):
    """A noisy season on a wandering level, and imputers that saw it with gaps of 1, 5 and 20 points."""
    rng = np.random.default_rng(0)
    n = 400
    level = 0.2 * rng.normal(size=n).cumsum()
    y = pd.Series(50 + level + 2 * np.sin(np.arange(n) * 2 * np.pi / 6) + 0.05 * rng.normal(size=n))
    length_at = np.zeros(n, dtype=int)
    for length, starts in {1: range(5, 80, 6), 5: range(90, 210, 14), 20: range(220, 380, 50)}.items():
        for start in starts:
            length_at[start : start + length] = length
    gappy = y.mask(length_at > 0)
    imputer = request.param(
        d_model=16, n_heads=2, max_steps=120, lr=1e-2, num_samples=60, window_length=48, random_state=0
    )
    return y, gappy, length_at, imputer.fit(gappy)


@pytest.mark.parametrize("length", [1, 5, 20])
def test_fills_are_better_than_lines_and_drift(learnt, length):
    y, gappy, length_at, imputer = learnt
    here = length_at == length
    truth = y[here].to_numpy()
    part = imputer.transform_proba(gappy).loc[y.index[here]]
    own = (part.energy(truth[:, None]) - 0.5 * part.energy()).to_numpy().mean()
    error = np.abs(truth - imputer.transform(gappy)[here]).mean()
    line = np.interp(np.arange(len(y)), np.flatnonzero(length_at == 0), gappy.dropna())[here]
    for rival in (line, Imputer("drift").fit_transform(gappy)[here].to_numpy()):
        assert error < 0.8 * np.abs(truth - rival).mean()
        z = (truth - rival) / np.std(truth - rival)
        crps = np.std(truth - rival) * (z * (2 * norm.cdf(z) - 1) + 2 * norm.pdf(z) - 1 / np.sqrt(np.pi))
        assert own < 0.8 * crps.mean()


def test_intervals_cover_and_are_wider_towards_the_middle_of_a_gap(learnt):
    y, gappy, length_at, imputer = learnt
    quantiles = imputer.transform_quantiles(gappy, [0.1, 0.9])
    low, high = quantiles.to_numpy().T
    lost = length_at > 0
    assert 0.6 < ((y >= low) & (y <= high))[lost].mean() < 0.97
    width = (high - low)[length_at == 20].reshape(-1, 20).mean(0)
    assert width[5:15].mean() > 1.03 * width[[0, -1]].mean()


def test_points_of_a_gap_are_drawn_jointly(learnt):
    _, gappy, length_at, imputer = learnt
    paths = imputer.transform_proba(gappy, marginal=False).paths[:, :, 0]
    gaps = paths[:, (length_at == 20)[length_at > 0]].reshape(len(paths), -1, 20)
    correlation = np.mean([np.corrcoef(gaps[:, i].T) for i in range(gaps.shape[1])], axis=0)
    assert np.diag(correlation, 1).mean() > np.diag(correlation, 12).mean() + 0.1


# --- what is refused ------------------------------------------------------------------------------------


@pytest.mark.parametrize("when", ["fit", "transform"])
def test_a_column_of_which_nothing_is_known_is_named(when):
    X = pd.DataFrame({"a": series(), "b": series(seed=1)})
    empty = X.assign(b=np.nan)
    message = "X column 'b' has no observed values"
    if when == "fit":
        with pytest.raises(ValueError, match=message):
            small().fit(empty)
        return
    with pytest.raises(ValueError, match=message):
        small().fit(X).transform(empty.set_axis(X.index - 600))
    panel = pd.concat({"x": X, "y": empty}, names=["shop", "time"])
    with pytest.raises(ValueError, match="X column 'b' of instance 'y' has no observed values"):
        small().fit(X).transform(panel)


def test_columns_that_were_not_in_the_fit_are_named():
    X = pd.DataFrame({"a": with_gaps(series()), "b": series(seed=1)})
    message = "X has a column 'c' that it had not in the fit; the columns were ['a', 'b']"
    with pytest.raises(ValueError, match=re.escape(message)):
        small().fit(X).transform(X.rename(columns={"b": "c"}))


def test_another_kind_of_index_is_refused():
    imputer = small().fit(series())
    with pytest.raises(TypeError, match="holds dates, but it held periods of frequency M in the fit"):
        imputer.transform(with_gaps(series(index=INDEXES["days"])))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"distribution": "mse"}, "distribution='mse' gives points only"),
        ({"gap_length": 0}, "gap_length=0, but it must be None or a whole number, at least 1"),
        ({"window_length": 2.5}, "window_length=2.5, but it must be"),
        ({"logarithm": "auto"}, "logarithm='auto', but it must be None, True or False"),
        ({"lr": -1}, "lr=-1, but it must be a positive number"),
        ({"max_steps": -1}, "max_steps=-1, but it must be a whole number, at least 0"),
        ({"max_steps": None}, "max_steps=None, but it must be a whole number, at least 0"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        small(**settings).fit(series())


def test_windows_are_no_longer_than_the_series_and_gaps_than_a_third_of_them():
    imputer = small(window_length=1000, gap_length=1000).fit(with_gaps(series(60), slice(20, 23)))
    assert (imputer.window_length_, imputer.gap_length_) == (57, 19)


def test_too_few_observations_and_draws_are_refused():
    with pytest.raises(ValueError, match="X has 2 observations, at least 3 are needed"):
        small().fit(with_gaps(series(6), slice(2, 6)))
    with pytest.raises(ValueError, match="n_samples=0"):
        small().fit(series()).sample(with_gaps(series()), 0)
