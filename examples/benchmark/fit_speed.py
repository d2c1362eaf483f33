"""How long fits and forecasts take, phase by phase, at 150 to 100,000 values, in how much memory.

Every model is fitted once with its defaults to one series with a season of 24 steps, and forecasts nine
deciles of 24 steps. Each fit has a process of its own, so that memory and first imports are its own. Seconds
are processor times of one thread: other work on the machine disturbs them little. A phase is what its
functions take without those of other phases inside. Ratios mean more than seconds. Run from a checkout::

    python examples/benchmark/fit_speed.py --out docs/results/fit_speed.json
    python examples/benchmark/fit_speed.py --models LAM --sizes 150 --hosts sktime     # a part
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from importlib import import_module
from itertools import product
from pathlib import Path
from typing import Any

SEED, SEASON, STEPS, CHUNK = 0, 24, 24, 96
LEVELS = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9]
MODELS = ("Taylorformer", "Taylorformer, trained", "LAM", "ContiFormer", "UNN", "TNP")
SIZES = (150, 700, 10_000, 100_000)
FUNCTIONS = {  # of phases; the rest is preparation: pandas, windows, outliers
    "lengths": ["engine.lengths.choose_lengths"],
    "calibration": ["engine.calibration.inflate_by_paths", "engine.calibration.calibrate_pretrained"],
    "statistics": ["engine.statistics.forecast.forecast_series"],
    "sampling": ["core.rolling.forecast_paths"],
}
PHASES = ("baseline", "lengths", "training", "calibration", "statistics", "sampling", "rest")


class Stopwatch:
    """Processor time of phases, each without the phases inside it."""

    def __init__(self) -> None:
        self.seconds: Counter[str] = Counter()
        self.inside = [0.0]

    def timed(self, phase: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return the function, timed."""

        def run(*args: Any, **kwargs: Any) -> Any:
            self.inside.append(0.0)
            start = time.process_time()
            try:
                return function(*args, **kwargs)
            finally:
                spent = time.process_time() - start
                self.seconds[phase] += spent - self.inside.pop()
                self.inside[-1] += spent

        return run

    def watch(self) -> None:
        """Time the functions of all phases, wherever they were imported to."""
        import pytorch_lightning as pl

        from taylorformer_forecast.core.protocol import ForecastNet

        pl.Trainer.fit = self.timed("training", pl.Trainer.fit)  # type: ignore[method-assign]
        kinds = [ForecastNet]
        for kind in kinds:
            kinds += [one for one in kind.__subclasses__() if one not in kinds]
            if "fit_closed_form" in vars(kind):
                kind.fit_closed_form = self.timed("baseline", kind.fit_closed_form)  # type: ignore[method-assign]
        for phase, names in FUNCTIONS.items():
            for name in names:
                module, _, attribute = name.rpartition(".")
                old = getattr(import_module(f"taylorformer_forecast.{module}"), attribute)
                new = self.timed(phase, old)
                for place in [m for n, m in sys.modules.items() if n.startswith("taylorformer_forecast")]:
                    if getattr(place, attribute, None) is old:
                        setattr(place, attribute, new)


def peak_mib() -> float:
    """Largest memory that the process has held so far, in MiB."""
    kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return kib / (2**20 if sys.platform == "darwin" else 2**10)


def options(model: str) -> dict[str, Any]:
    """Parameters of a row: its defaults, or training whatever the length."""
    return {"strategy": "train"} if model.endswith(", trained") else {}


def measure(host: str, model: str, n: int) -> dict[str, Any]:
    """Seconds by phase, and memory, of one fit and forecast."""
    import numpy as np
    import pandas as pd
    import torch

    torch.set_num_threads(1)
    rng, t = np.random.default_rng(SEED), np.arange(n)
    values = 10 + 3 * np.sin(2 * np.pi * t / SEASON) + t / n + rng.normal(size=n).cumsum() / n**0.5
    y = pd.Series(values + 0.3 * rng.normal(size=n), pd.date_range("2000", periods=n, freq="h"), name="y")
    name, watch = model.partition(",")[0], Stopwatch()
    if host == "sktime":
        from taylorformer_forecast import sktime as models

        forecaster = getattr(models, f"{name}Forecaster")(
            random_state=SEED, verbose=False, device="cpu", **options(model)
        )

        def fit() -> Any:
            return forecaster.fit(y, fh=range(1, STEPS + 1))

        def predict() -> Any:
            return forecaster.predict_quantiles(alpha=LEVELS)
    else:
        from darts import TimeSeries

        from taylorformer_forecast import darts as models  # type: ignore[no-redef]

        quiet = {"accelerator": "cpu", "enable_progress_bar": False, "enable_model_summary": False}
        series = TimeSeries.from_series(y.astype("float32"))
        model_of_darts = getattr(models, f"{name}Model")(
            CHUNK, STEPS, random_state=SEED, pl_trainer_kwargs={**quiet, "logger": False}, **options(model)
        )

        def fit() -> Any:
            return model_of_darts.fit(series)

        def predict() -> Any:
            return model_of_darts.predict(STEPS, num_samples=100).quantile(LEVELS)

    watch.watch()
    before, marks = peak_mib(), [time.process_time()]
    for call in (fit, predict):
        call()
        marks.append(time.process_time())
    phases = {phase: round(watch.seconds[phase], 2) for phase in PHASES[:-1]}
    return {
        "host": host,
        "model": model,
        "n": n,
        "fit_s": round(marks[1] - marks[0], 2),
        "predict_s": round(marks[2] - marks[1], 2),
        "phases": phases | {"rest": round(marks[2] - marks[0] - sum(phases.values()), 2)},
        "extra_mib": round(peak_mib() - before),
    }


def import_seconds() -> dict[str, float]:
    """Processor seconds of imports, one after the other in one process: torch, the host, this package.

    Modules are compiled to bytecode beforehand, as an installed package is: the second of two runs counts.
    """
    code = (
        "import time, json; found = {}; last = time.process_time()\n"
        "for name in ('torch', 'sktime.forecasting.base', 'taylorformer_forecast.sktime'):\n"
        "    __import__(name)\n"
        "    if name.startswith('taylor'): from taylorformer_forecast.sktime import TaylorformerForecaster\n"
        "    found[name] = round(time.process_time() - last, 2); last = time.process_time()\n"
        "print(json.dumps(found))"
    )
    command, environment = [sys.executable, "-W", "ignore", "-c", code], dict(os.environ)
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    with tempfile.TemporaryDirectory() as folder:
        environment["PYTHONPYCACHEPREFIX"] = folder
        runs = [subprocess.check_output(command, env=environment, text=True) for _ in range(2)]
    return json.loads(runs[-1])


def main() -> None:
    """Measure every model at every size that is not in the file, each in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--models", nargs="+", default=MODELS)
    parser.add_argument("--sizes", nargs="+", type=int, default=SIZES)
    parser.add_argument("--hosts", nargs="+", default=["sktime", "darts"])
    parser.add_argument("--out", type=Path)
    parser.add_argument("--one", help=argparse.SUPPRESS)  # a row as JSON: the process of one fit
    args = parser.parse_args()
    if args.one:
        print(json.dumps(measure(*json.loads(args.one))))
        return
    from importlib.metadata import version

    book: dict[str, Any] = {
        name: version(name)
        for name in ("torch", "sktime", "darts", "pandas", "numpy", "taylorformer-forecast")
    }
    book |= {"python": platform.python_version(), "processor": platform.machine(), "threads": 1, "seed": SEED}
    known = json.loads(args.out.read_text())["rows"] if args.out and args.out.exists() else []
    done = {(row["host"], row["model"], row["n"]) for row in known}
    book |= {"import_s": import_seconds(), "rows": known}
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    for n, model, host in product(args.sizes, args.models, args.hosts):
        if (host, model, n) in done:
            continue
        command = [sys.executable, "-W", "ignore", __file__, "--one", json.dumps([host, model, n])]
        printed = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
        book["rows"].append(json.loads(printed.splitlines()[-1]))
        print(json.dumps(book["rows"][-1]), flush=True)
        if args.out:
            args.out.write_text(json.dumps(book, indent=1) + "\n")


if __name__ == "__main__":
    main()
