"""The Taylorformer for darts."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from typing import Any

from taylorformer_forecast.core.attention.registry import Attention
from taylorformer_forecast.darts._pretrained import PretrainedModel
from taylorformer_forecast.darts._pretrained_module import PretrainedModule
from taylorformer_forecast.models.specs import TAYLORFORMER


class TaylorformerModule(PretrainedModule):
    """The Taylorformer for darts."""

    spec = TAYLORFORMER


class TaylorformerModel(PretrainedModel):
    """Joint sample paths by statistics and by the Taylorformer, an autoregressive transformer.

    By default series of fewer observed values than sixteen output chunks are forecast by statistics, which a
    pretrained network corrects; no network is trained. On longer series one is trained, and averaged with
    these (``strategy``). Statistics read the series whatever ``input_chunk_length`` is. Any likelihood can be
    had; all but the default one train a network alone.

    A network that is trained draws every point of a path conditional on the path so far, so that samples are
    whole trajectories, also for horizons beyond ``output_chunk_length``. Contexts are encoded once for all
    samples.

    Missing target values (NaN) are masked: never attended or scored. The linear forecast that the network
    corrects reads short gaps as straight lines, and long ones as the season before. Components of a
    multivariate series are forecast each from its own past; a network that is trained serves all of them.

    References
    ----------
    .. [1] Nivron, Parthipan, Wischik: "Taylorformer: Probabilistic Modelling for Random Processes including
       Time Series", https://arxiv.org/abs/2305.19141

    Examples
    --------
    >>> from darts.utils.timeseries_generation import sine_timeseries
    >>> from taylorformer_forecast.darts import TaylorformerModel
    >>> series = sine_timeseries(length=60, value_frequency=1 / 12).astype("float32")
    >>> quiet = {"accelerator": "cpu", "enable_progress_bar": False}
    >>> model = TaylorformerModel(24, 12, n_epochs=1, random_state=0, pl_trainer_kwargs=quiet)
    >>> model.fit(series).predict(18, num_samples=50).all_values().shape
    (18, 1, 50)
    """

    _module_class = TaylorformerModule

    def __init__(
        self,
        input_chunk_length: int | tuple[int, int],
        output_chunk_length: int,
        output_chunk_shift: int = 0,
        d_model: int = 32,
        n_heads: int = 2,
        n_layers: int = 2,
        dropout: float = 0.1,
        linear_path: bool = True,
        taylor_order: int = 0,
        n_derivative_neighbours: int = 1,
        attention: Attention = "full",
        time_features: str | Sequence[str] | None = "auto",
        seasonal_periods: str | float | Sequence[float] | None = "auto",
        use_reversible_instance_norm: bool | dict[str, Any] = True,
        lr: float = 2e-3,
        n_epochs: int | None = None,
        use_static_covariates: bool = True,
        strategy: str = "auto",
        pretrained: str | PathLike[str] = "default",
        joint: bool = False,
        **kwargs: Any,
    ) -> None:
        self._set_up(locals())
