"""The benchmark of neural processes: exact ceilings, training that survives interruption, whole results."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.distributions import MultivariateNormal

from taylorformer_forecast.models.tnp import TNPA

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "examples" / "benchmark" / "neural_processes"
KERNELS = ("rbf", "matern", "periodic")


@pytest.mark.parametrize("kernel", KERNELS)
def test_the_ceiling_is_the_conditional_log_density_under_the_true_kernel(script, kernel):
    processes = script("processes")
    s = processes.draw_test(kernel, 4, 12, 1e-3)
    scores = np.where(s.is_target, processes.ceiling(s), 0).sum(1)
    for y, root, n, score in zip(s.y, s.root, s.n_context, scores, strict=True):
        y, covariance = torch.from_numpy(y), torch.from_numpy(root @ root.T)
        joint, context = (
            MultivariateNormal(torch.zeros(k).double(), covariance[:k, :k]).log_prob(y[:k]) for k in (12, n)
        )
        assert score == pytest.approx(float(joint - context), abs=1e-8)


@pytest.mark.parametrize("kernel", KERNELS)
def test_drawn_values_have_the_covariance_of_their_kernel(script, kernel):
    processes = script("processes")
    covariance, ranges = processes.KERNELS[kernel]
    s = processes.draw(kernel, 20_000, 6, 1e-2, np.random.default_rng(0))
    for name, (low, high) in ranges.items():
        assert low < high, name
    d = np.abs(s.x[:, :1] - s.x[:, 1:])
    grid = [np.linspace(*ends, 60)[None, None] for ends in ranges.values()]
    mesh = dict(zip(ranges, np.meshgrid(*[g.ravel() for g in grid]), strict=True))
    for low in (0.0, 0.3, 1.0):
        near = (d >= low) & (d < low + 0.05)
        found = (s.y[:, :1] * s.y[:, 1:])[near].mean()
        middle = {name: values.ravel()[None] for name, values in mesh.items()}
        expected = covariance(d[near][:500, None], middle).mean()
        assert found == pytest.approx(expected, abs=0.06), low


def test_context_sizes_are_those_of_the_paper(script):
    processes = script("processes")
    rng = np.random.default_rng(0)
    sizes = [processes.context_size(100, rng) for _ in range(5000)]
    assert (min(sizes), max(sizes)) == (3, 97)


def test_training_goes_on_where_it_was_interrupted(script, tmp_path, monkeypatch):
    processes, training = script("processes"), script("training")
    monkeypatch.setattr(training, "SAVE_EVERY", 2)

    def batches(step):
        s = processes.draw("rbf", 4, 12, 1e-2, np.random.default_rng([0, step]))
        return processes.windows_of(s, int(s.n_context[0]))

    def cut(step):
        if step == 5:
            raise KeyboardInterrupt
        return batches(step)

    def made(make, checkpoint):
        torch.manual_seed(0)
        net = TNPA(d_model=8, n_heads=2, n_layers=1, dropout=0.1)
        return net, training.train(net, make, 8, 1e-2, checkpoint)

    whole, about = made(batches, None)
    with pytest.raises(KeyboardInterrupt):
        made(cut, tmp_path / "net.pt")
    again, about_again = made(batches, tmp_path / "net.pt")
    assert about_again["curve"] == about["curve"]
    assert all(torch.equal(a, b) for a, b in zip(whole.parameters(), again.parameters(), strict=True))
    with pytest.raises(ValueError, match="8 steps, not 9"):
        training.train(again, batches, 9, 1e-2, tmp_path / "net.pt")


@pytest.fixture(scope="module")
def results(tmp_path_factory, run_script):
    folder = tmp_path_factory.mktemp("neural_processes")
    common = ["--quick", "--checkpoints", folder / "checkpoints", "--out"]
    runs = (
        ["gp_regression.py", *common, folder / "gp_regression.json"],
        ["gp_regression.py", "--parts", *common, folder / "gp_ablation.json"],
        ["consistency.py", *common, folder / "gp_consistency.json"],
        ["report.py", "--results", folder, "--docs", folder / "docs"],
    )
    for script, *arguments in runs:
        run_script(FOLDER / script, *arguments)
    return folder


def test_the_quick_run_has_every_score_and_its_bounds(results):
    rows = json.loads((results / "gp_regression.json").read_text())["rows"]
    networks = ["taylorformer", "tnpa", "anp", "np"]
    assert [row["network"] for row in rows] == 2 * ["ceiling", "floor", *2 * networks]
    for row in rows:
        assert len(row["scores"]) == 20
        assert row["log_likelihood"] == pytest.approx(np.mean(row["scores"]), abs=1e-3)
        top = next(r for r in rows if r["network"] == "ceiling" and r["kernel"] == row["kernel"])
        assert row["log_likelihood"] <= top["log_likelihood"], row["network"]


def test_the_page_shows_scores_gaps_and_losses(results):
    page = (results / "docs" / "neural_processes.md").read_text()
    rows = json.loads((results / "gp_regression.json").read_text())["rows"]
    top, ours = (
        np.mean([r["log_likelihood"] for r in rows if r["network"] == n and r["kernel"] == "rbf"])
        for n in ("ceiling", "taylorformer")
    )
    line = next(line for line in page.splitlines() if line.startswith("| RBF | 0.0001 | 12 | Taylorformer |"))
    assert f"| {ours:.3f} |" in line
    assert f"| {top - ours:.3f} |" in line
    assert f"{top - ours:.3f} nats below the ceiling" in page[page.index("## Losses") :]
    for name in ("gp_ablation", "gp_consistency"):
        assert f"images/{name}.png" in page
        assert (results / "docs" / "images" / f"{name}.png").stat().st_size > 1000


def test_what_was_run_is_not_run_again(results, run_script):
    out = results / "gp_regression.json"
    before = out.read_text()
    assert run_script(FOLDER / "gp_regression.py", "--quick", "--out", out) == ""
    assert out.read_text() == before


def test_differences_count_sequences_and_trainings(script):
    report = script("report")
    rng = np.random.default_rng(0)
    sequences, trainings = rng.normal(0, 1, (1, 400)), np.array([[0.3], [0.6], [0.9]])
    d = report.Difference(sequences + trainings)
    assert d.mean == pytest.approx(0.6 + sequences.mean())
    assert d.error == pytest.approx(np.hypot(sequences.std(ddof=1) / 20, 0.3 / np.sqrt(3)))
    assert (d.verdict, report.Difference(-5 + 0 * sequences + rng.normal(size=(3, 1))).verdict) == (1, -1)
    assert report.Difference(sequences - sequences.mean()).verdict == 0


@pytest.mark.parametrize("name", ["base", "times", "local", "taylorformer"])
def test_parts_see_what_they_should_and_no_more(script, name):
    processes, networks = script("processes"), script("networks")
    net = networks.build(name, 0).double().eval()
    s = processes.draw("rbf", 2, 12, 1e-2, np.random.default_rng(0))
    window = processes.windows_of(s, 6, torch.float64)
    with_times = any(p.requires_grad for p in net.streams.x_last.parameters())
    with_neighbours = bool(net.streams.tokens(window, window.attention_mask()).found.valid.any())
    assert (with_times, with_neighbours) == (
        name in ("times", "taylorformer"),
        name in ("local", "taylorformer"),
    )
    net(window).log_prob(window.targets[0]).sum().backward()
    for parameter in net.parameters():
        assert (parameter.grad is not None) == parameter.requires_grad
    later = window.y.clone()
    later[:, 9:] += 1.0
    changed = net(type(window)(window.t, later, n_context=6)).mean - net(window).mean
    assert changed[:, :4].abs().max() == 0  # targets 6 to 9 see nothing of 9 and later
    assert changed[:, 4:].abs().min() > 0


@pytest.mark.parametrize("name", ["taylorformer", "tnpa"])
def test_the_order_of_the_context_changes_nothing_and_that_of_targets_something(script, name):
    processes, networks, consistency = (script(m) for m in ("processes", "networks", "consistency"))
    net, s = networks.build(name, 0), processes.draw_test("rbf", 20, 20, 1e-4)
    assert 0 <= consistency.context_change(net, s) < 1e-6
    assert consistency.spread(net, s, 5).max() > 1e-3


def test_the_page_in_docs_is_made_of_the_results_in_docs(script):
    report = script("report")
    assert report.page(report.read(report.RESULTS)) == (ROOT / "docs" / "neural_processes.md").read_text()
