"""Weights of processes that archetypes share, and probabilities of what happens to any series."""

from __future__ import annotations

from collections.abc import Mapping

Weights = Mapping[str, float]

TREND_WEIGHTS = {"linear": 35, "damped": 18, "logistic": 10, "exponential": 12, "broken": 25}
LEVEL_WEIGHTS = {
    "random_walk": 15,
    "local_trend": 15,
    "arima": 15,
    "autoregression": 14,
    "cycle": 8,
    "exponential_smoothing": 10,
    "seasonal_arima": 6,
    "regime_switching": 3,
    "gp_kernel": 6,
    "gp_sum": 6,
    "gp_seasonal": 2,
}
ECONOMIC = {
    "random_walk": 28,
    "local_trend": 32,
    "arima": 8,
    "autoregression": 5,
    "cycle": 4,
    "exponential_smoothing": 12,
    "seasonal_arima": 8,
    "regime_switching": 1,
    "gp_kernel": 4,
    "gp_sum": 4,
}
SEASON_WEIGHTS = {"harmonics": 30, "profile": 35, "evolving_season": 20, "bumps": 10, "day_and_night": 5}
DAYS = {**SEASON_WEIGHTS, "profile": 10, "bumps": 20, "day_and_night": 15, "working_week": 60}
NOISE_WEIGHTS = {
    "white_noise": 45,
    "student_t": 18,
    "skewed_noise": 8,
    "autocorrelated_noise": 12,
    "garch": 4,
    "seasonal_spread": 7,
    "slow_spread": 6,
}
POSITIVE = {"multiplicative": 60, "additive": 40}
COUNT_WEIGHTS = {"poisson": 40, "negative_binomial": 45, "zero_inflated": 15}
DEMAND = {
    "croston": 25,
    "changing_demand": 20,
    "lumpy_demand": 20,
    "demand_life_cycle": 15,
    "regime_demand": 8,
    "poisson": 6,
    "negative_binomial": 6,
}

ANY_PERIODS: dict[tuple[float, ...], float] = {
    (): 30,
    (4,): 6,
    (7,): 10,
    (12,): 16,
    (24,): 10,
    (24, 168): 6,
    (48,): 3,
    (52,): 5,
    (96,): 3,
    (7, 365.25): 3,
    (10,): 2,
    (30,): 3,
    (60,): 3,
}

# Probabilities of calendar effects, events and distortions of one series.
CALENDAR_SHARES: dict[str, Weights] = {
    "quarterly": {"month_length": 0.08, "working_days": 0.1, "easter": 0.06},
    "monthly": {"month_length": 0.15, "working_days": 0.25, "easter": 0.1},
    "weekly": {"holidays": 0.35, "easter": 0.15},
    "daily": {"holidays": 0.35, "easter": 0.12, "payment_days": 0.15},
    "hourly": {"holidays": 0.3, "easter": 0.05},
    "half-hourly": {"holidays": 0.3, "easter": 0.05},
    "quarter-hourly": {"holidays": 0.2},
}
EVENT_SHARES: Weights = {
    "level_shift": 0.08,
    "ramp": 0.03,
    "temporary_change": 0.05,
    "outliers": 0.08,
    "interruption": 0.03,
    "promotions": 0.04,
}
OBSERVATION_SHARES: Weights = {
    "rounding": 0.12,
    "censoring": 0.03,
    "saturation": 0.02,
    "glitches": 0.02,
    "missing_points": 0.05,
    "missing_blocks": 0.04,
}
MIXED = 0.06  # a mixture of two series
MODULATED = 0.4  # a season whose amplitude changes
IRREGULAR = 0.03  # irregular times
