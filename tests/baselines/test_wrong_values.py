"""Runs of values that a season does not explain, as of months in which a shop was closed."""

import numpy as np
import pytest
import torch
from combined import forecast

from taylorformer_forecast.baselines.wrong_values import without_wrong_values

MONTH = np.arange(96)


def months(n: int = 72, seed: int = 0) -> np.ndarray:
    """Values with a season of a year, whose steps are larger than the noise."""
    noise = 4 * np.random.default_rng(seed).normal(size=n)
    return 100 + 28 * np.sin(2 * np.pi * np.arange(n) / 12) + noise


def left_out(y: np.ndarray, season: int = 12) -> list[int]:
    """Positions that count as missing."""
    found = without_wrong_values(torch.as_tensor(y)[None], [season])[0]
    return (found.isnan() & ~torch.as_tensor(y).isnan()).nonzero()[:, 0].tolist()


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("missing", [0, 61])
@pytest.mark.parametrize("dip", [(36, 4, 0.4), (22, 2, 0.2), (58, 6, 0.4), (30, 8, 0.3)])
def test_a_dip_of_months_that_is_over_counts_as_missing_also_beside_a_season(dip, missing, seed):
    start, length, part = dip
    y = months(seed=seed)
    y[start : start + length] *= part
    y = np.r_[np.full(missing, np.nan), y]  # as beside a longer series
    assert left_out(y) == list(range(missing + start, missing + start + length))


def test_a_dip_that_a_season_hides_moves_no_forecast():
    y = np.stack([months(), months()])
    y[0, 36:40] *= 0.4
    y[1, 36:40] = np.nan
    found, expected = forecast(torch.as_tensor(y), 12, 12).quantiles([0.1, 0.5, 0.9])
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("length", [3, 5, 10])
def test_days_without_power_are_found_beside_a_season_of_a_week_also_if_there_are_more_than_seven(length):
    rng = np.random.default_rng(0)
    y = 100 + 20 * np.tile(rng.normal(size=7), 22)[:150] + 5 * rng.normal(size=150)
    y[90 : 90 + length] *= 0.3
    assert left_out(y, 7) == list(range(90, 90 + length))


@pytest.mark.parametrize(
    "change",
    [
        lambda y: y,
        lambda y: y * np.where(np.isin(MONTH, [40, 41, 42, 52, 53, 54]), 2.0, 1.0),
        lambda y: y * np.where(np.isin(MONTH, [40, 41, 42, 52, 53, 54]), 0.3, 1.0),
        lambda y: y * (1 + (MONTH % 12 >= 10) * 0.05 * 2.0 ** (MONTH // 12)),
        lambda y: y + 50 * (np.array([0, 1, 1, 0, 1, 0, 0, 1])[MONTH // 12] == MONTH % 12 - 2),
        lambda y: y + 60 * (MONTH > 50),
        lambda y: y * np.where(MONTH < 48, 1.0, 200 / y - 1),
        lambda y: y * 1.03**MONTH,
    ],
    ids=["none", "two peaks", "two dips", "Christmas", "Easter", "shift", "other season", "growth"],
)
@pytest.mark.parametrize("seed", range(3))
def test_what_recurs_or_lasts_is_a_part_of_a_series_with_a_season(change, seed):
    assert left_out(change(months(96, seed))) == []
