"""What cannot be used is refused in the user's words, and a fitted forecaster stays as it was."""

from __future__ import annotations

import inspect
import re

import numpy as np
import pandas as pd
import pytest
from all_models import forecasters
from pytorch_lightning import Callback

from taylorformer_forecast.engine.parameters import RULES
from taylorformer_forecast.sktime import (
    ContiFormerForecaster,
    LAMForecaster,
    TaylorformerForecaster,
    TaylorformerImputer,
    UNNForecaster,
)

N = 40
CALENDAR = pd.period_range("2000-01", periods=N + 10, freq="M")


def tiny(forecaster=TaylorformerForecaster, **changes):
    settings = {"d_model": 4, "n_heads": 1, "max_steps": 1, "num_samples": 5, "random_state": 0}
    settings |= {"distribution": "normal", "num_epochs": None}
    if forecaster is TaylorformerForecaster:
        settings["strategy"] = "train"  # however short the series
    return forecaster(**{**settings, **changes})


@pytest.fixture
def y():
    values = 10 + np.sin(np.arange(N)) + 0.3 * np.random.default_rng(0).normal(size=N)
    return pd.Series(values, CALENDAR[:N], name="sales")


# --- parameters -------------------------------------------------------------------------------------------

KINDS = [*forecasters(), TaylorformerImputer]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("wrong", [{"d_model": 7}, {"n_heads": 3}, {"n_layers": 0}, {"taylor_order": 2}])
def test_errors_name_parameters_that_the_class_has(kind, wrong, y):
    known = set(inspect.signature(kind).parameters)
    if not set(wrong) <= known:
        pytest.skip(f"{kind.__name__} has no such parameter")
    settings = {"strategy": "train"} if "strategy" in known else {}
    y.iloc[20:23] = np.nan  # for the imputer
    with pytest.raises(ValueError, match=next(iter(wrong))) as caught:
        kind(**wrong, **settings, max_steps=1).fit(y)
    message = str(caught.value)
    named = re.findall(r"(\w+)=", message) + re.findall(r"give (\w+)", message)
    assert set(named) <= known, message


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"distribution": "gauss"},
            "distribution='gauss' is not one of ['mae', 'mixture', 'mse', 'normal', 'quantile', 'studentt']",
        ),
        ({"distribution": None}, "distribution=None is not one of ['mae', 'mixture'"),
        ({"distribution": 3, "strategy": "baseline"}, "distribution=3 is not one of ['mae', 'mixture'"),
        ({"n_layers": 1}, "n_layers=1, but each stream needs at least 2"),
        ({"d_model": 5, "n_heads": 2}, "d_model=5 is not a multiple of n_heads=2"),
        ({"taylor_order": 2}, "taylor_order=2"),
        ({"taylor_order": -1}, "taylor_order=-1"),
        ({"max_steps": None, "num_epochs": None}, "max_steps and num_epochs are both None"),
        ({"validation_split": 0.99}, "validation_split=0.99 leaves nothing to train on"),
        ({"context_length": 40}, "context_length=40 but y has 40 observations; at least 41 are needed"),
        ({"context_length": 96}, "context_length=96 but y has 40 observations"),
        ({"time_features": ("fortnight",)}, "None or a tuple of names among day, week, month, year"),
        ({"device": "mps"}, "device='mps', but it must be a device of PyTorch with double precision"),
        ({"trainer_kwargs": {"accelerator": "mps"}}, "whose accelerator has double precision (not 'mps')"),
        ({"device": "abacus"}, "device='abacus' cannot be used here"),
        ({"device": "cuda:99"}, "device='cuda:99' cannot be used here"),
    ],
    ids=lambda value: str(value) if isinstance(value, dict) else "",
)
def test_settings_that_cannot_be_are_named(y, settings, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        tiny(**settings).fit(y)


WRONG = {
    "num_samples": [0, -3, 2.5, "a", None, True],
    "batch_size": [0, -1],
    "d_model": [0, -4],
    "n_heads": [0, 1.5],
    "n_layers": [0, "a"],
    "n_derivative_neighbours": [0, -1],
    "patience": [-1, 0.5, None],
    "update_steps": [-1, 0.5, None],
    "finetune_steps": [-1, 0.5, None],
    "past_only": ["price", 3, np.array(["a", "b"])],
    "max_steps": [-1, 0.5, "a", True],
    "num_epochs": [-1, 0.5],
    "n_epochs": [-1, 2.5],  # of darts' models
    "context_length": [0, -1, 2.5, "a"],
    "horizon": [0, -1, 2.5, "a"],
    "instance_norm": ["auto", 1],
    "joint": ["auto", 1],
    "join": ["panel", None, 1],
    "common_clock": ["auto", 1],  # of the classifier
    "verbose": ["yes", 2, None],
    "linear_path": ["yes", 2, None],
    "random_state": ["a", -1, 0.5, 2**40, True, np.random.default_rng(0)],
    "input_chunk_length": [0, 1.5],  # of darts' models, as the two below
    "output_chunk_length": [0, 1.5],
    "output_chunk_shift": [-1, 1.5],
    "logarithm": ["auto", 1],
    "window_length": [0, 2.5],
    "gap_length": [0, 2.5],
    "order": ["any", None],
    "attention": [None, 5, ("full",)],
    "preset": ["paper", None],
    "pretrained": [3, True, None],
    "strategy": ["zero", None, True, "Train"],
    "lr": [0, -1.0, True, float("nan"), float("inf"), "a", None],
    "dropout": [-0.1, 1.0, 1.5, "a"],
    "hide": [-0.1, 1.0, "a"],  # of the classifier, as max_points
    "max_points": [0, 2.5],
    "validation_split": [-0.1, 1.0, 1.5, "a"],
    "time_features": ["day", "fortnight", 3, ("day", 3)],
    "seasonal_periods": [0, -4, (4, 0), "monthly", float("nan"), float("inf")],
    "device": [None, 0],
    "trainer_kwargs": ["x", [("max_steps", 3)]],
    "pl_trainer_kwargs": ["x", {"accelerator": "mps"}],  # of darts' models
}


@pytest.mark.parametrize(
    ("forecaster", "name", "value"),
    [
        (forecaster, name, value)
        for forecaster in (TaylorformerForecaster, LAMForecaster, ContiFormerForecaster, UNNForecaster)
        for name, values in WRONG.items()
        for value in values
        if name in forecaster.get_param_names()
    ],
)
def test_values_out_of_range_are_refused_with_the_rule(y, forecaster, name, value):
    with pytest.raises(ValueError, match=re.escape(f"{name}={value!r}, but it must be ")):
        tiny(forecaster, **{name: value}).fit(y)


def test_every_rule_has_a_value_that_breaks_it():
    assert RULES.keys() <= set(WRONG)


@pytest.mark.parametrize(
    "settings",
    [
        {"max_steps": 0},
        {"max_steps": None, "num_epochs": 1},
        {"num_epochs": 0},
        {"validation_split": None},
        {"num_samples": 1},
        {"context_length": 1},
        {"context_length": N - 1},
        {"seasonal_periods": ()},
        {"seasonal_periods": [12, 3.5]},
        {"seasonal_periods": np.array([12])},
        {"seasonal_periods": 1},
        {"seasonal_periods": 1000},
        {"time_features": ()},
        {"time_features": ["year", "month"]},
        {"n_derivative_neighbours": 100},
        {"batch_size": 10_000},
        {"num_samples": np.int64(3)},
        {"batch_size": np.int64(3)},
        {"lr": 1},
        {"patience": 0, "validation_split": 0.3},
        {"device": "cpu"},
    ],
    ids=str,
)
def test_values_at_the_edge_of_the_range_work(y, settings):
    assert np.isfinite(tiny(**settings).fit(y).predict(fh=[-3, 1, 20])).all()


def test_parameters_are_left_as_they_were_given(y):
    settings = {"seasonal_periods": (12,), "trainer_kwargs": {"callbacks": []}, "device": "auto"}
    forecaster = tiny(**settings).fit(y)
    assert {name: forecaster.get_params()[name] for name in settings} == settings


def test_an_unknown_argument_of_the_trainer_is_named(y):
    with pytest.raises(TypeError, match="unexpected keyword argument 'speed'"):
        tiny(trainer_kwargs={"speed": 2}).fit(y)


def test_training_that_diverges_is_an_error(y):
    with pytest.raises(RuntimeError, match=r"training diverged after 30 steps.*smaller lr than 1000000"):
        tiny(lr=1e6, max_steps=30).fit(y)


# --- data -------------------------------------------------------------------------------------------------


def with_value(y, value):
    y = y.copy()
    y.iloc[3] = value
    return y


BAD_DATA = {
    "empty": (lambda y: y.iloc[:0], ValueError, "y is empty"),
    "one point": (lambda y: y.iloc[:1], ValueError, "y has 1 observation, at least 3 are needed"),
    "two points": (lambda y: y.iloc[:2], ValueError, "y has 2 observations, at least 3 are needed"),
    "two values": (lambda y: y.where(np.arange(N) < 2), ValueError, "y has 2 observations, at least 3"),
    "no values": (lambda y: np.nan * y, ValueError, "y column 'sales' has no observed values"),
    "an empty column": (
        lambda y: pd.DataFrame({"a": y, "b": np.nan}),
        ValueError,
        "y column 'b' has no observed values",
    ),
    "no column": (lambda y: pd.DataFrame(index=y.index), ValueError, "y has no columns"),
    "infinite": (lambda y: with_value(y, np.inf), ValueError, "y has infinite values in column 'sales'"),
    "minus infinite": (
        lambda y: with_value(y, -np.inf),
        ValueError,
        "y has infinite values in column 'sales'",
    ),
    "too large": (
        lambda y: with_value(y, 1e200),
        ValueError,
        r"y has values beyond 1e\+150 in column 'sales'",
    ),
    "duplicate stamps": (
        lambda y: y.set_axis(y.index[[0, 1, 2, 2, *range(3, N - 1)]]),
        ValueError,
        r"y has duplicate time stamps: 2000-03 \(first of 1\)",
    ),
    "unsorted": (lambda y: y.iloc[::-1], TypeError, "Unsupported input data type"),
    "float index": (lambda y: y.set_axis(np.arange(N) + 0.5), TypeError, "Unsupported input data type"),
    "time spans": (
        lambda y: y.set_axis(pd.timedelta_range("1h", periods=N, freq="h")),
        TypeError,
        "dates, periods or integers are needed",
    ),
    "objects": (lambda y: y.astype(object), TypeError, "categorical"),
    "words": (lambda y: y.astype(str), TypeError, "categorical"),
    "complex": (lambda y: y.astype(complex), TypeError, "complex"),
    "a list": (list, TypeError, "Unsupported input data type"),
    "equal column labels": (
        lambda y: pd.concat([y, y], axis=1),
        TypeError,
        "Unsupported input data type",
    ),
}


@pytest.mark.parametrize(("change", "error", "message"), BAD_DATA.values(), ids=BAD_DATA)
def test_unfit_data_are_refused_and_an_earlier_fit_survives(y, change, error, message):
    forecaster = tiny().fit(y)
    before = forecaster.predict(fh=[-1, 1])
    with pytest.raises(error, match=message):
        forecaster.fit(change(y))
    pd.testing.assert_series_equal(forecaster.predict(fh=[-1, 1]), before)
    with pytest.raises(error, match=message):
        tiny().fit(change(y))


UNLIKE = [
    ("MS", "ME"),
    ("D", "MS"),
    ("h", "D"),
    ("MS", "QS"),
    ("W-MON", "W-TUE"),
    ("h", "90min"),
    ("h", "min"),
    ("B", "D"),
    ("2D", "D"),
]


@pytest.mark.parametrize(("freq", "other"), UNLIKE)
def test_instances_of_unlike_frequencies_are_refused_and_an_earlier_fit_survives(freq, other):
    indexes = {
        "a": pd.date_range("2015", periods=40, freq=freq),
        "b": pd.date_range("2015", periods=30, freq=other),
    }
    panel = pd.concat({key: pd.DataFrame({"y": np.arange(len(i)) % 7.0}, i) for key, i in indexes.items()})
    forecaster = TaylorformerForecaster(strategy="baseline").fit(panel.loc[["a"]], fh=[1, 2])
    before = forecaster.predict()
    message = f"the dates of instance 'b' have frequency {other}.*, but those of the longest have {freq}"
    with pytest.raises(ValueError, match=message):
        forecaster.fit(panel, fh=[1, 2])
    pd.testing.assert_frame_equal(forecaster.predict(), before)


@pytest.mark.parametrize(("names", "level"), [(("shop", "time"), "'shop'"), (None, "0")])
@pytest.mark.parametrize("missing", [np.nan, None])
def test_an_instance_without_a_name_is_refused(y, names, level, missing):
    panel = pd.concat({"a": y.to_frame(), "b": y.to_frame()}, names=names)
    keys = [(key if key == "a" else missing, t) for key, t in panel.index]
    panel.index = pd.MultiIndex.from_tuples(keys, names=names)
    with pytest.raises(ValueError, match=f"^y has NaN in level {level} of its index, which names the inst"):
        tiny().fit(panel)


@pytest.mark.parametrize("strategy", ["auto", "corrected"])
def test_a_gap_that_is_too_wide_for_an_update_is_named(strategy):
    y = pd.Series(np.arange(60.0) % 7, pd.date_range("2024-01-01", periods=60))
    forecaster = TaylorformerForecaster(random_state=0, strategy=strategy).fit(y, fh=[1])
    before = forecaster.predict()
    late = pd.Series([1.0, 2.0], pd.date_range("2025-06-01", periods=2))
    remedy = "fit again, or take strategy=" if strategy == "auto" else "take strategy='auto' or "
    message = (
        "too many steps have no value for statistical forecasts: there is none between 2024-02-29 00:00:00 "
        f"and 2025-06-01 00:00:00; {remedy}'pretrained'"
    )
    with pytest.raises(ValueError, match=f"^{message}$"):
        forecaster.update(late)
    pd.testing.assert_series_equal(forecaster.predict(), before)
    again = TaylorformerForecaster(random_state=0).fit(pd.concat([y, late]), fh=[1])
    assert np.isfinite(again.predict()).all()


@pytest.mark.parametrize("update_steps", [0, 1])
@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (
            lambda y: pd.DataFrame({"sales": y, "visits": y}),
            ValueError,
            r"y has columns \['sales', 'visits'\]",
        ),
        (lambda y: with_value(y, np.inf), ValueError, "y has infinite values"),
        (lambda y: y.astype(str), TypeError, "categorical"),
        (lambda y: y.set_axis(y.index.to_timestamp()), TypeError, "index of y holds dates, but .* periods"),
        (lambda y: y.set_axis(y.index.asfreq("D")), TypeError, "frequency D, but .* frequency M"),
        (lambda y: y.reset_index(drop=True), TypeError, "index of y holds integers, but .* periods"),
        (lambda y: y.set_axis(y.index[[0, 1, 1, 3, 4]]), ValueError, "y has duplicate time stamps: 2003-01"),
        (lambda y: pd.concat({"shop": y.to_frame()}), ValueError, "y has 2 index level"),
    ],
    ids=[
        *("another column", "infinite", "words", "dates"),
        *("another frequency", "integers", "duplicates", "panel"),
    ],
)
def test_unfit_data_are_refused_at_update(y, update_steps, change, error, message):
    forecaster = tiny(update_steps=update_steps).fit(y.iloc[:35])
    before = forecaster.predict(fh=[-1, 1])
    with pytest.raises(error, match=message):
        forecaster.update(change(y.iloc[35:]))
    assert forecaster.cutoff[0] == y.index[34]
    pd.testing.assert_series_equal(forecaster.predict(fh=[-1, 1]), before)


class Stop(Callback):
    """Fail in the middle of training."""

    def __init__(self, error):
        self.error = error

    def on_train_batch_end(self, trainer, *args):
        if trainer.global_step >= 2:
            raise self.error


@pytest.mark.parametrize("error", [RuntimeError("power cut"), KeyboardInterrupt()], ids=repr)
@pytest.mark.parametrize("method", ["fit", "update"])
def test_training_that_is_interrupted_leaves_the_earlier_fit(y, method, error):
    forecaster = tiny(max_steps=5, update_steps=5).fit(y.iloc[:35])
    weights = {name: value.clone() for name, value in forecaster.network_.state_dict().items()}
    before = forecaster.predict(fh=[-1, 1])
    forecaster.trainer_kwargs = {"callbacks": [Stop(error)]}
    with pytest.raises((RuntimeError, KeyboardInterrupt, SystemExit)):
        getattr(forecaster, method)(y)
    pd.testing.assert_series_equal(forecaster.predict(fh=[-1, 1]), before)
    assert all((value == weights[name]).all() for name, value in forecaster.network_.state_dict().items())


def test_a_fit_that_fails_leaves_an_unfitted_forecaster_unfitted(y):
    forecaster = tiny()
    with pytest.raises(ValueError, match="y has 2 observations"):
        forecaster.fit(y.iloc[:2])
    assert not forecaster.is_fitted
    assert np.isfinite(forecaster.fit(y).predict(fh=[1])).all()


@pytest.mark.parametrize("distribution", ["normal", "mixture"])
def test_paths_that_run_away_are_an_error_and_not_a_forecast_of_nan(y, distribution):
    forecaster = tiny(distribution=distribution).fit(y)
    for parameter in forecaster.network_.streams.to_params.parameters():
        parameter.data += float("nan")
    with pytest.raises(
        RuntimeError, match=r"sample paths run away: they are not finite at 2003-01.* shorter fh"
    ):
        forecaster.predict(fh=[-3, 1])


def test_covariances_need_several_paths(y):
    with pytest.raises(ValueError, match="num_samples=1"):
        tiny(num_samples=1).fit(y).predict_var(fh=[1, 2], cov=True)


@pytest.mark.parametrize("alpha", [-0.1, 1.5])
def test_probabilities_beyond_one_are_refused(y, alpha):
    with pytest.raises(ValueError, match="alpha"):
        tiny().fit(y).predict_quantiles(fh=[1], alpha=[alpha])


def test_predict_before_fit_is_refused():
    with pytest.raises(Exception, match="not been fitted"):
        tiny().predict(fh=[1])


@pytest.mark.parametrize("kind", ["", "_interval", "_quantiles", "_var", "_proba"])
def test_a_horizon_that_is_refused_leaves_that_of_the_fit(kind):
    y = pd.Series(np.arange(40.0), pd.period_range("2000-01", periods=40, freq="M"))
    forecaster = TaylorformerForecaster(strategy="baseline", random_state=0).fit(y, fh=[1, 2])
    before = forecaster.predict()
    for fh in ([10**9], [-500]):
        with pytest.raises(ValueError, match="fh"):
            getattr(forecaster, f"predict{kind}")(fh=fh)
    pd.testing.assert_series_equal(forecaster.predict(), before)
    assert (
        len(forecaster.predict(fh=[1, 2, 3])) == len(forecaster.predict()) == 3
    )  # sktime keeps the last one
