"""Pictures show what was forecast, whatever the host."""

from __future__ import annotations

from itertools import pairwise

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from darts import TimeSeries

from taylorformer_forecast.plot import plot_explanation, plot_forecast
from taylorformer_forecast.sktime import TaylorformerForecaster

matplotlib.use("Agg")
N, H = 60, 6
VALUES = 10 + np.sin(np.arange(N)) + 0.2 * np.random.default_rng(0).normal(size=N)


@pytest.fixture(autouse=True)
def _close():
    yield
    plt.close("all")


def fitted(y, **settings):
    return TaylorformerForecaster(random_state=0, num_samples=20, **settings).fit(y, fh=range(1, H + 1))


def lines(axes):
    return {line.get_label(): line for line in axes.lines}


def check_bands(axes, quantile, coverage=(0.9, 0.5)):
    assert len(axes.collections) == len(coverage)
    for band, share in zip(axes.collections, coverage, strict=True):
        low, high = (np.ravel(quantile((1 + sign * share) / 2)) for sign in (-1, 1))
        drawn = band.get_paths()[0].vertices[:, 1]
        np.testing.assert_allclose([drawn.min(), drawn.max()], [low.min(), high.max()], rtol=1e-6)


@pytest.mark.parametrize(
    "index",
    [
        pd.RangeIndex(N),
        pd.period_range("2020-01", periods=N, freq="M"),
        pd.date_range("2020", periods=N, freq="D"),
    ],
)
def test_a_forecaster_of_sktime_is_drawn_with_its_quantiles_mean_and_paths(index):
    y = pd.Series(VALUES, index)
    forecaster = fitted(y)
    (axes,) = plot_forecast(y, forecaster, paths=3, truth=y.iloc[-5:], history=30).axes
    check_bands(axes, forecaster.predict_proba().quantile)
    drawn = lines(axes)
    np.testing.assert_allclose(drawn["mean"].get_ydata(), np.ravel(forecaster.predict()))
    np.testing.assert_allclose(drawn["history"].get_ydata(), VALUES[-30:])
    np.testing.assert_allclose(drawn["truth"].get_ydata(), VALUES[-5:])
    assert len(axes.lines) == 6
    paths = forecaster.predict_proba(marginal=False).sample(3)
    np.testing.assert_allclose(drawn["paths"].get_ydata(), np.ravel(paths.loc[0]))


def test_columns_and_instances_have_axes_of_their_own():
    y = pd.DataFrame({"a": VALUES, "b": 100 - VALUES})
    figure = plot_forecast(y, fitted(y).predict_proba(), coverage=(0.8,))
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["a", "b"]
    np.testing.assert_allclose(lines(figure.axes[1])["history"].get_ydata(), (100 - VALUES)[-24:])
    panel = pd.concat({"x": y[["a"]], "z": y[["a"]] + 50}, names=["shop", "day"])
    figure = plot_forecast(panel, fitted(panel))
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["x", "z"]
    assert lines(figure.axes[1])["mean"].get_ydata().min() > 40
    with pytest.raises(ValueError, match="2 columns, but ax is for one"):
        plot_forecast(panel, fitted(panel), ax=plt.gca())


def test_a_darts_series_is_drawn_with_its_samples():
    series = TimeSeries.from_times_and_values(pd.date_range("2020", periods=N, freq="D"), VALUES)
    samples = 10 + np.random.default_rng(0).normal(size=(H, 1, 50))
    forecast = TimeSeries.from_times_and_values(pd.date_range("2020-03-01", periods=H, freq="D"), samples)
    _, axes = plt.subplots()
    assert plot_forecast(series, forecast, paths=2, ax=axes) is axes.figure
    check_bands(axes, lambda q: np.quantile(samples, q, axis=2))
    np.testing.assert_allclose(lines(axes)["mean"].get_ydata(), samples.mean(axis=2)[:, 0])
    np.testing.assert_allclose(lines(axes)["paths"].get_ydata(), samples[:, 0, 0])


@pytest.mark.parametrize("freq", ["h", "D", "MS", "YS"])
def test_dates_of_narrow_axes_do_not_overlap(freq):
    series = TimeSeries.from_times_and_values(pd.date_range("1956", periods=N, freq=freq), VALUES)
    figure, row = plt.subplots(1, 3, figsize=(9, 3), layout="constrained")
    for history in (24, 36, 54):
        plot_forecast(series[:-H], series[-H:], ax=row[0], history=history)
        figure.canvas.draw()
        shown = [label.get_window_extent() for label in row[0].get_xticklabels() if label.get_text()]
        assert len(shown) > 2
        assert all(a.x1 < b.x0 for a, b in pairwise(sorted(shown, key=lambda box: box.x0)))
        row[0].clear()


def test_narrow_axes_keep_their_width_beside_each_other():
    figure, row = plt.subplots(1, 5, figsize=(11, 3), sharey=True, layout="constrained")
    for ax in row:
        plot_forecast(
            pd.Series(VALUES[:-H]), pd.Series(VALUES).iloc[-H:], ax=ax, truth=pd.Series(VALUES)[-H:]
        )
    figure.canvas.draw()
    assert all(ax.get_position().width > 0.12 for ax in row)


def test_points_are_drawn_without_bands():
    y = pd.Series(VALUES)
    series = TimeSeries.from_series(y)
    for history, points in ((y, pd.Series([1.0, 2.0], [N, N + 1])), (series, series[-2:])):
        (axes,) = plot_forecast(history, points).axes
        assert not axes.collections
        assert len(lines(axes)["forecast"].get_ydata()) == 2


def test_a_forecaster_of_points_is_drawn_without_bands():
    y = pd.Series(VALUES)
    forecaster = fitted(y, strategy="train", distribution="mse", max_steps=2)
    axes = plot_forecast(y, forecaster).axes[0]
    assert not axes.collections
    drawn = [line.get_ydata() for line in axes.lines if len(line.get_ydata()) >= H]
    assert any(np.allclose(one[-H:], forecaster.predict().to_numpy().ravel()) for one in drawn)


def test_parts_of_a_forecast_are_drawn_with_the_size_of_every_change():
    y = pd.DataFrame({"a": VALUES}, pd.period_range("2020-01", periods=N, freq="M"))
    parts = fitted(y).explain(lags=6)
    over_time, sizes = plot_explanation(parts).axes
    np.testing.assert_allclose(lines(over_time)["baseline"].get_ydata(), np.ravel(parts["baseline"]))
    names = [label.get_text() for label in sizes.get_yticklabels()]
    assert names == list(parts.columns.get_level_values(0))[2:]
    np.testing.assert_allclose([bar.get_width() for bar in sizes.patches], parts[names].abs().mean())
    both = pd.concat([y, 2 * y.set_axis(["b"], axis=1)], axis=1)
    with pytest.raises(ValueError, match="choose one series"):
        plot_explanation(fitted(both).explain())


def test_parts_of_a_darts_forecast_are_drawn_as_those_of_sktime():
    times = pd.date_range("2020", periods=H, freq="D")
    parts = {
        name: TimeSeries.from_times_and_values(times, np.full((H, 2), value), columns=["a", "b"])
        for name, value in {"forecast": 5.0, "baseline": 7.0, "network": -2.0, "past: rain": 0.5}.items()
    }
    with pytest.raises(ValueError, match="choose one series"):
        plot_explanation(parts)
    over_time, sizes = plot_explanation({part: series["a"] for part, series in parts.items()}).axes
    assert (lines(over_time)["baseline"].get_ydata() == 7).all()
    assert [label.get_text() for label in sizes.get_yticklabels()] == ["network", "past: rain"]
    assert [bar.get_width() for bar in sizes.patches] == [2, 0.5]


WRONG = {
    "paths": ({"paths": -1}, ValueError, "^paths=-1, but it must be a whole number, at least 0$"),
    "history": ({"history": 0}, ValueError, "^history=0, but it must be None or a whole number"),
    "coverage": ({"coverage": [50, 90]}, ValueError, "^coverage=50, but it must be a number between 0 and"),
    "no coverage": ({"coverage": None}, ValueError, "^coverage=None, but it must be a number between 0 and"),
    "y": ({"y": VALUES}, TypeError, "^y is a ndarray; a Series or DataFrame of pandas or a TimeSeries"),
    "forecast": ({"forecast": VALUES}, TypeError, "^forecast is a ndarray; a Series or DataFrame of pan"),
    "truth": ({"truth": list(VALUES)}, TypeError, "^truth is a list; a Series or DataFrame of pandas or"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_cannot_be_drawn_is_refused_by_name(name):
    changes, error, message = WRONG[name]
    y = pd.Series(VALUES)
    with pytest.raises(error, match=message):
        plot_forecast(**{"y": y, "forecast": y, **changes})


def test_every_band_that_is_asked_for_is_drawn_the_inner_ones_darker():
    y = pd.Series(VALUES)
    figure = plot_forecast(y, fitted(y), coverage=(0.2, 0.5, 0.8, 0.95))
    strengths = [band.get_alpha() for band in figure.axes[0].collections]
    assert len(strengths) == 4
    assert strengths == sorted(set(strengths))


def test_one_band_may_be_asked_for_by_a_number():
    y = pd.Series(VALUES)
    forecaster = fitted(y)
    (axes,) = plot_forecast(y, forecaster, coverage=0.8).axes
    check_bands(axes, forecaster.predict_proba().ppf, (0.8,))


def test_columns_of_the_truth_go_by_their_places_where_names_differ():
    y = pd.DataFrame({"a": VALUES, "b": 2 * VALUES})
    truth = pd.DataFrame({"x": [1.0, 2.0], "z": [3.0, 4.0]}, index=[N, N + 1])
    figure = plot_forecast(y, fitted(y), truth=truth)
    assert [lines(axes)["truth"].get_ydata().tolist() for axes in figure.axes] == [[1.0, 2.0], [3.0, 4.0]]
