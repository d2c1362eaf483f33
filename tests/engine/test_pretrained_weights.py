"""Pretrained networks: what files hold, and how a network is built from one."""

import pickle

import pytest
import torch
from torch.testing import assert_close as close

from taylorformer_forecast.baselines.linear import LinearBaseline
from taylorformer_forecast.core.window import Window
from taylorformer_forecast.defaults import MAX_CYCLES
from taylorformer_forecast.engine.pretrained import (
    DEFAULT,
    SETTINGS,
    build_direct,
    load_pretrained,
    save_pretrained,
)
from taylorformer_forecast.models.direct import DirectTaylorformer

L, H = 12, 6
HERE = {"d_model": 8, "n_heads": 2, "n_layers": 2, "distribution": "studentt"}


def network(n_covariates=0, seed=0):
    torch.manual_seed(seed)
    net = DirectTaylorformer(LinearBaseline(L, H), dim_covariates=n_covariates, **HERE)
    torch.nn.init.normal_(net.layers.to_params.weight, std=0.3)
    return net


def own(net):
    return {name: value for name, value in net.state_dict().items() if name.startswith("layers.")}


def halved(value):
    return value.half().float() if value.is_floating_point() else value


@pytest.fixture
def written(tmp_path):
    path = tmp_path / "network.safetensors"
    save_pretrained(network(), path, HERE, weight=0.75)
    return path


def test_weights_come_back_in_half_precision_with_what_they_are_weights_of(written):
    found = load_pretrained(written)
    assert (found.settings, found.weight, found.max_cycles) == (HERE, 0.75, MAX_CYCLES)
    assert found.distribution == "studentt"
    for name, value in own(network()).items():
        close(found.weights[name], halved(value), rtol=0, atol=0)
    assert not any(name.startswith(("baseline.", "calibration.")) for name in found.weights)


def test_a_network_takes_the_weights_and_keeps_its_baseline_and_calibration(written):
    net = network(seed=1)
    net.calibration.set(weight=0.3)
    before = net.baseline.map.steps.weight.clone()
    load_pretrained(written).write_into(net)
    for name, value in own(net).items():
        close(value, halved(own(network())[name]), rtol=0, atol=0)
    assert torch.equal(net.baseline.map.steps.weight, before)
    assert net.calibration.weight.item() == pytest.approx(0.3)


def test_of_more_covariates_the_first_are_seen(make_window):
    net = network(n_covariates=2).eval()
    w = make_window(n_context=L, n_targets=H, dim_covariates=5)
    first = Window(w.t, w.y, w.observed, w.covariates[..., :2], n_context=L)
    close(net(w).mean, net(first).mean)


@pytest.mark.parametrize("n_phases", [0, 2, 4, 6])
def test_phases_of_missing_seasons_are_zero_and_what_follows_the_phases_is_not_seen(n_phases, make_window):
    net, usual = network(n_covariates=4).eval(), network(n_covariates=4).eval()
    net.n_phases = n_phases
    w = make_window(n_context=L, n_targets=H, dim_covariates=7)
    seen = w.covariates[..., :4].clone()
    seen[..., n_phases:] = 0.0
    close(net(w).mean, usual(Window(w.t, w.y, w.observed, seen, n_context=L)).mean)
    if n_phases == 0:
        close(net(Window(w.t, w.y, w.observed, n_context=L)).mean, net(w).mean)


def test_a_network_of_other_layers_is_refused(written):
    deeper = DirectTaylorformer(LinearBaseline(L, H), **{**HERE, "n_layers": 3})
    with pytest.raises(ValueError, match="does not fit the network"):
        load_pretrained(written).write_into(deeper)


@pytest.mark.parametrize("n", [2, 4])
def test_another_number_of_covariates_is_refused(tmp_path, n):
    save_pretrained(network(n_covariates=3), tmp_path / "other.safetensors", HERE, weight=0.75)
    with pytest.raises(ValueError, match="does not fit the network: layers"):
        load_pretrained(tmp_path / "other.safetensors").write_into(network(n_covariates=n))


@pytest.mark.parametrize("header", ["[]", "no json", '{"settings": {}, "weight": null}', '{"weight": 1}'])
def test_a_header_of_another_kind_is_refused(tmp_path, header):
    from safetensors.torch import save_file

    save_file({"x": torch.zeros(2)}, tmp_path / "other.safetensors", {"pretrained": header})
    with pytest.raises(ValueError, match="holds no pretrained network"):
        load_pretrained(tmp_path / "other.safetensors")


def test_nothing_is_ever_unpickled(tmp_path):
    class Harmful:
        def __reduce__(self):
            return (exec, ("raise SystemExit('unpickled')",))

    path = tmp_path / "harmful.safetensors"
    path.write_bytes(pickle.dumps(Harmful()))
    with pytest.raises(ValueError, match="holds no pretrained network"):
        load_pretrained(path)


def test_tensors_without_a_header_are_refused(tmp_path):
    from safetensors.torch import save_file

    save_file({"x": torch.zeros(2)}, tmp_path / "other.safetensors")
    with pytest.raises(ValueError, match="holds no pretrained network"):
        load_pretrained(tmp_path / "other.safetensors")


def test_a_missing_file_is_named():
    with pytest.raises(FileNotFoundError, match=r"nowhere\.safetensors"):
        load_pretrained("nowhere.safetensors")


def test_the_network_of_the_package_is_small_and_its_card_says_how_it_was_made():
    from safetensors import safe_open

    assert DEFAULT.stat().st_size <= 300_000
    with safe_open(DEFAULT, "pt") as file:
        header = file.metadata()["pretrained"]
    card = DEFAULT.with_suffix(".md").read_text()
    found = load_pretrained("default")
    assert set(SETTINGS) <= set(found.settings)
    command = next(line for line in card.splitlines() if "train_prior.py" in line).split("/")[-1].rstrip("`")
    assert command in header
    assert all(torch.isfinite(value).all() for value in found.weights.values())


@pytest.mark.parametrize("n_phases", [0, 3])
def test_a_network_is_built_around_a_baseline_that_is_not_fitted(tmp_path, n_phases, make_window):
    trained = build_direct(HERE, MAX_CYCLES, L, H, n_phases)
    torch.nn.init.normal_(trained.layers.to_params.weight, std=0.3)
    save_pretrained(trained, tmp_path / "network.safetensors", HERE, weight=0.75)
    net = load_pretrained(tmp_path / "network.safetensors").build(2 * L, H + 1, n_phases, shift=2)
    assert (net.baseline.n_context, net.baseline.horizon, net.baseline.shift) == (2 * L, H + 1, 2)
    assert net.n_phases == n_phases
    for name, value in own(net).items():
        close(value, halved(own(trained)[name]), rtol=0, atol=0)
    w = make_window(n_context=2 * L, n_targets=H)
    close(net.baseline(w)[:, 0], net.baseline(w)[:, -1])  # the last value, repeated


def test_the_network_of_the_package_forecasts_a_season(make_window):
    net = load_pretrained("default").build(24, 6, n_phases=0).eval()
    t = torch.arange(-23.0, 7.0).expand(60, -1) / 24
    y = torch.sin(2 * torch.pi * (4 * t + torch.arange(60.0)[:, None] / 6))[..., None]
    w = Window(t, y, n_context=24)
    net.fit_closed_form(w)
    assert torch.isfinite(net(w).stddev).all()
    assert (net(w).mean - w.targets[0]).abs().mean() < 0.3
