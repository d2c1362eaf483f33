"""Sampling speed: cached sample paths against recomputing the network at every step, and against an LSTM.

The network has the size that its authors published for the ETT data (91,858 parameters). Three samplers
draw the same number of joint paths of one window with 96 context points:

cached
    :func:`~taylorformer_forecast.core.sampling.sample_paths`: what earlier points contribute is stored.
recomputed
    For every target the teacher-forced network runs on all points so far, once for every path. Its whole time
    is measured where that is affordable; otherwise some evenly spaced steps are timed and the times between
    them interpolated (trapezoid rule). Where both are done, their agreement is shown.
LSTM
    A two-layer LSTM with a Gaussian head and as many parameters, which reads the context once and then
    continues every path, as DeepAR does.

Cached and recomputed samplers get the same noise, and the paths must agree to 1e-5: all of them where
everything is recomputed, else the values drawn at the timed steps, given the cached path before them.

On a CPU one thread is used, and times are processor times of this process, so that other work on the
machine disturbs them little; every time is the smallest of several. Trust ratios, not seconds.

Run from a checkout::

    python examples/benchmark/sampling_speed.py --out sampling_speed.json
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.distributions import Normal

from taylorformer_forecast.core.heads import draw
from taylorformer_forecast.core.sampling import PathSamples, sample_paths
from taylorformer_forecast.core.window import Window
from taylorformer_forecast.models.taylorformer import Taylorformer

N_PARAMETERS, N_CONTEXT, SEED = 91_858, 96, 0
BARS = {96: 60.0, 720: 400.0}  # how many times faster than recomputation, by number of targets


class LSTMSampler(nn.Module):
    """Autoregressive LSTM with a Gaussian head: the value before in, the next distribution out.

    Parameters
    ----------
    n_parameters : int
        The width is chosen so that the network has about as many parameters.
    """

    def __init__(self, n_parameters: int) -> None:
        super().__init__()
        width = round((n_parameters / 12) ** 0.5) - 1  # 12 width^2 + 22 width + 2
        self.lstm = nn.LSTM(1, width, num_layers=2, batch_first=True)
        self.head = nn.Linear(width, 2)

    def forward(self, window: Window, n_paths: int) -> Tensor:
        """Draw paths of the targets, (S, T, 1)."""
        out, state = self.lstm(window.y[:, : window.n_context])
        state = tuple(part.repeat_interleave(n_paths, 1) for part in state)
        out, path = out[:, -1:].expand(n_paths, -1, -1), []
        for step in range(window.n_targets):
            if step:
                out, state = self.lstm(path[-1], state)
            loc, raw = self.head(out).chunk(2, -1)
            path.append(draw(Normal(loc, raw.exp(), validate_args=False)))
        return torch.cat(path, 1)


class Clock:
    """Seconds of a call: of the processor for one thread on a CPU, of the wall on other devices."""

    def __init__(self, device: torch.device) -> None:
        self.device = device

    def now(self) -> float:
        """Seconds since some moment, all submitted work included."""
        if self.device.type == "cpu":
            return time.process_time()
        torch.cuda.synchronize(self.device)
        return time.perf_counter()

    def fastest(self, call: Callable[[], object], repeats: int) -> float:
        """Smallest time of several calls."""
        times = []
        for _ in range(repeats):
            start = self.now()
            call()
            times.append(self.now() - start)
        return min(times)


def make_net(device: torch.device) -> Taylorformer:
    """Build the published network, predicting and scaling derivatives about as a trained one does."""
    net = Taylorformer(preset="code", n_heads=6, head_dim=11, d_model=32, n_layers=4).to(device).eval()
    count = sum(parameter.numel() for parameter in net.parameters())
    assert count == N_PARAMETERS, f"{count} parameters instead of {N_PARAMETERS}"
    with torch.no_grad():
        net.to_params.weight.mul_(0.1)  # close to the neighbour's value: paths stay in the data's range
        net.to_params.bias[1] = -2.0  # standard deviations around 0.1
        net.tokens.local.norm.variance.fill_(13.0)
    return net


def make_window(n_targets: int, device: torch.device) -> Window:
    """Draw a window on a regular grid over [-1, 1], of which only the context is known."""
    n = N_CONTEXT + n_targets
    y = torch.randn(1, n, 1).cumsum(1) * 0.1
    return Window(torch.linspace(-1, 1, n)[None], y, n_context=N_CONTEXT).to(device)


def recompute(net: Taylorformer, window: Window, paths: Tensor, step: int) -> Normal:
    """Distribution of one target on every path, (S, 1), from a pass over all points before it and itself."""
    n = N_CONTEXT + step + 1
    y = torch.cat([window.y[:, :N_CONTEXT].expand(len(paths), -1, -1), paths[:, : step + 1]], 1)
    distribution = net(Window(window.t[:, :n].expand(len(paths), -1), y, n_context=N_CONTEXT))
    return Normal(distribution.mean[:, -1], distribution.stddev[:, -1], validate_args=False)


def recomputed_paths(net: Taylorformer, window: Window, n_paths: int, generator: torch.Generator) -> Tensor:
    """Draw paths without a cache, (S, T, 1)."""
    paths = window.y.new_zeros(n_paths, window.n_targets, 1)
    for step in range(window.n_targets):
        paths[:, step] = draw(recompute(net, window, paths, step), generator)
    return paths


def integrate(
    net: Taylorformer, window: Window, cached: PathSamples, steps: list[int], clock: Clock, repeats: int
) -> tuple[float, float]:
    """Seconds of all recomputed steps from those of some, and the difference of the values drawn at these."""
    paths, times, difference = cached.paths[0], [], 0.0
    for step in steps:
        times.append(clock.fastest(lambda i=step: recompute(net, window, paths, i), repeats))
        loc, scale = (part[0, :, step, :, 0] for part in (cached.conditionals.loc, cached.conditionals.scale))
        again = recompute(net, window, paths, step)
        drawn = again.loc + again.scale * (paths[:, step] - loc) / scale
        difference = max(difference, (drawn - paths[:, step]).abs().max().item())
    return float(np.interp(np.arange(window.n_targets), steps, times).sum()), difference


@torch.no_grad()
def measure(
    n_targets: int, n_paths: int, complete: bool, quick: bool, device: torch.device
) -> dict[str, float]:
    """Time the three samplers on one window and compare their paths."""
    torch.manual_seed(SEED)
    net, window, clock = make_net(device), make_window(n_targets, device), Clock(device)
    lstm = LSTMSampler(N_PARAMETERS).to(device)

    def generator() -> torch.Generator:
        return torch.Generator(device).manual_seed(SEED)

    recompute(net, window, window.y.new_zeros(n_paths, n_targets, 1), 0)  # warm up
    lstm(window, n_paths)
    cached = sample_paths(net, window, n_paths, generator())
    repeats = 2 if quick else 5 if n_targets <= 100 else 3
    row = {
        "targets": n_targets,
        "cached_s": clock.fastest(lambda: sample_paths(net, window, n_paths), repeats),
    }
    steps = np.linspace(0, n_targets - 1, 5 if quick else 13).round().astype(int).tolist()
    row["integrated_s"], row["difference"] = integrate(
        net, window, cached, steps, clock, 1 + (n_targets <= 100)
    )
    row["recomputed_s"] = row["integrated_s"]
    if complete:
        start = clock.now()
        paths = recomputed_paths(net, window, n_paths, generator())
        row["recomputed_s"] = clock.now() - start
        row["difference"] = (paths - cached.paths[0]).abs().max().item()
        row["integrated_by_recomputed"] = row["integrated_s"] / row["recomputed_s"]
    row["recomputed_by_cached"] = row["recomputed_s"] / row["cached_s"]
    row["lstm_s"] = clock.fastest(lambda: lstm(window, n_paths), repeats)
    row["lstm_parameters"] = sum(parameter.numel() for parameter in lstm.parameters())
    row["cached_by_lstm"] = row["cached_s"] / row["lstm_s"]
    return row


def report(row: dict[str, float]) -> str:
    """One line of the table, and where the recomputed time comes from."""
    cells = (
        f"96/{row['targets']}",
        f"{row['cached_s']:.3f}",
        f"{row['recomputed_s']:.1f}",
        f"{row['recomputed_by_cached']:.0f}",
        f"{row['difference']:.1e}",
        f"{row['lstm_s']:.3f}",
        f"{row['cached_by_lstm']:.1f}",
    )
    if "integrated_by_recomputed" in row:
        origin = f"all steps; from some of them: {row['integrated_by_recomputed']:.2f} of that"
    else:
        origin = "integrated from some steps"
    return "".join(f"{cell:>13}" for cell in cells) + f"  ({origin})"


def main() -> None:
    """Run the comparison, print it, write it."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--paths", type=int, default=100, help="sample paths of the window")
    parser.add_argument("--quick", action="store_true", help="short horizons and few repeats, as a check")
    parser.add_argument("--out", type=Path, metavar="FILE.json", help="where to write the measurements")
    parser.add_argument("--device", type=torch.device, default=torch.device("cpu"))
    args = parser.parse_args()
    torch.set_num_threads(1)

    names = ("points", "cached s", "recomputed s", "ratio", "difference", "LSTM s", "cached/LSTM")
    print(
        f"{N_PARAMETERS} parameters, {args.paths} paths, {args.device}, torch {torch.__version__}, one thread"
    )
    print("".join(f"{name:>13}" for name in names))
    rows = []
    for complete, n_targets in zip((True, False), (12, 24) if args.quick else BARS, strict=True):
        rows.append(measure(n_targets, args.paths, complete, args.quick, args.device))
        print(report(rows[-1]), flush=True)
    for row in rows:
        bar = BARS.get(int(row["targets"]))
        if bar is not None:
            verdict = "met" if row["recomputed_by_cached"] >= bar else "MISSED"
            print(f"96/{row['targets']}: at least {bar:.0f} times faster than recomputation: {verdict}")
    if args.out is not None:
        setting = {
            "parameters": N_PARAMETERS,
            "paths": args.paths,
            "context": N_CONTEXT,
            "torch": torch.__version__,
            "processor": platform.processor() or platform.machine(),
            "device": str(args.device),
            "threads": torch.get_num_threads(),
            "seed": SEED,
        }
        args.out.write_text(json.dumps({**setting, "rows": rows}, indent=2) + "\n")
    if max(row["difference"] for row in rows) > 1e-5:
        raise SystemExit("cached and recomputed paths differ by more than 1e-5")


if __name__ == "__main__":
    main()
