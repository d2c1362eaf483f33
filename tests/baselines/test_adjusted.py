"""Series without their seasons: days of a week and a year, of which neither is a part of the other."""

import pytest
import torch
from combined import forecast

from taylorformer_forecast.baselines.families import adjusted

WEEK = torch.tensor([0.0, 0.0, 1.0, 0.0, 1.0, 3.0, -5.0]).double()


def days(n_years: int = 4, noise: float = 0.0, seed: int = 0) -> torch.Tensor:
    """A level of 20, a week, a year, and noise."""
    t = torch.arange(365 * n_years)
    year = 6 * torch.sin(2 * torch.pi * t / 365).double()
    generator = torch.Generator().manual_seed(seed)
    return 20 + WEEK[t % 7] + year + noise * torch.randn(len(t), generator=generator, dtype=torch.float64)


@pytest.mark.parametrize("number", [3, 4], ids=["sums", "products"])
def test_a_year_of_days_is_known_without_its_weeks(number):
    y = days()
    if number == 4:
        y = (y / 10).exp()
    found = adjusted(y[None, :-60], (7, 365), 60)[number]
    assert found.known[0, -1]
    ahead = y[-60:].log() if number == 4 else y[-60:]
    level = found.x[0, -1].log() if number == 4 else found.x[0, -1]
    spread = ahead.std()
    assert (level + found.index[0, -1] - ahead).abs().max() < 0.15 * spread


def test_indices_depend_on_no_later_value():
    y = days(3, noise=1.0)[None]
    cut = y.shape[1] - 100
    whole, part = adjusted(y, (7, 365), 200), adjusted(y[:, :cut], (7, 365), 200)
    for one, other in zip(whole[1:], part[1:], strict=True):
        torch.testing.assert_close(one.index[:, :cut], other.index)
        assert torch.equal(one.known[:, :cut], other.known)


def test_days_with_a_week_and_a_year_are_forecast_with_little_more_than_their_noise():
    error = []
    for seed in range(4):
        y = days(4, noise=2.0, seed=seed)
        found = forecast(y[None, :-28], 28, [7, 365]).quantiles([0.5])[0, :, 0]
        error.append((found - y[-28:]).abs().mean())
    assert torch.stack(error).mean() < 1.8  # of noise alone 1.6
