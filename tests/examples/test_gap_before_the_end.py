"""The benchmark of gaps before the end runs, and its page shows what it found."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.filterwarnings("ignore")


def test_the_page_on_strategies_shows_the_recorded_gaps(script):
    rows = json.loads((ROOT / "docs/results/gap_before_the_end.json").read_text())["rows"]
    assert script("gap_before_the_end").table(rows) in (ROOT / "docs/strategies.md").read_text()


def test_the_quick_run_scores_a_network_and_the_naive_forecast(script, tmp_path):
    file = tmp_path / "found.json"
    script("gap_before_the_end").main(["--quick", "--out", str(file)])
    rows = json.loads(file.read_text())["rows"]
    assert [(row["model"], row["gap"]) for row in rows] == [
        (model, gap) for model in ("LAM", "seasonal naive") for gap in (0, 6, 12, 24)
    ]
    assert all(0 < row["wql"] < 1 for row in rows)
    found = {row["gap"]: row["wql"] for row in rows if row["model"] == "LAM"}
    assert found[12] < 3 * found[0]  # seven times as much along a straight line


def test_the_naive_forecast_takes_the_latest_known_value_of_every_phase(script):
    gaps = script("gap_before_the_end")
    y = gaps.with_gap(pd.Series(np.arange(20.0)), 14, 4)
    assert np.isnan(y[7:11]).all()
    assert gaps.naive(y, 4, 5)[:, 0].tolist() == [6.0, 11.0, 12.0, 13.0, 6.0]
