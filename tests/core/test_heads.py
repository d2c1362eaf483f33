"""Heads: densities, scale floors, components, draws with a private generator."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats
import torch
from torch.distributions import Categorical, Laplace, MixtureSameFamily, Normal, StudentT

from taylorformer_forecast.core.heads import HEADS, components, draw

pytestmark = pytest.mark.usefixtures("float64")

NAMES = sorted(HEADS)


def randn(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def predict(name, scale="exp", shape=(5, 2)):
    head = HEADS[name](scale=scale)
    return head(randn(*shape, head.n_params), 3 + randn(*shape, seed=1))


def scipy_density(name, raw, anchor, y, df):
    """Log-density by the formulas of the docstrings, for the exponential scale."""
    raw, anchor, y = raw.numpy(), anchor.numpy(), y.numpy()
    if name == "normal":
        return scipy.stats.norm.logpdf(y, anchor + raw[..., 0], np.exp(raw[..., 1]) + 1e-3)
    if name == "studentt":
        return scipy.stats.t.logpdf(y, df.numpy(), anchor + raw[..., 0], np.exp(raw[..., 1]) + 1e-3)
    weights = np.exp(raw[..., 6:]) / np.exp(raw[..., 6:]).sum(-1, keepdims=True)
    parts = scipy.stats.norm.pdf(y[..., None], anchor[..., None] + raw[..., :3], np.exp(raw[..., 3:6]) + 1e-3)
    return np.log((weights * parts).sum(-1))


@pytest.mark.parametrize("name", NAMES)
def test_densities_equal_their_closed_form(name):
    head = HEADS[name]()
    raw, anchor, y = randn(5, 2, head.n_params), randn(5, 2, seed=1), 3 * randn(5, 2, seed=2)
    distribution = head(raw, anchor)
    expected = scipy_density(name, raw, anchor, y, getattr(distribution, "df", None))
    np.testing.assert_allclose(distribution.log_prob(y).numpy(), expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("name", NAMES)
def test_the_anchor_moves_a_distribution_without_changing_it(name):
    head, raw, y = HEADS[name](), randn(5, 2, HEADS[name]().n_params), randn(5, 2, seed=2)
    moved = head(raw, torch.full((5, 2), 7.0))
    torch.testing.assert_close(moved.log_prob(y + 7), head(raw, torch.zeros(5, 2)).log_prob(y))
    torch.testing.assert_close(moved.mean, head(raw, torch.zeros(5, 2)).mean + 7)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("scale", "floor"), [("exp", 0.001), ("bounded", 0.011)])
def test_scales_grow_with_the_raw_number_and_never_fall_below_their_floor(name, scale, floor):
    head = HEADS[name](scale=scale)
    raws = torch.tensor([-1e3, -5.0, 0.0, 2.0])[:, None, None].expand(4, 1, head.n_params)
    scales = components(head(raws, torch.zeros(4, 1))).scale[:, 0, 0]
    assert scales[0].item() == pytest.approx(floor, rel=1e-12)
    assert (scales.diff() > 0).all()
    start = {"exp": 1.001, "bounded": 0.011 + 0.99 * np.log(2)}[scale]
    assert scales[2].item() == pytest.approx(start, rel=1e-12)


def test_degrees_of_freedom_range_from_barely_a_variance_to_nearly_gaussian():
    raw = torch.zeros(5, 1, 3)
    raw[:, 0, 2] = torch.tensor([-30.0, -5.0, 0.0, 5.0, 50.0])
    distribution = HEADS["studentt"]()(raw, torch.zeros(5, 1))
    df = distribution.df[:, 0]
    assert (df.diff() > 0).all()
    assert 2 < df[0] < 2.01
    assert df[-1] > 30
    assert torch.isfinite(distribution.variance).all()


def rebuild(parts):
    """Make a distribution from components again."""
    if parts.df is not None:
        return StudentT(parts.df[..., 0], parts.loc[..., 0], parts.scale[..., 0])
    if parts.weights is not None:
        return MixtureSameFamily(Categorical(parts.weights), Normal(parts.loc, parts.scale))
    return Normal(parts.loc[..., 0], parts.scale[..., 0])


@pytest.mark.parametrize("name", NAMES)
def test_components_hold_all_of_a_distribution(name):
    distribution, y = predict(name), randn(5, 2, seed=3)
    parts = components(distribution)
    k = 3 if name == "mixture" else 1
    assert parts.loc.shape == parts.scale.shape == (5, 2, k)
    torch.testing.assert_close(rebuild(parts).log_prob(y), distribution.log_prob(y))


@pytest.mark.parametrize("stranger", ["plain", "mixture"])
def test_components_of_an_unknown_distribution_are_refused(stranger):
    parts = Laplace(torch.zeros(4, 3), torch.ones(4, 3))
    distribution = parts if stranger == "plain" else MixtureSameFamily(Categorical(torch.ones(4, 3)), parts)
    with pytest.raises(TypeError, match=type(distribution).__name__):
        components(distribution)


@pytest.mark.parametrize("name", NAMES)
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


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_draws_have_the_distribution_that_they_are_drawn_from(name, dtype):
    head = HEADS[name]()
    # Two modes for the mixture, few degrees of freedom for the Student.
    raw = {
        "normal": [0.5, 0.7],
        "studentt": [0.5, 0.7, -9.0],
        "mixture": [-4.0, 0.0, 3.0, 0.2, -1.0, -0.5, 0.3, -1.0, 0.8],
    }[name]
    raw = torch.tensor(raw, dtype=dtype).expand(20_000, 1, head.n_params)
    sample = draw(head(raw, torch.full((20_000, 1), 2.0, dtype=dtype)), torch.Generator().manual_seed(0))
    assert sample.dtype == dtype

    parts = components(head(raw[:1].double(), torch.full((1, 1), 2.0)))
    loc, scale = parts.loc[0, 0].numpy(), parts.scale[0, 0].numpy()
    weights = np.ones(1) if parts.weights is None else parts.weights[0, 0].numpy()

    def cdf(y):
        z = (np.asarray(y)[:, None] - loc) / scale
        base = scipy.stats.norm.cdf(z) if parts.df is None else scipy.stats.t.cdf(z, parts.df[0, 0].numpy())
        return (weights * base).sum(-1)

    assert scipy.stats.kstest(sample[:, 0].double().numpy(), cdf).pvalue > 0.01


@pytest.mark.parametrize("name", NAMES)
def test_entries_of_a_draw_are_independent(name):
    head = HEADS[name]()
    raw = torch.zeros(20_000, 2, head.n_params)
    sample = draw(head(raw, torch.zeros(20_000, 2)), torch.Generator().manual_seed(1))
    rank = scipy.stats.spearmanr(sample[:, 0].numpy(), sample[:, 1].numpy())
    assert rank.pvalue > 0.01
    order = scipy.stats.spearmanr(sample[1:, 0].numpy(), sample[:-1, 0].numpy())
    assert order.pvalue > 0.01
