"""Which strategy of ``TaylorformerForecaster`` forecasts best after how many values.

Pieces of long series are forecast as if nothing had been observed before them. Statistics see the latest
values from each origin anew, of which there are always as many. A network is trained (or trained further) at
the first origin and updated at the others. Deciles of ``averaged`` are means of those of ``train``,
``corrected`` and analogues; those of ``zero_shot`` have ``pretrained`` in the place of ``train``. Weights are
those that the strategy finds at the first origin. Equal means are no strategy.
Losses are weighted quantile losses over that of the seasonal naive forecast, as sums over the origins of a
piece; means over pieces are geometric.

Every finished piece is written at once, and what the file holds already is not run again::

    python examples/benchmark/lengths.py --data DIR --out docs/results/lengths.json
    python examples/benchmark/lengths.py --page     # the table of docs/strategies.md from that file
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

ROOT = Path(__file__).parents[2]
sys.path.append(str(Path(__file__).parent / "arena"))
from models import LEVELS
from run import fill_page, machine, set_up, write_json
from series import load
from short_series_report import table as markdown

from taylorformer_forecast.engine.strategy import Strategy
from taylorformer_forecast.sktime import TaylorformerForecaster

HORIZONS = {  # sunspots: two years, of a season of eleven
    "co2": 12,
    "ili": 13,
    "sunspots": 24,
    "taylor": 48,
    "taxi": 48,
    "etth1": 24,
    "etth2": 24,
    "exchange": 10,
}
LENGTHS = (400, 1000, 3000)
STRATEGIES = ("corrected", "pretrained", "finetune", "train")
TRAINED = ("train", "finetune")
AVERAGES = {"averaged": "train", "zero_shot": "pretrained"}  # with "corrected"
MEANS = {
    "train, corrected": ("train", "corrected"),
    "finetune, corrected": ("finetune", "corrected"),
    "pretrained, corrected": ("pretrained", "corrected"),
}
PIECES, ORIGINS = 2, 10
FIRST = 0.45  # of a series: the earliest origin, as statistics of all of it shaped no default


def deciles(
    strategy: str,
    y: pd.Series,
    origins: Sequence[int],
    n: int,
    h: int,
    weights: Strategy | None = None,
    **options: Any,
) -> np.ndarray:
    """Deciles (origins, h, 9) from the latest n values before every origin.

    With the weights of an average, analogues are averaged with statistics.
    """
    found, model, seen = [], None, 0
    for origin in origins:
        if model is not None and strategy in TRAINED:
            model.update(y.iloc[seen:origin], update_params=False)
        else:
            model = TaylorformerForecaster(strategy=strategy, verbose=False, **options)
            model.fit(y.iloc[origin - n : origin], fh=range(1, h + 1))
            if weights is not None:
                model._strategy = replace(
                    model._strategy, statistics=weights.statistics, analogues=weights.analogues
                )
        found.append(model.predict_quantiles(alpha=LEVELS.tolist()).to_numpy())
        seen = origin
    return np.stack(found)


def weights_of(y: pd.Series, h: int, **options: Any) -> Strategy:
    """Weights of statistics and analogues in an average, whatever the training of its network."""
    model = TaylorformerForecaster(strategy="zero_shot", verbose=False, **options)
    return model.fit(y, fh=range(1, h + 1))._strategy


def naive(y: pd.Series, origins: Sequence[int], season: int, h: int) -> np.ndarray:
    """The latest season again, as all deciles (origins, h, 9)."""
    values = [np.resize(y.to_numpy()[origin - season : origin], h) for origin in origins]
    return np.repeat(np.stack(values)[..., None], len(LEVELS), -1)


def loss(truth: np.ndarray, found: np.ndarray) -> tuple[float, float]:
    """Weighted quantile loss, and coverage of the central 80 %."""
    error = truth[..., None] - found
    pinball = 2 * np.maximum(LEVELS * error, (LEVELS - 1) * error)
    inside = (truth >= found[..., 0]) & (truth <= found[..., -1])
    return float(pinball.mean(-1).sum() / np.abs(truth).sum()), float(inside.mean())


def pieces(y: pd.Series, n: int, h: int) -> list[list[int]]:
    """Origins of every piece: a horizon and a fifth apart, so that all phases of a day occur."""
    gap = h + max(1, h // 5)
    last = len(y) - h - gap * (ORIGINS - 1)
    if last < max(n, int(FIRST * len(y))):
        return []
    firsts = np.unique(np.linspace(max(n, FIRST * len(y)), last, PIECES).astype(int))
    return [[int(first) + gap * k for k in range(ORIGINS)] for first in firsts]


def rows(series: str, n: int, origins: list[int], data: Path | None, seed: int, **bounds: Any):
    """Scores of every strategy on one piece."""
    task, h = load(series, data), HORIZONS[series]
    y, found = task.y, {}
    truth = np.stack([y.to_numpy()[origin : origin + h] for origin in origins])
    found["naive"], seconds = naive(y, origins, task.season, h), {"naive": 0.0}
    for strategy in STRATEGIES:
        start, options = time.process_time(), bounds if strategy in TRAINED else {}
        found[strategy] = deciles(strategy, y, origins, n, h, random_state=seed, **options)
        seconds[strategy] = time.process_time() - start
    for name, parts in MEANS.items():
        found[name] = np.mean([found[part] for part in parts], axis=0)
        seconds[name] = sum(seconds[part] for part in parts)
    weights = weights_of(y.iloc[origins[0] - n : origins[0]], h, random_state=seed)
    others, weight = deciles("corrected", y, origins, n, h, weights), weights.weight_of_others
    for name, network in AVERAGES.items():
        found[name] = (1 - weight) * found[network] + weight * others
        seconds[name] = seconds[network] + seconds["corrected"]
    head = {"series": series, "n": n, "origin": origins[0], "seed": seed}
    for strategy, values in found.items():
        wql, coverage = loss(truth, values)
        yield (
            head
            | {
                "model": strategy,
                "wql": round(wql, 5),
                "coverage": round(coverage, 3),
                "seconds": round(seconds[strategy] / len(origins), 2),
            }
            | (
                {"share": round(weights.statistics, 3), "analogues": round(weights.analogues, 3)}
                if strategy in AVERAGES
                else {}
            )
        )


def table(book: dict[str, Any]) -> str:
    """Mean relative loss and coverage of every strategy, a column for each length."""
    numbers = pd.DataFrame(book["rows"]).set_index(["n", "series", "origin", "seed", "model"])
    names = [*STRATEGIES, *AVERAGES, *MEANS]
    header, columns = ["strategy"], [[f"`{name}`" if name not in MEANS else name for name in names]]
    for n, part in numbers.groupby("n"):
        wql, coverage = part["wql"].unstack("model"), part["coverage"].unstack("model").mean()
        ratio = np.exp(np.log(wql.div(wql["naive"], axis=0)).mean())[names].round(3)
        cells = [f"{ratio[name]:.3f} ({coverage[name]:.2f})" for name in names]
        best = [
            f"**{cell}**" if ratio[name] == ratio.min() else cell
            for name, cell in zip(names, cells, strict=True)
        ]
        header.append(f"{n:,} values, {len(wql)} pieces")
        columns.append(best)
    return markdown(header, [*zip(*columns, strict=True), ["seasonal naive", *["1"] * (len(header) - 1)]])


def write_page(book: dict[str, Any], page: Path) -> None:
    """Put the table between the marks of a page."""
    fill_page(page, ("<!-- table -->\n", "<!-- end -->"), table(book))


def main(argv: list[str] | None = None) -> None:
    """Run what is missing, write it, print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", type=Path, metavar="DIR", help="files of the series, as for the arena")
    parser.add_argument("--series", default=",".join(HORIZONS), help="names, separated by commas")
    parser.add_argument("--lengths", default=",".join(map(str, LENGTHS)), help="numbers, separated by commas")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, metavar="FILE.json", default=ROOT / "docs/results/lengths.json")
    parser.add_argument("--page", action="store_true", help="only write the table into docs/strategies.md")
    parser.add_argument("--quick", action="store_true", help="one short piece and one step, as a check")
    args = parser.parse_args(argv)
    book = json.loads(args.out.read_text()) if args.out.exists() else {"rows": []}
    if args.page:
        write_page(book, ROOT / "docs/strategies.md")
        return
    set_up()

    bounds: dict[str, Any] = {"max_steps": 1} if args.quick else {}
    names, lengths = ("co2", "200") if args.quick else (args.series, args.lengths)
    book["machine"] = machine()
    done = {(row["series"], row["n"], row["origin"], row["seed"]) for row in book["rows"]}
    for n in map(int, lengths.split(",")):
        for series in names.split(","):
            for origins in pieces(load(series, args.data).y, n, HORIZONS[series])[
                : 1 if args.quick else None
            ]:
                if (series, n, origins[0], args.seed) not in done:
                    origins = origins[:2] if args.quick else origins
                    book["rows"] += rows(series, n, origins, args.data, args.seed, **bounds)
                    write_json(book, args.out)
                    latest = book["rows"][-len(STRATEGIES) - len(AVERAGES) - len(MEANS) :]
                    print(n, series, {row["model"]: row["wql"] for row in latest}, flush=True)
    print(table(book))


if __name__ == "__main__":
    main()
