"""Make the table, the pictures and the page of the arena from its results.

    python examples/benchmark/arena/report.py docs/results/arena.json --docs docs

Without ``--docs`` the tables are only printed. What ``teacher_forced.py`` wrote is a section of the page, if
its ``teacher_forced.json`` is beside these results. The Bayesian comparison needs ``pip install baycomp``;
without it Wilcoxon's signed-rank test takes its place, and the page says so.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np
from compare import LABELS, OURS, ROPE, Table, one_against_one
from curve import curve
from curve import section as curve_section
from one_step import section
from rows import budgets
from series import SOURCES

__all__ = ["page"]

FEWEST = 5  # series that a comparison of two models needs
DEFAULTS = ("taylorformer_sktime", "taylorformer_darts", "lam_sktime", "lam_darts")  # compared one by one

# What the note of arena.json says, as a table: rows, machine and versions.
RECORDED = (
    ("all that are not below", "that of the section [Machine](#machine)"),
    (
        "first and second seeds of darts' networks but the Taylorformer; the curve at 5 and 15 seconds",
        "Intel, or AMD EPYC with pandas 2.3.3 and statsforecast 2.1.1",
    ),
    (
        "the third seed of all; the Taylorformer within 60 seconds; sktime's other models on taylor, etth1, "
        "taxi, etth2 and exchange",
        "AMD EPYC, pandas 3.0.6",
    ),
    ("the Taylorformer's defaults on airline, with seasonal autoregression", "Intel, pandas 3.0.6"),
    ("ContiFormer within 60 seconds", "Intel, pandas 3.0.6"),
    ("the Taylorformer's defaults and zero shot: averages with statistics", "AMD EPYC, pandas 2.3.3"),
    ("the same on ili, with errors that fade in statistics", "Intel, pandas 3.0.6"),
)

PROTOCOL = """\
Every model is trained once, on the first 80 % of a series. It forecasts from evenly spaced origins in the
rest. At an origin the past is given, and nothing of the future: paths go on from their own values.
Statistical models are refitted at every origin, to four contexts or seasons.

- **Scores.** WQL is twice the pinball loss over nine deciles, over the sum of absolute values; lower is
  better. In brackets: the coverage of the central 80 % interval, which should be 0.80. MASE is the error of
  the median and CRPS (approximated by the deciles) the score of the distribution, both in seasonal
  differences of the training part.
- **Ours** run with their defaults on raw values, through darts with the input length of the other networks.
  Where a network is trained, its rows in darts are of standardised values, to which it does not react.
- **Networks of darts** have darts' default sizes, batches of 32 and Adam at 0.001, at most {epochs} epochs,
  gradients clipped at 1, and quantile regression at the nine deciles (DeepAR: a Gaussian). DLinear and TiDE
  normalise every window (reversible instance normalisation). All have their defaults. Some of ours, such as
  the number of steps, were chosen while looking at some of these series.
- **Statistical models.** AutoETS and Theta are those of {statistical}. Seasons longer than 52 steps are not
  given to them, and statsforecast's AutoETS leaves out seasons longer than 24. Intervals of the second naive
  model are normal, as wide as errors of one season were, growing with the square root of the seasons ahead.
- **Budget.** {budget} seconds of training for every network{others}, in processor time
  of one thread, so that other work on the machine takes nothing away. Our learning rate decays with the
  budget if that ends before the steps do.
"""


def setting(book: dict) -> str:
    """Sentence on hardware, versions and seeds."""
    machine = dict(book["machine"])
    processor = machine.pop("processor")
    seeds = sorted({row["seed"] for row in book["rows"] if "seed" in row})
    versions = ", ".join(f"{name} {version}" for name, version in machine.items())
    return f"{processor}; {versions}. Seeds: {', '.join(map(str, seeds))}."


def recorded() -> str:
    """Table of the machines that recorded rows, from the oldest rows to the latest."""
    lines = [f"| {rows} | {machine} |" for rows, machine in RECORDED]
    head = "Rows were recorded one after the other. Where rows were recorded again, the later line holds:"
    code = (
        "The package changed in between. Points of the curve at 5 and 15 seconds are of older code than\n"
        "those at 60, but for the Taylorformer. Before the last rows, the seasons that are found in\n"
        "sunspots, which has no calendar, went from 123 and 685 months to 127 and 693; rows of other\n"
        "models of this package were not recorded again."
    )
    return "\n".join([f"{head}\n", "| rows | machine |", "|---|---|", *lines, f"\n{code}"])


def series_table(book: dict) -> str:
    """Table of the series and their protocol."""
    keys = ("length", "season", "horizon", "context", "origins")
    lines = ["| series | what | " + " | ".join(keys) + " |", "|---" * (len(keys) + 2) + "|"]
    for name, about in book["series"].items():
        numbers = " | ".join(f"{about[key]:,}" for key in keys)
        lines.append(f"| {name} | {SOURCES[name]} | {numbers} |")
    return "\n".join(lines)


def summary(table: Table) -> str:
    """Table of coverage and times: means over the series that a model was run on."""
    columns = [table.values(key) for key in ("coverage", "mase", "crps", "fit_s", "fit_wall_s", "predict_s")]
    lines = [
        "| model | series | coverage of 80 % | MASE | CRPS | fit, s | fit, s by the clock | predict, s |",
        "|---" * 8 + "|",
    ]
    for i, model in enumerate(table.models):
        n = int(np.isfinite(columns[0][i]).sum())
        if not n:
            continue
        means = [float(np.nanmean(column[i])) for column in columns]
        coverage, mase, crps, fit, wall, predict = means
        cells = f"{n} | {coverage:.2f} | {mase:.3f} | {crps:.3f} | {fit:.1f} | {wall:.1f} | {predict:.2f}"
        lines.append(f"| {LABELS[model]} | {cells} |")
    return "\n".join(lines)


def against(table: Table) -> str:
    """Table of the defaults of Taylorformer and LAM against every model of others."""
    lines: list[str] = []
    bayesian = True
    for ours in (name for name in DEFAULTS if name in table.models):
        for other in (name for name in table.models if name not in OURS):
            found = one_against_one(table, ours, other)
            if found is None or found["n"] < FEWEST:
                continue
            bayesian = "better" in found
            test = " | ".join(
                f"{found[key]:.2f}" for key in (("better", "same", "worse") if bayesian else ("p",))
            )
            record = f"{found['wins']:.0f} of {found['n']:.0f} | {found['ratio']:.3f}"
            lines.append(f"| {LABELS[ours]} | {LABELS[other]} | {record} | {test} |")
    if bayesian:
        text = (
            "The last three columns are probabilities by the Bayesian signed-rank test (baycomp) that ours\n"
            f"is better, the same or worse, where WQL within {ROPE:.0%} is the same."
        )
        head = "better | same | worse |"
    else:
        text = "baycomp was not installed: the last column is the p-value of Wilcoxon's signed-rank test."
        head = "p |"
    head = f"| ours | other | lower WQL on | ratio of WQL | {head}"
    rule = "|---" * (head.count("|") - 1) + "|"
    if not lines:
        return f"No two models have {FEWEST} series in common."
    return "\n".join([f"{text} Few series: read them as a summary, not as proof.\n", head, rule, *lines])


def defeats(table: Table) -> str:
    """Lines on every series that all ranked models were run on: our best and the best other model."""
    wql = table.values("wql")
    ours = [i for i, model in enumerate(table.models) if model in OURS]
    others = [i for i, model in enumerate(table.models) if model not in OURS]
    lines = []
    if not np.isfinite(wql[ours]).any() or not np.isfinite(wql[others]).any():
        return ""
    for j in table.common()[1]:
        series = table.series[j]
        own = ours[int(np.nanargmin(wql[ours, j]))]
        best = others[int(np.nanargmin(wql[others, j]))]
        ratio = wql[own, j] / wql[best, j] - 1
        text = f"{abs(ratio):.1%} {'below' if ratio < 0 else 'above'}"
        verdict = "Won" if ratio < 0 else "Lost"
        lines.append(
            f"- {verdict}: {series}. {LABELS[table.models[own]]} is {text} {LABELS[table.models[best]]}."
        )
    return "\n".join(sorted(lines))


def not_run(table: Table) -> str:
    """Sentence on models without a result, and errors."""
    wql = table.values("wql")
    lines = []
    for model in table.models:
        row = wql[table.models.index(model)]
        gone = [s for s, v in zip(table.series, row, strict=True) if np.isnan(v)]
        if missing := [s for s in gone if (model, s) not in table.failed]:
            lines.append(f"- {LABELS[model]}: not on {', '.join(missing)}.")
    lines += [f"- {LABELS[m]} failed on {s}: {error}" for (m, s), error in table.failed.items()]
    known = budgets(table.book)
    within = f" within {known[-1]:g} seconds of training" if len(known) > 1 else ""
    head = f"Not run yet{within} (a dash in the table):\n"
    return "\n".join([head, *lines]) if lines else ""


def seeds(table: Table) -> str:
    """Sentences on how many seeds models were run with, and how far two of one model are apart."""
    scores: dict[tuple[str, str], list[float]] = {}
    for row in table.rows:
        if "wql" in row:
            scores.setdefault((row["model"], row["series"]), []).append(row["wql"])
    by_number: dict[int, list[str]] = {}
    for model in table.models:
        numbers = [len(found) for (name, _), found in scores.items() if name == model]
        by_number.setdefault(min(numbers, default=0), []).append(LABELS[model])
    if set(by_number) <= {0, 1}:
        return "One seed: differences of a few per cent may be chance."
    most = max(by_number)
    rest = [f"{n} of {', '.join(names)}" for n, names in sorted(by_number.items()) if n not in (0, most)]
    text = "; ".join([f"Means over {most} seeds", *rest])
    apart = [np.ptp(found) / np.mean(found) for found in scores.values() if len(found) > 1]
    low, high = np.quantile(apart, [0.5, 0.9])
    return (
        f"{text}.\nOf all networks and series, the highest and the lowest seed are {low:.1%} apart in the "
        f"median, and {high:.1%} or more\nin a tenth of all. Closer values may be in this order by chance."
    )


def page(book: dict, one_step: dict | None = None) -> str:
    """Return the whole page.

    Parameters
    ----------
    book : dict
        What ``run.py`` writes.
    one_step : dict, optional
        What ``teacher_forced.py`` writes.

    Returns
    -------
    str
        Markdown.
    """
    table = Table(book)
    quality = curve(book)
    others = ", ".join(f"{budget:g}" for budget in quality.budgets) if quality else ""
    protocol = PROTOCOL.format(
        epochs=100,
        statistical="statsforecast" if "statsforecast" in book["machine"] else "sktime",
        budget=f"{max(budgets(book), default=0):g}",
        others=f" (the curve: {others})" if others else "",
    )
    ranked_on = ", ".join(table.series[j] for j in table.common()[1])
    parts = [
        "# Benchmark",
        "Made by `examples/benchmark/arena/report.py` from `results/arena.json`; run by\n"
        "`examples/benchmark/arena/run.py`. WQL, in brackets the coverage of the 80 % interval:",
        table.markdown(),
        f"Mean ranks are over {ranked_on}, which all models with a rank were run on,\n"
        "each with its defaults. In brackets: other settings, ranked in the place of the defaults.\n"
        f"{seeds(table)}",
        *([recorded()] if "note" in book else ()),
        "![Ranks](images/arena_ranks.png)",
        *filter(None, [not_run(table)]),
        "## Wins and losses",
        "The best of ours against the best other model, by WQL. Choosing the best of several\n"
        "after the fact favours whoever has more entries; the next section compares one with one.",
        defeats(table),
        "## One against one",
        "The defaults of Taylorformer and LAM in both hosts against the models of others. Scores of all\n"
        "models are in `results/arena.json`.",
        against(table),
        "## Coverage and time",
        "Means over the series that a model was run on, processor times of one thread unless marked.",
        summary(table),
        *([curve_section(quality)] if quality else ()),
        "## Forecasts",
        "From the last origin of every series:\n\n![Forecasts from the last origin](images/arena_fans.png)",
        f"## Protocol\n\n{protocol}",
        series_table(book),
        "## Machine\n\nOf the first rows; later ones are named under the first table. "
        f"{setting(book)} {book['paths']} paths for each forecast.",
    ]
    if one_step is not None:
        parts += [section(one_step), setting(one_step)]
    return "\n\n".join(part.strip("\n") for part in parts) + "\n"


def main() -> None:
    """Print the tables; write the page and its pictures where asked to."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("results", type=Path, metavar="FILE.json", help="what run.py wrote")
    parser.add_argument("--docs", type=Path, metavar="DIR", help="where benchmark.md and images/ go")
    args = parser.parse_args()
    book = json.loads(args.results.read_text())
    table = Table(book)
    if args.docs is None:
        print(table.markdown(), against(table), summary(table), sep="\n\n")
        return
    from pictures import draw_curve, draw_fans, draw_ranks

    images = args.docs / "images"
    images.mkdir(parents=True, exist_ok=True)
    draw_ranks(table, images / "arena_ranks.png")
    draw_fans(table, images / "arena_fans.png")
    if quality := curve(book):
        draw_curve(quality, images / "arena_curve.png")
    beside = args.results.with_name("teacher_forced.json")
    one_step = json.loads(beside.read_text()) if beside.exists() else None
    (args.docs / "benchmark.md").write_text(page(book, one_step))


if __name__ == "__main__":
    main()
