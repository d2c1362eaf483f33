"""The Gaussian copula of several series: estimated from errors, put into paths with the same marginals."""

from __future__ import annotations

import numpy as np
import pytest

from taylorformer_forecast.calendar.steps import StepDate
from taylorformer_forecast.defaults import N_COPULA_PATHS
from taylorformer_forecast.engine.statistics.copula import (
    GaussianCopula,
    _eigen_of_pairs,
    _eigen_of_rows,
    scores_among,
    standardised_errors,
)


def correlated(rng, size, rho):
    """Normal draws (*size, D) of which neighbours have correlations ``rho``."""
    rho = np.asarray(rho)
    return rng.normal(size=(*size, len(rho))) @ np.linalg.cholesky(rho).T


def correlation(copula):
    """Correlation of normal scores, (D, D)."""
    root = copula.own * np.eye(len(copula.factors)) + copula.factors @ copula.factors.T
    return root @ root


CLOSE = [[1.0, 0.8, -0.3], [0.8, 1.0, 0.0], [-0.3, 0.0, 1.0]]


def autoregressive(rng, n_paths, n_times, decays):
    """Independent stationary paths (S, T, D) of autoregressions of order one."""
    decays = np.asarray(decays)
    paths = rng.normal(size=(n_paths, n_times, len(decays)))
    for step in range(1, n_times):
        paths[:, step] = decays * paths[:, step - 1] + np.sqrt(1 - decays**2) * paths[:, step]
    return paths


def test_many_scores_show_their_correlation():
    found = GaussianCopula.of(correlated(np.random.default_rng(0), (4000,), CLOSE), 4000)
    np.testing.assert_allclose(correlation(found), CLOSE, atol=0.04)


def test_constants_are_independent_and_leave_the_correlations_of_others():
    rng = np.random.default_rng(0)
    scores = correlated(rng, (100,), 0.3 + 0.7 * np.eye(20))
    alone = GaussianCopula.of(scores, 100)
    beside = GaussianCopula.of(np.concatenate([np.zeros((100, 30)), scores], 1), 100)
    np.testing.assert_allclose(correlation(beside)[30:, 30:], correlation(alone), atol=1e-12)
    assert not beside.factors[:30].any()
    nothing = GaussianCopula.of(np.zeros((10, 3)), 10)
    paths = rng.normal(size=(50, 4, 3))
    np.testing.assert_array_equal(np.sort(nothing.reorder(paths), 0), np.sort(paths, 0))


@pytest.mark.parametrize("y", [np.zeros(60), np.full(60, 0.1), np.full(60, -7.0)], ids=str)
def test_errors_of_constants_do_not_vary(y):
    found = standardised_errors([y, np.random.default_rng(0).normal(size=60)], [None] * 2, [[], []], 3)
    assert np.nanmax(np.abs(found[0])) == 0 < np.nanmin(np.nanstd(found[1], 0))


@pytest.mark.parametrize("n_series", [2, 30])
def test_correlations_of_independent_series_are_shrunk_to_zero(n_series):
    noise = [
        correlation(GaussianCopula.of(np.random.default_rng(seed).normal(size=(40, n_series)), 40))
        for seed in range(20)
    ]
    raw = [np.corrcoef(np.random.default_rng(seed).normal(size=(40, n_series)).T) for seed in range(20)]
    off = ~np.eye(n_series, dtype=bool)
    assert np.abs(np.array(noise)[:, off]).mean() < 0.5 * np.abs(np.array(raw)[:, off]).mean()


def test_rows_that_overlap_count_as_the_times_they_are_of():
    scores = correlated(np.random.default_rng(0), (30,), CLOSE)
    once, often = (GaussianCopula.of(np.repeat(scores, k, 0), 30) for k in (1, 10))
    np.testing.assert_allclose(correlation(once), correlation(often), atol=1e-12)


@pytest.mark.parametrize("n", [3, 50])
def test_the_correlation_matrix_is_one_with_fewer_times_than_series_and_with_missing_scores(n):
    rng = np.random.default_rng(0)
    scores = correlated(rng, (n,), np.full((8, 8), 0.6) + 0.4 * np.eye(8))
    scores[rng.random(scores.shape) < 0.2] = np.nan
    scores[:, -1] = np.nan
    found = correlation(GaussianCopula.of(scores, n))
    assert np.linalg.eigvalsh(found).min() > -1e-12
    np.testing.assert_allclose(np.diag(found)[:-1], 1.0)
    assert (found[-1, :-1] == 0).all()


@pytest.mark.parametrize("known", [1.0, 0.5, 0.2])
def test_what_is_missing_makes_no_correlation_smaller(known):
    """A short series next to long ones, and scores that are missing here and there."""
    rng = np.random.default_rng(0)
    scores = correlated(rng, (2000,), CLOSE)
    expected = correlation(GaussianCopula.of(scores, 2000))
    short, sparse = scores.copy(), np.where(rng.random(scores.shape) < known, scores, np.nan)
    short[: round(2000 * (1 - known)), 0] = np.nan
    for some in (short, sparse):
        np.testing.assert_allclose(correlation(GaussianCopula.of(some, 2000)), expected, atol=0.08)


def test_correlations_of_pairs_are_those_of_rows_where_nothing_is_missing():
    scores = correlated(np.random.default_rng(0), (50,), CLOSE)
    z, known = scores - scores.mean(0), np.ones(scores.shape, dtype=bool)
    rows, pairs = (of(z, known, 50) for of in (_eigen_of_rows, _eigen_of_pairs))
    np.testing.assert_allclose(rows[2:], pairs[2:])
    first, second = (vectors * values @ vectors.T for values, vectors, *_ in (rows, pairs))
    np.testing.assert_allclose(first, second, atol=1e-12)


@pytest.mark.parametrize("shape", [(1, 4, 3), (2, 4, 3), (99, 1, 3), (99, 4, 3)])
def test_every_time_of_every_series_keeps_its_values(shape):
    rng = np.random.default_rng(0)
    copula = GaussianCopula.of(correlated(rng, (200,), CLOSE), 200)
    paths = rng.normal(size=shape) ** 3
    np.testing.assert_array_equal(np.sort(copula.reorder(paths), 0), np.sort(paths, 0))


def test_paths_of_independent_or_single_series_stay_as_they_are():
    rng = np.random.default_rng(0)
    paths = rng.normal(size=(50, 6, 3))
    alone = GaussianCopula.of(np.full((10, 3), np.nan), 10)
    np.testing.assert_array_equal(alone.reorder(paths), paths)
    close = GaussianCopula.of(correlated(rng, (200,), CLOSE), 200)
    np.testing.assert_array_equal(close.take([0]).reorder(paths[..., :1]), paths[..., :1])
    np.testing.assert_array_equal(close.take([-1, -1]).reorder(paths[..., :2]), paths[..., :2])


@pytest.mark.parametrize("decays", [[0.0, 0.0, 0.0], [0.9, 0.9, 0.9], [0.9, 0.5, 0.0]])
def test_paths_have_the_correlation_between_series_and_keep_that_along_time(decays):
    rng = np.random.default_rng(0)
    paths = autoregressive(rng, 4000, 12, decays)
    copula = GaussianCopula.of(correlated(rng, (4000,), CLOSE), 4000)
    found = copula.reorder(paths)
    decays = np.array(decays)
    root = np.sqrt(1 - decays**2)  # stationary correlation of autoregressions with these innovations
    between = np.outer(root, root) / (1 - np.outer(decays, decays)) * correlation(copula)
    np.testing.assert_allclose(np.corrcoef(found[:, -1].T), between, atol=0.05)
    for d, decay in enumerate(decays):
        for lag in (1, 4):
            along = np.corrcoef(found[:, -1, d], found[:, -1 - lag, d])[0, 1]
            assert along == pytest.approx(decay**lag, abs=0.06)


def test_equal_values_are_no_evidence_of_an_order():
    """Of counts, most of which are zero, both series sell at the same times; a constant has no effect."""
    rng = np.random.default_rng(0)
    copula = GaussianCopula.of(correlated(rng, (4000,), CLOSE), 4000)
    paths = rng.poisson(0.4, size=(4000, 3, 3)).astype(float)
    paths[..., 2] = 7.0
    found = copula.reorder(paths)
    assert np.corrcoef(found[:, 0, 0], found[:, 0, 1])[0, 1] > 0.5
    assert abs(np.corrcoef(found[:, 0, 0], found[:, 1, 0])[0, 1]) < 0.06
    assert (found[..., 2] == 7.0).all()


def test_scores_are_those_of_ranks_among_draws():
    draws = np.random.default_rng(0).normal(size=(10_000, 3))
    np.testing.assert_allclose(scores_among(draws, np.array([-1.0, 0.0, 1.5])), [-1.0, 0.0, 1.5], atol=0.05)
    assert np.isnan(scores_among(draws, np.array([np.nan, 0.0, 0.0])))[0]


def test_ranks_among_the_paths_of_a_network_lose_little_of_a_correlation():
    rng = np.random.default_rng(0)
    common, own = rng.normal(size=(4000, 1)), rng.normal(size=(4000, 2))
    y = np.sqrt(0.7) * common + np.sqrt(0.3) * own
    scores = scores_among(rng.normal(size=(N_COPULA_PATHS, *y.shape)), y)
    assert np.corrcoef(scores.T)[0, 1] == pytest.approx(0.7, abs=0.03)


@pytest.mark.parametrize("size", [1, 2**14])
def test_scores_of_statistical_forecasts_end_with_their_series_and_do_not_depend_on_batches(
    size, monkeypatch
):
    rng = np.random.default_rng(0)
    series = [rng.normal(size=n).cumsum() for n in (60, 30, 1100)]
    series[0][50:55] = np.nan
    given = series, [None] * 3, [[], [7], []], 4
    whole = standardised_errors(*given)
    monkeypatch.setattr("taylorformer_forecast.engine.statistics.copula.STEPS_AT_ONCE", size)
    for y, scores, again in zip(series, whole, standardised_errors(*given), strict=True):
        assert scores.shape == (len(y), 4)
        np.testing.assert_allclose(scores, again, atol=1e-9)
        n = len(y)
        for step in range(4):
            target = np.arange(n) + step + 1
            there = (np.arange(n) >= n // 2) & (target < n) & ~np.isnan(y[target.clip(max=n - 1)])
            assert (~np.isnan(scores[:, step]) <= there).all()
            assert (~np.isnan(scores[-20:, step]) == there[-20:]).all()


def test_series_are_measured_once_for_all_batches(monkeypatch):
    """Many series take many batches: what every batch does with all others would take a square of time."""

    class Counted(list):
        taken = 0

        def __getitem__(self, which):
            part = super().__getitem__(which)
            Counted.taken += len(part) if isinstance(which, slice) else 1
            return part

    monkeypatch.setattr("taylorformer_forecast.engine.statistics.copula.STEPS_AT_ONCE", 1)
    rng = np.random.default_rng(0)
    series = Counted(rng.normal(size=n) for n in (12, 8, 10, 9))
    standardised_errors(series, [None] * 4, [[]] * 4, 2)
    assert Counted.taken <= 2 * len(series)


def test_scores_of_series_with_common_noise_go_together():
    rng = np.random.default_rng(0)
    noise = correlated(rng, (200,), [[1.0, 0.8], [0.8, 1.0]]).cumsum(0)
    scores = np.stack(standardised_errors(list(noise.T), [None] * 2, [[], []], 3), -1).reshape(-1, 2)
    assert correlation(GaussianCopula.of(scores, 100))[0, 1] == pytest.approx(0.8, abs=0.1)


def test_common_effects_of_the_calendar_are_no_errors():
    days = np.datetime64("2022-09-03") - np.arange(500)[::-1]
    early = (days - days.astype("datetime64[M]")).astype(int) < 5
    series = list((50 + 4.0 * early[:, None] + np.random.default_rng(0).normal(size=(500, 2))).T)
    seen, unseen = (
        np.stack(standardised_errors(series, [last] * 2, [[7]] * 2, 3), -1)
        for last in (StepDate(days[-1]), None)
    )
    seen, unseen = (correlation(GaussianCopula.of(one.reshape(-1, 2), 250))[0, 1] for one in (seen, unseen))
    assert seen < 0.25
    assert unseen > 0.5
