"""Statistical forecasts of darts models, of every series from its own past; corrected or not."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import torch
from darts.models.forecasting.pl_forecasting_module import PLForecastingModule
from darts.utils.data.torch_datasets.utils import PLModuleInput, PLModuleOutput, TorchInferenceBatch
from einops import rearrange
from torch import Tensor, nn

from taylorformer_forecast.calendar.steps import StepDate
from taylorformer_forecast.core.families.base import CERTAIN
from taylorformer_forecast.darts._batch_effects import BatchEffects
from taylorformer_forecast.darts._covariates import check_gaps
from taylorformer_forecast.darts._effects import Additions
from taylorformer_forecast.darts._frequencies import axis_of, seasonal_features
from taylorformer_forecast.darts._joint import joint_components
from taylorformer_forecast.defaults import NEARLY_NORMAL_DF
from taylorformer_forecast.engine.explanation import with_part
from taylorformer_forecast.engine.mixtures import Mixture
from taylorformer_forecast.engine.predictive import Predictive
from taylorformer_forecast.engine.statistics.average import with_analogues
from taylorformer_forecast.engine.statistics.copula import standardised_errors
from taylorformer_forecast.engine.statistics.forecast import forecast_series
from taylorformer_forecast.engine.statistics.requests import SeriesForecast, SeriesRequest
from taylorformer_forecast.models.correction import CorrectionNet


class Statistics(nn.Module):
    """Statistical forecasts of every component by itself, from all of its past that a batch has.

    They are computed on the CPU, wherever the module is.

    Parameters
    ----------
    time_features, seasonal_periods : object, default="auto"
        Calendar cycles and seasons; "auto" leaves the choice to each component. Effects of the calendar on
        daily and monthly series are sought where cycles are left open.
    correction : mapping, optional
        ``sizes`` and ``weight`` of the network that corrects the forecasts.
    periods : sequence of float
        Seasons of the training series, those of which are taken that a batch is too short to show.
    analogues : float
        Weight of analogues in the average of the forecasts and these.
    least : int
        Observed values of a series that has an average with others, if it counts.
    """

    def __init__(
        self,
        time_features: object = "auto",
        seasonal_periods: object = "auto",
        correction: Mapping[str, Any] | None = None,
        periods: Sequence[float] = (),
        analogues: float = 0.0,
        least: int = 0,
    ) -> None:
        super().__init__()
        self.asked, self.periods = (time_features, seasonal_periods), tuple(periods)
        self.analogues, self.least = analogues, least
        self.corrects = None
        if correction is not None:
            self.corrects = CorrectionNet(**correction["sizes"], weight=float(correction["weight"]))

    def _on_cpu(self) -> CorrectionNet | None:
        """What corrects the forecasts, if anything, on the CPU."""
        if self.corrects is None or all(value.device.type == "cpu" for value in self.corrects.parameters()):
            return self.corrects
        return copy.deepcopy(self.corrects).cpu()

    def uncorrected(self) -> Statistics:
        """Return a copy that corrects nothing."""
        return with_part(self, "corrects", None)

    def forecasts(
        self,
        batch: TorchInferenceBatch,
        n: int,
        n_paths: int,
        horizon: int,
        shift: int,
        effects: BatchEffects | None = None,
    ) -> tuple[list[SeriesRequest], list[SeriesForecast]]:
        """Forecast ``n`` steps of every component of every series, those of one series after another.

        They are of the values less what covariates add to them. Values that are missing at the end are steps
        of the forecast. Where nothing was observed, forecasts are without meaning.
        """
        past = batch.past_target if effects is None else effects.rest(batch.past_target)
        n_components = past.shape[2]
        series = rearrange(past, "b l c -> (b c) l").cpu().double().numpy()
        before = [date for date in self._dates_before(batch, shift) for _ in range(n_components)]
        values = np.where(np.isnan(series).all(1)[:, None], 0.0, series)
        alone = (batch.past_target.isfinite().sum(1) < self.least).flatten().tolist()
        each = zip(values, before, alone, strict=True)
        requests = [request_of(y, shift + np.arange(n), *about) for y, *about in each]
        requests = requests if effects is None else effects.marked(requests)
        seed = int(torch.randint(2**31 - 1, ()))  # from the generator that darts seeds
        schemas = batch.series_schema or [{"time_freq": 1}] * len(batch.past_target)
        frequencies = [schema["time_freq"] for schema in schemas for _ in range(n_components)]
        requests = self.with_seasons(requests, frequencies)
        found = forecast_series(requests, n_paths, seed, self._on_cpu(), shift + horizon)
        if self.analogues:
            both = zip(found, requests, strict=True)
            found = [with_analogues(*one, shift + horizon, self.analogues) for one in both]
        return requests, found if effects is None else effects.multiplied(found, requests)

    def with_seasons(
        self, requests: Sequence[SeriesRequest], frequencies: Sequence[Any]
    ) -> list[SeriesRequest]:
        """Requests with the seasons of every component, given the frequency of its series."""
        alone = [one.alone for one in requests]
        seasons = self.seasons([one.y for one in requests], frequencies, alone)
        return [replace(one, seasons=own) for one, own in zip(requests, seasons, strict=True)]

    def seasons(
        self, values: Sequence[np.ndarray], frequencies: Sequence[Any], alone: Sequence[bool] = ()
    ) -> list[list[float]]:
        """Lengths of the seasons of every component, in steps of the frequency of its series.

        Those that are ``alone`` have no seasons of the training series.
        """
        features = {freq: seasonal_features(freq, *self.asked) for freq in set(frequencies)}
        return [
            features[freq].own_lengths(y, *self.asked, () if own else self.periods)
            for y, freq, own in zip(values, frequencies, alone or [False] * len(values), strict=True)
        ]

    def date_of(self, freq: Any, time: Any) -> StepDate | None:
        """Day or month of a time stamp, where effects of the calendar are sought; else None."""
        dates, weekdays = axis_of(freq)[0].dates(pd.Index([time]))
        return None if dates is None or self.asked[0] != "auto" else StepDate(dates[0], weekdays)

    def _dates_before(self, batch: TorchInferenceBatch, shift: int) -> list[StepDate | None]:
        """Day or month of the end of every series, or None."""
        if batch.series_schema is None or batch.pred_time is None:
            return [None] * len(batch.past_target)
        of_series = zip(batch.series_schema, batch.pred_time, strict=True)
        dates = [self.date_of(schema["time_freq"], time) for schema, time in of_series]
        return [None if date is None else date - shift - 1 for date in dates]


def as_predicted(
    forecasts: Sequence[SeriesForecast],
    batch: TorchInferenceBatch,
    parameters: bool,
    effects: BatchEffects | None = None,
) -> Tensor:
    """Forecasts of all components as darts wants them, NaN where nothing was observed.

    Parameters
    ----------
    forecasts : sequence of SeriesForecast
        Those of one series after another.
    batch : TorchInferenceBatch
        The series.
    parameters : bool
        Whether parameters of distributions are wanted instead of sample paths.
    effects : BatchEffects, optional
        What covariates add to forecasts, and where these are zero.

    Returns
    -------
    Tensor
        Paths (S, B, n, C), or parameters (1, B, n, C * 3), in double precision, where the series are.
    """
    found = Predictive.of_columns(forecasts, len(forecasts))
    if effects is not None:
        found = effects.added_to(found, batch.past_target)
    values = torch.as_tensor(_student_t(found.mixture)[None] if parameters else found.paths[..., None])
    unseen = rearrange(batch.past_target.isnan().all(1), "b c -> (b c) 1").cpu()
    values = values.masked_fill(unseen, torch.nan)
    values = rearrange(values, "s n (b c) p -> s b n (c p)", b=len(batch.past_target))
    return values.to(batch.past_target.device)


class StatisticalModule(PLForecastingModule):
    """Statistical forecasts without a network, but for the one that may correct them.

    Parameters
    ----------
    statistics : mapping
        Arguments of the :class:`Statistics`.
    n_joint : int
        Components whose samples are drawn together; 0 for none.
    effects : mapping, optional
        Arguments of the :class:`~taylorformer_forecast.darts._effects.Additions` of future covariates.
    future_flags : sequence of int
        Covariates with missing values.
    **kwargs
        See darts' ``PLForecastingModule``.
    """

    def __init__(
        self,
        statistics: Mapping[str, Any],
        n_joint: int = 0,
        effects: Mapping[str, Any] | None = None,
        future_flags: Sequence[int] = (),
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.additions = Additions(**effects) if effects else None
        self.future_flags = list(future_flags)
        self.joint = joint_components(True, n_joint)
        self.statistics = Statistics(**statistics)
        self.fitted: Tensor  # so that there is something to save: Lightning warns of files without
        self.register_buffer("fitted", torch.tensor(True))

    @property
    def net(self) -> CorrectionNet | None:
        """What corrects the forecasts, if anything."""
        return self.statistics.corrects

    def without_network(self) -> StatisticalModule:
        """Return a copy that corrects nothing."""
        return with_part(self, "statistics", self.statistics.uncorrected())

    def fit_joint(self, dataset: Any, collate: Callable[..., Any]) -> None:
        """Estimate how components go together from errors of forecasts of the past, if that is asked for."""
        if self.joint is None:
            return
        scores, series = [], dataset.series
        if self.additions is not None:
            series = map(self.additions.rest_of, series, dataset.future_covariates)
        for one in series:
            values = one.values(copy=False).astype(float).T
            seasons = self.statistics.seasons(values, [one.freq] * len(values))
            last = [self.statistics.date_of(one.freq, one.end_time())] * len(values)
            errors = standardised_errors(list(values), last, seasons, self.output_chunk_length or 1)
            scores.append(np.stack(errors, -1))
        rows = np.concatenate(scores)
        n_times = int((~np.isnan(rows)).any((1, 2)).sum())
        self.joint.fit(rows.reshape(-1, rows.shape[-1]), n_times)

    def forward(self, x_in: PLModuleInput) -> PLModuleOutput:
        """Refuse: there is no network."""
        raise NotImplementedError("statistical forecasts have no network: they are those of predict")

    def predict_step(
        self, batch: TorchInferenceBatch, batch_idx: int, dataloader_idx: int | None = None
    ) -> tuple[Tensor, Any, Any]:
        """Predict ``pred_n`` steps of every series: (S, B, n, C), or (1, B, n, C * 3) for parameters."""
        sizes = self.pred_n, self.pred_num_samples, self.output_chunk_length or 1, self.output_chunk_shift
        effects = None
        if self.additions is not None:
            known = batch.historic_future_covariates[:, -self.input_chunk_length :], batch.future_covariates
            check_gaps(known, self.future_flags, "future_covariates")
            batch = self.additions.open_past(batch, lambda one: one.past_target.isnan().all(1))
            effects = self.additions.of_batch(batch, self.pred_n, self.output_chunk_shift, own=True)
        _, forecasts = self.statistics.forecasts(batch, *sizes, effects)
        out = as_predicted(forecasts, batch, self.predict_likelihood_parameters, effects)
        if self.joint is not None and not self.predict_likelihood_parameters:
            out = self.joint.reorder(out)
        # As of darts' models of 16-bit series.
        dtype = torch.promote_types(batch.past_target.dtype, torch.float32)
        return out.to(dtype), batch.series_schema, batch.pred_time


def request_of(
    y: np.ndarray, ahead: np.ndarray, end: StepDate | None = None, alone: bool = False
) -> SeriesRequest:
    """Values from the first to the last that were observed, and steps after the end of ``y``."""
    seen = np.flatnonzero(~np.isnan(y))
    last = None if end is None else end - (len(y) - 1 - int(seen[-1]))
    return SeriesRequest(y[seen[0] : seen[-1] + 1], len(y) - seen[0] + ahead, last, alone=alone)


def _student_t(mixture: Mixture) -> np.ndarray:
    """Location, scale and degrees of freedom of Student-t distributions, (n, C, 3).

    They have the mean, variance and kurtosis of mixtures of uniform distributions, (n, C, K); with tails no
    heavier than a normal distribution's, they are almost normal.
    """
    loc, w = mixture.mean(), mixture.weights
    d, half = mixture.loc - loc[..., None], mixture.scale
    unit = np.maximum(np.abs(d), half).max(-1, keepdims=True)  # powers of tiny numbers would vanish
    d, half = d / unit, half / unit
    variance = (w * (d**2 + half**2 / 3)).sum(-1)
    fourth = (w * (d**4 + 2 * d**2 * half**2 + half**4 / 5)).sum(-1)
    excess = fourth / variance**2 - 3
    df = 4 + 6 / np.maximum(excess, 6 / (NEARLY_NORMAL_DF - 4))
    unit = np.where(unit == CERTAIN, 2 * np.finfo(np.float32).tiny, unit)[..., 0]  # in single precision, too
    return np.stack([loc, unit * np.sqrt(variance * (df - 2) / df), df], -1)
