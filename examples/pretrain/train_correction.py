"""Train the correction of the statistical combination on synthetic series, and write it with a card.

    python examples/pretrain/train_correction.py --out correction.safetensors     # on one core
    python examples/pretrain/train_correction.py --out correction.safetensors --device cuda --steps 100000
    python examples/pretrain/train_correction.py --quick                          # a check, in seconds

The file goes to ``TaylorformerForecaster(pretrained="correction.safetensors")``. Training that was killed
goes on from its checkpoint, bit for bit: batches depend on the seed and the number of the step alone. With
``--init FILE`` it starts from the weights of a file, the optimiser anew, and the result is half way between
those weights and where it came to (Wortsman et al., "Robust fine-tuning of zero-shot models", 2022).
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from correction_tasks import CorrectionTasks, deciles, make_correction_tasks, nothing, pinball
from safetensors import safe_open

from taylorformer_forecast.engine.state import private_rng
from taylorformer_forecast.engine.statistics.correction import HEADER, load_correction, save_correction
from taylorformer_forecast.models.correction import CorrectionNet

SERIES = 96  # of a chunk, all of one length
KEPT = 150  # chunks that batches are drawn from, the latest
STEPS_PER_CHUNK = 4
BATCH = 128  # tasks
CLIP = 1.0
DECAY = 0.02  # of weights
WARM_UP = 300  # steps
AVERAGED = 1000  # steps that weights are averaged over
HELD_OUT = 2**20  # chunks from this number on are for validation


class Chunks:
    """Chunks of tasks of one length each, made once and kept while batches are drawn from them."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.kept: dict[int, CorrectionTasks] = {}

    def batch(self, step: int) -> CorrectionTasks:
        """Batch of a step: of one of the latest chunks, of which there are more and more."""
        made = 1 + step // STEPS_PER_CHUNK
        rng = np.random.default_rng((self.seed, step, 0))
        number = int(rng.integers(max(0, made - KEPT), made))
        self.kept = {n: tasks for n, tasks in self.kept.items() if n >= made - KEPT}
        if number not in self.kept:
            self.kept[number] = make_correction_tasks(SERIES, (self.seed, number))
        tasks = self.kept[number]
        return tasks.rows(torch.as_tensor(rng.permutation(len(tasks))[:BATCH]))

    def held_out(self, n_chunks: int) -> list[CorrectionTasks]:
        """Tasks of series that no batch holds."""
        return [make_correction_tasks(SERIES // 2, (self.seed, HELD_OUT + n)) for n in range(n_chunks)]


@torch.no_grad()
def validate(net: CorrectionNet, held_out: list[CorrectionTasks], weight: float) -> dict[str, float]:
    """Pinball loss relative to the combination alone: of the sums, and the geometric mean over tasks."""
    losses, before, inside, count = [], [], 0.0, 0.0
    for tasks in held_out:
        found = deciles(net(tasks.features).partly(weight, weight), tasks)
        losses.append(pinball(found, tasks))
        before.append(pinball(deciles(nothing(tasks), tasks), tasks))
        known = tasks.weight > 0
        inside += float(((tasks.truth >= found[..., 0]) & (tasks.truth <= found[..., -1]))[known].sum())
        count += float(known.sum())
    loss, base = torch.cat(losses), torch.cat(before).clamp_min(1e-4)
    ratio = (loss.clamp_min(1e-4) / base).log().mean().exp().item()
    return {
        "mean": round((loss.mean() / base.mean()).item(), 4),
        "geometric_mean": round(ratio, 4),
        "coverage": round(inside / count, 3),
    }


def save_checkpoint(path: Path, state: dict[str, Any]) -> None:
    """Write a checkpoint so that a kill leaves the old one or the new one."""
    torch.save(state, path.with_suffix(".tmp"))
    os.replace(path.with_suffix(".tmp"), path)


def learning_rate(step: int, args: argparse.Namespace) -> float:
    """Warm-up, then a cosine down to a fiftieth."""
    cosine = 0.5 * (1 + math.cos(math.pi * min(step / args.steps, 1.0)))
    return float(args.lr * min(1.0, (step + 1) / WARM_UP) * (0.98 * cosine + 0.02))


def train(args: argparse.Namespace) -> None:
    """Train, with checkpoints; then write the file and its card."""
    chunks = Chunks(args.seed)
    held_out = chunks.held_out(3 if args.quick else 60)
    net = CorrectionNet(args.d_model, 4, args.n_layers)
    if args.init:
        net = load_correction(args.init).train()
    net.to(args.device)
    sizes = net.sizes
    first_weights = {name: value.cpu().clone() for name, value in net.state_dict().items()}
    average = {name: value.clone() for name, value in first_weights.items()}
    optimizer = torch.optim.AdamW(net.parameters(), lr=args.lr, weight_decay=DECAY)
    checkpoint, first, seconds = args.out.with_suffix(".ckpt"), 0, 0.0
    curve: list[dict[str, Any]] = []
    if checkpoint.exists():
        state = torch.load(checkpoint, args.device, weights_only=True)
        net.load_state_dict(state["net"])
        optimizer.load_state_dict(state["optimizer"])
        average = {name: value.cpu() for name, value in state["average"].items()}
        first, seconds, curve = (state[k] for k in ("step", "seconds", "curve"))
    start = time.process_time() - seconds
    for step in range(first, args.steps):
        tasks = chunks.batch(step).to(args.device)
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(step, args)
        loss = pinball(deciles(net(tasks.features), tasks), tasks).mean()
        optimizer.zero_grad()
        loss.backward()
        if torch.isfinite(torch.nn.utils.clip_grad_norm_(net.parameters(), CLIP)):
            optimizer.step()  # one step that is not finite would spoil all weights
        part = max(1 / AVERAGED, 10 / (step + 11))
        for name, value in net.state_dict().items():
            average[name].lerp_(value.to("cpu"), part)
        if (step + 1) % args.every == 0 or step + 1 == args.steps:
            seconds = time.process_time() - start
            averaged = CorrectionNet(**sizes).eval()
            averaged.load_state_dict(average)
            curve.append({"step": step + 1, "seconds": round(seconds), **validate(averaged, held_out, 1.0)})
            print(json.dumps(curve[-1]), flush=True)
            parts = {"net": net.state_dict(), "optimizer": optimizer.state_dict(), "average": average}
            save_checkpoint(checkpoint, {**parts, "step": step + 1, "seconds": seconds, "curve": curve})
    command = f"train_correction.py --steps {args.steps} --lr {args.lr:g} --seed {args.seed}"
    command += f" --d-model {sizes['d_model']} --n-layers {sizes['n_layers']}"
    if args.init:
        average = {name: value.lerp(first_weights[name], 0.5) for name, value in average.items()}
        command = f"{made_by(args.init)}; {command} --init {args.init.name}"
    averaged = CorrectionNet(**sizes).eval()
    averaged.load_state_dict(average)
    if args.init:
        curve.append({**curve[-1], "step": "half way back", **validate(averaged, held_out, 1.0)})
    save_correction(averaged, args.out, args.weight, made_by=command)
    args.out.with_suffix(".md").write_text(card(averaged, command.replace("; ", "\n    "), args, curve))


def made_by(path: Path) -> str:
    """What a file says of how it was made."""
    with safe_open(path, "pt") as file:
        return str(json.loads(file.metadata()[HEADER])["made_by"])


def card(net: CorrectionNet, command: str, args: argparse.Namespace, curve: list[dict[str, Any]]) -> str:
    """Return the model card."""
    n_parameters = sum(p.numel() for p in net.parameters())
    rows = curve[:: max(len(curve) // 12, 1)]
    rows += curve[-1:] if rows[-1] is not curve[-1] else []
    lines = [
        f"| {row['step']} | {row['seconds'] / 60:.0f} | {row['mean']:.4f} | {row['geometric_mean']:.4f} "
        f"| {row['coverage']:.3f} |"
        for row in rows
    ]
    table = "\n".join(lines)
    return f"""# A network that corrects statistical forecasts

Made in `examples/pretrain` by

    {command}

The last of these took {curve[-1]["seconds"] / 60:.0f} minutes of one core; torch {torch.__version__},
numpy {np.__version__}, {platform.machine()}.

- **Network.** A transformer of {n_parameters:,} parameters, stored in half precision. It sees patches of the
  latest values, their one-step errors and the forecasts of four families of members of the statistical
  combination, and moves locations and widths of all steps at once. `{json.dumps(net.sizes)}`
- **Data.** Series of `taylorformer_forecast.synthetic` only; no real one. Regular times, histories of 10 to
  300 points, up to 60 steps ahead, any season or none.
- **Loss.** Pinball loss over nine deciles of the whole forecast, in scales of its errors. AdamW with
  warm-up and cosine, averaged weights.
- **Weight.** {args.weight:.2g} of the correction is taken: of the shift of locations, and of the logarithms
  of the factors of widths.
- **Held-out synthetic series.** Pinball loss relative to the combination alone (with all of the
  correction), of sums and as geometric mean over tasks, and coverage of the central 80 %:

| steps | minutes | loss | geometric mean | coverage |
|---|---|---|---|---|
{table}

- **Limits.** Synthetic scores say how far training went, not how well real series are forecast. It has seen
  no covariates and no irregular times, and leaves intermittent demand as it is.
"""


def main(argv: list[str] | None = None) -> None:
    """Read the arguments and train."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--out", type=Path, default=Path("correction.safetensors"), metavar="FILE.safetensors"
    )
    parser.add_argument("--init", type=Path, help="a file whose weights training starts from")
    parser.add_argument("--d-model", type=int, default=64, help="width of a new network")
    parser.add_argument("--n-layers", type=int, default=4, help="layers of a new network")
    parser.add_argument("--steps", type=int, default=20000)
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--weight", type=float, default=0.5, help="part of the correction that is taken")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--every", type=int, default=500, help="steps between checkpoints")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--quick", action="store_true", help="three steps, as a check")
    args = parser.parse_args(argv)
    if args.quick:
        args.steps, args.every = 3, 2
    torch.set_num_threads(1)  # so that one seed gives one file
    with private_rng(args.seed):
        train(args)


if __name__ == "__main__":
    main()
