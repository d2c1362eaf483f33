"""Paths from where the values of a component end: those that are missing at the end are steps of them."""

from __future__ import annotations

import warnings
from dataclasses import replace

import torch
from darts.utils.data.torch_datasets.utils import PLModuleInput, TorchInferenceBatch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from taylorformer_forecast.core.protocol import ForecastNet
from taylorformer_forecast.core.rolling import forecast_paths
from taylorformer_forecast.core.sampling import PathSamples, join_samples
from taylorformer_forecast.core.window import Window
from taylorformer_forecast.darts._batch_effects import BatchEffects
from taylorformer_forecast.darts._outliers import late_outliers
from taylorformer_forecast.darts._windows import BatchWindows


def missing_at_the_end(seen: Bool[Tensor, "B n ..."], most: int) -> Int[Tensor, "B ..."]:
    """How many of the last points of every window or component were not seen; 0 for ``most`` or more.

    Examples
    --------
    >>> import torch
    >>> from taylorformer_forecast.darts._tails import missing_at_the_end
    >>> missing_at_the_end(torch.tensor([[True, True, True], [True, False, False]]), most=3).tolist()
    [0, 2]
    """
    length = seen.shape[1]
    place = torch.arange(1, length + 1, device=seen.device).view(-1, *[1] * (seen.ndim - 2))
    gap = length - (seen * place).amax(1)
    return gap.masked_fill(gap >= most, 0)


def from_the_last_value(window: Window, gap: int, length: int, shift: int) -> Window:
    """Windows whose context of some ``length`` ends ``gap`` points earlier, the rest of which are targets.

    Points before the first are not observed.

    Parameters
    ----------
    window : Window
        Windows with all steps after the context.
    gap, length : int
        Points that become targets, and those of the new contexts.
    shift : int
        Steps between context and targets.

    Examples
    --------
    >>> import torch
    >>> from taylorformer_forecast.core.window import Window
    >>> from taylorformer_forecast.darts._tails import from_the_last_value
    >>> y = torch.tensor([1.0, 2.0, torch.nan, torch.nan])[None, :, None]
    >>> found = from_the_last_value(Window(torch.arange(4.0)[None], y, n_context=3), 1, length=2, shift=0)
    >>> found.t.tolist(), found.n_context
    ([[0.0, 1.0, 2.0, 3.0]], 2)
    """
    end = window.n_context - gap
    at = torch.arange(end - length, window.y.shape[1], device=window.y.device)
    at = torch.cat([at[:length], at[length + shift :]])
    found = replace(window, n_context=length).map(lambda value: value[:, at.clamp_min(0)])
    return replace(found, t=at.to(found.t).expand_as(found.t), observed=found.observed & (at >= 0)[:, None])


class PathsFromTheLastValue(BatchWindows):
    """Sample paths of a :class:`ForecastModule`. The path of every window begins where its values end.

    Paths run through the steps at the end whose values are missing, as a network would take a context that
    ends with them for one in which they had not passed.
    """

    net: ForecastNet

    def without_between(self, batch: TorchInferenceBatch) -> tuple[TorchInferenceBatch, Tensor | None]:
        """A batch as darts makes it, and future covariates between past and targets, where known."""
        shift, ahead = self.output_chunk_shift, batch.future_covariates
        if not shift or ahead is None or ahead.shape[1] <= max(self.pred_n, self.output_chunk_length or 1):
            return batch, None
        return batch.replace(future_covariates=ahead[:, shift:]), ahead[:, :shift]

    def near(self, batch: TorchInferenceBatch, effects: BatchEffects | None) -> TorchInferenceBatch:
        """Input chunks of a batch, without outliers of what is less additions.

        They reach back farther where values are missing at the end, as far as the batch does.
        """
        past, length = batch.past_target, self.input_chunk_length
        seen = ~past[:, -length:].isnan()
        length = min(length + int(missing_at_the_end(seen, seen.shape[1]).max()), past.shape[1])
        y = past[:, -length:]
        if self.outlier_seasons is not None:
            rest = past if effects is None else effects.rest(past)
            y = y + late_outliers(rest, length, self.outlier_seasons).to(y)
        given = {}
        for name, flags in (
            ("historic_future_covariates", self.future_flags),
            ("past_covariates", self.past_flags),
        ):
            covariates = getattr(batch, name)
            if covariates is not None:
                given[name] = covariates[:, -length:]
                unknown = given[name].isnan()  # before they begin
                unknown[..., flags] = False
                y = y.masked_fill(unknown.any(-1, keepdim=True), torch.nan)
        return batch.replace(past_target=y, **given)

    def sample(
        self,
        batch: TorchInferenceBatch,
        n: int,
        n_paths: int,
        roll_size: int,
        effects: BatchEffects | None = None,
        between: Tensor | None = None,
    ) -> PathSamples:
        """Joint sample paths of windows (B * G, S, n, W), in the units of the windows, less what is added.

        Future covariates of the steps ``between`` past and targets are those of targets where a path begins
        earlier; without them, none does. Nor does any with past covariates, the latest of which are known.
        """
        shift, ahead = self.output_chunk_shift, batch.future_covariates
        if ahead is not None and shift:
            skipped = ahead.new_full((len(ahead), shift, ahead.shape[2]), torch.nan)
            ahead = torch.cat([skipped if between is None else between, ahead], 1)
        x = PLModuleInput(
            batch.past_target,
            batch.past_covariates,
            batch.historic_future_covariates,
            ahead,
            batch.static_covariates,
        )
        every = self.window(x, shift + n, batch.future_past_covariates, effects)
        gaps = missing_at_the_end(every.visible[:, : every.n_context], self.input_chunk_length)
        if self.n_past or (shift and ahead is not None and between is None):
            gaps = torch.zeros_like(gaps)  # past covariates would not be seen where there are no values
        elif shift:
            gaps = self._within_a_chunk(gaps, n)
        parts, rows = [], []
        for gap in gaps.unique().tolist():
            rows.append((gaps == gap).nonzero()[:, 0])
            window = from_the_last_value(every.rows(rows[-1]), gap, self.input_chunk_length, shift)
            samples = self._paths(window, self.least_scales(window, rows[-1]), n_paths, roll_size)
            parts.append(samples.map(lambda value: value[:, :, gap:]))  # noqa: B023
        if len(parts) == 1:
            return parts[0]
        order = torch.cat(rows).argsort()
        return join_samples(parts, 0).map(lambda value: value[order])

    def _within_a_chunk(self, gaps: Int[Tensor, " B"], n: int) -> Int[Tensor, " B"]:
        """Missing values that can be steps of paths: shifted ones have no second chunk."""
        length = self.output_chunk_length or 1
        late = int(gaps.max()) + n - length
        if late > 0:
            warnings.warn(
                f"a series ends with {int(gaps.max())} missing values. With n={n} steps they are more than "
                f"output_chunk_length={length}, and output_chunk_shift={self.output_chunk_shift} allows no "
                f"more: the forecast is as if {late} of them had not passed. Ask for fewer steps, or drop "
                "them with strip() and ask a model with a larger output_chunk_length for more",
                stacklevel=2,
            )
        return gaps.clamp_max(length - n)

    def _paths(
        self, window: Window, floor: Float[Tensor, "B 1 W"], n_paths: int, roll_size: int
    ) -> PathSamples:
        """Joint sample paths of windows (B, S, n, W), in their units."""
        if self.pred_mc_dropout:  # every path has a network of its own: nothing can be shared
            window = window.map(lambda v: v.repeat_interleave(n_paths, 0))
            floor = floor.repeat_interleave(n_paths, 0)
        samples = forecast_paths(
            self.net,
            window,
            1 if self.pred_mc_dropout else n_paths,
            self.time_unit,
            floor,
            max_targets=min(roll_size, window.n_targets),
            past_only=self.n_past_columns,
            dtype=self.dtype,
            normalise=self.normalise,
        )
        if self.pred_mc_dropout:
            samples = samples.map(lambda v: v.unflatten(0, (-1, n_paths)).flatten(1, 2))
        return samples
