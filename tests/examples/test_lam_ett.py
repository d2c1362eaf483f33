"""The benchmark on ETT data: its protocol, that it can be interrupted, and its table."""

import json
from pathlib import Path

import numpy as np
import pytest

DATA = Path(__file__).parents[2].parent / "shared" / "data"


@pytest.fixture
def bench(script):
    return script("lam_ett")


@pytest.fixture(scope="module")
def raw_data(tmp_path_factory):
    """Directory with an ETTh1.csv of days that repeat, under noise."""
    folder = tmp_path_factory.mktemp("ett")
    t = np.arange(14500)[:, None]
    noise = np.random.default_rng(0).normal(size=(len(t), 7))
    values = np.sin(2 * np.pi * t / 24 + np.arange(7)) + 0.3 * noise
    lines = ["date,HUFL,HULL,MUFL,MULL,LUFL,LULL,OT"]
    lines += ["2016-07-01 00:00:00," + ",".join(f"{cell:.3f}" for cell in row) for row in values]
    (folder / "ETTh1.csv").write_text("\n".join(lines))
    return folder


def test_a_quick_run_fills_the_table_and_a_second_one_runs_what_is_missing(bench, raw_data, tmp_path, capsys):
    out, page = tmp_path / "rows.json", tmp_path / "rows.md"
    arguments = ["--data", str(raw_data), "--names", "ETTh1", "--quick", "--out", str(out)]
    bench.main(arguments)
    rows = json.loads(out.read_text())
    assert [row["kernel"] for row in rows if row["preset"] == "naive"] == list(bench.NAIVE)
    for preset in ("faithful", "modern"):
        found = {row["kernel"]: row for row in rows if row["preset"] == preset}
        assert set(found) == {"full", "prob", "local"}
        assert all(np.isfinite([row["mse"], row["mae"]]).all() for row in found.values())
        assert all(row["seed"] == 0 and row["versions"]["torch"] for row in found.values())
    # Interrupted before its last row, a run goes on from there and touches no other.
    out.write_text(json.dumps(rows[:-1]))
    capsys.readouterr()
    bench.main([*arguments, "--table", str(page)])
    again = json.loads(out.read_text())
    assert again[:-1] == rows[:-1]
    assert again[-1]["mse"] == pytest.approx(rows[-1]["mse"], rel=1e-5)
    assert capsys.readouterr().out.count("MSE") == 1
    assert page.read_text() == bench.table(again)


def row(preset, kernel, mse, mae, **others):
    return {"data": "A", "horizon": 24, "preset": preset, "kernel": kernel, "seed": 0} | {
        "mse": mse,
        "mae": mae,
        **others,
    }


def test_the_table_shows_the_best_in_bold_and_marks_what_is_worse_than_repeating_the_day(bench):
    rows = [
        row("naive", "last day", 0.5, 0.4),
        row("modern", "local", 0.3, 0.5),
        row("faithful", "local", 0.4, 0.3),
        row("faithful", "local", 0.44, 0.34, seed=1),
        row("modern", "full", 0.9, 0.9, horizon=48),
    ]
    lines = bench.table(rows).splitlines()
    assert lines[0] == "| | last day | faithful, local | modern, local | modern, full |"
    assert lines[2] == "| A 24 | 0.500 / 0.400 | 0.420 / **0.320** | **0.300** / 0.500 ✗ |  |"
    assert lines[3] == "| A 48 |  |  |  | **0.900** / **0.900** |"


def test_every_window_counts_once(bench):
    targets = np.random.default_rng(0).normal(size=(70, 3, 2))
    found = bench.score(np.zeros((1, 1, 1)), targets)
    assert found["windows"] == 70
    assert found["mse"] == pytest.approx(np.square(targets).mean())
    assert found["whole_batches"]["mae"] == pytest.approx(np.abs(targets[:64]).mean())


def test_networks_are_scored_on_the_windows_of_the_naive_forecasts(bench, script, raw_data):
    data = script("datasets").load("ETTh1", raw_data / "ETTh1.csv")
    _, targets = bench.test_windows(data.standardised(), data, 24)
    args = bench.argparse.Namespace(quick=False, seconds=60.0, max_steps=1, context=48, d_model=8)
    for preset in ("faithful", "modern"):
        options = bench.recipe(preset, args)
        _, truths, _ = bench.train(data, 24, preset, "local", 0, options)
        np.testing.assert_allclose(truths, targets, atol=1e-5)


def test_the_modern_network_starts_from_the_linear_forecast_of_the_library(bench, script, raw_data):
    data = script("datasets").load("ETTh1", raw_data / "ETTh1.csv")
    args = bench.argparse.Namespace(quick=False, seconds=60.0, max_steps=1, context=48, d_model=8)
    forecast, truths, _ = bench.train(data, 24, "modern", "none", 0, bench.recipe("modern", args))
    naive = bench.score(bench.last_day(*bench.test_windows(data.standardised(), data, 24)[:1], 24), truths)
    assert bench.score(forecast, truths)["mse"] < 0.7 * naive["mse"]  # the noise of the last day doubles


@pytest.mark.skipif(not DATA.exists(), reason="the ETT files are not here")
@pytest.mark.parametrize(
    ("name", "horizon", "expected"),
    [
        ("ETTh1", 48, [(1.111, 0.796), (1.273, 0.696), (0.464, 0.408), (0.695, 0.552)]),
        ("ETTh2", 336, [(3.143, 1.353), (0.591, 0.508), (0.526, 0.463), (0.387, 0.425)]),
    ],
)
def test_forecasts_without_training_have_the_errors_known_for_this_protocol(
    bench, script, name, horizon, expected
):
    data = script("datasets").load(name, DATA / f"{name}.csv")
    context, targets = bench.test_windows(data.standardised(), data, horizon)
    for rule, (mse, mae) in zip(("zero", "last value", "last day", "window mean"), expected, strict=True):
        found = bench.score(bench.NAIVE[rule](context, horizon), targets)["whole_batches"]
        assert found["mse"] == pytest.approx(mse, abs=6e-4), rule
        assert found["mae"] == pytest.approx(mae, abs=6e-4), rule


def test_the_page_on_long_horizons_shows_the_rows_that_were_recorded(bench):
    docs = Path(__file__).parents[2] / "docs"
    rows = json.loads((docs / "results" / "lam_ett.json").read_text())
    assert bench.table(rows) in (docs / "long_horizons.md").read_text()
