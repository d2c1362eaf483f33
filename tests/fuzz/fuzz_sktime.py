"""Walks through sktime's estimators: fit, ask, copy, save, update, be refused, ask again."""

from __future__ import annotations

import copy
import math
import pickle
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from fuzz_data import LATER, as_user, frames, make_index
from fuzz_oracle import LEVELS, check_forecast, environment, require, require_equal, untouched
from sktime.base import load
from sktime.forecasting.base import ForecastingHorizon

from taylorformer_forecast import sktime as hosts

TINY = {"d_model": 4, "n_heads": 1, "max_steps": 1, "random_state": 0, "verbose": False}
FINITE = (None, "gaps", "block", "start", "end", "last outlier", "one left")  # what is spoiled in y or X


def make_fh(spec: dict[str, Any], index: pd.Index, n: int) -> Any:
    """What is asked for after the n-th stamp."""
    kind, steps = spec["kind"], spec.get("steps")
    return {
        "next": lambda: list(range(1, steps + 1)),
        "list": lambda: steps,
        "far": lambda: [1, steps],
        "absolute": lambda: ForecastingHorizon(index[n : n + steps], is_relative=False),
        "fractions": lambda: [0.5, 1.5],
        "nothing": lambda: [],
        "double": lambda: [1, 1],
        "strings": lambda: ["tomorrow"],
        "other index": lambda: ForecastingHorizon(
            pd.period_range("2300", periods=2, freq="Y"), is_relative=False
        ),
        "time span": lambda: ForecastingHorizon(pd.to_timedelta([1, 2], unit="D"), is_relative=True),
    }[kind]()


def saved(estimator: Any) -> Any:
    """The estimator, written to a file and read again."""
    with tempfile.TemporaryDirectory() as folder:
        estimator.save(Path(folder) / "estimator")
        return load(Path(folder) / "estimator.zip")


COPIES = {"copy": copy.deepcopy, "pickle": lambda e: pickle.loads(pickle.dumps(e)), "save": saved}


class ForecasterWalk:
    """A forecaster, what it knows by now, and what it must go on to answer."""

    def __init__(self, case: dict[str, Any]) -> None:
        self.case = case
        self.y, self.new, self.X = frames(case)
        self.index = make_index(case["index"], case["n"] + LATER)
        self.rows, self.fh = case["n"], make_fh(case["fh"], self.index, case["n"])
        if case["X"] and case["X"]["later"] == "other columns":
            self.X_ahead = self.X.rename(columns={"x0": "z"})
        elif case["X"] and case["X"]["later"] == "missing":
            self.X_ahead = None
        else:
            self.X_ahead = self.X
        options = {**TINY, "num_samples": 9, **case["options"]}
        self.forecaster = getattr(hosts, f"{case['model']}Forecaster")(**options)

    def run(self) -> None:
        """Fit, ask, and take all steps of the walk."""
        self.fit()
        self.answer = self.ask(None if self.case["fh_in_fit"] else self.fh)
        for step in self.case["walk"]:
            getattr(self, "step_" + step.replace(" ", "_"))()

    def fit(self) -> None:
        X = None if self.X is None else self.X[self.X.index.isin(self.y.index)]
        if X is not None and self.case["X"]["spoiled"] == "short":
            X = X.iloc[1:]
        y, fh = as_user(self.y), self.fh if self.case["fh_in_fit"] else None
        with environment(self.case["fit_in"]), untouched(y, X):
            self.forecaster.fit(y, X=X, fh=fh)

    def ask(self, fh: Any, steps: dict[str, Any] | None = None) -> Any:
        """Ask for means and quantiles, check them and return the means."""
        y = as_user(self.y)
        with environment(self.case["predict_in"]), untouched(y, self.X_ahead):
            mean = self.forecaster.predict(fh, X=self.X_ahead)
            if self.case["options"].get("distribution") == "mse":
                self.check(steps or self.case["fh"], mean, None)
                return mean
            quantiles = self.forecaster.predict_quantiles(fh, X=self.X_ahead, alpha=LEVELS)
            self.check(steps or self.case["fh"], mean, quantiles)
            for method in self.case["methods"]:
                self.check_method(method, fh, mean, quantiles)
        require(type(mean) is type(y), f"y is a {type(y).__name__}, but the forecast a {type(mean).__name__}")
        return mean

    def check(self, fh: dict[str, Any], mean: Any, quantiles: Any) -> None:
        """Check every column of every instance."""
        steps = fh.get("steps", self.steps_of_two_days() if fh["kind"] == "time span" else 1)
        ahead = max(steps) if isinstance(steps, list) else steps
        rows = {"next": steps, "absolute": steps, "list": len(np.atleast_1d(steps))}.get(fh["kind"], 2)
        keys = [None]
        if self.y.index.nlevels > 1:
            keys = list(self.y.index.droplevel(-1).unique())
        require(len(mean) == rows * len(keys), f"{len(mean)} rows, but {rows} steps of {len(keys)} series")
        mean = pd.DataFrame(mean)
        for key in keys:
            known, means = (frame if key is None else frame.loc[key] for frame in (self.y, mean))
            for number in range(known.shape[1]):
                levels = None
                if quantiles is not None:
                    part = quantiles if key is None else quantiles.loc[key]
                    levels = part.to_numpy()[:, number * len(LEVELS) : (number + 1) * len(LEVELS)]
                values = known.iloc[:, number].to_numpy(dtype=float, na_value=np.nan)
                check_forecast(values, ahead, means.to_numpy()[:, number], levels, self.X is None)

    def steps_of_two_days(self) -> int:
        """How many steps ahead the time span ends that may be asked for."""
        times = self.y.index.get_level_values(-1)
        return math.ceil(pd.Timedelta(2, unit="D") / (times[-1] - times[-2]))

    def check_method(self, method: str, fh: Any, mean: Any, quantiles: Any) -> None:
        """Other methods agree with means and quantiles."""
        if method == "interval":
            found = self.forecaster.predict_interval(fh, X=self.X_ahead, coverage=0.9).to_numpy()
            ends = quantiles.to_numpy().reshape(len(quantiles), -1, len(LEVELS))[..., [1, -2]]
            same = np.allclose(found, ends.reshape(found.shape), rtol=1e-6, atol=0)
            require(same, "intervals are not quantiles")
        elif method == "var":
            found = self.forecaster.predict_var(fh, X=self.X_ahead).to_numpy()
            require(np.isfinite(found).all() and (found >= 0).all(), "a variance is negative or not finite")
        else:
            found = self.forecaster.predict_proba(fh, X=self.X_ahead).mean().to_numpy()
            require_equal(found, pd.DataFrame(mean).to_numpy(), "predict is not the mean of predict_proba")

    def still(self, what: str, forecaster: Any = None) -> None:
        """Require the same answer as before."""
        found = (forecaster or self.forecaster).predict(self.fh, X=self.X_ahead)
        require_equal(found, self.answer, what)

    # ---- steps --------------------------------------------------------------------------------------

    def step_predict(self) -> None:
        self.still("a second prediction differs")

    def step_copy(self) -> None:
        self.still("a copy predicts otherwise", COPIES["copy"](self.forecaster))

    def step_pickle(self) -> None:
        self.still("a pickled forecaster predicts otherwise", COPIES["pickle"](self.forecaster))

    def step_save(self) -> None:
        self.still("a saved forecaster predicts otherwise", COPIES["save"](self.forecaster))

    def step_clone(self) -> None:
        if self.rows == self.case["n"]:
            again, self.forecaster = self.forecaster, self.forecaster.clone()
            self.fit()
            self.still("a clone that was fitted alike predicts otherwise")
            self.forecaster = again

    def step_refused_fit(self) -> None:
        wrong = as_user(infinite(self.y))
        try:
            self.forecaster.fit(wrong, fh=[1])
        except ValueError:
            self.still("a fit that was refused changed the forecast")
        else:
            require(False, "infinite values were fitted")

    def step_fit_again(self) -> None:
        self.y, self.rows = self.y.iloc[: max(3, len(self.y) // 2)], -1
        self.X = self.X_ahead = None
        self.forecaster.fit(as_user(self.y), fh=[1, 2])
        self.asked_again([1, 2], {"kind": "list", "steps": [1, 2]})

    def step_update(self) -> None:
        if self.rows < 0 or self.rows > self.case["n"]:
            return
        new = self.new[
            self.new.index.get_level_values(-1).isin(self.index[self.rows : self.rows + self.case["new"]])
        ]
        X = None if self.X is None else self.X[self.X.index.isin(new.index)]
        with untouched(new, X):
            self.forecaster.update(as_user(new), X=X)
        self.y, self.rows = pd.concat([self.y, new]).sort_index(), self.rows + len(new)
        if self.case["fh"]["kind"] in ("next", "list", "far"):
            self.asked_again(self.fh, self.case["fh"])
        else:
            self.asked_again([1, 2], {"kind": "list", "steps": [1, 2]})

    def asked_again(self, fh: Any, steps: dict[str, Any]) -> None:
        self.case, self.fh = {**self.case, "fh": steps}, fh
        self.answer = self.ask(fh)

    def step_update_predict(self) -> None:
        if self.X is None and self.rows == self.case["n"]:
            self.forecaster.update_predict(as_user(self.new), reset_forecaster=True)
            self.still("a backtest changed the forecast")

    def step_update_predict_single(self) -> None:
        if self.X is None and self.rows == self.case["n"] and self.y.index.nlevels == 1:
            found = self.forecaster.update_predict_single(as_user(self.new[:2]), fh=[1])
            require(
                np.isfinite(found.to_numpy(dtype=float)).all(), "a forecast after an update is not finite"
            )
            self.y, self.rows = pd.concat([self.y, self.new[:2]]), self.rows + 2
            self.asked_again([1, 2], {"kind": "list", "steps": [1, 2]})

    def step_other_fh(self) -> None:
        if self.case["other_fh"]["kind"] != "absolute":
            self.ask(make_fh(self.case["other_fh"], self.index, self.case["n"]), self.case["other_fh"])

    def step_whole_paths(self) -> None:
        if self.case["options"].get("distribution") != "mse":
            paths = self.forecaster.predict_proba(self.fh, X=self.X_ahead, marginal=False).sample(3)
            require(np.isfinite(paths.to_numpy()).all(), "a path is not finite")


class ImputerWalk:
    """The imputer on a series with gaps."""

    def __init__(self, case: dict[str, Any]) -> None:
        self.case, (self.y, _, _) = case, frames(case)
        options = {"num_samples": 9, "logarithm": case["logarithm"]}
        self.imputer = hosts.TaylorformerImputer(**TINY, **options)

    def run(self) -> None:
        """Fit, fill, check, and take all steps of the walk."""
        y = as_user(self.y)
        with environment(self.case["fit_in"]), untouched(y):
            self.imputer.fit(y)
        with environment(self.case["predict_in"]), untouched(y):
            self.answer = self.imputer.transform(y)
        filled, known = (pd.DataFrame(f).to_numpy(dtype=float, na_value=np.nan) for f in (self.answer, y))
        require(np.isfinite(filled).all(), "a value that was filled is not finite")
        seen = np.isfinite(known)
        require_equal(filled[seen], known[seen], "a value that was observed is changed")
        for column, values in enumerate(known.T):
            check_forecast(values, 1, filled[:, column], None)
        if not seen.all():
            levels = self.imputer.transform_quantiles(y, alpha=[0.05, 0.5, 0.95]).to_numpy()
            levels = levels.reshape(len(levels), -1, 3)
            slack = 1e-6 * np.nanmax(np.abs(known))
            require((np.diff(levels, axis=-1) >= -slack).all(), "quantiles of fills are not ordered")
        for step in self.case["walk"]:
            self.step(step, y)

    def step(self, step: str, y: Any) -> None:
        """Take one step; the answer stays."""
        imputer = self.imputer
        if step in COPIES:
            imputer = COPIES[step](imputer)
        elif step == "sample":
            imputer.sample(y, 2)
        else:
            refused(lambda: imputer.fit(infinite(self.y)))
        require_equal(imputer.transform(y), self.answer, f"other fills after: {step}")


class ClassifierWalk:
    """The classifier on a panel."""

    def __init__(self, case: dict[str, Any]) -> None:
        self.case, (self.X, _, _) = case, frames(case)
        self.labels = np.arange(case["panel"][0]) % case["classes"]
        self.classifier = hosts.ContiFormerClassifier(**TINY)

    def run(self) -> None:
        """Fit, classify, check, and take all steps of the walk."""
        with environment(self.case["fit_in"]), untouched(self.X, self.labels):
            self.classifier.fit(self.X, self.labels)
        with environment(self.case["predict_in"]), untouched(self.X):
            answer = self.classifier.predict_proba(self.X)
            labels = self.classifier.predict(self.X)
        require(np.allclose(answer.sum(1), 1, atol=1e-5) and (answer >= 0).all(), "no probabilities")
        require(set(labels) <= set(self.labels), "an unknown class")
        for step in self.case["walk"]:
            classifier = COPIES[step](self.classifier) if step in COPIES else self.classifier
            if step == "refused fit" and self.case["classes"] > 1:  # of one class sktime looks at nothing
                refused(lambda: self.classifier.fit(infinite(self.X), self.labels))
            require_equal(classifier.predict_proba(self.X), answer, f"other probabilities after: {step}")


def infinite(frame: pd.DataFrame) -> pd.DataFrame:
    """A frame of infinite values."""
    return pd.DataFrame(np.inf, frame.index, frame.columns)


def refused(fit: Any) -> None:
    """Require that a fit is refused."""
    try:
        fit()
    except (ValueError, TypeError):
        return
    require(False, "infinite values were fitted")
