"""What covariates add to series is found, and only where there is something to find."""

from dataclasses import replace

import numpy as np
import pytest

from taylorformer_forecast.engine.covariates import with_earlier
from taylorformer_forecast.engine.effects.covariate_effects import fit_effects
from taylorformer_forecast.engine.effects.relevance import Regressions, relevant_slopes
from taylorformer_forecast.engine.effects.series_scale import deviation


def added(effects, x, number=-1):
    return effects(with_earlier(np.asarray(x, dtype=float), effects.reach), number)


def difference(effects, y, high=1.0, low=0.0, number=-1):
    """What a step of the first covariate adds, in the units of y."""
    at = [[low] + [0.0] * (effects.columns.max()), [high] + [0.0] * (effects.columns.max())]
    # Each by itself, so that nothing comes later.
    one, other = (added(effects, [row], number)[0] for row in at)
    return (other - one) * deviation(y)


def promotions(n, rng, share=0.2):
    return (rng.random(n) < share).astype(float)[:, None]


@pytest.mark.parametrize("n", [30, 60, 300])
def test_a_step_is_found_beside_a_season(n):
    rng = np.random.default_rng(n)
    x = promotions(n, rng)
    y = 100 + 20 * np.sin(2 * np.pi * np.arange(n) / 7) + 40 * x[:, 0] + rng.normal(0, 3, n)
    assert difference(fit_effects([y], [x], [7]), y) == pytest.approx(40, abs=4)


@pytest.mark.parametrize("amplitude", [20, 100, 1000])
@pytest.mark.parametrize(("period", "n"), [(10, 120), (15, 200), (30, 300)])
def test_events_at_equal_distances_are_effects_however_large(period, n, amplitude):
    rng = np.random.default_rng(2)
    x = (np.arange(n) % period == 5).astype(float)[:, None]
    y = 100 + amplitude * x[:, 0] + rng.normal(0, 2, n)
    for panel in ([y], [y, y[::-1] + 50]):
        effects = fit_effects(panel, [x, x[::-1]][: len(panel)], [7, period])
        assert difference(effects, y, number=0) == pytest.approx(amplitude, abs=3)


@pytest.mark.parametrize("kind", ["Mondays", "time"])
def test_what_a_season_or_a_trend_explains_is_left_to_it(kind):
    """Slopes of values as they are had taken 9 and 11 % more loss."""
    n, found = 200, []
    for seed in range(8):
        rng, t = np.random.default_rng(seed), np.arange(n)
        y = 10 * np.sin(2 * np.pi * t / 7) * 1.004**t if kind == "Mondays" else 60 * np.tanh(t / 80)
        x = (t % 7 == 0) * 1.0 if kind == "Mondays" else t * 1.0
        effects = fit_effects([y + rng.normal(size=n)], [x[:, None]], [7])
        found.append(np.abs(effects.slopes[-1]).sum())
    assert np.median(found) < 0.2


@pytest.mark.parametrize("saturday", [21, -40])
@pytest.mark.parametrize("since", [30, 100, 170])
def test_a_flag_at_one_place_since_some_day_leaves_the_season_what_is_its_own(since, saturday):
    """A discount on every Saturday since day 100 was given 55 for 40: forecasts without it were 13 low."""
    t, found = np.arange(200), []
    for seed in range(4):
        place = t % 7 == 5
        x = place & (t >= since)
        y = 100 + saturday * place + 40 * x + np.random.default_rng(seed).normal(0, 5, 200)
        found.append(difference(fit_effects([y], [x[:, None] * 1.0], [7, 365.25]), y))
    assert np.mean(found) == pytest.approx(40, abs=5)
    panel = [y, y[::-1] + 50]  # beside another, whose season begins at another place
    effects = fit_effects(panel, [x[:, None] * 1.0, x[::-1, None] * 1.0], [7])
    assert difference(effects, y, number=0) == pytest.approx(40, abs=7)


def test_a_bend_is_found():
    rng = np.random.default_rng(0)
    x = rng.normal(10, 8, (300, 1))
    y = 8 * np.maximum(0, 15 - x[:, 0]) + rng.normal(0, 4, 300)
    effects = fit_effects([y], [x])
    assert difference(effects, y, high=0.0, low=5.0) == pytest.approx(40, abs=4)
    assert difference(effects, y, high=20.0, low=25.0) == pytest.approx(0, abs=6)


def test_a_bend_is_found_beside_columns_that_cannot_bend():
    rng = np.random.default_rng(0)
    x = rng.normal(10, 8, (120, 1))
    y = 8 * np.maximum(0, 15 - x[:, 0]) + rng.normal(0, 4, 120)
    flags, constant = rng.random((120, 3)) < 0.3, np.ones((120, 2))
    effects = fit_effects([y], [np.hstack([x, flags, constant])])
    assert difference(effects, y, high=0.0, low=5.0) == pytest.approx(40, abs=6)
    assert difference(effects, y, high=20.0, low=25.0) == pytest.approx(0, abs=8)


def test_what_comes_later_is_found_at_its_delay():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 1))
    y = 10 * np.r_[np.zeros(3), x[:-3, 0]] + rng.normal(size=300)
    effects = fit_effects([y], [x])
    pulse = np.zeros((12, 1))
    pulse[4] = 1.0
    response = (added(effects, pulse) - added(effects, 0 * pulse)) * deviation(y)
    assert int(response.argmax()) == 7
    assert response[7] == pytest.approx(10, abs=1)
    assert np.abs(np.delete(response, 7)).max() < 1


@pytest.mark.parametrize("seed", range(5))
def test_noise_adds_next_to_nothing(seed):
    rng = np.random.default_rng(seed)
    y, x = rng.normal(size=200).cumsum(), rng.normal(size=(200, 5))
    assert added(fit_effects([y], [x], [7]), x).std() < 0.05


def test_a_trend_in_common_is_no_effect():
    rng = np.random.default_rng(3)
    y, x = np.arange(200.0) + rng.normal(size=200), np.arange(200.0)[:, None] + rng.normal(size=(200, 1))
    assert abs(difference(fit_effects([y], [x]), y)) < 0.5  # of 1 that a regression without lags finds


def test_additions_are_zero_on_average():
    rng = np.random.default_rng(0)
    x = promotions(100, rng)
    y = 40 * x[:, 0] + rng.normal(size=100)
    assert added(fit_effects([y], [x]), x).mean() == pytest.approx(0, abs=1e-9)


def test_series_share_what_they_have_in_common_and_keep_what_is_their_own():
    rng = np.random.default_rng(0)
    x = [promotions(60, rng, 0.15) for _ in range(100)]
    true = 40 + 10 * rng.normal(size=100)
    y = [100 + 10 * rng.normal(size=60) + b * one[:, 0] for b, one in zip(true, x, strict=True)]
    effects = fit_effects(y, x)
    found = np.array([difference(effects, own, number=k) for k, own in enumerate(y)])
    assert np.sqrt(np.mean((found - true) ** 2)) < 0.6 * true.std()  # what is common to all leaves that
    assert difference(effects, y[0]) == pytest.approx(40, abs=8)


def test_series_beyond_those_estimated_together_have_effects_of_their_own(monkeypatch):
    monkeypatch.setattr("taylorformer_forecast.engine.effects.slopes.SERIES_AT_ONCE", 4)
    rng = np.random.default_rng(0)
    x = [promotions(80, rng) for _ in range(8)]
    y = [(30 if k % 2 else 5) * one[:, 0] + rng.normal(size=80) for k, one in enumerate(x)]
    effects = fit_effects(y, x)
    found = [difference(effects, own, number=k) for k, own in enumerate(y)]
    assert found == pytest.approx([5, 30] * 4, abs=4)


def test_one_more_series_has_the_slopes_that_its_values_show():
    rng = np.random.default_rng(0)
    x = [promotions(80, rng) for _ in range(8)]
    y = [(30 if k % 2 else 5) * one[:, 0] + rng.normal(size=80) for k, one in enumerate(x)]
    effects = fit_effects(y, x)
    for k in range(2):
        found = effects.slopes_of(y[k], x[k], [], float(effects.unit(y[k], x[k])))
        np.testing.assert_allclose(found, effects.slopes[k], atol=0.05)
    new = promotions(80, rng)
    other = 17 * new[:, 0] + rng.normal(size=80)
    unit = float(effects.unit(other, new))
    own = replace(effects, slopes=effects.slopes_of(other, new, [], unit)[None])
    assert difference(own, other) == pytest.approx(17, abs=1.5)
    for nothing in (np.full(80, np.nan), np.ones(80)):
        np.testing.assert_array_equal(effects.slopes_of(nothing, new, [], unit), effects.slopes[-1])
    single = fit_effects(y[:1], x[:1])
    np.testing.assert_array_equal(single.slopes_of(other, new, [], unit), single.slopes[-1])


def test_missing_values_count_for_nothing():
    rng = np.random.default_rng(0)
    x = promotions(200, rng)
    y = 40 * x[:, 0] + rng.normal(size=200)
    y[rng.random(200) < 0.1], x[rng.random(200) < 0.05] = np.nan, np.nan
    effects = fit_effects([y], [x])
    assert difference(effects, y) == pytest.approx(40, abs=2)
    assert added(effects, [[np.nan]]).item() == 0


@pytest.mark.parametrize("y", [np.arange(4.0), np.r_[np.zeros(40), 3, np.zeros(9)]])
def test_few_values_and_constant_covariates_have_no_effects(y):
    x = np.arange(float(len(y)))[:, None] % 2 if len(y) < 9 else np.ones((len(y), 1))
    assert not fit_effects([y], [x]).slopes.any()


@pytest.mark.parametrize("n_series", [1, 40])
def test_the_mean_of_demand_is_multiplied(n_series):
    rng = np.random.default_rng(0)
    x = [promotions(300 if n_series == 1 else 60, rng) for _ in range(n_series)]
    y = [rng.poisson(0.4 * 4 ** one[:, 0]).astype(float) for one in x]
    effects = fit_effects(y, x)
    assert effects.of_demand.all()
    found = [np.exp(np.diff(added(effects, [[0.0], [1.0]], k)))[0] for k in (0, -2)]
    assert found == pytest.approx([4, 4], rel=0.35)
    assert np.diff(added(effects, [[0.0], [1.0]]))[0] == 0  # of what is no demand


def test_demand_that_falls_slowly_owes_nothing_to_a_covariate_that_does():
    rng = np.random.default_rng(0)
    x = np.linspace(1, 0, 300)[:, None] + 0.05 * rng.normal(size=(300, 1))
    y = rng.poisson(np.linspace(0.9, 0.1, 300)).astype(float)
    effects = fit_effects([y], [x])
    assert abs(np.diff(added(effects, [[0.0], [1.0]], 0))[0]) < 0.7  # of 2.2 that a regression finds


@pytest.mark.parametrize("factor", [1, 4])
@pytest.mark.parametrize("n_series", [1, 8])
def test_promotions_mostly_at_weekends_do_not_take_what_is_sold_more_at_weekends(factor, n_series):
    rng = np.random.default_rng(1)
    weekend, series = np.arange(280) % 7 >= 5, range(n_series)
    x = [(rng.random(280) < np.where(weekend, 0.5, 0.05))[:, None] * 1.0 for _ in series]
    y = [rng.poisson(np.where(weekend, 1.2, 0.3) * factor ** one[:, 0]).astype(float) for one in x]
    effects = fit_effects(y, x, [7.0])
    assert effects.of_demand.all()
    found = np.exp([np.diff(added(effects, [[0.0], [1.0]], k))[0] for k in series])
    np.testing.assert_allclose(found, factor, rtol=0.35)


def test_flags_of_weekdays_keep_what_a_season_of_demand_would_explain_as_well():
    rng, weekend = np.random.default_rng(0), (np.arange(280) % 7 >= 5)[:, None] * 1.0
    y = rng.poisson(0.3 * 4 ** weekend[:, 0]).astype(float)
    found = [fit_effects([y], [weekend], seasons) for seasons in ([], [7.0])]
    logs = [effects(with_earlier(weekend, effects.reach), 0) for effects in found]
    np.testing.assert_array_equal(*logs)
    assert np.exp(np.ptp(logs[0][14:])) == pytest.approx(4, rel=0.35)


def test_some_series_of_demand_leave_others_what_they_have():
    rng = np.random.default_rng(0)
    x = [promotions(100, rng) for _ in range(6)]
    y = [10 + 5 * one[:, 0] + 0.5 * rng.normal(size=100) for one in x[:3]]
    y += [rng.poisson(0.3, 100).astype(float) for _ in x[3:]]
    assert difference(fit_effects(y, x), y[0], number=0) == pytest.approx(5, abs=0.5)


def test_short_series_have_the_effects_that_series_have_in_common():
    rng = np.random.default_rng(0)
    x = [promotions(n, rng, 0.3) for n in (100, 100, 5)]
    y = [20 + 5 * one[:, 0] + rng.normal(size=len(one)) for one in x]
    effects = fit_effects(y, x)
    assert np.array_equal(effects.slopes[2], effects.slopes[-1])
    assert effects.slopes[-1].any()


def test_constant_covariates_and_series_do_no_harm():
    x = np.ones((40, 2))
    assert np.all(added(fit_effects([np.sin(np.arange(40.0))], [x]), x) == 0)
    assert np.isfinite(
        added(fit_effects([np.ones(40)], [np.random.default_rng(0).normal(size=(40, 2))]), x)
    ).all()


def test_a_long_series_is_estimated_from_its_latest_values(monkeypatch):
    monkeypatch.setattr("taylorformer_forecast.engine.effects.covariate_effects.VALUES_AT_ONCE", 200)
    rng = np.random.default_rng(0)
    x = promotions(600, rng)
    y = np.where(np.arange(600) < 400, -50, 50) * x[:, 0] + rng.normal(size=600)
    assert difference(fit_effects([y], [x]), y) == pytest.approx(50, abs=2)


def test_collinear_terms_that_explain_much_together_are_kept():
    """Two columns that are alike, with effects that oppose each other."""
    rng = np.random.default_rng(0)
    common = rng.normal(size=80)
    terms = np.stack([common + 0.3 * rng.normal(size=80) for _ in range(2)], 1)
    y = terms @ [1.4, -1.3] + 0.1 * rng.normal(size=80)
    common, _, _ = relevant_slopes(Regressions.of([(y, terms, 5)]), np.arange(2))
    np.testing.assert_allclose(common, [1.4, -1.3], atol=0.1)


@pytest.mark.parametrize("n_constants", [1, 3])
def test_constants_in_a_panel_take_nothing_from_what_others_have_in_common(n_constants):
    rng = np.random.default_rng(0)
    x = [rng.normal(size=(60, 1)) for _ in range(3 + n_constants)]
    y = [3 * one[:, 0] + 0.3 * rng.normal(size=60) for one in x[:3]] + [np.full(60, 5.0)] * n_constants
    assert difference(fit_effects(y, x), y[0]) == pytest.approx(3, abs=0.3)


@pytest.mark.parametrize("size", [10, 100, 1000])
def test_an_outlier_does_not_hide_an_effect(size):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(400, 3))
    y = 10 + 3 * x[:, 0] + 0.3 * rng.normal(size=400)
    clean = deviation(y)
    y[200] += size
    effects = fit_effects([y], [x])
    assert difference(effects, y) == pytest.approx(3, abs=0.15)
    assert deviation(y) > clean  # the unit is another


def test_seldom_effects_far_beyond_the_noise_are_no_outliers():
    rng = np.random.default_rng(0)
    x = promotions(200, rng, share=0.03)
    y = 100 * x[:, 0] + 0.5 * rng.normal(size=200)
    y[50] += 1000
    assert difference(fit_effects([y], [x]), y) == pytest.approx(100, abs=10)


@pytest.mark.parametrize("where", ["here and there", "every other row of one that adds nothing"])
def test_effects_are_found_beside_gaps_in_covariates(where):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 3))
    y = 3 * x[:, 0] + 0.3 * rng.normal(size=300)
    if where == "here and there":
        x[rng.random((300, 3)) < 0.2] = np.nan
    else:
        x[::2, 2] = np.nan
    assert difference(fit_effects([y], [x]), y) == pytest.approx(3, abs=0.3)


def test_covariates_without_an_effect_add_exactly_nothing():
    rng = np.random.default_rng(0)
    y, x = rng.poisson(2, 200).astype(float), rng.normal(size=(200, 2))
    assert np.all(added(fit_effects([y], [x]), x) == 0)


def test_units_of_few_or_equal_values_are_in_proportion_to_their_size():
    rng = np.random.default_rng(0)
    x = [rng.normal(size=(60, 1)) for _ in range(3)]
    y = [10 + 2 * one[:, 0] + 0.1 * rng.normal(size=60) for one in x]
    effects = fit_effects(y, x)
    for few in ([9.0, np.nan, 11.0], [10.0, 10.0], [10.0]):
        few, beside = np.array(few), x[0][: len(few)]
        unit = effects.unit(few, beside)
        assert unit == pytest.approx(2, rel=0.2)
        assert effects.unit(1e-6 * few, beside) == pytest.approx(1e-6 * unit)
    assert effects.unit(np.full(60, 10.0), np.ones((60, 1))) == unit
    assert effects.unit(y[0], x[0]) == deviation(y[0])


def test_nothing_is_added_to_many_equal_values_beside_covariates_that_vary():
    rng = np.random.default_rng(0)
    x = [rng.normal(size=(60, 2)) for _ in range(2)]
    effects = fit_effects([10 + 2 * one[:, 0] + 0.1 * rng.normal(size=60) for one in x], x)
    equal, still = np.full((2, 60), 10.0), x[0] * [0, 1]  # of the second nothing comes
    assert effects.unit(equal, np.stack([x[0], still])) == pytest.approx([0, 2], rel=0.2)
    known = np.where(np.arange(60) % 2, 10.0, np.nan)
    assert effects.unit(known, np.where(np.isnan(known)[:, None], x[0], 0.0)) > 0  # it varies beside no value


@pytest.mark.parametrize("length", [None, 5, 40])
@pytest.mark.parametrize("n", [3, 30])
def test_rows_before_the_first_value_leave_deviations_as_they_are(length, n):
    y = np.random.default_rng(0).normal(size=(2, n)).cumsum(1)
    y[1, n // 2] = np.nan
    padded = np.concatenate([np.full((2, 25), np.nan), y], 1)
    np.testing.assert_allclose(deviation(padded, length), deviation(y, length), rtol=1e-12)


def test_deviations_of_tiny_movement_at_a_huge_level_are_no_rounding():
    assert deviation(1e12 + np.array([-100.0, 100.0] * 8)).item() == pytest.approx(100)
    assert deviation(np.full(1000, 0.1)).item() == 0


def test_covariates_that_are_not_known_lie_between_their_last_value_and_their_mean():
    rng = np.random.default_rng(0)
    slow = np.repeat(rng.normal(size=20), 10)
    fast = rng.normal(size=200)
    effects = fit_effects([rng.normal(size=200)], [np.c_[slow, fast]])
    assert effects.memory[0] > 0.8 > 0.3 > effects.memory[1]
    x = np.full((4, 2), np.nan)
    x[1] = 3.0
    found = effects.filled(x)
    assert np.isnan(found[0]).all()
    np.testing.assert_array_equal(found[1], 3.0)
    np.testing.assert_allclose(found[2], effects.means + effects.memory * (3 - effects.means))
    assert found[3, 0] > 1.5
    assert abs(found[3, 1] - effects.means[1]) < 0.3


def test_what_covariates_are_like_does_not_depend_on_gaps_of_values():
    flag = np.tile([1.0, 1.0, 1.0, 1.0, 1.0, 0.0, 0.0], 20)[:, None]
    y = np.random.default_rng(0).normal(size=140)
    gappy = np.where(flag[:, 0] == 0, np.nan, y)  # never observed at weekends
    whole, found = fit_effects([y], [flag], [7]), fit_effects([gappy], [flag], [7])
    assert found.means == pytest.approx(whole.means)
    assert found.memory == pytest.approx(whole.memory)


@pytest.mark.parametrize("kind", ["constant", "in proportion", "few"])
def test_past_errors_choose_the_power_of_the_level_that_they_grow_with(kind):
    """With .75 for all, intervals of days with a promotion were 2.5 times too wide under constant noise."""
    n, found = 30 if kind == "few" else 200, []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        x = promotions(n, rng)
        mean = 100 + 20 * np.sin(2 * np.pi * np.arange(n) / 7) + (3 if kind == "few" else 300) * x[:, 0]
        noise = rng.normal(size=n)
        y = mean * np.exp(0.1 * noise) if kind == "in proportion" else mean + 5 * noise
        found.append(fit_effects([y], [x], [7]).power)
    low, high = {"constant": (0.0, 0.25), "in proportion": (0.75, 1.0), "few": (0.75, 0.75)}[kind]
    assert low <= min(found) <= max(found) <= high


def test_equal_values_where_an_effect_is_flat_have_the_unit_of_others():
    """In a winter without heating, cooling had no effect on the next summer."""
    t = np.arange(800)
    rng = np.random.default_rng(0)
    x = (12 - 14 * np.cos(2 * np.pi * t / 400) + rng.normal(0, 2, 800))[:, None]
    y = 50 + 4 * np.maximum(x[:, 0] - 20, 0)
    effects = fit_effects([y], [x])
    cold = slice(380, 404)
    assert np.ptp(y[cold]) == 0
    assert effects.unit(y[cold], x[cold]) > 0
    assert effects.unit(np.full(800, 50.0), x) == 0


@pytest.mark.parametrize("peak", [5, 11])
def test_in_a_panel_a_flag_in_one_month_of_some_years_leaves_the_season_what_is_its_own(peak):
    """Of five or so cycles, what was left of the season changed effects of 40 to between -10 and 100."""
    found, t = [], np.arange(50)
    for seed in range(2):
        rng = np.random.default_rng(seed)
        x, y = [], []
        for start in rng.integers(0, 12, 40):
            place = (start + t) % 12
            flag = (place == peak) & rng.integers(0, 2, 6)[(start + t) // 12].astype(bool)
            season = 30 * np.sin(2 * np.pi * np.arange(12) / 12) + 60 * (np.arange(12) == 11)
            x.append(flag[:, None] * 1.0)
            y.append(200 + season[place] + 40 * flag + rng.normal(0, 10, 50))
        found.append(difference(fit_effects(y, x, [12]), np.concatenate(y)))
    assert np.mean(found) == pytest.approx(40, rel=0.3)
