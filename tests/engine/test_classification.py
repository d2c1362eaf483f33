"""Linear scores of classes, which the classifier's network corrects."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from taylorformer_forecast.engine.classification import LinearScores
from taylorformer_forecast.engine.state import private_rng
from taylorformer_forecast.engine.windows import Series


def noise(n, n_columns, seed=0):
    """Series that have nothing to do with their classes."""
    rng = np.random.default_rng(seed)
    series = [Series(np.linspace(0, 1, 30), rng.normal(size=(30, n_columns))) for _ in range(n)]
    return series, torch.arange(n) % 2


def test_held_out_scores_of_noise_say_nothing_where_fitted_scores_would_say_all():
    series, labels = noise(40, 8)
    with private_rng(0):
        linear, held_out = LinearScores.fit(series, labels, 2)
    assert 0.25 < (held_out.argmax(1) == labels).double().mean() < 0.75
    assert (linear(series) - held_out).abs().max() > 0.01


@pytest.mark.parametrize("n", [2, 3, 5])
def test_few_series_have_finite_scores(n):
    series, labels = noise(n, 1)
    linear, held_out = LinearScores.fit(series, labels, 2)
    assert held_out.isfinite().all()
    assert linear(series).isfinite().all()


def test_values_are_read_on_lines_between_those_observed_and_held_at_the_ends():
    y = np.array([[1.0, np.nan], [np.nan, np.nan], [3.0, np.nan]])
    values = LinearScores._values([Series(np.array([0.25, 0.5, 0.75]), y)])[0].reshape(2, -1)
    grid = np.linspace(0, 1, values.shape[1])
    np.testing.assert_allclose(values[0], np.clip(4 * grid, 1, 3))
    assert (values[1] == 0).all()
