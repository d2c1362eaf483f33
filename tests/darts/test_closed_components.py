"""Where covariates or a season say that a series is closed, darts' forecasts are zero too."""

import numpy as np
import pandas as pd
import pytest
from darts import TimeSeries

from taylorformer_forecast.darts import LAMModel, TaylorformerModel

H, N = 14, 210
QUIET = {"pl_trainer_kwargs": {"accelerator": "cpu", "enable_progress_bar": False, "logger": False}}


def shop(seed=0):
    """Daily sales of a shop that is closed on Sundays and some other days, with promotions."""
    rng = np.random.default_rng(seed)
    index = pd.date_range("2023-01-02", periods=N + H, freq="D")
    is_open = ((index.dayofweek < 6) & (rng.random(N + H) > 0.06)).astype(float)
    X = pd.DataFrame({"open": is_open, "promotion": (rng.random(N + H) < 0.3).astype(float)}, index)
    X.iloc[N + 2, 0] = 0.0
    usual = 100 + 10 * np.sin(index.dayofweek.to_numpy()) + 30 * X["promotion"] + rng.normal(0, 4, N + H)
    y = pd.DataFrame({"sales": usual * X["open"]}, index)
    return TimeSeries.from_dataframe(y), TimeSeries.from_dataframe(X)


def model_of(strategy="auto", cls=TaylorformerModel, **options):
    if cls is TaylorformerModel:
        options = {"strategy": strategy, **options}
    return cls(input_chunk_length=35, output_chunk_length=H, n_epochs=1, random_state=0, **options, **QUIET)


def closed_in(X):
    return X["open"].values()[:, 0] == 0


@pytest.mark.parametrize(
    ("cls", "strategy"),
    [(TaylorformerModel, own) for own in ("auto", "averaged", "pretrained", "train")] + [(LAMModel, None)],
)
def test_components_are_zero_where_a_code_closes_and_only_there(cls, strategy):
    y, X = shop()
    model = model_of(strategy, cls).fit(y[:N], future_covariates=X, verbose=False)
    closed = closed_in(X[N:])
    paths = model.predict(H, num_samples=50, future_covariates=X).all_values()[:, 0]
    assert (paths[closed] == 0).all()
    assert (np.median(paths[~closed], 1) > 30).all()
    parameters = model.predict(H, predict_likelihood_parameters=True, future_covariates=X).values()
    assert np.isfinite(parameters).all()
    assert (np.abs(parameters[closed, :2]) < 1e-6).all()
    assert (parameters[:, 1] > 0).all()


def test_closed_days_of_the_past_count_as_missing_in_training():
    y, X = shop()
    closed = closed_in(X)
    hidden = y.with_values(np.where(closed[:, None, None], np.nan, y.all_values()))
    found = []
    for series in (y, hidden):
        model = model_of("train").fit(series[:N], future_covariates=X, verbose=False)
        found.append(model.predict(H, num_samples=50, future_covariates=X).mean(axis=2).values()[:, 0])
    np.testing.assert_allclose(*(own[~closed[N:]] for own in found), rtol=0.05)


@pytest.mark.parametrize("strategy", ["auto", "averaged", "train"])
def test_a_shop_that_opens_again_is_forecast_from_before_or_not_at_all(strategy):
    y, X = shop()
    shut = np.arange(N + H) >= N - 50
    shut &= np.arange(N + H) < N
    X = X.with_values(np.where(shut[:, None, None] & [[[1], [0]]], 0.0, X.all_values()))
    y = y.with_values(np.where(shut[:, None, None], 0.0, y.all_values()))
    model = model_of(strategy).fit(y[:N], future_covariates=X, verbose=False)
    usual = ~closed_in(X[N:])
    if strategy == "train":  # its input chunk of 35 days shows nothing
        with pytest.warns(UserWarning, match="closed at all times from which it is forecast"):
            found = model.predict(H, num_samples=20, future_covariates=X).all_values()[:, 0]
        assert np.isnan(found).all()
    else:
        found = model.predict(H, num_samples=20, future_covariates=X).all_values()[:, 0]
        assert (np.median(found[usual], 1) > 80).all()


def test_series_are_closed_by_their_own_flags_in_backtests_and_after_saving(tmp_path):
    series, covariates = zip(*(shop(seed) for seed in range(2)), strict=True)
    model = model_of().fit([y[:N] for y in series], future_covariates=covariates, verbose=False)
    path = str(tmp_path / "model.pt")
    model.save(path)
    loaded = TaylorformerModel.load(path)
    options = {"num_samples": 20, "future_covariates": covariates, "random_state": 1}
    forecasts = model.predict(H, [y[:N] for y in series], **options)
    again = loaded.predict(H, [y[:N] for y in series], **options)
    backtest = model.historical_forecasts(
        list(series),
        future_covariates=covariates,
        start=N - 20,
        retrain=False,
        forecast_horizon=1,
        num_samples=20,
    )
    for found in (forecasts, again, backtest):
        for one, X in zip(found, covariates, strict=True):
            closed = closed_in(X.slice_intersect(one))
            assert closed.any()
            assert (one.all_values()[closed] == 0).all()
            assert (np.median(one.all_values()[~closed], 2) > 30).all()
    assert forecasts == again


@pytest.mark.parametrize("strategy", ["auto", "averaged"])
def test_hours_that_are_always_closed_get_nothing_from_covariates(strategy):
    rng = np.random.default_rng(0)
    index = pd.date_range("2024-01-01", periods=24 * 42, freq="h")
    is_open = (index.hour >= 8) & (index.hour < 20)
    warm = rng.normal(0, 1, len(index)).cumsum() / 8 + rng.normal(0, 1, len(index))
    calls = rng.poisson(np.where(is_open, 60 + 6 * warm, 0).clip(0)).astype(float)
    later = warm + (np.arange(len(index)) >= len(index) - 48)
    y, X, warmer_X = (TimeSeries.from_times_and_values(index, values) for values in (calls, warm, later))
    model = model_of(strategy).fit(y[:-48], future_covariates=X, verbose=False)
    options = {"num_samples": 50, "random_state": 1}
    usual, warmer = (model.predict(48, future_covariates=given, **options) for given in (X, warmer_X))
    closed = ~is_open[-48:]
    assert (warmer.all_values()[closed] == 0).all()
    more = (warmer.mean(axis=2) - usual.mean(axis=2)).values()[~closed]
    assert more.mean() == pytest.approx(6, abs=1)
