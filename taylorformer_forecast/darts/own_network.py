"""darts models for networks that users bring."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from darts.utils.serialization import add_safe_globals

from taylorformer_forecast.darts._base import BaseForecastModel
from taylorformer_forecast.darts._module import ForecastModule
from taylorformer_forecast.models.host_class import make_class, signature_of
from taylorformer_forecast.models.spec import ModelSpec

__all__ = ["make_model"]


def _template(
    self: Any,
    input_chunk_length: int | tuple[int, int],
    output_chunk_length: int,
    output_chunk_shift: int = 0,
    options: Any = (),
    time_features: str | Sequence[str] | None = "auto",
    seasonal_periods: str | float | Sequence[float] | None = "auto",
    use_reversible_instance_norm: bool | dict[str, Any] = True,
    lr: float = 2e-3,
    n_epochs: int | None = None,
    use_static_covariates: bool = True,
    joint: bool = False,
    **kwargs: Any,
) -> None:
    """Constructor of every class that is made here."""


def make_model(spec: ModelSpec, name: str, module: str) -> type[BaseForecastModel]:
    """Class of darts models for a network of your own.

    It has the parameters that the models of the package share, and the options of the network, and does what
    they do: covariates, many series, backtests, samples, likelihoods, saving. ``load`` takes its files, as it
    is one of the classes that darts unpickles.

    Parameters
    ----------
    spec : ModelSpec
        How the network is built, and what it can do.
    name : str
        Name of the class. Assign it to a variable of this name at the top level of a module, as pickles and
        ``load`` find it there.
    module : str
        Name of that module: ``__name__``. It also gets the class of Lightning modules, named ``name`` and
        "Module", where darts looks for it when it loads a model.

    Returns
    -------
    type
        The class; its docstring describes all parameters.

    Examples
    --------
    >>> from darts.utils.timeseries_generation import sine_timeseries
    >>> from taylorformer_forecast.darts import make_model
    >>> from taylorformer_forecast.models.specs import TNP
    >>> OwnModel = make_model(TNP, "OwnModel", __name__)
    >>> series = sine_timeseries(length=60, value_frequency=1 / 12).astype("float32")
    >>> quiet = {"accelerator": "cpu", "enable_progress_bar": False}
    >>> model = OwnModel(24, 12, d_model=8, n_epochs=1, random_state=0, pl_trainer_kwargs=quiet)
    >>> model.fit(series).predict(18, num_samples=50).all_values().shape
    (18, 1, 50)
    """
    network = type(f"{name}Module", (ForecastModule,), {"__module__": module, "spec": spec})
    if module in sys.modules:
        setattr(sys.modules[module], network.__name__, network)
    doc = f"Probabilistic forecasts by the network {spec.name!r}."
    signature = signature_of(_template, spec, {"lr": spec.lr})
    own = {"_module_class": network, "_free": tuple(spec.defaults), "__doc__": doc}
    made = make_class(BaseForecastModel, name, module, signature, BaseForecastModel._set_up, **own)
    add_safe_globals([made])
    return made
