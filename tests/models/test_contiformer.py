"""ContiFormer: what reaches the predictions, times between and beyond, baselines, joint paths."""

from __future__ import annotations

import copy
import pickle
from dataclasses import replace

import pytest
import torch

from taylorformer_forecast.baselines.linear import LinearBaseline
from taylorformer_forecast.baselines.linear_path import LinearPathBaseline
from taylorformer_forecast.core.families import FAMILIES, components
from taylorformer_forecast.core.protocol import training_loss
from taylorformer_forecast.core.sampling import sample_paths
from taylorformer_forecast.core.window import Window
from taylorformer_forecast.models.contiformer import ContiFormer
from taylorformer_forecast.models.contiformer_paths import ContiFormerPaths, build_contiformer

pytestmark = pytest.mark.usefixtures("float64")

DIRECT = [
    "contiformer",
    "contiformer-hermite",
    "contiformer-none",
    "contiformer-mlp",
    "contiformer-linear",
]
PATHS = [
    "contiformer-paths",
    "contiformer-paths-none",
    "contiformer-paths-columns",
    "contiformer-paths-linear",
    "contiformer-paths-whole",
    "contiformer-paths-gaussian",
]


def close(got, expected, tolerance=1e-10):
    torch.testing.assert_close(got, expected, rtol=tolerance, atol=tolerance)


def gradients(net, w, numbers):
    """Gradients of every target's parameters in all values, (T, B, N, D)."""
    y = w.y.clone().requires_grad_()
    out = numbers(net(replace(w, y=y)))
    factors = torch.randn(out.shape, generator=torch.Generator().manual_seed(0))
    rows = [(out * factors)[:, i].sum() for i in range(w.n_targets)]
    return torch.stack([torch.autograd.grad(row, y, retain_graph=True)[0] for row in rows])


@pytest.mark.parametrize("name", [*DIRECT, *PATHS])
def test_every_observed_earlier_value_matters_and_no_other(build_case, name, numbers):
    case = build_case(name)
    w = case.window(missing="entries", missing_targets="entries")
    gradient = gradients(case.net(), w, numbers)
    for i in range(w.n_targets):
        known = w.n_context + (i if name in PATHS else 0)
        seen = w.observed.clone()
        seen[:, known:] = False
        assert (gradient[i][seen] != 0).all()
        assert (gradient[i][~seen] == 0).all()


@pytest.mark.parametrize("name", PATHS)
def test_later_times_and_covariates_change_nothing_before_them(build_case, name, numbers):
    case = build_case(name)
    w, net = case.window(), case.net()
    t, covariates = w.t.clone(), w.covariates
    t[:, -2:] += 0.7
    if covariates is not None:
        covariates = covariates.clone()
        covariates[:, -2:] += 1
    before, changed = numbers(net(w)), numbers(net(replace(w, t=t, covariates=covariates)))
    close(changed[:, :-2], before[:, :-2], 1e-13)
    assert (changed[:, -2:] != before[:, -2:]).all(2).all()


@pytest.mark.parametrize("name", DIRECT)
def test_targets_do_not_know_of_each_other(build_case, name, numbers):
    case = build_case(name)
    w, net = case.window(), case.net()
    order = torch.tensor([3, 0, 4, 1, 2]).expand(3, -1)
    tolerance = 1e-10 if name != "contiformer-mlp" else 1e-2  # the solver's steps end at all targets
    close(numbers(net(w.reorder_targets(order))), numbers(net(w))[:, order[0]])
    close(numbers(net(w.points(slice(0, 9)))), numbers(net(w))[:, :2], tolerance)


@pytest.mark.parametrize("name", ["contiformer", "contiformer-linear", "contiformer-columns"])
def test_forecasts_are_continuous_in_time(build_case, name, numbers):
    case = build_case(name)
    w, net = case.window(), case.net()
    moments = []
    for extra in (0.0, 1e-7):
        moments.append(numbers(net(replace(w, t=w.t + extra * (torch.arange(12) >= 7)))))
    close(moments[1], moments[0], 1e-4)
    assert (moments[1] != moments[0]).any()


def test_between_reference_points_both_sides_matter(build_case, numbers):
    case = build_case("contiformer-none")  # both_sides
    w, net = case.window(times="unordered"), case.net()
    gradient = gradients(net, w, numbers)
    assert (gradient[:, :, : w.n_context] != 0).all()


def test_points_of_a_gap_are_asked_on_both_sides(build_case):
    t = torch.tensor([[0.0, 0.1, 0.4, 0.5, 0.2, 0.3]])
    y = torch.randn(1, 6, 1, requires_grad=True)
    hidden, _ = build_case("contiformer-gaps").net().ask(Window(t, y, n_context=4))
    for target in (0, 1):
        (gradient,) = torch.autograd.grad(hidden[0, target].sum(), y, retain_graph=True)
        assert (gradient[0, :4] != 0).all()
        assert (gradient[0, 4:] == 0).all()


@pytest.mark.parametrize("name", ["contiformer-linear", "contiformer-paths-columns"])
def test_the_baseline_reads_the_grid_and_moves_the_location_alone(build_case, name):
    case = build_case(name)
    w, net = case.window(times="regular"), case.net()
    n = net.baseline.n_context
    w = replace(w, t=torch.arange(-6.0, 6.0).expand(3, -1) / n)
    before = components(net(w))
    with torch.no_grad():
        net.baseline.map.steps.weight.zero_()
        plain = components(net(w))
        net.baseline.map.steps.weight[0, -3] = 0.5  # of the value two steps before the last
    after = components(net(w))
    close(after.scale, before.scale)
    moved = (after.loc - plain.loc)[:, 0]
    close(moved, (0.5 * w.y[:, 4, :, None]).expand_as(moved))


@pytest.mark.parametrize("network", [ContiFormer, ContiFormerPaths])
def test_a_network_that_was_not_trained_is_its_baseline(network, make_window):
    baseline = (LinearPathBaseline if network is ContiFormerPaths else LinearBaseline)(7, 5)
    baseline.map.steps.weight.data.normal_()
    net = network(d_model=8, n_heads=2, distribution="normal", baseline=baseline).eval()
    w = make_window()
    loc, scale = baseline.teacher_forced(w, None) if network is ContiFormerPaths else baseline.direct(w)
    close(net(w).mean, loc)
    close(net(w).stddev, 1.001 * scale.expand_as(loc))


def test_gaps_are_read_over_by_interpolation():
    """On a straight line, a point more or less changes nothing for the baseline."""
    net = ContiFormer(d_model=8, n_heads=2, baseline=LinearBaseline(8, 2)).eval()
    t = torch.arange(-7.0, 3.0)[None] / 8
    w = Window(t, 3.0 * t[..., None], n_context=8)
    observed = w.observed.clone()
    observed[:, 3:5] = False
    with torch.no_grad():
        net.baseline.map.steps.weight.normal_()
        net.to_params.weight.zero_()
        close(net(replace(w, observed=observed)).mean, net(w).mean)
        half = replace(w, t=torch.cat([t[:, :8], torch.tensor([[0.5 / 8, 1.0 / 8]])], 1))
        close(net(half).mean[:, 0], net(half).mean[:, 1] / 2)  # half a step ahead, half the way


@pytest.mark.parametrize("joint", [False, True])
def test_the_sizes_of_a_linear_baseline_build_it(joint):
    net = build_contiformer(joint, linear=(6, 4, 2), d_model=8, n_heads=2)
    assert type(net.baseline) is (LinearPathBaseline if joint else LinearBaseline)
    assert (net.baseline.n_context, net.baseline.horizon, net.baseline.shift) == (6, 4, 2)


def test_dynamics_that_have_no_closed_form_draw_no_joint_paths():
    with pytest.raises(ValueError, match="dynamics='mlp'"):
        ContiFormerPaths(dynamics="mlp")
    with pytest.raises(ValueError, match="interpolation='linear'"):
        ContiFormerPaths(interpolation="linear")
    with pytest.raises(ValueError, match="both_sides=True"):
        ContiFormerPaths(both_sides=True)
    assert build_contiformer(dynamics="mlp").one_shot
    assert build_contiformer(solver="rk4").one_shot
    assert not build_contiformer().one_shot
    assert build_contiformer(joint=False).one_shot


def test_joint_paths_need_targets_in_order_of_time(build_case):
    case = build_case("contiformer-paths")
    w = case.window()
    with pytest.raises(ValueError, match="in order of time"):
        case.net()(w.reorder_targets(torch.tensor([1, 0, 2, 3, 4]).expand(3, -1)))


def test_steps_of_paths_depend_on_each_other_only_where_they_are_drawn_in_turn(build_case):
    for name, joint in (("contiformer-paths", True), ("contiformer", False)):
        case = build_case(name)
        w, net = case.window(), case.net()
        state = net.encode(w, 2)
        net.query(state, 0)
        y = torch.tensor([[[-3.0], [3.0]]]).expand(3, -1, -1)
        mean = net.query(net.observe(state, 0, y), 1).mean
        assert bool((mean[:, 0] != mean[:, 1]).all()) == joint


@pytest.mark.parametrize("name", PATHS)
def test_free_running_paths_have_the_conditionals_of_a_pass_along_them(build_case, name, numbers):
    case = build_case(name)
    w, net = case.window(missing="entries"), case.net()
    samples = sample_paths(net, w, 4, torch.Generator().manual_seed(0))
    wide = w.map(lambda value: value.repeat_interleave(4, 0))
    y, observed = wide.y.clone(), wide.observed.clone()
    y[:, 7:], observed[:, 7:] = samples.paths.flatten(0, 1), True
    expected = numbers(net(replace(wide, y=y, observed=observed))).unflatten(0, (3, 4))
    present = [p.flatten(3) for p in samples.conditionals.tensors().values()]
    close(torch.cat(present, -1), expected, 1e-12)


@pytest.mark.parametrize("name", PATHS)
def test_points_at_one_time_are_sampled_as_they_are_scored(build_case, name, numbers):
    """A target at the time of the last known point, and two at one time: averages over no time at all."""
    case = build_case(name)
    w, net = case.window(), case.net()
    t = w.t.clone()
    t[:, 7], t[:, 9] = t[:, 6], t[:, 8]
    w = replace(w, t=t)
    with torch.no_grad():
        state, expected = net.encode(w, 1), numbers(net(w))
        for step in range(w.n_targets):
            close(numbers(net.query(state, step))[:, 0], expected[:, step], 1e-12)
            state = net.observe(state, step, w.y[:, None, 7 + step])


@pytest.mark.parametrize("network", [ContiFormer, ContiFormerPaths])
@pytest.mark.parametrize("distribution", sorted(FAMILIES))
def test_every_head_can_be_trained_and_sampled(make_window, network, distribution):
    torch.manual_seed(0)
    net, w = network(d_model=8, n_heads=2, distribution=distribution), make_window()
    training_loss(net(w), w).backward()
    assert all(bool(p.grad.isfinite().all()) for p in net.parameters())
    assert sample_paths(net.eval(), w, 3, torch.Generator().manual_seed(0)).paths.shape == (3, 3, 5, 1)


@pytest.mark.parametrize("name", ["contiformer-linear", "contiformer-paths-columns"])
def test_copies_and_saved_networks_predict_the_same(build_case, name, numbers, tmp_path):
    case = build_case(name)
    w, net = case.window(), case.net()
    expected = numbers(net(w))
    for other in (copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
        assert torch.equal(numbers(other(w)), expected)
    torch.save(net.state_dict(), tmp_path / "net.pt")
    fresh = case.net(seed=1)
    assert not torch.equal(numbers(fresh(w)), expected)
    fresh.load_state_dict(torch.load(tmp_path / "net.pt", weights_only=True))
    assert torch.equal(numbers(fresh(w)), expected)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"d_model": 10, "n_heads": 4}, "d_model=10"),
        ({"distribution": "gauss"}, "distribution='gauss'"),
        ({"dynamics": "cubic"}, "dynamics='cubic'"),
    ],
)
def test_what_does_not_fit_is_named(options, message):
    with pytest.raises(ValueError, match=message):
        ContiFormer(**options)


def test_times_have_one_coordinate(make_window):
    with pytest.raises(ValueError, match="2 coordinates"):
        ContiFormer(d_model=8, n_heads=2)(make_window(dim_t=2))


@pytest.mark.parametrize("network", [ContiFormer, ContiFormerPaths])
def test_training_reduces_the_loss(make_window, network):
    torch.manual_seed(0)
    t = torch.linspace(-1.0, 0.5, 9).expand(16, -1)
    y = torch.sin(8.0 * (t + torch.rand(16, 1)))[..., None]
    net, w = network(d_model=8, n_heads=2, dropout=0.0, distribution="normal"), Window(t, y, n_context=6)
    optimizer, losses = torch.optim.Adam(net.parameters(), lr=2e-2), []
    for _ in range(30):
        optimizer.zero_grad()
        losses.append(training_loss(net(w), w))
        losses[-1].backward()
        optimizer.step()
    assert losses[-1] < losses[0] - 0.4
