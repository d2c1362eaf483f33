"""What the parameters of both hosts' models may be, and errors in the user's words where they are not."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from numbers import Integral, Real
from os import PathLike
from typing import Any

import numpy as np
import torch

from taylorformer_forecast.calendar.frequency import CYCLES
from taylorformer_forecast.defaults import SHORTEST_CONTEXT
from taylorformer_forecast.engine.state import kept_rng
from taylorformer_forecast.engine.strategy import STRATEGIES
from taylorformer_forecast.models.spec import ModelSpec, Task

LARGEST = 1e150  # of a value: its square is still a number
LARGEST_SEED = int(np.iinfo(np.uint32).max)  # of numpy


def is_whole(value: Any, least: int) -> bool:
    """Whether a parameter is a whole number, at least some."""
    return isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= least


def _is_fraction(value: Any) -> bool:
    return isinstance(value, Real) and 0 <= float(value) < 1


def _is_chunk(value: Any) -> bool:
    pair = isinstance(value, tuple) and len(value) == 2 and is_whole(value[0], 1)
    return is_whole(value, 1) or (pair and is_whole(value[1], value[0]))


def _is_seed(value: Any) -> bool:
    given = isinstance(value, np.random.RandomState) or value is np.random
    return given or (is_whole(value, 0) and int(value) <= LARGEST_SEED)


def _is(value: Any, *names: str) -> bool:
    return isinstance(value, str) and value in names  # arrays have no one truth


def _is_rate(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and 0 < float(value) < math.inf


@dataclass(frozen=True)
class Rule:
    """What a parameter may be, in words and as a function."""

    words: str
    obeys: Callable[[Any], bool]

    def or_none(self) -> Rule:
        """The same, or None."""
        return Rule(f"None or {self.words}", lambda value: value is None or self.obeys(value))


def _one_of(first: str, second: str) -> Rule:
    return Rule(f"{first!r} or {second!r}", lambda value: _is(value, first, second))


POSITIVE = Rule("a whole number, at least 1", lambda value: is_whole(value, 1))
NATURAL = Rule("a whole number, at least 0", lambda value: is_whole(value, 0))
FRACTION = Rule("a number, at least 0 and below 1", _is_fraction)
SWITCH = Rule("None, True or False", lambda value: value is None or isinstance(value, bool))
TRUTH = Rule("True or False", lambda value: isinstance(value, (bool, np.bool_, Integral)) and value in (0, 1))
SIZES = ("d_model", "n_heads", "n_layers", "n_derivative_neighbours")
# By the name of a parameter. A model obeys those on names that it has.
RULES: dict[str, Rule] = {
    **dict.fromkeys((*SIZES, "num_samples", "batch_size", "max_points"), POSITIVE),
    **dict.fromkeys(("patience", "update_steps", "finetune_steps"), NATURAL),
    **dict.fromkeys(("max_steps", "num_epochs", "n_epochs"), NATURAL.or_none()),
    **dict.fromkeys(("context_length", "horizon", "window_length", "gap_length"), POSITIVE.or_none()),
    **dict.fromkeys(("instance_norm", "joint", "logarithm", "common_clock"), SWITCH),
    **dict.fromkeys(("verbose", "linear_path"), TRUTH),
    "input_chunk_length": Rule(
        "a whole number, at least 1, or (min, max) of such numbers with min <= max", _is_chunk
    ),
    "output_chunk_length": POSITIVE,
    "output_chunk_shift": NATURAL,
    "random_state": Rule(
        f"a whole number between 0 and {LARGEST_SEED} or a numpy.random.RandomState", _is_seed
    ).or_none(),
    "pretrained": Rule("'default' or a path", lambda value: isinstance(value, (str, PathLike))),
    "strategy": Rule(f"one of {', '.join(STRATEGIES)}", lambda value: _is(value, *STRATEGIES)),
    "order": _one_of("time", "random"),
    "join": _one_of("columns", "instances"),
    "attention": Rule("a kernel or the name of one", lambda value: isinstance(value, str) or callable(value)),
    "preset": _one_of("modern", "faithful"),
    "lr": Rule("a positive number", _is_rate),
    "dropout": FRACTION,
    "hide": FRACTION,
    "validation_split": FRACTION.or_none(),
    "time_features": Rule(
        f"'auto', None or a tuple of names among {', '.join(CYCLES)}",
        lambda value: (
            value is None
            or _is(value, "auto")
            or (isinstance(value, (tuple, list)) and all(_is(name, *CYCLES) for name in value))
        ),
    ),
    "seasonal_periods": Rule(
        "'auto', None or numbers, at least 1",
        lambda value: (
            value is None
            or _is(value, "auto")
            or all(isinstance(p, Real) and 1 <= float(p) < math.inf for p in np.atleast_1d(value))
        ),
    ),
    "past_only": Rule(
        "None, 'all' or a tuple of columns of X",
        lambda value: value is None or isinstance(value, (tuple, list)) or _is(value, "all"),
    ),
    "device": Rule(
        "a device of PyTorch with double precision, such as 'cpu' or 'cuda'",
        lambda value: isinstance(value, str) and not value.startswith("mps"),
    ),
    **dict.fromkeys(
        ("trainer_kwargs", "pl_trainer_kwargs"),
        Rule(
            "None or a dict, whose accelerator has double precision (not 'mps')",
            lambda value: value is None or (isinstance(value, Mapping) and value.get("accelerator") != "mps"),
        ),
    ),
}


def check_rule(name: str, value: Any, rule: Rule) -> None:
    """Raise a ValueError if an argument is not what a rule says."""
    if not rule.obeys(value):
        raise ValueError(f"{name}={value!r}, but it must be {rule.words}")


def check_rules(parameters: Mapping[str, Any], free: Collection[str] = ()) -> None:
    """Raise a ValueError if a parameter is not what it may be; those that are free may be anything."""
    for name, rule in RULES.items():
        if name in parameters and name not in free:
            check_rule(name, parameters[name], rule)


def check_network(spec: ModelSpec, parameters: Mapping[str, Any]) -> None:
    """Raise a ValueError if the parameters of a host class are those of no network, whatever the data."""
    options = spec.options(parameters)
    if options != spec.defaults:
        with kept_rng(), torch.device("meta"):  # nothing is allocated
            spec.build(Task(SHORTEST_CONTEXT, horizon=1), **options)
