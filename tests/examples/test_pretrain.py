"""Training the pretrained network: the same file twice, interrupted or not."""

import json
import sys

import numpy as np
import pytest
import torch


@pytest.fixture
def train(script, monkeypatch):
    module = script("train")

    def run(out, *args):
        monkeypatch.setattr(sys, "argv", ["train.py", "--out", str(out), *args])
        threads = torch.get_num_threads()
        module.main()
        torch.set_num_threads(threads)
        return out.read_bytes()

    return run


def test_one_seed_gives_one_file_and_another_seed_another(train, tmp_path):
    first = train(tmp_path / "a.safetensors", "--quick")
    assert train(tmp_path / "b.safetensors", "--quick") == first
    assert train(tmp_path / "c.safetensors", "--quick", "--seed", "1") != first
    card = (tmp_path / "a.md").read_text()
    assert "train.py --steps 3" in card


def test_training_that_was_interrupted_goes_on_to_the_same_file(train, tmp_path, script, monkeypatch):
    module = script("train")
    whole = train(tmp_path / "a.safetensors", "--quick")

    class Interrupted(Exception):
        pass

    def stop(self, step, batch=module.Chunks.batch):
        if step == 2:
            raise Interrupted
        return batch(self, step)

    with monkeypatch.context() as patch:
        patch.setattr(module.Chunks, "batch", stop)
        with pytest.raises(Interrupted):
            train(tmp_path / "b.safetensors", "--quick")
    assert train(tmp_path / "b.safetensors", "--quick") == whole


def test_targets_of_tasks_lie_after_what_their_linear_forecast_was_fitted_to(script):
    tasks = script("tasks")
    found = tasks.make_tasks(6, tasks.Sizes(16, 6, 60), seed=0)
    assert found.window.y.shape[1:] == (22, 1)
    assert found.loc.shape == found.scale.shape == (len(found), 6, 1)
    assert found.window.covariates.shape[2] == 8
    assert (found.scale > 0).all()
    error = (found.window.targets[0] - found.loc)[found.window.targets[1]]
    assert torch.isfinite(error).all()


def test_sizes_are_those_that_the_defaults_choose(script):
    tasks = script("tasks")
    rng = np.random.default_rng(0)
    drawn = [tasks.draw_sizes(rng) for _ in range(300)]
    assert min(s.horizon for s in drawn) < 8
    assert max(s.horizon for s in drawn) > 80
    assert max(s.n_context for s in drawn) > 192
    assert all(s.n_train >= 2 * s.n_context and s.n_train >= 4 * s.horizon for s in drawn)


def test_synthetic_series_are_scored(script, monkeypatch, tmp_path):
    module = script("score_synthetic")
    sizes = ["--series", "2", "--length", "40", "--horizon", "8"]
    monkeypatch.setattr(sys, "argv", ["x", *sizes, "--out", str(tmp_path / "scores.json")])
    monkeypatch.setattr(module, "auto_ets", module.naive)
    module.main()
    rows = json.loads((tmp_path / "scores.json").read_text())["models"]
    assert {"AutoETS", "pretrained, no training", "linear start, no training"} <= set(rows)
    assert all(np.isfinite(row["mean_crps"]) for row in rows.values())
    assert rows["defaults"]["mean_crps"] != rows["pretrained, no training"]["mean_crps"]  # no network at all
