"""Forecasts that are conditional on known values of the future."""

from __future__ import annotations

import copy
from typing import Self

import pandas as pd

from taylorformer_forecast.engine.gaps import some_first
from taylorformer_forecast.sktime._checks import known_future
from taylorformer_forecast.sktime._host import Host


class Conditioning(Host):
    """What ``order="random"`` makes possible, for forecasters with a parameter ``order``."""

    @property
    def _reorder(self):
        return some_first if self.order == "random" else None

    def condition(self, y_known: pd.Series | pd.DataFrame) -> Self:
        """Return a copy whose forecasts are conditional on known values of the future.

        Such values are a target that will be met, a day without sales, a reading that came in early. All
        predictive methods of the copy pass through the given values, and what lies around them follows. The
        forecaster itself stays as it is.

        Give ``fit`` an fh that reaches the known values: all steps up to the last of them are then drawn as
        in training, from one context.

        Parameters
        ----------
        y_known : pd.Series or pd.DataFrame
            Values after the last observation, with time stamps of the kind that y has in the fit, and for
            panels the same index levels. NaN, columns and instances that are absent mean: not known.

        Returns
        -------
        forecaster
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
