"""Windows: where they lie, what they hide, how batches are drawn."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch

from taylorformer_forecast.core.window import Window, shuffle_targets
from taylorformer_forecast.engine.contexts import stack_contexts
from taylorformer_forecast.engine.windows import Batches, Series, WindowMaker

L, T = 4, 3


def series(n, level=0.0, covariates=False, gap=()):
    """Values are ``level`` plus the number of the point, irregular times are that plus a little."""
    t = np.arange(n) + 0.1 * np.sin(np.arange(n))
    y = level + np.arange(float(n))[:, None]
    y[list(gap)] = np.nan
    return Series(t, y, np.stack([t, -t], 1) if covariates else None)


def make(*parts, **changes):
    settings = {"n_context": L, "n_targets": T, "time_unit": 1.0}
    return WindowMaker(parts, **{**settings, **changes})


def raw(maker, starts, **kwargs):
    """Windows with values in the units of the data."""
    window, scale = maker.windows(starts, **kwargs)
    return window, torch.where(window.observed, scale.to_data(window.y), torch.nan)


# --- starts -----------------------------------------------------------------------------------------------


def test_starts_are_the_rows_with_enough_context():
    starts = make(series(6), series(2), series(5)).starts(min_context=3)
    assert starts.tolist() == [[0, 3], [0, 4], [0, 5], [2, 11], [2, 12]]


def test_starts_of_training_and_validation_divide_the_rows():
    maker = make(series(20), series(10))
    everything = maker.starts(2).tolist()
    train, held_out = maker.starts(2, keep=0.8).tolist(), maker.starts(2, skip=0.8).tolist()
    assert sorted(train + held_out) == everything
    assert max(row for number, row in train if number == 0) == 15
    assert [row for number, row in held_out if number == 1] == [28, 29]


def test_a_sample_is_evenly_spaced_and_comes_with_how_many_windows_share_targets():
    maker = make(series(10), series(5))
    starts = maker.starts(3)
    window, embargo = Batches(maker, starts, 4).sample(at_most=5)
    assert (len(window.y), embargo) == (5, 2)
    assert torch.equal(window.y, maker.windows(starts[::2])[0].y)
    window, embargo = Batches(maker, starts, 4).sample()
    assert (len(window.y), embargo) == (len(starts), maker.n_targets)


def test_series_that_are_too_short_have_no_starts():
    assert len(make(series(3)).starts(min_context=3)) == 0


# --- windows ----------------------------------------------------------------------------------------------


def test_a_window_inside_its_series_holds_the_rows_around_its_start():
    window, y = raw(make(series(12), series(12, level=100.0)), torch.tensor([[0, 5], [1, 17]]))
    torch.testing.assert_close(y[0, :, 0], torch.arange(1.0, 8.0))
    torch.testing.assert_close(y[1, :, 0], torch.arange(101.0, 108.0))
    assert window.observed.all()
    assert window.n_context == L


@pytest.mark.parametrize("covariates", [False, True])
def test_what_lies_beyond_either_end_is_padding_and_never_another_series(covariates):
    parts = [series(8, level, covariates) for level in (0.0, 100.0, 200.0)]
    maker = make(*parts)
    starts = maker.starts(min_context=1)
    window, y = raw(maker, starts)
    for row, (number, first) in enumerate(starts.tolist()):
        position = np.arange(first - L, first + T) - 8 * number
        inside = (position >= 0) & (position < 8)
        np.testing.assert_array_equal(window.observed[row, :, 0].numpy(), inside)
        np.testing.assert_allclose(y[row, inside, 0], 100 * number + position[inside], rtol=1e-6, atol=1e-6)
        if covariates:
            own = parts[number].covariates[position[inside]]
            np.testing.assert_allclose(window.covariates[row, inside], own, rtol=1e-6)
    assert (window.y[~window.observed] == 0).all()
    assert torch.isfinite(window.t).all()


def test_times_are_measured_from_the_last_context_point():
    window, _ = make(series(12), time_unit=2.0).windows(torch.tensor([[0, 5]]))
    t = series(12).t[1:8]
    np.testing.assert_allclose(window.t[0], (t - t[L - 1]) / 2.0, rtol=1e-6)


def test_missing_values_are_not_observed():
    window, y = raw(make(series(12, gap=(3, 6))), torch.tensor([[0, 5]]))
    assert window.observed[0, :, 0].tolist() == [True, True, False, True, True, False, True]
    torch.testing.assert_close(y[0, [0, 1, 3, 4, 6], 0], torch.tensor([1.0, 2.0, 4.0, 5.0, 7.0]))


def test_values_are_scaled_by_the_context_alone():
    maker, changed = make(series(12)), series(12)
    changed.y[5:] += 50.0
    start = torch.tensor([[0, 5]])
    (one, scale), (other, same) = maker.windows(start), make(changed).windows(start)
    torch.testing.assert_close(scale.loc, same.loc)
    torch.testing.assert_close(one.y[:, :L], other.y[:, :L])
    assert (one.y[:, L:] != other.y[:, L:]).all()


def test_the_validation_part_is_hidden_from_training_windows():
    n, last = 20, 0.75
    maker, changed = make(series(n)), series(n)
    changed.y[15:] = 1e6
    starts = maker.starts(2, keep=last)
    for one, other in zip(maker.windows(starts, last), make(changed).windows(starts, last), strict=True):
        for name in ("t", "y", "observed", "loc", "scale"):
            if hasattr(one, name):
                assert torch.equal(getattr(one, name), getattr(other, name))
    assert not torch.equal(maker.windows(starts)[0].y, make(changed).windows(starts)[0].y)


# --- contexts for prediction ------------------------------------------------------------------------------


def test_contexts_end_with_the_last_rows_and_are_padded_in_front():
    window = stack_contexts([series(6), series(2)], L, np.array([[6.0, 7.0], [2.0, 3.0]]))
    assert window.observed[:, :, 0].tolist() == [
        [True] * 4 + [False] * 2,
        [False] * 2 + [True] * 2 + [False] * 2,
    ]
    assert window.y[0, :L, 0].tolist() == [2.0, 3.0, 4.0, 5.0]
    assert window.y[1, 2:L, 0].tolist() == [0.0, 1.0]
    assert window.t[0, L:].tolist() == [6.0, 7.0]
    assert window.y.dtype == torch.float64


def test_contexts_carry_covariates():
    contexts = [series(6, covariates=True), series(2, covariates=True)]
    window = stack_contexts(contexts, L, np.zeros((2, 1)), np.full((2, 1, 2), 9.0))
    assert window.covariates.shape == (2, L + 1, 2)
    np.testing.assert_array_equal(window.covariates[0, :L, 0], contexts[0].t[-L:])
    assert window.covariates[1, -1].tolist() == [9.0, 9.0]


# --- batches ----------------------------------------------------------------------------------------------


def numbers(batch: Window):
    return [tuple(row.tolist()) for row in batch.t]


def test_without_a_seed_batches_are_one_pass_in_order():
    maker = make(series(12))
    starts = maker.starts(2)
    passes = [torch.cat([batch.t for batch in Batches(maker, starts, 4)]) for _ in range(2)]
    assert torch.equal(passes[0], maker.windows(starts)[0].t)
    assert torch.equal(passes[0], passes[1])


def test_with_a_seed_every_pass_draws_every_window_once_in_another_order():
    maker = make(series(14))
    starts = maker.starts(2)
    batches = Batches(maker, starts, 5, seed=3)
    assert batches.n_batches == 3
    drawn = [
        list(itertools.chain(*map(numbers, itertools.islice(batches, 3 * k, 3 * k + 3)))) for k in range(2)
    ]
    everything = sorted(numbers(maker.windows(starts)[0]))
    assert sorted(drawn[0]) == sorted(drawn[1]) == everything
    assert drawn[0] != drawn[1]


def test_windows_with_padding_keep_to_themselves():
    maker = make(series(30))
    batches = Batches(maker, maker.starts(2), 4, seed=0)
    kinds = [batch.visible.all(1).unique().tolist() for batch in itertools.islice(batches, batches.n_batches)]
    assert set(map(tuple, kinds)) == {(False,), (True,)}


def test_windows_that_all_have_padding_make_batches_too():
    maker = make(series(L + 1))
    starts = maker.starts(1)
    batches = Batches(maker, starts, 2, seed=0)
    drawn = list(itertools.islice(batches, batches.n_batches))
    assert sum(len(batch.y) for batch in drawn) == len(starts)
    assert not any(batch.visible.all() for batch in drawn)


def test_equal_seeds_draw_equal_batches_whatever_the_global_generator_does():
    maker = make(series(30))
    starts = maker.starts(2)

    def first(seed):
        torch.rand(1)
        return torch.cat([batch.y for batch in itertools.islice(Batches(maker, starts, 8, seed=seed), 5)])

    assert torch.equal(first(0), first(0))
    assert not torch.equal(first(0), first(1))
    before = torch.get_rng_state()
    next(iter(Batches(maker, starts, 8, seed=0, reorder=shuffle_targets)))
    assert torch.equal(torch.get_rng_state(), before)


def test_batches_are_never_larger_than_the_number_of_windows():
    maker = make(series(6))
    assert next(iter(Batches(maker, maker.starts(2), 100, seed=0))).y.shape[0] == 4


def test_shuffling_moves_targets_and_leaves_contexts():
    maker = make(series(30))
    starts = maker.starts(L)[: -T + 1]  # windows without padding
    plain, shuffled = (
        next(iter(Batches(maker, starts, 24, seed=0, reorder=r))) for r in (None, shuffle_targets)
    )
    assert torch.equal(plain.t[:, :L], shuffled.t[:, :L])
    assert not torch.equal(plain.t, shuffled.t)
    assert torch.equal(plain.t.sort(1).values, shuffled.t.sort(1).values)
    order = shuffled.t.argsort(1)
    assert torch.equal(shuffled.y[..., 0].gather(1, order), plain.y[..., 0])


def test_batches_hide_the_validation_part():
    maker = make(series(20))
    for batch in Batches(maker, maker.starts(2, keep=0.75), 4, last=0.75):
        times_left = batch.observed[:, L:, 0].sum(1)
        assert (times_left >= 1).all()
    hidden = [
        int((~batch.observed[:, L:]).sum())
        for batch in Batches(maker, maker.starts(2, keep=0.75), 100, last=0.75)
    ]
    assert hidden == [3]  # the last window sees one target of three, the one before two


@pytest.mark.parametrize("seed", [None, 0])
def test_covariates_of_the_past_are_hidden_at_the_targets(seed):
    """The last columns, before and after targets are put in another order."""
    maker = make(series(40, covariates=True))
    plain, hidden, mixed = (
        next(iter(Batches(maker, maker.starts(2), 8, seed, reorder=reorder, past_only=n)))
        for n, reorder in ((0, None), (1, None), (1, None if seed is None else shuffle_targets))
    )
    assert (hidden.covariates[:, L:, 1] == 0).all()
    assert (mixed.covariates[:, L:, 1] == 0).all()
    assert (mixed.covariates[:, L:, 0] != 0).any()
    assert (hidden.covariates[:, :L] == plain.covariates[:, :L]).all()
    assert (hidden.covariates[:, L:, 0] == plain.covariates[:, L:, 0]).all()
