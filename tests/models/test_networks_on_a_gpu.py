"""On a CUDA device networks are the functions that they are on the CPU."""

import copy

import pytest
import torch

from taylorformer_forecast.core.protocol import training_loss
from taylorformer_forecast.core.sampling import sample_paths

pytestmark = [
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
    pytest.mark.usefixtures("float64"),
]


def on_both(case):
    """A network and windows with gaps, on the CPU and on the GPU."""
    net, window = case.net(), case.window(missing="entries")
    return [(net, window), (copy.deepcopy(net).cuda(), window.to("cuda"))]


def test_distributions_are_those_of_the_cpu(any_case, numbers):
    here, there = (numbers(net(window)) for net, window in on_both(any_case))
    assert there.is_cuda
    torch.testing.assert_close(there.cpu(), here, rtol=1e-8, atol=1e-8)


def test_gradients_are_those_of_the_cpu(any_case, trained):
    found = []
    for net, window in on_both(any_case):
        training_loss(net(window), window).backward()
        found.append({name: p.grad.cpu() for name, p in trained(net) if p.grad is not None})
    here, there = found
    assert here
    assert here.keys() == there.keys()
    for name, value in here.items():
        torch.testing.assert_close(there[name], value, rtol=1e-6, atol=1e-7)


def test_paths_through_the_means_are_those_of_the_cpu(stepwise_case):
    here, there = (
        sample_paths(net, window, 2, pick=lambda distribution, _: distribution.mean).paths
        for net, window in on_both(stepwise_case)
    )
    torch.testing.assert_close(there.cpu(), here, rtol=1e-7, atol=1e-7)


def test_random_paths_have_the_quantiles_of_those_of_the_cpu(any_case):
    quantiles = []
    for net, window in on_both(any_case):
        generator = torch.Generator(window.y.device).manual_seed(0)
        paths = sample_paths(net, window, 2000, generator).paths
        levels = torch.tensor([0.1, 0.5, 0.9], device=paths.device)
        quantiles.append(paths.quantile(levels, dim=1).cpu())
    here, there = quantiles
    width = (here[2] - here[0]).clamp_min(1e-9)
    assert ((there - here).abs() / width).mean() < 0.08
