"""Losses of forecasts of the past, and the weights that follow."""

import numpy as np
import pytest

from taylorformer_forecast.engine.statistics.past_losses import losses_of_statistics, weights_by_losses
from taylorformer_forecast.engine.statistics.requests import SeriesRequest


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


def test_losses_are_those_of_each_request_by_itself():
    rng = np.random.default_rng(0)
    y = np.sin(np.arange(260) / 2) + 0.1 * rng.normal(size=260)
    requests = [SeriesRequest(y[:n], n + np.arange(6), seasons=[13]) for n in (200, 230)]
    truths = [y[n : n + 6].copy() for n in (200, 230)]
    truths[1][2] = np.nan
    both = losses_of_statistics(requests, truths, None, 6)
    single = [losses_of_statistics([q], [t], None, 6) for q, t in zip(requests, truths, strict=True)]
    np.testing.assert_allclose(both, np.concatenate(single, 1), rtol=1e-6)
    assert (both[0] > 0).all()
    assert (both[0] != both[1]).all()
