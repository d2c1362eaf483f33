"""Budgets of the arena: what was run already, tables of the largest, and the curve over all of them."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

ARENA = Path(__file__).parents[2] / "examples" / "benchmark" / "arena"
SERIES = ("airline", "ili", "taxi")
NAIVE = {"airline": 0.1, "ili": 0.4, "taxi": 0.2}


@pytest.fixture
def arena(script, monkeypatch):
    monkeypatch.syspath_prepend(str(ARENA))
    return script


def row(model: str, series: str, budget: float, ratio: float, seed: int = 0, fit_s: float = 0.0) -> dict:
    scores = {"wql": ratio * NAIVE[series], "mase": 1.0, "crps": 1.0, "coverage": 0.8}
    times = {"fit_s": fit_s, "fit_wall_s": fit_s, "predict_s": 0.1}
    fan = np.arange(10.0).reshape(5, 2).tolist()
    return {"model": model, "series": series, "seed": seed, "budget_s": budget, **scores, **times, "fan": fan}


def a_book(rows: list[dict]) -> dict:
    about = {"length": 100, "season": 4, "horizon": 2, "context": 8, "origins": 3, "end": [1.0] * 6}
    return {
        "series": {name: about for name in SERIES},
        "machine": {"processor": "a processor"},
        "paths": 200,
        "rows": rows,
    }


def untrained() -> list[dict]:
    """Models without training: their budget is not that of any network."""
    return [row(model, s, 30.0, r) for model, r in (("naive", 1.0), ("ets", 0.7)) for s in SERIES]


@pytest.fixture
def book():
    """Two networks at two budgets; LAM has no score of taxi at the smaller one, DLinear ends early."""
    lam = [row("lam_sktime", s, b, r, fit_s=b) for b, r in ((5.0, 0.8), (60.0, 0.5)) for s in SERIES]
    lam[2] = {**{key: lam[2][key] for key in ("model", "series", "seed", "budget_s")}, "error": "no"}
    part = {"airline": 0.2, "ili": 0.8, "taxi": 1.0}  # of the budget, until it ends
    dlinear = [row("dlinear", s, b, 0.6, fit_s=b * part[s]) for b in (60.0, 5.0) for s in SERIES]
    dlinear[0]["wql"] *= 4  # of airline at 60 seconds
    return a_book(untrained() + lam + dlinear)


def test_models_without_training_are_those_that_no_budget_changes(arena):
    rows, models = arena("rows"), arena("models")
    assert [name for name in models.MODELS if not rows.trains(name)] == [
        "naive",
        "naive_normal",
        "ets",
        "theta",
        "taylorformer_pretrained",
        "taylorformer_zero_shot",
    ]


def test_a_run_is_its_model_series_seed_and_budget_if_that_matters(arena):
    key = arena("rows").key
    assert key(row("dlinear", "ili", 5.0, 1.0)) == ("dlinear", "ili", 0, 5.0)
    assert key(row("dlinear", "ili", 5.0, 1.0)) != key(row("dlinear", "ili", 60.0, 1.0))
    assert key(row("ets", "ili", 5.0, 1.0)) == key(row("ets", "ili", 60.0, 1.0))


def test_only_missing_budgets_are_run_and_statistical_models_once(arena, monkeypatch, tmp_path):
    run = arena("run")
    path = tmp_path / "arena.json"
    path.write_text(json.dumps(a_book([row("dlinear", "airline", 5.0, 1.0)])))

    def no_training(name, task, settings):
        return row(name, task.name, settings.budget, 1.0, settings.seed)

    monkeypatch.setattr(run, "run", no_training)
    options = ["--budget", "5,60", "--models", "naive,dlinear", "--series", "airline", "--seeds", "0,1"]
    monkeypatch.setattr(sys, "argv", ["run.py", *options, "--out", str(path)])
    for _ in range(2):
        run.main()
        found = [run.key(one) for one in json.loads(path.read_text())["rows"]]
        assert len(found) == 6
        assert {(m, seed, b) for m, _, seed, b in found} == {
            ("naive", 0, None),
            ("naive", 1, None),
            *(("dlinear", seed, b) for seed in (0, 1) for b in (5.0, 60.0)),
        }


def test_rows_that_a_file_has_already_are_kept_and_counted(arena, tmp_path, capsys):
    book = {"rows": [{"series": "airline", "wql": 0.5}]}
    cases = [({"series": name}, lambda: {"wql": 0.1}) for name in ("airline", "ili")]
    arena("run").run_missing(book, tmp_path / "found.json", cases)
    assert book["rows"] == [{"series": "airline", "wql": 0.5}, {"series": "ili", "wql": 0.1}]
    assert "1 rows were kept" in capsys.readouterr().out


def test_tables_are_of_the_largest_budget_of_what_trains(arena, book):
    table = arena("compare").Table(book)
    assert table.models == ["naive", "ets", "lam_sktime", "dlinear"]
    ratio = table.values("wql") / table.values("wql")[0]
    np.testing.assert_allclose(ratio, [[1, 1, 1], [0.7] * 3, [0.5] * 3, [2.4, 0.6, 0.6]])
    assert not table.failed  # at the smaller budget only
    small = arena("compare").Table(book, 5.0)
    assert list(small.failed) == [("lam_sktime", "taxi")]
    np.testing.assert_allclose(small.values("fit_s")[-1], [1, 4, 5])


def test_a_larger_budget_of_what_does_not_train_selects_nothing(arena, book):
    kept = [one for one in book["rows"] if one["budget_s"] != 60]
    late = row("theta", "ili", 60.0, 0.9)
    assert arena("rows").rows_at({**book, "rows": [*kept, late]}) == [*kept, late]


def test_a_curve_is_over_the_series_that_all_its_points_have(arena, book):
    found = arena("curve").curve(book)
    assert found.series == ["airline", "ili"]
    assert found.budgets == [5.0, 60.0]
    assert list(found.lines) == ["lam_sktime", "dlinear"]
    lam, dlinear = found.lines.values()
    assert [(b, p.seconds) for b, p in lam.items()] == [(5.0, 5.0), (60.0, 60.0)]
    assert [p.ratio for p in lam.values()] == pytest.approx([0.8, 0.5])
    assert [p.seconds for p in dlinear.values()] == pytest.approx([2.5, 30.0])
    assert [p.ratio for p in dlinear.values()] == pytest.approx([0.6, (2.4 * 0.6) ** 0.5])
    assert found.levels == pytest.approx({"naive": 1.0, "ets": 0.7})


def test_models_that_take_longer_than_a_budget_are_named(arena, book):
    curve = arena("curve")
    late = [
        row("tide", s, b, 0.9, seed, fit_s=took)
        for s in SERIES
        for b, took in ((5.0, 7.0), (60.0, 8.0))
        for seed in (0, 1)
    ]
    text = curve.overruns(curve.curve({**book, "rows": book["rows"] + late}))
    assert "With a budget of 5 s, trainings took on average: TiDE 7.0 s (up to 7.0 s)." in text
    assert "Seeds of every point, at least: 1 at 5 s, 1 at 60 s." in text
    assert curve.overruns(curve.curve(book)) == "Seeds of every point, at least: 1 at 5 s, 1 at 60 s."


def test_a_budget_that_was_run_on_few_series_is_no_point(arena, book):
    more = [row("dlinear", "ili", 600.0, 0.1), row("tide", "ili", 5.0, 1.0)]
    found = arena("curve").curve({**book, "rows": book["rows"] + more})
    assert list(found.lines) == ["lam_sktime", "dlinear"]
    assert list(found.lines["dlinear"]) == [5.0, 60.0]


def test_a_model_without_one_of_the_budgets_has_a_dash(arena, book):
    curve = arena("curve")
    more = [row("tide", s, b, 0.9, fit_s=b) for b in (60.0, 30.0) for s in SERIES]
    table = curve.markdown(curve.curve({**book, "rows": book["rows"] + more})).splitlines()
    assert table[0] == "| model | 5 s | 30 s | 60 s |"
    assert table[2:] == [
        "| LAM (sktime) | 0.800 (5.0) | – | **0.500** (60.0) |",
        "| DLinear | **0.600** (2.5) | – | 1.200 (30.0) |",
        "| TiDE | – | **0.900** (30.0) | 0.900 (60.0) |",
    ]


@pytest.mark.parametrize("left_out", ["naive", 5.0, 60.0])
def test_no_curve_without_a_second_budget_or_the_naive_forecast(arena, book, left_out):
    rows = [one for one in book["rows"] if left_out not in (one["model"], one["budget_s"])]
    assert arena("curve").curve({**book, "rows": rows}) is None


def test_the_page_has_the_curve_only_with_two_budgets(arena, book, monkeypatch, tmp_path):
    path = tmp_path / "arena.json"
    for least, has in ((60.0, False), (0.0, True)):
        rows = [one for one in book["rows"] if one["model"] in ("naive", "ets") or one["budget_s"] >= least]
        path.write_text(json.dumps({**book, "rows": rows}))
        monkeypatch.setattr(sys, "argv", ["report.py", str(path), "--docs", str(tmp_path)])
        arena("report").main()
        page = " ".join((tmp_path / "benchmark.md").read_text().split())
        assert ("## Quality against training seconds" in page) == has
        assert ("images/arena_curve.png" in page) == has
        assert (tmp_path / "images" / "arena_curve.png").exists() == has
        budgets = " (the curve: 5, 60)" if has else ""
        assert f"60 seconds of training for every network{budgets}, in processor time" in page
        assert "| LAM (sktime) | **0.0500** (0.80) |" in page


def test_labels_are_a_gap_apart_and_inside(arena):
    apart = arena("pictures")._apart
    heights = np.array([0.99, 0.5, 0.51, 0.1, 1.0])
    moved = apart(heights, 0.1)
    assert np.diff(np.sort(moved)).min() > 0.1 - 1e-9
    assert moved.max() <= 1
    assert moved[3] == 0.1
    np.testing.assert_allclose(moved[1:3], [0.455, 0.555])
    assert (np.argsort(moved) == np.argsort(heights)).all()
