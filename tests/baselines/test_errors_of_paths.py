"""Errors along the paths of statistical forecasts depend on each other as those of the past did."""

import numpy as np
import pytest
import torch
from combined import forecast

from taylorformer_forecast.baselines.dependence import dependence, walk_memory

H = 12


def normal(n_series):
    return np.random.default_rng(0).normal(size=(n_series, 120))


def walks(n_series=30):
    return torch.as_tensor(100 + normal(n_series).cumsum(1))


def noise(n_series=30):
    return torch.as_tensor(50 + normal(n_series))


def trends(n_series=30):
    return torch.as_tensor(99 + normal(n_series).cumsum(1).cumsum(1) / 10)


def steps_of_paths(y):
    """Standard deviations of the steps of paths, in the median over series: (H - 1,)."""
    paths = forecast(y, H).sample(400, torch.Generator().manual_seed(0))
    return paths.diff(dim=2).std(1).median(0).values


def test_paths_of_a_random_walk_take_steps_of_about_one_size():
    """Scores of one correlation, times widths that grow, took steps of .8 first and of 1.8 last."""
    step = steps_of_paths(walks())
    assert 0.85 < step[0] < 1.25
    assert step[-1] < 1.5 * step[0]


@pytest.mark.parametrize("known", [15, 40])
def test_steps_far_ahead_of_a_short_random_walk_are_as_large_as_its_own(known):
    """With a prior correlation of two steps, not of many, they were three times as large."""
    paths = forecast(walks()[:, :known], 48).sample(200, torch.Generator().manual_seed(0))
    assert paths.diff(dim=2).abs().mean() < 1.6 * walks().diff(dim=1).abs().mean()


def test_paths_of_noise_jump_at_every_step():
    step = steps_of_paths(noise())
    assert step.min() > 1.2
    assert step.max() < 1.6


def test_errors_of_a_trend_go_together_more_than_those_of_a_random_walk():
    assert forecast(trends(), H).power.median() < forecast(walks(), H).power.median() - 0.1


@pytest.mark.parametrize("make", [walks, noise, trends])
def test_each_step_of_paths_has_the_distribution_of_the_step(make):
    found, levels = forecast(make(5), H), [0.1, 0.5, 0.9]
    paths = found.sample(2000, torch.Generator().manual_seed(0))
    of_paths = paths.quantile(torch.tensor(levels).double(), dim=1).permute(1, 2, 0)
    width = (found.quantiles([0.9]) - found.quantiles([0.1])).amax()
    assert ((of_paths - found.quantiles(levels)).abs() < 0.02 * width).all()


def test_the_walk_of_scales_that_do_not_grow_is_the_same_at_all_steps():
    scale = torch.tensor([[2.0, 2.0, 1.0, 2.0], [0.0, 0.0, 1.0, 2.0]]).double()
    assert walk_memory(scale).tolist() == [[1.0, 1.0, 1.0], [1.0, 1.0, 0.5]]


@pytest.mark.parametrize("horizon", [1, 2])
def test_few_steps_need_no_pairs(horizon):
    standard = torch.randn(3, 50, horizon, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    found = dependence(standard, torch.ones(3, horizon).double())
    assert all(part.shape == (3,) and part.isfinite().all() for part in found)
