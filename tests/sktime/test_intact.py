"""Fits that fail leave estimators as they were, and what the caller has set in torch does not matter."""

import signal
from contextlib import nullcontext

import numpy as np
import pandas as pd
import pytest
import torch
from all_models import NAMES, small, trained
from pytorch_lightning import Callback
from sktime.datasets import load_airline
from sktime.split import ExpandingWindowSplitter, SlidingWindowSplitter

from taylorformer_forecast import sktime as hosts

SHORT = {"max_steps": 2, "num_samples": 10}
SERIES = load_airline().astype(float)
GAPS = SERIES.copy()
GAPS.iloc[50:53] = np.nan


class Interrupt(Callback):
    def on_train_batch_end(self, *_):
        raise KeyboardInterrupt


def forecaster(name="Taylorformer", **options):
    kind = getattr(hosts, f"{name}Forecaster")
    return kind(**trained(kind, **SHORT | options))


def imputer(**options):
    return hosts.TaylorformerImputer(**small(hosts.TaylorformerImputer, **SHORT | options))


def answer(estimator):
    if isinstance(estimator, hosts.TaylorformerImputer):
        return estimator.transform(GAPS).to_numpy()
    return estimator.predict([1, 2, 30]).to_numpy()


def corrected(**options):
    return hosts.TaylorformerForecaster(strategy="corrected", num_samples=10, random_state=0, **options)


MAKERS = {name: lambda name=name, **o: forecaster(name, **o) for name in NAMES}
MAKERS |= {"imputer": imputer, "corrected": corrected}
EVERY = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)


@pytest.mark.parametrize("make", [forecaster, imputer])
def test_an_interrupted_fit_is_a_keyboard_interrupt_and_loses_nothing(make):
    estimator = make().fit(GAPS)
    before, handler = answer(estimator), signal.getsignal(signal.SIGINT)
    estimator.trainer_kwargs = {"callbacks": [Interrupt()]}
    with pytest.raises(KeyboardInterrupt):
        estimator.fit(GAPS[:100])
    assert signal.getsignal(signal.SIGINT) is handler
    np.testing.assert_array_equal(answer(estimator), before)


@pytest.mark.parametrize("make", [forecaster, imputer])
def test_a_refused_fit_loses_nothing(make):
    estimator = make().fit(GAPS)
    before = answer(estimator)
    with pytest.raises(ValueError, match="infinite values"):
        estimator.fit(GAPS.replace(GAPS.iloc[3], np.inf))
    np.testing.assert_array_equal(answer(estimator), before)


@EVERY
def test_answers_do_not_depend_on_the_default_dtype_or_on_autocast(make):
    estimator = make().fit(GAPS)
    expected = answer(estimator)
    torch.set_default_dtype(torch.float64)
    try:
        np.testing.assert_array_equal(answer(estimator), expected)
        assert torch.get_default_dtype() is torch.float64
    finally:
        torch.set_default_dtype(torch.float32)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        np.testing.assert_array_equal(answer(estimator), expected)
        assert torch.is_autocast_enabled("cpu")


@EVERY
def test_the_default_device_of_the_caller_does_not_matter(make):
    """With "cuda" tensors of two devices met."""
    expected = answer(make().fit(GAPS))
    torch.set_default_device("meta")
    try:
        found = answer(make().fit(GAPS))
        np.testing.assert_allclose(found, expected, rtol=1e-6)  # torch takes other kernels then
        assert torch.get_default_device() == torch.device("meta")
    finally:
        torch.set_default_device(None)


@pytest.mark.parametrize("make", [forecaster, corrected])
def test_another_thread_may_change_the_default_dtype_while_predictions_are_made(make, monkeypatch):
    estimator = make().fit(GAPS)
    expected = answer(estimator)
    torch.set_default_dtype(torch.float64)
    try:
        monkeypatch.setattr(torch, "set_default_dtype", lambda dtype: None)
        np.testing.assert_array_equal(answer(estimator), expected)
    finally:
        monkeypatch.undo()
        torch.set_default_dtype(torch.float32)


@pytest.mark.parametrize("make", [forecaster, imputer, corrected])
@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode, lambda: torch.autocast("cpu")])
def test_a_fit_does_not_depend_on_what_the_caller_has_set(make, mode):
    with mode():
        inside = make().fit(GAPS)
    np.testing.assert_array_equal(answer(inside), answer(make().fit(GAPS)))


@pytest.mark.parametrize("mode", [nullcontext, torch.inference_mode])
def test_an_update_trains_in_the_dtype_of_the_network(mode):
    fitted = forecaster(update_steps=2).fit(SERIES[:100])
    expected = fitted.clone().fit(SERIES[:100]).update(SERIES[100:]).predict([1]).to_numpy()
    torch.set_default_dtype(torch.float64)
    try:
        with mode():
            fitted.update(SERIES[100:])
    finally:
        torch.set_default_dtype(torch.float32)
    np.testing.assert_array_equal(fitted.predict([1]).to_numpy(), expected)


@pytest.mark.parametrize("name", ["update", "update_predict_single", "update_predict"])
def test_data_that_are_refused_leave_the_cutoff_where_it_was(name):
    fitted = corrected().fit(SERIES[:100], fh=[1])
    before, cutoff = answer(fitted), fitted.cutoff
    refused = SERIES[100:110].replace(SERIES.iloc[106], np.inf)
    more = {}
    if name == "update_predict":
        splits = SlidingWindowSplitter(fh=[1], window_length=2, step_length=2, start_with_window=False)
        more = {"cv": splits, "reset_forecaster": False}
    with pytest.raises(ValueError, match="infinite values"):
        getattr(fitted, name)(refused, **more)
    assert fitted.cutoff.equals(cutoff)
    np.testing.assert_array_equal(answer(fitted), before)


@pytest.mark.parametrize("name", ["update", "update_predict_single"])
def test_a_value_that_comes_late_moves_no_cutoff_back(name):
    late = SERIES[50:51]
    fitted = corrected().fit(SERIES[:100].drop(late.index), fh=[1])
    getattr(fitted, name)(late)
    assert fitted.cutoff[0] == SERIES.index[99]
    np.testing.assert_array_equal(answer(fitted), answer(corrected().fit(SERIES[:100], fh=[1])))


# ---- formats ------------------------------------------------------------------------------------------


def irregular(n=100):
    days = np.sort(np.random.default_rng(0).choice(3 * n, n, replace=False))
    return pd.Series(np.sin(np.arange(n) / 3) + 5, pd.Timestamp("2020") + pd.to_timedelta(days, unit="D"))


@pytest.mark.parametrize("y", [SERIES, irregular()], ids=["regular", "irregular"])
@pytest.mark.parametrize("reset", [True, False])
def test_a_series_stays_a_series_in_updates_and_backtests(y, reset):
    fitted = forecaster().fit(y[:60])
    sliding = SlidingWindowSplitter(fh=[1], window_length=5, step_length=15, start_with_window=False)
    expanding = ExpandingWindowSplitter(fh=[1], initial_window=5, step_length=15)
    for cv in (sliding, expanding):
        moved = fitted if reset else fitted.clone().fit(y[:60])
        assert isinstance(moved.update_predict(y[60:100], cv=cv, reset_forecaster=reset), pd.Series)
        assert isinstance(moved.predict([1]), pd.Series)
    assert isinstance(fitted.update_predict_single(y[60:70], fh=[1]), pd.Series)
    assert isinstance(fitted.predict([1]), pd.Series)


# ---- requests -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1.5, 0, -1, "a", True, None])
def test_the_number_of_draws_is_a_whole_number(n):
    fitted = imputer().fit(GAPS)
    with pytest.raises(ValueError, match=r"n_samples=.*whole number, at least 1"):
        fitted.sample(GAPS, n)


def test_no_levels_at_all_are_refused():
    fitted = forecaster().fit(SERIES)
    for name, ask in (
        ("alpha", lambda: fitted.predict_quantiles([1], alpha=[])),
        ("coverage", lambda: fitted.predict_interval([1], coverage=[])),
        ("alpha", lambda: imputer().fit(GAPS).transform_quantiles(GAPS, alpha=[])),
    ):
        with pytest.raises(ValueError, match=f"{name} is empty"):
            ask()


def test_errors_in_panels_name_the_instance_and_no_numpy_types():
    panel = pd.concat({key: SERIES.to_frame(7) for key in (np.int64(0), np.int64(1))}, names=["id"])
    wrong = panel.copy()
    wrong.iloc[150] = np.inf
    with pytest.raises(ValueError, match=r"y has infinite values in column 7 of instance 1$"):
        forecaster().fit(wrong)
    nested = pd.concat({np.int64(4): wrong}, names=["group"])
    with pytest.raises(ValueError, match=r"in column 7 of instance \(4, 1\)$"):
        forecaster().fit(nested)
