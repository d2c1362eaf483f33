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


def test_a_forecast_that_is_not_finite_counts_as_the_naive_one(scripts, collections):
    benchmark, _ = scripts
    collection = benchmark.Collection.read(collections / "noise.jsonl.gz", 3, seed=0)
    scored = benchmark.score(collection, lambda known: [np.full((6, 9), np.nan) for _ in known.train])
    assert (scored["n"], scored["failed"], scored["relative"]) == (3, 3, 1.0)


def test_the_page_is_made_from_the_recorded_results(scripts):
    _, report = scripts
    books = [json.loads(path.read_text()) for path in sorted((ROOT / "docs/results").glob("short_series*"))]
    assert report.page(books) == (ROOT / "docs" / "short_series.md").read_text()
