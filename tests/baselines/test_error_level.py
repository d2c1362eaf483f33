"""How errors of statistical forecasts grow with the level of a series."""

import pytest
import torch
from combined import forecast

from taylorformer_forecast.baselines.errors import error_level, past_errors
from taylorformer_forecast.defaults import ERROR_LEVEL_POWERS

N, H = 150, 4


def walk(growth):
    """Random walks of logarithms, with steps of a tenth, that grow as much in all."""
    z = torch.randn(100, N + H, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    return ((growth / N + 0.1 * z).cumsum(1) + 3).exp()


@pytest.mark.parametrize("growth", [0.0, 3.0, 6.0])
def test_four_fifths_of_what_follows_lie_inside_whatever_a_series_has_grown(growth):
    """With one power for all, .55 did where it had grown twentyfold, and .35 after four hundredfold."""
    y = walk(growth)
    low, high = forecast(y[:, :N], H).quantiles([0.1, 0.9]).unbind(-1)
    inside = ((y[:, N:] > low) & (y[:, N:] < high)).double().mean()
    assert 0.68 < inside < 0.92


def test_errors_of_one_size_are_not_said_to_grow():
    z = torch.randn(100, N, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    line = torch.linspace(10, 500, N).double()
    loc = line[None, :, None].expand(100, -1, 1)
    y = line + z
    _, power = error_level(y, loc, past_errors(y, loc), y > 0)
    assert (power == ERROR_LEVEL_POWERS[0]).all()


def test_the_power_at_an_origin_follows_from_its_past():
    y = walk(6.0)
    loc, bounded = y[..., None], y > 0
    whole = error_level(y, loc, past_errors(y, loc), bounded)[1]
    part = error_level(y[:, :90], loc[:, :90], past_errors(y[:, :90], loc[:, :90]), bounded[:, :90])[1]
    assert torch.equal(whole[:, :90], part)
    assert (whole[:, -1] > ERROR_LEVEL_POWERS[0]).double().mean() > 0.9
    assert (whole[:, 0] == ERROR_LEVEL_POWERS[0]).all()
