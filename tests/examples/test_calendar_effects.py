"""The benchmark of effects of the calendar, and its page."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("steps", ["days", "months"])
def test_the_page_on_calendar_effects_shows_what_was_recorded(script, steps):
    book = json.loads((ROOT / "docs/results/calendar_effects.json").read_text())
    table = script("calendar_effects").table(book, steps)
    assert table.count("\n") > 3
    assert table in (ROOT / "docs/calendar_effects.md").read_text()


def test_pieces_are_scored_with_and_without_effects(script):
    benchmark = script("calendar_effects")
    days = pd.date_range("2020-01-01", periods=500)
    y = 50 + np.random.default_rng(0).normal(size=(500, 1))
    pieces = benchmark.pieces("noise", pd.DataFrame(y, days), n=400)
    assert {len(part) for part in pieces.train} == {400}
    assert {len(part) for part in pieces.test} == {28}
    row = benchmark.row("noise", pieces)
    assert 0.5 < row["with"] < 1
    assert abs(row["with"] - row["without"]) < 0.01
    assert f"| {row['without']:.3f} ({row['coverage_without']:.2f}) |" in benchmark.table(
        {"rows": [row]}, "days"
    )
