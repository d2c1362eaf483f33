"""Weights and inflation after training, from paths and from held-out windows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch

from taylorformer_forecast.baselines.linear import LinearBaseline
from taylorformer_forecast.baselines.linear_path import LinearPathBaseline
from taylorformer_forecast.core.sampling import sample_paths
from taylorformer_forecast.core.window import Window
from taylorformer_forecast.defaults import HOLDOUT_START, NETWORK_WEIGHTS, PRETRAINED_INFLATIONS
from taylorformer_forecast.engine.calibration import (
    _held_out,
    calibrate_by_paths,
    calibrate_pretrained,
    fitting_inflation,
    inflate_by_paths,
)
from taylorformer_forecast.engine.windows import Batches, Series, WindowMaker
from taylorformer_forecast.models.direct import DirectTaylorformer
from taylorformer_forecast.models.lam import LAMTransformer
from taylorformer_forecast.models.taylorformer import Taylorformer
from taylorformer_forecast.sktime import TaylorformerForecaster

L, H = 12, 6


def fitted(factor=1.0, distribution="normal"):
    """A network around a fitted linear forecast whose scale is off by a factor, and windows of the fit."""
    t = np.arange(500.0)
    y = np.sin(2 * np.pi * t / 6) + 0.3 * np.random.default_rng(0).normal(size=500)
    maker = WindowMaker([Series(t, y[:, None])], L, H, time_unit=float(L), normalise=False)
    torch.manual_seed(0)
    net = Taylorformer(
        d_model=8, n_heads=2, n_layers=2, distribution=distribution, baseline=LinearPathBaseline(L, H)
    )
    window, embargo = Batches(maker, maker.starts(L, keep=0.95), 32).sample()
    net.fit_closed_form(window, embargo)
    net.baseline.log_scale += np.log(factor)
    return net.eval(), window


def coverage(net, window):
    """Share of the targets inside the central 80 % of paths."""
    paths = sample_paths(net, window, 99, torch.Generator().manual_seed(1)).paths.sort(1).values
    y, observed = window.targets
    return float(((y >= paths[:, 9]) & (y <= paths[:, -10]))[observed].float().mean())


def test_the_inflation_that_fits_brings_the_coverage_to_80_percent():
    rng = np.random.default_rng(0)
    y = torch.as_tensor(rng.normal(size=(400, 5, 1)))
    y[0, 0] = torch.nan
    w = Window(torch.arange(5.0).expand(400, -1), y, n_context=0)
    paths = 0.5 * torch.special.ndtri(torch.arange(1.0, 20.0) / 20).view(1, 19, 1, 1).expand(400, -1, 5, 1)
    found = fitting_inflation(paths, w)
    edge = -found * paths[:, 1]
    assert float((w.y.abs() <= edge)[w.observed].double().mean()) == pytest.approx(0.8, abs=0.001)


@pytest.mark.parametrize("factor", [0.5, 0.7])
def test_forecasts_that_are_too_narrow_are_inflated_half_way(factor):
    net, window = fitted(factor)
    before = coverage(net, window)
    inflate_by_paths(net, window)
    assert float(net.calibration.inflation) == pytest.approx(factor**-0.5, rel=0.1)
    assert before + 0.05 < coverage(net, window) < 0.8


@pytest.mark.parametrize("factor", [1.3, 3.0])
def test_forecasts_that_are_too_wide_are_left_alone(factor):
    net, window = fitted(factor)
    inflate_by_paths(net, window)
    assert net.calibration.inflation == 1.0


def test_inflation_has_no_bound_and_starts_anew_every_time():
    net, window = fitted(0.01)
    for _ in range(2):
        inflate_by_paths(net, window)
        assert float(net.calibration.inflation) == pytest.approx(0.01**-0.5, rel=0.15)


def test_training_windows_and_the_global_generator_are_left_alone():
    net, window = fitted(0.5)
    values, state = window.y.clone(), torch.get_rng_state()
    inflate_by_paths(net, window)
    assert torch.equal(window.y, values)
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize("kind", ["point", "neighbour", "lam", "nothing observed"])
def test_what_has_no_width_of_paths_stays_as_it_is(kind):
    net, window = fitted(0.5, "mse" if kind == "point" else "normal")
    if kind == "neighbour":
        net = Taylorformer(d_model=8, n_heads=2, n_layers=2).eval()
    elif kind == "lam":
        net = LAMTransformer(L, H, d_model=8, n_heads=2, baseline=LinearBaseline(L, H)).eval()
    elif kind == "nothing observed":
        window = Window(window.t, torch.full_like(window.y, torch.nan), n_context=L)
    before = {name: value.clone() for name, value in net.state_dict().items()}
    inflate_by_paths(net, window)
    assert all(torch.equal(value, before[name]) for name, value in net.state_dict().items())


def test_a_forecaster_inflates_its_paths_after_training_and_not_without():
    y = pd.Series(np.random.default_rng(0).normal(size=120).cumsum())
    for steps in (0, 3):
        forecaster = TaylorformerForecaster(
            strategy="train",
            context_length=12,
            d_model=4,
            n_heads=1,
            max_steps=steps,
            update_steps=1,
            random_state=0,
        )
        net = forecaster.fit(y, fh=range(1, 7)).network_
        with torch.no_grad():
            net.baseline.log_scale -= 1.0
        narrow = float(net.calibration.inflation)
        if steps == 0:
            assert narrow == 1.0
        forecaster.update(pd.Series([0.0], [len(y)]))
        assert float(forecaster.network_.calibration.inflation) > narrow


@pytest.mark.parametrize(("rise", "weight"), [(0.0, 0.0), (0.5, 0.5), (1.0, 1.0)])
def test_the_weight_on_new_windows_is_the_part_of_the_network_that_is_right(rise, weight):
    net, window = fitted()
    with torch.no_grad():
        net.streams.to_params.bias[0] += 1.0 / float(net.baseline.scales(window).mean())
    new = replace(window, y=window.y + rise * (torch.arange(L + H) >= L)[:, None])
    calibrate_by_paths(net, new)
    assert net.calibration.weight == weight


def test_a_network_that_adds_nothing_keeps_its_weight_and_too_narrow_paths_are_inflated():
    net, window = fitted(0.5)
    calibrate_by_paths(net, window)
    assert net.calibration.weight == net.usual_weight
    assert float(net.calibration.inflation) == pytest.approx(0.5**-0.5, rel=0.1)


def test_points_have_a_weight_and_no_inflation():
    net, window = fitted(distribution="mse")
    with torch.no_grad():
        net.streams.to_params.bias[0] += 3.0
    calibrate_by_paths(net, window)
    assert calibrated(net) == (0.0, 1.0)


def test_a_weight_of_zero_may_rise_again():
    net, window = fitted()
    net.calibration.set_weight(0.0, net.head)
    calibrate_by_paths(net, window)
    assert net.calibration.weight == net.usual_weight > 0


# --- pretrained networks ----------------------------------------------------------------------------------


def pretrained(seed=0, **options):
    torch.manual_seed(seed)
    options = {"d_model": 8, "n_heads": 2, "n_layers": 2, "distribution": "studentt", **options}
    net = DirectTaylorformer(LinearBaseline(L, H), **options)
    torch.nn.init.normal_(net.layers.to_params.weight, std=0.3)
    return net


def makers(noise, n=240):
    t = np.arange(float(n))
    y = np.sin(2 * np.pi * t / 6) + noise * np.random.default_rng(0).normal(size=n)
    return WindowMaker([Series(t, y[:, None])], L, H, float(L))


def calibrated(net):
    return net.calibration.weight.item(), net.calibration.inflation.item()


def adding(number, size):
    """A network that adds one number to an unconstrained parameter of all targets."""
    net = pretrained()
    with torch.no_grad():
        net.layers.to_params.weight.zero_()
        net.layers.to_params.bias[number] = size
    return net


def test_what_only_harms_has_no_weight_and_the_inflation_is_bounded():
    net = pretrained()
    with torch.no_grad():
        net.layers.to_params.bias[0] = 3.0  # all means are three errors too high
    calibrate_pretrained(net, makers(noise=0.2), L, usual=1.0)
    weight, inflation = calibrated(net)
    assert weight == 0
    assert PRETRAINED_INFLATIONS[0] <= inflation <= PRETRAINED_INFLATIONS[1]


def test_the_baseline_that_is_held_against_the_last_quarter_has_seen_nothing_of_it():
    maker, net = makers(noise=0.2), pretrained()
    before = _held_out(net, maker, L, 1.0)[0].baseline
    maker.y[round(HOLDOUT_START * len(maker.y)) :] += 100.0
    after = _held_out(net, maker, L, 1.0)[0].baseline
    for name, value in before.state_dict().items():
        torch.testing.assert_close(after.state_dict()[name], value, msg=name)


@pytest.mark.parametrize("added", [0.3, -0.3])
def test_the_weight_is_above_zero_where_the_network_is_right_about_new_windows(added):
    net, maker = adding(0, added), makers(noise=0.2)
    rows = torch.arange(len(maker.y)) >= 0.75 * len(maker.y)
    maker.y[rows] += 0.03 * torch.arange(int(rows.sum()))[:, None]  # a rise that was not there before
    calibrate_pretrained(net, maker, L, usual=1.0)
    weight = calibrated(net)[0]
    assert weight in NETWORK_WEIGHTS
    assert (weight > 0) == (added > 0)


def test_forecasts_of_a_pretrained_network_that_are_too_narrow_are_inflated():
    net = adding(1, -0.3)
    calibrate_pretrained(net, makers(noise=0.2), L, usual=1.0)
    weight, inflation = calibrated(net)
    assert inflation > 1 or weight == 0


@pytest.mark.parametrize("n", [20, 240])
def test_of_a_mixture_the_mean_is_weighted_and_its_modes_stay(n):
    net = pretrained(distribution="mixture")
    calibrate_pretrained(net, makers(noise=0.2, n=n), 4, usual=0.25)
    assert net.calibration.weight == 1
    assert net.calibration.mean_weight == 0.25 if n == 20 else net.calibration.mean_weight in NETWORK_WEIGHTS


@pytest.mark.parametrize("usual", [0.25, 0.75])
def test_series_too_short_to_choose_take_the_usual_weight(usual):
    net = pretrained()
    before = {name: value.clone() for name, value in net.named_parameters()}
    net.calibration.set(inflation=1.4)
    calibrate_pretrained(net, makers(noise=0.2, n=20), 4, usual)
    assert calibrated(net) == (usual, 1.0)
    for name, value in net.named_parameters():
        assert torch.equal(value, before[name]), name


def test_forecasts_without_width_are_not_deflated_to_nothing():
    net = pretrained(distribution="mse")
    maker = WindowMaker([Series(np.arange(200.0), np.zeros((200, 1)))], L, H, float(L), 0.02)
    calibrate_pretrained(net, maker, L, usual=0.5)
    assert PRETRAINED_INFLATIONS[0] <= calibrated(net)[1] <= PRETRAINED_INFLATIONS[1]


def test_a_last_quarter_without_observations_chooses_nothing():
    net, maker = pretrained(), makers(noise=0.2)
    maker.observed[170:] = False
    calibrate_pretrained(net, maker, L, usual=0.75)
    assert calibrated(net) == (0.75, 1.0)


def test_choosing_changes_the_calibration_alone():
    net = pretrained()
    before = {name: value.clone() for name, value in net.state_dict().items()}
    state = torch.get_rng_state()
    calibrate_pretrained(net, makers(noise=0.2), L, usual=0.5)
    for name, value in net.state_dict().items():
        assert torch.equal(value, before[name]) or name.startswith("calibration."), name
    assert torch.equal(torch.get_rng_state(), state)
