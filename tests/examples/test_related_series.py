"""The experiment on two related series: its exact marks, and that the series matter."""

import json
import math
from pathlib import Path

import pytest
import torch

RESULTS = Path(__file__).parents[2] / "docs" / "results" / "related_series.json"


@pytest.fixture
def example(script):
    return script("related_series")


def test_noise_is_one_shift_of_each_series_or_drawn_for_each_point(example):
    for noise, spread in (("offset", 0.0), ("iid", 2.0)):
        x, k, y = example.Sequences(noise, n_points=400, batch_size=20).draw()
        assert x.min() >= 5
        assert x.max() <= 15
        for row in range(20):  # neighbours in time and of one series differ by their noise only
            for series in (0, 1):
                of_series = k[row] == series
                order = x[row, of_series].argsort()
                jump = y[row, of_series][order].diff()[x[row, of_series][order].diff() < 0.02]
                assert jump.square().mean() / 2 == pytest.approx(spread, rel=0.5, abs=0.01)


@pytest.mark.parametrize("noise", ["offset", "iid"])
def test_exact_densities_multiply_to_the_joint_density(example, noise):
    sequences = example.Sequences(noise, n_points=6, batch_size=3)
    x, k, y = sequences.draw()
    for row in range(3):
        same = k[row][:, None] == k[row] if noise == "offset" else torch.eye(6)
        covariance = sequences.of_function(x[row : row + 1])[0] + 2.0 * same
        joint = torch.distributions.MultivariateNormal(torch.zeros(6).double(), covariance)
        exact = sequences.exact(x, k, y, blind=False)[row].sum().item()
        assert exact == pytest.approx(joint.log_prob(y[row]).item(), abs=1e-6)


def test_the_marks_of_fifty_points_are_those_of_the_processes(example):
    for noise, knowing, blind in (("offset", 3.25, -1.58), ("iid", -1.87, -1.87)):
        sequences = example.Sequences(noise, n_points=50, batch_size=300, seed=1)
        points = sequences.draw()
        for expected, is_blind in ((knowing, False), (blind, True)):
            mean = example.mean_and_error(sequences.exact(*points, blind=is_blind))[0]
            assert mean == pytest.approx(expected, abs=0.05)


def test_the_score_is_in_the_units_of_y(example):
    class Standard:
        def __call__(self, window):
            return torch.distributions.Normal(torch.zeros_like(window.y), 1.0)

    x, k, y = example.Sequences(n_points=5, batch_size=4).draw()
    expected = torch.distributions.Normal(0.0, math.sqrt(3.0)).log_prob(y)
    torch.testing.assert_close(
        example.score(Standard(), example.as_window(x, k, y)), expected, atol=1e-5, rtol=0
    )


def test_knowing_the_series_helps_from_early_on(example, tmp_path, capsys):
    out = tmp_path / "rows.json"
    example.main(["--steps", "60", "--points", "12", "--sizes", "1x2", "--out", str(out)])
    blind, knowing = json.loads(out.read_text())["rows"]
    assert (blind["history_indicator"], knowing["history_indicator"]) == (False, True)
    assert knowing["gain"] == pytest.approx(knowing["nats"] - blind["nats"])
    assert knowing["gain"] > 0.1
    assert "layers x heads" in capsys.readouterr().out


def test_a_quick_run_under_iid_noise_has_two_marks_that_agree(example):
    result = example.main(["--quick", "--noise", "iid", "--points", "8", "--sizes", "1x1"])
    assert result["exact"] == pytest.approx(result["exact_blind_to_series"])
    assert [row["history_indicator"] for row in result["rows"]] == [False, True]


def test_the_recorded_gain_is_above_the_bar():
    recorded = json.loads(RESULTS.read_text())
    gains = [row["gain"] for row in recorded["rows"] if row["history_indicator"]]
    assert recorded["noise"] == "offset"
    assert recorded["points"] == 50
    assert min(gains) >= 0.7
