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

from taylorformer_forecast.engine.effects import (
    CovariateEffects,
    fit_effects,
    mean_size,
    since_start,
    with_earlier,
)

MOST_RATIO = 10.0  # of mean sizes of pasts of the same series


def effects_on_components(
    series: Sequence[TimeSeries],
    covariates: TimeSeries | Sequence[TimeSeries] | None,
    seasons: Sequence[float],
    length: int,
) -> dict[str, Any] | None:
    """Estimate what covariates add to every component, in common to all series.

    Their units are deviations within contexts of some ``length``.

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
    found = [
        effects for column in columns if (effects := fit_effects(column, known, seasons, length)) is not None
    ]
    if len(found) < len(columns):
        return None
    own = [float(effects.unit(y[0], length)) for effects, y in zip(found, columns, strict=True)]
    return {
        "effects": [
            {name: np.asarray(value).tolist() for name, value in vars(effects).items()} for effects in found
        ],
        "units": own if len(values) == 1 else None,
        "length": length,
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
    units : sequence of float, optional
        Units of the additions to the components of a single series; by default those of every past, as series
        of a panel have levels of their own.
    length : int
        Values within which deviations are meant that are units.
    """

    def __init__(
        self, effects: Sequence[Mapping[str, Any]], units: Sequence[float] | None, length: int
    ) -> None:
        self.effects = [
            CovariateEffects(
                **{name: np.array(value) for name, value in fields.items() if name != "relative"},
                relative=fields["relative"],
            )
            for fields in effects
        ]
        self.units, self.length = units, length

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
        return series.with_values((since_start(values.T).T - added)[..., None].astype(values.dtype))

    def _at(self, x: Float[np.ndarray, "B N F"], y: Float[np.ndarray, "B L C"]) -> np.ndarray:
        """Additions (B, N, C) at steps of a grid, to series with these values."""
        every = with_earlier(x, max(effects.reach for effects in self.effects))
        points, found = every.reshape(-1, *every.shape[2:]), np.empty((*every.shape[:2], len(self.effects)))
        for c, effects in enumerate(self.effects):
            found[..., c] = effects(points).reshape(every.shape[:2]) * self._unit(c, y[..., c])[:, None]
        return found

    def _unit(self, c: int, y: Float[np.ndarray, "B L"]) -> Float[np.ndarray, " B"]:
        """Unit of the additions to one component of every series."""
        effects = self.effects[c]
        if self.units is None:
            return effects.unit(y, self.length)
        # Another series, of another scale, has another unit.
        own = effects.relative * mean_size(y)
        alike = (own < MOST_RATIO * self.units[c]) & (own > self.units[c] / MOST_RATIO)
        return np.where(alike, self.units[c], own)
