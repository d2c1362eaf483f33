"""The picture of all processes, and the measurement of the throughput."""

import json

from matplotlib.image import imread


def test_a_picture_of_all_processes_and_archetypes_is_small_and_not_empty(script, tmp_path):
    out = tmp_path / "picture.png"
    script("show_synthetic").main(["--length", "60", "--seed", "1", "--out", str(out)])
    assert out.stat().st_size < 400_000
    picture = imread(out)
    ink = (picture[..., :3].mean(-1) < 0.5).mean()
    assert 0.01 < ink < 0.3


def test_the_throughput_is_measured_for_each_length(script, capsys):
    script("synthetic_speed").main(["--series", "16", "--lengths", "20", "60", "--batches", "1"])
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [row["length"] for row in rows] == [20, 60]
    assert all(row["series_per_second"] > 0 for row in rows)
