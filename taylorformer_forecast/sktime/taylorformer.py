"""The Taylorformer for sktime."""

from __future__ import annotations

import copy

from taylorformer_forecast.sktime._base import BaseTorchForecaster
from taylorformer_forecast.sktime._checks import known_future

__all__ = ["TaylorformerForecaster"]


class TaylorformerForecaster(BaseTorchForecaster):
    """Probabilistic forecasts by the Taylorformer, an autoregressive transformer over any set of times.

    The network is trained on windows of the series (or of all series of a panel) and draws joint sample
    paths of the future, each point conditional on the path so far. All predictive methods come from one draw
    of paths, seeded at ``fit``, and agree with each other exactly. Missing values are never imputed.

    Every column of a multivariate series is forecast from its own past, by one network that serves all
    columns and instances.

    Times may be irregular. ``fh`` then holds absolute times, time spans after the last observation, or
    integers, which count typical (median) steps; an index that is finer than the observations is as good as
    one without the empty rows, but its steps are those that integers count.

    After ``pretrain`` on a panel, ``fit`` to any other series trains nothing, or fine-tunes: the network, its
    lengths, the calendar cycles and seasons (counted in steps) and the scale of X are those of the panel, the
    level and scale of y those of the series, which may be shorter than a context.

    Missing values in X are flagged, not filled, in columns that had some in training; others must be
    complete. X is ignored, with a warning, if ``fit`` had none.

    Parameters
    ----------
    context_length : int, optional
        Observations that a forecast is conditioned on. By default three seasons, between 32 and 192, at most
        half of the series; two cycles of the calendar, such as two weeks of hours, where these are longer; or
        336, at most a quarter of the series, if a linear forecast does clearly better with that.
    num_samples : int, default=100
        Sample paths of a prediction.
    d_model : int, default=32
        Width of the network.
    n_heads : int, default=2
        Attention heads.
    n_layers : int, default=2
        Layers of each of the two streams.
    dropout : float, default=0.1
        Dropout in training.
    num_epochs : int or None, default=15
        Passes over all windows. Short series would be learnt by heart with more.
    max_steps : int or None, default=150
        Optimiser steps. Training ends with the earlier of both; None leaves its length to the other.
    batch_size : int, default=16
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
        Distribution of a point given the path so far. Forecasts further ahead are mixtures of it. "quantile"
        is a piecewise linear quantile function trained by the pinball loss; "mse" and "mae" give point
        forecasts, without intervals.
    linear_path : bool, default=True
        Whether a point is predicted around a linear forecast from the context, fitted in closed form before
        training, and the errors it made on the path so far
        (:class:`~taylorformer_forecast.baselines.linear_anchor.LinearAnchor`). Of what the network adds to
        that,
        three quarters are trusted, or all if there is X, which the linear forecast does not see, and for
        point forecasts. Without it, around the value at the nearest earlier neighbour, as in the paper.
    taylor_order : {0, 1}, default=0
        Without ``linear_path``: terms of the local Taylor expansion around which a point is predicted.
    n_derivative_neighbours : int, default=1
        Neighbours over which derivatives are averaged, for noisy series.
    attention : str or callable, default="full"
        Attention of the stream over values: "full", "local" (the last ``4 ceil(ln n)`` points, for long
        horizons) or a kernel that answers one query at a time
        (:class:`~taylorformer_forecast.core.attention.kernels.Kernel`).
    order : {"time", "random"}, default="time"
        Order of the targets in training. With "random", a part of the targets of many windows comes first, in
        random order: forecasts can then be conditional on known values of the future (:meth:`condition`).
        Without such values they are wider than those of "time", and worse, by 5 to 20 % in quantile loss
        (``examples/benchmark/conditional.py``).
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
    strategy : {"auto", "pretrained", "train", "finetune"}, default="auto"
        How the series are forecast. "pretrained": by a network that was trained on other series; only its
        baseline and its calibration are fitted. "train": by a new network, trained on the series.
        "finetune": by the pretrained network, trained further. "auto" looks at the data alone: the
        pretrained network forecasts where y has fewer observed values than sixteen horizons, without X; all
        else is trained, and so is what the pretrained network cannot do (another ``distribution``,
        ``order="random"``). Sizes and training parameters are those of a network that is trained. What was
        done is ``strategy_``.
    pretrained : "default" or path, default="default"
        The pretrained network: the one in the package, which has seen synthetic series of many kinds, or a
        file. It predicts all targets from the context
        (:class:`~taylorformer_forecast.models.direct.DirectTaylorformer`) and sees the two shortest seasons.

    Attributes
    ----------
    network_ : Taylorformer or DirectTaylorformer
        The trained network, on the CPU.
    context_length_, horizon_ : int
        Points of a context, and targets of a training window. Longer horizons are rolled: every path goes on
        from a context that ends with its own last points.
    time_features_, seasonal_periods_ : tuple
        Cycles and seasons in use.
    training_ : dict
        Steps taken and last losses.
    pretrained_ : Pretrained
        After ``pretrain``: its network and what was chosen from the panel. Clones keep it, and so does
        ``fit``, which never changes it.

    References
    ----------
    .. [1] Nivron, Parthipan, Wischik: "Taylorformer: Probabilistic Modelling for Random Processes including
       Time Series", https://arxiv.org/abs/2305.19141

    Examples
    --------
    >>> from sktime.datasets import load_airline
    >>> from taylorformer_forecast.sktime import TaylorformerForecaster
    >>> y = load_airline()
    >>> forecaster = TaylorformerForecaster(max_steps=5, random_state=0).fit(y)
    >>> forecaster.predict_interval(fh=range(1, 13), coverage=0.9).shape
    (12, 2)
    >>> paths = forecaster.predict_proba(fh=range(1, 13), marginal=False)
    >>> paths.sample(50).shape
    (600, 1)
    """

    _longest_context = 336

    def __init__(
        self,
        context_length=None,
        num_samples=100,
        d_model=32,
        n_heads=2,
        n_layers=2,
        dropout=0.1,
        num_epochs=15,
        max_steps=150,
        batch_size=16,
        lr=2e-3,
        validation_split=0.0,
        patience=10,
        time_features="auto",
        seasonal_periods="auto",
        distribution="studentt",
        linear_path=True,
        taylor_order=0,
        n_derivative_neighbours=1,
        attention="full",
        update_steps=0,
        finetune_steps=0,
        past_only=None,
        device="auto",
        random_state=None,
        verbose=False,
        trainer_kwargs=None,
        order="time",
        strategy="auto",
        pretrained="default",
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
        self.linear_path = linear_path
        self.taylor_order = taylor_order
        self.n_derivative_neighbours = n_derivative_neighbours
        self.attention = attention
        self.update_steps = update_steps
        self.finetune_steps = finetune_steps
        self.past_only = past_only
        self.device = device
        self.random_state = random_state
        self.verbose = verbose
        self.trainer_kwargs = trainer_kwargs
        self.order = order
        self.strategy = strategy
        self.pretrained = pretrained
        super().__init__()

    _usual_weight = 0.75

    def _build_network(self, dim_covariates):
        from taylorformer_forecast.baselines.linear_path import LinearPathBaseline, LinearTwoSidedBaseline
        from taylorformer_forecast.models.taylorformer import Taylorformer

        both_sides, baseline = self.order == "random", None
        if self.linear_path:
            kind = LinearTwoSidedBaseline if both_sides else LinearPathBaseline
            baseline = kind(self.context_length_, self.horizon_)
        return Taylorformer(
            dim_covariates=dim_covariates,
            d_model=self.d_model,
            n_heads=self.n_heads,
            n_layers=self.n_layers,
            dropout=self.dropout,
            distribution=self.distribution,
            n_derivative_neighbours=self.n_derivative_neighbours,
            # Slopes are per context length: absent only if y jumps by 20 deviations in one step.
            derivative_clip=20.0 * self.context_length_,
            taylor_order=self.taylor_order,
            attention=self.attention,
            baseline=baseline,
            weight=self._network_weight,
            both_sides=both_sides,
        )

    def _obstacle(self, weights):
        if self._scaler is not None:
            return "X is given, which the pretrained network has not seen"
        if self.order == "random":
            return "order='random', while the pretrained network forecasts in order of time"
        own = weights.distribution
        if self.distribution != own:
            return f"distribution={self.distribution!r}, while the pretrained network has {own!r}"
        return None if self.linear_path else "linear_path=False, while the pretrained network needs it"

    @property
    def _reorder(self):
        from taylorformer_forecast.engine.gaps import some_first

        return some_first if self.order == "random" else None

    def condition(self, y_known):
        """Return a copy whose forecasts are conditional on known values of the future.

        For a target that will be met, a day without sales, a reading that came in early: ``predict``,
        ``predict_interval``, ``predict_quantiles``, ``predict_var`` and ``predict_proba`` of the copy pass
        through the given values, and what lies around them follows. The forecaster itself stays as it is.

        Give ``fit`` an fh that reaches the known values: all steps up to the last of them are then drawn as
        in training, from one context.

        Parameters
        ----------
        y_known : pd.Series or pd.DataFrame
            Values after the last observation, with time stamps of the kind that y has in the fit, and for
            panels the same index levels. NaN, columns and instances that are absent mean: not known.

        Returns
        -------
        TaylorformerForecaster
            A fitted copy. Conditions add up if it is conditioned again; ``fit`` forgets them.

        Raises
        ------
        ValueError
            If the forecaster was not fitted with ``order="random"``, or nothing that is known lies ahead.

        Examples
        --------
        >>> import pandas as pd
        >>> from sktime.datasets import load_airline
        >>> from taylorformer_forecast.sktime import TaylorformerForecaster
        >>> y = load_airline()
        >>> forecaster = TaylorformerForecaster(order="random", max_steps=5, random_state=0).fit(y)
        >>> goal = pd.Series([500.0], pd.PeriodIndex(["1961-06"], freq="M"))
        >>> round(float(forecaster.condition(goal).predict(fh=[5, 6, 7]).iloc[1]), 6)
        500.0
        """
        self.check_is_fitted()
        if self.order != "random":
            raise ValueError(
                f"order={self.order!r}: a forecaster trained in order of time cannot be conditioned on the "
                f"future; fit one with order='random'"
            )
        given = known_future(y_known, self._cur_y, self.cutoff[0])
        conditional = copy.deepcopy(self)
        if self._given is not None:
            given = given.combine_first(self._given)[list(self._cur_y.columns)]
        conditional._given = given
        return conditional

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
            {**small, "context_length": 3, "distribution": "normal", "strategy": "train"},
            {
                **small,
                "linear_path": False,
                "strategy": "train",
                "taylor_order": 1,
                "n_derivative_neighbours": 2,
                "validation_split": 0.25,
                "update_steps": 1,
                "num_epochs": 1,
            },
            {
                **small,
                "distribution": "mixture",
                "time_features": None,
                "seasonal_periods": 4,
                "attention": "local",
            },
            {**small, "context_length": 4, "order": "random"},
            {"num_samples": 3, "random_state": 0},
            {"strategy": "finetune", "max_steps": 1, "num_samples": 3, "random_state": 0},
        ]
