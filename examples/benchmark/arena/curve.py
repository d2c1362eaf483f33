"""Quality against seconds of training: errors at several budgets, relative to the seasonal naive forecast."""

from __future__ import annotations

from dataclasses import dataclass
from textwrap import fill
from typing import Any

import numpy as np
from compare import LABELS, NOT_RUN, VARIANTS, Table
from rows import budgets, rows_at, trains

__all__ = ["Curve", "Point", "curve", "markdown", "section"]

REFERENCE = "naive"

TEXT = """\
Every point is a training of its own, within the budget in the head of its column. Numbers are the geometric
mean, over {series}, of WQL relative to that of the seasonal naive forecast on the same series: lower is
better. In brackets, and along the axis: the seconds that training took, as the mean over these series, in
processor time of one thread. They are fewer than the budget where epochs or steps end first. A model is here
if it has scores of more than half of all series at two budgets or more."""
OVERRUN = 1.05  # mean seconds over the budget, from which a model is named


@dataclass(frozen=True)
class Point:
    """Means over the series of a curve.

    Parameters
    ----------
    seconds : float
        Processor time of training.
    ratio : float
        WQL relative to the seasonal naive forecast.
    longest : float, default=0.0
        Seconds of the longest training.
    seeds : int, default=1
        Trainings of every series, at least.
    """

    seconds: float
    ratio: float
    longest: float = 0.0
    seeds: int = 1


@dataclass(frozen=True)
class Curve:
    """Quality of models at several budgets.

    Parameters
    ----------
    series : list of str
        What the means are over.
    budgets : list of float
        All budgets, the largest last.
    lines : dict
        For every model that trains a point for each of its budgets.
    levels : dict
        Ratios of the models that do not train.
    """

    series: list[str]
    budgets: list[float]
    lines: dict[str, dict[float, Point]]
    levels: dict[str, float]


def _scores(book: dict[str, Any]) -> dict[tuple[str, float], np.ndarray]:
    """WQL and fit_s, (2, series), of each model and budget with scores of more than half of the series."""
    found = {}
    for budget in budgets(book):
        table = Table(book, budget)
        both = np.stack([table.values("wql"), table.values("fit_s")], axis=1)
        for model, scores in zip(table.models, both, strict=True):
            if np.isfinite(scores[0]).sum() > len(table.series) / 2:
                found[model, budget] = scores
    return found


def curve(book: dict[str, Any]) -> Curve | None:
    """Compare models at several budgets, over the series of which all of them have scores at all of theirs.

    Parameters
    ----------
    book : dict
        What ``run.py`` writes.

    Returns
    -------
    Curve or None
        None where no model has two budgets, or no series is common.
    """
    scores = _scores(book)
    of_model: dict[str, list[float]] = {}
    for model, budget in scores:
        of_model.setdefault(model, []).append(budget)
    lines = {
        model: own
        for model, own in of_model.items()
        if trains(model) and len(own) > 1 and model not in VARIANTS
    }
    if not lines or REFERENCE not in of_model:
        return None
    naive = scores[REFERENCE, of_model[REFERENCE][0]][0]
    every = [naive, *(scores[model, budget][0] for model, own in lines.items() for budget in own)]
    known = np.isfinite(np.stack(every)).all(0)
    if not known.any():
        return None

    names = [name for name, use in zip(book["series"], known, strict=True) if use]

    def point(model: str, budget: float) -> Point:
        wql, seconds = scores[model, budget][:, known]
        ratio = float(np.exp(np.log(wql / naive[known]).mean()))
        rows = [row for row in rows_at(book, budget) if row["model"] == model and "wql" in row]
        took = {name: [row["fit_s"] for row in rows if row["series"] == name] for name in names}
        longest = max(max(own) for own in took.values())
        return Point(float(seconds.mean()), ratio, longest, min(map(len, took.values())))

    levels = {model: point(model, own[0]).ratio for model, own in of_model.items() if not trains(model)}
    ordered = [model for model in LABELS if model in lines]
    return Curve(
        names,
        sorted({budget for own in lines.values() for budget in own}),
        {model: {budget: point(model, budget) for budget in lines[model]} for model in ordered},
        {model: ratio for model, ratio in levels.items() if np.isfinite(ratio)},
    )


def markdown(found: Curve) -> str:
    """Table of ratios, the lowest of a budget in bold, with seconds in brackets.

    Parameters
    ----------
    found : Curve
        What :func:`curve` returns.

    Returns
    -------
    str
        A markdown table, one line for each model.
    """
    head = " | ".join(f"{budget:g} s" for budget in found.budgets)
    lines = [f"| model | {head} |", "|---" * (len(found.budgets) + 1) + "|"]
    best = {b: min(own[b].ratio for own in found.lines.values() if b in own) for b in found.budgets}
    for model, own in found.lines.items():
        cells = []
        for budget in found.budgets:
            if budget not in own:
                cells.append(NOT_RUN)
                continue
            text = f"{own[budget].ratio:.3f}"
            text = f"**{text}**" if own[budget].ratio == best[budget] else text
            cells.append(f"{text} ({own[budget].seconds:.1f})")
        lines.append(f"| {LABELS[model]} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def overruns(found: Curve) -> str:
    """Sentences on models that take longer than a budget, and on the seeds behind a column.

    Parameters
    ----------
    found : Curve
        What :func:`curve` returns.

    Returns
    -------
    str
        Nothing on models where all end in time.
    """
    late, seeds = [], []
    for budget in found.budgets:
        points = {model: own[budget] for model, own in found.lines.items() if budget in own}
        over = {model: point for model, point in points.items() if point.seconds > OVERRUN * budget}
        took = [f"{LABELS[m]} {p.seconds:.1f} s (up to {p.longest:.1f} s)" for m, p in over.items()]
        if took:
            late.append(f"With a budget of {budget:g} s, trainings took on average: {', '.join(took)}.")
        seeds.append(f"{min(point.seeds for point in points.values())} at {budget:g} s")
    text = f"Seeds of every point, at least: {', '.join(seeds)}."
    if not late:
        return text
    why = (
        "The budget bounds optimiser steps; the work before and after them comes on top. "
        "Models that take longer than a budget are favoured there."
    )
    return " ".join([why, *late, text])


def section(found: Curve) -> str:
    """Return the section of the page.

    Parameters
    ----------
    found : Curve
        What :func:`curve` returns.

    Returns
    -------
    str
        Markdown, from its heading on.
    """
    untrained = "; ".join(f"{LABELS[model]} {ratio:.3f}" for model, ratio in found.levels.items())
    parts = [
        "## Quality against training seconds",
        fill(TEXT.format(series=", ".join(found.series)), 110),
        fill(overruns(found), 110),
        "![Quality against training seconds](images/arena_curve.png)",
        markdown(found),
        f"Models without training, dotted lines if inside the picture: {untrained}.",
    ]
    return "\n\n".join(parts)
