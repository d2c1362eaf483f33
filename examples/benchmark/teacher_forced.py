"""Likelihood of the Taylorformer given the true past, on the protocol of its paper, beside one-step rules.

The last column of a file is standardised by its first 69 %, which are for training; the next 11 % are for
validation, the last 20 % for the test. Windows lie within one part, one starts at every row; their times are
evenly spaced from -1 to 1 and their first ``--context`` points are the context. Every target is predicted
from the context and the **true** earlier targets: both scores are of one step ahead, however many targets
there are, and cannot be compared with those of forecasts that go on from their own values. Scores:

nll
    Negative log-density in nats per target, over all windows of the test part.
mse
    Squared error of the predictive mean, per target, in units of the standardised series.

previous, ar
    The previous true value; a linear map of the last eight true values, by least squares. Both with one
    Gaussian deviation, that of their errors in the training part.
taylorformer, tnp
    The published network in its published sizes, without any anchor of this library; TNP-A in the sizes of
    its own paper. Both are trained by this library's ``fit`` (AdamW, warm-up, then a cosine), and keep the
    weights of the best check on the validation part. Published: 40,000 iterations of Adam at a constant
    0.0003.

Times are processor times of one thread. Every finished row is written at once, and what the file holds
already is not run again. The page is made by ``examples/benchmark/arena/report.py``::

    python examples/benchmark/teacher_forced.py --data DIR --out docs/results/teacher_forced.json

where DIR has ETTh1.csv, ETTh2.csv (github.com/zhouhaoyi/ETDataset) and exchange_rate.csv
(github.com/laiguokun/multivariate-time-series-data).
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import torch
from datasets import TAYLORFORMER, load
from numpy.lib.stride_tricks import sliding_window_view
from torch import Tensor, nn

sys.path.append(str(Path(__file__).parent / "arena"))
from one_step import table
from run import machine, set_up, write_json

from taylorformer_forecast.core.window import Window
from taylorformer_forecast.engine.state import private_rng
from taylorformer_forecast.engine.training import fit
from taylorformer_forecast.models.taylorformer import Taylorformer
from taylorformer_forecast.models.tnp import TNPA

SERIES = ("ETTh1", "ETTh2", "exchange_rate")
LAGS = 8  # true values that the linear rule sees
CHECKED = 100  # windows of a check on the validation part
EVERY = 100  # steps between two checks, as published; twenty checks in shorter trainings
RULES = ("previous", "ar")
PARTS = ("train", "validation", "test")


def published(name: str) -> Taylorformer:
    """The network that the paper's code makes for a series."""
    n_heads, head_dim, n_layers = (8, 12, 3) if name == "exchange_rate" else (6, 11, 4)
    return Taylorformer(preset="code", d_model=32, n_heads=n_heads, head_dim=head_dim, n_layers=n_layers)


NETWORKS: dict[str, Callable[[str], nn.Module]] = {"taylorformer": published, "tnp": lambda name: TNPA()}


# ---- windows ----------------------------------------------------------------------------------------------


def parts_of(name: str, folder: Path) -> dict[str, np.ndarray]:
    """Standardised values of the parts of a series, float64."""
    data = load(name, folder / f"{name}.csv", TAYLORFORMER)
    y = data.standardised(slice(-1, None))[:, 0]
    return {part: y[data.part(part)] for part in PARTS}


def every_window(y: np.ndarray, n: int) -> np.ndarray:
    """Windows of ``n`` points, one from every row but, as in the published code, the last that could be."""
    return sliding_window_view(y, n)[:-1]


class Windows:
    """Batches of windows; what :func:`~taylorformer_forecast.engine.training.fit` iterates over.

    Parameters
    ----------
    y : ndarray of shape (W, N)
        Standardised values of all windows.
    n_context : int
        Points of the context.
    batch : int
        Windows of a batch.
    seed : int, optional
        Seed of endless random batches, none of which holds a window twice; without one, a single pass.
    """

    def __init__(self, y: np.ndarray, n_context: int, batch: int, seed: int | None = None) -> None:
        self.y = torch.as_tensor(y.astype(np.float32))
        self.t = torch.linspace(-1, 1, y.shape[1])
        self.n_context, self.batch, self.seed = n_context, batch, seed

    def take(self, rows: Tensor) -> Window:
        """Windows by their numbers."""
        return Window(self.t.expand(len(rows), -1), self.y[rows, :, None], n_context=self.n_context)

    def __iter__(self) -> Iterator[Window]:
        """Yield batches."""
        if self.seed is None:
            yield from map(self.take, torch.arange(len(self.y)).split(self.batch))
            return
        generator = torch.Generator().manual_seed(self.seed)
        while True:
            yield self.take(torch.randperm(len(self.y), generator=generator)[: self.batch])


# ---- scores -----------------------------------------------------------------------------------------------


def lagged(y: np.ndarray) -> np.ndarray:
    """One and the values before, the latest last, for every value but the first ones, (n - 8, 9)."""
    past = sliding_window_view(y[:-1], LAGS)
    return np.column_stack([np.ones(len(past)), past])


def score_rule(rule: str, parts: dict[str, np.ndarray], n_context: int, n_targets: int) -> dict[str, float]:
    """Scores of a one-step rule with a Gaussian deviation fitted on the training part."""
    weights = np.eye(LAGS + 1)[-1]
    if rule == "ar":
        weights = np.linalg.lstsq(lagged(parts["train"]), parts["train"][LAGS:], rcond=None)[0]
    error = {part: parts[part][LAGS:] - lagged(parts[part]) @ weights for part in ("train", "test")}
    variance = np.square(error["train"]).mean()
    squared = np.square(every_window(error["test"][n_context - LAGS :], n_targets))
    nll = 0.5 * (squared.mean() / variance + np.log(2 * np.pi * variance))
    return {"nll": nll, "mse": squared.mean(), "windows": len(squared)}


@torch.inference_mode()
def score_network(net: nn.Module, windows: Windows) -> dict[str, float]:
    """Scores of a network: sums over all windows and targets, over their number."""
    nll, squared = 0.0, 0.0
    for window in windows:
        truth, found = window.targets[0], net(window)
        nll -= found.log_prob(truth).double().sum().item()
        squared += (found.mean - truth).double().square().sum().item()
    n = windows.y[:, windows.n_context :].numel()
    return {"nll": nll / n, "mse": squared / n, "windows": len(windows.y)}


def run_network(name: str, series: str, parts: dict[str, np.ndarray], args: argparse.Namespace) -> dict:
    """Train a network, and score the weights of its best check."""
    train, validation, test = (every_window(parts[part], args.context + args.targets) for part in PARTS)
    checked = validation[np.unique(np.linspace(0, len(validation) - 1, CHECKED).astype(int))]
    start = time.process_time()
    with private_rng(args.seed):
        net = NETWORKS[name](series)
        n_checks = max(20, args.steps // EVERY)
        done = fit(
            net,
            Windows(train, args.context, args.batch, args.seed),
            Windows(checked, args.context, CHECKED),
            max_steps=args.steps,
            lr=args.lr,
            patience=n_checks,
            n_checks=n_checks,
            device=args.device,
        )
    seconds = time.process_time() - start
    return {
        "steps": done["steps"],
        "batch": args.batch,
        "lr": args.lr,
        "parameters": sum(p.numel() for p in net.parameters() if p.requires_grad),
        "fit_s": round(seconds, 1),
        "last_check": round(done["val_loss"], 5),
        **score_network(net, Windows(test, args.context, CHECKED)),
    }


def main(argv: list[str] | None = None) -> None:
    """Run what is missing, write every row at once, print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", type=Path, required=True, metavar="DIR", help="where the files are")
    parser.add_argument("--series", default=",".join(SERIES), help="names, separated by commas")
    parser.add_argument("--models", default=",".join([*RULES, *NETWORKS]), help="likewise")
    parser.add_argument("--context", type=int, default=96)
    parser.add_argument("--targets", type=int, default=96)
    parser.add_argument("--steps", type=int, default=40_000, help="of training; published: 40,000")
    parser.add_argument("--batch", type=int, default=32, help="windows of a step; published: 32")
    parser.add_argument("--lr", type=float, default=3e-4, help="peak learning rate; published: 0.0003")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="cpu", help="that networks are trained on")
    parser.add_argument("--out", type=Path, metavar="FILE.json", default=Path("teacher_forced.json"))
    parser.add_argument("--quick", action="store_true", help="a check: short windows, three steps")
    args = parser.parse_args(argv)
    if args.quick:
        args.context, args.targets, args.steps, args.batch = 16, 8, 3, 4
    models = args.models.split(",")
    if unknown := [name for name in models if name not in (*RULES, *NETWORKS)]:
        raise SystemExit(f"unknown models {unknown}; known: {', '.join([*RULES, *NETWORKS])}")
    set_up()
    book = json.loads(args.out.read_text()) if args.out.exists() else {"rows": []}
    book["machine"] = machine()
    for series in args.series.split(","):
        parts = parts_of(series, args.data)
        for model in models:
            key = {"series": series, "context": args.context, "targets": args.targets, "model": model}
            if model in NETWORKS:
                key |= {"seed": args.seed, "steps": args.steps, "batch": args.batch, "lr": args.lr}
            if any(key.items() <= row.items() for row in book["rows"]):
                continue
            found = (
                run_network(model, series, parts, args)
                if model in NETWORKS
                else score_rule(model, parts, args.context, args.targets)
            )
            found |= {score: round(float(found[score]), 5) for score in ("nll", "mse")}
            book["rows"].append({**key, **found})
            write_json(book, args.out)
            print(json.dumps(book["rows"][-1]), flush=True)
    print(table(book))


if __name__ == "__main__":
    main()
