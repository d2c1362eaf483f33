"""Pictures of the page on neural processes: learning curves of parts, and spreads over orders."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from networks import LABELS

sys.path.append(str(Path(__file__).parents[1] / "arena"))
from pictures import BLUE, DARK, ORANGE, plt, save_picture

__all__ = ["draw_curves", "draw_spreads"]

GREEN = "#3c8d5a"
COLOURS = {"base": DARK, "times": GREEN, "local": BLUE, "taylorformer": ORANGE, "tnpa": BLUE}


def draw_curves(panels: dict[str, tuple[dict[str, np.ndarray], float, int]], path: Path) -> None:
    """Draw learning curves of networks, a panel for every kernel.

    Parameters
    ----------
    panels : dict
        For every kernel the log-likelihoods of training batches in the course of training by network, the
        ceiling, and the number of steps.
    path : Path
        PNG to write.
    """
    figure, row = plt.subplots(
        1, len(panels), figsize=(4.4 * len(panels), 3.4), layout="constrained", squeeze=False
    )
    for axes, (kernel, (curves, ceiling, steps)) in zip(row[0], panels.items(), strict=True):
        for name, curve in curves.items():
            middle = (np.arange(len(curve)) + 0.5) * steps / len(curve)
            axes.plot(middle, curve, color=COLOURS[name], label=LABELS[name], lw=1.6)
        axes.axhline(ceiling, color="grey", ls="--", lw=1, label="ceiling")
        axes.set_title(kernel)
        axes.set_xlabel("training step")
        axes.set_ylim(min(-1.0, ceiling - 3.5), ceiling + 0.2)
        axes.spines[["top", "right"]].set_visible(False)
    row[0][0].set_ylabel("log-likelihood per target")
    row[0][-1].legend(frameon=False, fontsize=8)
    save_picture(figure, path, dpi=90)


def draw_spreads(spreads: dict[str, dict[int, np.ndarray]], path: Path) -> None:
    """Draw histograms of spreads, a panel for every network and one for each number of orders learnt.

    Parameters
    ----------
    spreads : dict
        Standard deviations of joint log-likelihoods by network and by orders learnt at once.
    path : Path
        PNG to write.
    """
    every = np.concatenate([values for part in spreads.values() for values in part.values()])
    edges = np.linspace(0, np.quantile(every, 0.98), 40)
    figure, row = plt.subplots(
        1, len(spreads), figsize=(4.4 * len(spreads), 3.2), layout="constrained", squeeze=False
    )
    for axes, (name, part) in zip(row[0], spreads.items(), strict=True):
        for (orders, values), colour in zip(part.items(), (BLUE, ORANGE, GREEN), strict=False):
            label = f"{orders} order{'s' * (orders > 1)} learnt at once"
            axes.hist(values, edges, color=colour, alpha=0.5, density=True, label=label)
        axes.set_title(LABELS[name])
        axes.set_xlabel("standard deviation of the joint log-likelihood, nats")
        axes.set_yticks([])
        axes.legend(frameon=False, fontsize=8)
        axes.spines[["top", "right", "left"]].set_visible(False)
    row[0][0].set_ylabel("share of sequences")
    save_picture(figure, path, dpi=90)
