"""What of the values of series datasets show: all of the past, and outliers moved in training."""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import ContextVar
from functools import wraps
from inspect import signature
from typing import Any

import numpy as np
from darts import TimeSeries
from darts.models.forecasting.torch_forecasting_model import MixedCovariatesTorchModel
from darts.utils.data.torch_datasets.inference_dataset import TorchInferenceDataset
from darts.utils.ts_utils import series2seq

from taylorformer_forecast.calendar.cycles import SeasonalFeatures
from taylorformer_forecast.darts._covariates import columns_with_gaps, scales_of, units_of, units_of_static
from taylorformer_forecast.darts._dataset import WholePast, longest_gap
from taylorformer_forecast.darts._effects import Additions
from taylorformer_forecast.darts._outliers import series_without_outliers
from taylorformer_forecast.engine.parameters import is_whole
from taylorformer_forecast.engine.statistics.requests import MOST_PAST
from taylorformer_forecast.engine.strategy import Strategy

# Values that each fit of a running backtest sees, where that is limited, and how many it holds out.
_SEEN_BY_FITS: ContextVar[tuple[int, int] | None] = ContextVar("seen_by_fits", default=None)


class KnownPast(MixedCovariatesTorchModel):
    """Datasets of a :class:`BaseForecastModel`, whose networks see no outliers.

    A network that sees covariates sees outliers too, as covariates may be what explains them. Statistical
    forecasts have guards of their own.
    """

    model: Any
    _strategy: Strategy | None
    _seasonal: SeasonalFeatures | None
    _floor: tuple[float, ...] | None
    _effects: dict[str, Any] | None
    _flags: dict[str, tuple[int, ...]]
    _units: dict[str, list[tuple[float, float]]]
    _level: float
    _outlier_seasons: Sequence[float] | None = None  # by which outliers are told; None if they stay

    @property
    def _needs_past(self) -> bool:
        """Whether forecasts rest on more of the past than an input chunk."""
        return self._outlier_seasons is not None

    def _setup_for_fit_from_dataset(self, series: Any, *args: Any, **kwargs: Any) -> Any:
        known = [_begun(one, self.min_train_series_length) for one in series2seq(series) or ()]
        series = known[0] if isinstance(series, TimeSeries) else known or series
        return super()._setup_for_fit_from_dataset(series, *args, **kwargs)

    def _build_train_dataset(
        self, series: Any, past_covariates: Any, future_covariates: Any, *args: Any, **kwargs: Any
    ) -> Any:
        first = self.model is None and self._floor is None  # a dataset for validation comes second
        if first:
            self._describe_covariates(series, past_covariates, future_covariates)
        if self._outlier_seasons is not None:
            additions = None if self._effects is None else Additions(**self._effects)
            series = [
                series_without_outliers(one, self._outlier_seasons, covariates, additions)
                for one, covariates in zip(series, future_covariates or [None] * len(series), strict=True)
            ]
        if first:
            values = [np.asarray(one.values(copy=False), dtype=float) for one in series]
            self._floor, self._level = scales_of(values)
        return super()._build_train_dataset(series, past_covariates, future_covariates, *args, **kwargs)

    @property
    def _n_phases(self) -> int:
        """Number of future covariates that are phases of the calendar and of seasons."""
        return self._seasonal.width if self._seasonal else 0

    def _describe_covariates(self, series: Any, past_covariates: Any, future_covariates: Any) -> None:
        """Units and gaps of the covariates of a fit, and whether they may be what explains outliers."""
        self._flags = {
            "past_flags": columns_with_gaps(past_covariates),
            "future_flags": columns_with_gaps(future_covariates),
        }
        self._units = {
            "past": units_of(past_covariates, series),
            "future": units_of(future_covariates, series, self._n_phases),
            "static": units_of_static(series) if self.uses_static_covariates else [],
        }
        given = bool(past_covariates) or len(self._units["future"]) > self._n_phases
        shown = given and not (self._strategy is not None and self._strategy.kind.pretrained)
        lengths = tuple(self._seasonal.lengths) if self._seasonal else ()
        self._outlier_seasons = lengths if self._requires_training and not shown else None

    def _build_inference_dataset(
        self,
        n: int,
        series: Sequence[TimeSeries],
        past_covariates: Any,
        future_covariates: Any,
        stride: int = 0,
        bounds: np.ndarray | None = None,
    ) -> TorchInferenceDataset:
        seen = _SEEN_BY_FITS.get()
        if bounds is None and seen and self._needs_past:
            series = [one[-sum(seen) :] for one in series]
        dataset = super()._build_inference_dataset(
            n, series, past_covariates, future_covariates, stride, bounds
        )
        longest, needed = max(map(len, series)), MOST_PAST if self._needs_past else 0
        gap = longest_gap(series, bounds is None) if self._requires_training else 0
        if gap:
            needed = max(needed, self.input_chunk_length + min(gap, self.input_chunk_length))
        return WholePast(dataset, min(longest, needed), bool(gap)) if needed else dataset

    def generate_predict_encodings(
        self, n: int, series: Any, past_covariates: Any = None, future_covariates: Any = None
    ) -> Any:
        """Covariates of the future with what encoders add, or of all times where a series ends early."""
        ends_early = self._requires_training and longest_gap(series2seq(series), True)
        encode = super().generate_fit_predict_encodings if ends_early else super().generate_predict_encodings
        return encode(n, series, past_covariates, future_covariates)

    @wraps(MixedCovariatesTorchModel.historical_forecasts)
    def historical_forecasts(self, *args: Any, **kwargs: Any) -> Any:
        # Those that fit at each origin hand over what comes before train_length, too.
        given = signature(super().historical_forecasts).bind(*args, **kwargs).arguments
        length, held_out = given.get("train_length"), given.get("val_length", 0)
        limited = given.get("retrain", True) and is_whole(length, 1) and is_whole(held_out, 0)
        before = _SEEN_BY_FITS.set((length or 0, held_out) if limited else None)
        try:
            return super().historical_forecasts(*args, **kwargs)
        finally:
            _SEEN_BY_FITS.reset(before)

    @wraps(MixedCovariatesTorchModel.fit)
    def fit(self, series: Any, *args: Any, **kwargs: Any) -> Any:
        # darts ignores train_length where the fit before trained nothing: the next one chooses anew.
        if seen := _SEEN_BY_FITS.get():
            length, held_out = seen
            known = [
                one if len(one) <= length else one[-length - held_out : -held_out or None]
                for one in series2seq(series)
            ]
            series = known[0] if isinstance(series, TimeSeries) else known
        return super().fit(series, *args, **kwargs)


def _begun(series: TimeSeries, least: int) -> TimeSeries:
    """A series from its first value on: steps before it say nothing. So many steps stay at least."""
    known = ~np.isnan(series.all_values(copy=False)).all((1, 2))
    first = min(int(known.argmax()), max(len(series) - least, 0))
    return series[first:] if first and known.any() else series
