"""The Gaussian process is fitted by maximum likelihood, and networks around it are calibrated."""

from __future__ import annotations

import math

import pytest
import torch

from taylorformer_forecast.baselines.gaussian_process import GaussianProcessBaseline
from taylorformer_forecast.core.window import Window
from taylorformer_forecast.defaults import INFLATION_PRIOR_COUNT
from taylorformer_forecast.engine.calibration import calibrate_gaussian_process
from taylorformer_forecast.engine.gaussian_process import fit_gaussian_process
from taylorformer_forecast.models.taylorformer import Taylorformer

T = torch.arange(48.0) / 48 - 0.5


def draws(process, n, seed):
    """Windows that are drawn from a process, their last quarter as targets."""
    w = Window(T.expand(n, -1), torch.zeros(n, 48, 1), n_context=36)
    noise = torch.randn(n, 48, 1, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    with torch.no_grad():
        y = (process.factor(w)[:, 0] @ noise).float()
    return Window(w.t, y, n_context=36)


def test_a_known_process_is_found_as_far_as_its_density_tells():
    truth, process = GaussianProcessBaseline(), GaussianProcessBaseline()
    with torch.no_grad():
        truth.log_noise.fill_(math.log(0.5))
        truth.log_variance.copy_(torch.tensor([1e-3, 1e-3, 1.0]).log())
    unseen = draws(truth, 64, seed=99)
    best, before = truth.loss(unseen).item(), process.loss(unseen).item()
    fit_gaussian_process(process, [draws(truth, 16, seed) for seed in range(100)], 100)
    assert before > best + 0.2
    assert process.loss(unseen).item() == pytest.approx(best, abs=0.02)
    assert not any(p.requires_grad for p in process.parameters())


@pytest.mark.parametrize("factor", [1.0, 1.5])
def test_a_bad_network_has_no_weight_and_the_width_is_that_of_the_errors(factor):
    truth = GaussianProcessBaseline()
    net = Taylorformer(d_model=8, n_heads=2, n_layers=2, baseline=GaussianProcessBaseline()).eval()
    torch.nn.init.normal_(net.streams.to_params.weight)  # adds nothing but noise
    w = draws(truth, 32, seed=0)
    with torch.no_grad():
        mean = truth(w)[0][:, 36:]
        # Errors of single points, so that the process is right but for its width.
        y = torch.cat([w.y[:, :36], mean + factor * (w.y[:, 36:] - mean)], 1)
    one = [Window(T.expand(32, -1)[:, :37], y[:, :37], n_context=36)]
    weight, _, inflation = calibrate_gaussian_process([(net, one * 8)])
    assert weight == 0.0
    assert inflation == pytest.approx(factor, rel=0.2)


def test_without_observed_targets_nothing_is_inflated():
    net = Taylorformer(d_model=8, n_heads=2, n_layers=2, baseline=GaussianProcessBaseline()).eval()
    unknown = Window(T.expand(2, -1), torch.full((2, 48, 1), float("nan")), n_context=36)
    assert calibrate_gaussian_process([(net, [unknown])])[-1] == 1.0
    assert INFLATION_PRIOR_COUNT > 0


@pytest.mark.parametrize(("added", "whole"), [(1.0, True), (-1.0, False)])
def test_the_weights_are_those_of_the_least_loss(added, whole):
    """What the network adds to every mean is what targets have more than the process expects, or less."""
    truth = GaussianProcessBaseline()
    net = Taylorformer(d_model=8, n_heads=2, n_layers=2, baseline=GaussianProcessBaseline()).eval()
    with torch.no_grad():
        net.streams.to_params.bias[0] = added
        w = draws(truth, 32, seed=0)
        deviation = truth(w)[1][:, 36:37]
    y = torch.cat([w.y[:, :36], w.y[:, 36:37] + deviation], 1)
    one = [Window(T.expand(32, -1)[:, :37], y, n_context=36)]
    weight, mean_weight, inflation = calibrate_gaussian_process([(net, one * 8)])
    assert (weight * mean_weight == 1.0) if whole else (weight * mean_weight == 0.0)
    assert inflation == 1.0 if whole else inflation > 1.0
