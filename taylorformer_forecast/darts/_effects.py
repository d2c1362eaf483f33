"""What future covariates add to components: taken off windows, and added to forecasts."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from darts import TimeSeries
from darts.utils.data.torch_datasets.utils import PLModuleInput, TorchInferenceBatch
from darts.utils.ts_utils import series2seq
from jaxtyping import Bool, Float
from torch import Tensor

from taylorformer_forecast.baselines.intermittent import is_intermittent
from taylorformer_forecast.engine.closures import ZeroPlaces
from taylorformer_forecast.engine.demand_ratios import multiplied
from taylorformer_forecast.engine.effects import CovariateEffects, fit_effects, with_earlier
from taylorformer_forecast.engine.series_requests import SeriesForecast, SeriesRequest
from taylorformer_forecast.engine.series_scale import since_start

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
    values = [one.all_values(copy=False)[:, :, 0].astype(float) for one in series]
    known = [_at_series(one, own) for one, own in zip(covariates, series, strict=True)]
    columns = [[y[:, c] for y in values] for c in range(series[0].n_components)]
    found = [fit_effects(column, known, seasons, length) for column in columns]
    return {
        "effects": [
            {name: np.asarray(value).tolist() for name, value in vars(effects).items()} for effects in found
        ],
        "units": [
            _usual_units(effects, np.where(effects.closed(known[0]), np.nan, y[0]), length)
            for effects, y in zip(found, columns, strict=True)
        ]
        if len(values) == 1
        else None,
        "length": length,
        "names": covariates[0].components.tolist(),
        "seasons": list(seasons),
    }


def _usual_units(effects: CovariateEffects, y: Float[np.ndarray, " n"], length: int) -> list[float]:
    """Unit of the additions to a series, and the smallest and largest of its windows of some ``length``."""
    size = min(length, len(y))
    windows = np.lib.stride_tricks.sliding_window_view(y, size)[:: max(size // 4, 1)]
    each = effects.unit(windows, length)
    return [float(effects.unit(y, length)), float(each.min()), float(each.max())]


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

    Batches have no values where covariates say that all is zero: see :func:`without_closed`.

    Parameters
    ----------
    effects : sequence of mapping
        Fields of the :class:`~taylorformer_forecast.engine.effects.CovariateEffects` of every component.
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

    def __call__(self, x: PLModuleInput | TorchInferenceBatch, n: int, shift: int) -> Float[Tensor, "B N C"]:
        """Additions at the past of a batch and ``n`` targets, NaN where covariates say that all is zero.

        Parameters
        ----------
        x : PLModuleInput or TorchInferenceBatch
            Values of the past, and covariates, NaN where not known; effects are of the first ones.
        n : int
            Targets; there may be covariates of more steps.
        shift : int
            Steps between past and targets.
        """
        every, y = self._of_batch(x, n, shift)
        return torch.as_tensor(every * self._units(y)[:, None], device=x.past_target.device)

    def multiply(
        self, forecasts: Sequence[SeriesForecast], x: TorchInferenceBatch, n: int, shift: int
    ) -> list[SeriesForecast]:
        """Forecasts of all components; covariates multiply the means of intermittent demand."""
        if not any(effects.of_demand.any() for effects in self.effects):
            return list(forecasts)
        every, y = self._of_batch(x, n, shift)
        ratios, demand = np.exp(np.nan_to_num(every)), self._demand(y)
        rng = np.random.default_rng(int(torch.randint(2**31 - 1, ())))  # from the generator that darts seeds
        found = []
        for number, one in enumerate(forecasts):
            b, c = divmod(number, y.shape[2])
            if one.intermittent and demand[b, c]:
                before, ahead = ratios[b, :-n, c], ratios[b, -n:, c]
                one = multiplied(one, np.ones(n, dtype=bool), y[b, :, c], before, ahead, rng)
            found.append(one)
        return found

    def closed(self, x: Float[Tensor, "B n F"]) -> Bool[Tensor, "B n C"]:
        """Where covariates say that all of a component is zero."""
        return torch.as_tensor(self._closed(x.detach().cpu().double().numpy()), device=x.device)

    def _closed(self, x: Float[np.ndarray, "B n F"]) -> Bool[np.ndarray, "B n C"]:
        """The same of arrays."""
        return np.stack([effects.closed(x) for effects in self.effects], -1)

    def marked(self, requests: Sequence[SeriesRequest], past: Float[Tensor, "B L C"]) -> list[SeriesRequest]:
        """Requests for all components, with those of demand whose mean covariates multiply marked."""
        demand = self._demand(past.detach().cpu().double().numpy()).ravel()
        return [replace(one, multiplied=bool(own)) for one, own in zip(requests, demand, strict=True)]

    def rest(self, past: Float[Tensor, "B L C"], added: Float[Tensor, "B N C"]) -> Float[Tensor, "B L C"]:
        """Past values less what is added to them, without zeros before the first other value."""
        y = past.detach().cpu().double().numpy()
        before = added[:, : y.shape[1]].cpu().numpy()
        demand = self._demand(y)[:, None]
        started = np.where(demand, y, since_start(y.swapaxes(1, 2)).swapaxes(1, 2))
        return torch.as_tensor(started - before)  # nothing is added to demand, but NaN where it is closed

    def rest_of(self, series: TimeSeries, covariates: TimeSeries) -> TimeSeries:
        """A series less what covariates add to it."""
        values, x = series.all_values(copy=False)[None, :, :, 0], _at_series(covariates, series)[None]
        y = np.where(self._closed(x), np.nan, values.astype(float))
        added = self._at(x, y) * self._units(y)[:, None]
        rest = self.rest(torch.as_tensor(y), torch.as_tensor(added)).numpy()
        return series.with_values(rest[0, ..., None].astype(values.dtype))

    def _of_batch(
        self, x: PLModuleInput | TorchInferenceBatch, n: int, shift: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Effects (B, L + n, C) at past and targets of a batch, and the values of its past."""
        parts = x.past_target, x.historic_future_covariates, x.future_covariates
        y, before, after = (part.detach().cpu().double().numpy() for part in parts)
        length = y.shape[1]
        gap = np.full((len(y), shift, before.shape[2]), np.nan)
        every = self._at(np.concatenate([before, gap, after[:, :n]], 1), y)
        return every[:, np.r_[0:length, length + shift : every.shape[1]]], y

    def _at(self, x: Float[np.ndarray, "B N F"], y: Float[np.ndarray, "B L C"]) -> np.ndarray:
        """Effects (B, N, C) at steps of a grid, in units, on series with these values in front."""
        # Means and memory of covariates are alike for all components.
        given = x[..., : len(self.effects[0].means)]
        every = with_earlier(self.effects[0].filled(given), max(effects.reach for effects in self.effects))
        shape, points = every.shape[:2], every.reshape(-1, *every.shape[2:])
        numbers = np.where(self._demand(y), -2, -1).repeat(shape[1], 0)
        found = [effects(points, numbers[:, c]) for c, effects in enumerate(self.effects)]
        return np.stack(found, 1).reshape(*shape, -1) * ~self._zero_places(y, shape[1])

    def _zero_places(self, y: Float[np.ndarray, "B L C"], n: int) -> Bool[np.ndarray, "B n C"]:
        """Which of ``n`` steps since the first value lie at places in a season that are always zero."""
        found = np.zeros((len(y), n, y.shape[2]), dtype=bool)
        for b, c in np.argwhere((y == 0).any(1)):
            found[b, :, c] = ZeroPlaces.of(since_start(y[b, :, c]), self.seasons).at(np.arange(n))
        return found

    def _demand(self, y: Float[np.ndarray, "B L C"]) -> np.ndarray:
        """Which components of every series are intermittent demand; (B, C)."""
        found = np.empty((len(y), len(self.effects)), dtype=bool)
        for c, effects in enumerate(self.effects):
            found[:, c] = effects.of_demand[0]
            if effects.of_demand.any() and not effects.of_demand.all():
                own = is_intermittent(torch.as_tensor(y[..., c]))[:, -1].numpy()
                own[own] = [not ZeroPlaces.of(since_start(one), self.seasons).cycles for one in y[own, :, c]]
                found[:, c] = own
        return found

    def _units(self, y: Float[np.ndarray, "B L C"]) -> Float[np.ndarray, "B C"]:
        """Units of the additions to all components of every series with these values in front."""
        found = np.empty((len(y), len(self.effects)))
        for c, effects in enumerate(self.effects):
            found[:, c] = own = effects.unit(y[..., c], self.length)
            if self.units is not None:  # another series, of another scale, has another unit
                usual, least, most = self.units[c]
                alike = (own >= least / MOST_RATIO) & (own <= most * MOST_RATIO)
                found[alike, c] = usual
        return np.where(self._demand(y), 0.0, found)


def _as_arrays(fields: Mapping[str, Any]) -> CovariateEffects:
    """Effects whose arrays are lists."""
    arrays = {name: np.array(value) for name, value in fields.items() if name != "relative"}
    whole = {name: arrays[name].astype(int) for name in ("columns", "delays", "closing")}
    return CovariateEffects(**{**arrays, **whole}, relative=fields["relative"])


def without_closed(
    batch: Any, additions: Additions | None, unknown: Callable[[Any], Tensor] | None = None
) -> Any:
    """A batch whose values are missing where covariates say that all is zero.

    A warning names components of which nothing is left: ``unknown`` says of a batch which have nothing.
    """
    if additions is None or not any(len(effects.closing) for effects in additions.effects):
        return batch
    length = batch.past_target.shape[1]
    closed = additions.closed(batch.historic_future_covariates[:, -length:])
    hidden = {"past_target": batch.past_target.masked_fill(closed, torch.nan)}
    if hasattr(batch, "future_target"):
        ahead = additions.closed(batch.future_covariates)
        hidden["future_target"] = batch.future_target.masked_fill(ahead, torch.nan)
    found = replace(batch, **hidden)
    if unknown is not None and bool((unknown(found) & ~unknown(batch)).any()):
        warnings.warn(
            "future_covariates say that a series was closed at all times from which it is forecast: these "
            "forecasts are NaN. A longer input_chunk_length may help",
            stacklevel=2,
        )
    return found
