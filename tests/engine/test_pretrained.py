"""Priors: what files hold, and how much of one a series takes."""

import pickle

import numpy as np
import pytest
import torch
from torch.testing import assert_close as close

from taylorformer_forecast.baselines.linear import LinearForecast
from taylorformer_forecast.core.window import Window
from taylorformer_forecast.engine.pretrained import (
    DEFAULT,
    SETTINGS,
    adapt,
    adapt_beside,
    load_prior,
    save_prior,
)
from taylorformer_forecast.engine.windows import Series, WindowMaker
from taylorformer_forecast.models.direct import CorrectedForecast, DirectTaylorformer

L, H = 12, 6
HERE = {"d_model": 8, "n_heads": 2, "n_layers": 2, "distribution": "studentt"}


def network(n_covariates=0, seed=0):
    torch.manual_seed(seed)
    net = DirectTaylorformer(LinearForecast(L, H), dim_covariates=n_covariates, **HERE)
    torch.nn.init.normal_(net.layers.to_params.weight, std=0.3)
    return net


def own(net):
    return {name: value for name, value in net.state_dict().items() if name.startswith("layers.")}


def halved(value):
    return value.half().float() if value.is_floating_point() else value


@pytest.fixture
def written(tmp_path):
    path = tmp_path / "prior.safetensors"
    save_prior(network(), path, HERE, trust=0.75)
    return path


def makers(noise, n=240):
    t = np.arange(float(n))
    y = np.sin(2 * np.pi * t / 6) + noise * np.random.default_rng(0).normal(size=n)
    return WindowMaker([Series(t, y[:, None])], L, H, float(L))


def test_a_prior_comes_back_in_half_precision_with_what_it_says_of_itself(written):
    prior = load_prior(written)
    assert (prior.settings, prior.trust) == (HERE, 0.75)
    for name, value in own(network()).items():
        close(prior.weights[name], halved(value), rtol=0, atol=0)
    assert not any(name.startswith("forecast.") for name in prior.weights)


def test_a_network_takes_the_weights_and_keeps_its_linear_forecast(written):
    net = network(seed=1)
    before = net.forecast.map.steps.weight.clone()
    load_prior(written).write_into(net)
    for name, value in own(net).items():
        close(value, halved(own(network())[name]), rtol=0, atol=0)
    assert torch.equal(net.forecast.map.steps.weight, before)


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


def test_forecasts_are_corrected_after_training_alone():
    maker = makers(0.3)
    w = maker.windows(maker.starts(L)[: -H + 1])[0]
    net, alone = network().eval(), LinearForecast(L, H)
    forecast = CorrectedForecast(net, trust=0.5)
    forecast.start(w)
    alone.start_alone(w)
    close(forecast.train()(w), alone.eval()(w))
    assert (net(w).mean - alone(w)).abs().mean() > 0.01
    close(forecast.eval()(w), net(w).mean)


@pytest.mark.parametrize(("size", "surely"), [(0.0, False), (0.3, True)])
def test_beside_a_trained_network_a_prior_has_to_be_sure(size, surely):
    """What it adds is the same of every window: an error of the linear forecast, or next to nothing."""
    found = {}
    for choose in (adapt, adapt_beside):
        net = network()
        with torch.no_grad():
            net.layers.to_params.weight.zero_()
            net.layers.to_params.bias[0] = 1e-4 if size == 0 else size
        maker = makers(noise=0.2)
        rows = torch.arange(len(maker.y)) >= 0.75 * len(maker.y)
        maker.y[rows] += (
            torch.arange(int(rows.sum()))[:, None] * size / 10
        )  # a rise that was not there before
        choose(net, maker, L, *((1.0,) if choose is adapt else ()))
        found[choose] = round(float(net.forecast.trust * net.layers.to_params.bias[0] / max(size, 1e-4)), 2)
    assert found[adapt_beside] == (0.5 * found[adapt] if surely else 0.0)
    assert found[adapt] or not surely


@pytest.mark.parametrize("change", [{"d_model": 16}, {"distribution": "normal"}])
def test_other_settings_are_named(written, change):
    name, value = next(iter(change.items()))
    with pytest.raises(ValueError, match=f"{name}={value!r}, but the network of pretrained has {name}="):
        load_prior(written).check({**HERE, **change}, HERE)


def test_parameters_at_their_defaults_ask_for_no_other_network(written):
    others = {**HERE, "d_model": 64, "n_heads": 16}
    load_prior(written).check(others, others)


def test_a_network_of_other_layers_is_refused(written):
    deeper = DirectTaylorformer(LinearForecast(L, H), **{**HERE, "n_layers": 3})
    with pytest.raises(ValueError, match="does not fit the network"):
        load_prior(written).write_into(deeper)


@pytest.mark.parametrize("n", [2, 4])
def test_another_number_of_covariates_is_refused(tmp_path, n):
    save_prior(network(n_covariates=3), tmp_path / "other.safetensors", HERE, trust=0.75)
    with pytest.raises(ValueError, match="does not fit the network: layers"):
        load_prior(tmp_path / "other.safetensors").write_into(network(n_covariates=n))


@pytest.mark.parametrize("header", ["[]", "no json", '{"settings": {}, "trust": null}', '{"trust": 1}'])
def test_a_header_of_another_kind_is_no_prior(tmp_path, header):
    from safetensors.torch import save_file

    save_file({"x": torch.zeros(2)}, tmp_path / "other.safetensors", {"prior": header})
    with pytest.raises(ValueError, match="is not a prior"):
        load_prior(tmp_path / "other.safetensors")


def test_nothing_is_ever_unpickled(tmp_path):
    class Harmful:
        def __reduce__(self):
            return (exec, ("raise SystemExit('unpickled')",))

    path = tmp_path / "harmful.safetensors"
    path.write_bytes(pickle.dumps(Harmful()))
    with pytest.raises(ValueError, match="is not a prior"):
        load_prior(path)


def test_tensors_without_a_header_are_no_prior(tmp_path):
    from safetensors.torch import save_file

    save_file({"x": torch.zeros(2)}, tmp_path / "other.safetensors")
    with pytest.raises(ValueError, match="is not a prior"):
        load_prior(tmp_path / "other.safetensors")


def test_a_missing_file_is_named():
    with pytest.raises(FileNotFoundError, match=r"nowhere\.safetensors"):
        load_prior("nowhere.safetensors")


def test_the_prior_of_the_package_is_small_and_its_card_says_how_it_was_made():
    from safetensors import safe_open

    assert DEFAULT.stat().st_size <= 300_000
    with safe_open(DEFAULT, "pt") as file:
        header = file.metadata()["prior"]
    card = DEFAULT.with_suffix(".md").read_text()
    prior = load_prior("default")
    assert set(SETTINGS) <= set(prior.settings)
    command = next(line for line in card.splitlines() if "train.py" in line).split("/")[-1].rstrip("`")
    assert command in header
    assert all(torch.isfinite(value).all() for value in prior.weights.values())


# --- how much of it is taken -----------------------------------------------------------------------------


def test_what_only_harms_is_left_out_and_too_wide_forecasts_are_narrowed():
    net = network()
    with torch.no_grad():
        net.layers.to_params.bias[0] = 3.0  # all means are three errors too high
    adapt(net, makers(noise=0.2), L, usual=1.0)
    assert net.layers.to_params.bias[0] == 0
    assert 0.8 <= net.forecast.stretch <= 1.5


def test_forecasts_that_are_too_narrow_are_widened():
    net = network()
    with torch.no_grad():
        net.layers.to_params.weight.zero_()
        net.layers.to_params.bias[1] = -0.3
    adapt(net, makers(noise=0.2), L, usual=1.0)
    assert net.forecast.stretch > 1 or net.layers.to_params.bias[1] == 0


@pytest.mark.parametrize(("usual", "trusted", "scale"), [(0.25, 0.5, 0.5), (0.75, 0.75, 1.0)])
def test_series_too_short_to_tell_take_the_usual_part(usual, trusted, scale):
    net = network()
    before = net.layers.to_params.weight.detach().clone()
    adapt(net, makers(noise=0.2, n=20), 4, usual)
    assert (net.forecast.trust.item(), net.forecast.stretch.item()) == (trusted, 1.0)
    close(net.layers.to_params.weight, scale * before)
    adapt_beside(net, makers(noise=0.2, n=20), 4)
    assert net.forecast.trust == 0


def test_forecasts_without_width_are_not_stretched_to_nothing():
    net = DirectTaylorformer(LinearForecast(L, H), **{**HERE, "distribution": "mse"})
    adapt(net, WindowMaker([Series(np.arange(200.0), np.zeros((200, 1)))], L, H, float(L), 0.02), L, 0.5)
    assert 0.8 <= net.forecast.stretch <= 1.5


def test_a_last_quarter_without_observations_says_nothing():
    net, maker = network(), makers(noise=0.2)
    maker.observed[170:] = False
    adapt(net, maker, L, usual=0.75)
    assert (net.forecast.trust.item(), net.forecast.stretch.item()) == (0.75, 1.0)


def test_choosing_leaves_the_linear_forecast_to_the_fit():
    net = network()
    before = net.forecast.map.steps.weight.clone()
    adapt(net, makers(noise=0.2), L, usual=0.5)
    assert torch.equal(net.forecast.map.steps.weight, before)
