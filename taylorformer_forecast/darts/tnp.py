"""The transformer neural process for darts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from taylorformer_forecast.core.attention.registry import Attention
from taylorformer_forecast.darts._base import BaseForecastModel
from taylorformer_forecast.darts._module import ForecastModule
from taylorformer_forecast.models.specs import TNP


class TNPModule(ForecastModule):
    """The transformer neural process for darts."""

    spec = TNP


class TNPModel(BaseForecastModel):
    """TNP-A: joint sample paths from the autoregressive transformer neural process, with any likelihood.

    The baseline of the Taylorformer paper: attention over pairs of time and value, without local expansions
    or positional encoding. Every point of a path is drawn conditional on the path so far. Contexts are
    encoded once for all samples.

    Missing target values (NaN) are masked: never imputed, attended or scored. Components of a multivariate
    series are forecast each from its own past, by one network.

    References
    ----------
    .. [1] Nguyen, Grover: "Transformer Neural Processes: Uncertainty-Aware Meta Learning Via Sequence
       Modeling", https://arxiv.org/abs/2207.04179

    Examples
    --------
    >>> from darts.utils.timeseries_generation import sine_timeseries
    >>> from taylorformer_forecast.darts import TNPModel
    >>> series = sine_timeseries(length=60, value_frequency=1 / 12).astype("float32")
    >>> quiet = {"accelerator": "cpu", "enable_progress_bar": False}
    >>> model = TNPModel(24, 12, n_epochs=1, random_state=0, pl_trainer_kwargs=quiet)
    >>> model.fit(series).predict(18, num_samples=50).all_values().shape
    (18, 1, 50)
    """

    _module_class = TNPModule

    def __init__(
        self,
        input_chunk_length: int | tuple[int, int],
        output_chunk_length: int,
        output_chunk_shift: int = 0,
        d_model: int = 32,
        n_heads: int = 2,
        n_layers: int = 3,
        dropout: float = 0.0,
        value_noise: float = 0.0,
        attention: Attention = "full",
        time_features: str | Sequence[str] | None = "auto",
        seasonal_periods: str | float | Sequence[float] | None = "auto",
        use_reversible_instance_norm: bool | dict[str, Any] = True,
        lr: float = 3e-3,
        n_epochs: int | None = None,
        use_static_covariates: bool = True,
        joint: bool = False,
        **kwargs: Any,
    ) -> None:
        self._set_up(locals())
