"""The panel of many series, small."""

import json

import pytest


@pytest.mark.parametrize("host", ["sktime", "darts"])
def test_a_panel_is_forecast_and_what_it_took_is_written(host, script, tmp_path):
    out, sizes = tmp_path / "many.json", ["--series", "3", "--length", "40", "--horizon", "4"]
    script("many_series").main(["--host", host, *sizes, "--out", str(out)])
    book = json.loads(out.read_text())
    assert (book["rows"], book["strategy"]) == (12, "corrected")
    assert book["seconds_fit"] + book["seconds_predict"] > 0
    assert book["peak_gib"] > 0
