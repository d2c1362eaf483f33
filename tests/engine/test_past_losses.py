"""Losses of forecasts of the past, and the weights that follow."""

import numpy as np
import pytest

from taylorformer_forecast.engine.statistics.past_losses import (
    PastForecast,
    weights_by_losses,
    weights_from_past,
)
from taylorformer_forecast.engine.statistics.requests import MOST_PAST, SeriesRequest


def test_weights_add_up_and_grow_as_losses_fall():
    for losses in ([1.0, 1.0, 1.1], [0.5, 1.0, 2.0], [2.0, 1.0, 0.4]):
        statistics, analogues = weights_by_losses(*[[loss] for loss in losses])
        weights = [1 - statistics - analogues, statistics, analogues]
        assert min(weights) > 0
        better = weights_by_losses([losses[0]], [losses[1]], [0.9 * losses[2]])
        assert better[1] > analogues


def test_without_losses_network_and_statistics_weigh_alike():
    assert weights_by_losses([], [], []) == (0.5, 0.0)
    assert weights_by_losses([0.0], [1.0], [2.0]) == (0.5, 0.0)  # zero says nothing


def test_series_that_have_no_analogues_give_them_no_weight():
    assert weights_by_losses([1.0, 2.0], [1.0, 3.0], [1.0, 3.0])[1] == 0.0


def test_only_series_that_have_analogues_say_what_these_weigh():
    alone = weights_by_losses([1.0], [1.0], [3.0])
    among = weights_by_losses([1.0] * 16, [1.0] * 16, [3.0] + [1.0] * 15)
    assert among == pytest.approx(alone)
    assert alone[1] < 0.01


def test_series_count_alike_and_each_is_compared_by_itself():
    rng = np.random.default_rng(0)
    y = np.sin(np.arange(260) / 2) + 0.1 * rng.normal(size=260)
    forecasts = []
    for number, n in enumerate((200, 230)):
        truth = y[n : n + 6].copy()
        deciles = truth[:, None] + np.linspace(-1, 1, 9) * (1 + number)
        truth[2 : 2 + number] = np.nan
        forecasts.append(
            PastForecast(number, deciles, truth, SeriesRequest(y[:n], n + np.arange(6), seasons=[13]))
        )

    def log_odds(forecasts):
        statistics, analogues = weights_from_past(forecasts, None, 6)
        return np.log([(1 - statistics - analogues) / statistics, analogues / statistics])

    each = [log_odds([one]) for one in forecasts]
    assert (np.abs(each[0] - each[1]) > 0.1).all()
    np.testing.assert_allclose(log_odds(forecasts), np.mean(each, 0), rtol=1e-6)


def test_no_more_of_a_long_past_is_kept_than_counts():
    y = np.random.default_rng(0).normal(size=MOST_PAST + 50)
    request = SeriesRequest(y, len(y) + np.arange(2))
    short = PastForecast("a", np.zeros((2, 9)), np.zeros(2), request).shortened().request
    np.testing.assert_array_equal(short.y, y[50:])
    assert short.y.base is None
    assert short.at.tolist() == [MOST_PAST, MOST_PAST + 1]


def test_nothing_to_compare_gives_the_usual_weights():
    assert weights_from_past([], None, 6) == (0.5, 0.0)
