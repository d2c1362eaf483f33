"""Where values are always zero is told by enough of them, and by no more than they show."""

import numpy as np
import pytest

from taylorformer_forecast.engine.effects.closures import ZeroPlaces, closing_codes, while_open
from taylorformer_forecast.engine.effects.covariate_effects import fit_effects

WEEK = np.array([5.0, 4.0, 6.0, 5.0, 7.0, 0.0, 0.0])


def test_places_are_zero_as_long_as_no_other_value_lies_there():
    y = np.tile(WEEK, 8)
    zero = ZeroPlaces.of(y, [7])
    assert zero.at(np.arange(70)).reshape(-1, 7).all(0).tolist() == [False] * 5 + [True, True]
    assert zero.at(np.array([5.5, 4.5, 6.5])).tolist() == [True, False, False]
    later = zero.without(np.array([61.0]))
    assert later.at(np.arange(70)).reshape(-1, 7).all(0).tolist() == [False] * 6 + [True]
    assert zero.at(np.array([61])).all()
    y[-1] = 3.0
    assert ZeroPlaces.of(y, [7]).at(np.arange(7)).nonzero()[0].tolist() == [5]


@pytest.mark.parametrize("y", [np.tile(WEEK, 3), np.tile(WEEK + 1, 8), np.zeros(56)])
def test_few_cycles_other_values_and_constants_have_no_zero_places(y):
    assert not ZeroPlaces.of(y, [7]).at(np.arange(14)).any()


def test_only_the_latest_values_say_where_a_series_is_zero():
    long_ago = np.tile(WEEK + 1, 100)
    y = np.concatenate([long_ago, np.tile(WEEK, 200)])
    assert ZeroPlaces.of(y, [7]).at(len(y) + np.arange(7)).nonzero()[0].tolist() == [5, 6]


def codes_of(y, *columns):
    found = closing_codes([np.asarray(y, dtype=float)], [np.column_stack(columns).astype(float)])
    return [part.tolist() for part in found]


def test_a_code_closes_if_chance_would_not():
    rng = np.random.default_rng(0)
    closed = np.arange(60) % 10 == 0
    y = np.where(closed, 0.0, rng.uniform(1, 2, 60))
    assert codes_of(y, ~closed) == [[0], [0.0]]
    assert codes_of(y, np.where(closed, np.nan, 1.0)) == [[], []]  # a flag that is not known says nothing
    assert codes_of(y, rng.normal(size=60)) == [[], []]  # nor do numbers that are no codes
    once = np.arange(60) == 10
    assert codes_of(np.where(once, 0.0, 1.0), once) == [[], []]
    demand = np.where(rng.random(60) < 0.7, 0.0, 3.0)
    assert codes_of(np.where(closed, 0.0, demand), closed) == [[], []]  # six zeros among many
    assert codes_of(np.where(closed, 0.0, -y), closed) == [[0], [1.0]]


def test_one_value_beside_a_code_is_enough_to_keep_it_open():
    closed = np.arange(60) % 10 == 0
    y = np.where(closed, 0.0, 5.0)
    y[50] = 1.0
    assert codes_of(y, closed) == [[], []]


def test_one_event_closes_nothing_nor_does_what_never_changed():
    strike = (np.arange(60) >= 20) & (np.arange(60) < 27)
    assert codes_of(np.where(strike, 0.0, 5.0), strike) == [[], []]
    assert codes_of(np.zeros(60), np.zeros(60)) == [[], []]
    market = np.arange(60) % 7 == 5  # zeros are all but a quarter
    assert codes_of(np.where(market, 5.0, 0.0), market) == [[], []]


def test_codes_are_told_in_any_precision():
    x = np.tile([0.1, 0.7, 0.7], 20)
    effects = fit_effects([np.where(x == 0.1, 0.0, np.arange(60.0) + 1)], [x[:, None].astype(np.float32)])
    assert effects.closed(x[:, None]).tolist() == (x == 0.1).tolist()


def test_series_tell_together_which_codes_close():
    closed = np.arange(30) == 10
    y = np.where(closed, 0.0, np.arange(30.0) + 1)
    x = closed[:, None].astype(float)
    assert closing_codes([y], [x])[0].tolist() == []
    assert closing_codes([y, y + ~closed], [x, x])[0].tolist() == [0]


def test_effects_are_those_at_open_times():
    rng = np.random.default_rng(1)
    n = 20 * 14
    is_open, x = rng.random(n) > 0.1, rng.normal(size=n)
    y = np.where(is_open, np.tile(WEEK, 40) + 10 * (np.tile(WEEK, 40) > 0) + x, 0.0)
    y[np.tile(WEEK, 40) == 0] = 0.0
    known = np.column_stack([is_open, x])
    effects = fit_effects([y], [known], [7])
    assert (effects.closing.tolist(), effects.codes.tolist()) == ([0], [0.0])
    assert not effects.of_demand.any()
    at = np.array([[[1.0, 0.0]], [[1.0, 1.0]], [[0.0, 1.0]]]).repeat(effects.reach + 1, 1)
    added = effects(at) * effects.unit(y, known)
    assert added[1] - added[0] == pytest.approx(1, abs=0.1)
    assert added[2] == 0
    assert effects.closed(at[:, 0]).tolist() == [False, False, True]
    values, places, *_ = while_open([y], [np.column_stack([is_open, x])], [7])
    assert np.isnan(values[0]).sum() == (y == 0).sum()
    assert places[0].cycles


def test_demand_that_is_closed_by_a_code_is_judged_by_the_rest():
    rng = np.random.default_rng(2)
    is_open = np.arange(200) % 3 > 0
    y = np.where(is_open, rng.poisson(20, 200), 0).astype(float)
    assert not fit_effects([y], [is_open[:, None].astype(float)]).of_demand.any()
