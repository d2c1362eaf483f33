"""How much the order of targets and of the context changes a joint log-likelihood (the paper's Figure 3).

A process has one joint density for every order of its points. A network that predicts targets one after
another has it only as far as it has learnt to. Measured on random functions:

spread
    Standard deviation of the joint log-likelihood of all targets of a sequence over 40 orders of them, one
    number for each test sequence, in nats.
context_change
    Largest change of any log-density when the context is put in another order, in float64: no network here
    may change.

Networks are trained with one and with five orders of every sequence at once, of a fifth as many sequences::

    python examples/benchmark/neural_processes/consistency.py
"""

from __future__ import annotations

import argparse
import copy
import itertools
from dataclasses import asdict
from pathlib import Path

import numpy as np
import torch
from gp_regression import RESULTS, Task, Training, arguments, missing, open_book, score, summary, trained
from networks import NETWORKS
from processes import Sequences, by_context
from run import write_json
from torch import nn
from training import log_densities

from taylorformer_forecast.core.window import shuffle_targets

__all__ = ["context_change", "spread"]

N_ORDERS = 40
ORDERS_LEARNT = (1, 5)


def spread(net: nn.Module, sequences: Sequences, n_orders: int, seed: int = 0) -> np.ndarray:
    """Standard deviation over orders of the targets of their joint log-likelihood, (n,) in nats."""
    generator = torch.Generator().manual_seed(seed)
    out = np.zeros(len(sequences.x))
    for rows, window in by_context(sequences):
        joint = log_densities(net, shuffle_targets(window, n_orders, generator)).sum(1)
        out[rows] = joint.reshape(n_orders, len(rows)).std(0, ddof=1)
    return out


def context_change(net: nn.Module, sequences: Sequences, seed: int = 0) -> float:
    """Largest change of a log-density when the context is shuffled, computed in float64."""
    net = copy.deepcopy(net).double()
    generator = torch.Generator().manual_seed(seed)
    worst = 0.0
    for _, window in by_context(sequences, torch.float64):
        order = torch.argsort(torch.rand(len(window.y), window.n_context, generator=generator), 1)
        targets = torch.arange(window.n_context, window.y.shape[1]).expand(len(order), -1)
        shuffled = window.reorder(torch.cat([order, targets], 1))
        change = log_densities(net, shuffled) - log_densities(net, window)
        worst = max(worst, float(np.abs(change).max()))
    return worst


def main() -> None:
    """Run what is missing, write every row at once."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    arguments(parser)
    parser.add_argument("--kernel", default="rbf")
    parser.add_argument("--noise", type=float, default=1e-4, help="variance of the noise")
    parser.add_argument(
        "--orders", type=int, default=N_ORDERS, help="orders of the targets of a test sequence"
    )
    parser.add_argument("--networks", default="taylorformer,tnpa", help=f"of {', '.join(NETWORKS)}")
    parser.add_argument("--out", type=Path, metavar="FILE.json", default=RESULTS / "gp_consistency.json")
    args = parser.parse_args()
    if args.quick:
        args.seeds, args.points, args.steps, args.batch, args.tests, args.orders = "0", 12, 2, 2, 10, 4
    torch.set_num_threads(1)
    book, task = open_book(args.out), Task(args.kernel, args.noise, args.points)
    book["orders"] = args.orders
    sequences = task.test(args.tests)
    for seed, name, learnt in itertools.product(
        map(int, args.seeds.split(",")), args.networks.split(","), ORDERS_LEARNT
    ):
        how = Training(seed, args.steps, max(1, args.batch // learnt), args.lr, learnt)
        if not missing(book, network=name, **asdict(task), **asdict(how)):
            continue
        net, row = trained(name, task, how, args.checkpoints)
        row |= {key: value for key, value in summary(score(net, sequences)).items() if key != "scores"}
        values = spread(net, sequences, args.orders)
        row["context_change"] = float(f"{context_change(net, sequences):.2g}")
        row["spread"] = [float(f"{value:.4g}") for value in values]
        book["rows"].append(row)
        write_json(book, args.out)
        print(name, seed, learnt, row["log_likelihood"], np.median(values), row["context_change"], flush=True)


if __name__ == "__main__":
    main()
