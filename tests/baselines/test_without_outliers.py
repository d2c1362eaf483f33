"""Series without outliers: what is taken out, and what stays as it is."""

import pytest
import torch

from taylorformer_forecast.baselines.outliers import without_outliers

N = 120
TIMES = torch.arange(float(N), dtype=torch.float64)


def normal(seed):
    return torch.randn(N, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def month_of_peaks(seed):
    y = normal(seed)
    y[7::12] += 30
    return y


def level_shift(seed):
    y = normal(seed)
    y[80:] += 40
    return y


def gaps(seed):
    y = normal(seed).cumsum(0)
    y[30:50] = torch.nan
    return y


CLEAN = {
    "noise": normal,
    "random walk": lambda seed: normal(seed).cumsum(0),
    "trend": lambda seed: 3 * TIMES,
    "season": lambda seed: 10 * torch.sin(2 * torch.pi * TIMES / 12) + 0.1 * normal(seed),
    "growth": lambda seed: (0.05 * TIMES + 0.01 * normal(seed)).exp(),
    "doubling": lambda seed: 2.0 ** (TIMES / 2),
    "month of peaks": month_of_peaks,
    "level shift": level_shift,
    "missing values": gaps,
    "constant": lambda seed: torch.full((N,), 5.0, dtype=torch.float64),
    "demand": lambda seed: torch.where(normal(seed) > 1, 50.0, 0.0).double(),
    "steps": lambda seed: (TIMES // 20) * 7,
}


@pytest.mark.parametrize("name", CLEAN)
@pytest.mark.parametrize("seed", range(5))
def test_series_without_outliers_stay_as_they_are(name, seed):
    y = CLEAN[name](seed)
    assert without_outliers(TIMES, y, [12.0]) is y


@pytest.mark.parametrize("name", ["noise", "random walk", "trend", "season", "growth", "level shift"])
@pytest.mark.parametrize("place", [2, 3, 40, 79, 100, N - 4, N - 3, N - 2])
@pytest.mark.parametrize("size", [-1e6, -30.0, 30.0, 1e6])
def test_one_outlier_goes_wherever_it_is_and_nothing_else_does(name, place, size):
    y = CLEAN[name](0)
    far = 100 * size * max(1.0, float(y.abs().max()))
    wrong = torch.where(place == TIMES, y + far, y)
    found = without_outliers(TIMES, wrong, [12.0])
    assert found[place].isnan()
    assert torch.equal(found[place != TIMES], y[place != TIMES])


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("size", [50.0, 1e9])
def test_the_last_values_are_moved_no_matter_how_far_they_lie(count, size):
    y = normal(1)
    wrong = torch.where(N - count <= TIMES, y + size, y)
    found = without_outliers(TIMES, wrong)
    assert torch.equal(found[:-count], y[:-count])
    assert (found[-count:] < 10).all()
    assert (found[-count:] > y[-4 - count : -count].median()).all()  # it may be a shift


def test_three_values_are_a_shift_also_at_the_end():
    y = torch.where(TIMES >= N - 3, normal(1) + 50, normal(1))
    assert without_outliers(TIMES, y) is y


def test_outliers_time_and_again_are_part_of_the_series():
    y = torch.where(TIMES % 17 == 3, 100.0, normal(2))
    assert without_outliers(TIMES, y) is y


@pytest.mark.parametrize(("factor", "shift"), [(1e-6, 0.0), (-3.0, 1e4), (1e80, 0.0)])
def test_what_is_taken_out_does_not_depend_on_the_units(factor, shift):
    y = normal(3)
    y[[20, N - 1]] = 99.0
    found, other = without_outliers(TIMES, y), without_outliers(TIMES, factor * y + shift)
    torch.testing.assert_close(other, factor * found + shift, rtol=1e-9, atol=0.0, equal_nan=True)
    assert found[20].isnan()
