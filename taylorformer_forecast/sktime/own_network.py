"""Forecasters for networks that users bring."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from taylorformer_forecast.models.host_class import make_class, signature_of
from taylorformer_forecast.models.spec import ModelSpec
from taylorformer_forecast.sktime._base import BaseTorchForecaster
from taylorformer_forecast.sktime._parameters import VALIDATED, Columns, Options, Periods, Seed

__all__ = ["make_forecaster"]

TEST_PARAMS = tuple(
    {"max_steps": 1, "num_samples": 3, "random_state": 0, **more}
    for more in ({}, {"context_length": 3, **VALIDATED})
)
DOC = """Probabilistic forecasts by the network {spec.name!r}.

    Examples
    --------
    >>> import pandas as pd
    >>> from {module} import {name}
    >>> y = pd.Series([float(k % 5) for k in range(60)])
    >>> {name}(max_steps=1, random_state=0).fit(y).predict_interval(fh=[1, 2]).shape
    (2, 2)
    """


def _template(
    self: Any,
    context_length: int | None = None,
    horizon: int | None = None,
    num_samples: int = 100,
    options: Any = (),
    num_epochs: int | None = 15,
    max_steps: int | None = 400,
    batch_size: int = 16,
    lr: float = 2e-3,
    validation_split: float = 0.0,
    patience: int = 10,
    time_features: str | Sequence[str] | None = "auto",
    seasonal_periods: Periods = "auto",
    distribution: str = "studentt",
    update_steps: int = 0,
    finetune_steps: int = 0,
    past_only: Columns = None,
    device: str = "auto",
    random_state: Seed = None,
    verbose: bool = True,
    trainer_kwargs: Options = None,
    joint: bool = False,
) -> None:
    """Constructor of every class that is made here."""


def make_forecaster(spec: ModelSpec, name: str, module: str) -> type[BaseTorchForecaster]:
    """Class of sktime forecasters for a network of your own.

    It has the parameters that the forecasters of the package share, and the options of the network, and does
    what they do: panels, X, missing values, irregular times, intervals, paths, updates, saving. sktime's test
    suite passes, if the network does its part.

    Parameters
    ----------
    spec : ModelSpec
        How the network is built, and what it can do.
    name : str
        Name of the class. Assign it to a variable of this name at the top level of a module, as pickles and
        ``save`` find it there.
    module : str
        Name of that module: ``__name__``.

    Returns
    -------
    type
        The class; its docstring describes all parameters.

    Examples
    --------
    >>> from sktime.datasets import load_airline
    >>> from taylorformer_forecast.models.specs import TNP
    >>> from taylorformer_forecast.sktime import make_forecaster
    >>> OwnForecaster = make_forecaster(TNP, "OwnForecaster", __name__)
    >>> forecaster = OwnForecaster(d_model=8, max_steps=2, random_state=0).fit(load_airline())
    >>> forecaster.predict_interval(fh=[1, 2, 3], coverage=0.9).shape
    (3, 2)
    """
    usual = {"max_steps": spec.max_steps, "num_epochs": spec.num_epochs, "lr": spec.lr}

    def set_up(self: BaseTorchForecaster, arguments: dict[str, Any]) -> None:
        self._store(arguments)
        BaseTorchForecaster.__init__(self)

    signature = signature_of(_template, spec, usual)
    own = {
        "spec": spec,
        "_free": tuple(spec.defaults),
        "_test_params": TEST_PARAMS,
        "__doc__": DOC.format(spec=spec, name=name, module=module),
    }
    return make_class(BaseTorchForecaster, name, module, signature, set_up, **own)
