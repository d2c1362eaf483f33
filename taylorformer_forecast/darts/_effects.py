"""What future covariates add to components: taken off windows, and added to forecasts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from darts import TimeSeries
from darts.utils.ts_utils import series2seq
from jaxtyping import Float
from torch import Tensor

from taylorformer_forecast.defaults import CONTEXT_FLOOR
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
    known = []
    for one, own in zip(covariates, series, strict=True):
        inside = one.slice_intersect(own)
        x = np.full((len(own), one.n_components), np.nan)
        if len(inside):
            first = own.get_index_at_point(inside.start_time())
            x[first : first + len(inside)] = inside.all_values(copy=False)[:, :, 0]
        known.append(x)
    found = [fit_effects([y[:, c] for y in values], known, seasons) for c in range(series[0].n_components)]
    if any(effects is None for effects in found):
        return None
    return {
        "effects": [{name: value.tolist() for name, value in vars(effects).items()} for effects in found],
        "spreads": [spread_of(column) for column in values[0].T] if len(values) == 1 else None,
    }


class Additions:
    """What covariates add to the components of windows.

    Parameters
    ----------
    effects : sequence of mapping
        Fields of the :class:`~taylorformer_forecast.engine.effects.CovariateEffects` of every component.
    spreads : sequence of float, optional
        Standard deviations of the components, in which additions are measured; by default those of every
        context, as series of a panel have levels of their own.
    floor : Tensor of shape (C,)
        Least such deviations of a context, times a constant.
    """

    def __init__(
        self, effects: Sequence[Mapping[str, Any]], spreads: Sequence[float] | None, floor: Tensor
    ) -> None:
        self.effects = [
            CovariateEffects(**{name: np.array(value) for name, value in fields.items()})
            for fields in effects
        ]
        self.spreads, self.least = spreads, floor.cpu().numpy() / CONTEXT_FLOOR

    def __call__(
        self, x: Float[Tensor, "B N F"], past: Float[Tensor, "B L C"], shift: int
    ) -> Float[Tensor, "B N C"]:
        """Additions at the points of windows.

        Parameters
        ----------
        x : Tensor of shape (B, N, F)
            Covariates at context and targets, NaN where not known; effects are of the first ones.
        past : Tensor of shape (B, L, C)
            Values of the context.
        shift : int
            Steps between context and targets.
        """
        values, y = (part.detach().cpu().double().numpy() for part in (x, past))
        n = y.shape[1]
        gap = np.full((len(values), shift, values.shape[2]), np.nan)
        values = np.concatenate([values[:, :n], gap, values[:, n:]], 1)
        kept = np.r_[0:n, n + shift : values.shape[1]]
        every = with_earlier(values, max(effects.reach for effects in self.effects))[:, kept]
        points, found = every.reshape(-1, *every.shape[2:]), np.empty((*every.shape[:2], len(self.effects)))
        for c, effects in enumerate(self.effects):
            found[..., c] = effects(points).reshape(every.shape[:2]) * self._spread(c, y)[:, None]
        return torch.as_tensor(found, device=past.device)

    def _spread(self, c: int, y: np.ndarray) -> np.ndarray:
        """Unit of the additions to one component of every window."""
        if self.spreads is not None:
            return np.full(len(y), self.spreads[c])
        seen = ~np.isnan(y[..., c])
        count = np.maximum(seen.sum(1), 1)
        mean = np.where(seen, y[..., c], 0.0).sum(1) / count
        square = np.where(seen, (y[..., c] - mean[:, None]) ** 2, 0.0).sum(1) / count
        return np.maximum(np.sqrt(square), self.least[c])
