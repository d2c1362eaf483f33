"""The benchmark of one-step-ahead likelihoods: windows, divisor, rules, section of the page."""

import json

import numpy as np
import pytest
import torch


@pytest.fixture
def bench(script):
    return script("teacher_forced")


@pytest.fixture(scope="module")
def raw_data(tmp_path_factory):
    """Directory with an exchange_rate.csv of random walks."""
    folder = tmp_path_factory.mktemp("rates")
    steps = np.random.default_rng(0).normal(size=(400, 8))
    np.savetxt(folder / "exchange_rate.csv", steps.cumsum(0), fmt="%.5f", delimiter=",")
    return folder


def test_a_quick_run_fills_the_table_and_a_second_one_runs_what_is_missing(bench, raw_data, tmp_path, capsys):
    out = tmp_path / "rows.json"
    arguments = ["--data", str(raw_data), "--series", "exchange_rate", "--quick", "--out", str(out)]
    bench.main(arguments)
    book = json.loads(out.read_text())
    assert [row["model"] for row in book["rows"]] == ["previous", "ar", "taylorformer", "tnp"]
    assert {row["windows"] for row in book["rows"]} == {400 - 320 - 24}
    assert all(np.isfinite([row["nll"], row["mse"]]).all() for row in book["rows"])
    assert [row.get("steps") for row in book["rows"]] == [None, None, 3, 3]
    assert book["machine"]["torch"]
    # Interrupted before a row, a run goes on from there, comes to the same, and touches no other.
    out.write_text(json.dumps({**book, "rows": book["rows"][:2] + book["rows"][3:]}))
    capsys.readouterr()
    bench.main(arguments)
    again = json.loads(out.read_text())["rows"]
    assert again[:3] == book["rows"][:2] + book["rows"][3:]
    assert again[3]["nll"] == pytest.approx(book["rows"][2]["nll"], rel=1e-5)
    assert capsys.readouterr().out.count('"model"') == 1


def test_windows_are_those_of_the_paper(bench):
    y = np.arange(30.0)
    windows = bench.every_window(y, 6)
    np.testing.assert_array_equal(windows[:, 0], np.arange(24))  # the 25th is left out
    in_order = list(bench.Windows(windows, n_context=4, batch=10))
    assert [len(window.y) for window in in_order] == [10, 10, 4]
    np.testing.assert_allclose(in_order[0].t[3], np.linspace(-1, 1, 6), atol=1e-6)
    assert in_order[0].y[3, :, 0].tolist() == [3, 4, 5, 6, 7, 8]
    assert in_order[0].n_context == 4
    drawn = iter(bench.Windows(windows, n_context=4, batch=24, seed=0))
    first, second = (next(drawn).y[:, 0, 0].tolist() for _ in range(2))
    assert first != second
    assert sorted(first) == sorted(second) == list(range(24))


def test_the_parts_are_69_11_and_20_per_cent_standardised_by_the_first(bench, raw_data):
    parts = bench.parts_of("exchange_rate", raw_data)
    assert [len(y) for y in parts.values()] == [276, 44, 80]
    assert parts["train"].mean() == pytest.approx(0, abs=1e-9)
    assert parts["train"].std() == pytest.approx(1)
    raw = np.loadtxt(raw_data / "exchange_rate.csv", delimiter=",")[:, -1]
    assert np.corrcoef(np.concatenate(list(parts.values())), raw)[0, 1] == pytest.approx(1)


def test_the_previous_value_is_scored_by_the_windows_and_targets_there_are(bench):
    rng = np.random.default_rng(0)
    parts = {"train": rng.normal(size=200).cumsum(), "test": rng.normal(size=60).cumsum()}
    n_context, n_targets = 10, 5
    deviation = np.sqrt(np.mean(np.diff(parts["train"])[bench.LAGS - 1 :] ** 2))
    nll, squared = [], []
    for start in range(60 - 15):
        for target in range(start + n_context, start + n_context + n_targets):
            error = parts["test"][target] - parts["test"][target - 1]
            normal = torch.distributions.Normal(0.0, deviation)
            nll.append(-normal.log_prob(torch.tensor(error)).item())
            squared.append(error**2)
    found = bench.score_rule("previous", parts, n_context, n_targets)
    assert found["windows"] == 45
    assert found["nll"] == pytest.approx(np.mean(nll), rel=1e-6)
    assert found["mse"] == pytest.approx(np.mean(squared))


def test_the_linear_rule_finds_the_weights_of_an_autoregression(bench):
    rng = np.random.default_rng(0)
    y = np.zeros(6000)
    for i in range(2, len(y)):
        y[i] = 0.3 + 0.5 * y[i - 1] - 0.7 * y[i - 2] + 0.1 * rng.normal()
    found = bench.score_rule("ar", {"train": y[100:4000], "test": y[4000:]}, 16, 8)
    assert found["mse"] == pytest.approx(0.01, rel=0.06)
    assert found["nll"] == pytest.approx(0.5 + np.log(0.1) + 0.5 * np.log(2 * np.pi), abs=0.03)


def test_a_network_is_scored_by_the_windows_and_targets_there_are(bench):
    class Standard:
        def __call__(self, window):
            return torch.distributions.Normal(torch.zeros_like(window.targets[0]), 1.0)

    y = np.random.default_rng(0).normal(size=40)
    windows = bench.every_window(y, 9)
    found = bench.score_network(Standard(), bench.Windows(windows, n_context=6, batch=7))
    assert found["windows"] == 31
    assert found["mse"] == pytest.approx(np.square(windows[:, 6:]).mean(), rel=1e-5)
    assert found["nll"] == pytest.approx(0.5 * found["mse"] + 0.5 * np.log(2 * np.pi), rel=1e-5)


def test_the_section_tells_losses_as_well_as_wins(bench):
    from one_step import section

    def row(series, model, nll, mse, **others):
        return {
            "series": series,
            "context": 96,
            "targets": 96,
            "model": model,
            "nll": nll,
            "mse": mse,
            **others,
        }

    trained = {"seed": 0, "steps": 500, "batch": 32, "lr": 0.002, "parameters": 90_000, "fit_s": 100.0}
    rows = [
        row("A", "taylorformer", -0.9, 0.02, **trained),
        row("A", "previous", -1.0, 0.01),
        row("B", "taylorformer", -1.5, 0.01, **trained),
        row("B", "previous", -1.0, 0.01),
        row("B", "ar", -1.25, 0.02),
    ]
    text = section({"rows": rows})
    assert (
        '- Lost: A, 96 targets. Taylorformer, 500 steps at 0.002, seed 0: NLL 0.100 above "the previous'
        in text
    )
    assert (
        '- Won: B, 96 targets. Taylorformer, 500 steps at 0.002, seed 0: NLL 0.250 below "linear in' in text
    )
    assert "- Not run: A, 96 targets. linear in the last 8 true values, TNP-A." in text
    assert text.count("**-") == 2
    assert "| A | 96 | the previous true value | **-1.000** | 0.01000 | – | – | – | – | – | – |" in text
    assert "| A | 96 | Taylorformer | -0.900 | 0.02000 | 0 | 500 | 32 | 0.002 | 90,000 | 100 |" in text
    assert "one step ahead" in text
