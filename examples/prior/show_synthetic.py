"""Draw fifty of the made-up series that networks are pretrained on.

Run from a checkout; writes ``docs/images/synthetic.png``::

    python examples/prior/show_synthetic.py
"""

from __future__ import annotations

import argparse
from pathlib import Path

import matplotlib

matplotlib.use("Agg")  # a file is written; no screen is needed
import matplotlib.pyplot as plt
import numpy as np
from PIL import Image

from taylorformer_forecast.training.synthetic import SyntheticSeries, synthetic_series

TARGET = Path(__file__).parents[2] / "docs" / "images" / "synthetic.png"


def title(series: SyntheticSeries) -> str:
    """Style and seasons, and what is unusual."""
    names = [name.removeprefix("style:").removeprefix("missing:") for name in series.recipe]
    unusual = [name for name in names[1:] if ":" not in name and name != "rounded"]
    return ", ".join(
        [names[0], *([" & ".join(map(str, series.periods))] if series.periods else []), *unusual]
    )


def main(argv: list[str] | None = None) -> None:
    """Draw them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--length", type=int, default=300)
    parser.add_argument("--out", type=Path, default=TARGET)
    arguments = parser.parse_args(argv)
    figure, axes = plt.subplots(10, 5, figsize=(12, 12), dpi=80, layout="constrained")
    for ax, series in zip(
        axes.flat, synthetic_series(axes.size, arguments.length, arguments.seed), strict=True
    ):
        uneven = "irregular" in series.recipe
        ax.plot(series.t, series.y, "." if uneven else "-", color="black", lw=0.6, ms=1.5)
        ax.set_title(title(series), fontsize=7, loc="left", pad=2)
        ax.set_xticks([])
        ax.tick_params(labelsize=5, length=1, pad=1)
    figure.canvas.draw()
    pixels = Image.fromarray(np.asarray(figure.canvas.buffer_rgba())).convert("L")
    pixels.quantize(8).save(arguments.out, optimize=True)  # a quarter of the size
    print(arguments.out)


if __name__ == "__main__":
    main()
