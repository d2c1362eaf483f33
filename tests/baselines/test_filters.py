"""Recursive filters against plain loops."""

import pytest
import torch
from torch.testing import assert_close as close

from taylorformer_forecast.baselines.members import members
from taylorformer_forecast.baselines.robust import forecast_range, positive_so_far, slope_so_far, winsorise
from taylorformer_forecast.baselines.seasonal import repeat_season, seasonal
from taylorformer_forecast.baselines.smoothing import Grid, smooth
from taylorformer_forecast.defaults import FLAT_SLOPE_COUNT, THETA_SLOPE

NAN = float("nan")


def walk(n=30, seed=0, rows=1):
    g = torch.Generator().manual_seed(seed)
    return torch.randn(rows, n, generator=g, dtype=torch.float64).cumsum(1)


def with_gaps(y, seed=0, share=0.3):
    gone = torch.rand(y.shape, generator=torch.Generator().manual_seed(seed)) < share
    return torch.where(gone, NAN, y)


def plain_smoothing(y, level_weight, slope_weight, damping, has_trend):
    level = trend = 0.0
    seen, result = 0, []
    for value in y.tolist():
        trend *= damping
        level += trend
        if value == value:
            seen += 1
            start = min((4 * seen - 2) / (seen * (seen + 1)), 1.0) if has_trend else 1 / seen
            error = value - level
            level += max(level_weight, start) * error
            if has_trend and seen > 1:
                k = seen + FLAT_SLOPE_COUNT
                trend += max(level_weight * slope_weight, 6 / (k * (k + 1))) * error
        result.append((level, trend))
    return torch.tensor(result, dtype=torch.float64)


@pytest.mark.parametrize("gaps", [False, True])
@pytest.mark.parametrize("member", [0, 4, 6, 7, 12, 18])
def test_smoothing_is_the_textbook_recursion(member, gaps):
    y, grid = walk(), Grid.default()
    y = with_gaps(y) if gaps else y
    level, trend = smooth(torch.nan_to_num(y), ~y.isnan(), grid)
    parameters = (v[member].item() for v in (grid.level, grid.slope, grid.damping, grid.has_trend))
    close(torch.stack([level[0, :, member], trend[0, :, member]], 1), plain_smoothing(y[0], *parameters))


def test_first_levels_are_running_means():
    y = walk(5)
    level, _ = smooth(y, torch.ones_like(y, dtype=torch.bool), Grid.default())
    close(level[0, :, 0], y[0].cumsum(0) / torch.arange(1, 6))


@pytest.mark.parametrize("gaps", [False, True])
def test_the_slope_is_that_of_least_squares(gaps):
    y = with_gaps(walk() + 1e6) if gaps else walk() + 1e6
    slope, r2 = slope_so_far(y)
    known = ~y[0].isnan()
    t = torch.arange(30.0).double()[known]
    line = torch.linalg.lstsq(torch.stack([t, torch.ones_like(t)], 1), y[0, known, None]).solution
    close(slope[0, -1], line[0, 0])
    close(r2[0, -1], torch.corrcoef(torch.stack([t, y[0, known]]))[0, 1] ** 2)


@pytest.mark.parametrize("gaps", [False, True])
def test_theta_is_smoothing_around_half_the_line(gaps):
    y = with_gaps(walk(), share=0.2) if gaps else walk()
    found = members(y, (), 4)
    slope = slope_so_far(y)[0][0, -1]
    t = torch.arange(34.0).double()
    rest = y - THETA_SLOPE * slope * t[:30]
    grid = Grid.default()
    level, _ = smooth(torch.nan_to_num(rest), ~y.isnan(), grid)
    n = int((~grid.has_trend).sum())
    forecasts = torch.stack([found.base + found.slope * found.growth[h] for h in range(4)], -1)
    close(forecasts[0, -1, 0, n : 2 * n], level[0, -1, :n, None] + THETA_SLOPE * slope * t[30:])


def plain_indices(y, season, decay):
    """Deviations from a centred moving average, averaged by phase, for the last origin."""
    n, half = len(y), season // 2
    weights = [1.0] * season if season % 2 else [0.5] + [1.0] * (season - 1) + [0.5]
    found = {}
    for t in range(half, n - half):
        mean = sum(w * y[t - half + k] for k, w in enumerate(weights)) / season
        total, weight = found.get(t % season, (0.0, 0.0))
        found[t % season] = (decay * total + y[t] - mean, decay * weight + 1)
    index = [total / weight for total, weight in (found[p] for p in range(season))]
    return [v - sum(index) / season for v in index]


@pytest.mark.parametrize("season", [2, 3, 4, 7])
def test_seasonal_indices_are_those_of_the_classical_decomposition(season):
    from taylorformer_forecast.defaults import SEASON_DECAY

    y = walk(37)
    index = plain_indices(y[0].tolist(), season, SEASON_DECAY)
    expected = [index[(37 + h) % season] for h in range(2 * season)]
    close(seasonal(y, season, 2 * season).index[0, -1], torch.tensor(expected).double())


def test_a_known_season_is_removed_and_repeated():
    pattern = torch.tensor([5.0, -1.0, -3.0, -1.0]).double()
    found = seasonal((10 + pattern).repeat(6)[None], 4, 6)
    close(found.index[0, -1], pattern.repeat(2)[:6])
    close(found.adjusted, torch.full((1, 24), 10.0).double())


def test_seasonal_naive_takes_the_last_observed_value_of_the_phase():
    y = torch.tensor([[1.0, 2.0, 3.0, 4.0, NAN, 6.0]])
    assert repeat_season(y, 3, 4)[0, -1].tolist() == [4.0, 2.0, 6.0, 4.0]


def test_winsorising_leaves_walks_alone_and_moves_outliers():
    y = walk(200, rows=20)
    close(winsorise(y)[:, 30:], y[:, 30:])
    spoiled = y.clone()
    spoiled[:, 100] = 1e9
    assert (winsorise(spoiled)[:, 100] < y[:, 100] + 20).all()


def test_winsorising_follows_a_shift_of_the_level():
    y = walk(60)
    y[:, 40:] += 1e3
    close(winsorise(y)[:, 42:], y[:, 42:])


@pytest.mark.parametrize("count", [1, 2])
def test_outliers_among_the_last_two_values_are_moved_further_than_earlier_ones(count):
    y = walk(120, rows=20)
    step = y.diff(dim=1).abs().mean(1, keepdim=True)
    y[:, -count:] += 1e3
    followed = torch.cat([y, y[:, -count - 1, None].expand(-1, 2)], 1)
    late, early = (
        (winsorise(rows)[:, 120 - count : 120] - y[:, 119 - count, None]) / step for rows in (y, followed)
    )
    assert (late < 3 * count).all()
    assert (early > 6).all()


def test_ranges_widen_by_the_width_so_far_and_stay_nonnegative():
    low, high = forecast_range(torch.tensor([[2.0, 6.0, 4.0]]).double(), 2)
    assert low[0, -1].tolist() == [0.0, 0.0]
    assert (high[0, -1] >= 10.0).all()
    low, _ = forecast_range(torch.tensor([[-1.0, 6.0, 4.0]]).double(), 2)
    assert low[0, -1].tolist() == [-8.0, -8.0]


def test_positive_so_far_forgets_nothing():
    assert positive_so_far(torch.tensor([[NAN, 1.0, -1.0, 2.0]])).tolist() == [[True, True, False, False]]
