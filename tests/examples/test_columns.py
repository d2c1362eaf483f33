"""The benchmark of columns of one frame: its naive rows, its page."""

from __future__ import annotations

import json

import numpy as np
import pytest


@pytest.fixture
def example(script, monkeypatch):
    module = script("columns")
    monkeypatch.setattr(module, "TRAINED", 200)
    monkeypatch.setattr(module, "N_ORIGINS", 2)
    return module


def test_naive_rows_are_errors_of_one_value(example):
    wide = example.simulated(0, 400)
    steps = np.arange(24)
    for model, back in (("last", np.full(24, -1)), ("day", steps - 24)):
        errors = [wide.to_numpy()[k + steps] - wide.to_numpy()[k + back] for k in (200, 301)]
        expected = np.abs(errors).mean((0, 1)) / wide.iloc[:200].diff().abs().mean()
        assert example.run(wide, model, 0, {})["loss"] == pytest.approx(expected.mean(), rel=1e-3)


def test_a_run_fills_the_page_between_its_marks_and_nothing_is_run_twice(
    example, tmp_path, capsys, monkeypatch
):
    monkeypatch.setattr(example, "frames", lambda data, seed: [("simulated", example.simulated(seed, 330))])
    page, out = tmp_path / "page.md", tmp_path / "rows.json"
    page.write_text(f"before\n{example.MARKS[0]}old\n{example.MARKS[1]}after\n")
    arguments = [
        "--seeds",
        "0",
        "--out",
        str(out),
        "--page",
        str(page),
        "--set",
        '{"strategy": "pretrained"}',
    ]
    example.main(arguments)
    book, text = json.loads(out.read_text()), page.read_text()
    assert [row["model"] for row in book["rows"]] == ["last", "day", "each", "together"]
    assert text.startswith("before\n")
    assert text.endswith("after\n")
    assert "old" not in text
    assert example.table(book) in text
    capsys.readouterr()
    example.main(arguments)
    assert "fit_s" not in capsys.readouterr().out
    assert json.loads(out.read_text())["rows"] == book["rows"]
