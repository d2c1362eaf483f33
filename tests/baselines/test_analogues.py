"""What followed similar windows of the past."""

import numpy as np
import pytest

from taylorformer_forecast.baselines.analogues import analogue_paths
from taylorformer_forecast.defaults import N_ANALOGUES


def sawtooth(n=240, seed=0):
    """Cycles of 8 to 15 steps that rise slowly and fall at once."""
    rng = np.random.default_rng(seed)
    cycles = [np.arange(length) / length for length in rng.integers(8, 16, n)]
    return np.concatenate(cycles)[:n] + 0.02 * rng.normal(size=n)


def test_a_cycle_without_a_fixed_length_goes_on_as_it_did():
    losses = []
    for seed in range(8):
        y = sawtooth(400, seed)
        paths = analogue_paths(y[:-3], [], 3)
        losses.append([np.abs(np.median(paths, 0) - y[-3:]).mean(), np.abs(y[-4] - y[-3:]).mean()])
    ours, naive = np.mean(losses, 0)
    assert ours < 0.7 * naive


def test_there_are_as_many_paths_of_every_length():
    y = sawtooth()
    assert analogue_paths(y, [], 4).shape == (2 * N_ANALOGUES, 4)
    assert analogue_paths(y, [10, 25], 4).shape == (4 * N_ANALOGUES, 4)
    assert analogue_paths(y, [10, 200], 4).shape == (2 * N_ANALOGUES, 4)  # the second is too long


@pytest.mark.parametrize(("factor", "offset"), [(1e9, 0.0), (1e-9, 0.0), (1.0, 1e6), (-3.0, 2.0)])
def test_units_do_not_matter(factor, offset):
    y = sawtooth()
    moved = analogue_paths(factor * y + offset, [10], 5)
    np.testing.assert_allclose(moved, factor * analogue_paths(y, [10], 5) + offset, rtol=1e-6)


def test_what_follows_is_moved_to_the_level_and_deviation_of_the_latest_values():
    season = np.sin(2 * np.pi * np.arange(200) / 10)
    y = np.concatenate([season[:180], 50 + 1.5 * season[180:]])
    found = np.median(analogue_paths(y, [10], 5), 0)  # of one, the jump follows
    assert found == pytest.approx(50 + 1.5 * np.sin(2 * np.pi * np.arange(200, 205) / 10), abs=0.6)


def test_a_whole_horizon_that_was_observed_follows_every_analogue():
    """The windows most like the latest one end shortly before it."""
    y = np.random.default_rng(0).normal(size=300)
    y[-12:] += np.tile([5.0, -5.0], 6)
    pieces = np.lib.stride_tricks.sliding_window_view(y, 5)
    pieces = pieces - pieces.mean(1, keepdims=True)
    for path in analogue_paths(y, [], 5):
        path = path - path.mean()
        factor = (pieces @ path) / (pieces**2).sum(1)
        assert np.abs(path - factor[:, None] * pieces).max(1).min() < 1e-9


@pytest.mark.parametrize(
    "y", [np.full(300, 4.0), np.zeros(300), sawtooth(60)], ids=["constant", "zero", "short"]
)
def test_there_are_none_where_nothing_can_be_compared(y):
    assert analogue_paths(y, [12], 6) is None


def test_flat_windows_are_like_flat_windows():
    """A series that moves now and then, and is flat at its end."""
    y = np.zeros(300)
    y[40:50] = y[140:150] = np.arange(10.0)
    paths = analogue_paths(y, [], 4)
    assert np.isfinite(paths).all()
    assert np.median(np.abs(paths)) == 0
