"""Gaps filled by the Taylorformer, as a transformer of sktime."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from sklearn.utils import check_random_state
from sktime.transformations.base import BaseTransformer

from taylorformer_forecast.calendar.axis import TimeAxis, content
from taylorformer_forecast.calendar.cycles import SeasonalFeatures
from taylorformer_forecast.core.families import gives_points
from taylorformer_forecast.engine.training import all_or_nothing
from taylorformer_forecast.sktime._checks import check_observed, check_parameters, check_positive
from taylorformer_forecast.sktime._frames import check_values, instances, to_float
from taylorformer_forecast.sktime._gap_answers import GapAnswers
from taylorformer_forecast.sktime._gap_frames import fill_frame, gap_lengths
from taylorformer_forecast.sktime._gap_training import GapTraining
from taylorformer_forecast.sktime._parameters import ONE_SEASON, TINY, TestParams

__all__ = ["TaylorformerImputer"]


class TaylorformerImputer(GapAnswers, GapTraining, BaseTransformer):
    """Fill gaps with the Taylorformer, which conditions on what lies on both sides of them.

    Missing points are predicted around the conditional means of a Gaussian process with trend and seasons, in
    units of its deviations. The network learns what that leaves, on windows of the series in which random
    points and blocks are hidden: their joint distribution given the points before, between and after them.
    How far it is trusted, and how wide its distributions are, is chosen on gaps that its training did not
    see; for that, short series are split and trained on several times. ``transform`` fills gaps
    with the conditional mean, ``transform_quantiles`` and ``transform_proba`` say how sure it is, and
    ``sample`` draws whole series. All of them tell of one draw, seeded at ``fit``. Observed values are never
    changed. At the start and the end of a series gaps are filled from one side.

    Every column is filled from its own values, by one network that serves all columns and instances. Times
    may be irregular. Only rows that are there are filled: to fill missing rows, reindex before.

    In a pipeline, ``TaylorformerImputer() * forecaster``, it fills the series that the forecaster is fitted
    to, and forecasts pass through it unchanged.

    Parameters
    ----------
    window_length : int, optional
        Points that a window of the training has. By default three seasons, between 64 and 192.
    gap_length : int, optional
        Points that are hidden in a window, and so the longest gap in it. By default the longest gap of the
        series, between 20 and 48; at most a third of the window. Longer gaps are filled too.
    num_samples : int, default=100
        Sample paths that quantiles and means are made of.
    d_model : int, default=32
        Width of the network.
    n_heads : int, default=4
        Attention heads.
    n_layers : int, default=2
        Layers of each of the two streams, at least 2.
    dropout : float, default=0.1
        Dropout in training.
    max_steps : int, default=100
        Optimiser steps of the network; the process has up to 150 of its own.
    batch_size : int, default=16
        Windows in a step.
    lr : float, default=0.003
        Peak learning rate; it warms up and decays by a cosine.
    time_features : "auto", None or tuple of str, default="auto"
        Cycles of the calendar among "day", "week", "month", "year" whose phases the network sees. "auto"
        takes those that the index resolves and that the series covers at least twice.
    seasonal_periods : "auto", None, int or tuple of int, default="auto"
        Further seasons, in steps. "auto" looks for them in the autocorrelation.
    distribution : {"normal", "studentt", "mixture", "quantile"}, default="studentt"
        Distribution of a point given all that is known when it is drawn.
    logarithm : bool, optional
        Whether values are filled on a logarithmic scale, on which a spread that grows with the level stays
        the same; fills are returned to the units of the data. By default every column that never falls below
        zero is described by a Gaussian process as it is and by logarithms ``log(y + offset)``, and the
        likeliest description is taken. True takes plain logarithms; all values must then be positive.
    device : str, default="auto"
        "auto" takes a CUDA device if there is one, else the CPU.
    random_state : int, RandomState or None, default=None
        Seed of training and of the draws.
    verbose : bool, default=True
        Whether training that takes more than seconds shows a progress bar, in a terminal or a notebook.
    trainer_kwargs : dict, optional
        Arguments of ``pytorch_lightning.Trainer``.

    Attributes
    ----------
    network_ : Taylorformer
        The trained network, on the CPU.
    window_length_, gap_length_ : int
        Points of a window, and how many of them are hidden in training.
    time_features_, seasonal_periods_ : tuple
        Cycles and seasons in use.
    offsets_ : dict
        For every column the offset of its logarithm, as a fraction of the mean of the observed values (of
        each instance); None where values are taken as they are.
    training_ : dict
        Steps taken and last loss; the points used for calibration, and what it chose: ``weight``,
        ``mean_weight``, ``inflation`` (:class:`~taylorformer_forecast.core.calibration.Calibration`).

    References
    ----------
    .. [1] Nivron, Parthipan, Wischik: "Taylorformer: Probabilistic Modelling for Random Processes including
       Time Series", https://arxiv.org/abs/2305.19141

    Examples
    --------
    >>> from sktime.datasets import load_airline
    >>> from taylorformer_forecast.sktime import TaylorformerImputer
    >>> y = load_airline()
    >>> y.iloc[60:66] = float("nan")
    >>> imputer = TaylorformerImputer(max_steps=5, random_state=0)
    >>> int(imputer.fit_transform(y).isna().sum())
    0
    >>> imputer.transform_quantiles(y, alpha=[0.1, 0.9]).iloc[60:66].shape
    (6, 2)
    >>> imputer.transform_proba(y).mean().shape
    (6, 1)
    >>> imputer.sample(y, 3).shape
    (432, 1)
    """

    _tags = {
        "authors": ["taylorformer_forecast developers"],
        "maintainers": ["taylorformer_forecast developers"],
        "python_dependencies": ["torch>=2.6", "pytorch-lightning>=2.5", "skpro>=2.14"],
        "scitype:transform-input": "Series",
        "scitype:transform-output": "Series",
        "scitype:instancewise": True,
        "X_inner_mtype": ["pd.DataFrame", "pd-multiindex", "pd_multiindex_hier"],
        "y_inner_mtype": "None",
        "fit_is_empty": False,
        "capability:missing_values": True,
        "capability:missing_values:removes": True,
        "capability:multivariate": True,
        "capability:unequal_length": True,
        "capability:categorical_in_X": False,
        "capability:inverse_transform": True,
        "skip-inverse-transform": True,
        "capability:random_state": True,
        "property:randomness": "derandomized",
        "transform-returns-same-time-index": True,
        "remember_data": False,
    }

    def __init__(
        self,
        window_length: int | None = None,
        gap_length: int | None = None,
        num_samples: int = 100,
        d_model: int = 32,
        n_heads: int = 4,
        n_layers: int = 2,
        dropout: float = 0.1,
        max_steps: int = 100,
        batch_size: int = 16,
        lr: float = 3e-3,
        time_features: str | Sequence[str] | None = "auto",
        seasonal_periods: str | float | Sequence[float] | None = "auto",
        distribution: str = "studentt",
        logarithm: bool | None = None,
        device: str = "auto",
        random_state: int | np.random.RandomState | None = None,
        verbose: bool = True,
        trainer_kwargs: Mapping[str, Any] | None = None,
    ) -> None:
        self.window_length = window_length
        self.gap_length = gap_length
        self.num_samples = num_samples
        self.d_model = d_model
        self.n_heads = n_heads
        self.n_layers = n_layers
        self.dropout = dropout
        self.max_steps = max_steps
        self.batch_size = batch_size
        self.lr = lr
        self.time_features = time_features
        self.seasonal_periods = seasonal_periods
        self.distribution = distribution
        self.logarithm = logarithm
        self.device = device
        self.random_state = random_state
        self.verbose = verbose
        self.trainer_kwargs = trainer_kwargs
        super().__init__()

    # ---- fit -----------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit to X; see :meth:`sktime.transformations.base.BaseTransformer.fit`."""
        with all_or_nothing(self):
            return super().fit(X, y)

    def update(self, X: Any, y: Any = None, update_params: bool = True) -> Self:
        """Take note of new data; see :meth:`sktime.transformations.base.BaseTransformer.update`."""
        with all_or_nothing(self):
            return super().update(X, y, update_params)

    def _fit(self, X, y=None):
        check_parameters(self.get_params(deep=False))
        if gives_points(self.distribution):
            raise ValueError(
                f"distribution={self.distribution!r} gives points only, no distribution to draw from; "
                f"choose another one, such as 'studentt'"
            )
        check_values(X, "X")
        parts = dict(instances(X))
        for key, part in parts.items():
            check_observed(key, part, "X")
            if self.logarithm:
                check_positive(key, part, "X")
        longest = max(int(part.notna().sum().max()) for part in parts.values())
        if longest < 3:
            raise ValueError(f"X has {longest} observation{'s' * (longest != 1)}, at least 3 are needed")
        fit_seed, self._seed = (
            int(seed) for seed in check_random_state(self.random_state).randint(0, 2**31 - 1, size=2)
        )
        self._columns, self._content = list(X.columns), content(next(iter(parts.values())).index)
        self._axis = TimeAxis.of([part.index for part in parts.values()])
        sample = max(parts.values(), key=len)
        self._seasonal = SeasonalFeatures.choose(
            self._axis, sample.index, to_float(sample)[:, 0], self.time_features, self.seasonal_periods
        )
        self.time_features_, self.seasonal_periods_ = self._seasonal.cycles, self._seasonal.periods
        window = self.window_length or min(max(3 * self._seasonal.season, 64), 192)
        self.window_length_ = min(window, longest)
        lengths = gap_lengths(X)
        gap = self.gap_length or min(max([20, *lengths]), 48)
        self.gap_length_ = max(1, min(gap, self.window_length_ // 3))
        self._choose_logarithms(parts, fit_seed)
        self._train([gaps for part in parts.values() for gaps in self._gaps(part)], lengths, fit_seed)
        self._remember(parts)
        return self

    def _update(self, X, y=None):
        parts = {key: self._continued(key, part) for key, part in self._checked(X)}
        self._remember({**self._ends, **parts})
        return self

    # ---- what fills the gaps ---------------------------------------------------------------------------

    def _transform(self, X, y=None):
        fills = self._fills(X, self.num_samples)
        if not len(fills.rows):
            return X.copy()
        return fill_frame(X, fills.rows, fills.lost, self._mixture(X, fills).mean().to_numpy())

    @classmethod
    def get_test_params(cls, parameter_set: str = "default") -> TestParams:
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
        return [
            {**TINY, "distribution": "normal", "logarithm": False},
            {**TINY, "window_length": 12, "gap_length": 3, **ONE_SEASON, "distribution": "quantile"},
        ]
