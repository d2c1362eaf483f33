"""Train a network with Lightning: quiet, reproducible, leaving nothing behind."""

from __future__ import annotations

import copy
import os
import signal
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any, TypeVar

import torch

from taylorformer_forecast.core.protocol import ForecastNet
from taylorformer_forecast.core.window import Window
from taylorformer_forecast.defaults import GRADIENT_CLIP

_LOCK = threading.RLock()
_DTYPE_LOCK = threading.Lock()
_CALLERS: list[tuple[int, torch.dtype]] = []  # thread of every block that shields, and the caller's dtype
Net = TypeVar("Net", bound=torch.nn.Module)


def _forget_other_threads() -> None:
    """End the blocks of all threads that a forked process does not have."""
    global _LOCK, _DTYPE_LOCK
    _LOCK, _DTYPE_LOCK = threading.RLock(), threading.Lock()
    own = [block for block in _CALLERS if block[0] == threading.get_ident()]
    if _CALLERS and not own:
        torch.set_default_dtype(_CALLERS[0][1])
    _CALLERS[:] = own


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_other_threads)


@contextmanager
def kept_rng() -> Iterator[None]:
    """Restore the states of torch's global generators after a block.

    CUDA that is not in use is not started for that: it takes seconds, and a forked process cannot do it.
    When it starts, in the block or later, it has the caller's seed.

    Examples
    --------
    >>> import torch
    >>> from taylorformer_forecast.engine.training import kept_rng
    >>> before = torch.get_rng_state()
    >>> with kept_rng():
    ...     _ = torch.rand(3)
    >>> bool((torch.get_rng_state() == before).all())
    True
    """
    used = torch.cuda.is_initialized()
    try:
        with torch.random.fork_rng(range(torch.cuda.device_count()) if used else []):
            yield
    finally:
        if not used:
            torch.cuda.manual_seed_all(torch.initial_seed())


@contextmanager
def private_rng(seed: int) -> Iterator[None]:
    """Seed torch's global generator for a block, and restore it afterwards.

    Initialisation and dropout draw from the global generator, so blocks in different threads wait for each
    other: a threaded backtest gives what a sequential one gives. A block within a block of the same thread
    leaves the random state of the outer one as it was.

    Parameters
    ----------
    seed : int
        Seed within the block.

    Examples
    --------
    >>> import torch
    >>> from taylorformer_forecast.engine.training import private_rng
    >>> before = torch.get_rng_state()
    >>> with private_rng(0):
    ...     _ = torch.rand(3)
    >>> bool((torch.get_rng_state() == before).all())
    True
    """
    with _LOCK, kept_rng():
        torch.manual_seed(seed)
        yield


@contextmanager
def own_state() -> Iterator[None]:
    """Shield a block from what the caller has set in torch: gradients, automatic precision, default dtype.

    The default dtype is that of all threads: it is float32 while any of them is in such a block.

    Examples
    --------
    >>> import torch
    >>> from taylorformer_forecast.engine.training import own_state
    >>> with torch.inference_mode(), own_state():
    ...     torch.is_grad_enabled()
    True
    """
    with _DTYPE_LOCK:
        before = _CALLERS[0][1] if _CALLERS else torch.get_default_dtype()
        block = threading.get_ident(), before
        _CALLERS.append(block)
        torch.set_default_dtype(torch.float32)
    try:
        with ExitStack() as stack:
            stack.enter_context(torch.inference_mode(False))
            stack.enter_context(torch.enable_grad())
            for kind in ("cpu", *(["cuda"] if torch.cuda.is_available() else [])):
                stack.enter_context(torch.autocast(kind, enabled=False))
            yield
    finally:
        with _DTYPE_LOCK:
            if len(_CALLERS) == 1:  # the last block restores it
                torch.set_default_dtype(before)
            _CALLERS.remove(block)


@contextmanager
def all_or_nothing(estimator: Any) -> Iterator[None]:
    """Restore the attributes of an estimator if a block fails or is interrupted.

    The block is shielded from what the caller has set in torch.
    """
    before = {  # only sktime's own dicts are written into
        name: value.copy() if name.startswith("_") and isinstance(value, dict) else value
        for name, value in vars(estimator).items()
    }
    try:
        with own_state():
            yield
    except BaseException:  # a keyboard interrupt too
        estimator.__dict__ = before
        raise


@contextmanager
def interruptible() -> Iterator[None]:
    """Raise the keyboard interrupts of users, for which Lightning would end the process."""
    handler = signal.getsignal(signal.SIGINT)
    try:
        yield
    except SystemExit as error:
        if not isinstance(error.__context__, KeyboardInterrupt):
            raise
        if threading.current_thread() is threading.main_thread():  # Lightning ignores further ones
            signal.signal(signal.SIGINT, handler)
        raise KeyboardInterrupt from None


def fit(
    net: ForecastNet,
    train: Iterable[Window],
    validation: Iterable[Window] | None = None,
    *,
    max_steps: int,
    lr: float,
    patience: int = 10,
    n_checks: int = 20,
    device: str = "auto",
    verbose: bool = True,
    trainer_kwargs: Mapping[str, Any] | None = None,
) -> dict[str, float]:
    """Train a network in place and leave it on the CPU, in evaluation mode.

    Call it inside :func:`private_rng` for a reproducible result.

    Parameters
    ----------
    net : ForecastNet
        The network.
    train, validation : iterable of Window
        Training batches, and the windows of the validation loss if there is one.
    max_steps : int
        Optimiser steps, unless ``trainer_kwargs`` has others. With 0, or without weights to train, nothing is
        trained.
    lr : float
        Peak learning rate.
    patience : int, default=10
        Validation checks without improvement before training stops. The best weights are kept.
    n_checks : int, default=20
        Validation checks in ``max_steps``.
    device : str, default="auto"
        "auto" takes a CUDA device if there is one, else the CPU; or "cpu", "cuda", "cuda:1", "mps".
    verbose : bool, default=True
        Whether training that takes more than seconds shows a progress bar, in a terminal or a notebook.
    trainer_kwargs : mapping, optional
        Arguments of ``pytorch_lightning.Trainer`` that take precedence: devices, strategy, precision,
        loggers, max_time. Its ``callbacks`` are added to ours, and ``ckpt_path`` names the checkpoint that
        training goes on from. The mapping is not changed.

    Returns
    -------
    dict
        ``steps`` taken, and final losses as Lightning logged them.

    Raises
    ------
    RuntimeError
        If training diverged: weights are not finite.
    """
    if max_steps == 0 or not any(p.requires_grad for p in net.parameters()):
        net.eval()
        return {"steps": 0}
    dtype = net.train().dtype
    # Imported here: Lightning takes seconds to load, and using a fitted forecaster does not need it.
    import pytorch_lightning as pl

    from taylorformer_forecast.engine.lightning import BestWeights, Loader, ProgressBar, TrainingModule, quiet

    extra, callbacks = dict(trainer_kwargs or {}), []
    if extra.get("max_steps", -1) >= 0:  # -1 leaves the end to other arguments
        max_steps = extra["max_steps"]
    settings: dict[str, Any] = {
        "max_steps": max_steps,
        "max_epochs": -1,
        "logger": False,
        "enable_checkpointing": False,
        "enable_model_summary": False,
        "enable_progress_bar": False,
        "gradient_clip_val": GRADIENT_CLIP,
        "num_sanity_val_steps": 0,
        **_accelerator(device),
    }
    n_accumulated = extra.get("accumulate_grad_batches", 1)  # batches of an optimiser step
    if validation is not None:
        settings["val_check_interval"] = max(1, max_steps // n_checks) * n_accumulated
        settings["check_val_every_n_epoch"] = None
        callbacks = [pl.callbacks.EarlyStopping("val_loss", patience=patience), BestWeights()]
    if verbose and is_watched() and not extra.get("enable_progress_bar"):
        callbacks.append(ProgressBar())
    given, checkpoint = extra.pop("callbacks", None) or [], extra.pop("ckpt_path", None)
    callbacks += [given] if isinstance(given, pl.Callback) else given
    module = TrainingModule(net, lr, max_steps)
    with quiet():
        trainer = pl.Trainer(**{**settings, **extra, "callbacks": callbacks})
        loaders: dict[str, Any] = {"train_dataloaders": Loader(train)}
        if validation is not None:
            loaders["val_dataloaders"] = Loader(validation)
        with interruptible():
            trainer.fit(module, ckpt_path=checkpoint, **loaders)
        metrics = {name: float(value) for name, value in trainer.callback_metrics.items()}
    net.to("cpu").eval()
    if net.dtype != dtype:  # of the trainer's precision, which is that of training only
        net.to(dtype)
    if not all(bool(torch.isfinite(p).all()) for p in net.parameters()):
        raise RuntimeError(
            f"training diverged after {trainer.global_step} steps: weights are not finite. "
            f"Try a smaller lr than {lr}."
        )
    return {"steps": trainer.global_step, **metrics}


def is_watched() -> bool:
    """Whether somebody sees what is printed: in a terminal or a notebook, not in a pipe or a file."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return sys.stderr.isatty() or (shell is not None and "IPKernelApp" in shell.config)


def resolve_device(device: str) -> str:
    """Name of the torch device that "auto" stands for in this process; other names as they are."""
    if device != "auto":
        return device
    # A forked process cannot use CUDA once its parent has.
    return "cuda" if torch.cuda.is_available() and not torch.cuda._is_in_bad_fork() else "cpu"


def on_device(net: Net, device: str, seed: int) -> tuple[Net, torch.Generator, str]:
    """A network to predict with, a generator of random numbers, and the device that both are on.

    The network that is given stays where it is: predictions in other threads may be using it.
    """
    device = resolve_device(device)
    net = net if device == "cpu" else copy.deepcopy(net).to(device)
    return net, torch.Generator(device).manual_seed(seed), device


def _accelerator(device: str) -> dict[str, Any]:
    """Lightning's arguments for a device name."""
    device = resolve_device(device)
    kind, _, number = device.partition(":")
    if kind == "cuda":
        return {"accelerator": "gpu", "devices": [int(number)] if number else 1}
    return {"accelerator": kind, "devices": 1}
