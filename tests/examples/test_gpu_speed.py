"""The script that times training steps on a GPU and on a CPU."""

import json


def test_a_quick_run_has_a_row_for_each_forecaster_and_size(script, monkeypatch, tmp_path):
    speed, out = script("gpu_speed"), tmp_path / "speed.json"
    monkeypatch.setattr(speed, "SIZES", {"default": ({"d_model": 8, "n_heads": 2}, 3, 4)})
    chosen = ["--quick", "--devices", "cpu", "--models", "LAM", "UNN", "--sizes", "default"]
    speed.main([*chosen, "--out", str(out)])
    book = json.loads(out.read_text())
    assert [row["model"] for row in book["rows"]] == ["LAM", "UNN"]
    assert all(row["forecast_s"] > 0 and "step_ms" in row for row in book["rows"])
    assert book["values"] == 400
