"""The ContiFormer for sktime."""

from __future__ import annotations

from taylorformer_forecast.sktime._base import BaseTorchForecaster

__all__ = ["ContiFormerForecaster"]


class ContiFormerForecaster(BaseTorchForecaster):
    """Probabilistic forecasts at any time by the ContiFormer, for series that were observed at any times.

    The observed points of the context attend each other in continuous time: their keys and values move on
    from their own time stamps, by default by a linear equation that is solved exactly. Any later time can be
    asked; no grid is needed, and nothing is imputed.

    By default every step of a sample path is drawn given those before it. With ``joint=False`` every time has
    a distribution of its own, which one call gives for all: steps are then drawn independently of each other
    within ``horizon``, so that marginal distributions are exact but sums and differences over steps are not
    those of a joint model. Beyond ``horizon`` every path goes on from a context that ends with its own last
    points.

    Every column of a multivariate series is forecast from its own past, by one network that serves all
    columns and instances; past times are predicted one step ahead.

    Parameters
    ----------
    context_length : int, optional
        Observed points that a forecast is conditioned on. By default three seasons or two horizons, between
        32 and 192, at most half of the series.
    horizon : int, optional
        Targets of a training window. By default the steps to the end of ``fh`` if it is known at ``fit``,
        else a season; at most 96 and a quarter of the series.
    num_samples : int, default=100
        Sample paths of a prediction.
    d_model : int, default=32
        Width of the network.
    n_heads : int, default=4
        Attention heads.
    n_layers : int, default=1
        Layers; the last is the one that targets are asked in.
    dropout : float, default=0.1
        Dropout in training.
    num_epochs : int or None, default=40
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
        Distribution of a step. "quantile" is a piecewise linear quantile function trained by the pinball
        loss. "mse" and "mae" are point forecasts trained by squared and absolute errors: they have no
        intervals.
    joint : bool, optional
        Whether paths are drawn step by step, which needs linear dynamics or none: by default, where it can
        be.
    dynamics : {"linear", "mlp", "none"}, default="linear"
        Equation that keys and values follow: relaxation with learnt rates, solved in closed form; a network
        of tanh units, solved step by step, which is an order of magnitude slower; or none.
    solver : str, optional
        Solver of the equation; see
        :class:`~taylorformer_forecast.core.continuous.attention.ContinuousAttention`.
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
    network_ : ContiFormer or ContiFormerPaths
        The trained network, on the CPU.
    context_length_, horizon_ : int
        Points of a context, and targets of a training window.
    time_features_, seasonal_periods_ : tuple
        Cycles and seasons in use.
    training_ : dict
        Steps taken and last losses.

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

    def __init__(
        self,
        context_length=None,
        horizon=None,
        num_samples=100,
        d_model=32,
        n_heads=4,
        n_layers=1,
        dropout=0.1,
        num_epochs=40,
        max_steps=400,
        batch_size=32,
        lr=3e-3,
        validation_split=0.0,
        patience=10,
        time_features="auto",
        seasonal_periods="auto",
        distribution="studentt",
        joint=None,
        dynamics="linear",
        solver=None,
        update_steps=0,
        finetune_steps=0,
        past_only=None,
        device="auto",
        random_state=None,
        verbose=False,
        trainer_kwargs=None,
    ):
        self.context_length = context_length
        self.horizon = horizon
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
        self.joint = joint
        self.dynamics = dynamics
        self.solver = solver
        self.update_steps = update_steps
        self.finetune_steps = finetune_steps
        self.past_only = past_only
        self.device = device
        self.random_state = random_state
        self.verbose = verbose
        self.trainer_kwargs = trainer_kwargs
        super().__init__()

    def _build_network(self, dim_covariates):
        from taylorformer_forecast.models.contiformer_paths import build_contiformer

        return build_contiformer(
            self.joint,
            dim_covariates=dim_covariates,
            d_model=self.d_model,
            n_heads=self.n_heads,
            n_layers=self.n_layers,
            dropout=self.dropout,
            distribution=self.distribution,
            linear=(self.context_length_, self.horizon_),
            weight=self._network_weight,
            dynamics=self.dynamics,
            solver=self.solver,
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
            {
                **small,
                "horizon": 2,
                "distribution": "normal",
                "joint": False,
                "validation_split": 0.25,
                "update_steps": 1,
                "num_epochs": 1,
            },
            {**small, "context_length": 4, "n_layers": 2, "distribution": "mixture"},
        ]
