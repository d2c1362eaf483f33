"""Training the pretrained network: the same file twice, interrupted or not."""

import json
import sys

import numpy as np
import pytest
import torch
from combined import forecast


@pytest.fixture(params=["train", "train_correction"])
def trainer(request, script, monkeypatch):
    module = script(request.param)
    monkeypatch.setattr(module, "SERIES", 8)  # few, to be quick
    return module


@pytest.fixture
def train(trainer, monkeypatch):
    def run(out, *args):
        monkeypatch.setattr(sys, "argv", [f"{trainer.__name__}.py", "--out", str(out), "--quick", *args])
        threads = torch.get_num_threads()
        trainer.main()
        torch.set_num_threads(threads)
        return out.read_bytes()

    return run


def test_one_seed_gives_one_file_interrupted_or_not_and_another_seed_another(
    train, trainer, tmp_path, monkeypatch
):
    whole = train(tmp_path / "a.safetensors")
    assert "--steps 3" in (tmp_path / "a.md").read_text()
    assert train(tmp_path / "c.safetensors", "--seed", "1") != whole

    class Interrupted(Exception):
        pass

    def stop(self, step, batch=trainer.Chunks.batch):
        if step == 2:
            raise Interrupted
        return batch(self, step)

    with monkeypatch.context() as patch:
        patch.setattr(trainer.Chunks, "batch", stop)
        with pytest.raises(Interrupted):
            train(tmp_path / "b.safetensors")
    assert (tmp_path / "b.ckpt").exists()
    assert train(tmp_path / "b.safetensors") == whole


def test_training_goes_on_from_the_weights_of_a_file(script, tmp_path, monkeypatch):
    module = script("train_correction")
    monkeypatch.setattr(module, "SERIES", 8)
    for out, more in (("a", []), ("b", ["--init", str(tmp_path / "a.safetensors")])):
        module.main(["--quick", "--out", str(tmp_path / f"{out}.safetensors"), *more])
    first, second = (module.load_correction(tmp_path / f"{name}.safetensors") for name in "ab")
    moved = [(p - q).abs().max() for p, q in zip(first.parameters(), second.parameters(), strict=True)]
    assert 0 < max(moved) < 0.01  # three steps of a warm-up
    card = (tmp_path / "b.md").read_text()
    assert card.count("train_correction.py --steps 3") == 2
    assert "--init a.safetensors" in card
    assert "half way back" in card


def test_tasks_of_corrections_are_what_the_combination_forecasts_and_what_followed(script):
    tasks = script("correction_tasks")
    found = tasks.make_correction_tasks(12, (0, 1))
    assert len(found) > 12
    assert found.truth.shape == found.weight.shape == found.steps.shape[:2]
    assert (found.weight >= 0).all()
    assert (found.weight.sum(1) > 0).all()
    none = tasks.nothing(found)
    deciles = tasks.deciles(none, found)
    inside = (found.truth > deciles[..., 0]) & (found.truth < deciles[..., -1])
    assert 0.6 < inside[found.weight > 0].float().mean() < 0.95
    worse = tasks.Correction(none.shift + 3.0, none.below, none.above)
    assert tasks.pinball(tasks.deciles(worse, found), found).mean() > tasks.pinball(deciles, found).mean()


def test_a_correction_is_trained_around_the_deciles_that_are_forecast(script):
    """Those of the last origin are what the package forecasts with the same correction."""
    tasks = script("correction_tasks")
    y = torch.randn(5, 60, generator=torch.Generator().manual_seed(0), dtype=torch.float64).exp()
    y[0] -= 2
    found = tasks._tasks(y, torch.tensor([[30, 53]] * 5), 6, 4).rows(torch.arange(1, 10, 2))
    correction = tasks.Correction(*torch.tensor([0.3, 0.8, 1.2]).double()[:, None, None].expand(3, 5, 6))
    expected = forecast(y[:, :54], 6, 4, lambda fit: correction).quantiles(tasks.LEVELS.tolist())
    unit = y[:, :54].abs().mean(1)[:, None, None]
    torch.testing.assert_close(tasks.deciles(correction, found) * unit, expected)


def test_the_forecast_at_an_origin_does_not_see_what_followed(script):
    """But for quantiles of absolute errors, and the reach beside them: those are of the whole series."""
    tasks = script("correction_tasks")
    y = torch.randn(5, 60, generator=torch.Generator().manual_seed(0), dtype=torch.float64).exp()
    other, origins = y.clone(), torch.tensor([[30, 53]] * 5)
    other[:, 34:57] = y[:, 34:57].flip(1)  # the unit of the series is the same
    one, changed = (tasks._tasks(v, origins, 3, 4).rows(torch.arange(0, 10, 2)) for v in (y, other))
    for name in ("loc", "scale", "shift", "below", "above", "values"):
        torch.testing.assert_close(getattr(one, name), getattr(changed, name))


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
    assert {"AutoETS", "pretrained", "baseline alone"} <= set(rows)
    assert all(np.isfinite(row["mean_crps"]) for row in rows.values())
    assert rows["defaults"]["mean_crps"] != rows["pretrained"]["mean_crps"]  # no network at all
