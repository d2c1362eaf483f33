"""The benchmark of neural processes: exact ceilings, training that survives interruption, whole results."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.distributions import MultivariateNormal

from taylorformer_forecast.models.tnp import TNPA

KERNELS = ("rbf", "matern", "periodic")


@pytest.mark.parametrize("kernel", KERNELS)
def test_the_ceiling_is_the_conditional_log_density_under_the_true_kernel(script, kernel):
    processes = script("processes")
    s = processes.draw_test(kernel, 4, 12, 1e-3)
    scores = np.where(s.is_target, processes.ceiling(s), 0).sum(1)
    for y, root, n, score in zip(s.y, s.root, s.n_context, scores, strict=True):
        y, covariance = torch.from_numpy(y), torch.from_numpy(root @ root.T)
        joint, context = (
            MultivariateNormal(torch.zeros(k).double(), covariance[:k, :k]).log_prob(y[:k]) for k in (12, n)
        )
        assert score == pytest.approx(float(joint - context), abs=1e-8)


@pytest.mark.parametrize("kernel", KERNELS)
def test_drawn_values_have_the_covariance_of_their_kernel(script, kernel):
    processes = script("processes")
    covariance, ranges = processes.KERNELS[kernel]
    s = processes.draw(kernel, 20_000, 6, 1e-2, np.random.default_rng(0))
    for name, (low, high) in ranges.items():
        assert low < high, name
    d = np.abs(s.x[:, :1] - s.x[:, 1:])
    grid = [np.linspace(*ends, 60)[None, None] for ends in ranges.values()]
    mesh = dict(zip(ranges, np.meshgrid(*[g.ravel() for g in grid]), strict=True))
    for low in (0.0, 0.3, 1.0):
        near = (d >= low) & (d < low + 0.05)
        found = (s.y[:, :1] * s.y[:, 1:])[near].mean()
        middle = {name: values.ravel()[None] for name, values in mesh.items()}
        expected = covariance(d[near][:500, None], middle).mean()
        assert found == pytest.approx(expected, abs=0.06), low


def test_context_sizes_are_those_of_the_paper(script):
    processes = script("processes")
    rng = np.random.default_rng(0)
    sizes = [processes.context_size(100, rng) for _ in range(5000)]
    assert (min(sizes), max(sizes)) == (3, 97)


def test_training_goes_on_where_it_was_interrupted(script, tmp_path, monkeypatch):
    processes, training = script("processes"), script("training")
    monkeypatch.setattr(training, "SAVE_EVERY", 2)

    def batches(step):
        s = processes.draw("rbf", 4, 12, 1e-2, np.random.default_rng([0, step]))
        return processes.windows_of(s, int(s.n_context[0]))

    def cut(step):
        if step == 5:
            raise KeyboardInterrupt
        return batches(step)

    def made(make, checkpoint):
        torch.manual_seed(0)
        net = TNPA(d_model=8, n_heads=2, n_layers=1, dropout=0.1)
        return net, training.train(net, make, 8, 1e-2, checkpoint)

    whole, about = made(batches, None)
    with pytest.raises(KeyboardInterrupt):
        made(cut, tmp_path / "net.pt")
    again, about_again = made(batches, tmp_path / "net.pt")
    assert about_again["curve"] == about["curve"]
    assert all(torch.equal(a, b) for a, b in zip(whole.parameters(), again.parameters(), strict=True))
    with pytest.raises(ValueError, match="8 steps, not 9"):
        training.train(again, batches, 9, 1e-2, tmp_path / "net.pt")
