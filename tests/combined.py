"""The combination of statistical forecasts as users get it, with all of what it found."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from taylorformer_forecast.baselines.bounds import bounds
from taylorformer_forecast.baselines.forecast import Forecast, forecast_clean
from taylorformer_forecast.engine.statistics.forecast import prepared
from taylorformer_forecast.engine.statistics.requests import past_length, whole_seasons


@dataclass(frozen=True)
class Combined(Forecast):
    """Quantiles and paths have what was taken off; other parts are of what was forecast."""

    added: torch.Tensor
    ends: tuple[torch.Tensor, torch.Tensor]

    def at_normal(self, z):
        return (super().at_normal(z) + self.added).clamp(*self.ends)


def forecast(y, horizon, seasons=1, correct=None):
    """Forecast series (B, n) that have the same seasons and no dates; shorter ones have NaN in front."""
    seasons = seasons if isinstance(seasons, Sequence) else [seasons]
    whole = whole_seasons(seasons)
    y = y[:, -past_length(seasons) :].double()
    y, adjusted, effects = prepared(y, [None] * len(y), horizon, whole)
    found = forecast_clean(adjusted, horizon, whole, correct)
    ends = tuple(end[:, None, None] for end in bounds(y))
    return Combined(**vars(found), added=effects[:, None, -horizon:], ends=ends)
