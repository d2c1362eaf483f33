"""Predictive distributions of several series as arrays, and their arithmetic."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from taylorformer_forecast.core.families import find_component
from taylorformer_forecast.core.families.base import CERTAIN, POINT_MASS
from taylorformer_forecast.defaults import STATISTICAL_LEVELS
from taylorformer_forecast.engine.effects.series_scale import spread_with_effects
from taylorformer_forecast.engine.mixtures import ROUGH_STEP, Mixture
from taylorformer_forecast.engine.statistics.average import average_quantiles, weight_of_statistics
from taylorformer_forecast.engine.statistics.requests import SeriesForecast, SeriesRequest


@dataclass(frozen=True)
class Predictive:
    """Predictive distribution as arrays, rows R in the order of the requests.

    Parameters
    ----------
    paths : ndarray of shape (S, R, D)
        Joint sample paths.
    mixture : Mixture
        Marginal distributions, arrays of shape (R, D, K).
    """

    paths: np.ndarray
    mixture: Mixture

    @classmethod
    def of_columns(cls, forecasts: Sequence[SeriesForecast], n_columns: int) -> Predictive:
        """Join the forecasts for all columns of one instance after another, ``n_columns`` of each."""
        rows = np.cumsum([0, *(len(found.loc) for found in forecasts[::n_columns])])
        shape = rows[-1], n_columns, max(found.loc.shape[1] for found in forecasts)
        paths = np.empty((len(forecasts[0].paths), *shape[:2]))
        loc, scale, weights = np.empty(shape), np.empty(shape), np.zeros(shape)
        for number, found in enumerate(forecasts):
            instance, d = divmod(number, n_columns)
            at, n_pieces = slice(*rows[instance : instance + 2]), found.loc.shape[1]
            paths[:, at, d], weights[at, d, :n_pieces] = found.paths, found.weights
            for every, own in ((loc, found.loc), (scale, found.scale)):
                every[at, d, :n_pieces], every[at, d, n_pieces:] = own, own[:, -1:]
        return cls(paths, Mixture(find_component("uniform"), loc, scale, weights))

    def averaged_with(
        self,
        forecasts: Sequence[SeriesForecast],
        requests: Sequence[SeriesRequest],
        weight: float,
        n_context: int,
    ) -> list[SeriesForecast]:
        """Average with the statistical forecasts for all columns of one instance after another.

        ``weight`` is the weight of those, ``n_context`` the context of the network that this is of.
        """
        levels = self.mixture.at_levels(STATISTICAL_LEVELS, ROUGH_STEP)
        found, first = [], 0
        for number, (statistical, request) in enumerate(zip(forecasts, requests, strict=True)):
            d, rows = number % levels.shape[1], slice(first, first + len(request.at))
            own = levels[rows, d], self.paths[:, rows, d]
            found.append(
                average_quantiles(
                    statistical, request, *own, weight_of_statistics(weight, request.y, n_context)
                )
            )
            first += len(request.at) if d == levels.shape[1] - 1 else 0
        return found

    def shifted(self, added: np.ndarray) -> Predictive:
        """The distribution of the values plus known numbers, shape (R, D)."""
        mixture = self.mixture.affine(added[..., None], np.ones(1))
        return Predictive(self.paths + added, mixture)

    def wider(self, factor: np.ndarray) -> Predictive:
        """The distribution with deviations from its means times a factor, shape (R, D)."""
        rest = (1 - factor) * self.mixture.mean()
        mixture = self.mixture.affine(rest[..., None], factor[..., None])
        return Predictive(self.paths * factor + rest, mixture)

    def within(self, least: np.ndarray, most: np.ndarray) -> Predictive:
        """All that is outside bounds at these, of pieces of constant density; infinite for none.

        Bounds have shape (R, D), or (D,) for all rows.
        """
        loc, scale = self.mixture.loc, self.mixture.scale
        reach = np.where(self.mixture.points(), 0.0, scale)  # a point has none
        low, high = ((loc + end * reach).clip(least[..., None], most[..., None]) for end in (-1, 1))
        tiny = (POINT_MASS * np.maximum(np.abs(low), np.abs(high)).max(-1, keepdims=True)).clip(CERTAIN)
        half, bounded = np.maximum((high - low) / 2, tiny), np.isfinite(least) | np.isfinite(most)
        loc, scale = (
            np.where(bounded[..., None], *both) for both in (((low + high) / 2, loc), (half, scale))
        )
        return Predictive(self.paths.clip(least, most), replace(self.mixture, loc=loc, scale=scale))

    def with_effects(
        self, added: np.ndarray, usual: np.ndarray, power: float | np.ndarray, ends: Sequence[np.ndarray]
    ) -> Predictive:
        """The distribution with what covariates add, within bounds of the values.

        Where these are never negative, errors grow with them; see
        :func:`~taylorformer_forecast.engine.effects.series_scale.spread_with_effects`.
        """
        factor = spread_with_effects(self.mixture.mean(), added, usual, power)
        return self.wider(np.where(ends[0] == 0, factor, 1.0)).shifted(added).within(*ends)

    def zero_at(self, closed: np.ndarray) -> Predictive:
        """The distribution with zero for certain in some cells, (R, D) or (R, 1)."""
        at = closed[..., None]
        loc, scale = np.where(at, 0.0, self.mixture.loc), np.where(at, CERTAIN, self.mixture.scale)
        return Predictive(np.where(closed, 0.0, self.paths), replace(self.mixture, loc=loc, scale=scale))

    def take(
        self, rows: np.ndarray | slice = slice(None), columns: np.ndarray | slice = slice(None)
    ) -> Predictive:
        """Some rows or columns, or all of them in another order."""
        mixture = self.mixture.map(lambda value: value[rows][:, columns])
        return Predictive(self.paths[:, rows][:, :, columns], mixture)
