"""Times of encoders' covariates where steps are business hours."""

from __future__ import annotations

from typing import Any

import pandas as pd
from darts import TimeSeries
from darts.dataprocessing.encoders import SequentialEncoder
from darts.dataprocessing.encoders.encoder_base import (
    CovariatesIndexGenerator,
    FutureCovariatesIndexGenerator,
    PastCovariatesIndexGenerator,
)

KINDS = (pd.offsets.BusinessHour, pd.offsets.CustomBusinessHour)


class ForwardTimes(CovariatesIndexGenerator):
    """Times of covariates, counted on from a time of the target.

    darts counts back from its end. From an opening hour pandas' business hours lead back to the closing hour
    of the day before, which is no time of the target.
    """

    def generate_inference_idx(
        self, n: int, target: TimeSeries, covariates: TimeSeries | None = None
    ) -> tuple[Any, Any]:
        """Times of the input chunk, and after it as far as covariates are needed; see darts."""
        index, end = super().generate_inference_idx(n, target, covariates)
        if covariates is not None or not isinstance(target.freq, KINDS):
            return index, end
        start = target.time_index[-self.input_chunk_length :][0]
        return pd.date_range(start, periods=len(index), freq=target.freq), end

    def generate_train_inference_idx(
        self, n: int, target: TimeSeries, covariates: TimeSeries | None = None
    ) -> tuple[Any, Any]:
        """Times of the target, and after it as far as covariates are needed; see darts."""
        if covariates is not None or not isinstance(target.freq, KINDS):
            return super().generate_train_inference_idx(n, target, covariates)
        index, end = self.generate_inference_idx(n, target)
        return pd.date_range(target.start_time(), index[-1], freq=target.freq), end


class ForwardPast(ForwardTimes, PastCovariatesIndexGenerator):
    """Times of past covariates."""


class ForwardFuture(ForwardTimes, FutureCovariatesIndexGenerator):
    """Times of future covariates."""


def counted_forward(encoders: SequentialEncoder) -> SequentialEncoder:
    """Encoders whose covariates have times that are counted forward."""
    for kind, of_kind in ((ForwardPast, encoders.past_encoders), (ForwardFuture, encoders.future_encoders)):
        for encoder in of_kind:
            usual = encoder.index_generator
            encoder.index_generator = kind(usual.input_chunk_length, usual.output_chunk_length)
    return encoders
