"""Classes of hosts for a baseline and a model that users add to the package."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from outside import LAST_VALUE, LEVEL

from taylorformer_forecast.darts import LAMModel
from taylorformer_forecast.darts._base import BaseForecastModel
from taylorformer_forecast.darts._module import ForecastModule
from taylorformer_forecast.sktime import LAMForecaster
from taylorformer_forecast.sktime._base import BaseTorchForecaster


class LastValueForecaster(LAMForecaster):
    """LAM around the last value, for sktime."""

    spec = LAST_VALUE


class LastValueModule(ForecastModule):
    """The same for darts."""

    spec = LAST_VALUE


class LastValueModel(LAMModel):
    """The same for darts."""

    _module_class = LastValueModule


class LevelForecaster(BaseTorchForecaster):
    """Forecasts of a level."""

    spec = LEVEL

    def __init__(
        self,
        context_length: int | None = None,
        num_samples: int = 100,
        width: int = 8,
        num_epochs: int | None = 15,
        max_steps: int | None = 400,
        batch_size: int = 32,
        lr: float = 1e-2,
        validation_split: float = 0.0,
        patience: int = 10,
        time_features: str | Sequence[str] | None = "auto",
        seasonal_periods: Any = "auto",
        distribution: str = "normal",
        update_steps: int = 0,
        finetune_steps: int = 0,
        past_only: Any = None,
        device: str = "auto",
        random_state: Any = None,
        verbose: bool = False,
        trainer_kwargs: Any = None,
    ) -> None:
        self._store(locals())
        super().__init__()


class LevelModule(ForecastModule):
    """The level for darts."""

    spec = LEVEL


class LevelModel(BaseForecastModel):
    """Forecasts of a level."""

    _module_class = LevelModule

    def __init__(
        self,
        input_chunk_length: int | tuple[int, int],
        output_chunk_length: int,
        output_chunk_shift: int = 0,
        width: int = 8,
        time_features: str | Sequence[str] | None = "auto",
        seasonal_periods: Any = "auto",
        use_reversible_instance_norm: bool | dict[str, Any] = True,
        lr: float = 1e-2,
        n_epochs: int | None = None,
        use_static_covariates: bool = True,
        **kwargs: Any,
    ) -> None:
        self._set_up(locals())
