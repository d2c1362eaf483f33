"""Speed and memory of attention kernels over the number of points.

full
    PyTorch's fused attention of all points to all points.
band
    The same under a dense mask of local attention's window: its result, at the price of all scores.
local
    :class:`~taylorformer_forecast.core.attention.local.Local` with its default window, ``4 * ceil(ln n)``.
prob
    :class:`~taylorformer_forecast.core.attention.prob.Prob`, ProbSparse attention.
products
    No attention: the matrix products that local attention needs, in blocks of as many queries, and nothing
    between them.

On a CPU one thread is used and times are its processor times: kernels take turns, and the smallest time of
each counts, so that other work on the machine disturbs them little. Ratios mean more than seconds. Memory
is how far the peak of a call lies above what was held before, inputs included; it is measured in a process
of its own, on Linux and on CUDA. Local attention must agree with the band to 1e-5. Run from a checkout::

    python examples/benchmark/lam_speed.py --out lam_speed.json --plot lam_speed.png
"""

from __future__ import annotations

import argparse
import ctypes
import json
import multiprocessing
import platform
import re
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from taylorformer_forecast.core.attention.local import Local, log_window
from taylorformer_forecast.core.attention.prob import Prob

SEED, TOLERANCE, MIB = 0, 1e-5, 2**20
LONGEST_QUADRATIC = 8192  # beyond, a run of a kernel that computes all scores takes too long
PASSES = ("forward", "forward_backward")
BLOCK = 32  # queries of a block, as in local attention on a CPU


def band(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Local attention with a dense mask."""
    n = q.shape[2]
    mask = torch.ones(n, n, dtype=torch.bool, device=q.device).tril_().triu_(1 - log_window(n))
    return F.scaled_dot_product_attention(q, k, v, mask)


class Products(torch.autograd.Function):
    """Matrix products of local attention, and those of its gradient."""

    @staticmethod
    def blocks(n: int) -> Iterator[tuple[slice, slice]]:
        """Queries of each block, and the keys that they see."""
        for start in range(0, n, BLOCK):
            rows = slice(start, min(start + BLOCK, n))
            yield rows, slice(max(0, start - log_window(n) + 1), rows.stop)

    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Two products a block."""
        ctx.save_for_backward(q, k, v)
        out = torch.empty_like(v)
        for rows, keys in Products.blocks(q.shape[2]):
            out[:, :, rows] = q[:, :, rows] @ k[:, :, keys].mT @ v[:, :, keys]
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, ...]:
        """Five products a block, the first of which is made again to save memory."""
        q, k, v = ctx.saved_tensors
        grads = torch.empty_like(q), torch.zeros_like(k), torch.zeros_like(v)
        for rows, keys in Products.blocks(q.shape[2]):
            weights = q[:, :, rows] @ k[:, :, keys].mT
            grads[2][:, :, keys] += weights.mT @ grad[:, :, rows]
            score = grad[:, :, rows] @ v[:, :, keys].mT
            grads[0][:, :, rows] = score @ k[:, :, keys]
            grads[1][:, :, keys] += score.mT @ q[:, :, rows]
        return grads


KERNELS: dict[str, Callable[..., Tensor]] = {
    "full": F.scaled_dot_product_attention,
    "band": band,
    "local": Local(),
    "prob": Prob(),
    "products": Products.apply,
}


def heads(n: int, args: argparse.Namespace) -> list[Tensor]:
    """Draw queries, keys and values, (B, H, N, E)."""
    generator = torch.Generator().manual_seed(SEED)
    shape = args.batch, args.heads, n, args.width
    return [torch.randn(shape, generator=generator).to(args.device).requires_grad_() for _ in range(3)]


def forward(kernel: Callable[..., Tensor], inputs: list[Tensor]) -> None:
    """Attend."""
    with torch.no_grad():
        kernel(*inputs)


def forward_backward(kernel: Callable[..., Tensor], inputs: list[Tensor]) -> None:
    """Attend and compute the gradients of queries, keys and values."""
    out = kernel(*inputs)
    torch.autograd.grad(out, inputs, torch.ones_like(out))


def kernels_at(n: int) -> dict[str, Callable[..., Tensor]]:
    """Kernels that are run on ``n`` points."""
    return {
        name: kernel
        for name, kernel in KERNELS.items()
        if n <= LONGEST_QUADRATIC or name not in ("full", "band")
    }


def now(device: torch.device) -> float:
    """Time so far: of the processor on a CPU, of the wall elsewhere, all submitted work included."""
    if device.type == "cpu":
        return time.process_time()
    torch.cuda.synchronize(device)
    return time.perf_counter()


def seconds(n: int, args: argparse.Namespace) -> dict[str, dict[str, float]]:
    """Smallest time of every pass of every kernel, in turns."""
    inputs, calls = heads(n, args), {"forward": forward, "forward_backward": forward_backward}
    best = {name: dict.fromkeys(PASSES, float("inf")) for name in kernels_at(n)}
    for _ in range(2 if args.quick else 4):
        for name, kernel in kernels_at(n).items():
            for which, call in calls.items():
                for _ in range(3 if args.quick else 10):  # what is quick is measured more often
                    start = now(args.device)
                    call(kernel, inputs)
                    took = now(args.device) - start
                    best[name][which] = min(best[name][which], took)
                    if took > 0.1:
                        break
    return best


def difference(n: int, args: argparse.Namespace) -> float:
    """Largest difference between local attention and the band, of outputs and gradients."""
    results = []
    for name in ("local", "band"):
        inputs = heads(n, args)
        out = KERNELS[name](*inputs)
        results.append([out, *torch.autograd.grad(out.sin().sum(), inputs)])
    return max((a - b).abs().max().item() for a, b in zip(*results, strict=True))


# ---- memory -----------------------------------------------------------------------------------------------


def resident(which: str) -> float:
    """Memory of this process in MiB: ``VmRSS`` now, ``VmHWM`` at most."""
    found = re.search(rf"{which}:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found is not None
    return int(found[1]) / 1024


def peak(call: Callable[[], None], device: torch.device) -> float:
    """MiB by which the peak of a call exceeds what was held before it."""
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
        before = torch.cuda.memory_allocated(device)
        call()
        return (torch.cuda.max_memory_allocated(device) - before) / MIB
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew
    before = resident("VmRSS")
    call()
    return resident("VmHWM") - before


def peaks(lengths: list[int], args: argparse.Namespace) -> dict[int, dict[str, dict[str, float]]]:
    """Peak memory of every pass of every kernel; runs in a process of its own."""
    torch.set_num_threads(1)
    if args.device.type == "cpu":
        ctypes.CDLL(None).mallopt(-3, 2**16)  # give freed memory back to the system (M_MMAP_THRESHOLD)
    found: dict[int, dict[str, dict[str, float]]] = {}
    for n in [lengths[0], *lengths]:  # the first one once more: it loads libraries
        inputs, calls = heads(n, args), {"forward": forward, "forward_backward": forward_backward}
        found[n] = {
            name: {which: peak(partial(call, kernel, inputs), args.device) for which, call in calls.items()}
            for name, kernel in kernels_at(n).items()
        }
    return found


# ---- results ----------------------------------------------------------------------------------------------


def series(rows: list[dict], kernel: str, quantity: str, which: str) -> list[tuple[int, float]]:
    """Values of a quantity by the number of points, where it was measured and is not zero."""
    found = [(row["n"], row[quantity].get(kernel, {}).get(which, 0.0)) for row in rows]
    return [(n, value) for n, value in found if value > 0]


def exponent(rows: list[dict], kernel: str, quantity: str, which: str) -> float:
    """Slope of a quantity over the number of points, both in logarithms, from 1024 points on."""
    points = [(n, value) for n, value in series(rows, kernel, quantity, which) if n >= 1024]
    return float(np.polyfit(*np.log(points).T, 1)[0]) if len(points) > 1 else float("nan")


def plot(rows: list[dict], path: Path) -> None:
    """Draw times and memory over the number of points."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    panels = [("seconds", which) for which in PASSES]
    panels += [("mib", "forward_backward")] if "mib" in rows[0] else []
    figure, axes = plt.subplots(1, len(panels), figsize=(4 * len(panels), 3.6), layout="constrained")
    for axis, (quantity, which) in zip(axes, panels, strict=True):
        for kernel in (name for name in KERNELS if name != "products"):
            axis.plot(*zip(*series(rows, kernel, quantity, which), strict=True), marker="o", label=kernel)
        axis.set_xscale("log", base=2)
        axis.set(yscale="log", xlabel="points", title=which.replace("_", " + "))
        axis.set_ylabel("processor time, s" if quantity == "seconds" else "extra memory, MiB")
        axis.grid(alpha=0.3)
    axes[0].legend()
    figure.savefig(path, dpi=150)


def main() -> None:
    """Compare, print a table, write the numbers."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--heads", type=int, default=8)
    parser.add_argument("--width", type=int, default=64, help="of one head")
    parser.add_argument("--quick", action="store_true", help="short windows and few repeats, as a check")
    parser.add_argument("--out", type=Path, metavar="FILE.json", help="where to write the numbers")
    parser.add_argument("--plot", type=Path, metavar="FILE.png", help="where to draw them")
    parser.add_argument("--device", type=torch.device, default=torch.device("cpu"))
    args = parser.parse_args()
    torch.set_num_threads(1)

    lengths = [256, 512, 1024, 2048] if args.quick else [512, 1024, 2048, 4096, 8192, 16384]
    memory = {}
    if args.device.type == "cuda" or Path("/proc/self/clear_refs").exists():
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            memory = pool.apply(peaks, (lengths, args))
    print(f"{args.batch} x {args.heads} heads of width {args.width}; ms (times as fast as full) [extra MiB]")
    print(f"{'n':>6} {'window':>6} {'':>17}" + "".join(f"{name:>24}" for name in KERNELS))
    seconds(lengths[0], args)  # warm up
    rows = []
    for n in lengths:
        row = {"n": n, "window": log_window(n), "seconds": seconds(n, args)}
        if n in memory:
            row["mib"] = memory[n]
        if "full" in row["seconds"]:
            row["difference"] = difference(n, args)
            row["faster_than_full"] = {
                name: {which: row["seconds"]["full"][which] / took[which] for which in PASSES}
                for name, took in row["seconds"].items()
            }
        rows.append(row)
        for which in PASSES:
            print(f"{n:6} {row['window']:6} {which:>17}", end="")
            for name in KERNELS:
                cell = ""
                if name in row["seconds"]:
                    ratio = f"({row['faster_than_full'][name][which]:.1f})" if "difference" in row else ""
                    mib = f"[{memory[n][name][which]:.0f}]" if memory else ""
                    cell = f"{row['seconds'][name][which] * 1e3:.1f} {ratio:>7} {mib:>5}"
                print(f"{cell:>24}", end="")
            print(flush=True)
    names = {"seconds": KERNELS, "mib": KERNELS if memory else ()}
    exponents = {
        quantity: {name: {which: exponent(rows, name, quantity, which) for which in PASSES} for name in of}
        for quantity, of in names.items()
    }
    for quantity, of in exponents.items():
        for name, found in of.items():
            slopes = ", ".join(f"{which} {slope:.2f}" for which, slope in found.items())
            print(f"exponent of {quantity} from 1024 points on, {name}: {slopes}")
    if args.out is not None:
        setting = {
            "torch": torch.__version__,
            "python": platform.python_version(),
            "processor": platform.processor() or platform.machine(),
            "device": str(args.device),
            "threads": torch.get_num_threads(),
            "seed": SEED,
            "batch": args.batch,
            "heads": args.heads,
            "width": args.width,
        }
        args.out.write_text(json.dumps({**setting, "exponents": exponents, "rows": rows}, indent=2) + "\n")
    if args.plot is not None:
        plot(rows, args.plot)
    if max(row.get("difference", 0.0) for row in rows) > TOLERANCE:
        raise SystemExit(f"local attention and the band differ by more than {TOLERANCE}")


if __name__ == "__main__":
    main()
