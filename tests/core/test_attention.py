"""Attention: the kernel against a dense reference, the layer's parts, the cache."""

from __future__ import annotations

import math

import pytest
import torch

from taylorformer_forecast.core.attention.cache import PointCache
from taylorformer_forecast.core.attention.kernels import Full, Kernel
from taylorformer_forecast.core.attention.layer import MultiHeadAttention
from taylorformer_forecast.core.attention.local import Local
from taylorformer_forecast.core.attention.registry import KERNELS

pytestmark = pytest.mark.usefixtures("float64")

full = Full()


def randn(*shape, seed=0, grad=False):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).requires_grad_(grad)


def random_mask(*shape, seed=9):
    mask = torch.rand(*shape, generator=torch.Generator().manual_seed(seed)) < 0.5
    mask[:, 1] = False  # a query that may see nothing
    return mask


def dense(q, k, v, mask, scale):
    """One query at a time, over the keys that it may see."""
    out = torch.zeros(*q.shape[:-1], v.shape[-1])
    for b, h, i in torch.cartesian_prod(*(torch.arange(size) for size in q.shape[:3])).tolist():
        keys = torch.arange(k.shape[2]) if mask is None else mask[b % mask.shape[0], i].nonzero()[:, 0]
        if len(keys):
            score = k[b, h, keys] @ q[b, h, i] * scale
            weight = score.exp() / score.exp().sum()
            out[b, h, i] = weight @ v[b, h, keys]
    return out


@pytest.mark.parametrize("width", [1, 4, 11])
@pytest.mark.parametrize("scale", [None, 0.3])
@pytest.mark.parametrize(
    "mask", [None, random_mask(1, 5, 6), random_mask(2, 5, 6)], ids=["all", "shared", "own"]
)
def test_full_attention_equals_the_dense_reference(width, scale, mask):
    q, k, v = (
        randn(2, 3, 5, 4, grad=True),
        randn(2, 3, 6, 4, seed=1, grad=True),
        randn(2, 3, 6, width, seed=2, grad=True),
    )
    out = full(q, k, v, mask, scale)
    expected = dense(q, k, v, mask, 0.5 if scale is None else scale)
    torch.testing.assert_close(out, expected, rtol=0, atol=1e-13)
    towards = randn(*out.shape, seed=3)
    got = torch.autograd.grad((out * towards).sum(), (q, k, v))
    wanted = torch.autograd.grad((expected * towards).sum(), (q, k, v))
    for gradient, reference in zip(got, wanted, strict=True):
        torch.testing.assert_close(gradient, reference, rtol=0, atol=1e-12)


def test_full_attention_passes_gradcheck_with_an_empty_row():
    q, k, v = (
        randn(1, 2, 3, 2, grad=True),
        randn(1, 2, 4, 2, seed=1, grad=True),
        randn(1, 2, 4, 3, seed=2, grad=True),
    )
    mask = random_mask(1, 3, 4)
    assert torch.autograd.gradcheck(lambda q, k, v: full(q, k, v, mask), (q, k, v))


@pytest.mark.parametrize("empty", ["one row", "everything"])
def test_a_query_that_sees_nothing_gets_zeros_and_gives_no_gradient(empty):
    q, k, v = (randn(2, 2, 3, 4, seed=s, grad=True) for s in range(3))
    mask = torch.ones(1, 3, 3, dtype=torch.bool)
    mask[:, slice(1, 2) if empty == "one row" else slice(None)] = False
    out = full(q, k, v, mask)
    assert (out[:, :, 1] == 0).all()
    out.square().sum().backward()
    assert (q.grad[:, :, 1] == 0).all()
    assert all(torch.isfinite(x.grad).all() for x in (q, k, v))
    if empty == "everything":
        assert all((x.grad == 0).all() for x in (q, k, v))


def test_heads_that_are_widened_lie_one_after_another(monkeypatch):
    """The fused kernel for GPUs takes no other order, not even of a single head."""
    strides = []

    def attend(q, k, v, *_, **__):
        strides.extend(x.stride() for x in (q, k, v))
        return v

    monkeypatch.setattr(torch.nn.functional, "scaled_dot_product_attention", attend)
    q, k, v = (randn(2, 3, 1, 1, seed=s).transpose(1, 2) for s in range(3))
    assert full(q, k, v).shape == q.shape
    assert all(stride[1] == 3 * stride[2] >= 3 for stride in strides)


def test_an_unknown_kernel_is_refused_with_the_names_that_exist():
    with pytest.raises(ValueError, match=r"attention='fast' is neither a kernel nor one of.*full.*local"):
        MultiHeadAttention(4, 4, n_heads=1, head_dim=4, attention="fast")


def test_every_kernel_of_the_registry_serves_a_layer_and_so_does_a_function():
    x, mask = randn(2, 9, 4), torch.ones(2, 1, 9, dtype=torch.bool)

    def first_value(q, k, v, mask=None, scale=None):
        return v[:, :, :1].expand(-1, -1, q.shape[2], -1)

    for attention in (*KERNELS, *KERNELS.values(), first_value):
        attend = MultiHeadAttention(4, 6, n_heads=2, head_dim=3, attention=attention)
        assert attend(x, x, mask).shape == (2, 9, 6)
        torch.testing.assert_close(attend(x, x, mask), attend(x, x))
    assert attend(x, x).unique(dim=1).shape[1] == 1  # the function is what the layer calls
    with pytest.raises(NotImplementedError):
        Kernel()(*[x[:, None]] * 3)


def test_padding_hides_keys_from_all_queries():
    q, k, v = randn(2, 3, 5, 4), randn(2, 3, 6, 4, seed=1), randn(2, 3, 6, 4, seed=2)
    padding = torch.tensor([[True] * 4 + [False] * 2, [True] * 6])[:, None]
    assert torch.equal(full(q, k, v, padding), full(q, k, v, padding.expand(2, 5, 6)))


def test_a_layer_over_some_of_the_points_can_be_told_how_many_there_are():
    attend = MultiHeadAttention(6, 5, n_heads=3, head_dim=4, attention="local")
    settled = MultiHeadAttention(6, 5, n_heads=3, head_dim=4, attention=Local(window=20))
    settled.load_state_dict(attend.state_dict())
    x = randn(2, 40, 6)  # 16 of 40 points, 20 of 100
    assert torch.equal(attend(x, x, n_points=100), settled(x, x))
    assert not torch.allclose(attend(x, x), settled(x, x))


def layer(dim_value=None, scale=None, attention="full"):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return MultiHeadAttention(6, 5, 3, 4, dim_value=dim_value, attention=attention, scale=scale)


@pytest.mark.parametrize("scale", [None, 0.1])
def test_the_layer_joins_heads_that_attend_independently(scale):
    attend, x, z = layer(scale=scale), randn(2, 4, 6), randn(2, 7, 6, seed=1)
    mask = random_mask(2, 4, 7)
    heads = []
    for h in range(3):
        part = slice(4 * h, 4 * h + 4)
        q, k, v = attend.query(x)[..., part], attend.key(z)[..., part], attend.value(z)[..., part]
        heads.append(dense(q[:, None], k[:, None], v[:, None], mask, 0.5 if scale is None else scale)[:, 0])
    torch.testing.assert_close(attend(x, z, mask), attend.out(torch.cat(heads, -1)), rtol=0, atol=1e-13)


def test_weights_are_the_softmax_that_the_kernel_uses():
    attend, x, z, mask = layer(), randn(2, 4, 6), randn(2, 7, 6, seed=1), random_mask(2, 4, 7)
    weights = attend.weights(x, z, mask)
    total = weights.sum(-1)
    torch.testing.assert_close(total, mask.any(-1)[:, None].expand_as(total).double())
    assert (weights[(~mask)[:, None].expand_as(weights)] == 0).all()
    values = attend.split(attend.value(z))
    torch.testing.assert_close(attend.merge(weights @ values), attend(x, z, mask), rtol=0, atol=1e-13)


# A query that sees nothing has no average: `attend` would be the bias of the value projection for it.
@pytest.mark.parametrize("dim_y", [1, 2, 5])
def test_averaging_then_projecting_is_attention_with_values_y(dim_y):
    attend, x, z, y = layer(dim_y), randn(2, 4, 6), randn(2, 7, 6, seed=1), randn(2, 7, dim_y, seed=2)
    mask = random_mask(2, 4, 7) | torch.eye(4, 7, dtype=torch.bool)
    average = attend.average(x, z, y, torch.ones_like(y, dtype=torch.bool), mask)
    q, k, v = (attend.split(part) for part in (attend.query(x), attend.key(z), attend.value(y)))
    expected = attend.merge(full(q, k, v, mask, attend.scale))
    torch.testing.assert_close(attend.project_average(average), expected, rtol=0, atol=1e-13)


def test_averages_use_each_columns_own_observed_points():
    attend, x, z, y = layer(3), randn(2, 4, 6), randn(2, 7, 6, seed=1), randn(2, 7, 3, seed=2)
    observed = torch.rand(2, 7, 3, generator=torch.Generator().manual_seed(4)) < 0.6
    observed[:, 0] = True
    mask = random_mask(2, 4, 7)
    mask[:, :, 0] = True
    average = attend.average(x, z, y, observed, mask)
    q, k = attend.split(attend.query(x)), attend.split(attend.key(z))
    for column in range(3):
        column_mask = mask & observed[:, None, :, column]
        values = y[:, None, :, column, None].expand(-1, 3, -1, -1)
        expected = dense(q, k, values, column_mask, attend.scale)[..., 0]
        torch.testing.assert_close(average[..., column], expected, rtol=0, atol=1e-13)
    other = attend.average(x, z, torch.where(observed, y, 1e6), observed, mask)
    assert torch.equal(other, average)


@pytest.mark.parametrize("size", [1.0, 1e6])
def test_a_column_without_observed_points_averages_to_zero_with_finite_gradients(size):
    torch.set_default_dtype(torch.float32)
    attend, x, y = layer(2), randn(2, 4, 6), randn(2, 4, 2, seed=2)
    observed = torch.tensor([True, False]).expand(2, 4, 2)
    average = attend.average(x, x, y, observed, torch.ones(1, 4, 4, dtype=torch.bool))
    assert (average[..., 1] == 0).all()
    (size * attend.project_average(average)).sum().backward()
    for name, parameter in attend.named_parameters():
        assert torch.isfinite(parameter.grad).all(), name


# ---- cache --------------------------------------------------------------------------------------------

MASKS = {
    "all seen": None,
    "some seen": torch.tensor([[True, False, True, True, False], [False, True, True, True, True]]),
    "one window unseen": torch.tensor([[True, False, True, True, False], [False] * 5]),
}


def points_and_cache(mask, length):
    """Make a context, six paths of eight points, and a cache that holds the first ``length`` of each."""
    context, paths = randn(2, 5, 6), randn(2, 6, 8, 6, seed=1)
    cache = PointCache.allocate(context, mask, n_paths=6, n_targets=8)
    for step in range(length):
        cache.write(step, paths[:, :, step])
    return context, paths, cache


@pytest.mark.parametrize("mask", MASKS.values(), ids=MASKS)
@pytest.mark.parametrize("length", [0, 1, 4, 7])
@pytest.mark.parametrize("scale", [None, 0.1])
@pytest.mark.parametrize("reach", [None, 1, 2, 4, 12, 20])
def test_a_cached_step_attends_the_context_and_the_paths_own_points_within_reach(mask, length, scale, reach):
    attend = layer(scale=scale)
    local = layer(scale=scale, attention="full" if reach is None else Local(window=reach))
    context, paths, cache = points_and_cache(mask, length)
    query = randn(2, 6, 6, seed=5)
    out = local.step(query, cache, length)
    seen = torch.ones(2, 5, dtype=torch.bool) if mask is None else mask
    sees = torch.cat([seen, torch.ones(2, length, dtype=torch.bool)], 1)[:, None]
    if reach is not None:  # the query stands at the next position
        sees[..., : max(0, 5 + length + 1 - reach)] = False
    for s in range(6):
        points = torch.cat([context, paths[:, s, :length]], 1)
        expected = attend(query[:, s, None], points, sees)
        torch.testing.assert_close(out[:, s, None], expected, rtol=0, atol=1e-12)


def test_points_that_are_not_yet_written_are_never_read():
    attend, (_, _, cache) = layer(), points_and_cache(None, 3)
    query = randn(2, 6, 6, seed=5)
    cache.paths[:, :, 3:] = 0.0
    before = attend.step(query, cache, 3)
    cache.paths[:, :, 3:] = math.nan
    assert torch.equal(attend.step(query, cache, 3), before)


def test_the_cache_keeps_the_context_it_was_given_without_copying_it():
    context = randn(2, 5, 6)
    cache = PointCache.allocate(context, None, n_paths=100, n_targets=7)
    assert cache.context.data_ptr() == context.data_ptr()
    assert cache.paths.shape == (2, 100, 7, 6)
