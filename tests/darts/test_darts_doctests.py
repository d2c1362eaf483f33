"""The examples in docstrings of the darts models run."""

import doctest
import importlib

import pytest


@pytest.mark.parametrize("name", ["taylorformer", "lam", "likelihoods"])
def test_examples_in_docstrings_run(name):
    failures, tests = doctest.testmod(importlib.import_module(f"taylorformer_forecast.darts.{name}"))
    assert tests
    assert not failures
