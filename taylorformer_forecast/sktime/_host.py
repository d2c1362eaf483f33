"""What the parts of forecasters are mixed into: for type checkers sktime's forecaster, which has no types."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sktime.forecasting.base import BaseForecaster as Host
else:
    Host = object
