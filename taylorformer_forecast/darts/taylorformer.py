"""The Taylorformer for darts."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from typing import Any

from taylorformer_forecast.baselines.linear_path import LinearPathBaseline
from taylorformer_forecast.core.protocol import ForecastNet
from taylorformer_forecast.darts._pretrained import PretrainedModel, PretrainedModule
from taylorformer_forecast.engine.pretrained import build_direct
from taylorformer_forecast.models.lam_trunks import Attention
from taylorformer_forecast.models.taylorformer import Taylorformer

__all__ = ["TaylorformerModel"]


class TaylorformerModule(PretrainedModule):
    """The Taylorformer for darts."""

    usual_network_weight = 0.75

    def build_network(self, dim_covariates: int, network: dict[str, Any]) -> ForecastNet:
        """Return the network for windows of one column."""
        options = {
            "dim_covariates": dim_covariates,
            "distribution": self.head,
            # Slopes are per input chunk: absent only if y jumps by 20 deviations in one step.
            "derivative_clip": 20.0 * self.input_chunk_length,
            **network,
        }
        sizes = (self.input_chunk_length, self.output_chunk_length or 1)
        shift, settings = self.output_chunk_shift, options.pop("pretrained", None)
        if settings is not None:
            cycles, dropout = settings["max_cycles"], options["dropout"]
            return build_direct(settings, cycles, *sizes, self.n_phases, shift, dropout=dropout)
        baseline = None
        if options.pop("linear_path") and self.head.has_location:
            baseline = LinearPathBaseline(*sizes, shift)
        return Taylorformer(baseline=baseline, weight=self.network_weight, **options)


class TaylorformerModel(PretrainedModel):
    """Taylorformer: joint sample paths from an autoregressive transformer, with any likelihood.

    Every point of a path is drawn conditional on the path so far, so that samples are whole trajectories,
    also for horizons beyond ``output_chunk_length``. Contexts are encoded once for all samples.

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
    n_heads : int, default=2
        Attention heads.
    n_layers : int, default=2
        Layers of each of the two streams.
    dropout : float, default=0.1
        Dropout in training, and in predictions with ``mc_dropout=True``.
    linear_path : bool, default=True
        Whether a point is predicted around a linear forecast from the input chunk, fitted in closed form
        before training, and the errors it made on the path so far
        (:class:`~taylorformer_forecast.baselines.linear_anchor.LinearAnchor`). Of what the network adds to
        that,
        three quarters are trusted, or all if there are covariates, which the linear forecast does not see,
        and for point forecasts. Without it, or with a likelihood that has no location, around the value at
        the nearest earlier neighbour, as in the paper.
    taylor_order : {0, 1}, default=0
        Without ``linear_path``: terms of the local Taylor expansion around which a point is predicted.
    n_derivative_neighbours : int, default=1
        Neighbours over which derivatives are averaged, for noisy series.
    attention : str or callable, default="full"
        Attention of the stream over values: "full", "local" (the last ``4 ceil(ln n)`` points, for long
        horizons) or a kernel that answers one query at a time
        (:class:`~taylorformer_forecast.core.attention.kernels.Kernel`).
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
        Passes over the training windows. By default about 150 steps, at most 15 passes.
    use_static_covariates : bool, default=True
        Whether to use static covariates.
    strategy : {"auto", "pretrained", "train", "finetune"}, default="auto"
        How series are forecast. "pretrained": by a network that was trained on other series; only its
        baseline and its calibration are fitted. "train": by a new network, trained on the series.
        "finetune": by the pretrained network, trained further. "auto" looks at the data alone: the
        pretrained network forecasts where the series have fewer observed values than sixteen output chunks,
        without covariates; all else is trained, and so is what the pretrained network cannot do (another
        likelihood). Sizes and training parameters, ``n_epochs`` too, are those of a network that is trained.
        What was done is ``summary()``.
    pretrained : "default" or path, default="default"
        The pretrained network: the one in the package, which has seen synthetic series of many kinds, or a
        file. It predicts all targets from the input chunk
        (:class:`~taylorformer_forecast.models.direct.DirectTaylorformer`) and sees the two shortest seasons.
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
    _max_steps = 150
    _network_params = (
        "d_model",
        "n_heads",
        "n_layers",
        "dropout",
        "linear_path",
        "taylor_order",
        "n_derivative_neighbours",
        "attention",
    )

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
        **kwargs: Any,
    ) -> None:
        self._set_up()
