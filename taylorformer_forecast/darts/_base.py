"""What every darts model of the package does."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from functools import wraps
from typing import Any

import numpy as np
from darts import TimeSeries
from darts.dataprocessing.encoders import SequentialEncoder
from darts.models.forecasting.torch_forecasting_model import MixedCovariatesTorchModel
from darts.utils.data.torch_datasets.inference_dataset import TorchInferenceDataset
from darts.utils.data.torch_datasets.utils import (
    TorchTrainingSample,
    _batch_collate_fn_train,
    _parse_input_chunk_length,
)
from darts.utils.ts_utils import series2seq

from taylorformer_forecast.calendar.axis import TimeAxis
from taylorformer_forecast.calendar.cycles import SeasonalFeatures
from taylorformer_forecast.darts._business_hours import counted_forward
from taylorformer_forecast.darts._checks import (
    check_alike,
    check_dated,
    check_kinds,
    check_number,
    check_numbers,
    check_observed,
    check_order,
    check_series,
    warn_of_empty_inputs,
    warn_of_other_steps,
    warn_of_small_scales,
)
from taylorformer_forecast.darts._dataset import check_starts
from taylorformer_forecast.darts._effects import effects_on_components
from taylorformer_forecast.darts._explain import Explaining
from taylorformer_forecast.darts._limits import Limits
from taylorformer_forecast.darts._module import ForecastModule
from taylorformer_forecast.darts._parameters import SharedParameters
from taylorformer_forecast.darts._past import KnownPast
from taylorformer_forecast.darts._refit import Refitted
from taylorformer_forecast.darts._state import as_before_a_failure, in_own_state
from taylorformer_forecast.darts._tuning import Tuned
from taylorformer_forecast.darts.likelihoods import StudentTLikelihood, family_of_likelihood
from taylorformer_forecast.engine.parameters import check_rules
from taylorformer_forecast.engine.strategy import Strategy, log_decision
from taylorformer_forecast.engine.summary import Summary, summarise
from taylorformer_forecast.models.spec import ModelSpec

# What a fit finds in the series, and the network is built from.
FOR_THE_NETWORK = ("_seasonal", "_floor", "_level", "_effects", "_flags", "_units", "_outlier_seasons")


class BaseForecastModel(SharedParameters, Limits, Explaining, Tuned, Refitted, KnownPast):
    """Base of the package's darts models: likelihood, what is left to the series, training length."""

    _module_class: type[ForecastModule]
    _free: tuple[str, ...] = ()  # parameters without rules
    model: Any
    train_sample: TorchTrainingSample | None
    n_epochs: int
    add_encoders: dict[str, Any] | None
    trainer_params: dict[str, Any]
    _strategy: Strategy | None = None
    _steps, _seconds, _reports = 0, 0.0, True

    @property
    def spec(self) -> ModelSpec:
        """The model."""
        return self._module_class.spec

    def _set_up(self, arguments: Mapping[str, Any]) -> None:
        """Initialise darts' part, given the ``locals()`` of a constructor.

        The ``model_params`` of darts are what the user wrote, also to a subclass with other parameters.
        """
        own = {
            name: value for name, value in arguments.items() if name not in ("self", "kwargs", "__class__")
        }
        params = {**own, **arguments["kwargs"]}
        most = (params.get("pl_trainer_kwargs") or {}).get("max_epochs")  # darts prefers it to n_epochs
        params["n_epochs"] = params["n_epochs"] if most in (None, -1) else most
        self._arguments = {name: value for name, value in params.items() if name != "pl_trainer_kwargs"}
        check_rules(params, self._free)
        if params.get("likelihood") is None and params.get("loss_fn") is None:
            params["likelihood"] = StudentTLikelihood()
        family_of_likelihood(params.get("likelihood"))  # refuses what it cannot serve
        params["n_epochs"] = self.spec.num_epochs if params["n_epochs"] is None else params["n_epochs"]
        norm = params["use_reversible_instance_norm"]
        if isinstance(norm, dict) and norm.get("affine"):
            raise ValueError("use_reversible_instance_norm: windows are normalised without an affine map")
        if norm is True:
            params["use_reversible_instance_norm"] = {"affine": False}
        length = params["input_chunk_length"]  # of numpy's numbers too
        length = length if isinstance(length, tuple) else int(length)
        self._shortest_input, params["input_chunk_length"] = _parse_input_chunk_length(length)
        super().__init__(**self._extract_torch_model_params(**params))
        self.pl_module_params = self._extract_pl_module_params(**params)
        self._considers_static_covariates = params["use_static_covariates"]
        asked = ("optimizer_cls", "optimizer_kwargs", "lr_scheduler_cls")
        self._own_optimizer = all(params.get(name) is None for name in asked)
        self._seasonal, self._floor, self._level = None, None, 1.0
        self._effects: dict[str, Any] | None = None
        self._flags: dict[str, tuple[int, ...]] = {"past_flags": (), "future_flags": ()}
        self._units: dict[str, list[tuple[float, float]]] = {}

    def _create_model(self, train_sample: TorchTrainingSample) -> ForecastModule:
        dims = train_sample.component_dims()
        n_components = train_sample.past_target.shape[1]
        return self._module_class(
            n_past=dims["past_covariates"] or 0,
            n_future=dims["future_covariates"] or 0,
            n_static=dims["static_covariates"] or 0,
            n_phases=self._n_phases,
            past_flags=self._flags["past_flags"],
            future_flags=self._flags["future_flags"],
            units=self._units,
            floor=self._floor or (0.0,) * n_components,
            level=self._level,
            own_optimizer=self._own_optimizer,
            joint=bool(self._arguments.get("joint")),
            effects=self._effects,
            outlier_seasons=self._outlier_seasons,
            **self._own_params(),
            **self.pl_module_params,
        )

    def _own_params(self) -> dict[str, Any]:
        """Peak learning rate, and arguments of the network."""
        return {"lr": self._arguments["lr"], "network": self.spec.options(self._arguments)}

    def _setup_for_fit_from_dataset(self, series: Any, *args: Any, **kwargs: Any) -> Any:
        self._forget_the_fit()
        for part in ("", "val_"):
            target = series2seq(kwargs.get("val_series") if part else series)
            if target:
                names = (f"{part}past_covariates", f"{part}future_covariates")
                check_series(target, given := {name: series2seq(kwargs.get(name)) for name in names}, part)
                check_alike(target, self._considers_static_covariates)
                self._check_index(target, f"{part}series")
                if not part:
                    check_observed(target, given)
        if self.model is None:
            self._choose(series2seq(series), kwargs)
        return super()._setup_for_fit_from_dataset(series, *args, **kwargs)

    def _setup_for_predict_from_dataset(
        self, n: int, series: Any = None, *args: Any, show_warnings: bool = True, **kwargs: Any
    ) -> dict[str, Any]:
        check_numbers(n, kwargs.get("num_samples", 1))
        own = series2seq(self.training_series if series is None else series) or ()
        self._check_index(own, "series")
        if show_warnings and self._needs_inputs:
            warn_of_empty_inputs(own, self.input_chunk_length)
        if show_warnings and self._seasonal is not None:
            warn_of_other_steps(own, self._seasonal.axis)
        if show_warnings and self._arguments["use_reversible_instance_norm"] and not self._is_statistical:
            warn_of_small_scales(own, self._floor or ())
        covariates = {name: series2seq(kwargs.get(name)) for name in ("past_covariates", "future_covariates")}
        check_kinds(own, covariates, static=self.static_covariates)
        if self._requires_training and not self.add_encoders and "future" in self._units:
            check_number(covariates["future_covariates"], len(self._units["future"]) - self._n_phases)
        kwargs |= {"show_warnings": show_warnings}
        return super()._setup_for_predict_from_dataset(n, series, *args, **kwargs)

    @property
    def _needs_inputs(self) -> bool:
        """Whether series without a value in the input chunk have no forecast."""
        return self._requires_training

    def generate_fit_predict_encodings(
        self, n: int, series: Any, past_covariates: Any = None, future_covariates: Any = None
    ) -> Any:
        """Covariates of past and future with what encoders add; see darts."""
        self._check_index(series2seq(series), "series")
        given = {"past_covariates": past_covariates, "future_covariates": future_covariates}
        check_kinds((), {name: series2seq(covariates) for name, covariates in given.items()})
        return super().generate_fit_predict_encodings(n, series, past_covariates, future_covariates)

    def _check_index(self, series: Sequence[TimeSeries] | None, name: str) -> None:
        """Raise a ValueError if series have no dates, of which a trained network has phases."""
        encoded = self.encoders is not None and self.encoders.encoding_available
        if series and encoded and self._seasonal and self._seasonal.axis.kind != "number":
            check_dated(series, name)

    @wraps(MixedCovariatesTorchModel.predict_from_dataset)
    def predict_from_dataset(self, *args: Any, **kwargs: Any) -> Any:
        with in_own_state():
            return super().predict_from_dataset(*args, **kwargs)

    def _build_inference_dataset(
        self,
        n: int,
        series: Sequence[TimeSeries],
        past_covariates: Sequence[TimeSeries] | None,
        future_covariates: Sequence[TimeSeries] | None,
        *args: Any,
        **kwargs: Any,
    ) -> TorchInferenceDataset:
        check_series(series, {"past_covariates": past_covariates, "future_covariates": future_covariates})
        check_order(future_covariates, self._effects["names"] if self._effects else ())
        return super()._build_inference_dataset(
            n, series, past_covariates, future_covariates, *args, **kwargs
        )

    def _choose(self, series: Sequence[TimeSeries], options: Mapping[str, Any]) -> None:
        """Choose what the user left open, from the series to train on; ``options`` are those of the fit."""
        values = [np.asarray(one.values(copy=False), dtype=float) for one in series]
        indexes = [one.time_index for one in series]
        longest = int(np.argmax([len(index) for index in indexes]))
        self._seasonal = SeasonalFeatures.choose(
            TimeAxis.of(indexes, series[longest].freq if series[longest].has_datetime_index else None),
            zip(indexes, values, strict=True),
            self._arguments["time_features"],
            self._arguments["seasonal_periods"],
        )
        self._floor = None  # until there is a dataset
        self._effects = effects_on_components(
            series, options.get("future_covariates"), self._seasonal.lengths, self.input_chunk_length
        )

    def initialize_encoders(self, default: bool = False) -> SequentialEncoder:
        """Encoders of the user, and the phases of calendar and seasons, as future covariates."""
        asked = self.add_encoders
        if not default and self._seasonal:
            custom = dict((asked or {}).get("custom", {}))
            custom["future"] = [*custom.get("future", []), self._seasonal]
            self.add_encoders = {**(asked or {}), "custom": custom}
        try:
            return counted_forward(super().initialize_encoders(default))
        finally:
            self.add_encoders = asked

    def _load_encoders(self, tfm_save: Any, load_encoders: bool) -> Any:
        for name in FOR_THE_NETWORK:
            setattr(self, name, getattr(tfm_save, name))
        return super()._load_encoders(tfm_save, load_encoders)

    def fit_from_dataset(self, train_dataset: Any, *args: Any, epochs: int = 0, **kwargs: Any) -> Any:
        """Train on a dataset; see darts. Without ``n_epochs`` or ``epochs``, its size decides how long."""
        with as_before_a_failure(self):
            return self._fit_from_dataset(train_dataset, *args, epochs=epochs, **kwargs)

    def _fit_from_dataset(self, train_dataset: Any, *args: Any, epochs: int, **kwargs: Any) -> Any:
        if self._requires_training:
            check_starts(train_dataset)
            check_starts(kwargs.get("val_dataset"), "val_")
        start, trainer_params = time.perf_counter(), dict(self.trainer_params)
        self.trainer_params = dict(trainer_params)  # darts writes into them, and load takes the user's own
        if epochs == 0 and self._arguments["n_epochs"] is None and self.n_epochs:
            per_epoch = max(1, math.ceil(len(train_dataset) / self.batch_size))
            epochs = min(self.spec.num_epochs, max(1, math.ceil(self.spec.max_steps / per_epoch)))
            self.trainer_params.setdefault("max_steps", max(self.spec.max_steps, 1))  # in the last pass
        super().fit_from_dataset(train_dataset, *args, epochs=epochs, **kwargs)
        settled = {"precision"} & self.trainer_params.keys()  # by darts, but not after a load with other ones
        self.trainer_params = trainer_params | {name: self.trainer_params[name] for name in settled}
        if self._requires_training:  # without an epoch, it does not start
            self.model.fit_closed_form(train_dataset, _batch_collate_fn_train)
            self.model.calibrate(train_dataset, _batch_collate_fn_train)
        if not self.trainer.global_step:
            self.model.fit_joint(train_dataset, _batch_collate_fn_train)
        # A prediction replaces the trainer, which a saved model lacks.
        self._steps, self._seconds = int(self.trainer.global_step), time.perf_counter() - start
        if self._reports:
            log_decision(str(self.summary()))
        return self

    def summary(self) -> Summary:
        """Decisions of the fit: strategy, sizes, seasons, baseline, calibration, steps and seconds.

        Returns
        -------
        Summary
            See :class:`~taylorformer_forecast.engine.summary.Summary`; it prints as a table.

        Raises
        ------
        ValueError
            If the model was not fitted.
        """
        self._check_fitted()
        strategy = self._strategy or Strategy("train", "this model has no pretrained network")
        sizes: dict[str, Any] = dict(context_length=self.input_chunk_length, horizon=self.output_chunk_length)
        sizes |= dict(seasonal=self._seasonal, steps=self._steps, seconds=self._seconds)
        return summarise(self.model.net, strategy, **sizes)

    @property
    def min_input_chunk_length(self) -> int:
        """Fewest past steps of a series to predict from."""
        return self._shortest_input

    @property
    def supports_static_covariates(self) -> bool:
        """Whether static covariates reach the network."""
        return True
