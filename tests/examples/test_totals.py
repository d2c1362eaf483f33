"""The benchmark of totals: its hierarchies, its naive row, its page."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def example(script):
    return script("totals")


def test_simulated_columns_have_the_correlation_of_their_innovations(example):
    y = example.simulated(0, 5000).to_numpy()
    np.testing.assert_allclose(np.corrcoef(y.T), 0.7 + 0.3 * np.eye(4), atol=0.05)


def test_the_naive_row_has_the_quantiles_of_its_past_errors(example):
    y = example.simulated(0, 400)
    values = y.sum(axis=1).to_numpy()
    found = example.of_total(y, "naive", 5, 4, {})
    np.testing.assert_allclose(
        found[:, 0] - values[-4], np.quantile(values[4:] - values[:-4], example.LEVELS)
    )
    np.testing.assert_allclose(
        found[:, 4] - values[-4], np.quantile(values[8:] - values[:-8], example.LEVELS)
    )


def test_parts_are_summed_path_by_path(example):
    y = example.simulated(0, 60)
    width = {}
    for model in ("independent", "joint"):
        found = example.of_total(y, model, 3, 1, {"strategy": "baseline"})
        width[model] = (found[-1] - found[0]).mean()
    assert width["joint"] > 1.2 * width["independent"]


def test_a_run_fills_the_page_between_its_marks_and_nothing_is_run_twice(example, tmp_path, capsys):
    page, out = tmp_path / "page.md", tmp_path / "rows.json"
    page.write_text(f"before\n{example.MARKS[0]}old\n{example.MARKS[1]}after\n")
    arguments = ["--cases", "2", "--out", str(out), "--page", str(page), "--set", '{"strategy": "baseline"}']
    arguments += ["--models", "naive", "joint", "--panels", "spending", "simulated"]
    example.main(arguments)
    book, text = json.loads(out.read_text()), page.read_text()
    assert [(row["panel"], row["model"]) for row in book["rows"]] == [
        (panel, model) for panel in ("simulated", "spending") for model in ("naive", "joint")
    ]
    assert text.startswith("before\n")
    assert text.endswith("after\n")
    assert "old" not in text
    assert example.table(book) in text
    capsys.readouterr()
    example.main(arguments)
    assert "{" not in capsys.readouterr().out
    assert json.loads(out.read_text())["rows"] == book["rows"]


def test_the_page_shows_the_scores_that_were_recorded(example):
    book = json.loads((ROOT / "docs/results/totals.json").read_text())
    assert example.section(book) in (ROOT / "docs/totals.md").read_text()
