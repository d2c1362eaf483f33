"""Draws that go together along a path."""

import numpy as np
import pytest
import torch
from torch.distributions import Categorical, MixtureSameFamily, Normal, StudentT
from torch.testing import assert_close as close

from taylorformer_forecast.baselines.linear import LinearBaseline
from taylorformer_forecast.core.families import draw
from taylorformer_forecast.core.families.quantile import QuantileFunction
from taylorformer_forecast.core.sampling import sample_paths
from taylorformer_forecast.core.window import Window
from taylorformer_forecast.engine.windows import Batches, Series, WindowMaker
from taylorformer_forecast.models.direct import DirectTaylorformer
from taylorformer_forecast.models.lam import LAMTransformer

pytestmark = pytest.mark.usefixtures("float64")
L, H = 10, 8


def walk_maker(n=600):
    """Windows of a random walk, whose forecast errors are sums of what came before."""
    y = np.random.default_rng(0).normal(size=n).cumsum()
    return WindowMaker([Series(np.arange(float(n)), y[:, None])], L, H, float(L), normalise=False)


def fitted(kind):
    maker = walk_maker()
    torch.manual_seed(0)
    if kind == "lam":
        net = LAMTransformer(L, H, d_model=8, n_heads=2, distribution="normal", baseline=LinearBaseline(L, H))
    else:
        net = DirectTaylorformer(
            LinearBaseline(L, H), d_model=8, n_heads=2, n_layers=2, distribution="normal"
        )
    net.fit_closed_form(*Batches(maker, maker.starts(L), 32).sample())
    return net.eval(), maker.windows(maker.starts(L)[:1])[0]


@pytest.mark.parametrize("kind", ["lam", "direct"])
def test_paths_of_a_random_walk_walk_though_all_steps_are_predicted_at_once(kind):
    net, w = fitted(kind)
    paths = sample_paths(net, w, 4000, torch.Generator().manual_seed(0)).paths[0, :, :, 0]
    steps = paths.diff(dim=1).std(0)
    close(steps, torch.ones_like(steps), atol=0.2, rtol=0)
    assert paths[:, -1].std() > 2.2  # sqrt(8), had the forecast no other error


@pytest.mark.parametrize("kind", ["lam", "direct"])
def test_how_steps_go_together_leaves_their_distributions_alone(kind):
    net, w = fitted(kind)
    paths = sample_paths(net, w, 4000, torch.Generator().manual_seed(0)).paths
    marginal = net(w)
    close(paths.mean(1), marginal.mean, atol=0.15, rtol=0)
    close(paths.std(1), marginal.stddev, atol=0, rtol=0.05)


def test_noise_is_standard_gaussian_at_any_times():
    net, w = fitted("direct")
    g = torch.Generator().manual_seed(0)
    between = Window(
        torch.cat([w.t[:, :L], torch.tensor([[0.05, 0.07, 0.31, 0.8, 2.0]])], 1),
        torch.zeros(1, L + 5, 1),
        n_context=L,
    )
    for window in (w, between):
        noise = net.noise(window, 20_000, g)
        assert noise.shape == (1, 20_000, window.n_targets, 1)
        close(noise.mean(1), torch.zeros(1, window.n_targets, 1), atol=0.03, rtol=0)
        close(noise.std(1), torch.ones(1, window.n_targets, 1), atol=0.03, rtol=0)
    together = torch.corrcoef(noise[0, :, :, 0].mT)
    assert together[0, 1] > 0.95 > together[0, 3]


def test_before_a_fit_steps_are_independent():
    net = LAMTransformer(L, H, d_model=8, n_heads=2, baseline=LinearBaseline(L, H)).eval()
    w = walk_maker().windows(walk_maker().starts(L)[:1])[0]
    noise = net.noise(w, 4000, torch.Generator().manual_seed(0))[0, :, :, 0]
    close(torch.corrcoef(noise.mT), torch.eye(H), atol=0.06, rtol=0)


def distributions(n):
    """One distribution of each kind, n times."""
    modes = Normal(torch.tensor([[-2.0, 2.0]]).expand(n, -1), torch.tensor([[0.5, 1.0]]).expand(n, -1))
    edges = torch.tensor([[-2.0, 0.0, 1.0, 5.0]]).expand(n, -1)
    return {
        "normal": Normal(torch.ones(n), 2.0),
        "studentt": StudentT(torch.full((n,), 4.0), 1.0, 2.0),
        "mixture": MixtureSameFamily(Categorical(torch.tensor([[0.3, 0.7]]).expand(n, -1)), modes),
        "quantile": QuantileFunction(edges, torch.tensor([0.05, 0.4, 0.6, 0.95])),
    }


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_draws_by_given_noise_too(dtype):
    one = torch.ones(1000, dtype=dtype)
    drawn = draw(StudentT(3 * one, one, one), None, torch.randn(1000).to(dtype))
    assert drawn.dtype == dtype
    assert torch.isfinite(drawn).float().mean() > 0.99


@pytest.mark.parametrize("name", ["normal", "studentt", "mixture", "quantile"])
def test_draws_by_given_noise_have_the_distribution_and_follow_the_noise(name):
    distribution = distributions(40_000)[name]
    noise = torch.randn(40_000, generator=torch.Generator().manual_seed(0))
    drawn = draw(distribution, torch.Generator().manual_seed(1), noise)
    free = draw(distribution, torch.Generator().manual_seed(2))
    levels = torch.tensor([0.05, 0.2, 0.5, 0.8, 0.95])
    close(drawn.quantile(levels), free.quantile(levels), atol=0.12, rtol=0.03)
    assert torch.corrcoef(torch.stack([noise, drawn]))[0, 1] > 0.3
