"""What the host classes of one model share: how its network is built, and what it can do."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from taylorformer_forecast.core.families import Family, find_family
from taylorformer_forecast.core.protocol import ForecastNet
from taylorformer_forecast.defaults import SHORTEST_CONTEXT, USUAL_WEIGHT


@dataclass(frozen=True)
class Task:
    """What a host and its data decide about a network.

    Parameters
    ----------
    n_context, horizon : int
        Points of a context, and targets of a training window: those of a forecast may be fewer, from 1 on.
    shift : int, default=0
        Steps between the context and the first target.
    n_covariates : int, default=0
        Covariates of a window.
    n_columns : int, default=1
        Columns of the data. Only networks that join columns see more than one at a time.
    family : str or Family, default="studentt"
        Predictive distribution of a point.
    weight : float, default=1.0
        Weight of what the network adds to its baseline.
    regular : bool, default=True
        Whether times are steps of a grid, enough of them observed for what follows from the step before.
    """

    n_context: int
    horizon: int
    shift: int = 0
    n_covariates: int = 0
    n_columns: int = 1
    family: str | Family = "studentt"
    weight: float = 1.0
    regular: bool = True

    @property
    def has_location(self) -> bool:
        """Whether the distribution has a location, which a baseline can predict."""
        return find_family(self.family).has_location


@dataclass(frozen=True)
class ModelSpec:
    """A model, for the host classes that offer it.

    Parameters
    ----------
    name : str
        Name of the model, as in titles.
    build : callable
        ``build(task, **options)`` returns an untrained network for a :class:`Task`. Its keyword-only
        arguments, or those that :func:`functools.partial` binds, are the model's options: constructors of
        host classes name those that they offer, with the same defaults. The section "Parameters" of its
        docstring says what they mean, without default values, and goes into the docstrings of the host
        classes (:func:`~taylorformer_forecast.models.documentation.document`).
    weight : float, default=0.5
        Weight of what the network adds to its baseline, where the two see the same data and minimise the same
        error.
    max_steps : int, default=400
        Optimiser steps of a fit.
    num_epochs : int, default=15
        Most passes over the windows.
    usual_context : int, default=192
        Longest context that is chosen without regard to its benefit.
    longest_context : int, default=192
        Longest context that is chosen where a linear forecast does clearly better with it.
    longest_horizon : int, default=96
        Most targets of a training window that are chosen.
    most_points : int, optional
        Points of all columns that the context chosen has at most, though never fewer than 32 times.
    regular : bool, default=False
        Whether the network needs points on a regular grid.
    shares_windows : bool, default=False
        Whether the columns of the data share windows.
    lr : float, default=2e-3
        Learning rate.

    Raises
    ------
    ValueError
        If an option of the network is not keyword-only, or has no default value.

    Examples
    --------
    >>> from taylorformer_forecast.models.spec import Task
    >>> from taylorformer_forecast.models.specs import TNP
    >>> TNP.defaults
    {'d_model': 32, 'n_heads': 2, 'n_layers': 3, 'dropout': 0.0, 'value_noise': 0.0, 'attention': 'full'}
    >>> net = TNP.build(Task(n_context=24, horizon=12), d_model=8)
    """

    name: str
    build: Callable[..., ForecastNet]
    weight: float = USUAL_WEIGHT
    max_steps: int = 400
    num_epochs: int = 15
    usual_context: int = 192
    longest_context: int = 192
    longest_horizon: int = 96
    most_points: int | None = None
    regular: bool = False
    shares_windows: bool = False
    lr: float = 2e-3

    def __post_init__(self) -> None:
        """Refuse options that classes of hosts could not have as parameters."""
        if isinstance(self.build, partial):
            return
        for name, argument in list(inspect.signature(self.build).parameters.items())[1:]:
            if argument.kind is not argument.KEYWORD_ONLY or argument.default is argument.empty:
                raise ValueError(
                    f"model {self.name!r}: {name} must be keyword-only and have a default value, as in "
                    f"{self.build.__name__}(task, *, {name}=...)"
                )

    @property
    def defaults(self) -> dict[str, Any]:
        """Options of the network, with their default values."""
        if isinstance(self.build, partial):
            return dict(self.build.keywords)
        arguments = inspect.signature(self.build).parameters.items()
        return {
            name: argument.default for name, argument in arguments if argument.kind is argument.KEYWORD_ONLY
        }

    def options(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Those of the parameters of a host class that are options of the network."""
        return {name: params[name] for name in self.defaults if name in params}

    def weight_of(self, sees_covariates: bool, minimises_likelihood: bool) -> float:
        """Weight of a network: 1 where it alone sees covariates, or minimises what its baseline does not."""
        return self.weight if minimises_likelihood and not sees_covariates else 1.0

    def context(self, n_columns: int) -> int:
        """Longest context of so many columns that is chosen without regard to its benefit."""
        if self.most_points is None:
            return self.usual_context
        return min(self.usual_context, max(SHORTEST_CONTEXT, self.most_points // n_columns))
