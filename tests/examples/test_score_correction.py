"""Scores of parts of the correction of statistical forecasts, and of their families."""

import gzip
import json

import numpy as np
import pytest


@pytest.fixture
def folder(tmp_path):
    rng = np.random.default_rng(0)
    rows = [{"name": "walks", "freq": "M", "season": 12, "horizon": 3}]
    for k, size in enumerate((20, 35, 35)):
        y = 50 + rng.normal(size=size + 3).cumsum()
        rows.append({"id": str(k), "start": "2000-01", "train": y[:-3].tolist(), "test": [*y[-3:-1], None]})
    with gzip.open(tmp_path / "walks.jsonl.gz", "wt") as file:
        file.write("\n".join(json.dumps(row) for row in rows) + "\n")
    return tmp_path


def test_parts_of_the_correction_are_scored_relative_to_the_combination_alone(script, folder):
    module = script("score_correction")
    module.main(["--data", str(folder), "--out", str(folder / "scores.json")])
    rows = json.loads((folder / "scores.json").read_text())["results"]
    assert [(row["shift"], row["width"]) for row in rows] == list(module.SHARES)
    assert (rows[0]["relative"], rows[0]["geometric_mean"]) == (1.0, 1.0)
    assert all(row["relative"] != 1.0 and 0.5 < row["relative"] < 2.0 for row in rows[1:])
    assert all(row["coverage"] in (k / 6 for k in range(7)) for row in rows)


def test_every_part_is_left_out_once_and_all_of_them_come_back(script, folder, monkeypatch):
    module = script("families")
    usual = dict(module.weights.FAMILY_PRIOR)
    written = []
    monkeypatch.setattr(module, "fill_page", lambda page, marks, text: written.append(text))
    module.main(["--data", str(folder), "--out", str(folder / "families.json")])
    assert usual == module.weights.FAMILY_PRIOR
    assert module.forecast.asymmetry is module.errors.asymmetry
    assert module.forecast.fit_combination is module.combination.fit_combination
    rows = json.loads((folder / "families.json").read_text())["results"]
    assert [row["without"] for row in rows] == list(module.PARTS)
    found = {row["without"]: row["relative"] for row in rows}
    regression = found["seasonal autoregression"]
    assert regression["walks"] == pytest.approx(1, abs=1e-6)  # too short for an autoregression
    assert regression["airline"] > 1.1
    assert found["smoothing"]["walks"] != 1
    for part in ("skewness of errors", "logarithms below the median"):
        assert found[part]["airline"] != 1
    assert len(written) == 1
    assert all(f"| {part} | " in written[0] for part in module.PARTS)


def test_sizes_and_budgets_are_trained_once_and_compared(script, folder, monkeypatch, capsys):
    scaling, runs = script("scaling"), folder / "runs"
    (folder / "page.md").write_text("<!-- scaling -->\n<!-- end -->\n")
    known = ["--data", str(folder), "--out", str(folder / "scaling.json"), "--page", str(folder / "page.md")]
    scaling.main(["--folder", str(runs), "--quick", *known])
    (row,) = json.loads((folder / "scaling.json").read_text())["rows"]
    assert (row["d_model"], row["n_layers"], row["steps"]) == (32, 2, 3)
    assert 0.9 < row["synthetic"] < 1.1
    assert 0.5 < row["real"]["walks"] < 2
    assert "| 32, 2, " in (folder / "page.md").read_text()
    capsys.readouterr()
    monkeypatch.setattr(scaling.train_correction, "main", None)  # what is finished is not trained again
    scaling.main(["--folder", str(runs), "--quick"])
    assert f"{row['synthetic']:.3f}" in capsys.readouterr().out


def test_a_power_law_is_found_where_there_is_one(script):
    sizes = [(n, steps) for n in (1e4, 1e5, 1e6) for steps in (400, 1600)]
    rows = [
        {"n_parameters": n, "steps": steps, "synthetic": 1 - 0.01 * n**0.05 * steps**0.2}
        for n, steps in sizes
    ]
    assert script("scaling").power_law(rows) == pytest.approx((0.05, 0.2))
