"""The examples in docstrings run and print what they say."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import taylorformer_forecast.core
import taylorformer_forecast.models


def examples():
    """Find every documented object of core and models that shows an example."""
    finder = doctest.DocTestFinder(exclude_empty=True)
    for package in (taylorformer_forecast.core, taylorformer_forecast.models):
        for info in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
            module = importlib.import_module(info.name)
            for name, value in vars(module).items():
                if getattr(value, "__module__", None) == module.__name__ and callable(value):
                    for test in finder.find(value, f"{module.__name__}.{name}", module=False, globs={}):
                        if test.examples:
                            yield pytest.param(test, id=test.name.removeprefix("taylorformer_forecast."))


@pytest.mark.parametrize("test", list(examples()))
def test_the_example_prints_what_it_says(test):
    report = []
    result = doctest.DocTestRunner(verbose=False).run(test, out=report.append)
    assert result.attempted > 0
    assert result.failed == 0, "".join(report)


def test_the_pieces_that_users_build_with_show_examples():
    shown = {parameter.id for parameter in examples()}
    assert {
        "core.window.Window",
        "core.window.shuffle_targets",
        "core.scaling.scale_window",
        "core.sampling.sample_paths",
        "models.taylorformer.Taylorformer",
    } <= shown
