"""Section of the page on one-step-ahead likelihoods, from what ``teacher_forced.py`` writes."""

from __future__ import annotations

from typing import Any

__all__ = ["section", "table"]

RULES = {"previous": "the previous true value", "ar": "linear in the last 8 true values"}
NETWORKS = {"taylorformer": "Taylorformer", "tnp": "TNP-A"}
LABELS = {**RULES, **NETWORKS}

TEXT = """\
The protocol of the Taylorformer paper: every target is predicted from the true values of the context **and of
all targets before it**. These numbers are one step ahead, whatever the number of targets. They cannot be
compared with the free-running table above, nor with errors of forecasts over a whole horizon. Where a series
moves slowly, as here, repeating the previous true value is a strong rule. A useful model has to beat it.
Made by `examples/benchmark/teacher_forced.py`, in nats per target (lower is better) and in squared deviations
of the training part:"""

PROTOCOL = """\
How it was measured:

- **Data.** OT of ETTh1 and ETTh2, the last column of exchange; all rows; 69 % for training, 11 % for
  validation, 20 % for the test; standardised by the training part. Windows lie within one part, one starts at
  every row of the test, and their times run evenly from -1 to 1. Contexts have {context} points.
- **Divisor.** Sums over windows and targets are divided by the number of windows times that of targets. The
  published code divides by the rows of the test part, which makes its scores on exchange smaller in size by
  13 % at 96 targets: the published NLL of -1.31 there is -1.50 by the divisor used here.
- **Rules.** The deviation of their Gaussian is that of their errors in the training part, one for all times.
- **Networks.** The Taylorformer is `preset="code"` in the published sizes, without our baselines;
  TNP-A has the sizes of its own paper. Weights of the best check on 100 windows of the validation part are
  scored. Published: 40,000 steps of 32 windows, Adam at a constant rate of 0.0003. Here: steps, windows of a
  step and peak rate as in the table; AdamW, a warm-up, then a cosine, gradients clipped at 1. Of the rates
  0.002 and 0.006 the one was taken for the Taylorformer that had the lower loss on the validation part of
  ETTh2 after 100 steps; none was chosen for TNP-A, which unlike the Taylorformer does not start from the
  value before. Times are processor times of one thread. Where fewer steps than published were taken, the
  networks are undertrained by the standard of the paper."""


def groups(book: dict[str, Any]) -> dict[tuple[str, int], list[dict[str, Any]]]:
    """Rows of each series and number of targets, rules first."""
    found: dict[tuple[str, int], list[dict[str, Any]]] = {}
    for row in sorted(book["rows"], key=lambda row: list(LABELS).index(row["model"])):
        found.setdefault((row["series"], row["targets"]), []).append(row)
    return dict(sorted(found.items()))


def table(book: dict[str, Any]) -> str:
    """Markdown: a line for every row of results, the lowest NLL of a series in bold.

    Parameters
    ----------
    book : dict
        What ``teacher_forced.py`` writes.

    Returns
    -------
    str
        The table.
    """
    head = "series | targets | model | NLL per target | MSE one step ahead, given the true past"
    training = "seed | steps | windows of a step | peak rate | parameters | fit, s"
    lines = [f"| {head} | {training} |", "|---" * 11 + "|"]
    for (series, targets), rows in groups(book).items():
        best = min(row["nll"] for row in rows)
        for row in rows:
            nll = f"**{row['nll']:.3f}**" if row["nll"] == best else f"{row['nll']:.3f}"
            training = "– | – | – | – | – | –"
            if "steps" in row:
                training = f"{row['seed']} | {row['steps']:,} | {row['batch']} | {row['lr']:g}"
                training += f" | {row['parameters']:,} | {row['fit_s']:.0f}"
            cells = f"{series} | {targets} | {LABELS[row['model']]} | {nll} | {row['mse']:.5f}"
            lines.append(f"| {cells} | {training} |")
    return "\n".join(lines)


def outcome(book: dict[str, Any]) -> str:
    """Lines on every network against the rule of lowest NLL, and on what was not run."""
    lines = []
    for (series, targets), rows in groups(book).items():
        rules = [row for row in rows if row["model"] in RULES]
        for row in rows:
            if not rules or row["model"] in RULES:
                continue
            rule = min(rules, key=lambda rule: rule["nll"])
            gap = round(row["nll"] - rule["nll"], 3)
            verdict, side = ("Won", "below") if gap < 0 else ("Lost", "above") if gap else ("Equal", "from")
            name, other = LABELS[row["model"]], LABELS[rule["model"]]
            scores = f'NLL {abs(gap):.3f} {side} "{other}", MSE {row["mse"] / rule["mse"]:.2f} times its.'
            steps = f"{row['steps']:,} steps at {row['lr']:g}, seed {row['seed']}"
            lines.append(f"- {verdict}: {series}, {targets} targets. {name}, {steps}: {scores}")
        models = {row["model"] for row in rows}
        if missing := [label for model, label in LABELS.items() if model not in models]:
            lines.append(f"- Not run: {series}, {targets} targets. {', '.join(missing)}.")
    return "\n".join(lines)


def section(book: dict[str, Any]) -> str:
    """Return the section of the page.

    Parameters
    ----------
    book : dict
        What ``teacher_forced.py`` writes.

    Returns
    -------
    str
        Markdown, from its heading on.
    """
    contexts = ", ".join(map(str, sorted({row["context"] for row in book["rows"]})))
    parts = [
        "## One step ahead, given the true past",
        TEXT,
        table(book),
        "By NLL, against the better of the two rules:",
        outcome(book),
        PROTOCOL.format(context=contexts),
    ]
    return "\n\n".join(part for part in parts if part)
