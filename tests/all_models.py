"""The models of the package, as it lists them itself: tests of all models take a new one by themselves."""

from __future__ import annotations

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
