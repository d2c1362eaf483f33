"""What must not change a forecast: the arrangement of the data, empty rows. What lost points may change."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sktime.forecasting.base import ForecastingHorizon

from taylorformer_forecast.sktime import LAMForecaster, TaylorformerForecaster

FORECASTERS = [TaylorformerForecaster, LAMForecaster]
N = 60


def tiny(forecaster=TaylorformerForecaster, **changes):
    settings = {"d_model": 4, "n_heads": 1, "max_steps": 3, "num_samples": 8, "random_state": 0}
    settings |= {"distribution": "normal", "num_epochs": None}
    if forecaster is TaylorformerForecaster:
        settings["strategy"] = "train"  # however short the series
    return forecaster(**{**settings, **changes})


# --- the arrangement of the data --------------------------------------------------------------------------


def panel(columns=("v", "u", "w"), seed=0, n_more=0):
    """Instances of unequal lengths and cutoffs."""
    parts = {}
    for number, (key, n) in enumerate({"b": 30, "c": 41, "a": 30}.items()):
        rng = np.random.default_rng([seed, number])
        index = pd.RangeIndex(3 * number, 3 * number + n + n_more)
        values = 10 * (number + 1) + rng.normal(size=(len(index), len(columns)))
        parts[key] = pd.DataFrame(values, index, list(columns))
    return pd.concat(parts, names=["shop", "time"])


def shops(frame, order):
    return pd.concat([frame.loc[[key]] for key in order])


ARRANGEMENTS = {
    "instances": lambda frame, names: shops(frame, "cab"),
    "columns": lambda frame, names: frame[names[::-1]],
    "both": lambda frame, names: shops(frame, "acb")[[names[1], names[0], *names[2:]]],
}


@pytest.mark.parametrize("change", ARRANGEMENTS.values(), ids=ARRANGEMENTS)
@pytest.mark.parametrize("forecaster", FORECASTERS)
def test_the_arrangement_of_instances_and_columns_does_not_matter(forecaster, change):
    """Neither to training nor to the draws: not to their means only, but to every path."""
    y, X = panel(), panel(("x", "promotion"), seed=1, n_more=12)
    rows = X.index.isin(y.index)
    other_y, other_X = change(y, ["v", "u", "w"]), change(X, ["x", "promotion"])
    other_rows = other_X.index.isin(y.index)
    one = tiny(forecaster).fit(y, X=X[rows])
    other = tiny(forecaster).fit(other_y, X=other_X[other_rows])
    fh = [-2, 1, 12]
    paths = one.predict_proba(fh=fh, X=X, marginal=False).sample(8)
    permuted = other.predict_proba(fh=fh, X=other_X, marginal=False).sample(8)
    pd.testing.assert_frame_equal(permuted.loc[paths.index, paths.columns], paths, rtol=1e-6)
    forecast = other.predict(fh=fh, X=other_X)
    assert list(forecast.columns) == list(other_y.columns)
    assert list(forecast.index.get_level_values(0).unique()) == list(
        other_y.index.get_level_values(0).unique()
    )
    expected = one.predict(fh=fh, X=X)
    pd.testing.assert_frame_equal(forecast.loc[expected.index, expected.columns], expected, rtol=1e-6)


# --- rows without a value ---------------------------------------------------------------------------------

HOURS = pd.date_range("2020-01-01", periods=N, freq="h")
GRIDS = {
    "integers": (pd.RangeIndex(0, 2 * N, 2), pd.RangeIndex(0, 2 * N - 1)),
    "hours": (HOURS, pd.date_range(HOURS[0], HOURS[-1], freq="15min")),
    "hours with a zone": (
        HOURS.tz_localize("Europe/Berlin"),
        pd.date_range(HOURS[0], HOURS[-1], freq="30min", tz="Europe/Berlin"),
    ),
    "month starts": (
        pd.date_range("2000-01-01", periods=N, freq="QS"),
        pd.date_range("2000-01-01", periods=3 * N - 2, freq="MS"),
    ),
    "irregular": (HOURS.delete([3, 17, 18, 40]), pd.date_range(HOURS[0], HOURS[-1], freq="30min")),
}


@pytest.mark.parametrize(("index", "finer"), GRIDS.values(), ids=GRIDS)
@pytest.mark.parametrize("n_after", [0, 1])
def test_a_finer_grid_without_values_in_between_gives_the_same_forecast(index, finer, n_after):
    """Also if it goes on without values after the last observation."""
    wave = np.sin(np.arange(len(index)) * 2 * np.pi / 12) + 0.1 * np.random.default_rng(0).normal(
        size=len(index)
    )
    y = pd.Series(wave, index)
    more = finer if not n_after else finer.append(finer[-1:] + (finer[1] - finer[0]))
    on_finer = y.reindex(pd.RangeIndex(len(more)) if isinstance(finer, pd.RangeIndex) else more)
    step = (
        index[1] - index[0]
        if isinstance(index, pd.RangeIndex)
        else pd.tseries.frequencies.to_offset(pd.infer_freq(index[-10:]))
    )
    ahead = pd.Index([index[4], *(index[-1] + k * step for k in (1, 2, 20))])

    def forecast(data):
        return (
            tiny()
            .fit(data)
            .predict_quantiles(fh=ForecastingHorizon(ahead, is_relative=False), alpha=[0.1, 0.5])
        )

    pd.testing.assert_frame_equal(forecast(on_finer), forecast(y), rtol=1e-5, check_freq=False)


THIRD_HOURS = pd.date_range("2020-01-01", periods=120, freq="3h")
WEEKS = pd.date_range("2020-01-05", periods=120, freq="7D")
# The same steps: as they are, and counted by a smaller unit, with or without rows between them.
COUNTED = {
    "sparse integers": (pd.RangeIndex(120), pd.RangeIndex(0, 360, 3)),
    "integers between": (pd.RangeIndex(0, 360, 3), pd.RangeIndex(358)),
    "sparse periods": (WEEKS, WEEKS.to_period("D")),
    "periods between": (WEEKS.to_period("D"), pd.period_range(WEEKS[0], WEEKS[-1], freq="D")),
    "hours between": (THIRD_HOURS, pd.date_range(THIRD_HOURS[0], THIRD_HOURS[-1], freq="h")),
    "rows that are missing": (
        THIRD_HOURS.delete([20, 50, 51, 90, 95, 101]),
        pd.date_range(THIRD_HOURS[0], THIRD_HOURS[-1], freq="h"),
    ),
}


def counted(index, other, n_columns=1):
    """Frames of 110 steps and the stamps of nine further ones, on each of both indexes."""
    z = np.random.default_rng(5).normal(size=(len(index), n_columns + 1)).cumsum(0)
    z = z[:, :n_columns] + 2 * z[:, n_columns:]
    frames = [pd.DataFrame(z, index)]
    frames.append(frames[0].set_axis(other) if len(other) == len(index) else frames[0].reindex(other))
    for frame in frames:
        seen = frame.dropna().index
        yield (
            frame[frame.index <= seen[-11]],
            ForecastingHorizon(pd.Index(list(seen[-10:])), is_relative=False),
        )


@pytest.mark.parametrize(("index", "other"), COUNTED.values(), ids=COUNTED)
def test_weights_of_an_average_do_not_depend_on_the_unit_by_which_steps_are_counted(index, other):
    """Forecasts of the past were of steps of the index, and their origins were rows."""
    settings = {"strategy": "zero_shot", "distribution": "studentt", "time_features": None}
    fitted = [tiny(**settings).fit(y, fh=fh) for y, fh in counted(index, other)]
    assert fitted[0].horizon_ == fitted[1].horizon_ == 10
    weights = [(one._strategy.statistics, one._strategy.analogues) for one in fitted]
    assert weights[0][0] != 0.5
    np.testing.assert_allclose(weights[1], weights[0], rtol=1e-5)


@pytest.mark.parametrize(
    ("forecaster", "name"),
    [
        *((TaylorformerForecaster, name) for name in COUNTED),
        (LAMForecaster, "sparse integers"),
        (LAMForecaster, "sparse periods"),
    ],
)
def test_correlations_of_series_do_not_depend_on_the_unit_by_which_steps_are_counted(forecaster, name):
    """Forecasts of the past were of steps of the index, which LAM has no forecasts of."""
    factors = [
        tiny(forecaster, joint=True, time_features=None).fit(y, fh=fh)._copula[1].factors
        for y, fh in counted(*COUNTED[name], n_columns=2)
    ]
    found = [one @ one.T for one in factors]
    assert found[0][0, 1] != 0
    np.testing.assert_allclose(found[1], found[0], atol=1e-5)


@pytest.mark.parametrize(
    ("forecaster", "settings"),
    [(TaylorformerForecaster, {"strategy": "zero_shot", "distribution": "studentt"}), (LAMForecaster, {})],
)
def test_rows_before_the_first_value_say_nothing(forecaster, settings):
    """Origins in the last quarter of all rows weighed an average. Windows of LAM began before the series."""
    n, index = 160, pd.date_range("2024-01-01", periods=200, freq="h")
    y = pd.Series(np.sin(np.arange(n) / 4) + np.random.default_rng(0).normal(0, 0.3, n), index[-n:])
    late = [tiny(forecaster, **settings).fit(one, fh=range(1, 9)) for one in (y, y.reindex(index))]
    assert np.array_equal(*(one.predict_quantiles(alpha=[0.1, 0.5]) for one in late))


def test_steps_ahead_are_those_of_the_index_even_if_observations_are_sparser():
    fine = pd.date_range("2020-01-01", periods=4 * N, freq="15min")
    y = pd.Series(np.sin(np.arange(4 * N)), fine).where(np.arange(4 * N) % 4 == 0)
    forecast = tiny().fit(y).predict(fh=[1, 2, 5])
    assert list(forecast.index) == [fine[-1] + k * pd.Timedelta(minutes=15) for k in (1, 2, 5)]


# --- lost points ------------------------------------------------------------------------------------------


def rolling_hills(n=400):
    """A smooth random walk: what comes next follows from the slope of the last points."""
    shocks, y = np.random.default_rng(1).normal(size=n), np.zeros(n)
    for i in range(2, n):
        y[i] = 1.9 * y[i - 1] - 0.92 * y[i - 2] + shocks[i]
    return pd.Series(100 + y)


@pytest.mark.parametrize(("forecaster", "bound"), [(TaylorformerForecaster, 0.25), (LAMForecaster, 0.4)])
def test_losing_points_changes_the_forecast_little_and_makes_it_less_sure(forecaster, bound):
    """With 30 % of the points lost at random: changes in deviations of the series, means over two losses.

    Forecasts of the next three steps, and for the widths also one step ahead of 200 points of the past.
    """
    y, changes, ratios = rolling_hills(), [], []
    settings = {"d_model": 8, "n_heads": 2, "max_steps": 150, "lr": 1e-2, "num_samples": 20, "dropout": 0.0}
    settings |= {"context_length": 32, "seasonal_periods": None}

    def forecast(data):
        fitted, rows = tiny(forecaster, **settings).fit(data, fh=[1, 2, 3]), np.arange(200, len(y) + 3)
        return fitted.predict_quantiles(fh=ForecastingHorizon(rows, is_relative=False), alpha=[0.1, 0.5, 0.9])

    whole = forecast(y).to_numpy()
    for seed in range(2):
        kept = np.random.default_rng(seed).random(len(y)) > 0.3
        kept[-1] = True
        fewer = forecast(y.where(kept)).to_numpy()
        changes.append(np.sqrt(np.square((fewer - whole)[-3:, 1]).mean()) / y.std())
        ratios.append((fewer[:, 2] - fewer[:, 0]).mean() / (whole[:, 2] - whole[:, 0]).mean())
    assert np.mean(changes) < bound
    assert np.mean(ratios) > 1.1
