"""Classes of whole series by the ContiFormer, as a classifier of sktime."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import pandas as pd
from sklearn.utils import check_random_state
from sktime.classification.base import BaseClassifier

from taylorformer_forecast.calendar.axis import TimeAxis
from taylorformer_forecast.engine.classification import fit_classifier
from taylorformer_forecast.engine.state import all_or_nothing, own_state
from taylorformer_forecast.engine.windows import Series
from taylorformer_forecast.models.specs import CONTIFORMER
from taylorformer_forecast.sktime._checks import check_parameters
from taylorformer_forecast.sktime._estimator import Estimator
from taylorformer_forecast.sktime._frames import check_values, instances, shown, to_float
from taylorformer_forecast.sktime._parameters import SMALL, Options, Seed

NETWORK = ("d_model", "n_heads", "n_layers", "dropout", "dynamics")
TRAINING = ("max_steps", "lr", "device", "verbose", "trainer_kwargs")


class ContiFormerClassifier(Estimator, BaseClassifier):
    """Classify series by attention in continuous time, whatever their lengths, times and gaps.

    Every observed row is a point in time; keys and values move on from it by an equation that is solved in
    closed form, and attention looks to both sides. Series may have different lengths, irregular times and
    missing values. In training a random part of the rows is hidden in every step. Every column is
    standardised over all series.

    The network corrects linear scores of the classes: a ridge regression on values at 24 regular times, on
    straight lines between those that were observed. It is fitted in closed form.

    Parameters
    ----------
    max_points : int
        Rows that the network sees; longer series are averaged over neighbouring rows.
    time_column : label, optional
        Column of X that holds the times of the rows, increasing numbers. By default they are the time index:
        dates, periods or integers.
    common_clock : bool, optional
        Whether the same time means the same in all series: times count from the earliest row of all. Else
        they count from the first row of each. By default they count from the earliest row if series start
        near each other: at the median at most a quarter of the longest series later. Series at times
        after or before all of those are then refused.
    n_layers : int
        Layers.
    hide : float
        Largest part of the rows of a series that is hidden in a step of the training.
    max_steps : int
        Optimiser steps.
    batch_size : int
        Series in a step.
    random_state : int, RandomState or None
        Seed of training.

    Attributes
    ----------
    network_ : nn.Module
        The trained network, on the CPU.
    common_clock_ : bool
        Whether times count from the earliest row of all series.
    training_ : dict
        Steps taken and last loss.

    References
    ----------
    .. [1] Chen, Ren, Wang, Fang, Sun, Li: "ContiFormer: Continuous-Time Transformer for Irregular Time Series
       Modeling", NeurIPS 2023, https://arxiv.org/abs/2402.10635

    Examples
    --------
    >>> from sktime.datasets import load_unit_test
    >>> from taylorformer_forecast.sktime import ContiFormerClassifier
    >>> X, y = load_unit_test(split="train")
    >>> classifier = ContiFormerClassifier(max_steps=5, random_state=0).fit(X, y)
    >>> classifier.predict_proba(X).shape
    (20, 2)
    """

    _tags = {
        "python_dependencies": ["torch>=2.6", "pytorch-lightning>=2.5"],
        "X_inner_mtype": "pd-multiindex",
        "y_inner_mtype": "numpy1D",
        "capability:predict_proba": True,
    }

    spec = CONTIFORMER
    _test_params = (
        SMALL,
        {**SMALL, "max_points": 5, "n_layers": 1, "dynamics": "none", "hide": 0.0},
    )

    def __init__(
        self,
        max_points: int = 64,
        time_column: Any = None,
        common_clock: bool | None = None,
        d_model: int = 32,
        n_heads: int = 4,
        n_layers: int = 2,
        dropout: float = 0.1,
        dynamics: str = "linear",
        hide: float = 0.5,
        max_steps: int = 200,
        batch_size: int = 16,
        lr: float = 3e-3,
        device: str = "auto",
        random_state: Seed = None,
        verbose: bool = True,
        trainer_kwargs: Options = None,
    ) -> None:
        self._store(locals())
        super().__init__()

    def fit(self, X: Any, y: Any) -> Self:
        """Fit to labelled series; see :meth:`sktime.classification.base.BaseClassifier.fit`."""
        labels = pd.Series(np.ravel(np.asarray(y, dtype=object)))
        if labels.isna().any():
            raise ValueError(f"y has no label for case {int(labels.isna().to_numpy().argmax())}")
        with all_or_nothing(self):
            return super().fit(X, y)

    def _fit(self, X: pd.DataFrame, y: np.ndarray) -> Self:
        check_parameters(self.get_params(deep=False))
        self._time_axis: TimeAxis | None = None
        self._columns = list(X.columns)
        self._fitted = fit_classifier(
            self._series(X),
            np.array([self._class_dictionary[label] for label in y]),
            self.n_classes_,
            most_points=self.max_points,
            common_clock=self.common_clock,
            hide=self.hide,
            batch_size=self.batch_size,
            seed=int(check_random_state(self.random_state).randint(2**31 - 1)),
            network={name: getattr(self, name) for name in NETWORK},
            training={name: getattr(self, name) for name in TRAINING},
        )
        self.network_, self.training_ = self._fitted.network, self._fitted.record
        self.common_clock_ = self._fitted.windows.start is not None
        return self

    def _predict_proba(self, X: pd.DataFrame) -> np.ndarray:
        with own_state():
            return self._fitted.probabilities(self._series(X))

    def _series(self, X: pd.DataFrame) -> list[Series]:
        """Arrays of every instance, in the order of the data."""
        if self.time_column is not None and self.time_column not in X.columns:
            raise ValueError(f"time_column={self.time_column!r} is no column of X")
        for column in self._columns:
            if column not in X.columns:
                raise ValueError(f"X has no column {shown(column)}, which it had in the fit")
        X = X[self._columns]
        check_values(X, "X")
        parts = [part for _, part in instances(X)]
        if self.time_column is None:
            if self._time_axis is None:
                self._time_axis = TimeAxis.of([part.index for part in parts])
            return [Series(self._time_axis.count(p.index).astype(float), to_float(p)) for p in parts]
        times = [part[self.time_column].to_numpy(dtype="float64") for part in parts]
        if any(np.isnan(t).any() or (np.diff(t) <= 0).any() for t in times):
            raise ValueError(f"times in time_column={self.time_column!r} must be known and increase")
        values = [part.drop(columns=self.time_column) for part in parts]
        if not values[0].shape[1]:
            raise ValueError(f"X has no column beside time_column={self.time_column!r}")
        return [Series(t, to_float(part)) for t, part in zip(times, values, strict=True)]
