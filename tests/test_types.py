"""The project of a user passes ``mypy --strict``, which sees the types of this package."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import taylorformer_forecast

# Of other libraries nothing is followed: they are not what is tested, and take long.
SETTINGS = """
[mypy]
strict = True
ignore_missing_imports = True
[mypy-taylorformer_forecast.*]
follow_imports = silent
[mypy-torch.*,pytorch_lightning.*,darts.*,sktime.*,numpy.*,pandas.*,matplotlib.*,scipy.*,jaxtyping.*]
follow_imports = skip
"""
# Strict mode refuses an ignored error that is none: the two that are ignored show that types are seen.
PROJECT = """
import pandas as pd
from darts import TimeSeries

from taylorformer_forecast.darts import LAMModel, TaylorformerModel
from taylorformer_forecast.plot import plot_explanation, plot_forecast
from taylorformer_forecast.sktime import LAMForecaster, TaylorformerForecaster, TaylorformerImputer


def with_sktime(y: pd.Series, panel: pd.DataFrame) -> pd.DataFrame:
    forecaster = TaylorformerForecaster(past_only=("footfall",), random_state=0).fit(y, fh=range(1, 13))
    plot_forecast(y, forecaster, paths=2).savefig("forecast.png")
    plot_explanation(forecaster.explain(lags=12))
    print(forecaster.summary().strategy, forecaster.strategy_)
    pretrained = LAMForecaster(horizon=12, trainer_kwargs={"precision": 32}).pretrain(panel)
    pretrained.fit(y).update(y, update_params=False).predict_proba(fh=[1, 2], marginal=False)
    TaylorformerImputer(max_steps=5).fit(y).sample(y, n_samples=2)
    TaylorformerForecaster(contextlength=12)  # type: ignore[call-arg]
    return forecaster.predict_interval(coverage=0.9)


def with_darts(series: TimeSeries) -> None:
    model = TaylorformerModel(input_chunk_length=36, output_chunk_length=12, random_state=0)
    model.fit(series, verbose=False).predict(12, num_samples=5)
    LAMModel(36, 12).fit(series)
    print(model.summary().seasons)
    plot_explanation(model.explain(12, lags=12))
    LAMModel("36", 12)  # type: ignore[arg-type]
"""


def test_the_project_of_a_user_passes_mypy_in_strict_mode(tmp_path):
    (tmp_path / "mypy.ini").write_text(SETTINGS)
    (tmp_path / "project.py").write_text(PROJECT)
    run = subprocess.run(
        [sys.executable, "-m", "mypy", "--cache-dir", os.devnull, "project.py"],
        cwd=tmp_path,
        env={"MYPYPATH": str(Path(taylorformer_forecast.__file__).parents[1])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
