"""What darts asks of a torch model, over all models of the package."""

from __future__ import annotations

from dataclasses import replace

import darts
import numpy as np
import pandas as pd
import pytest
import torch
import torchmetrics
from all_models import OTHERS, having, models, trained
from darts.models import NaiveEnsembleModel, NaiveSeasonal, RegressionEnsembleModel
from darts.utils.likelihood_models import torch as likelihoods
from darts.utils.timeseries_generation import gaussian_timeseries, linear_timeseries, sine_timeseries
from quiet import QUIET, finite

from taylorformer_forecast.darts import ContiFormerModel, LAMModel, StudentTLikelihood, TaylorformerModel

MODELS, REST = models(), models(OTHERS)
N = 60

each_model = pytest.mark.parametrize("model_class", MODELS)


def make(model_class, **params):
    """Return a tiny model."""
    usual = {"input_chunk_length": 12, "output_chunk_length": 6, "n_epochs": 1, "pl_trainer_kwargs": QUIET}
    return model_class(**trained(model_class, **usual | params))


@pytest.fixture(scope="module")
def series():
    """Return a noisy season of one component."""
    noise = gaussian_timeseries(length=N, std=0.1)
    return (sine_timeseries(length=N, value_frequency=1 / 12) + noise + 3.0).astype("float32")


@pytest.fixture(scope="module")
def wide(series):
    """Return two components of very different size."""
    return series.stack((series * 100.0 + 500.0).astype("float32"))


@pytest.fixture(scope="module")
def covariates():
    """Return a covariate that reaches beyond the series."""
    return linear_timeseries(length=2 * N, end_value=1.0).astype("float32")


# --- fit and predict --------------------------------------------------------------------------------------


@each_model
@pytest.mark.parametrize("n", [1, 6, 15])
def test_forecasts_go_on_where_the_series_ends(model_class, series, n):
    forecast = make(model_class).fit(series).predict(n, num_samples=3)
    assert forecast.all_values().shape == (n, 1, 3)
    assert forecast.start_time() == series.end_time() + series.freq
    assert finite(forecast)


@each_model
def test_components_are_forecast_in_their_own_units(model_class, wide):
    forecast = make(model_class).fit(wide).predict(8, num_samples=20)
    assert list(forecast.components) == list(wide.components)
    level = np.median(forecast.all_values(), axis=(0, 2))
    assert 50 < level[1] / level[0] < 1000


@each_model
def test_one_model_serves_many_series(model_class, series, wide):
    other = wide[wide.components[1]]
    first, second = make(model_class).fit([series, other]).predict(5, series=[series, other], num_samples=9)
    assert second.all_values().mean() > 20 * first.all_values().mean()


@each_model
def test_a_seed_makes_forecasts_repeatable(model_class, series):
    first, second = (make(model_class).fit(series).predict(5, num_samples=4) for _ in range(2))
    assert first == second
    other = make(model_class, random_state=1).fit(series).predict(5, num_samples=4)
    assert first != other


@each_model
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_forecasts_have_the_type_of_the_series(model_class, series, dtype):
    forecast = make(model_class).fit(series.astype(dtype)).predict(3)
    assert forecast.dtype == ("float32" if dtype == "float16" else dtype)  # darts computes 16 bits so
    assert finite(forecast)


@each_model
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_precision_of_the_trainer_is_taken(model_class, series, dtype):
    trainer = {**QUIET, "precision": "64-true"}
    model = make(model_class, pl_trainer_kwargs=trainer).fit(series.astype(dtype), val_series=series[20:])
    assert model.model.dtype == torch.float64
    assert finite(model.predict(8, num_samples=2))


@each_model
def test_integer_indexes_have_no_calendar(model_class, series):
    plain = darts.TimeSeries.from_values(series.values())
    assert finite(make(model_class).fit(plain).predict(8, num_samples=2))


@each_model
def test_a_validation_series_and_metrics_are_used(model_class, series):
    metrics = torchmetrics.MetricCollection([torchmetrics.MeanAbsoluteError()])
    model = make(model_class, torch_metrics=metrics)
    model.fit(series[:40], val_series=series[22:])
    logged = model.trainer.callback_metrics
    assert {"val_loss", "val_MeanAbsoluteError", "train_loss"} <= set(logged)


@each_model
def test_sample_weights_change_the_fit(model_class, series):
    plain = make(model_class).fit(series).predict(3)
    assert make(model_class).fit(series, sample_weight="exponential").predict(3) != plain


@pytest.mark.parametrize("model_class", [TaylorformerModel, LAMModel])
@pytest.mark.parametrize("least", [0.0, 0.02])
def test_sample_weights_enter_what_is_fitted_without_training(model_class, least):
    """Of two seasons the one that has the weights is forecast well."""
    t, weight = np.arange(160), np.full(160, least)
    halves = [np.sin(2 * np.pi * t / period) for period in (7, 5)]
    noise = 0.2 * np.random.default_rng(0).normal(size=160)
    values = np.r_[halves[0][:80], halves[1][:80]] + noise
    series = darts.TimeSeries.from_values(values)
    errors = []
    for part in (slice(80), slice(80, 160)):
        weight[:], weight[part] = least, 1.0
        model = make(model_class, n_epochs=0, seasonal_periods=None).fit(
            series, sample_weight=series.with_values(weight[:, None].copy())
        )
        first = darts.TimeSeries.from_values(halves[0][:30])
        forecast = model.predict(6, series=first, num_samples=200).all_values().mean((1, 2))
        errors.append(abs(forecast - halves[0][30:36]).mean())
    assert 2 * errors[0] < errors[1]


@each_model
def test_a_shifted_output_chunk_starts_later(model_class, series):
    forecast = make(model_class, output_chunk_shift=3).fit(series).predict(6, num_samples=2)
    assert forecast.start_time() == series.end_time() + 4 * series.freq


@each_model
def test_a_range_of_input_lengths_takes_short_series(model_class, series):
    model = make(model_class, input_chunk_length=(4, 12)).fit([series, series[:11]])
    assert finite(model.predict(7, series=series[:5], num_samples=2))
    with pytest.raises(ValueError, match="too short"):
        model.predict(7, series=series[:3])


@each_model
def test_roll_size_keeps_the_length(model_class, series):
    assert len(make(model_class).fit(series).predict(17, roll_size=4, num_samples=2)) == 17


@each_model
def test_without_a_likelihood_forecasts_are_points(model_class, series):
    model = make(model_class, loss_fn=torch.nn.L1Loss()).fit(series)
    assert model.likelihood is None
    assert model.predict(9) == model.predict(9)


@each_model
def test_monte_carlo_dropout_spreads_forecasts(model_class, series):
    model = make(model_class, loss_fn=torch.nn.MSELoss(), dropout=0.3).fit(series)
    spread = model.predict(9, num_samples=8, mc_dropout=True).all_values().std(2)
    assert (spread > 0).all()
    assert (model.predict(9, num_samples=8).all_values().std(2) < 1e-5).all()
    assert model.model.net.calibration.inflation == 1.0  # points have no width that could be too small


@each_model
def test_a_darts_optimizer_and_scheduler_are_taken(model_class, series):
    model = make(
        model_class,
        optimizer_cls=torch.optim.SGD,
        optimizer_kwargs={"lr": 1e-3},
        lr_scheduler_cls=torch.optim.lr_scheduler.ExponentialLR,
        lr_scheduler_kwargs={"gamma": 0.9},
    ).fit(series)
    assert isinstance(model.trainer.optimizers[0], torch.optim.SGD)
    default = make(model_class).fit(series)
    assert isinstance(default.trainer.optimizers[0], torch.optim.AdamW)


@each_model
def test_the_training_length_follows_the_data_unless_given(model_class, series, monkeypatch):
    short = series[:24]  # seven windows
    module = model_class._module_class
    assert make(model_class, n_epochs=None).fit(short).epochs_trained == module.spec.num_epochs
    monkeypatch.setattr(module, "spec", replace(module.spec, max_steps=21))
    assert make(model_class, n_epochs=None, batch_size=1).fit(short).epochs_trained == 3
    assert make(model_class, n_epochs=2).fit(short).epochs_trained == 2
    assert make(model_class, n_epochs=None).fit(short, epochs=4).epochs_trained == 4


# --- covariates -------------------------------------------------------------------------------------------


@each_model
@pytest.mark.parametrize("kinds", [("past",), ("future",), ("past", "future")])
def test_covariates_of_every_kind_reach_the_forecast(model_class, wide, covariates, kinds):
    given = {f"{kind}_covariates": covariates for kind in kinds}
    model = make(model_class).fit(wide, **given)
    forecast = model.predict(15, num_samples=2, **given)
    assert finite(forecast)
    moved = {name: covariates.map(lambda v: v + 0.5) for name in given}
    assert model.predict(15, num_samples=2, random_state=1, **moved) != model.predict(
        15, num_samples=2, random_state=1, **given
    )


@each_model
@pytest.mark.parametrize("shared", [True, False])
def test_static_covariates_reach_the_forecast(model_class, wide, shared):
    rows = 1 if shared else 2
    frame = pd.DataFrame({"a": np.arange(rows) + 1.0, "b": 0.0}).astype("float32")
    known = wide.with_static_covariates(frame)
    model = make(model_class).fit(known)
    other = wide.with_static_covariates(frame + 1.0)
    first, second = (model.predict(4, series=s, num_samples=2, random_state=0) for s in (known, other))
    assert first != second
    ignoring = make(model_class, use_static_covariates=False).fit(known)
    assert not ignoring.uses_static_covariates


@each_model
@pytest.mark.parametrize("kind", ["past_covariates", "future_covariates", "static"])
def test_units_of_covariates_do_not_matter(model_class, wide, covariates, kind):
    def forecast(unit):
        if kind == "static":
            frame = pd.DataFrame({"a": [1.0, 3.0]}) * unit - 5 * unit
            return make(model_class).fit(wide.with_static_covariates(frame)).predict(4).values()
        given = {kind: covariates.map(lambda v: (v - 5) * unit)}
        return make(model_class).fit(wide, **given).predict(4, **given).values()

    np.testing.assert_allclose(forecast(1e9), forecast(1.0), rtol=1e-3, atol=1e-4)


@each_model
def test_weights_that_are_loaded_know_units_and_gaps_of_covariates(model_class, wide, covariates, tmp_path):
    holes = covariates.map(lambda v: np.where(v > np.quantile(v, 0.8), np.nan, 100 * v))
    model = make(model_class).fit(wide, future_covariates=holes)
    model.save(str(tmp_path / "model.pt"))
    again = make(model_class)
    again.load_weights(str(tmp_path / "model.pt"))
    options = {"series": wide, "future_covariates": holes, "random_state": 0}
    expected, found = (one.predict(4, **options).values() for one in (model, again))
    np.testing.assert_allclose(found, expected, rtol=1e-5)


@each_model
def test_encoders_work_beside_our_own(model_class, series):
    encoders = {"cyclic": {"future": ["month"]}, "position": {"past": ["relative"]}}
    model = make(model_class, add_encoders=encoders, seasonal_periods=12).fit(series)
    assert finite(model.predict(15, num_samples=2))
    assert model.add_encoders == encoders
    names = model.encoders.encoding_n_components
    assert names[0] == 1
    assert names[1] > 2


@each_model
def test_the_calendar_and_seasons_are_found_in_the_series(model_class):
    monthly = sine_timeseries(
        length=72, value_frequency=1 / 12, start=pd.Timestamp("2000-01-01"), freq="MS"
    ).astype("float32")
    model = make(model_class).fit(monthly)
    assert model._seasonal.cycles == ("year",)
    assert model._seasonal.periods == ()
    plain = make(model_class).fit(darts.TimeSeries.from_values(monthly.values()))
    assert plain._seasonal.periods == (12.0,)
    none = make(model_class, time_features=None, seasonal_periods=None).fit(monthly)
    assert not none.uses_future_covariates


# --- missing values ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def gappy(series):
    """Return the series without a fifth of its values."""
    values = series.values().copy()
    values[np.random.default_rng(0).random(N) < 0.2] = np.nan
    return series.with_values(values)


@each_model
@pytest.mark.parametrize("params", [{}, {"loss_fn": torch.nn.MSELoss()}], ids=["likelihood", "loss"])
@pytest.mark.parametrize("weight", [None, "linear"])
def test_missing_values_are_never_propagated(model_class, gappy, covariates, params, weight):
    holes = covariates.values().copy()
    holes[[3, 30, N + 2]] = np.nan
    holes = covariates.with_values(holes)
    model = make(model_class, **params).fit(
        gappy, past_covariates=holes, future_covariates=holes, sample_weight=weight
    )
    assert all(bool(p.isfinite().all()) for p in model.model.parameters())
    assert finite(model.predict(15, num_samples=2))


@each_model
def test_a_missing_value_is_not_zero(model_class, series):
    model = make(model_class).fit(series)
    values = series.values().copy()
    values[-3] = np.nan
    filled = values.copy()
    filled[-3] = 0.0
    gap, zero = (
        model.predict(4, series=series.with_values(v), num_samples=2, random_state=0)
        for v in (values, filled)
    )
    assert gap != zero


@each_model
def test_a_series_without_any_value_is_refused(model_class, series):
    with pytest.raises(ValueError, match="no observed value"):
        make(model_class).fit(series.with_values(np.full((N, 1), np.nan, dtype="float32")))


@each_model
def test_of_an_input_chunk_without_values_no_level_is_made_up(model_class, wide):
    """The forecast is missing, as what it would be made from is; other components have theirs."""
    values = wide.values().copy()
    values[-12:, 0] = np.nan
    model = make(model_class).fit(wide)
    gap = wide.with_values(values)
    for forecast in (
        model.predict(8, series=gap, num_samples=3).all_values(),
        model.predict(6, series=gap, predict_likelihood_parameters=True).all_values().reshape(6, 2, 3),
    ):
        assert np.isnan(forecast[:, 0]).all()
        assert np.isfinite(forecast[:, 1]).all()
    values[-12, 0] = 3.0
    assert finite(model.predict(8, series=wide.with_values(values), num_samples=3))


@each_model
def test_gaps_as_long_as_the_input_chunk_teach_nothing(model_class):
    noise = np.random.default_rng(0).normal(size=(80, 1)).astype("float32")
    level = darts.TimeSeries.from_values(1000 + noise)
    values = level.values().copy()
    values[30:46] = np.nan
    empty = level.with_values(np.full_like(values, np.nan))
    model = make(model_class, n_epochs=2).fit([level.with_values(values), empty])
    assert all(bool(p.isfinite().all()) for p in model.model.parameters())
    first, second = model.predict(6, series=[level, empty], num_samples=50)
    assert abs(first.all_values() - 1000).max() < 50
    assert np.isnan(second.all_values()).all()


@each_model
@pytest.mark.parametrize("level", [0.0, 5.0, 1e6])
def test_the_unit_of_a_constant_series_is_its_level(model_class, level):
    constant = darts.TimeSeries.from_values(np.full((40, 1), level))
    forecast = make(model_class).fit(constant).predict(6, num_samples=50).all_values()
    assert abs(forecast - level).max() <= 0.5 * (level or 1.0)


# --- backtesting and model selection ----------------------------------------------------------------------


@each_model
@pytest.mark.parametrize("retrain", [True, False])
@pytest.mark.parametrize("last_points_only", [True, False])
def test_historical_forecasts(model_class, series, retrain, last_points_only):
    forecasts = (
        make(model_class)
        .fit(series)
        .historical_forecasts(
            series,
            start=48,
            forecast_horizon=6,
            stride=3,
            retrain=retrain,
            last_points_only=last_points_only,
            num_samples=2,
        )
    )
    assert len(forecasts) == 3
    last = forecasts if last_points_only else forecasts[0]
    assert last.all_values().shape == ((3 if last_points_only else 6), 1, 2)


@each_model
def test_historical_forecasts_of_many_series_beyond_the_chunk(model_class, series, wide):
    other = wide[wide.components[1]]
    forecasts = (
        make(model_class)
        .fit([series, other])
        .historical_forecasts(
            [series, other],
            start=45,
            forecast_horizon=9,
            retrain=False,
            last_points_only=False,
            num_samples=2,
        )
    )
    assert [len(f) for f in forecasts] == [7, 7]


@each_model
def test_historical_forecasts_equal_predictions(model_class, series):
    model = make(model_class, loss_fn=torch.nn.MSELoss()).fit(series)
    past = model.historical_forecasts(
        series, start=N - 9, forecast_horizon=9, retrain=False, last_points_only=False
    )[0]
    np.testing.assert_allclose(
        past.values(), model.predict(9, series=series[: N - 9]).values(), rtol=1e-5, atol=1e-5
    )


@each_model
def test_backtest_residuals_and_gridsearch(model_class, series):
    model = make(model_class).fit(series)
    assert np.isfinite(model.backtest(series, start=50, forecast_horizon=4, retrain=False, num_samples=3))
    assert np.isfinite(model.residuals(series, start=50, retrain=False).values()).all()
    options = trained(model_class, output_chunk_length=4, n_epochs=1, pl_trainer_kwargs=QUIET)
    choices = {"input_chunk_length": [8, 12], **{name: [value] for name, value in options.items()}}
    best, params, _ = model_class.gridsearch(choices, series, forecast_horizon=4, start=50, stride=4)
    assert isinstance(best, model_class)
    assert params["input_chunk_length"] in (8, 12)


@each_model
def test_ensembles(model_class, series):
    pair = NaiveEnsembleModel([make(model_class), make(model_class, random_state=1)])
    assert finite(pair.fit(series).predict(5, num_samples=3))
    regression = RegressionEnsembleModel([make(model_class), NaiveSeasonal(12)], regression_train_n_points=8)
    assert finite(regression.fit(series).predict(5))


# --- saving -----------------------------------------------------------------------------------------------


@each_model
def test_saving_and_loading_of_models_and_weights(model_class, wide, tmp_path):
    path = str(tmp_path / "model.pt")
    model = make(model_class).fit(wide)
    expected = model.predict(9, num_samples=3, random_state=1)
    model.save(path)
    assert model_class.load(path).predict(9, num_samples=3, random_state=1) == expected
    for load_encoders in (True, False):
        fresh = make(model_class)
        fresh.load_weights(path, load_encoders=load_encoders)
        assert fresh.predict(9, series=wide, num_samples=3, random_state=1) == expected


@each_model
def test_a_model_that_was_loaded_with_another_trainer_is_trained_further(model_class, series, tmp_path):
    make(model_class).fit(series).save(path := str(tmp_path / "model.pt"))
    loaded = model_class.load(path, pl_trainer_kwargs=QUIET, map_location="cpu")
    assert finite(loaded.fit(series, epochs=1).predict(9, num_samples=3))


@each_model
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_units_of_the_data_are_saved_exactly(model_class, series, covariates, dtype, tmp_path):
    """Covariates that hardly differ from a large number, and a series in a small unit."""
    small = (series * 1e-3).astype(dtype)
    years = {"future_covariates": (covariates + 1e4).astype("float32")}
    model = make(model_class).fit(small, **years)
    expected = model.predict(9, num_samples=3, random_state=1, **years)
    model.save(path := str(tmp_path / "model.pt"))
    assert model_class.load(path).predict(9, num_samples=3, random_state=1, **years) == expected


@each_model
def test_checkpoints_go_on_training(model_class, series, tmp_path):
    keep = {**QUIET, "enable_checkpointing": True}
    model = make(
        model_class,
        n_epochs=2,
        model_name="m",
        work_dir=str(tmp_path),
        save_checkpoints=True,
        pl_trainer_kwargs=keep,
    ).fit(series, val_series=series)
    last = model_class.load_from_checkpoint("m", work_dir=str(tmp_path), best=False)
    first, second = (m.predict(4, series=series, num_samples=2, random_state=0) for m in (model, last))
    assert first == second
    best = model_class.load_from_checkpoint("m", work_dir=str(tmp_path), best=True)
    assert finite(best.fit(series, epochs=1).predict(4, num_samples=2))


@each_model
def test_training_goes_on_as_without_checkpoints(model_class, series, tmp_path):
    keep = {"save_checkpoints": True, "model_name": "m", "work_dir": str(tmp_path)}
    keep["pl_trainer_kwargs"] = {**QUIET, "enable_checkpointing": True}
    models = [
        make(model_class, n_epochs=3, **options).fit(series, val_series=series) for options in ({}, keep)
    ]
    plain, saved = (model.model.state_dict() for model in models)
    assert all(torch.equal(value, saved[name]) for name, value in plain.items())


@each_model
def test_fine_tuning_some_layers(model_class, series, tmp_path):
    path = str(tmp_path / "model.pt")
    make(model_class).fit(series).save(path)
    last = [name for name, p in make(model_class).fit(series).model.named_parameters() if p.requires_grad][-1]
    tuned = make(model_class, enable_finetuning={"unfreeze": [last]})
    tuned.load_weights(path)
    before = {name: p.detach().clone() for name, p in tuned.model.named_parameters()}
    tuned.fit(series)
    assert [n for n, p in tuned.model.named_parameters() if not torch.equal(p, before[n])] == [last]


@each_model
def test_models_that_onnx_has_no_code_for_say_so(model_class, series):
    with pytest.raises(NotImplementedError, match=f"{model_class.__name__} cannot be exported"):
        make(model_class).fit(series).to_onnx()


# --- likelihoods ------------------------------------------------------------------------------------------

REAL = ["Gaussian", "Laplace", "Cauchy", "Gumbel"]
COUNTS = ["Poisson", "NegativeBinomial", "Geometric"]
POSITIVE = ["Exponential", "Gamma", "HalfNormal", "LogNormal", "Weibull"]
UNIT = ["Beta", "ContinuousBernoulli"]
EVERY = [*REAL, *COUNTS, *POSITIVE, *UNIT, "Bernoulli"]


@pytest.mark.parametrize(
    ("model_class", "name"),  # all with one model, and with another model in turn
    [(model, name) for k, name in enumerate(EVERY) for model in (TaylorformerModel, REST[k % len(REST)])],
)
def test_every_univariate_likelihood_works(model_class, series, name):
    values = series.values()
    values = {
        **dict.fromkeys(COUNTS, values.round()),
        **dict.fromkeys(UNIT, values / 10.0),
        "Bernoulli": (values > 3.0).astype("float32"),
    }.get(name, values)
    likelihood = getattr(likelihoods, f"{name}Likelihood")()
    model = make(model_class, likelihood=likelihood).fit(series.with_values(values.astype("float32")))
    assert finite(model.predict(9, num_samples=3))
    parameters = model.predict(4, predict_likelihood_parameters=True)
    assert [c.rsplit("_")[-1] for c in parameters.components] == likelihood.parameter_names
    assert finite(parameters)


@each_model
def test_quantile_regression_works(model_class, wide):
    model = make(model_class, likelihood=likelihoods.QuantileRegression([0.1, 0.5, 0.9])).fit(wide)
    assert finite(model.predict(9, num_samples=3))
    parameters = model.predict(4, predict_likelihood_parameters=True)
    assert [c.rsplit("_")[-1] for c in parameters.components] == 2 * ["q0.100", "q0.500", "q0.900"]
    assert finite(parameters)


@each_model
def test_a_joint_likelihood_is_refused(model_class):
    with pytest.raises(ValueError, match="each has a distribution of its own"):
        make(model_class, likelihood=likelihoods.DirichletLikelihood())


@each_model
def test_the_default_likelihood_has_parameters_in_units_of_the_data(model_class, wide):
    model = make(model_class, n_epochs=20, lr=1e-2).fit(wide)
    assert isinstance(model.likelihood, StudentTLikelihood)
    parameters = model.predict(4, predict_likelihood_parameters=True).values().reshape(4, 2, 3)
    np.testing.assert_allclose(parameters[:, 0, 0], wide.values()[:, 0].mean(), atol=2.0)
    np.testing.assert_allclose(parameters[:, 1, 0], wide.values()[:, 1].mean(), atol=200.0)
    assert (parameters[:, 1, 1] > 10 * parameters[:, 0, 1]).all()
    assert (parameters[..., 2] > 2).all()


@each_model
def test_infinite_values_are_named(model_class, wide):
    values = wide.values().copy()
    values[3, 1] = np.inf
    with pytest.raises(ValueError, match=f"component '{wide.components[1]}' has infinite values"):
        make(model_class).fit(wide.with_values(values))


@each_model
@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"seasonal_periods": -3}, "seasonal_periods=-3"),
        ({"time_features": ("yaer",)}, "'yaer',\\), but it must be .* among day, week, month, year"),
        ({"n_heads": 3}, "n_heads=3"),
    ],
)
def test_what_does_not_fit_is_refused_at_fit(model_class, series, params, message):
    if not having(model_class, **params):
        pytest.skip("the model has no such parameter")
    with pytest.raises(ValueError, match=message):
        make(model_class, **params).fit(series)


@pytest.mark.parametrize("model_class", [TaylorformerModel, LAMModel])
def test_a_kernel_that_does_not_exist_is_refused_at_fit(model_class, series):
    with pytest.raises(ValueError, match="attention='lokal'"):
        make(model_class, attention="lokal").fit(series)


def test_dynamics_that_do_not_exist_are_refused_at_fit(series):
    with pytest.raises(ValueError, match="dynamics='lokal'"):
        make(ContiFormerModel, dynamics="lokal").fit(series)


@each_model
def test_wrong_parameters_are_named(model_class):
    with pytest.raises(ValueError, match="dmodel"):
        make(model_class, dmodel=8)
    with pytest.raises(ValueError, match="affine"):
        make(model_class, use_reversible_instance_norm={"affine": True})


@each_model
def test_a_subclass_may_have_other_parameters(model_class, series):
    given = trained(model_class, n_epochs=1, pl_trainer_kwargs=QUIET)
    del given["random_state"]

    class Small(model_class):
        def __init__(self, length=8, **kwargs):
            super().__init__(length, 4, **given, **kwargs)

    model = Small(random_state=0).fit(series)
    assert (model.input_chunk_length, model.model.hparams["network"]["d_model"]) == (8, 8)
    assert finite(model.predict(5, num_samples=2))
    again = Small(length=6, lr=1e-3).untrained_model()
    assert (again.input_chunk_length, again.fit(series).model.lr) == (6, 1e-3)
    assert finite(again.historical_forecasts(series, start=-2, start_format="position", retrain=True))
