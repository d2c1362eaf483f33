"""The benchmark of single parameters runs, and the page on tuning shows what it found."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.filterwarnings("ignore")


def test_the_page_on_tuning_shows_the_ratios_that_were_recorded(script):
    rows = json.loads((ROOT / "docs/results/settings.json").read_text())["rows"]
    assert script("settings").table(rows) in (ROOT / "docs/guide/settings.md").read_text()


def test_the_quick_run_changes_one_parameter_at_a_time(script, tmp_path, monkeypatch):
    settings = script("settings")
    names = ("defaults", "half the context_length")
    monkeypatch.setattr(settings, "CHANGES", {name: settings.CHANGES[name] for name in names})
    monkeypatch.setattr(sys, "argv", ["settings.py", "--quick", "--out", str(tmp_path / "found.json")])
    settings.main()
    usual, half = json.loads((tmp_path / "found.json").read_text())["rows"]
    assert half["context_length"] == usual["context_length"] / 2
    assert min(usual["wql"], half["wql"], usual["fit_s"], half["predict_s"]) > 0
