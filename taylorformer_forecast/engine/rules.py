"""What the parameters of both hosts' models may be, and errors in the user's words where they are not."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from numbers import Integral, Real
from os import PathLike
from typing import Any

import numpy as np

from taylorformer_forecast.calendar.axis import CYCLES
from taylorformer_forecast.engine.strategy import STRATEGIES


def is_whole(value: Any, least: int) -> bool:
    """Whether a parameter is a whole number, at least some."""
    return isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= least


def _fraction(value: Any) -> bool:
    return isinstance(value, Real) and 0 <= float(value) < 1


# What parameters may be: names, the rule in words, the rule. A model obeys those on names that it has.
RULES: list[tuple[tuple[str, ...], str, Callable[[Any], bool]]] = [
    (
        (
            "num_samples",
            "batch_size",
            "d_model",
            "n_heads",
            "n_layers",
            "n_derivative_neighbours",
            "max_points",
        ),
        "a whole number, at least 1",
        lambda value: is_whole(value, 1),
    ),
    (
        ("patience", "update_steps", "finetune_steps"),
        "a whole number, at least 0",
        lambda value: is_whole(value, 0),
    ),
    (
        ("max_steps", "num_epochs", "n_epochs"),
        "None or a whole number, at least 0",
        lambda value: value is None or is_whole(value, 0),
    ),
    (
        ("context_length", "horizon", "window_length", "gap_length"),
        "None or a whole number, at least 1",
        lambda value: value is None or is_whole(value, 1),
    ),
    (
        ("instance_norm", "joint", "logarithm", "common_clock"),
        "None, True or False",
        lambda value: value is None or isinstance(value, bool),
    ),
    (("pretrained",), "'default' or a path", lambda value: isinstance(value, (str, PathLike))),
    (("strategy",), f"one of {', '.join(STRATEGIES)}", lambda value: value in STRATEGIES),
    (("order",), "'time' or 'random'", lambda value: value in ("time", "random")),
    (("join",), "'columns' or 'instances'", lambda value: value in ("columns", "instances")),
    (("preset",), "'modern' or 'faithful'", lambda value: value in ("modern", "faithful")),
    (("lr",), "a positive number", lambda value: isinstance(value, Real) and 0 < float(value) < math.inf),
    (("dropout", "hide"), "a number, at least 0 and below 1", _fraction),
    (
        ("validation_split",),
        "None or a number, at least 0 and below 1",
        lambda value: value is None or _fraction(value),
    ),
    (
        ("time_features",),
        f"'auto', None or a tuple of names among {', '.join(CYCLES)}",
        lambda value: (
            value is None
            or value == "auto"
            or (isinstance(value, (tuple, list)) and all(name in CYCLES for name in value))
        ),
    ),
    (
        ("seasonal_periods",),
        "'auto', None or numbers, at least 1",
        lambda value: (
            value is None
            or (isinstance(value, str) and value == "auto")
            or all(isinstance(p, Real) and 1 <= float(p) < math.inf for p in np.atleast_1d(value))
        ),
    ),
    (
        ("past_only",),
        "None, 'all' or a tuple of columns of X",
        lambda value: value is None or value == "all" or isinstance(value, (tuple, list)),
    ),
    (("device",), "a string", lambda value: isinstance(value, str)),
    (("trainer_kwargs",), "None or a dict", lambda value: value is None or isinstance(value, Mapping)),
]


def check_rules(parameters: Mapping[str, Any]) -> None:
    """Raise a ValueError if a parameter is not what it may be."""
    for names, rule, obeys in RULES:
        for name in names:
            if name in parameters and not obeys(parameters[name]):
                raise ValueError(f"{name}={parameters[name]!r}, but it must be {rule}")
