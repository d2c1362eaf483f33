"""The benchmark of shops runs, and its page shows what it found."""

import json
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.filterwarnings("ignore")


def test_the_page_of_covariates_shows_the_scores_of_shops(script):
    rows = json.loads((ROOT / "docs/results/shops.json").read_text())["rows"]
    assert script("shops").table(rows) in (ROOT / "docs/covariates.md").read_text()


def test_made_up_shops_are_forecast_better_with_what_is_known(script, tmp_path):
    file = tmp_path / "shops.json"
    script("shops").main(["--quick", "--out", str(file)])
    found = {(row["strategy"], row["known"]): row for row in json.loads(file.read_text())["rows"]}
    all_known = found["corrected", "open, promotion, holiday"]
    assert all_known["wql"] < found["corrected", "nothing"]["wql"]
    assert all_known["wql"] < 0.7 * found["two weeks before", ""]["wql"]
    assert 0.6 < all_known["promoted"] <= 1
    assert 0.6 < all_known["others"] <= 1
