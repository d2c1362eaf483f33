"""Seasonal autoregression: a ridge regression from every origin, by the past of that origin."""

import numpy as np
import pytest
import torch
from combined import forecast
from torch.testing import assert_close as close

from taylorformer_forecast.baselines import autoregression as regression
from taylorformer_forecast.baselines import weights
from taylorformer_forecast.baselines.autoregression import autoregression
from taylorformer_forecast.baselines.combination import fit_combination
from taylorformer_forecast.baselines.families import FAMILIES
from taylorformer_forecast.baselines.members import members
from taylorformer_forecast.defaults import (
    LONGEST_REGRESSED_SEASON,
    REGRESSION_CYCLES,
    REGRESSION_MEMORY,
    REGRESSION_PENALTIES,
)

M, N, H = 4, 60, 10
REGRESSION = FAMILIES.index("seasonal autoregression")


def noise(*size, seed=0):
    return torch.randn(*size, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def growing(n, season=M, rate=0.02):
    """A positive season that grows by a rate that wanders."""
    t = torch.arange(n).double()
    level = (rate * t + 0.1 * torch.sin(2 * torch.pi * t / season) + 0.005 * noise(n).cumsum(0)).exp()
    return level * (2 + (t % season == 0))


def by_hand(y, season, horizon, penalty):
    """The same by numpy, from the last origin of a series without gaps, one equation after another."""
    change = y[season:] - y[:-season]
    lags = [1, 2, season, season + 1]
    at = np.arange(season + 1, len(change))
    size = np.sqrt(np.mean(change**2))
    z = np.column_stack([*(change[at - lag] / size for lag in lags), np.ones(len(at))])
    left = change[at] - REGRESSION_MEMORY * change[at - 1]
    found = np.linalg.solve(z.T @ z + penalty * np.eye(5), z.T @ left)
    values, changes = list(y), list(change)
    for _ in range(horizon):
        past = np.array([*(changes[-lag] / size for lag in lags), 1.0])
        changes.append(REGRESSION_MEMORY * changes[-1] + past @ found)
        values.append(values[-season] + changes[-1])
    return np.array(values[-horizon:])


@pytest.mark.parametrize("positive", [True, False])
def test_it_is_a_ridge_regression_of_seasonal_changes(positive, monkeypatch):
    monkeypatch.setattr(regression, "LARGEST_REGRESSED_CHANGE", 1e9)
    y = growing(N) if positive else noise(N).cumsum(0)
    found, _ = autoregression(y[None], M, H)
    for k, penalty in enumerate(REGRESSION_PENALTIES):
        own = by_hand((y.log() if positive else y).numpy(), M, H, penalty)
        close(found[0, -1, k], torch.as_tensor(np.exp(own) if positive else own))


def test_every_origin_knows_its_past_only_and_counts_after_enough_seasons():
    y = torch.stack([growing(N), noise(N).cumsum(0), growing(N)])
    y[2, :11] = torch.nan
    y[2, 30] = torch.nan
    whole, known = autoregression(y, M, H)
    for n in (20, 31, 47):
        part, part_known = autoregression(y[:, :n], M, H)
        close(whole[:, n - 1], part[:, -1], equal_nan=True)
        assert torch.equal(known[:, n - 1], part_known[:, -1])
    assert known.sum(1).tolist() == [N - REGRESSION_CYCLES * M + 1] * 2 + [N - 11 - REGRESSION_CYCLES * M + 1]


def test_a_season_of_perfect_growth_goes_on():
    t = torch.arange(N + H).double()
    y = 1.02**t * (2 + (t % M == 0))
    found, _ = autoregression(y[None, :N], M, H)
    close(found[0, -1, 0], y[N:], rtol=0.02, atol=0.0)


@pytest.mark.parametrize(
    ("n", "season"),
    [(REGRESSION_CYCLES * M - 1, M), (200, 1), (200, LONGEST_REGRESSED_SEASON + 1)],
    ids=["few cycles", "no season", "a long season"],
)
def test_it_is_left_out_where_it_would_know_little(n, season):
    y = growing(n)[None]
    found = members(y, (season,) if season > 1 else (), 3, y >= 0)
    assert REGRESSION not in found.family


def test_a_series_of_few_cycles_has_no_regression_beside_a_longer_one():
    y = growing(N).repeat(2, 1)
    y[1, : N - REGRESSION_CYCLES * M + 1] = torch.nan
    found = fit_combination(y, H, (M,)).at(torch.full((2, 1), N - 1)).weights[:, 0, REGRESSION]
    assert found[0] > 0.1
    assert found[1] == 0


def test_where_seasons_grow_it_takes_over_and_is_better(monkeypatch):
    y = torch.stack([growing(2 * N + H, rate=rate) for rate in (0.01, 0.02, 0.03)])
    fit = fit_combination(y[:, :-H], H, (M,))
    assert (fit.at(torch.full((3, 1), 2 * N - 1)).weights[:, 0, REGRESSION] > 0.9).all()
    monkeypatch.setitem(weights.FAMILY_PRIOR, FAMILIES[REGRESSION], 1e-12)
    without = fit_combination(y[:, :-H], H, (M,))
    truth = y[:, -H:] / fit.unit
    error, before = ((found.loc[:, -1] - truth).abs().mean() for found in (fit, without))
    assert error < 0.85 * before


def test_a_family_without_weight_forecasts_zero():
    fit = fit_combination(noise(1, 20).cumsum(1), 3)
    at = fit.at(torch.tensor([[19]]))
    assert at.weights[0, 0, REGRESSION] == 0
    assert (at.families[..., REGRESSION] == 0).all()
    assert at.families.shape[-1] == len(FAMILIES)


@pytest.mark.parametrize("scale", [0.0, 1e-13, 1.0])
def test_a_season_without_change_is_repeated(scale):
    y = torch.tensor([2.0, 8.0, 5.0, 1.0]).double().repeat(15)[None] - 4 + scale * 1e-3 * noise(1, N)
    q = forecast(y, H, M).quantiles([0.5])[0, :, 0]
    close(q, y[0, -M:].repeat(3)[:H], atol=0.05, rtol=0.0)


@pytest.mark.parametrize("place", [10, 40, -3, -1])
@pytest.mark.parametrize("size", [1.0, 1e6])
def test_an_outlier_does_not_come_back_a_season_later(place, size):
    y = growing(N)
    changed = y.clone()
    changed[place] += size * y.std()
    usual, found = (autoregression(one[None], M, H)[0][0, -1, 1] for one in (y, changed))
    assert (found - usual).abs().max() < 0.35 * y.std()


def test_a_gap_changes_as_the_series_does():
    y = growing(N)
    y[-3:] = torch.nan
    found, _ = autoregression(y[None], M, H)
    assert (found[0, -1, 1] / growing(N + H)[-H:] - 1).abs().max() < 0.15
