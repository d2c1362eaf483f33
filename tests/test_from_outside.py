"""A family, a kernel, a baseline and a model from outside the package go through both hosts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
import pytest
from darts import TimeSeries
from outside import LaplaceFamily, LastValue, Level, Sharp, Walk, WholeOnly
from outside_hosts import (
    LastValueForecaster,
    LastValueModel,
    LevelForecaster,
    LevelModel,
    TogetherForecaster,
    TogetherModel,
    WalkForecaster,
    WalkModel,
)
from quiet import QUIET
from sktime.base import load

from taylorformer_forecast.core.attention import registry as kernels
from taylorformer_forecast.core.families import registry as families
from taylorformer_forecast.darts import FamilyLikelihood, TaylorformerModel, make_model
from taylorformer_forecast.models.spec import ModelSpec
from taylorformer_forecast.models.specs import UNN
from taylorformer_forecast.sktime import TaylorformerForecaster, make_forecaster

SMALL = {"d_model": 8, "n_heads": 2}


@dataclass
class Extension:
    """Something from outside, and how users of the hosts ask for it.

    ``part`` is what it puts into a network, ``where`` finds that in one.
    """

    part: type
    where: Callable[[Any], Any]
    forecaster: Callable[..., Any] = TaylorformerForecaster
    model: Callable[..., Any] = TaylorformerModel
    options: dict[str, Any] = field(default_factory=lambda: {**SMALL, "strategy": "train"})
    in_sktime: dict[str, Any] = field(default_factory=dict)
    in_darts: dict[str, Any] = field(default_factory=dict)


EXTENSIONS = {
    "family": Extension(
        LaplaceFamily,
        lambda net: families.find_family(getattr(net.head, "distribution_name", net.head)),
        in_sktime={"distribution": "outside"},
        in_darts={"likelihood": lambda: FamilyLikelihood("outside")},
    ),
    "kernel": Extension(
        Sharp,
        lambda net: next(m.kernel for m in net.modules() if type(getattr(m, "kernel", None)) is Sharp),
        options={**SMALL, "strategy": "train", "attention": "outside"},
    ),
    "baseline": Extension(
        LastValue, lambda net: net.baseline, LastValueForecaster, LastValueModel, options=SMALL
    ),
    "model": Extension(Level, lambda net: net, LevelForecaster, LevelModel, options={"width": 4}),
    "stepwise model": Extension(Walk, lambda net: net, WalkForecaster, WalkModel, options={}),
}


@pytest.fixture(autouse=True)
def _registered():
    """Register as a user does at import: one line each. It is undone after the test."""
    families.register("outside", LaplaceFamily)
    kernels.register("outside", Sharp())


VALUES = 3 + np.sin(np.arange(60) / 2) + 0.1 * np.random.default_rng(0).normal(size=60)


def in_sktime(extension, folder):
    """The network, its forecasts, and those of what was saved and loaded in sktime."""
    settings = {"context_length": 12, "max_steps": 2, "num_samples": 20, "random_state": 0}
    forecaster = extension.forecaster(**settings, **extension.options, **extension.in_sktime)
    forecaster.fit(pd.Series(VALUES), fh=range(1, 9))
    forecaster.save(folder / "forecaster")

    def forecasts(one):
        drawn = one.predict_proba(marginal=False).sample(5)
        return [one.predict(), one.predict_quantiles(alpha=[0.1, 0.9]), drawn]

    found, again = forecasts(forecaster), forecasts(load(folder / "forecaster.zip"))
    return forecaster.network_, *([each.to_numpy() for each in of] for of in (found, again))


def in_darts(extension, folder):
    """The same in darts."""
    options = {name: make() for name, make in extension.in_darts.items()}
    model = extension.model(
        12, 4, n_epochs=1, random_state=0, pl_trainer_kwargs=QUIET, **extension.options, **options
    )
    model.fit(TimeSeries.from_values(VALUES.astype("float32")))
    model.save(str(folder / "model.pt"))

    def forecasts(one):
        drawn = one.predict(8, num_samples=5, random_state=0)
        return [drawn, one.predict(4, predict_likelihood_parameters=True, random_state=0)]

    found = forecasts(model)
    again = forecasts(type(model).load(str(folder / "model.pt"), pl_trainer_kwargs=QUIET))
    return model.model.net, *([each.all_values() for each in of] for of in (found, again))


@pytest.mark.parametrize("host", [in_sktime, in_darts], ids=["sktime", "darts"])
@pytest.mark.parametrize("extension", EXTENSIONS.values(), ids=EXTENSIONS)
def test_what_is_added_from_outside_fits_forecasts_draws_saves_and_loads(extension, host, tmp_path):
    net, found, again = host(extension, tmp_path)
    assert type(extension.where(net)) is extension.part
    for first, second in zip(found, again, strict=True):
        assert np.isfinite(first).all()
        assert np.ptp(first) > 0
        np.testing.assert_allclose(second, first, rtol=1e-6)


@pytest.mark.parametrize("host", [in_sktime, in_darts], ids=["sktime", "darts"])
def test_a_kernel_without_a_one_query_form_is_refused_by_both_hosts(host, tmp_path):
    kernels.register("whole only", WholeOnly())
    extension = Extension(
        WholeOnly, lambda net: net, options={"strategy": "train", "attention": "whole only"}
    )
    with pytest.raises(ValueError, match="'whole only' does not answer one query at a time"):
        host(extension, tmp_path)


def test_options_of_a_network_of_ones_own_may_have_names_of_the_packages_models():
    assert TogetherForecaster(order=0.5, random_state=0).fit(pd.Series(VALUES)).network_.order == 0.5
    model = TogetherModel(12, 4, order=2.5, n_epochs=0, pl_trainer_kwargs=QUIET)
    assert model.model_params["order"] == 2.5


@pytest.mark.parametrize("make", [make_forecaster, make_model])
def test_an_option_with_the_name_of_a_shared_parameter_is_refused_when_the_class_is_made(make):
    def build(task, *, lr=1): ...

    with pytest.raises(ValueError, match="the network has an option 'lr', but all classes have"):
        make(ModelSpec("rates", build), "Rates", __name__)


def test_a_network_without_weights_forecasts_and_several_columns_share_its_windows():
    rng = np.random.default_rng(0)
    y = pd.DataFrame(rng.normal(size=(60, 2)), columns=["a", "b"])
    fitted = TogetherForecaster(random_state=0).fit(y, fh=[1, 2])
    assert fitted.summary().steps == 0
    assert fitted.predict_interval().notna().all(axis=None)


def test_what_shares_windows_needs_as_many_columns_as_in_pretraining():
    rng = np.random.default_rng(0)
    y = pd.DataFrame(rng.normal(size=(60, 2)), columns=["a", "b"])
    panel = pd.concat({"p": y, "q": y})
    pretrained = TogetherForecaster(random_state=0).pretrain(panel)
    assert pretrained.clone().fit(y, fh=[1]).predict().shape == (1, 2)
    with pytest.raises(ValueError, match="y has 1 columns in fit, but the forecaster was pretrained with 2"):
        pretrained.fit(y[["a"]], fh=[1])


def test_samples_of_components_that_share_windows_are_drawn_together():
    rng = np.random.default_rng(0)
    first, alone = rng.normal(size=(2, 60))
    values = np.stack([first, alone, first + 0.1 * rng.normal(size=60)], 1)
    settings = {"n_epochs": 1, "random_state": 0, "pl_trainer_kwargs": QUIET}
    model = make_model(UNN, "JoinedModel", __name__)(12, 4, joint=True, **settings)
    model.fit(TimeSeries.from_values(values.astype("float32")))
    drawn = model.predict(4, num_samples=300, random_state=0).all_values()
    found = np.corrcoef(drawn[0])
    assert found[0, 2] > 0.6
    assert abs(found[0, 1]) < 0.4
