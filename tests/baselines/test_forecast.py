"""The combined forecast: what it does on ordinary, strange and spoiled series."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from combined import forecast
from torch.testing import assert_close as close

from taylorformer_forecast.baselines import families
from taylorformer_forecast.baselines.combination import fit_combination
from taylorformer_forecast.baselines.errors import shape
from taylorformer_forecast.baselines.families import Group
from taylorformer_forecast.baselines.forecast import Correction
from taylorformer_forecast.baselines.members import members
from taylorformer_forecast.baselines.seasonal import season_of_zeros, zero_places
from taylorformer_forecast.baselines.zeros import is_intermittent, never_negative, without_outages
from taylorformer_forecast.engine.statistics.forecast import are_demand

NAN, N, H = float("nan"), 40, 12
DECILES = [k / 10 for k in range(1, 10)]


def normal(*size, seed=0):
    return torch.randn(*size, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def last(n, values):
    return torch.cat([torch.full((n - len(values),), NAN), torch.tensor(values)]).double()


STRANGE = {
    "constant": torch.full((N,), 5.0),
    "zeros": torch.zeros(N),
    "nothing": torch.full((N,), NAN),
    "one point": last(N, [3.0]),
    "two points": last(N, [3.0, 5.0]),
    "three points": last(N, [3.0, 5.0, 1.0]),
    "huge": 1e12 * (1 + 0.1 * normal(N)),
    "tiny": 1e-9 * (1 + 0.1 * normal(N)),
    "largest floats": 1e300 * (1 + 0.1 * normal(N)),
    "offset": 1e12 + normal(N),
    "negative": -100 + normal(N),
    "walk": normal(N).cumsum(0),
    "last is an outlier": torch.cat([10 + normal(N - 1), torch.tensor([1e5])]),
    "outlier near the end": torch.cat([10 + normal(N - 3), torch.tensor([1e5, 10.0, 11.0])]),
    "shift near the end": torch.cat([10 + normal(N - 5), 100 + normal(5)]),
    "leading zeros": torch.cat([torch.zeros(20), 10 + normal(20)]),
    "trailing zeros": torch.cat([10 + normal(20), torch.zeros(20)]),
    "first sale": torch.cat([torch.zeros(N - 1), torch.tensor([1000.0])]),
    "rare and large": torch.where(normal(N) > 1.3, 1e6, 0.0),
    "doubling": 2.0 ** torch.arange(N),
    "halving": 2.0 ** -torch.arange(N),
    "alternating": torch.tensor([1.0, -1.0]).repeat(N // 2),
    "gaps": torch.where(normal(N, seed=1) > 0, NAN, 10 + normal(N)),
    "heavy tails": (5 * normal(N)).exp(),
    "half zeros": torch.where(normal(N, seed=1) > 0, 0.0, normal(N).abs()),
}


def test_no_quantiles_pile_up_at_the_end_of_a_range():
    walks = 100 + normal(20, 12).cumsum(1)
    q = forecast(walks, H).quantiles([0.001, 0.01, 0.05, 0.95, 0.99, 0.999])
    assert (q.diff(dim=2) > 0).all()
    over = (q[..., -1].amax(1) - walks.amax(1)) / (walks.amax(1) - walks.amin(1))  # in widths of the range
    assert over.max() > 1.1
    assert over.max() < 1.6  # a little more where a line says that the series grows


@pytest.mark.parametrize("season", [1, 4, 12, 24, [4, 12]])
@pytest.mark.parametrize("name", STRANGE)
def test_no_series_makes_a_forecast_run_away(name, season):
    y = STRANGE[name].double()
    found = forecast(y[None], H, season)
    q = found.quantiles(DECILES)
    known = y[y.isfinite()] if y.isfinite().any() else torch.zeros(1).double()
    most = 3 * known.max() if known.min() >= 0 else known.abs().max() + 1.5 * (known.max() - known.min())
    for values in (q, found.loc, found.scale, found.sample(20)):
        assert values.isfinite().all()
        if most > 0:  # the mean of a distribution after zeros is not quite zero
            assert values.abs().max() <= 1.0001 * most
    assert q.abs().max() <= 1.0001 * most
    assert (q.diff(dim=2) >= 0).all()
    if (torch.nan_to_num(y) >= 0).all():
        assert (q >= 0).all()


@pytest.mark.parametrize("factor", [1e-6, 3.0, 1e6])
@pytest.mark.parametrize("offset", [0.0, 20.0])
def test_forecasts_follow_a_change_of_units(factor, offset):
    y = normal(4, N).cumsum(1) + offset
    one, other = (forecast(v, H, 4).quantiles(DECILES) for v in (y, factor * y))
    close(other, factor * one)


def test_forecasts_of_signed_series_follow_a_shift():
    y = normal(4, N).cumsum(1)
    y -= y[:, :1] + 9.0  # of values that are positive so far the level counts
    shifted = y + 5.0
    one, other = (forecast(v, H, 4).quantiles(DECILES) for v in (y, shifted))
    close(other - one, torch.full_like(one, 5.0))


@pytest.mark.parametrize("offset", [-1e10, -1e6])
def test_variation_that_is_small_beside_the_level_is_forecast_as_any_other(offset):
    y = 3 * torch.sin(2 * math.pi * torch.arange(120.0).double() / 12) + normal(3, 120)
    one, other = (forecast(v, H, 12).quantiles([0.1, 0.9]).diff(dim=2) for v in (y - 100.0, y + offset))
    torch.testing.assert_close(other, one, rtol=1e-4, atol=0)


def test_series_in_a_batch_are_forecast_as_alone():
    y = normal(7, N).cumsum(1) + torch.tensor([0.0, 10, 20, 30, 40, 0, 0])[:, None]
    y[1, :15] = NAN
    y[2] = STRANGE["half zeros"]
    y[5], y[6] = ((50.0 * (y[k] > y[k].median())).round() for k in (3, 4))  # counts, some bins for all
    y[6] /= 25
    for seasons in (1, 4, [7, 12]):
        together = forecast(y, H, seasons).quantiles(DECILES)
        for row, one in enumerate(y):
            own = one[one.isfinite().cumsum(0) > 0]
            close(forecast(own[None], H, seasons).quantiles(DECILES)[0], together[row])


@pytest.mark.parametrize(("n", "seasons"), [(13, (7,)), (14, (7, 12)), (60, (12, 52)), (20, (4, 12))])
def test_a_series_of_fewer_than_two_seasons_is_forecast_alike_beside_longer_ones(n, seasons):
    y = 30 + normal(2, 2 * n).cumsum(1) + 5 * torch.sin(2 * math.pi * torch.arange(2.0 * n) / seasons[0])
    y[0, :n] = NAN
    together = forecast(y, H, seasons).quantiles(DECILES)
    close(forecast(y[:1, n:], H, seasons).quantiles(DECILES)[0], together[0])


@pytest.mark.parametrize("season", [1, 4, [4, 12]])
def test_earlier_origins_are_forecast_from_their_past_only(season):
    y = normal(4, N).cumsum(1) + torch.tensor([0.0, 30.0, 0.0, 0.0])[:, None]
    y[2] = STRANGE["rare and large"] / 1e6
    y[3] = STRANGE["leading zeros"].round()  # intermittent at first only
    whole = forecast(y, H, season)
    for n in (3, 9, 17, 30):
        part = forecast(y[:, :n], H, season)
        close(whole.loc[:, n - 1], part.loc[:, -1])
        close(whole.scale[:, n - 1], part.scale[:, -1])


def test_a_season_with_trend_goes_on():
    t = torch.arange(60.0 + H).double()
    y = 50 + t + 10 * torch.sin(2 * math.pi * t / 12) + 0.5 * normal(60 + H)
    found = forecast(y[None, :60], H, 12)
    assert (found.loc[0, -1] - y[60:]).abs().mean() < 3.0
    assert fit_combination(y[None, :60], H, [12]).at(torch.tensor([[59]])).seasonal[0, 0] > 0.9


def test_a_new_member_without_a_season_is_none_of_those_with_one(monkeypatch):
    def drift(y, streams, seasons, horizon):
        steps = torch.arange(1, horizon + 1).to(y)
        known = torch.arange(y.shape[1]) > 0
        slope = torch.where(known, (y - y[:, :1]) / torch.arange(y.shape[1]), NAN)
        forecasts = y[..., None] + slope[..., None] * steps
        return [Group("theta", forecasts[:, :, None], known.expand_as(y), known.expand_as(y))]

    monkeypatch.setattr(families, "GROUPS", (*families.GROUPS, drift))
    fit = fit_combination(50 + normal(1, 60).cumsum(1), H, [12])
    share, _ = fit.members.by_season(fit.member_weights)
    assert fit.member_weights[0, -1, -1] > 0.01
    close(fit.at(torch.tensor([[59]])).seasonal, share[:, -1:, 1])


@pytest.mark.parametrize("years", [3, 5, 7])
@pytest.mark.parametrize("slope", [-0.5, 0.5])
def test_a_trend_that_early_forecasts_took_the_season_for_is_found(years, slope):
    n = 12 * years
    t = torch.arange(n + 12.0).double()
    y = 200 + slope * t + 10 * torch.sin(2 * math.pi * t / 12) + 2 * normal(40, n + 12)
    error = forecast(y[:, :n], 12, 12).loc[:, -1] - y[:, n:]
    assert abs(error.mean()) < 3.0  # a year of the trend is 6; after three years it was 3.6


def test_a_season_that_is_not_there_is_not_used():
    errors = []
    for season in (1, 12):
        y = normal(50, 60 + H).cumsum(1)
        errors.append((forecast(y[:, :60], H, season).loc[:, -1] - y[:, 60:]).abs().mean())
    assert errors[1] < 1.1 * errors[0]


def test_two_nested_seasons_are_better_than_one():
    t = torch.arange(24 * 7 * 4 + 48.0).double()
    y = 20 + 5 * torch.sin(2 * math.pi * t / 24) + 8 * ((t // 24) % 7 >= 5) + 0.3 * normal(len(t))
    past, future = y[None, :-48], y[-48:]
    day, both = (
        (forecast(past, 48, season).loc[0, -1] - future).abs().mean() for season in ([24], [24, 168])
    )
    assert both < 0.7 * day


@pytest.mark.parametrize("kind", ["walk", "noise", "level"])
def test_intervals_cover_what_they_should(kind):
    noise = normal(300, N + H)
    y = {"walk": noise.cumsum(1), "noise": noise, "level": 20 + noise}[kind]
    q = forecast(y[:, :N], H).quantiles([0.1, 0.9])
    covered = ((y[:, N:] >= q[..., 0]) & (y[:, N:] <= q[..., 1])).double().mean()
    assert 0.72 < covered < 0.88


def test_paths_have_the_quantiles_and_neighbours_of_a_walk_move_together():
    y = normal(1, 200).cumsum(1)
    found = forecast(y, H)
    paths = found.sample(4000, generator=torch.Generator().manual_seed(0))
    q = found.quantiles([0.1, 0.5, 0.9])
    drawn = paths[0].quantile(torch.tensor([0.1, 0.5, 0.9]).double(), dim=0).T
    close(drawn, q[0], atol=0.15 * float(found.scale[0, -1, -1]), rtol=0.0)
    assert torch.corrcoef(paths[0, :, -2:].T)[0, 1] > 0.5


@pytest.mark.parametrize("n_paths", [1, 2, 20])
def test_few_paths_are_joint_too(n_paths):
    found = forecast(normal(200, 60).cumsum(1), H)
    paths = found.sample(n_paths, torch.Generator().manual_seed(0))
    error = (paths - found.loc[:, None, -1]) / found.scale[:, None, -1]
    assert torch.corrcoef(error[..., :2].flatten(0, 1).T)[0, 1] > 0.5
    many = found.sample(500, torch.Generator().manual_seed(0)).sum(2).std(1).mean()
    total = (paths.sum(2) - found.loc[:, -1].sum(1, keepdim=True)).square().mean().sqrt()
    assert 0.75 < total / many < 1.35


SHOP = torch.poisson(
    torch.tensor([100.0, 90, 95, 110, 120, 0, 0]).repeat(20), generator=torch.Generator().manual_seed(0)
).double()


HOURS = torch.arange(500, dtype=torch.float64)
SUN = torch.relu(torch.sin((HOURS - 6) * torch.pi / 12)) * 50 * torch.exp(0.1 * normal(1, 500)[0])
SUN[torch.sin((HOURS - 6) * torch.pi / 12) < 1e-9] = 0.0


@pytest.mark.parametrize(
    "y",
    [
        SHOP,
        torch.where(torch.arange(140) == 60, 1500.0, SHOP),
        torch.cat([torch.zeros(140).double(), SHOP]),
        torch.cat([torch.full((140,), torch.nan).double(), SHOP]),
    ],
    ids=["plain", "an outlier", "zeros before the first sale", "missing before it"],
)
def test_days_without_sales_that_a_week_explains_are_forecast(y):
    middle = forecast(y[None], 7, 7).quantiles([0.5])[0, :, 0]
    assert (middle[:5] > 70).all()
    assert (middle[5:] < 5).all()


@pytest.mark.parametrize("hours", [96, 100])
def test_four_days_of_sun_are_enough_whatever_the_hour_they_begin_at(hours):
    y = SUN[:hours]
    found = forecast(y[None], 24, 24)
    assert not found.intermittent.any()
    assert (found.loc[0, -1] - SUN[hours : hours + 24]).abs().mean() < 5  # a flat forecast has 16


@pytest.mark.parametrize(("y", "season"), [(SHOP, 7), (SUN[:300], 24)], ids=["weekends", "nights"])
def test_a_step_of_a_season_that_was_always_zero_is_zero(y, season):
    found = forecast(y[None], 2 * season, season)
    zero = torch.stack([y[-season:], y[-2 * season : -season]]).amax(0).repeat(2) == 0
    assert zero.any()
    assert (found.quantiles([0.01, 0.99])[0, zero] == 0).all()
    assert (found.sample(20, torch.Generator().manual_seed(0))[0][:, zero] == 0).all()
    assert (found.quantiles([0.5])[0, ~zero] > 0).all()


def test_zeros_before_the_first_sale_are_no_cycles_of_a_season():
    y = torch.cat([torch.zeros(21).double(), SHOP[:25]])
    assert forecast(y[None], 7, 7).intermittent.all()


def test_a_step_of_a_season_that_was_seen_once_explains_nothing():
    y = torch.poisson(torch.full((70,), 0.5), generator=torch.Generator().manual_seed(0)).double()
    y[6::7] = torch.nan
    y[69] = 40.0
    assert not season_of_zeros(y[None], [7]).any()


def test_counts_have_whole_quantiles_and_sensible_probabilities():
    y = torch.poisson(torch.full((200, 60), 0.7).double(), generator=torch.Generator().manual_seed(0))
    found = forecast(y[:, :48], H, 12)
    assert found.intermittent.float().mean() > 0.9
    q = found.quantiles(DECILES)[found.intermittent]
    assert (q == q.round()).all()
    close(found.loc[found.intermittent, -1].mean(), torch.tensor(0.7).double(), atol=0.1, rtol=0.0)


def test_totals_over_all_steps_are_covered():
    """Errors of a level that moves slowly below much noise are small, but all of one sign."""
    y = 0.3 * normal(300, 132).cumsum(1) + normal(300, 132, seed=1)
    found = forecast(y[:, :120], 12)
    totals = found.sample(300, torch.Generator().manual_seed(0)).sum(2)
    low, high = totals.quantile(torch.tensor([0.1, 0.9], dtype=y.dtype), dim=1)
    truth = y[:, 120:].sum(1)
    assert 0.74 < ((low <= truth) & (truth <= high)).double().mean() < 0.88
    alone = replace(found, shared=torch.zeros_like(found.shared))
    narrow = alone.sample(300, torch.Generator().manual_seed(0)).sum(2)
    assert narrow.std(1).mean() < 0.8 * totals.std(1).mean()


def test_a_phase_of_which_nothing_is_known_is_forecast_with_the_next_shorter_season_or_at_the_slowest_level():
    y = torch.full((1, 80), torch.nan, dtype=torch.float64)
    y[:, 50:] = torch.arange(30.0)
    found = members(y, (48,), 48, y >= 0)
    slowest = found.base[0, -1, 0, 0]
    assert found.others[0, -1, 1, 5] == slowest != found.base[0, -1, 0, 1]
    found = members(y, (4, 48), 48, y >= 0)
    assert found.others[0, -1, 2, 5] == found.others[0, -1, 1, 5] == 27.0


def days_and_weeks(n, level=0.0):
    """Hours with a pattern of days; Saturdays and Sundays are lower; the level drifts."""
    t = torch.arange(float(n), dtype=torch.float64)
    g = torch.Generator().manual_seed(0)
    drift = level * torch.randn(n, generator=g, dtype=torch.float64).cumsum(0)
    return (500 + 80 * torch.sin(t * torch.pi / 12) - 100 * (t // 24 % 7 > 4) + drift)[None]


def test_a_week_of_hours_repeats_from_the_level_of_today_and_a_single_season_from_its_own():
    y = days_and_weeks(336)
    y[:, -1] += 50.0
    week = members(y, (24, 168), 24, y > 0).others[0, -1, 2] - y[0, -168:-144]
    torch.testing.assert_close(week, 50 * 0.98 ** torch.arange(1, 25, dtype=y.dtype))
    alone = members(y, (168,), 24, y > 0).others[0, -1, 1] - y[0, -168:-144]
    assert not alone.any()


@pytest.mark.parametrize("n", [70, 90, 104, 110])
def test_steady_growth_is_seen_in_the_second_cycle_of_a_season(n):
    """Weeks of a year of which one and some were seen: medians were no better than the year before."""
    t = torch.arange(160.0).double()
    y = 300 + 2 / 52 * t + 3 * torch.sin(t * 2 * torch.pi / 52) + 0.3 * normal(160)
    found = forecast(y[None, :n], 26, 52).loc[0, -1] - y[n : n + 26]
    repeated = y[n - 52 : n - 26] - y[n : n + 26]
    assert found.abs().mean() < 0.6 * repeated.abs().mean()


@pytest.mark.parametrize("origin", [800, 860, 900, 980])
def test_a_week_of_days_does_not_hide_their_year(origin):
    """Without a member that has both, forecasts went on as the last weeks had, four times as far off."""
    day = torch.arange(1100.0).double()
    year = 100 + 30 * torch.cos(2 * math.pi * day / 365.25) + 2 * normal(1100)
    y = year + 5 * (day % 7 < 5)
    error = (forecast(y[None, :origin], 60, [7, 365]).loc[0, -1] - y[origin : origin + 60]).abs().mean()
    without = (forecast(year[None, :origin], 60, 365).loc[0, -1] - year[origin : origin + 60]).abs().mean()
    assert error < 1.2 * without
    assert error < 4


def test_a_year_that_is_not_there_costs_nothing():
    day = torch.arange(860.0).double()
    y = 100 + 5 * (day % 7 < 5) + 3 * normal(12, 860)
    errors = [
        (forecast(y[:, :800], 60, seasons).loc[:, -1] - y[:, 800:]).abs().mean()
        for seasons in ([7, 365], [7])
    ]
    assert errors[0] < 1.01 * errors[1]


def test_two_weeks_of_hours_say_that_monday_is_not_like_sunday():
    """The repetition of a week began at the level of a week ago, and the day won."""
    y = days_and_weeks(360, level=2.0)
    found = forecast(y[:, :336], 24, [24, 168])
    error = (found.loc[0, -1] - y[0, 336:]).abs().mean()
    assert error < 0.4 * (y[0, 312:336] - y[0, 336:]).abs().mean()


def test_steps_beyond_the_length_of_the_series_say_nothing_of_the_shape_of_errors():
    """No error is known there: their number may be any."""
    near = torch.randn(2, 30, 30, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    far = torch.full((2, 30, 1), torch.nan, dtype=torch.float64).expand(-1, -1, 2**20)
    none = torch.zeros(2, 1, dtype=torch.bool)  # of these levels is new
    assert torch.equal(shape(torch.cat([near, far], 2), none), shape(near, none))


def declining(n=60):
    return 500 - 2 * torch.arange(float(n)) + 5 * torch.randn(n, generator=torch.Generator().manual_seed(0))


BOUNDED = {
    "whole numbers": (declining().round(), True),
    "one of them zero": (declining().round() - declining().round().min(), True),
    "noise in proportion to the level": (declining().log().exp() ** 3 / 1e6, True),
    "few values": (declining()[:20], True),
    "rain": (torch.relu(torch.sin(torch.arange(60.0)) - 0.3) * 1.7, True),
    "scaled to its range": ((declining() - declining().min()) / 200, False),
    "degrees": (0.1 * (declining() - 378), False),
    "a negative value": (torch.cat([declining().round(), torch.tensor([-1.0])]), False),
}


@pytest.mark.parametrize("name", BOUNDED)
def test_zero_is_a_bound_where_values_leave_it_open(name):
    y, expected = BOUNDED[name]
    assert bool(never_negative(y[None].double())[0, -1]) == expected


@pytest.mark.parametrize("largest", [3e6, 5e7, 3e12])
def test_a_bound_is_the_same_for_values_in_single_precision(largest):
    y = (declining() / declining().max() * largest)[None].double()
    y[:, ::2] += 0.3  # no whole numbers; noise that does not grow with the level
    assert torch.equal(never_negative(y), never_negative(y.float().double()))


@pytest.mark.parametrize(("largest", "unit"), [(1.2e7, 1), (1.6e7, 1), (3e7, 1000), (5e9, 1)])
def test_large_whole_numbers_that_fall_are_not_forecast_below_zero(largest, unit):
    line = largest * torch.linspace(1, 0.03, 60) * (1 + 0.03 * normal(20, 60))
    assert (forecast((line / unit).round() * unit, 14).quantiles([0.05]) >= 0).all()


def test_a_bound_depends_on_the_past_alone_and_not_on_gaps():
    y = torch.stack([value[:20].double() for value, _ in BOUNDED.values()] + [declining()[:20].double()])
    y[:, 7] = torch.nan
    found = never_negative(y)
    for n in (5, 12):
        assert torch.equal(found[:, :n], never_negative(y[:, :n]))


def test_a_series_that_was_scaled_to_its_range_goes_on_below_it():
    y = declining(100).double()
    unit = y.max() - y.min()
    expected = forecast(y[None], 12).quantiles(DECILES)
    found = y.min() + unit * forecast(((y - y.min()) / unit)[None], 12).quantiles(DECILES)
    assert (found[0, -1, 4] < y.min() - 5).all()
    assert ((found - expected).abs() < 8).all()


def week(n=134):
    shape = torch.tensor([900.0, 500, 480, 510, 600, 800, 1200]).double()
    noise = torch.randn(n, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    return shape[torch.arange(n) % 7] + 20 * noise


@pytest.mark.parametrize("days", [25, 30, 45])
def test_a_spell_in_which_a_shop_was_closed_does_not_take_its_season(days):
    y = week()
    past, truth = y[:120].clone(), y[120:]
    past[40 : 40 + days] = 0.0
    found = forecast(past[None], 14, 7)
    assert not found.intermittent.any()
    assert (found.loc[0, -1] - truth).abs().mean() < 50  # a flat forecast has 230


@pytest.mark.parametrize("n_zeros", [1, 2, 5, 9])
def test_zeros_of_a_product_that_was_sold_out_count_as_missing(n_zeros):
    t = torch.arange(156.0)
    mean = 100 * (1 + 0.3 * torch.sin(2 * torch.pi * t / 52)).expand(5, -1)
    y = torch.poisson(mean, generator=torch.Generator().manual_seed(0)).double()
    out, gone = y.clone(), y.clone()
    out[:, 60 : 60 + n_zeros], gone[:, 60 : 60 + n_zeros] = 0.0, torch.nan
    close(forecast(out, 4, 52).quantiles([0.1, 0.5, 0.9]), forecast(gone, 4, 52).quantiles([0.1, 0.5, 0.9]))


def test_zeros_amid_small_counts_are_counts():
    y = torch.poisson(torch.full((20, 60), 3.0), generator=torch.Generator().manual_seed(0)).double()
    assert torch.equal(without_outages(y), y)


@pytest.mark.parametrize(("n", "most"), [(60, 40.0), (127, 12.0), (300, 8.0)])
def test_intervals_of_a_line_do_not_count_errors_from_before_the_line_was_known(n, most):
    """They were 96, 30 and 15 wide a week ahead."""
    noise = torch.randn(6, n, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    q = forecast(10 * torch.arange(n) + noise, 7).quantiles([0.05, 0.95])
    assert (q[..., 1] - q[..., 0])[:, -1].mean() < most


def test_what_has_ended_is_forecast_near_zero():
    y = week(120)
    y[-40:] = 0.0
    assert forecast(y[None], 14, 7).quantiles([0.5])[0].max() < 30


@pytest.mark.parametrize("n_zeros", [3, 5, 9, 10])
def test_while_something_is_broken_either_zero_or_the_level_is_likely(n_zeros):
    """With five to nine zeros 95 % intervals around a level of 100 ended below 40."""
    y = 100 + 10 * normal(20, 100)
    y[:, -n_zeros:] = 0.0
    low, high = forecast(y, 14).quantiles([0.05, 0.95]).unbind(-1)
    assert (low == 0).all()
    assert (high > 80).all()
    assert (high < 140).all()


def test_something_may_be_broken_in_a_series_that_begins_with_zeros():
    y = 100 + 10 * normal(20, 200)
    y[:, :30], y[:, -5:] = 0.0, 0.0
    assert (forecast(y, 14).quantiles([0.95]) > 95).all()


def test_what_is_broken_is_no_demand_and_has_a_network_when_it_is_back():
    y = np.r_[100 + np.random.default_rng(0).normal(size=200), np.zeros(5)]
    assert not are_demand([y], lambda: [[]])
    assert are_demand([np.r_[y, np.zeros(5)]], lambda: [[]])


@pytest.mark.parametrize("kind", ["counts", "other values"])
def test_what_has_ended_does_not_rise_again(kind):
    """Twelve steps had 18 counts in all, where the level before was 10."""
    counts = torch.poisson(torch.full((20, 60), 10.0), generator=torch.Generator().manual_seed(0)).double()
    y = torch.cat([counts if kind == "counts" else 10 + normal(20, 60), torch.zeros(20, 30)], 1)
    total = forecast(y, 12).sample(200, torch.Generator().manual_seed(0)).mean(1).sum(1)
    assert (total < 5).all()
    assert (total > 0).all()  # it may come back


@pytest.mark.parametrize("n_zeros", [10, 13, 26, 38, 52])
def test_what_had_a_yearly_season_and_has_ended_does_not_come_back_with_it(n_zeros):
    t = torch.arange(208.0)
    mean = 100 * (1 + 0.3 * torch.sin(2 * torch.pi * t / 52)).expand(10, -1)
    y = torch.poisson(mean, generator=torch.Generator().manual_seed(0)).double()
    y[:, -n_zeros:] = 0.0
    found = forecast(y, 13, 52).quantiles([0.5, 0.9])
    assert (found[..., 0] == 0).all()
    assert n_zeros < 26 or (found[..., 1] == 0).all()


@pytest.mark.parametrize(("size", "noise"), [(3, 0.03), (3, 0.1), (5, 0.1)])
def test_a_peak_of_every_year_is_no_outlier(size, noise):
    month = torch.arange(59) % 12
    y = 100 * torch.where(month == 11, size, 1) * (noise * normal(20, 59)).exp()
    peak = forecast(y, 12, 12).quantiles([0.5])[:, 0, 0]
    assert peak.mean() == pytest.approx(100 * size, rel=0.1)


@pytest.mark.parametrize("places", [[11], [0], [2, 7], [4, 5, 6]])
def test_values_missing_in_the_first_season_take_little_from_it(places):
    t = torch.arange(60.0).double()
    y = (100 + t + 30 * torch.sin(2 * torch.pi * t / 12)).repeat(10, 1) + 3 * normal(10, 60)
    truth = y[:, 48:]
    gappy = y[:, :48].clone()
    gappy[:, places] = torch.nan
    whole, found = ((forecast(past, 12, 12).loc[:, -1] - truth).abs().mean() for past in (y[:, :48], gappy))
    assert found < 1.15 * whole


def test_many_runs_of_zeros_are_intermittent_however_long_the_longest():
    y = torch.tensor([3.0, 0.0, 0.0, 2.0, 0.0]).repeat(10).double()
    y[10:25] = 0.0
    assert is_intermittent(y[None])[0, -1]


@pytest.mark.parametrize("unit", [1.0, 0.013])
@pytest.mark.parametrize("n", [3, 4, 5])
def test_a_new_product_in_a_table_of_zeros_is_forecast_as_if_the_table_began_with_it(n, unit):
    """Of the mean of three to five values a quarter to less than a half was forecast."""
    values = unit * torch.poisson(torch.full((n,), 50.0), generator=torch.Generator().manual_seed(0)).double()
    padded = forecast(torch.cat([torch.zeros(175), values])[None], 14)
    cut = forecast(values[None], 14)
    assert not padded.intermittent.any()
    torch.testing.assert_close(
        padded.quantiles([0.1, 0.5, 0.9]), cut.quantiles([0.1, 0.5, 0.9]), rtol=0.1, atol=0
    )


@pytest.mark.parametrize("values", [[1, 2, 1], [3, 3, 3, 3, 3], [50, 50], [50, 1, 40, 60], [50, 48, 53, 0]])
def test_few_values_after_zeros_may_be_intermittent_where_they_are_small_unlike_or_zero_again(values):
    y = torch.cat([torch.zeros(30), torch.tensor(values)]).double()
    assert is_intermittent(y[None])[0, -1]


def test_nights_are_no_intermittent_demand_however_few_were_seen():
    """Three and a half days of five minutes are too few for their season to explain the zeros."""
    t = torch.arange(1096.0).double()
    sun = 100 * torch.sin(2 * torch.pi * (t / 288 - 0.85)).clamp_min(0.0)
    assert not is_intermittent(sun[None, :1000])[0, -1]
    found = forecast(sun[None, :1000], 96, 288)
    assert (found.quantiles([0.5])[0, :, 0] - sun[1000:]).abs().mean() < 10
    bursts = (t % 100 < 5) * 3.0
    assert is_intermittent(bursts[None, :1000])[0, -1]


@pytest.mark.parametrize(("season", "n"), [(4, 32), (12, 48), (12, 120), (24, 168), (52, 156)])
def test_intervals_of_a_strong_season_are_as_wide_as_its_noise(season, n):
    """Errors from before the season was known made them up to 25 times as wide."""
    t, g = torch.arange(float(n + season), dtype=torch.float64), torch.Generator().manual_seed(0)
    noise = torch.randn(10, n + season, generator=g, dtype=torch.float64)
    y = 200 + 100 * torch.sin(2 * torch.pi * t / season) + noise
    low, high = forecast(y[:, :n], season, season).quantiles([0.1, 0.9]).unbind(-1)
    assert (high - low).mean() < 3 * 2.56
    assert 0.7 < ((low <= y[:, n:]) & (y[:, n:] <= high)).double().mean() < 0.99


@pytest.mark.parametrize("slope", [-5.0, 1.0, 10.0, 50.0])
def test_straight_lines_are_followed(slope):
    """Damped trends alone were behind them: by 12 for a slope of 10, and by 36 for one of 50."""
    g = torch.Generator().manual_seed(0)
    y = 1000 + slope * torch.arange(108.0) + 3 * torch.randn(12, 108, generator=g, dtype=torch.float64)
    found = forecast(y[:, :96], 12)
    assert (found.loc[:, -1] - y[:, 96:]).abs().mean() < 1.6 * 3 * (2 / torch.pi) ** 0.5


@pytest.mark.parametrize("value", [997.06, -5.0])
@pytest.mark.parametrize("after", [[], [NAN, NAN]])
def test_a_single_value_has_an_interval_in_proportion_to_it(value, after):
    low, middle, high = forecast(last(N, [value, *after])[None], H).quantiles([0.05, 0.5, 0.95])[0].mT
    close(middle, torch.full_like(middle, value))
    width = (high - low) / abs(value)
    assert (width > 0.5).all()
    assert (width <= 4).all()
    assert (width.diff() >= 0).all()
    assert (low >= 0).all() or value < 0


def test_a_correction_leaves_a_single_value_alone():
    none = torch.zeros(1, H, dtype=torch.float64)
    y = last(N, [997.06])[None]
    plain, corrected = (
        forecast(y, H, correct=c) for c in (None, lambda fit: Correction(none + 9, none + 3, none + 4))
    )
    close(corrected.quantiles(DECILES), plain.quantiles(DECILES))


@pytest.mark.parametrize("values", [[0.0], [997.0, 997.0]])
def test_a_single_zero_and_equal_values_are_taken_at_their_word(values):
    band = forecast(last(N, values)[None], H).quantiles([0.2, 0.5, 0.8])
    close(band, torch.full_like(band, values[0]))


@pytest.mark.parametrize(("level", "deviation"), [(50.0, 5.0), (50.0, 0.5), (100.0, 25.0)])
def test_two_values_that_are_close_by_chance_have_an_interval(level, deviation):
    """Of a new product: the change between two values alone covered two thirds."""
    noise = torch.randn(200, 2 + H, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    y = level + deviation * noise
    low, high = (
        forecast(torch.nn.functional.pad(y[:, :2], (9, 0), value=NAN), H).quantiles([0.05, 0.95]).unbind(-1)
    )
    assert ((low < y[:, 2:]) & (high > y[:, 2:])).double().mean() > 0.8
    for unit in (1e200, 1e-200):
        far = forecast(unit * y[:3, :2], H).quantiles([0.05, 0.5, 0.95]) / unit
        torch.testing.assert_close(far, forecast(y[:3, :2], H).quantiles([0.05, 0.5, 0.95]))


@pytest.mark.parametrize("n", [2, 3, 4, 6, 8])
def test_after_few_values_of_noise_forecasts_are_about_as_good_as_the_last_one(n):
    """Trends through two to eight values of noise were followed as if they had been seen for years."""
    y = 100 + 10 * normal(300, n + 6)
    error = (forecast(y[:, :n], 6).loc[:, -1] - y[:, n:]).abs().mean()
    assert error < 1.1 * (y[:, n - 1 : n] - y[:, n:]).abs().mean()


def test_a_trend_of_twelve_values_is_followed():
    y = 10.0 * torch.arange(18.0).double() + normal(100, 18)
    error = (forecast(y[:, :12], 6).loc[:, -1] - y[:, 12:]).abs().mean()
    assert error < 0.4 * (y[:, 11:12] - y[:, 12:]).abs().mean()


def test_an_outbreak_ends_intermittent_demand_and_the_next_day_of_a_shop_does_not():
    """Flat forecasts from all of the past had a median of 16 after 12 weeks of growth up to 64."""
    before = torch.poisson(torch.full((52,), 0.3), generator=torch.Generator().manual_seed(0)).double()
    growth = torch.round(1.42 ** torch.arange(1.0, 13)).double()
    found = forecast(torch.cat([before, growth])[None], 4)
    assert not found.intermittent.any()
    assert (found.quantiles([0.5])[0, :, 0] > 40).all()
    day = torch.tensor([0.0] * 10 + [3.0, 5.0, 4.0, 6.0, 5.0, 4.0, 3.0, 2.0]).double()
    assert is_intermittent(torch.cat([day.repeat(9), day[:17]]).roll(3)[None])[0, -1]


def test_bursts_say_little_of_what_comes_after_them():
    """Judged by the next value, the shortest memory won: one of twelve values lay above the .99 quantile."""
    g, rows = torch.Generator().manual_seed(0), []
    for _ in range(20):
        state = torch.rand(832, generator=g)  # a burst begins one time in 100, and ends one time in 6
        on, level = False, torch.zeros(832)
        for t, chance in enumerate(state.tolist()):
            on = chance > 1 / 6 if on else chance < 0.01
            level[t] = 8.0 * on
        rows.append(torch.poisson(0.03 + level, generator=g).double())
    y = torch.stack(rows)
    found = forecast(y[:, :800], 32)
    assert found.intermittent.all()
    assert (y[:, 800:, None] > found.quantiles([0.99])).double().mean() < 0.04


def test_errors_grow_with_the_level_where_some_values_are_zero_too():
    """Summers of an epidemic were as uncertain as its winters, because one week had no case."""
    t = torch.arange(260.0)
    mean = (2 + 300 * torch.exp(15 * (torch.cos(2 * torch.pi * t / 52) - 1))).double()
    y = torch.poisson(mean, generator=torch.Generator().manual_seed(0))
    assert (y == 0).any()
    width = forecast(y[None, :235], 26, 52).quantiles([0.1, 0.9])[0].diff(dim=1)[:, 0]
    assert width[24] > 4 * width[:5].mean()  # of the peak, and of summer


@pytest.mark.parametrize("unit", [1.0, 1 / 43.7])
def test_one_zero_is_a_bound_where_steps_grow_with_the_level_whatever_the_unit(unit):
    t = torch.arange(130.0)
    mean = (5 + 300 * torch.exp(15 * (torch.cos(2 * torch.pi * t / 52) - 1))).double()
    y = torch.poisson(mean, generator=torch.Generator().manual_seed(1)).clamp_min(1)
    y[70] = 0
    assert (forecast(unit * y[None], 8, 52).quantiles([0.01]) >= 0).all()


@pytest.mark.parametrize("steps", [24, 96])
def test_after_three_weeks_a_monday_is_forecast_from_mondays(steps):
    """Members that know no week lose at the turn of it alone: at the end of a Sunday they were far off."""
    t = torch.arange(21.0 * steps + steps // 3)
    day = 200 + 120 * torch.sin(2 * torch.pi * (t / steps - 0.3)) - 60 * ((t // steps) % 7 >= 5)
    y = torch.poisson(day, generator=torch.Generator().manual_seed(0)).double()
    n, horizon = 21 * steps, steps // 3
    found = forecast(y[None, :n], horizon, [steps, 7 * steps]).quantiles([0.5])[0, :, 0]
    assert (found - day[n:]).abs().mean() < 20  # that of the days before is 60


def calls(n_series, weeks, closed=True):
    """Calls by the hour: none at night and on Sundays, if closed."""
    hour = torch.arange(24 * 7 * weeks)
    is_open = (hour % 24 >= 8) & (hour % 24 < 20) & (hour // 24 % 7 != 6)
    level = 40 + 20 * torch.sin(hour / 24 * 2 * math.pi)
    level = level * (is_open if closed else 1.0)
    rates = level.expand(n_series, -1).double()
    return torch.poisson(rates, generator=torch.Generator().manual_seed(0)), is_open


@pytest.mark.parametrize("closed", [True, False])
def test_hours_that_are_closed_take_no_width_from_those_that_are_open(closed):
    y, is_open = calls(8, 7, closed)
    past, ahead = y[:, :-168], y[:, -168:]
    found = forecast(past, 168, [24, 168]).quantiles([0.1, 0.9])
    inside = (ahead >= found[..., 0]) & (ahead <= found[..., 1])
    assert 0.76 <= inside[:, is_open[-168:]].double().mean() <= 0.92
    if closed:
        assert (found[:, ~is_open[-168:]] == 0).all()


def test_a_place_in_a_season_is_zero_where_enough_values_say_so():
    week = torch.tensor([5.0, 4.0, 0.0, 6.0, 0.0, 0.0, 0.0])
    for n_weeks, expected in ((3, []), (4, [4, 5, 6]), (7, [4, 5, 6]), (8, [2, 4, 5, 6])):
        found = zero_places(week.repeat(n_weeks)[None], torch.arange(7 * n_weeks + 7), [7])
        past, ahead = found.split([7 * n_weeks, 7], 1)
        assert ahead[0].nonzero().flatten().tolist() == expected
        assert torch.equal(past[0], ahead[0].repeat(n_weeks))
    long = torch.tensor([5.0, 0.0, 0.0, 0.0] * 75)  # three cycles are all that is seen of it
    assert season_of_zeros(long.repeat(3)[None], [300]).tolist() == [True]
    assert zero_places(long.repeat(3)[None], torch.arange(4), [300]).tolist() == [[False, False, True, False]]
    assert season_of_zeros(week.repeat(3)[None], [7]).tolist() == [False]
    signed = torch.cat([week.repeat(8), -week])[None]  # what is left without the effects of X
    assert zero_places(signed, 63 + torch.arange(7), [7])[0].nonzero().flatten().tolist() == [2, 4, 5, 6]
