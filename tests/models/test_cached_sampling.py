"""Sampling with a cache gives what the network gives when everything is computed anew."""

from __future__ import annotations

import dataclasses
from collections import Counter
from dataclasses import replace

import pytest
import torch

from taylorformer_forecast.core.families import components, draw
from taylorformer_forecast.core.sampling import sample_paths

pytestmark = pytest.mark.usefixtures("float64")

N_PATHS = 3


def values_of_paths(w, seed=11):
    """Different values of the targets for every path, (B, S, T, D)."""
    g = torch.Generator().manual_seed(seed)
    return torch.randn(w.y.shape[0], N_PATHS, w.n_targets, w.y.shape[2], generator=g)


def window_of_each_path(w, y, known=None):
    """One window for each path, of whose targets the first ``known`` (all by default) are observed."""
    wide = w.map(lambda value: value.repeat_interleave(N_PATHS, 0))
    everything, observed = wide.y.clone(), wide.observed.clone()
    everything[:, w.n_context :] = y.flatten(0, 1)
    observed[:, w.n_context :] = True
    if known is not None:
        observed[:, w.n_context + known :] = False
    return replace(wide, y=everything, observed=observed)


def largest_relative_difference(got, expected):
    return ((got - expected).abs() / expected.abs().clamp_min(1)).max().item()


def check_each_step(w, net, numbers, tolerance):
    """Compare every query on every path with the teacher-forced pass along that path."""
    y = values_of_paths(w)
    with torch.no_grad():
        expected = numbers(net(window_of_each_path(w, y))).unflatten(0, (-1, N_PATHS))
        state = net.encode(w, N_PATHS)
        for step in range(w.n_targets):
            got = numbers(net.query(state, step))
            assert largest_relative_difference(got, expected[:, :, step]) < tolerance
            state = net.observe(state, step, y[:, :, step])


# The last bits of single precision differ with the order of sums: 5e-6 is some forty roundings. The network
# without a cache is no closer to itself: up to 3e-6 lie between a window and its first points alone, and more
# between values that differ in their last bit.
@pytest.mark.parametrize(
    ("times", "missing", "dtype", "tolerance"),
    [
        ("irregular", "entries", torch.float64, 1e-12),
        ("irregular", "entries", torch.float32, 5e-6),
        ("unordered", "rows", torch.float64, 1e-12),
        ("regular", "entries", torch.float64, 1e-12),
        ("regular", "none", torch.float64, 1e-12),
    ],
)
def test_each_cached_step_equals_the_teacher_forced_row(any_case, times, missing, dtype, tolerance, numbers):
    torch.set_default_dtype(dtype)
    # What targets lack does not matter: on a path each of them has a value.
    w = any_case.window(times=times, missing=missing, missing_targets=missing)
    check_each_step(w, any_case.net(), numbers, tolerance)


def test_cached_steps_equal_the_teacher_forced_rows_where_times_of_the_context_are_equal(any_case, numbers):
    w = any_case.window()
    t = w.t.clone()
    t[:, 2] = t[:, 1]
    check_each_step(replace(w, t=t), any_case.net(), numbers, 1e-12)


@pytest.mark.parametrize("lacks", ["all", "a column", "all but one point"])
def test_cached_steps_equal_the_teacher_forced_rows_when_the_context_lacks_almost_everything(
    stepwise_case, lacks, numbers
):
    w = stepwise_case.window()
    observed = w.observed.clone()
    observed[
        0, 1 if lacks == "all but one point" else 0 : w.n_context, : 1 if lacks == "a column" else None
    ] = False
    check_each_step(replace(w, observed=observed), stepwise_case.net(), numbers, 1e-12)


def test_asking_twice_gives_the_same_and_disturbs_nothing(any_case, numbers):
    w, net = any_case.window(missing="entries"), any_case.net()
    y = values_of_paths(w)

    def rows(times_asked):
        state, out = net.encode(w, N_PATHS), []
        for step in range(w.n_targets):
            asked = [numbers(net.query(state, step)) for _ in range(times_asked)]
            assert all(torch.equal(answer, asked[0]) for answer in asked)
            out.append(asked[0])
            state = net.observe(state, step, y[:, :, step])
        return torch.stack(out)

    with torch.no_grad():
        assert torch.equal(rows(3), rows(1))


def rebuilt(parts, step):
    """Rebuild one step's distribution, for every path, from the components of a teacher-forced pass."""
    parts = parts.map(lambda value: value[:, step].unflatten(0, (-1, N_PATHS)))
    return parts.family.rebuild(parts)


def test_free_running_paths_equal_those_of_recomputing_everything_at_each_step(
    stepwise_case, missing, numbers
):
    w, net = stepwise_case.window(missing=missing), stepwise_case.net()
    cached = sample_paths(net, w, N_PATHS, torch.Generator().manual_seed(5))
    generator, y = torch.Generator().manual_seed(5), torch.zeros(cached.paths.shape)
    with torch.no_grad():
        for step in range(w.n_targets):
            now = rebuilt(components(net(window_of_each_path(w, y, known=step))), step)
            y[:, :, step] = draw(now, generator)
    assert largest_relative_difference(cached.paths, y) < 1e-9
    # And the conditionals of the paths are those of one teacher-forced pass along them.
    at_once = numbers(net(window_of_each_path(w, cached.paths))).unflatten(0, (-1, N_PATHS))
    present = [p.flatten(3) for p in cached.conditionals.tensors().values()]
    assert largest_relative_difference(torch.cat(present, -1), at_once) < 1e-12


def test_values_of_the_targets_are_ignored(stepwise_case):
    w, net = stepwise_case.window(missing="entries"), stepwise_case.net()
    y = w.y.masked_fill(~w.observed, float("nan"))
    y[:, w.n_context :] = float("nan")
    unknown = replace(w, y=y, observed=~torch.isnan(y))
    first, second = (sample_paths(net, v, 2, torch.Generator().manual_seed(1)).paths for v in (w, unknown))
    assert torch.equal(first, second)


# ---- what is stored and computed once -----------------------------------------------------------------


def storage(state):
    """List the bytes behind every tensor of a state by name."""
    found = Counter()

    def visit(value, name):
        if isinstance(value, torch.Tensor):
            found[name] += value.untyped_storage().nbytes()
        elif dataclasses.is_dataclass(value):
            for part in dataclasses.fields(value):
                visit(getattr(value, part.name), part.name)
        elif isinstance(value, list | tuple):
            for part in value:
                visit(part, name)

    visit(state, "state")
    return found


def test_only_what_belongs_to_a_path_grows_with_the_number_of_paths(stepwise_case):
    w, net = stepwise_case.window(missing="entries"), stepwise_case.net()
    with torch.no_grad():
        one, many = storage(net.encode(w, 1)), storage(net.encode(w, 50))
    grown = {name for name in one if many[name] != one[name]}
    assert grown == {"paths", "points", "added", "shocks", "drawn"} & set(one)
    assert "paths" in grown


def test_the_context_is_stored_once_for_all_paths(case):
    w, net = case.window(missing="entries"), case.net()
    for cache in net.encode(w, 50).streams.caches:
        assert cache.context.shape[:2] == (3, w.n_context)
        assert cache.paths.shape[:3] == (3, 50, w.n_targets)


def count_calls(net, module_of):
    """Count how often modules run, and on how many points."""
    calls = []
    for module in module_of(net):
        module.register_forward_hook(lambda _, args, out: calls.append(out.shape[1]))
    return calls


def test_the_stream_over_times_runs_once_for_all_steps_and_paths(case):
    w, net = case.window(), case.net()
    x_calls = count_calls(net, lambda n: [b.norm_feedforward for b in n.streams.x_blocks])
    weight_calls = count_calls(
        net, lambda n: [n.streams.x_last.attention.query, n.streams.x_last.attention.key]
    )
    encoding_calls = count_calls(net, lambda n: [n.streams.tokens.encoding])
    sample_paths(net, w, 4, torch.Generator().manual_seed(0))
    assert x_calls == [12] * len(net.streams.x_blocks)
    assert sorted(weight_calls) == [5, 12]  # queries of the targets, keys of all points
    assert encoding_calls == [12]


def test_the_context_passes_through_the_stream_over_values_once(case):
    w, net = case.window(), case.net()
    calls = [
        count_calls(net, lambda _, block=block: [block.norm_feedforward]) for block in net.streams.xy_blocks
    ]
    sample_paths(net, w, 4, torch.Generator().manual_seed(0))
    steps = [4] * w.n_targets  # one point of each path for each target
    assert calls == [[w.n_context, *steps]] * (len(calls) - 1) + [steps]
