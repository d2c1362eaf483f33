"""Forecasts of new series: from the last three to eighteen values of the training part of every series.

Six steps ahead, as far as the test part goes. Scores are those of ``short_series.py``, relative to the last
value. The mean of all values is the other simple forecast::

    python examples/benchmark/few_values.py --data FOLDER --out docs/results/short_series_few.json

The page is made by ``short_series_report.py``.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from after_jumps import SETS, score_cuts
from short_series import Collection, Forecaster, of_sktime, seasonal_naive
from worst_short_series import MODEL

VALUES, STEPS = (3, 4, 6, 8, 12, 18), 6  # values at most, as a yearly series may have fewer


def mean_so_far(collection: Collection) -> list[np.ndarray]:
    """Mean of all values, in every decile and step."""
    return [np.full((collection.horizon, 9), np.nanmean(y)) for y in collection.train]


ROWS: dict[str, Forecaster] = {
    MODEL + " (panel)": of_sktime(MODEL, panel=True),
    "mean": mean_so_far,
    "naive": seasonal_naive,
}


def last_values(collection: Collection, n: int) -> Collection:
    """The last values of every training part, forecast a few steps ahead; no season is told."""
    train, test = [y[-n:] for y in collection.train], [y[:STEPS] for y in collection.test]
    return replace(collection, season=1, horizon=min(collection.horizon, STEPS), train=train, test=test)


def main(argv: list[str] | None = None) -> None:
    """Score every row on every collection."""
    score_cuts("few", SETS, VALUES, last_values, ROWS, __doc__.partition("\n")[0], argv)


if __name__ == "__main__":
    main()
