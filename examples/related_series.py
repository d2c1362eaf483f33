"""Two related series as one set of points: what is gained by knowing which series each point belongs to.

Every sequence has a function of its own, drawn from a Gaussian process, and two series that observe it at
random times, each shifted by a constant of its own:

    f ~ GP(0, RBF with variance 1 and length 1),  x_i ~ U[5, 15],  k_i in {0, 1} at random,
    y_i = f(x_i) + e_{k_i},  e_0, e_1 ~ N(0, 2) once for each sequence          (--noise offset, the default)
    y_i = f(x_i) + e_i,      e_i ~ N(0, 2) for each point                        (--noise iid)

The network :class:`~taylorformer_forecast.models.unn.UNN` predicts every point from those before it. With
``history_indicator=False`` it does not know which series they belong to. Both are compared with the exact
conditional distributions of the process, and with those of a Gaussian process that is blind to the series:
its covariance is averaged over them. (The points are a mixture of Gaussians to one who is blind, and k of the
point itself is known to the network, so that this is a mark rather than a bound.) Under iid noise k says
nothing, and both marks are the same.

Numbers are nats per point, over the points from the second on, in the units of y. Run from a checkout::

    python examples/related_series.py                              # both networks, a few minutes
    python examples/related_series.py --sizes 1x1 1x8 2x8 3x8 --seeds 0 1 2   # layers x heads
    python examples/related_series.py --quick
"""

from __future__ import annotations

import argparse
import json
import math
import platform
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path

import torch
from torch import Tensor

import taylorformer_forecast
from taylorformer_forecast.core.window import Window
from taylorformer_forecast.engine.state import private_rng
from taylorformer_forecast.engine.training import fit
from taylorformer_forecast.models.unn import UNN

VARIANCE, JITTER = 2.0, 1e-6  # of the noise, and of what makes the covariance of f invertible
SPREAD = math.sqrt(1.0 + VARIANCE)  # standard deviation of y


@dataclass
class Sequences:
    """Endless batches of sequences, and the exact distributions of their points.

    Parameters
    ----------
    noise : {"offset", "iid"}
        Whether the noise is one shift of each series or drawn for each point.
    n_points, batch_size : int
        Points of a sequence, sequences of a batch.
    seed : int
        Seed of the batches.
    """

    noise: str = "offset"
    n_points: int = 50
    batch_size: int = 64
    seed: int = 0
    generator: torch.Generator = field(default_factory=torch.Generator)

    def __post_init__(self) -> None:
        """Seed the generator."""
        self.generator.manual_seed(self.seed)

    def draw(self) -> tuple[Tensor, Tensor, Tensor]:
        """Times, series and values of a batch, each (B, N)."""
        shape, g = (self.batch_size, self.n_points), self.generator
        x = 5 + 10 * torch.rand(shape, generator=g, dtype=torch.float64)
        k = torch.randint(2, shape, generator=g)
        normal = torch.randn(shape, generator=g, dtype=torch.float64)
        f = (torch.linalg.cholesky(self.of_function(x)) @ normal[..., None])[..., 0]
        offset = torch.randn(shape[0], 2, generator=g, dtype=torch.float64).gather(1, k)
        noise = offset if self.noise == "offset" else torch.randn(shape, generator=g, dtype=torch.float64)
        return x, k, f + math.sqrt(VARIANCE) * noise

    def of_function(self, x: Tensor) -> Tensor:
        """Covariance of f at the times of every sequence, (B, N, N)."""
        kernel = torch.exp(-0.5 * (x[:, :, None] - x[:, None]).square())
        return kernel + JITTER * torch.eye(x.shape[1], dtype=x.dtype)

    def exact(self, x: Tensor, k: Tensor, y: Tensor, blind: bool) -> Tensor:
        """Log-density of every point given those before it, (B, N): with k, or averaged over it."""
        eye = torch.eye(x.shape[1], dtype=x.dtype)
        if self.noise == "iid":
            noise = eye
        elif blind:  # another point is of the same series with probability 1/2
            noise = (1 + eye) / 2
        else:
            noise = (k[:, :, None] == k[:, None]).to(x.dtype)
        factor = torch.linalg.cholesky(self.of_function(x) + VARIANCE * noise)
        z = torch.linalg.solve_triangular(factor, y[..., None], upper=False)[..., 0]
        return -0.5 * z**2 - torch.diagonal(factor, dim1=1, dim2=2).log() - 0.5 * math.log(2 * math.pi)

    def __iter__(self) -> Iterator[Window]:
        """Yield windows without context: the points come in random order, and all of them are scored."""
        while True:
            yield as_window(*self.draw())


def as_window(x: Tensor, k: Tensor, y: Tensor) -> Window:
    """Times on [-1, 1] and values of variance 1, in single precision."""
    return Window(((x - 10) / 5).float(), (y / SPREAD)[..., None].float(), series=k, n_context=0)


@torch.no_grad()
def score(net: UNN, window: Window) -> Tensor:
    """Log-density of every point under the network, (B, N), in the units of y."""
    parts = [window.rows(slice(first, first + 200)) for first in range(0, len(window.y), 200)]
    return torch.cat([net(part).log_prob(part.y)[..., 0] for part in parts]).double() - math.log(SPREAD)


def train(sequences: Sequences, steps: int, lr: float, **options: object) -> tuple[UNN, float]:
    """Train a network, and say how many seconds of the processor it took."""
    start = time.process_time()
    with private_rng(sequences.seed):
        net = UNN(n_series=2, **options)  # type: ignore[arg-type]
        fit(net, sequences, max_steps=steps, lr=lr, device="cpu")
    return net, time.process_time() - start


def mean_and_error(values: Tensor) -> tuple[float, float]:
    """Mean from the second point on, and its standard error over sequences."""
    each = values[:, 1:].mean(1)
    return each.mean().item(), each.std().item() / len(each) ** 0.5


def main(arguments: list[str] | None = None) -> dict[str, object]:
    """Train both networks of each size, print the table, write the numbers."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--noise", choices=("offset", "iid"), default="offset")
    parser.add_argument("--points", type=int, default=50, help="points of a sequence")
    parser.add_argument("--steps", type=int, default=1500, help="optimiser steps")
    parser.add_argument("--lr", type=float, default=3e-3)
    parser.add_argument("--sizes", nargs="+", default=["2x8"], help="layers x heads of the networks")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0], help="of networks and their sequences")
    parser.add_argument("--quick", action="store_true", help="a few steps, as a check")
    parser.add_argument("--out", type=Path, metavar="FILE.json", help="where to write the numbers")
    args = parser.parse_args(arguments)
    steps, n_test = (20, 100) if args.quick else (args.steps, 1000)
    torch.set_num_threads(1)

    test = Sequences(args.noise, args.points, n_test, seed=1_000_000)
    points = test.draw()
    window = as_window(*points)
    knowing, blind = (mean_and_error(test.exact(*points, blind=b)) for b in (False, True))
    print(f"{args.noise} noise, {args.points} points: exact {knowing[0]:.2f}, blind to k {blind[0]:.2f}")
    print(f"{'layers x heads':>15}{'knows k':>9}{'nats':>9}{'+-':>7}{'gap':>7}{'gain':>7}{'seconds':>9}")
    rows = []
    for size, seed in product(args.sizes, args.seeds):
        n_layers, n_heads = (int(number) for number in size.split("x"))
        scores = {}
        for indicator in (False, True):
            sequences = Sequences(args.noise, args.points, seed=seed)
            net, seconds = train(
                sequences, steps, args.lr, n_layers=n_layers, n_heads=n_heads, history_indicator=indicator
            )
            scores[indicator] = score(net, window)
            nats, error = mean_and_error(scores[indicator])
            row = {"layers": n_layers, "heads": n_heads, "history_indicator": indicator, "seed": seed}
            row |= {"nats": nats, "standard_error": error, "gap_to_exact": knowing[0] - nats}
            row["seconds"] = seconds
            row["parameters"] = sum(parameter.numel() for parameter in net.parameters())
            print(f"{size:>15}{indicator!s:>9}{nats:9.3f}{error:7.3f}{row['gap_to_exact']:7.2f}", end="")
            if indicator:
                row["gain"], row["gain_error"] = mean_and_error(scores[True] - scores[False])
                print(f"{row['gain']:7.2f}", end="")
            print(f"{'' if indicator else ' ' * 7}{seconds:9.0f}", flush=True)
            rows.append(row)
    result = {
        "torch": torch.__version__,
        "package": taylorformer_forecast.__version__,
        "processor": platform.processor() or platform.machine(),
        "threads": torch.get_num_threads(),
        "noise": args.noise,
        "points": args.points,
        "steps": steps,
        "batch_size": Sequences.batch_size,
        "lr": args.lr,
        "test_sequences": n_test,
        "exact": knowing[0],
        "exact_blind_to_series": blind[0],
        "rows": rows,
    }
    if args.out is not None:
        args.out.write_text(json.dumps(result, indent=2) + "\n")
    return result


if __name__ == "__main__":
    main()
