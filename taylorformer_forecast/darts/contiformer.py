"""The ContiFormer for darts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from taylorformer_forecast.core.attention.registry import Attention
from taylorformer_forecast.darts._base import BaseForecastModel
from taylorformer_forecast.darts._module import ForecastModule
from taylorformer_forecast.models.specs import CONTIFORMER


class ContiFormerModule(ForecastModule):
    """The ContiFormer for darts."""

    spec = CONTIFORMER


class ContiFormerModel(BaseForecastModel):
    """ContiFormer: attention in continuous time over what was observed, with any likelihood.

    Keys and values of the observed steps move on from their own times, by default by a linear equation that
    is solved exactly. By default every point of a sample is drawn conditional on the sample so far, so that
    samples are whole trajectories; ``joint=False`` predicts all steps of the output chunk at once, each on
    its own. Beyond ``output_chunk_length`` every sample goes on from an input chunk that ends with its own
    last values.

    Missing target values (NaN) are masked: never attended or scored. The linear forecast that the network
    corrects reads short gaps as straight lines, and long ones as the season before. Components of a
    multivariate series are forecast each from its own past, by one network.

    References
    ----------
    .. [1] Chen, Ren, Wang, Fang, Sun, Li: "ContiFormer: Continuous-Time Transformer for Irregular Time Series
       Modeling", NeurIPS 2023, https://arxiv.org/abs/2402.10635

    Examples
    --------
    >>> from darts.utils.timeseries_generation import sine_timeseries
    >>> from taylorformer_forecast.darts import ContiFormerModel
    >>> series = sine_timeseries(length=60, value_frequency=1 / 12).astype("float32")
    >>> quiet = {"accelerator": "cpu", "enable_progress_bar": False}
    >>> model = ContiFormerModel(24, 12, n_epochs=1, random_state=0, pl_trainer_kwargs=quiet)
    >>> model.fit(series).predict(18, num_samples=50).all_values().shape
    (18, 1, 50)
    """

    _module_class = ContiFormerModule

    def __init__(
        self,
        input_chunk_length: int | tuple[int, int],
        output_chunk_length: int,
        output_chunk_shift: int = 0,
        d_model: int = 32,
        n_heads: int = 2,
        n_layers: int = 1,
        dropout: float = 0.1,
        joint: bool | None = None,
        dynamics: str = "linear",
        solver: str | None = None,
        attention: Attention = "full",
        time_features: str | Sequence[str] | None = "auto",
        seasonal_periods: str | float | Sequence[float] | None = "auto",
        use_reversible_instance_norm: bool | dict[str, Any] = True,
        lr: float = 3e-3,
        n_epochs: int | None = None,
        use_static_covariates: bool = True,
        **kwargs: Any,
    ) -> None:
        self._set_up(locals())
