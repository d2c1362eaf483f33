"""What every imputer does: fit, update, and fill; other methods are in :mod:`._imputation_methods`.

An imputer names its parameters and its network (:class:`~taylorformer_forecast.models.spec.ModelSpec`);
everything else is here.
"""

from __future__ import annotations

from typing import Any, Self

from sktime.transformations.base import BaseTransformer

from taylorformer_forecast.calendar.axis import TimeAxis
from taylorformer_forecast.calendar.cycles import SeasonalFeatures
from taylorformer_forecast.calendar.steps import content
from taylorformer_forecast.defaults import FILL_GAP, FILL_SEASONS, FILL_WINDOW
from taylorformer_forecast.engine.state import all_or_nothing
from taylorformer_forecast.sktime._checks import check_observed, check_parameters, check_positive
from taylorformer_forecast.sktime._estimator import Estimator
from taylorformer_forecast.sktime._frames import check_values, instances, to_float
from taylorformer_forecast.sktime._gap_frames import fill_frame, gap_lengths
from taylorformer_forecast.sktime._gap_training import GapTraining
from taylorformer_forecast.sktime._imputation_methods import ImputationMethods


class BaseImputer(ImputationMethods, GapTraining, Estimator, BaseTransformer):
    """Base of the package's imputers.

    Parameters
    ----------
    window_length : int
        Points of a window: of the training, and of the observed points around a gap that it is filled from.
        Where these are fewer than two seasons, fills follow no season. By default three seasons, between 64
        and 192; never more than the series has.
    gap_length : int
        Points that are hidden in a window, and so the longest gap in it. By default the longest gap of the
        series, between 20 and 48. A third of the window is taken where that is less. Longer gaps are filled
        too.
    num_samples : int
        Sample paths that quantiles and means are made of.
    max_steps : int
        Optimiser steps of the network; the process has up to 150 of its own.
    distribution : {"normal", "studentt", "mixture", "quantile"}
        Distribution of a point given all that is known when it is drawn.
    logarithm : bool
        Whether values are filled on a logarithmic scale, on which a spread that grows with the level stays
        the same; fills are returned to the units of the data. By default every column that never falls below
        zero, and is not often as small as its smallest value, is described by a Gaussian process as it is and
        by logarithms ``log(y + offset)``, and the likeliest description is taken. True takes plain
        logarithms; all values must then be positive. Where no value is negative, and many are zero, no fill
        is negative.
    random_state : int, RandomState or None
        Seed of training and of the draws.

    Attributes
    ----------
    network_ : nn.Module
        The trained network, on the CPU.
    window_length_, gap_length_ : int
        Points of a window, and how many of them are hidden in training: what was asked for, or fewer.
    time_features_, seasonal_periods_ : tuple
        Cycles and seasons in use.
    offsets_ : dict
        For every column the offset of its logarithm, as a fraction of the mean of the observed values (of
        each instance); None where values are taken as they are.
    training_ : dict
        Steps taken and last loss; the points used for calibration, and what it chose: ``weight``,
        ``mean_weight``, ``inflation`` (:class:`~taylorformer_forecast.core.calibration.Calibration`).
    """

    _tags = {
        "scitype:transform-input": "Series",
        "scitype:transform-output": "Series",
        "scitype:instancewise": True,
        "X_inner_mtype": ["pd.DataFrame", "pd-multiindex", "pd_multiindex_hier"],
        "y_inner_mtype": "None",
        "capability:missing_values:removes": True,
        "capability:inverse_transform": True,
        "skip-inverse-transform": True,
        "transform-returns-same-time-index": True,
        "remember_data": False,
    }

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
        if self._is_point:
            raise ValueError(
                f"distribution={self.distribution!r} gives points only, no distribution to draw from; "
                f"choose another one, such as 'studentt'"
            )
        if "ckpt_path" in (self.trainer_kwargs or {}):
            raise ValueError(
                "trainer_kwargs has ckpt_path, but an imputer trains several networks, which cannot go on "
                "from a checkpoint: leave it out"
            )
        check_values(X, "X")
        parts = dict(instances(X))
        for key, part in parts.items():
            check_observed(key, part, "X")
            if self.logarithm:
                check_positive(key, part)
        longest = max(int(part.notna().sum().max()) for part in parts.values())
        if longest < 3:
            raise ValueError(f"X has {longest} observation{'s' * (longest != 1)}, at least 3 are needed")
        fit_seed, self._seed = self._seeds()
        self._columns, self._content = list(X.columns), content(next(iter(parts.values())).index)
        self._axis = TimeAxis.of([part.index for part in parts.values()])
        asked = self.time_features, self.seasonal_periods
        values = ((part.index, to_float(part)) for part in parts.values())
        self._take_seasons(SeasonalFeatures.choose(self._axis, values, *asked))
        least, most = FILL_WINDOW
        window = self.window_length or min(max(FILL_SEASONS * self._seasonal.season, least), most)
        self.window_length_ = min(window, longest)
        lengths = gap_lengths(X)
        gap = self.gap_length or min(max([FILL_GAP[0], *lengths]), FILL_GAP[1])
        self.gap_length_ = max(1, min(gap, self.window_length_ // 3))
        self._choose_logarithms(parts, fit_seed)
        self._train([gaps for part in parts.values() for gaps in self._gaps(part)], lengths, fit_seed)
        self._remember(parts)
        return self

    def _update(self, X, y=None):
        parts = {key: self._continued(key, part) for key, part in self._checked(X)}
        self._remember({**self._ends, **parts})
        return self

    def _transform(self, X, y=None):
        imputed = self._impute(X, self.num_samples)
        if not len(imputed.rows):
            return X.copy()
        return fill_frame(X, imputed.rows, imputed.lost, self._mixture(X, imputed).mean().to_numpy())
