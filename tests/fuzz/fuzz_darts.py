"""Walks through darts' models: fit, ask, copy, save, be refused, ask again."""

from __future__ import annotations

import copy
import pickle
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from darts import TimeSeries
from fuzz_data import LATER, column, make_index, make_values
from fuzz_oracle import LEVELS, check_forecast, environment, require, untouched
from quiet import QUIET

from taylorformer_forecast import darts as hosts
from taylorformer_forecast.engine.strategy import WITH_STATISTICS

PATHS = 50  # of which means are taken


def make_series(case: dict[str, Any], number: int = 0) -> TimeSeries:
    """A series of n steps."""
    n, index = case["n"], make_index(case["index"], case["n"])
    if isinstance(index, pd.PeriodIndex):  # which darts does not know
        index = index.to_timestamp()
    columns = [column(case["values"], n, 10 * number + c)[:n] for c in range(case["columns"])]
    frame = pd.DataFrame({f"y{c}": values.to_numpy() for c, values in enumerate(columns)}, index)
    with np.errstate(over="ignore"):  # 16 bits hold no 1e5
        return TimeSeries.from_dataframe(frame).astype(case.get("dtype", "float64"))


def make_covariates(case: dict[str, Any], series: list[TimeSeries]) -> dict[str, Any]:
    """Covariates of all series, as far ahead as they can be asked for."""
    found = {}
    for kind in set(case["covariates"]) & {"past", "future"}:
        found[f"{kind}_covariates"] = [
            TimeSeries.from_times_and_values(
                pd.date_range(one.start_time(), periods=len(one) + LATER, freq=one.freq)
                if one.has_datetime_index
                else pd.RangeIndex(
                    one.start_time(), one.start_time() + (len(one) + LATER) * one.freq, one.freq
                ),
                make_values({**case["values"], "shape": "noise"}, len(one) + LATER, 99),
            )
            for one in series
        ]
    return found


class DartsWalk:
    """A model of darts, its series, and what it must go on to answer."""

    def __init__(self, case: dict[str, Any]) -> None:
        self.case, options = case, dict(case["options"])
        self.series = [make_series(case, number) for number in range(case["series"])]
        if "static" in case["covariates"]:
            static = pd.DataFrame({"size": [2.0]})
            self.series = [one.with_static_covariates(static) for one in self.series]
        self.covariates = make_covariates(case, self.series)
        sizes = {"d_model": 4, "n_heads": 1, "n_epochs": 1, "random_state": 0, "batch_size": 8}
        self.model = getattr(hosts, f"{case['model']}Model")(
            *case["chunks"], pl_trainer_kwargs=QUIET, **sizes, **options
        )

    def run(self) -> None:
        """Fit, ask, and take all steps of the walk."""
        series, covariates = self.series, self.covariates
        if self.case["series"] == 1:
            series, covariates = series[0], {name: own[0] for name, own in covariates.items()}
        with environment(self.case["fit_in"]), untouched(series, covariates):
            self.model.fit(series, **covariates)
        with environment(self.case["predict_in"]), untouched(series, covariates):
            self.answer = self.ask(self.model)
        for one, found in zip(self.series, self.answer, strict=True):
            self.check(one, found)
        for step in self.case["walk"]:
            getattr(self, "step_" + step.replace(" ", "_"))()

    def ask(self, model: Any, **options: Any) -> list[TimeSeries]:
        """Sample paths of all series."""
        options = {"num_samples": PATHS, "random_state": 1, **self.covariates, **options}
        return model.predict(self.case["steps"], series=self.series, **options)

    def check(self, series: TimeSeries, found: TimeSeries) -> None:
        """Check the paths of every component."""
        steps, chunk = self.case["steps"], self.case["chunks"][0]
        require(found.all_values().shape == (steps, series.n_components, PATHS), f"shape {found.shape}")
        whole = self.model.summary().strategy in WITH_STATISTICS  # which see the whole past
        for c in range(series.n_components):
            y, paths = series.all_values()[:, c, 0], found.all_values()[:, c].astype(float)
            if np.isnan(y if whole else y[-chunk:]).all():
                require(np.isnan(paths).all(), "a level was made up")
                continue
            quantiles = np.quantile(paths, LEVELS, axis=1).T
            check_forecast(y, steps, paths.mean(1), quantiles, not self.covariates)

    def still(self, what: str, model: Any = None) -> None:
        """Require the same answer as before."""
        require(self.ask(model or self.model) == self.answer or self.has_nan, what)

    @property
    def has_nan(self) -> bool:
        """Whether answers are missing, which are not equal to themselves."""
        return any(np.isnan(one.all_values()).any() for one in self.answer)

    # ---- steps --------------------------------------------------------------------------------------

    def step_copy(self) -> None:
        self.still("a copy predicts otherwise", copy.deepcopy(self.model))

    def step_pickle(self) -> None:
        self.still("a pickled model predicts otherwise", pickle.loads(pickle.dumps(self.model)))

    def step_save(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = str(Path(folder) / "model.pt")
            self.model.save(path)
            self.still("a saved model predicts otherwise", type(self.model).load(path))

    def step_refused_fit(self) -> None:
        try:
            self.model.fit(
                [one.map(lambda v: np.full_like(v, np.inf)) for one in self.series], **self.covariates
            )
        except ValueError:
            self.still("a fit that was refused changed the forecast")
        else:
            require(False, "infinite values were fitted")

    def step_fit_again(self) -> None:
        self.model.fit(self.series, **self.covariates)
        for one, found in zip(self.series, self.ask(self.model), strict=True):
            self.check(one, found)
        self.answer = self.ask(self.model)

    def step_other_series(self) -> None:
        if not self.covariates:
            other = self.series[0][-max(3, len(self.series[0]) // 2) :]
            found = self.model.predict(self.case["steps"], series=other, num_samples=PATHS, random_state=1)
            self.check(other, found)
            self.still("forecasts of another series changed those of the first")

    def step_parameters(self) -> None:
        found = self.ask(self.model, num_samples=1, predict_likelihood_parameters=True)
        for one in found:
            require(np.isfinite(one.all_values()).all() or self.has_nan, "a parameter is not finite")

    def step_history(self) -> None:
        if not self.covariates:
            self.model.historical_forecasts(self.series[0], retrain=False, num_samples=3, stride=5)
            self.still("historical forecasts changed those of the future")
