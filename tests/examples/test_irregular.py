"""The benchmark of irregular times runs, and its page shows what it found."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.filterwarnings("ignore")


def test_the_page_shows_what_was_recorded(script):
    book = json.loads((ROOT / "docs/results/irregular.json").read_text())
    assert script("irregular").table(book) in (ROOT / "docs/prior.md").read_text()


def test_the_quick_run_scores_every_forecaster(script, tmp_path):
    irregular = script("irregular")
    irregular.main(["--quick", "--series", "co2", "--out", str(tmp_path / "found.json")])
    rows = json.loads((tmp_path / "found.json").read_text())["rows"]
    assert [row["model"] for row in rows] == [irregular.NAIVE, *irregular.ROWS]
    assert all(0 < row["wql"] < 1 and 0 <= row["coverage"] <= 1 and row["widest"] > 0 for row in rows)


def test_less_than_a_quarter_of_the_values_is_left(script):
    irregular = script("irregular")
    y = irregular.load("co2").y
    left = irregular.thinned(y, 0)
    assert len(left) < len(y) / 4
    assert left.index.is_monotonic_increasing
    assert left.index.is_unique
