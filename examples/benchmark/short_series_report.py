"""Make the page about short series from the results of ``short_series.py``.

python examples/benchmark/short_series_report.py docs/results/*short_series*.json --out docs/short_series.md

What ``worst_short_series.py``, ``after_jumps.py`` and ``few_values.py`` wrote are sections. Without ``--out``
the page is only printed. Rows of networks that others published are written as such.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

__all__ = ["page"]

LABELS = {
    "taylorformer_forecast.sktime:TaylorformerForecaster": "`TaylorformerForecaster()`",
    'taylorformer_forecast.sktime:TaylorformerForecaster:{"strategy": "pretrained"}': (
        '`TaylorformerForecaster(strategy="pretrained")`'
    ),
    'taylorformer_forecast.sktime:TaylorformerForecaster:{"random_state": 0} (panel)': (
        "`TaylorformerForecaster()`, one fit for all series of a collection"
    ),
    "baseline": "the statistical forecasts without correction and calendar effects, in batches",
    "ets": "AutoETS (statsforecast)",
    "theta": "Theta (statsforecast)",
    "arima": "AutoARIMA (statsforecast)",
    "sktime.forecasting.fbprophet:Prophet": "Prophet (by sktime's class, its defaults)",
    "mean": "mean of the values",
    "naive": "seasonal naive",
}
NAMES = {
    "m3_yearly": "M3 yearly",
    "m3_quarterly": "M3 quarterly",
    "m3_monthly": "M3 monthly",
    "car_parts": "car parts",
    "nn5_daily": "NN5 daily",
}
# Over the seasonal naive forecast of the same tables; Ansari et al., "Chronos", arXiv:2403.07815, and the
# repository of its authors.
PUBLISHED = {
    "Chronos-T5-tiny (8M), published": {
        "m3_yearly": 0.1492 / 0.1665,
        "m3_quarterly": 0.0821 / 0.1013,
        "m3_monthly": 0.1012 / 0.1485,
        "car_parts": 1.0236 / 1.6000,
    },
    "Chronos-Bolt-base (205M), published": {
        "m3_yearly": 0.1293 / 0.1665,
        "m3_quarterly": 0.0762 / 0.1013,
        "m3_monthly": 0.0927 / 0.1485,
        "car_parts": 0.9945 / 1.6000,
    },
}
TEXT = """\
# Short series

What does the default do? On a series that is too short to train a network on, `TaylorformerForecaster` trains
none. It combines [statistical forecasts](#members-and-weights), each weighted by its errors in the past. A
network that was trained on synthetic series [corrects](prior.md#the-correction-of-statistical-forecasts)
locations and widths, but not those of [intermittent demand](#intermittent-demand). [Seasons](#seasons) come
from the calendar and from the values. [Some zeros and extreme values](#values-that-count-as-missing) count as
missing. Where no value of the past is negative, [no forecast is](#bounds).

```python
from sktime.datasets import load_airline
from taylorformer_forecast.sktime import TaylorformerForecaster

forecaster = TaylorformerForecaster(random_state=0)
forecaster.fit(load_airline(), fh=range(1, 13)).predict_interval()
print(forecaster.summary())  # strategy="corrected" asks for it on longer series
```

"Short" are series with fewer observed values than sixteen horizons; each of several counts by itself. ([A
horizon](prior.md) counts as 8 to 96 steps, and as 12 to 48 without `fh`.) Longer ones and irregular times
have networks ([which](prior.md)); covariates that are known ahead are [taken off](covariates.md). darts'
`TaylorformerModel` has the same forecasts. It chooses by the same rule, with the output chunk as horizon.

A panel or a hierarchy is one batch, in which every series is forecast as by itself, by its own seasons.
10,000 monthly series of 100 values, 12 steps ahead, nine quantiles, took 58 s of one core
and 1.1 GiB in sktime, 57 s and .8 GiB in darts (`examples/benchmark/many_series.py`).

## Members and weights

The members are exponential smoothing, Theta and damped trend, and the seasonal naive forecast. The first
three come with and without a season, on the scale of the series and on that of its logarithm. In the
second and third cycle the last one comes with growth, too: the mean change from one cycle to the next, if
it is steady. From eight cycles of a short season on there is an autoregression of seasonal changes. Where
the only season is longer than 13 steps, as a day of hours is, there are slow levels instead, and the last
error of these fades. Each is weighted by its errors at all earlier origins of the series itself ([what each
is worth](ablations.md#families-of-the-statistical-combination)).

A seasonal member has no error before its season has been seen, as a week of hours at most origins. There it
gets the error of the best other member in part, and more of it if its season is long. Errors at the same
place in a week count once more, where members differ much there. So three weeks of hours, or of quarters of
an hour, show on a Sunday that Monday is not like it, if not in full: Monday's forecast lies between both.

## Seasons

A day, week or year is tried as a season once one has been seen. Until the second one, the network sees no
season of a series that is nearly a line. From its second cycle on a long season repeats, from the level of
today. Longer seasons than 700 steps are not tried, as a week of five minutes is.

A year of days is that of values without their weeks, as the same date is another day of the week. Its indices
are means over five weeks, so that single days of few years count little.

## Values that count as missing

A single extreme value hardly moves a forecast ([what follows a jump](#after-a-jump)). A peak of any season is
no such value from its second time on. What only later values show to be no part of a series counts as
missing:

- Ten zeros or more in a row that begin and end at once, as of an outage.
- Fewer zeros in a row, if a product was sold out: all other values are at least a quarter of the usual one,
  and no small counts.
- Up to twelve extreme values in a row that are over.

Three such runs and more, or two at the same place in a season, are a part of the series.

## Bounds

A forecast leaves the range of the series by the width of that range at most, or by as much as its growth
says. Extreme quantiles may pass this limit slightly. Where no value is negative, none is farther than three
times the largest one. Forecasts stop where values do: at a largest or smallest one that came again and
again, as loads at 100 %.

If no past value is negative, no forecast is. There are two exceptions. One are decimals whose steps are as
large at low levels as at high ones, as those of degrees are. The other are few decimals with a single zero,
as in a series that was scaled to its range.

## Widths of intervals

Errors of values that are never negative grow with the root of the level. They grow as fast as the level
itself, or nearly so, where past errors of a series that has grown say so clearly. The two exceptions above
are exceptions here, too.

Where past errors are skewed, the median lies on their short side, and quantiles of that side lie nearer to
it. Below the median of positive values, distances are those of logarithms. Each side reaches as far as its
own errors do, where one in ten lies farther by three standard errors.

## Intermittent demand

Series of which a quarter is zero, and none below zero, are intermittent demand. They are forecast by a
distribution of single values: whole numbers for counts, else values that were observed. Its mean follows the
season, where the places in two cycles or more differ by more than chance. Places with zeros alone, eight or
more and too many for chance, have next to none. Levels are judged by the probability that they gave to values
half a horizon later.

Zeros at the end may say that demand has ended: ten of them, and twice as many as ever before. Then only the
latest values count, and neither season nor trend brings it back. Three to nine zeros are enough where values
were far from zero, as of something that is broken. The forecast then puts weight on zero and on the old
level.

### Zeros that are no demand

Three kinds of zeros make no intermittent demand:

- Regular closing times, as of shops at weekends. A season of four cycles or more (three, above 250 steps)
  says when values are zero, with few other zeros. Places that were always zero are forecast as zero: after
  eight cycles, or after four if their neighbours were zero too. Their errors do not count for those of other
  places.
- Zeros before an outbreak: values have not been zero for longer than ever.
- A closure that is over: nearly all zeros are in one run of ten or more. Many such runs, that alternate with
  other values, are nights and days of a fine grid.

## Five collections

Every series is forecast once, from its whole training part, by one setting for all. The table has the
weighted quantile loss over that of the seasonal naive forecast, and in brackets the coverage of the 80 %
interval. Intervals of counts cover more, as their ends are whole numbers that have a probability themselves.
Where that matters there is a second number. It counts of such a value the part that is inside (of a
randomised probability integral transform). Made by `examples/benchmark/short_series_report.py` from
`results/short_series*.json`, run by `examples/benchmark/short_series.py`.

"""
CAVEATS = """\
One row has the statistical forecasts of values without dates. It lacks the correction by a network, and the
[effects of the calendar](calendar_effects.md). On NN5 most of its distance from the defaults is due to
these.

Of a part of a collection the same random series are used for all models (seed 0). AutoARIMA and Prophet
take long, and were run on parts alone; of NN5, a small collection, on all series. Published rows are those
of their authors; they were not run here, and for NN5, which has missing values, there is none. The members
and guards of the combination were chosen while looking at these collections; no weights were trained on
them. So was the share of the correction that is taken.

"""
DETAILS = """
Errors of the median are mean absolute scaled errors (MASE). `largest` is the largest decile over the largest
value of its series, over all series of a collection. Seconds are of one core for each series, fit and nine
deciles.

"""

WORST = """\

## The worst series

These are the two series of every collection that are forecast worst beside the seasonal naive forecast
(`examples/benchmark/worst_short_series.py`). Losses are in mean absolute values of the series. Demand comes
back, growth ends or doubles, days of a season are missed. On NN5 even these are as good as the naive
forecast. The dashed line is what happened, the band covers 80 %. Numbers count from 0 in the order of the
file.

![The two worst forecasts of each collection](images/worst_short_series.png)

"""
JUMPS = """\

## After a jump

A value far from those before may be an outlier, or the first of a new level. Which it is shows with the next
value. These are forecasts from one, two and three values after the first jump of every series of M3 that has
one (`examples/benchmark/after_jumps.py`). A jump is at least eight mean steps high, with eight values
before it. At first such a value is moved to four mean steps. A next value near it confirms a new level. Else
it was an outlier, and is moved to two steps. While a level is new, intervals reach as far as it, from its
second value on. Where the level shifted twice before, as prices and rivers do, and twice more for each
outlier, the first value of the next level stays as it is. Scores are those of the first table. Nothing says
before that a jump comes: after one value all intervals cover too little.
Scores in the hundreds are those of forecasts that ran away.

"""
FEW = """\

## A few values

New products have a short past. These are forecasts from the last three to eighteen values of the training
part of every series of M3, six steps ahead (`examples/benchmark/few_values.py`). A trend has to be earned
there: the first five errors count as much against it as for it. Cells have the loss relative to that of the
last value, and in brackets the coverage of the 80 % interval. After three or four values that is too small.

"""


def table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Markdown of a table."""
    return "\n".join(f"| {' | '.join(map(str, row))} |" for row in [head, ["---"] * len(head), *rows]) + "\n"


def page(books: Sequence[dict]) -> str:
    """Make the page from what the runs wrote."""
    worst = [row for book in books for row in book.get("worst", ())]
    few = [row for book in books for row in book.get("few", ())]
    jumps = [row for book in books for row in book.get("jumps", ())]
    books = [book for book in books if "results" in book]
    found: dict[tuple[str, int], dict[str, dict]] = {}
    for row in (row for book in books for row in book["results"]):
        several = found.setdefault((row["set"], row["n"]), {})
        several[row["row"]] = row | several.get(row["row"], {})  # of what was run again, what is new
    parts = [TEXT]
    for title, keys in groups(found):
        names = [NAMES.get(key[0], key[0]) for key in keys]
        rows = []
        for name, label in LABELS.items():
            cells = [found[key].get(name) for key in keys]
            if any(cells):
                text = [cell(c) if c else "-" for c in cells]
                rows.append([label, *text, mean([c and c["relative"] for c in cells])])
        if title == "All series":
            for label, scores in PUBLISHED.items():
                cells = [scores.get(key[0]) for key in keys]
                rows.append([label, *(f"{c:.3f}" if c else "-" for c in cells), mean(cells)])
        counts = [f"{name} ({key[1]})" for name, key in zip(names, keys, strict=True)]
        parts.append(f"### {title}\n\n{table(['', *counts, 'geometric mean'], rows)}\n")
    parts.append(CAVEATS)
    parts.append("## Errors, extremes, seconds\n" + DETAILS)
    rows = [
        [
            NAMES.get(key[0], key[0]),
            str(key[1]),
            LABELS[name],
            f"{row['mase']:.3f}",
            f"{row['largest']:.2g}",
            f"{row['seconds_each']:.3f}",
            str(row["failed"]),
        ]
        for key, several in found.items()
        for name, row in several.items()
    ]
    parts.append(table(["collection", "series", "model", "MASE", "largest", "seconds", "failed"], rows))
    if few:
        heads = [f"{k} values" for k in dict.fromkeys(r["values"] for r in few)]
        parts.append(FEW + by_values(few, LABELS | {"naive": "last value"}, heads))
    if jumps:
        counts = {r["set"]: r["n"] for r in jumps if r["values"] == 1}
        several = ", ".join(f"{NAMES[name]} {n}" for name, n in counts.items())
        parts.append(JUMPS + by_values(jumps, LABELS, ["one value", "two", "three"]))
        parts.append(f"\nSeries after one value: {several}.\n")
    if worst:
        cells = [
            [NAMES.get(r["set"], r["set"]), r["series"], r["values"], r["loss"], r["naive"]] for r in worst
        ]
        parts.append(WORST + table(["collection", "number", "values", "loss", "seasonal naive"], cells))
    installed = {name: version for book in reversed(books) for name, version in book["versions"].items()}
    versions = ", ".join(f"{name} {version}" for name, version in installed.items())
    parts.append(f"\n{books[0]['hardware']}; {versions}; seed {books[0]['seed']}. The machine was shared.\n")
    return "".join(parts)


def by_values(rows: Sequence[dict], labels: Mapping[str, str], heads: Sequence[str]) -> str:
    """Table of forecasts from so many values, a column for each number of them."""
    found: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        found.setdefault((row["set"], row["row"]), []).append(cell(row))
    cells = [[NAMES[name], labels[row], *own] for (name, row), own in found.items()]
    return table(["collection", "model", *heads], cells)


def cell(row: dict) -> str:
    """Score and coverage, and the randomised coverage where it is another."""
    text = f"{row['coverage']:.2f}"
    randomised = row.get("randomised_coverage", row["coverage"])
    if abs(randomised - row["coverage"]) > 0.01:
        text += f"; {randomised:.2f}"
    return f"{row['relative']:.3f} ({text})"


def groups(found: dict[tuple[str, int], dict[str, dict]]) -> list[tuple[str, list[tuple[str, int]]]]:
    """Collections in full, and parts of them."""
    largest = {name: max(n for other, n in found if other == name) for name, _ in found}
    full = [key for key in found if key[1] == largest[key[0]]]
    part = [key for key in found if key[1] != largest[key[0]]]
    return [(title, keys) for title, keys in (("All series", full), ("A part of the series", part)) if keys]


def mean(scores: Sequence[float | None]) -> str:
    """Geometric mean of the scores, and of how many if some are missing."""
    known = [score for score in scores if score]
    return f"{np.exp(np.mean(np.log(known))):.3f}" + (
        "" if len(known) == len(scores) else f" of {len(known)}"
    )


def main() -> None:
    """Print the page, or write it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("results", type=Path, nargs="+")
    parser.add_argument("--out", type=Path)
    a = parser.parse_args()
    text = page([json.loads(path.read_text()) for path in a.results])
    if a.out:
        a.out.write_text(text)
    else:
        print(text)


if __name__ == "__main__":
    main()
