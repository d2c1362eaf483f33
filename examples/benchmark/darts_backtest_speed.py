"""Speed of darts' historical forecasts: our sampler, darts' own tiling of samples, and darts' LSTM.

All three predict the same 105 windows, 24 steps ahead, with 100 samples:

ours
    ``TaylorformerModel``: the context of a window is encoded once for all samples.
tiled
    The same trained module through darts' default ``predict_step``, which repeats whole passes for every
    sample.
LSTM
    darts' ``RNNModel`` of about the same number of parameters, with a Gaussian likelihood.

One thread; times are processor times, the smallest of several, so that other work on the machine disturbs
them little. Ratios mean more than seconds. Run from a checkout::

    python examples/benchmark/darts_backtest_speed.py --out darts_backtest_speed.json
"""

from __future__ import annotations

import argparse
import json
import logging
import platform
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

import darts
import torch
from darts import TimeSeries
from darts.models import RNNModel
from darts.models.forecasting.pl_forecasting_module import PLForecastingModule
from darts.utils.data.torch_datasets.utils import PLModuleInput, PLModuleOutput
from darts.utils.likelihood_models.torch import GaussianLikelihood
from darts.utils.timeseries_generation import gaussian_timeseries, sine_timeseries

from taylorformer_forecast.core.families import point_forecast
from taylorformer_forecast.core.sampling import sample_paths
from taylorformer_forecast.darts import TaylorformerModel

N_WINDOWS, HORIZON, N_SAMPLES, CONTEXT, SEED = 105, 24, 100, 48, 0


def seconds(call: Callable[[], object], repeats: int) -> float:
    """Smallest processor time of several calls."""
    times = []
    for _ in range(repeats):
        start = time.process_time()
        call()
        times.append(time.process_time() - start)
    return min(times)


def n_parameters(model: TaylorformerModel | RNNModel) -> int:
    """Size of a fitted model's network."""
    return sum(p.numel() for p in model.model.parameters())


def lstm_like(model: TaylorformerModel, settings: dict) -> RNNModel:
    """Return the LSTM whose size is next to the model's."""
    width = round((n_parameters(model) / 4) ** 0.5) - 2  # one layer: 4 width^2 + 14 width + 2 parameters
    return RNNModel(
        input_chunk_length=CONTEXT,
        training_length=CONTEXT + HORIZON,
        model="LSTM",
        hidden_dim=width,
        likelihood=GaussianLikelihood(),
        **settings,
    )


def centres(module: Any, x: PLModuleInput) -> PLModuleOutput:
    """Likelihood parameters of a chunk along the path of their centres: what darts' own loop asks for."""
    window, scale = module.scaled(module.window(x, module.output_chunk_length))
    path = sample_paths(module.net, window, 1, pick=lambda conditional, _: point_forecast(conditional))
    parts = path.conditionals.map(lambda value: value[:, 0])
    parts = parts.affine(scale.loc[..., None], scale.scale[..., None])
    return PLModuleOutput(prediction=module.by_series(module.head.to_raw(parts)))


def main() -> None:
    """Time the three, print the ratios, write the numbers."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="fewer windows and samples, as a check")
    parser.add_argument("--out", type=Path, metavar="FILE.json", help="where to write the numbers")
    args = parser.parse_args()
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore", module="pytorch_lightning|torch")
    logging.getLogger("pytorch_lightning").setLevel(logging.ERROR)

    n_windows, n_samples, repeats = (11, 10, 1) if args.quick else (N_WINDOWS, N_SAMPLES, 3)
    length = 200 + n_windows
    wave = sine_timeseries(length=length, value_frequency=1 / 24)
    series: TimeSeries = (wave + gaussian_timeseries(length=length, std=0.1)).astype("float32")
    settings = {
        "n_epochs": 1,
        "random_state": SEED,
        "pl_trainer_kwargs": {"accelerator": "cpu", "enable_progress_bar": False, "logger": False},
    }
    ours = TaylorformerModel(CONTEXT, HORIZON, strategy="train", **settings).fit(series)
    lstm = lstm_like(ours, settings)
    lstm.fit(series)

    def backtest(model: TaylorformerModel | RNNModel) -> list[TimeSeries]:
        return model.historical_forecasts(
            series,
            start=length - n_windows - HORIZON + 1,
            forecast_horizon=HORIZON,
            num_samples=n_samples,
            retrain=False,
            last_points_only=False,
            verbose=False,
        )

    assert len(backtest(ours)) == n_windows
    row = {
        "ours_s": seconds(lambda: backtest(ours), repeats),
        "lstm_s": seconds(lambda: backtest(lstm), repeats),
    }
    with patch.multiple(type(ours.model), predict_step=PLForecastingModule.predict_step, forward=centres):
        row["tiled_s"] = seconds(lambda: backtest(ours), 1)
    row["tiled_by_ours"] = row["tiled_s"] / row["ours_s"]
    row["ours_by_lstm"] = row["ours_s"] / row["lstm_s"]

    print(f"{n_windows} windows, {HORIZON} steps, {n_samples} samples, one thread")
    print(f"{n_parameters(ours)} parameters (LSTM: {n_parameters(lstm)})")
    print(f"ours  {row['ours_s']:8.2f} s")
    print(f"tiled {row['tiled_s']:8.2f} s, {row['tiled_by_ours']:.1f} times ours")
    print(f"LSTM  {row['lstm_s']:8.2f} s, ours {row['ours_by_lstm']:.2f} times that")
    if args.out is not None:
        setting = {
            "torch": torch.__version__,
            "darts": darts.__version__,
            "processor": platform.processor() or platform.machine(),
            "threads": torch.get_num_threads(),
            "seed": SEED,
            "parameters": n_parameters(ours),
            "lstm_parameters": n_parameters(lstm),
            "windows": n_windows,
            "steps": HORIZON,
            "samples": n_samples,
        }
        args.out.write_text(json.dumps({**setting, **row}, indent=2) + "\n")


if __name__ == "__main__":
    main()
