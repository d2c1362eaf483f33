"""The LAM transformer for sktime."""

from __future__ import annotations

from collections.abc import Sequence

from taylorformer_forecast.core.attention.registry import Attention
from taylorformer_forecast.models.specs import LAM
from taylorformer_forecast.sktime._base import BaseTorchForecaster
from taylorformer_forecast.sktime._parameters import TINY, Columns, Options, Periods, Seed


class LAMForecaster(BaseTorchForecaster):
    """Probabilistic forecasts of all steps at once by the LAM transformer, for long horizons.

    The network sees a context on a regular grid by local attention, whose time and memory grow as n log n,
    and predicts a distribution for each of ``horizon`` steps. Horizons of thousands of steps cost one call.

    The steps of a sample path go together as the errors of a linear forecast of the series do
    (:meth:`~taylorformer_forecast.baselines.linear.LinearBaseline.noise`), or are independent of each other
    with ``preset="faithful"``. Beyond ``horizon`` every path goes on from a context that ends with its own
    last points.

    Times must be regular. Missing rows and missing values are fine: they are flagged, and the linear
    forecast that the network corrects reads short gaps as straight lines, and long ones as the season before.
    Every column of a multivariate series is forecast from its own past, by one network that serves all
    columns and instances; past times are predicted one step ahead.

    After ``pretrain`` on a panel, ``fit`` to any other regular series trains nothing, or fine-tunes: the
    network, its lengths, the calendar cycles and seasons (counted in steps) and the scale of X are those of
    the panel, the level and scale of y those of the series, which may be shorter than a context.

    Missing values in X are flagged, not filled, in columns that had some in training; others must be
    complete. X is ignored, with a warning, if ``fit`` had none.

    Parameters
    ----------
    instance_norm : bool
        Whether every window is centred and scaled by its context, which follows series whose level moves.
        Without it a series is standardised as a whole, as in the paper. By default True unless the preset is
        "faithful".

    References
    ----------
    .. [1] Aguilera-Martos, Herrera-Poyatos, Luengo, Herrera: "Local Attention Mechanism: Boosting the
       Transformer Architecture for Long-Sequence Time Series Forecasting", https://arxiv.org/abs/2410.03805

    Examples
    --------
    >>> from sktime.datasets import load_airline
    >>> from taylorformer_forecast.sktime import LAMForecaster
    >>> y = load_airline()
    >>> forecaster = LAMForecaster(max_steps=5, random_state=0).fit(y, fh=range(1, 25))
    >>> forecaster.horizon_
    24
    >>> forecaster.predict_quantiles(fh=range(1, 25), alpha=[0.1, 0.9]).shape
    (24, 2)
    """

    spec = LAM
    _test_params = (
        {**TINY, "horizon": 2, "distribution": "quantile"},
        {**TINY, "context_length": 3, "preset": "faithful", "distribution": "mse"},
    )

    def __init__(
        self,
        context_length: int | None = None,
        horizon: int | None = None,
        num_samples: int = 100,
        d_model: int = 32,
        n_heads: int = 2,
        n_layers: int = 2,
        dropout: float = 0.0,
        num_epochs: int | None = 15,
        max_steps: int | None = 400,
        batch_size: int = 16,
        lr: float = 2e-3,
        validation_split: float = 0.0,
        patience: int = 10,
        time_features: str | Sequence[str] | None = "auto",
        seasonal_periods: Periods = "auto",
        distribution: str = "studentt",
        attention: Attention = "local",
        preset: str = "modern",
        instance_norm: bool | None = None,
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

    @property
    def _instance_norm(self) -> bool:
        return self.preset != "faithful" if self.instance_norm is None else self.instance_norm
