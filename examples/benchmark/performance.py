"""Write the tables of docs/performance.md from recorded numbers.

    python examples/benchmark/performance.py

Every table names the script that recorded its numbers. Nothing is measured here.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parent / "arena"))
from run import fill_page
from settings import table as ratios
from short_series_report import table as rows

DOCS = Path(__file__).parents[2] / "docs"
FASTER = {(700, "Taylorformer"): 10, (700, "LAM"): 10}  # seconds that are aimed at; of others:
PHASES_AT = 700  # values
AIM = {150: 20, 700: 20, 10_000: 15, 100_000: 60}


def read(name: str) -> dict[str, Any]:
    """Recorded numbers of a script."""
    return json.loads((DOCS / "results" / f"{name}.json").read_text())


def seconds(value: float) -> str:
    """Seconds, with a digit after the point where there are few."""
    return f"{value:.1f}" if value < 9.95 else f"{value:.0f}"


def fits() -> str:
    """Seconds of a fit and a forecast; those beyond the aim are marked."""
    book = read("fit_speed")["rows"]
    sizes = sorted({row["n"] for row in book})
    names = dict.fromkeys((row["model"], row["host"]) for row in book)
    found = {(row["model"], row["host"], row["n"]): row for row in book}

    def cell(model: str, host: str, n: int) -> str:
        row = found.get((model, host, n))
        if row is None:
            return "-"
        took = row["fit_s"] + row["predict_s"]
        late = " ✗" if took > FASTER.get((n, model), AIM[n]) else ""
        return f"{seconds(took)} ({row['extra_mib']:,}){late}"

    cells = [[model, host, *(cell(model, host, n) for n in sizes)] for model, host in names]
    return rows(["model", "host", *(f"{n:,} values" for n in sizes)], cells)


def phases() -> str:
    """Parts of the seconds at one size, in per cent; small ones together."""
    book = [row for row in read("fit_speed")["rows"] if row["n"] == PHASES_AT]
    large = ("baseline", "training", "calibration")
    cells = []
    for row in book:
        whole = max(sum(row["phases"].values()), 1e-9)
        shares = [100 * row["phases"][name] / whole for name in large]
        cells.append([row["model"], row["host"], *(f"{share:.0f}" for share in [*shares, 100 - sum(shares)])])
    return rows(["model", "host", *large, "rest"], cells)


def imports() -> str:
    """Processor seconds of imports, one after the other."""
    found = read("fit_speed")["import_s"]
    names = {"torch": "torch", "sktime.forecasting.base": "then sktime's base classes"}
    return rows(
        ["import", "seconds"],
        [
            [names.get(name, "then `from taylorformer_forecast.sktime import TaylorformerForecaster`"), took]
            for name, took in found.items()
        ],
    )


def sampling() -> str:
    """Seconds of sample paths, ratios and bounds."""
    found = read("sampling_speed")
    book = found["rows"]
    lines: dict[str, Callable[[dict[str, Any]], str]] = {
        "seconds": lambda row: seconds(row["cached_s"]),
        "times faster than computing all points so far": lambda row: f"{row['recomputed_by_cached']:.0f}",
        "times faster than passes over the whole window": lambda row: f"{row['whole_window_by_cached']:.0f}",
        "times as long as an LSTM of the same size takes": lambda row: f"{row['cached_by_lstm']:.0f}",
        "seconds of its arithmetic alone": lambda row: f"{row['gflop'] / found['gflop_per_s']:.2f}",
        "seconds of reading its memory alone": lambda row: f"{row['gb'] / found['gb_per_s']:.2f}",
        'seconds with `attention="local"`': lambda row: seconds(row["local_s"]),
    }
    header = ["", *(f"{row['targets']} targets" for row in book)]
    return rows(header, [[name, *map(cell, book)] for name, cell in lines.items()])


def local() -> str:
    """Loss and times of the Taylorformer with local attention, in those of its defaults."""
    return ratios(read("local_attention")["rows"]) + "\n"


def kernels() -> str:
    """Ratios of attention layers to plain attention."""
    passes, cells = ("forward", "forward_backward"), []
    for processor, name in (("AMD EPYC", "lam_speed"), ("Intel Xeon", "lam_speed_intel")):
        for row in read(name)["rows"]:
            if row["n"] not in (1024, 8192):
                continue
            took, label = row["seconds"], f"local attention (LAM), {row['n']:,} points, {processor}"
            cells.append([label, *(f"1 / {took['full'][w] / took['local'][w]:.1f}" for w in passes)])
            if "products" in took:
                label = "the same, in times of its matrix products alone"
                cells.append([label, *(f"{took['local'][w] / took['products'][w]:.1f}" for w in passes)])
    for processor, name in (("AMD EPYC", "contiformer_speed"), ("Intel Xeon", "contiformer_speed_intel")):
        row = read(name)["rows"][-1]
        label = f"ContiFormer's layer, closed form, {row['points']} points, {processor}"
        cells.append([label, "-", f"{row['closed_by_plain']:.1f}"])
    return rows(["in times of full attention", "forward", "forward and backward"], cells)


def many() -> str:
    """Many series at once."""
    panel, batches = read("panel_speed"), [read("many_series"), read("many_series_darts")]
    cells = [
        [
            f"default forecasts of {batch['series']:,} series of {batch['length']} values, "
            f"{batch['horizon']} steps, in {batch['host']}",
            seconds(batch["seconds_fit"] + batch["seconds_predict"]),
            f"{batch['peak_gib']:.1f}",
        ]
        for batch in batches
    ]
    cells += [
        [
            f"{panel['steps']} training steps of the {row['forecaster']} on "
            f"{panel['series']:,} series of {panel['length']} values",
            seconds(row["pretrain_s"]),
            f"{max(row['peak_mib']) / 1024:.1f}",
        ]
        for row in panel["rows"]
    ]
    return rows(["", "seconds", "GiB at the peak"], cells)


def gpu() -> str:
    """Milliseconds of a training step, and seconds of a forecast, on a GPU and on cores of a CPU."""
    book = read("gpu_speed")
    found = {(row["model"], row["size"], row["device"], row["threads"]): row for row in book["rows"]}
    devices = {("cpu", 1): "one core", ("cpu", 8): "eight cores", ("cuda", 1): book["gpu"].split()[1]}

    def cell(row: dict[str, Any] | None) -> str:
        return "-" if row is None else f"{row['step_ms']:,.0f} ({row['forecast_s']:.1f})"

    names = dict.fromkeys((row["model"], row["size"]) for row in book["rows"])
    cells = [
        [model, size, *(cell(found.get((model, size, *one))) for one in devices)] for model, size in names
    ]
    return rows(["network", "size", *devices.values()], cells)


TABLES: dict[str, Callable[[], str]] = {
    one.__name__: one for one in (fits, phases, imports, sampling, local, kernels, many, gpu)
}


def main() -> None:
    """Put every table between its marks."""
    page = DOCS / "performance.md"
    for name, table in TABLES.items():
        fill_page(page, (f"<!-- {name} -->\n", "<!-- end -->"), table())


if __name__ == "__main__":
    main()
