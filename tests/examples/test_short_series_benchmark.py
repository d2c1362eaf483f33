"""The scores of short series, and the page that is made from them."""

import gzip
import json
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def scripts(script):
    return script("short_series"), script("short_series_report")


@pytest.fixture
def collections(tmp_path):
    rng = np.random.default_rng(0)
    for name, values in {
        "noise": 10 + rng.normal(size=(5, 40)),
        "counts": rng.poisson(0.3, size=(5, 40)).astype(float),
    }.items():
        head = {"name": name, "freq": "M", "season": 12, "horizon": 6}
        rows = [
            {"id": str(i), "start": "2000-01", "train": list(y[:34]), "test": [*y[34:39], None]}
            for i, y in enumerate(values)
        ]
        with gzip.open(tmp_path / f"{name}.jsonl.gz", "wt") as file:
            file.writelines(json.dumps(row) + "\n" for row in [head, *rows])
    return tmp_path


def test_collections_are_scored_and_shown(scripts, collections, monkeypatch):
    benchmark, report = scripts
    model = "taylorformer_forecast.sktime:TaylorformerForecaster"
    out = collections / "short.json"
    arguments = ["--data", collections, "--rows", "baseline,naive", "--model", model, "--out", out]
    monkeypatch.setattr(sys, "argv", ["short_series.py", *map(str, arguments)])
    benchmark.main()
    book = json.loads(out.read_text())
    scores = {(row["set"], row["row"]): row for row in book["results"]}
    assert scores["noise", "naive"]["relative"] == 1.0
    assert scores["noise", model]["wql"] == pytest.approx(scores["noise", "baseline"]["wql"], rel=0.15)
    assert all(row["failed"] == 0 and row["relative"] < 1.1 for row in book["results"])
    text = report.page([book])
    assert f"| {scores['noise', model]['relative']:.3f} (" in text
    assert "noise (5)" in text


def test_a_panel_is_scored_as_its_series_one_by_one(scripts, collections):
    benchmark, _ = scripts
    model = 'taylorformer_forecast.sktime:TaylorformerForecaster:{"random_state": 0}'
    for name in ("noise", "counts"):
        collection = benchmark.Collection.read(collections / f"{name}.jsonl.gz", None, seed=0)
        once, each = (
            benchmark.score(collection, benchmark.of_sktime(model, panel)) for panel in (True, False)
        )
        assert once["wql"] == pytest.approx(each["wql"], rel=1e-6)


def test_of_an_atom_the_part_inside_the_interval_is_covered(scripts):
    benchmark, _ = scripts
    quantiles = [np.sort(np.r_[np.zeros(200), np.linspace(1, 2, 199)])[None]]
    assert benchmark.randomised_coverage([np.zeros(1)], quantiles) == pytest.approx(0.8, abs=0.01)
    assert benchmark.randomised_coverage([np.ones(1) * 1.5], quantiles) == pytest.approx(1.0)
    assert benchmark.randomised_coverage([np.ones(1) * 1.9], quantiles) == pytest.approx(0.0)


def test_a_forecast_that_is_not_finite_counts_as_the_naive_one(scripts, collections):
    benchmark, _ = scripts
    collection = benchmark.Collection.read(collections / "noise.jsonl.gz", 3, seed=0)
    scored = benchmark.score(collection, lambda known: [np.full((6, 9), np.nan) for _ in known.train])
    assert (scored["n"], scored["failed"], scored["relative"]) == (3, 3, 1.0)


def test_the_page_is_made_from_the_recorded_results(scripts):
    _, report = scripts
    books = [json.loads(path.read_text()) for path in sorted((ROOT / "docs/results").glob("*short_series*"))]
    assert report.page(books) == (ROOT / "docs" / "short_series.md").read_text()


def test_the_worst_series_of_every_collection_are_shown(script, collections):
    module = script("worst_short_series")
    out, picture = collections / "worst.json", collections / "worst.png"
    module.main(["--data", str(collections), "--out", str(out), "--plot", str(picture)])
    rows = json.loads(out.read_text())["worst"]
    assert [row["set"] for row in rows] == ["counts"] * 2 + ["noise"] * 2
    assert picture.stat().st_size > 10_000
    collection = module.Collection.read(collections / "noise.jsonl.gz", None, 0)
    deciles = [np.repeat(np.full((6, 1), 10.0 if k else 1000.0), 9, 1) for k in range(5)]
    first = module.worst(collection, deciles)[0]
    assert (first["series"], first["values"]) == (0, 34)
    assert first["loss"] > 50 > first["naive"]
