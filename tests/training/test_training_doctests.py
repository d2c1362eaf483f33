"""The examples in the docstrings of training run and print what they say."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import taylorformer_forecast.training

MODULES = [
    f"taylorformer_forecast.training.{info.name}"
    for info in pkgutil.iter_modules(taylorformer_forecast.training.__path__)
]


@pytest.mark.parametrize("name", MODULES)
def test_examples_run(name):
    assert doctest.testmod(importlib.import_module(name)).failed == 0


def test_the_pieces_that_users_build_with_show_examples():
    for name in ("windows", "fit", "seasonality"):
        module = importlib.import_module(f"taylorformer_forecast.training.{name}")
        assert doctest.testmod(module).attempted > 0
