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

from taylorformer_forecast.training.synthetic import synthetic_series

IMAGE = Path(__file__).parents[2] / "docs" / "images" / "synthetic.png"


def main(argv: list[str] | None = None) -> None:
    """Draw them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--length", type=int, default=400)
    parser.add_argument("--out", type=Path, default=IMAGE)
    arguments = parser.parse_args(argv)
    figure, axes = plt.subplots(10, 5, figsize=(15, 15), layout="constrained")
    for ax, series in zip(
        axes.flat, synthetic_series(axes.size, arguments.length, arguments.seed), strict=True
    ):
        ax.plot(series.t, series.y, lw=0.6, marker="." if "irregular" in series.recipe else None, ms=1.5)
        style, *rest = (name.removeprefix("style:") for name in series.recipe)
        periods = " & ".join(map(str, series.periods))
        ax.set_title(f"{style} {periods}: {', '.join(rest)}"[:78], fontsize=5, loc="left", pad=2)
        ax.tick_params(labelsize=4, length=1, pad=1)
    figure.savefig(arguments.out, dpi=75)
    print(arguments.out)


if __name__ == "__main__":
    main()
