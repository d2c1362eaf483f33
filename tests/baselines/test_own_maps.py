"""Maps of single series beside the one of all."""

import copy
import itertools
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.testing import assert_close as close

from taylorformer_forecast.baselines.linear import LinearBaseline
from taylorformer_forecast.baselines.linear_path import LinearPathBaseline, LinearTwoSidedBaseline
from taylorformer_forecast.baselines.ridge import blocks, ridge
from taylorformer_forecast.core.window import Window
from taylorformer_forecast.defaults import MOST_OWN_MAPS

L, H = 12, 5
KINDS = (LinearBaseline, LinearPathBaseline, LinearTwoSidedBaseline)


@pytest.fixture(autouse=True)
def _double():
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def cut(y, number):
    """Scaled windows of one series."""
    y = torch.as_tensor(y).unfold(0, L + H, 1)
    y = (y - y[:, :L].mean(1, keepdim=True)) / y[:, :L].std(1, keepdim=True)
    t = ((torch.arange(L + H) + 1.0 - L) / L).expand(len(y), -1)
    return Window(t, y[..., None], series=torch.full(y.shape, number), n_context=L)


def together(*parts):
    both = [torch.cat([getattr(p, name) for p in parts]) for name in ("t", "y", "observed", "series")]
    return Window(*both[:3], series=both[3], n_context=L)


def walk(n=300, seed=0):
    return np.random.default_rng(seed).normal(size=n).cumsum()


def season(n=300, seed=0, period=7, noise=0.1):
    return np.sin(2 * np.pi * np.arange(n) / period) + noise * np.random.default_rng(seed).normal(size=n)


def fitted(kind, *series, embargo=H - 1):
    baseline = kind(L, H)
    baseline.fit_closed_form(together(*(cut(y, k) for k, y in enumerate(series))), embargo)
    return baseline.eval()


def error(baseline, window):
    return (baseline(window) - window.targets[0]).abs().mean().item()


@pytest.mark.parametrize("kind", KINDS)
def test_a_season_beside_a_walk_is_forecast_as_well_as_alone(kind):
    both, alone = fitted(kind, walk(), season()), fitted(kind, season())
    new = cut(season(seed=1), 1)
    assert (len(both.own), len(alone.own)) == (2, 0)
    assert error(both, new) < 1.05 * error(alone, new)
    assert error(both, new) < 0.7 * error(both, replace(new, series=None))
    walking, steady = (both.scales(cut(make(seed=2), k)).mean() for k, make in enumerate((walk, season)))
    assert walking > 2 * steady  # in units of the deviation of a context


@pytest.mark.parametrize("kind", KINDS)
def test_one_series_has_the_map_of_all(kind):
    w = cut(season(), 0)
    numbered, plain = kind(L, H), kind(L, H)
    numbered.fit_closed_form(w, H - 1)
    plain.fit_closed_form(replace(w, series=None), H - 1)
    assert len(numbered.own) == 0
    for name, value in plain.state_dict().items():
        close(numbered.state_dict()[name], value, rtol=0, atol=0)


def test_series_of_the_same_kind_share_what_they_know():
    few = [season(n=L + H + 20, seed=seed, noise=0.5) for seed in range(16)]
    new = [cut(season(seed=99 + k, noise=0.5), k) for k in range(4)]
    alone = sum(error(fitted(LinearBaseline, few[k]), w) for k, w in enumerate(new))
    assert sum(error(fitted(LinearBaseline, *few), w) for w in new) < 0.97 * alone


def test_few_windows_of_one_series_or_too_many_series_leave_one_map():
    assert len(fitted(LinearBaseline, walk(), season(n=L + H + 10)).own) == 0
    many = [walk(60, seed) for seed in range(MOST_OWN_MAPS + 1)]
    assert len(fitted(LinearBaseline, *many).own) == 0
    assert len(fitted(LinearBaseline, *many[1:]).own) == MOST_OWN_MAPS


@pytest.mark.parametrize("kind", KINDS)
def test_windows_may_come_in_any_order_of_their_series(kind):
    w = together(cut(walk(), 0), cut(season(), 1))
    n = len(w.y) // 2
    mixed = w.rows(torch.arange(2 * n).view(2, n).T.flatten())  # side by side, as of a frame
    one, other = kind(L, H), kind(L, H)
    one.fit_closed_form(w, H - 1)
    other.fit_closed_form(mixed, H - 1)
    for name, value in one.state_dict().items():
        close(other.state_dict()[name], value, rtol=0, atol=0)


@pytest.mark.parametrize("kind", KINDS)
def test_windows_of_other_series_take_the_map_of_all(kind):
    baseline, w = fitted(kind, walk(), season()), cut(season(seed=3), 0)
    shared = copy.deepcopy(baseline)
    shared.own = torch.nn.ModuleList()
    for number in (-1, 2, 50):
        unknown = replace(w, series=torch.full_like(w.series, number))
        close(baseline(unknown), shared(w), rtol=0, atol=0)
        close(baseline.scales(unknown), shared.scales(w), rtol=0, atol=0)


@pytest.mark.parametrize("kind", KINDS)
def test_maps_of_single_series_are_stored_and_replaced_with_the_rest(kind):
    baseline = fitted(kind, walk(), season())
    new = kind(L, H)
    new.load_state_dict(baseline.state_dict())
    w = together(cut(walk(seed=4), 0), cut(season(seed=4), 1))
    close(new.eval()(w), baseline(w), rtol=0, atol=0)
    new.load_state_dict(fitted(kind, season()).state_dict())
    assert len(new.own) == 0


def test_paths_of_every_series_go_together_as_its_own_errors_do():
    r = np.random.default_rng(0)
    white, baseline = r.normal(size=600), LinearBaseline(L, H)
    w = together(cut(white, 0), cut(r.normal(size=600).cumsum(), 1))
    baseline.fit_closed_form(w, H - 1)
    few = together(*(cut(walk(L + H), k) for k in range(2)))
    noise = baseline.noise(few, 4000, torch.Generator().manual_seed(0))[..., 0]
    close(noise.std(1), torch.ones(2, H), rtol=0, atol=0.05)
    first, second = (torch.corrcoef(paths.T)[0, 1].item() for paths in noise)
    assert abs(first) < 0.15
    assert second > 0.5


def test_blocks_of_cross_validation_are_contiguous_within_each_series():
    x, y = torch.randn(40, 3), torch.randn(40, 2)
    known = torch.ones(40, 2, dtype=torch.bool)
    parts = [part.tolist() for part, _ in blocks(x, y, known, 0, False, (0, 24, 40))]
    assert parts[0] == [*range(6), *range(24, 28)]
    assert sorted(itertools.chain.from_iterable(parts)) == list(range(40))


def test_windows_that_share_targets_with_a_block_are_left_out_of_its_fit():
    x, y = torch.randn(80, 3), torch.randn(80, 2)
    y[17:43] = 1e6  # the block of windows 20 to 39, and three on both sides
    known = torch.ones(80, 2, dtype=torch.bool)
    others = torch.ones(80, dtype=torch.bool)
    others[17:43] = False
    (_, found), expected = (
        blocks(x, y, known, 3, True)[1],
        ridge(x[others], y[others], known[others], True),
    )
    for name, value in vars(expected).items():
        close(getattr(found, name), value)
