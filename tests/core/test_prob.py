"""ProbSparse attention: who attends, what the others get, where chance comes from."""

from __future__ import annotations

import math

import pytest
import torch

from taylorformer_forecast.core.attention.kernels import Full
from taylorformer_forecast.core.attention.layer import MultiHeadAttention
from taylorformer_forecast.core.attention.prob import Prob

pytestmark = pytest.mark.usefixtures("float64")

N = 60  # of which 5 * ceil(ln 60) = 25 attend


def randn(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).requires_grad_()


def heads():
    return randn(2, 3, N, 4), randn(2, 3, N, 4, seed=1), randn(2, 3, N, 5, seed=2)


def masks():
    g = torch.Generator().manual_seed(7)
    dense = torch.rand(2, N, N, generator=g) < 0.3
    dense[:, 4] = False
    return {"padding": torch.rand(2, 1, N, generator=g) < 0.5, "dense": dense}


@pytest.mark.parametrize("name", ["none", "padding", "dense"])
def test_queries_that_stand_out_attend_and_the_others_get_the_mean_of_what_they_see(name):
    q, k, v = heads()
    mask = masks().get(name)
    out, exact = Prob()(q, k, v, mask), Full()(q, k, v, mask)
    weight = torch.ones(1, 1, N) if mask is None else mask.double()
    mean = (weight / weight.sum(-1, keepdim=True).clamp_min(1))[:, None] @ v
    attends = torch.isclose(out, exact, atol=1e-12).all(-1)
    gets_mean = torch.isclose(out, mean, atol=1e-12).all(-1)
    assert (attends | gets_mean).all()
    blind = torch.zeros(2, N, dtype=torch.bool) if mask is None else ~mask.any(-1).expand(2, N)
    assert (attends & ~blind[:, None]).sum(-1).eq(25).all()
    assert (out.transpose(1, 2)[blind] == 0).all()


def test_attending_queries_are_those_whose_largest_drawn_score_exceeds_the_mean_most():
    q, k, v = heads()
    drawn = torch.randint(N, (N, 25), generator=torch.Generator().manual_seed(0))
    scores = torch.einsum("bhqe,bhke->bhqk", q, k)
    sampled = scores.gather(-1, drawn.expand(2, 3, -1, -1))
    best = (sampled.max(-1).values - sampled.sum(-1) / N).topk(25).indices
    attends = torch.isclose(Prob()(q, k, v), Full()(q, k, v), atol=1e-12).all(-1)
    assert torch.equal(attends.nonzero()[:, 2].view(2, 3, 25), best.sort(-1).values)


def test_few_queries_all_attend():
    q, k, v = randn(2, 3, 10, 4), randn(2, 3, 12, 4, seed=1), randn(2, 3, 12, 4, seed=2)
    torch.testing.assert_close(Prob()(q, k, v), Full()(q, k, v))
    one = randn(1, 1, 1, 4)
    torch.testing.assert_close(Prob()(one, one, one), one)


@pytest.mark.parametrize("name", ["padding", "dense"])
def test_hidden_keys_and_values_change_nothing(name):
    q, k, v = heads()
    mask = masks()[name]
    hidden = ~mask.any(1)
    if name == "dense":
        mask = mask.clone()
        mask[..., 10:20] = False
        hidden = ~mask.any(1)
    gone = hidden[:, None, :, None]
    assert gone.any()
    other = Prob()(q, torch.where(gone, 1e3, k), torch.where(gone, -1e3, v), mask)
    assert torch.equal(other, Prob()(q, k, v, mask))


@pytest.mark.parametrize("name", ["none", "padding", "dense"])
def test_gradients_are_those_of_the_chosen_sparsity(name):
    q, k, v = (x[:1, :1, :, :2].detach().requires_grad_() for x in heads())
    mask = masks().get(name)
    kernel, mask = Prob(factor=1), None if mask is None else mask[:1]
    assert torch.autograd.gradcheck(lambda q, k, v: kernel(q, k, v, mask), (q, k, v))


def test_everything_hidden_gives_zeros_and_finite_gradients():
    q, k, v = heads()
    out = Prob()(q, k, v, torch.zeros(1, 1, N, dtype=torch.bool))
    assert (out == 0).all()
    out.sum().backward()
    assert all((x.grad == 0).all() for x in (q, k, v))


def test_calls_repeat_and_leave_the_global_generator_alone():
    q, k, v = heads()
    state = torch.random.get_rng_state()
    assert torch.equal(Prob()(q, k, v), Prob()(q, k, v))
    assert torch.equal(torch.random.get_rng_state(), state)


def test_a_given_generator_draws_anew():
    q, k, v = heads()
    kernel = Prob(factor=2, generator=torch.Generator().manual_seed(3))
    first, second = kernel(q, k, v), kernel(q, k, v)
    assert not torch.equal(first, second)
    assert torch.equal(Prob(factor=2, generator=torch.Generator().manual_seed(3))(q, k, v), first)


def test_a_factor_below_one_is_refused():
    with pytest.raises(ValueError, match="factor=0 must be at least 1"):
        Prob(factor=0)


def test_a_layer_takes_it_by_name():
    x = randn(2, 100, 8)
    layer = MultiHeadAttention(8, 8, n_heads=2, head_dim=4, attention="prob")
    means = layer(x, x).flatten(0, 1).unique(dim=0)
    assert len(means) <= 2 * (
        2 * 5 * math.ceil(math.log(100)) + 1
    )  # of each window: chosen by a head, or mean


def test_it_runs_in_mixed_precision():
    q, k, v = (x.float() for x in heads())
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.isfinite(Prob()(q, k, v, masks()["dense"])).all()
