"""Many series at once are forecast as each by itself."""

import numpy as np
import pytest

from taylorformer_forecast.engine import statistical
from taylorformer_forecast.engine.statistical import SeriesRequest, forecast_series

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


def question(y, horizon, first=0):
    return SeriesRequest(y, len(y) + np.arange(first, horizon))


@pytest.mark.parametrize("most", [2**20, 3000, 1])
@pytest.mark.parametrize("first", [0, -3])
def test_a_series_in_a_batch_is_forecast_as_by_itself(monkeypatch, most, first):
    monkeypatch.setattr(statistical, "NUMBERS_AT_ONCE", most)
    questions = [question(y, 6 + 12 * (k % 3 == 0), first) for k, (y, _) in enumerate(SERIES.values())]
    seasons = [own for _, own in SERIES.values()]
    together = forecast_series(questions, seasons, n_paths=10, seed=0)
    for name, asked, own, found in zip(SERIES, questions, seasons, together, strict=True):
        alone = forecast_series([asked], own, n_paths=10, seed=0)[0]
        size = np.nanmax(np.abs(asked.y)) or 1.0
        for part in ("loc", "scale", "weights"):
            got, expected = (getattr(a, part) for a in (found, alone))
            np.testing.assert_allclose(got, expected, atol=1e-9 * size, rtol=1e-9, err_msg=name)
        assert found.paths.shape == alone.paths.shape


def test_the_same_seasons_may_be_given_once_for_all():
    questions = [question(SERIES[name][0], 12) for name in ("walk", "growth")]
    once, each = (forecast_series(questions, s, 5, 0) for s in ([12.0], [[12.0], [12.0]]))
    for one, other in zip(once, each, strict=True):
        np.testing.assert_array_equal(one.paths, other.paths)
        np.testing.assert_array_equal(one.loc, other.loc)


def test_of_many_seasons_the_first_ones_given_are_tried():
    y = [question(SERIES["walk"][0], 12)]
    few, many, others = (
        forecast_series(y, s, 5, 0)[0].loc for s in ([12.0, 7.0], [12.0, 7.0, 3.0], [3.0, 12.0, 7.0])
    )
    np.testing.assert_array_equal(few, many)
    assert (few != others).any()
