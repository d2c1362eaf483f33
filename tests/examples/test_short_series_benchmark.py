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


def test_series_are_cut_after_their_first_jump(script):
    module = script("after_jumps")
    y = np.r_[np.tile([1.0, 2.0], 10), 30.0, 31.0, 30.0, np.tile([1.0, 2.0], 3)]
    assert module.first_jump(y, 1) == 20
    assert module.first_jump(y[:20], 1) is None
    assert module.first_jump(np.r_[y[:12], 30.0, y[12:]], 1) == 12
    seasonal = np.tile(np.r_[np.zeros(5), 1.0, 30.0, 1.0], 4) + np.tile([0.0, 0.1], 16)
    assert module.first_jump(seasonal[8:], 8) is None
    collection = module.Collection("a", "M", 1, 4, ["2000-01"] * 2, [y[:22], y[:20]], [y[22:26], y[20:20]])
    part = module.after_jumps(collection, 2)
    assert [row.tolist() for row in part.train] == [y[:22].tolist()]
    assert part.test[0].tolist() == y[22:26].tolist()
    late = module.after_jumps(collection, 5)
    assert late.test[0][:1].tolist() == [y[25]]
    assert np.isnan(late.test[0][1:]).all()


def test_forecasts_after_jumps_are_scored_and_shown(script, scripts, tmp_path, monkeypatch):
    module, report = script("after_jumps"), scripts[1]
    monkeypatch.setattr(module, "ROWS", {name: module.ROWS[name] for name in list(module.ROWS)[:2]})
    rng = np.random.default_rng(0)
    for name in module.SETS:
        y = 10 + rng.normal(size=(3, 40)) + 50 * (np.arange(40) >= 30)
        rows = [{"start": "2000-01-01", "train": list(v[:36]), "test": list(v[36:])} for v in y]
        head = {"name": name, "freq": "M", "season": 1, "horizon": 4}
        with gzip.open(tmp_path / f"{name}.jsonl.gz", "wt") as file:
            file.writelines(json.dumps(row) + "\n" for row in [head, *rows])
    module.main(["--data", str(tmp_path), "--out", str(tmp_path / "jumps.json")])
    book = json.loads((tmp_path / "jumps.json").read_text())
    ours = [row for row in book["jumps"] if row["row"] != "naive"]
    assert [(row["set"], row["values"], row["n"]) for row in ours] == [
        (name, k, 3) for name in module.SETS for k in (1, 2, 3)
    ]
    recorded = json.loads((ROOT / "docs/results/short_series_part.json").read_text())
    text = report.page([recorded, book])
    assert f"| {report.cell(ours[0])} | {report.cell(ours[1])} | {report.cell(ours[2])} |" in text
    assert "M3 yearly 3, M3 quarterly 3, M3 monthly 3." in text


def test_forecasts_from_a_few_values_are_scored_and_shown(script, scripts, tmp_path, monkeypatch):
    module, report = script("few_values"), scripts[1]
    monkeypatch.setattr(module, "VALUES", (3, 4))
    rng = np.random.default_rng(0)
    for name in module.SETS:
        y = 10 + rng.normal(size=(3, 40))
        rows = [{"start": "2000-01-01", "train": list(v[:30]), "test": list(v[30:])} for v in y]
        head = {"name": name, "freq": "M", "season": 12, "horizon": 10}
        with gzip.open(tmp_path / f"{name}.jsonl.gz", "wt") as file:
            file.writelines(json.dumps(row) + "\n" for row in [head, *rows])
    module.main(["--data", str(tmp_path), "--out", str(tmp_path / "few.json")])
    book = json.loads((tmp_path / "few.json").read_text())
    naive = [row["relative"] for row in book["few"] if row["row"] == "naive"]
    assert naive == [1.0] * 6
    recorded = json.loads((ROOT / "docs/results/short_series_part.json").read_text())
    text = report.page([recorded, book])
    assert (
        f"| M3 yearly | last value | {report.cell(book['few'][2])} | {report.cell(book['few'][5])} |" in text
    )
