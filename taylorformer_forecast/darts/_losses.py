"""Losses and metrics of darts over the targets that were observed."""

from __future__ import annotations

from typing import Any

import torch
from darts.models.forecasting.pl_forecasting_module import PLForecastingModule
from darts.utils.data.torch_datasets.utils import PLModuleOutput, TorchTrainingBatch
from torch import Tensor

from taylorformer_forecast.darts._adapters import LikelihoodFamily, QuantileAdapter
from taylorformer_forecast.darts._effects import Additions
from taylorformer_forecast.darts._windows import with_known_targets
from taylorformer_forecast.defaults import CONTEXT_FLOOR


class ObservedLoss(PLForecastingModule):
    """Training and validation of a :class:`ForecastModule`.

    Quantile losses count in standard deviations of their components over the training series, so that units
    do not matter. A ``loss_fn`` sees the data as they are.
    """

    head: LikelihoodFamily
    floor: Tensor
    additions: Additions | None

    def on_fit_start(self) -> None:
        """Let a likelihood find its device."""
        super().on_fit_start()
        self._forget_device()

    def on_fit_end(self) -> None:
        """Leave no tensor of the device in the likelihood, which files of the model hold."""
        super().on_fit_end()
        self._forget_device()

    def _forget_device(self) -> None:
        """Drop what darts' quantile regression keeps on the device where it first had a loss."""
        if isinstance(self.head, QuantileAdapter):
            self.likelihood.first, self.likelihood.quantiles_tensor = True, None

    def _train_val_step(self, batch: TorchTrainingBatch, *args: Any, **kwargs: Any) -> Tensor:
        return super()._train_val_step(with_known_targets(batch, self.additions), *args, **kwargs)

    def _compute_loss(
        self, output: PLModuleOutput, target: Tensor, criterion: Any, sample_weight: Any
    ) -> Tensor:
        """Loss over the targets that were observed."""
        if isinstance(self.head, QuantileAdapter) and target.shape[-1] == len(self.floor):
            unit = torch.where(self.floor > 0, self.floor / CONTEXT_FLOOR, 1.0).to(target)
            output = output.replace(prediction=output.prediction / unit[:, None])
            target = target / unit
        observed = ~target.isnan()
        if bool(observed.all()):
            return super()._compute_loss(output, target, criterion, sample_weight)
        if not bool(observed.any()):
            return 0.0 * output.prediction.sum()
        if self.likelihood is None:
            loss = criterion(output.prediction[observed][:, 0], target[observed])
            if sample_weight is not None:
                loss = (loss * sample_weight.expand_as(target)[observed]).mean()
            return loss
        # A value within the support stands in for what is missing, with weight zero.
        target = torch.where(observed, target, target[observed][0])
        weight = observed.to(target.dtype) * (observed.numel() / observed.sum())
        return super()._compute_loss(
            output, target, criterion, weight if sample_weight is None else weight * sample_weight
        )

    def _update_metrics(self, output: PLModuleOutput, target: Tensor, metrics: Any) -> None:
        """Metrics over windows whose targets were all observed."""
        complete = ~target.isnan().any(-1).any(-1)
        if bool(complete.any()):
            output = output.replace(prediction=output.prediction[complete])
            super()._update_metrics(output, target[complete], metrics)
