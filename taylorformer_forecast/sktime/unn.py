"""Joint forecasts of several series for sktime."""

from __future__ import annotations

from collections.abc import Sequence

from taylorformer_forecast.core.attention.registry import Attention
from taylorformer_forecast.models.specs import UNN
from taylorformer_forecast.sktime._base import BaseTorchForecaster
from taylorformer_forecast.sktime._joined import JoiningInstances
from taylorformer_forecast.sktime._parameters import ONE_SEASON, TINY, Columns, Options, Periods, Seed


class UNNForecaster(JoiningInstances, BaseTorchForecaster):
    """Probabilistic forecasts of related series, each conditioned on all others.

    The columns of y are the series. They go into one window as a set of points (time, series, value), and
    every point is predicted from those before it, whichever series they belong to: forecasts of one column
    depend on the past of the others, and sample paths are joint over columns and steps. The other forecasters
    of the package forecast each column from its own past.

    Every column is centred and scaled by itself. A missing value is simply not in the set. One column will
    do; instances of a panel are windows of their own, or with ``join="instances"`` series of one window, too.
    Past times are predicted one step ahead, each column from what all of them were before.

    Time and memory of a window grow with the square of the columns, and of its length. Steps of more than ten
    columns therefore have fewer windows by default. Many columns take other forecasters, or several fits of
    related ones.

    Parameters
    ----------
    join : {"columns", "instances"}
        What is forecast jointly: the columns of each instance, or all columns of all instances of a panel.
        The latter are forecast for the same times, counted from the last time of any; where one has no row,
        its value is missing. Every instance must have times that others have too. Later data may lack
        instances, but have no new ones; X of a panel is refused. After ``pretrain``, a fit needs as many
        instances as were joined there.
    context_length : int
        Times that a forecast is conditioned on, with all columns there. By default the largest of three
        seasons, two horizons and 32, up to {usual_context}, and less where there are more than two columns;
        or two cycles of the calendar, up to {longest_context}, where these are longer. Of a short series it
        is a third, or one season up to half of it.
    batch_size : int or None
        Windows in a step. By default 16 with up to ten columns, 4 with twenty, 1 with 29 or more. A
        warning says where steps are large nevertheless.

    References
    ----------
    .. [1] Nivron, Parthipan, Wischik: "Taylorformer: Probabilistic Modelling for Random Processes including
       Time Series", https://arxiv.org/abs/2305.19141. The network is its layer with weights from times and
       values from y, over several series.

    Examples
    --------
    >>> from sktime.datasets import load_longley
    >>> from taylorformer_forecast.sktime import UNNForecaster
    >>> _, y = load_longley()
    >>> forecaster = UNNForecaster(max_steps=5, random_state=0).fit(y[["GNP", "UNEMP"]])
    >>> forecaster.predict_interval(fh=[1, 2, 3], coverage=0.9).shape
    (3, 4)
    """

    spec = UNN
    _free = ("batch_size",)  # it may be None
    _test_params = (
        {**TINY, "context_length": 3, "n_layers": 1, "distribution": "quantile"},
        {**TINY, "history_indicator": False, "attention": "local", **ONE_SEASON},
    )

    def __init__(
        self,
        context_length: int | None = None,
        num_samples: int = 100,
        d_model: int = 32,
        n_heads: int = 8,
        n_layers: int = 2,
        dropout: float = 0.1,
        num_epochs: int | None = 30,
        max_steps: int | None = 400,
        batch_size: int | None = None,
        lr: float = 3e-3,
        validation_split: float = 0.0,
        patience: int = 10,
        time_features: str | Sequence[str] | None = "auto",
        seasonal_periods: Periods = "auto",
        distribution: str = "studentt",
        history_indicator: bool = True,
        join: str = "columns",
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
