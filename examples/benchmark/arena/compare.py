"""Comparisons of models over series: tables, ranks, and a Bayesian signed-rank test."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from typing import Any

import numpy as np
from rows import rows_at

__all__ = ["LABELS", "NOT_RUN", "OURS", "VARIANTS", "Table", "one_against_one"]

LABELS = {
    "naive": "seasonal naive",
    "naive_normal": "seasonal naive, normal intervals",
    "ets": "AutoETS",
    "theta": "Theta",
    "taylorformer_sktime": "Taylorformer (sktime)",
    "taylorformer_darts": "Taylorformer (darts)",
    "taylorformer_trained": "Taylorformer, trained (sktime)",
    "taylorformer_finetuned": "Taylorformer, fine-tuned (sktime)",
    "taylorformer_darts_finetuned": "Taylorformer, fine-tuned (darts)",
    "taylorformer_pretrained": "Taylorformer, pretrained (sktime)",
    "taylorformer_zero_shot": "Taylorformer, zero shot (sktime)",
    "lam_sktime": "LAM (sktime)",
    "lam_darts": "LAM (darts)",
    "contiformer_sktime": "ContiFormer (sktime)",
    "contiformer_darts": "ContiFormer (darts)",
    "tnp_sktime": "TNP-A (sktime)",
    "tnp_darts": "TNP-A (darts)",
    "unn_sktime": "UNN (sktime)",
    "unn_darts": "UNN (darts)",
    "dlinear": "DLinear",
    "tide": "TiDE",
    "nhits": "N-HiTS",
    "deepar": "DeepAR",
    "tft": "TFT",
}
OURS = (
    "lam_darts",
    "lam_sktime",
    "taylorformer_sktime",
    "taylorformer_darts",
    "taylorformer_trained",
    "taylorformer_finetuned",
    "taylorformer_darts_finetuned",
    "taylorformer_pretrained",
    "taylorformer_zero_shot",
    "contiformer_sktime",
    "contiformer_darts",
    "tnp_sktime",
    "tnp_darts",
    "unn_sktime",
    "unn_darts",
)
# Other settings of a model, which are ranked in its place: beside it, one model would count several times.
VARIANTS = {
    "taylorformer_trained": "taylorformer_sktime",
    "taylorformer_finetuned": "taylorformer_sktime",
    "taylorformer_darts_finetuned": "taylorformer_darts",
    "taylorformer_pretrained": "taylorformer_sktime",
    "taylorformer_zero_shot": "taylorformer_sktime",
}
NOT_RUN = "–"
ROPE = 0.02  # relative differences of WQL below this are no difference


@dataclass
class Table:
    """Means over seeds, models by series; NaN where a model failed or was not run.

    Parameters
    ----------
    book : dict
        What ``run.py`` writes.
    budget : float, optional
        Rows of models that train are those of this budget; the largest of the book by default.
    """

    book: dict[str, Any]
    budget: float | None = None

    def __post_init__(self) -> None:
        self.rows = rows = rows_at(self.book, self.budget)
        self.series = list(self.book["series"])
        self.models = [name for name in LABELS if any(row["model"] == name for row in rows)]
        self.failed = {(row["model"], row["series"]): row["error"] for row in rows if "error" in row}

    def values(self, score: str) -> np.ndarray:
        """Mean over seeds of a score, (models, series)."""
        table = np.full((len(self.models), len(self.series)), np.nan)
        for i, model in enumerate(self.models):
            for j, series in enumerate(self.series):
                found = [
                    row[score]
                    for row in self.rows
                    if (row["model"], row["series"]) == (model, series) and score in row
                ]
                if found:
                    table[i, j] = np.mean(found)
        return table

    def common(self) -> tuple[list[int], list[int]]:
        """Numbers of models that are ranked with their defaults, and of the series over which they are.

        A run that was stopped leaves its last series to a few models. Ranked are the models that have a score
        of more than half of the series, over the series that all of these have a score of.
        """
        known = np.isfinite(self.values("wql"))
        usual = np.array([model not in VARIANTS for model in self.models], bool)
        models = np.flatnonzero(usual & (known.sum(1) > len(self.series) / 2))
        return models.tolist(), np.flatnonzero(known[models].all(0)).tolist()

    def ranks(self) -> tuple[list[str], np.ndarray]:
        """Models that are ranked, best first, and their ranks by WQL, (models, series)."""
        from scipy.stats import rankdata

        models, series = self.common()
        ranks = rankdata(self.values("wql")[np.ix_(models, series)], axis=0)
        order = np.argsort(ranks.mean(1), kind="stable")
        return [self.models[models[i]] for i in order], ranks[order]

    def rank_in_place(self, variant: str) -> float | None:
        """Mean rank of a variant in the place of its model; None where one of them lacks a series."""
        from scipy.stats import rankdata

        models, series = self.common()
        names = [self.models[i] for i in models]
        if VARIANTS[variant] not in names:
            return None
        place = names.index(VARIANTS[variant])
        models[place] = self.models.index(variant)
        values = self.values("wql")[np.ix_(models, series)]
        return float(rankdata(values, axis=0)[place].mean()) if np.isfinite(values).all() else None

    def markdown(self, score: str = "wql", digits: int = 4) -> str:
        """Table of a score with coverage in brackets, best in bold, mean ranks last.

        Parameters
        ----------
        score : {"wql", "mase", "crps"}, default="wql"
            Which score.
        digits : int, default=4
            Decimals.

        Returns
        -------
        str
            A markdown table, one line for each model. Ranks of variants are in brackets.
        """
        values, coverage = self.values(score), self.values("coverage")
        ranked, ranks = self.ranks()
        mean_rank = {name: f"{row.mean():.2f}" for name, row in zip(ranked, ranks, strict=True)}
        for variant in (model for model in self.models if model in VARIANTS):
            if (rank := self.rank_in_place(variant)) is not None:
                mean_rank[variant] = f"({rank:.2f})"
        lines = [
            "| model | " + " | ".join(self.series) + " | mean rank |",
            "|---" * (len(self.series) + 2) + "|",
        ]
        best = np.nanmin(values, axis=0) if len(values) else values
        for i, model in enumerate(self.models):
            cells = []
            for j, series in enumerate(self.series):
                if np.isnan(values[i, j]):
                    cells.append("failed" if (model, series) in self.failed else NOT_RUN)
                    continue
                text = f"{values[i, j]:.{digits}f}"
                text = f"**{text}**" if values[i, j] == best[j] else text
                cells.append(f"{text} ({coverage[i, j]:.2f})")
            cells.append(mean_rank.get(model, NOT_RUN))
            lines.append(f"| {LABELS[model]} | " + " | ".join(cells) + " |")
        return "\n".join(lines)


def one_against_one(table: Table, ours: str, other: str) -> dict[str, float] | None:
    """Compare two models by WQL over the series that both were run on.

    The Bayesian signed-rank test is that of baycomp, with differences below 2 % as a region of practical
    equivalence. Without baycomp, scipy's Wilcoxon signed-rank test takes its place.

    Parameters
    ----------
    table : Table
        All results.
    ours, other : str
        Names of models.

    Returns
    -------
    dict or None
        ``n`` series, ``wins`` of ours, ``ratio`` of WQL (geometric mean), and either ``better``, ``same``,
        ``worse``, the probabilities that ours is so, or ``p``, the p-value. None without a common series.
    """
    wql = np.log(table.values("wql"))
    difference = wql[table.models.index(ours)] - wql[table.models.index(other)]
    difference = difference[np.isfinite(difference)]
    if not len(difference):
        return None
    found = {
        "n": float(len(difference)),
        "wins": float((difference < 0).sum()),
        "ratio": float(np.exp(difference.mean())),
    }
    if importlib.util.find_spec("baycomp"):
        import baycomp

        # It takes the larger score for the better one: minus the logarithm.
        better, same, worse = baycomp.two_on_multiple(
            -difference,
            np.zeros_like(difference),
            rope=float(np.log1p(ROPE)),
            nsamples=20_000,
            random_state=0,
        )
        return {**found, "better": float(better), "same": float(same), "worse": float(worse)}
    from scipy.stats import wilcoxon

    return {**found, "p": float(wilcoxon(difference).pvalue) if difference.any() else 1.0}
