"""How networks and darts' likelihoods speak to each other."""

from __future__ import annotations

import pytest
import torch
from darts.utils.likelihood_models import torch as likelihoods

from taylorformer_forecast.core.heads import components, draw
from taylorformer_forecast.darts.likelihoods import VARIANCE, LikelihoodHead, StudentTLikelihood

LOCATED = [
    *(kind() for kind in VARIANCE),
    likelihoods.QuantileRegression([0.1, 0.5, 0.9]),
    StudentTLikelihood(),
]


@pytest.fixture
def raw():
    """Return raw parameters of 3 windows, 4 targets, 1 column."""
    g = torch.Generator().manual_seed(0)
    return lambda n: torch.randn(3, 4, 1, n, generator=g)


@pytest.mark.parametrize("likelihood", LOCATED, ids=repr)
def test_components_are_what_the_likelihood_says(likelihood, raw):
    head = LikelihoodHead(likelihood)
    distribution = head(raw(head.n_params), torch.full((3, 4, 1), 7.0))
    again = head.to_raw(components(distribution))
    assert again.shape == (3, 4, 1, head.n_params)
    if isinstance(likelihood, likelihoods.QuantileRegression):
        torch.testing.assert_close(again, distribution.raw)
        return
    params = likelihood._params_from_output(again)
    torch.testing.assert_close(params[0], distribution.raw[..., 0])
    torch.testing.assert_close(params[1], likelihood._params_from_output(distribution.raw)[1])


@pytest.mark.parametrize("likelihood", LOCATED, ids=repr)
def test_the_anchor_moves_every_location(likelihood, raw):
    head = LikelihoodHead(likelihood)
    values = raw(head.n_params)
    at_zero, at_nine = (components(head(values, torch.full((3, 4, 1), a))) for a in (0.0, 9.0))
    torch.testing.assert_close(at_nine.loc - at_zero.loc, torch.full_like(at_zero.loc, 9.0))
    torch.testing.assert_close(at_nine.scale, at_zero.scale)


@pytest.mark.parametrize("likelihood", LOCATED, ids=repr)
def test_a_network_that_says_nothing_leaves_anchor_and_unit_as_they_are(likelihood):
    head = LikelihoodHead(likelihood)
    found = head(torch.zeros(1, 1, 1, head.n_params), torch.full((1, 1, 1), 7.0), torch.full((1, 1, 1), 3.0))
    parts = components(found)
    if isinstance(likelihood, likelihoods.QuantileRegression):
        close = torch.distributions.Normal(7.0, 3.0).icdf(torch.tensor(likelihood.quantiles))
        torch.testing.assert_close(parts.loc.flatten(), close)
    else:
        torch.testing.assert_close(parts.loc.flatten(), torch.tensor([7.0]))
        torch.testing.assert_close(parts.scale.flatten(), torch.tensor([3.0]), atol=0.01, rtol=0)


def test_scales_survive_the_way_to_darts_and_back_at_any_size():
    head = LikelihoodHead(likelihoods.GaussianLikelihood())
    parts = components(head(torch.zeros(1, 1, 1, 2), torch.zeros(1, 1, 1)))
    for size in (1e-6, 1e-2, 1.0, 50.0, 1e6):
        moved = type(parts)(parts.loc, torch.full_like(parts.scale, size))
        _, scale = head.likelihood._params_from_output(head.to_raw(moved))
        assert scale.item() == pytest.approx(size, rel=1e-4)


@pytest.mark.parametrize("name", ["Poisson", "Beta", "Gamma", "HalfNormal", "LogNormal"])
def test_values_with_a_natural_unit_have_no_anchor(name, raw):
    head = LikelihoodHead(getattr(likelihoods, f"{name}Likelihood")())
    values = raw(head.n_params)
    assert not head.has_location
    distribution = head(values, torch.full((3, 4, 1), 9.0))
    torch.testing.assert_close(head.to_raw(components(distribution)), values)
    torch.manual_seed(0)
    expected = head.likelihood.sample(values)
    torch.manual_seed(0)
    assert torch.equal(draw(distribution), expected)


def test_points_are_drawn_as_they_are(raw):
    head = LikelihoodHead(None)
    values = raw(1)
    assert torch.equal(draw(head(values, torch.zeros(3, 4, 1))), values[..., 0])


@pytest.mark.parametrize("likelihood", LOCATED, ids=repr)
def test_the_marginal_of_one_path_is_its_conditional(likelihood, raw):
    if isinstance(likelihood, likelihoods.QuantileRegression):
        return
    head = LikelihoodHead(likelihood)
    distribution = head(raw(head.n_params)[:, None], torch.zeros(3, 1, 4, 1))
    marginal = head.marginal(components(distribution), distribution.center())
    torch.testing.assert_close(marginal, head.to_raw(components(distribution))[:, 0])


def test_the_marginal_of_many_paths_has_their_mean_and_variance():
    head = LikelihoodHead(likelihoods.GaussianLikelihood())
    g = torch.Generator().manual_seed(0)
    raw = torch.randn(1, 500, 2, 1, 2, generator=g)
    distribution = head(raw, torch.zeros(1, 500, 2, 1))
    parts = components(distribution)
    mean, sigma = head.likelihood._params_from_output(head.marginal(parts, raw[..., 0]))
    paths = torch.distributions.Normal(parts.loc[0, ..., 0], parts.scale[0, ..., 0]).sample((400,))
    torch.testing.assert_close(mean[0], paths.mean((0, 1)), rtol=0.02, atol=0.02)
    torch.testing.assert_close(sigma[0], paths.std((0, 1)), rtol=0.02, atol=0.02)
