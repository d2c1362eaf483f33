"""Speed of attention in continuous time: the closed form, the solvers, and ordinary attention.

One layer, 32 windows, width 32, four heads, forward and backward, causal:

plain
    Ordinary attention, PyTorch's fused kernel with a causal mask, and its projections.
closed
    Linear dynamics in closed form, the default of
    :class:`~taylorformer_forecast.core.continuous.attention.ContinuousAttention`.
closed, both sides
    The same, later points included.
midpoint, rk4
    Dynamics by a network, every key followed once through all times.
pairwise
    The same, an equation of its own for every pair and three quadrature nodes, as the published code does. It
    is run on few windows, for its memory, and its time is scaled to 32.

Closed form and a solver of the fourth order must agree to 1e-5 on the same linear field, in double precision.

One thread is used and times are its processor times: kernels take turns, and the smallest time of each
counts, so that other work on the machine disturbs them little. Ratios mean more than seconds. Run from a
checkout::

    python examples/benchmark/contiformer_speed.py --out contiformer_speed.json
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor, nn

from taylorformer_forecast.core.attention.layer import MultiHeadAttention
from taylorformer_forecast.core.continuous.attention import ContinuousAttention

sys.path.append(str(Path(__file__).parents[2] / "tests" / "core"))
from reference_solvers import PairwiseAttention

WINDOWS, WIDTH, HEADS, SEED, TOLERANCE = 32, 32, 4, 0, 1e-5
PAIRWISE_WINDOWS = 2
LAYERS = {
    "closed": {},
    "closed, both sides": {"both_sides": True},
    "midpoint": {"dynamics": "mlp"},
    "rk4": {"dynamics": "mlp", "solver": "rk4"},
    "pairwise": {"dynamics": "mlp"},
}


def reference_points(n_windows: int, n: int) -> tuple[Tensor, Tensor]:
    """States at random times, in order."""
    generator = torch.Generator().manual_seed(SEED)
    x = torch.randn(n_windows, n, WIDTH, generator=generator)
    return x.requires_grad_(), torch.rand(n_windows, n, generator=generator).sort(1).values


def make(kind: type[ContinuousAttention] = ContinuousAttention, **options: object) -> ContinuousAttention:
    """Build a layer; fields of networks are not left at zero."""
    torch.manual_seed(SEED)
    layer = kind(WIDTH, HEADS, WIDTH // HEADS, **options)
    for field in (layer.key_field, layer.value_field):
        if hasattr(field, "inner"):
            nn.init.xavier_uniform_(field.inner.weight)
    return layer


def contestants(n: int) -> dict[str, tuple[Callable[[], Tensor], float]]:
    """Calls of every layer, and what their times are multiplied by."""
    x, t = reference_points(WINDOWS, n)
    few, t_few = reference_points(PAIRWISE_WINDOWS, n)
    torch.manual_seed(SEED)
    plain = MultiHeadAttention(WIDTH, WIDTH, HEADS, WIDTH // HEADS)
    mask = torch.ones(1, n, n, dtype=torch.bool).tril()
    calls: dict[str, tuple[Callable[[], Tensor], float]] = {"plain": (lambda: plain(x, x, mask), 1.0)}
    for name, options in LAYERS.items():
        layer = make(PairwiseAttention if name == "pairwise" else ContinuousAttention, **options)
        if name == "pairwise":
            calls[name] = (lambda layer=layer: layer(few, t_few), WINDOWS / PAIRWISE_WINDOWS)
        else:
            calls[name] = (lambda layer=layer: layer(x, t), 1.0)
    return calls


def measure(n: int, repeats: int) -> dict[str, float]:
    """Seconds of a forward and backward pass of every layer."""
    calls = contestants(n)
    best = dict.fromkeys(calls, float("inf"))
    for repeat in range(repeats + 1):
        for name, (call, factor) in calls.items():
            start = time.process_time()
            call().sum().backward()
            took = factor * (time.process_time() - start)
            if repeat:  # the first warms up
                best[name] = min(best[name], took)
    return best


def disagreement(n: int) -> float:
    """Largest difference between closed form and solver, relative to the output, in double precision."""
    x, t = reference_points(2, n)
    closed, solved = make(fastest=1.0).double(), make(fastest=1.0, solver="rk4").double()
    solved.load_state_dict(closed.state_dict())
    with torch.no_grad():
        expected = closed(x.double(), t.double())
        return ((solved(x.double(), t.double()) - expected).abs().max() / expected.abs().max()).item()


def processor() -> str:
    """Name of the processor, where the system tells it."""
    info = Path("/proc/cpuinfo")
    names = [line for line in info.read_text().splitlines() if "model name" in line] if info.exists() else []
    return names[0].partition(":")[2].strip() if names else platform.processor() or platform.machine()


def main() -> None:
    """Compare, print a table, write the numbers."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="few points and repeats, as a check")
    parser.add_argument("--out", type=Path, metavar="FILE.json", help="where to write the numbers")
    args = parser.parse_args()
    torch.set_num_threads(1)

    print("".join(f"{name:>20}" for name in ("points", "layer", "seconds", "times plain")))
    rows, difference = [], 0.0
    for n in (24,) if args.quick else (96, 192):
        took = measure(n, repeats=2 if args.quick else 5)
        difference = max(difference, disagreement(n))
        for name, seconds in took.items():
            print(f"{n:>20}{name:>20}{seconds:>20.4f}{seconds / took['plain']:>20.1f}", flush=True)
        row = {"points": n, "seconds": took, "closed_by_plain": took["closed"] / took["plain"]}
        rows.append({**row, "pairwise_by_closed": took["pairwise"] / took["closed"]})
    print(f"closed form and solver differ by {difference:.1e}")
    if args.out is not None:
        setting = {
            "torch": torch.__version__,
            "python": platform.python_version(),
            "processor": processor(),
            "threads": torch.get_num_threads(),
            "seed": SEED,
            "windows": WINDOWS,
            "width": WIDTH,
            "heads": HEADS,
            "pairwise_windows": PAIRWISE_WINDOWS,
            "difference": difference,
        }
        args.out.write_text(json.dumps({**setting, "rows": rows}, indent=2) + "\n")
    if difference > TOLERANCE:
        raise SystemExit(f"closed form and solver differ by more than {TOLERANCE}")


if __name__ == "__main__":
    main()
