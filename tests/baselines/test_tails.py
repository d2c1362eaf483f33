"""Tails of statistical forecasts, on each side by itself."""

from dataclasses import replace

import pytest
import torch
from combined import forecast
from torch.testing import assert_close as close

from taylorformer_forecast.baselines.combination import fit_combination
from taylorformer_forecast.baselines.tails import reach_and_tails, with_tails
from taylorformer_forecast.defaults import LARGEST_TAIL

LEVELS, H = [0.001, 0.01, 0.5, 0.9, 0.95, 0.99, 0.999], 10


def drawn(kind, n):
    z = torch.randn(200, n + H, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    return {
        "skewed": (4 + 0.6 * z).exp(),
        "mirrored": 500 - (4 + 0.6 * z).exp(),
        "normal": 100 + 10 * z,
        "exponential": -torch.special.ndtr(z).log(),
        "gamma": z**2 / 2,
        "lognormal": z.exp(),
    }[kind]


@pytest.mark.parametrize("n", [120, 400])
@pytest.mark.parametrize(("kind", "most"), [("skewed", 0.035), ("mirrored", 0.03), ("normal", 0.015)])
def test_one_value_in_a_hundred_lies_beyond_the_quantile_that_says_so(kind, most, n):
    """Of skewed values four were, and of those above the quantile of .999 two in a hundred."""
    y = drawn(kind, n)
    q = forecast(y[:, :n], H).quantiles(LEVELS)
    truth = y[:, n:, None]
    assert (truth < q[..., 1:2]).double().mean() < most
    assert (truth > q[..., 5:6]).double().mean() < most
    assert (truth > q[..., 6:]).double().mean() < 0.008
    assert (q.diff(dim=-1) >= 0).all()


def test_quantiles_up_to_the_nineteenth_twentieth_have_no_tails():
    z = torch.linspace(-1.6, 1.6, 9).double().view(1, 9, 1)
    one, factors = torch.ones(1, 2).double(), torch.tensor([[2.0, 3.0]]).double()
    close(with_tails(z, z, one, factors), z)
    assert (with_tails(2 * z, 2 * z, one, factors).diff(dim=1) > 0).all()


def test_few_errors_leave_tails_nearly_as_they_are_and_none_leave_them_so():
    error = torch.zeros(2, 12, 3).double()
    error[0, 5] = 8.0
    error[1] = torch.nan
    one, shape = torch.ones(2, 3).double(), torch.tensor([[0.3, 0.7, 1.0, 1.5, 2.0]]).double().expand(2, -1)
    fit = replace(fit_combination(drawn("normal", 2)[:2], 3), standard=error, error_quantiles=shape)
    reach, found = reach_and_tails(fit, 0 * one, (one, one))
    assert (reach == 1).all()
    assert 1 < found[0, 1] < 1.2
    assert found[0, 0] == 1
    assert (found[1] == 1).all()
    assert (found <= LARGEST_TAIL).all()


@pytest.mark.parametrize("kind", ["exponential", "gamma", "lognormal"])
@pytest.mark.parametrize("n", [150, 400])
def test_of_independent_skewed_values_a_tenth_lies_on_each_side_of_the_middle_eight(kind, n):
    """Both sides of a skewed distribution were narrowed, and its lower side once more by logarithms.

    Of a gamma distribution a third lay below the quantile of .1, and of an exponential one a fifth.
    """
    y = drawn(kind, n)[:60]
    q, truth = forecast(y[:, :n], H).quantiles([0.1, 0.9]), y[:, n:]
    assert 0.07 < (truth < q[..., 0]).double().mean() < 0.16
    assert 0.08 < (truth > q[..., 1]).double().mean() < 0.17


def test_each_side_reaches_as_far_as_its_own_errors_in_logarithms_below():
    z = torch.linspace(-1.28, 1.28, 5).double().view(1, 5, 1)
    found = with_tails(z, z, torch.tensor([[2.0, 1.5]]).double(), torch.ones(1, 2).double())
    close(found.flatten()[[0, 2, 4]], torch.tensor([-2.56, 0.0, 1.92]).double(), atol=5e-3, rtol=0.0)
    y = drawn("normal", 300)[:, :300]
    assert (forecast(y, 3).reach == 1).double().mean() > 0.95  # of usual errors neither does
