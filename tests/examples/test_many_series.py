"""The panel of many series, small."""

import json


def test_a_panel_is_forecast_and_what_it_took_is_written(script, tmp_path):
    out = tmp_path / "many.json"
    script("many_series").main(["--series", "3", "--length", "30", "--horizon", "4", "--out", str(out)])
    book = json.loads(out.read_text())
    assert (book["rows"], book["strategy"]) == (12, "corrected")
    assert book["seconds_fit"] + book["seconds_predict"] > 0
    assert book["peak_gib"] > 0
