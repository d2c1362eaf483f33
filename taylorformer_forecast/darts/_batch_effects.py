"""What future covariates do to the components of one batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from einops import rearrange
from jaxtyping import Float
from torch import Tensor

from taylorformer_forecast.engine.effects.series_scale import bounds_with_effects, since_start
from taylorformer_forecast.engine.predictive import Predictive
from taylorformer_forecast.engine.statistics.demand_season import with_season
from taylorformer_forecast.engine.statistics.requests import SeriesForecast, SeriesRequest


@dataclass(frozen=True)
class BatchEffects:
    """What future covariates do to B series of C components, at L steps of the past and n targets.

    Parameters
    ----------
    y : ndarray of shape (B, L, C)
        Values of the past, NaN where they are missing or covariates say that all is zero.
    effects : ndarray of shape (B, L + n, C)
        What is added to the logarithm of the mean, of a component that is intermittent demand.
    demand : bool ndarray of shape (B, C)
        Which components are.
    added : Tensor of shape (B, L + n, C)
        What is added to the values of other components.
    closed : bool Tensor of shape (B, L + n, C)
        Where covariates say that all is zero.
    powers : sequence of C floats
        Powers of the level with effects that errors grow with.
    """

    y: np.ndarray
    effects: np.ndarray
    demand: np.ndarray
    added: Tensor
    closed: Tensor
    powers: Sequence[float]

    def rest(self, past: Float[Tensor, "B L C"]) -> Float[Tensor, "B L C"]:
        """Past values less what is added to them, without zeros before the first other value."""
        y = past.detach().cpu().double().numpy()
        return torch.as_tensor(self._started(y)) - self.added[:, : y.shape[1]].cpu()

    def _started(self, y: np.ndarray) -> np.ndarray:
        """Past values (B, L, C) without zeros before the first other one, but for demand."""
        return np.where(self.demand[:, None], y, since_start(y.swapaxes(1, 2)).swapaxes(1, 2))

    def marked(self, requests: Sequence[SeriesRequest]) -> list[SeriesRequest]:
        """Requests for all components, with those of demand whose mean covariates multiply marked."""
        of_series = zip(requests, self.demand.ravel().tolist(), strict=True)
        return [replace(one, multiplied=own) for one, own in of_series]

    def multiplied(
        self, forecasts: Sequence[SeriesForecast], requests: Sequence[SeriesRequest]
    ) -> list[SeriesForecast]:
        """Forecasts of all components; the means of intermittent demand are multiplied, beside its season."""
        if not self.demand.any():
            return list(forecasts)
        rng = np.random.default_rng(int(torch.randint(2**31 - 1, ())))  # from the generator that darts seeds
        found, length = [], self.y.shape[1]
        for number, (one, request) in enumerate(zip(forecasts, requests, strict=True)):
            b, c = divmod(number, self.y.shape[2])
            if one.intermittent and self.demand[b, c]:
                first = int((~np.isnan(self.y[b, :, c])).argmax())  # of the values in the request
                before, ahead = np.split(np.exp(self.effects[b, :, c]), [length])
                before = before[first : first + len(request.y)]
                one = with_season(one, request, rng, before, ahead)
            found.append(one)
        return found

    def usual(self) -> np.ndarray:
        """What was added to past values in the mean, shape (B, C)."""
        seen = ~np.isnan(self._started(self.y))
        past = np.where(seen, self.added[:, : self.y.shape[1]].cpu().numpy(), 0.0)
        return past.sum(1) / np.maximum(seen.sum(1), 1)

    def added_to(self, found: Predictive, past: Float[Tensor, "B L C"]) -> Predictive:
        """Forecasts of all components with additions, within the bounds of past values; zero where closed."""
        added, closed = (
            rearrange(part[:, -found.paths.shape[1] :], "b n c -> n (b c)").cpu().numpy()
            for part in (self.added, self.closed)
        )
        values = rearrange(past, "b l c -> (b c) l").cpu().double().numpy()
        powers, ends = np.tile(self.powers, len(self.y)), bounds_with_effects(values, self.demand.ravel())
        return found.with_effects(added, self.usual().ravel(), powers, ends).zero_at(closed)
