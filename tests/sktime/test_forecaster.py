"""All predictive methods of a forecaster agree with one draw, whatever is done to it or its data."""

from __future__ import annotations

import copy
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest
from joblib.externals.loky import ProcessPoolExecutor
from sktime.base import load

from taylorformer_forecast.sktime import ContiFormerForecaster, LAMForecaster, TaylorformerForecaster

# Forecasters and distributions whose paths or marginals are made in different ways.
KINDS = {
    "normal": {"distribution": "normal"},
    "studentt": {"distribution": "studentt"},
    "mixture": {"distribution": "mixture"},
    "quantile": {"distribution": "quantile"},
    "contiformer": {"forecaster": ContiFormerForecaster, "distribution": "studentt"},
    "contiformer-direct": {"forecaster": ContiFormerForecaster, "distribution": "mixture", "joint": False},
    "lam": {"forecaster": LAMForecaster, "distribution": "studentt"},
    "lam-quantile": {"forecaster": LAMForecaster, "distribution": "quantile"},
    "lam-faithful": {"forecaster": LAMForecaster, "distribution": "mixture", "preset": "faithful"},
}
AHEAD = range(1, 31)  # longer than a training window: paths are rolled
MIXED = [-7, -1, 0, 1, 2, 14]
STEPS = {"ahead": AHEAD, "mixed": MIXED}
ALPHAS = [0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99]


def tiny(forecaster=TaylorformerForecaster, **changes):
    settings = {"d_model": 4, "n_heads": 1, "max_steps": 1, "num_samples": 12, "random_state": 0}
    settings |= {"distribution": "normal", "num_epochs": None}
    if forecaster is TaylorformerForecaster:
        settings["strategy"] = "train"  # however short the series
    return forecaster(**{**settings, **changes})


def monthly(n=60, columns=None, seed=0):
    """Seasonal series with noise: a Series, or a frame with these columns."""
    rng = np.random.default_rng(seed)
    wave = 10 + np.sin(np.arange(n) * 2 * np.pi / 12)
    values = wave[:, None] + 0.3 * rng.normal(size=(n, len(columns or ["sales"])))
    frame = pd.DataFrame(values, pd.period_range("2000-01", periods=n, freq="M"), columns or ["sales"])
    return frame if columns else frame["sales"]


@pytest.fixture(scope="module", params=KINDS)
def fitted(request):
    settings = {**KINDS[request.param], "max_steps": 3}
    if request.param == "studentt":
        settings |= {"taylor_order": 1, "n_derivative_neighbours": 2}
    return tiny(**settings).fit(monthly(columns=["sales", "visits"]))


@pytest.fixture(scope="module")
def quantiles(fitted):
    """Quantiles of all steps ahead, and of some mixed with steps back."""
    return {name: fitted.predict_quantiles(fh=STEPS[name], alpha=ALPHAS) for name in STEPS}


# --- one draw for all methods -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", STEPS)
def test_quantiles_are_those_of_the_distribution_to_the_last_bit(fitted, quantiles, name):
    distribution = fitted.predict_proba(fh=STEPS[name])
    pd.testing.assert_frame_equal(quantiles[name], distribution.quantile(ALPHAS), check_exact=True)


def test_intervals_are_quantiles(fitted, quantiles):
    intervals = fitted.predict_interval(fh=MIXED, coverage=[0.5, 0.9])
    for column in ("sales", "visits"):
        expected = quantiles["mixed"][column][[0.25, 0.75, 0.05, 0.95]]
        np.testing.assert_allclose(intervals[column].to_numpy(), expected.to_numpy(), rtol=1e-12)
    assert (intervals.xs("lower", axis=1, level=2) < intervals.xs("upper", axis=1, level=2)).all(axis=None)


def test_quantiles_grow_with_their_level(quantiles):
    assert (np.diff(quantiles["mixed"].to_numpy().reshape(len(MIXED), 2, -1), axis=-1) > 0).all()


def test_the_point_forecast_is_the_mean_and_the_variance_that_of_the_distribution(fitted):
    distribution = fitted.predict_proba(fh=MIXED)
    pd.testing.assert_frame_equal(fitted.predict(fh=MIXED), distribution.mean(), check_exact=True)
    pd.testing.assert_frame_equal(fitted.predict_var(fh=MIXED), distribution.var(), check_exact=True)


def test_residuals_are_data_minus_in_sample_predictions(fitted):
    y = monthly(columns=["sales", "visits"])
    in_sample = fitted.predict(fh=range(1 - len(y), 1))
    pd.testing.assert_frame_equal(fitted.predict_residuals(y), y - in_sample)


def test_the_covariance_has_the_variances_on_its_diagonal_and_is_positive_semidefinite(fitted):
    covariance = fitted.predict_var(fh=MIXED, cov=True)
    variance = fitted.predict_var(fh=MIXED)
    paths = fitted.predict_proba(fh=MIXED, marginal=False).paths
    for number, column in enumerate(("sales", "visits")):
        block = covariance[column].to_numpy()
        np.testing.assert_allclose(np.diag(block), variance[column], rtol=1e-9)
        np.testing.assert_allclose(block, block.T, rtol=1e-9)
        assert np.linalg.eigvalsh(block).min() > -1e-9 * np.trace(block)
        deviation = np.sqrt(np.diag(block))
        np.testing.assert_allclose(block / np.outer(deviation, deviation), np.corrcoef(paths[:, :, number].T))


def test_the_covariance_takes_one_draw(fitted, monkeypatch):
    draws, predictive = [], type(fitted)._predictive

    def counted(self, *asked, **how):
        draws.append(asked)
        return predictive(self, *asked, **how)

    monkeypatch.setattr(type(fitted), "_predictive", counted)
    fitted.predict_var(fh=[1, 2], cov=True)
    assert len(draws) == 1


def test_joint_paths_and_marginals_come_from_the_same_draw(fitted):
    """Every path is drawn from the components of the marginal mixture, so the means are close."""
    joint, marginal = fitted.predict_proba(fh=[1, 2], marginal=False), fitted.predict_proba(fh=[1, 2])
    assert joint.index.equals(marginal.index)
    assert joint.columns.equals(marginal.columns)
    gap = (joint.mean() - marginal.mean()).abs() / marginal.var() ** 0.5
    assert gap.to_numpy().max() < 5 / np.sqrt(fitted.num_samples)
    paths = joint.sample(12).to_numpy().reshape(12, 2, 2)
    np.testing.assert_array_equal(paths, joint.paths)


@pytest.mark.parametrize("step", [5, 12, 13, 30])
def test_a_step_is_predicted_alike_alone_and_among_others(fitted, quantiles, step):
    """Paths pass through all steps up to the last that is asked for."""
    among = quantiles["ahead"].iloc[step - 1]
    for fh in ([step], [-3, 1, step]):
        alone = fitted.predict_quantiles(fh=fh, alpha=ALPHAS).iloc[-1]
        np.testing.assert_allclose(alone, among, rtol=1e-4)


def test_paths_of_a_random_walk_remember_where_they_are():
    y = pd.Series(np.random.default_rng(0).normal(size=200).cumsum())
    forecaster = tiny(d_model=8, max_steps=60, num_samples=200, lr=1e-2).fit(y)
    paths = forecaster.predict_proba(fh=range(1, 13), marginal=False).sample(200)
    values = paths.to_numpy().reshape(200, 12)
    steps = np.diff(values, axis=1)
    assert np.corrcoef(values[:, 7], values[:, 8])[0, 1] > 0.6
    assert np.std(steps[:, -1]) < 0.8 * np.std(values[:, -1])
    marginal = forecaster.predict_proba(fh=range(1, 13)).sample(200).to_numpy().reshape(200, 12)
    assert abs(np.corrcoef(marginal[:, 7], marginal[:, 8])[0, 1]) < 0.3


# --- the same forecaster, elsewhere or later --------------------------------------------------------------


def through_pickle(forecaster, _):
    return pickle.loads(pickle.dumps(forecaster))


def through_a_file(forecaster, tmp_path):
    forecaster.save(str(tmp_path / "forecaster"))
    return load(str(tmp_path / "forecaster"))


def through_deepcopy(forecaster, _):
    return copy.deepcopy(forecaster)


def refitted_clone(forecaster, _):
    return forecaster.clone().fit(monthly(columns=["sales", "visits"]))


def itself(forecaster, _):
    forecaster.predict_proba(fh=[1]).sample(3)
    return forecaster


@pytest.mark.parametrize(
    "copied",
    [itself, through_deepcopy, through_pickle, through_a_file, refitted_clone],
    ids=lambda f: f.__name__,
)
def test_a_copy_predicts_the_same(fitted, quantiles, copied, tmp_path):
    after = copied(fitted, tmp_path).predict_quantiles(fh=MIXED, alpha=ALPHAS)
    pd.testing.assert_frame_equal(quantiles["mixed"], after, check_exact=True)


def test_a_saved_forecaster_holds_little_more_than_the_network_and_the_data():
    forecaster = tiny(trainer_kwargs={"enable_progress_bar": False}).fit(monthly())
    weights = sum(p.numel() * p.element_size() for p in forecaster.network_.parameters())
    assert len(pickle.dumps(forecaster)) < weights + 60_000


def fit_and_predict(seed):
    return tiny(random_state=seed, max_steps=3).fit(monthly()).predict(fh=[1, 2, 3])


def test_fits_in_threads_equal_fits_one_after_another():
    expected = [fit_and_predict(seed) for seed in range(6)]
    with ThreadPoolExecutor(4) as pool:
        for one, other in zip(expected, pool.map(fit_and_predict, range(6)), strict=True):
            pd.testing.assert_series_equal(one, other)


def test_predictions_in_threads_equal_those_one_after_another(fitted):
    expected = fitted.predict(fh=MIXED)
    with ThreadPoolExecutor(4) as pool:
        for found in pool.map(lambda _: fitted.predict(fh=MIXED), range(8)):
            pd.testing.assert_frame_equal(found, expected)


def test_a_fit_in_another_process_equals_one_here():
    with ProcessPoolExecutor(max_workers=1) as pool:  # what joblib's backend "loky" uses
        pd.testing.assert_series_equal(pool.submit(fit_and_predict, 0).result(), fit_and_predict(0))


def test_without_a_seed_fits_differ_but_a_fit_keeps_its_draw():
    one, other = (tiny(random_state=None).fit(monthly()) for _ in range(2))
    assert not one.predict(fh=[1]).equals(other.predict(fh=[1]))
    assert one.predict(fh=[1]).equals(one.predict(fh=[1]))


def test_a_random_state_object_seeds_the_fit():
    one, other = (
        tiny(random_state=np.random.RandomState(3)).fit(monthly()).predict(fh=[1]) for _ in range(2)
    )
    assert one.equals(other)
    assert one.equals(tiny(random_state=3).fit(monthly()).predict(fh=[1]))


def test_what_is_done_to_the_data_later_leaves_the_forecaster_alone():
    y, X = monthly(columns=["sales"]), monthly(72, columns=["price"], seed=1)
    known = X.iloc[:60].copy()
    given = y.copy()
    forecaster = tiny().fit(y, X=known)
    before = forecaster.predict(fh=[0, 1], X=X.iloc[60:])
    pd.testing.assert_frame_equal(y, given)
    y.iloc[:] = 0.0
    known.iloc[:] = 0.0
    pd.testing.assert_frame_equal(forecaster.predict(fh=[0, 1], X=X.iloc[60:]), before)


# --- units of the data ------------------------------------------------------------------------------------


@pytest.fixture(scope="module", params=KINDS)
def in_units(request):
    """Quantiles of a series in other units, and those of the same series as it is."""
    settings, y = KINDS[request.param], monthly()

    def quantiles(values):
        return tiny(**settings).fit(values).predict_quantiles(fh=[-2, 1, 15], alpha=[0.1, 0.9])

    expected = quantiles(y)
    return lambda factor, offset: (quantiles(factor * y + offset), expected)


@pytest.mark.parametrize(
    ("factor", "offset"), [(1e9, 0.0), (1e-9, 0.0), (3.0, -7.0), (1.0, 1e8), (1e140, 0.0), (1e-140, 0.0)]
)
def test_forecasts_follow_the_units_of_the_data(in_units, factor, offset):
    found, expected = in_units(factor, offset)
    np.testing.assert_allclose((found - offset) / factor, expected, rtol=1e-4)


@pytest.mark.parametrize("level", [0.0, 5.0, -3e9, 0.1, 1e-300])
def test_forecasts_of_a_constant_series_stay_near_it(level):
    forecaster = tiny().fit(pd.Series(np.full(30, level)))
    forecast = forecaster.predict(fh=[-29, -3, 0, 1, 7]).to_numpy()
    assert np.abs(forecast - level).max() <= (0.1 * abs(level) or 1.0)
    assert (forecaster.predict_interval(fh=[1, 2]).diff(axis=1).iloc[:, 1] > 0).all()


def test_a_series_that_hardly_moves_at_a_high_level_is_not_taken_for_constant():
    """At 1e15 neighbouring floats are 0.125 apart: the rounding is seen, nothing worse."""
    y = monthly()
    spread = tiny().fit(10 * y + 1e15).predict_var(fh=[1]).iloc[0, 0] ** 0.5
    assert spread == pytest.approx(10 * tiny().fit(y).predict_var(fh=[1]).iloc[0, 0] ** 0.5, rel=0.05)


@pytest.mark.parametrize("dtype", ["float32", "float16", "int64", "Float64", "Int64", "bool"])
def test_number_types_are_taken_as_they_are(dtype):
    y = (10 * monthly()).round()
    y = y > 100 if dtype == "bool" else y.astype(dtype)
    expected = tiny().fit(y.astype("float64")).predict(fh=[1, 2])
    found = tiny().fit(y).predict(fh=[1, 2])
    np.testing.assert_allclose(found.to_numpy(dtype="float64"), expected.to_numpy())
    assert found.dtype == np.float64


@pytest.mark.parametrize("n", [3, 4, 5, 7, 13])
@pytest.mark.parametrize("kind", KINDS)
def test_very_short_series_are_forecast(n, kind):
    forecaster = tiny(**KINDS[kind]).fit(monthly(n))
    assert np.isfinite(forecaster.predict(fh=[1 - n, 0, 1, 5])).all()


@pytest.mark.parametrize("n_columns", [1, 3])
def test_numpy_arrays_come_back_as_numpy_arrays(n_columns):
    y = np.random.default_rng(0).normal(size=(40, n_columns))
    forecast = tiny().fit(y).predict(fh=[1, 2])
    assert isinstance(forecast, np.ndarray)
    assert forecast.shape == (2, n_columns)


@pytest.mark.parametrize("labels", [["a", "b"], [0, 1], [0, "b"], [("a", "x"), ("a", "y")]], ids=str)
def test_column_labels_of_any_kind_are_kept(labels):
    y = monthly(columns=["a", "b"]).set_axis(pd.Index(labels), axis=1)
    forecaster = tiny().fit(y)
    assert forecaster.predict(fh=[1]).columns.equals(y.columns)
    assert forecaster.predict_proba(fh=[1]).columns.equals(y.columns)


# --- missing values ---------------------------------------------------------------------------------------


def with_gaps(y, where):
    y = y.copy()
    rows = {
        "start": slice(0, 8),
        "end": slice(-8, None),
        "middle": slice(20, 35),
        "every other": slice(None, None, 2),
        "all but three": slice(0, -3),
    }[where]
    y.iloc[rows] = np.nan
    return y


GAPS = ["start", "end", "middle", "every other", "all but three"]


@pytest.mark.parametrize("where", GAPS)
@pytest.mark.parametrize("kind", KINDS)
def test_gaps_anywhere_are_allowed_and_steps_are_counted_from_the_last_row(where, kind):
    y = with_gaps(monthly(), where)
    forecaster = tiny(**KINDS[kind]).fit(y)
    forecast = forecaster.predict_quantiles(fh=[-59, -20, 0, 1, 15], alpha=[0.1, 0.9])
    assert np.isfinite(forecast.to_numpy()).all()
    assert forecast.index[0] == y.index[0]
    assert forecast.index[-2] == y.index[-1] + 1


@pytest.mark.parametrize("where", ["start", "middle"])
def test_rows_without_a_value_mean_the_same_as_absent_rows(where):
    settings = {"time_features": ("year",), "seasonal_periods": None, "context_length": 12, "max_steps": 3}
    y = with_gaps(monthly(), where)
    kept, dropped = (tiny(**settings).fit(data, fh=[1, 2, 3]).predict(fh=MIXED) for data in (y, y.dropna()))
    pd.testing.assert_series_equal(kept, dropped, rtol=1e-5)


@pytest.mark.usefixtures("nothing_is_fitted")
def test_a_gap_in_one_column_leaves_the_forecasts_of_the_other_alone():
    """Columns share the network, here untrained, and nothing else."""
    y = monthly(columns=["a", "b"])
    gappy = y.assign(b=with_gaps(y["b"], "middle"))
    whole, partial = (tiny(max_steps=0).fit(frame).predict(fh=MIXED) for frame in (y, gappy))
    pd.testing.assert_series_equal(whole["a"], partial["a"])
    assert np.isfinite(partial["b"]).all()


def test_a_value_that_was_not_observed_cannot_matter():
    """NaN and no other number is the sign of a gap; what a pandas mask hides is not looked at."""
    values, hidden = monthly().to_numpy(), np.zeros(60, dtype=bool)
    hidden[10:20] = True
    junk = np.where(hidden, 1e100, values)
    index = monthly().index
    masked = pd.Series(pd.arrays.FloatingArray(junk, hidden), index=index, name="sales")
    plain = pd.Series(np.where(hidden, np.nan, values), index=index, name="sales")
    one, other = (tiny().fit(y).predict(fh=MIXED) for y in (masked, plain))
    np.testing.assert_array_equal(one.to_numpy(dtype=float), other.to_numpy())


# --- point forecasts ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("forecaster", [TaylorformerForecaster, LAMForecaster, ContiFormerForecaster])
@pytest.mark.parametrize("distribution", ["mse", "mae"])
def test_point_forecasts_have_no_intervals_and_say_why(forecaster, distribution):
    fitted = tiny(forecaster, distribution=distribution).fit(monthly())
    assert not fitted.get_tag("capability:pred_int")
    forecast = fitted.predict(fh=MIXED)
    assert np.isfinite(forecast).all()
    pd.testing.assert_series_equal(fitted.clone().fit(monthly()).predict(fh=MIXED), forecast)
    for method in ("predict_interval", "predict_quantiles", "predict_var", "predict_proba"):
        with pytest.raises(NotImplementedError, match=f"distribution='{distribution}' gives point forecasts"):
            getattr(fitted, method)(fh=[1])
    assert fitted.set_params(distribution="normal").get_tag("capability:pred_int")
    assert forecaster.get_class_tag("capability:pred_int")
