"""Windows of darts' batches, and likelihood parameters of windows as those of series."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from darts.models.forecasting.pl_forecasting_module import PLForecastingModule
from darts.utils.data.torch_datasets.utils import (
    ModuleStage,
    PLModuleInput,
    TorchInferenceBatch,
    TorchTrainingBatch,
)
from einops import rearrange
from jaxtyping import Shaped
from torch import Tensor

from taylorformer_forecast.core.scaling import Scale, least_scale, scale_window
from taylorformer_forecast.core.window import Window
from taylorformer_forecast.darts._adapters import LikelihoodFamily
from taylorformer_forecast.darts._batch_effects import BatchEffects
from taylorformer_forecast.darts._effects import Additions
from taylorformer_forecast.defaults import CONTEXT_FLOOR, FARTHEST_X


def with_known_targets(batch: TorchTrainingBatch, additions: Additions | None) -> TorchTrainingBatch:
    """Hide values where covariates say that all is zero, and targets whose level is then not known.

    That is where the input chunk of a component has no value.
    """
    if additions is not None:
        batch = additions.without_closed(batch)
    unknown = batch.past_target.isnan().all(1, keepdim=True)
    return replace(batch, future_target=batch.future_target.masked_fill(unknown, torch.nan))


def _in_units(covariates: Tensor, units: Tensor) -> Tensor:
    """Covariates, in the last dimension, in standard deviations from their means."""
    covariates = covariates.to(torch.promote_types(covariates.dtype, torch.float32))  # 16 bits overflow
    mean, deviation = units.to(covariates).unbind(-1)
    return ((covariates - mean) / deviation).clamp(-FARTHEST_X, FARTHEST_X)


def _filled(past: Tensor, values: Tensor | None, length: int, width: int) -> Tensor:
    """Columns of every series over ``length`` steps, NaN where nothing is given."""
    out = past.new_full((len(past), length, width), float("nan"))
    if values is not None:
        out[:, : values.shape[1]] = values[:, :length]
    return out


# Buffers that hold units of the data.
UNITS = ("floor", "past_units", "future_units", "static_units")


class BatchWindows(PLForecastingModule):
    """Windows of a :class:`ForecastModule`: every component of a series by itself, or all together."""

    head: LikelihoodFamily
    normalise: bool
    n_past: int
    n_future: int
    n_static: int
    n_phases: int
    n_past_columns: int
    past_flags: list[int]
    future_flags: list[int]
    past_units: Tensor
    future_units: Tensor
    static_units: Tensor
    floor: Tensor
    sizes: dict[str, int]
    additions: Additions | None
    outlier_seasons: Sequence[float] | None

    def training_windows(self, samples: Sequence[Any], collate: Callable[..., Any]) -> Window:
        """Scaled windows of samples of a training set, without the targets whose weight is zero."""
        batch = with_known_targets(collate(samples), self.additions)
        if batch.sample_weight is not None:
            target = batch.future_target.masked_fill(batch.sample_weight == 0, torch.nan)
            batch = replace(batch, future_target=target)
        x = batch.to_module_input(stage=ModuleStage.TRAIN)
        n = self.output_chunk_length or 1
        return self.scaled(self.window(x, n, effects=self.effects(x, n)).to(self.device))[0]

    @property
    def time_unit(self) -> float:
        """Steps that the network sees as a time of 1: the span of a context."""
        return float(self.input_chunk_length)

    def window(
        self,
        x: PLModuleInput,
        n: int,
        later_past: Tensor | None = None,
        effects: BatchEffects | None = None,
    ) -> Window:
        """Window of every series and component, in the units of the data, or of their level.

        Parameters
        ----------
        x : PLModuleInput
            Batch with ``future_target`` in training; ``future_covariates`` may cover more steps than a chunk.
        n : int
            Targets.
        later_past : Tensor of shape (B, M, P), optional
            Past covariates of the first M targets, for contexts of later windows.
        effects : BatchEffects, optional
            What is taken off the values: :meth:`effects`.

        Returns
        -------
        Window
            B * G windows of W columns, with G * W = C components: those of one series after another.
        """
        past = x.past_target
        n_series, n_context, n_components = past.shape
        wide = torch.float64
        fill = partial(_filled, past.to(wide))
        y = torch.cat([past, fill(x.future_target, n, n_components)], 1).to(wide)
        if effects is not None:
            added = effects.added[:, effects.y.shape[1] - n_context :]
            y[:, : added.shape[1]] -= added.to(wide)
        t = torch.arange(n_context + n, device=past.device, dtype=wide)
        t = t + self.output_chunk_shift * (t >= n_context)

        shared: list[Tensor] = []  # by all components of a series; past covariates come last
        for width, units, flags, before, after, n_phases in (
            (
                self.n_future,
                self.future_units,
                self.future_flags,
                x.historic_future_covariates,
                x.future_covariates,
                self.n_phases,
            ),
            (self.n_past, self.past_units, self.past_flags, x.past_covariates, later_past, 0),
        ):
            if width:
                values = torch.cat([fill(before, n_context, width), fill(after, n, width)], 1)
                values = _in_units(values.to(wide), units)
                # Phases, the last of the future covariates, come first: pretrained networks see these alone.
                shared += [values.nan_to_num(0.0).roll(n_phases, -1), (~values[..., flags].isnan()).to(wide)]
        y = rearrange(y, "b n (g w) -> (b g) n w", **self.sizes) / self.head.unit
        parts = [part.repeat_interleave(len(y) // n_series, 0) for part in shared]
        if x.static_covariates is not None and self.n_static:
            static = _in_units(x.static_covariates.to(wide), self.static_units)
            static = static.expand(n_series, n_components, -1).nan_to_num(0.0)
            static = rearrange(static, "b (g w) s -> (b g) 1 (w s)", **self.sizes)
            parts.insert(1 if self.n_future else 0, static.expand(-1, n_context + n, -1))
        covariates = torch.cat(parts, -1) if parts else None
        numbers = None  # components have those of the fit, if there are as many
        if y.shape[2] == 1 < n_components == len(self.floor):
            numbers = torch.arange(n_components, device=y.device).repeat(n_series)[:, None]
            numbers = numbers.expand(y.shape[:2])
        t = t.expand(len(y), -1)
        return Window(t, y, covariates=covariates, series=numbers, n_context=n_context)

    def effects(self, x: PLModuleInput | TorchInferenceBatch, n: int) -> BatchEffects | None:
        """What future covariates do to all components at the past and ``n`` targets, if anything."""
        if self.additions is None:
            return None
        return self.additions.of_batch(x, n, self.output_chunk_shift)

    def unknown(self, batch: TorchInferenceBatch) -> Tensor:
        """Which components have no value in the input chunk, so that their level is not known; (B, C)."""
        return batch.past_target[:, -self.input_chunk_length :].isnan().all(1)

    def open_past(self, batch: TorchInferenceBatch) -> TorchInferenceBatch:
        """A batch without values that covariates hide: see :meth:`Additions.open_past`."""
        return batch if self.additions is None else self.additions.open_past(batch, self.unknown)

    def of_windows(self, cells: Shaped[Tensor, "B n C"]) -> Shaped[Tensor, "W n D"]:
        """Cells of every series and component as those of windows."""
        return rearrange(cells, "b n (g w) -> (b g) n w", **self.sizes)

    def to_dtype(self, dtype: torch.dtype) -> None:
        """Cast the network, as darts does when a model is loaded, to both kinds of 16 bits too."""
        self.to(dtype)

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> BatchWindows:
        """Move or cast the network; units of the data stay in double precision."""
        units = {name: self.get_buffer(name) for name in UNITS}
        super()._apply(fn, recurse)
        for name, value in units.items():
            setattr(self, name, value.to(self.get_buffer(name).device))
        return self

    def least_scales(self, window: Window, rows: Tensor | None = None) -> Tensor:
        """Smallest standard deviation to divide each window by, (B * G, 1, W), or some rows of a batch."""
        floor = rearrange(self.floor, "(g w) -> g 1 w", **self.sizes)
        rows = torch.arange(len(window.y), device=floor.device) if rows is None else rows
        floor = floor[rows % len(floor)]
        return least_scale(window, floor, floor / CONTEXT_FLOOR)

    def scaled(self, window: Window) -> tuple[Window, Scale]:
        """Window in the network's units, past covariates hidden at the targets."""
        return scale_window(
            window.hide_covariates(self.n_past_columns),
            self.time_unit,
            self.least_scales(window),
            self.dtype,
            self.normalise,
        )

    def by_series(self, raw: Tensor) -> Tensor:
        """Parameters of windows (B * G, T, W, P) as those of series, (B, T, C, P)."""
        width = raw.shape[2]
        return rearrange(raw.to(self.dtype), "(b g) t w p -> b t (g w) p", g=len(self.floor) // width)
