"""Training: reproducible, quiet, interruptible, leaving nothing behind."""

from __future__ import annotations

import copy
import io
import logging
import multiprocessing
import os
import sys
import threading
import time
import warnings
from contextlib import nullcontext
from functools import partial

import numpy as np
import pandas as pd
import pytest
import torch
from pytorch_lightning.callbacks import Callback, EarlyStopping, LambdaCallback, ModelCheckpoint

from taylorformer_forecast.baselines.linear_path import LinearPathBaseline
from taylorformer_forecast.engine import lightning
from taylorformer_forecast.engine.state import own_state, private_rng
from taylorformer_forecast.engine.training import fit, is_watched, resolve_device
from taylorformer_forecast.engine.windows import Batches, Series, WindowMaker
from taylorformer_forecast.models.taylorformer import Taylorformer
from taylorformer_forecast.sktime import TaylorformerForecaster, TaylorformerImputer

CPU = {"device": "cpu"}


def sine(n=60, noise=0.1, seed=0):
    t = np.arange(float(n))
    return Series(t, (np.sin(t / 2) + noise * np.random.default_rng(seed).normal(size=n))[:, None])


def network():
    with private_rng(0):
        return Taylorformer(d_model=4, n_heads=1, n_layers=2, dropout=0.1)


def loaders(series=None, split=0.7):
    maker = WindowMaker([series or sine()], n_context=8, n_targets=4, time_unit=8.0)
    train = Batches(maker, maker.starts(4, keep=split), 8, seed=0, last=split)
    return train, Batches(maker, maker.starts(4, skip=split), 64)


def trained(max_steps=5, validation=False, lr=1e-2, series=None, **kwargs):
    net = network()
    train, held_out = loaders(series)
    with private_rng(1):
        result = fit(
            net, train, held_out if validation else None, max_steps=max_steps, lr=lr, **CPU, **kwargs
        )
    return net, result


def numbers(net):
    return torch.cat([p.detach().ravel() for p in net.parameters()])


@torch.no_grad()
def loss_on(net, batches):
    from taylorformer_forecast.core.protocol import negative_log_likelihood

    return float(np.mean([negative_log_likelihood(net(batch), batch) for batch in batches]))


# --- learning ---------------------------------------------------------------------------------------------


def test_training_lowers_the_loss_of_windows_it_has_not_seen():
    _, held_out = loaders()
    net, result = trained(max_steps=80)
    assert loss_on(net, held_out) < loss_on(network().eval(), held_out) - 0.3
    assert result["steps"] == 80
    assert np.isfinite(result["train_loss"])


def test_the_network_ends_on_the_cpu_in_evaluation_mode():
    net, _ = trained(max_steps=1)
    assert not any(module.training for module in net.modules())
    assert {p.device.type for p in net.parameters()} == {"cpu"}


def test_no_steps_leave_the_network_as_it_was():
    net, result = trained(max_steps=0)
    assert torch.equal(numbers(net), numbers(network()))
    assert result == {"steps": 0}
    assert not net.training


@pytest.mark.parametrize(("own", "of_the_trainer", "steps"), [(0, 2, 0), (5, 0, 0), (5, 2, 2), (2, 5, 2)])
def test_the_earlier_of_our_steps_and_those_of_the_users_trainer_ends_training(own, of_the_trainer, steps):
    net, result = trained(max_steps=own, trainer_kwargs={"max_steps": of_the_trainer})
    assert result["steps"] == steps
    assert torch.equal(numbers(net), numbers(network())) == (steps == 0)


class Endless:
    """Batches without passes."""

    def __init__(self, batches):
        self.batches = batches

    def __iter__(self):
        return iter(self.batches)


def test_passes_that_end_train_the_network_that_endless_batches_do():
    batches, nets = loaders()[0], []
    for train in (batches, Endless(batches)):
        nets.append(network())
        with private_rng(1):
            fit(nets[-1], train, max_steps=3 * batches.n_batches + 2, lr=1e-2, **CPU)
    assert torch.equal(*map(numbers, nets))


@pytest.mark.parametrize("accumulated", [None, 2, 3])
@pytest.mark.parametrize("asked", [{"max_epochs": 2}, {"max_epochs": 2, "max_steps": -1}], ids=str)
def test_epochs_of_the_users_trainer_are_passes_over_the_windows(asked, accumulated):
    extra = {} if accumulated is None else {"accumulate_grad_batches": accumulated}
    rates = []
    watch = LambdaCallback(on_train_batch_end=lambda trainer, *_: rates.append(rate_of(trainer)))
    _, result = trained(max_steps=10**6, trainer_kwargs={**asked, **extra, "callbacks": watch})
    n_batches = -(-loaders()[0].n_batches // (accumulated or 1))
    assert result["steps"] == 2 * n_batches
    assert rates[-1] == 0.0  # the schedule has come to its end


def rate_of(trainer):
    return trainer.optimizers[0].param_groups[0]["lr"]


def test_equal_seeds_train_equal_networks():
    assert torch.equal(numbers(trained()[0]), numbers(trained()[0]))


def test_the_validation_part_is_not_trained_on():
    changed = sine()
    changed.y[42:] += 100.0
    one, other = trained()[0], trained(series=changed)[0]
    assert torch.equal(numbers(one), numbers(other))


def test_the_baseline_is_left_to_its_closed_form():
    with private_rng(0):
        net = Taylorformer(d_model=4, n_heads=1, n_layers=2, baseline=LinearPathBaseline(8, 4))
    before = {name: value.clone() for name, value in net.baseline.state_dict().items()}
    with private_rng(1):
        fit(net, loaders()[0], max_steps=5, lr=1e-2, **CPU)
    for name, value in net.baseline.state_dict().items():
        assert torch.equal(value, before[name]), name
    assert net.streams.to_params.weight.any()


# --- stopping ---------------------------------------------------------------------------------------------


class Record(Callback):
    """Keep the validation losses and weights of every check."""

    def __init__(self):
        self.losses, self.weights = [], []

    def on_validation_end(self, trainer, module):
        self.losses.append(float(trainer.callback_metrics["val_loss"]))
        self.weights.append(numbers(module.net).clone())


def not_learnable():
    """Half a sine, then large noise: the better the first is learnt, the worse the second fits."""
    series = sine(noise=0.0)
    series.y[42:] = np.random.default_rng(0).normal(size=(18, 1)) * 10
    return series


def test_the_weights_of_the_best_check_are_kept():
    record = Record()
    series = not_learnable()
    net, _ = trained(
        max_steps=60,
        validation=True,
        lr=3e-2,
        series=series,
        patience=100,
        n_checks=20,
        trainer_kwargs={"callbacks": [record]},
    )
    best = int(np.argmin(record.losses))
    assert record.losses[-1] > record.losses[best] + 0.1  # the last is not the best
    assert torch.equal(numbers(net), record.weights[best])
    assert loss_on(net, loaders(series)[1]) == pytest.approx(record.losses[best], rel=1e-4)


@pytest.mark.parametrize("accumulated", [None, 3])
@pytest.mark.parametrize("n_checks", [4, 10])
def test_checks_are_spread_over_the_steps(n_checks, accumulated):
    record = Record()
    extra = {} if accumulated is None else {"accumulate_grad_batches": accumulated}
    trained(
        max_steps=20,
        validation=True,
        patience=100,
        n_checks=n_checks,
        trainer_kwargs={"callbacks": [record], **extra},
    )
    assert len(record.losses) == n_checks


def test_checks_are_about_as_many_as_asked_for_where_steps_are_not_a_multiple():
    record = Record()
    trained(max_steps=39, validation=True, patience=100, trainer_kwargs={"callbacks": [record]})
    assert len(record.losses) == 19


def test_training_stops_early_without_improvement():
    _, result = trained(max_steps=400, validation=True, patience=2, lr=3e-2, series=not_learnable())
    assert result["steps"] < 400


def test_a_callback_of_the_user_stops_training_after_a_pass_and_later_trainings_alike():
    stop = EarlyStopping("train_loss", patience=0, stopping_threshold=1e9)
    for _ in range(2):
        _, result = trained(max_steps=100, trainer_kwargs={"callbacks": [stop]})
        assert result["steps"] == loaders()[0].n_batches


@pytest.mark.parametrize("patience", [1, 3])
def test_early_stopping_of_the_user_by_the_validation_loss_replaces_ours(patience):
    hard = {"max_steps": 400, "validation": True, "lr": 3e-2, "series": not_learnable()}
    stop = EarlyStopping("val_loss", patience=patience)
    _, asked = trained(**hard, patience=100, trainer_kwargs={"callbacks": [stop]})
    _, usual = trained(**hard, patience=patience)
    assert asked["steps"] == usual["steps"] < 400


def test_a_callback_that_watches_a_validation_loss_that_there_is_not_is_refused():
    options = {"callbacks": EarlyStopping("val_loss")}
    with pytest.raises(ValueError, match="EarlyStopping watches val_loss, but nothing is held out"):
        trained(3, data="a", trainer_kwargs=options)
    assert trained(3, trainer_kwargs=options)[1]["steps"] == 3  # an update has no validation


@pytest.mark.parametrize("n_passes", [0, 3])
def test_the_users_trainer_may_check_after_every_pass(n_passes):
    record = Record()
    extra = {"check_val_every_n_epoch": 1, "callbacks": record}
    _, result = trained(2 + n_passes * loaders()[0].n_batches, validation=True, trainer_kwargs=extra)
    assert len(record.losses) == n_passes
    assert ("val_loss" in result) == (n_passes > 0)


def test_the_users_trainer_may_check_several_times_in_a_pass():
    record, n_batches = Record(), loaders()[0].n_batches
    extra = {"val_check_interval": 0.5, "callbacks": record}
    trained(2 * n_batches, validation=True, trainer_kwargs=extra)
    assert len(record.losses) == 2 * (n_batches // (n_batches // 2))


def test_time_can_be_limited():
    start = time.monotonic()
    _, result = trained(max_steps=10**7, trainer_kwargs={"max_time": {"seconds": 1}})
    assert time.monotonic() - start < 10
    assert 0 < result["steps"] < 10**6


def test_the_rate_has_decayed_when_the_time_is_up():
    rates = []

    class Watch(Callback):
        def on_train_batch_end(self, trainer, *args):
            rates.append(rate_of(trainer))

    trained(max_steps=1000, trainer_kwargs={"max_time": {"seconds": 1}, "callbacks": [Watch()]})
    assert len(rates) < 1000
    assert rates[-1] < 0.1 * max(rates)


def test_training_that_diverges_is_an_error():
    with pytest.raises(RuntimeError, match=r"training diverged after \d+ steps: weights are not finite"):
        trained(max_steps=20, lr=1e30)


def test_training_that_diverges_after_a_check_warns_and_keeps_the_best_weights():
    class Spoil(Callback):
        def on_train_batch_start(self, trainer, module, *args):
            if trainer.global_step == 12:
                next(module.parameters()).data.fill_(float("nan"))

    with pytest.warns(UserWarning, match=r"diverged after \d+ steps: the best weights before are kept"):
        net, _ = trained(max_steps=20, validation=True, n_checks=4, trainer_kwargs={"callbacks": [Spoil()]})
    assert torch.isfinite(numbers(net)).all()


# --- the trainer's arguments ------------------------------------------------------------------------------


def test_the_users_dict_is_merged_and_left_alone():
    record = Record()
    given = {"callbacks": [record], "max_steps": 3, "gradient_clip_val": 0.1}
    before = {**given, "callbacks": list(given["callbacks"])}
    _, result = trained(max_steps=20, validation=True, trainer_kwargs=given)
    assert given == before
    assert result["steps"] == 3  # the user's argument wins
    assert record.losses  # and the callback was added to ours


def test_rates_and_checks_follow_the_steps_of_the_users_trainer():
    rates, record = [], Record()
    watch = LambdaCallback(on_train_batch_end=lambda trainer, *_: rates.append(rate_of(trainer)))
    extra = {"callbacks": [watch, record], "max_steps": 20}
    trained(max_steps=1000, validation=True, patience=100, n_checks=4, trainer_kwargs=extra)
    assert len(rates) == 20
    assert max(rates) == pytest.approx(1e-2)
    assert 0 < rates[-2] < 0.1 * max(rates)
    assert len(record.losses) == 4


def test_callbacks_may_be_absent_or_none():
    for given in (None, {}, {"callbacks": None}, {"callbacks": []}):
        assert trained(max_steps=1, trainer_kwargs=given)[1]["steps"] == 1


@pytest.mark.parametrize("precision", ["64-true", "bf16-mixed", "16-mixed", "bf16-true"])
def test_precision_of_training_is_the_trainers_and_the_network_keeps_its_own(precision):
    seen = []
    record = LambdaCallback(on_train_batch_end=lambda trainer, module, *_: seen.append(numbers(module).dtype))
    net, _ = trained(max_steps=2, trainer_kwargs={"precision": precision, "callbacks": record})
    wide = {"64-true": torch.float64, "bf16-true": torch.bfloat16}
    assert seen == [wide.get(precision, torch.float32)] * 2
    assert {p.dtype for p in net.parameters()} == {torch.float32}
    assert not torch.equal(numbers(net), numbers(trained(max_steps=2)[0]))


@pytest.mark.parametrize("accelerator", ["gpu", "cuda"])
def test_a_gpu_that_is_not_there_is_named(monkeypatch, accelerator):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(
        ValueError, match=f"accelerator='{accelerator}' cannot be used here: PyTorch finds no"
    ):
        trained(1, trainer_kwargs={"accelerator": accelerator})


def test_auto_is_a_device_of_this_machine():
    assert resolve_device("auto") == ("cuda" if torch.cuda.is_available() else "cpu")
    assert resolve_device("cuda:1") == "cuda:1"


def test_auto_is_the_cpu_where_a_forked_process_cannot_use_the_gpu(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "_is_in_bad_fork", lambda: False)
    assert resolve_device("auto") == "cuda"
    monkeypatch.setattr(torch.cuda, "_is_in_bad_fork", lambda: True)
    assert resolve_device("auto") == "cpu"


def test_cuda_that_is_not_in_use_is_not_started(monkeypatch):
    def start(*_):
        raise RuntimeError("Cannot re-initialize CUDA in forked subprocess")

    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: False)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    monkeypatch.setattr(torch.cuda, "get_rng_state", start)
    torch.manual_seed(3)
    seeds = []
    monkeypatch.setattr(torch.cuda, "manual_seed_all", seeds.append)
    with private_rng(0):
        assert torch.initial_seed() == 0
    assert seeds[-1] == 3  # that of the caller, for when it starts


# --- leaving nothing behind -------------------------------------------------------------------------------


@pytest.fixture
def y():
    values = np.sin(np.arange(60) / 2) + 0.1 * np.random.default_rng(0).normal(size=60)
    return pd.Series(values, pd.period_range("2000-01", periods=60, freq="M"), name="y")


def tiny(**changes):
    settings = {
        "strategy": "train",
        "d_model": 4,
        "n_heads": 1,
        "max_steps": 3,
        "num_samples": 5,
        "random_state": 0,
    }
    return TaylorformerForecaster(**{**settings, **changes})


def full_life(y, **settings):
    forecaster = tiny(update_steps=2, validation_split=0.2, **settings).fit(y.iloc[:50])
    forecaster.predict_interval(fh=[-1, 1, 2])
    forecaster.update(y.iloc[50:])
    return forecaster.predict_proba(fh=[1]).sample(2)


def global_state():
    name, keys, *rest = np.random.get_state()  # noqa: NPY002
    return {
        "torch generator": torch.get_rng_state().numpy().tobytes(),
        "numpy generator": (name, keys.tobytes(), *rest),
        "threads": torch.get_num_threads(),
        "gradients": torch.is_grad_enabled(),
        "dtype": torch.get_default_dtype(),
        "deterministic": torch.are_deterministic_algorithms_enabled(),
        "matmul": torch.get_float32_matmul_precision(),
        "warnings": list(warnings.filters),
        "environment": dict(os.environ),
        "folder": os.getcwd(),
        "loggers": {
            n: logging.getLogger(n).level for n in ("pytorch_lightning", "lightning.pytorch", "root")
        },
        "numpy errors": np.geterr(),
    }


def changed_since(before):
    return {name for name, value in global_state().items() if value != before[name]}


def test_the_state_of_the_process_is_what_it_was(y):
    full_life(y)  # importing libraries for the first time may change it
    before = global_state()
    full_life(y)
    assert changed_since(before) == set()


def test_a_fit_that_fails_restores_the_state_of_the_process(y):
    tiny().fit(y)
    before = global_state()
    with pytest.raises(TypeError):
        tiny(trainer_kwargs={"speed": 1}).fit(y)
    assert changed_since(before) == set()


def test_constructing_a_forecaster_does_nothing():
    before = global_state()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        forecaster = tiny(device="cuda:7")
    assert changed_since(before) == set()
    assert not forecaster.is_fitted


def test_no_files_are_left_behind(y, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    full_life(y)
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_printed_and_nothing_warned(y, capfd, caplog):
    full_life(y)
    capfd.readouterr()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        full_life(y)
        tiny().fit(y)
    assert capfd.readouterr() == ("", "")
    assert [str(w.message) for w in caught] == []
    assert caplog.records == []


class Screen(io.StringIO):
    def __init__(self, terminal):
        super().__init__()
        self.isatty = lambda: terminal


@pytest.mark.parametrize(
    ("terminal", "verbose", "delay", "shown"),
    [(True, True, 0, True), (False, True, 0, False), (True, False, 0, False), (True, True, 60, False)],
)
def test_training_that_lasts_shows_one_line_in_a_terminal(y, monkeypatch, terminal, verbose, delay, shown):
    screen = Screen(terminal)
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setattr(lightning, "ProgressBar", partial(lightning.ProgressBar, delay))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tiny(strategy="train", max_steps=30, verbose=verbose).fit(y)
    text = screen.getvalue()
    assert ("training: " in text) == shown
    assert ("/30 [" in text and "loss " in text) == shown
    assert "\n" not in text
    assert text == "" or text.endswith("\r")  # the line is gone


def test_the_network_holds_no_trainer(y):
    forecaster = tiny(validation_split=0.2).fit(y)
    modules = [type(value).__module__ for value in vars(forecaster).values()]
    assert not [name for name in modules if name.startswith(("pytorch_lightning", "lightning"))]
    copy.deepcopy(forecaster)


def test_private_randomness_is_restored_even_after_an_error():
    before = torch.get_rng_state()
    with pytest.raises(RuntimeError), private_rng(3):
        torch.rand(3).reshape(5)
    assert torch.equal(torch.get_rng_state(), before)
    with private_rng(3):
        one = torch.rand(3)
    with private_rng(3):
        assert torch.equal(torch.rand(3), one)


def test_steps_of_the_trainer_bound_a_fit_and_its_updates_have_their_own(y):
    limits = {"update_steps": 2, "trainer_kwargs": {"max_steps": 4}}
    forecaster = tiny(max_steps=50, **limits).fit(y.iloc[:50])
    assert forecaster.training_["steps"] == 4
    assert forecaster.update(y.iloc[50:]).training_["steps"] == 2


class FitsAnother(Callback):
    """Fits another forecaster, once, in the midst of a training."""

    def __init__(self, y):
        self.y, self.dtype = y, None

    def on_train_batch_end(self, trainer, *_):
        if trainer.global_step == 1:
            self.fitted = tiny(random_state=7, trainer_kwargs={"max_steps": 2}).fit(self.y)
            self.dtype = torch.get_default_dtype()


def test_a_fit_within_a_callback_of_a_fit_changes_neither(y):
    found = []

    def work():
        other = FitsAnother(y)
        found.extend([other, tiny(trainer_kwargs={"callbacks": [other]}).fit(y)])

    torch.set_default_dtype(torch.float64)
    try:
        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        thread.join(60)
        assert len(found) == 2, "it waits for itself"
        inner, outer = found
        assert inner.dtype is torch.float32
        assert torch.get_default_dtype() is torch.float64
    finally:
        torch.set_default_dtype(torch.float32)
    alone = tiny(random_state=7, trainer_kwargs={"max_steps": 2}).fit(y)
    assert torch.equal(numbers(inner.fitted.network_), numbers(alone.network_))
    assert torch.equal(numbers(outer.network_), numbers(tiny().fit(y).network_))


KILLED = """
import os, signal, sys
import numpy as np, pandas as pd
from pytorch_lightning import Callback
from pytorch_lightning.callbacks import ModelCheckpoint
from taylorformer_forecast.sktime import TaylorformerForecaster

class Kill(Callback):
    def on_train_batch_end(self, trainer, *_):
        if trainer.global_step == 7:
            os.kill(os.getpid(), signal.SIGKILL)

folder, first = sys.argv[1], sys.argv[2] == "first"
saving = ModelCheckpoint(dirpath=folder, every_n_train_steps=5, save_last=True)
kwargs = {
    "callbacks": [saving, *([Kill()] if first else [])],
    "enable_checkpointing": True,
    "ckpt_path": "last",
}
y = pd.Series(np.sin(np.arange(80.0)), pd.period_range("2000", periods=80, freq="M"))
fitted = TaylorformerForecaster(
    strategy="train", d_model=4, n_heads=1, max_steps=10, num_epochs=None, random_state=0,
    trainer_kwargs=kwargs
).fit(y)
print("steps", fitted.training_["steps"], np.isfinite(fitted.predict([1])).all())
"""


def test_training_that_was_killed_goes_on_from_its_last_checkpoint(tmp_path):
    import subprocess
    import sys

    def run(which):
        return subprocess.run(
            [sys.executable, "-W", "ignore", "-c", KILLED, str(tmp_path), which],
            capture_output=True,
            text=True,
            check=False,
        )

    assert run("first").returncode == -9
    assert torch.load(tmp_path / "last.ckpt", weights_only=False)["global_step"] == 5
    second = run("second")
    assert second.returncode == 0, second.stderr
    assert "steps 10 True" in second.stdout


def test_a_checkpoint_keeps_the_best_weights_so_far():
    from taylorformer_forecast.engine.lightning import BestWeights

    old, new = BestWeights(), BestWeights()
    old.loss, old.weights = 0.5, {"a": torch.ones(2)}
    new.load_state_dict(old.state_dict())
    assert (new.loss, new.weights) == (old.loss, old.weights)


def test_blocks_of_several_threads_leave_the_default_dtype_as_it_was():
    """The one that entered first leaves first."""
    inside, entered, left = (threading.Event() for _ in range(3))
    found = []

    def first():
        with own_state():
            inside.set()
            entered.wait(10)
        left.set()

    def second():
        inside.wait(10)
        with own_state():
            entered.set()
            left.wait(10)
            found.append(torch.get_default_dtype())

    torch.set_default_dtype(torch.float64)
    try:
        threads = [threading.Thread(target=work) for work in (first, second)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert found == [torch.float32]
        assert torch.get_default_dtype() is torch.float64
    finally:
        torch.set_default_dtype(torch.float32)


def ask_in_a_fork(work):
    """What a function returns in a forked process."""
    receiver, sender = multiprocessing.get_context("fork").Pipe(duplex=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # there are other threads
        process = multiprocessing.get_context("fork").Process(target=lambda: sender.send(work()))
        process.start()
    try:
        assert receiver.poll(30), "it waits for a thread that is not there"
        return receiver.recv()
    finally:
        process.kill()
        process.join()


def dtypes_of_blocks():
    """Default dtypes before, in and after a block."""
    before = torch.get_default_dtype()
    with own_state(), private_rng(0):
        inside = torch.get_default_dtype()
    return before, inside, torch.get_default_dtype()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no processes are forked here")
@pytest.mark.parametrize("shielded", [False, True])
def test_a_forked_process_does_not_wait_for_threads_of_its_parent(shielded):
    """It keeps the blocks of the thread that forked it."""
    inside, asked = threading.Event(), threading.Event()

    def train():
        with own_state(), private_rng(0):
            inside.set()
            asked.wait(60)

    torch.set_default_dtype(torch.float64)
    thread = threading.Thread(target=train)
    try:
        thread.start()
        inside.wait(10)
        with own_state() if shielded else nullcontext():
            found = ask_in_a_fork(dtypes_of_blocks)
        around = torch.float32 if shielded else torch.float64
        assert found == (around, torch.float32, around)
    finally:
        asked.set()
        thread.join()
        assert torch.get_default_dtype() is torch.float64
        torch.set_default_dtype(torch.float32)


def saved_in(folder):
    """Options that save checkpoints in a folder, and go on from the last one."""
    callbacks = [ModelCheckpoint(folder, save_last=True, every_n_train_steps=1)]
    return {"callbacks": callbacks, "enable_checkpointing": True, "ckpt_path": "last"}


class Break(Callback):
    """Breaks training off, and counts its steps."""

    def __init__(self, at):
        self.at, self.steps = at, []

    def on_train_batch_end(self, trainer, *_):
        self.steps.append(trainer.global_step)
        if trainer.global_step == self.at:
            raise RuntimeError("broken off")


@pytest.mark.parametrize("every", [None, 1, 7, 10], ids=lambda every: f"every {every}")
@pytest.mark.parametrize("validation", [False, True])
def test_training_that_broke_off_goes_on_after_its_last_pass_or_amid_one(tmp_path, every, validation):
    """By default ``ModelCheckpoint`` saves after every pass, or after every check of the validation."""
    n_batches, breaks = loaders()[0].n_batches, [Break(12), Break(None)]
    assert n_batches == 5
    for one in breaks:
        saving = ModelCheckpoint(tmp_path, save_last=True, every_n_train_steps=every)
        extra = {"callbacks": [saving, one], "ckpt_path": "last"}
        with pytest.raises(RuntimeError, match="broken off") if one.at else nullcontext():
            net, result = trained(23, validation, n_checks=7, patience=99, data="a", trainer_kwargs=extra)
    saved = {None: 9 if validation else 10, 1: 11, 7: 7, 10: 10}[every]
    assert breaks[1].steps == list(range(saved + 1, 24))
    assert result["steps"] == 23
    assert torch.isfinite(numbers(net)).all()


def test_training_goes_on_from_checkpoints_of_the_same_data_only(tmp_path):
    """A fit to other values took the network of the checkpoint, and its baseline, as they were."""
    net, result = trained(3, data="a", trainer_kwargs=saved_in(tmp_path))
    again, resumed = trained(3, data="a", trainer_kwargs=saved_in(tmp_path))
    assert (result["steps"], resumed["steps"]) == (3, 3)
    for name, value in net.state_dict().items():
        assert torch.equal(value, again.state_dict()[name]), name
    for other in ("b", ""):
        with pytest.raises(ValueError, match="ckpt_path: the checkpoint is of another series"):
            trained(3, data=other, trainer_kwargs=saved_in(tmp_path))


def test_training_without_the_name_of_data_starts_from_the_network_that_there_is(tmp_path):
    trained(3, data="a", trainer_kwargs=saved_in(tmp_path))
    before = {path.name: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    net, result = trained(2, trainer_kwargs=saved_in(tmp_path))
    assert {path.name: path.stat().st_mtime_ns for path in tmp_path.iterdir()} == before
    assert result["steps"] == 2
    for name, value in trained(2)[0].state_dict().items():
        assert torch.equal(value, net.state_dict()[name]), name


def test_updates_and_other_series_do_not_take_the_checkpoints_of_a_fit(tmp_path):
    """Updates with the options of the fit trained nothing: its checkpoint had all steps."""
    y = pd.Series(np.sin(np.arange(80.0)), pd.period_range("2000", periods=80, freq="M"))
    small = {"strategy": "train", "d_model": 4, "n_heads": 1, "max_steps": 4, "random_state": 0}
    found = []
    for options in (None, saved_in(tmp_path)):
        forecaster = TaylorformerForecaster(**small, update_steps=3, trainer_kwargs=options).fit(y[:70])
        found.append(forecaster.update(y[70:]).predict([1]).iloc[0])
        assert forecaster.training_["steps"] == 3
    assert found[0] == found[1]
    again = TaylorformerForecaster(**small, trainer_kwargs=saved_in(tmp_path)).fit(y[:70])
    assert again.training_["steps"] == 4  # the update has left the checkpoint of the fit
    with pytest.raises(ValueError, match="give every fit a folder of its own"):
        TaylorformerForecaster(**small, trainer_kwargs=saved_in(tmp_path)).fit(y + np.arange(80.0) ** 2)


def test_an_imputer_refuses_a_checkpoint_to_go_on_from(tmp_path):
    y = pd.Series(np.sin(np.arange(40.0)), pd.period_range("2000", periods=40, freq="M"))
    y[5:8] = np.nan
    with pytest.raises(ValueError, match="trainer_kwargs has ckpt_path"):
        TaylorformerImputer(max_steps=2, trainer_kwargs=saved_in(tmp_path)).fit(y)


def test_without_a_terminal_nobody_watches(monkeypatch):
    """Services have no standard error."""
    monkeypatch.setattr("sys.stderr", None)
    assert not is_watched()
