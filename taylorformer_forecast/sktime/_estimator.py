"""What forecasters, imputers and the classifier have in common as estimators of sktime."""

from __future__ import annotations

from typing import Any

from sklearn.utils import check_random_state

from taylorformer_forecast.calendar.cycles import SeasonalFeatures
from taylorformer_forecast.core.families import gives_points
from taylorformer_forecast.models.documentation import Documented
from taylorformer_forecast.models.spec import ModelSpec
from taylorformer_forecast.sktime._host import Host
from taylorformer_forecast.sktime._parameters import TestParams


class Estimator(Documented, Host):
    """Tags, parameters as they are given, seeds, and settings for sktime's test suite.

    Parameters
    ----------
    context_length : int
        Observations that a forecast is conditioned on. By default the largest of three seasons, two horizons
        and 32, up to {usual_context}; or two cycles of the calendar, such as two weeks of hours, up to
        {longest_context}, where these are longer. Of a short series it is a third, or one season up to half
        of it. A network takes {longest_context}, at most a quarter of the series, if a linear forecast does
        clearly better with that.
    horizon : int
        Targets of a training window. By default the steps to the end of ``fh`` if it is known at ``fit``, at
        least 8 and at most {longest_horizon}; else a season, between 12 and 48. At most a quarter of the
        series.
    num_samples : int
        Sample paths of a prediction by a network.
    num_epochs : int or None
        Passes over all windows. More would overfit short series.
    max_steps : int or None
        Optimiser steps. Training ends with the earlier of both; None leaves its length to the other.
    batch_size : int
        Windows in a step.
    lr : float
        Peak learning rate; it warms up and decays by a cosine.
    validation_split : float
        Fraction at the end of every series that decides about early stopping. No step of training nor fit of
        the network's baseline has a target in it. What is found before training is found in all of the
        series: strategy, lengths, seasons, outliers, units, and what X adds. By default training uses all of
        the series and takes all of its steps; at irregular times the first third without their last quarter.
    patience : int
        With a ``validation_split``: checks without improvement (about 20 in all) before training stops. The
        best weights are kept.
    time_features : "auto", None or tuple of str
        Cycles of the calendar among "day", "week", "month", "year" whose phases the network sees. "auto"
        takes those that the index resolves and that the longest series covers at least twice.
    seasonal_periods : "auto", None, number or tuple of numbers
        Further seasons, in steps. "auto" looks for them in the autocorrelation of the longest series. To
        have no season, give ``time_features=None`` too: dates have those of the calendar.
    distribution : {"normal", "studentt", "mixture", "quantile", "mse", "mae"}
        Distribution of a point, given the path so far where paths are drawn step by step: forecasts further
        ahead are then mixtures of it. "quantile" is a piecewise linear quantile function trained by the
        pinball loss; "mse" and "mae" give point forecasts, trained by squared and absolute errors, without
        intervals.
    update_steps : int
        Optimiser steps of ``update(..., update_params=True)``. With 0, updates change the context only. A
        pretrained network is trained by them too.
    finetune_steps : int
        Optimiser steps of ``fit`` after ``pretrain``. With 0, ``fit`` gives the pretrained network the series
        as context and changes nothing else; without ``pretrain`` it has no meaning.
    past_only : None, "all" or tuple of column labels
        Columns of X that are known of the past only. The network sees their past, and is trained without
        their future: ``predict`` needs no values of them, and uses none. All others are known ahead:
        ``predict`` needs them for every step up to the last of ``fh``.
    device : str
        "auto" takes a CUDA device if there is one, else the CPU.
    random_state : int, RandomState or None
        Seed of training and of the paths.
    verbose : bool
        Whether training that takes more than seconds shows a progress bar, in a terminal or a notebook.
    trainer_kwargs : dict
        Arguments of ``pytorch_lightning.Trainer``, such as ``{"precision": "bf16-mixed"}``, loggers,
        callbacks, ``{"devices": 4, "strategy": "ddp"}`` or ``{"max_time": {"seconds": 30}}``. An epoch is a
        pass over all windows. ``max_steps`` and ``max_epochs`` among them can only shorten training, of
        updates too.
    """

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
    _test_params: tuple[dict[str, Any], ...] = ({},)
    _free: tuple[str, ...] = ()  # parameters without rules

    @property
    def _is_point(self):
        """Whether the distribution is a single value."""
        return gives_points(self.distribution)

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
