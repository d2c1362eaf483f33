"""The darts models."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from darts import TimeSeries
from darts.dataprocessing.encoders import SequentialEncoder
from darts.models.forecasting.torch_forecasting_model import MixedCovariatesTorchModel
from darts.utils.data.torch_datasets.utils import TorchTrainingSample, _parse_input_chunk_length
from darts.utils.ts_utils import series2seq

from taylorformer_forecast.darts._module import ForecastModule, LAMModule, TaylorformerModule
from taylorformer_forecast.darts.likelihoods import LikelihoodHead, StudentTLikelihood
from taylorformer_forecast.models.lam_trunks import Attention
from taylorformer_forecast.training.time_axis import SeasonalFeatures, TimeAxis
from taylorformer_forecast.training.windows import FLOOR

__all__ = ["LAMModel", "TaylorformerModel"]

MAX_STEPS = 400  # where n_epochs is left open, as in the sktime forecasters
MIN_POINTS = 12  # observed values that tell the standard deviation of a series


class BaseForecastModel(MixedCovariatesTorchModel):
    """Base of the package's darts models: likelihood, what is left to the series, training length."""

    _module_class: type[ForecastModule]
    _network_params: tuple[str, ...] = ()
    _max_epochs = 40  # where n_epochs is left open: short series are learnt by heart with more

    def _set_up(self) -> None:
        """Initialise darts' part from ``model_params``, which darts fills from the signature."""
        params = dict(self.model_params)
        if params.get("likelihood") is None and params.get("loss_fn") is None:
            params["likelihood"] = StudentTLikelihood()
        LikelihoodHead(params.get("likelihood"))  # refuses what it cannot serve
        if params["n_epochs"] is None:
            params["n_epochs"] = self._max_epochs
        norm = params["use_reversible_instance_norm"]
        if isinstance(norm, dict) and norm.get("affine"):
            raise ValueError("use_reversible_instance_norm: windows are normalised without an affine map")
        if norm is True:
            params["use_reversible_instance_norm"] = {"affine": False}
        shortest, params["input_chunk_length"] = _parse_input_chunk_length(params["input_chunk_length"])
        super().__init__(**self._extract_torch_model_params(**params))
        self._shortest_input = shortest
        self.pl_module_params = self._extract_pl_module_params(**params)
        self._considers_static_covariates = params["use_static_covariates"]
        asked = ("optimizer_cls", "optimizer_kwargs", "lr_scheduler_cls")
        self._own_optimizer = all(params.get(name) is None for name in asked)
        self._seasonal: SeasonalFeatures | None = None
        self._floor: tuple[float, ...] | None = None
        self._flags: dict[str, tuple[int, ...]] = {"past_flags": (), "future_flags": ()}

    def _create_model(self, train_sample: TorchTrainingSample) -> ForecastModule:
        dims = train_sample.component_dims()
        n_components = train_sample.past_target.shape[1]
        return self._module_class(
            n_past=dims["past_covariates"] or 0,
            n_future=dims["future_covariates"] or 0,
            n_static=dims["static_covariates"] or 0,
            **self._flags,
            floor=self._floor or (0.0,) * n_components,
            own_optimizer=self._own_optimizer,
            lr=self.model_params["lr"],
            network={name: self.model_params[name] for name in self._network_params},
            **self.pl_module_params,
        )

    def _setup_for_fit_from_dataset(self, series: Any, *args: Any, **kwargs: Any) -> Any:
        if self.model is None:
            self._choose(series2seq(series))
        return super()._setup_for_fit_from_dataset(series, *args, **kwargs)

    def _choose(self, series: Sequence[TimeSeries]) -> None:
        """Choose what the user left open, from the series to train on."""
        values = [np.asarray(one.all_values(copy=False)[:, :, 0], dtype=float) for one in series]
        for one, v in zip(series, values, strict=True):
            if np.isinf(v).any():
                raise ValueError(
                    f"the target has infinite values in component {one.components[np.isinf(v).any(0)][0]!r}"
                )
        if not any(np.isfinite(v).any() for v in values):
            raise ValueError("the target series has no observed value")
        indexes = [one.time_index for one in series]
        longest = int(np.argmax([len(index) for index in indexes]))
        params = self.model_params
        self._seasonal = SeasonalFeatures.choose(
            TimeAxis.of(indexes, series[longest].freq if series[longest].has_datetime_index else None),
            indexes[longest],
            values[longest][:, 0],
            params["time_features"],
            params["seasonal_periods"],
        )
        known = [np.isfinite(v) for v in values]
        spread = [
            np.where(k.sum(0) >= MIN_POINTS, np.nanstd(np.where(k, v, np.nan), axis=0), np.nan)
            for v, k in zip(values, known, strict=True)
            if k.any(0).all()
        ]
        least = np.nanmin([*spread, np.full(values[0].shape[1], np.inf)], axis=0)
        self._floor = tuple(np.where(np.isfinite(least), FLOOR * least, 0.0).tolist())

    def initialize_encoders(self, default: bool = False) -> SequentialEncoder:
        """Encoders of the user, and the phases of calendar and seasons, as future covariates."""
        asked = self.add_encoders
        if not default and self._seasonal:
            custom = dict((asked or {}).get("custom", {}))
            custom["future"] = [*custom.get("future", []), self._seasonal]
            self.add_encoders = {**(asked or {}), "custom": custom}
        try:
            return super().initialize_encoders(default)
        finally:
            self.add_encoders = asked

    def _load_encoders(self, tfm_save: Any, load_encoders: bool) -> Any:
        self._seasonal = tfm_save._seasonal
        return super()._load_encoders(tfm_save, load_encoders)

    def _build_train_dataset(
        self, series: Any, past_covariates: Any, future_covariates: Any, *args: Any, **kwargs: Any
    ) -> Any:
        if self.model is None and self.train_sample is None:
            self._flags = {
                "past_flags": _columns_with_gaps(past_covariates),
                "future_flags": _columns_with_gaps(future_covariates),
            }
        return super()._build_train_dataset(series, past_covariates, future_covariates, *args, **kwargs)

    def fit_from_dataset(self, train_dataset: Any, *args: Any, epochs: int = 0, **kwargs: Any) -> Any:
        """Train on a dataset; see darts. Without ``n_epochs`` or ``epochs``, its size decides how long."""
        if epochs == 0 and self.model_params["n_epochs"] is None:
            per_epoch = math.ceil(len(train_dataset) / self.batch_size)
            epochs = min(self._max_epochs, max(1, round(MAX_STEPS / max(1, per_epoch))))
        return super().fit_from_dataset(train_dataset, *args, epochs=epochs, **kwargs)

    @property
    def min_input_chunk_length(self) -> int:
        """Fewest past steps of a series to predict from."""
        return self._shortest_input

    @property
    def supports_static_covariates(self) -> bool:
        """Whether static covariates reach the network."""
        return True


def _columns_with_gaps(covariates: Sequence[TimeSeries] | None) -> tuple[int, ...]:
    """Components with missing values."""
    if not covariates:
        return ()
    gaps = np.any([np.isnan(one.all_values(copy=False)).any((0, 2)) for one in covariates], axis=0)
    return tuple(np.flatnonzero(gaps).tolist())


class TaylorformerModel(BaseForecastModel):
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
    n_heads : int, default=4
        Attention heads.
    n_layers : int, default=2
        Layers of each of the two streams.
    dropout : float, default=0.1
        Dropout in training, and in predictions with ``mc_dropout=True``.
    taylor_order : {0, 1}, default=0
        Terms of the local Taylor expansion around which a point is predicted.
    n_derivative_neighbours : int, default=1
        Neighbours over which derivatives are averaged, for noisy series.
    attention : str or callable, default="full"
        Attention of the stream over values: "full", "local" (the last ``4 ceil(ln n)`` points, for long
        horizons) or a kernel that answers one query at a time
        (:class:`~taylorformer_forecast.core.kernels.Kernel`).
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
    _max_epochs = 30
    _network_params = (
        "d_model",
        "n_heads",
        "n_layers",
        "dropout",
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
        n_heads: int = 4,
        n_layers: int = 2,
        dropout: float = 0.1,
        taylor_order: int = 0,
        n_derivative_neighbours: int = 1,
        attention: Attention = "full",
        time_features: str | Sequence[str] | None = "auto",
        seasonal_periods: str | float | Sequence[float] | None = "auto",
        use_reversible_instance_norm: bool | dict[str, Any] = True,
        lr: float = 3e-3,
        n_epochs: int | None = None,
        use_static_covariates: bool = True,
        **kwargs: Any,
    ) -> None:
        self._set_up()

    def to_onnx(self, path: str | None = None, **kwargs: Any) -> None:
        """Refuse: the search for neighbours has no counterpart in ONNX. :class:`LAMModel` can be exported."""
        raise NotImplementedError(
            "TaylorformerModel cannot be exported: ONNX has no stable sort, by which neighbours are found. "
            "LAMModel can"
        )


class LAMModel(BaseForecastModel):
    """LAM transformer: all steps of the output chunk at once, by local attention, with any likelihood.

    Time and memory grow as n log n with the input chunk. The steps of a sample are drawn independently of
    each other within ``output_chunk_length``: marginals are those of the likelihood, but sums and
    differences over steps are not those of a joint model (:class:`TaylorformerModel` is one). Beyond
    ``output_chunk_length`` every sample goes on from an input chunk that ends with its own last values.

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
        Attention kernel, a name in :data:`taylorformer_forecast.core.attention.ATTENTION` or a kernel.
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
    lr : float, default=0.003
        Peak learning rate of AdamW with warm-up and cosine, which train unless ``optimizer_cls``,
        ``optimizer_kwargs`` or ``lr_scheduler_cls`` ask for another optimiser.
    n_epochs : int, optional
        Passes over the training windows. By default about 400 steps, at most 40 passes.
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
        lr: float = 3e-3,
        n_epochs: int | None = None,
        use_static_covariates: bool = True,
        **kwargs: Any,
    ) -> None:
        self._set_up()
