"""The picture of made-up series."""

from matplotlib.image import imread


def test_a_picture_of_fifty_series_is_small_and_not_empty(script, tmp_path):
    out = tmp_path / "picture.png"
    script("show_synthetic").main(["--length", "60", "--seed", "1", "--out", str(out)])
    assert out.stat().st_size < 250_000
    picture = imread(out)
    ink = (picture[..., :3].mean(-1) < 0.5).mean()
    assert 0.01 < ink < 0.3
