"""Speed of backtests: all three ways of sampling run."""

from __future__ import annotations

import json
import sys


def test_the_quick_run_times_our_sampler_the_loop_of_darts_and_an_lstm(script, monkeypatch, tmp_path):
    out = tmp_path / "found.json"
    monkeypatch.setattr(sys, "argv", ["darts_backtest_speed.py", "--quick", "--out", str(out)])
    script("darts_backtest_speed").main()
    row = json.loads(out.read_text())
    assert row["tiled_by_ours"] > 1.5  # it repeats whole passes for every sample
    assert min(row[f"{name}_s"] for name in ("ours", "tiled", "lstm")) > 0
