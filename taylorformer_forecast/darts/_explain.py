"""What a forecast of a darts model owes to its baseline, its network, covariates and past values."""

from __future__ import annotations

import copy
from functools import partial
from typing import Any

import numpy as np
from darts import TimeSeries
from darts.models.forecasting.torch_forecasting_model import MixedCovariatesTorchModel

from taylorformer_forecast.engine.explanation import lag_blocks, split


class Explaining(MixedCovariatesTorchModel):
    """Parts of the mean of a fitted :class:`BaseForecastModel`."""

    model: Any

    def explain(
        self,
        n: int,
        series: TimeSeries | None = None,
        past_covariates: TimeSeries | None = None,
        future_covariates: TimeSeries | None = None,
        *,
        lags: int | None = None,
        num_samples: int = 100,
        random_state: int = 0,
    ) -> dict[str, TimeSeries]:
        """Split the mean of a forecast into baseline and network, and leave inputs out one by one.

        Nothing is trained: each part is a difference of two forecasts of the fitted model, drawn with the
        same random numbers. Baseline and network add up to the forecast. The changes of the inputs need not:
        two inputs that carry the same information can each be left out without a change. They show what the
        model uses, not what causes what. Static covariates and encoders are never left out.

        Parameters
        ----------
        n, series, past_covariates, future_covariates
            As for ``predict``, for a single series.
        lags : int, optional
            Length of blocks of past values that are left out in turn, up to ``input_chunk_length``; a season,
            for instance.
        num_samples : int, default=100
            Sample paths of each forecast, whose mean is taken.
        random_state : int, default=0
            Seed of the paths.

        Returns
        -------
        dict of str to TimeSeries
            Series with the times and components of ``predict``, in the units of the target.

            - "forecast": the mean of the paths;
            - "baseline": the same with a network that adds nothing. It is the statistical combination, or
              the baseline that was fitted in closed form. Networks without one then predict what their
              output of zero means, mostly the mean of the input chunk;
            - "network": the difference of the two;
            - "past: name", "future: name": how the forecast differs from that with the mean of this component
              of the covariates in the place of all its values;
            - "lags 1-12": how it differs from that with these past values missing; NaN if nothing is left of
              the input chunk.

        Raises
        ------
        ValueError
            If the model was not fitted, there is no single series, or ``lags`` is no positive whole number.

        Examples
        --------
        >>> from darts.utils.timeseries_generation import sine_timeseries
        >>> from taylorformer_forecast.darts import TaylorformerModel
        >>> series = sine_timeseries(length=60, value_frequency=1 / 12).astype("float32")
        >>> quiet = {"accelerator": "cpu", "enable_progress_bar": False}
        >>> model = TaylorformerModel(24, 6, random_state=0, pl_trainer_kwargs=quiet).fit(series)
        >>> list(model.explain(6, lags=12))
        ['forecast', 'baseline', 'network', 'lags 1-12', 'lags 13-24']
        """
        self._check_fitted()
        series = self.training_series if series is None else series
        if not isinstance(series, TimeSeries):
            raise ValueError("series must be one TimeSeries: a forecast of one is explained at a time")
        inputs: dict[str, Any] = {
            "series": series,
            "past_covariates": past_covariates or self.past_covariate_series,
            "future_covariates": future_covariates or self.future_covariate_series,
        }

        def mean(model: Any = self, **changed: TimeSeries) -> TimeSeries:
            paths = 1 if self.likelihood is None else num_samples
            options = {"num_samples": paths, "random_state": random_state, "verbose": False}
            options["show_warnings"] = "series" not in changed  # that past values are missing is meant
            return model.predict(n, **{**inputs, **changed}, **options).mean(axis=2)

        without = {}
        encoded = {name for names in self.encoders.components for name in names} if self.encoders else set()
        for kind in ("past", "future"):
            covariates = inputs[f"{kind}_covariates"]
            for name in () if covariates is None else covariates.components:
                if name not in encoded:
                    still = _constant(covariates, name)
                    changed = {f"{kind}_covariates": still}
                    if kind == "future" and self.model.additions is not None:
                        own = self.model.statistics is not None
                        changed["series"] = self.model.additions.with_others(series, covariates, still, own)
                    without[f"{kind}: {name}"] = partial(mean, **changed)
        for name, (first, last) in lag_blocks(lags, self.input_chunk_length).items():
            without[name] = partial(mean, series=_masked(series, first, last))
        alone = copy.copy(self)
        alone.model = self.model.without_network()
        return split(mean, partial(mean, alone), without)

    def _check_fitted(self) -> None:
        if self.model is None:
            raise ValueError("the model has not been fitted: call fit first")


def _constant(covariates: TimeSeries, name: str) -> TimeSeries:
    """Covariates with the mean of a component in the place of its values."""
    values = covariates.all_values()
    column = values[:, covariates.components.get_loc(name)]
    column[:] = np.nanmean(column)
    return covariates.with_values(values)


def _masked(series: TimeSeries, first: int, last: int) -> TimeSeries:
    """Series without the past values number ``first`` to ``last``, counted backwards."""
    values = series.all_values()
    values[max(0, len(values) - last) : max(0, len(values) - first)] = np.nan
    return series.with_values(values)
