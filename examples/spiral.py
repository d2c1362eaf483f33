"""Spirals seen at irregular times: what lies between the points, and where the curve goes on.

A ContiFormer is trained on 300 noisy spirals in the plane, which turn either way and start anywhere. Of each,
50 points of the first half, at irregular times, are known; it then says where every other point of the first
half is (interpolation) and the whole second half (extrapolation). Prints the errors on spirals that it has
not seen, beside straight lines between the known points that go on as the last two did, and draws three of
them.

Run from a checkout, in less than a minute::

    python examples/spiral.py --output spiral.png
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import matplotlib

matplotlib.use("Agg")  # a file is written; no screen is needed
import matplotlib.pyplot as plt
import numpy as np
import torch
from torch import Tensor

from taylorformer_forecast.core.protocol import training_loss
from taylorformer_forecast.core.window import Window
from taylorformer_forecast.defaults import GRADIENT_CLIP
from taylorformer_forecast.engine.lightning import make_optimizer
from taylorformer_forecast.models.contiformer import ContiFormer

POINTS, KNOWN, NOISE = 150, 50, 0.05  # of a spiral, of its first half, standard deviation


def spirals(n: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Times (n, POINTS) from -1 to 1, irregular, and places (n, POINTS, 2) without noise."""

    def uniform(low: float, high: float, *shape: int) -> Tensor:
        return low + (high - low) * torch.rand(*shape, generator=generator)

    gaps = uniform(0.2, 1.8, n, POINTS)
    t = 2 * gaps.cumsum(1) / gaps.sum(1, keepdim=True) - 1
    turn = torch.where(uniform(-1, 1, n, 1) > 0, 1.0, -1.0)  # clockwise or not
    angle = turn * uniform(2.5, 3.5, n, 1) * np.pi * (t + 1) / 2 + uniform(0, 2 * np.pi, n, 1)
    radius = uniform(0.2, 0.4, n, 1) + uniform(0.4, 0.6, n, 1) * (t + 1)
    return t, torch.stack([radius * angle.cos(), radius * angle.sin()], -1)


def split(t: Tensor, places: Tensor, generator: torch.Generator) -> Window:
    """Known points of the first half as the context, all others as targets, both in order of time."""
    half = POINTS // 2
    known = torch.rand(len(t), half, generator=generator).argsort(1)[:, :KNOWN].sort(1).values
    rest = torch.ones(len(t), POINTS, dtype=torch.bool).scatter(1, known, False)
    order = torch.cat([known, rest.nonzero()[:, 1].view(len(t), -1)], 1)
    noisy = places + NOISE * torch.randn(places.shape, generator=generator)
    return Window(t, noisy, n_context=KNOWN).reorder(order)


def some_targets(window: Window, n: int, generator: torch.Generator) -> Window:
    """Return the windows with as many of their targets, the same of all, which makes training faster."""
    order = torch.randperm(window.n_targets, generator=generator)
    return window.reorder_targets(order.expand(len(window.y), -1)).points(slice(0, KNOWN + n))


def train(window: Window, n_steps: int, generator: torch.Generator) -> ContiFormer:
    """Fit a small network, which sees known points on both sides of a time."""
    net = ContiFormer(dim_y=2, d_model=32, n_layers=2, distribution="normal", both_sides=True, dropout=0.0)
    optimizer, schedule = make_optimizer(net, lr=1e-2, max_steps=n_steps)
    for _ in range(n_steps):
        rows = torch.randint(len(window.y), (32,), generator=generator)
        batch = some_targets(window.rows(rows), 14, generator)
        loss = training_loss(net(batch), batch)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), GRADIENT_CLIP)
        optimizer.step()
        schedule.step()
    return net.eval()


def straight_lines(window: Window) -> Tensor:
    """Lines through the known points; they go on as between the last two."""
    t, y, at = window.t[:, :KNOWN], window.y[:, :KNOWN], window.t[:, KNOWN:].contiguous()
    right = torch.searchsorted(t.contiguous(), at).clamp(1, KNOWN - 1)

    def take(v: Tensor, index: Tensor) -> Tensor:
        return v.gather(1, index[..., None].expand(-1, -1, 2))

    start, end = t.gather(1, right - 1), t.gather(1, right)
    return torch.lerp(take(y, right - 1), take(y, right), ((at - start) / (end - start))[..., None])


def draw(axes: plt.Axes, window: Window, truth: Tensor, mean: Tensor, deviation: Tensor) -> None:
    """One spiral: the curve, what is known of it, the forecast with circles of one deviation."""
    order = window.t[0].argsort()
    axes.plot(*truth[0, order].T, color="#c9ced6", lw=4, label="spiral", zorder=0)
    axes.scatter(*window.y[0, :KNOWN].T, s=12, color="#1c2b3a", label="known", zorder=3)
    later = window.t[0, KNOWN:] > window.t[0, KNOWN - 1]
    for part, color, name in ((~later, "#c8553d", "between"), (later, "#3b6fb6", "beyond")):
        at = window.t[0, KNOWN:][part].argsort()
        x, y = mean[0, part][at].T
        axes.plot(x, y, ".-", color=color, lw=0.8, ms=4, label=name)
        for a, b, r in zip(x, y, deviation[0, part][at].mean(-1), strict=True):
            axes.add_patch(plt.Circle((float(a), float(b)), float(r), color=color, alpha=0.05, lw=0))
    axes.set_aspect("equal")
    axes.set_axis_off()


def main() -> None:
    """Train, print the errors, save the picture."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    default = Path(__file__).parent / "output" / "spiral.png"
    parser.add_argument("--output", type=Path, default=default, help="where to save the picture")
    parser.add_argument("--steps", type=int, default=300, help="optimiser steps")
    args = parser.parse_args()
    start, generator = time.perf_counter(), torch.Generator().manual_seed(0)
    torch.manual_seed(0)

    t, places = spirals(100, generator)
    window = split(t, places, generator)
    net = train(split(*spirals(300, generator), generator), args.steps, generator)
    by_time = torch.searchsorted(t, window.t.contiguous())
    truth = places.gather(1, by_time[..., None].expand(-1, -1, 2))
    with torch.no_grad():
        distribution = net(window)
    mean, deviation = distribution.mean, distribution.stddev
    later = window.t[:, KNOWN:] > t[:, POINTS // 2 - 1, None]
    print("Root mean square error of places on 100 spirals not seen before, noise 0.05\n")
    print(f"{'':<16}{'ContiFormer':>12}{'lines':>12}{'predicted':>12}")
    for name, part in (("interpolation", ~later), ("extrapolation", later)):
        errors = [(p - truth[:, KNOWN:])[part].square().mean().sqrt() for p in (mean, straight_lines(window))]
        expected = (deviation[part].square() - NOISE**2).clamp_min(0.0).mean().sqrt()
        print(f"{name:<16}" + "".join(f"{e.item():12.3f}" for e in (*errors, expected)))

    figure, axes = plt.subplots(1, 3, figsize=(11, 4), layout="constrained")
    for i, axis in enumerate(axes):
        one = slice(i, i + 1)
        draw(axis, window.rows(one), truth[one], mean[one], deviation[one])
    axes[0].legend(frameon=False, fontsize=8, loc="upper left")
    args.output.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(args.output, dpi=130)
    print(f"\nSaved {args.output} after {time.perf_counter() - start:.0f} s in all.")


if __name__ == "__main__":
    main()
