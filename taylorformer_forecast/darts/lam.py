"""The LAM transformer for darts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from taylorformer_forecast.core.attention.registry import Attention
from taylorformer_forecast.darts._base import BaseForecastModel
from taylorformer_forecast.darts._module import ForecastModule
from taylorformer_forecast.models.specs import LAM


class LAMModule(ForecastModule):
    """The LAM transformer for darts."""

    spec = LAM


class LAMModel(BaseForecastModel):
    """LAM transformer: all steps of the output chunk at once, by local attention, with any likelihood.

    Time and memory grow as n log n with the input chunk. With the default likelihood the steps of a sample go
    together as the errors of a linear forecast of the series do; with others they are drawn independently of
    each other within ``output_chunk_length``. Beyond that every sample goes on from an input chunk that ends
    with its own last values.

    Missing target values (NaN) are masked: never attended or scored. The linear forecast that the network
    corrects reads short gaps as straight lines, and long ones as the season before. Components of a
    multivariate series are forecast each from its own past, by one network.

    References
    ----------
    .. [1] Aguilera-Martos, Herrera-Poyatos, Luengo, Herrera: "Local Attention Mechanism: Boosting the
       Transformer Architecture for Long-Sequence Time Series Forecasting", https://arxiv.org/abs/2410.03805

    Examples
    --------
    >>> from darts.utils.timeseries_generation import sine_timeseries
    >>> from taylorformer_forecast.darts import LAMModel
    >>> series = sine_timeseries(length=60, value_frequency=1 / 12).astype("float32")
    >>> quiet = {"accelerator": "cpu", "enable_progress_bar": False}
    >>> model = LAMModel(24, 12, n_epochs=1, random_state=0, pl_trainer_kwargs=quiet)
    >>> model.fit(series).predict(18, num_samples=50).all_values().shape
    (18, 1, 50)
    """

    _module_class = LAMModule

    def __init__(
        self,
        input_chunk_length: int | tuple[int, int],
        output_chunk_length: int,
        output_chunk_shift: int = 0,
        d_model: int = 32,
        n_heads: int = 2,
        n_layers: int = 2,
        dropout: float = 0.0,
        attention: Attention = "local",
        preset: str = "modern",
        time_features: str | Sequence[str] | None = "auto",
        seasonal_periods: str | float | Sequence[float] | None = "auto",
        use_reversible_instance_norm: bool | dict[str, Any] = True,
        lr: float = 2e-3,
        n_epochs: int | None = None,
        use_static_covariates: bool = True,
        joint: bool = False,
        **kwargs: Any,
    ) -> None:
        self._set_up(locals())
