"""The examples in the docstrings of the sktime classes run and print what they say."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import taylorformer_forecast.sktime

MODULES = [
    f"taylorformer_forecast.sktime.{info.name}"
    for info in pkgutil.iter_modules(taylorformer_forecast.sktime.__path__)
]


@pytest.mark.parametrize("name", MODULES)
def test_examples_run(name):
    assert doctest.testmod(importlib.import_module(name)).failed == 0


@pytest.mark.parametrize("name", taylorformer_forecast.sktime.__all__)
def test_every_public_class_shows_an_example(name):
    assert ">>>" in getattr(taylorformer_forecast.sktime, name).__doc__
