"""The Gaussian process is fitted to what it is shown, and networks are trusted as far as they deserve."""

from __future__ import annotations

import math

import pytest
import torch

from taylorformer_forecast.baselines.gaussian_process import GaussianAnchor
from taylorformer_forecast.core.window import Window
from taylorformer_forecast.engine.gaussian_process import CONFIRMED, calibrate, fit_anchor
from taylorformer_forecast.models.taylorformer import Taylorformer

T = torch.arange(48.0) / 48 - 0.5


def draws(anchor, n, seed):
    """Windows that are drawn from a process, their last quarter as targets."""
    w = Window(T.expand(n, -1), torch.zeros(n, 48, 1), n_context=36)
    noise = torch.randn(n, 48, 1, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    with torch.no_grad():
        y = (anchor.factor(w)[:, 0] @ noise).float()
    return Window(w.t, y, n_context=36)


def test_a_known_process_is_found_as_far_as_its_density_tells():
    truth, anchor = GaussianAnchor(), GaussianAnchor()
    with torch.no_grad():
        truth.log_noise.fill_(math.log(0.5))
        truth.log_variance.copy_(torch.tensor([1e-3, 1e-3, 1.0]).log())
    unseen = draws(truth, 64, seed=99)
    best, before = truth.loss(unseen).item(), anchor.loss(unseen).item()
    fit_anchor(anchor, [draws(truth, 16, seed) for seed in range(100)], 100, lr=0.2)
    assert before > best + 0.2
    assert anchor.loss(unseen).item() == pytest.approx(best, abs=0.02)
    assert not any(p.requires_grad for p in anchor.parameters())


@pytest.mark.parametrize("factor", [1.0, 1.5])
def test_a_bad_network_is_not_trusted_and_the_width_is_that_of_the_errors(factor):
    truth = GaussianAnchor()
    net = Taylorformer(d_model=8, n_heads=2, n_layers=2, gaussian_anchor=True).eval()
    torch.nn.init.normal_(net.to_params.weight)  # says nothing but nonsense
    w = draws(truth, 32, seed=0)
    with torch.no_grad():
        mean = truth(w)[0][:, 36:]
        # Errors of single points, so that the process is right but for its width.
        y = torch.cat([w.y[:, :36], mean + factor * (w.y[:, 36:] - mean)], 1)
    one = [Window(T.expand(32, -1)[:, :37], y[:, :37], n_context=36)]
    trust, _, stretch = calibrate([(net, one * 8)])
    assert trust == 0.0
    assert stretch == pytest.approx(factor, rel=0.2)


def test_without_anything_to_go_by_nothing_is_stretched():
    net = Taylorformer(d_model=8, n_heads=2, n_layers=2, gaussian_anchor=True).eval()
    unknown = Window(T.expand(2, -1), torch.full((2, 48, 1), float("nan")), n_context=36)
    assert calibrate([(net, [unknown])])[-1] == 1.0
    assert CONFIRMED > 0
