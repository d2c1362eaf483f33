"""The linear baseline: its grid, its closed form, its errors."""

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.testing import assert_close as close

from taylorformer_forecast.baselines.linear import LinearBaseline
from taylorformer_forecast.baselines.residuals import Residuals
from taylorformer_forecast.baselines.shrinkage import seasonal_gaps
from taylorformer_forecast.core.temporal import on_grid
from taylorformer_forecast.core.window import Window
from taylorformer_forecast.defaults import LARGEST_FULL_MAP, LOW_RANK

L, H = 12, 5


@pytest.fixture(autouse=True)
def _double():
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def windows(y, n_context=L, n_targets=H, missing=()):
    """All windows of a series, times as the scaled windows of training have them."""
    y = torch.as_tensor(np.asarray(y, dtype=float))
    cut = y.unfold(0, n_context + n_targets, 1).clone()
    for row in missing:
        cut[:, row] = torch.nan
    t = (torch.arange(n_context + n_targets) + 1.0 - n_context) / n_context
    return Window(t.expand(len(cut), -1), cut[..., None], n_context=n_context)


def wave(n=200, noise=0.0):
    t = np.arange(n)
    return (
        np.sin(2 * np.pi * t / 8)
        + 0.3 * np.cos(2 * np.pi * t / 5)
        + noise * np.random.default_rng(0).normal(size=n)
    )


def test_a_complete_regular_context_is_its_own_grid():
    w = windows(wave())
    close(on_grid(w, L), w.y[:, :L])


def test_gaps_and_irregular_times_are_bridged_by_lines():
    t = torch.tensor([[-9.0, -3.0, -2.0, 0.0, 1.0]]) / 4  # steps, the context 4 steps long
    y = torch.tensor([[[7.0], [3.0], [torch.nan], [6.0], [0.0]]])
    close(on_grid(Window(t, y, n_context=4), 4).flatten(), torch.tensor([3.0, 4.0, 5.0, 6.0]))


def test_the_grid_does_not_look_at_targets_nor_at_times_of_points_that_were_not_observed():
    w = windows(wave(), missing=[3, 4])
    moved = w.t.clone()
    moved[:, 3:5] = 100.0
    y = w.y.clone()
    y[:, L:] = 99.0
    close(on_grid(replace(w, t=moved, y=y), L), on_grid(w, L))


def test_columns_that_miss_different_points_are_bridged_each_by_itself():
    a, b = windows(wave(), missing=[2, 3]), windows(wave() ** 2, missing=[7])
    both = Window(a.t, torch.cat([a.y, b.y], 2), torch.cat([a.observed, b.observed], 2), n_context=L)
    close(on_grid(both, L), torch.cat([on_grid(a, L), on_grid(b, L)], 2))


def test_before_the_fit_the_last_value_is_repeated():
    w = windows(wave())
    close(LinearBaseline(L, H)(w), w.y[:, L - 1 : L].expand(-1, H, -1))
    close(LinearBaseline(L, H).scales(w), torch.ones(len(w.y), H, 1))


def test_what_is_linear_in_the_past_is_forecast_exactly():
    w = windows(wave())
    linear = LinearBaseline(L, H)
    inside, outside = linear.fit_map(w, embargo=H)
    close(linear(w), w.targets[0], atol=1e-3, rtol=0)
    assert outside.error.abs().max() < 1e-2
    close(inside.error, (w.targets[0] - linear(w))[..., 0])


def test_the_fit_is_that_of_ridge_regression():
    w = windows(wave(400, noise=0.5))
    linear = LinearBaseline(L, H)
    linear.fit_map(w, embargo=H)
    x, y = w.y[:, :L, 0], w.targets[0][..., 0]
    # Some penalty, and zero or a repetition to shrink to: at the optimum the gradient is along that penalty.
    error = y - linear(w)[..., 0]
    gradient = x.mT @ error / len(x)
    weight = linear.map.steps.weight.mT
    candidates = [torch.zeros_like(weight)]
    for period in range(1, L + 1):
        repeat = torch.zeros_like(weight)
        repeat[L - period + torch.arange(H) % period, torch.arange(H)] = 1.0
        candidates.append(repeat)
    misfits = []
    for shape in candidates:
        deviation = weight - shape
        penalty = (gradient * deviation).sum() / deviation.square().sum()
        misfits.append((gradient - penalty * deviation).abs().max())
    assert min(misfits) < 1e-10


def rising(n, rng):
    """Return windows of a line with noise: all rise, and nothing else tells them apart."""
    return windows(0.3 * np.arange(float(n)) + rng.normal(size=n))


@pytest.mark.parametrize(("n", "fitted"), [(40, False), (400, True)])
def test_a_drift_is_fitted_where_windows_that_share_no_targets_show_it(n, fitted):
    w = rising(n, np.random.default_rng(0))
    linear = LinearBaseline(L, H)
    linear.fit_map(w, embargo=H - 1 if fitted else 2 * H)
    assert bool(linear.map.steps.bias.any()) == fitted


def test_without_a_drift_a_window_upside_down_has_its_forecast_upside_down():
    w = windows(wave(60, noise=0.3))
    linear = LinearBaseline(L, H)
    linear.fit_map(w, embargo=H)
    turned = Window(w.t, -w.y, w.observed, n_context=L)
    close(linear(turned), -linear(w))


def test_errors_outside_the_fit_are_larger_and_those_of_new_windows():
    rng = np.random.default_rng(1)
    w = windows(rng.normal(size=100))
    linear = LinearBaseline(L, H)
    inside, outside = linear.fit_map(w, embargo=H)
    assert inside.error.std() < outside.error.std()
    fresh = windows(rng.normal(size=4000))
    new = (fresh.targets[0] - linear(fresh)).std()
    close(outside.error.std(), new, rtol=0.15, atol=0)
    linear.fit_closed_form(w, embargo=H)
    linear.train()
    close(linear.scales(w)[0, :, 0].log(), inside.log_scale(H))
    linear.eval()
    assert (linear.scales(w) >= torch.exp(inside.log_scale(H))[:, None]).all()
    close(linear.scales(w).mean(), new, rtol=0.15, atol=0)


def test_missing_targets_are_left_out_of_the_fit():
    w = windows(wave(400, noise=0.1))
    torch.manual_seed(0)
    observed = w.observed.clone()
    observed[:, L:] &= torch.rand(len(observed), H, 1) > 0.3
    some = replace(w, y=torch.where(observed, w.y, 1e6), observed=observed)
    linear, whole = LinearBaseline(L, H), LinearBaseline(L, H)
    linear.fit_map(some, embargo=H)
    whole.fit_map(w, embargo=H)
    assert (linear(w) - whole(w)).std() < 0.05


def test_a_missing_value_takes_hardly_a_window_from_the_fit():
    """Those with it in their context were left out, and with them the only weekend that was seen."""
    y = wave(60)
    y[30] = np.nan
    cut = windows(y)
    assert len(LinearBaseline(L, H)._usable(cut, H).y) == len(cut.y) - 1  # that which begins with it


def test_contexts_that_lack_most_are_left_out_where_others_are_enough():
    y = wave(200, noise=0.05)
    gappy = y.copy()
    gappy[60:100] = np.nan
    w, some, parts = windows(y), LinearBaseline(L, H), LinearBaseline(L, H)
    some.fit_map(windows(gappy), embargo=H)
    cut = windows(gappy)
    parts.fit_map(cut.rows(cut.observed[:, :L, 0].double().mean(1) >= 0.5), embargo=H)
    close(some(w), parts(w), rtol=0.0, atol=1e-9)


def test_few_windows_leave_the_map_as_it_is():
    w = windows(wave(L + H + 3))
    linear = LinearBaseline(L, H)
    assert linear.fit_map(w) is None
    close(linear(w), w.y[:, L - 1 : L].expand(-1, H, -1))


def test_between_steps_forecasts_lie_on_lines_and_beyond_the_last_it_goes_on():
    linear = LinearBaseline(L, H)
    linear.fit_map(windows(wave()))
    w = windows(wave())
    steps = torch.cat([w.y[:, L - 1 : L], linear(w)], 1)
    t = torch.tensor([0.25, 1.5, 4.75, 5.0, 9.0]) / L
    off = replace(w, t=torch.cat([w.t[:, :L], t.expand(len(w.t), -1)], 1))
    expected = [
        0.75 * steps[:, 0] + 0.25 * steps[:, 1],
        0.5 * steps[:, 1] + 0.5 * steps[:, 2],
        0.25 * steps[:, 4] + 0.75 * steps[:, 5],
        steps[:, 5],
        steps[:, 5],
    ]
    close(linear(off), torch.stack(expected, 1))


def test_a_shift_is_a_gap_before_the_first_step():
    w = windows(wave(), n_targets=H + 3)
    late = Window(
        torch.cat([w.t[:, :L], w.t[:, L + 3 :]], 1),
        torch.cat([w.y[:, :L], w.y[:, L + 3 :]], 1),
        n_context=L,
    )
    linear = LinearBaseline(L, H, shift=3)
    linear.fit_map(late)
    close(linear(late), late.targets[0], atol=1e-3, rtol=0)


def test_a_large_map_has_a_low_rank_and_forecasts_as_well():
    n_context, horizon = 1100, 960
    assert n_context * horizon > LARGEST_FULL_MAP
    t = np.arange(4000)
    w = windows(np.sin(2 * np.pi * t / 50), n_context, horizon)
    w = w.rows(torch.arange(0, len(w.y), 8))
    linear = LinearBaseline(n_context, horizon)
    assert sum(p.numel() for p in linear.map.parameters()) <= LOW_RANK * (n_context + horizon) + horizon
    linear.fit_map(w)
    assert (linear(w) - w.targets[0]).abs().max() < 0.05


def test_nothing_of_a_linear_forecast_is_trained_by_gradients():
    assert not [name for name, p in LinearBaseline(L, H).named_parameters() if p.requires_grad]


def test_the_errors_of_a_random_walk_follow_the_last_one():
    rng = np.random.default_rng(0)
    error = torch.as_tensor(rng.normal(size=(500, 8)).cumsum(1))
    observed = torch.ones_like(error, dtype=torch.bool)
    residuals = Residuals(error, observed)
    weights = residuals.autoregression(3, 10)
    close(weights[1:], torch.tensor([0.0, 0.0, 1.0]).expand(9, -1).double(), atol=0.1, rtol=0)
    close(residuals.after(weights).log_scale(10), torch.zeros(10).double(), atol=0.1, rtol=0)


@pytest.mark.parametrize("kind", ["a few windows far off", "fading"])
def test_paths_of_errors_spread_as_the_errors_do(kind):
    rng = np.random.default_rng(0)
    error = rng.normal(size=(800, 30)).cumsum(1)
    if kind == "fading":  # errors that have come back to zero: an autoregression knows nothing of that
        error *= np.linspace(1.0, 0.05, 30)
    else:
        error = 0.2 * rng.normal(size=(800, 30)) + 3.0 * (rng.random((800, 1)) < 0.05)
    residuals = Residuals(torch.as_tensor(error), torch.ones(800, 30, dtype=torch.bool))
    weights = residuals.autoregression(8, 30)
    noise = residuals.after(weights).error.square().mean(0).sqrt()
    path = torch.zeros(20_000, 30, dtype=torch.float64)
    g = torch.Generator().manual_seed(0)
    for step in range(30):
        before = path[:, max(0, step - 8) : step]
        predicted = before @ weights[step, 8 - before.shape[1] :]
        path[:, step] = predicted + noise[step] * torch.randn(20_000, generator=g, dtype=torch.float64)
    ratio = path.std(0) / residuals.error.square().mean(0).sqrt()
    assert (ratio - 1).abs().max() < 0.1


def test_targets_between_steps_count_where_the_steps_are():
    """A smooth wave at irregular times: as good a forecast as from a regular grid, at irregular times too."""
    g = torch.Generator().manual_seed(0)
    n, gap = 300, 20.0  # steps of a period
    start = 100 * torch.rand(n, 1, generator=g, dtype=torch.float64)
    jitter = 0.4 * (torch.rand(n, L + H, generator=g, dtype=torch.float64) - 0.5)
    jitter[:, L - 1] = 0.0
    t = torch.arange(L + H) + 1.0 - L + jitter
    y = torch.sin(2 * torch.pi * (start + t) / gap)[..., None]
    w = Window(t / L, y, n_context=L)
    linear = LinearBaseline(L, H)
    inside, _ = linear.fit_map(w)
    assert inside.observed[:, : H - 1].all()
    early = slice(0, H - 1)
    assert (linear(w) - w.targets[0])[:, early].abs().mean() < 0.06


def test_a_shift_that_nothing_predicts_is_left_out():
    """A shift of the level: windows before it do not say that it comes again."""
    y = np.where(np.arange(80) < 60, 1.0, 100.0) + 0.01 * np.random.default_rng(0).normal(size=80)
    raw = windows(y)
    mean, deviation = raw.y[:, :L].mean(1, keepdim=True), raw.y[:, :L].std(1, keepdim=True).clamp_min(0.7)
    w = replace(raw, y=(raw.y - mean) / deviation)
    linear = LinearBaseline(L, H)
    linear.fit_map(w, embargo=H)
    after = w.rows(slice(-1, None))
    assert (linear(after) * deviation[-1] + mean[-1] - 100.0).abs().max() < 1.0


def test_forecasts_stay_near_the_range_of_their_context():
    net = LinearBaseline(6, 4)
    net.map.steps.weight.mul_(50.0)
    y = torch.tensor([0.0, 0.0, 1.0, 0.0, 2.0, 1.0, 0.0, 0.0, 0.0, 0.0])
    loc = net(Window(torch.arange(-5.0, 5.0)[None] / 6, y[None, :, None], n_context=6)).flatten()
    assert loc.tolist() == pytest.approx([2 + 2 * (1 + h / 5) for h in (1, 2, 3, 4)])
    constant = net(Window(torch.arange(-5.0, 5.0)[None] / 6, torch.ones(1, 10, 1), n_context=6))
    assert torch.equal(constant, torch.ones_like(constant))


def test_a_map_of_low_rank_to_few_steps_keeps_all_that_was_fitted():
    n_context, horizon = 12_000, 90
    assert n_context * horizon > LARGEST_FULL_MAP
    w = windows(np.random.default_rng(0).normal(size=12_300), n_context, horizon)
    linear = LinearBaseline(n_context, horizon)
    inside, _ = linear.fit_map(w)
    close(w.targets[0][..., 0] - linear(w)[..., 0], inside.error)


MEASURE = """
import resource, sys
import numpy as np
from taylorformer_forecast.baselines.linear import LinearBaseline
from taylorformer_forecast.engine.windows import Batches, Series, WindowMaker

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (2**30 if sys.platform == "darwin" else 2**20)

n_context, horizon = map(int, sys.argv[1:])
before = peak()
t = np.arange(3.0 * (n_context + horizon) + 5000)
y = np.sin(t / 7) + np.random.default_rng(0).normal(size=len(t))
maker = WindowMaker([Series(t, y[:, None])], n_context, horizon, n_context)
window, embargo = Batches(maker, maker.starts(n_context), 32).sample()
linear = LinearBaseline(n_context, horizon)
linear.fit_closed_form(window, embargo)
print(peak() - before, float(linear.log_scale.std()) > 0)
"""


@pytest.mark.parametrize(("n_context", "horizon"), [(336, 720), (5760, 5760)])
def test_the_memory_of_a_fit_is_bounded_whatever_the_lengths(n_context, horizon):
    command = [sys.executable, "-c", MEASURE, str(n_context), str(horizon)]
    found = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    assert float(found[0]) < 1.0, "GiB"
    assert found[1] == "True"


def rising_wave(n, period=12.0):
    t = torch.arange(float(n))
    return 3 * torch.sin(2 * torch.pi * t / period) + 0.05 * t


GAPS = {"in the middle": (20, 32), "near the end": (30, 46), "at the end": (40, 48), "two seasons": (20, 45)}


@pytest.mark.parametrize("name", GAPS)
def test_a_long_gap_is_read_as_the_season_before_it(name):
    """A wave on a line is a season and a difference that stays."""
    linear, y = LinearBaseline(48, 12), rising_wave(400)
    windows = y.unfold(0, 60, 1)[..., None]
    t = torch.arange(-47.0, 13.0).expand(len(windows), -1) / 48
    linear.fit_closed_form(Window(t, windows, n_context=48))
    assert linear.seasonal[0] == 12
    whole = windows[-1:]
    observed = torch.ones_like(whole, dtype=torch.bool)
    observed[:, slice(*GAPS[name])] = False
    found = linear(Window(t[:1], whole, observed, n_context=48))
    close(found, linear(Window(t[:1], whole, n_context=48)), atol=1e-6, rtol=0.0)
    close(found, whole[:, 48:], atol=1e-2, rtol=0.0)


def test_without_a_season_and_in_short_gaps_values_are_on_the_line():
    assert seasonal_gaps(torch.randn(80, 24).cumsum(1)) == (1, 1)
    smooth = rising_wave(200, 40.0) - 0.05 * torch.arange(200.0)
    smooth = smooth + 0.1 * torch.randn(200, generator=torch.Generator().manual_seed(0))
    season, gap = seasonal_gaps(smooth.unfold(0, 100, 1))
    assert season == 40
    assert 1 < gap < 12
    y = smooth[:100].view(1, -1, 1)
    observed = torch.ones_like(y, dtype=torch.bool)
    observed[:, 60 : 59 + gap] = False
    window = Window(torch.arange(-99.0, 1.0)[None] / 100, y, observed, n_context=100)
    found = on_grid(window, 100, (season, gap))
    assert torch.equal(found, on_grid(window, 100))
    observed[:, 60 : 60 + gap] = False
    assert not torch.equal(on_grid(window, 100, (season, gap)), on_grid(window, 100))


def test_a_multiple_of_a_season_fills_no_gaps():
    """It is as near, and by chance nearer: a series of fewer values would have no such season."""
    seeds = range(8)
    noise = [torch.randn(700, generator=torch.Generator().manual_seed(seed)) for seed in seeds]
    days = [torch.sin(torch.arange(700.0) * torch.pi / 12) + 0.15 * one for one in noise]
    assert [seasonal_gaps(one.unfold(0, 200, 1))[0] for one in days] == [24] * len(seeds)


def test_a_context_that_reaches_back_before_the_first_value_repeats_the_first_season():
    y = torch.sin(torch.arange(96.0) * torch.pi / 12).view(1, -1, 1)
    t = torch.arange(-95.0, 1.0)[None] / 96
    for first, least in ((60, 0), (72, 0), (80, 80)):  # the last has seen no whole season
        observed = torch.ones_like(y, dtype=torch.bool)
        observed[:, :first] = False
        found = on_grid(Window(t, y, observed, n_context=96), 96, (24, 5))
        close(found[:, least:], y[:, least:], atol=1e-6, rtol=0.0)


def test_the_season_that_fills_gaps_is_a_part_of_the_state():
    linear = LinearBaseline(8, 4)
    linear.seasonal = 3, 2
    other = LinearBaseline(8, 4)
    other.load_state_dict(linear.state_dict())
    assert other.seasonal == (3, 2)
