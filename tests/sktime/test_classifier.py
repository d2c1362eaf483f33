"""Classes of whole series: whatever their lengths, times and gaps."""

import numpy as np
import pandas as pd
import pytest
import torch

from taylorformer_forecast.core.window import Window
from taylorformer_forecast.models.contiformer_classes import ContiFormerClasses
from taylorformer_forecast.sktime import ContiFormerClassifier

SMALL = {"d_model": 16, "n_heads": 2, "n_layers": 1, "random_state": 0, "device": "cpu", "verbose": False}


def waves(n, seed, columns=1):
    """Slow and fast waves at irregular times, of different lengths."""
    rng, parts = np.random.default_rng(seed), {}
    labels = np.array(["slow", "fast"])[np.arange(n) % 2]
    for i, label in enumerate(labels):
        t = np.sort(rng.choice(200, size=rng.integers(12, 20), replace=False))
        phase = t / (40 if label == "slow" else 8) + rng.uniform(0, 6)
        y = np.sin(phase)[:, None] + 0.1 * rng.normal(size=(len(t), columns))
        parts[i] = pd.DataFrame(y, index=pd.Index(t, name="time"), columns=[f"y{c}" for c in range(columns)])
    return pd.concat(parts, names=["instance"]), labels


@pytest.fixture(scope="module")
def fitted():
    X, y = waves(40, 0)
    return ContiFormerClassifier(max_steps=60, lr=1e-2, **SMALL).fit(X, y)


def test_irregular_series_of_different_lengths_with_gaps_are_told_apart(fitted):
    X, y = waves(60, 1)
    X.iloc[::6] = np.nan
    assert np.mean(fitted.predict(X) == y) > 0.85
    found = fitted.predict_proba(X)
    assert found.shape == (60, 2)
    np.testing.assert_allclose(found.sum(1), 1.0, atol=1e-6)


def test_a_network_that_was_not_trained_gives_its_linear_scores():
    scores = torch.randn(3, 2)
    covariates = torch.cat([torch.zeros(3, 12, 2), scores[:, None]], 1)
    t, y = torch.rand(3, 13).sort().values, torch.randn(3, 13, 1)
    window = Window(t, y, covariates=covariates, n_context=12)
    net = ContiFormerClasses(2, d_model=8, n_heads=2).eval()
    torch.testing.assert_close(net(window).probs, (net.steepness * scores).softmax(1))


def test_the_probabilities_of_a_series_do_not_depend_on_those_beside_it(fitted):
    X, _ = waves(9, 2)
    whole = fitted.predict_proba(X)
    for i in (0, 4):
        np.testing.assert_allclose(fitted.predict_proba(X.loc[[i]])[0], whole[i], atol=1e-5)


def test_a_missing_value_is_as_a_row_that_is_not_there(fitted):
    X, _ = waves(4, 3)
    lost = (X.groupby(level=0).cumcount() % 5 == 0).to_numpy()  # the first rows too
    np.testing.assert_allclose(
        fitted.predict_proba(X.where(~lost[:, None])), fitted.predict_proba(X[~lost]), atol=1e-6
    )


def test_a_series_without_any_value_has_probabilities(fitted):
    X, _ = waves(2, 3)
    assert np.isfinite(fitted.predict_proba(X * np.nan)).all()


def test_a_column_of_times_is_as_the_index():
    X, y = waves(12, 4)
    rows = X.groupby(level=0).cumcount()
    column = X.assign(when=X.index.get_level_values("time") / 3.0)
    column.index = pd.MultiIndex.from_arrays([X.index.get_level_values(0), rows])
    by_index = ContiFormerClassifier(max_steps=3, **SMALL).fit(X, y).predict_proba(X)
    by_column = ContiFormerClassifier(max_steps=3, time_column="when", **SMALL).fit(column, y)
    np.testing.assert_allclose(by_column.predict_proba(column), by_index, atol=1e-5)


def bumps(n, seed, late=0):
    """Noise with a bump that is early or late; later series may start later."""
    rng, labels = np.random.default_rng(seed), np.array(["early", "late"])[np.arange(n) % 2]
    parts = {}
    for i, label in enumerate(labels):
        y = 0.3 * rng.normal(size=40)
        y[slice(5, 15) if label == "early" else slice(25, 35)] += 1
        index = pd.RangeIndex(late * i, late * i + 40, name="time")
        parts[i] = pd.DataFrame({"y": y}, index).sample(12, random_state=i).sort_index()
    return pd.concat(parts, names=["instance"]), labels


def test_the_same_time_means_the_same_in_series_whose_first_rows_are_lost():
    (X, y), (new, truth) = bumps(30, 0), bumps(40, 1)
    classifier = ContiFormerClassifier(max_steps=0, **SMALL).fit(X, y)
    assert classifier.common_clock_
    assert np.mean(classifier.predict(new) == truth) > 0.95


def test_series_of_different_dates_count_from_their_own_first_rows():
    apart, y = bumps(16, 0, late=1000)
    near, _ = bumps(16, 0)
    by_default = ContiFormerClassifier(max_steps=3, **SMALL).fit(apart, y)
    own = ContiFormerClassifier(max_steps=3, common_clock=False, **SMALL).fit(near, y)
    assert not by_default.common_clock_
    np.testing.assert_allclose(by_default.predict_proba(apart), own.predict_proba(near), atol=1e-6)


def test_series_at_other_times_are_refused_under_a_common_clock_and_only_there():
    X, y = bumps(16, 0)
    later = X.set_axis(X.index.set_levels(X.index.levels[1] + 1000, level=1))
    with pytest.raises(ValueError, match="no times in common with those of the fit"):
        ContiFormerClassifier(max_steps=0, **SMALL).fit(X, y).predict(later)
    own = ContiFormerClassifier(max_steps=1, common_clock=False, **SMALL).fit(X, y)
    np.testing.assert_allclose(own.predict_proba(later), own.predict_proba(X), atol=1e-6)


def test_columns_may_come_in_another_order():
    X, y = waves(12, 5, columns=2)
    classifier = ContiFormerClassifier(max_steps=3, **SMALL).fit(X, y)
    np.testing.assert_array_equal(classifier.predict_proba(X[["y1", "y0"]]), classifier.predict_proba(X))


def test_scale_and_unit_of_the_data_mean_nothing():
    X, y = waves(12, 6)
    first, second = (ContiFormerClassifier(max_steps=3, **SMALL) for _ in range(2))
    found = first.fit(X, y).predict_proba(X)
    np.testing.assert_allclose(second.fit(1e4 * X + 7, y).predict_proba(1e4 * X + 7), found, atol=1e-4)


def test_a_column_that_is_absent_is_named():
    X, y = waves(12, 5, columns=2)
    with pytest.raises(ValueError, match="X has no column 'y1', which it had in the fit"):
        ContiFormerClassifier(max_steps=1, **SMALL).fit(X, y).predict(X[["y0"]])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"time_column": "when"}, "time_column='when' is no column of X"),
        ({"time_column": "y0"}, "times in time_column='y0' must be known and increase"),
        ({"hide": 1.0}, "hide=1.0, but it must be a number, at least 0 and below 1"),
        ({"common_clock": "own"}, "common_clock='own', but it must be None, True or False"),
        ({"max_points": 0}, "max_points=0, but it must be a whole number, at least 1"),
        ({"max_steps": None}, "max_steps=None, but it must be a whole number, at least 0"),
        ({"dynamics": "cubic"}, "dynamics='cubic' is not one of"),
    ],
)
def test_wrong_settings_are_named(settings, message):
    X, y = waves(6, 7)
    with pytest.raises(ValueError, match=message):
        ContiFormerClassifier(**{**SMALL, "max_steps": 1, **settings}).fit(X, y)


def test_probabilities_do_not_depend_on_what_the_caller_has_set(fitted):
    X, y = waves(6, 2)
    expected = fitted.predict_proba(X)
    torch.set_default_dtype(torch.float64)
    try:
        np.testing.assert_array_equal(fitted.predict_proba(X), expected)
    finally:
        torch.set_default_dtype(torch.float32)
    with torch.inference_mode(), torch.autocast("cpu", dtype=torch.bfloat16):
        np.testing.assert_array_equal(fitted.predict_proba(X), expected)
        again = ContiFormerClassifier(max_steps=1, **SMALL).fit(X, y)
    np.testing.assert_array_equal(
        again.predict_proba(X), ContiFormerClassifier(max_steps=1, **SMALL).fit(X, y).predict_proba(X)
    )


def test_a_fit_that_is_refused_loses_nothing():
    X, y = waves(6, 2)
    classifier = ContiFormerClassifier(max_steps=1, **SMALL).fit(X, y)
    expected = classifier.predict_proba(X)
    with pytest.raises(ValueError, match="infinite"):
        classifier.fit(X.replace(X.iloc[3, 0], np.inf), y)
    np.testing.assert_array_equal(classifier.predict_proba(X), expected)


@pytest.mark.parametrize("bad", [100.0, -9999.0, 1e20])
def test_a_wrong_reading_spoils_no_fit(bad):
    """One of 600 took the scale, and all probabilities were a half."""
    X, y = waves(40, 0)
    X.iloc[7] = bad
    classifier = ContiFormerClassifier(max_steps=60, lr=1e-2, **SMALL).fit(X, y)
    others, labels = waves(60, 1)
    assert np.mean(classifier.predict(others) == labels) > 0.85


def test_wrong_readings_in_new_series_leave_probabilities_finite(fitted):
    X, _ = waves(60, 1)
    wrong = X.copy()
    wrong.iloc[[3, 100]] = 1e30  # in two series
    found = fitted.predict_proba(wrong)
    assert np.isfinite(found).all()
    assert (np.abs(found - fitted.predict_proba(X)).max(1) > 0.01).sum() <= 2


@pytest.mark.parametrize("code", [None, -9999.0])
@pytest.mark.parametrize("kind", ["a device that is seldom on", "mostly zero"])
def test_columns_of_unlike_values_keep_what_tells_classes_apart(kind, code):
    """The power of a device beside its stand-by was moved to one number for all classes."""
    rng = np.random.default_rng(0)
    labels = np.array(["low", "high"])[np.arange(60) % 2]
    X = 1 + 0.02 * rng.normal(size=(60, 1, 30)) if "device" in kind else np.zeros((60, 1, 30))
    for series, label in zip(X[:, 0], labels, strict=True):
        series[rng.choice(30, 10, replace=False)] = 1000 if label == "low" else 2000
    if code is not None:
        X[7, 0, 5] = code
    classifier = ContiFormerClassifier(max_steps=60, lr=1e-2, **SMALL).fit(X[:40], labels[:40])
    assert np.mean(classifier.predict(X[40:]) == labels[40:]) > 0.85
