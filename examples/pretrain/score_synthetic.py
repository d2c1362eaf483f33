"""Score a pretrained network on short synthetic series that it was not trained on, beside AutoETS and others.

    python examples/pretrain/score_synthetic.py --out made_up.json
    python examples/pretrain/score_synthetic.py --pretrained prior.safetensors --series 20
    python examples/pretrain/score_synthetic.py --length 160 --horizon 24 --out longer.json

Every series has 60 points to fit to and 12 to forecast, unless others are asked for. Scores are CRPS
(approximated by the deciles) in mean absolute differences of neighbours in what was fitted to. AutoETS is
told the season of a series; ours is not.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import torch

from taylorformer_forecast.sktime import TaylorformerForecaster
from taylorformer_forecast.synthetic import SyntheticGenerator

LEVELS = np.arange(1, 10) / 10
SEED = 2_000_003  # of no training or validation

Forecast = Callable[[pd.Series, int, int], np.ndarray]  # series, season, horizon -> deciles (9, horizon)


def ours(**options: object) -> Forecast:
    """Forecasts by TaylorformerForecaster."""

    def forecast(y: pd.Series, season: int, horizon: int) -> np.ndarray:
        model = TaylorformerForecaster(random_state=0, device="cpu", **options)
        return model.fit(y, fh=range(1, horizon + 1)).predict_quantiles(alpha=LEVELS.tolist()).to_numpy().T

    return forecast


def auto_ets(y: pd.Series, season: int, horizon: int) -> np.ndarray:
    """Forecasts by AutoETS: statsforecast's if it is installed, else sktime's."""
    if importlib.util.find_spec("statsforecast"):
        from statsforecast.models import AutoETS

        levels = [20, 40, 60, 80]
        found = AutoETS(season_length=season).forecast(y.to_numpy(), h=horizon, level=levels)
        low = [found[f"lo-{level}"] for level in reversed(levels)]
        return np.stack([*low, found["mean"], *(found[f"hi-{level}"] for level in levels)])
    from sktime.forecasting.ets import AutoETS

    model = AutoETS(auto=True, sp=season)
    return model.fit(y).predict_quantiles(range(1, horizon + 1), alpha=LEVELS.tolist()).to_numpy().T


def naive(y: pd.Series, season: int, horizon: int) -> np.ndarray:
    """The last season again, with normal intervals from its past errors."""
    from scipy.stats import norm

    values, ahead = y.to_numpy(), np.arange(horizon)
    spread = np.sqrt(np.mean((values[season:] - values[:-season]) ** 2) * (1 + ahead // season))
    return values[-season:][ahead % season] + norm.ppf(LEVELS)[:, None] * spread


def complete(n: int, length: int, horizon: int) -> list[tuple[np.ndarray, int]]:
    """Regular series without gaps, which all models take and which move before the cut, and their seasons."""
    off = dict.fromkeys(("missing_points", "missing_blocks", "irregular_times"), 0.0)
    batch = SyntheticGenerator(SEED, 2 * n, processes=off).batch(0, length + horizon, horizon)
    pairs = zip(batch.values, batch.periods[:, 0], strict=True)
    return [(y, max(1, round(period))) for y, period in pairs if np.ptp(y[:length]) > 0][:n]


def main() -> None:
    """Score all models on all series; print and write means, medians and coverage."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--pretrained", default="default", help="'default' or a file")
    parser.add_argument("--series", type=int, default=100)
    parser.add_argument("--length", type=int, default=60, help="points to fit to")
    parser.add_argument("--horizon", type=int, default=12, help="points to forecast")
    parser.add_argument("--out", type=Path, metavar="FILE.json")
    args = parser.parse_args()
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    models: dict[str, Forecast] = {
        "seasonal naive": naive,
        "AutoETS": auto_ets,
        "baseline alone": ours(strategy="train", max_steps=0),
        "trained on the series": ours(strategy="train"),
        "pretrained": ours(strategy="pretrained", pretrained=args.pretrained),
        "pretrained, trained further": ours(strategy="finetune", pretrained=args.pretrained),
        "defaults": ours(),
    }
    rows, scores = {}, {}
    for name, forecast in models.items():
        crps, coverage, start = [], [], time.process_time()
        for values, season in complete(args.series, args.length, args.horizon):
            y, truth = pd.Series(values[: args.length]), values[args.length :]
            deciles = forecast(y, season, args.horizon)
            error = truth - deciles
            pinball = np.maximum(LEVELS[:, None] * error, (LEVELS[:, None] - 1) * error)
            crps.append(2 * pinball.mean() / np.abs(np.diff(y)).mean())
            coverage.append(((truth >= deciles[0]) & (truth <= deciles[-1])).mean())
        scores[name] = np.array(crps)
        rows[name] = {
            "mean_crps": round(float(np.mean(crps)), 4),
            "median_crps": round(float(np.median(crps)), 4),
            "geometric_mean_crps": round(float(np.exp(np.log(np.maximum(crps, 1e-3)).mean())), 4),
            "coverage": round(float(np.mean(coverage)), 3),
            "seconds_each": round((time.process_time() - start) / args.series, 3),
        }
        if "AutoETS" in scores:
            kept = np.argsort(scores[name] - scores["AutoETS"])[: -max(1, args.series // 20)]
            rows[name] |= {
                "better_than_AutoETS": int((scores[name] < scores["AutoETS"]).sum()),
                # Without the twentieth of the series where it is farthest behind.
                "mean_crps_without_worst": round(float(scores[name][kept].mean()), 4),
                "AutoETS_there": round(float(scores["AutoETS"][kept].mean()), 4),
            }
        print(name, rows[name], flush=True)
    if args.out:
        about = {"series": args.series, "length": args.length, "horizon": args.horizon, "seed": SEED}
        versions = {"torch": torch.__version__, "pretrained": args.pretrained}
        versions["AutoETS"] = "statsforecast" if importlib.util.find_spec("statsforecast") else "sktime"
        args.out.write_text(json.dumps({**about, **versions, "models": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
