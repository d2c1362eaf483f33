"""The benchmark runs from series to table."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

ARENA = Path(__file__).parents[2] / "examples" / "benchmark" / "arena"


@pytest.fixture(scope="module")
def results(tmp_path_factory, run_script):
    path = tmp_path_factory.mktemp("arena") / "arena.json"
    return path, run_script(ARENA / "run.py", "--quick", "--out", path)


def test_every_model_of_the_quick_run_has_scores(results):
    book = json.loads(results[0].read_text())
    assert [row["model"] for row in book["rows"]] == ["naive", "lam_sktime"]
    for row in book["rows"]:
        assert row["wql"] > 0, row
        assert 0 <= row["coverage"] <= 1


def test_the_table_has_a_line_for_every_model_and_the_best_in_bold(results):
    table = results[1][results[1].index("| model |") :].strip().splitlines()
    assert [line.split(" | ")[0] for line in table[2:]] == ["| seasonal naive", "| LAM (sktime)"]
    assert sum("**" in line for line in table) == 1


def test_what_was_run_is_not_run_again_and_makes_a_page(results, run_script, tmp_path):
    path, _ = results
    before = json.loads(path.read_text())["rows"]
    row = {"series": "A", "context": 96, "targets": 96, "model": "previous", "nll": -1.0, "mse": 0.01}
    one_step = {"machine": {"processor": "a processor"}, "rows": [row]}
    path.with_name("teacher_forced.json").write_text(json.dumps(one_step))
    run_script(ARENA / "report.py", path, "--docs", tmp_path)
    assert json.loads(path.read_text())["rows"] == before
    page = (tmp_path / "benchmark.md").read_text()
    assert "seasonal naive" in page
    assert "One seed: differences of a few per cent may be chance." in page
    assert "| A | 96 | the previous true value | **-1.000** |" in page
    for picture in ("arena_ranks.png", "arena_fans.png"):
        assert f"images/{picture}" in page
        assert (tmp_path / "images" / picture).stat().st_size > 1000


def test_the_page_says_how_far_seeds_are_apart(results, run_script, tmp_path):
    book = json.loads(results[0].read_text())
    ours = book["rows"][1]
    book["rows"].append({**ours, "seed": 1, "wql": 3 * ours["wql"]})
    path = tmp_path / "several.json"
    path.write_text(json.dumps(book))
    run_script(ARENA / "report.py", path, "--docs", tmp_path)
    page = (tmp_path / "benchmark.md").read_text()
    assert "Means over 2 seeds; 1 of seasonal naive." in page
    assert "are 100.0% apart in the median" in page


def test_scores_of_a_known_forecast(monkeypatch):
    monkeypatch.syspath_prepend(str(ARENA))
    import numpy as np
    import pandas as pd
    from run import scores
    from series import Task

    y = pd.Series(np.arange(1.0, 11.0))
    task = Task("line", y, season=1, horizon=2, context=4, n_origins=1)
    truth = task.truth()
    exact = scores(np.repeat(truth[:, None], 9, 1), task)
    assert exact == {"wql": 0.0, "mase": 0.0, "crps": 0.0, "coverage": 1.0}
    # One below the truth at every decile: the mean of 2 * level is 1.
    below = scores(np.repeat(truth[:, None], 9, 1) - 1, task)
    assert below["wql"] == pytest.approx(2 / truth.sum())
    assert below["mase"] == pytest.approx(1.0)
    assert below["coverage"] == 0.0


def test_a_variant_is_ranked_in_the_place_of_its_model(monkeypatch):
    monkeypatch.syspath_prepend(str(ARENA))
    from compare import Table

    wql = {"naive": 3.0, "taylorformer_sktime": 2.0, "taylorformer_pretrained": 1.0, "lam_sktime": 1.5}
    rows = [
        {"model": model, "series": "A", "seed": 0, "budget_s": 60.0, "wql": value, "coverage": 0.8}
        for model, value in wql.items()
    ]
    table = Table({"series": {"A": {}}, "rows": rows})
    names, ranks = table.ranks()
    assert names == ["lam_sktime", "taylorformer_sktime", "naive"]
    assert ranks.mean(1).tolist() == [1.0, 2.0, 3.0]
    assert table.rank_in_place("taylorformer_pretrained") == 1.0
    assert table.rank_in_place("taylorformer_darts_finetuned") is None
    assert [line.split(" | ")[-1] for line in table.markdown().splitlines()[2:]] == [
        "3.00 |",
        "2.00 |",
        "(1.00) |",
        "1.00 |",
    ]
