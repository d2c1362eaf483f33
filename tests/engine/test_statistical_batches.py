"""Many series at once are forecast as each by itself."""

import numpy as np
import pytest

from taylorformer_forecast.defaults import LONGEST_PAST
from taylorformer_forecast.engine.statistics import forecast
from taylorformer_forecast.engine.statistics.forecast import forecast_series
from taylorformer_forecast.engine.statistics.requests import SeriesRequest

RNG = np.random.default_rng(0)
NOISE = RNG.normal(size=200)
SERIES = {
    "walk": (50 + NOISE[:90].cumsum(), [12.0]),
    "short": (50 + NOISE[:7], [12.0]),
    "long": (NOISE.cumsum(), [12.0, 7.0]),
    "growth": (np.exp(np.arange(60) / 30 + 0.1 * NOISE[:60]), [12.0]),
    "counts": (RNG.poisson(0.7, size=80).astype(float), [12.0]),
    "many counts": (RNG.poisson(0.3, size=80) * 25.0, [12.0]),
    "demand": (np.where(NOISE[:50] > 0.3, NOISE[:50], 0.0), [12.0]),
    "gaps": (np.where(np.arange(70) % 3 == 1, np.nan, 9 + NOISE[:70]), []),
    "constant": (np.full(30, 5.0), [12.0]),
    "zeros": (np.zeros(30), [12.0]),
    "one value": (np.array([3.0]), []),
}


def question(y, seasons, horizon=12, first=0):
    return SeriesRequest(y, len(y) + np.arange(first, horizon), seasons=seasons)


@pytest.mark.parametrize("most", [2**20, 3000, 1])
@pytest.mark.parametrize("first", [0, -3])
def test_a_series_in_a_batch_is_forecast_as_by_itself(monkeypatch, most, first):
    monkeypatch.setattr(forecast, "STEPS_AT_ONCE", most)
    questions = [question(*one, 6 + 12 * (k % 3 == 0), first) for k, one in enumerate(SERIES.values())]
    together = forecast_series(questions, n_paths=10, seed=0)
    for name, asked, found in zip(SERIES, questions, together, strict=True):
        alone = forecast_series([asked], n_paths=10, seed=0)[0]
        size = np.nanmax(np.abs(asked.y)) or 1.0
        for part in ("loc", "scale", "weights"):
            got, expected = (getattr(a, part) for a in (found, alone))
            np.testing.assert_allclose(got, expected, atol=1e-9 * size, rtol=1e-9, err_msg=name)
        assert found.paths.shape == alone.paths.shape


def test_of_many_seasons_the_first_ones_given_are_tried():
    few, many, others = (
        forecast_series([question(SERIES["walk"][0], seasons)], 5, 0)[0].loc
        for seasons in ([12.0, 7.0], [12.0, 7.0, 3.0], [3.0, 12.0, 7.0])
    )
    np.testing.assert_array_equal(few, many)
    assert (few != others).any()


@pytest.mark.parametrize("kind", ["trend", "gaps", "counts"])
def test_every_time_in_sample_of_a_long_series_is_forecast_from_the_values_before_it(kind):
    n = 2 * LONGEST_PAST + 130
    noise = np.random.default_rng(1).normal(size=n)
    y = {
        "trend": 10.0 * np.arange(n) + noise,
        "gaps": np.where(np.arange(n) % 7 > 4, np.nan, 10.0 * np.arange(n) + noise),
        "counts": np.random.default_rng(1).poisson(np.linspace(0.2, 2.0, n)).astype(float),
    }[kind]
    y = y[: np.flatnonzero(~np.isnan(y))[-1] + 1]
    at = np.array([len(y) + 1, 40, 700, len(y) - 1, 1300, 5])
    found = forecast_series([SeriesRequest(y, at, seasons=[7.0])], n_paths=50, seed=0)[0]
    assert found.paths.shape == (50, 6)
    np.testing.assert_allclose(found.weights.sum(1), 1.0)
    mean = (found.weights * found.loc).sum(1)
    if kind == "counts":
        assert mean[1] < 0.8 < 1.2 < mean[0]
    else:
        np.testing.assert_allclose(mean, 10.0 * at, atol=25)
        np.testing.assert_allclose(found.paths.mean(0), 10.0 * at, atol=25)


def test_paths_of_a_series_do_not_depend_on_what_is_asked_of_others():
    rng = np.random.default_rng(1)
    long, short = rng.normal(size=LONGEST_PAST + 300), rng.normal(size=60)
    first, second = (
        forecast_series([SeriesRequest(long, np.array(at)), SeriesRequest(short, np.array([60]))], 5, 0)
        for at in ([len(long)], [len(long), 200])
    )
    np.testing.assert_array_equal(first[1].paths, second[1].paths)
    np.testing.assert_array_equal(first[0].paths[:, 0], second[0].paths[:, 0])


def test_the_future_of_a_long_series_does_not_depend_on_times_in_sample():
    y = np.random.default_rng(1).normal(size=LONGEST_PAST + 10)
    alone, with_past = (
        forecast_series([SeriesRequest(y, len(y) + np.array(at), seasons=[7.0])], 5, 0)[0].quantiles[-2:]
        for at in ([0, 1], [-len(y) + 3, -800, 0, 1])
    )
    np.testing.assert_allclose(alone, with_past, atol=1e-9)


@pytest.mark.parametrize("name", ["walk", "growth", "gaps", "constant", "counts"])
def test_between_steps_a_forecast_lies_between_those_of_both(name):
    y, seasons = SERIES[name]
    steps = np.arange(5) - 1.0
    at = len(y) + np.sort(np.concatenate([steps, steps[:-1] + 0.25]))
    asked = (SeriesRequest(y, places, seasons=seasons) for places in (len(y) + np.arange(4), at[1:]))
    whole, found = (forecast_series([one], 20, seed=0)[0] for one in asked)
    assert found.intermittent == (name == "counts")
    for part in ("quantiles", "paths"):
        table, got = (getattr(one, part) for one in (whole, found))
        table, got = (table.T, got.T) if part == "paths" else (table, got)
        np.testing.assert_array_equal(got[1::2], table)  # whole steps are as they were
        before = np.concatenate([np.full_like(table[:1], y[-1]), table[:-1]])
        between = table if found.intermittent else 0.75 * before + 0.25 * table
        np.testing.assert_allclose(got[::2], between, rtol=1e-12, atol=1e-12)


def test_paths_of_a_series_do_not_depend_on_what_others_are():
    same = question(*SERIES["walk"])
    for name in ("long", "counts", "short"):
        found = forecast_series([same, question(*SERIES[name])], 10, seed=0)
        alone = forecast_series([same], 10, seed=0)[0]
        np.testing.assert_allclose(found[0].paths, alone.paths, rtol=1e-9)
        assert abs(np.corrcoef(found[0].paths[:, -1], found[1].paths[:, -1])[0, 1]) < 0.9
