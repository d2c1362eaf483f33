"""How the cutoff moves: new data, and sktime's ``update_predict``, from one cutoff after another."""

from __future__ import annotations

import copy
from contextlib import contextmanager
from typing import Any

import pandas as pd
from sktime.datatypes import convert_to, get_cutoff
from sktime.forecasting.base._base import _format_moving_cutoff_predictions
from sktime.utils.datetime import _shift

from taylorformer_forecast.engine.state import all_or_nothing
from taylorformer_forecast.sktime._host import Host


class MovingCutoffs(Host):
    """How the cutoff of a :class:`BaseTorchForecaster` moves through new data."""

    _y_metadata: Any
    _converter_store_y: Any

    @contextmanager
    def _same_format(self):
        """Keep the format of the user's data in mind: sktime takes note of that of every frame passed on."""
        seen = self._y_metadata, self._converter_store_y
        self._converter_store_y = dict(self._converter_store_y)
        try:
            yield
        finally:
            self._y_metadata, self._converter_store_y = seen

    def update_predict_single(self, *args: Any, **kwargs: Any) -> Any:
        """Take note of new data and forecast.

        See :meth:`sktime.forecasting.base.BaseForecaster.update_predict_single`.
        """
        with all_or_nothing(self):
            return super().update_predict_single(*args, **kwargs)

    def update_predict(self, *args: Any, **kwargs: Any) -> Any:
        """Forecast from one cutoff after another.

        See :meth:`sktime.forecasting.base.BaseForecaster.update_predict`.
        """
        with all_or_nothing(self):
            return super().update_predict(*args, **kwargs)

    def _update_predict_single(self, y, fh, X=None, update_params=True):
        with self._same_format():
            return super()._update_predict_single(y, fh, X, update_params)

    def _predict_moving_cutoff(self, y, cv, X=None, update_params=True, reset_forecaster=True):
        """The loop of sktime; where dates have no frequency, its first cutoff is just before them."""
        first = get_cutoff(y, return_index=True, reverse_order=True)
        if isinstance(first, pd.DatetimeIndex) and self._axis.freq is None:
            before = first - pd.Timedelta(1, unit="ns")
        else:
            before = _shift(first, by=-1, return_index=True)
        moved, forecasts, cutoffs = copy.deepcopy(self) if reset_forecaster else self, [], []
        moved._set_cutoff(before)
        with self._same_format():
            like = self._y_metadata["mtype"]
            for rows, _ in cv.split(y):
                forecast = moved.update_predict_single(y.iloc[rows], cv.get_fh(), X, update_params)
                forecasts.append(convert_to(forecast, like, store=self._converter_store_y))
                cutoffs.append(moved.cutoff)
        return _format_moving_cutoff_predictions(forecasts, cutoffs)
