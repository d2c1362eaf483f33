"""LAM transformer: the paper's formulas, what reaches the predictions, sizes."""

from __future__ import annotations

import copy
import math
import pickle
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F

from taylorformer_forecast.baselines.linear import LinearBaseline
from taylorformer_forecast.core.attention.local import Local
from taylorformer_forecast.core.attention.registry import KERNELS
from taylorformer_forecast.core.families import FAMILIES
from taylorformer_forecast.core.sampling import sample_paths
from taylorformer_forecast.models.lam import LAMTransformer
from taylorformer_forecast.models.lam_trunks import TemporalMap, summed_encoding

pytestmark = pytest.mark.usefixtures("float64")


def close(got, expected):
    torch.testing.assert_close(got, expected, rtol=1e-10, atol=1e-10)


# --- the paper's network, written out ---------------------------------------------------------------------


def attend(layer, query, key, value, window):
    """Definition 1 for heads of width 1, one head and row after another."""
    q, k, v = layer.query(query), layer.key(key), layer.value(value)
    out = torch.zeros_like(q)
    for head in range(q.shape[-1]):
        for i in range(q.shape[1]):
            near = slice(max(0, i - window + 1), i + 1)
            weights = (q[:, i, None, head] * k[:, near, head]).softmax(-1)  # 1 / sqrt(1)
            out[:, i, head] = (weights * v[:, near, head]).sum(-1)
    return layer.out(out)


def finish(layer, x, double):
    x = F.layer_norm(x, x.shape[-1:], layer.norm_attention.weight, layer.norm_attention.bias)
    first, _, second = layer.feedforward
    f = second(F.leaky_relu(first(x), 0.01))
    x = x + f + (x if double else 0)
    return F.layer_norm(x, x.shape[-1:], layer.norm_feedforward.weight, layer.norm_feedforward.bias)


@pytest.mark.parametrize("cross", ["standard", "paper"])
@pytest.mark.parametrize("double", [False, True])
@pytest.mark.parametrize("scaled", [False, True])
def test_the_faithful_network_equals_the_formulas(build_case, cross, double, scaled):
    case = build_case("lam-faithful")
    options = {"cross": cross, "double_residual": double, "scale_input": scaled}
    net, w = case.net(**options, attention=Local(window=3)), case.window()
    trunk, y = net.trunk, w.y[:, :7]
    i, j = torch.arange(7.0)[:, None], torch.arange(3.0)
    x = (
        y * (math.sqrt(3) if scaled else 1)
        + torch.sin(i / 10000 ** (j / 3))
        + torch.cos(i / 10000 ** (j / 3))
    )
    memory = x
    for layer in trunk.encoder:
        memory = finish(layer, memory + attend(layer.attention, memory, memory, memory, 3), double)
    for layer in trunk.decoder:
        x = x + attend(layer.attention, x, x, x, 3)
        query, value = (memory, x) if cross == "paper" else (x, memory)
        x = finish(layer, x + attend(layer.cross, query, memory, value, 3), double)
    variables = x @ trunk.variables.weight.T + trunk.variables.bias
    expected = torch.einsum("bnf,mn->bmf", variables, trunk.time.steps.weight)
    expected = expected + trunk.time.steps.bias[:, None]
    close(net(w).mean, expected[:, :5])


def test_the_published_number_of_parameters_is_met():
    """On 321 variables, two layers each: 5,895,270 with 48 steps, 6,815,478 with 960."""
    for steps, expected in ((48, 5_895_270), (960, 6_815_478)):
        net = LAMTransformer(steps, steps, dim_y=321, preset="faithful", distribution="mse")
        assert sum(p.numel() for p in net.parameters()) == expected


# --- what reaches the predictions -------------------------------------------------------------------------


def test_fewer_targets_are_the_first_steps_of_more(lam_case, numbers):
    w, net = lam_case.window(missing="entries"), lam_case.net()
    for n in (0, 1, 3):
        assert net(w.points(slice(0, 7 + n))).mean.shape == (3, n, w.y.shape[2])
        close(numbers(net(w.points(slice(0, 7 + n)))), numbers(net(w))[:, :n])


def test_every_observed_value_of_the_context_matters_and_no_other(lam_case, numbers):
    w = lam_case.window(missing="entries", missing_targets="entries")
    net = lam_case.net()
    y = w.y.clone().requires_grad_()
    out = numbers(net(replace(w, y=y)))
    (out * torch.randn(out.shape, generator=torch.Generator().manual_seed(0))).sum().backward()
    seen = w.observed.clone()
    seen[:, 7:] = False
    assert (y.grad[seen] != 0).all()
    assert (y.grad[~seen] == 0).all()


@pytest.mark.parametrize("name", ["lam-modern-columns", "lam-faithful-paper"])
def test_covariates_of_a_target_reach_its_own_prediction(build_case, name, numbers):
    case = build_case(name)
    w, net = case.window(), case.net()
    for step in range(w.n_targets):
        for column in range(w.covariates.shape[2]):
            covariates = w.covariates.clone()
            covariates[:, 7 + step, column] += 1
            changed = (numbers(net(replace(w, covariates=covariates))) != numbers(net(w))).any(-1)
            assert changed[:, step].all()
            assert changed.sum() == 3  # one step of each of three windows


def test_times_do_not_matter_only_their_order(lam_case, numbers):
    w, net = lam_case.window(), lam_case.net()
    close(numbers(net(replace(w, t=w.t + w.t.square()))), numbers(net(w)))


def test_a_permuted_batch_gives_permuted_predictions(lam_case, numbers):
    w, net = lam_case.window(missing="rows"), lam_case.net()
    order = torch.tensor([2, 0, 1])
    close(numbers(net(w.rows(order))), numbers(net(w))[order])


def layers_of(net):
    return net.trunk.layers if hasattr(net.trunk, "layers") else net.trunk.encoder


@pytest.mark.parametrize("preset", ["modern", "faithful"])
@pytest.mark.parametrize(("attention", "reach"), [("full", None), (Local(window=4), 4)])
def test_points_of_the_encoder_see_their_window_and_nothing_later(preset, attention, reach):
    net = LAMTransformer(
        16, 4, dim_y=4, d_model=4, n_heads=2, preset=preset, attention=attention, dropout=0.0
    )
    x = torch.randn(1, 16, 4, generator=torch.Generator().manual_seed(0), requires_grad=True)
    for depth in (1, 2):
        out = x
        for layer in list(layers_of(net))[:depth]:
            out = layer(out, None)
        for i in (0, 5, 15):
            (gradient,) = torch.autograd.grad(out[0, i, 0], x, retain_graph=True)
            seen = (gradient[0] != 0).any(-1).nonzero()[:, 0].tolist()
            first = 0 if reach is None else max(0, i - depth * (reach - 1))
            assert seen == list(range(16) if reach is None else range(first, i + 1))


def test_a_network_that_was_not_fitted_repeats_the_last_value(make_window):
    net = LAMTransformer(7, 5, attention="full", baseline=LinearBaseline(7, 5)).eval()
    w = make_window(n_windows=50)
    close(net(w).mean, w.y[:, 6:7].expand(-1, 5, -1))
    alone = LAMTransformer(7, 5, attention="full").eval()
    assert alone(w).mean.abs().max() == 0


@pytest.mark.parametrize("weight", [0.5, 1.0])
def test_a_part_of_what_the_network_adds_to_its_baseline_is_taken_after_training(make_window, weight):
    options = {"d_model": 8, "n_heads": 2, "distribution": "normal", "dropout": 0.0}
    net = LAMTransformer(7, 5, **options, baseline=LinearBaseline(7, 5), weight=weight)
    w, generator = make_window(), torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in net.trunk.parameters():
            parameter.normal_(std=0.5, generator=generator)
    whole, part, baseline = net.train()(w), net.eval()(w), net.baseline(net._on_grid(w))
    close(part.mean, torch.lerp(baseline, whole.mean, weight))
    close((part.stddev - 1e-3).log(), weight * (whole.stddev - 1e-3).log())


def test_the_published_network_takes_no_baseline():
    with pytest.raises(ValueError, match="takes no baseline"):
        LAMTransformer(7, 5, preset="faithful", baseline=LinearBaseline(7, 5))


# --- sampling ---------------------------------------------------------------------------------------------


def test_paths_share_their_conditionals_and_follow_them(lam_case):
    w, net = lam_case.window(missing="entries"), lam_case.net()
    samples = sample_paths(net, w, 20_000, torch.Generator().manual_seed(0))
    d = net(w)
    assert samples.paths.shape == (3, 20_000, 5, w.y.shape[2])
    assert samples.conditionals.loc.shape[:3] == (3, 1, 5)
    deviation = d.variance.sqrt()
    assert ((samples.paths.mean(1) - d.mean).abs() <= 0.05 * deviation + 1e-9).all()
    assert ((samples.paths.std(1) - deviation).abs() <= 0.15 * deviation + 1e-9).all()


def test_many_windows_are_sampled_in_pieces(lam_case, monkeypatch):
    w, net = lam_case.window(n_windows=8), lam_case.net()
    whole = sample_paths(net, w, 4)
    monkeypatch.setattr("taylorformer_forecast.core.sampling.POINTS_AT_ONCE", 36)
    pieces = sample_paths(net, w, 4)
    assert pieces.paths.shape == whole.paths.shape
    close(pieces.conditionals.loc, whole.conditionals.loc)


# --- sizes, options, copies -------------------------------------------------------------------------------


@pytest.mark.parametrize("distribution", FAMILIES)
@pytest.mark.parametrize("preset", ["modern", "faithful"])
@pytest.mark.parametrize("attention", KERNELS)
def test_every_distribution_goes_with_every_preset_and_kernel(
    make_window, distribution, preset, attention, numbers
):
    net = LAMTransformer(
        9, 4, 2, 1, d_model=4, n_heads=2, distribution=distribution, preset=preset, attention=attention
    )
    w = make_window(n_context=9, n_targets=4, dim_y=2, dim_covariates=1, missing="entries")
    d = net(w)
    assert d.batch_shape == d.mean.shape == (3, 4, 2)
    assert torch.isfinite(numbers(d)).all()


def test_a_kernel_of_ones_own_may_be_given(make_window):
    calls = []

    def kernel(q, k, v, mask=None, scale=None):
        calls.append((q.shape, mask.shape))
        return v

    net = LAMTransformer(7, 5, d_model=4, n_heads=2, attention=kernel)
    net(make_window(missing="rows"))
    assert calls == [((3, 2, 7, 2), (3, 1, 7))] * 2


def test_maps_over_long_times_have_few_numbers():
    assert sum(p.numel() for p in TemporalMap(720, 720).parameters()) == 720 * 721
    long = TemporalMap(5760, 5760)
    assert sum(p.numel() for p in long.parameters()) < 4e6
    x = torch.randn(1, 5760, 2, generator=torch.Generator().manual_seed(0))
    close(long(x, 7), long(x, 5760)[:, :7])


def test_the_summed_encoding_equals_its_formula():
    got = summed_encoding(9, 4)
    assert got.shape == (1, 9, 4)
    assert got[0, 5, 3].item() == pytest.approx(
        math.sin(5 / 10000**0.75) + math.cos(5 / 10000**0.75), rel=1e-12
    )


@pytest.mark.parametrize(
    "copier", [copy.deepcopy, lambda net: pickle.loads(pickle.dumps(net))], ids=["deepcopy", "pickle"]
)
def test_copies_predict_alike(lam_case, copier, numbers):
    w, net = lam_case.window(), lam_case.net()
    assert torch.equal(numbers(copier(net)(w)), numbers(net(w)))


def test_windows_of_other_sizes_are_refused(build_case):
    case = build_case("lam-modern")
    for sizes in ({"n_context": 6}, {"n_context": 8}, {"n_targets": 7}):
        with pytest.raises(ValueError, match="was built for 7 and at most 6"):
            case.net()(case.window(**sizes))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"preset": "old"}, "preset='old' is neither 'modern' nor 'faithful'"),
        ({"distribution": "gauss"}, "distribution='gauss' is not one of"),
        ({"d_model": 10, "n_heads": 4}, "d_model=10 must be even and a multiple of n_heads=4"),
        ({"attention": "nearest"}, "attention='nearest' is neither a kernel nor one of"),
        ({"preset": "faithful", "cross": "both"}, "cross='both' is neither 'standard' nor 'paper'"),
    ],
)
def test_unknown_options_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        LAMTransformer(7, 5, **options)
