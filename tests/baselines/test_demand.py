"""Distributions of intermittent demand."""

import math

import pytest
import torch
from torch.testing import assert_close as close

from taylorformer_forecast.baselines.demand import fit_intermittent

LEVELS = torch.tensor([0.5, 0.8, 0.9, 0.95, 0.99]).double()


def normal(*size, seed=0):
    return torch.randn(*size, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def happens(share, *size, seed=1):
    return torch.rand(size, generator=torch.Generator().manual_seed(seed)).double() < share


def quantiles(demand):
    levels = LEVELS.expand(len(demand.cdf), -1).contiguous()
    return demand.support.gather(1, torch.searchsorted(demand.cdf.contiguous(), levels))


def mean_of(demand):
    return (demand.support * demand.cdf.diff(dim=1, prepend=torch.zeros(len(demand.cdf), 1))).sum(1)


def loss(quantiles, y):
    d = y[..., None] - quantiles[:, None]
    return torch.maximum(LEVELS * d, (LEVELS - 1) * d).mean((0, 1))


@pytest.fixture(params=["counts", "sizes behind a hurdle", "amounts", "lots"])
def demand(request):
    """150 series of 100 values, whose distribution is the same at all times."""
    sold = happens(0.4, 150, 100)
    uniform = torch.rand(150, 100, generator=torch.Generator().manual_seed(2)).double()
    size = {
        "counts": (-2 * uniform.log()).ceil(),  # geometric
        "sizes behind a hurdle": 1 + torch.poisson(0 * uniform + 3, torch.Generator().manual_seed(3)),
        "amounts": torch.exp(3 + 0.5 * normal(150, 100)),
        "lots": 120 * (1 + (3 * uniform).floor()),
    }[request.param]
    return sold * size


def test_probabilities_add_up_and_have_the_mean_of_the_past(demand):
    found = fit_intermittent(demand)
    assert (found.cdf.diff(dim=1) >= -1e-12).all()
    close(found.cdf[:, -1], torch.ones(150).double())
    close(mean_of(found).mean(), demand.mean(), rtol=0.05, atol=0.0)
    close(found.mean[:, -1].mean(), demand.mean(), rtol=0.05, atol=0.0)


def test_demand_that_does_not_change_is_forecast_as_well_as_by_its_past(demand):
    """Amounts had a sixth of the values: no value is seen twice, and the shortest memory was thought best."""
    past, ahead = demand[:, :86], demand[:, 86:]
    own = loss(quantiles(fit_intermittent(past)), ahead)
    empirical = loss(torch.quantile(past, LEVELS, dim=1, interpolation="higher").mT, ahead)
    assert (own < 1.06 * empirical).all(), own / empirical


def test_the_forecast_of_amounts_does_not_depend_on_their_unit():
    y = (happens(0.4, 20, 100) * torch.exp(3 + 0.5 * normal(20, 100))).round(decimals=2)
    cents = quantiles(fit_intermittent((100 * y).round()))
    close(quantiles(fit_intermittent(y)), cents / 100)


def test_amounts_follow_a_change_of_their_level():
    y = happens(0.4, 100, 120) * torch.exp(3 + 0.5 * normal(100, 120))
    y[:, 80:] *= 4
    share = mean_of(fit_intermittent(y)) / (0.4 * 4 * math.exp(3 + 0.5**2 / 2))
    assert 0.8 < share.mean() < 1.1


def test_few_products_that_sell_in_fours_have_no_service_level_far_beyond_what_was_ever_sold():
    """A negative binomial distribution alone, of mean 1.6 and many zeros, has 12 at .99."""
    y = happens(0.4, 100, 60) * torch.full((100, 60), 4.0).double()
    high = quantiles(fit_intermittent(y))[:, -1]
    assert high.max() <= 8
    assert high.mean() < 6


@pytest.mark.parametrize("share", [0.05, 0.3])
def test_demand_that_is_no_count_has_the_mean_of_its_past(share):
    """Bins of positive values had nearly all of the probability that is left for what was not seen."""
    y = torch.exp(0.7 * normal(200, 62)) * happens(share, 200, 62, seed=0)
    found = fit_intermittent(y[:, :50])
    close(mean_of(found).mean(), y[:, 50:].mean(), rtol=0.15, atol=0.02)


def test_moments_at_the_last_origin_are_those_of_the_distribution():
    y = happens(0.4, 50, 60) * (1 + torch.poisson(torch.full((50, 60), 2.0).double()))
    found = fit_intermittent(y)
    mass = found.cdf.diff(dim=1, prepend=torch.zeros(50, 1))
    mean = (mass * found.support).sum(1)
    close(found.mean[:, -1], mean, rtol=0.02, atol=0.02)
    deviation = ((mass * found.support**2).sum(1) - mean**2).sqrt()
    close(found.deviation[:, -1], deviation, rtol=0.05, atol=0.05)


def test_the_posterior_prefers_the_recent_level_after_demand_has_ended():
    y = torch.cat([torch.full((30,), 4.0), torch.zeros(30)]).double()
    assert fit_intermittent(y[None]).mean[0, -1] < 0.2
