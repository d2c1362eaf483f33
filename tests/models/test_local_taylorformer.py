"""The network with local attention: its window, and that sampling sees exactly the same one."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from taylorformer_forecast.core.attention.kernels import Full, Kernel
from taylorformer_forecast.core.attention.local import Local
from taylorformer_forecast.core.attention.prob import Prob
from taylorformer_forecast.core.window import Window
from taylorformer_forecast.models.taylorformer import Taylorformer

pytestmark = pytest.mark.usefixtures("float64")


class Banded(Full):
    """Full attention under a dense mask of the window."""

    def __init__(self, window):
        self.window = window

    def __call__(self, q, k, v, mask=None, scale=None):
        n = k.shape[2]
        query, key = torch.arange(n - q.shape[2], n)[:, None], torch.arange(n)
        band = (key <= query) & (key > query - self.window)
        return Full()(q, k, v, band[None] if mask is None else mask & band, scale)

    def one_query(self, query, points, scale):
        return Full().one_query(query, points.last(self.window), scale)


@pytest.mark.parametrize("attention", ["prob", Prob(factor=2), lambda q, k, v, mask, scale: v])
def test_a_kernel_that_looks_at_all_queries_at_once_is_refused(attention):
    with pytest.raises(ValueError, match=r"does not answer one query at a time.*take 'full' or 'local'"):
        Taylorformer(attention=attention)


def test_a_kernel_answers_one_query_only_where_it_defines_how():
    assert not Kernel().has("one_query")
    assert not Prob().has("one_query")
    assert Full().has("one_query")
    assert Local().has("one_query")


def test_only_the_stream_over_values_is_local(build_case):
    net = build_case("local-window").net()
    assert all(block.attention.kernel == Local(window=4) for block in net.streams.xy_blocks)
    assert all(block.attention.kernel == Full() for block in (*net.streams.x_blocks, net.streams.x_last))


@pytest.mark.parametrize("n_context", [3, 7, 60])
@pytest.mark.parametrize("window", [1, 2, 4, 40])
def test_the_network_is_the_one_with_a_dense_mask_of_the_window(build_case, n_context, window, numbers):
    case = build_case("local")
    w = case.window(n_context=n_context, n_targets=20, missing="rows", missing_targets="rows")
    got, expected = (
        numbers(case.net(attention=kernel)(w)) for kernel in (Local(window=window), Banded(window))
    )
    torch.testing.assert_close(got, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("window", ["default", 1, 5, 70])
@pytest.mark.parametrize("missing", ["none", "rows"])
def test_cached_steps_equal_the_teacher_forced_rows_in_long_windows(build_case, window, missing, numbers):
    case = build_case("local")
    net = case.net(**({} if window == "default" else {"attention": Local(window=window)}))
    w = case.window(n_windows=2, n_context=50, n_targets=45, missing=missing)
    w = replace(w, y=w.y.cumsum(1) / 10)
    with torch.no_grad():
        expected = numbers(net(Window(w.t, w.y, w.observed, n_context=50)))
        state = net.encode(w, 1)
        for step in range(w.n_targets):
            got = numbers(net.query(state, step))[:, 0]
            torch.testing.assert_close(got, expected[:, step], rtol=1e-11, atol=1e-11)
            state = net.observe(state, step, w.y[:, None, 50 + step])


def test_the_window_follows_from_context_and_targets_together(build_case):
    net = build_case("local").net()
    w = build_case("local").window(
        n_context=80, n_targets=30
    )  # 4 * ceil(ln 110) = 20, of 80 it would be the same
    short = build_case("local").window(n_context=20, n_targets=30)  # 16, of 20 it would be 12
    for window, reach in ((w, 20), (short, 16)):
        with torch.no_grad():
            state = net.encode(window, 2)
            for cache in state.streams.caches:
                cache.context[:, : window.n_context - reach + 1] = torch.nan
            assert torch.isfinite(net.query(state, 0).mean).all()
            for cache in state.streams.caches:
                cache.context[:, window.n_context - reach + 1] = torch.nan
            assert torch.isnan(net.query(state, 0).mean).any()


def test_points_beyond_the_window_are_not_read_by_a_step(build_case):
    case = build_case("local-window")
    w, net = case.window(), case.net()
    with torch.no_grad():
        state = net.encode(w, 2)
        for cache in state.streams.caches:
            cache.context[:, : w.n_context - 3] = torch.nan
        assert torch.isfinite(net.query(state, 0).mean).all()
        for step in range(4):
            state = net.observe(state, step, net.query(state, step).mean)
            for cache in state.streams.caches:
                cache.paths[:, :, : max(0, step - 2)] = torch.nan
        assert torch.isfinite(net.query(state, 4).mean).all()


def test_a_given_window_does_not_depend_on_padding_in_front(build_case, numbers):
    case = build_case("local-window")
    w, net = case.window(), case.net()
    observed = w.observed.clone()
    observed[:, :2] = False
    padded = replace(w, observed=observed)
    cut = Window(w.t[:, 2:], w.y[:, 2:], n_context=w.n_context - 2)
    torch.testing.assert_close(numbers(net(padded)), numbers(net(cut)), rtol=1e-12, atol=1e-12)
