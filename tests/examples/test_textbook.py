"""The benchmark of a textbook's series runs, and its page shows what it found."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

ROOT = Path(__file__).parents[2]


def test_the_page_has_the_table_of_its_file(script):
    rows = json.loads((ROOT / "docs/results/textbook.json").read_text())["rows"]
    assert script("textbook").table(rows) in (ROOT / "docs/textbook.md").read_text()


@pytest.fixture
def textbook(script, monkeypatch):
    """The script, with made-up series in place of those of R."""
    found = script("textbook")
    noise = np.random.default_rng(0).normal(size=200)

    def data(package, name):
        if name == "weather":
            hours = np.arange(200)[np.arange(200) % 50 != 7]
            days = {"year": 2013, "month": 1, "day": hours // 24 + 1, "hour": hours % 24}
            values = {column: noise[hours] for column in ("temp", "humid", "wind_speed", "pressure")}
            return pd.DataFrame({"origin": "EWR", **days, **values})
        return pd.DataFrame({"time": 1950.0 + np.arange(60), "value": 50 + noise[:60].cumsum()})

    monkeypatch.setattr(found, "data", data)
    return found


def test_forecasts_of_years_are_scored_against_the_naive_one(textbook, tmp_path):
    file = tmp_path / "textbook.json"
    ours = '`TaylorformerForecaster(strategy="corrected")`'
    textbook.main(
        ["--groups", "years", "--series", "2", "--models", ours, "seasonal naive", "--out", str(file)]
    )
    rows = {row["model"]: row for row in json.loads(file.read_text())["rows"]}
    assert rows["seasonal naive"]["relative"] == 1.0
    assert 0.3 < rows[ours]["relative"] < 1.0
    assert 0.3 < rows[ours]["coverage"] <= 1.0


def test_hours_that_have_no_line_are_missing(textbook):
    name, start, y = next(textbook.series("hours, weather"))
    assert (name, start, len(y)) == ("weather, EWR, temp", "2013-01-01 00:00:00", 200)
    assert np.flatnonzero(np.isnan(y)).tolist() == [7, 57, 107, 157]
