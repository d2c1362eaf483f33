"""The families of the package: densities, scale floors, components, draws with a private generator."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats
import torch
from torch.distributions import Categorical, Cauchy, MixtureSameFamily, Normal, StudentT, Uniform

from taylorformer_forecast.core.families import FAMILIES, affine, components, draw, find_component
from taylorformer_forecast.core.families.quantile import QuantileFunction
from taylorformer_forecast.defaults import QUANTILE_LEVELS

pytestmark = pytest.mark.usefixtures("float64")

NAMES = ["mae", "mixture", "mse", "normal", "quantile", "studentt"]
POINTS = ["mse", "mae"]
SMOOTH = ["mixture", "normal", "studentt"]  # a density everywhere, scales
START_WIDTH = {"mixture": np.sqrt(19 / 27)}  # of three components at -2/3, 0 and 2/3, of deviation 1 together
WITH_DENSITY = [*SMOOTH, "quantile"]


def randn(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def predict(name, scale="exp", shape=(5, 2)):
    family = FAMILIES[name](scale=scale)
    return family(randn(*shape, family.n_params), 3 + randn(*shape, seed=1))


def scipy_density(name, raw, loc, y, df):
    """Log-density by the formulas of the docstrings, for the exponential scale."""
    raw, loc, y = raw.numpy(), loc.numpy(), y.numpy()
    if name == "normal":
        return scipy.stats.norm.logpdf(y, loc + raw[..., 0], np.exp(raw[..., 1]) + 1e-3)
    if name == "studentt":
        return scipy.stats.t.logpdf(y, df.numpy(), loc + raw[..., 0], np.exp(raw[..., 1]) + 1e-3)
    weights = np.exp(raw[..., 6:]) / np.exp(raw[..., 6:]).sum(-1, keepdims=True)
    middle = loc[..., None] + raw[..., :3] + np.array([-2, 0, 2]) / 3  # components start side by side
    parts = scipy.stats.norm.pdf(
        y[..., None], middle, START_WIDTH["mixture"] * (np.exp(raw[..., 3:6]) + 1e-3)
    )
    return np.log((weights * parts).sum(-1))


@pytest.mark.parametrize("name", SMOOTH)
def test_densities_equal_their_closed_form(name):
    family = FAMILIES[name]()
    raw, loc, y = randn(5, 2, family.n_params), randn(5, 2, seed=1), 3 * randn(5, 2, seed=2)
    distribution = family(raw, loc)
    expected = scipy_density(name, raw, loc, y, getattr(distribution, "df", None))
    np.testing.assert_allclose(distribution.log_prob(y).numpy(), expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("name", NAMES)
def test_moved_and_stretched_distributions_are_those_of_moved_and_stretched_values(name):
    d, loc, factor = predict(name), randn(5, 2, seed=3), 0.5 + randn(5, 2, seed=4).square()
    changed, y = affine(d, loc, factor), randn(5, 2, seed=2)
    assert type(changed) is type(d)
    torch.testing.assert_close(changed.mean, loc + factor * d.mean)
    torch.testing.assert_close(changed.variance, factor.square() * d.variance)
    if name in WITH_DENSITY:
        torch.testing.assert_close(changed.log_prob(loc + factor * y), d.log_prob(y) - factor.log())


def test_distributions_of_other_kinds_are_not_moved():
    with pytest.raises(TypeError, match="no family is registered for Cauchy"):
        affine(Cauchy(0.0, 1.0), torch.zeros(()), torch.ones(()))


@pytest.mark.parametrize("name", NAMES)
def test_the_location_moves_a_distribution_without_changing_it(name):
    family, raw, y = FAMILIES[name](), randn(5, 2, FAMILIES[name]().n_params), randn(5, 2, seed=2)
    still, moved = (family(raw, torch.full((5, 2), loc)) for loc in (0.0, 7.0))
    torch.testing.assert_close(moved.mean, still.mean + 7)
    torch.testing.assert_close(moved.variance, still.variance)
    if name in WITH_DENSITY:
        torch.testing.assert_close(moved.log_prob(y + 7), still.log_prob(y))
    if name not in SMOOTH:
        torch.testing.assert_close(moved.score(y + 7), still.score(y))


@pytest.mark.parametrize("name", SMOOTH)
@pytest.mark.parametrize(("scale", "floor"), [("exp", 0.001), ("bounded", 0.011)])
def test_scales_grow_with_the_unconstrained_number_and_never_fall_below_their_floor(name, scale, floor):
    family = FAMILIES[name](scale=scale)
    raws = torch.tensor([-1e3, -5.0, 0.0, 2.0])[:, None, None].expand(4, 1, family.n_params)
    scales = components(family(raws, torch.zeros(4, 1))).scale[:, 0, 0] / START_WIDTH.get(name, 1.0)
    assert scales[0].item() == pytest.approx(floor, rel=1e-12)
    assert (scales.diff() > 0).all()
    start = {"exp": 1.001, "bounded": 0.011 + 0.99 * np.log(2)}[scale]
    assert scales[2].item() == pytest.approx(start, rel=1e-12)


def test_degrees_of_freedom_range_from_barely_a_variance_to_nearly_gaussian():
    raw = torch.zeros(5, 1, 3)
    raw[:, 0, 2] = torch.tensor([-30.0, -5.0, 0.0, 5.0, 50.0])
    distribution = FAMILIES["studentt"]()(raw, torch.zeros(5, 1))
    df = distribution.df[:, 0]
    assert (df.diff() > 0).all()
    assert df[0] == pytest.approx(2.1)
    assert df[-1] > 30
    assert torch.isfinite(distribution.variance).all()


def rebuild(parts):
    """Make a distribution from components again, without their family."""
    weights = None if parts.weights is None else Categorical(parts.weights)
    if parts.family == find_component("quantile"):
        edges = Uniform(parts.loc - parts.scale, parts.loc + parts.scale, validate_args=False)
        return MixtureSameFamily(weights, edges, validate_args=False)
    if parts.shape:
        return StudentT(parts.shape["df"][..., 0], parts.loc[..., 0], parts.scale[..., 0])
    if weights is not None:
        return MixtureSameFamily(weights, Normal(parts.loc, parts.scale))
    return Normal(parts.loc[..., 0], parts.scale[..., 0])


@pytest.mark.parametrize("name", WITH_DENSITY)
def test_components_hold_all_of_a_distribution(name):
    distribution = predict(name)
    y = distribution.mean + 0.3 * randn(5, 2, seed=3)
    parts = components(distribution)
    k = {"mixture": 3, "quantile": 14}.get(name, 1)
    assert parts.loc.shape == parts.scale.shape == (5, 2, k)
    torch.testing.assert_close(rebuild(parts).log_prob(y), distribution.log_prob(y))


@pytest.mark.parametrize("stranger", ["plain", "mixture"])
def test_components_of_an_unknown_distribution_are_refused(stranger):
    parts = Cauchy(torch.zeros(4, 3), torch.ones(4, 3))
    distribution = parts if stranger == "plain" else MixtureSameFamily(Categorical(torch.ones(4, 3)), parts)
    with pytest.raises(TypeError, match=type(distribution).__name__):
        components(distribution)


@pytest.mark.parametrize("name", WITH_DENSITY)
def test_draws_repeat_with_their_generator_and_leave_the_global_one_alone(name):
    distribution, before = predict(name), torch.get_rng_state()
    draws = [draw(distribution, torch.Generator().manual_seed(seed)) for seed in (5, 5, 6)]
    assert torch.equal(draws[0], draws[1])
    assert not torch.equal(draws[0], draws[2])
    assert draws[0].shape == (5, 2)
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize("name", NAMES)
def test_draws_without_a_generator_follow_the_global_seed(name):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        first = draw(predict(name))
        torch.manual_seed(3)
        assert torch.equal(draw(predict(name)), first)


@pytest.mark.parametrize("name", WITH_DENSITY)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_draws_have_the_distribution_that_they_are_drawn_from(name, dtype):
    family = FAMILIES[name]()
    # Two modes for the mixture, few degrees of freedom for the Student.
    raw = {
        "normal": [0.5, 0.7],
        "studentt": [0.5, 0.7, -9.0],
        "mixture": [-4.0, 0.0, 3.0, 0.2, -1.0, -0.5, 0.3, -1.0, 0.8],
        "quantile": [0.5, *np.linspace(-2, 3, 12)],
    }[name]
    raw = torch.tensor(raw, dtype=dtype).expand(20_000, 1, family.n_params)
    sample = draw(family(raw, torch.full((20_000, 1), 2.0, dtype=dtype)), torch.Generator().manual_seed(0))
    assert sample.dtype == dtype

    parts = components(family(raw[:1].double(), torch.full((1, 1), 2.0)))
    loc, scale = parts.loc[0, 0].numpy(), parts.scale[0, 0].numpy()
    weights = np.ones(1) if parts.weights is None else parts.weights[0, 0].numpy()

    def cdf(y):
        z = (np.asarray(y)[:, None] - loc) / scale
        base = scipy.stats.norm.cdf(z) if name in ("normal", "mixture") else np.clip((z + 1) / 2, 0, 1)
        if name == "studentt":
            base = scipy.stats.t.cdf(z, parts.shape["df"][0, 0].numpy())
        return (weights * base).sum(-1)

    assert scipy.stats.kstest(sample[:, 0].double().numpy(), cdf).pvalue > 0.01


@pytest.mark.parametrize("name", WITH_DENSITY)
def test_entries_of_a_draw_are_independent(name):
    family = FAMILIES[name]()
    raw = torch.zeros(20_000, 2, family.n_params)
    sample = draw(family(raw, torch.zeros(20_000, 2)), torch.Generator().manual_seed(2))
    rank = scipy.stats.spearmanr(sample[:, 0].numpy(), sample[:, 1].numpy())
    assert rank.pvalue > 0.01
    order = scipy.stats.spearmanr(sample[1:, 0].numpy(), sample[:-1, 0].numpy())
    assert order.pvalue > 0.01


@pytest.mark.parametrize("name", NAMES)
def test_the_standard_member_of_every_family_has_mean_zero_and_deviation_one(name):
    blank = components(predict(name)).standard()
    sample = blank.map(lambda v: v[:1, :1].expand(40_000, 1, -1)).sample(torch.Generator().manual_seed(0))
    assert sample.mean().item() == pytest.approx(0.0, abs=0.02)
    assert sample.std().item() == pytest.approx(1.0, abs=0.03)


# --- quantiles ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [0.0, 1.0, 30.0, 1e4])
def test_quantiles_never_cross(size):
    family = FAMILIES["quantile"]()
    d = family(size * randn(50, 2, family.n_params), randn(50, 2, seed=1))
    assert (d.values.diff(dim=-1) > 0).all()
    assert (d.edges.diff(dim=-1) > 0).all()


def test_quantiles_start_as_those_of_the_standard_gaussian():
    d = FAMILIES["quantile"]()(torch.zeros(1, 1, 13), torch.zeros(1, 1))
    np.testing.assert_allclose(d.values[0, 0].numpy(), scipy.stats.norm.ppf(QUANTILE_LEVELS), atol=0.01)
    assert d.variance.item() == pytest.approx(1.0, abs=0.05)


def test_the_quantile_function_inverts_the_cdf_whose_slope_is_the_density():
    d = predict("quantile")
    for p in (0.003, 0.01, 0.07, 0.5, 0.93, 0.999):
        y = d.icdf(torch.tensor(p))
        torch.testing.assert_close(d.cdf(y), torch.full((5, 2), p))
        slope = (d.cdf(y + 1e-7) - d.cdf(y)) / 1e-7
        torch.testing.assert_close(d.log_prob(y + 5e-8).exp(), slope, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(d.icdf(torch.tensor(QUANTILE_LEVELS)[:, None, None]), d.values.movedim(-1, 0))
    assert (d.log_prob(d.edges[..., -1] + 1) == -torch.inf).all()


def test_moments_of_quantiles_are_those_of_their_draws():
    d = predict("quantile").expand((100_000, 5, 2))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        sample = d.sample()
    torch.testing.assert_close(sample.mean(0), d.mean[0], rtol=0, atol=0.05)
    torch.testing.assert_close(sample.var(0), d.variance[0], rtol=0.03, atol=0.0)


def test_the_score_of_quantiles_is_their_mean_pinball_loss_and_close_to_the_crps():
    d = QuantileFunction(torch.tensor([[-1.0, 0.5, 4.0]]), torch.tensor([0.1, 0.5, 0.9]))
    expected = 2 * ((1 - 0.1) * 1.5 + (1 - 0.5) * 3.0 + (1 - 0.9) * 6.5) / 3
    assert d.score(torch.tensor([-2.5])).item() == pytest.approx(expected)

    levels = (torch.arange(999.0) + 1) / 1000
    fine = QuantileFunction(torch.special.ndtri(levels)[None], levels)
    y = 0.7
    crps = y * (2 * scipy.stats.norm.cdf(y) - 1) + 2 * scipy.stats.norm.pdf(y) - np.pi**-0.5
    assert fine.score(torch.tensor([y])).item() == pytest.approx(crps, rel=1e-3)


@pytest.mark.parametrize("name", ["quantile", *POINTS])
def test_scores_have_finite_gradients_wherever_the_value_lies(name):
    family = FAMILIES[name]()
    for y in (-1e6, 0.0, 1e6):
        raw = torch.zeros(1, 1, family.n_params, requires_grad=True)
        family(raw, torch.zeros(1, 1)).score(torch.full((1, 1), y)).sum().backward()
        assert torch.isfinite(raw.grad).all()


# --- points -------------------------------------------------------------------------------------------------


def test_points_are_scored_by_squared_and_absolute_errors_and_draw_their_value():
    y = torch.tensor([[5.0]])
    for name, expected in (("mse", 9.0), ("mae", 3.0)):
        d = FAMILIES[name]()(torch.tensor([[[2.0]]]), torch.zeros(1, 1))
        assert d.score(y).item() == expected
        assert draw(d).item() == d.sample().item() == d.mean.item() == 2.0
        assert d.expand((4, 1, 1)).mean.shape == (4, 1, 1)


def test_the_approximation_of_the_student_t_is_near_it():
    df, z = np.meshgrid([2.1, 3.0, 5.0, 12.0, 200.0], np.linspace(-8, 8, 41))
    family, shape = FAMILIES["studentt"](), {"df": df}
    probability, density = family.rough(z, shape)
    np.testing.assert_allclose(probability, family.cdf(z, shape), atol=0.005)
    np.testing.assert_allclose(density, np.exp(family.log_pdf(z, shape)), atol=0.01)
