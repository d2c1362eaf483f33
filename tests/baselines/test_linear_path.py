"""Linear baselines along a path, and networks that start from them."""

import numpy as np
import pytest
import torch
from torch.testing import assert_close as close

from taylorformer_forecast.baselines.gaussian_process import GaussianProcessBaseline
from taylorformer_forecast.baselines.linear import LinearBaseline
from taylorformer_forecast.baselines.linear_path import LinearPathBaseline, LinearTwoSidedBaseline
from taylorformer_forecast.baselines.neighbour import NeighbourBaseline
from taylorformer_forecast.core.sampling import sample_paths
from taylorformer_forecast.core.window import Window
from taylorformer_forecast.engine.windows import Batches, Series, WindowMaker
from taylorformer_forecast.models.contiformer import ContiFormer
from taylorformer_forecast.models.contiformer_paths import ContiFormerPaths
from taylorformer_forecast.models.lam import LAMTransformer
from taylorformer_forecast.models.taylorformer import Taylorformer
from taylorformer_forecast.models.tnp import TNPA

L, H = 12, 6


def fitted(kind, noise=0.2, n=400):
    """A network that is fitted to a noisy season in closed form and not trained, and windows of it."""
    t = np.arange(float(n))
    y = np.sin(2 * np.pi * t / 6) + noise * np.random.default_rng(0).normal(size=n)
    maker = WindowMaker([Series(t, y[:, None])], L, H, time_unit=float(L), normalise=False)
    batches = Batches(maker, maker.starts(L), 32, seed=0)
    torch.manual_seed(0)
    small = {"d_model": 8, "n_heads": 2, "distribution": "normal"}
    if kind == "lam":
        net = LAMTransformer(L, H, **small, baseline=LinearBaseline(L, H), weight=0.5)
    elif kind == "contiformer":
        net = ContiFormer(**small, baseline=LinearBaseline(L, H), weight=0.5)
    elif kind == "contiformer paths":
        net = ContiFormerPaths(**small, baseline=LinearPathBaseline(L, H), weight=0.5)
    else:
        both_sides = kind == "both sides"
        baseline = LinearTwoSidedBaseline(L, H) if both_sides else LinearPathBaseline(L, H)
        net = Taylorformer(**small, n_layers=2, baseline=baseline, weight=0.5, both_sides=both_sides)
    net.fit_closed_form(*batches.sample())
    return net.eval(), maker.windows(maker.starts(L)[: n - L - H])[0]


@pytest.mark.parametrize("kind", ["in order", "both sides", "lam", "contiformer", "contiformer paths"])
def test_training_starts_from_the_linear_forecast_and_its_errors(kind):
    net, w = fitted(kind)
    t = 2 * torch.pi * (torch.arange(len(w.y))[:, None] + torch.arange(L, L + H)) / 6
    d = net(w)
    assert (d.mean[..., 0] - torch.sin(t)).abs().mean() < (0.2 if kind == "both sides" else 0.1)
    assert 0.19 < d.stddev.mean() < (0.3 if kind == "both sides" else 0.26)
    inside = ((w.targets[0] - d.mean).abs() < 1.2816 * d.stddev)[1::7].double().mean()
    assert 0.72 < inside < 0.88


def test_errors_do_not_pile_up_along_a_path():
    net, w = fitted("in order")
    paths = sample_paths(net, w.rows(slice(0, 200, 20)), 400, torch.Generator().manual_seed(0)).paths
    center = net.baseline(w.rows(slice(0, 200, 20)))
    close(paths.mean(1), center, atol=0.06, rtol=0)
    assert paths[:, :, -1].std(1).mean() < 1.3 * paths[:, :, 0].std(1).mean()


@pytest.mark.parametrize("weight", [0.5, 1.0])
def test_what_the_network_adds_piles_up_along_a_path_only_if_all_of_it_is_taken(weight, make_window):
    """Errors that stay, as before a fit, carry it on from step to step."""
    baseline = LinearPathBaseline(7, 5)
    net = Taylorformer(d_model=8, n_heads=2, n_layers=2, baseline=baseline, weight=weight).eval()
    with torch.no_grad():
        net.streams.to_params.bias[0] = 0.3
    w = make_window(n_windows=3)
    path = sample_paths(net, w, 1, pick=lambda conditional, _: conditional.mean).paths[:, 0]
    added = weight * 0.3 * baseline.scales(w)
    close(path - baseline(w), added if weight < 1 else added.cumsum(1))


@pytest.mark.parametrize("carries", [True, False])
def test_what_the_network_adds_is_counted_only_where_errors_are_carried_on(carries, make_window, monkeypatch):
    baseline, w = LinearPathBaseline(7, 5, carries=carries), make_window()
    net = Taylorformer(d_model=8, n_heads=2, n_layers=2, baseline=baseline, weight=0.5).eval()
    counted, own = [], net.calibration.added
    monkeypatch.setattr(net.calibration, "added", lambda *given: counted.append(0) or own(*given))
    net(w)
    sample_paths(net, w, 2)
    assert len(counted) == (6 if carries else 0)


def test_a_fit_to_too_few_windows_leaves_the_value_before_as_the_location(make_window):
    net = Taylorformer(d_model=8, n_heads=2, n_layers=2, baseline=LinearPathBaseline(7, 5))
    w = make_window(n_windows=3)
    before = {name: value.clone() for name, value in net.state_dict().items()}
    net.fit_closed_form(w)
    for name, value in net.state_dict().items():
        assert torch.equal(value, before[name]), name
    w = Window((torch.arange(12.0) - 6).expand(3, -1) / 7, w.y, n_context=7)
    loc, scale = net.baseline.teacher_forced(w, None)
    close(loc, w.y[:, 6:-1])
    close(scale, torch.ones(3, 5, 1))


# ---- the baselines themselves ------------------------------------------------------------------------


def walk(n=500):
    """Windows of a random walk: errors of the forecasts follow those before them."""
    y = np.random.default_rng(0).normal(size=n).cumsum()
    maker = WindowMaker([Series(np.arange(float(n)), y[:, None])], L, H, time_unit=float(L), normalise=False)
    return Batches(maker, maker.starts(L, keep=0.9), 32).sample()


def test_locations_along_a_path_are_the_forecasts_and_a_weighted_sum_of_earlier_errors():
    window, embargo = walk()
    baseline = LinearPathBaseline(L, H).eval()
    baseline.fit_closed_form(window, embargo)
    w = window.rows(slice(0, 5))
    forecast, y = baseline(w), w.targets[0]
    loc, scale = baseline.teacher_forced(w, None)
    for step in range(H):
        expected = forecast[:, step]
        for lag in range(1, step + 1):
            error = y[:, step - lag] - forecast[:, step - lag]
            expected = expected + baseline.weights[step, -lag] * error
        close(loc[:, step], expected)
    close(scale, baseline.scales(w))
    assert (baseline.weights[1:, -1] > 0.8).all()  # errors of a walk stay as they are


def test_what_is_added_is_not_counted_as_an_error():
    window, embargo = walk()
    baseline = LinearPathBaseline(L, H).eval()
    baseline.fit_closed_form(window, embargo)
    w = window.rows(slice(0, 5))
    exact = Window(w.t, torch.cat([w.y[:, :L], baseline(w) + 0.7], 1), n_context=L)
    added = torch.full_like(w.targets[0], 0.7)
    close(baseline.teacher_forced(exact, None, added)[0], baseline(w))
    carried = baseline.teacher_forced(exact, None)[0] - baseline(w)
    assert carried[:, 0].abs().max() == 0
    assert (carried[:, 1:].abs() > 0.1).all()


def test_earlier_targets_that_were_not_observed_count_as_forecast():
    window, embargo = walk()
    baseline = LinearPathBaseline(L, H).eval()
    baseline.fit_closed_form(window, embargo)
    w = window.rows(slice(0, 5))
    observed = w.observed.clone()
    observed[:, L + 2] = False
    y = w.y.clone()
    y[:, L + 2] = baseline(w)[:, 2]
    missing, forecast = Window(w.t, w.y, observed, n_context=L), Window(w.t, y, n_context=L)
    close(baseline.teacher_forced(missing, None)[0], baseline.teacher_forced(forecast, None)[0])


@pytest.mark.parametrize("kind", [LinearBaseline, LinearPathBaseline, LinearTwoSidedBaseline])
def test_scales_are_those_of_the_errors_that_each_baseline_leaves(kind):
    """In training of those of the fit, else with the optimism correction."""
    window, embargo = walk()
    baseline = kind(L, H)
    inside, outside = baseline.fit_map(window, embargo)
    baseline.fit_closed_form(window, embargo)
    if kind is not LinearBaseline:
        path = kind is LinearPathBaseline
        weights = outside.autoregression(8, H) if path else outside.error.new_ones(H, 1)
        inside, outside = inside.after(weights), outside.after(weights)
    row = window.rows(slice(0, 1))
    fit, new = inside.log_scale(H).float(), outside.log_scale(H).float()
    close(baseline.train().scales(row)[0, :, 0].log(), fit, rtol=1e-5, atol=1e-5)
    close(baseline.eval().scales(row)[0, :, 0].log(), torch.maximum(fit, new), rtol=1e-5, atol=1e-5)


def test_between_two_known_errors_the_error_is_on_the_line():
    baseline = LinearTwoSidedBaseline(4, 4).eval()
    t = torch.tensor([[-0.75, -0.5, -0.25, 0.0, 1.0, 0.5, 0.25]])
    w = Window(t, torch.tensor([[0.0, 0.0, 0.0, 0.0, 4.0, 1.0, 5.0]])[..., None], n_context=4)
    net = Taylorformer(d_model=8, n_heads=2, n_layers=2, baseline=baseline, both_sides=True).eval()
    # Not fitted, it forecasts the last value, here zero: errors are the values. The first target has known
    # points on one side only, the second is between 0 and 4, the third between 0 and 1.
    close(net(w).mean.flatten(), torch.tensor([0.0, 2.0, 0.5]))


def test_a_baseline_forecasts_in_the_ways_that_it_has_and_names_itself_otherwise():
    window, embargo = walk()
    baseline = LinearPathBaseline(L, H).eval()
    baseline.fit_closed_form(window, embargo)
    loc, scale = baseline.direct(window)
    close(loc, baseline(window))
    close(scale, baseline.scales(window))
    with pytest.raises(NotImplementedError, match="LinearBaseline forecasts all targets at once only"):
        LinearBaseline(L, H).encode(window, 1)
    with pytest.raises(NotImplementedError, match="NeighbourBaseline forecasts one target after another"):
        NeighbourBaseline().direct(window)


@pytest.mark.parametrize("baseline", [NeighbourBaseline(), LinearTwoSidedBaseline(7, 5)])
def test_a_baseline_that_needs_neighbours_is_refused_where_there_are_none(baseline, make_window):
    net = TNPA(d_model=8, n_heads=2, n_layers=1, baseline=baseline)
    with pytest.raises(ValueError, match="needs a network that finds neighbours"):
        net(make_window())


@pytest.mark.parametrize("baseline", [LinearPathBaseline(7, 5), GaussianProcessBaseline()])
def test_points_of_two_coordinates_are_refused(baseline, make_window):
    net = TNPA(d_model=8, n_heads=2, n_layers=1, dim_t=2, baseline=baseline)
    with pytest.raises(
        ValueError, match=f"times have 2 coordinates, but {type(baseline).__name__} takes one"
    ):
        net(make_window(dim_t=2))
