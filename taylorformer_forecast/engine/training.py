"""Train a network with Lightning: quiet, reproducible, leaving nothing behind."""

from __future__ import annotations

import copy
import math
import signal
import sys
import threading
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar
from zlib import crc32

import numpy as np
import torch

from taylorformer_forecast.core.protocol import ForecastNet
from taylorformer_forecast.core.window import Window
from taylorformer_forecast.defaults import GRADIENT_CLIP

Net = TypeVar("Net", bound=torch.nn.Module)


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
    data: str | None = None,
) -> dict[str, float]:
    """Train a network in place and leave it on the CPU, in evaluation mode.

    Call it inside :func:`private_rng` for a reproducible result.

    Parameters
    ----------
    net : ForecastNet
        The network.
    train, validation : iterable of Window
        Endless training batches, and the windows of the validation loss if there is one. An epoch is a pass
        of ``train.n_batches``; without such a number it has no end.
    max_steps : int
        Optimiser steps, at most. With 0, or without weights to train, nothing is trained.
    lr : float
        Peak learning rate.
    patience : int, default=10
        Validation checks without improvement before training stops. The best weights are kept.
    n_checks : int, default=20
        Validation checks in ``max_steps``, about.
    device : str, default="auto"
        "auto" takes a CUDA device if there is one, else the CPU; or "cpu", "cuda", "cuda:1".
    verbose : bool, default=True
        Whether training that takes more than seconds shows a progress bar, in a terminal or a notebook.
    trainer_kwargs : mapping, optional
        Arguments of ``pytorch_lightning.Trainer`` that take precedence: devices, strategy, precision,
        loggers, max_time. Its ``max_steps`` and ``max_epochs`` can only shorten training. Its ``callbacks``
        are added to ours; early stopping by the validation loss replaces ours. ``ckpt_path`` names the
        checkpoint that training goes on from. The mapping is not changed.
    data : str, optional
        Name of the data. Training goes on only from checkpoints of data with the same name; without one, it
        starts from the weights of the network, and with a ``ckpt_path`` neither reads nor saves checkpoints.

    Returns
    -------
    dict
        ``steps`` taken, and final losses as Lightning logged them.

    Raises
    ------
    RuntimeError
        If training diverged: weights are not finite.
    ValueError
        If the checkpoint is of other data, or a callback watches a validation loss that there is not.
    """
    extra = dict(trainer_kwargs or {})
    n_batches = getattr(train, "n_batches", None)
    max_steps = bounded(max_steps, extra, n_batches)
    extra.pop("max_steps", None)
    if max_steps == 0 or not any(p.requires_grad for p in net.parameters()):
        net.eval()
        return {"steps": 0}
    dtype = net.train().dtype
    # Imported here: Lightning takes seconds to load, and using a fitted forecaster does not need it.
    import pytorch_lightning as pl

    from taylorformer_forecast.engine.lightning import Epochs, Loader, ProgressBar, TrainingModule, quiet

    callbacks = _callbacks(extra, data, patience if validation is not None else None)
    settings: dict[str, Any] = {
        "max_steps": max_steps,
        "max_epochs": -1,
        "logger": False,
        "enable_checkpointing": any(isinstance(one, pl.callbacks.Checkpoint) for one in callbacks),
        "enable_model_summary": False,
        "enable_progress_bar": False,
        "gradient_clip_val": GRADIENT_CLIP,
        "num_sanity_val_steps": 0,
        **_accelerator(device, extra),
    }
    of_a_step = extra.get("accumulate_grad_batches", 1)  # batches of the optimiser
    by_epochs = "check_val_every_n_epoch" in extra or isinstance(extra.get("val_check_interval"), float)
    if validation is not None and not by_epochs:
        settings["val_check_interval"] = max(1, round(max_steps / n_checks)) * of_a_step
        settings["check_val_every_n_epoch"] = None
    if verbose and is_watched() and not extra.get("enable_progress_bar"):
        callbacks.append(ProgressBar())
    checkpoint = extra.pop("ckpt_path", None)
    with quiet():
        trainer = pl.Trainer(**{**settings, **extra, "callbacks": callbacks})
        batches = Loader(train) if n_batches is None else Epochs(train, n_batches, of_a_step)
        held_out = None if validation is None else Loader(validation)
        with interruptible():
            trainer.fit(TrainingModule(net, lr, max_steps, data), batches, held_out, ckpt_path=checkpoint)
        metrics = {name: float(value) for name, value in trainer.callback_metrics.items()}
    net.to("cpu").eval()
    if net.dtype != dtype:  # of the trainer's precision, which is that of training only
        net.to(dtype)
    diverged = f"training diverged after {trainer.global_step} steps: {{}}. Try a smaller lr than {lr}."
    if not all(bool(torch.isfinite(p).all()) for p in net.parameters()):
        raise RuntimeError(diverged.format("weights are not finite"))
    if not math.isfinite(metrics.get("val_loss", 0.0)):
        warnings.warn(diverged.format("the best weights before are kept"), stacklevel=2)
    return {"steps": trainer.global_step, **metrics}


def bounded(max_steps: int, trainer_kwargs: Mapping[str, Any] | None, n_batches: int | None) -> int:
    """Optimiser steps, of which there are no more than a trainer is to take.

    Parameters
    ----------
    max_steps : int
        Steps without that bound.
    trainer_kwargs : mapping, optional
        Arguments of ``pytorch_lightning.Trainer``: ``max_steps`` and ``max_epochs`` bound the steps.
    n_batches : int, optional
        Batches of an epoch, if that has an end.

    Examples
    --------
    >>> from taylorformer_forecast.engine.training import bounded
    >>> bounded(100, {"max_steps": 60}, 5), bounded(100, {"max_epochs": 3, "max_steps": -1}, 5)
    (60, 15)
    """
    extra = trainer_kwargs or {}
    steps, epochs = (extra.get(name) for name in ("max_steps", "max_epochs"))
    if n_batches is not None and epochs not in (None, -1):
        max_steps = min(max_steps, epochs * math.ceil(n_batches / extra.get("accumulate_grad_batches", 1)))
    return max_steps if steps in (None, -1) else min(max_steps, steps)


def data_name(arrays: Iterable[np.ndarray | None]) -> str:
    """Name of data, by which a checkpoint is told from those of others.

    Examples
    --------
    >>> import numpy as np
    >>> from taylorformer_forecast.engine.training import data_name
    >>> zeros = np.zeros(3)
    >>> data_name([zeros]) == data_name([zeros, None]), data_name([zeros]) == data_name([zeros + 1])
    (True, False)
    """
    found = 0
    for one in arrays:
        if one is not None:
            found = crc32(np.ascontiguousarray(one, float).tobytes(), found)
    return f"{found:08x}"


def check_accelerator(trainer_kwargs: Mapping[str, Any]) -> None:
    """Raise a ValueError if a GPU is asked for that is not there, or is Apple's."""
    from pytorch_lightning.accelerators import MPSAccelerator

    asked = trainer_kwargs.get("accelerator")
    if asked == "gpu" and MPSAccelerator.is_available():
        raise ValueError(
            "accelerator='gpu' is Apple's on this machine, which has no double precision: leave it out"
        )
    if asked in ("gpu", "cuda") and not torch.cuda.is_available():
        raise ValueError(f"accelerator={asked!r} cannot be used here: PyTorch finds no CUDA device")


def is_watched() -> bool:
    """Whether somebody sees what is printed: in a terminal or a notebook, not in a pipe or a file."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    terminal = sys.stderr is not None and sys.stderr.isatty()  # a service has none
    return terminal or (shell is not None and "IPKernelApp" in shell.config)


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


def _callbacks(extra: dict[str, Any], data: str | None, patience: int | None) -> list[Any]:
    """Callbacks of one training, which is a fit if it has data, and validates if it has patience.

    Those of the user are taken from ``extra``. Trainings are independent: each counts its own steps without
    improvement, and the checkpoints of a fit are left alone by others.
    """
    from pytorch_lightning.callbacks import Callback, Checkpoint, EarlyStopping

    from taylorformer_forecast.engine.lightning import BestWeights

    given = extra.pop("callbacks", None) or []
    given = [given] if isinstance(given, Callback) else list(given)
    watching = [one for one in given if getattr(one, "monitor", None) == "val_loss"]
    if patience is not None:
        if not any(isinstance(one, EarlyStopping) for one in watching):  # it may end before a first check
            given.insert(0, EarlyStopping("val_loss", patience=patience, strict=False))
        given.insert(0, BestWeights())
    elif watching and data is not None:
        raise ValueError(
            f"{type(watching[0]).__name__} watches val_loss, but nothing is held out for it: give "
            f"validation_split, or let it watch train_loss"
        )
    else:
        given = [one for one in given if one not in watching]
    if data is None and extra.pop("ckpt_path", None) is not None:
        extra["enable_checkpointing"] = False
        given = [one for one in given if not isinstance(one, Checkpoint)]
    return [copy.copy(one) if isinstance(one, EarlyStopping) else one for one in given]


def _accelerator(device: str, trainer_kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Lightning's arguments for a device name, unless the user's are wrong."""
    check_accelerator(trainer_kwargs)
    device = resolve_device(device)
    kind, _, number = device.partition(":")
    if kind == "cuda":
        return {"accelerator": "gpu", "devices": [int(number)] if number else 1}
    return {"accelerator": kind, "devices": 1}
