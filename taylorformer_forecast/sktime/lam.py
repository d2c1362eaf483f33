"""The LAM transformer for sktime."""

from __future__ import annotations

from taylorformer_forecast.sktime._base import BaseTorchForecaster

__all__ = ["LAMForecaster"]


class LAMForecaster(BaseTorchForecaster):
    """Probabilistic forecasts of all steps at once by the LAM transformer, for long horizons.

    The network sees a context on a regular grid by local attention, whose time and memory grow as n log n,
    and predicts a distribution for each of ``horizon`` steps. Horizons of thousands of steps cost one call.

    The steps of a sample path go together as the errors of a linear forecast of the series do
    (:meth:`~taylorformer_forecast.baselines.linear.LinearForecast.noise`), or are independent of each other
    with
    ``preset="faithful"``. Beyond ``horizon`` every path goes on from a context that ends with its own last
    points.

    Times must be regular. Missing rows and missing values are fine: they are never imputed, and the network
    knows that nothing was observed. Every column of a multivariate series is forecast from its own past, by
    one network that serves all columns and instances; past times are predicted one step ahead.

    After ``pretrain`` on a panel, ``fit`` to any other regular series trains nothing, or fine-tunes: the
    network, its lengths, the calendar cycles and seasons (counted in steps) and the scale of X are those of
    the panel, the level and scale of y those of the series, which may be shorter than a context.

    Missing values in X are flagged, not filled, in columns that had some in training; others must be
    complete. X is ignored, with a warning, if ``fit`` had none.

    Parameters
    ----------
    context_length : int, optional
        Steps that a forecast is conditioned on. By default three seasons or two horizons, between 32 and 336,
        at most half of the series.
    horizon : int, optional
        Steps that the network predicts at once. By default those to the end of ``fh`` if it is known at
        ``fit``, else a season; at most 720 and a quarter of the series.
    num_samples : int, default=100
        Sample paths of a prediction.
    d_model : int, default=32
        Width of the network; of ``preset="modern"`` only, as are the heads.
    n_heads : int, default=4
        Attention heads.
    n_layers : int, default=2
        Encoder layers, and decoder layers of ``preset="faithful"``.
    dropout : float, default=0.1
        Dropout in training.
    num_epochs : int or None, default=15
        Passes over all windows. Short series would be learnt by heart with more.
    max_steps : int or None, default=400
        Optimiser steps. Training ends with the earlier of both; None leaves its length to the other.
    batch_size : int, default=32
        Windows in a step.
    lr : float, default=0.002
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
    attention : str or callable, default="local"
        Attention kernel, a name in :data:`taylorformer_forecast.core.attention.registry.KERNELS` or a
        function with
        that signature.
    preset : {"modern", "faithful"}, default="modern"
        "faithful" is the architecture of the paper, trained there with ``distribution="mse"``; see
        :class:`~taylorformer_forecast.models.lam.LAMTransformer`. Its variables are a column of y, the phases
        of seasons and the columns of X.
    instance_norm : bool, optional
        Whether every window is centred and scaled by its context, which follows series whose level moves.
        Without it a series is standardised as a whole, as in the paper. By default True unless the preset is
        "faithful".
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
    network_ : LAMTransformer
        The trained network, on the CPU.
    context_length_, horizon_ : int
        Points of a context, and steps predicted at once.
    time_features_, seasonal_periods_ : tuple
        Cycles and seasons in use.
    training_ : dict
        Steps taken and last losses.
    pretrained_ : Pretrained
        After ``pretrain``: its network and what was chosen from the panel. Clones keep it, and so does
        ``fit``, which never changes it.

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

    _usual_context = _longest_context = 336
    _longest_horizon = 720
    _regular = True

    def __init__(
        self,
        context_length=None,
        horizon=None,
        num_samples=100,
        d_model=32,
        n_heads=4,
        n_layers=2,
        dropout=0.1,
        num_epochs=15,
        max_steps=400,
        batch_size=32,
        lr=2e-3,
        validation_split=0.0,
        patience=10,
        time_features="auto",
        seasonal_periods="auto",
        distribution="studentt",
        attention="local",
        preset="modern",
        instance_norm=None,
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
        self.attention = attention
        self.preset = preset
        self.instance_norm = instance_norm
        self.update_steps = update_steps
        self.finetune_steps = finetune_steps
        self.past_only = past_only
        self.device = device
        self.random_state = random_state
        self.verbose = verbose
        self.trainer_kwargs = trainer_kwargs
        super().__init__()

    @property
    def _instance_norm(self):
        return self.preset != "faithful" if self.instance_norm is None else self.instance_norm

    def _build_network(self, dim_covariates):
        from taylorformer_forecast.baselines.linear import LinearBaseline
        from taylorformer_forecast.models.lam import LAMTransformer

        sizes = (self.context_length_, self.horizon_)
        return LAMTransformer(
            *sizes,
            dim_covariates=dim_covariates,
            d_model=self.d_model,
            n_heads=self.n_heads,
            n_layers=self.n_layers,
            dropout=self.dropout,
            distribution=self.distribution,
            preset=self.preset,
            attention=self.attention,
            baseline=LinearBaseline(*sizes) if self.preset == "modern" else None,
            weight=self._network_weight,
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
                "distribution": "quantile",
                "validation_split": 0.25,
                "update_steps": 1,
                "num_epochs": 1,
            },
            {**small, "context_length": 3, "preset": "faithful", "distribution": "mse"},
        ]
