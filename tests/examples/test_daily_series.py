"""The benchmark of effects of the calendar, and its page."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd

ROOT = Path(__file__).parents[2]


def test_the_page_on_daily_series_shows_what_was_recorded(script):
    book = json.loads((ROOT / "docs/results/daily_series.json").read_text())
    assert script("daily_series").table(book) in (ROOT / "docs/daily_series.md").read_text()


def test_pieces_are_scored_with_and_without_effects(script):
    benchmark = script("daily_series")
    days = pd.date_range("2020-01-01", periods=500)
    y = 50 + np.random.default_rng(0).normal(size=(500, 1))
    pieces = benchmark.pieces("noise", pd.DataFrame(y, days), n=400)
    assert {len(part) for part in pieces.train} == {400}
    assert {len(part) for part in pieces.test} == {28}
    row = benchmark.row("noise", pieces)
    assert 0.5 < row["with"] < 1
    assert abs(row["with"] - row["without"]) < 0.01
    assert f"| {row['without']:.3f} ({row['coverage_without']:.2f}) |" in benchmark.table({"rows": [row]})
