"""What darts' torch models can do that those of the package cannot."""

from __future__ import annotations

from typing import Any

import pytorch_lightning as pl
from darts.models.forecasting.torch_forecasting_model import MixedCovariatesTorchModel
from pytorch_lightning.accelerators import MPSAccelerator

from taylorformer_forecast.engine.training import check_accelerator


class Limits(MixedCovariatesTorchModel):
    """No export to ONNX, no training on Apple's GPUs, and on several devices only where that is asked for."""

    @staticmethod
    def _init_trainer(trainer_params: dict[str, Any], max_epochs: int | None = None) -> pl.Trainer:
        """Trainer for a fit or forecast; on the CPU where Lightning would choose Apple's GPU.

        That has no double precision, which baselines and units need. Lightning would also take all GPUs, each
        with a process that runs the caller's script and sees a part of the forecasts.
        """
        if not {"devices", "strategy"} & trainer_params.keys():
            trainer_params = {**trainer_params, "devices": 1}
        check_accelerator(trainer_params)
        if trainer_params.get("accelerator", "auto") == "auto" and MPSAccelerator.is_available():
            trainer_params = {**trainer_params, "accelerator": "cpu"}
        return MixedCovariatesTorchModel._init_trainer(trainer_params, max_epochs)

    def to_onnx(self, path: str | None = None, **kwargs: Any) -> None:
        """Refuse: operations of these networks, such as running maxima, have no code in ONNX."""
        raise NotImplementedError(
            f"{type(self).__name__} cannot be exported: its network sorts points, fills gaps or draws each "
            f"step given those before it, and ONNX has no code for that"
        )
