"""Weights of a network, statistics and analogues in an average, from forecasts of the past."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from darts import TimeSeries

from taylorformer_forecast.core.window import evenly
from taylorformer_forecast.darts._statistical import Statistics, request_of
from taylorformer_forecast.defaults import DECILES, HOLDOUT_START, MIN_SCALE_VALUES, N_HELD_OUT_PATHS
from taylorformer_forecast.engine.contexts import robust_columns
from taylorformer_forecast.engine.lightning import quiet
from taylorformer_forecast.engine.state import private_rng
from taylorformer_forecast.engine.statistics.past_losses import (
    MOST_COMPARED_SERIES,
    PastForecast,
    origins_to_compare,
    weights_from_past,
)
from taylorformer_forecast.engine.statistics.requests import MOST_PAST

# What keeps files or reports of a fit, and what draws components together: nothing that a comparison needs.
LEFT_OUT = ("force_reset", "joint", "log_tensorboard", "model_name", "save_checkpoints", "work_dir")


def averaged_weights(model: Any, series: Sequence[TimeSeries]) -> tuple[float, float]:
    """Weights in an average that forecasts from origins in the last quarter of series show.

    The pretrained network stands in for a new one, which sees these values when it is trained.

    Parameters
    ----------
    model : PretrainedModel
        The model that is to average.
    series : sequence of TimeSeries
        The series that it is fitted to; of many some are forecast.

    Returns
    -------
    statistics, analogues : float
        Between 0 and 1; the rest is the network's.
    """
    reach = model.output_chunk_shift + model.output_chunk_length
    lengths = model._seasonal.lengths if model._seasonal else ()
    compared, early = [], []
    for own in (one.strip() for one in _compared(series, reach)):  # rows without a value say nothing
        origins = origins_to_compare(len(own), reach)
        if origins and origins[0] >= model.input_chunk_length + reach:
            # One outlier would outweigh all other values.
            values = own.values(copy=False).astype(float)
            compared.append((own, robust_columns(np.arange(len(own)), values, lengths), origins))
            early.append(own[: origins[0]])
    forecasts: list[PastForecast] = []
    if compared:
        with private_rng(0), quiet():
            network = _pretrained(model).fit(early)
            for number, one in enumerate(compared):
                forecasts += _past_forecasts(model, network, number, *one)
    return weights_from_past(forecasts, model._correction(), reach)


def _compared(series: Sequence[TimeSeries], reach: int) -> list[TimeSeries]:
    """Some of many series, with those of their components that have values before all origins and at the end.

    One that ended long ago would be forecast from its own end, through many horizons.
    """
    most = max(1, MOST_COMPARED_SERIES // series[0].n_components)
    some = [series[number] for number in evenly(len(series), most).tolist()]
    known = [~np.isnan(one.values(copy=False)) for one in some]
    whole = [
        own[-reach:].any(0) & (own[: int(HOLDOUT_START * len(own))].sum(0) >= MIN_SCALE_VALUES)
        for own in known
    ]
    places = np.flatnonzero(max(whole, key=np.sum))[:MOST_COMPARED_SERIES]
    usable = [one for one, own in zip(some, whole, strict=True) if len(places) and own[places].all()]
    return [one[one.components[places].tolist()] for one in usable]


def _pretrained(model: Any) -> Any:
    """Return a model with the same parameters and the pretrained network, which reports nothing."""
    params = {name: value for name, value in model.model_params.items() if name not in LEFT_OUT}
    found = type(model)(**params)
    found._arguments = {**found._arguments, "strategy": "pretrained", "joint": None}
    if model._arguments["strategy"] != "zero_shot":  # the file that was given is not its own
        found._arguments["pretrained"] = "default"
    quiet = dict.fromkeys(
        ("logger", "enable_progress_bar", "enable_checkpointing", "enable_model_summary"), False
    )
    found.trainer_params = {**found.trainer_params, **quiet, "callbacks": []}
    found._reports = False
    return found


def _past_forecasts(
    model: Any, network: Any, number: int, series: TimeSeries, truth: np.ndarray, origins: range
) -> Iterator[PastForecast]:
    """Forecasts of every component from all origins; the truth has shape (n, C)."""
    # Seasons of the whole series would be known too early.
    statistics = Statistics(**{**model._statistics(), "correction": None, "periods": ()})
    forecasts = network.historical_forecasts(
        series,
        start=origins[0],
        start_format="position",
        stride=origins.step,
        forecast_horizon=model.output_chunk_length,
        num_samples=N_HELD_OUT_PATHS,
        retrain=False,
        last_points_only=False,
        show_warnings=False,
        random_state=0,
    )
    values = series.values(copy=False).astype(float)
    ahead = model.output_chunk_shift + np.arange(model.output_chunk_length)
    for origin, found in zip(origins, forecasts, strict=True):
        date = statistics.date_of(series.freq, series.time_index[origin - 1])
        deciles = np.quantile(found.all_values(copy=False), DECILES, axis=2)
        for c, y in enumerate(values[max(origin - MOST_PAST, 0) : origin].T):
            if not np.isnan(y).all():  # else nothing is forecast
                request = statistics.with_seasons([request_of(y, ahead, date)], [series.freq])[0]
                yield PastForecast((number, c), deciles[..., c].T, truth[origin + ahead, c], request)
