"""Sampling speed: cached sample paths against recomputing the network at every step, and against an LSTM.

The network has the size that its authors published for the ETT data (91,858 parameters). Three samplers
draw joint paths of the targets of one window with 96 context points:

cached
    :func:`~taylorformer_forecast.core.sampling.sample_paths`: what earlier points contribute is stored.
recomputed
    For every target the teacher-forced network runs over all points so far, with one window for each path.
    At 720 targets only some evenly spaced steps are timed and the others interpolated (trapezoid rule); at
    96 both are done, to show that they agree.
whole window
    The same, but every pass runs over all points of the window, with those not yet drawn blanked: what
    generating with the published code takes. Every pass costs the same, so that one is timed.
LSTM
    As many parameters in a two-layer LSTM with a Gaussian head, which reads the context once and then
    continues every path, as DeepAR does.

For the cached sampler two bounds are recorded: the arithmetic of its matrix products at the rate of one
large product, and the bytes that these products read and write at the bandwidth of one long inner product,
both measured in the same run. ``local`` is the cached sampler of the same network with ``attention="local"``,
another network, whose steps read the last points alone.

Cached and recomputed samplers get the same noise. Their paths must agree to 1e-5: whole paths where all of
it is recomputed, else the values drawn at the timed steps after the same earlier values.

On a CPU one thread is used and times are its processor times, the smallest of several, so that other work on
the machine disturbs them little. Ratios mean more than seconds. Run from a checkout::

    python examples/benchmark/sampling_speed.py --out sampling_speed.json
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.distributions import Normal
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode

from taylorformer_forecast.core.families import draw
from taylorformer_forecast.core.sampling import PathSamples, sample_paths
from taylorformer_forecast.core.window import Window
from taylorformer_forecast.models.taylorformer import Taylorformer

N_PARAMETERS, N_CONTEXT, SEED, TOLERANCE = 91_858, 96, 0, 1e-5


def n_parameters(net: nn.Module) -> int:
    """Size of a network."""
    return sum(parameter.numel() for parameter in net.parameters())


def make_net(attention: str = "full") -> Taylorformer:
    """Build the published network, predicting and scaling derivatives about as a trained one does."""
    size = {"n_heads": 6, "head_dim": 11, "d_model": 32, "n_layers": 4}
    net = Taylorformer(preset="code", attention=attention, **size).eval()
    assert n_parameters(net) == N_PARAMETERS, f"{n_parameters(net)} parameters, not {N_PARAMETERS}"
    with torch.no_grad():
        net.streams.to_params.weight.mul_(
            0.1
        )  # close to the neighbour's value: paths stay in the data's range
        net.streams.to_params.bias[1] = -2.0  # standard deviations around 0.1
        net.streams.tokens.local.norm.variance.fill_(13.0)
    return net


class LSTMSampler(nn.Module):
    """Autoregressive LSTM of about the same size: the last value in, the next Gaussian out."""

    def __init__(self) -> None:
        super().__init__()
        width = round((N_PARAMETERS / 12) ** 0.5) - 1  # 12 width^2 + 22 width + 2 parameters
        self.lstm, self.head = nn.LSTM(1, width, num_layers=2, batch_first=True), nn.Linear(width, 2)
        assert abs(n_parameters(self) / N_PARAMETERS - 1) < 0.02

    @torch.inference_mode()
    def forward(self, window: Window, n_paths: int) -> Tensor:
        """Draw paths of the targets, (S, T, 1)."""
        out, state = self.lstm(window.y[:, :N_CONTEXT])
        state = tuple(part.repeat_interleave(n_paths, 1) for part in state)
        out, path = out[:, -1:].expand(n_paths, -1, -1), list[Tensor]()
        for step in range(window.n_targets):
            if step:
                out, state = self.lstm(path[-1], state)
            loc, raw = self.head(out).chunk(2, -1)
            path.append(draw(Normal(loc, raw.exp(), validate_args=False)))
        return torch.cat(path, 1)


class ProductBytes(TorchDispatchMode):
    """Count the bytes that matrix products read and write."""

    def __init__(self) -> None:
        super().__init__()
        self.total = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run an operation, and count it if it is a product."""
        out = func(*args, **(kwargs or {}))
        if func.overloadpacket.__name__ in ("mm", "bmm", "addmm", "baddbmm"):
            tensors = [part for part in (*args, out) if isinstance(part, Tensor)]
            self.total += sum(part.numel() * part.element_size() for part in tensors)
        return out


def rates(device: torch.device, repeats: int) -> dict[str, float]:
    """What the machine does in a second: arithmetic of a large product, bytes read by an inner product."""
    n = 1024
    square, long = torch.randn(n, n, device=device), torch.randn(1 << 26, device=device)
    return {
        "gflop_per_s": 2e-9 * n**3 / seconds(lambda: square @ square, device, repeats),
        "gb_per_s": 1e-9 * long.numel() * 4 / seconds(lambda: long @ long, device, repeats),
    }


def recompute(net: Taylorformer, window: Window, paths: Tensor, step: int) -> Normal:
    """Distribution of one target on every path, (S, 1), from a pass over all points up to it."""
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


def now(device: torch.device) -> float:
    """Time so far: of the processor on a CPU, of the wall elsewhere, all submitted work included."""
    if device.type == "cpu":
        return time.process_time()
    torch.cuda.synchronize(device)
    return time.perf_counter()


def seconds(call: Callable[[], object], device: torch.device, repeats: int) -> float:
    """Smallest time of several calls."""
    times = []
    for _ in range(repeats):
        start = now(device)
        call()
        times.append(now(device) - start)
    return min(times)


def timed_steps(
    net: Taylorformer, window: Window, cached: PathSamples, n_steps: int, repeats: int
) -> tuple[float, float]:
    """Seconds of all recomputed steps, from some of them; largest difference of the values drawn at these."""
    paths, times, difference = cached.paths[0], [], 0.0
    steps = np.linspace(0, window.n_targets - 1, n_steps).round().astype(int).tolist()
    for step in steps:
        times.append(seconds(partial(recompute, net, window, paths, step), paths.device, repeats))
        loc, scale = (part[0, :, step, :, 0] for part in (cached.conditionals.loc, cached.conditionals.scale))
        again, noise = recompute(net, window, paths, step), (paths[:, step] - loc) / scale
        difference = max(difference, (again.loc + again.scale * noise - paths[:, step]).abs().max().item())
    return float(np.interp(np.arange(window.n_targets), steps, times).sum()), difference


@torch.no_grad()
def measure(
    n_targets: int, n_paths: int, complete: bool, quick: bool, device: torch.device
) -> dict[str, float]:
    """Time the samplers on a random walk over a regular grid on [-1, 1], and compare their paths."""
    torch.manual_seed(SEED)
    net, lstm, n = make_net().to(device), LSTMSampler().to(device), N_CONTEXT + n_targets
    y = torch.randn(1, n, 1).cumsum(1) * 0.1
    window = Window(torch.linspace(-1, 1, n)[None], y, n_context=N_CONTEXT).to(device)
    repeats = 2 if quick else 5
    recomputed_paths(net, window.points(slice(0, N_CONTEXT + 2)), n_paths, torch.Generator(device))  # warm up
    lstm(window, n_paths)
    cached = sample_paths(net, window, n_paths, torch.Generator(device).manual_seed(SEED))

    row: dict[str, float] = {"targets": n_targets, "paths": n_paths}
    n_steps = 5 if quick else 13
    row["recomputed_s"], row["difference"] = timed_steps(net, window, cached, n_steps, repeats // 2)
    last = partial(recompute, net, window, cached.paths[0], n_targets - 1)
    row["whole_window_s"] = n_targets * seconds(last, device, repeats)
    row["cached_s"] = seconds(lambda: sample_paths(net, window, n_paths), device, repeats)
    local = make_net("local").to(device)
    row["local_s"] = seconds(lambda: sample_paths(local, window, n_paths), device, repeats)
    with FlopCounterMode(display=False) as arithmetic, ProductBytes() as memory:
        sample_paths(net, window, n_paths)
    row["gflop"], row["gb"] = 1e-9 * arithmetic.get_total_flops(), 1e-9 * memory.total
    row["lstm_s"] = seconds(lambda: lstm(window, n_paths), device, repeats)
    if complete:
        paths: list[Tensor] = []
        generator = torch.Generator(device).manual_seed(SEED)
        whole = seconds(lambda: paths.append(recomputed_paths(net, window, n_paths, generator)), device, 1)
        row["interpolated_by_complete"], row["recomputed_s"] = row["recomputed_s"] / whole, whole
        row["difference"] = max(row["difference"], (paths[0] - cached.paths[0]).abs().max().item())
    row["recomputed_by_cached"] = row["recomputed_s"] / row["cached_s"]
    row["whole_window_by_cached"] = row["whole_window_s"] / row["cached_s"]
    row["cached_by_lstm"] = row["cached_s"] / row["lstm_s"]
    return row


def main() -> None:
    """Compare, print a table, write the numbers."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--paths", type=int, default=100, help="sample paths of the window")
    parser.add_argument("--quick", action="store_true", help="short horizons and few repeats, as a check")
    parser.add_argument("--out", type=Path, metavar="FILE.json", help="where to write the numbers")
    parser.add_argument("--device", type=torch.device, default=torch.device("cpu"))
    args = parser.parse_args()
    torch.set_num_threads(1)

    print(f"{n_parameters(make_net())} parameters (LSTM: {n_parameters(LSTMSampler())}), {args.paths} paths")
    names = (
        "points",
        "cached s",
        "recomputed s",
        "ratio",
        "difference",
        "whole window",
        "ratio",
        "LSTM s",
        "cached/LSTM",
    )
    print("".join(f"{name:>13}" for name in names))
    rows = []
    for n_targets, complete in ((12, True), (24, False)) if args.quick else ((96, True), (720, False)):
        rows.append(row := measure(n_targets, args.paths, complete, args.quick, args.device))
        print(f"{f'{N_CONTEXT}/{n_targets}':>13}{row['cached_s']:13.3f}{row['recomputed_s']:13.1f}", end="")
        print(f"{row['recomputed_by_cached']:13.0f}{row['difference']:13.1e}", end="")
        print(f"{row['whole_window_s']:13.1f}{row['whole_window_by_cached']:13.0f}", end="")
        print(f"{row['lstm_s']:13.3f}{row['cached_by_lstm']:13.1f}", flush=True)
        if complete:
            share = row["interpolated_by_complete"]
            print(f"{'':13}(interpolating between some steps gives {share:.2f} of the recomputed time)")
        else:
            print(f"{'':13}(recomputed time interpolated between some steps)")
    if args.out is not None:
        setting = {
            "torch": torch.__version__,
            "processor": platform.processor() or platform.machine(),
            "device": str(args.device),
            "threads": torch.get_num_threads(),
            "seed": SEED,
            "parameters": N_PARAMETERS,
            "context": N_CONTEXT,
            **rates(args.device, 5),
        }
        args.out.write_text(json.dumps({**setting, "rows": rows}, indent=2) + "\n")
    if max(row["difference"] for row in rows) > TOLERANCE:
        raise SystemExit(f"cached and recomputed paths differ by more than {TOLERANCE}")


if __name__ == "__main__":
    main()
