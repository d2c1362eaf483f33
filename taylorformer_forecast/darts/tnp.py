"""The transformer neural process for darts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from taylorformer_forecast.core.protocol import ForecastNet
from taylorformer_forecast.darts._base import BaseForecastModel
from taylorformer_forecast.darts._module import ForecastModule
from taylorformer_forecast.models.tnp import TNPA

__all__ = ["TNPModel"]


class TNPModule(ForecastModule):
    """The transformer neural process for darts."""

    def build_network(self, dim_covariates: int, network: dict[str, Any]) -> ForecastNet:
        """Return the network for windows of one column."""
        return TNPA(dim_covariates=dim_covariates, distribution=self.head, **network)


class TNPModel(BaseForecastModel):
    """TNP-A: joint sample paths from the autoregressive transformer neural process, with any likelihood.

    The baseline of the Taylorformer paper: attention over pairs of time and value, without local expansions
    or positional encoding. Every point of a path is drawn conditional on the path so far. Contexts are
    encoded once for all samples.

    Missing target values (NaN) are masked: never imputed, attended or scored. Components of a multivariate
    series are forecast each from its own past, by one network.

    Parameters
    ----------
    input_chunk_length : int or (int, int)
        Past steps that a forecast is conditioned on. With ``(min, max)`` shorter series are padded.
    output_chunk_length : int
        Future steps of a training window.
    output_chunk_shift : int, default=0
        Steps between the input and the output chunk.
    d_model : int, default=32
        Width of the network.
    n_heads : int, default=4
        Attention heads.
    n_layers : int, default=3
        Layers.
    dropout : float, default=0.0
        Dropout in training, and in predictions with ``mc_dropout=True``.
    value_noise : float, default=0.0
        Standard deviation of noise on the values that targets show in training, in units of the network.
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
    lr : float, default=0.003
        Peak learning rate of AdamW with warm-up and cosine, which train unless ``optimizer_cls``,
        ``optimizer_kwargs`` or ``lr_scheduler_cls`` ask for another optimiser.
    n_epochs : int, optional
        Passes over the training windows. By default about 400 steps, at most 30 passes.
    use_static_covariates : bool, default=True
        Whether to use static covariates.
    **kwargs
        Arguments of all darts torch models: ``likelihood`` (default :class:`StudentTLikelihood`; with a
        ``loss_fn`` and no likelihood, point forecasts), ``batch_size=32``, ``add_encoders``,
        ``random_state``, ``pl_trainer_kwargs``, ``enable_finetuning``, ``model_name``, ``work_dir``,
        ``save_checkpoints`` and others.

    Notes
    -----
    ``predict_likelihood_parameters=True`` returns, for each step, the parameters of its marginal
    distribution over 200 internal sample paths: mean and variance of location-scale families and quantiles
    are matched, other parameters averaged.

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
    _max_epochs = 30
    _network_params = ("d_model", "n_heads", "n_layers", "dropout", "value_noise")

    def __init__(
        self,
        input_chunk_length: int | tuple[int, int],
        output_chunk_length: int,
        output_chunk_shift: int = 0,
        d_model: int = 32,
        n_heads: int = 4,
        n_layers: int = 3,
        dropout: float = 0.0,
        value_noise: float = 0.0,
        time_features: str | Sequence[str] | None = "auto",
        seasonal_periods: str | float | Sequence[float] | None = "auto",
        use_reversible_instance_norm: bool | dict[str, Any] = True,
        lr: float = 3e-3,
        n_epochs: int | None = None,
        use_static_covariates: bool = True,
        **kwargs: Any,
    ) -> None:
        self._set_up()
