"""Archetypes: which processes a kind of series has, how often, and in which proportions."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from taylorformer_forecast.synthetic.weights import (
    ANY_PERIODS,
    COUNT_WEIGHTS,
    DAYS,
    DEMAND,
    ECONOMIC,
    LEVEL_WEIGHTS,
    NOISE_WEIGHTS,
    POSITIVE,
    SEASON_WEIGHTS,
    TREND_WEIGHTS,
    Weights,
)

Range = tuple[float, float]


@dataclass(frozen=True)
class Archetype:
    """A kind of series. Sizes are ranges of deviations in units of the level, drawn log-uniformly.

    Parameters
    ----------
    weight : float
        How many series are of this kind, in relation to the others.
    lengths, horizons : (int, int)
        Ranges of the number of points, history and horizon together, and of the horizon.
    periods : mapping
        Weights of tuples of seasonal periods. Those longer than half of a series are left out.
    frequency : str, default="none"
        Frequency of the calendar, see :class:`~taylorformer_forecast.synthetic.frame.Frame`.
    trend, level, season, noise : (float, float)
        Sizes of the parts.
    trended, seasonal : float
        Probabilities of a trend, and of a season where there are periods.
    trends, levels, seasons, noises : mapping
        Weights of processes for the parts.
    links : mapping
        Weights of ``"multiplicative"``, ``"additive"``, ``"signed"`` and of processes of counts.

    Examples
    --------
    >>> from taylorformer_forecast.synthetic.archetypes import ARCHETYPES
    >>> ARCHETYPES["monthly"].periods
    {(12,): 1}
    """

    weight: float
    lengths: tuple[int, int]
    horizons: tuple[int, int]
    periods: Mapping[tuple[float, ...], float]
    frequency: str = "none"
    trend: Range = (0.02, 0.5)
    level: Range = (0.02, 0.4)
    season: Range = (0.01, 0.3)
    noise: Range = (0.005, 0.3)
    trended: float = 0.6
    seasonal: float = 0.85
    trends: Weights = field(default_factory=lambda: TREND_WEIGHTS)
    levels: Weights = field(default_factory=lambda: LEVEL_WEIGHTS)
    seasons: Weights = field(default_factory=lambda: SEASON_WEIGHTS)
    noises: Weights = field(default_factory=lambda: NOISE_WEIGHTS)
    links: Weights = field(default_factory=lambda: POSITIVE)


HOURLY = Archetype(
    weight=10,
    frequency="hourly",
    lengths=(60, 2000),
    horizons=(6, 200),
    periods={(24, 168): 80, (24,): 20},
    trend=(0.005, 0.15),
    level=(0.01, 0.3),
    season=(0.05, 0.9),
    noise=(0.01, 0.3),
    trended=0.25,
    seasonal=0.97,
    seasons=DAYS,
)
ARCHETYPES: dict[str, Archetype] = {
    "yearly": Archetype(
        weight=12,
        frequency="yearly",
        lengths=(8, 70),
        horizons=(1, 12),
        periods={(): 1},
        trend=(0.08, 0.8),
        level=(0.04, 0.5),
        noise=(0.002, 0.06),
        trended=0.8,
        levels={**ECONOMIC, "local_trend": 70},
    ),
    "quarterly": Archetype(
        weight=11,
        frequency="quarterly",
        lengths=(10, 160),
        horizons=(1, 16),
        periods={(4,): 1},
        trend=(0.04, 0.5),
        level=(0.03, 0.35),
        season=(0.0015, 0.15),
        noise=(0.001, 0.05),
        levels=ECONOMIC,
        trended=0.75,
    ),
    "monthly": Archetype(
        weight=16,
        frequency="monthly",
        lengths=(15, 600),
        horizons=(1, 36),
        periods={(12,): 1},
        trend=(0.02, 0.5),
        level=(0.03, 0.4),
        season=(0.003, 0.2),
        noise=(0.003, 0.35),
        trended=0.65,
        levels=ECONOMIC,
    ),
    "weekly": Archetype(
        weight=6,
        frequency="weekly",
        lengths=(30, 700),
        horizons=(1, 60),
        periods={(365.25 / 7,): 85, (): 15},
        season=(0.02, 0.5),
        noise=(0.01, 0.4),
    ),
    "daily": Archetype(
        weight=10,
        frequency="daily",
        lengths=(30, 1500),
        horizons=(1, 90),
        periods={(7,): 55, (7, 365.25): 25, (7, 365.25 / 12, 365.25): 10, (365.25,): 5, (5,): 5},
        trend=(0.01, 0.3),
        level=(0.02, 0.3),
        season=(0.04, 0.9),
        noise=(0.03, 0.6),
        trended=0.35,
        seasonal=0.9,
        levels={**LEVEL_WEIGHTS, "autoregression": 40},
    ),
    "hourly": HOURLY,
    "half-hourly": replace(
        HOURLY,
        weight=3,
        frequency="half-hourly",
        lengths=(120, 2000),
        horizons=(12, 200),
        periods={(48, 336): 80, (48,): 20},
        noise=(0.005, 0.25),
    ),
    "quarter-hourly": replace(
        HOURLY,
        weight=3,
        frequency="quarter-hourly",
        lengths=(200, 2000),
        horizons=(16, 200),
        periods={(96, 672): 70, (96,): 30},
        level=(0.01, 0.4),
        noise=(0.005, 0.25),
    ),
    "counts": Archetype(
        weight=6,
        lengths=(20, 1500),
        horizons=(1, 90),
        periods=ANY_PERIODS,
        trend=(0.03, 0.8),
        season=(0.05, 1.0),
        noise=(0.01, 0.3),
        links=COUNT_WEIGHTS,
    ),
    "demand": Archetype(
        weight=8,
        lengths=(15, 1000),
        horizons=(1, 56),
        periods={(12,): 45, (): 25, (7,): 15, (52,): 10, (24,): 5},
        trend=(0.03, 0.6),
        level=(0.05, 0.8),
        season=(0.03, 0.8),
        noise=(0.01, 0.2),
        trended=0.35,
        seasonal=0.35,
        links=DEMAND,
    ),
    "financial": Archetype(
        weight=4,
        lengths=(30, 2000),
        horizons=(1, 60),
        periods={(): 75, (5,): 15, (12,): 10},
        level=(0.02, 0.8),
        noise=(1e-4, 0.005),
        trended=0.1,
        seasonal=0.1,
        levels={"stochastic_volatility": 60, "random_walk": 30, "local_trend": 5, "regime_switching": 5},
        noises={"white_noise": 30, "student_t": 20, "garch": 50},
        links={"multiplicative": 70, "additive": 20, "signed": 10},
    ),
    "gaussian_process": Archetype(
        weight=8,
        lengths=(10, 2000),
        horizons=(1, 200),
        periods=ANY_PERIODS,
        level=(0.5, 1.0),
        season=(0.02, 0.3),
        trend=(0.02, 1.0),
        noise=(1e-3, 0.4),
        trended=0.2,
        seasonal=0.2,
        levels={"gp_kernel": 25, "gp_sum": 25, "gp_product": 30, "gp_seasonal": 20},
        links={"signed": 65, "multiplicative": 20, "additive": 15},
    ),
    "wandering": Archetype(  # temperatures, loads of machines, positions
        weight=6,
        lengths=(20, 2000),
        horizons=(1, 200),
        periods=ANY_PERIODS,
        level=(0.3, 1.0),
        trend=(0.03, 0.5),
        season=(0.05, 1.0),
        noise=(0.003, 1.5),
        trended=0.15,
        seasonal=0.6,
        levels={"autoregression": 40, "arima": 30, "cycle": 20, "regime_switching": 10},
        links={"signed": 70, "additive": 30},
    ),
    "pulses": Archetype(  # epidemics, sunspots, floods
        weight=4,
        lengths=(40, 2000),
        horizons=(1, 120),
        periods={(): 40, (12,): 15, (52,): 20, (365.25,): 5, (132,): 10, (24,): 10},
        level=(0.3, 1.2),
        season=(0.01, 0.2),
        noise=(0.01, 0.3),
        trended=0.1,
        seasonal=0.3,
        levels={"pulses": 75, "cycle": 25},
        links={"multiplicative": 40, "additive": 35, "signed": 5, "negative_binomial": 20},
    ),
}


def archetypes_at(n: int, weights: Mapping[str, float]) -> dict[str, float]:
    """Weights of archetypes for series of n points: those whose lengths include n, else all.

    Examples
    --------
    >>> from taylorformer_forecast.synthetic.archetypes import archetypes_at
    >>> sorted(archetypes_at(9, {"yearly": 1.0, "monthly": 1.0}))
    ['yearly']
    """

    def density(one: Archetype) -> float:
        low, high = one.lengths
        return (low <= n <= high) / math.log(high / low)

    here = {name: weight * density(ARCHETYPES[name]) for name, weight in weights.items()}
    here = {name: weight for name, weight in here.items() if weight > 0}
    return here or dict(weights)
