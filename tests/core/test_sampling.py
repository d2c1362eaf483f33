"""Sample paths of networks whose joint distribution is known."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch.distributions import Normal

from taylorformer_forecast.core.families import Components, find_family
from taylorformer_forecast.core.protocol import ForecastNet
from taylorformer_forecast.core.rolling import forecast_paths
from taylorformer_forecast.core.sampling import PathSamples, sample_paths
from taylorformer_forecast.core.scaling import Scale, scale_window
from taylorformer_forecast.core.window import Window
from taylorformer_forecast.models.taylorformer import Taylorformer

pytestmark = pytest.mark.usefixtures("float64")


class RandomWalk(ForecastNet):
    """Every target is the previous value plus noise; a list keeps what was asked for."""

    def __init__(self, std=0.5):
        super().__init__(find_family("normal"))
        self.std, self.calls, self.windows = std, [], []

    def encode(self, window, n_paths):
        self.windows.append(window)
        self.calls.append(("encode", window.y.shape[0]))
        return window.y[:, window.n_context - 1, None].repeat(1, n_paths, 1)

    def query(self, state, step):
        self.calls.append(("query", step))
        return Normal(state, torch.full_like(state, self.std))

    def observe(self, state, step, y):
        self.calls.append(("observe", step))
        return y


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def test_the_context_is_encoded_once_and_each_target_asked_for_then_observed_in_order(make_window):
    net = RandomWalk()
    sample_paths(net, make_window(n_targets=3), n_paths=4, generator=generator())
    steps = [(name, step) for step in range(3) for name in ("query", "observe")]
    assert net.calls == [("encode", 3), *steps]


def test_paths_are_joint_draws_not_independent_marginals(make_window):
    w = make_window(n_windows=2, n_targets=4)
    paths = sample_paths(RandomWalk(), w, n_paths=4000, generator=generator()).paths[..., 0]
    moved = paths - w.y[:, w.n_context - 1, 0, None, None]
    expected = 0.25 * torch.minimum(
        *torch.meshgrid(torch.arange(1.0, 5), torch.arange(1.0, 5), indexing="ij")
    )
    for b in range(2):
        torch.testing.assert_close(moved[b].T.cov(), expected, rtol=0.1, atol=0.02)
        assert moved[b].mean(0).abs().max() < 0.06


def test_conditionals_are_those_that_the_points_were_drawn_from(make_window):
    w = make_window(n_targets=4)
    out = sample_paths(RandomWalk(), w, n_paths=6, generator=generator())
    last = w.y[:, None, w.n_context - 1 : w.n_context].expand(3, 6, 1, 1)
    assert torch.equal(out.conditionals.loc[..., 0], torch.cat([last, out.paths[:, :, :-1]], 2))
    assert (out.conditionals.scale == 0.5).all()


def test_paths_repeat_with_their_generator_and_leave_the_global_one_alone(make_window):
    w, before = make_window(), torch.get_rng_state()
    first, second = (sample_paths(RandomWalk(), w, 5, generator(3)).paths for _ in range(2))
    assert torch.equal(first, second)
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize(
    ("max_rows", "sizes"), [(100, [5]), (20, [5]), (12, [3, 2]), (4, [1] * 5), (5, [1] * 5)]
)
def test_windows_are_processed_in_pieces_that_fit_in_memory(make_window, max_rows, sizes):
    w, net = make_window(n_windows=5, dim_y=2), RandomWalk()
    out = sample_paths(net, w, n_paths=4, generator=generator(), max_rows=max_rows)
    assert [size for name, size in net.calls if name == "encode"] == sizes
    g, start = generator(), 0
    for size in sizes:
        piece = sample_paths(RandomWalk(), w.rows(slice(start, start + size)), 4, g)
        assert torch.equal(out.paths[start : start + size], piece.paths)
        assert torch.equal(out.conditionals.loc[start : start + size], piece.conditionals.loc)
        start += size


def test_paths_of_a_window_are_drawn_in_groups_that_fit_in_memory(make_window, monkeypatch):
    w, net = make_window(n_windows=2, n_targets=4), RandomWalk()
    monkeypatch.setattr(
        "taylorformer_forecast.core.sampling.CACHED_AT_ONCE", 12
    )  # three paths of four targets
    out = sample_paths(net, w, n_paths=7, generator=generator())
    assert out.paths.shape == (2, 7, 4, 1)
    assert len([name for name, _ in net.calls if name == "encode"]) == 2 * 3
    g, parts = generator(), []
    for size in (3, 3, 1):
        parts.append(sample_paths(RandomWalk(), w.rows(slice(0, 1)), size, g))
    assert torch.equal(out.paths[:1], torch.cat([part.paths for part in parts], 1))
    assert torch.equal(out.conditionals.loc[:1], torch.cat([part.conditionals.loc for part in parts], 1))


def test_samples_return_to_the_data_with_their_conditionals_in_double_precision():
    draws = torch.randn(2, 3, 4, 2, generator=generator())
    loc, std = torch.randn(2, 3, 4, 2, 1, generator=generator(1)), torch.rand(2, 3, 4, 2, 1)
    scale = Scale(torch.tensor([[[1e9, 2.0]], [[-5.0, 0.0]]]), torch.tensor([[[10.0, 0.1]], [[2.0, 3.0]]]))
    family, shape = find_family("studentt"), {"df": torch.full_like(loc, 5.0)}
    scaled = PathSamples(draws.float(), Components(family, loc.float(), std.float(), shape=shape))
    out = scaled.to_data(scale)
    assert out.paths.dtype == out.conditionals.loc.dtype == out.conditionals.scale.dtype == torch.float64
    for b in range(2):
        for d in range(2):
            shift, factor = scale.loc[b, 0, d], scale.scale[b, 0, d]
            torch.testing.assert_close(
                out.paths[b, ..., d], draws[b, ..., d].float().double() * factor + shift
            )
            torch.testing.assert_close(
                out.conditionals.loc[b, ..., d, :], loc[b, ..., d, :].float().double() * factor + shift
            )
            torch.testing.assert_close(
                out.conditionals.scale[b, ..., d, :], std[b, ..., d, :].float().double() * factor
            )
    assert (out.conditionals.shape["df"] == 5).all()


def test_sampling_keeps_no_gradients(make_window):
    w = make_window()
    w.y.requires_grad_()
    assert not sample_paths(RandomWalk(), w, 2, generator()).paths.requires_grad


# ---- from data to data, over horizons longer than the network's ---------------------------------------


def test_a_forecast_scales_samples_and_returns_to_the_data(make_window):
    w = make_window(dim_y=2, missing="entries")
    w = Window(w.t, 100 + 7 * w.y, w.observed, n_context=w.n_context)
    scaled, scale = scale_window(w, time_unit=3.0, floor=0.1)
    expected = sample_paths(RandomWalk(), scaled, 4, generator()).to_data(scale)
    got = forecast_paths(RandomWalk(), w, 4, time_unit=3.0, floor=0.1, generator=generator())
    assert torch.equal(got.paths, expected.paths)
    assert torch.equal(got.conditionals.loc, expected.conditionals.loc)


@pytest.mark.parametrize("max_targets", [1, 2, 3, 5, 9])
@pytest.mark.parametrize("n_paths", [1, 4])
def test_beyond_the_networks_horizon_each_path_goes_on_from_its_own_last_points(
    make_window, max_targets, n_paths
):
    w = make_window(n_windows=2, n_context=3, n_targets=5, dim_y=2, dim_covariates=1, missing_targets="rows")
    net, floor = RandomWalk(), torch.rand(2, 1, 2, generator=generator(5))
    out = forecast_paths(
        net, w, n_paths, 2.0, floor, max_targets=max_targets, generator=generator(), max_rows=10**6
    )
    assert out.paths.shape == (2, n_paths, 5, 2)
    assert out.conditionals.loc.shape == (2, n_paths, 5, 2, 1)
    known = torch.cat([w.y[:, None, :3].expand(-1, n_paths, -1, -1), out.paths], 2)  # (B, S, 8, D)
    starts = range(0, 5, max_targets)
    assert len(net.windows) == len(starts)
    for start, window in zip(starts, net.windows, strict=True):
        end = min(start + max_targets, 5)
        assert window.n_context == 3
        assert window.n_targets == end - start
        for b in range(2):
            for s in range(n_paths):
                context = known[b, s, start : start + 3]
                std = torch.maximum(context.std(0, unbiased=False), floor[b, 0])
                row = b if start == 0 else b * n_paths + s
                torch.testing.assert_close(window.y[row, :3], (context - context.mean(0)) / std)
                times = w.t[b, start : end + 3]
                torch.testing.assert_close(window.t[row], (times - times[2]) / 2)
                assert torch.equal(window.covariates[row], w.covariates[b, start : end + 3])
                assert window.observed[row, :3].all()
                # A step of the walk has standard deviation 0.5 in units of the window's scale.
                scale = out.conditionals.scale[b, s, start:end, :, 0]
                torch.testing.assert_close(scale, (0.5 * std).expand_as(scale))
    last = torch.cat([w.y[:, None, 2:3].expand(-1, n_paths, -1, -1), out.paths[:, :, :-1]], 2)
    torch.testing.assert_close(out.conditionals.loc[..., 0], last)


def test_observed_targets_are_kept_and_the_others_are_conditional_on_them(make_window):
    net = Taylorformer(d_model=8, n_heads=2, n_layers=2, both_sides=True).eval()
    w = make_window(n_windows=2, n_context=6, n_targets=4, times="unordered")
    observed = w.observed.clone()
    observed[:, -2:] = False  # the first two are known
    w = replace(w, observed=observed)
    samples = sample_paths(net, w, 3, torch.Generator().manual_seed(0), keep_observed=True)
    assert (samples.paths[:, :, :2] == w.y[:, None, 6:8]).all()
    y = torch.cat([w.y[:, :6].repeat_interleave(3, 0), samples.paths.flatten(0, 1)], 1)
    with torch.no_grad():
        expected = net(Window(w.t.repeat_interleave(3, 0), y, n_context=6)).mean
    assert torch.allclose(samples.conditionals.loc[..., 0].flatten(0, 1), expected, atol=1e-5)
    free = sample_paths(net, w, 3, torch.Generator().manual_seed(0))
    assert (free.paths[:, :, :2] != w.y[:, None, 6:8]).all()
