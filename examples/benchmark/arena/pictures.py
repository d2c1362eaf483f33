"""Pictures of the arena: ranks, and forecasts from the last origin."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from compare import LABELS, OURS, Table
from PIL import Image

__all__ = ["draw_fans", "draw_ranks", "save_picture"]

DARK, BLUE, ORANGE = "#22313f", "#1f6fb4", "#d9772b"


def save_picture(figure: Any, path: Path, dpi: int) -> None:
    """Save a picture with few colours, at a third of the size, and close it."""
    figure.savefig(path, dpi=dpi)
    plt.close(figure)
    with Image.open(path) as picture:
        small = picture.convert("RGB").quantize(48)
    small.save(path, optimize=True)


def draw_ranks(table: Table, path: Path) -> None:
    """Draw the ranks of all models that were run on every series, and their means.

    Parameters
    ----------
    table : Table
        All results.
    path : Path
        PNG to write.
    """
    models, ranks = table.ranks()
    figure, axes = plt.subplots(figsize=(7.5, 0.8 + 0.36 * len(models)), layout="constrained")
    for line, (model, row) in enumerate(zip(models, ranks, strict=True)):
        colour = ORANGE if model in OURS else BLUE
        axes.plot([row.min(), row.max()], [line, line], color=colour, alpha=0.25, lw=2)
        axes.plot(row, np.full(len(row), line), "o", color=colour, alpha=0.3, ms=6, mew=0)
        axes.plot(row.mean(), line, "D", color=colour, ms=8)
        axes.annotate(
            f"{row.mean():.2f}", (row.mean(), line), (0, 7), textcoords="offset points", ha="center"
        )
    axes.set_yticks(range(len(models)), [LABELS[model] for model in models])
    axes.set_ylim(len(models) - 0.5, -0.8)
    axes.set_xlabel(f"rank by WQL over {ranks.shape[1]} series (dots) and its mean (diamonds); 1 is best")
    axes.spines[["top", "right"]].set_visible(False)
    save_picture(figure, path, dpi=90)


def _fan(axes: Any, end: np.ndarray, fan: np.ndarray) -> None:
    """Draw the end of a series and five quantiles (0.1, 0.3, 0.5, 0.7, 0.9) of its last horizon."""
    h = fan.shape[1]
    steps = np.arange(len(end)) - (len(end) - h)
    axes.plot(steps, end, color=DARK, lw=1)
    axes.fill_between(steps[-h:], fan[0], fan[4], color=BLUE, alpha=0.22, lw=0)
    axes.fill_between(steps[-h:], fan[1], fan[3], color=BLUE, alpha=0.35, lw=0)
    axes.plot(steps[-h:], fan[2], color=BLUE, lw=1)
    axes.axvline(-0.5, color="0.7", lw=0.6)
    axes.tick_params(labelsize=7)
    axes.spines[["top", "right"]].set_visible(False)


def draw_fans(table: Table, path: Path, n_models: int = 3) -> None:
    """Draw forecasts from the last origin of every series, by our models and the best other one.

    Parameters
    ----------
    table : Table
        All results.
    path : Path
        PNG to write.
    n_models : int, default=3
        Columns.
    """
    ranked, _ = table.ranks()
    most = sorted((m for m in table.models if m in OURS), key=lambda m: m not in ranked)
    others = [m for m in ranked if m not in OURS]
    models = [*most[: n_models - 1], *others][:n_models]
    fans = {(row["model"], row["series"]): row["fan"] for row in reversed(table.book["rows"]) if "fan" in row}
    shape = len(table.series), len(models)
    figure, grid = plt.subplots(
        *shape, figsize=(3.2 * shape[1], 1.5 * shape[0]), squeeze=False, sharey="row", layout="constrained"
    )
    for line, series in zip(grid, table.series, strict=True):
        line[0].set_ylabel(series, fontsize=8)
        for axes, model in zip(line, models, strict=True):
            if (model, series) in fans:
                _fan(axes, np.array(table.book["series"][series]["end"]), np.array(fans[model, series]))
            else:
                axes.text(0.5, 0.5, "not run", ha="center", transform=axes.transAxes, fontsize=8)
    for axes, model in zip(grid[0], models, strict=True):
        axes.set_title(LABELS[model], fontsize=9)
    figure.supxlabel("steps from the last origin; bands: central 40 % and 80 %", fontsize=8)
    save_picture(figure, path, dpi=72)
