"""Auto-correlation: its definition, the periods it finds, what is hidden, what is refused."""

from __future__ import annotations

import math

import pytest
import torch

from taylorformer_forecast.core.attention.autocorrelation import AutoCorrelation

pytestmark = pytest.mark.usefixtures("float64")


def randn(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).requires_grad_()


def heads(n=30):
    return randn(2, 3, n, 4), randn(2, 3, n, 4, seed=1), randn(2, 3, n, 5, seed=2)


def padding(n=30):
    return torch.rand(2, 1, n, generator=torch.Generator().manual_seed(7)) < 0.6


def by_definition(q, k, v, n_delays):
    """Correlations, the largest, their softmax and moved values, one head and one delay after the other."""
    (b, h, n, e), out = q.shape, torch.zeros_like(v)
    for i in range(b):
        for j in range(h):
            scores = [
                sum(float(q[i, j, t] @ k[i, j, (t - delay) % n]) for t in range(n)) / (n * e)
                for delay in range(n)
            ]
            delays = sorted(range(n), key=lambda delay: -scores[delay])[:n_delays]
            total = sum(math.exp(scores[delay]) for delay in delays)
            for delay in delays:
                for t in range(n):
                    out[i, j, t] += math.exp(scores[delay]) / total * v[i, j, (t + delay) % n]
    return out


@pytest.mark.parametrize(("n", "factor", "n_delays"), [(1, 3, 1), (2, 3, 2), (30, 3, 10), (31, 1.5, 5)])
@pytest.mark.parametrize("hidden", [False, True])
def test_it_is_the_definition_computed_in_n_log_n(n, factor, n_delays, hidden):
    q, k, v = (x.detach() for x in heads(n))
    mask = padding(n) if hidden else None
    seen = torch.ones(2, n, dtype=torch.bool) if mask is None else mask[:, 0]
    zeroed = (x * seen[:, None, :, None] for x in (k, v))
    expected = by_definition(q, *zeroed, n_delays)
    torch.testing.assert_close(AutoCorrelation(factor)(q, k, v, mask), expected, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("period", [7, 12])
def test_a_periodic_sequence_is_moved_by_whole_periods_and_so_returned(period):
    x = randn(1, 1, period, 4).repeat(1, 1, 60 // period, 1)
    n = x.shape[2]
    factor = (n // period + 0.5) / math.log(n)  # as many delays as there are periods
    delays = AutoCorrelation().scores(x, x)[0, 0].topk(n // period).indices
    assert sorted(delays.tolist()) == list(range(0, n, period))
    torch.testing.assert_close(AutoCorrelation(factor)(x, x, x), x)


@pytest.mark.parametrize("hidden", [False, True])
def test_gradients_are_those_of_the_chosen_delays(hidden):
    q, k, v = (x[:1, :1, :12, :2].detach().requires_grad_() for x in heads())
    mask = padding(12)[:1] if hidden else None
    assert torch.autograd.gradcheck(lambda q, k, v: AutoCorrelation(1)(q, k, v, mask), (q, k, v))


def test_hidden_keys_and_values_change_nothing():
    q, k, v = heads()
    gone = ~padding()[:, :, :, None]
    other = AutoCorrelation()(q, k.where(~gone, torch.nan), v.where(~gone, torch.nan), padding())
    assert torch.equal(other, AutoCorrelation()(q, k, v, padding()))


def test_everything_hidden_gives_zeros_and_finite_gradients():
    q, k, v = heads()
    out = AutoCorrelation()(q, k, v, torch.zeros(1, 1, 30, dtype=torch.bool))
    assert (out == 0).all()
    out.sum().backward()
    assert all((x.grad == 0).all() for x in (q, k, v))


def test_a_mask_with_a_row_for_every_query_is_refused():
    with pytest.raises(ValueError, match="can hide keys from all queries, not from some"):
        AutoCorrelation()(*heads(), torch.ones(1, 30, 30, dtype=torch.bool))


def test_fewer_queries_than_keys_are_refused():
    q, k, v = heads()
    with pytest.raises(ValueError, match="as many queries as keys, not 9 and 30"):
        AutoCorrelation()(q[:, :, :9], k, v)


@pytest.mark.parametrize("factor", [0, -1.0, math.nan])
def test_a_factor_that_leaves_no_delay_is_refused(factor):
    with pytest.raises(ValueError, match=f"factor={factor} must be positive"):
        AutoCorrelation(factor)


def test_it_runs_in_mixed_precision():
    q, k, v = (x.float() for x in heads())
    exact = AutoCorrelation()(q, k, v, padding())
    with torch.autocast("cpu", dtype=torch.bfloat16):
        torch.testing.assert_close(AutoCorrelation()(q, k, v, padding()), exact)
    halved = AutoCorrelation()(*(x.bfloat16() for x in (q, k, v)), padding())
    assert halved.dtype == torch.bfloat16
    assert torch.isfinite(halved).all()
