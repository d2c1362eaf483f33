"""The network's construction, its Taylor expansion, invariances, and that all of it trains."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from taylorformer_forecast.core.protocol import negative_log_likelihood
from taylorformer_forecast.core.window import Window, shuffle_targets
from taylorformer_forecast.models.taylorformer import Taylorformer

pytestmark = pytest.mark.usefixtures("float64")


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"preset": "published"}, "preset='published' is neither 'paper' nor 'code'"),
        (
            {"distribution": "gamma"},
            r"distribution='gamma' is not one of \['mae', 'mixture', 'mse', ",
        ),
        ({"n_layers": 1}, "n_layers=1"),
        ({"d_model": 10, "n_heads": 4}, "d_model=10 is not a multiple of n_heads=4"),
        ({"taylor_order": 2}, "taylor_order=2"),
        ({"taylor_order": 1, "preset": "code"}, "taylor_order=1 with preset='code'"),
        ({"attention": "fast"}, "attention='fast'"),
        ({"dim_encoding": 7}, "dim_encoding=7 must be even"),
        ({"dim_t": 3}, "dim_t=3"),
        ({"n_derivative_neighbours": 0}, "n_derivative_neighbours=0"),
    ],
)
def test_options_that_do_not_fit_are_refused_with_their_value(options, message):
    with pytest.raises(ValueError, match=message):
        Taylorformer(**options)


@pytest.mark.parametrize(("preset", "width"), [("paper", 3), ("code", 12)])
def test_scores_are_divided_by_the_root_of_one_heads_width_or_of_all(preset, width):
    net = Taylorformer(preset=preset, d_model=8, n_heads=4, head_dim=3)
    layers = [
        block.attention for block in (*net.streams.x_blocks, net.streams.x_last, *net.streams.xy_blocks)
    ]
    assert [layer.scale for layer in layers] == pytest.approx([width**-0.5] * len(layers))


def test_each_column_of_each_target_has_its_own_distribution(stepwise_case):
    w = stepwise_case.window()
    distribution = stepwise_case.net()(w)
    columns = w.y.shape[2]
    assert distribution.batch_shape == (3, 5, columns)
    assert distribution.log_prob(w.targets[0]).shape == (3, 5, columns)
    assert distribution.mean.flatten().unique().numel() == 15 * columns


def test_every_parameter_is_trained(stepwise_case, trained):
    w, net = stepwise_case.window(), stepwise_case.net()
    negative_log_likelihood(net(w), w).backward()
    for name, parameter in trained(net):
        assert torch.isfinite(parameter.grad).all(), name
        if name.endswith("attention.key.bias"):  # adds the same to all scores of a query
            assert parameter.grad.abs().max() < 1e-10, name
        else:
            assert (parameter.grad != 0).any(), name


# ---- the Taylor expansion -----------------------------------------------------------------------------


def without_corrections(net):
    """Make the mean the bare Taylor expansion."""
    with torch.no_grad():
        net.streams.to_params.weight.zero_()
        net.streams.to_params.bias.zero_()
    return net


@pytest.fixture
def series():
    """Return five points that are easy to follow by hand; the last two are targets."""
    values = torch.tensor([0.0, 2.0, 3.0, 5.0, 9.0])
    return Window(torch.tensor([[0.0, 1.0, 2.5, 3.0, 3.2]]), values[None, :, None], n_context=3)


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        (0, [3.0, 5.0]),  # the values at 2.5 and at 3
        (1, [3 + 0.5 * 1 / 1.5, 5 + 0.2 * 2 / 0.5]),  # and on with the slopes there, each from its neighbour
    ],
)
def test_the_mean_starts_from_the_taylor_expansion_at_the_nearest_earlier_point(
    build_case, series, order, expected
):
    net = without_corrections(build_case("paper").net(taylor_order=order))
    assert net(series).mean.flatten().tolist() == pytest.approx(expected, rel=1e-4)


def test_each_column_expands_at_its_own_last_observed_point(build_case, series):
    net = without_corrections(build_case("paper-three-columns").net())
    y = torch.arange(15.0).view(1, 5, 3)
    y[0, 2, 0] = y[0, 1, 2] = y[0, 2, 2] = float("nan")
    w = Window(series.t, y, n_context=3)
    assert net(w).mean[0, 0].tolist() == [3.0, 7.0, 2.0]
    assert net(w).mean[0, 1].tolist() == [9.0, 10.0, 11.0]


def test_the_first_order_continues_a_line(build_case):
    case = build_case("paper-first-order")
    w = case.window(times="unordered")
    w = replace(w, y=2 * w.times + 1)
    mean = without_corrections(case.net())(w).mean
    torch.testing.assert_close(mean, w.targets[0], rtol=0, atol=1e-4)


def test_the_first_order_continues_a_plane(build_case):
    case = build_case("paper-2d")
    t = torch.tensor([[[0.0, 0.0], [1.0, 0.0], [0.0, 1.1], [0.9, 0.2], [0.2, 0.9]]])
    w = Window(t, t @ torch.tensor([[2.0], [-0.5]]) + 1, n_context=3)
    mean = without_corrections(case.net(taylor_order=1))(w).mean
    torch.testing.assert_close(mean, w.targets[0], rtol=0, atol=1e-4)


def test_a_point_sees_the_derivative_at_its_neighbour(build_case):
    case = build_case("paper-three-columns")
    w, net = case.window(missing="entries"), case.net()
    f = net.streams.tokens(w, w.attention_mask())
    for b in range(3):
        for i in range(12):
            for d in range(3):
                j = int(f.found.index[b, i, 0, d])
                exists = bool(f.found.valid[b, i, 0, d])
                expected = f.derivatives[b, j, :, 0, d] if exists else torch.zeros(3)
                assert torch.equal(f.slopes[b, i, :, 0, d], expected)


@pytest.mark.parametrize("distance", [1.0, 1e6])
def test_far_targets_are_predicted_from_points_before_them(build_case, series, distance):
    net = without_corrections(build_case("code").net())
    t = torch.tensor([[0.0, 1.0, 2.0, 2.0 + distance, 2.1 + distance]])
    w = Window(t, series.y, n_context=3)
    assert net(w).mean.flatten().tolist() == [3.0, 5.0]


# ---- orders of the targets ----------------------------------------------------------------------------


def test_the_likelihood_of_shuffled_targets_is_finite_and_repeats(case):
    w, net = case.window(missing="entries", missing_targets="rows"), case.net()
    losses = []
    for seed in (3, 3, 4):
        shuffled = shuffle_targets(w, n_permutations=2, generator=generator(seed))
        losses.append(negative_log_likelihood(net(shuffled), shuffled).item())
    assert torch.isfinite(torch.tensor(losses)).all()
    assert losses[0] == losses[1] != losses[2]
