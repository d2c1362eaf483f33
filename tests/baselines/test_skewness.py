"""Skewed errors: the median is on their short side, which is narrower than the long one."""

from dataclasses import replace

import pytest
import torch
from combined import forecast

from taylorformer_forecast.baselines.errors import asymmetry

ONE = torch.ones(1, 3, dtype=torch.float64)


def draw(*size, seed=0):
    return torch.randn(*size, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@pytest.mark.parametrize("n", [60, 200])
def test_half_of_skewed_values_lie_below_the_median_and_few_below_the_lower_decile(n):
    y = draw(150, n + 6).mul(0.6).exp()
    quantiles, truth = forecast(y[:, :n], 6).quantiles([0.1, 0.5, 0.9]), y[:, n:, None]
    low, middle, high = (truth <= quantiles).double().mean((0, 1)).tolist()
    assert 0.08 < low < 0.15  # .04 by symmetric errors
    assert 0.44 < middle < 0.55  # .59
    assert 0.83 < high < 0.92
    low, middle, high = quantiles.unbind(-1)
    assert ((middle - low) / (high - middle)).median() < 0.7


def test_below_the_median_distances_of_positive_values_are_those_of_logarithms():
    """Quantiles above the median stay as they are, and so do all of values that are not positive."""
    y = 10 * draw(20, 60).mul(0.4).exp()
    found, levels = forecast(y, 3), [0.02, 0.1, 0.3, 0.5, 0.8]
    assert found.positive.all()
    straight = replace(found, positive=torch.zeros_like(found.positive)).quantiles(levels)
    quantiles, median = found.quantiles(levels), straight[..., 3:4]
    assert torch.equal(quantiles[..., 3:], straight[..., 3:])
    inside = straight[..., :3] > found.low[..., None]
    expected = median * ((straight[..., :3] - median) / median).exp()
    torch.testing.assert_close(quantiles[..., :3][inside], expected[inside])
    assert (quantiles[..., :3] > straight[..., :3]).all()
    for other in (-y, y - 10, torch.where(y < 8, 0.0, y)):
        assert not forecast(other, 3).positive.any()


def test_forecasts_of_symmetric_values_hardly_differ_from_those_of_symmetric_errors():
    found = forecast(100 + draw(100, 150), 6)
    assert found.shift.mean().abs() < 0.03
    assert found.shift.abs().mean() < 0.15
    assert 0.9 < found.below.mean() < 1.0
    assert 0.9 < found.above.mean() < 1.0


def test_the_sides_of_mirrored_errors_are_exchanged():
    error, steady = draw(4, 50).exp(), torch.ones(4, 1, dtype=torch.bool)
    scale = draw(4, 3).exp()
    shift, below, above = asymmetry(error, scale, steady)
    mirrored = asymmetry(-error, scale, steady)
    assert (shift < 0).all()
    for found, expected in zip(mirrored, (-shift, above, below), strict=True):
        torch.testing.assert_close(found, expected)


def test_skewness_counts_for_more_after_more_errors_and_for_less_where_errors_are_larger():
    def side(n, scale):
        error = torch.tensor([-1.0, -1.0, 2.0], dtype=torch.float64).repeat(n)[None]
        return -asymmetry(error, scale, torch.tensor([[True]]))[0][0]

    one, many, larger = side(1, ONE), side(50, ONE), side(50, ONE * torch.tensor([1.0, 4.0, 16.0]))
    assert (one > 0).all()
    assert (2 * one < many).all()
    assert larger[0] == many[0]
    assert (larger.diff() < 0).all()


def test_one_large_error_hardly_counts_and_none_where_a_shift_of_the_level_may_have_begun():
    error = draw(1, 100).clamp(-2, 2)
    calm, steady = asymmetry(error, ONE, torch.tensor([[True]])), torch.tensor([[True]])
    error[0, 50] = 1e6
    shift, below, _ = asymmetry(error, ONE, steady)
    assert ((shift - calm[0]).abs() < 0.25).all()
    assert ((below / calm[1]).log().abs() < 0.25).all()
    shift, below, above = asymmetry(error, ONE, ~steady)
    assert (shift == 0).all()
    assert torch.equal(below, above)
    assert (below == 1).all()


@pytest.mark.parametrize("size", [8, 20, -8])
def test_errors_of_an_old_shift_of_the_level_are_not_taken_for_skewness(size):
    """The shift was 10 points ago, and is forgotten as such."""
    y = 20 + draw(150, 162)
    y[:, 140:] += size
    below = (y[:, 150:, None] <= forecast(y[:, :150], 12).quantiles([0.5])).double().mean()
    assert 0.4 < below < 0.62  # .31 by errors bounded by their mean; .20; .67


def test_medians_of_positive_values_are_positive_where_errors_are_larger_than_their_mean():
    y = draw(60, 60).mul(2).exp()
    assert (forecast(y, 6).quantiles([0.5]) > 1e-3 * y.mean()).all()
    found = forecast(y, 6)
    mean, change = found.loc[:, -1], found.scale[:, -1] * found.shift
    near = change > -mean / 2  # there the median is the mean and its shift
    torch.testing.assert_close(found.quantiles([0.5])[..., 0][near], (mean + change)[near])
    assert near.any()
    assert not near.all()


def test_the_first_change_of_a_constant_is_inside_the_interval():
    """All errors before it were zero, so that they say nothing of its size."""
    y = torch.tensor([[3.0] * 100 + [4.0], [10.0] * 100 + [-60.0]], dtype=torch.float64)
    low, high = forecast(y, 6).quantiles([0.05, 0.95]).unbind(-1)
    assert ((low < y[:, -1:]) & (y[:, -1:] < high)).all()
    after = torch.cat([y, y[:, -1:].expand(-1, 7)], 1)
    low, high = forecast(after, 6).quantiles([0.05, 0.95]).unbind(-1)
    assert ((high - low)[:, 0] < 0.5 * (after[:, -1] - after[:, 0]).abs()).all()


@pytest.mark.parametrize("values", [[], [3.0], [3.0, 3.0, 3.0]])
def test_errors_that_show_nothing_are_symmetric(values):
    error = torch.tensor([[*values, torch.nan]], dtype=torch.float64)
    for found, expected in zip(asymmetry(error, ONE, ONE[:, :1] > 0), (0.0, 1.0, 1.0), strict=True):
        assert (found == expected).all()
