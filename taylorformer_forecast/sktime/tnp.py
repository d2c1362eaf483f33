"""The transformer neural process for sktime."""

from __future__ import annotations

from collections.abc import Sequence

from taylorformer_forecast.core.attention.registry import Attention
from taylorformer_forecast.models.specs import TNP
from taylorformer_forecast.sktime._base import BaseTorchForecaster
from taylorformer_forecast.sktime._parameters import (
    ONE_SEASON,
    TINY,
    VALIDATED,
    Columns,
    Options,
    Periods,
    Seed,
)


class TNPForecaster(BaseTorchForecaster):
    """Probabilistic forecasts by TNP-A, the autoregressive transformer neural process.

    The baseline of the Taylorformer paper: attention over pairs of time and value, without local expansions
    or positional encoding. It draws joint sample paths of the future, each point conditional on the path so
    far. All predictive methods come from one draw of paths, seeded at ``fit``. Missing values are never
    imputed.

    Every column of a multivariate series is forecast from its own past, by one network that serves all
    columns and instances.

    References
    ----------
    .. [1] Nguyen, Grover: "Transformer Neural Processes: Uncertainty-Aware Meta Learning Via Sequence
       Modeling", https://arxiv.org/abs/2207.04179

    Examples
    --------
    >>> from sktime.datasets import load_airline
    >>> from taylorformer_forecast.sktime import TNPForecaster
    >>> y = load_airline()
    >>> forecaster = TNPForecaster(max_steps=5, random_state=0).fit(y)
    >>> forecaster.predict_interval(fh=range(1, 13), coverage=0.9).shape
    (12, 2)
    """

    spec = TNP
    _test_params = (
        {**TINY, "context_length": 3, "n_layers": 1, "distribution": "mixture", "value_noise": 0.1},
        {**TINY, "n_layers": 2, "attention": "local", **VALIDATED, **ONE_SEASON},
    )

    def __init__(
        self,
        context_length: int | None = None,
        num_samples: int = 100,
        d_model: int = 32,
        n_heads: int = 2,
        n_layers: int = 3,
        dropout: float = 0.0,
        num_epochs: int | None = 30,
        max_steps: int | None = 400,
        batch_size: int = 16,
        lr: float = 3e-3,
        validation_split: float = 0.0,
        patience: int = 10,
        time_features: str | Sequence[str] | None = "auto",
        seasonal_periods: Periods = "auto",
        distribution: str = "studentt",
        value_noise: float = 0.0,
        attention: Attention = "full",
        update_steps: int = 0,
        finetune_steps: int = 0,
        past_only: Columns = None,
        device: str = "auto",
        random_state: Seed = None,
        verbose: bool = True,
        trainer_kwargs: Options = None,
        joint: bool = False,
    ) -> None:
        self._store(locals())
        super().__init__()
