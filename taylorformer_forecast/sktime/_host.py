"""What the parts of sktime's estimators are made of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__all__ = ["Host"]

if TYPE_CHECKING:  # the estimator that a part is mixed into, which has no types
    from sktime.forecasting.base import BaseForecaster as Estimator
else:
    Estimator = object


class Host(Estimator):
    """Base of the parts that forecasters and the imputer are mixed from."""

    def _store(self, arguments: dict[str, Any]) -> None:
        """Set the parameters of a constructor, given its ``locals()``, as they are."""
        for name, value in arguments.items():
            if name not in ("self", "__class__"):
                setattr(self, name, value)
