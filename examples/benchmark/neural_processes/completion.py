"""Completed images: what a network makes of the pixels shown, and the section of the page about them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from digits import Task
from figures import plt, save_picture
from report import Difference, mean, of, scores
from torch import Tensor, nn

from taylorformer_forecast.core.sampling import sample_paths
from taylorformer_forecast.core.window import Window

__all__ = ["completions", "draw_completions", "marginals", "section"]

LABELS = {
    "taylorformer": "Taylorformer",
    "tnpa": "TNP-A",
    "joint": "joint Gaussian of all pixels",
    "pixelwise": "Gaussian of every pixel",
    "nearest": "nearest known pixel",
}
HIDDEN = "#9db8d2"  # colour of pixels that are not shown


def others(image: Tensor, shown: Tensor) -> Tensor:
    """Numbers of the pixels that are not shown, in order."""
    everything = torch.arange(len(image))
    return everything[~torch.isin(everything, shown)]


@torch.inference_mode()
def marginals(net: nn.Module, task: Task, image: Tensor, shown: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and deviation (P,) of every pixel of an image (P,), given only those shown."""
    hidden = others(image, shown)
    order = torch.cat([shown.expand(len(hidden), -1), hidden[:, None]], 1)  # each is the first target
    d = net(Window(task.grid[order], image[order][..., None], n_context=len(shown)))
    means, deviations = image.clone(), torch.zeros_like(image)
    means[hidden], deviations[hidden] = d.mean[:, 0, 0], d.stddev[:, 0, 0]
    return means, deviations


def completions(net: nn.Module, task: Task, image: Tensor, shown: Tensor, n: int, seed: int = 0) -> Tensor:
    """Sampled completions (n, P) of an image of which some pixels are shown, the others in random order."""
    g, hidden = torch.Generator().manual_seed(seed), others(image, shown)
    hidden = hidden[torch.randperm(len(hidden), generator=g)]
    order = torch.cat([shown, hidden])[None]
    window = Window(task.grid[order], image[order][..., None], n_context=len(shown))
    full = image.repeat(n, 1)
    full[:, hidden] = sample_paths(net, window, n, g).paths[0, :, :, 0]
    return full


def draw_completions(net: nn.Module, task: Task, path: Path, n_context: int, n_samples: int = 4) -> None:
    """Draw images, what was shown, means, deviations and samples: three images seen, three unseen.

    Parameters
    ----------
    net : nn.Module
        A trained network.
    task : Task
        The images; the first at random of both sets are drawn.
    path : Path
        PNG to write.
    n_context : int
        Pixels that are shown.
    n_samples : int, default=4
        Samples of each.
    """
    g = torch.Generator().manual_seed(0)
    chosen = [
        (kind, images[int(i)])
        for kind, images in (("seen", task.seen), ("unseen", task.unseen))
        for i in torch.randperm(len(images), generator=g)[:3]
    ]
    titles = ["image", f"{n_context} pixels", "mean", "deviation", *["sample"] * n_samples]
    size = (1.05 * len(titles), 1.12 * len(chosen))
    figure, axes = plt.subplots(len(chosen), len(titles), figsize=size, layout="constrained")
    grey, heat = ({"cmap": "gray", "vmin": -0.5, "vmax": 0.5}, {"cmap": "viridis", "vmin": 0, "vmax": 0.4})
    for line, (kind, image) in zip(axes, chosen, strict=True):
        shown = torch.randperm(len(image), generator=g)[:n_context]
        context = torch.full_like(image, torch.nan)
        context[shown] = image[shown]
        means, deviations = marginals(net, task, image, shown)
        parts = [image, context, means, deviations, *completions(net, task, image, shown, n_samples)]
        for column, (axis, pixels) in enumerate(zip(line, parts, strict=True)):
            axis.imshow(pixels.view(task.shape).numpy(), **(heat if column == 3 else grey))
            axis.set_facecolor(HIDDEN)
            axis.set_xticks([])
            axis.set_yticks([])
        line[0].set_ylabel(kind)
    for axis, title in zip(axes[0], titles, strict=True):
        axis.set_title(title, fontsize=9)
    save_picture(figure, path, dpi=80)


# ---- the page ---------------------------------------------------------------------------------------------


def table(rows: list[dict]) -> str:
    """Table of all models, the best of both sets of images in bold."""
    lines = [
        "| | parameters | training, s | seen | unseen | black pixels | others | RMSE |",
        "|---" * 8 + "|",
    ]
    names = [name for name in LABELS if of(rows, network=name)]
    best = {kind: max(mean(of(rows, network=n, set=kind)) for n in names) for kind in ("seen", "unseen")}
    for name in names:
        parts = [of(rows, network=name, set=kind) for kind in best]
        trained = "seconds" in parts[0][0]
        cells = [LABELS[name]]
        cells += [f"{mean(parts[0], key):,.0f}" if trained else "–" for key in ("parameters", "seconds")]
        for part, top in zip(parts, best.values(), strict=True):
            each = scores(part).mean(0)
            bold = "**" if mean(part) == top else ""
            cells.append(f"{bold}{mean(part):.3f}{bold} ({each.std(ddof=1) / np.sqrt(len(each)):.3f})")
        cells += [" / ".join(f"{mean(part, key):.2f}" for part in parts) for key in ("black", "other")]
        cells.append(" / ".join(f"{mean(part, 'rmse'):.3f}" for part in parts))
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def differences(rows: list[dict]) -> str:
    """Lines on the Taylorformer less each other model, over the same images; seeds are paired."""
    lines = []
    for kind in ("seen", "unseen"):
        ours = of(rows, network="taylorformer", set=kind)
        parts = []
        for name in list(LABELS)[1:]:
            if other := of(rows, network=name, set=kind):
                d = Difference(scores(ours) - scores(other))
                word = {1: "above", 0: "not clearly different from", -1: "**below**"}[d.verdict]
                parts.append(f"{word} {LABELS[name]}, {d}")
        errors = scores(of(rows, network="tnpa", set=kind), "errors")
        d = Difference(100 * (scores(ours, "errors") - errors) / errors.mean())
        lines.append(
            f"- {kind} classes: Taylorformer is {'; '.join(parts)}. Its squared errors less those of TNP-A: "
            f"{d.mean:+.1f} ({d.error:.1f}) %."
        )
    return "\n".join(lines)


def section(book: dict, picture: str = "images/completion.png") -> str:
    """Return the section of the page.

    Parameters
    ----------
    book : dict
        Results of ``images.py``.
    picture : str
        Where the picture is, from the page.

    Returns
    -------
    str
        Markdown.
    """
    task, rows = book["task"], book["rows"]
    images, pair = task["images"], ("taylorformer", "tnpa")
    trained = [row for row in rows if "seconds" in row and row["set"] == "seen"]
    steps, size, lr = (sorted({row[key] for row in trained}) for key in ("steps", "batch", "lr"))
    training = f"{steps[0]:,} steps of {size[0]} images, peak learning rate {lr[0]:g}"
    seeds = len({row["seed"] for row in trained})
    learnt = [
        f"{LABELS[name]} {mean(of(rows, network=name, set='train')):.3f} and {mean(part):.3f}"
        for name, part in ((name, of(trained, network=name)) for name in pair)
    ]
    ranges = (task["n_context"], task["n_targets"])
    shown, asked = (str(low) if low == high else f"{low} to {high}" for low, high in ranges)
    pooled = "Every window has equally many targets: the mean over all of them is the same"
    if ranges[1][0] != ranges[1][1]:
        values = [f"{LABELS[name]} {mean(of(trained, network=name), 'pooled'):.3f}" for name in pair]
        pooled = f"Over all targets of the seen classes: {', '.join(values)}"
    lowest = task["lowest_deviation"]
    top = -np.log(lowest * np.sqrt(2 * np.pi))
    return f"""## Completion of images

Two time coordinates, row and column of a pixel: {task["name"]}, {shown} pixels at random places
shown, {asked} others predicted in random order. Log-likelihood per target in nats, mean over images,
in brackets standard errors over images. {pooled}.
*Seen* are {images["seen"]:,} other images of the classes trained on, *unseen* {images["unseen"]:,}
of classes that training never saw, each {task["repeats"]} times with other pixels, the same for all models.

{table(rows)}

Over the same images, in brackets standard errors over images and trainings:

{differences(rows)}

Grey levels are quantised, and a density of continuous values has no upper bound on them: the likelihood of
black pixels grows without end as the deviation shrinks. Every deviation here is at least {lowest}, which
bounds the log-likelihood at {top:.2f}; numbers with another bound cannot be compared with these. Hence the
columns for *black pixels* and *others*, and the root mean squared error of the means (*RMSE*): seen / unseen.
The *joint Gaussian* predicts linearly from all pixels known, with the covariance of the training images.

Training: {images["train"]:,} images, {training}, {seeds} seed{"s" * (seeds > 1)}. Log-likelihoods on
images trained on and on others of the same classes: {"; ".join(learnt)}.

![Completions by the Taylorformer]({picture})

From left to right: the image, the pixels shown, mean and deviation of every pixel given those alone (dark 0,
yellow 0.4 and more), and joint samples. The samples are of all pixels not shown, which are more than in
training. Strokes lie where digits have them, but few samples can be read: the training is short.

Not run: EMNIST (`examples/benchmark/neural_processes/images.py --emnist DIR` reads its files) and CelebA.
"""
