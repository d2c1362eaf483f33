"""All of sktime's predictive methods, from one draw of a fitted network."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd

from taylorformer_forecast.calendar.steps import snapped
from taylorformer_forecast.defaults import MIN_SCALE_VALUES, N_CALIBRATION_WINDOWS
from taylorformer_forecast.engine.predictive import Predictive
from taylorformer_forecast.engine.state import all_or_nothing, own_state
from taylorformer_forecast.engine.statistics.average import with_analogues
from taylorformer_forecast.engine.statistics.forecast import forecast_series
from taylorformer_forecast.engine.statistics.requests import SeriesRequest
from taylorformer_forecast.sktime._checks import check_levels, check_same_kind
from taylorformer_forecast.sktime._frames import MissingRows, instances, of_instance
from taylorformer_forecast.sktime._joint import JointPaths, covariances
from taylorformer_forecast.sktime._moving_cutoffs import MovingCutoffs
from taylorformer_forecast.sktime._network_requests import NetworkRequests
from taylorformer_forecast.sktime._panel import by_name
from taylorformer_forecast.sktime._sampler import Sampler, predict_requests
from taylorformer_forecast.sktime.distributions import PathMixture
from taylorformer_forecast.sktime.sample_paths import SamplePaths


class PredictiveMethods(MovingCutoffs, JointPaths, NetworkRequests):
    """Mean, quantiles, variances and distributions of a fitted :class:`BaseTorchForecaster`."""

    _given = None  # values of the future that are known: a frame like y, NaN where nothing is

    @property
    def _labels(self):
        """Columns of a forecast."""
        return self._cur_y.columns

    def _get_varnames(self):
        # sktime's own are those of the latest data, whose columns may have another order.
        return list(self._labels)

    @own_state()
    def _predictive(self, fh, X, joint=False) -> tuple[pd.Index, Predictive]:
        """Rows of the forecast and their predictive distribution, always from the same draw.

        Paths of statistical forecasts, whose distributions do not come from them, are drawn if ``joint``.
        """
        ahead = None
        if X is not None and self._scaler is None:
            warnings.warn("X is ignored: the forecaster was fitted without X", stacklevel=2)
        elif X is not None:
            self._scaler.check(X, "predict")
            check_same_kind(X, self._cur_y, "X")
            ahead = dict(instances(X.reindex(columns=self._scaler.columns)))
        n_paths = 1 if self._is_point else int(self.num_samples)  # all paths of points are equal
        if self.network_ is None:
            return self._statistical(fh, X, n_paths if joint else 1)
        missing = None
        try:
            requests, keys, stamps = self._of_every_instance(fh, ahead)
        except MissingRows as error:
            missing = error
        if missing is not None:
            found = self._without_network(missing)._predictive(fh, X, joint)
            warnings.warn(f"the trained network is left out of this forecast: {missing}", stacklevel=2)
            return found
        lengths = self.context_length_, self.horizon_
        sampler = Sampler(self.network_, *lengths, n_paths, self._seed, self.device, self._instance_norm)
        result = predict_requests(requests, sampler)
        index, finite = self._index(keys, stamps), np.isfinite(result.paths).all(axis=(0, 2))
        if not finite.all():
            raise RuntimeError(
                f"the sample paths run away: they are not finite at {index[~finite][0]}. "
                f"Ask for a shorter fh, or train longer."
            )
        if self._strategy.kind.averages and self._given is None and self._irregular() is None:
            return self._statistical(fh, X, n_paths, result)
        known = None if self._effects is None else self._known_for(index, X)
        return self._as_given(index, keys, result, known)

    def _asked(self, fh, index):
        """Stamps of a forecasting horizon within or after one instance; without one, its latest rows."""
        if fh is None:
            return index[min(MIN_SCALE_VALUES, len(index) - 1) :][-N_CALIBRATION_WINDOWS:]
        asked = self._axis.horizon(fh, index[-1], index)
        if asked[0] >= index[0]:
            return asked
        first = self._cur_y.index.get_level_values(-1).min()  # an instance may begin after others
        if asked[0] < first or asked[-1] < index[0]:
            raise ValueError(f"fh asks for {asked[0]}, before the first observation at {index[0]}")
        return asked[asked >= index[0]]

    def _of_every_series(self, fh):
        """What statistical forecasts are asked for: stamps of each instance; requests by name."""
        axis, panel = self._axis, self._known_panel()
        alike = {}  # instances with the same rows are asked for the same stamps
        asked, numbers = {}, []
        for key, at, _ in panel.parts():
            if at.tobytes() not in alike:
                stamps = self._asked(fh, panel.stamps[at])
                alike[at.tobytes()] = stamps, axis.numbers(stamps)
            asked[key], steps = alike[at.tobytes()]
            numbers.append(steps)
        requests, dates = {}, self._last_dates(panel)
        for k, ((key, first, y), last) in enumerate(zip(panel.on_grids(axis), dates, strict=True)):
            if y is None:
                raise ValueError(
                    f"y{of_instance(key)} is no longer regular, which statistical forecasts need"
                )
            steps = snapped(numbers[k // len(panel.columns)] - first)
            name = key, panel.columns[k % len(panel.columns)]
            multiplied = self._effects is not None and self._of_series[name].of_demand
            alone = bool((~np.isnan(y)).sum() < self._strategy.least)
            requests[name] = SeriesRequest(y, steps, last, self._own_seasons(y), multiplied, alone)
        return asked, requests

    def _statistical(self, fh, X, n_paths, network=None):
        """Rows and distribution of statistical forecasts of all series, averaged with those of a network."""
        asked, named = self._of_every_series(fh)
        requests = list(named.values())
        forecasts = forecast_series(requests, n_paths, self._seed, self._correction, self._n_ahead)
        keys = [key for key, stamps in asked.items() for _ in stamps]
        index = self._index(keys, list(asked.values()))
        known = None if self._effects is None else self._known_for(index, X)
        if known is not None:
            forecasts = self._multiplied(forecasts, named, index, known)
        if self._strategy.analogues:
            part, both = self._strategy.part_of_analogues, zip(forecasts, requests, strict=True)
            forecasts = [with_analogues(*one, self._n_ahead, part) for one in both]
        if network is not None:
            forecasts = network.averaged_with(
                forecasts, requests, self._strategy.weight_of_others, self.context_length_
            )
        result = Predictive.of_columns(forecasts, len(requests) // len(asked))
        return self._as_given(index, keys, result, known)

    def _as_given(self, index, keys, result, known):
        """Instances and columns in the order of the data, with what X adds."""
        if (across := by_name(self._cur_y.columns)) != sorted(across):
            result = result.take(columns=np.argsort(across))
        if known is not None:
            result = self._with_effects(index, result, known)
        if index.nlevels == 1:
            return index, result
        first = self._cur_y.index.droplevel(-1).unique()
        place = {key if isinstance(key, tuple) else (key,): number for number, key in enumerate(first)}
        order = [place[key] for key in keys]
        if order == sorted(order):
            return index, result
        rows = np.argsort(order, kind="stable")
        return index[rows], result.take(rows=rows)

    def _index(self, keys, stamps):
        """Row index of the forecast."""
        names = self._cur_y.index.names
        if len(stamps) == 1 and keys[0] == ():
            return stamps[0].rename(names[0])
        levels = [pd.Index(level) for level in zip(*keys, strict=True)]
        return pd.MultiIndex.from_arrays([*levels, stamps[0].append(stamps[1:])], names=names)

    def _distribution(self, fh, X):
        return self._marginal(*self._predictive(fh, X))

    def _marginal(self, index, p):
        """Distribution of every step by itself."""
        return PathMixture._of(p.mixture, self._seed, index, self._labels)

    def _predict(self, fh, X):
        if self._is_point:
            index, p = self._predictive(fh, X)
            return pd.DataFrame(p.mixture.loc[..., 0], index=index, columns=self._labels)
        return self._distribution(fh, X).mean()

    def predict(self, fh: Any = None, X: Any = None) -> Any:
        """Means, or medians of ``distribution="mae"``; see ``BaseForecaster.predict`` of sktime."""
        with all_or_nothing(self):  # sktime keeps every fh
            return super().predict(fh=fh, X=X)

    # A forecaster of points says why it has nothing more, where sktime would ask to open an issue.

    def _need_distribution(self, what):
        if self._is_point:
            raise NotImplementedError(
                f"distribution={self.distribution!r} gives point forecasts only, no {what}; "
                f"choose another distribution, such as 'studentt' or 'quantile'"
            )

    def predict_interval(self, fh: Any = None, X: Any = None, coverage: Any = 0.90) -> pd.DataFrame:
        """Central intervals of each step; see ``BaseForecaster.predict_interval`` of sktime."""
        self._need_distribution("prediction intervals")
        check_levels(coverage, "coverage")
        with all_or_nothing(self):  # sktime keeps every fh
            return super().predict_interval(fh=fh, X=X, coverage=coverage)

    def predict_quantiles(self, fh: Any = None, X: Any = None, alpha: Any = None) -> pd.DataFrame:
        """Quantiles of each step; see ``BaseForecaster.predict_quantiles`` of sktime."""
        self._need_distribution("quantile predictions")
        check_levels(alpha, "alpha")
        with all_or_nothing(self):  # sktime keeps every fh
            return super().predict_quantiles(fh=fh, X=X, alpha=alpha)

    def predict_var(self, fh: Any = None, X: Any = None, cov: bool = False) -> pd.DataFrame:
        """Variances, with ``cov=True`` of whole paths; see ``BaseForecaster.predict_var`` of sktime."""
        self._need_distribution("variance predictions")
        with all_or_nothing(self):  # sktime keeps every fh
            return super().predict_var(fh=fh, X=X, cov=cov)

    def predict_proba(self, fh: Any = None, X: Any = None, marginal: bool = True) -> Any:
        """Distributions of steps, or paths with ``marginal=False``; see ``predict_proba`` of sktime."""
        self._need_distribution("fully probabilistic predictions")
        with all_or_nothing(self):  # sktime keeps every fh
            return super().predict_proba(fh=fh, X=X, marginal=marginal)

    def _predict_proba(self, fh, X, marginal=True):
        if marginal:
            return self._distribution(fh, X)
        index, p = self._joint_predictive(fh, X)
        return SamplePaths(p.paths, index=index, columns=self._labels, random_state=self._seed)

    def _predict_quantiles(self, fh, X, alpha):
        index, p = self._predictive(fh, X)
        columns = pd.MultiIndex.from_product([self._get_varnames(), alpha])
        return pd.DataFrame(p.mixture.at_levels(alpha).reshape(len(index), -1), index=index, columns=columns)

    def _predict_var(self, fh, X, cov=False):
        if not cov:
            return self._distribution(fh, X).var()
        if self.num_samples < 2:
            raise ValueError("covariances need several sample paths, but num_samples=1")
        index, p = self._joint_predictive(fh, X)
        return covariances(index, p.paths, self._marginal(index, p).var())
