"""The weight of statistical forecasts in an average with a network, from forecasts of the past."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from darts import TimeSeries

from taylorformer_forecast.core.window import evenly
from taylorformer_forecast.defaults import DECILES, MOST_SHARE_SERIES, N_HELD_OUT_PATHS
from taylorformer_forecast.engine.average import decile_loss, origins_to_compare, share_of_statistics
from taylorformer_forecast.engine.contexts import robust_columns
from taylorformer_forecast.engine.correction import holds_correction
from taylorformer_forecast.engine.state import private_rng

# What keeps files or reports of a fit, and what draws components together: nothing that a comparison needs.
LEFT_OUT = ("force_reset", "joint", "log_tensorboard", "model_name", "save_checkpoints", "work_dir")


def share_from_past(model: Any, series: Sequence[TimeSeries]) -> float:
    """Weight of statistics in an average that forecasts from origins in the last quarter of series show.

    The pretrained network stands in for a new one, which sees these values when it is trained.

    Parameters
    ----------
    model : PretrainedModel
        The model that is to average.
    series : sequence of TimeSeries
        The series that it is fitted to; of many some are forecast.

    Returns
    -------
    float
        Between 0 and 1.
    """
    reach = model.output_chunk_shift + model.output_chunk_length
    lengths = model._seasonal.lengths if model._seasonal else ()
    compared, early = [], []
    for own in _not_ended(series, reach):
        origins = origins_to_compare(len(own), reach)
        if origins and origins[0] >= model.input_chunk_length + reach:
            # One outlier would outweigh all other values.
            values = own.all_values(copy=False)[:, :, 0].astype(float)
            compared.append((own, robust_columns(np.arange(len(own)), values, lengths), origins))
            early.append(own[: origins[0]])
    if not compared:
        return share_of_statistics([], [])
    with private_rng(0):
        models = [_stand_in(model, name).fit(early) for name in ("pretrained", "corrected")]
        network, statistics = (
            np.concatenate([_past_losses(one, *given) for given in compared]) for one in models
        )
    return share_of_statistics(network, statistics)


def _not_ended(series: Sequence[TimeSeries], reach: int) -> list[TimeSeries]:
    """Some of many series, with those of their components that have values within the latest steps.

    One that ended long ago would be forecast from its own end, through many horizons.
    """
    most = max(1, MOST_SHARE_SERIES // series[0].n_components)
    some = [series[number] for number in evenly(len(series), most).tolist()]
    goes_on = [~np.isnan(one[-reach:].all_values(copy=False)[:, :, 0]).all(0) for one in some]
    places = np.flatnonzero(max(goes_on, key=np.sum))[:MOST_SHARE_SERIES]
    usable = [one for one, own in zip(some, goes_on, strict=True) if len(places) and own[places].all()]
    return [one[one.components[places].tolist()] for one in usable]


def _stand_in(model: Any, strategy: str) -> Any:
    """Return a model with the same parameters and another strategy, which reports nothing."""
    params = {name: value for name, value in model.model_params.items() if name not in LEFT_OUT}
    found = type(model)(**params)
    found._arguments = {**found._arguments, "strategy": strategy, "joint": None}
    # Each takes the file that was given only if that is its own.
    if strategy == "pretrained":
        takes_file = model._arguments["strategy"] == "zero_shot"
    else:
        takes_file = holds_correction(model._arguments["pretrained"])
    if not takes_file:
        found._arguments["pretrained"] = "default"
    quiet = dict.fromkeys(
        ("logger", "enable_progress_bar", "enable_checkpointing", "enable_model_summary"), False
    )
    found.trainer_params = {**found.trainer_params, **quiet, "callbacks": []}
    found._reports = False
    return found


def _past_losses(model: Any, series: TimeSeries, truth: np.ndarray, origins: range) -> np.ndarray:
    """Sums of the losses of every component from some origins, compared with the truth (n, C)."""
    forecasts = model.historical_forecasts(
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
    losses = []
    for one in forecasts:
        start = series.get_index_at_point(one.start_time())
        deciles = np.moveaxis(np.quantile(one.all_values(copy=False), DECILES, axis=2), 0, -1)
        losses.append(decile_loss(deciles, truth[start : start + len(one)]))
    return np.concatenate(losses).sum(0)
