"""Forecasts that a change of structure must not move: small networks, every model, both hosts.

``python tests/golden/cases.py`` writes ``forecasts.json`` anew, which only a change that is meant to move
forecasts may do.
"""

from __future__ import annotations

import json
import logging
import sys
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import torch

sys.path.insert(0, str(Path(__file__).parents[1]))
from all_models import NAMES, small, trained

FILE = Path(__file__).with_name("forecasts.json")
FH = range(1, 9)
LEVELS = [0.1, 0.5, 0.9]
SHORT = {"device": "cpu", "max_steps": 4, "num_samples": 20}
QUIET = {"accelerator": "cpu", "enable_progress_bar": False, "logger": False}


def _values(n: int = 120, seed: int = 0) -> np.ndarray:
    """A trend, a season and noise."""
    t = np.arange(n)
    noise = np.random.default_rng(seed).normal(size=n)
    return 50 + 0.2 * t + 8 * np.sin(2 * np.pi * t / 12 + seed) + noise


def _series(n: int = 120, seed: int = 0) -> pd.Series:
    return pd.Series(_values(n, seed), pd.period_range("2010-01", periods=n, freq="M"), name="y")


def _quantiles(forecaster: object, X: object = None) -> np.ndarray:
    return forecaster.predict_quantiles(FH, X=X, alpha=LEVELS).to_numpy()  # type: ignore[attr-defined]


def _trained(name: str, **options: object) -> object:
    """A forecaster whose network is trained, however short the series."""
    import taylorformer_forecast.sktime as hosts

    kind = getattr(hosts, name)
    return kind(**trained(kind, **SHORT, **options))


def _sktime(name: str, **options: object) -> Callable[[], np.ndarray]:
    def run() -> np.ndarray:
        forecaster = _trained(name, **options)
        return _quantiles(forecaster.fit(_series(), fh=FH))

    return run


def _paths() -> np.ndarray:
    forecaster = _trained("TaylorformerForecaster").fit(_series(), fh=FH)
    return forecaster.predict_proba(FH, marginal=False).sample(3).to_numpy()


def _points() -> np.ndarray:
    forecaster = _trained("LAMForecaster", preset="faithful", distribution="mse").fit(_series(), fh=FH)
    return forecaster.predict(FH).to_numpy()


def _panel() -> np.ndarray:
    panel = pd.concat({k: _series(60 + 10 * k, k).to_frame() for k in range(3)}, names=["id"])
    return _quantiles(_trained("TaylorformerForecaster").fit(panel, fh=FH))


def _pretrain() -> np.ndarray:
    panel = pd.concat({k: _series(60, k).to_frame() for k in range(3)}, names=["id"])
    forecaster = _trained("LAMForecaster", horizon=8, finetune_steps=2)
    return _quantiles(forecaster.pretrain(panel).fit(_series(50, 7), fh=FH))


def _exogenous(name: str, **options: object) -> Callable[[], np.ndarray]:
    def run() -> np.ndarray:
        whole = _series(128)
        X = pd.DataFrame({"a": np.sin(np.arange(128)), "b": np.cos(np.arange(128) / 3)}, whole.index)
        forecaster = _trained(name, past_only=("b",), **options)
        forecaster.fit(whole[:120], X[:120], fh=FH)
        return _quantiles(forecaster, X[["a"]][120:])

    return run


def _columns(name: str) -> Callable[[], np.ndarray]:
    def run() -> np.ndarray:
        y = pd.DataFrame({"u": _series(seed=1), "v": _series(seed=2)})
        return _quantiles(_trained(name).fit(y, fh=FH))

    return run


def _missing(name: str) -> Callable[[], np.ndarray]:
    def run() -> np.ndarray:
        y = _series()
        y.iloc[[5, 6, 30, 77, 78, 79, 110]] = np.nan
        return _quantiles(_trained(name).fit(y, fh=FH))

    return run


def _irregular(name: str) -> Callable[[], np.ndarray]:
    def run() -> np.ndarray:
        rng = np.random.default_rng(3)
        days = np.sort(rng.choice(400, 120, replace=False))
        stamps = pd.Timestamp("2020-01-01") + pd.to_timedelta(days, unit="D")
        forecaster = _trained(name).fit(pd.Series(_values(), stamps))
        ahead = stamps[-1] + pd.to_timedelta([1, 2, 5, 9], unit="D")
        return forecaster.predict_quantiles(ahead, alpha=LEVELS).to_numpy()

    return run


def _conditional() -> np.ndarray:
    y = _series()
    forecaster = _trained("TaylorformerForecaster", order="random").fit(y, fh=FH)
    return _quantiles(forecaster.condition(y.iloc[-1:].shift(5, freq="M") * 1.1))


def _update() -> np.ndarray:
    forecaster = _trained("TaylorformerForecaster", update_steps=2).fit(_series()[:110], fh=FH)
    return _quantiles(forecaster.update(_series()[110:]))


def _in_sample() -> np.ndarray:
    forecaster = _trained("TaylorformerForecaster").fit(_series(), fh=FH)
    return forecaster.predict_quantiles([-100, -3, 0, 1, 20], alpha=LEVELS).to_numpy()


def _imputer() -> np.ndarray:
    from taylorformer_forecast.sktime import TaylorformerImputer

    y = _series()
    y.iloc[[40, 41, 42, 90]] = np.nan
    imputer = TaylorformerImputer(**small(TaylorformerImputer, device="cpu", max_steps=4)).fit(y)
    return imputer.transform_quantiles(y, alpha=LEVELS).to_numpy()[[40, 41, 42, 90]]


def _pretrained() -> np.ndarray:
    from taylorformer_forecast.sktime import TaylorformerForecaster

    forecaster = TaylorformerForecaster(strategy="pretrained", num_samples=20, random_state=0)
    return _quantiles(forecaster.fit(_series(), fh=FH))


def _darts(name: str, likelihood: str | None = None, **options: object) -> Callable[[], np.ndarray]:
    def run() -> np.ndarray:
        import darts.utils.likelihood_models.torch as known
        from darts import TimeSeries

        import taylorformer_forecast.darts as hosts

        index = pd.date_range("2010-01-01", periods=128, freq="MS")
        values = np.stack([_values(128, 1), _values(128, 2)], 1).astype("float32")
        values[[5, 6, 30], 0] = np.nan
        y = TimeSeries.from_times_and_values(index, values)
        extra = TimeSeries.from_times_and_values(index, np.sin(np.arange(128.0, dtype="float32"))[:, None])
        chosen = {} if likelihood is None else {"likelihood": getattr(known, likelihood)()}
        chosen |= {"batch_size": 64, "n_epochs": 2, "pl_trainer_kwargs": QUIET, **options}
        kind = getattr(hosts, name)
        model = kind(24, 8, **small(kind, **chosen))
        model.fit(y[:120], future_covariates=extra)
        paths = model.predict(8, num_samples=20, verbose=False).all_values()
        return np.quantile(paths, LEVELS, axis=2)

    return run


def _darts_pretrained() -> np.ndarray:
    from darts import TimeSeries

    from taylorformer_forecast.darts import TaylorformerModel

    y = TimeSeries.from_series(_series().to_timestamp().astype("float32"))
    model = TaylorformerModel(24, 8, strategy="pretrained", random_state=0, pl_trainer_kwargs=QUIET)
    return np.quantile(model.fit(y).predict(8, num_samples=20, verbose=False).all_values(), LEVELS, axis=2)


CASES: dict[str, Callable[[], np.ndarray]] = {
    **{f"sktime {name}": _sktime(f"{name}Forecaster") for name in NAMES},
    **{f"sktime {name} missing": _missing(f"{name}Forecaster") for name in NAMES},
    **{f"sktime {name} X": _exogenous(f"{name}Forecaster") for name in NAMES},
    **{f"sktime {name} columns": _columns(f"{name}Forecaster") for name in ("Taylorformer", "UNN")},
    **{
        f"sktime {name} irregular": _irregular(f"{name}Forecaster")
        for name in ("Taylorformer", "ContiFormer", "UNN", "TNP")
    },
    "sktime Taylorformer plain": _sktime("TaylorformerForecaster", linear_path=False, taylor_order=1),
    "sktime Taylorformer local": _sktime("TaylorformerForecaster", attention="local", distribution="mixture"),
    "sktime Taylorformer quantile": _sktime("TaylorformerForecaster", distribution="quantile"),
    "sktime Taylorformer paths": _paths,
    "sktime Taylorformer panel": _panel,
    "sktime Taylorformer conditional": _conditional,
    "sktime Taylorformer update": _update,
    "sktime Taylorformer in sample": _in_sample,
    "sktime Taylorformer pretrained": _pretrained,
    "sktime LAM faithful points": _points,
    "sktime LAM pretrain": _pretrain,
    "sktime ContiFormer direct": _sktime("ContiFormerForecaster", joint=False),
    "sktime imputer": _imputer,
    "darts Taylorformer": _darts("TaylorformerModel", strategy="train"),
    "darts Taylorformer averaged": _darts("TaylorformerModel"),
    **{f"darts {name}": _darts(f"{name}Model") for name in NAMES if name != "Taylorformer"},
    "darts Taylorformer laplace": _darts("TaylorformerModel", "LaplaceLikelihood"),
    "darts LAM quantiles": _darts("LAMModel", "QuantileRegression"),
    "darts Taylorformer poisson": _darts("TaylorformerModel", "PoissonLikelihood"),
    "darts Taylorformer pretrained": _darts_pretrained,
}


def forecast(name: str) -> np.ndarray:
    """Run one case on one thread."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        return np.asarray(CASES[name](), dtype=float)
    finally:
        torch.set_num_threads(threads)


def main() -> None:
    """Write the forecasts of all cases."""
    warnings.filterwarnings("ignore")
    logging.getLogger("pytorch_lightning").setLevel(logging.ERROR)
    found = {}
    for name in CASES:
        found[name] = [float(f"{v:.8g}") for v in forecast(name).ravel()]
        print(name, found[name][:3], flush=True)
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(values)}" for name, values in found.items())
    FILE.write_text("{\n" + lines + "\n}\n")


if __name__ == "__main__":
    main()
