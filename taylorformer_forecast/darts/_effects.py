"""What future covariates add to components: taken off windows, and added to forecasts."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import torch
from darts import TimeSeries
from darts.utils.data.torch_datasets.utils import PLModuleInput, TorchInferenceBatch
from darts.utils.ts_utils import series2seq
from jaxtyping import Bool, Float, Int
from torch import Tensor

from taylorformer_forecast.darts._batch_effects import BatchEffects
from taylorformer_forecast.engine.covariates import with_earlier
from taylorformer_forecast.engine.effects.closures import ZeroPlaces, demand_of
from taylorformer_forecast.engine.effects.covariate_effects import CovariateEffects, fit_effects
from taylorformer_forecast.engine.effects.covariate_gaps import before_all_or_long
from taylorformer_forecast.engine.effects.series_scale import since_start

MOST_RATIO = 2.0  # of the unit of a past of the same series to the largest, and of the smallest to it


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
        Arguments of :class:`Additions`, plain lists that a checkpoint can hold; None without covariates.
    """
    covariates = series2seq(covariates)
    if not covariates:
        return None
    values = [one.values(copy=False).astype(float) for one in series]
    known = [_at_series(one, own) for one, own in zip(covariates, series, strict=True)]
    columns = [[y[:, c] for y in values] for c in range(series[0].n_components)]
    found = [fit_effects(column, known, seasons, length) for column in columns]
    return {
        "effects": [
            {name: np.asarray(value).tolist() for name, value in vars(effects).items()} for effects in found
        ],
        "units": [
            _usual_units(effects, np.where(effects.closed(known[0]), np.nan, y[0]), known[0], length)
            for effects, y in zip(found, columns, strict=True)
        ]
        if len(values) == 1
        else None,
        "length": length,
        "names": covariates[0].components.tolist(),
        "seasons": list(seasons),
    }


def _usual_units(effects: CovariateEffects, y: np.ndarray, x: np.ndarray, length: int) -> list[float]:
    """Unit of the additions to a series, and the smallest and largest of its windows of some ``length``."""
    whole, size = float(effects.unit(y, x, length)), min(length, len(y))
    at = np.arange(0, len(y) - size + 1, max(size // 4, 1))[:, None] + np.arange(size)
    each = effects.unit(y[at], x[at], length)
    return [whole, float(each[each > 0].min(initial=whole)), float(each.max())]


def _at_series(covariates: TimeSeries, series: TimeSeries) -> Float[np.ndarray, "n F"]:
    """Covariates at the times of a series, NaN where there are none."""
    inside = covariates.slice_intersect(series)
    x = np.full((len(series), covariates.n_components), np.nan)
    if len(inside):
        first = series.get_index_at_point(inside.start_time())
        x[first : first + len(inside)] = inside.values(copy=False)
    return x


class Additions:
    """What covariates add to the components of series.

    Batches have no values where covariates say that all is zero: see :meth:`without_closed`.

    Parameters
    ----------
    effects : sequence of mapping
        Fields of the effects of every component, each
        :class:`~taylorformer_forecast.engine.effects.covariate_effects.CovariateEffects`.
    units : sequence of (float, float, float), optional
        Units of the additions to the components of a single series, and the smallest and largest of its
        windows; by default those of every past, as series of a panel have levels of their own.
    length : int
        Values within which deviations are meant that are units.
    names : sequence of str
        Names of the covariates.
    seasons : sequence of float
        Lengths of seasons, in which some places may always be zero.
    """

    def __init__(
        self,
        effects: Sequence[Mapping[str, Any]],
        units: Sequence[Sequence[float]] | None,
        length: int,
        names: Sequence[str],
        seasons: Sequence[float],
    ) -> None:
        self.effects = [_as_arrays(fields) for fields in effects]
        self.units, self.length, self.names, self.seasons = units, length, names, seasons

    @property
    def of_demand(self) -> bool:
        """Whether all series of the fit were intermittent demand, to which nothing is added."""
        return all(bool(effects.of_demand.all()) for effects in self.effects)

    def of_batch(
        self, x: PLModuleInput | TorchInferenceBatch, n: int, shift: int, own: bool = False
    ) -> BatchEffects:
        """Effects at the past of a batch and ``n`` targets.

        Parameters
        ----------
        x : PLModuleInput or TorchInferenceBatch
            Values of the past, and covariates, NaN where not known; effects are of the first ones.
        n : int
            Targets; there may be covariates of more steps.
        shift : int
            Steps between past and targets.
        own : bool, default=False
            Whether every series has effects of its own, as far as its past shows other ones.
        """
        parts = x.past_target, x.historic_future_covariates, x.future_covariates
        y, before, after = (part.detach().cpu().double().numpy() for part in parts)
        gap = np.full((len(y), shift, before.shape[2]), np.nan)
        every = np.concatenate([before, gap, after[:, :n]], 1)
        steps = np.r_[: y.shape[1], y.shape[1] + shift : every.shape[1]]
        slopes = self._own(every, y) if own else None
        return self._of(every, y, steps, x.past_target.device, slopes)

    def rest_of(self, series: TimeSeries, covariates: TimeSeries) -> TimeSeries:
        """A series less what covariates add to it."""
        values, x = series.all_values(copy=False)[None, :, :, 0], _at_series(covariates, series)[None]
        y = np.where(self._closed(x) | self._unknown(x), np.nan, values.astype(float))
        rest = self._of(x, y, np.arange(len(series))).rest(torch.as_tensor(y)).numpy()
        return series.with_values(rest[0, ..., None].astype(values.dtype))

    def with_others(
        self, series: TimeSeries, covariates: TimeSeries, others: TimeSeries, own: bool
    ) -> TimeSeries:
        """A series as it were with other covariates, and the same rest; ``own`` as for :meth:`of_batch`."""
        values, steps = series.all_values(copy=False)[None, :, :, 0], np.arange(len(series))
        x, changed = (_at_series(one, series)[None] for one in (covariates, others))
        y = np.where(self._closed(x) | self._unknown(x), np.nan, values.astype(float))
        slopes = self._own(x, y) if own else None
        before, after = (self._of(one, y, steps, own=slopes).added.numpy() for one in (x, changed))
        return series.with_values((y + after - before)[0, ..., None].astype(values.dtype))

    def without_closed(self, batch: Any) -> Any:
        """A batch whose values are missing where covariates say that all is zero."""
        if not any(len(effects.closing) for effects in self.effects):
            return batch
        length = batch.past_target.shape[1]
        hidden = {"past_target": (batch.past_target, batch.historic_future_covariates[:, -length:])}
        if hasattr(batch, "future_target"):
            hidden["future_target"] = (batch.future_target, batch.future_covariates)
        return replace(batch, **{name: self._open(*both) for name, both in hidden.items()})

    def without_unknown(self, batch: TorchInferenceBatch) -> TorchInferenceBatch:
        """A batch whose values are missing where what covariates add to them is not known."""
        past = batch.past_target
        x = batch.historic_future_covariates[:, -past.shape[1] :].detach().cpu().double().numpy()
        hidden = torch.as_tensor(self._unknown(x), device=past.device)
        return batch.replace(past_target=past.masked_fill(hidden, torch.nan))

    def open_past(self, batch: Any, unknown: Callable[[Any], Tensor]) -> Any:
        """A batch to forecast from, without values where covariates say that all is zero, or say nothing.

        A warning names components of which nothing is left: ``unknown`` says of a batch which have nothing.
        """
        found = self.without_closed(batch)
        if bool((unknown(found) & ~unknown(batch)).any()):
            warnings.warn(
                "future_covariates say that a series was closed at all times from which it is forecast: "
                "these forecasts are NaN. A longer input_chunk_length may help",
                stacklevel=2,
            )
        return self.without_unknown(found)

    def hides(self, series: TimeSeries, covariates: TimeSeries) -> Bool[np.ndarray, " n"]:
        """Where values of a series are missing as what covariates add to them is not known."""
        return self._unknown(_at_series(covariates, series)[None])[0].any(-1)

    def _open(self, values: Float[Tensor, "B n C"], x: Float[Tensor, "B n F"]) -> Float[Tensor, "B n C"]:
        """Values that are missing where covariates say that all is zero."""
        closed = self._closed(x.detach().cpu().double().numpy())
        return values.masked_fill(torch.as_tensor(closed, device=values.device), torch.nan)

    def _closed(self, x: Float[np.ndarray, "B n F"]) -> Bool[np.ndarray, "B n C"]:
        """Where covariates say that all of a component is zero."""
        return np.stack([effects.closed(x) for effects in self.effects], -1)

    def _unknown(self, x: Float[np.ndarray, "B n F"]) -> Bool[np.ndarray, "B n C"]:
        """Where covariates are not known that add something to a component, before the input chunk.

        In that, a network sees where they are known, and others refuse what training did not lack. Shorter
        gaps than a season stay: where a flag is missing on all Sundays, values say what these are like.
        """
        given, least = x[..., : len(self.effects[0].means)], math.ceil(max(self.seasons, default=1))
        found = np.stack([before_all_or_long(one.unknown(given), least) for one in self.effects], -1)
        found[:, max(found.shape[1] - self.length, 0) :] = False
        return found

    def _of(
        self,
        x: Float[np.ndarray, "B N F"],
        y: Float[np.ndarray, "B L C"],
        steps: Int[np.ndarray, " M"],
        device: torch.device | None = None,
        own: Sequence[CovariateEffects] | None = None,
    ) -> BatchEffects:
        """Effects at some steps of a grid, on series with these values in front; by default common ones."""
        places = self._zero_places(y)
        demand = self._demand(y, places)
        # Means and memory of covariates are alike for all components.
        given = x[..., : len(self.effects[0].means)]
        every = with_earlier(self.effects[0].filled(given), max(effects.reach for effects in self.effects))
        every = every[:, steps]
        shape, points = every.shape[:2], every.reshape(-1, *every.shape[2:])
        numbers = np.where(demand, -2, -1 if own is None else np.arange(len(y))[:, None]).repeat(shape[1], 0)
        each = [effects(points, numbers[:, c]) for c, effects in enumerate(own or self.effects)]
        found = np.stack(each, 1).reshape(*shape, -1)
        for (b, c), zero in places.items():
            found[b, zero.at(steps), c] = 0.0
        added = found * np.where(demand, 0.0, self._units(x, y))[:, None]
        closed = self._closed(x[:, steps])
        on_device, powers = partial(torch.as_tensor, device=device), [one.power for one in self.effects]
        return BatchEffects(y, found, demand, on_device(added), on_device(closed), powers)

    def _own(
        self, x: Float[np.ndarray, "B N F"], y: Float[np.ndarray, "B L C"]
    ) -> list[CovariateEffects] | None:
        """Effects on every component whose slopes are those of these series, by their numbers in the batch.

        None where the fit saw a single series, from which others cannot deviate.
        """
        if not any(len(effects.prior) for effects in self.effects):
            return None
        units, y, length = self._units(x, y), y.copy(), y.shape[1]
        for (b, c), zero in self._zero_places(y).items():
            y[b, zero.at(np.arange(length)), c] = np.nan
        known, found = x[:, :length, : len(self.effects[0].means)], []
        for c, effects in enumerate(self.effects):
            each = zip(since_start(y[..., c]), known, units[:, c].tolist(), strict=True)
            slopes = [effects.slopes_of(own, given, self.seasons, unit) for own, given, unit in each]
            found.append(replace(effects, slopes=np.stack([*slopes, *effects.slopes[-2:]])))
        return found

    def _zero_places(self, y: Float[np.ndarray, "B L C"]) -> dict[tuple[int, int], ZeroPlaces]:
        """Places in a season that are always zero, of those components (b, c) that have some."""
        found = {
            (b, c): ZeroPlaces.of(since_start(y[b, :, c]), self.seasons)
            for b, c in np.argwhere((y == 0).any(1)).tolist()
        }
        return {name: own for name, own in found.items() if own.cycles}

    def _demand(
        self, y: Float[np.ndarray, "B L C"], places: Mapping[tuple[int, int], ZeroPlaces]
    ) -> Bool[np.ndarray, "B C"]:
        """Which components of every series are intermittent demand."""
        found = np.empty((len(y), len(self.effects)), dtype=bool)
        for c, effects in enumerate(self.effects):
            found[:, c] = effects.of_demand[0]
            if effects.of_demand.any() and not effects.of_demand.all():
                of_series = [places.get((b, c), ZeroPlaces()) for b in range(len(y))]
                found[:, c] = demand_of(y[..., c], of_series)
        return found

    def _units(self, x: np.ndarray, y: Float[np.ndarray, "B L C"]) -> Float[np.ndarray, "B C"]:
        """Units of the additions to all components of every series with these values in front."""
        found = np.empty((len(y), len(self.effects)))
        for c, effects in enumerate(self.effects):
            found[:, c] = own = effects.unit(y[..., c], x[:, : y.shape[1]], self.length)
            if self.units is not None:  # another series, of another scale, has another unit
                usual, least, most = self.units[c]
                found[(own >= least / MOST_RATIO) & (own <= most * MOST_RATIO), c] = usual
        return found


def _as_arrays(fields: Mapping[str, Any]) -> CovariateEffects:
    """Effects whose arrays are lists."""
    arrays = {name: np.array(value) for name, value in fields.items() if isinstance(value, Sequence)}
    whole = {name: arrays[name].astype(int) for name in ("columns", "delays", "closing")}
    return CovariateEffects(**{**fields, **arrays, **whole})
