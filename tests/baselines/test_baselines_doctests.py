"""The examples in docstrings of the baselines run and print what they say."""

import doctest
import importlib
import pkgutil

import pytest

import taylorformer_forecast.baselines

MODULES = [
    m.name
    for m in pkgutil.iter_modules(
        taylorformer_forecast.baselines.__path__, "taylorformer_forecast.baselines."
    )
]


@pytest.mark.parametrize("name", MODULES)
def test_examples_print_what_they_say(name):
    result = doctest.testmod(importlib.import_module(name))
    assert result.attempted > 0
    assert result.failed == 0
