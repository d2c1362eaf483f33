"""The page about filled gaps, from the results of ``imputation.py``, which writes it."""

from __future__ import annotations

import pandas as pd

__all__ = ["LABELS", "page", "table"]

IMPUTERS = ("taylorformer", "contiformer")
LABELS = {
    "linear": "linear interpolation",
    "drift": "drift",
    "seasonal": "line between seasons",
    "taylorformer": "TaylorformerImputer",
    "contiformer": "ContiFormerImputer",
}


def pooled(book: dict) -> pd.DataFrame:
    """Scores over all hidden points of a series and length of gap, one row for each method."""
    rows = pd.DataFrame(book["rows"])
    keys = ["series", "gap", "model"]
    scores = [name for name in ("mae", "crps", "coverage") if name in rows]
    weighted = rows[scores].mul(rows["hidden"], axis=0).groupby([rows[k] for k in keys], sort=False)
    points = rows.groupby(keys, sort=False)["hidden"].sum()
    return weighted.sum(min_count=1).div(points, axis=0).assign(points=points)


def first_placements(book: dict) -> dict:
    """The same of the first three placements, which all series have."""
    seeds = sorted({row["seed"] for row in book["rows"]})[:3]
    return {**book, "rows": [row for row in book["rows"] if row["seed"] in seeds]}


def without(book: dict, model: str) -> dict:
    """Results of all methods but one."""
    return {**book, "rows": [row for row in book["rows"] if row["model"] != model]}


def marked(values: pd.Series) -> list[str]:
    """Numbers, the lowest in bold."""
    return [f"**{value:.4g}**" if value == values.min() else f"{value:.4g}" for value in values]


def table(book: dict) -> str:
    """Errors, the lowest of every row in bold; CRPS and coverage (of single placements) of one imputer."""
    methods = [model for model in LABELS if model != "contiformer"]
    book = without(book, "contiformer")
    scores, rows, early = pooled(book), pd.DataFrame(book["rows"]), pooled(first_placements(book))
    each = rows[rows["model"] == "taylorformer"].groupby(["series", "gap"])["coverage"].agg(["min", "max"])
    single = {key: tuple(ends) for key, ends in zip(each.index, each.to_numpy(), strict=True)}
    lines = [
        "| series | gap | points | "
        + " | ".join(LABELS[m] for m in methods)
        + " | its CRPS | its coverage | of the first three |",
        "|---" * (6 + len(methods)) + "|",
    ]
    for (series, gap), part in scores.groupby(level=["series", "gap"], sort=False):
        part = part.droplevel(["series", "gap"])
        own = part.loc["taylorformer"]
        low, high = single[series, gap]
        crps = f"{own['crps']:.4g} | {own['coverage']:.2f} ({low:.2f} to {high:.2f})"
        crps += f" | {early.loc[(series, gap, 'taylorformer'), 'coverage']:.2f}"
        cells = " | ".join(marked(part.loc[methods, "mae"]))
        lines.append(f"| {series} | {gap} | {own['points']:.0f} | {cells} | {crps} |")
    return "\n".join(lines)


def shared(book: dict) -> dict:
    """Results of the placements that all methods have filled."""
    rows = pd.DataFrame(book["rows"])
    complete = rows.groupby(["series", "gap", "seed"])["model"].transform("nunique") == len(LABELS)
    return {**book, "rows": rows[complete].to_dict("records")}


def side_by_side(book: dict) -> str:
    """Table of all methods and both imputers, over the placements that all of them have filled."""
    titles = [f"{LABELS[m]}: {what}" for m in IMPUTERS for what in ("CRPS", "coverage")]
    lines = [
        f"| series | gap | points | {' | '.join([*LABELS.values(), *titles])} |",
        "|---" * (3 + len(LABELS) + len(titles)) + "|",
    ]
    for (series, gap), part in pooled(shared(book)).groupby(level=["series", "gap"], sort=False):
        part = part.droplevel(["series", "gap"])
        cells = marked(part.loc[list(LABELS), "mae"])
        for model in IMPUTERS:
            cells += [f"{part.loc[model, 'crps']:.4g}", f"{part.loc[model, 'coverage']:.2f}"]
        lines.append(f"| {series} | {gap} | {part['points'].iloc[0]:.0f} | {' | '.join(cells)} |")
    return "\n".join(lines)


def verdicts(book: dict, imputer: str) -> str:
    """Where another method is better than an imputer, and where its intervals cover too few or too many."""
    scores, lines = pooled(book), []
    for (series, gap), part in scores.groupby(level=["series", "gap"], sort=False):
        part = part.droplevel(["series", "gap"])
        own, others, where = part.loc[imputer], part.drop(imputer), f"{series}, gaps of {gap}"
        for score in ("mae", "crps"):
            best = others[score].idxmin()
            if own[score] > others[score].min():
                above = 100 * (own[score] / others.loc[best, score] - 1)
                lines.append(f"- {where}: {score.upper()} is {above:.2g} % above that of {LABELS[best]}.")
        if not 0.7 <= own["coverage"] <= 0.9:
            lines.append(f"- {where}: the 80 % interval covers {100 * own['coverage']:.0f} %.")
    return "\n".join(lines) or "None: lowest errors and scores in all rows, and coverage between 70 and 90 %."


def seconds(book: dict, imputer: str, what: str) -> str:
    """Median and largest time of an imputer."""
    times = pd.Series([row[what] for row in book["rows"] if row["model"] == imputer])
    return f"{times.median():.2g} s (at most {times.max():.2g} s)"


def page(book: dict, hidden: float, apart: int, sources: dict[str, str]) -> str:
    """The page of the docs."""
    rows = pd.DataFrame(book["rows"])
    ours = rows[rows["model"] == "taylorformer"]
    each = sorted(set(ours.groupby(["series", "gap"]).size()))
    placements = str(each[0]) if len(each) == 1 else f"{each[0]} to {each[-1]}"
    seeds = ", ".join(map(str, sorted(rows["seed"].unique())))
    versions = ", ".join(f"{k} {v}" for k, v in book["machine"].items() if k != "processor")
    series = "\n".join(
        f"| {name} | {sources[name]} | {about['length']:,} | {about['season']} |"
        for name, about in book["series"].items()
    )
    return f"""# Filling gaps

Made by `examples/benchmark/imputation.py` from `results/imputation.json`. Mean absolute errors on hidden
points, lowest in bold. `TaylorformerImputer` also has a CRPS, to be compared with the errors of the methods
that give one value. The coverage of its 80 % interval should be 0.80. In brackets is that of single
placements of the gaps, and in the last column that of the first three placements, which all series have.

{table(book)}

## Losses

Where another method is better, or the coverage lies outside 70 to 90 %:

{verdicts(without(book, "contiformer"), "taylorformer")}

## ContiFormer

`ContiFormerImputer` has another network around the same process, and the same calibration. The two differ
little here: most of a fill comes from the process. Over the placements that both have filled, at most three:

{side_by_side(book)}

Where another method is better than `ContiFormerImputer`, or its coverage lies outside 70 to 90 %:

{verdicts(shared(book), "contiformer")}

## Protocol

Of every series disjoint gaps of one length were hidden at random places, at least {100 * hidden:.0f} % of its
points, with {apart} points or more between them; scores are over all hidden points of {placements}
placements (the table counts the points; airline, the shortest, has more, as coverage on its first
three varies too much). The imputers run with their defaults, without the hidden values. The width of their
intervals follows from further gaps, which they cut themselves. Linear interpolation and drift are the usual
ones (drift: sktime's `Imputer("drift")`). "Line between seasons" interpolates every season by itself, for
instance every January.

These series and placements were also used while `TaylorformerImputer` was made. The learning rate of the
process, and the rule that calibration never narrows intervals, were chosen on them. The choice between values
and their logarithms was made on other placements in airline and sunspots. Expect somewhat less on other
series. Of `ContiFormerImputer` only what it shares with the other was chosen on them.

| series | what | length | season |
|---|---|---|---|
{series}

A fit of `TaylorformerImputer` took {seconds(book, "taylorformer", "fit_s")}, filling
{seconds(book, "taylorformer", "fill_s")}; of `ContiFormerImputer`, {seconds(book, "contiformer", "fit_s")}
and {seconds(book, "contiformer", "fill_s")}. These are medians of processor times of one thread of a busy
machine; the two were not run on the same day.

## How it works

Every point is predicted around the conditional mean of a Gaussian process, in units of its conditional
deviation. The conditions are all observed values, before, between and after the gaps, and the values drawn so
far. The covariance has a level, a line, three Matérn parts and one that repeats with the seasons. Its
parameters are fitted by marginal likelihood. The same likelihood chooses between values and logarithms, for
columns that are never negative. Columns that are often zero, as rain and counts are, have no logarithm,
unless they come with a season. No fill of theirs is negative. Deviations fitted by maximum likelihood are too
small. They are enlarged as those of a regression with as many parameters and points. The network is trained
on what is left: shape, spread and shifts. The Taylorformer attends to the values drawn so far too; to the
ContiFormer they come through the process alone. Then further gaps are cut, with lengths like those of the
data. On them the weights of the network and the inflation of its distributions are chosen.

## Machine

Of the rows added last: {book["machine"]["processor"]}; {versions}. Seeds: {seeds}.
"""
