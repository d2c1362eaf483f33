"""Exogenous columns: known ahead, with gaps, late, wrong or absent."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from taylorformer_forecast.sktime import ContiFormerForecaster, LAMForecaster, TaylorformerForecaster

N, AHEAD = 48, 12
CALENDAR = pd.period_range("2000-01", periods=N + AHEAD, freq="M")


def tiny(forecaster=TaylorformerForecaster, **changes):
    settings = {"d_model": 4, "n_heads": 1, "max_steps": 1, "num_samples": 8, "random_state": 0}
    settings |= {"distribution": "normal", "num_epochs": None}
    if forecaster is TaylorformerForecaster:
        settings["strategy"] = "train"  # however short the series
    return forecaster(**{**settings, **changes})


FORECASTERS = [TaylorformerForecaster, LAMForecaster, ContiFormerForecaster]


@pytest.fixture
def y():
    return pd.Series(10 + np.random.default_rng(0).normal(size=N), CALENDAR[:N], name="sales")


@pytest.fixture
def X():
    values = np.random.default_rng(1).normal(size=(N + AHEAD, 2))
    return pd.DataFrame(values, CALENDAR, ["price", "promotion"])


@pytest.fixture(params=FORECASTERS)
def fitted(y, X, request):
    return tiny(request.param).fit(y, X=X.iloc[:N])


@pytest.mark.parametrize("forecaster", FORECASTERS)
def test_a_forecast_follows_the_exogenous_columns(forecaster):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"noise": rng.normal(size=180), "effect": rng.normal(size=180)})
    y = pd.Series(50 + 10 * X["effect"] + rng.normal(size=180), name="y")
    known, fh = slice(None, 150), range(1, 31)
    settings = {"d_model": 8, "n_heads": 2, "max_steps": 150, "num_samples": 20, "lr": 1e-2, "dropout": 0.0}
    with_X = tiny(forecaster, **settings).fit(y[known], X=X[known]).predict(fh=fh, X=X.iloc[150:])
    without = tiny(forecaster, **settings).fit(y[known]).predict(fh=fh)

    def error(forecast):
        return np.sqrt(((y.iloc[150:] - forecast) ** 2).mean())

    assert error(with_X) < 0.4 * y.std()
    assert error(with_X) < 0.5 * error(without)


def test_exogenous_columns_of_the_future_matter_and_those_of_the_stored_past_do_not(fitted, X):
    future = fitted.predict(fh=[-2, 1, 2], X=X.iloc[N:])
    pd.testing.assert_series_equal(fitted.predict(fh=[-2, 1, 2], X=X), future)
    revised = X.copy()
    revised.iloc[:N] *= 7
    pd.testing.assert_series_equal(fitted.predict(fh=[-2, 1, 2], X=revised), future)
    other = fitted.predict(fh=[-2, 1, 2], X=X.iloc[N:] + 1)
    assert other.iloc[0] == future.iloc[0]
    assert (other.iloc[1:] != future.iloc[1:]).all()


def test_predictions_in_sample_use_the_stored_columns(fitted, X, y):
    stored = fitted.predict(fh=range(1 - N, 1))
    pd.testing.assert_series_equal(fitted.predict(fh=range(1 - N, 1), X=3 * X), stored)
    pd.testing.assert_series_equal(fitted.predict_residuals(y, X=X.iloc[:N]), y - stored, check_names=False)


def test_columns_given_beyond_y_are_used_unless_newer_ones_come(y, X):
    forecaster = tiny().fit(y, X=X)
    stored = forecaster.predict(fh=[1, 2])
    pd.testing.assert_series_equal(forecaster.predict(fh=[1, 2], X=X.iloc[N:]), stored)
    assert not forecaster.predict(fh=[1, 2], X=X.iloc[N:] + 1).equals(stored)


def test_a_step_further_ahead_needs_the_columns_on_the_way(fitted, X):
    alone = fitted.predict(fh=[5], X=X.iloc[N : N + 5])
    np.testing.assert_allclose(alone, fitted.predict(fh=range(1, 6), X=X.iloc[N:]).iloc[-1:], rtol=1e-5)
    with pytest.raises(ValueError, match=r"X has no row for 2004-01 \(4 missing\): it must cover every step"):
        fitted.predict(fh=[5], X=X.iloc[[N + 4]])


@pytest.mark.parametrize("strategy", ["corrected", "pretrained", "train"])
def test_backtests_that_cut_the_columns_to_the_horizon_are_named(y, X, strategy):
    forecaster = TaylorformerForecaster(strategy=strategy, max_steps=1).fit(y, X=X.iloc[:N], fh=[1, 3, 5])
    with pytest.raises(ValueError, match=r"last of fh\. sktime backtests cut it to the steps of fh"):
        forecaster.predict(X=X.iloc[[N + 2, N + 4]])


@pytest.mark.parametrize("weight", [0.5, 0.01])
def test_a_network_that_was_left_to_the_data_is_left_out_where_columns_have_holes(weight):
    """Backtests with ``fh=[7]`` had no forecasts any more once a series had sixteen horizons."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.normal(10, 2, 170)}, pd.date_range("2024-01-01", periods=170))
    X["b"] = (rng.random(170) < 0.2) * 1.0
    y = 100 + 3 * X["a"] + 20 * X["b"] + rng.normal(0, 1, 170)
    settings = {"max_steps": 1, "d_model": 8, "random_state": 0}
    fitted = TaylorformerForecaster(**settings).fit(y[:150], X=X[:150], fh=[7])
    assert fitted.strategy_ == "averaged"
    fitted._strategy = fitted._strategy.weighed("auto", weight, fitted._strategy.analogues * (weight > 0.1))
    fitted._load_correction()
    with pytest.warns(
        UserWarning, match=r"network is left out.*no row for 2024-05-30 .*\(6 missing\)"
    ) as found:
        holes = fitted.predict_quantiles(X=X.iloc[[156]], alpha=[0.1, 0.5, 0.9])
    assert len(found) == 1
    whole = fitted.predict_quantiles(X=X.iloc[150:157], alpha=[0.1, 0.5, 0.9])
    assert not holes.equals(whole)
    if weight < 0.1:
        statistics = TaylorformerForecaster(**settings | {"strategy": "corrected"}).fit(
            y[:150], X=X[:150], fh=[7]
        )
        pd.testing.assert_frame_equal(
            holes, statistics.predict_quantiles(X=X.iloc[[156]], alpha=[0.1, 0.5, 0.9])
        )
    for strategy in ("averaged", "train"):
        asked = TaylorformerForecaster(**settings | {"strategy": strategy}).fit(y[:150], X=X[:150], fh=[7])
        with pytest.raises(ValueError, match=r"X has no row for 2024-05-30 .*\(6 missing\)"):
            asked.predict(X=X.iloc[[156]])


def test_all_predictive_methods_take_the_columns(fitted, X):
    future = X.iloc[N:]
    assert fitted.predict_interval(fh=[1, 2], X=future).shape == (2, 2)
    assert fitted.predict_quantiles(fh=[1, 2], X=future, alpha=[0.1]).shape == (2, 1)
    assert fitted.predict_var(fh=[1, 2], X=future, cov=True).shape == (2, 2)
    mean = fitted.predict_proba(fh=[1, 2], X=future).mean()["sales"]
    pd.testing.assert_series_equal(mean, fitted.predict(fh=[1, 2], X=future))


def test_missing_values_are_allowed_where_some_were_missing_in_training(y, X):
    gone = np.random.default_rng(2).random(X.shape) < 0.3
    gappy = X.mask(gone)
    forecaster = tiny().fit(y, X=gappy.iloc[:N])
    assert np.isfinite(forecaster.predict(fh=range(1, 13), X=gappy.iloc[N:])).all()
    assert np.isfinite(tiny().fit(y, X=X.iloc[:N].assign(price=np.nan)).predict(fh=[1], X=X.iloc[N:])).all()


def test_a_missing_value_is_not_the_mean_of_its_column(y, X):
    gappy = X.mask(np.random.default_rng(2).random(X.shape) < 0.3)
    forecaster = tiny(max_steps=20).fit(y, X=gappy.iloc[:N])
    means = gappy.iloc[:N].mean()
    missing, filled = (forecaster.predict(fh=[1], X=0 * X.iloc[N:] + level) for level in (np.nan, means))
    assert np.isfinite(missing).all()
    assert missing.iloc[0] != filled.iloc[0]


def test_missing_values_that_training_had_none_of_are_refused(fitted, y, X):
    before = fitted.predict(fh=[1], X=X.iloc[N:])
    gappy = X.copy()
    gappy.loc[X.index[[46, N + 2]], "price"] = np.nan
    message = "X column 'price' has no value for 2004-03 in predict, but it had no missing values in training"
    with pytest.raises(ValueError, match=message):
        fitted.predict(fh=[4], X=gappy.iloc[N:])
    pd.testing.assert_series_equal(fitted.predict(fh=[1], X=gappy.iloc[N:]), before)  # not on the way there
    with pytest.raises(ValueError, match="X column 'price' has no value for 2003-11 in update"):
        fitted.clone().fit(y.iloc[:40], X=X.iloc[:40]).update(y.iloc[40:], X=gappy.iloc[:N])


@pytest.mark.parametrize("level", [0.0, 3.0, 0.1, 1e10 / 3, 1e100])
def test_a_constant_column_does_no_harm_even_if_it_moves_later(y, X, level):
    forecaster = tiny().fit(y, X=X.iloc[:N].assign(price=level))
    for later in (level, 1.1 * level, level + 1):
        assert np.isfinite(forecaster.predict(fh=[1, 5], X=X.iloc[N:].assign(price=later))).all()
    steady = forecaster.predict(fh=[1], X=X.iloc[N:].assign(price=level)).iloc[0]
    assert steady == pytest.approx(y.mean(), abs=6 * y.std())


@pytest.mark.parametrize("factor", [1e3, 1e10, 1e30, 1e140])
def test_values_far_from_those_of_the_fit_give_a_finite_forecast(fitted, X, factor):
    assert np.isfinite(fitted.predict(fh=[1, 5], X=X.iloc[N:] * factor)).all()


def test_units_of_the_columns_do_not_matter(y, X, fitted):
    scaled = 1e5 * X - 1e7
    moved = fitted.clone().fit(y, X=scaled.iloc[:N]).predict(fh=[1, 5], X=scaled.iloc[N:])
    np.testing.assert_allclose(moved, fitted.predict(fh=[1, 5], X=X.iloc[N:]), rtol=1e-4)


def test_whole_numbers_truth_values_and_a_series_are_taken(y, X):
    X = X.assign(price=X["price"] > 0, promotion=(3 * X["promotion"]).astype(int))
    assert np.isfinite(tiny().fit(y, X=X.iloc[:N]).predict(fh=[1], X=X.iloc[N:])).all()
    one = X["promotion"]
    assert np.isfinite(tiny().fit(y, X=one.iloc[:N]).predict(fh=[1], X=one.iloc[N:])).all()


def test_columns_that_were_not_there_at_fit_are_ignored_with_a_warning(y, X):
    forecaster = tiny().fit(y)
    with pytest.warns(UserWarning, match="X is ignored: the forecaster was fitted without X"):
        ignored = forecaster.predict(fh=[1], X=X.iloc[N:])
    pd.testing.assert_series_equal(ignored, forecaster.predict(fh=[1]))


def test_irregular_dates_take_columns_at_every_stamp_that_is_passed():
    index = pd.Timestamp("2020-01-01") + pd.to_timedelta(
        np.arange(50) ** 2 % 7 + 10 * np.arange(50), unit="h"
    )
    X = pd.DataFrame({"x": np.arange(50.0)}, index)
    y = pd.Series(np.sin(np.arange(40.0)), index[:40])
    forecaster = tiny().fit(y, X=X.iloc[:40])
    on_the_way = X.reindex(
        X.index.union(forecaster._axis.between(index[39], index[45], y.index))
    ).interpolate()
    assert np.isfinite(forecaster.predict(fh=index[40:45], X=on_the_way)).all()


# --- columns that are known of the past only --------------------------------------------------------------


def driven(n=200, ahead=12):
    """A series that follows the column "lead" four steps later, and the column "promotion" at once."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(n + ahead, 2)), columns=["lead", "promotion"])
    for i in range(1, n + ahead):
        X.loc[i, "lead"] += 0.7 * X.loc[i - 1, "lead"]
    y = 50 + 7 * X["lead"].shift(4).fillna(0) + X["promotion"] + rng.normal(size=n + ahead)
    return y.rename("y"), X


@pytest.fixture(scope="module", params=FORECASTERS)
def led(request):
    """Fitted to the first 200 rows, with a leading column whose future is unknown."""
    y, X = driven()
    forecaster = tiny(request.param, past_only=("lead",), context_length=12, max_steps=5)
    return forecaster.fit(y.iloc[:200], X=X.iloc[:200], fh=[1, 2, 3, 4])


FUTURES = {
    "absent": lambda X: X[["promotion"]],
    "missing": lambda X: X.assign(lead=np.nan),
    "partly missing": lambda X: X.assign(lead=X["lead"].where(X.index < 203)),
    "known after all": lambda X: X,
    "arbitrary": lambda X: X.assign(lead=1e3),
    "in another order": lambda X: X[["promotion", "lead"]],
}


@pytest.mark.parametrize("future", FUTURES.values(), ids=FUTURES)
def test_the_future_of_a_past_only_column_is_neither_needed_nor_used(led, future):
    """Within the horizon and beyond, where paths are rolled, and in sample."""
    X, fh = driven()[1].iloc[200:], [-3, 0, *range(1, 13)]
    expected = led.predict_quantiles(fh=fh, X=X[["promotion"]], alpha=[0.1, 0.9])
    pd.testing.assert_frame_equal(led.predict_quantiles(fh=fh, X=future(X), alpha=[0.1, 0.9]), expected)
    longer = led.clone().fit(driven()[0].iloc[:200], X=driven()[1], fh=[1, 2, 3, 4])
    pd.testing.assert_frame_equal(longer.predict_quantiles(fh=fh, X=None, alpha=[0.1, 0.9]), expected)


def test_the_past_of_a_past_only_column_is_used(led):
    y, X = driven()
    other = led.clone().fit(y.iloc[:200], X=X.iloc[:200], fh=[1, 2, 3, 4])
    other._cur_X.loc[199, "lead"] += 3.0
    changed, before = (f.predict(fh=[-3, 1, 2], X=X.iloc[200:]) for f in (other, led))
    assert changed.iloc[0] == before.iloc[0]
    assert (changed.iloc[1:] != before.iloc[1:]).all()


@pytest.mark.parametrize("forecaster", FORECASTERS)
def test_a_forecast_follows_the_past_of_a_leading_column(forecaster):
    (y, X), fh = driven(900), [1, 2, 3, 4]
    settings = {"d_model": 16, "n_heads": 2, "max_steps": 400, "num_samples": 20, "lr": 1e-2, "dropout": 0.0}
    settings |= {"context_length": 16, "seasonal_periods": None, "batch_size": 32}
    led = tiny(forecaster, past_only="all", **settings).fit(y.iloc[:800], X=X.iloc[:800], fh=fh)
    errors = []
    for end in range(804, 900, 4):
        led.update(y.iloc[800:end], X=X.iloc[800:end], update_params=False)
        errors.append((led.predict() - y).dropna())
    # From its own past the series cannot be known better than to 0.87 deviations, over these four steps.
    assert pd.concat(errors).std() < 0.65 * y.std()


@pytest.mark.parametrize("forecaster", FORECASTERS)
def test_predict_needs_no_columns_if_all_are_past_only(y, X, forecaster):
    fitted = tiny(forecaster, past_only="all").fit(y, X=X.iloc[:N])
    named = tiny(forecaster, past_only=("price", "promotion")).fit(y, X=X.iloc[:N])
    for method in ("predict", "predict_interval", "predict_var"):
        forecast = getattr(fitted, method)(fh=[-1, 1, 15])
        assert np.isfinite(forecast.to_numpy()).all()
        np.testing.assert_array_equal(forecast, getattr(named, method)(fh=[-1, 1, 15]))
    fitted.update(fitted.predict(fh=[1]), X=X.iloc[N : N + 1])
    assert np.isfinite(fitted.predict(fh=[1])).all()


def test_past_only_columns_may_have_gaps_that_training_had_not(y, X):
    forecaster = tiny(past_only=("price",)).fit(y.iloc[:40], X=X.iloc[:40])
    forecaster.update(y.iloc[40:], X=X.iloc[40:N].assign(price=np.nan), update_params=False)
    assert np.isfinite(forecaster.predict(fh=[1, 2], X=X.iloc[N:])).all()


@pytest.mark.parametrize(
    ("settings", "columns", "message"),
    [
        ({"past_only": ("cost",)}, ["price"], r"past_only has 'cost', which is not a column of X: .*'price'"),
        ({"past_only": ("cost",)}, None, "past_only has 'cost', which is not a column of X"),
        ({"past_only": "price"}, ["price"], "past_only='price', but it must be None, 'all' or a tuple"),
    ],
)
def test_past_only_names_columns_of_X(y, X, settings, columns, message):
    with pytest.raises(ValueError, match=message):
        tiny(**settings).fit(y, X=None if columns is None else X[columns].iloc[:N])


def test_the_columns_known_ahead_are_still_needed(led):
    X = driven()[1].iloc[200:]
    with pytest.raises(ValueError, match=r"X has columns \['lead'\] in predict, but .* named in past_only"):
        led.predict(fh=[1], X=X[["lead"]])
    with pytest.raises(ValueError, match="X is needed in predict"):
        led.predict(fh=[1])
    with pytest.raises(ValueError, match=r"X has no row for 201 \(1 missing\)"):
        led.predict(fh=[2], X=X.iloc[:1])


# --- what is wrong is said, and nothing is changed --------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (
            lambda X: None,
            ValueError,
            r"X is needed in predict: .* fitted with X columns \['price', 'promotion'\]",
        ),
        (
            lambda X: X[["price"]],
            ValueError,
            r"X has columns \['price'\] in predict, but .* \['price', 'promotion'\]",
        ),
        (lambda X: X.rename(columns={"price": "cost"}), ValueError, r"X has columns \['cost', 'promotion'\]"),
        (lambda X: X.assign(more=1.0), ValueError, r"X has columns \['price', 'promotion', 'more'\]"),
        (lambda X: X.iloc[[0, 2]], ValueError, "X has no row for 2004-02 .1 missing."),
        (lambda X: X.iloc[:2], ValueError, "X has no row for 2004-03 .1 missing."),
        (
            lambda X: X.replace(X.iloc[0, 1], np.inf),
            ValueError,
            "X has infinite values in column 'promotion'",
        ),
        (lambda X: X * 1e200, ValueError, "X has values beyond 1e.150 in column 'price'"),
        (lambda X: X.assign(price="cheap"), TypeError, "does not support categorical"),
        (lambda X: X.set_index(X.index.to_timestamp()), TypeError, "index of X holds dates, but .* periods"),
        (lambda X: X.reset_index(drop=True), TypeError, "index of X holds integers, but .* periods"),
        (lambda X: pd.concat([X.iloc[:1], X]), ValueError, "X has duplicate time stamps: 2004-01"),
    ],
    ids=[
        *("absent", "column missing", "column renamed", "column too many", "row missing", "too short"),
        *("infinite", "too large", "words", "dates", "integers", "duplicates"),
    ],
)
def test_unfit_columns_are_refused_at_predict(fitted, X, change, error, message):
    before = fitted.predict(fh=[1, 2, 3], X=X.iloc[N:])
    with pytest.raises(error, match=message):
        fitted.predict(fh=[1, 2, 3], X=change(X.iloc[N:]))
    pd.testing.assert_series_equal(fitted.predict(fh=[1, 2, 3], X=X.iloc[N:]), before)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (lambda X: X.iloc[:-3], ValueError, "not contained"),
        (lambda X: X.shift(5, freq="M"), ValueError, "not contained"),
        (lambda X: X.replace(X.iloc[0, 0], np.inf), ValueError, "X has infinite values in column 'price'"),
        (lambda X: pd.concat([X.iloc[:1], X]), ValueError, "X has duplicate time stamps: 2000-01"),
        (
            lambda X: X.assign(price=pd.Categorical(["a", "b"] * 24)),
            TypeError,
            "does not support categorical",
        ),
    ],
    ids=["too short", "shifted", "infinite", "duplicates", "categories"],
)
def test_unfit_columns_are_refused_at_fit_and_an_earlier_fit_survives(fitted, y, X, change, error, message):
    before = fitted.predict(fh=[1, 2], X=X.iloc[N:])
    with pytest.raises(error, match=message):
        fitted.fit(y, X=change(X.iloc[:N]))
    pd.testing.assert_series_equal(fitted.predict(fh=[1, 2], X=X.iloc[N:]), before)


@pytest.mark.parametrize("update_steps", [0, 1])
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda X: None, "X is needed in update"),
        (lambda X: X[["price"]], r"X has columns \['price'\] in update"),
        (lambda X: X.iloc[1:], "not contained"),
        (lambda X: -X.replace(X.iloc[0, 0], np.inf), "X has infinite values in column 'price'"),
    ],
    ids=["absent", "column missing", "row missing", "infinite"],
)
def test_unfit_columns_are_refused_at_update(y, X, update_steps, change, message):
    forecaster = tiny(update_steps=update_steps).fit(y.iloc[:40], X=X.iloc[:40])
    before = forecaster.predict(fh=[1], X=X.iloc[40:])
    with pytest.raises(ValueError, match=message):
        forecaster.update(y.iloc[40:], X=change(X.iloc[40:N]))
    assert forecaster.cutoff[0] == y.index[39]
    pd.testing.assert_series_equal(forecaster.predict(fh=[1], X=X.iloc[40:]), before)


def test_an_update_brings_its_columns(y, X):
    forecaster = tiny().fit(y.iloc[:40], X=X.iloc[:40])
    forecaster.update(y.iloc[40:], X=X.iloc[40:N])
    assert forecaster.predict(fh=[1], X=X.iloc[N:]).index[0] == CALENDAR[N]
    with pytest.raises(ValueError, match="X has no row for 2004-01"):
        forecaster.predict(fh=[2], X=X.iloc[N + 1 :])
