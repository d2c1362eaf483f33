"""Short windows of long series as collections: hourly to yearly temperatures, demand, illness and rates."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmark"))
from arena.series import load
from short_series import Collection

# Series, values that are averaged to one, length of a window, horizon, season.
KINDS = [
    ("etth1", 1, 120, 24, 24),
    ("etth1", 24, 60, 14, 7),
    ("etth1", 168, 40, 8, 1),
    ("etth2", 1, 120, 24, 24),
    ("etth2", 24, 60, 14, 7),
    ("etth2", 168, 40, 8, 1),
    ("taxi", 2, 168, 24, 24),
    ("taxi", 48, 60, 14, 7),
    ("taylor", 2, 168, 24, 24),
    ("ili", 1, 130, 26, 52),
    ("ili", 4, 52, 13, 13),
    ("sunspots", 1, 96, 12, 12),
    ("sunspots", 3, 48, 8, 4),
    ("sunspots", 12, 30, 6, 1),
    ("exchange", 1, 100, 10, 5),
    ("exchange", 5, 60, 8, 1),
    ("exchange", 21, 60, 12, 12),
]
MOST = 60  # windows of a set


def windows(folder: Path) -> list[Collection]:
    """Collections of windows that start at even distances, each with what follows it."""
    found = []
    for name, together, length, horizon, season in KINDS:
        y = load(name, folder).y.to_numpy()
        y = y[len(y) % together :].reshape(-1, together).mean(1)
        last = len(y) - length - horizon
        starts = np.unique(np.linspace(0, last, min(MOST, 1 + last)).astype(int))
        parts = [np.split(y[start : start + length + horizon], [length]) for start in starts]
        train, test = (list(of) for of in zip(*parts, strict=True))
        label = f"{name}, means of {together}" if together > 1 else name
        found.append(Collection(label, "", season, horizon, [], train, test))
    return found
