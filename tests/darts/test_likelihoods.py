"""How networks and darts' likelihoods speak to each other."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from darts import TimeSeries
from darts.utils.likelihood_models import torch as likelihoods
from quiet import QUIET

from taylorformer_forecast.core.families import components, draw, point_forecast
from taylorformer_forecast.darts import LAMModel, TaylorformerModel
from taylorformer_forecast.darts.likelihoods import FamilyLikelihood, StudentTLikelihood, family_of_likelihood

LOCATED = [
    likelihoods.GaussianLikelihood(),
    likelihoods.LaplaceLikelihood(),
    likelihoods.GumbelLikelihood(),
    likelihoods.CauchyLikelihood(),
    likelihoods.QuantileRegression([0.1, 0.5, 0.9]),
    StudentTLikelihood(),
    FamilyLikelihood("normal"),
]


@pytest.fixture
def raw():
    """Return raw parameters of 3 windows, 4 targets, 1 column."""
    g = torch.Generator().manual_seed(0)
    return lambda n: torch.randn(3, 4, 1, n, generator=g)


@pytest.mark.parametrize("likelihood", LOCATED, ids=repr)
def test_components_are_what_the_likelihood_says(likelihood, raw):
    family = family_of_likelihood(likelihood)
    distribution = family(raw(family.n_params), torch.full((3, 4, 1), 7.0))
    again = family.to_raw(components(distribution))
    assert again.shape == (3, 4, 1, family.n_params)
    if isinstance(likelihood, likelihoods.QuantileRegression):
        torch.testing.assert_close(again, distribution.raw)
        return
    params = likelihood._params_from_output(again)
    torch.testing.assert_close(params[0], distribution.raw[..., 0])
    torch.testing.assert_close(params[1], likelihood._params_from_output(distribution.raw)[1])


@pytest.mark.parametrize("likelihood", LOCATED, ids=repr)
def test_the_baseline_moves_every_location(likelihood, raw):
    family = family_of_likelihood(likelihood)
    values = raw(family.n_params)
    at_zero, at_nine = (components(family(values, torch.full((3, 4, 1), a))) for a in (0.0, 9.0))
    torch.testing.assert_close(at_nine.loc - at_zero.loc, torch.full_like(at_zero.loc, 9.0))
    torch.testing.assert_close(at_nine.scale, at_zero.scale)


@pytest.mark.parametrize("likelihood", [None, *LOCATED, likelihoods.PoissonLikelihood()], ids=repr)
@pytest.mark.parametrize("scale", [1.0, torch.ones(3, 4, 1, device="meta")], ids=["number", "tensor"])
def test_parameters_are_made_where_the_network_is(likelihood, scale):
    family = family_of_likelihood(likelihood)
    raw, loc = (torch.zeros(size, device="meta") for size in ((3, 4, 1, family.n_params), (3, 4, 1)))
    found = components(family(raw, loc, scale))
    assert found.loc.is_meta
    assert found.scale.is_meta


@pytest.mark.parametrize(("name", "expected"), [("mse", True), ("mae", True), ("normal", False)])
def test_registered_families_say_whether_they_are_points(name, expected):
    assert family_of_likelihood(FamilyLikelihood(name)).is_point is expected


def test_quantile_regression_is_trained_on_another_device_than_before():
    """darts keeps its levels where they were first used."""
    likelihood = likelihoods.QuantileRegression([0.1, 0.5, 0.9])
    likelihood.first, likelihood.quantiles_tensor = False, torch.empty(3, device="meta")
    model = LAMModel(12, 6, likelihood=likelihood, n_epochs=1, random_state=0, pl_trainer_kwargs=QUIET)
    model.fit(TimeSeries.from_values(np.arange(40.0, dtype="float32")))
    assert model.likelihood.quantiles_tensor is None


@pytest.mark.parametrize("likelihood", LOCATED, ids=repr)
def test_unconstrained_parameters_of_zero_leave_baseline_and_scale_as_they_are(likelihood):
    family = family_of_likelihood(likelihood)
    found = family(
        torch.zeros(1, 1, 1, family.n_params), torch.full((1, 1, 1), 7.0), torch.full((1, 1, 1), 3.0)
    )
    parts = components(found)
    if isinstance(likelihood, likelihoods.QuantileRegression):
        close = torch.distributions.Normal(7.0, 3.0).icdf(torch.tensor(likelihood.quantiles))
        torch.testing.assert_close(parts.loc.flatten(), close)
    else:
        torch.testing.assert_close(point_forecast(found).flatten(), torch.tensor([7.0]))
        unit = getattr(family, "variance", None) or 1.0
        close = torch.tensor([3.0 / unit**0.5])
        torch.testing.assert_close(parts.scale.flatten(), close, atol=0.01, rtol=0)


def test_scales_survive_the_way_to_darts_and_back_at_any_size():
    family = family_of_likelihood(likelihoods.GaussianLikelihood())
    parts = components(family(torch.zeros(1, 1, 1, 2), torch.zeros(1, 1, 1)))
    for size in (1e-6, 1e-2, 1.0, 50.0, 1e6):
        moved = replace(parts, scale=torch.full_like(parts.scale, size))
        _, scale = family.likelihood._params_from_output(family.to_raw(moved))
        assert scale.item() == pytest.approx(size, rel=1e-4)


@pytest.mark.parametrize("name", ["Poisson", "Beta", "Gamma", "HalfNormal", "LogNormal", "Bernoulli"])
def test_values_with_a_natural_unit_have_no_baseline(name, raw):
    family = family_of_likelihood(getattr(likelihoods, f"{name}Likelihood")())
    values = raw(family.n_params)
    assert not family.has_location
    taken = [family.to_raw(components(family(values, torch.full((3, 4, 1), a)))) for a in (0.0, 9.0)]
    assert torch.equal(*taken)
    torch.manual_seed(0)
    expected = family.likelihood.sample(taken[0])
    torch.manual_seed(0)
    assert torch.equal(draw(family(values, torch.zeros(3, 4, 1))), expected)


LEVELS = [
    "Poisson",
    "NegativeBinomial",
    "Geometric",
    "Exponential",
    "HalfNormal",
    "Gamma",
    "Weibull",
    "LogNormal",
]


@pytest.mark.parametrize("unit", [0.2, 40.0, 1e5])
@pytest.mark.parametrize("name", LEVELS)
def test_means_of_counts_and_positive_values_are_in_units_of_their_level(name, unit):
    likelihood = getattr(likelihoods, f"{name}Likelihood")()
    one, found = (family_of_likelihood(likelihood, level) for level in (1.0, unit))
    raw, loc = torch.zeros(1, 1, 1, one.n_params), torch.zeros(1, 1, 1)
    means = []
    for family in (one, found):
        params = likelihood._params_from_output(family.to_raw(components(family(raw, loc))))
        means.append(likelihood._distr_from_params(params).mean)
    torch.testing.assert_close(means[1], unit * means[0], rtol=1e-4, atol=0.0)
    torch.testing.assert_close(point_forecast(found(raw, loc)), means[0], rtol=1e-4, atol=0.0)
    torch.manual_seed(0)
    draws = found.sample(found(raw.expand(4000, 1, 1, -1), loc.expand(4000, 1, 1)))
    assert 0.8 < draws.mean() / means[0].mean() < 1.25


@pytest.mark.parametrize("name", ["Poisson", "Geometric"])
def test_levels_have_gradients_however_small_their_parameters(name):
    raw = torch.full((1, 1, 1, 1), -110.0, requires_grad=True)
    family = family_of_likelihood(getattr(likelihoods, f"{name}Likelihood")(), 1000.0)
    found = family.parameters(raw, raw[..., 0], 1.0)
    found.sum().backward()
    assert found.isfinite().all()
    assert raw.grad.isfinite().all()


def test_probabilities_of_counts_are_positive_whatever_the_network_says():
    """One path of UNN had a probability of 0, and darts raised an error."""
    family = family_of_likelihood(likelihoods.GeometricLikelihood(), 8.0)
    raw = torch.tensor([-1e4, -100.0, 0.0, 100.0, 1e4]).view(-1, 1, 1, 1)
    (found,) = family.likelihood._params_from_output(family.parameters(raw, raw[..., 0], 1.0))
    assert 0 < found.min() <= found.max() <= 1


@pytest.mark.parametrize("name", ["Poisson", "NegativeBinomial", "Geometric", "LogNormal"])
@pytest.mark.parametrize("model", [TaylorformerModel, LAMModel])
def test_forecasts_of_counts_have_the_level_of_the_series(model, name):
    values = np.random.default_rng(0).poisson(5000 + 1000 * np.sin(np.arange(60)))
    y = TimeSeries.from_values(values.astype(np.float32))
    likelihood = getattr(likelihoods, f"{name}Likelihood")()
    fitted = model(12, 4, n_epochs=2, random_state=0, likelihood=likelihood, pl_trainer_kwargs=QUIET).fit(y)
    drawn = fitted.predict(8, num_samples=200)  # twice the output chunk
    if name == "LogNormal":  # after two epochs its tails are so wide that the mean is one of few paths
        assert 5000 / 4 < np.median(drawn.all_values()) < 5000 * 4
    else:
        assert drawn.mean().values().mean() == pytest.approx(5000, rel=0.4)
    values = drawn.all_values()
    assert values.min() >= 0
    assert name == "LogNormal" or (values == values.round()).all()
    if name == "Poisson":
        rate = fitted.predict(4, predict_likelihood_parameters=True).values()[:, 0]
        np.testing.assert_allclose(rate, drawn.mean().values()[:4, 0], rtol=0.02)


def test_points_are_drawn_as_they_are(raw):
    family = family_of_likelihood(None)
    values = raw(1)
    assert torch.equal(draw(family(values, torch.zeros(3, 4, 1))), values[..., 0])


@pytest.mark.parametrize("likelihood", LOCATED, ids=repr)
def test_the_marginal_of_one_path_is_its_conditional(likelihood, raw):
    if isinstance(likelihood, likelihoods.QuantileRegression):
        return
    family = family_of_likelihood(likelihood)
    distribution = family(raw(family.n_params)[:, None], torch.zeros(3, 1, 4, 1))
    marginal = family.marginal(components(distribution), point_forecast(distribution))
    torch.testing.assert_close(marginal, family.to_raw(components(distribution))[:, 0])


def test_the_marginal_of_many_paths_has_their_mean_and_variance():
    family = family_of_likelihood(likelihoods.GaussianLikelihood())
    g = torch.Generator().manual_seed(0)
    raw = torch.randn(1, 500, 2, 1, 2, generator=g)
    distribution = family(raw, torch.zeros(1, 500, 2, 1))
    parts = components(distribution)
    mean, sigma = family.likelihood._params_from_output(family.marginal(parts, raw[..., 0]))
    paths = torch.distributions.Normal(parts.loc[0, ..., 0], parts.scale[0, ..., 0]).sample((400,))
    torch.testing.assert_close(mean[0], paths.mean((0, 1)), rtol=0.02, atol=0.02)
    torch.testing.assert_close(sigma[0], paths.std((0, 1)), rtol=0.02, atol=0.02)


def test_cauchy_parameters_are_quartiles_of_the_draws_of_all_paths():
    """The mean of the paths' locations was far from all draws, and their spread was not in gamma."""
    family = family_of_likelihood(likelihoods.CauchyLikelihood())
    g = torch.Generator().manual_seed(0)
    loc = torch.distributions.Cauchy(7.0, 2.0).icdf(torch.rand(1, 500, 2, 1, generator=g))
    parts = components(family(torch.randn(1, 500, 2, 1, 2, generator=g), loc))
    middle, gamma = family.likelihood._params_from_output(family.marginal(parts, loc))
    draws = torch.distributions.Cauchy(parts.loc[0, ..., 0], parts.scale[0, ..., 0]).sample((400,))
    low, median, high = draws.flatten(0, 1).quantile(torch.tensor([0.25, 0.5, 0.75]), 0)
    torch.testing.assert_close(middle[0], median, rtol=0.02, atol=0.0)
    torch.testing.assert_close(gamma[0], (high - low) / 2, rtol=0.02, atol=0.0)


@pytest.mark.parametrize("likelihood", LOCATED[:3], ids=repr)
def test_unconstrained_parameters_of_zero_give_mean_and_deviation_of_the_baseline(likelihood):
    loc, scale = torch.tensor([[3.0]]), torch.tensor([[2.0]])
    raw = family_of_likelihood(likelihood).parameters(torch.zeros(1, 1, 1, 2), loc[None], scale[None])
    found = likelihood._distr_from_params(likelihood._params_from_output(raw))
    torch.testing.assert_close(found.mean.squeeze(), torch.tensor(3.0))
    torch.testing.assert_close(found.stddev.squeeze(), torch.tensor(2.0))


@pytest.mark.parametrize("names", [(), ("a",), ("a", "b", "c")])
def test_a_likelihood_needs_as_many_names_as_its_family_has_parameters(names):
    with pytest.raises(ValueError, match="but normal has 2 parameters: loc, scale"):
        FamilyLikelihood("normal", names=names)
    assert FamilyLikelihood("normal", names=("a", "b")).parameter_names == ["a", "b"]
