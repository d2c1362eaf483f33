"""Neural processes with a latent variable: the peers in the benchmark of neural processes."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.distributions import MultivariateNormal, Normal

from taylorformer_forecast.core.window import Window


@pytest.fixture(params=["np", "anp"])
def net(request, script):
    """A tiny network of each kind."""
    latent = script("latent")
    torch.manual_seed(0)
    kinds = {"np": lambda: latent.NeuralProcess(8), "anp": lambda: latent.AttentiveNeuralProcess(8, 2)}
    return kinds[request.param]()


@pytest.mark.usefixtures("float64")
def test_a_joint_density_is_exact_where_the_posterior_is(script):
    y, noise = torch.tensor([[0.3, -1.0, 2.0], [0.1, 0.2, -0.4]])[..., None], 0.5  # around one unknown level
    precision = 1 + y.shape[1] / noise**2
    posterior = Normal(y.sum((1, 2)) / noise**2 / precision, precision**-0.5)
    z = posterior.sample((4,))  # (K, B)
    given = Normal(z[..., None, None].expand(-1, -1, 3, 1), noise)
    weights = Normal(0.0, 1.0).log_prob(z) - posterior.log_prob(z)
    shares = script("latent").JointDraws(given, weights).log_prob(y)
    expected = MultivariateNormal(torch.zeros(3), 1 + noise**2 * torch.eye(3)).log_prob(y[..., 0])
    torch.testing.assert_close(shares, (expected / 3)[:, None, None].expand(2, 3, 1))


def test_the_estimate_is_the_density_which_the_bound_of_training_is_below(net, script, monkeypatch):
    window = Window(torch.linspace(-1, 1, 9).expand(40, -1), torch.randn(40, 9, 1), n_context=4)
    monkeypatch.setattr(script("latent"), "DRAWS", 2000)
    found = script("training").log_densities(net, window).mean()
    with torch.no_grad():
        bound = np.mean([-net.loss(window).item() for _ in range(200)])
        prior, _ = net.latents(window)
        given = net.given(window, prior.sample((5000,))).log_prob(window.targets[0]).sum((2, 3))
        density = float((given.logsumexp(0) - np.log(5000)).mean()) / 5
    assert bound < found
    assert found == pytest.approx(density, abs=0.005)


def test_the_order_of_points_changes_no_joint_density(net, script):
    processes, consistency = script("processes"), script("consistency")
    sequences = processes.draw_test("rbf", 20, 20, 1e-4)
    assert consistency.context_change(net, sequences) < 1e-9
    assert consistency.spread(net, sequences, 5).max() < 1e-3


def test_values_of_the_context_are_seen_and_scores_are_finite(net, script):
    window = Window(torch.linspace(-1, 1, 9).expand(2, -1), torch.randn(2, 9, 1), n_context=4)
    scores = script("training").log_densities(net, window)
    assert scores.shape == (2, 5)
    assert np.isfinite(scores).all()
    assert (scores == scores[:, :1]).all()
    y = window.y.clone()
    y[:, 0] += 1.0
    assert (script("training").log_densities(net, Window(window.t, y, n_context=4)) != scores).all()


def test_training_raises_the_likelihood(net, script):
    training = script("training")

    def levels(step):
        g = torch.Generator().manual_seed(step)
        y = torch.randn(16, 1, 1, generator=g) + 0.2 * torch.randn(16, 12, 1, generator=g)
        return Window(2 * torch.rand(16, 12, generator=g) - 1, y, n_context=6)

    training.train(net, levels, 150, 1e-2)
    of_one_gaussian = -0.5 * np.log(2 * np.pi * np.e)
    assert training.log_densities(net, levels(-1)).mean() > of_one_gaussian + 0.5


def test_peers_have_about_as_many_parameters_as_the_others(script):
    networks, training = script("networks"), script("training")
    sizes = {name: training.count_parameters(networks.build(name, 0)) for name in ("tnpa", "anp", "np")}
    assert max(sizes.values()) < 1.05 * min(sizes.values()), sizes
