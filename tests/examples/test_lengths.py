"""The benchmark of strategies over lengths runs, and its page shows what it found."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.filterwarnings("ignore")


def test_the_page_on_strategies_shows_what_was_recorded(script):
    book = json.loads((ROOT / "docs/results/lengths.json").read_text())
    assert script("lengths").table(book) in (ROOT / "docs/strategies.md").read_text()


def test_the_quick_run_scores_every_strategy(script, tmp_path, monkeypatch):
    lengths = script("lengths")
    monkeypatch.setattr(lengths, "STRATEGIES", ("corrected", "pretrained", "train"))
    monkeypatch.setattr(lengths, "MEANS", {"train, corrected": ("train", "corrected")})
    lengths.main(["--quick", "--out", str(tmp_path / "found.json")])
    rows = json.loads((tmp_path / "found.json").read_text())["rows"]
    assert [row["model"] for row in rows] == [
        *("naive", "corrected", "pretrained", "train"),
        *("train, corrected", "averaged", "zero_shot"),
    ]
    assert all(0 < row["wql"] < 1 and 0 <= row["coverage"] <= 1 for row in rows)
    wql = {row["model"]: row["wql"] for row in rows}
    for row, network in zip(rows[4:], ("train", "train", "pretrained"), strict=True):
        share = row.get("share", 0.5)
        most = share * wql["corrected"] + (1 - share) * wql[network]
        assert row["wql"] <= most + 1e-5  # a loss is convex


def test_pieces_lie_in_the_series_and_begin_late(script):
    y = pd.Series(np.arange(1000.0))
    first, second = script("lengths").pieces(y, 400, 10)
    assert (first[0], len(first), len(second)) == (450, 10, 10)
    assert second[-1] + 10 == len(y)
    assert script("lengths").pieces(y, 950, 10) == []
