"""Joint forecasts of several series for sktime."""

from __future__ import annotations

from taylorformer_forecast.sktime._base import BaseTorchForecaster

__all__ = ["UNNForecaster"]


class UNNForecaster(BaseTorchForecaster):
    """Probabilistic forecasts of related series, each conditioned on all others.

    The columns of y are the series. They go into one window as a set of points (time, series, value), and
    every point is predicted from those before it, whichever series they belong to: a forecast of one column
    knows the past of the others, and sample paths are joint over columns and steps. The other forecasters
    of the package forecast each column from its own past.

    Every column is centred and scaled by itself. A missing value is simply not in the set. One column will
    do; instances of a panel are windows of their own. Past times are predicted one step ahead, each column
    from what all of them were before.

    Parameters
    ----------
    context_length : int, optional
        Times that a forecast is conditioned on, with all columns there. By default three seasons, at least 32
        and at most half of the series; at most 192, and fewer where there are more than two columns.
    num_samples : int, default=100
        Sample paths of a prediction.
    d_model : int, default=32
        Width of the network.
    n_heads : int, default=8
        Attention heads, each a smoother of its own.
    n_layers : int, default=2
        Attention layers. Those before the last one turn times and series into queries and keys.
    dropout : float, default=0.1
        Dropout in training.
    num_epochs : int or None, default=30
        Passes over all windows. Short series would be learnt by heart with more.
    max_steps : int or None, default=400
        Optimiser steps. Training ends with the earlier of both; None leaves its length to the other.
    batch_size : int, default=32
        Windows in a step.
    lr : float, default=0.003
        Peak learning rate; it warms up and decays by a cosine.
    validation_split : float, default=0.0
        Fraction at the end of every series that is kept from training and decides about early stopping. By
        default training uses all of the series and takes all of its steps.
    patience : int, default=10
        With a ``validation_split``: checks without improvement (20 in all) before training stops. The best
        weights are kept.
    time_features : "auto", None or tuple of str, default="auto"
        Cycles of the calendar among "day", "week", "month", "year" whose phases the network sees. "auto"
        takes those that the index resolves and that the series covers at least twice.
    seasonal_periods : "auto", None, int or tuple of int, default="auto"
        Further seasons, in steps. "auto" looks for them in the autocorrelation.
    distribution : {"normal", "studentt", "mixture", "quantile", "mse", "mae"}, default="studentt"
        Distribution of a point given the path so far. Forecasts further ahead are mixtures of it. "quantile"
        is a piecewise linear quantile function trained by the pinball loss; "mse" and "mae" give point
        forecasts, without intervals.
    history_indicator : bool, default=True
        Whether it is seen which column earlier values belong to.
    update_steps : int, default=0
        Optimiser steps of ``update(..., update_params=True)``. With 0, updates change the context only.
    finetune_steps : int, default=0
        Optimiser steps of ``fit`` after ``pretrain``. With 0, ``fit`` gives the pretrained network the series
        to start from and changes nothing else; without ``pretrain`` it has no meaning.
    past_only : None, "all" or tuple of column labels, default=None
        Columns of X that are known of the past only. The network sees their past, and learns without their
        future: ``predict`` needs no values of them, and uses none. All others are known ahead: ``predict``
        needs them for every step up to the last of ``fh``.
    device : str, default="auto"
        "auto" takes a CUDA device if there is one, else the CPU.
    random_state : int, RandomState or None, default=None
        Seed of training and of the paths.
    verbose : bool, default=False
        Whether to show a progress bar.
    trainer_kwargs : dict, optional
        Arguments of ``pytorch_lightning.Trainer``, such as ``{"precision": "bf16-mixed"}``, loggers,
        callbacks, ``{"devices": 4, "strategy": "ddp"}`` or ``{"max_time": {"seconds": 30}}``.

    Attributes
    ----------
    network_ : UNN
        The trained network, on the CPU.
    context_length_, horizon_ : int
        Times of a context, and targets of a training window. Longer horizons are rolled: every path goes on
        from a context that ends with its own last points.
    time_features_, seasonal_periods_ : tuple
        Cycles and seasons in use.
    training_ : dict
        Steps taken and last losses.

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

    _joins_columns = True

    def __init__(
        self,
        context_length=None,
        num_samples=100,
        d_model=32,
        n_heads=8,
        n_layers=2,
        dropout=0.1,
        num_epochs=30,
        max_steps=400,
        batch_size=32,
        lr=3e-3,
        validation_split=0.0,
        patience=10,
        time_features="auto",
        seasonal_periods="auto",
        distribution="studentt",
        history_indicator=True,
        update_steps=0,
        finetune_steps=0,
        past_only=None,
        device="auto",
        random_state=None,
        verbose=False,
        trainer_kwargs=None,
    ):
        self.context_length = context_length
        self.num_samples = num_samples
        self.d_model = d_model
        self.n_heads = n_heads
        self.n_layers = n_layers
        self.dropout = dropout
        self.num_epochs = num_epochs
        self.max_steps = max_steps
        self.batch_size = batch_size
        self.lr = lr
        self.validation_split = validation_split
        self.patience = patience
        self.time_features = time_features
        self.seasonal_periods = seasonal_periods
        self.distribution = distribution
        self.history_indicator = history_indicator
        self.update_steps = update_steps
        self.finetune_steps = finetune_steps
        self.past_only = past_only
        self.device = device
        self.random_state = random_state
        self.verbose = verbose
        self.trainer_kwargs = trainer_kwargs
        super().__init__()

    @property
    def _usual_context(self):
        # Time and memory grow with the square of all points in a window.
        return min(192, max(32, 384 // self._cur_y.shape[1]))

    def _build_network(self, dim_covariates):
        from taylorformer_forecast.models.unn import UNN

        return UNN(
            n_series=self._cur_y.shape[1],
            dim_covariates=dim_covariates,
            d_model=self.d_model,
            n_heads=self.n_heads,
            n_layers=self.n_layers,
            dropout=self.dropout,
            distribution=self.distribution,
            history_indicator=self.history_indicator,
        )

    @classmethod
    def get_test_params(cls, parameter_set="default"):
        """Return small settings for sktime's test suite.

        Parameters
        ----------
        parameter_set : str, default="default"
            Ignored: there is one set of sets.

        Returns
        -------
        list of dict
            Parameters that construct test instances.
        """
        small = {"d_model": 4, "n_heads": 1, "max_steps": 1, "num_samples": 3, "random_state": 0}
        return [
            {**small, "context_length": 3, "n_layers": 1, "distribution": "quantile"},
            {
                **small,
                "validation_split": 0.25,
                "update_steps": 1,
                "num_epochs": 1,
                "time_features": None,
                "seasonal_periods": 4,
                "history_indicator": False,
            },
        ]
