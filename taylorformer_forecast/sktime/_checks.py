"""Errors in the user's words: parameters and data that cannot be used."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import torch

from taylorformer_forecast.calendar.steps import content
from taylorformer_forecast.core.families import find_family
from taylorformer_forecast.engine.parameters import NATURAL, check_rule, check_rules
from taylorformer_forecast.sktime._frames import (
    check_values,
    instances,
    labels_are_missing,
    of_instance,
    shown,
)
from taylorformer_forecast.sktime._panel import Panel


def check_parameters(parameters, free=()):
    """Raise a ValueError if a parameter is not what it may be; those that are free may be anything."""
    lengths = [name for name in ("max_steps", "num_epochs") if name in parameters]
    if len(lengths) == 1:  # no other one says how long training is
        check_rule(lengths[0], parameters[lengths[0]], NATURAL)
    check_rules(parameters, free)
    if "distribution" in parameters:
        find_family(parameters["distribution"])
    if all(parameters[name] is None for name in lengths):
        raise ValueError(f"{' and '.join(lengths)} are both None: give one")
    device = parameters["device"]
    if device == "auto":  # nothing is started that may not be needed
        return
    try:
        torch.empty(0, device=device)
    except Exception as error:
        raise ValueError(f"device={device!r} cannot be used here: {error}") from error


def check_levels(levels, name):
    """Raise a ValueError if probabilities are asked for, but none is given."""
    if levels is not None and np.size(levels) == 0:
        raise ValueError(f"{name} is empty: give a number between 0 and 1, or several")


def check_enough(y, context_length, least=3):
    """Raise a ValueError if there is too little to learn from."""
    panel = Panel.of(y)
    check_panel_observed(panel)
    n = int(panel.count().max())
    if n < least:
        raise ValueError(f"y has {n} observation{'s' * (n != 1)}, at least {least} are needed")
    if context_length is not None and context_length >= n:
        raise ValueError(
            f"context_length={context_length} but y has {n} observations; "
            f"at least {context_length + 1} are needed"
        )


def check_observed(key, y, name="y"):
    """Raise a ValueError if nothing was observed of a column of an instance."""
    check_panel_observed(replace(Panel.of(y), keys=[key]), name)


def check_panel_observed(panel, name="y"):
    """Raise a ValueError if nothing was observed of a column of any instance."""
    for instance, column in np.argwhere(panel.count() == 0):
        of, column = of_instance(panel.keys[instance]), shown(panel.columns[column])
        raise ValueError(f"{name} column {column}{of} has no observed values")


def check_positive(key, X):
    """Raise a ValueError if a value has no logarithm."""
    low = X.min()
    if (low <= 0).any():
        column = X.columns[low <= 0][0]
        raise ValueError(
            f"logarithm=True, but X column {shown(column)}{of_instance(key)} has values that are not "
            f"positive, such as {low[column]}"
        )


def unnamed(new, known):
    """Whether both are a single column, and one of them has no name."""
    return len(new) == len(known) == 1 and 0 in (*new, *known)


def check_columns(new, known):
    """Raise a ValueError if the columns of y are not those of the fit; a single one may have another name."""
    if new != known and not len(new) == len(known) == 1:
        raise ValueError(f"y has columns {new}, but the forecaster was fitted with {known}")


def check_same_kind(frame, fitted, name):
    """Raise an error if the index of a frame is not of the kind that y had in the fit."""
    index, known = frame.index, fitted.index
    if index.nlevels != known.nlevels:
        raise ValueError(f"{name} has {index.nlevels} index level(s), but y has {known.nlevels} in the fit")
    has, had = (content(each.levels[-1] if each.nlevels > 1 else each) for each in (index, known))
    if has != had:
        raise TypeError(f"the index of {name} holds {has}, but that of y holds {had} in the fit")


def check_instances(X, y):
    """Raise a ValueError if one of X and y has instances, and the other none."""
    levels = [frame.index.nlevels for frame in (X, y) if isinstance(frame, (pd.Series, pd.DataFrame))]
    if len(set(levels)) > 1:
        raise ValueError(
            f"X has {levels[0]} index level(s), but y has {levels[1]}: X needs rows for every instance of y"
        )


def check_rows(X, y):
    """Raise a ValueError if X lacks rows of y."""
    missing = y.index[~y.index.isin(X.index)]
    if not len(missing):
        return
    key = missing[0][:-1] if missing.nlevels > 1 else ()
    if key not in dict(instances(X)):
        raise ValueError(f"X has no rows{of_instance(key)}")
    raise ValueError(labels_are_missing(missing))


def known_future(known, fitted, cutoff):
    """Known values of the future as a frame with the columns of y, or an error in the user's words."""
    name = "y_known"
    if not isinstance(known, (pd.Series, pd.DataFrame)):
        raise TypeError(f"{name} is a {type(known).__name__}; a pandas Series or DataFrame is needed")
    if isinstance(known, pd.Series):
        if len(fitted.columns) > 1 and known.name not in fitted.columns:
            raise ValueError(
                f"{name} is a series named {known.name!r}, but y has columns {list(fitted.columns)}: name it"
            )
        known = known.to_frame(known.name if len(fitted.columns) > 1 else fitted.columns[0])
    unknown = [column for column in known.columns if column not in fitted.columns]
    if unknown:
        raise ValueError(f"{name} has a column {shown(unknown[0])}, but y has columns {list(fitted.columns)}")
    check_values(known, name)
    check_same_kind(known, fitted, name)
    last = {key: part.index[part.index <= cutoff][-1] for key, part in instances(fitted)}
    for key, part in instances(known):
        if key not in last:
            raise ValueError(f"{name} has values{of_instance(key)}, which is not in y")
        if part.index[0] <= last[key]:
            raise ValueError(
                f"{name}{of_instance(key)} has a value at {part.index[0]}, but y was observed up to "
                f"{last[key]}: only later values can be given"
            )
    if not known.notna().any(axis=None):
        raise ValueError(f"{name} has missing values only: nothing is known")
    return known.astype("float64").reindex(columns=fitted.columns)
