"""Updates, backtests and pipelines: nothing of the future leaks in, and every backend gives the same."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.preprocessing import StandardScaler
from sktime.forecasting.base import ForecastingHorizon
from sktime.forecasting.compose import ForecastingPipeline, TransformedTargetForecaster
from sktime.forecasting.model_evaluation import evaluate
from sktime.forecasting.model_selection import ForecastingGridSearchCV
from sktime.performance_metrics.forecasting import MeanAbsoluteError
from sktime.performance_metrics.forecasting.probabilistic import CRPS, LogLoss, PinballLoss
from sktime.split import ExpandingGreedySplitter, ExpandingWindowSplitter, SlidingWindowSplitter
from sktime.transformations.adapt import TabularToSeriesAdaptor
from sktime.transformations.boxcox import LogTransformer
from sktime.transformations.detrend import Detrender

from taylorformer_forecast.sktime import TaylorformerForecaster

N = 60
CALENDAR = pd.period_range("2000-01", periods=N, freq="M")


def tiny(**changes):
    settings = {"d_model": 4, "n_heads": 1, "max_steps": 2, "num_samples": 8, "random_state": 0}
    settings |= {"distribution": "normal", "num_epochs": None}
    return TaylorformerForecaster(**{"strategy": "train", **settings, **changes})


@pytest.fixture
def y():
    rng = np.random.default_rng(0)
    return pd.Series(10 + np.sin(np.arange(N) / 2) + 0.3 * rng.normal(size=N), CALENDAR, name="sales")


@pytest.fixture
def X():
    return pd.DataFrame({"price": np.random.default_rng(1).normal(size=N)}, CALENDAR)


def weights(forecaster):
    return np.concatenate([p.detach().numpy().ravel() for p in forecaster.network_.parameters()])


# --- update -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("update_params", [True, False])
@pytest.mark.parametrize("update_steps", [0, 3])
def test_an_update_always_moves_the_context_and_trains_if_both_say_so(y, update_steps, update_params):
    forecaster = tiny(update_steps=update_steps).fit(y.iloc[:50])
    before = weights(forecaster)
    old = forecaster.predict(fh=[11])
    forecaster.update(y.iloc[50:], update_params=update_params)
    assert forecaster.cutoff[0] == y.index[-1]
    assert (weights(forecaster) == before).all() == (update_steps == 0 or not update_params)
    new = forecaster.predict(fh=[1])
    assert new.index.equals(old.index)
    assert new.iloc[0] != old.iloc[0]


def test_the_summary_after_an_update_is_of_its_training(y):
    forecaster = tiny(update_steps=3).fit(y.iloc[:50])
    forecaster._seconds = 1e9
    forecaster.update(y.iloc[50:])
    assert forecaster.training_["steps"] == 3
    assert forecaster._seconds < 1e6


def test_an_update_that_trains_nothing_leaves_the_seconds_of_the_fit(y):
    forecaster = tiny(update_steps=3, strategy="corrected", distribution="studentt").fit(y.iloc[:50])
    forecaster._seconds = 1e9
    assert forecaster.update(y.iloc[50:])._seconds == 1e9


def test_updating_the_context_bit_by_bit_is_updating_it_at_once(y):
    at_once = tiny().fit(y.iloc[:50]).update(y.iloc[50:])
    in_parts = tiny().fit(y.iloc[:50])
    for start in range(50, 60):
        in_parts.update(y.iloc[start : start + 1])
    pd.testing.assert_series_equal(in_parts.predict(fh=[-3, 1, 20]), at_once.predict(fh=[-3, 1, 20]))


def test_values_that_come_again_replace_the_old_ones(y):
    revised = y.iloc[45:] + 1.0
    overlapping = tiny().fit(y.iloc[:50]).update(revised)
    apart = tiny().fit(y.iloc[:45]).update(revised)
    whole = pd.concat([y.iloc[:45], revised])
    assert overlapping._cur_y["sales"].equals(whole)
    assert apart._cur_y["sales"].equals(whole)


def test_an_update_may_leave_a_gap_or_bring_missing_values(y):
    gap = tiny().fit(y.iloc[:40]).update(y.iloc[50:])
    missing = tiny().fit(y.iloc[:40]).update(y.where((np.arange(N) < 40) | (np.arange(N) >= 50)).iloc[40:])
    forecast = gap.predict(fh=[1, 2])
    pd.testing.assert_series_equal(forecast, missing.predict(fh=[1, 2]), rtol=1e-5)
    assert np.isfinite(tiny().fit(y.iloc[:40]).update(np.nan * y.iloc[40:]).predict(fh=[1])).all()


@pytest.mark.parametrize("name", [None, "fitted"])
@pytest.mark.parametrize("kind", [pd.Series, pd.DataFrame])
def test_a_single_column_is_updated_whatever_its_name_and_keeps_that_of_the_fit(y, name, kind):
    expected = tiny().fit(y.iloc[:50]).update(y.iloc[50:]).predict(fh=[1, 2]).rename(name)
    for other in (None, "other"):
        new = y.iloc[50:].rename(other)
        forecaster = tiny().fit(y.iloc[:50].rename(name))
        forecaster.update(new if kind is pd.Series else new.to_frame())
        forecast = forecaster.predict(fh=[1, 2])
        if kind is pd.Series:
            pd.testing.assert_series_equal(forecast, expected)
        else:
            pd.testing.assert_frame_equal(forecast, expected.to_frame())
        label = 0 if name is None else name
        assert forecaster.predict_quantiles(fh=[1]).columns[0][0] == label
        assert forecaster.predict_interval(fh=[1]).columns[0][0] == label
        assert forecaster.predict_var(fh=[1]).columns.tolist() == [label]
        assert forecaster.predict_proba(fh=[1]).columns.tolist() == [label]


def test_updates_are_reproducible(y):
    one, other = (tiny(update_steps=3).fit(y.iloc[:50]).update(y.iloc[50:]).predict(fh=[1]) for _ in range(2))
    pd.testing.assert_series_equal(one, other)


def test_refitting_forgets(y):
    fresh = tiny().fit(y.iloc[:30]).predict(fh=[1])
    used = tiny(update_steps=2).fit(y).update(y.iloc[-5:])
    used.update_steps = 0
    pd.testing.assert_series_equal(used.fit(y.iloc[:30]).predict(fh=[1]), fresh)


# --- backtests --------------------------------------------------------------------------------------------

SPLITS = ExpandingWindowSplitter(initial_window=40, step_length=6, fh=[1, 2, 3])
SCORES = [MeanAbsoluteError(), CRPS(), LogLoss(), PinballLoss(alpha=[0.1, 0.9])]


@pytest.mark.parametrize("strategy", ["refit", "update", "no-update_params"])
def test_a_backtest_in_threads_equals_one_after_another(y, strategy):
    def scores(backend):
        table = evaluate(
            tiny(update_steps=1),
            SPLITS,
            y,
            strategy=strategy,
            scoring=SCORES,
            backend=backend,
            error_score="raise",
        )
        return table[[name for name in table if name.startswith("test_")]].astype(float)

    alone = scores(None)
    assert np.isfinite(alone.to_numpy()).all()
    pd.testing.assert_frame_equal(scores("threading"), alone)


def test_a_backtest_with_refits_equals_separate_fits(y):
    table = evaluate(tiny(), SPLITS, y, return_data=True, scoring=MeanAbsoluteError(), error_score="raise")
    for train, test, forecast in zip(table["y_train"], table["y_test"], table["y_pred"], strict=True):
        pd.testing.assert_series_equal(forecast, tiny().fit(train, fh=[1, 2, 3]).predict(), check_freq=False)
        assert forecast.index.equals(test.index)


def test_a_backtest_with_exogenous_columns(y, X):
    for strategy in ("refit", "update"):
        table = evaluate(
            tiny(update_steps=1), SPLITS, y, X=X, strategy=strategy, scoring=CRPS(), error_score="raise"
        )
        assert np.isfinite(table["test_CRPS"]).all()


@pytest.mark.parametrize("update_params", [True, False])
@pytest.mark.parametrize("splitter", [ExpandingWindowSplitter, SlidingWindowSplitter])
def test_update_predict_sees_nothing_of_the_future(y, splitter, update_params):
    def moving(data):
        # Of few draws, which a GPU makes other ones of.
        forecaster = tiny(update_steps=1, device="cpu").fit(data.iloc[:40], fh=[1, 2])
        first = "initial_window" if splitter is ExpandingWindowSplitter else "window_length"
        cv = splitter(fh=[1, 2], step_length=6, **{first: 5})
        return forecaster.update_predict(data.iloc[40:], cv=cv, update_params=update_params)

    changed = y.copy()
    changed.iloc[52:] += 100.0
    one, other = moving(y), moving(changed)
    known = one.columns <= y.index[51]
    assert 0 < known.sum() < len(known)
    pd.testing.assert_frame_equal(one.loc[:, known], other.loc[:, known])
    last = one.columns[-1]
    assert (one[last].dropna() - other[last].dropna()).abs().min() > 1


@pytest.mark.usefixtures("nothing_is_fitted")
def test_a_cutoff_that_is_moved_back_hides_what_was_known(y):
    def moving(data):
        forecaster = tiny(max_steps=0, seasonal_periods=None).fit(data, fh=[1, 2])
        cv = ExpandingWindowSplitter(fh=[1, 2], initial_window=5, step_length=3)
        return forecaster.update_predict(data.iloc[40:], cv=cv, update_params=False)

    changed = y.copy()
    changed.iloc[52:] += 100.0
    one, other = moving(y), moving(changed)
    known = one.columns <= y.index[51]
    assert 0 < known.sum() < len(known)
    pd.testing.assert_frame_equal(one.loc[:, known], other.loc[:, known])


def test_the_end_of_every_series_is_kept_for_validation(monkeypatch):
    seen = {}

    def record(net, train, validation, **_):
        seen.update(train=train, validation=validation)
        return {"steps": 0}

    monkeypatch.setattr("taylorformer_forecast.engine.fit_network.fit", record)
    rows = np.arange(60.0)
    forecaster = tiny(validation_split=0.25, seasonal_periods=None).fit(pd.Series(rows))

    def rows_of(batches):
        window, scale = batches.maker.windows(batches.starts, batches.last)
        values = scale.to_data(window.y)[window.observed].numpy()
        return set(np.round(values * rows.std() + rows.mean()).astype(int))

    assert rows_of(seen["train"]) == set(range(45))
    assert max(rows_of(seen["validation"])) == 59
    first_targets = seen["validation"].starts[:, 1]
    assert first_targets.min() == 45
    forecaster.update(pd.Series([60.0], index=[60]))
    assert rows_of(seen["train"]) == set(range(45))  # no steps: not trained again


def test_moving_the_cutoff_leaves_the_forecaster_where_it_was(y):
    forecaster = tiny(update_steps=1).fit(y.iloc[:40], fh=[1, 2])
    before = forecaster.predict()
    forecaster.update_predict(y.iloc[40:])
    pd.testing.assert_series_equal(forecaster.predict(), before)


def test_update_predict_with_exogenous_columns(y, X):
    forecaster = tiny(update_steps=1).fit(y.iloc[:40], X=X.iloc[:40], fh=[1])
    assert np.isfinite(forecaster.update_predict(y.iloc[40:], X=X.iloc[40:])).all()


@pytest.mark.usefixtures("nothing_is_fitted")
def test_the_past_is_predicted_from_what_was_before(y):
    """One step ahead: the network is the same, only the scale of the whole series knows the future."""
    changed = y.copy()
    changed.iloc[-1] = 8.5
    untrained = tiny(max_steps=0, seasonal_periods=None)
    one, other = (untrained.fit(data).predict(fh=range(-20, 1)) for data in (y, changed))
    np.testing.assert_allclose(one, other, atol=0.02)


# --- irregular times --------------------------------------------------------------------------------------

STAMPS = pd.Timestamp("2020-01-01") + pd.to_timedelta(
    np.random.default_rng(3).integers(3000, 200_000, N).cumsum(), unit="s"
)
IRREGULAR = {
    "dates": STAMPS,
    "dates with a zone": STAMPS.tz_localize("UTC"),
    "integers": pd.Index(np.random.default_rng(3).integers(1, 9, N).cumsum()),
    "periods": CALENDAR.union(pd.period_range("2005-01", periods=40, freq="M"))[
        np.sort(np.random.default_rng(3).choice(100, N, replace=False))
    ],
}


@pytest.fixture(params=IRREGULAR.values(), ids=IRREGULAR)
def uneven(request):
    return pd.Series(10 + np.sin(np.arange(N) / 2), request.param, name="sales")


@pytest.mark.parametrize("strategy", ["refit", "update", "no-update_params"])
def test_irregular_times_are_evaluated_at_the_stamps_that_come(uneven, strategy):
    """By a splitter without an fh of its own: integers are steps, and the stamps that come are not."""
    cv = ExpandingGreedySplitter(test_size=4, folds=2)
    cv.fh = None
    table = evaluate(
        tiny(update_steps=1),
        cv,
        uneven,
        strategy=strategy,
        scoring=[MeanAbsoluteError(), CRPS()],
        return_data=True,
        error_score="raise",
    )
    for start, forecast in zip((52, 56), table["y_pred"], strict=True):
        assert list(forecast.index) == list(uneven.index[start : start + 4])
    assert np.isfinite(table[["test_MeanAbsoluteError", "test_CRPS"]].to_numpy(dtype=float)).all()


@pytest.mark.parametrize("update_steps", [0, 1])
def test_irregular_times_are_backtested_by_updates(uneven, update_steps):
    """And without training by updates, every forecast is that of a forecaster that saw all at once."""
    forecaster = tiny(update_steps=update_steps).fit(uneven.iloc[:40])
    for start in (40, 46):
        later = ForecastingHorizon(uneven.index[start + 6 : start + 8], is_relative=False)
        moved = forecaster.update_predict_single(y=uneven.iloc[start : start + 6], fh=later)
        assert list(moved.index) == list(uneven.index[start + 6 : start + 8])
        assert np.isfinite(np.ravel(moved)).all()
    if update_steps == 0:
        straight = tiny().fit(uneven.iloc[:40]).update(uneven.iloc[40:52]).predict(fh=later)
        np.testing.assert_allclose(np.ravel(moved), straight, rtol=1e-6)


@pytest.mark.parametrize("update_params", [True, False])
def test_update_predict_on_irregular_times_sees_nothing_of_the_future(uneven, update_params):
    def moving(data):
        forecaster = tiny(update_steps=1).fit(data.iloc[:40], fh=[1, 2])
        cv = ExpandingWindowSplitter(fh=[1, 2], initial_window=5, step_length=6)
        return forecaster.update_predict(data.iloc[40:], cv=cv, update_params=update_params)

    changed = uneven.copy()
    changed.iloc[52:] += 100.0
    one, other = moving(uneven), moving(changed)
    cutoffs = one.columns.get_level_values(0)
    known = cutoffs <= uneven.index[51]
    assert 0 < known.sum() < len(known)
    pd.testing.assert_frame_equal(one.loc[:, known], other.loc[:, known])
    last = one.columns[-1]
    assert (one[last].dropna() - other[last].dropna()).abs().min() > 10


def test_on_irregular_times_nothing_later_than_the_cutoff_is_seen(uneven):
    """The cutoff is moved back by hand, as sktime's own backtests move it."""
    changed = uneven.copy()
    changed.iloc[50:] += 100.0
    settings = {"max_steps": 0, "seasonal_periods": None, "time_features": None, "context_length": 10}
    forecasts = []
    for data in (uneven, changed):
        forecaster = tiny(**settings).fit(uneven.iloc[:40]).update(data.iloc[40:], update_params=False)
        forecaster._set_cutoff(uneven.index[49:50])
        later = ForecastingHorizon(uneven.index[50:53], is_relative=False)
        forecasts.append(forecaster.predict(fh=later))
    pd.testing.assert_series_equal(*forecasts)


# --- pipelines --------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "transformer", [Detrender(), LogTransformer(), TabularToSeriesAdaptor(StandardScaler())]
)
def test_pipelines_of_the_target(y, transformer):
    pipeline = TransformedTargetForecaster([("transform", transformer), ("forecast", tiny())]).fit(y)
    for method in ("predict", "predict_interval", "predict_quantiles", "predict_var"):
        forecast = getattr(pipeline, method)(fh=[1, 2])
        assert forecast.index.equals(pd.period_range("2005-01", periods=2, freq="M"))
        assert np.isfinite(forecast.to_numpy()).all()
    quantiles = pipeline.predict_proba(fh=[1, 2]).quantile([0.1, 0.9])
    np.testing.assert_allclose(quantiles, pipeline.predict_quantiles(fh=[1, 2], alpha=[0.1, 0.9]), rtol=1e-6)


@pytest.mark.filterwarnings("ignore")
def test_pipelines_of_the_exogenous_columns(y, X):
    scale = TabularToSeriesAdaptor(StandardScaler())
    pipeline = ForecastingPipeline([("scale", scale), ("forecast", tiny())]).fit(y.iloc[:50], X=X.iloc[:50])
    forecast = pipeline.predict_proba(fh=[1, 2], X=X.iloc[50:]).mean()
    plain = tiny().fit(y.iloc[:50], X=X.iloc[:50]).predict(fh=[1, 2], X=X.iloc[50:])
    np.testing.assert_allclose(forecast["sales"], plain, rtol=1e-4)  # standardised twice


@pytest.mark.filterwarnings("ignore")
def test_a_grid_search_chooses_settings(y):
    search = ForecastingGridSearchCV(
        tiny(lr=1.0),  # training can only do harm
        cv=ExpandingWindowSplitter(initial_window=50, step_length=5, fh=[1, 2]),
        backend=None,
        param_grid={"max_steps": [20, 0], "num_samples": np.array([5])},
        scoring=CRPS(),
    ).fit(y)
    assert search.best_params_["max_steps"] == 0
    assert search.predict_interval(fh=[1, 2]).shape == (2, 2)
