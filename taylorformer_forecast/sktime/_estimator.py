"""What forecasters, imputers and the classifier have in common as estimators of sktime."""

from __future__ import annotations

from typing import Any

from sklearn.utils import check_random_state

from taylorformer_forecast.calendar.cycles import SeasonalFeatures
from taylorformer_forecast.models.documentation import SIZES, document
from taylorformer_forecast.models.spec import ModelSpec
from taylorformer_forecast.sktime._host import Host
from taylorformer_forecast.sktime._parameters import PARAMETERS, TestParams


class Estimator(Host):
    """Tags, parameters as they are given, seeds, and settings for sktime's test suite."""

    _tags: dict[str, Any] = {
        "authors": ["taylorformer_forecast developers"],
        "maintainers": ["taylorformer_forecast developers"],
        "python_dependencies": ["torch>=2.6", "pytorch-lightning>=2.5", "skpro>=2.14"],
        "capability:multivariate": True,
        "capability:missing_values": True,
        "capability:unequal_length": True,
        "capability:categorical_in_X": False,
        "capability:random_state": True,
        "property:randomness": "derandomized",
        "fit_is_empty": False,
    }
    spec: ModelSpec
    _texts: tuple[str, ...] = (PARAMETERS, SIZES)  # parameters that several classes have, and their meaning
    _attributes = ""  # the same for attributes
    _test_params: tuple[dict[str, Any], ...] = ({},)

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        if "spec" in vars(cls):
            document(cls, (cls.spec.docs, *cls._texts), vars(cls.spec), cls._attributes)

    def _store(self, arguments):
        """Set the parameters of a constructor, given its ``locals()``, as they are."""
        for name, value in arguments.items():
            if name not in ("self", "__class__"):
                setattr(self, name, value)

    def _seeds(self):
        """Seeds of training and of draws."""
        return check_random_state(self.random_state).randint(0, 2**31 - 1, size=2).tolist()

    def _take_seasons(self, seasonal: SeasonalFeatures):
        """Take calendar cycles and seasons, and show them."""
        self._seasonal = seasonal
        self.time_features_, self.seasonal_periods_ = seasonal.cycles, seasonal.periods

    @classmethod
    def get_test_params(cls, parameter_set: str = "default") -> TestParams:
        """Small settings for sktime's test suite; ``parameter_set`` is ignored."""
        return [dict(settings) for settings in cls._test_params]
