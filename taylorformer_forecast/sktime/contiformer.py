"""The ContiFormer for sktime."""

from __future__ import annotations

from collections.abc import Sequence

from taylorformer_forecast.core.attention.registry import Attention
from taylorformer_forecast.models.specs import CONTIFORMER
from taylorformer_forecast.sktime._base import BaseTorchForecaster
from taylorformer_forecast.sktime._parameters import TINY, Columns, Options, Periods, Seed


class ContiFormerForecaster(BaseTorchForecaster):
    """Probabilistic forecasts at any time by the ContiFormer, for series that were observed at any times.

    The observed points of the context attend each other in continuous time: their keys and values move on
    from their own time stamps, by default by a linear equation that is solved exactly. Any later time can be
    asked; no grid is needed. The linear forecast that the network corrects reads short gaps as straight
    lines, and long ones as the season before.

    By default every step of a sample path is drawn given those before it. With ``joint=False`` every time has
    a distribution of its own, which one call gives for all: steps are then drawn independently of each other
    within ``horizon``, so that marginal distributions are exact but sums and differences over steps are not
    those of a joint model. Beyond ``horizon`` every path goes on from a context that ends with its own last
    points.

    Every column of a multivariate series is forecast from its own past, by one network that serves all
    columns and instances; past times are predicted one step ahead.

    References
    ----------
    .. [1] Chen, Ren, Wang, Fang, Sun, Li: "ContiFormer: Continuous-Time Transformer for Irregular Time Series
       Modeling", NeurIPS 2023, https://arxiv.org/abs/2402.10635

    Examples
    --------
    >>> from sktime.datasets import load_airline
    >>> from taylorformer_forecast.sktime import ContiFormerForecaster
    >>> y = load_airline()
    >>> forecaster = ContiFormerForecaster(max_steps=5, random_state=0).fit(y)
    >>> forecaster.predict_interval(fh=range(1, 13), coverage=0.9).shape
    (12, 2)
    """

    spec = CONTIFORMER
    _test_params = (
        {**TINY, "horizon": 2, "distribution": "normal", "joint": False},
        {**TINY, "context_length": 4, "n_layers": 2, "distribution": "mixture"},
    )

    def __init__(
        self,
        context_length: int | None = None,
        horizon: int | None = None,
        num_samples: int = 100,
        d_model: int = 32,
        n_heads: int = 2,
        n_layers: int = 1,
        dropout: float = 0.1,
        num_epochs: int | None = 40,
        max_steps: int | None = 150,
        batch_size: int = 16,
        lr: float = 3e-3,
        validation_split: float = 0.0,
        patience: int = 10,
        time_features: str | Sequence[str] | None = "auto",
        seasonal_periods: Periods = "auto",
        distribution: str = "studentt",
        joint: bool | None = None,
        dynamics: str = "linear",
        solver: str | None = None,
        attention: Attention = "full",
        update_steps: int = 0,
        finetune_steps: int = 0,
        past_only: Columns = None,
        device: str = "auto",
        random_state: Seed = None,
        verbose: bool = True,
        trainer_kwargs: Options = None,
    ) -> None:
        self._store(locals())
        super().__init__()
