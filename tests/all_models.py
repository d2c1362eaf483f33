"""The models of the package, as it lists them itself: tests of all models take a new one by themselves."""

from __future__ import annotations

import inspect
from importlib import import_module

import taylorformer_forecast

NAMES = taylorformer_forecast._MODELS
OTHERS = [name for name in NAMES if name != "Taylorformer"]  # those without ``strategy``


def forecasters(names=NAMES):
    """Their classes for sktime."""
    return [getattr(import_module("taylorformer_forecast.sktime"), f"{name}Forecaster") for name in names]


def models(names=NAMES):
    """Their classes for darts."""
    return [getattr(import_module("taylorformer_forecast.darts"), f"{name}Model") for name in names]


def small(kind, **options):
    """Options of a small network, those of them that a class has; and others."""
    return having(kind, d_model=8, n_heads=2) | {"random_state": 0} | options


def trained(kind, **options):
    """The same, of a network that is trained however short the series."""
    return small(kind, **having(kind, strategy="train") | options)


def having(kind, **options):
    """Those of the options that a class has."""
    known = inspect.signature(kind.__init__).parameters
    return {name: value for name, value in options.items() if name in known}
