"""How series at irregular times are forecast: by the pretrained network, or by one that is trained on them.

Of long series a few values are left at random, less than a quarter, as if a sensor had reported now and then.
At each of up to eighteen origins the next eight of them are forecast, at their times. The pretrained network
and the trained one are fitted at the first origin and updated at the others. Losses are weighted quantile
losses over those of the last value, around which lie the quantiles of earlier changes over as many values.
The last column is the widest 80 % interval, in standard deviations of the series::

    python examples/benchmark/irregular.py --data DIR --out docs/results/irregular.json
    python examples/benchmark/irregular.py --page     # the table of docs/prior.md from that file
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

ROOT = Path(__file__).parents[2]
sys.path.append(str(Path(__file__).parent / "arena"))
from lengths import loss
from models import LEVELS
from run import fill_page, machine, set_up, write_json
from series import load
from short_series_report import table as markdown

from taylorformer_forecast.sktime import ContiFormerForecaster, TaylorformerForecaster

SERIES = ("taylor", "taxi", "etth1", "etth2", "exchange", "sunspots")
ROWS: dict[str, Any] = {
    "`pretrained`": lambda **options: TaylorformerForecaster(strategy="pretrained", **options),
    "`train`, the default": lambda **options: TaylorformerForecaster(strategy="train", **options),
    "ContiFormer": ContiFormerForecaster,
}
NAIVE = "last value"
LATEST, SHARE, AHEAD, GAP, ORIGINS = 5000, 0.18, 8, 16, 18


def thinned(y: pd.Series, seed: int) -> pd.Series:
    """Values that are left of the latest ones, at irregular dates that stand for their steps."""
    values = y.to_numpy()[-LATEST:]
    left = np.sort(np.random.default_rng(seed).choice(len(values), int(SHARE * len(values)), replace=False))
    return pd.Series(values[left], pd.Timestamp("2000-01-01") + pd.to_timedelta(left, unit="h"))


def naive(past: np.ndarray) -> np.ndarray:
    """Deciles of the next values: the last one, and past changes over as many values."""
    changes = [past[ahead:] - past[:-ahead] for ahead in range(1, AHEAD + 1)]
    return past[-1] + np.stack([np.quantile(change, LEVELS) for change in changes])


def rows(series: str, data: Path | None, seed: int, origins: int, **bounds: Any):
    """Scores of every forecaster on one series."""
    y = thinned(load(series, data).y, seed)
    firsts = [len(y) - AHEAD - GAP * k for k in reversed(range(origins))]
    truth = np.stack([y.to_numpy()[first : first + AHEAD] for first in firsts])
    found = {NAIVE: [naive(y.to_numpy()[:first]) for first in firsts]}
    for name, make in ROWS.items():
        model = make(random_state=seed, verbose=False, **bounds)
        model.fit(y.iloc[: firsts[0]], fh=range(1, AHEAD + 1))
        found[name], seen = [], firsts[0]
        for first in firsts:
            if first > seen:
                model.update(y.iloc[seen:first], update_params=False)
            at, seen = y.index[first : first + AHEAD], first
            found[name].append(model.predict_quantiles(fh=at, alpha=LEVELS.tolist()).to_numpy())
    for name, each in found.items():
        wql, coverage = loss(truth, np.stack(each))
        widest = max(float((deciles[:, -1] - deciles[:, 0]).max()) for deciles in each) / y.std()
        scores = {"wql": round(wql, 5), "coverage": round(coverage, 3), "widest": round(widest, 2)}
        yield {"series": series, "seed": seed, "n": firsts[0], "model": name} | scores


def table(book: dict[str, Any]) -> str:
    """Relative loss of every forecaster, a column for each series, its mean, coverage and widest interval."""
    numbers = pd.DataFrame(book["rows"]).set_index(["series", "seed", "model"])
    wql = numbers["wql"].unstack("model")
    each = np.exp(np.log(wql.div(wql[NAIVE], axis=0)).groupby("series").mean())
    coverage, widest = (numbers[name].groupby("model") for name in ("coverage", "widest"))
    names = [name for name in SERIES if name in each.index]
    lines = []
    for name in [*ROWS, NAIVE]:
        mean = np.exp(np.log(each[name]).mean())
        cells = [f"{each[name][series]:.2f}" for series in names]
        lines.append(
            [name, *cells, f"{mean:.2f}", f"{coverage.mean()[name]:.2f}", f"{widest.max()[name]:.1f}"]
        )
    return markdown(["forecast", *names, "geometric mean", "coverage of 80 %", "widest interval"], lines)


def main(argv: list[str] | None = None) -> None:
    """Run what is missing, write it, print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", type=Path, metavar="DIR", help="files of the series, as for the arena")
    parser.add_argument("--series", default=",".join(SERIES), help="names, separated by commas")
    parser.add_argument("--seeds", default="0", help="of the values that are left, separated by commas")
    parser.add_argument("--out", type=Path, metavar="FILE.json", default=ROOT / "docs/results/irregular.json")
    parser.add_argument("--page", action="store_true", help="only write the table into docs/prior.md")
    parser.add_argument(
        "--quick", action="store_true", help="one step of training and two origins, as a check"
    )
    args = parser.parse_args(argv)
    book = json.loads(args.out.read_text()) if args.out.exists() else {"rows": []}
    if args.page:
        fill_page(ROOT / "docs/prior.md", ("<!-- irregular -->\n", "<!-- end of irregular -->"), table(book))
        return
    set_up()
    book["machine"] = machine()
    done = {(row["series"], row["seed"]) for row in book["rows"]}
    bounds: dict[str, Any] = {"max_steps": 1} if args.quick else {}
    for seed in map(int, args.seeds.split(",")):
        for series in args.series.split(","):
            if (series, seed) not in done:
                book["rows"] += rows(series, args.data, seed, 2 if args.quick else ORIGINS, **bounds)
                write_json(book, args.out)
                print({row["model"]: row["wql"] for row in book["rows"][-len(ROWS) - 1 :]}, flush=True)
    print(table(book))


if __name__ == "__main__":
    main()
