"""Weights of the members of the combination."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from combined import forecast


@pytest.mark.parametrize(("season", "n"), [(12, 18), (7, 11), (52, 78)])
def test_a_clear_season_is_repeated_in_its_second_cycle(season, n):
    """Families without it kept most of the weight: errors were 2.4 times those of the last cycle repeated."""
    rng, t = np.random.default_rng(0), np.arange(n + season)
    mean = 100 + 28 * np.sin(2 * np.pi * t / season)
    y = torch.tensor(mean + 4 * rng.normal(size=(20, len(t))))
    found = forecast(y[:, :n], season, season).quantiles([0.5])[..., 0]
    error, repeated = ((y[:, n:] - own).abs().mean() for own in (found, y[:, n - season : n]))
    assert error < 1.7 * repeated


def test_noise_is_not_repeated_in_the_second_cycle_of_what_may_be_a_season():
    y = 100 + 10 * torch.randn(40, 30, dtype=torch.double, generator=torch.Generator().manual_seed(0))
    found, none = (forecast(y[:, :18], 12, season).loc[:, -1] for season in (12, 1))
    error, without = ((y[:, 18:] - own).abs().mean() for own in (found, none))
    assert error < 1.05 * without


@pytest.mark.parametrize(("season", "n"), [(24, 72), (52, 156)])
def test_the_last_error_fades_where_the_only_season_is_long(season, n):
    """Levels either followed it for all steps or not at all: errors were 1.7 and 1.6 times the least."""
    rng, memory = np.random.default_rng(0), 0.9
    mean = 100 + 10 * np.sin(2 * np.pi * np.arange(n + season) / season)
    noise, error = rng.normal(size=(2, 30, n + season)) * [[[1.0]], [[0.0]]]
    for step in range(1, n + season):
        error[:, step] = memory * error[:, step - 1] + noise[:, step]
    y, ahead = torch.tensor(mean + error), np.arange(1, season + 1)
    found = forecast(y[:, :n], season, season).quantiles([0.5])[..., 0]
    best = torch.tensor(mean[n:] + error[:, n - 1 : n] * memory**ahead)
    mine, least = ((y[:, n:] - own).abs().mean() for own in (found, best))
    assert mine < 1.5 * least
