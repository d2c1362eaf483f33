"""The LightningModule: loss, optimiser, schedule. No maths of any model."""

from __future__ import annotations

import copy
import logging
import math
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import pytorch_lightning as pl
import torch
from torch import Tensor, nn
from tqdm import tqdm

from taylorformer_forecast.core.protocol import ForecastNet
from taylorformer_forecast.core.window import Window
from taylorformer_forecast.defaults import WARMUP


@contextmanager
def quiet() -> Iterator[None]:
    """Silence Lightning's hints, which address those who write training loops."""
    loggers = [logging.getLogger(name) for name in ("pytorch_lightning", "lightning.pytorch")]
    levels = [logger.level for logger in loggers]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", module="pytorch_lightning")
        warnings.filterwarnings("ignore", category=DeprecationWarning)
        for logger in loggers:
            logger.setLevel(logging.ERROR)
        try:
            yield
        finally:
            for logger, level in zip(loggers, levels, strict=True):
                logger.setLevel(level)


def time_spent(module: pl.LightningModule) -> Callable[[], float]:
    """Return a function of how much of a trainer's ``max_time`` is spent.

    Parameters
    ----------
    module : pl.LightningModule
        What is trained. Its trainer makes a :class:`pytorch_lightning.callbacks.Timer` of ``max_time``;
        timers among its callbacks count too.

    Returns
    -------
    callable
        The fraction of the time that is spent, 0 without a limit.
    """
    trainer = module._trainer  # the property raises without a trainer
    callbacks = getattr(trainer, "callbacks", ())
    timers = [callback for callback in callbacks if isinstance(callback, pl.callbacks.Timer)]

    def spent() -> float:
        fractions = [0.0]
        for timer in timers:
            left, elapsed = timer.time_remaining(), timer.time_elapsed()
            if left is not None:
                fractions.append(elapsed / max(elapsed + left, 1e-9))
        return max(fractions)

    return spent


def make_optimizer(
    net: nn.Module,
    lr: float,
    max_steps: int,
    weight_decay: float = 0.01,
    spent: Callable[[], float] | None = None,
) -> tuple[torch.optim.Optimizer, torch.optim.lr_scheduler.LRScheduler]:
    """AdamW whose learning rate warms up linearly and decays by a cosine.

    Parameters
    ----------
    net : nn.Module
        What is trained.
    lr : float
        Peak learning rate.
    max_steps : int
        Steps until the learning rate is zero.
    weight_decay : float, default=0.01
        Weight decay of matrices; biases, gains and offsets have none.
    spent : callable, optional
        Fraction of the training time that is spent. The schedule follows whichever of time and steps is
        nearer to its end: stopped by time at a high learning rate, a network is worse than it could be.

    Returns
    -------
    Optimizer, LRScheduler
        The schedule is to be stepped after every optimiser step.
    """
    warmup_steps = max(1, round(WARMUP * max_steps))

    def rate(step: int) -> float:
        done = step if spent is None else max(step, spent() * max_steps)
        if done < warmup_steps:
            return min(1.0, (done + 1) / warmup_steps)
        progress = (done - warmup_steps) / max(1, max_steps - warmup_steps)
        return 0.5 * (1 + math.cos(math.pi * min(1.0, progress)))

    groups = [
        {"params": [p for p in net.parameters() if p.ndim > 1], "weight_decay": weight_decay},
        {"params": [p for p in net.parameters() if p.ndim <= 1], "weight_decay": 0.0},
    ]
    optimizer = torch.optim.AdamW(groups, lr=lr)
    return optimizer, torch.optim.lr_scheduler.LambdaLR(optimizer, rate)


class _Shell:
    """A window that Lightning does not look into: it would convert what it finds, and refuses dataclasses."""

    def __init__(self, window: Window) -> None:
        self.window = window


class Loader:
    """Batches as Lightning takes them.

    Parameters
    ----------
    batches : iterable of Window
        Batches of windows, which may be endless.
    """

    def __init__(self, batches: Iterable[Window]) -> None:
        self.batches = batches

    def __iter__(self) -> Iterator[_Shell]:
        """Yield what :meth:`TrainingModule.transfer_batch_to_device` takes."""
        return map(_Shell, self.batches)


class TrainingModule(pl.LightningModule):
    """Train a network by the score of its distribution, for most families the likelihood.

    Parameters
    ----------
    net : ForecastNet
        The network.
    lr : float
        Peak learning rate of AdamW.
    max_steps : int
        Steps of the schedule: a linear warm-up, then a cosine to zero.
    data : str, optional
        Name of the data, which a checkpoint must have.
    """

    def __init__(self, net: ForecastNet, lr: float, max_steps: int, data: str | None = None) -> None:
        super().__init__()
        self.net = net
        self.lr, self.max_steps, self.data = lr, max_steps, data

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Tell of what data a checkpoint is."""
        checkpoint["data"] = self.data

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Raise a ValueError if a checkpoint is of other data."""
        if checkpoint.get("data") != self.data:
            raise ValueError(
                "ckpt_path: the checkpoint is of another series, or of a later training: give every fit a "
                "folder of its own"
            )

    def training_step(self, batch: Window, batch_idx: int) -> Tensor:
        """Mean score of the observed targets."""
        loss = self.net.loss(batch)
        self.log("train_loss", loss, prog_bar=True, batch_size=batch.y.shape[0])
        return loss

    def validation_step(self, batch: Window, batch_idx: int) -> None:
        """Log the same on the windows kept for validation."""
        loss = self.net.loss(batch)
        self.log("val_loss", loss, prog_bar=True, batch_size=batch.y.shape[0], sync_dist=True)

    def transfer_batch_to_device(self, batch: _Shell, device: torch.device, dataloader_idx: int) -> Window:
        """Take the batch out of its shell, to the device and into the precision of the network."""
        window, dtype = batch.window.to(device), self.net.dtype
        return window.map(lambda value: value.to(dtype) if value.is_floating_point() else value)

    def configure_optimizers(self) -> Any:
        """AdamW with warm-up and cosine."""
        optimizer, schedule = make_optimizer(self.net, self.lr, self.max_steps, spent=time_spent(self))
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": schedule, "interval": "step"}}


class BestWeights(pl.Callback):
    """Keep the weights of the best validation loss in memory, and put them back at the end."""

    def __init__(self) -> None:
        self.loss = math.inf
        self.weights: dict[str, Tensor] | None = None

    def state_dict(self) -> dict[str, Any]:
        """What a checkpoint keeps."""
        return {"loss": self.loss, "weights": self.weights}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on from a checkpoint."""
        self.loss, self.weights = state_dict["loss"], state_dict["weights"]

    def on_validation_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Compare, and copy the weights if they are the best so far."""
        loss = trainer.callback_metrics.get("val_loss")
        if not trainer.sanity_checking and loss is not None and float(loss) < self.loss:
            self.loss = float(loss)
            self.weights = copy.deepcopy(pl_module.state_dict())

    def on_fit_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Restore the best weights."""
        if self.weights is not None:
            pl_module.load_state_dict(self.weights)


class ProgressBar(pl.Callback):
    """One line for training that lasts: steps, time left, loss. It goes when training ends.

    Parameters
    ----------
    delay : float, default=3.0
        Seconds of training before it shows.
    """

    def __init__(self, delay: float = 3.0) -> None:
        self.delay, self.bar = delay, tqdm(disable=True)

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Start the clock."""
        self.bar = tqdm(
            total=trainer.max_steps if trainer.max_steps > 0 else None,
            desc="training",
            unit="step",
            delay=self.delay,
            leave=False,
            disable=not trainer.is_global_zero,
        )

    def on_train_batch_end(self, trainer: pl.Trainer, *args: Any, **kwargs: Any) -> None:
        """Count optimiser steps, of which each may take several batches."""
        # The line is drawn a few times in a second, and only then the loss is needed.
        if self.bar.update(trainer.global_step - self.bar.n):
            self.bar.set_postfix_str(f"loss {float(trainer.callback_metrics['train_loss']):.3g}")

    def on_train_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Remove the line."""
        self.bar.close()

    def on_exception(self, trainer: pl.Trainer, pl_module: pl.LightningModule, error: BaseException) -> None:
        """Remove the line."""
        self.bar.close()
