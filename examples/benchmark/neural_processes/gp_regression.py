"""Taylorformer, TNP-A, ANP and NP on random functions, against the exact log-likelihood under the kernel.

The papers' first experiment: functions drawn from Gaussian processes whose kernel parameters are new in every
sequence. A network sees some points and predicts the others one after another. Scores are log-likelihoods
per target, in nats, given the context and the targets before. NP and ANP predict all targets at once: each
gets an equal part of their joint log-likelihood.

log_likelihood
    Mean over test sequences of the mean over their targets.
pooled
    Mean over all targets of all test sequences.

The *ceiling* is the same of the true process: no network can be above it on average. The *floor* is a
Gaussian around the line between earlier values. Test sequences are the same for every network. Training never
sees a sequence twice; batches are the same for every network.

Every finished (network, kernel, noise, seed) is written at once, and what the file holds is not run again;
what was interrupted goes on from a checkpoint::

    python examples/benchmark/neural_processes/gp_regression.py
    python examples/benchmark/neural_processes/gp_regression.py --points 100 --batch 32 --steps 250000
    python examples/benchmark/neural_processes/gp_regression.py --parts --out docs/results/gp_ablation.json

The last trains the Taylorformer without its parts (the paper's Figure 5); ``consistency.py`` is about the
order of targets, and ``report.py`` makes the page.
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch
from networks import NETWORKS, PARTS, build
from processes import KERNELS, Sequences, by_context, ceiling, draw, draw_test, floor, windows_of
from torch import nn
from training import count_parameters, log_densities, train

from taylorformer_forecast.core.window import Window, shuffle_targets

sys.path.append(str(Path(__file__).parents[1] / "arena"))
from run import machine, write_json

__all__ = ["RESULTS", "Task", "Training", "open_book", "score", "summary", "trained"]

RESULTS = Path(__file__).parents[3] / "docs" / "results"
CHECKPOINTS = Path("build") / "neural_processes"
NOISES = (1e-4, 4e-4, 1e-6)
N_TEST = 1000


@dataclass(frozen=True)
class Task:
    """Sequences of one kind.

    Parameters
    ----------
    kernel : str
        A key of :data:`processes.KERNELS`.
    noise : float
        Variance of the noise.
    points : int
        Points of a sequence.
    """

    kernel: str
    noise: float
    points: int

    def test(self, n: int, seed: int = 0) -> Sequences:
        """Test sequences."""
        return draw_test(self.kernel, n, self.points, self.noise, seed)

    def batch(self, n: int, seed: int, step: int) -> Window:
        """The training batch of a step."""
        s = draw(self.kernel, n, self.points, self.noise, np.random.default_rng([seed, step, 1]))
        return windows_of(s, int(s.n_context[0]))


@dataclass(frozen=True)
class Training:
    """How a network is trained.

    Parameters
    ----------
    seed : int
        Of the weights and of the batches.
    steps, batch, lr
        Steps, sequences of a step, peak learning rate.
    permutations : int, default=1
        Orders of its targets in which each sequence is learnt at once.
    """

    seed: int
    steps: int
    batch: int
    lr: float
    permutations: int = 1


def trained(
    name: str, task: Task, how: Training, folder: Path, progress: bool = True
) -> tuple[nn.Module, dict]:
    """Train a network.

    Parameters
    ----------
    name : str
        A key of :data:`networks.NETWORKS`.
    task : Task
        What it is trained on.
    how : Training
        The training.
    folder : Path
        Where checkpoints are.
    progress : bool, default=True
        Whether to show a progress bar.

    Returns
    -------
    nn.Module, dict
        The network, and a row of results without scores.
    """
    net = build(name, how.seed)
    settings = {"network": name, **asdict(task), **asdict(how)}
    folder.mkdir(parents=True, exist_ok=True)
    label = "_".join(map(str, settings.values()))

    def batches(step: int) -> Window:
        window = task.batch(how.batch, how.seed, step)
        # Times are drawn in random order: one permutation is the order as it is.
        return window if how.permutations == 1 else shuffle_targets(window, how.permutations)

    about = train(net, batches, how.steps, how.lr, folder / f"{label}.pt", label if progress else None)
    return net, {**settings, "parameters": count_parameters(net), **about}


def score(net: nn.Module, sequences: Sequences) -> np.ndarray:
    """Log-densities of the targets of test sequences, (n, N), NaN in the context."""
    out = np.full(sequences.x.shape, np.nan)
    for rows, window in by_context(sequences):
        out[rows, window.n_context :] = log_densities(net, window)
    return out


def summary(scores: np.ndarray) -> dict:
    """Scores of a row of results; ``scores`` are those of every test sequence."""
    each = np.nanmean(scores, 1)
    return {
        "log_likelihood": round(float(each.mean()), 4),
        "standard_error": round(float(each.std(ddof=1) / np.sqrt(len(each))), 4),
        "pooled": round(float(np.nanmean(scores)), 4),
        "scores": [float(f"{value:.4g}") for value in each],
    }


def bounds(task: Task, n_test: int) -> list[dict]:
    """Rows of the ceiling and of the floor."""
    sequences = task.test(n_test)
    rows = {"ceiling": ceiling(sequences), "floor": floor(sequences, task.test(n_test, seed=1))}
    return [
        {"network": name, **asdict(task), **summary(np.where(sequences.is_target, values, np.nan))}
        for name, values in rows.items()
    ]


def open_book(path: Path) -> dict:
    """Results so far, with the machine of this run."""
    path.parent.mkdir(parents=True, exist_ok=True)
    book = json.loads(path.read_text()) if path.exists() else {"rows": []}
    book["machine"] = machine()
    return book


def missing(book: dict, **wanted) -> bool:
    """Whether no row has these entries."""
    return not any(all(row.get(k) == v for k, v in wanted.items()) for row in book["rows"])


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add what all benchmarks of this folder share."""
    parser.add_argument("--points", type=int, default=40, help="points of a sequence; 100 as in the papers")
    parser.add_argument("--seeds", default="0,1,2", help="numbers, separated by commas")
    parser.add_argument("--steps", type=int, default=2500, help="training steps")
    parser.add_argument("--batch", type=int, default=16, help="sequences of a step")
    parser.add_argument("--lr", type=float, default=4e-3, help="peak learning rate")
    parser.add_argument("--tests", type=int, default=N_TEST, help="test sequences")
    parser.add_argument("--checkpoints", type=Path, metavar="DIR", default=CHECKPOINTS)
    parser.add_argument(
        "--quick", action="store_true", help="a few steps of one network of each kind, as a check"
    )


def main() -> None:
    """Run what is missing, write every row at once."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    arguments(parser)
    parser.add_argument("--networks", default="taylorformer,tnpa,anp,np", help=f"of {', '.join(NETWORKS)}")
    parser.add_argument("--parts", action="store_true", help="the Taylorformer without its parts")
    parser.add_argument("--kernels", default=",".join(KERNELS), help="names, separated by commas")
    parser.add_argument("--noises", default=",".join(map(str, NOISES)), help="variances of the noise")
    parser.add_argument("--out", type=Path, metavar="FILE.json", default=RESULTS / "gp_regression.json")
    args = parser.parse_args()
    networks = PARTS if args.parts else [name for name in args.networks.split(",") if name]
    if unknown := [name for name in networks if name not in NETWORKS]:
        raise SystemExit(f"unknown networks {unknown}; known: {', '.join(NETWORKS)}")
    if args.quick:
        args.kernels, args.noises, args.seeds, args.points = "rbf,matern", "0.0001", "0,1", 12
        args.steps, args.batch, args.tests = 3, 2, 20
    torch.set_num_threads(1)
    book = open_book(args.out)
    grid = itertools.product(args.kernels.split(","), map(float, args.noises.split(",")))
    for task in (Task(kernel, noise, args.points) for kernel, noise in grid):
        if missing(book, network="ceiling", **asdict(task)):
            book["rows"] += bounds(task, args.tests)
            write_json(book, args.out)
        for seed, name in itertools.product(map(int, args.seeds.split(",")), networks):
            how = Training(seed, args.steps, args.batch, args.lr)
            if not missing(book, network=name, **asdict(task), **asdict(how)):
                continue
            net, row = trained(name, task, how, args.checkpoints)
            book["rows"].append({**row, **summary(score(net, task.test(args.tests)))})
            write_json(book, args.out)
            found = book["rows"][-1]
            print(*[found[k] for k in (*asdict(task), "network", "seed", "parameters", "seconds")], end=" ")
            print(*[found[k] for k in ("log_likelihood", "standard_error", "pooled")], flush=True)


if __name__ == "__main__":
    main()
