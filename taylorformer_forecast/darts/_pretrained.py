"""darts models that may be statistical or start from a pretrained network, and how they choose."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from os import PathLike, fspath
from typing import Any

import numpy as np
from darts import TimeSeries
from darts.dataprocessing.encoders import SequentialEncoder
from darts.models.forecasting.pl_forecasting_module import PLForecastingModule
from darts.utils.data.torch_datasets.utils import TorchTrainingSample
from darts.utils.ts_utils import series2seq

from taylorformer_forecast.darts._adopted import AdoptingModel
from taylorformer_forecast.darts._average import averaged_weights
from taylorformer_forecast.darts._checks import gaps_too_wide, warn_of_late_covariates
from taylorformer_forecast.darts._effects import Additions
from taylorformer_forecast.darts._statistical import StatisticalModule, Statistics, request_of
from taylorformer_forecast.darts.likelihoods import family_of_likelihood
from taylorformer_forecast.engine.parameters import check_network
from taylorformer_forecast.engine.pretrained import (
    USUAL_DISTRIBUTION,
    Pretrained,
    SharedWeights,
    find_own,
    load_pretrained,
)
from taylorformer_forecast.engine.statistics.correction import choose_correction
from taylorformer_forecast.engine.statistics.forecast import are_demand
from taylorformer_forecast.engine.statistics.requests import MOST_PAST
from taylorformer_forecast.engine.strategy import (
    DEMAND_OF_X,
    PRETRAINED,
    REFUSABLE,
    STATISTICAL,
    Strategy,
    choose_strategy,
    obstacle_of_options,
)
from taylorformer_forecast.models.correction import CorrectionNet
from taylorformer_forecast.models.direct import DirectTaylorformer


class PretrainedModel(SharedWeights, AdoptingModel):
    """Base of models with the parameters ``strategy`` and ``pretrained``.

    The file is read by the first fit alone, where the network is trained: checkpoints hold the weights that
    came of it, and further fits go on from them.
    """

    def _set_up(self, arguments: Mapping[str, Any]) -> None:
        self._strategy, self._settings = None, None
        asked, source = arguments["strategy"], arguments["pretrained"]
        if isinstance(source, PathLike):  # darts loads no paths
            arguments = {**arguments, "pretrained": fspath(source)}
            if "pretrained" in self.model_params:
                self.model_params["pretrained"] = fspath(source)
        super()._set_up(arguments)
        check_network(self.spec, self._arguments)  # a network may never be built
        if asked in REFUSABLE:  # refuse at once what the parameters rule out
            choose_strategy(asked, [0], 1, self._obstacle_of_parameters())

    def _network_to_share(self) -> DirectTaylorformer | None:
        return self.model.net if self._is_pretrained and self.model is not None else None

    @property
    def _is_pretrained(self) -> bool:
        """Whether the network has pretrained weights."""
        return self._strategy is not None and self._strategy.kind.pretrained

    @property
    def _is_statistical(self) -> bool:
        """Whether there is no network, or is to be none."""
        chosen = self._arguments["strategy"] if self._strategy is None else self._strategy.name
        return chosen in STATISTICAL

    @property
    def _is_averaged(self) -> bool:
        """Whether forecasts are averages of those of a network and of statistics."""
        return self._strategy is not None and self._strategy.kind.averages

    @property
    def _requires_training(self) -> bool:
        return super()._requires_training and not self._is_statistical

    @property
    def _needs_inputs(self) -> bool:
        return super()._needs_inputs and not self._is_averaged

    @property
    def _target_window_lengths(self) -> tuple[int, int]:
        least, ahead = super()._target_window_lengths
        return least, 0 if self._is_statistical else ahead

    def _setup_for_predict_from_dataset(
        self, n: int, series: Any = None, *args: Any, show_warnings: bool = True, **kwargs: Any
    ) -> dict[str, Any]:
        covariates = kwargs.get("future_covariates")
        statistical = self._is_statistical or self._is_averaged
        if show_warnings and statistical and covariates is not None and self._effects is not None:
            own = self.training_series if series is None else series
            warn_of_late_covariates(series2seq(own), series2seq(covariates), Additions(**self._effects))
        kwargs |= {"show_warnings": show_warnings}
        return super()._setup_for_predict_from_dataset(n, series, *args, **kwargs)

    def initialize_encoders(self, default: bool = False) -> SequentialEncoder:
        """Encoders; see darts. Statistical forecasts have none."""
        return super().initialize_encoders(default or self._is_statistical)

    @property
    def _needs_past(self) -> bool:
        return super()._needs_past or self._is_statistical or self._is_averaged

    def _obstacle_of_parameters(self) -> str | None:
        """What only a new network can do of what the parameters ask for, in words."""
        if not self._arguments["use_reversible_instance_norm"]:
            return "use_reversible_instance_norm=False, which only a new network can use"
        name = family_of_likelihood(self.likelihood).distribution_name
        given = "a loss_fn" if self.likelihood is None else type(self.likelihood).__name__
        return obstacle_of_options(self._arguments, name, USUAL_DISTRIBUTION, f"{given} is given")

    def _obstacle(self, series: Sequence[TimeSeries], options: Mapping[str, Any]) -> str | None:
        """What cannot be done without training of all that is asked; ``options`` are those of the fit."""
        if options.get("sample_weight") is not None and self._arguments["strategy"] != "finetune":
            return "sample_weight is given, which training alone takes into account"
        if options.get("past_covariates"):
            return "past_covariates are given, which only a new network can use"
        demand = self._effects is not None and any(np.any(e["of_demand"]) for e in self._effects["effects"])
        if demand and self._arguments["strategy"] in PRETRAINED:
            return f"future_covariates are given, {DEMAND_OF_X}"
        if self.add_encoders:
            return "add_encoders is given, whose covariates only a new network can use"
        if self._arguments["use_static_covariates"] and any(one.has_static_covariates for one in series):
            return "the series has static covariates, which only a new network can use"
        return self._obstacle_of_parameters()

    def _choose(self, series: Sequence[TimeSeries], options: Mapping[str, Any]) -> None:
        super()._choose(series, options)
        asked = self._arguments["strategy"]
        source = self._arguments["pretrained"]
        if source != "default" and self._weights_before is None:  # else training goes on without a file
            find_own(asked, source)  # refuses one that is none, even if not needed
        if self._tuning and asked != "finetune":
            asked = "train"
        known = [~np.isnan(one.values(copy=False)) for one in series]
        n_observed = [int(n) for k in known for n in k.sum(0)]
        horizon, obstacle = self._arguments["output_chunk_length"], self._obstacle(series, options)
        strategy = choose_strategy(asked, n_observed, horizon, obstacle, gaps_too_wide(series))
        if strategy.kind.averages:
            if self._effects is not None:
                covariates = series2seq(options["future_covariates"])
                series = list(map(Additions(**self._effects).rest_of, series, covariates))
            if strategy.least:
                series = _averaged_series(series, known, strategy.least)
            if asked == "auto" and self._are_demand(series):
                strategy = strategy.of_demand()
            else:
                strategy = strategy.weighed(asked, *averaged_weights(self, series))
        self._adopt(strategy)

    def _are_demand(self, series: Sequence[TimeSeries]) -> bool:
        """Whether all components of all series are intermittent demand."""
        statistics = Statistics(**{**self._statistics(), "correction": None})
        each = [(one.freq, y) for one in series for y in one.values(copy=False).T]
        known = [(freq, y) for freq, y in each if not np.isnan(y).all()]
        values = [request_of(y.astype(float), np.arange(1)).y for _, y in known]
        return are_demand(values, lambda: statistics.seasons(values, [freq for freq, _ in known]))

    def fit_from_dataset(self, train_dataset: Any, *args: Any, epochs: int = 0, **kwargs: Any) -> Any:
        """Train on a dataset; see darts. Only "train" and "finetune" train anything."""
        if self._strategy is not None and not self._strategy.kind.trains:
            epochs = 0
            kwargs["load_best"] = False  # nothing is trained that could be best
            if self.save_checkpoints:
                warnings.warn(
                    f"save_checkpoints=True saves nothing, as strategy={self._strategy.name!r} trains no "
                    f"network: keep the model with save(path)",
                    stacklevel=2,
                )
        return super().fit_from_dataset(train_dataset, *args, epochs=epochs, **kwargs)

    def _create_model(self, train_sample: TorchTrainingSample) -> PLForecastingModule:
        asked = self._arguments["strategy"]
        if self._strategy is None and asked in REFUSABLE:  # weights are loaded unchecked
            self._adopt(Strategy(asked, f"strategy={asked!r}"))
        if self._is_statistical:
            joint = len(self._floor or ()) if self._arguments["joint"] else 0
            module = StatisticalModule(
                statistics=self._statistics(),
                n_joint=joint,
                effects=self._effects,
                future_flags=self._flags["future_flags"],
                **self.pl_module_params,
            )
        else:
            module = super()._create_model(train_sample)
        statistics = module.statistics
        if statistics is not None and statistics.corrects is not None:
            statistics.corrects.load_state_dict(self._correction().state_dict())
        return module

    def _correction(self) -> CorrectionNet:
        """What corrects statistical forecasts."""
        return choose_correction(self._arguments["strategy"], self._arguments["pretrained"])

    def _statistics(self) -> dict[str, Any]:
        """Arguments of the statistical forecasts, with the network that corrects them where there is one."""
        options = {name: self._arguments[name] for name in ("time_features", "seasonal_periods")}
        options["periods"] = list(self._seasonal.periods) if self._seasonal else []
        if self._strategy is not None and self._strategy.kind.corrects:
            net = self._correction()
            options["correction"] = {"sizes": net.sizes, "weight": net.weight}
        return options

    def _own_params(self) -> dict[str, Any]:
        params = super()._own_params()
        if self._is_pretrained:
            if self._settings is None:
                self._settings = self._settings_of(self._weights())
            params["network"]["pretrained"] = dict(self._settings)
        if self._strategy is not None and self._is_averaged:
            least = min(self._strategy.least, MOST_PAST // 2)  # a batch may show no more of longer series
            others = {"analogues": self._strategy.part_of_analogues, "least": least}
            statistics = {**self._statistics(), **others}
            params |= {"statistics": statistics, "weight_of_others": self._strategy.weight_of_others}
        return params

    def _weights(self) -> Pretrained:
        """The pretrained network."""
        source = self._arguments["pretrained"]
        weights = load_pretrained(source)
        if weights.distribution != USUAL_DISTRIBUTION:
            raise ValueError(
                f"pretrained={source!r} was trained with distribution={weights.distribution!r}, but darts "
                f"models can start from {USUAL_DISTRIBUTION!r} only"
            )
        return weights

    @staticmethod
    def _settings_of(weights: Pretrained) -> dict[str, Any]:
        return {**weights.settings, "max_cycles": weights.max_cycles}

    def _setup_for_train(self, train_dataset: Any, *args: Any, **kwargs: Any) -> dict[str, Any]:
        weights = None
        asked = self._arguments["strategy"]
        if self._strategy is None:
            if asked in REFUSABLE:
                raise ValueError(
                    f"strategy={asked!r} needs the time stamps of a series: call fit, not fit_from_dataset"
                )
            self._strategy = Strategy("train", "windows of a dataset say nothing of its series")
        begins = self._is_pretrained and self.model is None
        before = self._weights_before if self._strategy.kind.trains else None
        if begins and before is None:
            weights = self._weights()
            self._settings = self._settings_of(weights)
        setup = super()._setup_for_train(train_dataset, *args, **kwargs)
        if weights is not None:
            weights.write_into(setup["model"].net)
            setup["model"].usual_weight = weights.weight
        elif begins and before is not None:
            setup["model"].usual_weight = float(before["calibration.weight"])
        return setup


def _averaged_series(
    series: Sequence[TimeSeries], known: Sequence[np.ndarray], least: int
) -> list[TimeSeries]:
    """Series without the values of components that statistics alone forecast, as they have too few.

    ``known`` says where each has values, (n, C).
    """
    enough = [own.sum(0) >= least for own in known]
    return [
        one.with_values(np.where(own, one.values(copy=False), np.nan).astype(one.dtype))
        for one, own in zip(series, enough, strict=True)
        if own.any()
    ]
