"""Train LAM transformers as their paper does, and as the library does, for the benchmark on ETT data."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from datasets import Data
from torch import Tensor, nn

from taylorformer_forecast.core.protocol import training_loss
from taylorformer_forecast.core.window import Window
from taylorformer_forecast.engine.state import private_rng
from taylorformer_forecast.engine.training import fit
from taylorformer_forecast.engine.windows import Batches, Series, WindowMaker
from taylorformer_forecast.models.lam import LAMTransformer
from taylorformer_forecast.models.spec import Task
from taylorformer_forecast.models.specs import LAM

__all__ = ["BATCH", "train"]

BATCH = 32
FLOOR = 0.1  # smallest deviation of a window to divide by, where that of the training part is 1
N_VALIDATION = 700  # windows, evenly spaced, that early stopping looks at


def starts(maker: WindowMaker, rows: range, n: int | None = None) -> Tensor:
    """First targets of windows of every series: in all of these rows, or in about ``n`` in all of them."""
    number = len(rows) if n is None else min(len(rows), max(1, n // len(maker.begin)))
    row = torch.linspace(rows[0], rows[-1], number).round().long()
    return torch.cat(
        [torch.stack([torch.full_like(row, k), begin + row], -1) for k, begin in enumerate(maker.begin)]
    )


def parts(data: Data, maker: WindowMaker, limit: int | None) -> tuple[Tensor, Tensor, Tensor]:
    """Windows of the three parts: targets lie in the part, contexts of the later two may begin before it."""
    train, validation, test = data.ends
    horizon = maker.n_targets
    return (
        starts(maker, range(maker.n_context, train - horizon + 1)),
        starts(maker, range(train, validation - horizon + 1), N_VALIDATION),
        starts(maker, range(validation, test - horizon + 1), limit),
    )


def adam(net: nn.Module, train: Batches, validation: Batches, options: dict[str, Any]) -> dict[str, Any]:
    """Train as the paper's experiments do, but stop by the validation loss; the best weights are kept."""
    optimizer = torch.optim.Adam(net.parameters(), lr=options["lr"])
    best, weights, bad, steps, begin = math.inf, net.state_dict(), 0, 0, time.perf_counter()

    def late() -> bool:
        return time.perf_counter() - begin > options["seconds"] or steps >= options["max_steps"]

    batches: Iterator[Window] = iter(train)
    while bad < options["patience"] and not late():
        net.train()
        for _ in range(train.n_batches):  # an epoch
            batch = next(batches)
            optimizer.zero_grad()
            training_loss(net(batch), batch).backward()
            optimizer.step()
            steps += 1
            if late():
                break
        net.eval()
        with torch.no_grad():
            loss = float(np.mean([training_loss(net(batch), batch).item() for batch in validation]))
        bad = bad + 1 if loss > best - 1e-4 else 0
        if loss < best:
            best, weights = loss, {name: value.clone() for name, value in net.state_dict().items()}
    net.load_state_dict(weights)
    return {"steps": steps, "val_loss": best}


def forecast(net: LAMTransformer, maker: WindowMaker, test: Tensor) -> tuple[np.ndarray, np.ndarray]:
    """Means and true values of windows in standardised units, (W, T, D) each."""
    means, truths, n_series = [], [], len(maker.begin)
    with torch.no_grad():
        for chunk in test.split(256):
            window, scale = maker.windows(chunk)
            means.append(scale.to_data(net.eval()(window).mean.to(scale.loc.dtype)))
            truths.append(scale.to_data(window.targets[0].to(scale.loc.dtype)))
    if n_series == 1:
        return torch.cat(means).numpy(), torch.cat(truths).numpy()
    # One variable after the other: side by side.
    means, truths = (
        torch.cat(x)[..., 0].unflatten(0, (n_series, -1)).movedim(0, -1) for x in (means, truths)
    )
    return means.numpy(), truths.numpy()


def train(
    data: Data, horizon: int, preset: str, kernel: str, seed: int, options: dict[str, Any]
) -> tuple[np.ndarray, np.ndarray, dict[str, Any]]:
    """Train a network and forecast the test part.

    The kernel "none" leaves out all layers, and with them attention: what remains is the map over time.

    Returns
    -------
    ndarray, ndarray, dict
        Forecasts and true values in standardised units, (W, T, D) each, and what training took.
    """
    values, begin = data.standardised(), time.perf_counter()
    t, joint = np.arange(float(len(values))), preset == "faithful"
    series = [Series(t, values)] if joint else [Series(t, column[:, None]) for column in values.T]
    context = horizon if joint else options["context"]
    maker = WindowMaker(series, context, horizon, float(context), FLOOR, normalise=not joint)
    training, validation, test = parts(data, maker, options["test_windows"])
    parameters = {"attention": "full" if kernel == "none" else kernel, "dropout": options["dropout"]}
    if not joint:
        parameters |= {"d_model": options["d_model"], "n_layers": options["n_layers"]}
    if kernel == "none":
        parameters["n_layers"] = 0
    with private_rng(seed):
        if joint:
            variables = {"dim_y": len(data.columns), "distribution": "mse", "preset": preset}
            net = LAMTransformer(context, horizon, **variables, **parameters)
        else:
            task = Task(context, horizon, family=options["distribution"], weight=LAM.weight)
            net = LAM.build(task, **parameters)
        batches = Batches(maker, training, options["batch"], seed=seed), Batches(maker, validation, 256)
        if joint:
            trained = adam(net, *batches, options)
        else:
            net.fit_closed_form(*batches[0].sample())
            trained = fit(
                net,
                *batches,
                max_steps=options["max_steps"],
                lr=options["lr"],
                patience=options["patience"],
                n_checks=options["checks"],
                device="cpu",
                trainer_kwargs={"max_time": {"seconds": options["seconds"]}},
            )
    took = {"seconds": time.perf_counter() - begin, **trained}
    n_parameters = sum(p.numel() for p in net.parameters())
    return *forecast(net, maker, test), {"context": context, "parameters": n_parameters, **took}
