"""Pictures of the arena: ranks, forecasts from the last origin, and quality against training seconds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from compare import LABELS, OURS, Table
from curve import Curve
from matplotlib.ticker import MaxNLocator, NullLocator
from PIL import Image

__all__ = ["draw_curve", "draw_fans", "draw_ranks", "save_picture"]

DARK, BLUE, ORANGE = "#22313f", "#1f6fb4", "#d9772b"
DASHES = {"sktime": "-", "darts": "--"}
STRONG = {"lam": ORANGE, "taylorformer": BLUE, "contiformer": "#2a8c5a", "tnp": "#8e3fa8", "unn": "#b5283c"}
PALE = (("#7fae9c", "s"), ("#b79a5e", "^"), ("#a793c7", "v"), ("#86a5c9", "D"), ("#d08f9c", "P"))


def save_picture(figure: Any, path: Path, dpi: int, colours: int = 48) -> None:
    """Save a picture with few colours, at a third of the size, and close it."""
    figure.savefig(path, dpi=dpi)
    plt.close(figure)
    with Image.open(path) as picture:
        small = picture.convert("RGB").quantize(colours)
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
    axes.set_xlabel(f"rank by WQL: {ranks.shape[1]} series (dots), mean (diamond); 1 is best")
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
    axes.tick_params(labelsize=9)
    axes.xaxis.set_major_locator(MaxNLocator(4))
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
    fans = {(row["model"], row["series"]): row["fan"] for row in reversed(table.rows) if "fan" in row}
    shape = len(table.series), len(models)
    figure, grid = plt.subplots(
        *shape, figsize=(3.2 * shape[1], 1.5 * shape[0]), squeeze=False, sharey="row", layout="constrained"
    )
    for line, series in zip(grid, table.series, strict=True):
        line[0].set_ylabel(series, fontsize=10)
        for axes, model in zip(line, models, strict=True):
            if (model, series) in fans:
                _fan(axes, np.array(table.book["series"][series]["end"]), np.array(fans[model, series]))
            else:
                axes.text(0.5, 0.5, "not run", ha="center", transform=axes.transAxes, fontsize=8)
    for axes, model in zip(grid[0], models, strict=True):
        axes.set_title(LABELS[model], fontsize=11)
    figure.supxlabel(
        "steps from the last origin; black: observed, blue: median, bands: central 40 % and 80 %", fontsize=10
    )
    save_picture(figure, path, dpi=72)


def _apart(heights: np.ndarray, gap: float) -> np.ndarray:
    """Move heights in [0, 1] as little as it takes to be a gap apart."""
    from scipy.optimize import isotonic_regression

    order = np.argsort(heights, kind="stable")
    offsets = gap * np.arange(len(heights))
    moved = np.empty_like(heights)
    # Less their offsets, heights that are a gap apart do not fall.
    fitted = np.asarray(isotonic_regression(heights[order] - offsets).x)
    moved[order] = fitted.clip(0, max(1 - offsets[-1], 0)) + offsets
    return moved


def _label_at_the_right(axes: Any, ends: list[tuple[str, str, float, float]], gap: float) -> None:
    """Write labels beside the axes, joined to the (label, colour, x, y) where their lines end."""
    points = axes.transData.transform([(x, y) for _, _, x, y in ends])
    heights = axes.transAxes.inverted().transform(points)[:, 1]
    for (label, colour, x, y), height in zip(ends, _apart(heights, gap), strict=True):
        axes.annotate(
            label,
            (x, y),
            (1.05, height),
            textcoords="axes fraction",
            color=colour,
            fontsize=9,
            va="center",
            arrowprops={"arrowstyle": "-", "color": colour, "lw": 0.6, "relpos": (0, 0.5), "shrinkB": 3},
        )


def _line_style(model: str, number: int) -> dict[str, Any]:
    """Colour, dashes and marker: ours by network, dashed but through sktime, and peers paler, by number."""
    if model in OURS:
        network, _, kind = model.partition("_")
        dashes = {"ls": DASHES[kind], "mfc": None if kind == "sktime" else "white"}
        return {"color": STRONG[network], "lw": 2, "zorder": 3, "marker": "o", **dashes}
    colour, marker = PALE[number % len(PALE)]
    return {"color": colour, "lw": 1.3, "marker": marker, "ms": 5}


def draw_curve(curve: Curve, path: Path) -> None:
    """Draw ratios to the seasonal naive forecast against seconds of training.

    Models without training are dotted lines, where they are inside the range of the others.

    Parameters
    ----------
    curve : Curve
        Quality of models at several budgets.
    path : Path
        PNG to write.
    """
    points = np.array([(p.seconds, p.ratio) for line in curve.lines.values() for p in line.values()])
    low, high = points[:, 1].min() / 1.05, points[:, 1].max() * 1.05
    levels = {model: ratio for model, ratio in curve.levels.items() if low < ratio < high}
    n_labels = len(curve.lines) + len(levels)
    height = max(4.2, 1.0 + 0.24 * n_labels)
    figure, axes = plt.subplots(figsize=(8, height), layout="constrained")
    axes.set_xscale("log")
    axes.set_yscale("log")
    first, last = min(curve.budgets[0], points[:, 0].min()), max(curve.budgets[-1], points[:, 0].max())
    axes.set_xlim(first / 1.1, last * 1.08)
    axes.set_ylim(low, high)
    axes.set_xticks(curve.budgets, [f"{budget:g}" for budget in curve.budgets])
    axes.yaxis.set_major_locator(MaxNLocator(8, steps=[1, 2, 5, 10]))
    axes.yaxis.set_major_formatter("{x:g}")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_minor_locator(NullLocator())
    ends = []
    for model, ratio in levels.items():
        axes.axhline(ratio, color="0.45", lw=1, ls=":")
        ends.append((LABELS[model], "0.45", axes.get_xlim()[1], ratio))
    peers = [model for model in curve.lines if model not in OURS]
    for model, line in curve.lines.items():
        style = _line_style(model, peers.index(model) if model in peers else 0)
        x, y = zip(*((p.seconds, p.ratio) for p in line.values()), strict=True)
        axes.plot(x, y, **style)
        ends.append((LABELS[model], style["color"], x[-1], y[-1]))
    _label_at_the_right(axes, ends, gap=0.22 / (height - 0.8))
    axes.set_xlabel("seconds of training (processor time, mean over the series)")
    axes.set_ylabel("WQL relative to the seasonal naive forecast")
    axes.grid(color="0.93", lw=0.8)
    axes.spines[["top", "right"]].set_visible(False)
    save_picture(figure, path, dpi=90, colours=128)
