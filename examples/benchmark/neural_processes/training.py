"""Training of neural processes on batches that are made as they are needed, with checkpoints."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from torch import nn
from tqdm import tqdm

from taylorformer_forecast.core.protocol import ForecastNet
from taylorformer_forecast.core.window import Window
from taylorformer_forecast.defaults import GRADIENT_CLIP
from taylorformer_forecast.engine.lightning import make_optimizer

__all__ = ["count_parameters", "log_densities", "train"]

SAVE_EVERY = 250  # steps between two checkpoints
PIECES = 40  # points of a learning curve


def count_parameters(net: nn.Module) -> int:
    """Numbers that training changes."""
    return sum(p.numel() for p in net.parameters() if p.requires_grad)


def train(
    net: ForecastNet,
    batches: Callable[[int], Window],
    steps: int,
    lr: float,
    checkpoint: Path | None = None,
    progress: str | None = None,
) -> dict:
    """Train a network, from where its checkpoint stands.

    Parameters
    ----------
    net : nn.Module
        A network that scores windows; it is changed in place, and left in evaluation mode.
    batches : callable
        Makes the batch of a step from the number of the step, so that training goes on after an interruption
        as if there had been none.
    steps : int
        Steps of AdamW: warm-up, then a cosine to zero.
    lr : float
        Peak learning rate.
    checkpoint : Path, optional
        File that holds weights and the state of training; written now and then, read at the start.
    progress : str, optional
        Label of a progress bar; none by default.

    Returns
    -------
    dict
        ``steps``; ``seconds`` of processor time; ``curve``, the mean loss of up to 40 equal parts of the
        training in turn.
    """
    optimizer, schedule = make_optimizer(net, lr, steps)
    losses: list[float] = []
    spent, done = 0.0, 0
    if checkpoint is not None and checkpoint.exists():
        state = torch.load(checkpoint, weights_only=True)
        if state["steps"] != steps:
            raise ValueError(f"{checkpoint} is of a training of {state['steps']} steps, not {steps}")
        net.load_state_dict(state["net"])
        optimizer.load_state_dict(state["optimizer"])
        schedule.load_state_dict(state["schedule"])
        torch.set_rng_state(state["random"])
        losses, spent = state["losses"], state["spent"]
        done = len(losses)
    start = time.process_time()
    net.train()
    for step in tqdm(
        range(done, steps), progress, steps, initial=done, disable=progress is None, mininterval=5
    ):
        window = batches(step)
        loss = net.loss(window)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), GRADIENT_CLIP)
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
        if checkpoint is not None and ((step + 1) % SAVE_EVERY == 0 or step + 1 == steps):
            state = {
                "net": net.state_dict(),
                "optimizer": optimizer.state_dict(),
                "schedule": schedule.state_dict(),
                "random": torch.get_rng_state(),
                "losses": losses,
                "spent": spent + time.process_time() - start,
                "steps": steps,
            }
            new = checkpoint.with_suffix(".tmp")
            torch.save(state, new)
            new.replace(checkpoint)
    net.eval()
    curve = [float(f"{part.mean():.4g}") for part in np.array_split(losses, min(PIECES, steps))]
    return {"steps": steps, "seconds": round(spent + time.process_time() - start, 1), "curve": curve}


@torch.inference_mode()
def log_densities(net: nn.Module, window: Window) -> np.ndarray:
    """Log-density of every target given the context and the targets before, (B, T), summed over columns.

    Networks that know only the density of all targets together give each an equal part of its logarithm.
    """
    net.eval()
    return net(window).log_prob(window.targets[0]).sum(-1).double().numpy()
