"""TNP-A against the published rule: every token among the keys, masked, in PyTorch's own layers."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import nn

from taylorformer_forecast.models.tnp import TNPA, shown_and_hidden

pytestmark = pytest.mark.usefixtures("float64")


def published_mask(n_context, n_targets):
    """Which of all context, shown and hidden tokens (columns) each of them attends (rows)."""
    n = n_context + n_targets
    mask = torch.zeros(n + n_targets, n + n_targets, dtype=torch.bool)
    mask[:, :n_context] = True
    for j in range(n_targets):
        mask[n_context + j, n_context : n_context + j + 1] = True
        mask[n + j, n_context : n_context + j] = True
    return mask


@pytest.mark.parametrize(("n_context", "n_targets"), [(3, 4), (1, 6), (5, 1)])
def test_the_mask_is_the_published_rule_without_the_keys_that_nobody_attends(
    make_window, n_context, n_targets
):
    full, n = published_mask(n_context, n_targets), n_context + n_targets
    assert not full[:, n:].any()
    mask = shown_and_hidden(make_window(n_context=n_context, n_targets=n_targets))
    assert mask.shape == (1, n + n_targets, n)
    assert torch.equal(mask[0], full[:, :n])
    # The number of pairs that attend: those of the context, and twice those of a triangle.
    assert int(mask.sum()) == n**2


def test_points_that_were_not_observed_are_attended_by_nobody_else(make_window):
    w = make_window(missing="rows", missing_targets="rows")
    full = published_mask(7, 5)[:, :12] & w.visible[:, None]
    assert not w.visible.all()
    itself = torch.eye(17, 12, dtype=torch.bool)
    mask = shown_and_hidden(w)
    assert torch.equal(mask & ~itself, full & ~itself)
    assert torch.equal(mask[:, 12:], full[:, 12:])


def as_published(net, w):
    """Raw numbers of all targets by the transformer encoder of PyTorch over all tokens."""
    x, n = net.locations(w), w.n_context
    blank = torch.zeros_like(w.y[:, n:])
    tokens = torch.cat([torch.cat([x, w.y], -1), torch.cat([x[:, n:], blank], -1)], 1)
    h = net.embedding(tokens)
    hidden = ~published_mask(n, w.n_targets)
    for block in net.blocks:
        heads = block.attention
        width, inner = heads.out.out_features, block.feedforward[0].out_features
        layer = nn.TransformerEncoderLayer(width, heads.n_heads, inner, dropout=0.0, batch_first=True)
        projections = (heads.query, heads.key, heads.value)
        same = {
            "self_attn.in_proj_weight": torch.cat([p.weight for p in projections]),
            "self_attn.in_proj_bias": torch.cat([p.bias for p in projections]),
            "self_attn.out_proj.weight": heads.out.weight,
            "self_attn.out_proj.bias": heads.out.bias,
            "linear1.weight": block.feedforward[0].weight,
            "linear1.bias": block.feedforward[0].bias,
            "linear2.weight": block.feedforward[3].weight,
            "linear2.bias": block.feedforward[3].bias,
            "norm1.weight": block.norm_attention.weight,
            "norm1.bias": block.norm_attention.bias,
            "norm2.weight": block.norm_feedforward.weight,
            "norm2.bias": block.norm_feedforward.bias,
        }
        layer.load_state_dict(same)
        layer.norm1.eps, layer.norm2.eps = block.norm_attention.eps, block.norm_feedforward.eps
        h = layer(h, src_mask=hidden)
    return net.to_params(h[:, -w.n_targets :])


@pytest.mark.parametrize("name", ["tnp", "tnp-2d"])
def test_outputs_are_those_of_the_published_transformer_over_all_tokens(build_case, name):
    case = build_case(name)
    w, net = case.window(), case.net(distribution="normal")
    with torch.no_grad():
        expected, distribution = as_published(net, w), net(w)
    torch.testing.assert_close(distribution.mean, expected[..., :1], rtol=1e-10, atol=1e-10)


def test_noise_reaches_the_values_that_targets_show_in_training_only(build_case, numbers):
    case = build_case("tnp")
    w = case.window()
    noisy, exact = case.net(value_noise=0.5, dropout=0.0), case.net(dropout=0.0)
    assert torch.equal(numbers(noisy(w)), numbers(exact(w)))
    trained = numbers(noisy.train()(w))
    assert torch.equal(trained[:, 0], numbers(exact(w))[:, 0])  # it sees the context only
    assert not (trained[:, 1:] == numbers(exact(w))[:, 1:]).all(-1).any()


def test_the_value_of_a_column_that_was_not_observed_is_not_taken_for_zero(build_case, numbers):
    case = build_case("tnp-columns")
    w, net = case.window(), case.net()
    y, observed = w.y.clone(), w.observed.clone()
    y[:, 0, 0] = 0.0
    observed[:, 0, 0] = False
    known, unknown = (numbers(net(v)) for v in (replace(w, y=y), replace(w, y=y, observed=observed)))
    assert ((known - unknown).abs() > 1e-9).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"distribution": "gamma"}, "distribution='gamma' is not one of"),
        ({"scale": "tanh"}, "scale='tanh' is not one of"),
        ({"n_layers": 0}, "n_layers=0"),
        ({"d_model": 10, "n_heads": 4}, "d_model=10 is not a multiple of n_heads=4"),
    ],
)
def test_options_that_do_not_fit_are_refused_with_their_value(options, message):
    with pytest.raises(ValueError, match=message):
        TNPA(**options)
