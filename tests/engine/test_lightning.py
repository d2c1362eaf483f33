"""The LightningModule: its loss, its schedule, its optimiser."""

from __future__ import annotations

import math

import pytest
import torch

from taylorformer_forecast.core.protocol import negative_log_likelihood
from taylorformer_forecast.engine.lightning import BestWeights, TrainingModule, make_optimizer
from taylorformer_forecast.models.taylorformer import Taylorformer


@pytest.fixture
def net():
    torch.manual_seed(0)
    return Taylorformer(d_model=4, n_heads=1, n_layers=2, dropout=0.0)


@pytest.fixture
def window(make_window):
    return make_window(n_windows=6, missing="rows", missing_targets="rows")


class Log:
    """What a module logs without a trainer."""

    def __init__(self, module, monkeypatch):
        self.values = {}
        monkeypatch.setattr(module, "log", lambda name, value, **_: self.values.update({name: value.item()}))


def test_both_losses_are_the_negative_log_likelihood(net, window, monkeypatch):
    module = TrainingModule(net.eval(), lr=1e-3, max_steps=10)
    log = Log(module, monkeypatch)
    expected = negative_log_likelihood(net(window), window)
    assert module.training_step(window, 0).item() == pytest.approx(expected.item())
    module.validation_step(window, 0)
    assert log.values == {
        "train_loss": pytest.approx(expected.item()),
        "val_loss": pytest.approx(expected.item()),
    }


@pytest.mark.parametrize("max_steps", [1, 2, 10, 100, 1000])
def test_the_rate_warms_up_and_decays_to_nearly_zero(net, max_steps):
    _, schedule = make_optimizer(net, lr=1e-3, max_steps=max_steps)
    (rate, _) = schedule.lr_lambdas
    rates = [rate(step) for step in range(max_steps)]
    warmup = max(1, round(0.05 * max_steps))
    assert all(0 < rate <= 1 for rate in rates)
    assert max(rates) == 1.0
    assert rates[:warmup] == sorted(rates[:warmup])
    assert rates[warmup:] == sorted(rates[warmup:], reverse=True)
    if max_steps >= 10:
        middle = warmup + (max_steps - warmup) // 2
        assert rates[middle] == pytest.approx(0.5, abs=0.6 / math.sqrt(max_steps))
        assert rates[-1] < 0.1
    assert rate(10 * max_steps) == 0.0


def test_the_rate_decays_with_the_time_if_that_ends_before_the_steps(net):
    spent = 0.0
    _, schedule = make_optimizer(net, lr=1e-3, max_steps=1000, spent=lambda: spent)
    (rate, _) = schedule.lr_lambdas
    assert rate(50) == 1.0
    spent = 0.525  # half way from the end of the warm-up
    assert rate(51) == pytest.approx(0.5)
    assert rate(900) < 0.1  # the steps are nearer to their end
    spent = 1.0
    assert rate(52) == 0.0


def test_the_schedule_advances_with_every_step(net):
    configured = TrainingModule(net, lr=2e-3, max_steps=100).configure_optimizers()
    optimizer, schedule = configured["optimizer"], configured["lr_scheduler"]
    assert schedule["interval"] == "step"
    assert optimizer.param_groups[0]["lr"] == pytest.approx(2e-3 / 5)
    for _ in range(4):
        optimizer.step()
        schedule["scheduler"].step()
    assert optimizer.param_groups[0]["lr"] == pytest.approx(2e-3)


def test_matrices_alone_decay_and_every_parameter_is_trained(net):
    optimizer, _ = make_optimizer(net, lr=1e-3, max_steps=10, weight_decay=0.3)
    decay = {id(p): group["weight_decay"] for group in optimizer.param_groups for p in group["params"]}
    assert len(decay) == len(list(net.parameters()))
    assert all(decay[id(p)] == (0.3 if p.ndim > 1 else 0.0) for p in net.parameters())


class Trainer:
    def __init__(self, loss, sanity_checking=False):
        self.callback_metrics = {} if loss is None else {"val_loss": torch.tensor(loss)}
        self.sanity_checking = sanity_checking


def test_best_weights_come_back():
    module = torch.nn.Linear(1, 1)
    best = BestWeights()
    for value, loss in ((0.0, 3.0), (1.0, 1.0), (2.0, 2.0), (3.0, float("nan")), (4.0, None)):
        torch.nn.init.constant_(module.weight, value)
        best.on_validation_end(Trainer(loss), module)
    best.on_validation_end(Trainer(-9.0, sanity_checking=True), module)
    best.on_fit_end(None, module)
    assert module.weight.item() == 1.0
    assert best.loss == 1.0


def test_without_a_validation_the_last_weights_stay():
    module = torch.nn.Linear(1, 1)
    torch.nn.init.constant_(module.weight, 5.0)
    BestWeights().on_fit_end(None, module)
    assert module.weight.item() == 5.0
