"""The benchmark of gaps runs from series to page, and scores what was hidden."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

SCRIPT = Path(__file__).parents[2] / "examples" / "benchmark" / "imputation.py"


@pytest.fixture(scope="module")
def results(tmp_path_factory, run_script):
    folder = tmp_path_factory.mktemp("imputation")
    paths = folder / "imputation.json", folder / "imputation.md"
    out = run_script(SCRIPT, "--quick", "--out", paths[0], "--page", paths[1])
    return json.loads(paths[0].read_text()), paths[1].read_text(), out


def test_every_method_of_the_quick_run_has_scores(results):
    rows = results[0]["rows"]
    assert [row["model"] for row in rows] == ["linear", "drift", "seasonal", "taylorformer", "contiformer"]
    for row in rows:
        assert row["crps"] > 0, row
        assert row["hidden"] == 25, row
    assert all(0 <= row["coverage"] <= 1 for row in rows[-2:])
    assert "torch" in results[0]["machine"]


def test_the_page_shows_the_table_and_names_what_was_lost(results):
    book, page, out = results
    table = out[out.index("| series |") :].strip()
    assert table in page
    assert table.splitlines()[-1].count("**") == 2
    *naive, taylorformer, contiformer = (row["mae"] for row in book["rows"])
    first, second = page.split("## ContiFormer")
    assert ("MAE is" in first) == (taylorformer > min(naive))
    assert ("MAE is" in second) == (contiformer > min(*naive, taylorformer))


def test_the_page_has_all_methods_over_the_placements_that_all_have_filled(results, script):
    book, page, _ = results
    module = script("imputation_report")
    alone = {"seed": 1, "hidden": 1000}
    more = {**book, "rows": [*book["rows"], *({**row, **alone} for row in book["rows"][:-1])]}
    assert module.side_by_side(more) == module.side_by_side(book)
    assert module.side_by_side(book) in page
    assert module.side_by_side(book).splitlines()[-1].startswith("| airline | 5 | 25 | ")


def test_gaps_are_apart_and_cover_what_they_should(script):
    punch = script("imputation").punch
    for length in (1, 5, 20):
        hidden = punch(144, length, np.random.default_rng(0))
        edges = np.flatnonzero(np.diff(np.concatenate([[0], hidden, [0]])))
        assert set(edges[1::2] - edges[::2]) == {length}
        assert (edges[2::2] - edges[1:-1:2]).min() >= 2
        assert 0.15 <= hidden.mean() < 0.15 + length / 144


def test_lines_between_seasons_are_exact_for_seasons_that_grow(script):
    steps = np.arange(40)
    y = pd.Series(10.0 * (steps % 4) + (1 + steps % 4) * (steps // 4))
    hidden = np.isin(steps, [9, 10, 11, 12, 25])
    np.testing.assert_allclose(script("imputation").between_seasons(y.mask(hidden), 4), y)
