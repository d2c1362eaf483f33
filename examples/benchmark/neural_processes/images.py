"""Completion of images: pixels at random places are shown, others are predicted one after another.

The Taylorformer paper's experiment with two time coordinates, beside TNP-A. Training sees some classes of
images; tests are on other images of these classes ("seen") and on classes that training never saw
("unseen"). Scores are log-densities per target, in nats, given the context and the true targets before it.

Grey levels are quantised, and a density of continuous values has no upper bound on them: a model that is sure
of black pixels gains without end as its deviation shrinks. Every standard deviation here is therefore at
least 0.011, and scores are told apart for black pixels and others. Rows without training:

joint
    All pixels are jointly Gaussian with mean and covariance of the training images, given what was shown and
    predicted before: the best linear prediction.
pixelwise
    Every pixel has its mean and deviation over the training images, whatever is shown.
nearest
    The value of the nearest pixel known, with one deviation fitted to the training images.

Every finished (network, seed) is written at once, and what the file holds is not run again; what was
interrupted goes on from a checkpoint. scikit-learn's digits need no files, EMNIST is read from the user's::

    python examples/benchmark/neural_processes/images.py --picture docs/images/completion.png
    python examples/benchmark/neural_processes/images.py --emnist DIR --steps 200000 --out emnist.json
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import torch
from digits import BLACK, Task, batch, emnist, episodes, scikit_digits
from gp_regression import CHECKPOINTS, RESULTS, missing, open_book, summary
from run import write_json
from torch import Tensor, nn
from torch.distributions import Distribution, Normal
from training import count_parameters, train

from taylorformer_forecast.core.neighbours import nearest
from taylorformer_forecast.core.window import Window
from taylorformer_forecast.models.taylorformer import Taylorformer
from taylorformer_forecast.models.tnp import TNPA

__all__ = ["evaluate", "gaussian", "networks", "predictor", "untrained", "value_nearby"]

LOWEST = 0.011  # standard deviation: 0.01 of the scale "bounded", and 0.001 that all scales add
REPEATS = 4  # times that every test image is shown, with other pixels
Predict = Callable[[Window, Tensor], Distribution]


def networks(quick: bool = False) -> dict[str, Callable[[], nn.Module]]:
    """Builders of the networks, equal in number of parameters within one per cent; tiny ones if ``quick``.

    TNP-A is without the noise that its published code puts on images in training.
    """
    tiny = {"dim_t": 2, "scale": "bounded", "d_model": 8, "n_heads": 2, "n_layers": 2}
    size = tiny if quick else {"dim_t": 2, "scale": "bounded", "n_layers": 4}
    return {
        "taylorformer": partial(Taylorformer, dim_encoding=16, time_max=2.0, dropout=0.0, **size),
        "tnpa": partial(TNPA, **{**size, "d_model": 8 if quick else 40}, dim_feedforward=16 if quick else 73),
    }


def predictor(net: nn.Module) -> Predict:
    """Predictions of a network, which needs no numbers of pixels."""
    return lambda window, order: net(window)


# ---- models without training ------------------------------------------------------------------------------


def gaussian(mean: Tensor, covariance: Tensor, window: Window, order: Tensor) -> Normal:
    """Targets of jointly Gaussian pixels, each given the context and the targets before, (B, T, 1)."""
    root = torch.linalg.cholesky(covariance[order[:, :, None], order[:, None]])
    y = window.y.double()
    z = torch.linalg.solve_triangular(root, y - mean[order][..., None], upper=False)
    deviation = root.diagonal(dim1=1, dim2=2)[..., None]
    return Normal((y - deviation * z)[:, window.n_context :], deviation[:, window.n_context :])


def value_nearby(window: Window) -> Tensor:
    """Value of the nearest pixel that is known when a target is predicted, (B, T, 1)."""
    index, _ = nearest(window.times, window.attention_mask().expand(len(window.y), -1, -1), 1)
    return window.y.gather(1, index)[:, window.n_context :]


def untrained(task: Task) -> dict[str, Predict]:
    """Predictors that are fitted to the training images in closed form."""
    pixels = task.train.double()
    noise = LOWEST**2 * torch.eye(pixels.shape[1], dtype=torch.double)
    covariance = torch.cov(pixels.T)
    shown = [batch(task, 32, seed=0, step=step) for step in range(50)]
    errors = torch.cat([(w.targets[0] - value_nearby(w)).square().flatten() for w in shown])
    deviation = max(float(errors.mean().sqrt()), LOWEST)
    return {
        "joint": partial(gaussian, pixels.mean(0), covariance + noise),
        "pixelwise": partial(gaussian, pixels.mean(0), covariance.diag().diag() + noise),
        "nearest": lambda window, order: Normal(value_nearby(window), deviation),
    }


# ---- scores -----------------------------------------------------------------------------------------------


@torch.inference_mode()
def evaluate(predict: Predict, task: Task, images: Tensor, repeats: int) -> dict:
    """Score predictions of images.

    Parameters
    ----------
    predict : callable
        From a window and its order (:func:`digits.ask`) to the distributions of its targets.
    task : Task
        Grid and protocol.
    images : Tensor of shape (I, P)
        What is completed.
    repeats : int
        Times that every image is shown.

    Returns
    -------
    dict
        That of :func:`gp_regression.summary`, its sequences being images; ``black`` and ``other``, the mean
        log-density of targets without ink and of the rest; ``errors``, the mean squared error of each image,
        and ``rmse``, the root of that over all targets.
    """
    most = task.protocol.n_targets[1]
    scores, errors = np.full((2, repeats, len(images), most), np.nan)
    black = np.zeros(scores.shape, dtype=bool)
    for repeat, rows, window, order in episodes(task, images, repeats):
        y, d = window.targets[0], predict(window, order)
        place = repeat, rows.numpy(), slice(0, window.n_targets)
        for array, value in ((scores, d.log_prob(y)), (errors, d.mean - y), (black, y == BLACK)):
            array[place] = value[..., 0].numpy()
    inked = {"black": np.nanmean(scores[black]), "other": np.nanmean(scores[~black])}
    numbers = {**inked, "rmse": np.sqrt(np.nanmean(errors**2))}
    each = np.nanmean(errors**2, (0, 2))
    return {
        **summary(scores.swapaxes(0, 1).reshape(len(images), -1)),
        **{name: round(float(value), 4) for name, value in numbers.items()},
        "errors": [float(f"{value:.3g}") for value in each],
    }


def rows_of(predict: Predict, task: Task, repeats: int, **about) -> list[dict]:
    """A row of results for each set of images; "train" is some of the images that were trained on."""
    sets = {"train": task.train[:100], "seen": task.seen, "unseen": task.unseen}
    return [
        {**about, "set": name, **evaluate(predict, task, images, repeats)} for name, images in sets.items()
    ]


def main() -> None:
    """Run what is missing, write every row at once, draw."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--networks", default="taylorformer,tnpa", help="names, separated by commas")
    parser.add_argument("--seeds", default="0,1", help="numbers, separated by commas")
    parser.add_argument("--steps", type=int, default=8000, help="training steps")
    parser.add_argument("--batch", type=int, default=16, help="images of a step")
    parser.add_argument("--lr", type=float, default=2e-3, help="peak learning rate")
    parser.add_argument("--emnist", type=Path, metavar="DIR", help="files of EMNIST balanced, not digits")
    parser.add_argument("--checkpoints", type=Path, metavar="DIR", default=CHECKPOINTS)
    parser.add_argument("--out", type=Path, metavar="FILE.json", default=RESULTS / "images.json")
    parser.add_argument("--picture", type=Path, metavar="FILE.png", help="where to draw completions")
    parser.add_argument("--quick", action="store_true", help="tiny networks, few steps, as a check")
    args = parser.parse_args()
    torch.set_num_threads(1)
    task, repeats = emnist(args.emnist) if args.emnist else scikit_digits(), REPEATS
    if args.quick:
        task, repeats, args.steps, args.seeds = task.first(16), 1, 3, "0"
    book = open_book(args.out)
    about = {**task.about(), "repeats": repeats, "lowest_deviation": LOWEST}
    if book.setdefault("task", about) != about:
        raise SystemExit(f"{args.out} holds results of another task: choose another file with --out")
    for name, predict in untrained(task).items():
        if missing(book, network=name):
            book["rows"] += rows_of(predict, task, repeats, network=name, seed=0)
    args.checkpoints.mkdir(parents=True, exist_ok=True)
    seeds, builders = [int(seed) for seed in args.seeds.split(",")], networks(args.quick)
    for seed in seeds:
        for name in args.networks.split(","):
            how = {"network": name, "seed": seed, "steps": args.steps, "batch": args.batch, "lr": args.lr}
            draws = args.picture is not None and (name, seed) == ("taylorformer", seeds[0])
            if not (draws or missing(book, **how)):
                continue
            torch.manual_seed(seed)
            net = builders[name]()
            label = "_".join(map(str, ["images", len(task.grid), *how.values()])) + "_quick" * args.quick
            batches = partial(batch, task, args.batch, seed)
            how |= train(net, batches, args.steps, args.lr, args.checkpoints / f"{label}.pt", label)
            how["parameters"] = count_parameters(net)
            if missing(book, network=name, seed=seed, steps=args.steps, batch=args.batch, lr=args.lr):
                book["rows"] += rows_of(predictor(net), task, repeats, **how)
                write_json(book, args.out)
                print(name, seed, *[(r["set"], r["log_likelihood"], r["rmse"]) for r in book["rows"][-3:]])
            if draws:
                from completion import draw_completions

                draw_completions(net, task, args.picture, sum(task.protocol.n_context) // 2)
    write_json(book, args.out)


if __name__ == "__main__":
    main()
