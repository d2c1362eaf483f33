"""Modules whose network may have pretrained weights, or be averaged with statistical forecasts."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import torch
from darts.utils.data.torch_datasets.utils import PLModuleInput, TorchInferenceBatch
from torch import Tensor

from taylorformer_forecast.core.protocol import ForecastNet, OneShotNet
from taylorformer_forecast.core.sampling import PathSamples
from taylorformer_forecast.darts._batch_effects import BatchEffects
from taylorformer_forecast.darts._dataset import DatasetWindows
from taylorformer_forecast.darts._module import ForecastModule
from taylorformer_forecast.darts._statistical import Statistics, as_predicted
from taylorformer_forecast.defaults import STATISTICAL_LEVELS
from taylorformer_forecast.engine.calibration import calibrate_pretrained
from taylorformer_forecast.engine.explanation import with_part
from taylorformer_forecast.engine.mixtures import ROUGH_STEP, Mixture
from taylorformer_forecast.engine.pretrained import build_direct
from taylorformer_forecast.engine.statistics.average import average_quantiles, weight_of_statistics
from taylorformer_forecast.models.spec import Task


class PretrainedModule(ForecastModule):
    """Base of modules whose network may have pretrained weights, or be averaged with statistics.

    Parameters
    ----------
    statistics : mapping, optional
        Arguments of the :class:`~taylorformer_forecast.darts._statistical.Statistics` that forecasts are
        averaged with.
    weight_of_others : float
        Weight of these in the average.
    **kwargs
        See :class:`~taylorformer_forecast.darts._module.ForecastModule`.
    """

    usual_weight: float | None = None  # of the pretrained network, until it is calibrated

    def __init__(
        self, statistics: Mapping[str, Any] | None = None, weight_of_others: float = 0.5, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.weight_of_others = weight_of_others
        if statistics is not None:
            with torch.random.fork_rng(devices=[]):  # the network is trained as without them
                self.statistics = Statistics(**statistics).requires_grad_(False)

    def build_network(self, task: Task, network: dict[str, Any]) -> ForecastNet:
        """Return the pretrained network where there are settings of one, else that of the model."""
        options = dict(network)
        settings = options.pop("pretrained", None)
        if settings is None:
            return super().build_network(task, options)
        sizes = (task.n_context, task.horizon, self.n_phases, task.shift)
        return build_direct(settings, settings["max_cycles"], *sizes, dropout=options["dropout"])

    def fit_closed_form(self, dataset: Sequence[Any], collate: Callable[..., Any]) -> None:
        """Calibrate the pretrained network, if it is one, then fit the baseline, once."""
        if self.usual_weight is not None:
            net = cast(OneShotNet, copy.deepcopy(self.net).cpu().float())
            calibrate_pretrained(net, DatasetWindows(self, dataset, collate), 1, self.usual_weight)
            self.net.load_state_dict(net.state_dict())
            self.usual_weight = None
        super().fit_closed_form(dataset, collate)

    def without_network(self) -> PretrainedModule:
        """Return a copy that forecasts by its baseline, averaged with uncorrected statistics if at all."""
        alone = super().without_network()
        statistics = None if self.statistics is None else self.statistics.uncorrected()
        return cast(PretrainedModule, with_part(alone, "statistics", statistics))

    def effects(self, x: PLModuleInput | TorchInferenceBatch, n: int) -> BatchEffects | None:
        """What covariates add; to every series by itself where statistics see the whole past."""
        whole = self.statistics is not None and isinstance(x, TorchInferenceBatch)
        if self.additions is None or not whole:
            return super().effects(x, n)
        return self.additions.of_batch(x, n, self.output_chunk_shift, own=True)

    def unknown(self, batch: TorchInferenceBatch) -> Tensor:
        """Which components have no value at all, if statistics see the whole past; (B, C)."""
        return super().unknown(batch) if self.statistics is None else batch.past_target.isnan().all(1)

    def predicted(
        self, samples: PathSamples, batch: TorchInferenceBatch, effects: BatchEffects | None = None
    ) -> Tensor:
        """Samples or parameters, averaged with those of statistics quantile by quantile."""
        if self.statistics is None:
            return super().predicted(samples, batch, effects)
        n, horizon = self.pred_n, self.output_chunk_length or 1
        samples = samples.map(lambda value: value.cpu().double())  # numpy has no bfloat16
        paths = samples.paths[..., 0].numpy()  # (B * C, S, n)
        sizes = n, paths.shape[1], horizon, self.output_chunk_shift
        requests, found = self.statistics.forecasts(batch, *sizes, effects)
        parts = samples.conditionals.map(lambda value: value.movedim(1, 0).flatten(1, 2))
        quantiles = (
            Mixture.over_paths(parts).at_levels(STATISTICAL_LEVELS, ROUGH_STEP).reshape(len(found), n, -1)
        )
        blank = super().unknown(batch).flatten().tolist()  # the network sees nothing, statistics may
        averages = [
            own
            if alone
            else average_quantiles(
                own,
                request,
                levels,
                drawn,
                weight_of_statistics(self.weight_of_others, request.y, self.input_chunk_length),
            )
            for own, alone, request, levels, drawn in zip(
                found, blank, requests, quantiles, paths, strict=True
            )
        ]
        return as_predicted(averages, batch, self.predict_likelihood_parameters, effects)
