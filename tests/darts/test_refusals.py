"""What darts models refuse, in one line, and what a refusal leaves as it was."""

from __future__ import annotations

import re
import signal
import warnings

import numpy as np
import pandas as pd
import pytest
import pytorch_lightning as pl
import torch
from all_models import having, models, small
from darts import TimeSeries
from darts.utils.likelihood_models.torch import QuantileRegression
from quiet import QUIET

from taylorformer_forecast.darts import LAMModel, TaylorformerModel

VALUES = 5 + np.random.default_rng(0).normal(size=40)

each_model = pytest.mark.parametrize("model_class", models())


class Interrupt(pl.Callback):
    """Interrupt training as Ctrl-C does, after some steps have changed the weights."""

    armed = False

    def on_train_batch_end(self, trainer, *args):
        if Interrupt.armed and trainer.global_step >= 2:
            raise KeyboardInterrupt


class InterruptPrediction(pl.Callback):
    """Interrupt predictions as Ctrl-C does."""

    def on_predict_batch_start(self, *args):
        if Interrupt.armed:
            raise KeyboardInterrupt


def from_values(values, dates=True):
    values = np.asarray(values)
    if not dates:
        return TimeSeries.from_values(values)
    return TimeSeries.from_times_and_values(pd.date_range("2000-01-01", periods=len(values)), values)


def make(model_class, **params):
    return model_class(8, 4, **small(model_class, **{"n_epochs": 1, "pl_trainer_kwargs": QUIET, **params}))


def spoiled(value, at=3):
    values = VALUES.copy()
    values[at] = value
    return from_values(values)


@each_model
@pytest.mark.parametrize("parameter", ["d_model", "n_heads", "n_layers"])
@pytest.mark.parametrize("value", [0, -1, 1.5, True])
def test_sizes_are_whole_numbers_of_at_least_one(model_class, parameter, value):
    if not having(model_class, **{parameter: value}):
        pytest.skip("the model has no such parameter")
    with pytest.raises(ValueError, match=f"^{parameter}={value}, but it must be a whole number, at least 1$"):
        make(model_class, **{parameter: value})


@pytest.mark.parametrize(
    ("parameter", "value"),
    [("lr", 0.0), ("lr", "fast"), ("dropout", 1.0), ("n_epochs", -1), ("n_epochs", 0.5)],
)
def test_settings_of_training_are_refused_by_name(parameter, value):
    with pytest.raises(ValueError, match=rf"^{parameter}={value!r}, but it must be [^\n]*$"):
        make(TaylorformerModel, **{parameter: value})


@each_model
@pytest.mark.parametrize(
    ("parameter", "value"),
    [
        *(("input_chunk_length", value) for value in (0, -3, 1.5, None, (0, 3), (3, 2), (1.5, 3))),
        *(("output_chunk_length", value) for value in (0, -3, 1.5, None)),
        *(("output_chunk_shift", value) for value in (-1, 1.5)),
        *(("random_state", value) for value in (-1, 2**40, np.random.default_rng(0))),
    ],
)
def test_lengths_of_chunks_and_seeds_are_refused_by_name(model_class, parameter, value):
    sizes = {"input_chunk_length": 8, "output_chunk_length": 4, parameter: value}
    with pytest.raises(ValueError, match=re.escape(f"{parameter}={value!r}, but it must be ")):
        model_class(**sizes)


@each_model
@pytest.mark.parametrize("value", [None, 5])
def test_attention_is_a_kernel_or_a_name(model_class, value):
    with pytest.raises(ValueError, match=f"^attention={value}, but it must be a kernel or the name of one$"):
        make(model_class, attention=value)


@pytest.mark.parametrize("strategy", ["auto", "baseline", "train"])
@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"attention": "ful"}, "attention='ful' is neither a kernel nor one of"),
        ({"d_model": 33}, "d_model=33 is not a multiple of n_heads=2"),
        ({"n_layers": 1}, "n_layers=1, but each stream needs at least 2"),
        ({"taylor_order": 3}, "taylor_order=3, but it must be 0 or 1"),
    ],
)
def test_parameters_of_no_network_are_refused_whatever_the_strategy(strategy, params, message):
    state = torch.get_rng_state()
    with pytest.raises(ValueError, match=message):
        make(TaylorformerModel, strategy=strategy, **params)
    make(TaylorformerModel, strategy=strategy)
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize("strategy", ["auto", "baseline", "corrected", "averaged"])
def test_a_file_that_does_not_exist_is_refused_whether_it_is_needed_or_not(strategy):
    model = make(TaylorformerModel, strategy=strategy, pretrained="nowhere")
    with pytest.raises(FileNotFoundError, match="pretrained='nowhere' is neither 'default' nor a file"):
        model.fit(from_values(VALUES))


def test_lengths_of_chunks_may_be_whole_numbers_of_numpy():
    model = TaylorformerModel(np.int64(8), np.int64(4), strategy="baseline").fit(from_values(VALUES))
    assert len(model.predict(6)) == 6


@pytest.mark.parametrize("likelihood", ["quantiles", 3, QuantileRegression])
def test_what_is_no_likelihood_is_refused_by_name(likelihood):
    named = re.escape(
        f"likelihood={likelihood!r}, but it must be an instance of a likelihood of darts, as Qu"
    )
    with pytest.raises(ValueError, match=named):
        make(TaylorformerModel, likelihood=likelihood)


def test_the_name_of_a_family_is_refused_with_the_likelihood_of_that_family():
    with pytest.raises(ValueError, match=re.escape("as FamilyLikelihood('normal')")):
        make(TaylorformerModel, likelihood="normal")


@pytest.mark.parametrize("features", ["fortnight", ("day", "fortnight")])
def test_an_unknown_cycle_is_named_as_it_was_written(features):
    named = re.escape(
        f"time_features={features!r}, but it must be 'auto', None or a tuple of names among day,"
    )
    with pytest.raises(ValueError, match=named):
        make(LAMModel, time_features=features)


@pytest.mark.parametrize("strategy", ["baseline", "train"])
@pytest.mark.parametrize("n", [0, -1, 2.5])
def test_a_forecast_has_at_least_one_step(strategy, n):
    model = make(TaylorformerModel, strategy=strategy).fit(from_values(VALUES))
    with pytest.raises(ValueError, match=f"^n={n}, but it must be a whole number of steps, at least 1$"):
        model.predict(n)


GOOD = from_values(VALUES)
FAR = from_values(np.r_[VALUES, VALUES])
STATIC = GOOD.with_static_covariates(pd.DataFrame({"a": [1.0], "b": [np.inf]}))
REFUSED = {
    "infinite target": (spoiled(np.inf), {}, "the target series: component '0' has infinite values"),
    "huge target": (spoiled(1e200), {}, "the target series: component '0' has values beyond 1e.150"),
    "infinite past": (GOOD, {"past_covariates": spoiled(-np.inf)}, "past_covariates: component '0' has inf"),
    "infinite future": (
        GOOD,
        {"future_covariates": from_values(np.r_[VALUES, np.full(40, np.inf)])},
        "future_covariates: component '0' has infinite values",
    ),
    "infinite validation": (
        GOOD,
        {"val_series": spoiled(np.inf)},
        "the target series: component '0' has inf",
    ),
    "infinite static": (STATIC, {}, "the static covariate 'b' has infinite values"),
    "one and two components": (
        [GOOD, GOOD.stack(GOOD)],
        {},
        "number 1 of the target series has 2 components, but number 0 has 1: all must have the same",
    ),
    "duplicate stamps": (
        TimeSeries.from_dataframe(
            pd.DataFrame({"a": VALUES}, pd.date_range("2000", periods=40, freq="ms").as_unit("s"))
        ),
        {},
        "the target series has duplicate time stamps: 2000-01-01 00:00:00 .first of 39.",
    ),
    "two kinds of index": (
        GOOD,
        {"past_covariates": from_values(VALUES, dates=False)},
        "the index of past_covariates holds whole numbers, but that of the target series holds dates",
    ),
}


DATED = from_values(np.tile(VALUES[:7], 8))  # weeks, of which a network has phases
COUNTED = from_values(np.tile(VALUES[:7], 8), dates=False)
ASKED = {
    "predict": lambda model, series: model.predict(3, series=series),
    "backtest": lambda model, series: model.historical_forecasts(series, retrain=False),
    "second fit": lambda model, series: model.fit(series),
    "validation": lambda model, series: model.fit(DATED, val_series=series),
}


@each_model
@pytest.mark.parametrize("ask", ASKED)
def test_a_network_that_was_fitted_with_dates_refuses_integers(model_class, ask):
    own = {"strategy": "train"} if model_class is TaylorformerModel else {}
    model = make(model_class, **own).fit(DATED)
    message = "^(val_)?series has an integer index, but the model was fitted with dates$"
    with pytest.raises(ValueError, match=message):
        ASKED[ask](model, COUNTED)
    assert len(model.predict(3)) == 3


@pytest.mark.parametrize("strategy", ["baseline", "corrected", "train"])
def test_integers_and_dates_go_together_where_nothing_depends_on_dates(strategy):
    plain = {"time_features": None, "seasonal_periods": None}
    model = make(TaylorformerModel, strategy=strategy, **(plain if strategy == "train" else {})).fit(DATED)
    assert np.isfinite(model.predict(3, series=COUNTED).values()).all()


def test_series_to_train_on_have_one_kind_of_index():
    message = "^number 1 of the target series has an integer index, but number 0 has dates$"
    with pytest.raises(ValueError, match=message):
        make(LAMModel).fit([DATED, COUNTED])


@each_model
def test_a_component_without_values_in_the_input_chunk_has_a_warning(model_class):
    own = {"strategy": "train"} if model_class is TaylorformerModel else {}
    model = make(model_class, **own).fit([GOOD, GOOD])
    empty = from_values(np.r_[VALUES, np.full(8, np.nan)])
    message = (
        r"^component '0' of series number 1 has no observed value in its last 8 steps "
        r"\(input_chunk_length\): its forecasts are NaN$"
    )
    with pytest.warns(UserWarning, match=message):
        full, missing = model.predict(2, series=[GOOD, empty])
    assert np.isfinite(full.values()).all()
    assert np.isnan(missing.values()).all()
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message="component")
        model.predict(2, series=[GOOD, empty], show_warnings=False)
        model.explain(2, series=GOOD, lags=8)


@each_model
@pytest.mark.parametrize("case", REFUSED)
def test_what_no_model_can_use_is_refused_in_one_line(model_class, case):
    series, options, message = REFUSED[case]
    with pytest.raises(ValueError, match=rf"^{message}[^\n]*$"):
        make(model_class).fit(series, **options)


@pytest.mark.parametrize("strategy", ["baseline", "train"])
def test_what_no_model_can_use_is_refused_by_predictions_too(strategy):
    model = make(TaylorformerModel, strategy=strategy).fit(GOOD)
    for call in (
        lambda: model.predict(3, series=spoiled(np.inf, at=-1)),
        lambda: model.historical_forecasts(spoiled(np.inf, at=-1), retrain=False),
    ):
        with pytest.raises(ValueError, match="the target series: component '0' has infinite values"):
            call()
    known = make(LAMModel).fit(GOOD, past_covariates=FAR)
    with pytest.raises(ValueError, match="past_covariates: component '0' has infinite values"):
        known.predict(3, past_covariates=from_values(np.where(np.arange(80) == 38, np.inf, 1.0)))


FAILURES = {
    "infinite": lambda model: model.fit(spoiled(np.inf)),
    "too short": lambda model: model.fit(GOOD[:3]),
    "weights of a loss": lambda model: model.fit(GOOD, sample_weight=from_values(VALUES)[:5]),
    "interrupted": lambda model: model.fit(GOOD, epochs=2),
}


@pytest.mark.parametrize("failure", FAILURES)
@pytest.mark.parametrize("kind", ["baseline", "pretrained", "train", "finetune", "LAM with a loss"])
def test_a_fit_that_fails_leaves_the_model_as_it_was(kind, failure):
    options = {"batch_size": 4, "pl_trainer_kwargs": {**QUIET, "callbacks": [Interrupt()]}}
    own = {"loss_fn": torch.nn.MSELoss()} if "LAM" in kind else {"strategy": kind}
    model = make(LAMModel if "LAM" in kind else TaylorformerModel, **options, **own).fit(GOOD)
    before, summary = model.predict(9, num_samples=2, random_state=3), model.summary()
    state = vars(model).copy()
    handler = signal.getsignal(signal.SIGINT)
    Interrupt.armed = failure == "interrupted"
    try:
        if not (Interrupt.armed and kind in ("baseline", "pretrained")):  # which train nothing
            with pytest.raises(BaseException):  # noqa: B017, PT011
                FAILURES[failure](model)
    finally:
        Interrupt.armed = False
        signal.signal(signal.SIGINT, handler)
    assert model.model is state["model"]
    assert model.summary() == summary
    assert model.predict(9, num_samples=2, random_state=3) == before
    assert model.fit(GOOD) is model


@pytest.mark.parametrize("strategy", ["baseline", "corrected", "train", "finetune"])
def test_ctrl_c_is_a_keyboard_interrupt(strategy):
    options = {
        "batch_size": 4,
        "pl_trainer_kwargs": {**QUIET, "callbacks": [Interrupt(), InterruptPrediction()]},
    }
    model, handler = make(TaylorformerModel, strategy=strategy, **options), signal.getsignal(signal.SIGINT)
    Interrupt.armed = True
    try:
        if strategy in ("train", "finetune"):
            with pytest.raises(KeyboardInterrupt):
                model.fit(GOOD)
        Interrupt.armed = False
        model.fit(GOOD)
        Interrupt.armed = True
        for ask in (
            model.predict,
            lambda n: model.historical_forecasts(GOOD, forecast_horizon=n, retrain=False),
        ):
            with pytest.raises(KeyboardInterrupt):
                ask(3)
    finally:
        Interrupt.armed = False
    assert signal.getsignal(signal.SIGINT) is handler


@pytest.mark.parametrize("strategy", ["baseline", "corrected", "pretrained", "train", "finetune"])
@pytest.mark.parametrize(
    "mode", ["float64", torch.no_grad, torch.inference_mode, lambda: torch.autocast("cpu")]
)
@pytest.mark.parametrize("precision", [{}, {"precision": "32-true"}], ids=["", "32-true"])
def test_models_do_not_depend_on_what_the_caller_has_set(strategy, mode, precision):
    def forecast():
        model = make(TaylorformerModel, strategy=strategy, pl_trainer_kwargs={**QUIET, **precision})
        return model.fit(GOOD).predict(6, num_samples=3, random_state=1)

    expected = forecast()
    if mode == "float64":
        torch.set_default_dtype(torch.float64)
        try:
            assert forecast() == expected
        finally:
            torch.set_default_dtype(torch.float32)
    else:
        with mode():
            grad = torch.is_grad_enabled()
            assert forecast() == expected
            assert torch.is_grad_enabled() == grad


def test_options_that_are_given_to_load_stay_as_they_are(tmp_path):
    make(TaylorformerModel).fit(GOOD.astype("float32")).save(str(tmp_path / "model.pt"))
    options = dict(QUIET)
    model = TaylorformerModel.load(str(tmp_path / "model.pt"), pl_trainer_kwargs=options)
    model.fit(GOOD.astype("float32"))
    assert options == QUIET
    assert model.predict(4).dtype == np.float32


@pytest.mark.parametrize("covariates", [True, False])
@each_model
def test_paths_that_are_not_finite_are_an_error_and_no_forecast(model_class, covariates):
    """Which says what can be done: covariates are scaled where there are some."""
    huge = from_values(1e8 * np.random.default_rng(1).normal(size=80))
    model = make(model_class, **({"strategy": "train"} if model_class is TaylorformerModel else {}))
    model.fit(GOOD, past_covariates=huge if covariates else None)
    with torch.no_grad():
        for weight in model.model.net.parameters():
            weight.fill_(torch.nan)
    advice = "Scale the covariates" if covariates else "Ask for fewer steps"
    with pytest.raises(
        RuntimeError, match=rf"^the sample paths run away: they are not finite. {advice}[^\n]*$"
    ):
        model.predict(5, num_samples=2)


def test_a_first_fit_that_fails_leaves_a_model_without_one():
    model = make(TaylorformerModel)
    with pytest.raises(ValueError, match="infinite"):
        model.fit(spoiled(np.inf))
    with pytest.raises(ValueError, match="has not been fitted"):
        model.summary()
    expected = make(TaylorformerModel).fit(GOOD).predict(4, num_samples=3)
    assert model.fit(GOOD).predict(4, num_samples=3) == expected


@pytest.mark.parametrize(
    "options", [{"strategy": "corrected"}, {"strategy": "zero_shot"}, {"strategy": "train"}]
)
def test_covariates_that_are_samples_are_refused(options):
    x = TimeSeries.from_times_and_values(
        pd.date_range("2000-01-01", periods=50), np.random.default_rng(1).normal(size=(50, 1, 5))
    )
    message = r"^future_covariates has 5 samples, .* give their median, future_covariates\.median\(axis=2\)$"
    model = make(TaylorformerModel, **options)
    with pytest.raises(ValueError, match=message):
        model.fit(from_values(VALUES), future_covariates=x)
    model.fit(from_values(VALUES), future_covariates=x.median(axis=2))
    with pytest.raises(ValueError, match=message):
        model.predict(3, future_covariates=x)
    assert len(model.predict(3, future_covariates=x.median(axis=2))) == 3


@pytest.mark.parametrize("options", [{"strategy": "corrected"}, {"strategy": "train"}])
@pytest.mark.parametrize("num_samples", [2.5, 0, -3, None])
def test_numbers_of_samples_are_whole(options, num_samples):
    model = make(TaylorformerModel, **options).fit(from_values(VALUES))
    with pytest.raises(ValueError, match=r"^[^\n]*num_samples[^\n]*$"):
        model.predict(3, num_samples=num_samples)


@pytest.mark.parametrize("strategy", ["corrected", "zero_shot", "train"])
def test_covariates_with_another_kind_of_index_are_refused(strategy):
    dates = pd.date_range("2000-01-01", periods=60)
    y = TimeSeries.from_times_and_values(dates[:50], np.random.default_rng(0).normal(size=50))
    x = TimeSeries.from_times_and_values(dates, np.random.default_rng(1).normal(size=60))
    model = make(TaylorformerModel, strategy=strategy).fit(y, future_covariates=x)
    with pytest.raises(
        ValueError, match=r"^the index of future_covariates holds whole numbers, but .* dates$"
    ):
        model.predict(3, future_covariates=TimeSeries.from_values(x.values()))


def test_static_covariates_are_those_of_the_fit_in_its_order():
    def with_static(series, **values):
        return series.with_static_covariates(pd.DataFrame({name: [value] for name, value in values.items()}))

    plain = from_values(VALUES)
    first, second = with_static(plain, size=100.0, kind=0.0), with_static(2 * plain, size=500.0, kind=1.0)
    model = make(LAMModel)
    for mixed in ([first, plain], [plain, first]):
        with pytest.raises(ValueError, match=r"^the static covariates of series number . are missing, but"):
            model.fit(mixed)
    expected = model.fit([first, second]).predict(3, series=first, random_state=0)
    turned = with_static(plain, kind=0.0, size=100.0)
    with pytest.raises(ValueError, match=r"are \['kind', 'size'\], but others have \['size', 'kind'\]"):
        model.predict(3, series=turned)
    assert model.predict(3, series=first, random_state=0) == expected
    make(LAMModel, use_static_covariates=False).fit([first, plain]).predict(3, series=plain)


@pytest.mark.parametrize("options", [{"strategy": "corrected"}, {"strategy": "train"}])
def test_a_series_of_samples_is_refused(options):
    noise = np.random.default_rng(0).normal(size=(50, 1, 3))
    samples = TimeSeries.from_times_and_values(pd.date_range("2000-01-01", periods=50), noise)
    model, message = (
        make(TaylorformerModel, **options),
        r"^series has 3 samples, .* series\.median\(axis=2\)$",
    )
    with pytest.raises(ValueError, match=message):
        model.fit(samples)
    model.fit(samples.median(axis=2))
    with pytest.raises(ValueError, match=message):
        model.predict(3, series=samples)


@pytest.mark.parametrize("kind", ["train", "corrected"])
def test_a_series_in_a_far_smaller_unit_is_warned_of_where_a_network_sees_it(kind):
    model = make(TaylorformerModel, strategy=kind).fit(from_values(VALUES))
    with warnings.catch_warnings():
        warnings.filterwarnings("error", "component .* standard deviation")
        model.predict(3, series=from_values(VALUES * 0.1))
        if kind == "corrected":
            model.predict(3, series=from_values(VALUES * 1e-3))
            return
    with pytest.warns(UserWarning, match="has a standard deviation of .*, less than 2% of that of what"):
        model.predict(3, series=from_values(VALUES * 1e-3))


@pytest.mark.parametrize("kind", ["train", "corrected"])
def test_a_series_with_other_steps_of_time_is_warned_of(kind):
    def series(freq):
        return TimeSeries.from_times_and_values(pd.date_range("2020", periods=len(VALUES), freq=freq), VALUES)

    model = make(TaylorformerModel, strategy=kind).fit(series("MS"))
    with warnings.catch_warnings():
        warnings.filterwarnings("error", ".*has frequency")
        model.predict(3, series=series("ME"))
    with pytest.warns(UserWarning, match="series has frequency h, but the model was fitted to MS"):
        model.predict(3, series=series("h"))


def test_another_number_of_covariates_is_told_without_the_phases_of_the_calendar():
    x = from_values(np.arange(50.0) % 5)
    model = make(LAMModel).fit(from_values(VALUES))
    with pytest.raises(
        ValueError, match=r"^future_covariates has 1 components, .* fitted with none: give none$"
    ):
        model.predict(3, future_covariates=x)
    model = make(LAMModel).fit(from_values(VALUES), future_covariates=x)
    with pytest.raises(ValueError, match=r"^future_covariates has 2 components, .* was fitted with 1$"):
        model.predict(3, future_covariates=x.stack(x))


@pytest.mark.parametrize("strategy", ["baseline", "corrected", "pretrained", "zero_shot"])
def test_what_is_not_trained_forgets_the_covariates_of_the_fit_before(strategy):
    x = np.random.default_rng(1).normal(size=50)
    y, x = from_values(VALUES + 3 * x[:40]), from_values(x)
    model = make(TaylorformerModel, strategy=strategy)
    alone = model.fit(y).predict(3, num_samples=9, random_state=1)
    assert model.fit(y, future_covariates=x).predict(3, num_samples=9, random_state=1) != alone
    assert model.fit(y).predict(3, num_samples=9, random_state=1) == alone
    with pytest.raises(ValueError, match="series"):
        model.fit([y, y]).predict(3)  # which of them?


@pytest.mark.parametrize("strategy", ["averaged", "zero_shot"])
def test_an_average_does_not_warn_of_forecasts_that_statistics_make(strategy):
    values = np.stack([VALUES, VALUES], 1)
    values[-15:, 1] = np.nan
    model = make(TaylorformerModel, strategy=strategy).fit(from_values(values))
    with warnings.catch_warnings():
        warnings.filterwarnings("error", ".*no observed value")
        assert np.isfinite(model.predict(3).values()).all()


@pytest.mark.parametrize("n_series", [1, 2])
@pytest.mark.parametrize("part", ["", "val_"])
@pytest.mark.parametrize("name", ["past_covariates", "future_covariates"])
def test_covariates_that_start_after_the_first_sample_are_refused_with_both_dates(name, part, n_series):
    series = [from_values(VALUES)] * n_series
    whole, late = series, [*series[1:], series[0].drop_before(5, keep_point=True)]
    given = {"val_series": series, name: whole, f"val_{name}": whole, part + name: late}
    of = f"number 1 of {part}{name}" if n_series > 1 else part + name
    message = f"{of} starts at 2000-01-06 00:00:00, but the first sample of {part}series at 2000-01-01"
    with pytest.raises(ValueError, match=re.escape(message)):
        make(TaylorformerModel, strategy="train").fit(series, **given)


def test_covariates_that_start_before_the_samples_that_are_taken_are_enough():
    series = from_values(VALUES)
    late = series.drop_before(20, keep_point=True)
    with pytest.raises(ValueError, match="past_covariates starts"):
        make(TaylorformerModel).fit(series, past_covariates=late, max_samples_per_ts=10)
    make(TaylorformerModel).fit(series, past_covariates=late, max_samples_per_ts=9).predict(2)
