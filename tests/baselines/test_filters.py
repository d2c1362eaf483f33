"""Recursive filters against plain loops."""

import pytest
import torch
from combined import forecast
from torch.testing import assert_close as close

from taylorformer_forecast.baselines.bounds import forecast_range, positive_so_far
from taylorformer_forecast.baselines.combination import fit_combination
from taylorformer_forecast.baselines.members import members
from taylorformer_forecast.baselines.new_level import new_level
from taylorformer_forecast.baselines.seasonal import repeat_season, seasonal
from taylorformer_forecast.baselines.smoothing import Grid, slope_so_far, smooth
from taylorformer_forecast.baselines.winsorise import winsorise
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
    found = members(y, (), 4, (y < 0).cumsum(1) == 0)
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
    close(winsorise(y).values[:, 30:], y[:, 30:])
    spoiled = y.clone()
    spoiled[:, 100] = 1e9
    assert (winsorise(spoiled).values[:, 100] < y[:, 100] + 20).all()


def test_winsorising_follows_a_shift_of_the_level():
    y = walk(60)
    y[:, 40:] += 1e3
    close(winsorise(y).values[:, 42:], y[:, 42:])


@pytest.mark.parametrize("seasons", [(7, 30), (30,), (7, 15, 30)])
def test_a_peak_of_any_season_is_no_outlier_from_its_second_time_on(seasons):
    rng = torch.Generator().manual_seed(0)
    y = 100 + 2 * torch.randn(5, 300, generator=rng).double()
    y[:, 5::30] += 100
    clean = winsorise(y, seasons).values
    close(clean[:, 31:], y[:, 31:])
    assert (winsorise(y, (7,)).values[:, 35::30] < 130).all()


@pytest.mark.parametrize("following", [0.7, 1.0, 1.4])
def test_an_outlier_stays_as_it_is_when_the_next_value_is_near_it(following):
    y = walk(120, rows=20)
    y[:, -2:] = y[:, -3, None] + 1e3 * torch.tensor([1.0, following])
    found = winsorise(y)
    close(found.values[:, -2], y[:, -2])
    close(found.shifted, found.values[:, -1])


@pytest.mark.parametrize("following", [-0.5, 0.0, 0.6, 2.1])
def test_an_outlier_is_moved_when_the_next_value_is_not_near_it(following):
    y = walk(120, rows=20)
    y[:, -2:] = y[:, -3, None] + 1e3 * torch.tensor([1.0, following])
    found = winsorise(y)
    assert (found.values[:, -2] < y[:, -3] + 20).all()
    assert found.shifted.isnan().all()


@pytest.mark.parametrize("gap", [0, 3])
@pytest.mark.parametrize("size", [12.0, -12.0, 1e6])
def test_an_outlier_at_the_end_is_moved_to_four_steps(size, gap):
    y = walk(120, rows=20)
    step = y.diff(dim=1).abs().mean(1)
    y[:, -1] = y[:, -2] + size * step
    found = winsorise(torch.nn.functional.pad(y, (0, gap), value=NAN))
    moved = (found.values[:, 119] - y[:, -2]) / step
    assert ((moved.abs() > 2.5) & (moved.abs() < 5.5)).all()
    assert (moved.sign() == (1.0 if size > 0 else -1.0)).all()
    close(found.doubt, moved.abs() * step)
    assert found.shifted.isnan().all()


def test_a_level_that_shifted_before_and_never_had_an_outlier_is_followed_from_its_first_value_on():
    prices = torch.cat(
        [torch.full((n,), v) for n, v in ((20, 10.0), (25, 11.0), (15, 9.5), (30, 12.0), (1, 14.0))]
    )
    spiked = prices.clone()
    spiked[40] = 20.0
    known, doubted = forecast(torch.stack([prices, spiked]).double(), 3).quantiles([0.1, 0.5, 0.9])
    assert ((known[:, 1] - 14).abs() < 0.2).all()
    assert (known[:, 0] > 12.5).all()
    assert (doubted[:, 1] < 13).all()


@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize("size", [20.0, -20.0])
def test_intervals_widen_after_a_shift_of_the_level_and_reach_it_from_its_second_value_on(count, size):
    y = 200 + torch.randn(20, 96, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    y[:, -count:] += size
    low, high = forecast(y, 6).quantiles([0.1, 0.9]).unbind(-1)
    if count < 3:
        assert (high - low > 6).all()  # 2.6 without a shift
    if count > 1:
        assert ((low < 200 + size) & (high > 200 + size)).double().mean() > 0.5


@pytest.mark.parametrize("count", [2, 3, 4, 5])
@pytest.mark.parametrize("week", [0.0, 15.0])
def test_intervals_cover_a_level_that_is_new_and_is_no_outlier(count, week):
    g = torch.Generator().manual_seed(0)
    y = 200 + 5 * torch.randn(30, 98, generator=g, dtype=torch.float64)
    y += week * torch.sin(torch.arange(98) * 2 * torch.pi / 7)
    y[:, 84 - count :] -= 30
    low, high = forecast(y[:, :84], 14, 7 if week else 1).quantiles([0.1, 0.9]).unbind(-1)
    inside = (low < y[:, 84:]) & (y[:, 84:] < high)
    assert inside.double().mean() > 0.6
    if count < 4:  # and the level before
        before = y[:, 84:] + 30
        assert ((low < before) & (before < high)).double().mean() > 0.75


@pytest.mark.parametrize("horizon", [1, 2])
def test_near_steps_after_a_jump_are_as_wide_as_noise_where_the_level_is_followed(horizon):
    """How far forecasts have followed is not known there, and intervals reached back to the old level."""
    g = torch.Generator().manual_seed(0)
    y = 50 + torch.randn(50, 43, generator=g, dtype=torch.float64)
    y[:, 40:] += 20
    low, high = forecast(y, horizon).quantiles([0.1, 0.9])[:, 0].unbind(-1)
    assert (high - low).median() < 12


@pytest.mark.parametrize("growth", [0.0, 3.0])
def test_what_follows_its_values_has_no_new_level(growth):
    y = walk(60, rows=50) + growth * torch.arange(60)
    fit = fit_combination(y, 8)
    assert (new_level(fit.clean, fit.loc, fit.scale) < fit.scale[:, -1, :1]).all()


@pytest.mark.parametrize(("bounded", "lowest"), [(True, 0.0), (False, -2.0)])
def test_ranges_widen_by_the_width_so_far_and_stay_above_a_bound(bounded, lowest):
    y = torch.tensor([[2.0, 6.0, 4.0]]).double()
    low, high = forecast_range(y, 2, torch.full((1, 3), bounded))
    assert low[0, -1].tolist() == [lowest, lowest]
    assert (high[0, -1] >= 10.0).all()
    low, _ = forecast_range(torch.tensor([[-1.0, 6.0, 4.0]]).double(), 2, torch.zeros(1, 3, dtype=torch.bool))
    assert low[0, -1].tolist() == [-8.0, -8.0]


def test_positive_so_far_forgets_nothing():
    assert positive_so_far(torch.tensor([[NAN, 1.0, -1.0, 2.0]])).tolist() == [[True, True, False, False]]
