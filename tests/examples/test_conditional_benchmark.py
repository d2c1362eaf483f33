"""The benchmark of conditional forecasts runs, and compares them on the steps that were not given."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

ARENA = Path(__file__).parents[2] / "examples" / "benchmark" / "arena"
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture
def conditional(script, monkeypatch):
    monkeypatch.syspath_prepend(str(ARENA))
    return script("conditional")


def test_the_quick_run_has_scores_of_all_three_kinds(conditional, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["conditional.py", "--quick", "--out", str(tmp_path / "found.json")])
    conditional.main()
    rows = json.loads((tmp_path / "found.json").read_text())["rows"]
    assert [row["model"] for row in rows] == ["time", "random", "given"]
    assert all(row["wql"] > 0 for row in rows)
    assert f"{rows[2]['wql']:.3g} (" in capsys.readouterr().out


def test_only_steps_that_were_not_given_are_scored(conditional, monkeypatch):
    task = conditional.load("airline", None)
    right = np.repeat(task.truth()[:, None], 9, 1)
    right[..., -1] = 1e9  # wrong, but given
    monkeypatch.setattr(conditional, "deciles", lambda task, order, settings: {order: right})
    for row in conditional.compare(task, conditional.Settings()):
        assert row["wql"] == 0
        assert row["coverage"] == 1
