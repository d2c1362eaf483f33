"""Train a network on synthetic series, and write it with a card that says how it was made.

    python examples/pretrain/train.py --out prior.safetensors            # on a CPU in an hour
    python examples/pretrain/train.py --out prior.safetensors --device cuda --steps 50000
    python examples/pretrain/train.py --quick                            # a check, in seconds

The file goes to ``TaylorformerForecaster(pretrained="prior.safetensors")``. Training that was interrupted
goes on from its checkpoint. One seed gives one file on one machine.
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tasks import GivenBaseline, Tasks, draw_sizes, make_tasks
from torch import Tensor

from taylorformer_forecast.core.protocol import training_loss
from taylorformer_forecast.core.window import Window
from taylorformer_forecast.defaults import GRADIENT_CLIP, MAX_CYCLES, N_HARMONICS, NETWORK_WEIGHTS
from taylorformer_forecast.engine.calibration import deciles, pinball
from taylorformer_forecast.engine.lightning import make_optimizer
from taylorformer_forecast.engine.pretrained import build_direct, save_pretrained
from taylorformer_forecast.engine.state import private_rng
from taylorformer_forecast.models.direct import DirectTaylorformer

SETTINGS: dict[str, Any] = {
    "d_model": 32,
    "n_heads": 4,
    "n_layers": 2,
    "distribution": "studentt",
    "n_derivative_neighbours": 1,
}
SERIES = 48  # of a chunk, all of one length
KEPT = 100  # chunks that batches are drawn from, the latest
LARGEST_BATCH = 128
HELD_OUT = 2**20  # chunks from this number on are for validation
N_PATHS = 200


def build() -> DirectTaylorformer:
    """Return the network."""
    net = build_direct(SETTINGS, MAX_CYCLES, 1, 1, MAX_CYCLES * 2 * N_HARMONICS, dropout=0.0, weight=1.0)
    net.baseline = GivenBaseline()
    return net


def show(net: DirectTaylorformer, tasks: Tasks) -> Window:
    """Give the network the linear forecasts of tasks, and what else depends on their length."""
    net.baseline.given = tasks
    net.layers.tokens.local.clip = 20.0 * tasks.window.n_context
    return tasks.window


class Chunks:
    """Tasks in chunks of equal sizes, made once and kept while batches are drawn from them.

    Parameters
    ----------
    seed : int
        Seed of all chunks.
    n_chunks, n_steps : int
        How many are made in how many steps.
    batch_points : int
        Points of a batch, contexts and targets together: windows are few where they are long.
    """

    def __init__(self, seed: int, n_chunks: int, n_steps: int, batch_points: int) -> None:
        self.seed, self.n_chunks, self.n_steps, self.batch_points = seed, n_chunks, n_steps, batch_points
        self.kept: dict[int, Tasks] = {}

    def chunk(self, number: int, n_series: int) -> Tasks:
        """Make a chunk."""
        rng = np.random.default_rng([self.seed, number])
        return make_tasks(n_series, draw_sizes(rng), int(rng.integers(2**31)))

    def batch(self, step: int) -> Tasks:
        """Batch of a step: of one of the latest chunks, of which there are more and more."""
        made = 1 + step * self.n_chunks // self.n_steps
        rng = np.random.default_rng([self.seed, step, 0])
        number = int(rng.integers(max(0, made - KEPT), made))
        self.kept = {n: tasks for n, tasks in self.kept.items() if n >= made - KEPT}
        if number not in self.kept:
            self.kept[number] = self.chunk(number, SERIES)
        tasks = self.kept[number]
        size = max(16, min(LARGEST_BATCH, self.batch_points // tasks.window.y.shape[1]))
        return tasks.rows(torch.as_tensor(rng.permutation(len(tasks))[:size]))

    def held_out(self, n_chunks: int) -> list[Tasks]:
        """Tasks of series that no batch holds."""
        return [
            self.chunk(HELD_OUT + number, SERIES // 2).rows(slice(0, None, 4)) for number in range(n_chunks)
        ]


def decile_scores(net: DirectTaylorformer, tasks: Tasks) -> tuple[Tensor, Tensor]:
    """Pinball loss over the deciles, and coverage of the central 80 %, of every task."""
    window = show(net, tasks)
    # Without the noise of one linear forecast, which those of many series have not: the marginals.
    found = deciles(net(window), N_PATHS)
    y, observed = window.targets
    inside = (y >= found[0]) & (y <= found[-1]) & observed
    n = observed.sum((1, 2))
    return pinball(found, window).sum((1, 2)) / n, inside.sum((1, 2)) / n


@torch.no_grad()
def validate(net: DirectTaylorformer, held_out: list[Tasks]) -> dict[str, list[float]]:
    """Scores for every weight: ratio to the linear forecast (geometric mean over tasks), and coverage."""
    net.eval()
    found: dict[str, list[float]] = {}
    base = torch.ones(())
    for weight in NETWORK_WEIGHTS:
        net.calibration.set(weight=weight)
        scores = [decile_scores(net, tasks) for tasks in held_out]
        loss = torch.cat([loss for loss, _ in scores]).clamp_min(1e-4)
        coverage = torch.cat([coverage for _, coverage in scores]).mean().item()
        base = loss if weight == NETWORK_WEIGHTS[0] else base
        found[f"{weight:g}"] = [round((loss / base).log().mean().exp().item(), 4), round(coverage, 3)]
    net.calibration.set(weight=1.0)
    return found


def train(args: argparse.Namespace) -> None:
    """Train, with checkpoints; then write the network and its card."""
    chunks = Chunks(args.seed, args.chunks, args.steps, args.batch_points)
    held_out = chunks.held_out(2 if args.quick else 12)
    net = build().to(args.device)
    optimizer, schedule = make_optimizer(net, args.lr, args.steps)
    checkpoint, first, seconds = args.out.with_suffix(".ckpt"), 0, 0.0
    if checkpoint.exists():
        state = torch.load(checkpoint, args.device, weights_only=True)
        net.load_state_dict(state["net"])
        optimizer.load_state_dict(state["optimizer"])
        schedule.load_state_dict(state["schedule"])
        first, seconds = state["step"], state["seconds"]
    start, total = time.process_time() - seconds, 0.0
    scores: dict[str, list[float]] = {}
    for step in range(first, args.steps):
        tasks = chunks.batch(step).to(args.device)
        window = show(net.train(), tasks)
        loss = training_loss(net(window), window)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), GRADIENT_CLIP)
        optimizer.step()
        schedule.step()
        total += loss.item()
        if (step + 1) % args.every == 0 or step + 1 == args.steps:
            seconds = time.process_time() - start
            scores = validate(net.to("cpu"), held_out)
            n = (step + 1 - first) % args.every or args.every
            print(f"step {step + 1}, {seconds:.0f} s, loss {total / n:.4f}, held out {scores}", flush=True)
            total = 0.0
            parts = {"net": net.state_dict(), "optimizer": optimizer.state_dict()}
            torch.save(
                {**parts, "schedule": schedule.state_dict(), "step": step + 1, "seconds": seconds}, checkpoint
            )
            net.to(args.device)
    weight = min(NETWORK_WEIGHTS, key=lambda value: scores[f"{value:g}"][0])
    command = f"train.py --steps {args.steps} --chunks {args.chunks} --lr {args.lr:g} --seed {args.seed}"
    command += f" --batch-points {args.batch_points}"
    save_pretrained(net.cpu(), args.out, SETTINGS, weight, made_by=command)
    args.out.with_suffix(".md").write_text(card(net, command, weight, scores, seconds))


def card(
    net: DirectTaylorformer, command: str, weight: float, scores: dict[str, list[float]], seconds: float
) -> str:
    """Return the model card."""
    machine = platform.machine()
    n_parameters = sum(p.numel() for p in net.parameters() if p.requires_grad)
    lines = [f"| {name} | {ratio:.3f} | {coverage:.2f} |" for name, (ratio, coverage) in scores.items()]
    table = "\n".join(["| weight | loss | coverage of 80 % |", "|---|---|---|", *lines])
    return f"""# A pretrained network for TaylorformerForecaster

Made by `examples/pretrain/{command}`
in {seconds / 60:.0f} minutes of one core; torch {torch.__version__}, numpy {np.__version__}, {machine}.

- **Network.** A Taylorformer of {n_parameters:,} parameters, stored in half precision, around a linear
  forecast that is fitted to every series anew and is not in the file. It predicts all targets from the
  context in one pass (`DirectTaylorformer`). `{json.dumps(SETTINGS)}`
- **Data.** Series of `taylorformer_forecast.synthetic` only; no real one. Contexts from 12 to about
  300 points, up to 97 steps ahead, training parts of two to about fourteen contexts. The network sees
  {MAX_CYCLES}
  seasons, the shortest, nine times in ten.
- **Loss.** Negative log-likelihood of every target given the context. AdamW with warm-up and cosine.
- **Held-out series.** Pinball loss over the deciles, relative to the linear forecast alone
  (weight 0; geometric mean over tasks), and coverage of the central 80 %:

{table}

Series too short to choose a weight are forecast with weight {weight:g}.

- **Limits.** It has seen no covariates but phases of seasons, nothing beyond 97 steps from one context, and
  no kind of series that the generator does not make.
"""


def main() -> None:
    """Read the arguments and train."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, default=Path("prior.safetensors"), metavar="FILE.safetensors")
    parser.add_argument("--steps", type=int, default=5000)
    parser.add_argument("--chunks", type=int, default=700, help=f"of {SERIES} series each")
    parser.add_argument("--batch-points", type=int, default=8192, help="points of a batch")
    parser.add_argument("--lr", type=float, default=2e-3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--every", type=int, default=500, help="steps between checkpoints")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--quick", action="store_true", help="three steps, as a check")
    args = parser.parse_args()
    if args.quick:
        args.steps, args.chunks, args.every = 3, 2, 2
    torch.set_num_threads(1)  # so that one seed gives one file
    with private_rng(args.seed):
        train(args)


if __name__ == "__main__":
    main()
