"""What future covariates add to components: taken off windows, and added to forecasts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from darts import TimeSeries
from darts.utils.data.torch_datasets.utils import PLModuleInput, TorchInferenceBatch
from darts.utils.ts_utils import series2seq
from jaxtyping import Float
from torch import Tensor

from taylorformer_forecast.darts._covariates import least_spread
from taylorformer_forecast.engine.effects import CovariateEffects, fit_effects, spread_of, with_earlier


def effects_on_components(
    series: Sequence[TimeSeries],
    covariates: TimeSeries | Sequence[TimeSeries] | None,
    seasons: Sequence[float],
) -> dict[str, Any] | None:
    """Estimate what covariates add to every component, in common to all series.

    Returns
    -------
    dict or None
        Arguments of :class:`Additions`, plain lists that a checkpoint can hold; None without covariates, or
        where no effect can be estimated.
    """
    covariates = series2seq(covariates)
    if not covariates:
        return None
    values = [one.all_values(copy=False)[:, :, 0].astype(float) for one in series]
    known = [_at_series(one, own) for one, own in zip(covariates, series, strict=True)]
    columns = [[y[:, c] for y in values] for c in range(series[0].n_components)]
    found = [fit_effects(column, known, seasons) for column in columns]
    if any(effects is None for effects in found):
        return None
    return {
        "effects": [{name: value.tolist() for name, value in vars(effects).items()} for effects in found],
        "spreads": [spread_of(column) for column in values[0].T] if len(values) == 1 else None,
        "least": [least_spread(column) for column in columns],
    }


def _at_series(covariates: TimeSeries, series: TimeSeries) -> Float[np.ndarray, "n F"]:
    """Covariates at the times of a series, NaN where there are none."""
    inside = covariates.slice_intersect(series)
    x = np.full((len(series), covariates.n_components), np.nan)
    if len(inside):
        first = series.get_index_at_point(inside.start_time())
        x[first : first + len(inside)] = inside.all_values(copy=False)[:, :, 0]
    return x


class Additions:
    """What covariates add to the components of series.

    Parameters
    ----------
    effects : sequence of mapping
        Fields of the :class:`~taylorformer_forecast.engine.effects.CovariateEffects` of every component.
    spreads : sequence of float, optional
        Standard deviations of the components, in which additions are measured; by default those of every
        past, as series of a panel have levels of their own.
    least : sequence of float
        Least such deviations of a past.
    """

    def __init__(
        self, effects: Sequence[Mapping[str, Any]], spreads: Sequence[float] | None, least: Sequence[float]
    ) -> None:
        self.effects = [
            CovariateEffects(**{name: np.array(value) for name, value in fields.items()})
            for fields in effects
        ]
        self.spreads, self.least = spreads, least

    def __call__(self, x: PLModuleInput | TorchInferenceBatch, n: int, shift: int) -> Float[Tensor, "B N C"]:
        """Additions at the past of a batch and ``n`` targets.

        Parameters
        ----------
        x : PLModuleInput or TorchInferenceBatch
            Values of the past, and covariates, NaN where not known; effects are of the first ones.
        n : int
            Targets; there may be covariates of more steps.
        shift : int
            Steps between past and targets.
        """
        parts = x.past_target, x.historic_future_covariates, x.future_covariates
        y, before, after = (part.detach().cpu().double().numpy() for part in parts)
        length = y.shape[1]
        gap = np.full((len(y), shift, before.shape[2]), np.nan)
        every = self._at(np.concatenate([before, gap, after[:, :n]], 1), y)
        kept = np.r_[0:length, length + shift : every.shape[1]]
        return torch.as_tensor(every[:, kept], device=x.past_target.device)

    def rest_of(self, series: TimeSeries, covariates: TimeSeries) -> TimeSeries:
        """A series less what covariates add to it."""
        values = series.all_values(copy=False)[:, :, 0]
        added = self._at(_at_series(covariates, series)[None], values[None].astype(float))[0]
        return series.with_values((values - added)[..., None].astype(values.dtype))

    def _at(self, x: Float[np.ndarray, "B N F"], y: Float[np.ndarray, "B L C"]) -> np.ndarray:
        """Additions (B, N, C) at steps of a grid, to series with these values."""
        every = with_earlier(x, max(effects.reach for effects in self.effects))
        points, found = every.reshape(-1, *every.shape[2:]), np.empty((*every.shape[:2], len(self.effects)))
        for c, effects in enumerate(self.effects):
            found[..., c] = effects(points).reshape(every.shape[:2]) * self._spread(c, y)[:, None]
        return found

    def _spread(self, c: int, y: np.ndarray) -> np.ndarray:
        """Unit of the additions to one component of every series."""
        if self.spreads is not None:
            return np.full(len(y), self.spreads[c])
        seen = ~np.isnan(y[..., c])
        count = np.maximum(seen.sum(1), 1)
        mean = np.where(seen, y[..., c], 0.0).sum(1) / count
        square = np.where(seen, (y[..., c] - mean[:, None]) ** 2, 0.0).sum(1) / count
        return np.maximum(np.sqrt(square), self.least[c])
