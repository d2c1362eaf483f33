"""The benchmark of covariates runs, and its page shows what it found."""

import json
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.filterwarnings("ignore")


def test_the_page_shows_the_recorded_scores(script):
    rows = json.loads((ROOT / "docs/results/covariates.json").read_text())["rows"]
    assert script("covariates").table(rows) in (ROOT / "docs/covariates.md").read_text()


def test_the_quick_run_scores_forecasts_with_and_without_covariates(script, tmp_path):
    file = tmp_path / "found.json"
    script("covariates").main(["--quick", "--out", str(file)])
    found = {row["model"]: row["wql"] for row in json.loads(file.read_text())["rows"]}
    assert found["with covariates"] < 0.8 * found["without covariates"]
    assert found["with covariates"] < 0.6 * found["seasonal naive"]
