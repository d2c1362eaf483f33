"""A Taylorformer around a linear forecast, and how training starts from it."""

import numpy as np
import pytest
import torch
from torch.testing import assert_close as close

from taylorformer_forecast.baselines.linear import LinearForecast
from taylorformer_forecast.core.sampling import sample_paths
from taylorformer_forecast.engine.windows import Batches, Series, WindowMaker
from taylorformer_forecast.models.lam import LAMTransformer
from taylorformer_forecast.models.taylorformer import Taylorformer

L, H = 12, 6


def started(kind, noise=0.2, n=400):
    """A network that has seen a noisy season and was not trained further, and windows of it."""
    t = np.arange(float(n))
    y = np.sin(2 * np.pi * t / 6) + noise * np.random.default_rng(0).normal(size=n)
    maker = WindowMaker([Series(t, y[:, None])], L, H, time_unit=float(L), normalise=False)
    batches = Batches(maker, maker.starts(L), 32, seed=0)
    torch.manual_seed(0)
    small = {"d_model": 8, "n_heads": 2, "distribution": "normal"}
    if kind == "lam":
        net = LAMTransformer(L, H, **small)
    else:
        net = Taylorformer(**small, n_layers=2, linear=LinearForecast(L, H), both_sides=kind == "both sides")
    net.start(*batches.sample())
    return net.eval(), maker.windows(maker.starts(L)[: n - L - H])[0]


@pytest.mark.parametrize("kind", ["in order", "both sides", "lam"])
def test_training_starts_from_the_linear_forecast_and_its_errors(kind):
    net, w = started(kind)
    t = 2 * torch.pi * (torch.arange(len(w.y))[:, None] + torch.arange(L, L + H)) / 6
    d = net(w)
    assert (d.mean[..., 0] - torch.sin(t)).abs().mean() < (0.2 if kind == "both sides" else 0.1)
    assert 0.19 < d.stddev.mean() < (0.3 if kind == "both sides" else 0.26)
    inside = ((w.targets[0] - d.mean).abs() < 1.2816 * d.stddev)[1::7].double().mean()
    assert 0.72 < inside < 0.88


def test_errors_do_not_pile_up_along_a_path():
    net, w = started("in order")
    paths = sample_paths(net, w.rows(slice(0, 200, 20)), 400, torch.Generator().manual_seed(0)).paths
    center = net.linear.forecast(w.rows(slice(0, 200, 20)))
    close(paths.mean(1), center, atol=0.06, rtol=0)
    assert paths[:, :, -1].std(1).mean() < 1.3 * paths[:, :, 0].std(1).mean()


@pytest.mark.parametrize("trust", [0.5, 1.0])
def test_what_the_network_adds_piles_up_along_a_path_only_if_all_is_trusted(trust, make_window):
    """Errors that stay, as before a fit, carry it on from step to step."""
    net = Taylorformer(d_model=8, n_heads=2, n_layers=2, linear=LinearForecast(7, 5, trust=trust)).eval()
    with torch.no_grad():
        net.to_params.bias[0] = 0.3
    w = make_window(n_windows=3)
    path = sample_paths(net, w, 1, pick=lambda conditional, _: conditional.mean).paths[:, 0]
    added = trust * 0.3 * net.linear.forecast.unit(w)
    close(path - net.linear.forecast(w), added if trust < 1 else added.cumsum(1))


def test_a_start_on_too_few_windows_leaves_the_neighbour_as_the_anchor(make_window):
    net = Taylorformer(d_model=8, n_heads=2, n_layers=2, linear=LinearForecast(7, 5))
    w = make_window(n_windows=3)
    before = {name: value.clone() for name, value in net.state_dict().items()}
    net.start(w)
    for name, value in net.state_dict().items():
        assert torch.equal(value, before[name]), name
