"""The benchmark of series that lead others: its data, its naive row, its page."""

from __future__ import annotations

import json

import numpy as np
import pytest


@pytest.fixture
def example(script):
    return script("leading_series")


def test_followers_repeat_the_leader_later(example):
    wide = example.simulated(0)
    for lag in (3, 6):
        follower = wide[f"follows by {lag}"].iloc[lag:].to_numpy()
        error = follower - 0.8 * wide["leader"].iloc[:-lag].to_numpy()
        assert np.std(error) == pytest.approx(0.1, rel=0.2)


def test_the_naive_row_is_the_error_of_the_last_value(example):
    wide = example.simulated(1).iloc[:40]
    row = example.run(wide, "last", 0, {})
    errors = [wide.iloc[k : k + 6, 1:] - wide.iloc[k - 1, 1:] for k in (28, 34)]
    assert row["mae"] == row["loss"] == pytest.approx(np.mean(np.abs(errors)), rel=1e-3)


def test_a_run_fills_the_page_between_its_marks_and_nothing_is_run_twice(example, tmp_path, capsys):
    page, out = tmp_path / "page.md", tmp_path / "rows.json"
    page.write_text(f"before\n{example.MARKS[0]}old\n{example.MARKS[1]}after\n")
    tiny = '{"context_length": 8, "max_steps": 1, "num_samples": 3, "d_model": 8, "n_heads": 1}'
    arguments = ["--seeds", "0", "--out", str(out), "--page", str(page), "--set", tiny]
    example.main(arguments)
    book, text = json.loads(out.read_text()), page.read_text()
    assert [row["model"] for row in book["rows"]] == ["last", "columns", "instances"]
    assert text.startswith("before\n")
    assert text.endswith("after\n")
    assert "old" not in text
    assert example.table(book) in text
    capsys.readouterr()
    example.main(arguments)
    assert "fit_s" not in capsys.readouterr().out
    assert json.loads(out.read_text())["rows"] == book["rows"]
