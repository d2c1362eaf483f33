"""The LAM transformer for darts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from taylorformer_forecast.baselines.linear import LinearBaseline
from taylorformer_forecast.core.protocol import ForecastNet
from taylorformer_forecast.darts._base import BaseForecastModel
from taylorformer_forecast.darts._module import ForecastModule
from taylorformer_forecast.models.lam import LAMTransformer
from taylorformer_forecast.models.lam_trunks import Attention

__all__ = ["LAMModel"]


class LAMModule(ForecastModule):
    """The LAM transformer for darts."""

    def build_network(self, dim_covariates: int, network: dict[str, Any]) -> ForecastNet:
        """Return the network for windows of one column."""
        sizes, baseline = (self.input_chunk_length, self.output_chunk_length or 1), None
        if self.head.has_location and network["preset"] == "modern":
            baseline = LinearBaseline(*sizes)
        return LAMTransformer(
            *sizes,
            dim_covariates=dim_covariates,
            distribution=self.head,
            baseline=baseline,
            weight=self.network_weight,
            **network,
        )


class LAMModel(BaseForecastModel):
    """LAM transformer: all steps of the output chunk at once, by local attention, with any likelihood.

    Time and memory grow as n log n with the input chunk. With the default likelihood the steps of a sample go
    together as the errors of a linear forecast of the series do; with others they are drawn independently of
    each other within ``output_chunk_length``. Beyond that every sample goes on from an input chunk that ends
    with its own last values.

    Missing target values (NaN) are masked: never imputed, attended or scored. Components of a multivariate
    series are forecast each from its own past, by one network.

    Parameters
    ----------
    input_chunk_length : int or (int, int)
        Past steps that a forecast is conditioned on. With ``(min, max)`` shorter series are padded.
    output_chunk_length : int
        Future steps predicted at once.
    output_chunk_shift : int, default=0
        Steps between the input and the output chunk.
    d_model : int, default=32
        Width of the network; of ``preset="modern"`` only, as are the heads.
    n_heads : int, default=4
        Attention heads.
    n_layers : int, default=2
        Encoder layers, and decoder layers of ``preset="faithful"``.
    dropout : float, default=0.1
        Dropout in training, and in predictions with ``mc_dropout=True``.
    attention : str or callable, default="local"
        Attention kernel, a name in :data:`taylorformer_forecast.core.attention.registry.KERNELS` or a kernel.
    preset : {"modern", "faithful"}, default="modern"
        "faithful" is the architecture of the paper; see
        :class:`~taylorformer_forecast.models.lam.LAMTransformer`.
    time_features : "auto", None or tuple of str, default="auto"
        Cycles of the calendar among "day", "week", "month", "year" whose phases the network sees, added to
        the future covariates as by ``add_encoders``. "auto" takes those that the index resolves and that the
        longest target series covers at least twice.
    seasonal_periods : "auto", None, number or sequence of numbers, default="auto"
        Further seasons, in steps. "auto" looks for them in the autocorrelation of that series.
    use_reversible_instance_norm : bool or dict, default=True
        Whether windows are centred and scaled by what was observed of their input chunk. Parameters of
        likelihoods with location and scale, and quantiles, are returned to the units of the data one by one.
        Likelihoods of counts, probabilities or positive values have a natural unit and are never normalised.
    lr : float, default=0.002
        Peak learning rate of AdamW with warm-up and cosine, which train unless ``optimizer_cls``,
        ``optimizer_kwargs`` or ``lr_scheduler_cls`` ask for another optimiser.
    n_epochs : int, optional
        Passes over the training windows. By default about 400 steps, at most 15 passes.
    use_static_covariates : bool, default=True
        Whether to use static covariates.
    **kwargs
        Arguments of all darts torch models: ``likelihood`` (default :class:`StudentTLikelihood`; with a
        ``loss_fn`` and no likelihood, point forecasts), ``batch_size=32``, ``add_encoders``,
        ``random_state``, ``pl_trainer_kwargs``, ``enable_finetuning``, ``model_name``, ``work_dir``,
        ``save_checkpoints`` and others.

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
    _has_onnx = True
    _network_params = ("d_model", "n_heads", "n_layers", "dropout", "attention", "preset")

    def __init__(
        self,
        input_chunk_length: int | tuple[int, int],
        output_chunk_length: int,
        output_chunk_shift: int = 0,
        d_model: int = 32,
        n_heads: int = 4,
        n_layers: int = 2,
        dropout: float = 0.1,
        attention: Attention = "local",
        preset: str = "modern",
        time_features: str | Sequence[str] | None = "auto",
        seasonal_periods: str | float | Sequence[float] | None = "auto",
        use_reversible_instance_norm: bool | dict[str, Any] = True,
        lr: float = 2e-3,
        n_epochs: int | None = None,
        use_static_covariates: bool = True,
        **kwargs: Any,
    ) -> None:
        self._set_up()
