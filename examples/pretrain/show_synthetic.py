"""Draw every process of the generator of synthetic series, and complete series of every archetype.

Run from a checkout; writes ``docs/images/synthetic.png``::

    python examples/pretrain/show_synthetic.py
"""

from __future__ import annotations

import argparse
from pathlib import Path

import matplotlib

matplotlib.use("Agg")  # a file is written; no screen is needed
import matplotlib.pyplot as plt
import numpy as np
from PIL import Image

from taylorformer_forecast.synthetic import ARCHETYPES, PROCESSES, SyntheticGenerator
from taylorformer_forecast.synthetic.counts import COUNTS
from taylorformer_forecast.synthetic.frame import Frame, make_frame
from taylorformer_forecast.synthetic.gaussian_process import smooth
from taylorformer_forecast.synthetic.observation import OBSERVATIONS, irregular_times
from taylorformer_forecast.synthetic.processes import draw_component
from taylorformer_forecast.synthetic.season import modulate

TARGET = Path(__file__).parents[2] / "docs" / "images" / "synthetic.png"
COLUMNS = 6
MONTHLY = ("month_length", "working_days", "easter")  # effects that are shown in months, the others in days
USUAL = {"yearly": 30, "quarterly": 60, "monthly": 130, "demand": 51}  # points of complete series


def frame_for(rng: np.random.Generator, name: str, n: int) -> Frame:
    """One series with the seasons and dates that a process needs."""
    frequency, periods = "none", (max(12.0, n // 6), 0.0, 0.0)
    if name == "working_week":
        frequency, periods = "hourly", (24.0, 168.0, 0.0)
    elif PROCESSES[name] == "calendar":
        frequency, periods = ("monthly", (12.0, 0, 0)) if name in MONTHLY else ("daily", (7.0, 0, 0))
    elif PROCESSES[name] == "level":
        periods = (12.0, 0.0, 0.0)
    return make_frame(rng, n, np.array([frequency]), np.array([periods]))


def show_process(rng: np.random.Generator, name: str, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Times and values of one process alone, or of what it does to a smooth series or to a season."""
    t, frame = np.arange(n), frame_for(rng, name, n)
    course = smooth(rng, np.array([n / 12]), n)
    season = draw_component(rng, frame, np.array(["profile"]))
    if name == "mixture":
        season += 4 * draw_component(rng, frame, np.array(["broken"]))
        return t, (0.5 * season + 0.5 * course)[0]
    if name == "seasonal_modulation":
        return t, np.mean([modulate(rng, frame, season) for _ in range(2)], axis=0)[0]
    if name == "irregular_times":
        at = irregular_times(rng, "bursts", n // 3)
        return at, smooth(rng, np.array([n / 12]), n)[0, at]
    if name in COUNTS:
        return t, COUNTS[name](rng, np.exp(0.5 * course))[0]
    if name in OBSERVATIONS:
        noisy = course + 0.1 * rng.standard_normal(course.shape)
        return t, OBSERVATIONS[name](rng, noisy)[0]
    return t, draw_component(rng, frame, np.array([name]))[0]


def show_archetype(name: str, number: int, n: int) -> tuple[np.ndarray, np.ndarray, int]:
    """Times, values and horizon of a complete series."""
    length = min(n, USUAL.get(name, n))
    batch = SyntheticGenerator(number, 1, archetypes={name: 1.0}).batch(0, length=length)
    return batch.times[0], batch.values[0], batch.horizon


def main(argv: list[str] | None = None) -> None:
    """Draw them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--length", type=int, default=240)
    parser.add_argument("--out", type=Path, default=TARGET)
    arguments = parser.parse_args(argv)
    complete = [(name, number) for number in range(2) for name in ARCHETYPES]
    panels = len(PROCESSES) + len(complete)
    rows = -(-panels // COLUMNS)
    figure, axes = plt.subplots(rows, COLUMNS, figsize=(12, 1.05 * rows), dpi=80, layout="constrained")
    for i, (ax, name) in enumerate(zip(axes.flat, PROCESSES, strict=False)):
        n = arguments.length // 4 if name in MONTHLY else arguments.length
        t, y = show_process(np.random.default_rng((arguments.seed, i)), name, n)
        ax.plot(t, y, "." if name == "irregular_times" else "-", color="black", lw=0.6, ms=1.5)
        ax.set_title(f"{PROCESSES[name]}: {name}", fontsize=7, loc="left", pad=2)
    for ax, (name, number) in zip(axes.flat[len(PROCESSES) :], complete, strict=False):
        t, y, horizon = show_archetype(name, arguments.seed + number, arguments.length)
        ax.plot(t[:-horizon], y[:-horizon], color="black", lw=0.6)
        ax.plot(t[-horizon - 1 :], y[-horizon - 1 :], color="0.55", lw=0.9)
        ax.set_title(f"series: {name}", fontsize=7, loc="left", pad=2)
    for ax in axes.flat:
        ax.set_xticks([])
        ax.tick_params(labelsize=5, length=1, pad=1)
    for ax in axes.flat[panels:]:
        ax.set_axis_off()
    figure.canvas.draw()
    pixels = Image.fromarray(np.asarray(figure.canvas.buffer_rgba())).convert("L")
    pixels.quantize(8).save(arguments.out, optimize=True)  # a quarter of the size
    print(arguments.out)


if __name__ == "__main__":
    main()
