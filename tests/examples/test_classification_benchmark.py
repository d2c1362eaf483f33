"""The benchmark of classes: what it drops and fills, and its page."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def example(script):
    return script("classification")


def test_rows_that_are_dropped_are_gone_from_panels_and_lie_on_lines_where_filled(example):
    series = [np.column_stack([np.arange(n) ** 2, -np.arange(n)]).astype(float) for n in (10, 6, 3)]
    left = example.drop(series, 0.5, np.random.default_rng(0))
    panel = example.as_panel(left)
    assert panel.groupby(level=0).size().tolist() == [5, 3, 2]
    for number, values in enumerate(series):
        kept = panel.loc[number]
        np.testing.assert_array_equal(kept, values[kept.index])
    filled = example.filled(left, 10)
    assert filled.shape == (3, 2, 10)
    at = panel.loc[0].index
    np.testing.assert_allclose(-filled[0, 1, at[0] : at[-1] + 1], np.arange(at[0], at[-1] + 1))


def test_a_quick_run_has_every_classifier_and_fills_the_page_between_its_marks(example, tmp_path, capsys):
    pytest.importorskip("numba")
    page, out = tmp_path / "page.md", tmp_path / "rows.json"
    page.write_text(f"before\n{example.MARKS[0]}old\n{example.MARKS[1]}after\n")
    example.main(["--quick", "--out", str(out), "--page", str(page)])
    book, text = json.loads(out.read_text()), page.read_text()
    assert [row["model"] for row in book["rows"]] == list(example.LABELS) * len(example.DROPPED)
    assert all(0 <= row["accuracy"] <= 1 for row in book["rows"])
    assert text.startswith("before\n")
    assert text.endswith("after\n")
    assert "old" not in text
    assert example.table(book) in text
    capsys.readouterr()
    example.main(["--quick", "--out", str(out)])
    assert "seconds" not in capsys.readouterr().out


def test_the_page_shows_the_accuracies_that_were_recorded(example):
    book = json.loads((ROOT / "docs/results/classification.json").read_text())
    assert len({row["set"] for row in book["rows"]}) >= 6
    assert example.section(book) in (ROOT / "docs/classification.md").read_text()
